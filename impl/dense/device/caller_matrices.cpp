#include "dense/device/caller_matrices.h"

#include <algorithm>
#include <cstddef>

namespace shardrec::dense::device {
namespace {

size_t bytes_of(const core::Matrix& rows) noexcept {
  return static_cast<size_t>(rows.rows * rows.cols) * sizeof(float);
}

float* floats_of(std::byte* bytes) noexcept {
  return static_cast<float*>(static_cast<void*>(bytes));
}

void copy_rows(const core::Matrix& from, const core::Matrix& to) noexcept {
  for (int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
}

}  // namespace

HostMatrix::~HostMatrix() {
  for (const Pinned& pinned : pinned_) {
    try {
      if (pinned.read) pinned.read->wait();
    } catch (...) {  // the device is lost, and what it had to read
      continue;
    }
  }
}

HostMatrix::Pinned& HostMatrix::next_pinned(Context& context) {
  Pinned& next = pinned_[turn_];
  turn_ = (turn_ + 1) % pinned_.size();
  if (next.read) {
    next.read->wait();
  } else {
    next.read.emplace(context.stream());
  }
  return next;
}

CallerMatrices::~CallerMatrices() {
  if (done_) return;
  try {
    context_.wait();
  } catch (...) {  // the call has failed already
    return;
  }
}

core::Matrix CallerMatrices::make_room(const core::Matrix& rows, HostMatrix& copy,
                                       compute::cuda::host::PinnedRoom& pinned) {
  pinned.resize(bytes_of(rows));
  return {copy.there_.resize_as<float>(static_cast<size_t>(rows.rows * rows.cols)).data(),
          rows.rows, rows.cols, rows.cols};
}

core::Matrix CallerMatrices::read(const CallerMatrix& given, HostMatrix& copy) {
  if (given.rows.data == nullptr || given.on_device) return given.rows;
  HostMatrix::Pinned& pinned = copy.next_pinned(context_);
  const core::Matrix there = make_room(given.rows, copy, pinned.room);
  const core::Matrix compact{floats_of(pinned.room.data()), there.rows, there.cols, there.cols};
  copy_rows(given.rows, compact);
  context_.stream().copy(there.data, compact.data, bytes_of(there));
  pinned.read->record(context_.stream());
  return there;
}

core::Matrix CallerMatrices::write(const CallerMatrix& given, HostMatrix& copy) {
  if (given.rows.data == nullptr || given.on_device) return given.rows;
  compute::cuda::host::PinnedRoom& pinned = copy.pinned_.front().room;
  const core::Matrix there = make_room(given.rows, copy, pinned);
  written_[writes_++] = {.to = given.rows, .from = there, .by_way_of = &pinned};
  return there;
}

void CallerMatrices::done() {
  for (const Written& written : written()) {
    context_.stream().copy(written.by_way_of->data(), written.from.data, bytes_of(written.from));
  }
  context_.hold_up_caller();
  if (writes_ > 0) context_.wait();
  done_ = true;
  for (const Written& written : written()) {
    const core::Matrix& from = written.from;
    copy_rows({floats_of(written.by_way_of->data()), from.rows, from.cols, from.cols}, written.to);
  }
}

}  // namespace shardrec::dense::device
