// Tables as they were, read while they are trained and written to: copy on write.
#include "embedding/tables/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/trained.h"
#include "embedding/tables/stored_pieces.h"

namespace shardrec_test {
namespace {

namespace embedding = shardrec::embedding;
using shardrec::Comm;

using Bytes = std::vector<std::byte>;

std::vector<embedding::StoredPiece> pieces_of(embedding::Collection& collection) {
  return embedding::stored_pieces(collection.layout(), collection.shards(),
                                  embedding::PieceUse::kSave);
}

size_t row_bytes(const embedding::StoredPiece& piece) {
  return static_cast<size_t>(piece.row_width()) * shardrec::compute::element_bytes(piece.element);
}

// What the pieces hold now, rows side by side.
std::vector<Bytes> bytes_of(embedding::Collection& collection) {
  std::vector<Bytes> all;
  for (const embedding::StoredPiece& piece : pieces_of(collection)) {
    const size_t bytes = row_bytes(piece);
    Bytes& own = all.emplace_back(static_cast<size_t>(piece.cells.rows) * bytes);
    for (int64_t row = 0; row < piece.cells.rows; ++row) {
      const shardrec::compute::RowTransfer transfer{
          .from = {piece.at_row(row), piece.element, piece.stride},
          .to = {own.data() + static_cast<size_t>(row) * bytes, piece.element,
                 static_cast<size_t>(piece.row_width())},
          .rows = 1,
          .width = piece.row_width()};
      collection.backend().transfer().copy_to_host({&transfer, 1});
    }
  }
  return all;
}

// Reads a snapshot in parts of a size by chance.
class Reader {
 public:
  Reader(embedding::Collection& collection, embedding::Snapshot& snapshot, uint32_t seed)
      : pieces_(pieces_of(collection)), snapshot_(snapshot), random_(seed) {}

  // False: all has been read.
  bool read_some() {
    if (got.size() == pieces_.size() && row_ == 0) return false;
    const size_t number = row_ == 0 ? got.size() : got.size() - 1;
    const embedding::StoredPiece& piece = pieces_[number];
    const size_t bytes = row_bytes(piece);
    if (row_ == 0) got.emplace_back(static_cast<size_t>(piece.cells.rows) * bytes);
    const int64_t rows = std::min<int64_t>(1 + random_() % 40, piece.cells.rows - row_);
    snapshot_.read(number, row_, rows, got.back().data() + static_cast<size_t>(row_) * bytes);
    row_ = row_ + rows == piece.cells.rows ? 0 : row_ + rows;
    return true;
  }

  std::vector<Bytes> got;

