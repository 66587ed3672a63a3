#include "checkpoint/contents/whole_arrays.h"

#include <algorithm>

#include "core/align.h"

namespace shardrec::checkpoint {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

WholeArrays::WholeArrays(dense::Fsdp& set) : set_(&set) { set.require_idle("a checkpoint"); }

size_t WholeArrays::add(int64_t parameter, int32_t what) {
  arrays_.push_back({.parameter = parameter, .what = what, .at = bytes_});
  bytes_ += core::align_up(static_cast<size_t>(set_->parameter(parameter).elements) * sizeof(float),
                           kAlignment);
  return arrays_.size() - 1;
}

void WholeArrays::make_room() {
  core::require_room(bytes_, "whole parameters of a sharded set in a checkpoint");
  memory_ = std::make_shared<core::Pages>(bytes_);
}

float* WholeArrays::floats(const Array& array) const noexcept {
  return static_cast<float*>(static_cast<void*>(memory_->data() + array.at));
}

void WholeArrays::gather() {
  for (Array& array : arrays_) {
    const auto elements = static_cast<size_t>(set_->parameter(array.parameter).elements);
    set_->gather(array.parameter, array.what, {floats(array), elements});
    array.part = set_->shard(array.parameter, array.what);
  }
}

void WholeArrays::apply() noexcept {
  for (const Array& array : arrays_) {
    std::copy_n(floats(array) + array.part.offset, array.part.elements.size(),
                array.part.elements.data());
  }
}

}  // namespace shardrec::checkpoint
