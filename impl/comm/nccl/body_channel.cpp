#include "comm/nccl/body_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/align.h"
#include "core/error.h"

namespace shardrec::comm::nccl {
namespace {

// What a message is on the channel below: this, then its head.
struct WireHeader {
  uint64_t body = 0;  // bytes
};

constexpr size_t kAlignment = 64;  // of messages, and of what is cleared

size_t room_for(size_t bytes) { return core::align_up(bytes, kAlignment); }

}  // namespace

BodyChannel::BodyChannel(std::shared_ptr<Channel> heads, std::shared_ptr<Lanes> lanes,
                         Purpose purpose, compute::Backend& backend)
    : heads_(std::move(heads)),
      lanes_(std::move(lanes)),
      lane_(lanes_->of(purpose)),
      rank_(static_cast<size_t>(lanes_->rank())),
      sent_(lane_.marks().make()),
      arrivals_(backend, lane_.marks(), kMostInFlight) {}

BodyChannel::~BodyChannel() = default;

Ticket BodyChannel::post(const Operation& operation, std::span<const ConstBytes> send,
                         std::shared_ptr<const void> keep_alive) {
  Exchange& exchange = of({.sequence = posted_});
  exchange.operation = operation.name;
  exchange.own = send[rank_];
  exchange.sends.clear();
  exchange.from.clear();
  head_bytes_.assign(send.size(), 0);
  for (size_t to = 0; to < send.size(); ++to) {
    if (to != rank_) head_bytes_[to] = add_send(exchange, to, send[to]);
  }
  if (exchange.heads.use_count() > 1) exchange.heads = std::make_shared<std::vector<std::byte>>();
  write_heads(*exchange.heads, send);
  const Ticket ticket = heads_->post(operation, messages_, exchange.heads);
  exchange.keep_alive = std::move(keep_alive);
  ++posted_;
  return ticket;
}

size_t BodyChannel::add_send(Exchange& exchange, size_t to, ConstBytes message) {
  if (message.empty()) return 0;
  auto memory = SharedMemory::find(message);
  if (memory == nullptr) return message.size();
  const size_t head = memory->head_of(message);
  if (head == message.size()) return head;
  // Nothing of the group writes there.
  auto* const body = const_cast<std::byte*>(memory->at(message.data() + head));
  exchange.sends.push_back(
      {.data = body, .bytes = message.size() - head, .peer = static_cast<int32_t>(to)});
  if (std::find(exchange.from.begin(), exchange.from.end(), memory) == exchange.from.end()) {
    exchange.from.push_back(std::move(memory));
  }
  return head;
}

void BodyChannel::write_heads(std::vector<std::byte>& heads, std::span<const ConstBytes> send) {
  size_t bytes = 0;
  for (size_t to = 0; to < send.size(); ++to) {
    bytes += core::align_up(sizeof(WireHeader) + head_bytes_[to], alignof(WireHeader));
  }
  heads.resize(bytes);
  messages_.assign(send.size(), {});
  std::byte* at = heads.data();
  for (size_t to = 0; to < send.size(); ++to) {
    const size_t head = head_bytes_[to];
    if (to == rank_) continue;
    const WireHeader header{.body = send[to].size() - head};
    std::memcpy(at, &header, sizeof header);
    if (head != 0) std::memcpy(at + sizeof header, send[to].data(), head);
    messages_[to] = {at, sizeof header + head};
    at += core::align_up(sizeof header + head, alignof(WireHeader));
  }
}

size_t BodyChannel::body_of(size_t from) const {
  constexpr uint64_t kMost = uint64_t{1} << 46;
  const ConstBytes message = messages_[from];
  WireHeader header;
  if (message.size() >= sizeof header) std::memcpy(&header, message.data(), sizeof header);
  if (message.size() < sizeof header || header.body > kMost) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("the message of rank ", from, " does not say what body it has"),
               {.rank = static_cast<int64_t>(from)});
  }
  return header.body;
}

void BodyChannel::receive(Ticket ticket, std::span<ConstBytes> received) {
  messages_.resize(received.size());
  heads_->receive(ticket, messages_);
  Exchange& exchange = of(ticket);
  try {
    size_t bytes = 0;
    for (size_t from = 0; from < received.size(); ++from) {
      if (from == rank_) continue;
      const size_t body = body_of(from);
      if (body != 0) bytes += room_for(messages_[from].size() - sizeof(WireHeader) + body);
    }
    if (bytes != 0) exchange.arrivals = arrivals_.take(bytes);
    place(exchange.arrivals.get(), received);
    received[rank_] = exchange.own;
    if (bytes != 0 || !exchange.sends.empty()) enqueue(exchange, ticket.sequence, bytes);
  } catch (...) {  // peers would wait for a group that this rank does not enqueue
    lanes_->give_up(exchange.operation);
    mark(exchange);  // it may be enqueued in part
    throw;
  }
}

// What is enqueued in the lane is over where the marks are.
void BodyChannel::mark(const Exchange& exchange) {
  if (exchange.arrivals != nullptr) lane_.marks().set(exchange.arrivals->bodies->written());
  lane_.marks().set(*sent_);
  for (const auto& memory : exchange.from) memory->add_reader(sent_);
}

// Messages with bodies are in the arrivals, one behind the other; others stay where they are.
void BodyChannel::place(const Arrivals* arrivals, std::span<ConstBytes> received) {
  receives_.clear();
  size_t at = 0;
  for (size_t from = 0; from < received.size(); ++from) {
    if (from == rank_) continue;
    const size_t body = body_of(from);
    const ConstBytes head = messages_[from].subspan(sizeof(WireHeader));
    received[from] = head;
    if (body == 0) continue;
    const std::byte* const host = arrivals->host.data() + at;
    if (!head.empty()) {
      std::memcpy(const_cast<std::byte*>(host), head.data(), head.size());
    }
    received[from] = {host, head.size() + body};
    receives_.push_back({.data = arrivals->bodies->data() + at + head.size(),
                         .bytes = body,
                         .peer = static_cast<int32_t>(from)});
    at += room_for(head.size() + body);
  }
}

void BodyChannel::enqueue(Exchange& exchange, uint64_t sequence, size_t bytes) {
  compute::Marks& marks = lane_.marks();
  for (const auto& memory : exchange.from) marks.follow(memory->written());
  const Arrivals* const arrivals = exchange.arrivals.get();
  if (arrivals != nullptr) arrivals->bodies->follow_readers(marks);
  lane_.exchange({.operation = exchange.operation, .sequence = sequence}, exchange.sends,
                 receives_);
  lanes_->wake();
  if (arrivals != nullptr) lanes_->clear_if_stopped(lane_, arrivals->bodies->data(), bytes);
  mark(exchange);
}

void BodyChannel::release(Ticket ticket) noexcept {
  auto& arrivals = of(ticket).arrivals;
  if (arrivals != nullptr) arrivals_.give_back(std::move(arrivals));
  heads_->release(ticket);
}

void BodyChannel::reclaim(Ticket ticket) {
  heads_->reclaim(ticket);
  Exchange& exchange = of(ticket);
  exchange.from.clear();
  exchange.keep_alive.reset();
}

}  // namespace shardrec::comm::nccl
