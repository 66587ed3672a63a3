#include "dense/fsdp/unit.h"

#include <mutex>
#include <set>

#include "core/error.h"

namespace shardrec::dense {
namespace {

// Never destroyed.
const char* kept_name(std::string name) {
  static auto& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names.insert(std::move(name)).first->c_str();
}

}  // namespace

UnitOperations operations_of(const std::string& unit) {
  const auto of = [&](const char* operation) {
    return kept_name(core::sentence("fsdp: ", operation, " of unit \"", unit, "\""));
  };
  return {.gather = of("all_gather"),
          .reduce = of("reduce_scatter"),
          .replicas = of("all_reduce over replicas")};
}

}  // namespace shardrec::dense
