#include "training/changed_union.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace shardrec::training {
namespace {

using compute::RowWord;

// Words that replicas tell each other of at once.
constexpr size_t kPieceWords = (size_t{256} << 10) / sizeof(RowWord);

// A message is the number of each row of the piece that has changed, ascending, as words of 32 bits; or all words of the
// piece's bits where these are not more bytes: a list is always shorter than they are.
comm::ConstBytes write_message(std::span<const RowWord> words, compute::Buffer& memory) {
  const auto count = static_cast<size_t>(compute::count_row_bits(words));
  if (count >= words.size()) {
    const auto copy = memory.resize_as<RowWord>(words.size());
    std::copy(words.begin(), words.end(), copy.begin());
    return std::as_bytes(copy);
  }
  const auto numbers = memory.resize_as<uint32_t>(count);
  size_t written = 0;
  for (int64_t from = 0; written < count; ++written) {
    int64_t row = 0;
    compute::list_row_bits(words, from, {&row, 1});
    numbers[written] = static_cast<uint32_t>(row);
    from = row + 1;
  }
  return std::as_bytes(numbers);
}

// Sets the bits of a message, too. False: it is none.
bool add_message(comm::ConstBytes message, std::span<RowWord> words) {
  const size_t count = message.size() / sizeof(uint32_t);
  if (message.size() % sizeof(uint32_t) != 0 || count > words.size()) return false;
  const bool as_bits = count == words.size();
  for (size_t i = 0; i < count; ++i) {
    uint32_t value = 0;
    std::memcpy(&value, message.data() + i * sizeof value, sizeof value);
    if (as_bits) {
      words[i] |= value;
      continue;
    }
    const size_t word = value / size_t{compute::kRowsOfAWord};
    if (word >= words.size()) return false;
    words[word] |= compute::bit_of_row(value);
  }
  return true;
}

bool averages_changed_alone(embedding::Collection& collection) {
  return collection.options().replica_sync == SHARDREC_REPLICA_SYNC_TOUCHED;
}

[[noreturn]] void refuse(size_t from, const char* operation) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("replica ", from, " sent a list of changed rows that is none"),
             {.rank = static_cast<int64_t>(from), .operation = operation});
}

}  // namespace

ChangedUnion::ChangedUnion(compute::BookedBytes booked)
    : message_(compute::book(compute::cpu_memory(), std::move(booked))) {}

void ChangedUnion::gather(embedding::Collection& collection, compute::Backend& backend,
                          comm::Collectives& of_replicas, const comm::Operation& operation) {
  if (!averages_changed_alone(collection)) return;
  embedding::ChangedRows& changed = collection.changed_rows();
  changed.gather(backend);
  const std::span<RowWord> words = changed.words();
  int64_t sent = 0;
  for (size_t first = 0; first < words.size(); first += kPieceWords) {
    sent += exchange(words.subspan(first, std::min(kPieceWords, words.size() - first)), of_replicas,
                     operation);
  }
  collection.counters().bytes_sync.fetch_add(sent, std::memory_order_relaxed);
  const auto shards = collection.shards();
  if (!changed.within_shards(shards)) {
    core::fail(SHARDREC_CORRUPT_DATA, "a replica sent changed rows that no box has",
               {.operation = operation.name});
  }
  counts_.resize(shards.size());
  for (size_t s = 0; s < shards.size(); ++s) counts_[s] = compute::count_row_bits(changed.of(s));
}

int64_t ChangedUnion::averaged_rows(embedding::Collection& collection, size_t shard) const {
  const embedding::Shard& own = collection.shards()[shard];
  if (collection.layout().table(own.table()).replicated) return 0;
  return averages_changed_alone(collection) ? counts_[shard] : own.rows();
}

int64_t ChangedUnion::exchange(std::span<RowWord> words, comm::Collectives& of_replicas,
                               const comm::Operation& operation) {
  const comm::ConstBytes message = write_message(words, message_);
  const auto messages = of_replicas.all_gather(operation, message);
  for (size_t r = 0; r < messages.size(); ++r) {
    if (!add_message(messages[r], words)) refuse(r, operation.name);
  }
  return static_cast<int64_t>(message.size()) * (of_replicas.size() - 1);
}

}  // namespace shardrec::training
