#include "comm/exposition.h"

#include <algorithm>

#include "core/error.h"

namespace shardrec::comm {

std::string labels_of(const Membership& membership) {
  return core::sentence(core::label("comm", core::sentence(membership.number())), ",",
                        core::label("rank", core::sentence(membership.communicator().rank())));
}

void write_communicators(core::Exposition& out,
                         std::vector<std::shared_ptr<const Membership>> memberships) {
  std::sort(memberships.begin(), memberships.end(),
            [](const auto& a, const auto& b) { return a->number() < b->number(); });
  out.family("shardrec_comm_up", "gauge", "1 while the communicator is open and alive, else 0.");
  for (const auto& membership : memberships) {
    out.sample(labels_of(*membership), int64_t{membership->is_up()});
  }
}

}  // namespace shardrec::comm
