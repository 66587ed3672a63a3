#include "comm/collective/collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/collective/owned_range.h"
#include "comm/collective/received.h"
#include "comm/collective/reduce.h"
#include "core/error.h"
#include "core/memory.h"

namespace shardrec::comm {
namespace {

// Distinguishes the collectives inside the caller's kind.
enum class Sort : uint32_t { kBarrier = 1, kGather, kBroadcast, kReduce, kScatter, kAll };

// Up to this size per rank everybody sends everything to everybody: one exchange instead of two.
constexpr size_t kSmall = 4096;

// Elements of a slot of all_reduce are a multiple of a cache line.
constexpr size_t kLine = 64;

struct Slot {
  size_t begin = 0;
  size_t count = 0;
};

template <class T>
constexpr uint64_t kDtype = std::is_same_v<T, float>     ? 1
                            : std::is_same_v<T, double>  ? 2
                            : std::is_same_v<T, int32_t> ? 3
                                                         : 4;

Operation marked(Operation operation, Sort sort, size_t size, uint64_t arguments) {
  operation.kind |= static_cast<uint32_t>(sort) << 24;
  operation.size = size;
  // The multiplier (2^64 / golden ratio) is odd, so that different arguments stay different.
  operation.detail += arguments * 0x9E3779B97F4A7C15U;
  return operation;
}

template <class T>
uint64_t arguments(Reduction reduction) {
  return kDtype<T> * 16 + static_cast<uint64_t>(reduction);
}

template <class T>
void refuse_mean_of_integers(const Operation& operation, Reduction reduction) {
  if (std::is_floating_point_v<T> || reduction != Reduction::kMean) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("the mean of integers in \"", operation.name,
                            "\"; accepted are the sum, the minimum and the maximum"),
             {.operation = operation.name});
}

}  // namespace

// Exchanges follow each other, and posting one releases the one before. So when exchange n has been
// received, every rank has released n - 1: buffers and tickets alternate between two.
struct Collectives::State {
  State(std::shared_ptr<Channel> its_channel, int its_rank, int its_size)
      : channel(std::move(its_channel)),
        rank(static_cast<size_t>(its_rank)),
        size(static_cast<size_t>(its_size)),
        send(size),
        received(size) {
    for (auto& buffer : outgoing) buffer = std::make_shared<core::Scratch>();
  }

  // Memory that the next exchange may send, kept alive by its owner.
  std::byte* stage(size_t bytes) {
    if (next >= 2) channel->reclaim(tickets[next % 2]);
    reclaimed = true;
    return outgoing[next % 2]->resize(bytes);
  }
  std::shared_ptr<const void> staged() const { return outgoing[next % 2]; }
  ConstBytes stage_copy(ConstBytes bytes) {
    std::byte* copy = stage(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy);
    return {copy, bytes.size()};
  }

  // Posts `send` and waits for the messages of all.
  void exchange(const Operation& operation, std::shared_ptr<const void> owner) {
    let_go();
    if (next >= 2 && !reclaimed) channel->reclaim(tickets[next % 2]);
    const Ticket ticket = channel->post(operation, send, std::move(owner));
    tickets[next % 2] = ticket;
    ++next;
    reclaimed = false;
    channel->receive(ticket, received);
    reading = true;
  }
  Ticket last() const { return tickets[(next - 1) % 2]; }
  void let_go() noexcept {
    if (!reading) return;
    channel->release(last());
    reading = false;
  }

  void require_size_of_all(const Operation& operation, size_t bytes) const {
    for (size_t from = 0; from < size; ++from) require_size(operation, from, received[from], bytes);
  }

  void send_to_all(ConstBytes message) { std::fill(send.begin(), send.end(), message); }

  // The elements that rank r reduces.
  template <class T>
  Slot slot(size_t r, size_t count) const {
    const OwnedRange range = owned_range(static_cast<int64_t>(count), static_cast<int64_t>(size),
                                         kLine / sizeof(T), static_cast<int64_t>(r));
    return {.begin = static_cast<size_t>(range.begin), .count = static_cast<size_t>(range.count)};
  }

  std::shared_ptr<Channel> channel;
  size_t rank;
  size_t size;
  std::vector<ConstBytes> send;
  std::vector<ConstBytes> received;
  std::array<std::shared_ptr<core::Scratch>, 2> outgoing;
  core::Scratch result;
  std::array<Ticket, 2> tickets{};
  uint64_t next = 0;
  bool reclaimed = false;  // what exchange `next` takes the place of
  bool reading = false;    // the views of the last exchange
};

Collectives::Collectives(std::shared_ptr<Channel> channel, int rank, int size)
    : state_(std::make_unique<State>(std::move(channel), rank, size)) {}
Collectives::~Collectives() = default;
Collectives::Collectives(Collectives&&) noexcept = default;
Collectives& Collectives::operator=(Collectives&&) noexcept = default;

int Collectives::rank() const noexcept { return static_cast<int>(state_->rank); }
int Collectives::size() const noexcept { return static_cast<int>(state_->size); }

void Collectives::barrier(const Operation& operation) {
  state_->send_to_all({});
  state_->exchange(marked(operation, Sort::kBarrier, 0, 0), nullptr);
  state_->let_go();
}

std::span<const ConstBytes> Collectives::all_gather(const Operation& operation, ConstBytes mine) {
  state_->send_to_all(state_->stage_copy(mine));
  state_->exchange(marked(operation, Sort::kGather, 0, 0), state_->staged());
  return state_->received;
}

