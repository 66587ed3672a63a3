#include "comm/collective/reduce_scatter.h"

#include <cstdint>
#include <utility>

namespace shardrec::comm {

ReduceScatter::ReduceScatter(PipelinedChannel& channel, int ranks)
    : exchange_(channel, ranks), parts_(static_cast<size_t>(ranks)) {}

void ReduceScatter::start(const Operation& operation, const OwnedRanges& ranges, ConstBytes vector,
                          size_t element_size, std::shared_ptr<const void> keep_alive) {
  for (size_t r = 0; r < parts_.size(); ++r) {
    const OwnedRange range = ranges.of(static_cast<int64_t>(r));
    parts_[r] = vector.subspan(static_cast<size_t>(range.begin) * element_size,
                               static_cast<size_t>(range.count) * element_size);
  }
  exchange_.start(operation, parts_, std::move(keep_alive));
}

void ReduceScatter::finish(core::FunctionRef<void(std::span<const ConstBytes>)> reduce) {
  reduce(exchange_.finish());
  exchange_.release();
}

}  // namespace shardrec::comm
