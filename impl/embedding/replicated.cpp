#include "embedding/replicated.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "embedding/wire.h"

namespace shardrec::embedding {
namespace {

// Slots start at multiples of a word of bits.
constexpr int64_t kWord = 64;

constexpr uint32_t kUntouched = UINT32_MAX;

size_t words_of(int64_t rows) { return static_cast<size_t>((rows + kWord - 1) / kWord); }

[[noreturn]] void throw_cut_off(int rank) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent gradients of replicated tables that are cut off"),
             {.rank = int64_t{rank}, .operation = "backward"});
}

}  // namespace

ReplicatedGradients::ReplicatedGradients(const Layout& layout)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  for (size_t t = 0; t < layout.table_count(); ++t) {
    const auto table = static_cast<int32_t>(t);
    if (layout.table(table).own_ids_only()) tables_.push_back(table);
  }
  sums_.resize(tables_.size());
  rest_.resize(static_cast<size_t>(layout.ranks()));
}

ReplicatedGradients::Slot ReplicatedGradients::slot(size_t n, int rank) const {
  const int64_t rows = table(n).rows;
  const int64_t each =
      static_cast<int64_t>(words_of((rows + layout_.ranks() - 1) / layout_.ranks())) * kWord;
  return {std::min(rank * each, rows), std::min((rank + 1) * each, rows)};
}

size_t ReplicatedGradients::index_bytes(size_t n, Slot slot, int64_t count) const {
  return layout_.table(tables_[n]).replication == SHARDREC_REPLICATION_DENSE
             ? words_of(slot.end - slot.begin) * sizeof(uint64_t)
             : align_up(static_cast<size_t>(count) * sizeof(uint32_t), 8);
}

// A message: for each table, the number of touched rows of the receiver's slot, which they are, and
// their gradients.
void ReplicatedGradients::pack(std::span<const RowGradients> own, core::Scratch& buffer) {
  const auto rows_in = [&](size_t n, Slot slot) {
    const auto& rows = own[n].rows;
    const auto first = std::lower_bound(rows.begin(), rows.end(), slot.begin);
    const auto last = std::lower_bound(first, rows.end(), slot.end);
    return std::pair{first - rows.begin(), last - rows.begin()};
  };
  size_t bytes = 0;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const size_t start = bytes;
    for (size_t n = 0; n < tables_.size(); ++n) {
      const Slot to = slot(n, rank);
      const auto [first, last] = rows_in(n, to);
      bytes += sizeof(uint64_t) + index_bytes(n, to, last - first) +
               align_up(static_cast<size_t>((last - first) * table(n).dim) * sizeof(float), 8);
    }
    messages_[static_cast<size_t>(rank)] = {static_cast<const std::byte*>(nullptr), bytes - start};
  }
  std::byte* at = buffer.resize(bytes);
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    comm::ConstBytes& message = messages_[static_cast<size_t>(rank)];
    message = {at, message.size()};
    for (size_t n = 0; n < tables_.size(); ++n) {
      const Slot to = slot(n, rank);
      const auto [first, last] = rows_in(n, to);
      const auto count = static_cast<uint64_t>(last - first);
      std::memcpy(at, &count, sizeof count);
      at += sizeof count;
      const size_t index = index_bytes(n, to, last - first);
      std::memset(at, 0, index);
      for (auto u = first; u < last; ++u) {
        const int64_t row = own[n].rows[static_cast<size_t>(u)] - to.begin;
        if (layout_.table(tables_[n]).replication == SHARDREC_REPLICATION_DENSE) {
          static_cast<uint64_t*>(static_cast<void*>(at))[row / kWord] |= uint64_t{1}
                                                                         << (row % kWord);
        } else {
          static_cast<uint32_t*>(static_cast<void*>(at))[u - first] = static_cast<uint32_t>(row);
        }
      }
      at += index;
      const size_t values = static_cast<size_t>(last - first) * static_cast<size_t>(table(n).dim);
      if (values != 0) {
        std::memcpy(at, own[n].gradients + first * table(n).dim, values * sizeof(float));
      }
      at += align_up(values * sizeof(float), 8);
    }
  }
}

