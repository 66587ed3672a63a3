// Rows with very many occurrences: their gradients are summed by all threads, with the bits of one.
#include "compute/cpu/rows/hot_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/row_operations.h"
#include "core/memory.h"
#include "support/one_nan.h"

namespace shardrec::compute::cpu {
namespace {

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

  RowUpdate job() const {
    RowUpdate job;
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
    const RowUpdate job = occurrences.job();
    ASSERT_GT(job.run[2] - job.run[1], kHotOccurrences);
    const Kernels& kernels = cpu_kernels();
    core::Scratch work;
    core::Scratch own;
    std::byte* const scratch = own.resize(row_update_scratch_bytes(width));
    std::vector<float> one_thread(static_cast<size_t>(3 * width));
    kernels.row_gradients(job, one_thread.data(), 0, 3, scratch);

    core::Threads threads(3);
    HotRows hot;
    for (int round = 0; round < 2; ++round) {  // what it keeps does not disturb the next batch
      hot.clear();
      const int first = hot.add(job, 1);
      const int second = hot.add(job, 0);
      hot.sum({kernels, threads, work});
      std::vector<float> sum(static_cast<size_t>(width));
      for (const auto& [number, row] : {std::pair(first, 1), std::pair(second, 0)}) {
        const RowUpdate part = hot.job(number, job);
        EXPECT_EQ(part.rows[0], occurrences.rows[static_cast<size_t>(row)]);
        kernels.row_gradients(part, sum.data(), 0, 1, scratch);
        EXPECT_TRUE(test::same_numbers(sum.data(), one_thread.data() + row * width, sum.size()))
            << "width " << width << ", row " << row;
      }
    }
  }
}

// The canonical gradient of row u, in plain steps: each block's sum from +0, then the sums in order.
std::vector<float> canonical(const RowUpdate& job, int64_t u) {
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
    RowUpdate job = occurrences.job();
    job.gradient_scale = 1;
    core::Scratch work;
    core::Scratch own;
    std::byte* const scratch = own.resize(row_update_scratch_bytes(width));
    for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
      const Kernels& kernels = cpu_kernels_at(set);
      for (int64_t u = 0; u < 3; ++u) {
        SCOPED_TRACE(std::string(kernels.name) + ", width " + std::to_string(width) + ", row " +
                     std::to_string(u));
        const std::vector<float> expected = canonical(job, u);
        EXPECT_TRUE(std::signbit(expected[0]));
        const auto is_expected = [&](const std::vector<float>& sum) {
          return test::same_numbers(sum.data(), expected.data(), sum.size());
        };
        std::vector<float> all(static_cast<size_t>(3 * width));
        kernels.row_gradients(job, all.data(), u, u + 1, scratch);
        const auto first = all.begin() + u * width;
        EXPECT_TRUE(is_expected({first, first + width})) << "by one thread";
        for (const int count : {1, 3}) {
          core::Threads threads(count);
          HotRows hot;
          const int number = hot.add(job, u);
          hot.sum({kernels, threads, work});
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

}  // namespace
}  // namespace shardrec::compute::cpu
