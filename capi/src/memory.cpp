#include "shardrec/memory.h"

#include <algorithm>

#include "compute/cuda/host/copies.h"
#include "compute/cuda/host/held_memory.h"
#include "core/tensor.h"
#include "guard.h"
#include "handle.h"
#include "options.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace device = shardrec::compute::cuda::host;

template <>
struct shardrec::capi::Handle<shardrec_memory> {
  using Object = device::HeldMemory;
  static constexpr Kind kKind = Kind::kMemory;
};

namespace {

// Of tensors that were parsed.
void require_same_form(const shardrec_tensor& to, const shardrec_tensor& from) {
  if (to.dtype != from.dtype) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("from has dtype ", core::dtype_name(from.dtype), ", to has ",
                              core::dtype_name(to.dtype), "; a copy converts nothing"),
               {.value = from.dtype, .limit = to.dtype});
  }
  if (to.ndim != from.ndim) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("from has ", from.ndim, " dimensions, to has ", to.ndim,
                              "; the same shape is accepted"),
               {.value = from.ndim, .limit = to.ndim});
  }
  for (int32_t d = 0; d < to.ndim; ++d) {
    if (to.shape[d] == from.shape[d]) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("from has ", from.shape[d], " elements in dimension ", d, ", to has ",
                              to.shape[d], "; the same shape is accepted"),
               {.position = d, .value = from.shape[d], .limit = to.shape[d]});
  }
}

}  // namespace

shardrec_status shardrec_memory_create(shardrec_device_type type, int32_t device_id, int64_t bytes,
                                       const shardrec_options* options, shardrec_memory** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "memory");
    Reserved<shardrec_memory> reserved;
    reserved.publish(out, std::make_shared<device::HeldMemory>(type, device_id, bytes));
  });
}

void shardrec_memory_destroy(shardrec_memory** memory) { destroy(memory); }

shardrec_status shardrec_memory_tensor(const shardrec_memory* memory, int64_t offset_bytes,
                                       shardrec_dtype dtype, int32_t ndim, const int64_t* shape,
                                       shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(memory, Access::kShared);
    if (core::dtype_size(dtype) == 0) {
      refuse_value("dtype", int64_t{dtype}, "an enumerator of shardrec_dtype");
    }
    if (ndim < 0 || ndim > SHARDREC_MAX_DIMENSIONS) {
      refuse_value("ndim", int64_t{ndim}, core::sentence("0 to ", SHARDREC_MAX_DIMENSIONS));
    }
    if (ndim > 0 && shape == nullptr) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("shape is NULL; the sizes of ", ndim, " dimensions are needed"));
    }
    *out = use->tensor(offset_bytes, dtype, {shape, static_cast<size_t>(ndim)});
  });
}

shardrec_status shardrec_tensor_copy(const shardrec_tensor* to, const shardrec_tensor* from,
                                     int64_t stream) {
  return guard([&] {
    refuse_after_fork();
    const core::RowTensor written = core::row_tensor_anywhere(to, "to");
    const core::RowTensor read = core::row_tensor_anywhere(from, "from");
    require_same_form(*to, *from);
    device::copy_tensor(written, read, stream);
  });
}
