// What a caller gives to layers on a device: matrices there, and matrices of the host's, which are copied.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
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

// Where a matrix of the host's lies for the device, call after call: always one that is read, or always one that is
// written. Of one that is read, two copies may be on their way to the device: the host waits before it makes a third.
class HostMatrix {
 public:
  explicit HostMatrix(const Context& context) : there_(context.memory()) {}
  // Waits for copies on their way.
  ~HostMatrix();
  HostMatrix(const HostMatrix&) = delete;
  HostMatrix& operator=(const HostMatrix&) = delete;

 private:
  friend class CallerMatrices;
  // Pinned memory, and where the device has read it.
  struct Pinned {
    compute::cuda::host::PinnedRoom room;
    std::optional<compute::cuda::host::Event> read;  // empty: never
  };

  // That of the next copy to the device, which has nothing on its way. Throws DEVICE_ERROR.
  Pinned& next_pinned(Context& context);

  compute::Buffer there_;
  std::array<Pinned, 2> pinned_;
  size_t turn_ = 0;
};

// The matrices of one call, whose operations take place in the order of the caller's stream. Where one that is written
// is the host's, done() waits for them; one of the host's that is read has been read by then.
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
    compute::cuda::host::PinnedRoom* by_way_of = nullptr;
  };
  std::span<const Written> written() const noexcept { return std::span(written_).first(writes_); }
  // A matrix of the same shape without gaps between rows.
  static core::Matrix make_room(const core::Matrix& rows, HostMatrix& copy,
                                compute::cuda::host::PinnedRoom& pinned);

  Context& context_;
  bool done_ = false;
  std::array<Written, 2> written_;  // no call writes more
  size_t writes_ = 0;
};

}  // namespace shardrec::dense::device
