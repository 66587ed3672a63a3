#include "dense/ddp/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"

namespace shardrec::dense {
namespace {

// Up to so many bytes from each rank to all others together, one exchange is quicker than two.
constexpr size_t kDirectBytes = size_t{256} << 10;
constexpr size_t kLine = 64;

size_t whole_lines(size_t bytes) noexcept { return (bytes + kLine - 1) / kLine * kLine; }

comm::Operation parts_of(uint64_t bucket, int64_t elements) {
  return {
      .name = "ddp: bucket", .kind = 3, .detail = bucket, .size = static_cast<uint64_t>(elements)};
}

comm::Operation sums_of(uint64_t bucket, int64_t elements) {
  return {.name = "ddp: sums of a bucket",
          .kind = 4,
          .detail = bucket,
          .size = static_cast<uint64_t>(elements)};
}

std::byte* bytes_of(void* data) noexcept { return static_cast<std::byte*>(data); }

}  // namespace

comm::Ticket Lane::post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                        std::shared_ptr<const void> owner) {
  // kMost of them may be unread by this rank itself; older ones have been read.
  if (posted_ >= kMost + 2) reclaim_through({.sequence = posted_ - (kMost + 2)});
  const comm::Ticket ticket = channel_->post(operation, send, std::move(owner));
  ++posted_;
  return ticket;
}

void Lane::reclaim_through(comm::Ticket ticket) {
  for (; reclaimed_ <= ticket.sequence; ++reclaimed_) channel_->reclaim({.sequence = reclaimed_});
}

BucketExchange::BucketExchange(const ExchangeShape& shape, uint64_t number, int64_t elements,
                               std::vector<GradientSlot> slots)
    : shape_(shape),
      number_(number),
      elements_(elements),
      slots_(std::move(slots)),
      direct_(shape.ranks <= 2 || !shape.carries_gradients ||
              wire_bytes(elements) * static_cast<size_t>(shape.ranks - 1) <= kDirectBytes),
      map_bytes_(shape.asks_who_used ? map_bytes(slots_.size()) : 0),
      send_(static_cast<size_t>(shape.ranks)),
      received_(static_cast<size_t>(shape.ranks)),
      inputs_(static_cast<size_t>(shape.ranks)),
      written_(slots_.size(), 1) {
  const size_t before = kHeadBytes + map_bytes_;
  const size_t data = shape_.carries_gradients ? wire_bytes(elements_) : 0;
  if (direct_) {
    outgoing_->resize(before + data);
  } else {
    outgoing_->resize(static_cast<size_t>(shape_.ranks) *
                      (before + whole_lines(wire_bytes(part_of(0).count))));
    own_sums_->resize(wire_bytes(part_of(shape_.rank).count));
  }
}

size_t BucketExchange::wire_bytes(int64_t elements) const noexcept {
  return static_cast<size_t>(elements) * core::dtype_size(shape_.wire);
}

size_t BucketExchange::bytes_per_peer() const noexcept {
  const size_t before = kHeadBytes + map_bytes_;
  if (!shape_.carries_gradients) return before;
  if (direct_) return before + wire_bytes(elements_);
  return before + wire_bytes(part_of(0).count) + wire_bytes(part_of(shape_.rank).count);
}

comm::OwnedRange BucketExchange::part_of(int rank) const noexcept {
  if (direct_) return {.begin = 0, .count = shape_.carries_gradients ? elements_ : 0};
  const auto grain = static_cast<int64_t>(kLine / core::dtype_size(shape_.wire));
  return comm::owned_range(elements_, shape_.ranks, grain, rank);
}

template <class Body>
void BucketExchange::for_each_run(const comm::OwnedRange& part, const Body& body) const {
  for (size_t s = 0; s < slots_.size(); ++s) {
    const GradientSlot& slot = slots_[s];
    const int64_t begin = std::max(slot.offset, part.begin);
    const int64_t end = std::min(slot.offset + slot.elements, part.begin + part.count);
    if (begin < end) body(s, begin - slot.offset, begin, end - begin);
  }
}

void BucketExchange::stage(const comm::OwnedRange& part, const BucketHead& head,
                           std::span<const char> used, std::byte* out) {
  write_head(head, out);
  std::byte* const map = out + kHeadBytes;
  std::memset(map, 0, map_bytes_);
  for (size_t s = 0; map_bytes_ != 0 && s < slots_.size(); ++s) {
    if (used[s] != 0) map[s / 8] |= std::byte{1} << (s % 8);
  }
  if (head.has_gradients == 0) return;
  std::byte* const data = map + map_bytes_;
  const size_t from_size = core::dtype_size(shape_.dtype);
  for_each_run(part, [&](size_t s, int64_t first, int64_t at, int64_t count) {
    std::byte* const to = data + wire_bytes(at - part.begin);
    if (used[s] == 0) {
      std::memset(to, 0, wire_bytes(count));
    } else {
      convert(bytes_of(slots_[s].gradient) + static_cast<size_t>(first) * from_size, shape_.dtype,
              to, shape_.wire, count);
    }
  });
}

