// A steady step allocates nothing, in the whole process; and the memory of a collection stays
// within its bound.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <random>

#include "embedding/half_matrix.h"
#include "support/bytes_in_use.h"
#include "support/counted_allocations.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

struct Load {
  int64_t tables = 6;
  int64_t rows = 5000;
  int64_t dim = 32;
  int64_t batch = 600;
  int64_t length = 5;
  shardrec_sharding kind = SHARDREC_SHARDING_MIXED;
  int threads = 1;
  shardrec_replication replication = SHARDREC_REPLICATION_AUTO;
  bool deduplicate = false;
  shardrec_compression compression = SHARDREC_COMPRESSION_NONE;  // of both directions
  bool hierarchical = false;  // four ranks on two nodes, else two on two
  // On a mesh of two replicas that are trained together, four ranks on two nodes; TOUCHED: there is no mesh.
  shardrec_replica_sync replicas = SHARDREC_REPLICA_SYNC_TOUCHED;

  bool on_mesh() const { return replicas != SHARDREC_REPLICA_SYNC_TOUCHED; }
  int ranks() const { return hierarchical || on_mesh() ? 4 : 2; }
};

void set_compression(shardrec_options* options, shardrec_compression compression) {
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_FORWARD_COMPRESSION, compression));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_BACKWARD_COMPRESSION, compression));
}

// Trains steps on one rank; calls between(step) before each, after a barrier of all ranks.
void train_rank(const Load& load, int rank, shardrec_comm* comm, int steps, int lookups,
                const std::function<void(int step)>& between,
                const std::function<void(shardrec_collection*)>& at_end) {
  shardrec_model* model = nullptr;
  SR_OK(shardrec_model_create(nullptr, &model));
  shardrec_options* options = nullptr;
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER,
                                 SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
  SR_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
  shardrec_options_destroy(&options);
  for (int64_t t = 0; t < load.tables; ++t) {
    const std::string name = "t" + std::to_string(t);
    SR_OK(shardrec_model_add_table(model, name.c_str(), load.rows, load.dim, nullptr, nullptr));
    SR_OK(shardrec_model_add_feature(model, static_cast<int32_t>(t), name.c_str(),
                                     t % 2 == 0 ? SHARDREC_POOLING_SUM : SHARDREC_POOLING_MEAN));
  }
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, load.kind));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_REPLICATION, load.replication));
  shardrec_mesh* mesh = nullptr;
  if (load.on_mesh()) {
    SR_OK(shardrec_mesh_create(comm, 2, nullptr, &mesh));
  }
  shardrec_plan* plan = nullptr;
  SR_OK(shardrec_plan_collective(comm, mesh, model, options, &plan));
  shardrec_options_destroy(&options);
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_REPLICA_SYNC, load.replicas));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, load.threads));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEDUPLICATE, load.deduplicate ? 1 : 0));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, load.hierarchical ? 1 : 0));
  set_compression(options, load.compression);
  shardrec_collection* tables = nullptr;
  SR_OK(shardrec_collection_create(comm, mesh, model, plan, options, &tables));
  std::vector<shardrec_lookup*> slots(static_cast<size_t>(lookups));
  for (shardrec_lookup*& slot : slots) SR_OK(shardrec_lookup_create(tables, nullptr, &slot));

  std::mt19937_64 random(static_cast<uint64_t>(rank));
  const auto ids = static_cast<size_t>(load.tables * load.batch * load.length);
  std::vector<int64_t> values(ids);
  std::vector<int64_t> lengths(static_cast<size_t>(load.tables * load.batch), load.length);
  std::vector<float> out(static_cast<size_t>(load.batch * load.tables * load.dim));
  std::vector<float> gradient(out.size(), 0.01F);
  const shardrec_tensor values_tensor = vector_of(values);
  const shardrec_tensor lengths_tensor = vector_of(lengths);
  const shardrec_tensor out_tensor = matrix(out.data(), load.batch, load.tables * load.dim);
  const shardrec_tensor gradient_tensor =
      matrix(gradient.data(), load.batch, load.tables * load.dim);
  for (int step = 0; step < steps; ++step) {
    for (int64_t& id : values)
      id = static_cast<int64_t>(random() % static_cast<uint64_t>(load.rows));
    between(step);
    // All lookups are in flight at once, then finish one after the other.
    for (shardrec_lookup* slot : slots) {
      SR_OK(begin_batch(
          slot, {.batch_size = load.batch, .values = &values_tensor, .lengths = &lengths_tensor}));
    }
    for (shardrec_lookup* slot : slots) {
      SR_OK(shardrec_lookup_forward(slot, 0, &out_tensor));
      SR_OK(shardrec_lookup_set_gradient(slot, 0, &gradient_tensor));
      if ((step + rank) % 2 == 0) {
        SR_OK(shardrec_lookup_send_gradients(slot, SHARDREC_UPDATE_APPLY));
      }
      SR_OK(shardrec_lookup_backward(slot, SHARDREC_UPDATE_APPLY));
    }
  }
  between(steps);
  if (at_end) at_end(tables);
  for (shardrec_lookup*& slot : slots) shardrec_lookup_destroy(&slot);
  shardrec_collection_destroy(&tables);
  shardrec_options_destroy(&options);
  shardrec_plan_destroy(&plan);
  shardrec_mesh_destroy(&mesh);
  shardrec_model_destroy(&model);
}

