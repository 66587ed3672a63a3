#include "core/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/row_tensor.h"

namespace shardrec::core {
namespace {

struct Dtype {
  int32_t value;
  const char* name;
  size_t size;
};

constexpr std::array<Dtype, 7> kDtypes = {{
    {SHARDREC_UINT8, "uint8", 1},
    {SHARDREC_INT32, "int32", 4},
    {SHARDREC_INT64, "int64", 8},
    {SHARDREC_FLOAT16, "float16", 2},
    {SHARDREC_BFLOAT16, "bfloat16", 2},
    {SHARDREC_FLOAT32, "float32", 4},
    {SHARDREC_FLOAT64, "float64", 8},
}};

const Dtype* find_dtype(int32_t value) noexcept {
  const auto* found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                   [&](const Dtype& d) { return d.value == value; });
  return found == kDtypes.end() ? nullptr : found;
}

[[noreturn]] void refuse(const char* name, const std::string& rest, ErrorParts parts = {}) {
  fail(SHARDREC_INVALID_ARGUMENT, sentence(name, " ", rest), std::move(parts));
}

std::string dtype_text(int32_t dtype) {
  return find_dtype(dtype) == nullptr ? sentence("unknown dtype ", dtype) : dtype_name(dtype);
}

std::string shape_text(const shardrec_tensor& tensor) {
  std::string text = "[";
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (d != 0) text += ", ";
    append(text, tensor.shape[d]);
  }
  return text + "]";
}

// What holds for every tensor, whatever its use.
void check_tensor(const shardrec_tensor* tensor, const char* name, DeviceSet devices = kHostOnly) {
  if (tensor == nullptr) refuse(name, "is NULL; a tensor is needed");
  if (tensor->device_type == SHARDREC_DEVICE_CUDA && devices.cuda == DeviceSet::kNoDevice) {
    fail(SHARDREC_UNSUPPORTED,
         sentence(name, " is on a CUDA device; this call takes tensors of the CPU only"));
  }
  if (tensor->device_type == SHARDREC_DEVICE_CUDA && !devices.has(*tensor)) {
    refuse(name,
           sentence("is on CUDA device ", tensor->device_id, "; the CPU and device ", devices.cuda,
                    ", where the tables are, are accepted"),
           {.value = tensor->device_id});
  }
  if (!devices.has(*tensor)) {
    refuse(name,
           sentence("has device type ", tensor->device_type, "; SHARDREC_DEVICE_CPU is accepted"),
           {.value = tensor->device_type});
  }
  if (tensor->device_type == SHARDREC_DEVICE_CPU && tensor->device_id != 0) {
    refuse(name, sentence("has device id ", tensor->device_id, "; on the CPU it is 0"),
           {.value = tensor->device_id});
  }
  if (find_dtype(tensor->dtype) == nullptr) {
    refuse(name, sentence("has the unknown dtype ", tensor->dtype), {.value = tensor->dtype});
  }
  if (tensor->ndim < 0 || tensor->ndim > SHARDREC_MAX_DIMENSIONS) {
    refuse(name,
           sentence("has ", tensor->ndim, " dimensions; 0 to ", SHARDREC_MAX_DIMENSIONS,
                    " are accepted"),
           {.value = tensor->ndim});
  }
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (tensor->shape[d] < 0) {
      refuse(name, sentence("has shape ", shape_text(*tensor), "; a size may not be negative"),
             {.position = d, .value = tensor->shape[d]});
    }
  }
}

// Number of elements; throws when they could not all be addressed.
int64_t count_elements(const shardrec_tensor& tensor, const char* name) {
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] == 0) return 0;
  }
  const auto limit = INT64_MAX / static_cast<int64_t>(dtype_size(tensor.dtype));
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] > limit / count) {
      refuse(name, sentence("has shape ", shape_text(tensor), ", which no memory can hold"));
    }
    count *= tensor.shape[d];
  }
  return count;
}

bool strides_omitted(const shardrec_tensor& tensor) noexcept {
  return std::all_of(tensor.stride, tensor.stride + tensor.ndim, [](int64_t s) { return s == 0; });
}

// From dimension `first` on.
void check_compact(const shardrec_tensor& tensor, const char* name, int32_t first = 0) {
  if (strides_omitted(tensor)) return;
  int64_t expected = 1;
  for (int32_t d = tensor.ndim - 1; d >= first; --d) {
    if (tensor.shape[d] > 1 && tensor.stride[d] != expected) {
      refuse(name,
             sentence("has stride ", tensor.stride[d], " in dimension ", d, " of shape ",
                      shape_text(tensor), "; a compact tensor is accepted: stride ", expected),
             {.position = d, .value = tensor.stride[d]});
    }
    expected *= tensor.shape[d];
  }
}

