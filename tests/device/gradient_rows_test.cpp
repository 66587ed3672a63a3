// Addresses of gradient rows, numbers of occurrences and places of rows, made on a device, are those of
// the CPU.
#include "compute/cuda/host/gradients/gradient_rows.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/rows/row_updates.h"
#include "compute/cuda/host/slots/row_searches.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::Bags;
using compute::GradientBlock;
using compute::Random;
using compute::RowSearch;
using compute::SingleOccurrences;
using compute::TouchedRows;
using compute::uniform;

class GradientRowsOnDevice : public DeviceTest {
 protected:
  Random random_{7};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
};

// The gradients of a feature's bags, which only their addresses are taken of.
struct Feature {
  std::vector<uint32_t> lengths;
  Bags bags;
  std::vector<float> gradients;
  std::vector<const float*> addresses;
};

TEST_F(GradientRowsOnDevice, LieWhereTheCpuFindsThem) {
  compute::cuda::host::RowUpdates updates(stream_);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::deque<Feature> features;
    std::deque<Array> arrays;
    std::deque<Bags> bags;
    std::vector<GradientBlock> here;
    std::vector<GradientBlock> there;
    for (const int64_t samples : {0, 1, 90, 5000, 0, 2049, 33}) {
      Feature& feature = features.emplace_back();
      for (int64_t s = 0; s < samples; ++s) {
        feature.lengths.push_back(static_cast<uint32_t>(uniform(random_, 0, 2)));
        feature.bags.bags += feature.lengths.back() != 0 ? 1 : 0;
        feature.bags.ids += feature.lengths.back();
      }
      feature.bags.samples = samples;
      feature.bags.dense_lengths = feature.lengths.data();
      feature.gradients.resize(static_cast<size_t>(samples) * 3 + 1);
      feature.addresses.resize(static_cast<size_t>(feature.bags.bags));
      here.push_back({.bags = &feature.bags,
                      .rows = feature.bags.bags,
                      .data = feature.gradients.data(),
                      .stride = uniform(random_, 1, 3),
                      .by_sample = uniform(random_, 0, 1) == 1,
                      .out = feature.addresses.data()});
      Bags& of_device = bags.emplace_back(feature.bags);
      of_device.dense_lengths = static_cast<const uint32_t*>(
          arrays.emplace_back(*this, feature.lengths.data(), feature.lengths.size() * 4).data());
      there.push_back(here.back());
      there.back().bags = &of_device;
      there.back().out = static_cast<const float**>(
          arrays
              .emplace_back(*this, feature.addresses.data(),
                            feature.addresses.size() * sizeof(const float*))
              .data());
    }
    // Of two shards without touched rows, and one without gradients between them.
    const auto shards_of = [](std::span<const GradientBlock> blocks) {
      return std::vector<TouchedRows>{
          {.located = blocks.first(4)}, {}, {.located = blocks.subspan(4)}};
    };
    cpu_->rows().open_rows(shards_of(here));
    updates.open(shards_of(there));
    for (size_t b = 0; b < here.size(); ++b) {
      EXPECT_EQ(read(there[b].out, features[b].addresses.size()), features[b].addresses) << b;
    }
  }
  updates.open({});
}

TEST_F(GradientRowsOnDevice, NumberTheOccurrencesOfRowsThatHaveOneEach) {
  for (const size_t rows : {0U, 1U, 255U, 256U, 5000U}) {
    std::vector<int64_t> run(rows + 1, -1);
    std::vector<uint32_t> bags(rows, 9);
    std::vector<uint32_t> blocks(rows, 9);
    Array run_there(*this, run.data(), run.size() * sizeof(int64_t));
    Array bags_there(*this, bags.data(), rows * sizeof(uint32_t));
    Array blocks_there(*this, blocks.data(), rows * sizeof(uint32_t));
    SingleOccurrences job{static_cast<int64_t>(rows), run.data(), bags.data(), blocks.data()};
    cpu_->gradients().number_occurrences(job);
    job.run = static_cast<int64_t*>(run_there.data());
    job.bags = static_cast<uint32_t*>(bags_there.data());
    job.blocks = static_cast<uint32_t*>(blocks_there.data());
    compute::cuda::host::number_occurrences(job, *stream_);
    EXPECT_EQ(read(job.run, rows + 1), run);
    EXPECT_EQ(read(job.bags, rows), bags);
    EXPECT_EQ(read(job.blocks, rows), blocks);
  }
}

TEST_F(GradientRowsOnDevice, OfRowsBelowBoundsAreCounted) {
  compute::cuda::host::RowSearches searches(stream_);
  std::deque<Array> arrays;
  std::deque<std::vector<int64_t>> lists;
  std::vector<RowSearch> here;
  std::vector<RowSearch> there;
  const auto new_list = [&](size_t count, int64_t most) {
    std::vector<int64_t>& list = lists.emplace_back(count);
    for (int64_t& x : list) x = uniform(random_, 0, most);
    return std::span(list);
  };
  for (const size_t rows : {0U, 1U, 2U, 31U, 900U}) {
    const int64_t most = rows == 31 ? int64_t{1} << 40 : 300;
    const std::span<int64_t> list = new_list(rows, most);
    std::sort(list.begin(), list.end());
    for (const size_t bounds : {0U, 1U, 300U}) {
      const std::span<const int64_t> of_search = new_list(bounds, most + 1);
      here.push_back({.rows = list.data(),
                      .count = std::ssize(list),
                      .bounds = of_search,
                      .before = new_list(bounds, 0).data()});
      there.push_back(here.back());
      there.back().rows = static_cast<const int64_t*>(
          arrays.emplace_back(*this, list.data(), list.size_bytes()).data());
      there.back().before = new_list(bounds, 0).data();
    }
  }
  cpu_->slots().find_rows(here);
  searches.run(there);
  for (size_t s = 0; s < here.size(); ++s) {
    EXPECT_TRUE(std::equal(here[s].before, here[s].before + here[s].bounds.size(), there[s].before))
        << "search " << s;
  }
  searches.run({});
}

}  // namespace
}  // namespace shardrec::test
