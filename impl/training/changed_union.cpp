#include "training/changed_union.h"

#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace shardrec::training {
namespace {

using compute::RowWord;

// A message has for each shard the count of its rows, and a number of 32 bits for each of them, ascending; or
// kAsBits, and the words of all bits, where these are fewer bytes.
constexpr int64_t kAsBits = -1;
constexpr int64_t kMostListed = std::numeric_limits<uint32_t>::max();

// The rest of a replica's message.
class Reader {
 public:
  Reader(comm::ConstBytes message, size_t from, const char* operation)
      : rest_(message), from_(from), operation_(operation) {}

  // Sets the bits of the next shard in these, too.
  void add_to(std::span<RowWord> bits, int64_t shard_rows) {
    const auto count = take<int64_t>();
    if (count == kAsBits) {
      for (RowWord& word : bits) word |= take<RowWord>();
      const int64_t in_last = shard_rows % compute::kRowsOfAWord;
      if (in_last != 0 && bits.back() >> in_last != 0) refuse();
      return;
    }
    if (count < 0) refuse();
    for (int64_t i = 0; i < count; ++i) {
      const auto row = int64_t{take<uint32_t>()};
      if (row >= shard_rows) refuse();
      bits[static_cast<size_t>(row / compute::kRowsOfAWord)] |= compute::bit_of_row(row);
    }
  }
  void finish() const {
    if (!rest_.empty()) refuse();
  }

 private:
  template <class T>
  T take() {
    T value;
    if (rest_.size() < sizeof value) refuse();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  [[noreturn]] void refuse() const {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("replica ", from_, " sent a list of changed rows that is none"),
               {.rank = static_cast<int64_t>(from_), .operation = operation_});
  }

  comm::ConstBytes rest_;
  size_t from_;
  const char* operation_;
};

int64_t count_of(std::span<const RowWord> bits) {
  int64_t count = 0;
  for (const RowWord word : bits) count += std::popcount(word);
  return count;
}

// Calls body(row) for those whose bit is set, ascending.
template <class Body>
void for_each_row(std::span<const RowWord> bits, Body body) {
  for (size_t w = 0; w < bits.size(); ++w) {
    for (RowWord rest = bits[w]; rest != 0; rest &= rest - 1) {
      body(static_cast<int64_t>(w) * compute::kRowsOfAWord + std::countr_zero(rest));
    }
  }
}

template <class T>
void append(std::vector<std::byte>& message, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// Do so many rows, each with its number, take as many bytes as all rows without?
bool is_dense(int64_t count, const embedding::Shard& shard) {
  size_t row_bytes = 0;
  for (const embedding::Sheet& sheet : shard.sheets()) row_bytes += sheet.row_bytes();
  return static_cast<size_t>(count) * (row_bytes + sizeof(int64_t)) >=
         static_cast<size_t>(shard.rows()) * row_bytes;
}

}  // namespace

void ChangedUnion::write(std::span<const RowWord> bits, int64_t shard_rows) {
  const int64_t count = count_of(bits);
  const bool as_bits = shard_rows > kMostListed ||
                       static_cast<size_t>(count) * sizeof(uint32_t) >= bits.size_bytes();
  const int64_t head = as_bits ? kAsBits : count;
  append(message_, std::span<const int64_t>(&head, 1));
  if (as_bits) {
    append(message_, bits);
    return;
  }
  for_each_row(bits, [&](int64_t row) {
    const auto number = static_cast<uint32_t>(row);
    append(message_, std::span<const uint32_t>(&number, 1));
  });
}

void ChangedUnion::gather(embedding::Collection& collection, compute::Backend& backend,
                          comm::Collectives& of_replicas, const comm::Operation& operation) {
  const auto shards = collection.shards();
  embedding::ChangedRows& changed = collection.changed_rows();
  changed.gather(backend);
  message_.clear();
  for (size_t s = 0; s < shards.size(); ++s) {
    if (!changed.of(s).empty()) write(changed.of(s), shards[s].rows());
  }
  const auto messages = of_replicas.all_gather(operation, message_);
  std::vector<Reader> readers;
  for (size_t r = 0; r < messages.size(); ++r) readers.emplace_back(messages[r], r, operation.name);
  rows_.resize(shards.size());
  for (size_t s = 0; s < shards.size(); ++s) {
    if (changed.of(s).empty()) continue;
    bits_.assign(changed.of(s).size(), 0);
    for (Reader& reader : readers) reader.add_to(bits_, shards[s].rows());
    Rows& rows = rows_[s];
    rows.numbers.clear();
    const int64_t count = count_of(bits_);
    rows.whole = count != 0 && is_dense(count, shards[s]);
    if (rows.whole) continue;
    rows.numbers.reserve(static_cast<size_t>(count));
    for_each_row(bits_, [&](int64_t row) { rows.numbers.push_back(row); });
  }
  for (const Reader& reader : readers) reader.finish();
}

}  // namespace shardrec::training
