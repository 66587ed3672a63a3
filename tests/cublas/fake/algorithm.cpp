#include "algorithm.h"

namespace fake_cublaslt {
namespace {

constexpr uint64_t kMagic = 0x616c676f72697468;
constexpr uint32_t kWorkspaceAlignment = 256;

bool is_worse(const char* what, const void* address, uint32_t promised) {
  if (address == nullptr || alignment(address) >= promised) return false;
  violation("cublasLtMatmul with %s that is %u-byte aligned, by an algorithm for %u bytes", what,
            alignment(address), promised);
  return true;
}

}  // namespace

AlgorithmParts choose_algorithm(const Problem& problem, const PreferenceType& preference) {
  return {.magic = kMagic,
          .fingerprint = problem.fingerprint(),
          .workspace = knobs().workspace.load(),
          .align_a = preference.align_a,
          .align_b = preference.align_b,
          .align_c = preference.align_c,
          .align_d = preference.align_d,
          .align_bias = alignment(problem.desc.bias),
          .align_mask = alignment(problem.desc.aux)};
}

bool fits(const AlgorithmParts& algorithm, const Problem& problem, const Addresses& addresses) {
  if (algorithm.magic != kMagic || algorithm.fingerprint != problem.fingerprint()) {
    violation("cublasLtMatmul with an algorithm of another product");
    return false;
  }
  if (algorithm.workspace > 0 &&
      (addresses.workspace == nullptr || addresses.workspace_bytes < algorithm.workspace ||
       alignment(addresses.workspace) < kWorkspaceAlignment)) {
    violation("cublasLtMatmul with %lu bytes of workspace, where the algorithm asks for %lu",
              static_cast<unsigned long>(addresses.workspace_bytes),
              static_cast<unsigned long>(algorithm.workspace));
    return false;
  }
  return !is_worse("an A", addresses.a, algorithm.align_a) &&
         !is_worse("a B", addresses.b, algorithm.align_b) &&
         !is_worse("a C", addresses.c, algorithm.align_c) &&
         !is_worse("a D", addresses.d, algorithm.align_d) &&
         !is_worse("a bias", problem.desc.bias, algorithm.align_bias) &&
         !is_worse("a mask", problem.desc.aux, algorithm.align_mask);
}

}  // namespace fake_cublaslt
