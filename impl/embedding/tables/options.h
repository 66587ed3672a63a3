// The options of a collection.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/collective/agree.h"
#include "compute/backends/registry.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

struct CollectionOptions {
  int64_t seed = 0;
  int threads = 0;  // 0: as Communicator::default_threads() says
  shardrec_divisor divisor = SHARDREC_DIVISOR_RANKS;
  double divisor_value = 1;
  int lookups = 2;
  shardrec_dtype output_dtype = SHARDREC_FLOAT32;  // of outputs and their gradients
  std::optional<bool> deduplicate = {};            // empty: where ranks live in several processes
  // Are partial sums added up on their node before they cross to another (node_sums.h)? Empty:
  // where ranks live in several processes.
  std::optional<bool> hierarchical = {};
  // Of the output and of the gradient exchange (compression.h).
  shardrec_compression forward_compression = SHARDREC_COMPRESSION_NONE;
  shardrec_compression backward_compression = SHARDREC_COMPRESSION_NONE;
  // Of NaN and infinities in weights of ids and in output gradients.
  shardrec_non_finite non_finite = SHARDREC_NON_FINITE_ALLOW;
  // Which rows a sync of replicas moves, on a mesh.
  shardrec_replica_sync replica_sync = SHARDREC_REPLICA_SYNC_TOUCHED;
  // After how many updates replicas are synced without being asked to; 0: they are not.
  int64_t sync_every = 0;
  // Of the tables, and of the operations on them (compute/backends/registry.h); device: number of the one that
  // is meant, where the back end is one of devices.
  std::string_view backend = compute::default_backend();
  int32_t device = -1;
  compute::HostWait device_wait = compute::HostWait::kSleep;

  bool on_host() const { return compute::backend_named(backend).on_host; }
};

// The options that decide which numbers come out: the ranks of a collection must bring the same,
// and so must its replicas on a mesh. Those that only decide how they are computed are not among
// them.
std::vector<comm::SharedValue> shared_options(const CollectionOptions& options);

}  // namespace shardrec::embedding
