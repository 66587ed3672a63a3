#include "training/replica_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/agree.h"
#include "core/error.h"
#include "embedding/tables/stored_pieces.h"
#include "plan/model/optimizer_step.h"
#include "training/row_hashes.h"

namespace shardrec::training {
namespace {

using embedding::StoredPiece;

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// A row that is not the same on all ranks, as ranks tell each other of it.
struct Difference {
  int64_t row = kNone;  // of the table
  int64_t rank = 0;     // the lowest whose row is another one than the first rank's of its group
  int64_t first = 0;    // that rank
  int64_t part = 0;     // shardrec_table_part
};

// The hashes of all ranks of a group, as many of each.
class GatheredHashes {
 public:
  // Each rank brings the number that it has among all ranks. Valid until the group's next collective.
  GatheredHashes(comm::Collectives& group, const comm::Operation& operation, int rank,
                 std::vector<uint64_t> hashes) {
    hashes.push_back(static_cast<uint64_t>(rank));
    messages_ = group.all_gather(operation, std::as_bytes(std::span(hashes)));
    count_ = hashes.size() - 1;
    for (size_t r = 0; r < messages_.size(); ++r) {
      if (messages_[r].size() == hashes.size() * sizeof(uint64_t)) continue;
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", r, " of a replica group sent ", messages_[r].size(),
                                " bytes of hashes; it has ", hashes.size() * sizeof(uint64_t)),
                 {.rank = static_cast<int64_t>(r), .operation = operation.name});
    }
  }

  size_t count() const { return count_; }
  // The first rank of the group whose hash is another one than that of its rank 0.
  std::optional<size_t> differing(size_t hash) const {
    for (size_t r = 1; r < messages_.size(); ++r) {
      if (at(r, hash) != at(0, hash)) return r;
    }
    return std::nullopt;
  }
  std::optional<size_t> first_differing() const {
    for (size_t h = 0; h < count_; ++h) {
      if (differing(h)) return h;
    }
    return std::nullopt;
  }
  // Number of a rank of the group among all ranks.
  int64_t rank(size_t of_group) const { return static_cast<int64_t>(at(of_group, count_)); }

 private:
  uint64_t at(size_t rank, size_t hash) const {
    uint64_t value = 0;
    std::memcpy(&value, messages_[rank].data() + hash * sizeof value, sizeof value);
    return value;
  }

  std::span<const comm::ConstBytes> messages_;
  size_t count_ = 0;
};

class Check {
 public:
  Check(embedding::Collection& collection, const ComparedRanks& ranks,
        const comm::Operation& operation)
      : collection_(collection),
        ranks_(ranks),
        operation_(operation),
        hashes_(collection),
        pieces_(embedding::stored_pieces(collection.layout(), collection.shards(),
                                         embedding::PieceUse::kCompare)),
        differs_(pieces_.size()) {}

  void run() {
    if (ranks_.replicas != nullptr) compare_pieces(false, *ranks_.replicas);
    compare_pieces(true, ranks_.all);
    const int64_t table = first_of_all(first_table());
    if (table == kNone) return;
    const auto tables = static_cast<int64_t>(collection_.model().tables.size());
    if (table >= tables) refuse_note();
    const Difference found = first_of_all(first_difference(table));
    if (found.row != kNone && !exists(static_cast<int32_t>(table), found)) refuse_note();
    refuse(static_cast<int32_t>(table), found);
  }

 private:
  bool replicated(const StoredPiece& piece) const {
    return collection_.layout().table(piece.table).replicated;
  }

