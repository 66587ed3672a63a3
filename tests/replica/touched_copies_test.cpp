// Syncs that move only the rows that have changed leave the others as they are, bit for bit, on every owner.
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "embedding/tables/stored_pieces.h"
#include "objects/collection_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int64_t kTableRows = 300;
constexpr int64_t kTableDim = 12;

// The one value per row that this rank has of the optimizer's state: reads of rows ask one owner, and writes are changes.
embedding::StoredPiece stored_state(embedding::Collection& collection) {
  embedding::StoredPiece state;
  for (const auto& piece : embedding::stored_pieces(collection.layout(), collection.shards(),
                                                    embedding::PieceUse::kLoad)) {
    if (!piece.by_row) continue;
    EXPECT_EQ(state.data, nullptr);
    EXPECT_EQ(piece.cells.rows, kTableRows);
    state = piece;
  }
  return state;
}

std::vector<float> read_state(shardrec_collection* tables) {
  const auto use = capi::enter(tables, capi::Access::kShared);
  const embedding::StoredPiece state = stored_state(use->collection());
  std::vector<float> values(kTableRows);
  const compute::RowTransfer transfer{.from = {state.data, state.element, state.stride},
                                      .to = {values.data(), compute::Element::kFloat32, 1},
                                      .rows = kTableRows,
                                      .width = 1};
  use->collection().backend().transfer().copy_to_host({&transfer, 1});
  return values;
}

// As a load does: with the same on all replicas, which are no changed rows.
void fill_state(shardrec_collection* tables) {
  const auto use = capi::enter(tables, capi::Access::kShared);
  const embedding::StoredPiece state = stored_state(use->collection());
  std::vector<float> values(kTableRows);
  for (size_t row = 0; row < values.size(); ++row) values[row] = 1.7F + static_cast<float>(row) / 7;
  const compute::RowTransfer transfer{.from = {values.data(), compute::Element::kFloat32, 1},
                                      .to = {state.data, state.element, state.stride},
                                      .rows = kTableRows,
                                      .width = 1};
  use->collection().backend().transfer().copy_from_host({&transfer, 1});
}

void write_first(MeshRank& rank, shardrec_table_part part, int64_t rows, int64_t columns,
                 bool writes, int number) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(static_cast<float>(1 + (i * 7919 + number * 104729) % 9973) / 1237);
  }
  const shardrec_tensor written = matrix(values.data(), rows, columns);
  SR_EXPECT_OK(shardrec_collection_write_range(rank.tables(), 0, part, 0, writes ? rows : 0,
                                               writes ? &written : nullptr));
}

// The mean of three equal numbers that is no mean itself may be another one: owners of columns that would average more
// rows than others come to other copies of a state that is one value per row.
TEST(UntouchedRows, StayAsTheyAreOnAllOwnersOfTheirColumns) {
  constexpr int64_t kTouched = 231;
  std::mutex mutex;
  std::vector<std::vector<float>> states;
  run_ranks(6, 6, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_COLUMN_WISE,
                         .group = 2,
                         .rows = kTableRows,
                         .dim = kTableDim});
    SR_OK(rank.status());
    rank.create();
    shardrec_box box{.struct_size = sizeof box};
    SR_OK(shardrec_plan_box(rank.plan(), 0, 0, &box));
    ASSERT_EQ(box.cols, 8) << "the boxes have different widths";
    // Interleaved: of a sharding group's ranks the first one writes.
    const bool writes = number < 3;
    fill_state(rank.tables());
    const std::vector<float> state = read_state(rank.tables());
    const std::vector<float> weights = rank.read(SHARDREC_TABLE_WEIGHTS);
    write_first(rank, SHARDREC_TABLE_WEIGHTS, kTouched, kTableDim, writes, number);
    write_first(rank, SHARDREC_TABLE_STATE, kTouched, 1, writes, number);
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    const std::vector<float> state_after = read_state(rank.tables());
    const std::vector<float> weights_after = rank.read(SHARDREC_TABLE_WEIGHTS);
    for (size_t row = 0; row < kTableRows; ++row) {
      if (row < kTouched) {
        EXPECT_NE(state_after[row], state[row]) << row;
        continue;
      }
      EXPECT_EQ(state_after[row], state[row]) << row;
      for (size_t i = row * kTableDim; i < (row + 1) * kTableDim; ++i) {
        EXPECT_EQ(weights_after[i], weights[i]) << "row " << row;
      }
    }
    const std::lock_guard lock(mutex);
    states.push_back(state_after);
  });
  ASSERT_EQ(states.size(), 6U);
  for (const auto& state : states) EXPECT_EQ(state, states[0]);
}

// A backward that keeps its gradients changes no row; the step that they wait for does.
TEST(UntouchedRows, AreThoseWhoseGradientsWaitForTheirStep) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE,
                         .group = 1,
                         .rows = kTableRows,
                         .dim = kTableDim});
    SR_OK(rank.status());
    rank.create();
    const auto synced = [&] {
      double rows = -1;
      SR_EXPECT_OK(shardrec_collection_sync_replicas(rank.tables()));
      SR_EXPECT_OK(shardrec_collection_stat(rank.tables(), SHARDREC_STAT_ROWS_SYNCED,
                                            SHARDREC_ALL_TABLES, &rows));
      return rows;
    };
    // Each step names a row and the one five rows further.
    SR_OK(rank.prepare_step(100 + number, 1));
    SR_OK(shardrec_lookup_backward(rank.lookup(), SHARDREC_UPDATE_ACCUMULATE));
    EXPECT_EQ(synced(), 0);
    rank.step(200 + number, 1);
    EXPECT_EQ(synced(), 8);
    EXPECT_EQ(synced(), 8);
  });
}

}  // namespace
}  // namespace shardrec::test