// Steps with everything at once: pooled features and sequences on one table, bags given once, ids
// that are dropped, outputs of 16 bits, gradients of weights.
void train_all_kinds(int rank, shardrec_comm* comm, shardrec_sharding kind,
                     shardrec_compression compression, int steps,
                     const std::function<void(int step)>& between) {
  constexpr int64_t kRows = 3000;
  constexpr int64_t kDim = 16;
  constexpr int64_t kBatch = 900;
  constexpr int64_t kBags = 300;
  constexpr int64_t kLength = 4;
  shardrec_model* model = nullptr;
  SR_OK(shardrec_model_create(nullptr, &model));
  shardrec_options* options = nullptr;
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
  SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OUT_OF_RANGE, "drop"));
  SR_OK(shardrec_model_add_table(model, "t", kRows, kDim, options, nullptr));
  shardrec_options_destroy(&options);
  SR_OK(shardrec_model_add_feature(model, 0, "mean", SHARDREC_POOLING_MEAN));
  SR_OK(shardrec_model_add_feature(model, 0, "sequence", SHARDREC_POOLING_NONE));
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, kind));
  shardrec_plan* plan = nullptr;
  SR_OK(shardrec_plan_collective(comm, nullptr, model, options, &plan));
  shardrec_options_destroy(&options);
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 2));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OUTPUT_DTYPE, SHARDREC_BFLOAT16));
  set_compression(options, compression);
  shardrec_collection* tables = nullptr;
  SR_OK(shardrec_collection_create(comm, nullptr, model, plan, options, &tables));
  shardrec_options_destroy(&options);
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_WEIGHT_GRADIENT, 1));
  shardrec_lookup* lookup = nullptr;
  SR_OK(shardrec_lookup_create(tables, options, &lookup));

  std::mt19937_64 random(static_cast<uint64_t>(rank));
  std::vector<int64_t> values(2 * kBags * kLength);
  std::vector<int64_t> lengths(2 * kBags, kLength);
  std::vector<int64_t> sizes = {kBags, kBags};
  std::vector<int32_t> inverse(2 * kBatch);
  std::vector<float> weights(values.size(), 0.5F);
  std::vector<float> of_weights(values.size());
  const HalfMatrix out(SHARDREC_BFLOAT16, kBatch, kDim);
  const HalfMatrix rows(SHARDREC_BFLOAT16, kBags * kLength, kDim);
  const HalfMatrix gradient(SHARDREC_BFLOAT16, kBatch, kDim,
                            std::vector<float>(kBatch * kDim, 0.125F));
  const HalfMatrix rows_gradient(SHARDREC_BFLOAT16, kBags * kLength, kDim,
                                 std::vector<float>(kBags * kLength * kDim, 0.125F));
  const shardrec_tensor values_tensor = vector_of(values);
  const shardrec_tensor lengths_tensor = vector_of(lengths);
  const shardrec_tensor sizes_tensor = vector_of(sizes);
  const shardrec_tensor inverse_tensor = vector_of(inverse);
  const shardrec_tensor weights_tensor = vector_of(weights);
  const shardrec_tensor of_weights_tensor = vector_of(of_weights);
  for (int step = 0; step < steps; ++step) {
    for (int64_t& id : values) id = static_cast<int64_t>(random() % (kRows + 100));
    for (int32_t& bag : inverse) bag = static_cast<int32_t>(random() % kBags);
    between(step);
    SR_OK(begin_batch(lookup, {.batch_size = kBatch,
                               .values = &values_tensor,
                               .lengths = &lengths_tensor,
                               .weights = &weights_tensor,
                               .batch_sizes = &sizes_tensor,
                               .inverse = &inverse_tensor}));
    SR_OK(shardrec_lookup_forward(lookup, 0, &out.tensor));
    SR_OK(shardrec_lookup_forward(lookup, 1, &rows.tensor));
    SR_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient.tensor));
    SR_OK(shardrec_lookup_set_gradient(lookup, 1, &rows_gradient.tensor));
    if ((step + rank) % 2 == 0) {
      SR_OK(shardrec_lookup_send_gradients(lookup, SHARDREC_UPDATE_APPLY));
    }
    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    SR_OK(shardrec_lookup_weight_gradient(lookup, &of_weights_tensor));
  }
  between(steps);
  shardrec_lookup_destroy(&lookup);
  shardrec_collection_destroy(&tables);
  shardrec_options_destroy(&options);
  shardrec_plan_destroy(&plan);
  shardrec_model_destroy(&model);
}