 private:
  std::vector<embedding::StoredPiece> pieces_;
  embedding::Snapshot& snapshot_;
  std::mt19937 random_;
  int64_t row_ = 0;  // of the piece that was begun
};

void expect_same(const std::vector<Bytes>& got, const std::vector<Bytes>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t p = 0; p < got.size(); ++p) EXPECT_TRUE(got[p] == expected[p]) << "piece " << p;
}

struct Given {
  int ranks;
  int group;  // others than ranks: on a mesh
  shardrec_sharding sharding;
  shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES;
};

std::vector<Given> all_given() {
  std::vector<Given> all;
  for (const int ranks : {1, 2, 3, 4}) {
    for (int kind = SHARDREC_SHARDING_TABLE_WISE; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
      all.push_back({ranks, ranks, static_cast<shardrec_sharding>(kind)});
    }
  }
  for (const shardrec_replication way : {SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE}) {
    all.push_back({3, 3, SHARDREC_SHARDING_DATA_PARALLEL, way});
  }
  all.push_back({4, 2, SHARDREC_SHARDING_COLUMN_WISE});
  all.push_back({2, 1, SHARDREC_SHARDING_ROW_WISE});
  return all;
}

class Snapshots : public ::testing::TestWithParam<Given> {
 protected:
  // body(trained, rank), on all ranks.
  template <class Body>
  static void on_ranks(const Body& body) {
    const Given& given = GetParam();
    run(given.ranks, [&](Comm& comm, int rank) {
      std::optional<shardrec::Mesh> mesh;
      if (given.group != given.ranks) mesh.emplace(comm, given.group);
      Trained trained(comm, mesh ? &*mesh : nullptr, given.sharding, given.group,
                      given.replication);
      for (int64_t i = 0; i < 3; ++i) trained.step(i);
      body(trained, rank);
    });
  }
};

TEST_P(Snapshots, HoldTheBitsOfTheirMomentWhateverChangesBetweenReads) {
  on_ranks([&](Trained& trained, int rank) {
    embedding::Collection& collection = trained.collection();
    const std::vector<Bytes> expected = bytes_of(collection);
    const auto snapshot = collection.take_snapshot();
    Reader reader(collection, *snapshot, static_cast<uint32_t>(rank));
    std::mt19937 actions(7);  // the same on all ranks
    for (int64_t i = 3; i < 40; ++i) {
      switch (actions() % 5) {
        case 0:
          trained.write_some(i);
          break;
        case 1:
          trained.step(i, SHARDREC_UPDATE_ACCUMULATE);
          trained.step(i + 1);
          break;
        case 2:
          trained.tables->sync_replicas();
          break;
        default:
          trained.step(i);
      }
      for (int parts = 0; parts < 3; ++parts) reader.read_some();
    }
    while (reader.read_some()) {
    }
    expect_same(reader.got, expected);
    if (!expected.empty()) {
      EXPECT_TRUE(bytes_of(collection) != expected) << "nothing has changed";
    }
    snapshot->end();
    EXPECT_EQ(collection.snapshot().current(), nullptr);
    trained.step(41);
  });
}

TEST_P(Snapshots, HoldTheBitsFromBeforeReplicasAreSyncedInPassingOrFilled) {
  on_ranks([&](Trained& trained, int rank) {
    embedding::Collection& collection = trained.collection();
    for (const bool filled : {false, true}) {
      trained.step(3);
      if (!filled) trained.tables->sync_begin();
      const std::vector<Bytes> expected = bytes_of(collection);
      const auto snapshot = collection.take_snapshot();
      if (filled) {
        trained.tables->replica_fill(0);
      } else {
        trained.tables->sync_wait();
      }
      Reader reader(collection, *snapshot, static_cast<uint32_t>(rank));
      while (reader.read_some()) {
      }
      expect_same(reader.got, expected);
      snapshot->end();
    }
  });
}

TEST_P(Snapshots, AreReadByAThreadWhileStepsGoOn) {
  on_ranks([&](Trained& trained, int rank) {
    embedding::Collection& collection = trained.collection();
    const std::vector<Bytes> expected = bytes_of(collection);
    const auto snapshot = collection.take_snapshot();
    Reader reader(collection, *snapshot, static_cast<uint32_t>(rank));
    std::thread thread([&] {
      while (reader.read_some()) std::this_thread::yield();
    });
    for (int64_t i = 3; i < 9; ++i) {
      trained.step(i);
      trained.write_some(i);
    }
    thread.join();
    expect_same(reader.got, expected);
    snapshot->end();
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Snapshots, ::testing::ValuesIn(all_given()), [](const auto& given) {
  return std::to_string(given.param.ranks) + "in" + std::to_string(given.param.group) + "Kind" +
         std::to_string(given.param.sharding) + "Way" + std::to_string(given.param.replication);
});

TEST(Snapshot, FreesItsCopiesWhenTheReaderHasPassed) {
  run(1, [&](Comm& comm, int) {
    Trained trained(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    embedding::Collection& collection = trained.collection();
    if (!collection.backend().host_reaches_memory()) GTEST_SKIP() << "is copied as a whole";
    const auto buffers = [&] { return trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS); };
    for (int64_t i = 0; i < 20; ++i) trained.step(i);
    const double before = buffers();
    const auto snapshot = collection.take_snapshot();
    trained.step(0);
    const double kept = buffers();
    EXPECT_GT(kept, before);
    trained.step(0);  // the same rows
    EXPECT_EQ(buffers(), kept);
    Reader reader(collection, *snapshot, 0);
    while (reader.read_some()) {
    }
    EXPECT_EQ(buffers(), before);
    trained.step(1);
    EXPECT_EQ(buffers(), before);
  });
}

// Of a delta: rows that are not in it change without a copy.
TEST(Snapshot, OfListedRowsKeepsNoOthers) {
  run(1, [&](Comm& comm, int) {
    Trained trained(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    embedding::Collection& collection = trained.collection();
    if (!collection.backend().host_reaches_memory()) GTEST_SKIP() << "is copied at once";
    for (int64_t i = 0; i < 20; ++i) trained.step(i);
    const auto write = [&](int64_t row, float value) {
      std::vector<float> values(static_cast<size_t>(World::dim(0)), value);
      trained.tables->write_range(0, SHARDREC_TABLE_WEIGHTS, row, 1,
                                  {values.data(), 1, World::dim(0)});
    };
    const auto mark = collection.mark_rows();
    for (const int64_t row : {3, 40}) write(row, 8.0F);
    collection.gather_changed_rows();
    embedding::SnapshotOf of;
    for (size_t s = 0; s < collection.shards().size(); ++s) of.listed.push_back(mark->of(s));
    std::vector<std::vector<shardrec::compute::RowWord>> bits;  // the mark's own go on changing
    for (auto& listed : of.listed) {
      listed = bits.emplace_back(listed.begin(), listed.end());
    }
    const auto buffers = [&] { return trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS); };
    const auto snapshot = collection.take_snapshot(of);
    const double before = buffers();
    for (const int64_t row : {2, 4, 39, 41, 59}) write(row, 1.0F);
    EXPECT_EQ(buffers(), before);
    write(40, 1.0F);
    EXPECT_GT(buffers(), before);
    const auto pieces = pieces_of(collection);
    const auto piece = std::ranges::find_if(pieces, [](const embedding::StoredPiece& each) {
      return each.table == 0 && each.part == SHARDREC_TABLE_WEIGHTS;
    });
    std::vector<float> got(2 * static_cast<size_t>(World::dim(0)));
    const std::vector<int64_t> rows = {3, 40};
    snapshot->read_listed(static_cast<size_t>(piece - pieces.begin()), rows,
                          reinterpret_cast<std::byte*>(got.data()));
    EXPECT_EQ(got, std::vector<float>(got.size(), 8.0F));
    EXPECT_EQ(buffers(), before);
    snapshot->end();
  });
}

TEST(Snapshot, ThatIsStoppedTellsItsReaderAndKeepsNothing) {
  run(1, [&](Comm& comm, int) {
    Trained trained(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    embedding::Collection& collection = trained.collection();
    for (int64_t i = 0; i < 3; ++i) trained.step(i);
    collection.take_snapshot()->end();  // copies from a device keep what they go through
    const double before = trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS);
    const auto snapshot = collection.take_snapshot();
    trained.step(0);
    snapshot->stop();
    trained.step(1);
    EXPECT_EQ(trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS), before);
    std::byte row[64];
    try {
      snapshot->read(0, 0, 1, row);
      ADD_FAILURE() << "a stopped snapshot was read";
    } catch (const shardrec::core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_CANCELLED);
    }
    EXPECT_NE(collection.snapshot().current(), nullptr);
    EXPECT_THROW(collection.take_snapshot(), shardrec::core::Error);
    snapshot->end();
    collection.take_snapshot()->end();
  });
}

}  // namespace
}  // namespace shardrec_test
