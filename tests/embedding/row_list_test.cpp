// Rows read and written by a list of ids: the same values as by ranges, whatever the sharding, the
// dtype, the state and the number of ranks, in one block or in many.
#include "embedding/rows/row_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "objects/collection_object.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

struct TableShape {
  int64_t rows;
  int64_t dim;
  shardrec_dtype dtype;
};
constexpr TableShape kTables[] = {
    {23, 6, SHARDREC_FLOAT32}, {9, 16, SHARDREC_FLOAT16}, {40, 5, SHARDREC_BFLOAT16}};
constexpr int32_t kTableCount = 3;

struct Setup {
  int ranks = 1;
  shardrec_sharding sharding = SHARDREC_SHARDING_MIXED;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
  shardrec_row_statistics statistics = SHARDREC_ROW_STATISTICS_ROW;
};

// A rank's tables. Values that are written are small integers: every dtype holds them.
class Tables {
 public:
  Tables(shardrec_comm* comm, const Setup& setup) {
    shardrec_model* model = nullptr;
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, setup.optimizer));
    SR_EXPECT_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_ROW_STATISTICS, setup.statistics));
    SR_EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    for (int32_t t = 0; t < kTableCount; ++t) {
      const std::string name = "table " + std::to_string(t);
      SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
      SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DTYPE, kTables[t].dtype));
      SR_EXPECT_OK(shardrec_model_add_table(model, name.c_str(), kTables[t].rows, kTables[t].dim,
                                            options, nullptr));
      shardrec_options_destroy(&options);
      SR_EXPECT_OK(shardrec_model_add_feature(model, t, name.c_str(), SHARDREC_POOLING_SUM));
    }
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, setup.sharding));
    shardrec_plan* plan = nullptr;
    SR_EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, options, &plan));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables_));
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  }
  ~Tables() { shardrec_collection_destroy(&tables_); }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  shardrec_collection* get() const { return tables_; }

  int64_t width(int32_t table, shardrec_table_part part) const {
    const auto use = capi::enter(tables_, capi::Access::kShared);
    return embedding::row_width(use->collection(), embedding::RowList{table, part, {}});
  }
  // All rows, by the call for ranges.
  std::vector<float> read_range(int32_t table, shardrec_table_part part) const {
    std::vector<float> all(static_cast<size_t>(kTables[table].rows * width(table, part)), -1);
    const shardrec_tensor out = matrix(all.data(), kTables[table].rows, width(table, part));
    SR_EXPECT_OK(
        shardrec_collection_read_range(tables_, table, part, 0, kTables[table].rows, &out));
    return all;
  }
  void write_range(int32_t table, shardrec_table_part part, std::vector<float>& all,
                   bool this_rank) const {
    const int64_t rows = this_rank ? kTables[table].rows : 0;
    const shardrec_tensor values = matrix(all.data(), rows, width(table, part));
    SR_EXPECT_OK(shardrec_collection_write_range(tables_, table, part, 0, rows, &values));
  }

 private:
  shardrec_collection* tables_ = nullptr;
};

int parts_of(shardrec_optimizer optimizer) {
  return optimizer == SHARDREC_OPTIMIZER_SGD               ? 1
         : optimizer == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD ? 2
                                                           : 3;
}

// What a rank asks for in a round; every rank can tell what every other asks for.
struct Request {
  int32_t table = 0;
  shardrec_table_part part = SHARDREC_TABLE_WEIGHTS;
  std::vector<int64_t> ids;
  bool ids_are_32 = false;
};

Request request_of(int rank, int round, int parts) {
  std::mt19937_64 random(static_cast<uint64_t>(rank * 1000 + round));
  Request request;
  // Mostly of the same table and part, so that ranks meet in rows.
  const int kind = round + (random() % 4 == 0 ? rank : 0);
  request.table = kind % kTableCount;
  request.part = static_cast<shardrec_table_part>(kind / kTableCount % parts);
  request.ids_are_32 = random() % 2 == 0;
  const auto count = random() % 5 == 0 ? 0 : random() % 60;
  for (size_t i = 0; i < count; ++i) {
    request.ids.push_back(
        static_cast<int64_t>(random() % static_cast<uint64_t>(kTables[request.table].rows)));
  }
  return request;
}

float value_of(int rank, int round, size_t position, int64_t column) {
  return static_cast<float>((rank * 61 + round * 7 + static_cast<int>(position) * 3 + column) %
                            251);
}

