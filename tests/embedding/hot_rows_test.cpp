// Rows with very many occurrences: their gradients are summed by all threads, with the bits of one.
#include "compute/cpu/operations/hot_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/memory.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

using compute::cpu::HotRows;

// Row 0 has 3 occurrences, row 1 so many that blocks of 512 bags matter, row 2 one.
struct Occurrences {
  Occurrences(int64_t columns, bool weighted) : width(columns) {
    std::mt19937 random(static_cast<uint32_t>(columns) + (weighted ? 1000 : 0));
    std::normal_distribution<float> normal;
    constexpr int64_t kBags = 30000;
    for (int64_t b = 0; b < kBags; ++b) {
      block_of.push_back(static_cast<uint32_t>(b / 512));
      for (int64_t c = 0; c < width; ++c) values.push_back(normal(random));
    }
    for (int64_t b = 0; b < kBags; ++b) gradient_of.push_back(values.data() + b * width);
    bags = {5, 5, 700};
    run = {0, 3};
    for (int64_t b = 3; b < kBags; b += 1 + b % 3) bags.push_back(static_cast<uint32_t>(b));
    run.push_back(static_cast<int64_t>(bags.size()));
    bags.push_back(9);
    run.push_back(static_cast<int64_t>(bags.size()));
    for (size_t i = 0; weighted && i < bags.size(); ++i) weights.push_back(normal(random));
  }

  compute::RowUpdate job() const {
    compute::RowUpdate job;
    job.width = width;
    job.stride = static_cast<size_t>(width);
    job.rows = rows.data();
    job.run = run.data();
    job.bags = bags.data();
    job.blocks = block_of.data();
    job.gradients = gradient_of.data();
    job.weights = weights.empty() ? nullptr : weights.data();
    job.gradient_scale = 0.5F;
    return job;
  }

  int64_t width;
  std::vector<float> values;
  std::vector<const float*> gradient_of;
  std::vector<uint32_t> block_of;
  std::vector<uint32_t> bags;
  std::vector<int64_t> run;
  std::vector<int64_t> rows{4, 7, 8};
  std::vector<float> weights;
};

class HotRowSums : public ::testing::TestWithParam<bool> {};

TEST_P(HotRowSums, HasTheGradientThatOneThreadSums) {
  for (const int64_t width : {1, 7, 16, 64, 100}) {
    const Occurrences occurrences(width, GetParam());
    const compute::RowUpdate job = occurrences.job();
    ASSERT_GT(job.run[2] - job.run[1], HotRows::kOccurrences);
    const compute::Kernels& kernels = compute::cpu_kernels();
    const size_t lane_bytes = (compute::row_update_scratch_bytes(width) + 63) / 64 * 64;
    core::Scratch work;
    constexpr int64_t kLanes = 24;
    std::byte* const scratch = work.resize(lane_bytes * kLanes);
    std::vector<float> one_thread(static_cast<size_t>(3 * width));
    kernels.row_gradients(job, one_thread.data(), 0, 3, scratch);

    core::Threads threads(3);
    HotRows hot;
    for (int round = 0; round < 2; ++round) {  // what it keeps does not disturb the next batch
      hot.clear();
      const int first = hot.add(job, 1);
      const int second = hot.add(job, 0);
      hot.sum({kernels, threads, work}, scratch, lane_bytes, kLanes);
      std::vector<float> sum(static_cast<size_t>(width));
      for (const auto& [number, row] : {std::pair(first, 1), std::pair(second, 0)}) {
        const compute::RowUpdate part = hot.job(number, job);
        EXPECT_EQ(part.rows[0], occurrences.rows[static_cast<size_t>(row)]);
        kernels.row_gradients(part, sum.data(), 0, 1, scratch);
        EXPECT_EQ(
            std::memcmp(sum.data(), one_thread.data() + row * width, sum.size() * sizeof(float)), 0)
            << "width " << width << ", row " << row;
      }
    }
  }
}