// Runs train(rank, comm, steps, between), which trains steps on one rank, and expects that the last
// of them allocate nothing.
void expect_no_allocation(
    int ranks, int ranks_per_node,
    const std::function<void(int rank, shardrec_comm* comm, int steps,
                             const std::function<void(int step)>& between)>& train) {
  constexpr int kWarm = SHARDREC_SANITIZED ? 8 : 20;  // a sanitizer's allocator is not counted
  constexpr int kCounted = 5;
  std::barrier meeting(ranks);
  run_ranks(ranks, ranks_per_node, [&](int rank, shardrec_comm* comm) {
    train(rank, comm, kWarm + kCounted, [&](int step) {
      meeting.arrive_and_wait();
      if (rank == 0 && step == kWarm) {
        allocations = 0;
        counting = true;
      }
      if (rank == 0 && step == kWarm + kCounted) counting = false;
      meeting.arrive_and_wait();
    });
  });
#ifdef SHARDREC_COUNTS_ALLOCATIONS
  EXPECT_EQ(allocations.load(), 0);
#else
  GTEST_SKIP() << "the steps ran, but the sanitizer's allocator is in place of the counted one";
#endif
}

class Steady : public ::testing::TestWithParam<Load> {};

TEST_P(Steady, StepsAllocateNothing) {
  const int ranks = GetParam().ranks();
  expect_no_allocation(
      ranks, ranks / 2,
      [](int rank, shardrec_comm* comm, int steps, const std::function<void(int)>& between) {
        train_rank(GetParam(), rank, comm, steps, 2, between, {});
      });
}

class SteadyInputs
    : public ::testing::TestWithParam<std::tuple<shardrec_sharding, shardrec_compression>> {};

TEST_P(SteadyInputs, StepsOfAllKindsOfInputAllocateNothing) {
  expect_no_allocation(
      2, 1, [](int rank, shardrec_comm* comm, int steps, const std::function<void(int)>& between) {
        const auto [kind, compression] = GetParam();
        train_all_kinds(rank, comm, kind, compression, steps, between);
      });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SteadyInputs,
    ::testing::Combine(::testing::Values(SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_ROW_WISE,
                                         SHARDREC_SHARDING_COLUMN_WISE,
                                         SHARDREC_SHARDING_DATA_PARALLEL),
                       ::testing::Values(SHARDREC_COMPRESSION_NONE, SHARDREC_COMPRESSION_INT8)));

