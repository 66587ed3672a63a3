#include "comm/ipc/unread.h"

#include <algorithm>
#include <utility>

namespace shardrec::comm::ipc {

void Unread::add(std::unique_ptr<Acknowledgements> acknowledgements, std::vector<Bodies> bodies) {
  const std::lock_guard lock(mutex_);
  ended_.push_back({.acknowledgements = std::move(acknowledgements), .bodies = std::move(bodies)});
}

bool Unread::is_read(Ended& ended, const Bodies& bodies, const char* operation) const {
  return ended.acknowledgements->receive_if_there(bodies.sequence) &&
         std::all_of(bodies.peers.begin(), bodies.peers.end(), [&](size_t peer) {
           return links_->is_over(peer, ended.acknowledgements->copied(bodies.sequence, peer),
                                  operation);
         });
}

void Unread::let_go_of_read(const char* operation) {
  const std::lock_guard lock(mutex_);
  for (Ended& ended : ended_) {
    std::erase_if(ended.bodies,
                  [&](const Bodies& bodies) { return is_read(ended, bodies, operation); });
  }
  std::erase_if(ended_, [](const Ended& ended) { return ended.bodies.empty(); });
}

}  // namespace shardrec::comm::ipc
