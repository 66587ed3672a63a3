// Occurrences that a device groups by row are grouped as the CPU groups them.
#include "compute/row_groups.h"

#include <algorithm>
#include <deque>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/rows/row_groups.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::Bags;
using compute::GroupedBlock;
using compute::GroupedPart;
using compute::Numbers;
using compute::Random;
using compute::RowUpdate;
using compute::SparseLength;
using compute::uniform;

struct BlockShape {
  int64_t samples = 40;
  int64_t longest = 4;  // ids of a bag
  bool sparse = false;
  bool sequence = false;
  bool weighted = false;
  int64_t first_sample = 0;
  size_t feature = 0;
};

struct PartShape {
  int64_t rows = 50;
  bool hot = false;  // half of the occurrences are of one row
  std::vector<BlockShape> blocks;
};

class RowGroupsOnDevice : public DeviceTest {
 protected:
  // A block's ids, on the host and on the device.
  class Block {
   public:
    Block(RowGroupsOnDevice& test, Random& random, const PartShape& part, const BlockShape& shape)
        : is_64_(part.rows >= int64_t{1} << 31) {
      for (int64_t s = 0; s < shape.samples; ++s) {
        lengths_.push_back(static_cast<uint32_t>(uniform(random, 0, shape.longest)));
        if (lengths_.back() != 0) {
          sparse_lengths_.push_back({static_cast<uint32_t>(s), lengths_.back()});
        }
        here_.ids += lengths_.back();
      }
      here_.bags = std::ssize(sparse_lengths_);
      here_.samples = shape.samples;
      for (int64_t i = 0; i < here_.ids; ++i) {
        const bool hot = part.hot && uniform(random, 0, 1) == 0;
        ids_64_.push_back(hot ? part.rows / 2 : uniform(random, 0, part.rows - 1));
        ids_32_.push_back(static_cast<int32_t>(ids_64_.back()));
      }
      weights_ = numbers_of(random, ids_64_.size(), Numbers::kSpecial);
      there_ = here_;
      for (Bags* bags : {&here_, &there_}) {
        const bool on_host = bags == &here_;
        const auto data = [&](const auto& list) {
          return on_host ? static_cast<const void*>(list.data()) : put(test, list);
        };
        if (shape.sparse) {
          bags->sparse_lengths = static_cast<const SparseLength*>(data(sparse_lengths_));
        } else {
          bags->dense_lengths = static_cast<const uint32_t*>(data(lengths_));
        }
        (on_host ? host_ : device_) = {
            .bags = bags,
            .ids = {.data = is_64_ ? data(ids_64_) : data(ids_32_), .is_64 = is_64_},
            .weights = shape.weighted ? static_cast<const float*>(data(weights_)) : nullptr,
            .first_sample = shape.first_sample,
            .feature = shape.feature,
            .sequence = shape.sequence};
      }
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    const GroupedBlock& on_host() const { return host_; }
    const GroupedBlock& on_device() const { return device_; }

   private:
    template <class T>
    const void* put(RowGroupsOnDevice& test, const std::vector<T>& list) {
      return arrays_.emplace_back(test, list.data(), list.size() * sizeof(T)).data();
    }

    bool is_64_;
    std::vector<uint32_t> lengths_;
    std::vector<SparseLength> sparse_lengths_;
    std::vector<int64_t> ids_64_;
    std::vector<int32_t> ids_32_;
    std::vector<float> weights_;
    std::deque<Array> arrays_;
    Bags here_;
    Bags there_;
    GroupedBlock host_;
    GroupedBlock device_;
  };

  // Groups the parts on the device and on the CPU.
  void compare(const std::vector<PartShape>& shapes) {
    std::deque<Block> blocks;
    bool weighted = false;
    int64_t most_samples = 0;
    for (const PartShape& part : shapes) {
      for (const BlockShape& block : part.blocks) {
        blocks.emplace_back(*this, random_, part, block);
        weighted |= block.weighted;
        most_samples = std::max(most_samples, block.first_sample + block.samples);
      }
    }
    std::vector<GroupedBlock> here;
    std::vector<GroupedBlock> there;
    for (const Block& block : blocks) {
      here.push_back(block.on_host());
      there.push_back(block.on_device());
    }
    std::vector<GroupedPart> parts_here;
    std::vector<GroupedPart> parts_there;
    size_t first = 0;
    for (const PartShape& part : shapes) {
      const size_t count = part.blocks.size();
      parts_here.push_back({part.rows, std::span(here).subspan(first, count)});
      parts_there.push_back({part.rows, std::span(there).subspan(first, count)});
      first += count;
    }
    const auto expected = cpu_->rows().make_row_groups();
    expected->build(parts_here, weighted, most_samples);
    groups().build(parts_there, weighted, most_samples);
    groups().join();
    for (size_t p = 0; p < shapes.size(); ++p) {
      ASSERT_NO_FATAL_FAILURE(compare(*expected, parts_here[p], p, weighted)) << "part " << p;
    }
  }

