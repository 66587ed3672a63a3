#include "comm/ipc/body_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compute/cuda/host/sharing.h"
#include "core/align.h"
#include "core/error.h"

namespace shardrec::comm::ipc {
namespace {

namespace host = compute::cuda::host;

// What a message is on the channel below: the bytes of its body, where it has one the place of that, then its head.
using BodyBytes = uint64_t;

constexpr size_t kAlignment = 64;  // of messages that have come
constexpr uint64_t kMost = uint64_t{1} << 46;

size_t room_for(size_t bytes) { return core::align_up(bytes, kAlignment); }

}  // namespace

size_t BodyChannel::header_of(uint64_t body) noexcept {
  return sizeof body + (body == 0 ? 0 : sizeof(BodyPlace));
}

BodyChannel::BodyChannel(std::shared_ptr<Channel> heads, std::shared_ptr<Links> links,
                         std::shared_ptr<Unread> unread, compute::Backend& backend)
    : heads_(std::move(heads)),
      links_(std::move(links)),
      unread_(std::move(unread)),
      backend_(backend),
      rank_(static_cast<size_t>(links_->rank())),
      written_(backend.marks()->make()),
      arrivals_(backend, links_->marks(), kMostInFlight) {}

BodyChannel::~BodyChannel() {
  if (acknowledgements_ == nullptr) return;
  try {
    std::vector<Unread::Bodies> sent;
    for (Exchange& exchange : exchanges_) {
      if (!exchange.sent.from.empty()) sent.push_back(std::move(exchange.sent));
    }
    if (sent.empty()) return;
    const auto by_sequence = [](const Unread::Bodies& one, const Unread::Bodies& other) {
      return one.sequence < other.sequence;
    };
    std::sort(sent.begin(), sent.end(), by_sequence);
    unread_->add(std::move(acknowledgements_), std::move(sent));
  } catch (...) {  // memory is short: peers would read what is written next
    links_->give_up("the end of a channel");
  }
}

void BodyChannel::acknowledge_by(std::shared_ptr<Channel> channel) {
  acknowledgements_ = std::make_unique<Acknowledgements>(std::move(channel), links_->size());
}

Ticket BodyChannel::post(const Operation& operation, std::span<const ConstBytes> send,
                         std::shared_ptr<const void> keep_alive) {
  if (acknowledgements_ == nullptr) {
    return heads_->post(operation, send, std::move(keep_alive));
  }
  unread_->let_go_of_read(operation.name);
  Exchange& exchange = of({.sequence = posted_});
  exchange.operation = operation.name;
  exchange.own = send[rank_];
  exchange.sent.clear();
  exchange.sent.sequence = posted_;
  head_bytes_.assign(send.size(), 0);
  places_.resize(send.size());
  for (size_t to = 0; to < send.size(); ++to) {
    if (to != rank_) find_body(exchange, to, send[to]);
  }
  if (exchange.heads.use_count() > 1) exchange.heads = std::make_shared<std::vector<std::byte>>();
  if (!exchange.sent.from.empty()) {
    exchange.sent.written = links_->exports()->take_event();
    backend_.marks()->set(*written_);
    links_->record_written(*exchange.sent.written, *written_);
    for (const size_t to : exchange.sent.peers) {
      places_[to].written = exchange.sent.written->place();
    }
  }
  write_heads(*exchange.heads, send);
  const Ticket ticket = heads_->post(operation, messages_, exchange.heads);
  exchange.keep_alive = std::move(keep_alive);
  ++posted_;
  return ticket;
}

void BodyChannel::find_body(Exchange& exchange, size_t to, ConstBytes message) {
  head_bytes_[to] = message.size();
  if (message.empty()) return;
  auto memory = SharedMemory::find(message);
  if (memory == nullptr) return;
  const size_t head = memory->head_of(message);
  if (head == message.size()) return;
  head_bytes_[to] = head;
  places_[to].at = links_->exports()->place_of(memory->at(message.data() + head));
  exchange.sent.peers.push_back(to);
  auto& from = exchange.sent.from;
  if (std::find(from.begin(), from.end(), memory) == from.end()) from.push_back(std::move(memory));
}

void BodyChannel::write_heads(std::vector<std::byte>& heads, std::span<const ConstBytes> send) {
  const auto room = [&](size_t to) {
    return core::align_up(header_of(send[to].size() - head_bytes_[to]) + head_bytes_[to],
                          alignof(BodyBytes));
  };
  size_t bytes = 0;
  for (size_t to = 0; to < send.size(); ++to) bytes += room(to);
  heads.resize(bytes);
  messages_.assign(send.size(), {});
  std::byte* at = heads.data();
  for (size_t to = 0; to < send.size(); ++to) {
    if (to == rank_) continue;
    const size_t head = head_bytes_[to];
    const BodyBytes body = send[to].size() - head;
    std::memcpy(at, &body, sizeof body);
    if (body != 0) std::memcpy(at + sizeof body, &places_[to], sizeof(BodyPlace));
    if (head != 0) std::memcpy(at + header_of(body), send[to].data(), head);
    messages_[to] = {at, header_of(body) + head};
    at += room(to);
  }
}

void BodyChannel::receive(Ticket ticket, std::span<ConstBytes> received) {
  if (acknowledgements_ == nullptr) {
    heads_->receive(ticket, received);
    return;
  }
  messages_.resize(received.size());
  heads_->receive(ticket, messages_);
  Exchange& exchange = of(ticket);
  try {
    read_heads();
    size_t bytes = 0;
    for (const Part& part : parts_) bytes += room_for(part.head + part.bytes);
    if (bytes != 0) exchange.arrivals = arrivals_.take(bytes);
    place(exchange.arrivals.get(), received);
    received[rank_] = exchange.own;
    if (bytes != 0) copy(exchange, ticket.sequence);
    acknowledgements_->post(exchange.operation, bytes != 0 ? exchange.copied.get() : nullptr);
  } catch (...) {  // peers would wait for what this rank does not acknowledge
    links_->give_up(exchange.operation);
    finish_copies();
    throw;
  }
}

// Strips messages of what stands before their heads.
void BodyChannel::read_heads() {
  parts_.clear();
  for (size_t from = 0; from < messages_.size(); ++from) {
    if (from == rank_) continue;
    const ConstBytes message = messages_[from];
    Part part{.peer = from, .place = {}};
    if (message.size() >= sizeof part.bytes) {
      std::memcpy(&part.bytes, message.data(), sizeof part.bytes);
    }
    const size_t header = header_of(part.bytes);
    if (message.size() < header || part.bytes > kMost) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("the message of rank ", from, " does not say what body it has"),
                 {.rank = static_cast<int64_t>(from)});
    }
    messages_[from] = message.subspan(header);
    if (part.bytes == 0) continue;
    std::memcpy(&part.place, message.data() + sizeof part.bytes, sizeof part.place);
    part.head = messages_[from].size();
    parts_.push_back(part);
  }
}

