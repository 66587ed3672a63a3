#include "checkpoint/contents/host_tensors.h"

#include <utility>

#include "core/error.h"
#include "core/tensor.h"

namespace shardrec::checkpoint {

void HostTensors::set(const std::string& name, const shardrec_tensor* tensor, UsedNames& names) {
  const core::FlatView view = core::flat_view(tensor, "tensor");
  Copy copy{.dtype = static_cast<shardrec_dtype>(view.dtype),
            .shape = {tensor->shape, tensor->shape + tensor->ndim},
            .bytes = {}};
  const auto* bytes = static_cast<const std::byte*>(view.data);
  const size_t size = static_cast<size_t>(view.size) * core::dtype_size(view.dtype);
  if (size != 0) copy.bytes.assign(bytes, bytes + size);
  if (const auto known = tensors_.find(name); known != tensors_.end()) {
    known->second = std::move(copy);
    return;
  }
  names.take(name);
  try {
    tensors_.emplace(name, std::move(copy));
  } catch (...) {
    names.free(name);
    throw;
  }
}

void HostTensors::erase(const std::string& name, UsedNames& names) {
  if (tensors_.erase(name) == 0) {
    core::fail(SHARDREC_NOT_FOUND, core::sentence("no tensor \"", name, "\" was set"));
  }
  names.free(name);
}

std::vector<ItemContents> HostTensors::items() const {
  std::vector<ItemContents> items;
  for (const auto& [name, tensor] : tensors_) {
    items.push_back({.kind = ItemKind::kHostTensor,
                     .name = name,
                     .description = {},
                     // A commit only reads.
                     .tensors = {{.name = "tensor",
                                  .dtype = tensor.dtype,
                                  .shape = tensor.shape,
                                  .data = const_cast<std::byte*>(tensor.bytes.data())}}});
  }
  return items;
}

}  // namespace shardrec::checkpoint