ReplicatedGradients::Piece ReplicatedGradients::read(size_t n, Slot slot, comm::ConstBytes& rest,
                                                     int rank) const {
  Piece piece;
  const auto take = [&](size_t bytes) {
    if (rest.size() < bytes) throw_cut_off(rank);
    const void* data = rest.data();
    rest = rest.subspan(bytes);
    return data;
  };
  std::memcpy(&piece.count, take(sizeof(uint64_t)), sizeof piece.count);
  const int64_t rows = slot.end - slot.begin;
  if (piece.count < 0 || piece.count > rows) throw_cut_off(rank);
  const void* index = take(index_bytes(n, slot, piece.count));
  if (layout_.table(tables_[n]).replication == SHARDREC_REPLICATION_DENSE) {
    piece.bits = static_cast<const uint64_t*>(index);
    int64_t set = 0;
    for (size_t w = 0; w < words_of(rows); ++w) set += std::popcount(piece.bits[w]);
    const bool tail = rows % kWord != 0 && piece.bits[words_of(rows) - 1] >> (rows % kWord) != 0;
    if (set != piece.count || tail) throw_cut_off(rank);
  } else {
    piece.list = static_cast<const uint32_t*>(index);
    for (int64_t i = 0; i < piece.count; ++i) {
      const bool rising = i == 0 || piece.list[i - 1] < piece.list[i];
      if (!rising || int64_t{piece.list[i]} >= rows) throw_cut_off(rank);
    }
  }
  piece.gradients = static_cast<const float*>(
      take(align_up(static_cast<size_t>(piece.count * table(n).dim) * sizeof(float), 8)));
  return piece;
}

template <class Visit>
void ReplicatedGradients::for_each_row(size_t n, Slot slot, const Piece& piece, Visit visit) const {
  const float* gradient = piece.gradients;
  const int64_t width = table(n).dim;
  if (piece.list != nullptr) {
    for (int64_t i = 0; i < piece.count; ++i, gradient += width) visit(piece.list[i], gradient);
    return;
  }
  for (size_t w = 0; w < words_of(slot.end - slot.begin); ++w) {
    for (uint64_t bits = piece.bits[w]; bits != 0; bits &= bits - 1, gradient += width) {
      visit(static_cast<uint32_t>(w * kWord) + static_cast<uint32_t>(std::countr_zero(bits)),
            gradient);
    }
  }
}

