#include "embedding/exchange/ordered_channel.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::embedding {

OrderedChannel::OrderedChannel(std::shared_ptr<comm::Channel> channel, int ranks,
                               comm::BodyCarrier& bodies)
    : channel_(std::move(channel)), bodies_(bodies) {
  for (Held& held : held_) held.views.resize(static_cast<size_t>(ranks));
}

OrderedChannel::~OrderedChannel() {
  for (size_t h = released_count_; h < held_count_; ++h) channel_->release(held_[h].ticket);
}

void OrderedChannel::post(ExchangeKind kind, const char* name, uint64_t detail,
                          std::span<const comm::ConstBytes> messages,
                          std::shared_ptr<const void> keep_alive) {
  const comm::Operation operation{.name = name,
                                  .kind = static_cast<uint32_t>(kind),
                                  .detail = detail,
                                  .deadline_kind = comm::DeadlineKind::kStep};
  if (held_count_ == held_.size()) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence(name, " begins an exchange while ", held_count_,
                              " others are held: it must settle them first"),
               {.limit = static_cast<int64_t>(held_.size()), .operation = name});
  }
  bodies_.finish_writing();
  held_[held_count_].ticket = channel_->post(operation, messages, std::move(keep_alive));
  posted_ = true;
}

std::span<const comm::ConstBytes> OrderedChannel::receive() {
  Held& held = held_[held_count_];
  channel_->receive(held.ticket, held.views);
  posted_ = false;
  ++held_count_;
  return held.views;
}

std::span<const comm::ConstBytes> OrderedChannel::exchange(
    ExchangeKind kind, const char* name, uint64_t detail,
    std::span<const comm::ConstBytes> messages, std::shared_ptr<const void> keep_alive) {
  post(kind, name, detail, messages, std::move(keep_alive));
  return receive();
}

void OrderedChannel::require_nothing_posted(const char* call) const {
  if (!posted_) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call,
                            " was called while the gradients of a lookup are under way: call "
                            "backward or accumulate of that lookup first"),
             {.operation = call});
}

void OrderedChannel::let_go() {
  bodies_.finish_reading();
  ++times_let_go_;
  while (released_count_ < held_count_) channel_->release(held_[released_count_++].ticket);
}

void OrderedChannel::reclaim() {
  const size_t count = std::exchange(released_count_, 0);
  const auto first = held_.begin();
  std::rotate(first, first + static_cast<ptrdiff_t>(count),
              first + static_cast<ptrdiff_t>(held_count_));
  held_count_ -= count;
  for (size_t h = 0; h < count; ++h) channel_->reclaim(held_[held_count_ + h].ticket);
}

void OrderedChannel::settle() {
  let_go();
  reclaim();
}

}  // namespace shardrec::embedding
