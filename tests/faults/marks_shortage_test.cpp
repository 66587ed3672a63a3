// Memory runs out at the k-th allocation of shardrec_collection_mark and _changed_rows, for every k: a status, and the
// collection with its other marks as before.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "faults/failing_allocator.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int64_t kMarkedRows = 900;

class MarkedTable {
 public:
  explicit MarkedTable(shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model_));
    SR_EXPECT_OK(shardrec_model_add_table(model_, "table", kMarkedRows, 2, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model_, 0, "id", SHARDREC_POOLING_SUM));
    SR_EXPECT_OK(shardrec_topology_create(1, 1, nullptr, &topology_));
    SR_EXPECT_OK(shardrec_plan_create(model_, topology_, nullptr, &plan_));
    SR_EXPECT_OK(shardrec_collection_create(comm, nullptr, model_, plan_, nullptr, &tables_));
  }
  ~MarkedTable() {
    shardrec_collection_destroy(&tables_);
    shardrec_plan_destroy(&plan_);
    shardrec_topology_destroy(&topology_);
    shardrec_model_destroy(&model_);
  }
  MarkedTable(const MarkedTable&) = delete;
  MarkedTable& operator=(const MarkedTable&) = delete;

  shardrec_collection* tables() const { return tables_; }
  void write_row(int64_t row) const {
    float values[2] = {1, 2};
    const shardrec_tensor view = matrix(values, 1, 2);
    SR_OK(shardrec_collection_write_range(tables_, 0, SHARDREC_TABLE_WEIGHTS, row, 1, &view));
  }
  shardrec_status list(int64_t mark, std::vector<int64_t>& rows) const {
    shardrec_tensor view{};
    SR_EXPECT_OK(shardrec_tensor_vector(rows.data(), SHARDREC_INT64,
                                        static_cast<int64_t>(rows.size()), &view));
    int64_t count = 0;
    const shardrec_status status =
        shardrec_collection_changed_rows(tables_, mark, 0, 0, &view, &count);
    if (status == SHARDREC_OK) rows.resize(static_cast<size_t>(count));
    return status;
  }
  std::vector<int64_t> changed(int64_t mark) const {
    std::vector<int64_t> rows(kMarkedRows);
    SR_EXPECT_OK(list(mark, rows));
    return rows;
  }

 private:
  shardrec_model* model_ = nullptr;
  shardrec_topology* topology_ = nullptr;
  shardrec_plan* plan_ = nullptr;
  shardrec_collection* tables_ = nullptr;
};

class MarksShortage : public ::testing::TestWithParam<Shortage> {};

TEST_P(MarksShortage, LeavesTheOtherMarksAndTheirRows) {
  run_ranks(1, 1, [&](int, shardrec_comm* comm) {
    int64_t failures = 0;
    bool fired = true;
    for (int64_t k = 1; fired && !HasFailure(); ++k) {
      SCOPED_TRACE("allocation " + std::to_string(k));
      const MarkedTable table(comm);
      const bool first = k % 2 == 1;  // else there is a mark already
      int64_t before = -1;
      if (!first) {
        SR_OK(shardrec_collection_mark(table.tables(), &before));
        table.write_row(5);
      }
      int64_t mark = -1;
      fail_allocation((k + 1) / 2, GetParam());
      const shardrec_status made = shardrec_collection_mark(table.tables(), &mark);
      fired = end_shortage() || k % 2 == 1;
      if (made != SHARDREC_OK) {
        EXPECT_EQ(made, SHARDREC_OUT_OF_MEMORY);
        EXPECT_EQ(mark, -1);
        ++failures;
        table.write_row(6);
        SR_OK(shardrec_collection_mark(table.tables(), &mark));
      }
      table.write_row(800);
      EXPECT_EQ(table.changed(mark), std::vector<int64_t>{800});
      if (first) continue;
      const std::vector<int64_t> since =
          made == SHARDREC_OK ? std::vector<int64_t>{5, 800} : std::vector<int64_t>{5, 6, 800};
      EXPECT_EQ(table.changed(before), since);
    }
    EXPECT_GT(failures, 3);
  });
}

TEST_P(MarksShortage, OfAListLosesNoRows) {
  run_ranks(1, 1, [&](int, shardrec_comm* comm) {
    const MarkedTable table(comm);
    int64_t mark = -1;
    SR_OK(shardrec_collection_mark(table.tables(), &mark));
    table.write_row(31);
    bool fired = true;
    for (int64_t k = 1; fired && !HasFailure(); ++k) {
      std::vector<int64_t> rows(kMarkedRows);
      fail_allocation(k, GetParam());
      const shardrec_status listed = table.list(mark, rows);
      fired = end_shortage();
      EXPECT_TRUE(listed == SHARDREC_OK || listed == SHARDREC_OUT_OF_MEMORY) << k;
      EXPECT_EQ(table.changed(mark), std::vector<int64_t>{31});
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Phases, MarksShortage,
                         ::testing::Values(Shortage::kOnce, Shortage::kLasting));

}  // namespace
}  // namespace shardrec::test
