#include "checkpoint/contents/names.h"

#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

constexpr size_t kMostNameBytes = 255;

}  // namespace

std::string checked_name(std::string_view name, EmptyName empty) {
  const bool refused = name.empty() && empty == EmptyName::kRefused;
  if (refused || name.size() > kMostNameBytes || name.find('/') != std::string_view::npos) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("name is \"", name.substr(0, kMostNameBytes),
                              "\"; a text of 1 to 255 bytes without '/' is accepted"));
  }
  return std::string(name);
}

void UsedNames::require_free(const std::string& name) const {
  if (names_.count(name) == 0) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("\"", name,
                            "\" was added to this checkpoint already; names are"
                            " unique among all that is added and set"));
}

void UsedNames::take(const std::string& name) {
  require_free(name);
  names_.insert(name);
}

void UsedNames::free(const std::string& name) noexcept { names_.erase(name); }

}  // namespace shardrec::checkpoint