void Collectives::broadcast(const Operation& operation, int root, std::span<std::byte> data) {
  State& s = *state_;
  const auto from = static_cast<size_t>(root);
  const bool sends = s.rank == from && s.size > 1;
  s.send_to_all(sends ? s.stage_copy(data) : ConstBytes{});
  s.send[s.rank] = {};
  s.exchange(marked(operation, Sort::kBroadcast, data.size(), static_cast<uint64_t>(root)),
             sends ? s.staged() : nullptr);
  if (s.rank != from) {
    require_size(operation, from, s.received[from], data.size());
    std::copy(s.received[from].begin(), s.received[from].end(), data.begin());
  }
  s.let_go();
}

template <class T>
void Collectives::all_reduce(const Operation& operation, Reduction reduction, std::span<T> data,
                             std::shared_ptr<const void> owner) {
  refuse_mean_of_integers<T>(operation, reduction);
  State& s = *state_;
  const Operation reduce = marked(operation, Sort::kReduce, data.size(), arguments<T>(reduction));
  const ConstBytes bytes = std::as_bytes(data);
  if (s.size == 1) {
    s.send_to_all({});
    s.exchange(reduce, nullptr);
    return s.let_go();
  }
  if (bytes.size() <= kSmall) {
    s.send_to_all(s.stage_copy(bytes));
    s.exchange(reduce, s.staged());
    s.require_size_of_all(operation, bytes.size());
    reduce_ranks<T>(reduction, s.received, data);
    return s.let_go();
  }
  const bool in_place = owner != nullptr;
  const ConstBytes source = in_place ? bytes : s.stage_copy(bytes);
  for (size_t r = 0; r < s.size; ++r) {
    const Slot slot = s.slot<T>(r, data.size());
    s.send[r] = source.subspan(slot.begin * sizeof(T), slot.count * sizeof(T));
  }
  s.exchange(reduce, in_place ? std::move(owner) : s.staged());
  const Ticket parts = s.last();

  const size_t own = s.slot<T>(s.rank, data.size()).count;
  s.require_size_of_all(operation, own * sizeof(T));
  const std::span<T> sum(static_cast<T*>(static_cast<void*>(s.stage(own * sizeof(T)))), own);
  reduce_ranks<T>(reduction, s.received, sum);
  s.send_to_all(std::as_bytes(sum));
  s.exchange(reduce, s.staged());
  s.channel->reclaim(parts);  // before data is written: nobody reads it any more
  const std::span<std::byte> out = std::as_writable_bytes(data);
  for (size_t r = 0; r < s.size; ++r) {
    const Slot slot = s.slot<T>(r, data.size());
    require_size(operation, r, s.received[r], slot.count * sizeof(T));
    const auto at = static_cast<std::ptrdiff_t>(slot.begin * sizeof(T));
    std::copy(s.received[r].begin(), s.received[r].end(), out.begin() + at);
  }
  s.let_go();
}

template <class T>
std::span<const T> Collectives::reduce_scatter(const Operation& operation, Reduction reduction,
                                               std::span<const T> data,
                                               std::shared_ptr<const void> owner) {
  refuse_mean_of_integers<T>(operation, reduction);
  State& s = *state_;
  if (data.size() % s.size != 0) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence(data.size(), " elements in \"", operation.name,
                              "\"; a multiple of the ", s.size, " ranks is needed"),
               {.value = static_cast<int64_t>(data.size()), .operation = operation.name});
  }
  const size_t part = data.size() / s.size;
  const bool in_place = owner != nullptr;
  const ConstBytes bytes = std::as_bytes(data);
  const ConstBytes source = in_place ? bytes : s.stage_copy(bytes);
  for (size_t r = 0; r < s.size; ++r) {
    s.send[r] = source.subspan(r * part * sizeof(T), part * sizeof(T));
  }
  s.exchange(marked(operation, Sort::kScatter, data.size(), arguments<T>(reduction)),
             in_place ? std::move(owner) : s.staged());
  const std::span<T> out = s.result.resize_as<T>(part);
  s.require_size_of_all(operation, part * sizeof(T));
  reduce_ranks<T>(reduction, s.received, out);
  s.let_go();
  if (in_place) s.channel->reclaim(s.last());
  return out;
}

std::span<std::byte> Collectives::stage(size_t bytes) { return {state_->stage(bytes), bytes}; }

std::span<const ConstBytes> Collectives::all_to_all(const Operation& operation,
                                                    std::span<const ConstBytes> send) {
  State& s = *state_;
  std::copy(send.begin(), send.end(), s.send.begin());
  s.exchange(marked(operation, Sort::kAll, operation.size, 0), s.staged());
  return s.received;
}

#define SHARDREC_COMM_INSTANTIATE(T)                                                  \
  template void Collectives::all_reduce<T>(const Operation&, Reduction, std::span<T>, \
                                           std::shared_ptr<const void>);              \
  template std::span<const T> Collectives::reduce_scatter<T>(                         \
      const Operation&, Reduction, std::span<const T>, std::shared_ptr<const void>);
SHARDREC_COMM_INSTANTIATE(float)
SHARDREC_COMM_INSTANTIATE(double)
SHARDREC_COMM_INSTANTIATE(int32_t)
SHARDREC_COMM_INSTANTIATE(int64_t)
#undef SHARDREC_COMM_INSTANTIATE

}  // namespace shardrec::comm
