// A vector on the device of each rank that NCCL's own all-reduce adds up over the ranks: the same bits on all of them,
// as NCCL makes them. It is enqueued in a lane, behind what was enqueued there before: all ranks start the vectors of
// a lane, and receive messages with bodies in it, in one order. No host waits.
//
//   operations write data() -- publish --> start --> operations find the sums there
//
// Where an all-reduce was broken off they find zeros (compute/stop.h).
//
// Thread rule: that of the back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "comm/nccl/lanes.h"
#include "compute/backend.h"
#include "shardrec/tensor.h"

namespace shardrec::comm::nccl {

class AllReduce {
 public:
  // Of `count` elements of a floating dtype. The back end outlives this. Throws OUT_OF_MEMORY, DEVICE_ERROR.
  AllReduce(std::shared_ptr<Lanes> lanes, Purpose purpose, compute::Backend& backend,
            shardrec_dtype dtype, int64_t count);
  // Waits for what was started.
  ~AllReduce();
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  std::byte* data() noexcept { return vector_.data(); }
  // The operations that write the vector have been called.
  void publish();
  // After publish(). operation: its name in errors, which lives as long as the process. A failure kills the
  // communicator, and is thrown.
  void start(const char* operation);

 private:
  const std::shared_ptr<Lanes> lanes_;
  Lane& lane_;
  compute::Backend& backend_;
  const int32_t dtype_;  // a shardrec_nccl_dtype
  const int64_t count_;
  const size_t bytes_;
  compute::Buffer vector_;
  std::shared_ptr<compute::Mark> written_;  // in the back end's operations
  std::shared_ptr<compute::Mark> added_;    // in the lane
};

}  // namespace shardrec::comm::nccl
