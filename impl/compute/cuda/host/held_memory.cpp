#include "compute/cuda/host/held_memory.h"

#include <exception>

#include "compute/cuda/host/memory.h"
#include "core/error.h"
#include "core/tensor.h"

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kLegacyDefaultStream = 0;

std::unique_ptr<Allocation> host_zeros(size_t bytes) {
  try {
    return make_pinned_memory()->allocate_zeros(bytes);
  } catch (const core::Error&) {
    // No plug-in, no driver, or no room for a context: plain memory is slower to copy, and as good else.
    return cpu_memory()->allocate_zeros(bytes);
  }
}

// Of a compact tensor; throws where no memory can hold it.
int64_t count_bytes(shardrec_dtype dtype, std::span<const int64_t> shape) {
  auto bytes = static_cast<int64_t>(core::dtype_size(dtype));
  bool overflow = false;
  bool empty = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("shape[", d, "] is ", shape[d], "; 0 or more is accepted"),
                 {.position = static_cast<int64_t>(d), .value = shape[d]});
    }
    empty = empty || shape[d] == 0;
    overflow = __builtin_mul_overflow(bytes, shape[d], &bytes) || overflow;
  }
  if (empty) return 0;
  if (overflow) {
    core::fail(SHARDREC_INVALID_ARGUMENT, "shape is that of a tensor which no memory can hold");
  }
  return bytes;
}

}  // namespace

HeldMemory::HeldMemory(shardrec_device_type type, int32_t device, int64_t bytes)
    : type_(type), device_(device), bytes_(bytes) {
  if (bytes < 0) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("bytes is ", bytes, "; 0 or more is accepted"), {.value = bytes});
  }
  const auto size = static_cast<size_t>(bytes);
  if (type == SHARDREC_DEVICE_CPU) {
    if (device != 0) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("device_id is ", device, "; on the CPU it is 0"),
                 {.value = device});
    }
    block_ = host_zeros(size);
    return;
  }
  if (type != SHARDREC_DEVICE_CUDA) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("type is ", int64_t{type},
                              "; SHARDREC_DEVICE_CPU and SHARDREC_DEVICE_CUDA are accepted"),
               {.value = int64_t{type}});
  }
  stream_ = std::make_shared<Stream>(device);
  of_caller_.emplace(device);
  block_ = make_memory(stream_)->allocate_zeros(size);
  stream_->wait();
}

HeldMemory::~HeldMemory() {
  if (stream_ == nullptr) return;
  try {
    of_caller_->record_caller(kLegacyDefaultStream);
    stream_->follow(*of_caller_);
  } catch (const std::exception&) {
    // The device has failed: it does no work any more.
  }
}

shardrec_tensor HeldMemory::tensor(int64_t offset, shardrec_dtype dtype,
                                   std::span<const int64_t> shape) const {
  const auto element = static_cast<int64_t>(core::dtype_size(dtype));
  if (offset < 0 || offset % element != 0) {
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence("offset_bytes is ", offset, "; multiples of ", element, ", the bytes of a ",
                       core::dtype_name(dtype), ", are accepted, from 0 on"),
        {.value = offset, .limit = element});
  }
  const int64_t needed = count_bytes(dtype, shape);
  if (offset > bytes_ || needed > bytes_ - offset) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a tensor of ", needed, " bytes from byte ", offset,
                              " on does not end within the memory's ", bytes_, " bytes"),
               {.value = needed, .limit = bytes_});
  }
  shardrec_tensor view = core::compact_view(block_->data + offset, dtype, shape);
  view.device_type = type_;
  view.device_id = device_;
  return view;
}

}  // namespace shardrec::compute::cuda::host
