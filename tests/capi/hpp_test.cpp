// The C++ header: handles, exceptions and views over the C API.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace {

template <class Body>
void run_ranks(int32_t ranks, const Body& body) {
  shardrec::Local group(ranks);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        shardrec::Comm comm(group, rank);
        body(comm);
        comm.close();
      } catch (const shardrec::Error& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.status_name() << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Hpp, HandlesMoveAndAreDestroyedOnce) {
  static_assert(!std::is_copy_constructible_v<shardrec::Model>);
  static_assert(std::is_nothrow_move_constructible_v<shardrec::Model>);
  const int64_t before = shardrec::live_objects();
  {
    shardrec::Model first;
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    shardrec_model* handle = first.get();
    shardrec::Model second = std::move(first);
    EXPECT_EQ(second.get(), handle);
    EXPECT_EQ(first.get(), nullptr);  // NOLINT(bugprone-use-after-move): that is the promise
    shardrec::Model third;
    third = std::move(second);
    EXPECT_EQ(third.get(), handle);
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    shardrec_model* released = third.release();
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    shardrec_model_destroy(&released);
  }
  EXPECT_EQ(shardrec::live_objects(), before);
}

TEST(Hpp, ErrorsCarryStatusSentenceAndParts) {
  shardrec::Model model;
  model.add_table("t", 10, 4);
  try {
    model.add_table("u", 0, 4);
    FAIL() << "no exception";
  } catch (const shardrec::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_STREQ(error.status_name(), "SHARDREC_INVALID_ARGUMENT");
    EXPECT_STREQ(error.what(), shardrec_last_error());
    EXPECT_EQ(error.table(), "u");
    EXPECT_EQ(error.value(), 0);
    EXPECT_EQ(error.rank(), std::nullopt);
    EXPECT_EQ(error.feature(), "");
  }
  EXPECT_EQ(model.table_count(), 1);
  EXPECT_THROW(model.add_table(std::string_view("a\0b", 3), 1, 1), std::invalid_argument);
}

TEST(Hpp, OptionsTakeNumbersEnumeratorsAndText) {
  shardrec::Options options(SHARDREC_OPTIONS_OPTIMIZER);
  options.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD)
      .set(SHARDREC_OPTION_LEARNING_RATE, 0.25f)
      .set(SHARDREC_OPTION_EPS, "1e-6");
  EXPECT_EQ(options.text(SHARDREC_OPTION_OPTIMIZER), "rowwise_adagrad");
  EXPECT_EQ(options.f64(SHARDREC_OPTION_LEARNING_RATE), 0.25);
  EXPECT_EQ(options.f64(SHARDREC_OPTION_EPS), 1e-6);
  EXPECT_EQ(options.i64(SHARDREC_OPTION_OPTIMIZER), SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
}

TEST(Hpp, ViewsStandForContainersSpansAndPointers) {
  std::vector<int64_t> ids = {1, 2, 3};
  const std::vector<int64_t> const_ids = {1, 2};
  std::array<float, 2> weights{};
  std::span<int64_t> span(ids);
  EXPECT_EQ(shardrec::Vector(ids).get()->shape[0], 3);
  EXPECT_EQ(shardrec::Vector(ids).get()->dtype, SHARDREC_INT64);
  EXPECT_EQ(shardrec::Vector(const_ids).get()->shape[0], 2);
  EXPECT_EQ(shardrec::Vector(weights).get()->dtype, SHARDREC_FLOAT32);
  EXPECT_EQ(shardrec::Vector(span.subspan(1)).get()->data, ids.data() + 1);
  EXPECT_EQ(shardrec::Vector(nullptr).get(), nullptr);
  EXPECT_NE(shardrec::Vector(std::vector<int32_t>{}).get(), nullptr);
  const shardrec::Matrix matrix(weights.data(), 1, 2, 8);
  EXPECT_EQ(matrix.get()->stride[0], 8);
}

