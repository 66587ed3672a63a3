// Marks: which rows have changed, for several readers, while tables of all optimizers are trained, written to,
// averaged and loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/trained.h"
#include "checkpoint/world.h"

namespace shardrec_test {
namespace {

using shardrec::Comm;

// By table: the rows that something has changed on any rank.
using RowSets = std::vector<std::set<int64_t>>;

class Marks : public ::testing::TestWithParam<TrainedWorld> {
 protected:
  // body(trained, comm), on all ranks.
  template <class Body>
  static void on_ranks(const Body& body) {
    shardrec_test::on_ranks(GetParam(), body);
  }

  static void note(RowSets& sets, int table, const std::vector<int64_t>& rows) {
    sets[static_cast<size_t>(table)].insert(rows.begin(), rows.end());
  }

  // A step or a write of all ranks, which `readers` hear of.
  static void change(Trained& trained, int64_t number, std::vector<RowSets*> readers) {
    const bool writes = number % 4 == 3;
    if (writes) {
      trained.write_some(number);
    } else {
      trained.step(number);
    }
    for (RowSets* const sets : readers) {
      for (int rank = 0; rank < GetParam().ranks; ++rank) {
        if (writes) {
          note(*sets, Trained::table_written(number), Trained::rows_written(number, rank));
          continue;
        }
        for (int t = 0; t < kOptimizers; ++t) note(*sets, t, Trained::ids_of(number, rank, t));
      }
    }
  }

  static bool has_replicas() { return GetParam().group != GetParam().ranks; }

  static RowSets all_rows() {
    RowSets rows(kOptimizers);
    for (int t = 0; t < kOptimizers; ++t) {
      for (int64_t row = 0; row < World::rows(t); ++row) rows[static_cast<size_t>(t)].insert(row);
    }
    return rows;
  }

  // Rows of a table that the rank's boxes have.
  static std::set<int64_t> own_rows(Trained& trained, int32_t table) {
    std::set<int64_t> rows;
    auto& collection = trained.collection();
    for (const auto& shard : collection.shards()) {
      if (shard.table() != table) continue;
      const auto& part = collection.layout().parts()[static_cast<size_t>(shard.part())];
      for (int64_t row = 0; row < part.rows; ++row) rows.insert(part.row + row);
    }
    return rows;
  }