void check_data(const shardrec_tensor& tensor, const char* name) {
  if (tensor.data == nullptr) {
    refuse(name, sentence("has no data, but shape ", shape_text(tensor)));
  }
  if (std::bit_cast<uintptr_t>(tensor.data) % dtype_size(tensor.dtype) != 0) {
    refuse(name, sentence("has data that is not aligned to its dtype, ", dtype_name(tensor.dtype)));
  }
}

// Of a compact tensor that was checked.
FlatView elements_of(const shardrec_tensor& tensor, const char* name) {
  const int64_t size = count_elements(tensor, name);
  if (size == 0) return {nullptr, 0, tensor.dtype};
  check_compact(tensor, name);
  check_data(tensor, name);
  return {tensor.data, size, tensor.dtype};
}

void check_dtype(const shardrec_tensor& tensor, const char* name, shardrec_dtype dtype) {
  if (tensor.dtype == dtype) return;
  refuse(name,
         sentence("has dtype ", dtype_text(tensor.dtype), "; ", dtype_name(dtype), " is accepted"),
         {.value = tensor.dtype});
}

void check_size(const shardrec_tensor& tensor, const char* name, int64_t found, int64_t wanted,
                const char* what) {
  if (wanted == kAnySize || found == wanted) return;
  refuse(name, sentence("has shape ", shape_text(tensor), "; ", wanted, " ", what, " are needed"),
         {.value = found, .limit = wanted});
}

}  // namespace

const char* dtype_name(int32_t dtype) noexcept {
  const Dtype* found = find_dtype(dtype);
  return found == nullptr ? "unknown dtype" : found->name;
}

size_t dtype_size(int32_t dtype) noexcept {
  const Dtype* found = find_dtype(dtype);
  return found == nullptr ? 0 : found->size;
}

shardrec_tensor compact_view(void* data, shardrec_dtype dtype, std::span<const int64_t> shape) {
  shardrec_tensor view{};
  view.data = data;
  view.device_type = SHARDREC_DEVICE_CPU;
  view.dtype = dtype;
  view.ndim = static_cast<int32_t>(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    view.shape[d] = shape[d];
    view.stride[d] = stride;
    // Too large where a tensor is empty for another size of it: no stride of it counts.
    if (__builtin_mul_overflow(stride, shape[d], &stride)) stride = 0;
  }
  return view;
}

FlatView flat_view(const shardrec_tensor* tensor, const char* name) {
  check_tensor(tensor, name);
  return elements_of(*tensor, name);
}

FlatView id_view(const shardrec_tensor* tensor, const char* name, int64_t size,
                 shardrec_dtype first, shardrec_dtype second) {
  check_tensor(tensor, name);
  if (tensor->dtype != first && tensor->dtype != second) {
    refuse(name,
           sentence("has dtype ", dtype_name(tensor->dtype), "; ", dtype_name(first), " or ",
                    dtype_name(second), " is accepted"),
           {.value = tensor->dtype});
  }
  return detail::vector_of(tensor, name, static_cast<shardrec_dtype>(tensor->dtype), size, false);
}

FlatView detail::vector_of(const shardrec_tensor* tensor, const char* name, shardrec_dtype dtype,
                           int64_t size, bool column_allowed, DeviceSet devices) {
  check_tensor(tensor, name, devices);
  check_dtype(*tensor, name, dtype);
  const bool column = column_allowed && tensor->ndim == 2 && tensor->shape[1] == 1;
  if (tensor->ndim != 1 && !column) {
    refuse(name,
           sentence("has shape ", shape_text(*tensor), "; one dimension",
                    column_allowed ? ", or a second one of size 1," : "", " is accepted"),
           {.value = tensor->ndim});
  }
  check_size(*tensor, name, tensor->shape[0], size, "elements");
  return elements_of(*tensor, name);
}

Matrix matrix_view(const shardrec_tensor* tensor, const char* name, int64_t rows, int64_t cols) {
  const AnyMatrix view = any_matrix_view(tensor, name, SHARDREC_FLOAT32, rows, cols);
  return {static_cast<float*>(view.data), view.rows, view.cols, view.stride};
}

