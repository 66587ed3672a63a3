#include "comm/collective/collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/collective/all_gather.h"
#include "comm/collective/all_to_all.h"
#include "comm/collective/owned_range.h"
#include "comm/collective/pipelined_channel.h"
#include "comm/collective/reduce.h"
#include "comm/collective/reduce_scatter.h"
#include "core/error.h"
#include "core/memory.h"

namespace shardrec::comm {
namespace {

// Distinguishes the collectives inside the caller's kind.
enum class Sort : uint32_t { kBarrier = 1, kGather, kBroadcast, kReduce, kScatter, kAll };

// Up to this size per rank everybody sends everything to everybody: one exchange instead of two.
constexpr size_t kSmall = 4096;

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

// Exchanges follow each other, and starting one releases the one before. So when exchange n has been
// received, every rank has released n - 1: buffers alternate between two.
struct Collectives::State {
  State(std::shared_ptr<Channel> its_channel, int its_rank, int its_size)
      : channel(std::move(its_channel)),
        rank(static_cast<size_t>(its_rank)),
        size(static_cast<size_t>(its_size)),
        exchange(channel, its_size),
        reduce_scatter(channel, its_size),
        all_gather(channel, its_size),
        send(size) {
    for (auto& buffer : outgoing) buffer = std::make_shared<core::Scratch>();
  }

  // Memory that the next exchange may send, with what keeps it alive.
  std::byte* stage(size_t bytes) {
    reclaim_older();
    return outgoing[channel.posted() % 2]->resize(bytes);
  }
  std::shared_ptr<const void> staged() const { return outgoing[channel.posted() % 2]; }
  ConstBytes stage_copy(ConstBytes bytes) {
    std::byte* copy = stage(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy);
    return {copy, bytes.size()};
  }

  // Before each start.
  void prepare() {
    exchange.release();
    all_gather.release();
    reclaim_older();
  }
  // The exchange whose buffer the next one takes.
  void reclaim_older() {
    if (channel.posted() >= 2) channel.reclaim_through({.sequence = channel.posted() - 2});
  }

  std::span<const ConstBytes> gather(const Operation& operation, ConstBytes mine,
                                     std::shared_ptr<const void> keep_alive) {
    prepare();
    all_gather.start(operation, mine, std::move(keep_alive));
    return all_gather.finish();
  }
  // Returns when every rank has come.
  void meet(const Operation& operation) {
    gather(operation, {}, nullptr);
    all_gather.release();
  }
  std::span<const ConstBytes> exchange_all(const Operation& operation,
                                           std::span<const ConstBytes> messages,
                                           std::shared_ptr<const void> keep_alive) {
    prepare();
    exchange.start(operation, messages, std::move(keep_alive));
    return exchange.finish();
  }

