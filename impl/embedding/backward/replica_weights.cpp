#include "embedding/backward/replica_weights.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/memory.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

// Rows of one transfer that are listed by their numbers.
constexpr int64_t kMostListed = compute::kMostTransferred / sizeof(int64_t);

[[noreturn]] void throw_malformed(int rank) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent malformed weights of the rows that it updates"),
             {.rank = int64_t{rank}, .operation = "backward"});
}

// Words that are moved and never read as numbers.
void copy_words(compute::Backend& backend, std::span<const int64_t> from, int64_t* to) {
  constexpr size_t kWords = sizeof(int64_t) / compute::element_bytes(compute::Element::kFloat32);
  for (size_t first = 0; first < from.size(); first += static_cast<size_t>(kMostListed)) {
    const size_t count = std::min(from.size() - first, static_cast<size_t>(kMostListed));
    const compute::RowTransfer words{
        .from = {from.data() + first, compute::Element::kFloat32, kWords},
        .to = {to + first, compute::Element::kFloat32, kWords},
        .rows = static_cast<int64_t>(count),
        .width = static_cast<int64_t>(kWords)};
    backend.transfer().copy_to_host({&words, 1});
  }
}

}  // namespace

ReplicaWeights::ReplicaWeights(const StepContext& context)
    : context_(context),
      needed_(context.layout.groups().share_states),
      messages_(static_cast<size_t>(context.layout.ranks())),
      heads_(messages_.size()) {
  if (!needed_) return;
  const Layout& layout = context.layout;
  const ShardingGroups& groups = layout.groups();
  received_ = context.bodies.make_received();
  own_ = sources_of(layout.rank());
  for (const Source& own : own_) {
    const auto parts = layout.parts_of(layout.rank());
    own_shards_.push_back(static_cast<size_t>(std::ranges::find(parts, own.part) - parts.begin()));
  }
  for (int group = 0; group < groups.count; ++group) {
    const int rank = groups.rank_of(group, groups.number_of(layout.rank()));
    if (rank != layout.rank()) peers_.push_back({.rank = rank, .sources = sources_of(rank)});
  }
  size_t most = own_.size();
  for (const Peer& peer : peers_) most = std::max(most, peer.sources.size());
  counts_.reserve(most);
}

std::vector<ReplicaWeights::Source> ReplicaWeights::sources_of(int rank) const {
  const Layout& layout = context_.layout;
  std::vector<Source> sources;
  for (const int32_t p : layout.parts_of(rank)) {
    const Part& part = layout.parts()[static_cast<size_t>(p)];
    if (part.use != PartUse::kUpdates) continue;
    const size_t shard = shard_with_weights(layout, context_.shards, part);
    const Part& box = layout.parts()[static_cast<size_t>(context_.shards[shard].part())];
    sources.push_back({.part = p, .shard = shard, .rows_before = part.row - box.row});
  }
  return sources;
}

size_t ReplicaWeights::head_bytes(std::span<const Source> sources, int64_t rows) const {
  return align_up((sources.size() + static_cast<size_t>(rows)) * sizeof(int64_t), 64);
}

std::span<const int64_t> ReplicaWeights::numbers_in_box(const Source& own,
                                                        std::span<const int64_t> rows) {
  numbers_.clear();
  core::reserve_with_slack(numbers_, rows.size());
  numbers_.resize(rows.size());
  copy_words(context_.backend(), rows, numbers_.data());
  for (int64_t& number : numbers_) number += own.rows_before;
  return numbers_;
}

void ReplicaWeights::keep(std::span<const std::span<const int64_t>> rows, const RowChange& change) {
  for (size_t i = 0; i < own_.size(); ++i) {
    change.keep(own_[i].shard, numbers_in_box(own_[i], rows[own_shards_[i]]));
  }
}

template <class TransferOf>
void ReplicaWeights::move(const Source& source, std::span<const int64_t> numbers,
                          TransferOf transfer_of) {
  const Shard& shard = context_.shards[source.shard];
  for (int64_t first = 0; first < std::ssize(numbers); first += kMostListed) {
    compute::RowTransfer moved =
        transfer_of(static_cast<size_t>(first) * shard.row_bytes(), numbers.data() + first);
    moved.from.element = moved.to.element = shard.element();
    moved.from.stride = moved.to.stride = static_cast<size_t>(shard.width());
    moved.rows = std::min(std::ssize(numbers) - first, kMostListed);
    moved.width = shard.width();
    context_.backend().transfer().move_rows({&moved, 1});
  }
}

void ReplicaWeights::move_out(const Source& source, std::span<const int64_t> numbers,
                              std::byte* to) {
  const std::byte* const weights = context_.shards[source.shard].weights();
  move(source, numbers, [&](size_t at, const int64_t* rows) {
    return compute::RowTransfer{.from = {.data = weights, .numbers = rows},
                                .to = {.data = to + at}};
  });
}

