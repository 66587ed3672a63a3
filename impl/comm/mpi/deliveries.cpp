#include "comm/mpi/deliveries.h"

#include <cstring>
#include <utility>

#include "comm/mpi/mpi_transport.h"
#include "comm/plugin/plugin_side.h"

namespace shardrec::comm::mpi_plugin {
namespace {

using plugin::sentence;

uint64_t name_of(int peer, uint32_t tag) {
  return uint64_t{static_cast<uint32_t>(peer)} << 32U | tag;
}

}  // namespace

uint32_t MpiTags::take(int peer) {
  Book& book = books_[peer];
  for (uint32_t tries = 0; tries < kMost; ++tries) {
    book.next = book.next % kMost + 1;
    if (book.busy.insert(book.next).second) return book.next;
  }
  return 0;
}

void MpiTags::taken_back(int peer, uint32_t mpi_tag, uint64_t bytes_left) {
  unanswered_[{peer, mpi_tag}] = bytes_left;
}

void MpiTags::answered(int peer, uint32_t mpi_tag, bool sent, Wire& wire) {
  const auto found = unanswered_.find({peer, mpi_tag});
  if (found == unanswered_.end()) return;
  const uint64_t bytes = found->second;
  unanswered_.erase(found);
  if (sent) {
    wire.drain(peer, mpi_tag, bytes);
  } else {
    give_back(peer, mpi_tag);
  }
}

void Deliveries::say_hello() {
  for (int peer = 0; peer < wire_.size(); ++peer) {
    if (peer != wire_.rank())
      wire_.send(make_frame(peer, {.transport = number_, .kind = FrameKind::kHello}, {}));
  }
}

void Deliveries::begin(Request& request) {
  if (request.direction == Direction::kReceive) {
    begin_receive(request);
  } else {
    begin_send(request);
  }
}

void Deliveries::begin_receive(Request& request) {
  if (request.is_short()) {
    const auto early = early_messages_.find(request.name());
    if (early == early_messages_.end()) {
      receives_.insert_or_assign(request.name(), &request);
      return;
    }
    const std::vector<std::byte> message = std::move(early->second);
    early_messages_.erase(early);
    return receive_short(request, message);
  }
  request.mpi_tag = mpi_tags_.take(request.peer);
  if (request.mpi_tag == 0)
    return end(request, SHARDREC_TRANSPORT_FAILED,
               sentence("too many long messages of rank ", request.peer, " are under way"));
  moving_.insert(&request);
  wire_.move(request);
  wire_.send(make_frame(request.peer,
                        {.transport = number_,
                         .kind = FrameKind::kReady,
                         .tag = request.tag,
                         .mpi_tag = request.mpi_tag,
                         .bytes = request.bytes},
                        {}));
}

void Deliveries::begin_send(Request& request) {
  const auto early = early_ready_.find(request.name());
  if (early == early_ready_.end()) {
    sends_.insert_or_assign(request.name(), &request);
    return;
  }
  const Ready ready = early->second;
  early_ready_.erase(early);
  start_moving(request, ready);
}

void Deliveries::start_moving(Request& request, const Ready& ready) {
  if (ready.bytes != request.bytes)
    return end(request, SHARDREC_TRANSPORT_FAILED,
               sentence("rank ", request.peer, " expects ", ready.bytes,
                        " bytes where this rank sends ", request.bytes));
  request.mpi_tag = ready.mpi_tag;
  moving_.insert(&request);
  wire_.move(request);
}

void Deliveries::receive_short(Request& request, std::span<const std::byte> message) {
  if (message.size() != request.bytes)
    return end(request, SHARDREC_TRANSPORT_FAILED,
               sentence("rank ", request.peer, " sent ", message.size(),
                        " bytes where this rank expects ", request.bytes));
  if (!message.empty()) std::memcpy(request.data, message.data(), message.size());
  end(request, SHARDREC_TRANSPORT_OK);
}

void Deliveries::delivered(int from, const FrameHead& head, std::span<const std::byte> message) {
  const uint64_t name = name_of(from, head.tag);
  switch (head.kind) {
    case FrameKind::kHello:
      return transport_.hear_hello(from);
    case FrameKind::kGroupState:
      return transport_.hear_group_state(from, message);
    case FrameKind::kUnready:
      return unready(from, head);
    case FrameKind::kAnswer:  // the engine's
      return;
    case FrameKind::kMessage: {
      const auto found = receives_.find(name);
      if (found == receives_.end()) {
        early_messages_.insert_or_assign(name, std::vector(message.begin(), message.end()));
        return;
      }
      Request& request = *found->second;
      receives_.erase(found);
      return receive_short(request, message);
    }
    case FrameKind::kReady: {
      const Ready ready{.mpi_tag = head.mpi_tag, .bytes = head.bytes};
      const auto found = sends_.find(name);
      if (found == sends_.end()) {
        early_ready_.insert_or_assign(name, ready);
        return;
      }
      Request& request = *found->second;
      sends_.erase(found);
      return start_moving(request, ready);
    }
  }
}

void Deliveries::moved(Request& request) {
  moving_.erase(&request);
  if (request.direction == Direction::kReceive) {
    if (request.parts_back == 0) {
      mpi_tags_.give_back(request.peer, request.mpi_tag);
    } else {
      mpi_tags_.taken_back(request.peer, request.mpi_tag, Wire::bytes_left(request));
      wire_.send(make_frame(request.peer,
                            {.transport = number_,
                             .kind = FrameKind::kUnready,
                             .tag = request.tag,
                             .mpi_tag = request.mpi_tag},
                            {}));
    }
  }
  end(request, request.given_up ? SHARDREC_TRANSPORT_CANCELLED : SHARDREC_TRANSPORT_OK);
}

void Deliveries::unready(int from, const FrameHead& head) {
  const auto found = early_ready_.find(name_of(from, head.tag));
  const bool waited = found != early_ready_.end() && found->second.mpi_tag == head.mpi_tag;
  if (waited) early_ready_.erase(found);
  wire_.send(make_frame(from,
                        {.transport = number_,
                         .kind = FrameKind::kAnswer,
                         .mpi_tag = head.mpi_tag,
                         .bytes = waited ? 0U : 1U},
                        {}));
}

void Deliveries::give_up(Request& request) {
  if (!holds(request)) return transport_.given_back(request);  // it has ended meanwhile
  if (std::exchange(request.given_up, true)) return;
  if (moving_.contains(&request)) return wire_.take_back(request);
  (request.direction == Direction::kReceive ? receives_ : sends_).erase(request.name());
  end(request, SHARDREC_TRANSPORT_CANCELLED);
}

bool Deliveries::holds(Request& request) const noexcept {
  if (moving_.contains(&request)) return true;
  const auto& waiting = request.direction == Direction::kReceive ? receives_ : sends_;
  const auto found = waiting.find(request.name());
  return found != waiting.end() && found->second == &request;
}

void Deliveries::give_up_all() {
  std::vector<Request*> all(moving_.begin(), moving_.end());
  for (const auto* waiting : {&receives_, &sends_}) {
    for (const auto& [name, request] : *waiting) all.push_back(request);
  }
  for (Request* request : all) give_up(*request);
}

void Deliveries::fail_all(const std::string& why) noexcept {
  const auto fail = [&](Request& request) {
    try {
      end(request, SHARDREC_TRANSPORT_FAILED, why);
    } catch (const std::bad_alloc&) {
      end(request, SHARDREC_TRANSPORT_FAILED);
    }
  };
  for (auto* waiting : {&receives_, &sends_}) {
    for (const auto& [name, request] : *waiting) fail(*request);
    waiting->clear();
  }
  for (Request* request : moving_) fail(*request);
  moving_.clear();
}

void Deliveries::end(Request& request, int32_t status, std::string text) {
  transport_.ended(request, status, std::move(text));
}

}  // namespace shardrec::comm::mpi_plugin
