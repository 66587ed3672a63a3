#include "core/tensor.h"

#include "guard.h"
#include "shardrec/tensor.h"

using shardrec::capi::guard;
using shardrec::capi::refuse_value;
using shardrec::capi::require_out;

namespace {

void check_size(const char* name, int64_t size) {
  if (size < 0) refuse_value(name, size, "0 or more");
}

void check_dtype(shardrec_dtype dtype) {
  if (shardrec::core::dtype_size(dtype) == 0) {
    refuse_value("dtype", int64_t{dtype}, "an enumerator of shardrec_dtype");
  }
}

shardrec_tensor cpu_view(void* data, shardrec_dtype dtype, int32_t ndim) {
  shardrec_tensor view{};
  view.data = data;
  view.device_type = SHARDREC_DEVICE_CPU;
  view.dtype = dtype;
  view.ndim = ndim;
  return view;
}

}  // namespace

shardrec_status shardrec_tensor_vector(void* data, shardrec_dtype dtype, int64_t length,
                                       shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    check_dtype(dtype);
    check_size("length", length);
    shardrec_tensor view = cpu_view(data, dtype, 1);
    view.shape[0] = length;
    view.stride[0] = 1;
    *out = view;
  });
}

shardrec_status shardrec_tensor_matrix(void* data, shardrec_dtype dtype, int64_t rows, int64_t cols,
                                       shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    check_dtype(dtype);
    check_size("rows", rows);
    check_size("cols", cols);
    shardrec_tensor view = cpu_view(data, dtype, 2);
    view.shape[0] = rows;
    view.shape[1] = cols;
    view.stride[0] = cols;
    view.stride[1] = 1;
    *out = view;
  });
}
