// Memory and events of devices that processes of one machine share, by CUDA IPC: what this process has made, and
// what it has opened of others. Both are made and opened by handles, which peers send each other.
//
// Thread rule: an object by one thread at a time; the counter by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "compute/cuda/host/stream.h"
#include "compute/cuda/jobs/sharing.h"

namespace shardrec::compute::cuda::host {

// Memory that other processes may open. It is destroyed when none of them has it open (CUDA says of no other case what
// becomes of them); that waits for all that the device does.
class SharedBlock {
 public:
  // Throws OUT_OF_MEMORY, DEVICE_ERROR (processes share nothing of such a device), UNSUPPORTED (the plug-in is one
  // that knows nothing of that).
  SharedBlock(int32_t device, size_t bytes);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  const shardrec_cuda_handle& handle() const noexcept { return handle_; }

 private:
  int32_t device_;
  std::byte* data_ = nullptr;
  size_t size_;
  shardrec_cuda_handle handle_{};
};

// Such memory of another process, where operations of a device of this one reach it. It is destroyed when none of
// them uses it any more.
class OpenedBlock {
 public:
  // Throws DEVICE_ERROR: it is out of reach, or of this process.
  OpenedBlock(int32_t device, const shardrec_cuda_handle& handle);
  ~OpenedBlock();
  OpenedBlock(const OpenedBlock&) = delete;
  OpenedBlock& operator=(const OpenedBlock&) = delete;

  const std::byte* data() const noexcept { return data_; }

 private:
  int32_t device_;
  std::byte* data_ = nullptr;
};

// An event that other processes may open. It outlives what they have opened.
class SharedEvent {
 public:
  // Throws as SharedBlock does.
  explicit SharedEvent(int32_t device);

  const shardrec_cuda_handle& handle() const noexcept { return handle_; }
  // Behind what is enqueued in a stream of its device so far. Throws DEVICE_ERROR.
  void record(Stream& stream);

 private:
  std::unique_ptr<shardrec_cuda_event, EventDeleter> event_;
  shardrec_cuda_handle handle_{};
};

// Such an event of another process: where that recorded it last. Of a process that has ended it may never be over.
class OpenedEvent {
 public:
  // Throws DEVICE_ERROR.
  OpenedEvent(int32_t device, const shardrec_cuda_handle& handle);

  // Throws DEVICE_ERROR. Returns at once.
  bool is_over() const;

 private:
  std::unique_ptr<shardrec_cuda_event, EventDeleter> event_;
};

// Copies from an opened block, in the order of the stream.
void copy_from_process(Stream& stream, void* to, const std::byte* from, size_t bytes);
// That were copied so, by this process.
int64_t bytes_from_processes() noexcept;

}  // namespace shardrec::compute::cuda::host
