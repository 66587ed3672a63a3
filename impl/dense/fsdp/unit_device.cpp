#include "dense/fsdp/unit_device.h"

#include "dense/device/kernels.h"

namespace shardrec::dense {

void UnitDevice::follow(Stream* user) {
  if (user == nullptr) return context_.follow_caller();
  users_.record(*user);
  stream_->follow(users_);
}

void UnitDevice::hold_up(Stream* user) {
  if (user == nullptr) return context_.hold_up_caller();
  own_.record(*stream_);
  user->follow(own_);
}

void UnitDevice::upload(std::byte* there, const std::byte* pinned, size_t bytes, Event& read) {
  stream_->copy(there, pinned, bytes);
  read.record(*stream_);
}

void UnitDevice::download(std::byte* pinned, const std::byte* there, size_t bytes, Event& written) {
  stream_->copy(pinned, there, bytes);
  written.record(*stream_);
}

void UnitDevice::settle() noexcept {
  try {
    context_.wait();
  } catch (...) {  // the device is lost, and what it had to do
    return;
  }
}

// Units are cut into whole cache lines: zeros of 16 bits are those of floats.
void UnitDevice::clear(std::byte* there, size_t bytes) {
  device::fill(*stream_, static_cast<float*>(static_cast<void*>(there)), 0,
               static_cast<int64_t>(bytes / sizeof(float)));
}

}  // namespace shardrec::dense