  PipelinedChannel channel;
  size_t rank;
  size_t size;
  AllToAll exchange;
  ReduceScatter reduce_scatter;
  AllGather all_gather;
  std::vector<ConstBytes> send;  // of a broadcast
  std::array<std::shared_ptr<core::Scratch>, 2> outgoing;
  core::Scratch result;
};

Collectives::Collectives(std::shared_ptr<Channel> channel, int rank, int size)
    : state_(std::make_unique<State>(std::move(channel), rank, size)) {}
Collectives::~Collectives() = default;
Collectives::Collectives(Collectives&&) noexcept = default;
Collectives& Collectives::operator=(Collectives&&) noexcept = default;

int Collectives::rank() const noexcept { return static_cast<int>(state_->rank); }
int Collectives::size() const noexcept { return static_cast<int>(state_->size); }

void Collectives::barrier(const Operation& operation) {
  state_->meet(marked(operation, Sort::kBarrier, 0, 0));
}

std::span<const ConstBytes> Collectives::all_gather(const Operation& operation, ConstBytes mine) {
  const ConstBytes copy = state_->stage_copy(mine);
  return state_->gather(marked(operation, Sort::kGather, 0, 0), copy, state_->staged());
}

void Collectives::broadcast(const Operation& operation, int root, std::span<std::byte> data) {
  State& s = *state_;
  const auto from = static_cast<size_t>(root);
  const bool sends = s.rank == from && s.size > 1;
  std::fill(s.send.begin(), s.send.end(), sends ? s.stage_copy(data) : ConstBytes{});
  s.send[s.rank] = {};
  const auto received =
      s.exchange_all(marked(operation, Sort::kBroadcast, data.size(), static_cast<uint64_t>(root)),
                     s.send, sends ? s.staged() : nullptr);
  if (s.rank != from) {
    s.exchange.require_size(from, data.size());
    std::copy(received[from].begin(), received[from].end(), data.begin());
  }
  s.exchange.release();
}

template <class T>
void Collectives::all_reduce(const Operation& operation, Reduction reduction, std::span<T> data,
                             std::shared_ptr<const void> keep_alive) {
  refuse_mean_of_integers<T>(operation, reduction);
  State& s = *state_;
  const Operation reduce = marked(operation, Sort::kReduce, data.size(), arguments<T>(reduction));
  const ConstBytes bytes = std::as_bytes(data);
  if (s.size == 1) return s.meet(reduce);
  if (bytes.size() <= kSmall) {
    const ConstBytes copy = s.stage_copy(bytes);
    const auto received = s.gather(reduce, copy, s.staged());
    s.all_gather.require_size_of_all(bytes.size());
    reduce_ranks<T>(reduction, received, data);
    return s.all_gather.release();
  }
  const OwnedRanges ranges{.count = static_cast<int64_t>(data.size()),
                           .ranks = static_cast<int64_t>(s.size),
                           .grain = line_grain(sizeof(T))};
  const bool in_place = keep_alive != nullptr;
  const ConstBytes source = in_place ? bytes : s.stage_copy(bytes);
  s.prepare();
  s.reduce_scatter.start(reduce, ranges, source, sizeof(T),
                         in_place ? std::move(keep_alive) : s.staged());
  s.reduce_scatter.wait();  // the memory that stage() waits for is then free

  const auto own = static_cast<size_t>(ranges.of(static_cast<int64_t>(s.rank)).count);
  const std::span<T> sum(static_cast<T*>(static_cast<void*>(s.stage(own * sizeof(T)))), own);
  s.reduce_scatter.finish<T>(reduction, sum);
  s.gather(reduce, std::as_bytes(sum), s.staged());
  s.reduce_scatter.reclaim();  // before data is written: nobody reads it any more
  std::byte* const out = std::as_writable_bytes(data).data();
  s.all_gather.for_each_range(ranges, sizeof(T),
                              [&](const OwnedRange& range, const std::byte* reduced) {
                                std::copy_n(reduced, static_cast<size_t>(range.count) * sizeof(T),
                                            out + static_cast<size_t>(range.begin) * sizeof(T));
                              });
  s.all_gather.release();
}

template <class T>
std::span<const T> Collectives::reduce_scatter(const Operation& operation, Reduction reduction,
                                               std::span<const T> data,
                                               std::shared_ptr<const void> keep_alive) {
  refuse_mean_of_integers<T>(operation, reduction);
  State& s = *state_;
  if (data.size() % s.size != 0) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence(data.size(), " elements in \"", operation.name,
                              "\"; a multiple of the ", s.size, " ranks is needed"),
               {.value = static_cast<int64_t>(data.size()), .operation = operation.name});
  }
  const OwnedRanges equal_parts{.count = static_cast<int64_t>(data.size()),
                                .ranks = static_cast<int64_t>(s.size)};
  const bool in_place = keep_alive != nullptr;
  const ConstBytes bytes = std::as_bytes(data);
  const ConstBytes source = in_place ? bytes : s.stage_copy(bytes);
  s.prepare();
  s.reduce_scatter.start(marked(operation, Sort::kScatter, data.size(), arguments<T>(reduction)),
                         equal_parts, source, sizeof(T),
                         in_place ? std::move(keep_alive) : s.staged());
  const std::span<T> out = s.result.resize_as<T>(data.size() / s.size);
  s.reduce_scatter.finish<T>(reduction, out);
  if (in_place) s.reduce_scatter.reclaim();
  return out;
}

std::span<std::byte> Collectives::stage(size_t bytes) { return {state_->stage(bytes), bytes}; }

std::span<const ConstBytes> Collectives::all_to_all(const Operation& operation,
                                                    std::span<const ConstBytes> send) {
  return state_->exchange_all(marked(operation, Sort::kAll, operation.size, 0), send,
                              state_->staged());
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