struct Ids {
  explicit Ids(const Request& request)
      : wide(request.ids), narrow(request.ids.begin(), request.ids.end()) {
    tensor = request.ids_are_32 ? vector_of(narrow) : vector_of(wide);
  }
  core::FlatView view() const { return {tensor.data, tensor.shape[0], tensor.dtype}; }
  std::vector<int64_t> wide;
  std::vector<int32_t> narrow;
  shardrec_tensor tensor{};
};

// bytes_at_once 0: through the C API.
void read_list(const Tables& tables, const Request& request, const shardrec_tensor& out,
               size_t bytes_at_once) {
  const Ids ids(request);
  if (bytes_at_once == 0) {
    const bool nothing = request.ids.empty();
    SR_EXPECT_OK(shardrec_collection_read_rows(tables.get(), request.table, request.part,
                                               nothing ? nullptr : &ids.tensor,
                                               nothing ? nullptr : &out));
    return;
  }
  const auto use = capi::enter(tables.get(), capi::Access::kExclusive);
  embedding::read_rows(use->collection(),
                       embedding::RowList{request.table, request.part, ids.view()},
                       core::matrix_view(&out, "out"), bytes_at_once);
}

void write_list(const Tables& tables, const Request& request, const shardrec_tensor& values,
                size_t bytes_at_once) {
  const Ids ids(request);
  if (bytes_at_once == 0) {
    SR_EXPECT_OK(shardrec_collection_write_rows(tables.get(), request.table, request.part,
                                                &ids.tensor, &values));
    return;
  }
  const auto use = capi::enter(tables.get(), capi::Access::kExclusive);
  embedding::write_rows(use->collection(),
                        embedding::RowList{request.table, request.part, ids.view()},
                        core::matrix_view(&values, "values"), bytes_at_once);
}

using Contents = std::map<std::pair<int32_t, int>, std::vector<float>>;  // by table and part

// Fills all tables and states by ranges; the same contents on all ranks.
Contents fill(const Tables& tables, int rank, int parts) {
  Contents contents;
  for (int32_t t = 0; t < kTableCount; ++t) {
    for (int p = 0; p < parts; ++p) {
      const auto part = static_cast<shardrec_table_part>(p);
      std::vector<float> all(static_cast<size_t>(kTables[t].rows * tables.width(t, part)));
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>((i * 7 + 11) % 199);
      tables.write_range(t, part, all, rank == 0);
      contents[{t, p}] = tables.read_range(t, part);  // a state of boxes spreads its values
    }
  }
  return contents;
}

void check_reads(const Tables& tables, const Contents& contents, int rank, int parts,
                 size_t bytes_at_once) {
  for (int round = 0; round < 3 * parts; ++round) {
    const Request request = request_of(rank, round, parts);
    const int64_t width = tables.width(request.table, request.part);
    const int64_t stride = width + round % 2;
    std::vector<float> got(request.ids.size() * static_cast<size_t>(stride), -7);
    shardrec_tensor out = matrix(got.data(), static_cast<int64_t>(request.ids.size()), width);
    out.stride[0] = stride;
    out.stride[1] = 1;
    read_list(tables, request, out, bytes_at_once);
    const std::vector<float>& all = contents.at({request.table, request.part});
    for (size_t i = 0; i < request.ids.size(); ++i) {
      for (int64_t c = 0; c < stride; ++c) {
        const float wanted = c < width ? all[static_cast<size_t>(request.ids[i] * width + c)] : -7;
        ASSERT_EQ(got[i * static_cast<size_t>(stride) + static_cast<size_t>(c)], wanted)
            << "round " << round << " entry " << i << " column " << c;
      }
    }
  }
}

