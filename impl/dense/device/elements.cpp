#include "dense/device/elements.h"

#include <utility>

namespace shardrec::dense::device {

namespace host = compute::cuda::host;

int32_t element_of(shardrec_dtype dtype) noexcept {
  switch (dtype) {
    case SHARDREC_FLOAT64:
      return SHARDREC_CUDA_FLOAT64;
    case SHARDREC_FLOAT16:
      return SHARDREC_CUDA_FLOAT16;
    case SHARDREC_BFLOAT16:
      return SHARDREC_CUDA_BFLOAT16;
    default:
      return SHARDREC_CUDA_FLOAT32;
  }
}

ElementRuns::ElementRuns(std::shared_ptr<host::Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void ElementRuns::begin(size_t addends) {
  addends_ = addends;
  list_.clear();
  inputs_.clear();
}

void ElementRuns::add(std::span<const std::byte* const> inputs, std::byte* out, int64_t count) {
  if (count == 0) return;
  constexpr int64_t kTile = SHARDREC_CUDA_BUCKET_TILE;
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  list_.add({.inputs = nullptr, .out = out, .count = count}, (count + kTile - 1) / kTile);
}

void ElementRuns::launch(shardrec_cuda_rank_sum job) {
  if (list_.empty()) return;
  arguments_.begin(host::Arguments::bytes_of<const void*>(inputs_.size()) + list_.bytes());
  const void* const* inputs = arguments_.add(std::span<const void* const>(inputs_));
  for (shardrec_cuda_bucket_run& run : list_.jobs()) {
    run.inputs = inputs;
    inputs += addends_;
  }
  list_.send(arguments_);
  arguments_.send();
  job.runs = list_.jobs_there();
  job.first_block = list_.first_unit_there();
  job.run_count = list_.count();
  job.blocks = list_.units();
  job.addends = static_cast<int32_t>(addends_);
  host::require(host::table().add_ranks(stream_->handle(), &job), "add up gradients on device ",
                stream_->device());
}

}  // namespace shardrec::dense::device
