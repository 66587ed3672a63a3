#include "embedding/tables/options.h"

#include <bit>

namespace shardrec::embedding {

std::vector<comm::SharedValue> shared_options(const CollectionOptions& options) {
  // Every option is named here, so that a new one does not compile before it is decided on.
  // Thanks to the canonical order of sums, no bit depends on those that are left out.
  const auto& [seed, threads, divisor, divisor_value, lookups, output_dtype, deduplicate,
               hierarchical, forward_compression, backward_compression, non_finite, replica_sync,
               sync_every, backend, device, device_wait] = options;
  return {
      {"option SEED", static_cast<uint64_t>(seed)},
      {"option GRADIENT_DIVISOR", static_cast<uint64_t>(divisor)},
      {"option GRADIENT_DIVISOR_VALUE", std::bit_cast<uint64_t>(divisor_value)},
      {"option OUTPUT_DTYPE", static_cast<uint64_t>(output_dtype)},
      {"option FORWARD_COMPRESSION", static_cast<uint64_t>(forward_compression)},
      {"option BACKWARD_COMPRESSION", static_cast<uint64_t>(backward_compression)},
      {"option NON_FINITE", static_cast<uint64_t>(non_finite)},
      {"option REPLICA_SYNC", static_cast<uint64_t>(replica_sync)},
      {"option SYNC_EVERY", static_cast<uint64_t>(sync_every)},
      {"option DEVICE on the CPU (1) or not (0)", options.on_host() ? uint64_t{1} : uint64_t{0}}};
}

}  // namespace shardrec::embedding