std::vector<Load> steady_loads() {
  std::vector<Load> loads;
  for (const shardrec_sharding kind :
       {SHARDREC_SHARDING_MIXED, SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE,
        SHARDREC_SHARDING_DATA_PARALLEL}) {
    for (const int threads : {1, 2}) loads.push_back({.kind = kind, .threads = threads});
    // Ids that repeat often enough to travel once.
    loads.push_back({.rows = 500, .kind = kind, .threads = 2, .deduplicate = true});
  }
  for (const shardrec_compression compression :
       {SHARDREC_COMPRESSION_FLOAT16, SHARDREC_COMPRESSION_INT8}) {
    loads.push_back({.threads = 2, .compression = compression});
  }
  loads.push_back({.kind = SHARDREC_SHARDING_ROW_WISE, .hierarchical = true});
  for (const auto sync : {SHARDREC_REPLICA_SYNC_EXACT, SHARDREC_REPLICA_SYNC_SHARDED}) {
    for (const auto kind : {SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE}) {
      loads.push_back({.kind = kind, .threads = 2, .replicas = sync});
    }
  }
  for (const shardrec_replication way : {SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE}) {
    loads.push_back({.kind = SHARDREC_SHARDING_DATA_PARALLEL, .threads = 2, .replication = way});
  }
  return loads;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Steady, ::testing::ValuesIn(steady_loads()));

#ifdef SHARDREC_COUNTS_ALLOCATIONS
TEST(Steady, TheCountSeesAnAllocation) {
  allocations = 0;
  counting = true;
  void* volatile memory = std::malloc(10);
  counting = false;
  std::free(memory);
  EXPECT_EQ(allocations.load(), 1);
}
#endif

// Of the process: bytes that it has allocated or mapped.
int64_t bytes_taken() { return bytes_in_use() + mapped_bytes; }

class Memory : public ::testing::TestWithParam<std::tuple<shardrec_sharding, int>> {};

TEST_P(Memory, StaysWithinTheBoundOfTheDesign) {
  const auto [kind, ranks] = GetParam();
  const Load load{
      .tables = 4, .rows = 20000, .dim = 64, .batch = 16384 / ranks, .length = 10, .kind = kind};
  const int64_t before = bytes_taken();
  std::barrier meeting(ranks);
  std::atomic<int64_t> table_bytes{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> ids{0};
  run_ranks(ranks, 1, [&](int rank, shardrec_comm* comm) {
    train_rank(
        load, rank, comm, 3, 1, [](int) {},
        [&](shardrec_collection* tables) {
          const auto stat = [&](shardrec_stat which) {
            double value = 0;
            SR_EXPECT_OK(shardrec_collection_stat(tables, which, SHARDREC_ALL_TABLES, &value));
            return static_cast<int64_t>(value);
          };
          table_bytes += stat(SHARDREC_STAT_BYTES_TABLES);
          ids += (stat(SHARDREC_STAT_IDS_SENT) + stat(SHARDREC_STAT_IDS_RECEIVED)) / 3;
          meeting.arrive_and_wait();
          if (rank == 0) peak = bytes_taken();
          meeting.arrive_and_wait();
        });
  });
  const int64_t global = load.batch * ranks;
  const int64_t output = load.tables * global * load.dim * 4;  // of all ranks
  // Bags x columns over all boxes: every bag once per row range that it meets, or once per replica.
  int64_t bag_columns = load.tables * global * load.dim;
  if (kind == SHARDREC_SHARDING_ROW_WISE || kind == SHARDREC_SHARDING_DATA_PARALLEL) {
    bag_columns *= ranks;
  }
  const int64_t inputs = load.tables * global * load.length * 8 + output * 2;  // of the test itself
  const int64_t bound = table_bytes + (int64_t{64} << 20) + 24 * ids + 8 * bag_columns + 2 * output;
#ifdef SHARDREC_COUNTS_ALLOCATIONS
  EXPECT_LE(peak - before - inputs, bound);
  EXPECT_GT(peak - before, table_bytes / 2) << "nothing was measured";
#else
  GTEST_SKIP() << "the steps ran (bound " << bound - peak + before + inputs
               << " bytes away), but the sanitizer keeps memory of its own";
#endif
}

INSTANTIATE_TEST_SUITE_P(Kinds, Memory,
                         ::testing::Combine(::testing::Values(SHARDREC_SHARDING_TABLE_WISE,
                                                              SHARDREC_SHARDING_ROW_WISE,
                                                              SHARDREC_SHARDING_COLUMN_WISE,
                                                              SHARDREC_SHARDING_DATA_PARALLEL),
                                            ::testing::Values(1, 2, 8)));

}  // namespace
}  // namespace shardrec::test
