// Which set of kernels is in use.
#include "compute/cpu/kernels/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "compute/cpu/kernels/sets.h"
#include "core/error.h"

namespace shardrec::compute {
namespace {

struct Choice {
  const Kernels& kernels;
  std::string refused = {};  // what the variable names, where that is nothing that there is
};

Choice choose() {
  const Kernels& best = cpu_kernels_at(cpu_kernel_count() - 1);
  const char* asked = std::getenv("SHARDREC_CPU_TARGET");
  if (asked == nullptr || *asked == '\0') return {best};
  for (int i = 0; i < cpu_kernel_count(); ++i) {
    const Kernels& kernels = cpu_kernels_at(i);
    if (std::string_view(asked) == kernels.name) return {kernels};
  }
  return {best, asked};
}

const Choice& chosen() {
  // Leaked, so that threads may use it while the process exits.
  static const Choice& choice = *std::make_unique<const Choice>(choose()).release();
  return choice;
}

std::atomic<const Kernels*> forced{nullptr};

}  // namespace

const Kernels& cpu_kernels() {
  const Kernels* other = forced.load(std::memory_order_relaxed);
  return other == nullptr ? chosen().kernels : *other;
}

void require_cpu_target() {
  const std::string& refused = chosen().refused;
  if (refused.empty()) return;
  std::string accepted;
  for (int i = 0; i < cpu_kernel_count(); ++i) {
    core::append(accepted, core::sentence(i == 0 ? "" : ", ", cpu_kernels_at(i).name));
  }
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("the environment variable SHARDREC_CPU_TARGET is \"", refused,
                            "\"; on this machine ", accepted, " are accepted"));
}

int cpu_kernel_count() { return 1 + static_cast<int>(cpu::simd_kernels().size()); }

const Kernels& cpu_kernels_at(int index) {
  return index == 0 ? cpu::scalar_kernels() : *cpu::simd_kernels()[static_cast<size_t>(index - 1)];
}

void force_cpu_kernels(const Kernels* kernels) { forced.store(kernels, std::memory_order_relaxed); }

}  // namespace shardrec::compute
