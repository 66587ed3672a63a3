#include "compute/cuda/host/results.h"

#include <utility>

namespace shardrec::compute::cuda::host {

Results::Results(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), on_device_(make_memory(stream_)), there_(*stream_) {}

void* Results::begin_bytes(size_t bytes, uint8_t byte, size_t work_bytes) {
  on_host_.resize(bytes);
  bytes_ = bytes;
  const size_t all = work_bytes == 0 ? bytes : work_at() + work_bytes;
  void* const room = on_device_.resize(all);
  require(table().fill(stream_->handle(), room, byte, all), "clear results on device ",
          stream_->device());
  return room;
}

void Results::send() {
  stream_->copy_kept(on_host_.data(), on_device_.data(), bytes_);
  there_.record(*stream_);
  known_ = false;
}

void Results::wait() {
  there_.wait();
  stream_->check_stop();
  known_ = true;
}

const std::byte* Results::get_bytes() {
  if (!known()) wait();
  return on_host_.data();
}

}  // namespace shardrec::compute::cuda::host