void check_writes(const Tables& tables, Contents& contents, const Setup& setup, int rank,
                  size_t bytes_at_once) {
  const int parts = parts_of(setup.optimizer);
  for (int round = 100; round < 100 + 3 * parts; ++round) {
    for (int writer = 0; writer < setup.ranks; ++writer) {
      const Request request = request_of(writer, round, parts);
      const int64_t width = tables.width(request.table, request.part);
      // One value per row and box: all columns alike, so that any cut tells the same.
      const bool spread = setup.statistics == SHARDREC_ROW_STATISTICS_SHARD;
      std::vector<float> values;
      for (size_t i = 0; i < request.ids.size(); ++i) {
        for (int64_t c = 0; c < width; ++c) {
          values.push_back(value_of(writer, round, i, spread ? 0 : c));
        }
      }
      std::vector<float>& all = contents.at({request.table, request.part});
      for (size_t i = 0; i < request.ids.size(); ++i) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i) * width, width,
                    all.begin() + request.ids[i] * width);
      }
      if (writer != rank) continue;
      const shardrec_tensor given =
          matrix(values.data(), static_cast<int64_t>(request.ids.size()), width);
      write_list(tables, request, given, bytes_at_once);
    }
    for (int32_t t = 0; t < kTableCount; ++t) {
      for (int p = 0; p < parts; ++p) {
        const auto got = tables.read_range(t, static_cast<shardrec_table_part>(p));
        ASSERT_EQ(got, (contents.at({t, p})))
            << "round " << round << " table " << t << " part " << p;
      }
    }
  }
}

void check(const Setup& setup, size_t bytes_at_once) {
  SCOPED_TRACE("ranks " + std::to_string(setup.ranks) + " sharding " +
               std::to_string(setup.sharding) + " optimizer " + std::to_string(setup.optimizer) +
               " bytes " + std::to_string(bytes_at_once));
  run_ranks(setup.ranks, std::min(setup.ranks, 2), [&](int rank, shardrec_comm* comm) {
    const Tables tables(comm, setup);
    const int parts = parts_of(setup.optimizer);
    Contents contents = fill(tables, rank, parts);
    check_reads(tables, contents, rank, parts, bytes_at_once);
    check_writes(tables, contents, setup, rank, bytes_at_once);
    check_reads(tables, contents, rank, parts, bytes_at_once);
  });
}

TEST(RowList, ReadsAndWritesWhatRangesDoUnderEverySharding) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (int sharding = SHARDREC_SHARDING_AUTO; sharding <= SHARDREC_SHARDING_MIXED; ++sharding) {
      check({ranks, static_cast<shardrec_sharding>(sharding)}, 0);
    }
  }
}

TEST(RowList, ReadsAndWritesStatesOfRowsAndOfBoxes) {
  for (const shardrec_sharding sharding :
       {SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_GRID, SHARDREC_SHARDING_DATA_PARALLEL}) {
    for (const shardrec_optimizer optimizer :
         {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
          SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM}) {
      check({4, sharding, optimizer, SHARDREC_ROW_STATISTICS_ROW}, 0);
      if (optimizer != SHARDREC_OPTIMIZER_SGD) {
        check({4, sharding, optimizer, SHARDREC_ROW_STATISTICS_SHARD}, 0);
      }
    }
  }
}

// In blocks the highest rank's last entry stays, though lower ranks' blocks come later.
TEST(RowList, BlocksOfAnySizeGiveTheSame) {
  for (const int ranks : {1, 2, 3}) {
    for (const shardrec_sharding sharding :
         {SHARDREC_SHARDING_MIXED, SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_ROW_WISE,
          SHARDREC_SHARDING_DATA_PARALLEL}) {
      for (const size_t bytes : {size_t{1}, size_t{300}, size_t{2000}}) {
        check({ranks, sharding, SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM}, bytes);
      }
    }
  }
}

struct Refused {
  const char* what;
  shardrec_status status;
  const char* says;
  int64_t position;  // -1: none
  int32_t table;
  int part;
  std::vector<int64_t> ids;
  int64_t rows;  // of the values
  int64_t columns;
};

