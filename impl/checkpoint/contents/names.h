// The names under which collections, layers, parameters and host tensors are added to a checkpoint.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace shardrec::checkpoint {

enum class EmptyName : uint8_t { kRefused, kAccepted };

// The name, as names of tensors in files begin with it. Throws INVALID_ARGUMENT where it has more
// than 255 bytes or a '/', or is empty and may not be.
std::string checked_name(std::string_view name, EmptyName empty);

// Names that are taken: each stands for one thing.
class UsedNames {
 public:
  // Throws INVALID_ARGUMENT where it is taken.
  void require_free(const std::string& name) const;
  // The same, and takes it.
  void take(const std::string& name);
  void free(const std::string& name) noexcept;

 private:
  std::set<std::string> names_;
};

}  // namespace shardrec::checkpoint
