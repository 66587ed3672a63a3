// What a caller gives to layers on a device: matrices there, and matrices of the host's, which are copied.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"
#include "core/tensor.h"
#include "dense/device/context.h"

namespace shardrec::dense::device {

// its_rows.data null: none.
struct CallerMatrix {
  CallerMatrix(const core::Matrix& its_rows, bool is_on_device)
      : rows(its_rows), on_device(is_on_device) {}

  core::Matrix rows;
  bool on_device;
};

// Where a matrix of the host's lies for the device, call after call.
class HostMatrix {
 public:
  explicit HostMatrix(const Context& context) : there_(context.memory()) {}

 private:
  friend class CallerMatrices;
  compute::Buffer there_;
  compute::cuda::host::PinnedRoom pinned_;
};

// The matrices of one call, whose operations take place in the order of the caller's stream. Where one of them is the
// host's, done() waits for them.
//
// Thread rule: that of the context.
class CallerMatrices {
 public:
  // Throws INVALID_ARGUMENT (the caller's stream is none), DEVICE_ERROR.
  explicit CallerMatrices(Context& context) : context_(context) { context_.follow_caller(); }
  // Where done() was not called, or has thrown, waits for what was enqueued.
  ~CallerMatrices();
  CallerMatrices(const CallerMatrices&) = delete;
  CallerMatrices& operator=(const CallerMatrices&) = delete;

  // Before the operations: the matrix on the device. Throw OUT_OF_MEMORY, DEVICE_ERROR.
  core::Matrix read(const CallerMatrix& given, HostMatrix& copy);
  core::Matrix write(const CallerMatrix& given, HostMatrix& copy);
  // Behind them. Throws DEVICE_ERROR.
  void done();

 private:
  struct Written {
    core::Matrix to;
    core::Matrix from;
    HostMatrix* copy = nullptr;
  };
  std::span<const Written> written() const noexcept { return std::span(written_).first(writes_); }
  static core::Matrix make_room(const core::Matrix& rows, HostMatrix& copy);

  Context& context_;
  bool on_host_ = false;
  bool done_ = false;
  std::array<Written, 2> written_;  // no call writes more
  size_t writes_ = 0;
};

}  // namespace shardrec::dense::device