TEST(RowList, ABadListIsRefusedByItsRankAndHarmsNobody) {
  const int64_t last = kTables[0].rows;
  const Refused refusals[] = {
      {"-1", SHARDREC_INVALID_ARGUMENT, "ids[1] is -1", 1, 0, 0, {3, -1}, 2, 6},
      {"row count", SHARDREC_INVALID_ARGUMENT, "has rows 0 to 22", 0, 0, 0, {last}, 1, 6},
      {"lowest",
       SHARDREC_INVALID_ARGUMENT,
       "ids[2]",
       2,
       0,
       0,
       {0, 1, std::numeric_limits<int64_t>::min()},
       3,
       6},
      {"highest",
       SHARDREC_INVALID_ARGUMENT,
       "ids[0]",
       0,
       0,
       0,
       {std::numeric_limits<int64_t>::max()},
       1,
       6},
      {"columns", SHARDREC_INVALID_ARGUMENT, "6 columns", -1, 0, 0, {1}, 1, 5},
      {"too few rows", SHARDREC_INVALID_ARGUMENT, "2 rows", -1, 0, 0, {1, 2}, 1, 6},
      {"too many rows", SHARDREC_INVALID_ARGUMENT, "1 rows", -1, 0, 0, {1}, 2, 6},
      {"table 3", SHARDREC_NOT_FOUND, "table 3", -1, 3, 0, {1}, 1, 6},
      {"table -1", SHARDREC_NOT_FOUND, "table -1", -1, -1, 0, {}, 0, 6},
      {"part 3", SHARDREC_NOT_FOUND, "part 3", -1, 0, 3, {1}, 1, 6},
      {"part -1", SHARDREC_NOT_FOUND, "part -1", -1, 0, -1, {1}, 1, 6},
  };
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    const Tables tables(comm, {.ranks = 2});
    Contents before = fill(tables, rank, 3);
    if (rank == 1) {
      for (const Refused& refused : refusals) {
        SCOPED_TRACE(refused.what);
        std::vector<int64_t> ids = refused.ids;
        const shardrec_tensor list = vector_of(ids);
        std::vector<float> values(static_cast<size_t>(refused.rows * refused.columns), 5);
        const shardrec_tensor rows = matrix(values.data(), refused.rows, refused.columns);
        // In C++ an enumeration has the values of its enumerators' bits only.
        const auto part = static_cast<shardrec_table_part>(refused.part & 0x7fffffff);
        for (const bool writes : {false, true}) {
          const auto call = writes ? shardrec_collection_write_rows : shardrec_collection_read_rows;
          EXPECT_EQ(call(tables.get(), refused.table, part, &list, &rows), refused.status);
          const std::string sentence = shardrec_last_error();
          if (refused.part != -1) {
            EXPECT_NE(sentence.find(refused.says), std::string::npos) << sentence;
          }
          int64_t position = -1;
          const bool has =
              shardrec_last_error_i64(SHARDREC_ERROR_POSITION, &position) == SHARDREC_OK;
          EXPECT_EQ(has ? position : -1, refused.position);
        }
      }
      std::vector<float> reals = {1};
      const shardrec_tensor real_ids = vector_of(reals);
      const shardrec_tensor row = matrix(reals.data(), 1, 6);
      EXPECT_EQ(
          shardrec_collection_read_rows(tables.get(), 0, SHARDREC_TABLE_WEIGHTS, &real_ids, &row),
          SHARDREC_INVALID_ARGUMENT);
      std::vector<int64_t> one = {1};
      const shardrec_tensor id = vector_of(one);
      EXPECT_EQ(
          shardrec_collection_read_rows(tables.get(), 0, SHARDREC_TABLE_WEIGHTS, &id, nullptr),
          SHARDREC_INVALID_ARGUMENT);
    }
    EXPECT_EQ(tables.read_range(0, SHARDREC_TABLE_WEIGHTS), (before.at({0, 0})));
    check_reads(tables, before, rank, 3, 0);
  });
}

TEST(RowList, AnotherCallOfAPeerIsMismatch) {
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    const Tables tables(comm, {.ranks = 2});
    const auto call = rank == 0 ? shardrec_collection_write_rows : shardrec_collection_read_rows;
    EXPECT_EQ(call(tables.get(), 0, SHARDREC_TABLE_WEIGHTS, nullptr, nullptr), SHARDREC_MISMATCH);
    const std::string sentence = shardrec_last_error();
    EXPECT_NE(sentence.find("collection_read_rows"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("collection_write_rows"), std::string::npos) << sentence;
  });
}

TEST(RowList, ARankThatIsGoneEndsTheOthersCall) {
  run_ranks(3, 3, [&](int rank, shardrec_comm* comm) {
    const Tables tables(comm, {.ranks = 3});
    if (rank == 1) {
      shardrec_comm* copy = comm;
      shardrec_comm_destroy(&copy);
      return;
    }
    std::vector<int64_t> ids = {1, 2};
    std::vector<float> values(12);
    const shardrec_tensor list = vector_of(ids);
    const shardrec_tensor rows = matrix(values.data(), 2, 6);
    EXPECT_EQ(shardrec_collection_write_rows(tables.get(), 0, SHARDREC_TABLE_WEIGHTS, &list, &rows),
              SHARDREC_PEER_FAILED);
    int64_t failed_rank = -1;
    EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank), SHARDREC_OK);
    EXPECT_EQ(failed_rank, 1);
  });
}

}  // namespace
}  // namespace shardrec::test