void BucketExchange::post(Lanes& lanes, const BucketHead& given, std::span<const char> used) {
  if (has_posted_parts_) lanes.parts.reclaim_through(parts_);
  BucketHead head = given;
  if (!shape_.carries_gradients) head.has_gradients = 0;
  std::byte* at = outgoing_->data();
  const size_t before = kHeadBytes + map_bytes_;
  for (int r = 0; r < shape_.ranks; ++r) {
    const comm::OwnedRange part = part_of(r);
    if (!direct_ || r == 0) stage(part, head, used, at);
    const size_t bytes = before + (head.has_gradients != 0 ? wire_bytes(part.count) : 0);
    send_[static_cast<size_t>(r)] = {at, bytes};
    if (!direct_) at += before + whole_lines(wire_bytes(part_of(0).count));
  }
  parts_ = lanes.parts.post(parts_of(number_, elements_), send_, outgoing_);
  has_posted_parts_ = true;
}

void BucketExchange::receive_heads(Lanes& lanes) {
  lanes.parts.receive(parts_, received_);
  heads_ = {};
  const size_t own = wire_bytes(part_of(shape_.rank).count);
  std::fill(written_.begin(), written_.end(), map_bytes_ == 0 ? 1 : 0);
  for (size_t p = 0; p < received_.size(); ++p) {
    const BucketMessage message = read_message(received_[p], map_bytes_, own, p);
    inputs_[p] = message.gradients;
    for (size_t s = 0; map_bytes_ != 0 && s < slots_.size(); ++s) {
      if ((message.used[s / 8] >> (s % 8) & std::byte{1}) != std::byte{0}) written_[s] = 1;
    }
    if (message.head.joined != 0) ++heads_.joined;
    if (message.head.steps > heads_.most_steps) {
      heads_.most_steps = message.head.steps;
      heads_.longest = static_cast<int>(p);
    }
    if (message.head.verdict != BucketVerdict::kReady && heads_.verdict == BucketVerdict::kReady) {
      heads_.verdict = message.head.verdict;
      heads_.rank = static_cast<int>(p);
      heads_.parameter = message.head.parameter;
    }
  }
}

bool BucketExchange::drop(Lanes& lanes) {
  lanes.parts.release(parts_);
  return true;
}

bool BucketExchange::add_up(Lanes& lanes, RankSums& sums, const GradientScale& scale) {
  const comm::OwnedRange own = part_of(shape_.rank);
  if (direct_) {
    const size_t size = core::dtype_size(shape_.dtype);
    for_each_run(own, [&](size_t s, int64_t first, int64_t at, int64_t count) {
      if (written_[s] == 0) return;
      sums.add_up(inputs_, shape_.wire, at, count, scale,
                  bytes_of(slots_[s].gradient) + static_cast<size_t>(first) * size, shape_.dtype);
    });
    return drop(lanes);
  }
  if (has_posted_sums_) lanes.sums.reclaim_through(sums_);
  sums.add_up(inputs_, shape_.wire, 0, own.count, scale, own_sums_->data(), shape_.wire);
  lanes.parts.release(parts_);
  std::fill(send_.begin(), send_.end(), comm::ConstBytes(own_sums_->data(), wire_bytes(own.count)));
  sums_ = lanes.sums.post(sums_of(number_, elements_), send_, own_sums_);
  has_posted_sums_ = true;
  return false;
}

void BucketExchange::finish(Lanes& lanes) {
  lanes.sums.receive(sums_, received_);
  const size_t size = core::dtype_size(shape_.dtype);
  for (int r = 0; r < shape_.ranks; ++r) {
    const comm::OwnedRange part = part_of(r);
    const comm::ConstBytes message = received_[static_cast<size_t>(r)];
    if (message.size() != wire_bytes(part.count)) {
      core::fail(
          SHARDREC_CORRUPT_DATA,
          core::sentence("rank ", r, " sent ", message.size(), " bytes of a bucket's sums, where ",
                         wire_bytes(part.count), " are to come"),
          {.rank = r, .operation = "ddp: sums of a bucket"});
    }
    for_each_run(part, [&](size_t s, int64_t first, int64_t at, int64_t count) {
      if (written_[s] == 0) return;
      convert(message.data() + wire_bytes(at - part.begin), shape_.wire,
              bytes_of(slots_[s].gradient) + static_cast<size_t>(first) * size, shape_.dtype,
              count);
    });
  }
  lanes.sums.release(sums_);
}

}  // namespace shardrec::dense