  // Which pieces differ among the ranks of the group that has copies of them.
  void compare_pieces(bool of_replicated, comm::Collectives& group) {
    std::vector<size_t> compared;
    std::vector<uint64_t> hashes;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (replicated(pieces_[p]) != of_replicated) continue;
      compared.push_back(p);
      hashes.push_back(hashes_.of_piece(pieces_[p]));
    }
    const GatheredHashes gathered(group, operation_, ranks_.all.rank(), std::move(hashes));
    for (size_t i = 0; i < compared.size(); ++i) {
      differs_[compared[i]] = gathered.differing(i).has_value() ? 1 : 0;
    }
  }

  int64_t first_table() const {
    int64_t table = kNone;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (differs_[p] != 0) table = std::min<int64_t>(table, pieces_[p].table);
    }
    return table;
  }

  // Of the pieces of a table. The ranks of a group ask for the same.
  Difference first_difference(int64_t table) {
    Difference first;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const StoredPiece& piece = pieces_[p];
      if (piece.table != table || differs_[p] == 0) continue;
      const Difference found = difference_of(piece);
      if (found.row < first.row) first = found;
    }
    return first;
  }

  Difference difference_of(const StoredPiece& piece) {
    comm::Collectives& group = replicated(piece) ? ranks_.all : *ranks_.replicas;
    const auto gather = [&](std::vector<uint64_t> hashes) {
      return GatheredHashes(group, operation_, ranks_.all.rank(), std::move(hashes));
    };
    const auto block = gather(hashes_.of_blocks(piece)).first_differing();
    if (!block) return {};
    const int64_t begin = static_cast<int64_t>(*block) * RowHashes::block_rows(piece);
    const int64_t rows = std::min(RowHashes::block_rows(piece), piece.cells.rows - begin);
    const GatheredHashes of_rows = gather(hashes_.of_rows(piece, begin, rows));
    const auto row = of_rows.first_differing();
    if (!row) return {};
    return {.row = piece.cells.row + begin + static_cast<int64_t>(*row),
            .rank = of_rows.rank(*of_rows.differing(*row)),
            .first = of_rows.rank(0),
            .part = int64_t{piece.part}};
  }

  // The least of all ranks.
  int64_t first_of_all(int64_t table) { return first_of_all(Difference{.row = table}).row; }
  Difference first_of_all(const Difference& own) {
    Difference first;
    for (const comm::ConstBytes told :
         ranks_.all.all_gather(operation_, std::as_bytes(std::span(&own, 1)))) {
      Difference each;
      if (told.size() != sizeof each) refuse_note();
      std::memcpy(&each, told.data(), sizeof each);
      if (each.row < 0) refuse_note();
      if (each.row < first.row) first = each;
    }
    return first;
  }

  // May a rank have found this of a table?
  bool exists(int32_t table, const Difference& found) const {
    const plan::Model& model = collection_.model();
    const auto states =
        static_cast<int64_t>(plan::states_of(model.optimizer_of(table).kind).size());
    const auto is_rank = [&](int64_t rank) { return rank >= 0 && rank < ranks_.all.size(); };
    const bool is_part =
        found.part == SHARDREC_TABLE_WEIGHTS ||
        (found.part >= SHARDREC_TABLE_STATE && found.part - SHARDREC_TABLE_STATE < states);
    return is_part && found.row < model.tables[static_cast<size_t>(table)].rows &&
           is_rank(found.rank) && is_rank(found.first);
  }

  [[noreturn]] void refuse_note() const {
    core::fail(SHARDREC_CORRUPT_DATA, "a rank sent a malformed note of rows that differ",
               {.operation = operation_.name});
  }

  [[noreturn]] void refuse(int32_t table, const Difference& found) const {
    const plan::Model& model = collection_.model();
    const std::string& name = model.tables[static_cast<size_t>(table)].name;
    if (found.row == kNone) {
      core::fail(
          SHARDREC_INTERNAL,
          core::sentence("the copies of table \"", name, "\" differ, but none of their rows does"),
          {.table = name, .operation = operation_.name});
    }
    std::string part = "weights";
    if (found.part != SHARDREC_TABLE_WEIGHTS) {
      const auto states = plan::states_of(model.optimizer_of(table).kind);
      part = core::sentence(
          "state \"", states[static_cast<size_t>(found.part - SHARDREC_TABLE_STATE)].name, "\"");
    }
    throw comm::AgreedError(
        SHARDREC_DISAGREEMENT,
        core::sentence("the copies of table \"", name, "\" are not equal: row ", found.row,
                       " of its ", part, " is another one on rank ", found.rank, " than on rank ",
                       found.first),
        {.rank = found.rank, .position = found.row, .table = name, .operation = operation_.name});
  }

  embedding::Collection& collection_;
  const ComparedRanks& ranks_;
  const comm::Operation& operation_;
  RowHashes hashes_;
  std::vector<StoredPiece> pieces_;
  std::vector<uint8_t> differs_;  // by piece: among the ranks that have copies of it
};

}  // namespace

void check_equal(embedding::Collection& collection, const ComparedRanks& ranks,
                 const comm::Operation& operation) {
  Check(collection, ranks, operation).run();
}

}  // namespace shardrec::training
