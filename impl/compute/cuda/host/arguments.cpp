#include "compute/cuda/host/arguments.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardrec::compute::cuda::host {

Arguments::Arguments(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      rooms_{Room(stream_), Room(stream_), Room(stream_), Room(stream_)} {}

Arguments::~Arguments() {
  // The device may have failed: there is nothing left to wait for then.
  for (const Room& room : rooms_) table().wait_for_event(room.read.handle());
}

void Arguments::begin(size_t bytes) {
  current_ = (current_ + 1) % rooms_.size();
  used_ = 0;
  may_write_ = false;
  if (bytes <= capacity_) return;
  capacity_ = 0;
  for (Room& room : rooms_) {
    room.sent = 0;
    room.memory.resize(bytes);
    room.on_device.resize(bytes);
  }
  capacity_ = bytes;
}

const void* Arguments::add(const void* list, size_t bytes) {
  constexpr std::byte kGap[kAlignment] = {};
  Room& room = rooms_[current_];
  const size_t at = used_;
  used_ += bytes_of<std::byte>(bytes);
  write(room, at, list, bytes);
  write(room, at + bytes, kGap, used_ - at - bytes);
  return room.on_device.data() + at;
}

void Arguments::write(Room& room, size_t at, const void* bytes, size_t count) {
  if (count == 0) return;  // where there may be no memory
  std::byte* const to = room.memory.data() + at;
  if (at + count <= room.sent && std::memcmp(to, bytes, count) == 0) return;
  if (!std::exchange(may_write_, true)) room.read.wait();
  room.sent = std::min(room.sent, at);
  std::memcpy(to, bytes, count);
}

void Arguments::send() {
  Room& room = rooms_[current_];
  if (room.sent >= used_) return;
  room.sent = 0;
  stream_->copy_kept(room.on_device.data(), room.memory.data(), used_);
  room.read.record(*stream_);
  room.sent = used_;
}

}  // namespace shardrec::compute::cuda::host
