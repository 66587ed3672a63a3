#include "comm/ipc/acknowledgements.h"

#include <algorithm>

namespace shardrec::comm::ipc {

void Acknowledgements::post(const char* operation) {
  std::fill(messages_.begin(), messages_.end(), ConstBytes{});
  channel_->post({.name = operation, .kind = 8, .deadline_kind = DeadlineKind::kStep}, messages_,
                 nullptr);
  ++posted_;
}

void Acknowledgements::receive_next() {
  const Ticket ticket{.sequence = received_};
  channel_->receive(ticket, messages_);
  channel_->release(ticket);
  channel_->reclaim(ticket);
  ++received_;
}

void Acknowledgements::receive_through(uint64_t sequence) {
  while (received_ <= sequence) receive_next();
}

bool Acknowledgements::receive_if_there(uint64_t sequence) {
  while (received_ <= sequence) {
    if (received_ == posted_ || !channel_->has_arrived({.sequence = received_})) return false;
    receive_next();
  }
  return true;
}

}  // namespace shardrec::comm::ipc
