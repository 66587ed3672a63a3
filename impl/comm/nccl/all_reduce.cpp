#include "comm/nccl/all_reduce.h"

#include <utility>

#include "core/align.h"
#include "core/error.h"
#include "core/tensor.h"

namespace shardrec::comm::nccl {
namespace {

constexpr size_t kLine = 64;  // of what is cleared

int32_t nccl_dtype(shardrec_dtype dtype) {
  switch (dtype) {
    case SHARDREC_FLOAT64:
      return SHARDREC_NCCL_FLOAT64;
    case SHARDREC_FLOAT32:
      return SHARDREC_NCCL_FLOAT32;
    case SHARDREC_FLOAT16:
      return SHARDREC_NCCL_FLOAT16;
    case SHARDREC_BFLOAT16:
      return SHARDREC_NCCL_BFLOAT16;
    default:
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("sums by NCCL are of float64, float32, float16 or bfloat16; ",
                                core::dtype_name(dtype), " was given"),
                 {.value = dtype});
  }
}

}  // namespace

AllReduce::AllReduce(std::shared_ptr<Lanes> lanes, Purpose purpose, compute::Backend& backend,
                     shardrec_dtype dtype, int64_t count)
    : lanes_(std::move(lanes)),
      lane_(lanes_->of(purpose)),
      backend_(backend),
      dtype_(nccl_dtype(dtype)),
      count_(count),
      bytes_(core::align_up(static_cast<size_t>(count) * core::dtype_size(dtype), kLine)),
      vector_(backend.memory()),
      written_(backend.marks()->make()),
      added_(lane_.marks().make()) {
  if (count_ != 0) vector_.resize(bytes_);
}

AllReduce::~AllReduce() { added_->wait(); }

void AllReduce::publish() { backend_.marks()->set(*written_); }

void AllReduce::start(const char* operation) {
  if (count_ == 0) return;
  compute::Marks& marks = lane_.marks();
  try {
    marks.follow(*written_);
    lane_.all_reduce(operation, {.in = vector_.data(),
                                 .out = vector_.data(),
                                 .count = static_cast<uint64_t>(count_),
                                 .dtype = dtype_,
                                 .reduction = SHARDREC_NCCL_SUM});
    lanes_->wake();
    lanes_->clear_if_stopped(lane_, vector_.data(), bytes_);
    marks.set(*added_);
  } catch (...) {  // peers would wait for a vector that this rank does not add
    lanes_->give_up(operation);
    marks.set(*added_);  // it may be enqueued in part
    throw;
  }
  backend_.marks()->follow(*added_);
}

}  // namespace shardrec::comm::nccl