// Messages with bodies are in the arrivals, one behind the other; others stay where they are.
void BodyChannel::place(const Arrivals* arrivals, std::span<ConstBytes> received) {
  for (size_t from = 0; from < received.size(); ++from) {
    if (from != rank_) received[from] = messages_[from];
  }
  size_t at = 0;
  for (Part& part : parts_) {
    const ConstBytes head = messages_[part.peer];
    const std::byte* const host = arrivals->host.data() + at;
    if (!head.empty()) std::memcpy(const_cast<std::byte*>(host), head.data(), head.size());
    received[part.peer] = {host, head.size() + part.bytes};
    part.to = arrivals->bodies->data() + at + head.size();
    at += room_for(head.size() + part.bytes);
  }
}

void BodyChannel::copy(Exchange& exchange, uint64_t sequence) {
  if (exchange.copied == nullptr) exchange.copied = links_->exports()->take_event();
  compute::Marks& marks = links_->marks();
  exchange.arrivals->bodies->follow_readers(marks);
  for (const Part& part : parts_) {
    links_->wait_for(part.peer, part.place.written,
                     {.operation = exchange.operation, .sequence = sequence});
    host::copy_from_process(links_->stream(), part.to,
                            links_->open(part.peer, part.place.at, part.bytes, exchange.operation),
                            part.bytes);
  }
  marks.set(exchange.arrivals->bodies->written());
  links_->record_copied(*exchange.copied);
}

// Where arrivals have no mark behind them.
void BodyChannel::finish_copies() noexcept {
  try {
    links_->stream().wait();
  } catch (const core::Error&) {  // the device has failed: it does no work any more
  }
}

void BodyChannel::release(Ticket ticket) noexcept {
  auto& arrivals = of(ticket).arrivals;
  if (arrivals != nullptr) arrivals_.give_back(std::move(arrivals));
  heads_->release(ticket);
}

void BodyChannel::reclaim(Ticket ticket) {
  heads_->reclaim(ticket);
  if (acknowledgements_ == nullptr) return;
  Exchange& exchange = of(ticket);
  acknowledgements_->receive_through(ticket.sequence);
  for (const size_t peer : exchange.sent.peers) {
    links_->wait_for(peer, acknowledgements_->copied(ticket.sequence, peer),
                     {.operation = exchange.operation, .sequence = ticket.sequence});
  }
  exchange.sent.clear();
  exchange.keep_alive.reset();
}

}  // namespace shardrec::comm::ipc
