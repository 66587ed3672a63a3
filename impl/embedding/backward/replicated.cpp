#include "embedding/backward/replicated.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "embedding/exchange/wire.h"

namespace shardrec::embedding {

ReplicatedGradients::ReplicatedGradients(const Layout& layout,
                                         const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())), partial_(memory) {
  if (layout.ranks() == 1) return;
  for (size_t t = 0; t < layout.table_count(); ++t) {
    const auto table = static_cast<int32_t>(t);
    if (layout.table(table).own_ids_only()) tables_.push_back(table);
  }
  sums_.resize(tables_.size());
  rest_.resize(messages_.size());
  pieces_.resize(messages_.size());
  cursors_.reserve(messages_.size());
  addends_.resize(messages_.size());
}

SlotForm ReplicatedGradients::form(size_t n) const {
  return {.bits = layout_.table(tables_[n]).replication == SHARDREC_REPLICATION_DENSE,
          .width = table(n).dim};
}

Slot ReplicatedGradients::slot(size_t n, int rank) const {
  const int64_t rows = table(n).rows;
  const int64_t share = (rows + layout_.ranks() - 1) / layout_.ranks();
  const int64_t each = (share + kSlotGrain - 1) / kSlotGrain * kSlotGrain;
  return {std::min(rank * each, rows), std::min((rank + 1) * each, rows)};
}

// A message: for each table, the touched rows of the receiver's slot.
void ReplicatedGradients::pack(std::span<const RowGradients> own, compute::Buffer& buffer) {
  // [first, last) of own[n].rows.
  const auto rows_in = [&](size_t n, const Slot& slot) {
    const auto& rows = own[n].rows;
    const auto first = std::lower_bound(rows.begin(), rows.end(), slot.begin);
    const auto last = std::lower_bound(first, rows.end(), slot.end);
    return std::pair{first - rows.begin(), last - rows.begin()};
  };
  size_t bytes = 0;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const size_t start = bytes;
    for (size_t n = 0; n < tables_.size(); ++n) {
      const auto [first, last] = rows_in(n, slot(n, rank));
      bytes += slot_bytes(form(n), slot(n, rank), last - first);
    }
    messages_[static_cast<size_t>(rank)] = {static_cast<const std::byte*>(nullptr), bytes - start};
  }
  std::byte* at = buffer.resize(bytes);
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    comm::ConstBytes& message = messages_[static_cast<size_t>(rank)];
    message = {at, message.size()};
    for (size_t n = 0; n < tables_.size(); ++n) {
      const auto [first, last] = rows_in(n, slot(n, rank));
      const auto count = static_cast<size_t>(last - first);
      at = write_slot_rows(form(n), slot(n, rank),
                           own[n].rows.subspan(static_cast<size_t>(first), count), at);
      const size_t values = count * static_cast<size_t>(table(n).dim);
      if (values != 0) {
        std::memcpy(at, own[n].gradients + first * table(n).dim, values * sizeof(float));
      }
      at += align_up(values * sizeof(float), 8);
    }
  }
}

void ReplicatedGradients::walk_pieces(size_t n, const Slot& slot) {
  cursors_.clear();
  for (const SlotRows& piece : pieces_) cursors_.emplace_back(piece, slot, table(n).dim);
}

int64_t ReplicatedGradients::lowest_row() const {
  int64_t lowest = SlotCursor::kEnd;
  for (const SlotCursor& cursor : cursors_) lowest = std::min(lowest, cursor.row());
  return lowest;
}

void ReplicatedGradients::add_pairwise(size_t width, const compute::Kernels& kernels) {
  const size_t ranks = addends_.size();
  const std::span<float> partial = partial_.resize_as<float>(ranks * width);
  // The sum of ranks [r, r + 2 * step) comes to stand at r.
  for (size_t step = 1; step < ranks; step *= 2) {
    for (size_t r = 0; r + step < ranks; r += 2 * step) {
      if (addends_[r + step] == nullptr) continue;
      if (addends_[r] == nullptr) {
        addends_[r] = addends_[r + step];
        continue;
      }
      float* sum = partial.data() + r * width;
      if (addends_[r] != sum) std::copy_n(addends_[r], width, sum);
      kernels.add(addends_[r + step], sum, static_cast<int64_t>(width));
      addends_[r] = sum;
    }
  }
}