void ReplicatedGradients::add_up(std::span<const comm::ConstBytes> messages,
                                 const compute::Kernels& kernels, core::Scratch& buffer) {
  const auto ranks = static_cast<size_t>(layout_.ranks());
  // The sums of all ranks need no more room than what they sent.
  size_t room = 0;
  int64_t widest = 0;
  for (const comm::ConstBytes message : messages) room += message.size();
  for (size_t n = 0; n < tables_.size(); ++n) widest = std::max(widest, table(n).dim);
  std::copy(messages.begin(), messages.end(), rest_.begin());
  std::byte* const start = buffer.resize(room);
  std::byte* at = start;
  const std::span<float> partial = partial_.resize_as<float>(ranks * static_cast<size_t>(widest));
  for (size_t n = 0; n < tables_.size(); ++n) {
    const Slot own = slot(n, layout_.rank());
    const auto slot_rows = static_cast<size_t>(own.end - own.begin);
    const auto width = static_cast<size_t>(table(n).dim);
    core::reserve_with_slack(place_, slot_rows);
    place_.assign(slot_rows, kUntouched);
    size_t most = 0;
    for (size_t r = 0; r < ranks; ++r) {
      uint64_t count = 0;
      if (rest_[r].size() < sizeof count) throw_cut_off(static_cast<int>(r));
      std::memcpy(&count, rest_[r].data(), sizeof count);
      most += std::min<size_t>(count, slot_rows);
    }
    core::reserve_with_slack(addends_, most * ranks);
    addends_.clear();
    touched_.clear();
    core::reserve_with_slack(touched_, std::min(most, slot_rows));
    for (size_t r = 0; r < ranks; ++r) {
      const Piece piece = read(n, own, rest_[r], static_cast<int>(r));
      for_each_row(n, own, piece, [&](uint32_t row, const float* gradient) {
        uint32_t& place = place_[row];
        if (place == kUntouched) {
          place = static_cast<uint32_t>(touched_.size());
          touched_.push_back(row);
          addends_.resize(addends_.size() + ranks, nullptr);
        }
        addends_[place * ranks + r] = gradient;
      });
    }
    std::sort(touched_.begin(), touched_.end());

    const uint64_t count = touched_.size();
    std::memcpy(at, &count, sizeof count);
    at += sizeof count;
    const size_t index = index_bytes(n, own, static_cast<int64_t>(count));
    std::memset(at, 0, index);
    for (size_t u = 0; u < touched_.size(); ++u) {
      if (layout_.table(tables_[n]).replication == SHARDREC_REPLICATION_DENSE) {
        static_cast<uint64_t*>(static_cast<void*>(at))[touched_[u] / kWord] |=
            uint64_t{1} << (touched_[u] % kWord);
      } else {
        static_cast<uint32_t*>(static_cast<void*>(at))[u] = touched_[u];
      }
    }
    at += index;
    for (const uint32_t row : touched_) {
      const float** addend = addends_.data() + place_[row] * ranks;
      // Pairwise: the sum of ranks [r, r + 2 * step) comes to stand at r.
      for (size_t step = 1; step < ranks; step *= 2) {
        for (size_t r = 0; r + step < ranks; r += 2 * step) {
          if (addend[r + step] == nullptr) continue;
          if (addend[r] == nullptr) {
            addend[r] = addend[r + step];
            continue;
          }
          float* sum = partial.data() + r * width;
          if (addend[r] != sum) std::copy_n(addend[r], width, sum);
          kernels.add(addend[r + step], sum, static_cast<int64_t>(width));
          addend[r] = sum;
        }
      }
      std::memcpy(at, addend[0], width * sizeof(float));
      at += width * sizeof(float);
    }
    at = start + align_up(static_cast<size_t>(at - start), 8);
  }
  for (comm::ConstBytes& message : messages_) message = {start, static_cast<size_t>(at - start)};
}

void ReplicatedGradients::take(std::span<const comm::ConstBytes> messages) {
  std::copy(messages.begin(), messages.end(), rest_.begin());
  size_t most = 0;
  for (size_t n = 0; n < tables_.size(); ++n) {
    Sums& sums = sums_[n];
    size_t count = 0;
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      comm::ConstBytes rest = rest_[static_cast<size_t>(rank)];
      count += static_cast<size_t>(read(n, slot(n, rank), rest, rank).count);
    }
    core::reserve_with_slack(sums.rows, count);
    core::reserve_with_slack(sums.gradients, count);
    sums.rows.clear();
    sums.gradients.clear();
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const Slot of = slot(n, rank);
      const Piece piece = read(n, of, rest_[static_cast<size_t>(rank)], rank);
      for_each_row(n, of, piece, [&](uint32_t row, const float* gradient) {
        sums.rows.push_back(of.begin + row);
        sums.gradients.push_back(gradient);
      });
    }
    most = std::max(most, count);
  }
  if (run_.size() < most + 1) {
    run_.resize(most + most / 16 + 17);
    bags_.resize(run_.size());
    blocks_.resize(run_.size());
    std::iota(run_.begin(), run_.end(), 0);
    std::iota(bags_.begin(), bags_.end(), 0U);
  }
}

void ReplicatedGradients::describe(size_t n, compute::RowUpdate& job) const {
  job.rows = sums_[n].rows.data();
  job.run = run_.data();
  job.bags = bags_.data();
  job.weights = nullptr;
  job.gradients = sums_[n].gradients.data();
  job.blocks = blocks_.data();
}

size_t ReplicatedGradients::memory() const {
  size_t bytes = run_.capacity() * sizeof(int64_t) +
                 (bags_.capacity() + blocks_.capacity() + place_.capacity() + touched_.capacity()) *
                     sizeof(uint32_t) +
                 addends_.capacity() * sizeof(float*) + partial_.capacity();
  for (const Sums& sums : sums_) {
    bytes += sums.rows.capacity() * (sizeof(int64_t) + sizeof(float*));
  }
  return bytes;
}

}  // namespace shardrec::embedding
