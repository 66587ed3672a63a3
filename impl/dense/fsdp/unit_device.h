// The device that has the full parameters and the full gradients of a set whose shards are in the host's memory.
//
// Copies and fills are enqueued in a stream of the set. Who uses the memory does so in a stream of its own, the caller's
// or that of a stack of layers: the set's stream follows it before memory changes hands, and holds it up behind copies.
//
// Throws OUT_OF_MEMORY, DEVICE_ERROR, INVALID_ARGUMENT where the caller's stream is none.
// Thread rule: one thread at a time, which has the streams of users too.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"
#include "compute/cuda/host/stream.h"
#include "core/memory.h"
#include "dense/device/context.h"

namespace shardrec::dense {

class UnitDevice {
 public:
  using Stream = compute::cuda::host::Stream;
  using Event = compute::cuda::host::Event;

  // Throws also UNSUPPORTED (no plug-in).
  explicit UnitDevice(const device::ContextOptions& options)
      : context_(options), users_(context_.stream()), own_(context_.stream()) {}

  int32_t device() const noexcept { return context_.device(); }
  const std::shared_ptr<compute::Memory>& memory() const noexcept { return context_.memory(); }

  // What is enqueued here from now on takes place behind what the user's stream holds; or the reverse. user null: the
  // caller's stream.
  void follow(Stream* user);
  void hold_up(Stream* user);

  // pinned stays as it is until `read` is over.
  void upload(std::byte* there, const std::byte* pinned, size_t bytes, Event& read);
  // The host has it when `written` is over.
  void download(std::byte* pinned, const std::byte* there, size_t bytes, Event& written);
  // Zeros.
  void clear(std::byte* there, size_t bytes);

  // Returns when all copies are over, or cannot be any more.
  void settle() noexcept;

  Event make_event() const { return Event(*stream_); }

 private:
  device::Context context_;
  Stream* stream_ = &context_.stream();
  Event users_;  // where a user's stream was
  Event own_;    // where this one was
};

// Bytes of the host's that a device copies from and to, or pages that are zero.
class UnitBytes {
 public:
  UnitBytes() = default;
  // is_pinned: of any content.
  UnitBytes(size_t bytes, bool is_pinned) {
    if (is_pinned) {
      pinned_ = std::make_unique<compute::cuda::host::PinnedMemory>(bytes);
    } else {
      pages_ = core::Pages(bytes);
    }
  }

  std::byte* data() noexcept { return pinned_ == nullptr ? pages_.data() : pinned_->data(); }
  const std::byte* data() const noexcept {
    return pinned_ == nullptr ? pages_.data() : pinned_->data();
  }
  size_t size() const noexcept { return pinned_ == nullptr ? pages_.size() : pinned_->size(); }

 private:
  core::Pages pages_;
  std::unique_ptr<compute::cuda::host::PinnedMemory> pinned_;
};

// Memory of a device, and the place in the set's stream up to which the host's copy of it is in use.
struct UnitCopy {
  explicit UnitCopy(const UnitDevice& device)
      : there(device.memory()), copied(device.make_event()) {}

  compute::Buffer there;
  UnitDevice::Event copied;
};

}  // namespace shardrec::dense
