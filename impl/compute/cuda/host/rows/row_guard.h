// Counts of touched rows that become zeros where a stop is set (compute/stop.h): operations on rows go by them.
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/buffer.h"
#include "compute/cuda/host/arguments.h"
#include "compute/row_operations.h"

namespace shardrec::compute::cuda::host {

class RowGuard {
 public:
  explicit RowGuard(const std::shared_ptr<Stream>& stream);

  // The shards that counts are of, until the next call; they are counted. Does nothing where the stream has no stop.
  void open(std::span<const TouchedRows> shards);
  // Where operations find the number of rows of a shard: `counted`, where the stream has no stop.
  const int64_t* there(size_t shard, const int64_t* counted) const {
    return job_.there == nullptr ? counted : job_.there + shard;
  }
  // Operations from now on, which are an update, find zeros where the stop is set before the device comes to this
  // place.
  void begin_update();

 private:
  void count(uint64_t* updates);

  std::shared_ptr<Stream> stream_;
  Arguments lists_;
  Buffer there_;
  std::vector<const int64_t*> counted_;
  std::vector<int64_t> counts_;
  shardrec_cuda_row_guard job_ = {};
};

}  // namespace shardrec::compute::cuda::host