void ReplicaWeights::move_in(const Source& source, std::span<const int64_t> numbers,
                             const std::byte* from) {
  std::byte* const weights = context_.shards[source.shard].weights();
  move(source, numbers, [&](size_t at, const int64_t* rows) {
    return compute::RowTransfer{.from = {.data = from + at},
                                .to = {.data = weights, .numbers = rows}};
  });
}

void ReplicaWeights::pack(std::span<const std::span<const int64_t>> rows,
                          comm::MessageBuffer& buffer) {
  counts_.clear();
  int64_t all = 0;
  size_t body = 0;
  for (size_t i = 0; i < own_.size(); ++i) {
    const int64_t count = std::ssize(rows[own_shards_[i]]);
    counts_.push_back(count);
    all += count;
    body += align_up(static_cast<size_t>(count) * row_bytes(own_[i]), 64);
  }
  const size_t head = head_bytes(own_, all);
  std::byte* const message = buffer.resize(head + body);
  std::byte* const host = buffer.host(message);
  std::memset(host, 0, head);
  if (!counts_.empty()) std::memcpy(host, counts_.data(), counts_.size() * sizeof(int64_t));
  auto* numbers = static_cast<int64_t*>(static_cast<void*>(host)) + counts_.size();
  std::byte* at = message + head;
  for (size_t i = 0; i < own_.size(); ++i) {
    const auto count = static_cast<size_t>(counts_[i]);
    const std::span<int64_t> own(numbers, count);
    if (count != 0) std::ranges::copy(numbers_in_box(own_[i], rows[own_shards_[i]]), own.begin());
    move_out(own_[i], own, at);
    context_.changed_rows.add(own_[i].shard, own);
    numbers += count;
    at += align_up(count * row_bytes(own_[i]), 64);
  }
  if (at != message + head) buffer.publish(message + head, at);
  std::ranges::fill(messages_, comm::ConstBytes());
  for (const Peer& peer : peers_) {
    messages_[static_cast<size_t>(peer.rank)] = buffer.host(message, at);
  }
}

void ReplicaWeights::read_head(const Peer& peer, comm::ConstBytes message) {
  const size_t parts = peer.sources.size();
  if (message.size() < parts * sizeof(int64_t)) throw_malformed(peer.rank);
  counts_.resize(parts);
  if (parts != 0) std::memcpy(counts_.data(), message.data(), parts * sizeof(int64_t));
  int64_t all = 0;
  size_t body = 0;
  for (size_t i = 0; i < parts; ++i) {
    if (counts_[i] < 0 || counts_[i] > rows_of(peer.sources[i])) throw_malformed(peer.rank);
    all += counts_[i];
    body += align_up(static_cast<size_t>(counts_[i]) * row_bytes(peer.sources[i]), 64);
  }
  const size_t head = head_bytes(peer.sources, all);
  if (message.size() != head + body) throw_malformed(peer.rank);
  heads_[static_cast<size_t>(peer.rank)] = head;
  const auto* next = static_cast<const int64_t*>(static_cast<const void*>(message.data())) + parts;
  for (size_t i = 0; i < parts; ++i) {
    const int64_t first = peer.sources[i].rows_before;
    int64_t least = first;
    for (int64_t n = 0; n < counts_[i]; ++n, ++next) {
      if (*next < least || *next >= first + rows_of(peer.sources[i])) throw_malformed(peer.rank);
      least = *next + 1;
    }
  }
}

void ReplicaWeights::take(std::span<const comm::ConstBytes> messages) {
  std::ranges::fill(heads_, size_t{0});
  for (const Peer& peer : peers_) read_head(peer, messages[static_cast<size_t>(peer.rank)]);
  const auto bodies = received_->open(messages, heads_);
  const RowChange change(context_.snapshot);
  taken_ = 0;
  for (const Peer& peer : peers_) {
    const comm::ConstBytes message = messages[static_cast<size_t>(peer.rank)];
    const auto* counts = static_cast<const int64_t*>(static_cast<const void*>(message.data()));
    const int64_t* numbers = counts + peer.sources.size();
    const std::byte* at = bodies[static_cast<size_t>(peer.rank)].data();
    for (size_t i = 0; i < peer.sources.size(); ++i) {
      const Source& source = peer.sources[i];
      const auto count = static_cast<size_t>(counts[i]);
      const std::span<const int64_t> rows(numbers, count);
      change.keep(source.shard, rows);
      move_in(source, rows, at);
      context_.changed_rows.add(source.shard, rows);
      taken_ += counts[i];
      numbers += count;
      at += align_up(count * row_bytes(source), 64);
    }
  }
}

}  // namespace shardrec::embedding