TEST(Hpp, PlansForTopologiesAndMeshes) {
  const auto topology = shardrec::Topology::from_json(shardrec::Topology(4, 2).to_json());
  EXPECT_NE(topology.to_json().find("\"ranks_per_node\": 2"), std::string::npos);
  shardrec::Model model;
  shardrec::Options limits(SHARDREC_OPTIONS_TABLE);
  limits.set(SHARDREC_OPTION_ALLOWED_RANKS, "2-3");
  model.add_table("t", 10, 2, &limits);
  const shardrec::Plan plan(model, topology);
  EXPECT_EQ(plan.box_bytes(0, 0).weights + plan.box_bytes(0, 1).weights, 80);
  EXPECT_EQ(plan.box_bytes(0, 0).states, 0);
  run_ranks(2, [](shardrec::Comm& comm) {
    shardrec::Model small;
    small.add_table("t", 10, 2);
    shardrec::Mesh mesh(comm, 1);
    EXPECT_EQ(shardrec::Plan::collective(mesh, small).box_count(0), 1);
    EXPECT_EQ(mesh.sharding_comm().size(), 1);
    shardrec::Comm replicas = mesh.replica_comm();
    EXPECT_EQ(replicas.size(), 2);
    replicas.barrier();
  });
}

// One table, SGD: the weights after a step are known by hand.
TEST(Hpp, TrainsAStepOnTwoRanks) {
  run_ranks(2, [](shardrec::Comm& comm) {
    shardrec::Model model;
    shardrec::Options zeros(SHARDREC_OPTIONS_TABLE);
    zeros.set(SHARDREC_OPTION_INIT, SHARDREC_INIT_ZEROS);
    const int32_t table = model.add_table("t", 10, 2, &zeros);
    model.add_feature(table, "f", SHARDREC_POOLING_SUM);
    shardrec::Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
    optimizer.set(SHARDREC_OPTION_LEARNING_RATE, 0.5);
    model.set_optimizer(optimizer);
    EXPECT_EQ(model.columns(0).width, 2);
    shardrec::Options row_wise(SHARDREC_OPTIONS_PLAN);
    row_wise.set(SHARDREC_OPTION_SHARDING, "row_wise");
    const auto plan = shardrec::Plan::collective(comm, model, &row_wise);
    EXPECT_EQ(plan.box_count(table), 2);
    EXPECT_EQ(plan.box(table, 1).row, 5);
    shardrec::Collection tables(comm, model, plan);
    shardrec::Lookup lookup(tables);

    // Rank 0 looks up rows {1} and {1, 7}; rank 1 row {7}.
    const std::vector<int64_t> values =
        comm.rank() == 0 ? std::vector<int64_t>{1, 1, 7} : std::vector<int64_t>{7};
    const std::vector<int32_t> lengths =
        comm.rank() == 0 ? std::vector<int32_t>{1, 2} : std::vector<int32_t>{1};
    const auto batch = static_cast<int64_t>(lengths.size());
    std::vector<float> output(static_cast<size_t>(batch) * 2, 9);
    lookup.begin(batch, values, lengths);
    lookup.forward(0, {output.data(), batch, 2});
    for (const float value : output) EXPECT_EQ(value, 0);
    EXPECT_FALSE(lookup.all_done());
    const std::vector<float> gradient(output.size(), 1);
    lookup.set_gradient(0, {gradient.data(), batch, 2});
    lookup.backward();
    EXPECT_EQ(tables.step(), 1);

    // Each row: -0.5 * (1 / 2 ranks) * its number of occurrences, 2 for both.
    std::vector<float> weights(20, 9);
    tables.read(table, SHARDREC_TABLE_WEIGHTS, 0, 10, {weights.data(), 10, 2});
    for (size_t row = 0; row < 10; ++row) {
      const float expected = row == 1 || row == 7 ? -0.5f : 0.0f;
      EXPECT_EQ(weights[2 * row], expected);
      EXPECT_EQ(weights[2 * row + 1], expected);
    }
    // Both ranks write row 9, and the higher one's entry stays; row 3 twice, and the last one stays.
    const std::vector<float> rows = {1, 1, 2, 2, static_cast<float>(comm.rank()), 5};
    tables.write_rows(table, SHARDREC_TABLE_WEIGHTS, std::vector<int64_t>{3, 3, 9},
                      {rows.data(), 3, 2});
    std::vector<float> read(6, 9);
    tables.read_rows(table, SHARDREC_TABLE_WEIGHTS, std::vector<int32_t>{9, 3, 1},
                     {read.data(), 3, 2});
    EXPECT_EQ(read, (std::vector<float>{1, 5, 2, 2, -0.5, -0.5}));
    tables.read_rows(table, SHARDREC_TABLE_WEIGHTS, nullptr, nullptr);
    lookup.begin_without_data();
    lookup.forward(0, {nullptr, 0, 2});
    EXPECT_TRUE(lookup.all_done());
    lookup.skip();
  });
}

