// The memory that a probe works on, and single measurements in it. Each measurement takes other
// rows than those before it, until the caches have forgotten them.
//
// Thread rule: used by the leader of the given team, on all of whose threads it works.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compute/probe/jobs.h"
#include "compute/probe/kernels.h"
#include "compute/probe/probe.h"
#include "compute/probe/team.h"
#include "core/memory.h"

namespace shardrec::compute::probe {

// What is done to rows, and how.
struct ProbeCase {
  MemoryAccess access = MemoryAccess::kGather;
  size_t row_size = 0;  // index into kProbeRowBytes
  int64_t bag_length = 0;
};
struct ProbeWay {
  PrefetchHint hint = PrefetchHint::kNone;
  int64_t distance_rows = kLeastPrefetchDistance;
  bool streaming_stores = false;

  bool operator==(const ProbeWay&) const = default;
};

class ProbeArea {
 public:
  // Touches its memory. Throws OUT_OF_MEMORY.
  ProbeArea(const ProbeSizes& sizes, ProbeTeam& team);

  int64_t table_bytes() const { return table_bytes_; }

  // The table in pages of the usual size from now on.
  void use_small_pages(ProbeTeam& team);

  // Bytes per second of one measurement over rows of about `bytes` bytes: of gathers, at most a
  // quarter of sizes.outputs; of updates, sizes.updates. Each thread has its share of the rows.
  double rate(const ProbeCase& what, const ProbeWay& way, int64_t bytes, ProbeTeam& team);

  // The same with the library's kernels, on plain stores.
  double kernel_rate(const ProbeCase& what, const Prefetch& way, int64_t bytes, ProbeTeam& team);

  // Bytes per second, read and written, of copying half of the table to the other half.
  double copy_rate(ProbeTeam& team);

 private:
  // Ids of one row size, a window after the other.
  struct Ids {
    core::Pages memory;
    int64_t count = 0;
    int64_t next = 0;
  };

  template <class Id>
  void fill(Ids& ids, int64_t count, ProbeTeam& team, const Id& id);
  void fill_random(Ids& ids, int64_t row_bytes, int64_t bytes, ProbeTeam& team);
  void fill_ascending(Ids& ids, int64_t row_bytes, ProbeTeam& team);
  const int64_t* take(Ids& ids, int64_t count) noexcept;
  std::byte* take_outputs(int64_t bytes) noexcept;
  double gather_rate(const ProbeCase& what, const ProbeWay& way, int64_t rows, ProbeTeam& team);
  double update_rate(const ProbeCase& what, const ProbeWay& way, int64_t rows, ProbeTeam& team);

  ProbeSizes sizes_;
  int64_t table_bytes_ = 0;
  uint32_t fills_ = 0;  // of ids; each has random numbers of its own
  core::Pages table_;
  core::Pages state_;
  core::Pages outputs_;
  core::Pages gradients_;
  int64_t next_output_ = 0;  // bytes
  std::array<Ids, kProbeRowSizes> gathered_;
  std::array<Ids, kProbeRowSizes> updated_;
  ProbeJobs jobs_;
};

}  // namespace shardrec::compute::probe
