#include "compute/cuda/host/rows/row_guard.h"

#include "compute/cuda/host/memory.h"

namespace shardrec::compute::cuda::host {

RowGuard::RowGuard(const std::shared_ptr<Stream>& stream)
    : stream_(stream), lists_(stream), there_(make_memory(stream)) {}

void RowGuard::open(std::span<const TouchedRows> shards) {
  if (stream_->stop() == nullptr) return;
  counted_.clear();
  counts_.clear();
  for (const TouchedRows& shard : shards) {
    counted_.push_back(shard.counted);
    counts_.push_back(shard.rows);
  }
  lists_.begin(Arguments::bytes_of<const int64_t*>(counted_.size()) +
               Arguments::bytes_of<int64_t>(counts_.size()));
  job_ = {.stop = stream_->stop()->word(),
          .counted = lists_.add(std::span<const int64_t* const>(counted_)),
          .counts = lists_.add(std::span<const int64_t>(counts_)),
          .there = there_.resize_as<int64_t>(shards.size() + 1).data(),
          .shards = static_cast<int32_t>(shards.size())};
  lists_.send();
  count(nullptr);
}

void RowGuard::begin_update() {
  if (job_.there == nullptr) return;
  count(stream_->stop()->updates());
  stream_->stop()->count_update();
}

void RowGuard::count(uint64_t* updates) {
  job_.updates = updates;
  require(table().guard_rows(stream_->handle(), &job_), "count touched rows on device ",
          stream_->device());
}

}  // namespace shardrec::compute::cuda::host
