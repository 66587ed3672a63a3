#include "comm/collective/all_gather.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace shardrec::comm {

AllGather::AllGather(PipelinedChannel& channel, int ranks)
    : exchange_(channel, ranks), send_(static_cast<size_t>(ranks)) {}

void AllGather::start(const Operation& operation, ConstBytes mine,
                      std::shared_ptr<const void> keep_alive) {
  std::fill(send_.begin(), send_.end(), mine);
  exchange_.start(operation, send_, std::move(keep_alive));
}

std::span<const ConstBytes> AllGather::finish() {
  received_ = exchange_.finish();
  return received_;
}

void AllGather::for_each_range(
    const OwnedRanges& ranges, size_t element_size,
    core::FunctionRef<void(const OwnedRange&, const std::byte*)> take) const {
  for (size_t r = 0; r < received_.size(); ++r) {
    const OwnedRange range = ranges.of(static_cast<int64_t>(r));
    exchange_.require_size(r, static_cast<size_t>(range.count) * element_size);
    take(range, received_[r].data());
  }
}

void AllGather::require_size_of_all(size_t bytes) const {
  for (size_t r = 0; r < received_.size(); ++r) exchange_.require_size(r, bytes);
}

}  // namespace shardrec::comm