  static void expect_noted(Trained& trained, int64_t mark, const RowSets& sets) {
    for (int32_t t = 0; t < kOptimizers; ++t) {
      std::vector<int64_t> expected;
      const std::set<int64_t> own = own_rows(trained, t);
      for (const int64_t row : sets[static_cast<size_t>(t)]) {
        if (own.contains(row)) expected.push_back(row);
      }
      EXPECT_EQ(trained.tables->changed_rows(mark, t), expected) << "table " << t;
    }
  }
};

// Each reader has the rows that have changed since its own mark, and no others.
TEST_P(Marks, HaveTheRowsThatHaveChangedSinceThey) {
  on_ranks([](Trained& trained, Comm&) {
    int64_t number = 0;
    for (; number < 3; ++number) change(trained, number, {});
    trained.tables->sync_replicas();
    RowSets first_rows(kOptimizers), second_rows(kOptimizers);
    const int64_t first = trained.tables->mark();
    expect_noted(trained, first, first_rows);
    for (; number < 9; ++number) change(trained, number, {&first_rows});
    trained.tables->sync_replicas();
    expect_noted(trained, first, first_rows);
    const int64_t second = trained.tables->mark();
    EXPECT_NE(first, second);
    expect_noted(trained, second, second_rows);
    change(trained, number++, {&first_rows, &second_rows});
    trained.tables->sync_replicas();
    expect_noted(trained, second, second_rows);
    expect_noted(trained, first, first_rows);
    trained.tables->release_mark(first);
    for (; number < 15; ++number) change(trained, number, {&second_rows});
    trained.tables->sync_replicas();
    expect_noted(trained, second, second_rows);
    // A table in pieces that are full.
    const std::vector<int64_t> all = trained.tables->changed_rows(second, 0);
    std::vector<int64_t> pieces;
    std::vector<int64_t> piece(2);
    for (int64_t row = 0;;) {
      const int64_t count = trained.tables->changed_rows(second, 0, row, piece);
      pieces.insert(pieces.end(), piece.begin(), piece.begin() + count);
      if (count < std::ssize(piece)) break;
      row = piece.back() + 1;
    }
    EXPECT_EQ(pieces, all);
    EXPECT_EQ(trained.tables->count_changed_rows(second, 0), std::ssize(all));
  });
}

// Gradients that are kept for a later step change nothing before that, and frozen tables nothing at all.
TEST_P(Marks, NoteWhatIsAppliedAndNotWhatIsKept) {
  on_ranks([](Trained& trained, Comm&) {
    RowSets rows(kOptimizers);
    const int64_t mark = trained.tables->mark();
    trained.step(1, SHARDREC_UPDATE_ACCUMULATE);
    expect_noted(trained, mark, rows);
    trained.tables->set_frozen(2, true);
    change(trained, 2, {&rows});
    for (int rank = 0; rank < GetParam().ranks; ++rank) {
      for (int t = 0; t < kOptimizers; ++t) note(rows, t, Trained::ids_of(1, rank, t));
    }
    rows[2].clear();
    trained.tables->sync_replicas();
    expect_noted(trained, mark, rows);
  });
}

// What a load fills may be anything.
TEST_P(Marks, HaveAllRowsAfterALoad) {
  const shardrec::checkpoint::Scratch scratch;
  on_ranks([&](Trained& trained, Comm& comm) {
    shardrec::Checkpoint checkpoint(comm, scratch.path());
    checkpoint.add("tables", *trained.tables);
    checkpoint.commit(1);
    checkpoint.open();
    const int64_t mark = trained.tables->mark();
    expect_noted(trained, mark, RowSets(kOptimizers));
    checkpoint.load();
    expect_noted(trained, mark, all_rows());
  });
}

// Means of a sync in two halves come when it is waited for, also to a mark that was made in between.
TEST_P(Marks, HaveWhatASyncWritesThatWasBegunBefore) {
  on_ranks([](Trained& trained, Comm&) {
    RowSets rows(kOptimizers);
    trained.tables->sync_replicas();
    for (int64_t number = 0; number < 3; ++number) change(trained, number, {&rows});
    trained.tables->sync_begin();
    const int64_t mark = trained.tables->mark();
    expect_noted(trained, mark, RowSets(kOptimizers));
    trained.tables->sync_wait();
    expect_noted(trained, mark, has_replicas() ? rows : RowSets(kOptimizers));
  });
}

// What is filled from another replica may be anything.
TEST_P(Marks, HaveAllRowsAfterAFill) {
  on_ranks([](Trained& trained, Comm&) {
    const int64_t mark = trained.tables->mark();
    trained.tables->replica_fill(0);
    expect_noted(trained, mark, has_replicas() ? all_rows() : RowSets(kOptimizers));
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Marks, ::testing::ValuesIn(trained_worlds()),
                         [](const auto& given) { return given.param.name(); });

TEST(MarksOfACollection, AreRefusedBeyondEightAndWhenUnknown) {
  run(1, [](Comm& comm, int) {
    Trained trained(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    std::vector<int64_t> marks;
    for (int i = 0; i < 8; ++i) marks.push_back(trained.tables->mark());
    const auto status_of = [](const auto& call) {
      try {
        call();
      } catch (const shardrec::Error& error) {
        return error.status();
      }
      return SHARDREC_OK;
    };
    EXPECT_EQ(status_of([&] { trained.tables->mark(); }), SHARDREC_INVALID_STATE);
    trained.tables->release_mark(marks[3]);
    EXPECT_EQ(status_of([&] { trained.tables->release_mark(marks[3]); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { trained.tables->changed_rows(marks[3], 0); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { trained.tables->changed_rows(marks[0], 8); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { trained.tables->count_changed_rows(marks[0], 0, 61); }),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(trained.tables->count_changed_rows(marks[0], 0, 60), 0);
    const int64_t next = trained.tables->mark();
    EXPECT_EQ(std::count(marks.begin(), marks.end(), next), 0);
  });
}

// Memory of marks is counted, and given back.
TEST(MarksOfACollection, TakeABitPerRow) {
  run(1, [](Comm& comm, int) {
    Trained trained(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    const auto buffers = [&] { return trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS); };
    const int64_t first = trained.tables->mark();
    const double with_one = buffers();
    const int64_t second = trained.tables->mark();
    const double with_two = buffers();
    double bits = 0;
    for (int t = 0; t < kOptimizers; ++t) bits += static_cast<double>(World::rows(t));
    EXPECT_GE(with_two - with_one, bits / 8);
    EXPECT_LE(with_two - with_one, bits / 8 + 4096);
    trained.tables->release_mark(second);
    EXPECT_EQ(buffers(), with_one);
    trained.tables->release_mark(first);
  });
}

}  // namespace
}  // namespace shardrec_test
