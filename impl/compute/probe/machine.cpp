#include "compute/probe/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "compute/cpu/kernels/dispatch.h"
#include "core/error.h"
#include "core/json.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

namespace shardrec::compute {
namespace {

#if defined(__x86_64__)
using Registers = std::array<unsigned, 4>;

bool ask(unsigned leaf, Registers& out) {
  return __get_cpuid(leaf, &out[0], &out[1], &out[2], &out[3]) != 0;
}

std::string cpu_name() {
  std::array<char, 3 * sizeof(Registers) + 1> brand = {};
  Registers answer = {};
  for (unsigned part = 0; part < 3 && ask(0x80000002U + part, answer); ++part) {
    std::memcpy(brand.data() + part * sizeof(Registers), answer.data(), sizeof(Registers));
  }
  std::string name = brand.data();
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  // Hypervisors give one brand to several models.
  if (ask(1, answer)) {
    const unsigned base = (answer[0] >> 8) & 0xF;
    const unsigned family = base + (base == 0xF ? (answer[0] >> 20) & 0xFF : 0);
    const unsigned model = ((answer[0] >> 4) & 0xF) | ((answer[0] >> 12) & 0xF0);
    core::append(name, core::sentence(" (family ", family, ", model ", model, ", stepping ",
                                      answer[0] & 0xF, ")"));
  }
  return name;
}

// Bytes of the data cache of a level that one processor reaches; 0: there is none. The C library
// and the brand tell of all caches of a package together.
int64_t cache_bytes(unsigned level, int /*name*/) {
  Registers answer = {};
  const bool amd = ask(0x80000001, answer) && (answer[2] >> 22 & 1) != 0;  // topology extensions
  const unsigned leaf = amd ? 0x8000001D : 4;
  for (unsigned i = 0; i < 16; ++i) {
    if (__get_cpuid_count(leaf, i, &answer[0], &answer[1], &answer[2], &answer[3]) == 0) return 0;
    const unsigned type = answer[0] & 0x1F;  // 0: no more, 2: instructions
    if (type == 0) return 0;
    if (type == 2 || (answer[0] >> 5 & 7) != level) continue;
    const auto field = [](unsigned value) { return static_cast<int64_t>(value) + 1; };
    return field(answer[1] >> 22) * field(answer[1] >> 12 & 0x3FF) * field(answer[1] & 0xFFF) *
           field(answer[2]);
  }
  return 0;
}
#else
int64_t cache_bytes(unsigned /*level*/, int name) {
  return name < 0 ? 0 : std::max<int64_t>(sysconf(name), 0);
}

std::string cpu_name() {
  utsname about = {};
  std::string name = uname(&about) == 0 ? about.machine : "unknown";
#if defined(__linux__)
  core::append(name, core::sentence(" (capabilities ", getauxval(AT_HWCAP), ", ",
                                    getauxval(AT_HWCAP2), ")"));
#endif
  return name;
}
#endif

#if defined(_SC_LEVEL1_DCACHE_SIZE)
constexpr std::array<int, 3> kCacheNames = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                            _SC_LEVEL3_CACHE_SIZE};
#else
constexpr std::array<int, 3> kCacheNames = {-1, -1, -1};
#endif

}  // namespace

Machine this_machine() {
  Machine machine{.cpu = cpu_name(),
                  .processors = std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1),
                  .l1_bytes = cache_bytes(1, kCacheNames[0]),
                  .l2_bytes = cache_bytes(2, kCacheNames[1]),
                  .l3_bytes = cache_bytes(3, kCacheNames[2]),
                  .instruction_set = cpu_kernels().name};
  if (!core::is_utf8(machine.cpu)) machine.cpu = "unknown";
  return machine;
}

}  // namespace shardrec::compute
