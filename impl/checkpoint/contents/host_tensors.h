// Tensors of the host's own that a commit writes, as copies under their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/contents/contents.h"
#include "checkpoint/contents/names.h"
#include "shardrec/tensor.h"

namespace shardrec::checkpoint {

class HostTensors {
 public:
  bool empty() const noexcept { return tensors_.empty(); }

  // Copies the tensor, in place of the one that has the name; a new one takes its name among `names`.
  // Throws INVALID_ARGUMENT or UNSUPPORTED for a view that core::flat_view does not take, and
  // INVALID_ARGUMENT for a name that is taken by something else; then nothing has changed.
  void set(const std::string& name, const shardrec_tensor* tensor, UsedNames& names);
  // Frees the name, too. Throws NOT_FOUND.
  void erase(const std::string& name, UsedNames& names);

  // The tensors as a commit writes them, by name; they refer to the copies.
  std::vector<ItemContents> items() const;

 private:
  struct Copy {
    shardrec_dtype dtype = SHARDREC_FLOAT32;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Copy> tensors_;
};

}  // namespace shardrec::checkpoint