// The canonical gradient of row u, in plain steps: each block's sum from +0, then the sums in order.
std::vector<float> canonical(const compute::RowUpdate& job, int64_t u) {
  std::vector<float> sum(static_cast<size_t>(job.width));
  for (int64_t c = 0; c < job.width; ++c) {
    const auto at = static_cast<size_t>(c);
    float block = 0;
    bool first_block = true;
    for (int64_t o = job.run[u]; o < job.run[u + 1]; ++o) {
      const float weight = job.weights == nullptr ? 1.0F : job.weights[o];
      block = std::fma(weight, job.gradients[job.bags[o]][c] * job.gradient_scale, block);
      const bool last = o + 1 == job.run[u + 1];
      if (!last && job.blocks[job.bags[o + 1]] == job.blocks[job.bags[o]]) continue;
      sum[at] = first_block ? block : sum[at] + block;
      first_block = false;
      block = 0;
    }
  }
  return sum;
}

// Products that are rounded to -0: every block's sum of such a column is -0, and so is the row's.
TEST(HotRow, KeepsTheSignsOfZerosOnAllInstructionSetsAndThreads) {
  for (const int64_t width : {1, 7, 16, 64, 100}) {
    Occurrences occurrences(width, true);
    for (size_t i = 0; i < occurrences.weights.size(); ++i) occurrences.weights[i] = 0.25F;
    for (size_t i = 0; i < occurrences.values.size(); ++i) {
      const size_t column = i % static_cast<size_t>(width);
      const size_t bag = i / static_cast<size_t>(width);
      constexpr float kLeast = -0x1p-149F;
      const float of_kind[] = {kLeast, -0.0F, bag < 600 ? kLeast : -0.0F, bag < 600 ? 0.0F : kLeast,
                               bag % 2 == 0 ? kLeast : -kLeast};
      occurrences.values[i] = of_kind[column % 5];
    }
    compute::RowUpdate job = occurrences.job();
    job.gradient_scale = 1;
    const size_t lane_bytes = (compute::row_update_scratch_bytes(width) + 63) / 64 * 64;
    core::Scratch work;
    constexpr int64_t kLanes = 24;
    std::byte* const scratch = work.resize(lane_bytes * kLanes);
    for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
      const compute::Kernels& kernels = compute::cpu_kernels_at(set);
      for (int64_t u = 0; u < 3; ++u) {
        SCOPED_TRACE(std::string(kernels.name) + ", width " + std::to_string(width) + ", row " +
                     std::to_string(u));
        const std::vector<float> expected = canonical(job, u);
        EXPECT_TRUE(std::signbit(expected[0]));
        const auto is_expected = [&](const std::vector<float>& sum) {
          return std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(float)) == 0;
        };
        std::vector<float> all(static_cast<size_t>(3 * width));
        kernels.row_gradients(job, all.data(), u, u + 1, scratch);
        const auto first = all.begin() + u * width;
        EXPECT_TRUE(is_expected({first, first + width})) << "by one thread";
        for (const int count : {1, 3}) {
          core::Threads threads(count);
          HotRows hot;
          const int number = hot.add(job, u);
          hot.sum({kernels, threads, work}, scratch, lane_bytes, kLanes);
          std::vector<float> sum(static_cast<size_t>(width));
          kernels.row_gradients(hot.job(number, job), sum.data(), 0, 1, scratch);
          EXPECT_TRUE(is_expected(sum)) << "as a hot row, by " << count << " threads";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, HotRowSums, ::testing::Values(false, true),
                         [](const auto& each) { return each.param ? "weighted" : "plain"; });

// A table of 40 rows after one step; 12,000 of 20,000 ids name row 23.
constexpr int64_t kRows = 40;
constexpr int64_t kDim = 8;
constexpr int64_t kSamples = 20000;
constexpr int64_t kHot = 23;

int64_t id_of(int64_t sample) { return sample % 5 < 3 ? kHot : sample % kRows; }
float gradient_of(int64_t sample, int64_t column) {
  return 0x1p-10F * static_cast<float>(1 + (sample + column) % 7);
}

struct Trained {
  std::vector<float> before;
  std::vector<float> after;
};

Trained train(int ranks, const char* sharding, const char* optimizer, double max_norm) {
  Trained trained;
  test::run_ranks(ranks, ranks, [&](int rank, shardrec_comm* comm) {
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, optimizer));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_MAX_NORM, max_norm));
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    int32_t table = 0;
    SR_OK(shardrec_model_add_table(model, "t", kRows, kDim, nullptr, &table));
    SR_OK(shardrec_model_add_feature(model, table, "t", SHARDREC_POOLING_SUM));
    SR_OK(shardrec_model_set_optimizer(model, options));
    shardrec_options_destroy(&options);
    shardrec_topology* topology = nullptr;
    SR_OK(shardrec_topology_create(ranks, ranks, &topology));
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_SHARDING, sharding));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_create(model, topology, options, &plan));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 3));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_GRADIENT_DIVISOR, "none"));
    shardrec_collection* tables = nullptr;
    SR_OK(shardrec_collection_create(comm, model, plan, options, &tables));
    shardrec_options_destroy(&options);
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));

    const int64_t first = kSamples * rank / ranks;
    const int64_t last = kSamples * (rank + 1) / ranks;
    std::vector<int64_t> ids;
    std::vector<float> gradient;
    for (int64_t sample = first; sample < last; ++sample) {
      ids.push_back(id_of(sample));
      for (int64_t c = 0; c < kDim; ++c) gradient.push_back(gradient_of(sample, c));
    }
    std::vector<int64_t> lengths(ids.size(), 1);
    std::vector<float> out(gradient.size());
    const auto read = [&](std::vector<float>& weights) {
      std::vector<float> all(static_cast<size_t>(kRows * kDim));
      const shardrec_tensor view = test::matrix(all.data(), kRows, kDim);
      SR_OK(shardrec_collection_read(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &view));
      if (rank == 0) weights = all;
    };
    read(trained.before);
    const shardrec_tensor ids_view = test::vector_of(ids);
    const shardrec_tensor lengths_view = test::vector_of(lengths);
    SR_OK(shardrec_lookup_begin(lookup, last - first, &ids_view, &lengths_view, nullptr));
    const shardrec_tensor out_view = test::matrix(out.data(), last - first, kDim);
    SR_OK(shardrec_lookup_forward(lookup, 0, &out_view));
    const shardrec_tensor gradient_view = test::matrix(gradient.data(), last - first, kDim);
    SR_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient_view));
    SR_OK(shardrec_lookup_backward(lookup));
    read(trained.after);
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_topology_destroy(&topology);
    shardrec_model_destroy(&model);
  });
  return trained;
}

