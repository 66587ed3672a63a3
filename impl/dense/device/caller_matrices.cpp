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

CallerMatrices::~CallerMatrices() {
  if (done_) return;
  try {
    context_.wait();
  } catch (...) {  // the call has failed already
    return;
  }
}

core::Matrix CallerMatrices::make_room(const core::Matrix& rows, HostMatrix& copy) {
  copy.pinned_.resize(bytes_of(rows));
  return {copy.there_.resize_as<float>(static_cast<size_t>(rows.rows * rows.cols)).data(),
          rows.rows, rows.cols, rows.cols};
}

core::Matrix CallerMatrices::read(const CallerMatrix& given, HostMatrix& copy) {
  if (given.rows.data == nullptr || given.on_device) return given.rows;
  on_host_ = true;
  const core::Matrix there = make_room(given.rows, copy);
  const core::Matrix pinned{floats_of(copy.pinned_.data()), there.rows, there.cols, there.cols};
  copy_rows(given.rows, pinned);
  context_.stream().copy(there.data, pinned.data, bytes_of(there));
  return there;
}

core::Matrix CallerMatrices::write(const CallerMatrix& given, HostMatrix& copy) {
  if (given.rows.data == nullptr || given.on_device) return given.rows;
  on_host_ = true;
  const core::Matrix there = make_room(given.rows, copy);
  written_[writes_++] = {.to = given.rows, .from = there, .copy = &copy};
  return there;
}

void CallerMatrices::done() {
  for (const Written& written : written()) {
    context_.stream().copy(written.copy->pinned_.data(), written.from.data, bytes_of(written.from));
  }
  context_.hold_up_caller();
  if (on_host_) context_.wait();
  done_ = true;
  for (const Written& written : written()) {
    const core::Matrix& from = written.from;
    copy_rows({floats_of(written.copy->pinned_.data()), from.rows, from.cols, from.cols},
              written.to);
  }
}

}  // namespace shardrec::dense::device