  void compare(compute::RowGroups& expected, const GroupedPart& part, size_t p, bool weighted) {
    size_t bags = 0;
    for (const GroupedBlock& block : part.blocks) bags += static_cast<size_t>(block.rows());
    const std::span<const int64_t> rows = expected.rows(p);
    const std::span<const int64_t> run = expected.run(p);
    const auto occurrences = static_cast<size_t>(run.back());
    RowUpdate here;
    RowUpdate there;
    expected.describe(p, here);
    groups().describe(p, there);
    ASSERT_EQ(groups().rows(p).size(), rows.size());
    EXPECT_GE(groups().most_rows(p), std::ssize(rows));
    EXPECT_EQ(read(groups().row_count(p), 1).front(), std::ssize(rows));
    EXPECT_TRUE(groups().counted());
    ASSERT_EQ(groups().run(p).size(), run.size());
    EXPECT_EQ(there.rows, groups().rows(p).data());
    EXPECT_EQ(there.run, groups().run(p).data());
    ASSERT_EQ(read(there.rows, rows.size()), std::vector(rows.begin(), rows.end()));
    ASSERT_EQ(read(there.run, run.size()), std::vector(run.begin(), run.end()));
    ASSERT_EQ(read(there.bags, occurrences), std::vector(here.bags, here.bags + occurrences));
    ASSERT_EQ(read(there.blocks, bags), std::vector(here.blocks, here.blocks + bags));
    if (!weighted) {
      EXPECT_EQ(there.weights, nullptr);
    } else if (occurrences != 0) {
      const std::vector<float> weights = read(there.weights, occurrences);
      ASSERT_EQ(std::memcmp(weights.data(), here.weights, occurrences * sizeof(float)), 0);
    }
  }

  compute::cuda::host::SortedRows& groups() {
    if (groups_ == nullptr) {
      groups_ = std::make_unique<compute::cuda::host::SortedRows>(
          std::make_shared<compute::cuda::host::Stream>(0, booked_), stream_);
    }
    return *groups_;
  }

  // Features of some sources, in canonical order.
  PartShape part_of(int64_t rows, size_t features, int64_t sources, int64_t samples,
                    bool weighted) {
    PartShape part{.rows = rows, .hot = uniform(random_, 0, 2) == 0};
    for (size_t f = 0; f < features; ++f) {
      const bool sequence = uniform(random_, 0, 2) == 0;
      const int64_t longest = uniform(random_, 0, 6);
      int64_t first_sample = 0;
      for (int64_t source = 0; source < sources; ++source) {
        const int64_t own = uniform(random_, 0, samples);
        part.blocks.push_back({.samples = own,
                               .longest = longest,
                               .sparse = uniform(random_, 0, 1) == 1,
                               .sequence = sequence,
                               .weighted = weighted && uniform(random_, 0, 2) != 0,
                               .first_sample = first_sample,
                               .feature = f});
        first_sample += own;
      }
    }
    return part;
  }

  Random random_{11};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::SortedRows> groups_;
};

constexpr int64_t kManyRows = (int64_t{1} << 32) - 70;  // with 70 more, keys of 32 bits still

TEST_F(RowGroupsOnDevice, AreThoseOfTheCpuForPartsOfEverySize) {
  for (const bool weighted : {false, true}) {
    for (const int64_t last : {int64_t{1}, int64_t{20}, kManyRows, int64_t{1} << 40}) {
      std::vector<PartShape> parts;
      for (const int64_t rows : {int64_t{50}, int64_t{1}, int64_t{19}, last}) {
        const auto features = static_cast<size_t>(uniform(random_, 1, 3));
        parts.push_back(part_of(rows, features, uniform(random_, 1, 4), 90, weighted));
      }
      ASSERT_NO_FATAL_FAILURE(compare(parts)) << last << " rows of the last part";
    }
  }
}

TEST_F(RowGroupsOnDevice, OfOneSourceCrossTilesAndBlocksOfSamples) {
  for (const int64_t ids : {2047, 2048, 2049, 6000}) {
    for (const bool sequence : {false, true}) {
      // Bags of at most one id: as many bags as ids, or one bag of all.
      ASSERT_NO_FATAL_FAILURE(compare(
          {{.rows = 300, .blocks = {{.samples = 2 * ids, .longest = 1, .sequence = sequence}}},
           {.rows = 7,
            .hot = true,
            .blocks = {{.samples = 1, .longest = ids, .sequence = sequence, .weighted = true},
                       {.samples = 3,
                        .longest = ids,
                        .sequence = sequence,
                        .weighted = true,
                        .first_sample = 511,
                        .feature = 1}}}}));
    }
  }
}

TEST_F(RowGroupsOnDevice, TakeNoPartsPartsWithoutBlocksAndBlocksWithoutIds) {
  compare({});
  compare({{.rows = 4}, {.rows = 9}});
  compare({{.rows = 4},
           {.rows = 9, .blocks = {{.samples = 0}, {.samples = 5, .longest = 0}}},
           {.rows = 3, .blocks = {{.samples = 50}}},
           {.rows = 1}});
  const int64_t memory = booked_->load();
  EXPECT_GT(memory, 0);
  compare({{.rows = 4}});
  EXPECT_EQ(booked_->load(), memory) << "memory only grows";
}

}  // namespace
}  // namespace shardrec::test
