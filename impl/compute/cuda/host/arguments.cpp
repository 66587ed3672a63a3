#include "compute/cuda/host/arguments.h"

#include <cstring>
#include <utility>

namespace shardrec::compute::cuda::host {

Arguments::Arguments(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      on_device_(make_memory(stream_)),
      rooms_{Room(stream_->device()), Room(stream_->device())} {}

Arguments::~Arguments() {
  // The device may have failed: there is nothing left to wait for then.
  for (const Room& room : rooms_) table().wait_for_event(room.read.handle());
}

void Arguments::begin(size_t bytes) {
  current_ = 1 - current_;
  used_ = 0;
  Room& room = rooms_[current_];
  room.read.wait();
  room.memory.resize(bytes);
  on_device_.resize(bytes);
}

const void* Arguments::add(const void* list, size_t bytes) {
  const size_t at = used_;
  if (bytes != 0) std::memcpy(rooms_[current_].memory.data() + at, list, bytes);
  used_ += bytes_of<std::byte>(bytes);
  return on_device_.data() + at;
}

void Arguments::send() {
  stream_->copy(on_device_.data(), rooms_[current_].memory.data(), used_);
  rooms_[current_].read.record(*stream_);
}

}  // namespace shardrec::compute::cuda::host