AnyMatrix any_matrix_view(const shardrec_tensor* tensor, const char* name, shardrec_dtype dtype,
                          int64_t rows, int64_t cols, DeviceSet devices) {
  check_tensor(tensor, name, devices);
  check_dtype(*tensor, name, dtype);
  if (tensor->ndim != 2) {
    refuse(name, sentence("has shape ", shape_text(*tensor), "; two dimensions are accepted"),
           {.value = tensor->ndim});
  }
  check_size(*tensor, name, tensor->shape[0], rows, "rows");
  check_size(*tensor, name, tensor->shape[1], cols, "columns");
  AnyMatrix view{
      .rows = tensor->shape[0],
      .cols = tensor->shape[1],
      .stride = tensor->shape[1],
      .device = {static_cast<shardrec_device_type>(tensor->device_type), tensor->device_id}};
  if (count_elements(*tensor, name) == 0) return view;
  check_data(*tensor, name);
  view.data = tensor->data;
  if (strides_omitted(*tensor)) return view;
  if (view.cols > 1 && tensor->stride[1] != 1) {
    refuse(name, sentence("has column stride ", tensor->stride[1], "; 1 is accepted"),
           {.position = 1, .value = tensor->stride[1]});
  }
  if (view.rows > 1) {
    const int64_t limit = INT64_MAX / static_cast<int64_t>(dtype_size(dtype)) / view.rows;
    if (tensor->stride[0] < view.cols || tensor->stride[0] > limit) {
      refuse(name,
             sentence("has row stride ", tensor->stride[0], "; ", view.cols, " to ", limit,
                      " is accepted"),
             {.position = 0, .value = tensor->stride[0]});
    }
    view.stride = tensor->stride[0];
  }
  return view;
}

RowTensor row_tensor_anywhere(const shardrec_tensor* tensor, const char* name) {
  DeviceSet devices;
  if (tensor != nullptr && tensor->device_type == SHARDREC_DEVICE_CUDA) {
    if (tensor->device_id < 0) {
      refuse(name,
             sentence("is on CUDA device ", tensor->device_id, "; devices are counted from 0 on"),
             {.value = tensor->device_id});
    }
    devices.cuda = tensor->device_id;
  }
  return row_tensor(tensor, name, devices);
}

RowTensor row_tensor(const shardrec_tensor* tensor, const char* name, DeviceSet devices) {
  check_tensor(tensor, name, devices);
  RowTensor view{
      .rows = tensor->ndim == 0 ? 1 : tensor->shape[0],
      .dtype = tensor->dtype,
      .element_bytes = dtype_size(tensor->dtype),
      .device = {static_cast<shardrec_device_type>(tensor->device_type), tensor->device_id}};
  shardrec_tensor row = *tensor;  // one row of it: a row has a size also where there are no rows
  if (row.ndim > 0) row.shape[0] = 1;
  view.columns = view.stride = count_elements(row, name);
  if (count_elements(*tensor, name) == 0) return view;
  check_compact(*tensor, name, 1);
  check_data(*tensor, name);
  view.data = static_cast<std::byte*>(tensor->data);
  if (strides_omitted(*tensor) || view.rows <= 1) return view;
  const int64_t limit = INT64_MAX / static_cast<int64_t>(dtype_size(view.dtype)) / view.rows;
  if (tensor->stride[0] < view.columns || tensor->stride[0] > limit) {
    refuse(name,
           sentence("has stride ", tensor->stride[0], " in dimension 0 of shape ",
                    shape_text(*tensor), "; ", view.columns, " to ", limit, " is accepted"),
           {.position = 0, .value = tensor->stride[0]});
  }
  view.stride = tensor->stride[0];
  return view;
}

namespace {

// Calls copy(offset in the tensor, offset from the first element, bytes) for runs of elements.
template <class Copy>
void for_each_run(const RowTensor& view, int64_t first, int64_t count, Copy copy) {
  if (view.compact()) {
    if (count > 0) copy(view.bytes(first), size_t{0}, view.bytes(count));
    return;
  }
  for (int64_t at = first; at < first + count;) {
    const int64_t row = at / view.columns;
    const int64_t column = at % view.columns;
    const int64_t run = std::min(view.columns - column, first + count - at);
    copy(view.bytes(row * view.stride + column), view.bytes(at - first), view.bytes(run));
    at += run;
  }
}

}  // namespace

void RowTensor::copy_out(int64_t first, int64_t count, std::byte* to) const noexcept {
  for_each_run(*this, first, count, [&](size_t offset, size_t at, size_t bytes) {
    std::memcpy(to + at, data + offset, bytes);
  });
}

void RowTensor::copy_in(int64_t first, int64_t count, const std::byte* from) const noexcept {
  for_each_run(*this, first, count, [&](size_t offset, size_t at, size_t bytes) {
    std::memcpy(data + offset, from + at, bytes);
  });
}

}  // namespace shardrec::core