void ReplicatedGradients::add_up(std::span<const comm::ConstBytes> messages,
                                 const compute::Kernels& kernels, compute::Buffer& buffer) {
  // The sums of all ranks need no more room than what they sent.
  size_t room = 0;
  for (const comm::ConstBytes message : messages) room += message.size();
  std::copy(messages.begin(), messages.end(), rest_.begin());
  std::byte* const start = buffer.resize(room);
  std::byte* at = start;
  for (size_t n = 0; n < tables_.size(); ++n) {
    const Slot own = slot(n, layout_.rank());
    const auto width = static_cast<size_t>(table(n).dim);
    int64_t most = 0;
    for (size_t r = 0; r < pieces_.size(); ++r) {
      pieces_[r] = read_slot_rows(form(n), own, rest_[r], static_cast<int>(r));
      most += pieces_[r].count;
    }
    touched_.clear();
    core::reserve_with_slack(touched_, static_cast<size_t>(std::min(most, own.rows())));
    walk_pieces(n, own);
    for (int64_t row = lowest_row(); row != SlotCursor::kEnd; row = lowest_row()) {
      touched_.push_back(row);
      for (SlotCursor& cursor : cursors_) {
        if (cursor.row() == row) cursor.next();
      }
    }
    at = write_slot_rows(form(n), own, touched_, at);
    walk_pieces(n, own);
    for (const int64_t row : touched_) {
      for (size_t r = 0; r < cursors_.size(); ++r) {
        const bool has = cursors_[r].row() == row;
        addends_[r] = has ? cursors_[r].gradient() : nullptr;
        if (has) cursors_[r].next();
      }
      add_pairwise(width, kernels);
      std::memcpy(at, addends_[0], width * sizeof(float));
      at += width * sizeof(float);
    }
    at = start + align_up(static_cast<size_t>(at - start), 8);
  }
  expect_nothing_left();
  for (comm::ConstBytes& message : messages_) message = {start, static_cast<size_t>(at - start)};
}

void ReplicatedGradients::take(std::span<const comm::ConstBytes> messages) {
  std::copy(messages.begin(), messages.end(), rest_.begin());
  size_t most = 0;
  for (size_t n = 0; n < tables_.size(); ++n) {
    Sums& sums = sums_[n];
    size_t count = 0;
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      SlotRows& piece = pieces_[static_cast<size_t>(rank)];
      piece = read_slot_rows(form(n), slot(n, rank), rest_[static_cast<size_t>(rank)], rank);
      count += static_cast<size_t>(piece.count);
    }
    sums.rows.clear();
    sums.gradients.clear();
    core::reserve_with_slack(sums.rows, count);
    core::reserve_with_slack(sums.gradients, count);
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      SlotCursor cursor(pieces_[static_cast<size_t>(rank)], slot(n, rank), table(n).dim);
      for (; cursor.row() != SlotCursor::kEnd; cursor.next()) {
        sums.rows.push_back(cursor.row());
        sums.gradients.push_back(cursor.gradient());
      }
    }
    most = std::max(most, count);
  }
  expect_nothing_left();
  if (run_.size() < most + 1) {
    run_.resize(most + most / 16 + 17);
    bags_.resize(run_.size());
    blocks_.resize(run_.size());
    std::iota(run_.begin(), run_.end(), 0);
    std::iota(bags_.begin(), bags_.end(), 0U);
  }
}

void ReplicatedGradients::expect_nothing_left() const {
  for (size_t r = 0; r < rest_.size(); ++r) {
    if (!rest_[r].empty()) throw_malformed_slot(static_cast<int>(r));
  }
}

void ReplicatedGradients::describe(size_t n, compute::RowUpdate& job) const {
  job.rows = sums_[n].rows.data();
  job.run = run_.data();
  job.bags = bags_.data();
  job.weights = nullptr;
  job.gradients = sums_[n].gradients.data();
  job.blocks = blocks_.data();
  job.block_start = compute::RowUpdate::kUnchanged;
}

}  // namespace shardrec::embedding
