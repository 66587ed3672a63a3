#include "comm/ipc/acknowledgements.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.h"

namespace shardrec::comm::ipc {

void Acknowledgements::post(const char* operation, const Exports::Event* copied) {
  EventPlace& own = (*own_)[posted_ % own_->size()];
  own = copied == nullptr ? EventPlace{} : copied->place();
  std::fill(messages_.begin(), messages_.end(), std::as_bytes(std::span(&own, 1)));
  channel_->post({.name = operation, .kind = 8, .deadline_kind = DeadlineKind::kStep}, messages_,
                 own_);
  ++posted_;
}

void Acknowledgements::receive_next() {
  const Ticket ticket{.sequence = received_};
  channel_->receive(ticket, messages_);
  std::vector<EventPlace>& copied = copied_[received_ % copied_.size()];
  for (size_t rank = 0; rank < messages_.size(); ++rank) {
    if (messages_[rank].size() != sizeof(EventPlace)) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " acknowledges a message in another way"),
                 {.rank = static_cast<int64_t>(rank)});
    }
    std::memcpy(&copied[rank], messages_[rank].data(), sizeof(EventPlace));
  }
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
