#include "issuer.h"

#include <cstddef>

namespace fake_nccl {
namespace {

constexpr size_t kRemembered = 256;  // of each peer

}  // namespace

bool Issuer::match(uint64_t peer, uint64_t mine, uint64_t theirs) {
  auto& before = matched_[peer];
  bool same_order = true;
  for (const auto& [my_other, their_other] : before) {
    if ((mine < my_other && theirs > their_other) || (mine > my_other && theirs < their_other)) {
      same_order = false;
    }
  }
  before.emplace_back(mine, theirs);
  if (before.size() > kRemembered) before.pop_front();
  return same_order;
}

}  // namespace fake_nccl