TEST(HotRowOfATable, TakesTheStepOfItsWholeGradient) {
  const Trained trained = train(1, "table_wise", "sgd", 0);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kDim; ++c) {
      double sum = 0;
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        if (id_of(sample) == row) sum += static_cast<double>(gradient_of(sample, c));
      }
      const auto at = static_cast<size_t>(row * kDim + c);
      EXPECT_NEAR(trained.after[at], static_cast<double>(trained.before[at]) - 0.01 * sum, 1e-6)
          << "row " << row << ", column " << c;
    }
  }
}

TEST(HotRowOfATable, IsTheSameWhereItsColumnsAreCut) {
  for (const char* optimizer : {"rowwise_adagrad", "lamb"}) {
    const Trained whole = train(1, "table_wise", optimizer, 0);
    const Trained cut = train(2, "column_wise", optimizer, 0);
    ASSERT_EQ(whole.before, cut.before);
    for (size_t i = 0; i < whole.after.size(); ++i) {
      EXPECT_NEAR(whole.after[i], cut.after[i], 1e-6) << optimizer << ", element " << i;
    }
    EXPECT_NE(whole.before[kHot * kDim], whole.after[kHot * kDim]);
  }
}

TEST(HotRowOfATable, KeepsMaxNorm) {
  constexpr double kMaxNorm = 0.01;
  for (const int ranks : {1, 2}) {
    const Trained trained = train(ranks, "column_wise", "sgd", kMaxNorm);
    for (int64_t row = 0; row < kRows; ++row) {
      if (row % 5 < 3) continue;  // no id names it
      double squares = 0;
      for (int64_t c = 0; c < kDim; ++c) {
        const double w = trained.after[static_cast<size_t>(row * kDim + c)];
        squares += w * w;
      }
      EXPECT_NEAR(std::sqrt(squares), kMaxNorm, 1e-6) << "row " << row << ", ranks " << ranks;
    }
  }
}

}  // namespace
}  // namespace shardrec::embedding
