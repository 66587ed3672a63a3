// The streams that the gradients of a set on a device are computed in: the caller's, and those of its stacks. The set's
// own stream follows marks in them, bucket by bucket, and holds them up behind what it has done.
//
// Thread rule: mark() by any thread; the others as the set's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "compute/cuda/host/stream.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense {

class DeviceSources {
 public:
  using Stream = compute::cuda::host::Stream;

  // stream: of the set, which outlives this. caller_stream: the value of a cudaStream_t. stacks: of each parameter,
  // null where it is the caller's.
  DeviceSources(Stream& stream, int64_t caller_stream,
                const std::vector<std::shared_ptr<Mlp>>& stacks);

  void set_buckets(size_t buckets);
  size_t of(int64_t parameter) const noexcept { return source_of_[static_cast<size_t>(parameter)]; }

  // What the source's stream holds now makes gradients of the bucket. given: that stream, by the thread that uses it;
  // null: it is looked for. Throws INVALID_ARGUMENT where the caller's is no stream of the device, and DEVICE_ERROR.
  void mark(size_t bucket, size_t source, Stream* given);
  // The set's stream follows the marks of a bucket; or all that the sources hold now; or they follow it. Throw as mark().
  void follow(size_t bucket);
  void follow_all();
  void hold_up_all();

 private:
  using Event = compute::cuda::host::Event;

  Stream& stream_;
  const int64_t caller_stream_;
  std::vector<std::shared_ptr<Mlp>> sources_;  // null: the caller's
  std::vector<size_t> source_of_;              // by parameter
  std::mutex mutex_;
  std::vector<std::unique_ptr<Event>> marks_;  // [buckets, sources]
  std::vector<std::unique_ptr<Event>> now_;    // by source: as of follow_all()
  Event done_;                                 // of hold_up_all()
};

}  // namespace shardrec::dense
