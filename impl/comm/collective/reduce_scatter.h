// A reduce-scatter as an object: each rank gets, of what all ranks have sent to it, one reduction. In
// three steps, as all_to_all.h says:
//   start()        posts to each rank its part
//   has_arrived()  tells whether finish() would wait
//   finish()       waits for the parts that all ranks have sent to this one, reduces and releases them
// Parts are usually disjoint ranges of a vector (owned_range.h), and an all_gather.h follows. For a
// short vector each part may be all of it: then every rank reduces the whole, and nothing follows.
//
// Thread rule: the channel's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/all_to_all.h"
#include "comm/collective/owned_range.h"
#include "comm/collective/reduce.h"
#include "core/function_ref.h"

namespace shardrec::comm {

class ReduceScatter {
 public:
  // The channel outlives this object.
  ReduceScatter(PipelinedChannel& channel, int ranks);

  // Posts parts[r] for rank r. The memory behind the parts stays unchanged until reclaim(); keep_alive
  // is held until then.
  void start(const Operation& operation, std::span<const ConstBytes> parts,
             std::shared_ptr<const void> keep_alive) {
    exchange_.start(operation, parts, std::move(keep_alive));
  }
  // The same, of a vector whose elements have element_size bytes: rank r gets ranges.of(r).
  void start(const Operation& operation, const OwnedRanges& ranges, ConstBytes vector,
             size_t element_size, std::shared_ptr<const void> keep_alive);

  // As Channel::has_arrived(). Needs start().
  bool has_arrived() const noexcept { return exchange_.has_arrived(); }

  // Waits until finish() would not.
  void wait() { exchange_.finish(); }

  // out: the reduction of the parts of all ranks, by the pairwise tree of reduce.h. Throws
  // CORRUPT_DATA for a part of another size.
  template <class T>
  void finish(Reduction reduction, std::span<T> out) {
    const std::span<const ConstBytes> parts = exchange_.finish();
    for (size_t from = 0; from < parts.size(); ++from) {
      exchange_.require_size(from, out.size_bytes());
    }
    reduce_ranks<T>(reduction, parts, out);
    exchange_.release();
  }
  // The same with a reduction of the caller's, which gets the parts in rank order.
  void finish(core::FunctionRef<void(std::span<const ConstBytes>)> reduce);

  // Waits until the peers have reduced what this rank has sent last: its memory may then be
  // overwritten. Does nothing before start().
  void reclaim() { exchange_.reclaim(); }

 private:
  AllToAll exchange_;
  std::vector<ConstBytes> parts_;
};

}  // namespace shardrec::comm