TEST(Hpp, ABadBatchIsAnExceptionWithItsPlaceOnEveryRank) {
  run_ranks(2, [](shardrec::Comm& comm) {
    shardrec::Model model;
    model.add_feature(model.add_table("t", 10, 2), "f");
    const auto plan = shardrec::Plan::collective(comm, model);
    shardrec::Collection tables(comm, model, plan);
    shardrec::Lookup lookup(tables);
    const std::vector<int64_t> values = {3, comm.rank() == 1 ? 10 : 4};
    const std::vector<int64_t> lengths = {2};
    std::vector<float> output(2);
    lookup.begin(1, values, lengths);
    try {
      lookup.forward(0, {output.data(), 1, 2});
      ADD_FAILURE() << "no exception";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_BATCH);
      EXPECT_EQ(error.rank(), 1);
      EXPECT_EQ(error.position(), 1);
      EXPECT_EQ(error.value(), 10);
      EXPECT_EQ(error.table(), "t");
      EXPECT_EQ(error.feature(), "f");
    }
  });
}

TEST(Hpp, CollectivesTakeContainersAndMatrices) {
  run_ranks(2, [](shardrec::Comm& comm) {
    const int rank = comm.rank();
    std::vector<double> all(2);
    comm.all_gather(std::vector<double>{rank + 0.5}, all);
    EXPECT_EQ(all, (std::vector<double>{0.5, 1.5}));
    std::vector<float> matrix = {1, 2, -1, 3, 4, -1};
    if (rank == 0) matrix.assign(6, -1);
    comm.broadcast(shardrec::Matrix(matrix.data(), 2, 2, 3), 1);
    EXPECT_EQ(matrix, (std::vector<float>{1, 2, -1, 3, 4, -1}));
    std::vector<int64_t> part(1);
    comm.reduce_scatter(std::vector<int64_t>{10, 20}, part);
    EXPECT_EQ(part[0], rank == 0 ? 20 : 40);
    std::vector<int32_t> swapped(2);
    comm.all_to_all(std::vector<int32_t>{rank, rank}, swapped);
    EXPECT_EQ(swapped, (std::vector<int32_t>{0, 1}));
    std::vector<int32_t> of_one(rank == 0 ? 3 : 0);
    const std::vector<int32_t> mine(rank == 0 ? 1 : 2, rank);
    comm.all_to_all(mine, std::vector<int64_t>{rank == 0 ? 1 : 2, 0}, of_one,
                    std::vector<int64_t>{rank == 0 ? 1 : 0, rank == 0 ? 2 : 0});
    EXPECT_EQ(of_one, rank == 0 ? (std::vector<int32_t>{0, 1, 1}) : std::vector<int32_t>());
    auto part_of_two = comm.split(0, -rank);
    ASSERT_TRUE(part_of_two);
    EXPECT_EQ(part_of_two->rank(), 1 - rank);
    EXPECT_FALSE(comm.split(-1));
  });
}

TEST(Hpp, MetricsAndLossWorkWithoutACommunicator) {
  const std::vector<float> logits = {0, 2, -2, 1};
  const std::vector<float> labels = {0, 1, 0, 1};
  std::vector<float> probabilities(4);
  const double loss = shardrec::bce_with_logits(logits, labels, probabilities);
  double expected = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
    EXPECT_NEAR(probabilities[i], p, 1e-6);
    expected -= std::log(labels[i] == 1 ? p : 1 - p) / 4;
  }
  EXPECT_NEAR(loss, expected, 1e-6);
  shardrec::Metrics metrics;
  metrics.update(probabilities, labels);
  metrics.compute();
  EXPECT_EQ(metrics.metric(SHARDREC_METRIC_AUC), 1);
  EXPECT_EQ(metrics.metric(SHARDREC_METRIC_SAMPLES), 4);
}

TEST(Hpp, TheLibraryTellsOfItself) {
  EXPECT_NE(shardrec::capabilities().find("\"local\""), std::string::npos);
  EXPECT_EQ(shardrec::hash64(""), UINT64_C(0x2d06800538d394c2));
  while (shardrec::next_log(0).has_value()) {
  }
  EXPECT_FALSE(shardrec::next_log(0).has_value());
}

}  // namespace
