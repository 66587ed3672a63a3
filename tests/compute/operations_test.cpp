// Operations of the CPU's back end on batches of several chunks, against plain references.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"

namespace shardrec::compute {
namespace {

constexpr int64_t kSamples = 2 * kChunk + 77;
constexpr int64_t kWidth = 6;

// A block that has ids of some bags of a batch, and a row for each of them.
struct Block {
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block(std::mt19937& random, bool sparse, uint32_t most) {
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      if (sample % kChunk == 0) chunk_rows.push_back(static_cast<uint32_t>(rows));
      lengths.push_back(
          random() % (sparse ? 5 : 2) == 0 ? static_cast<uint32_t>(random() % most) + 1 : 0);
      if (lengths.back() == 0) continue;
      sparse_lengths.push_back({static_cast<uint32_t>(sample), lengths.back()});
      present[static_cast<size_t>(sample) / 64] |= uint64_t{1} << (sample % 64);
      ++rows;
    }
    chunk_rows.push_back(static_cast<uint32_t>(rows));
    for (int64_t i = 0; i < rows * kWidth; ++i) {
      values.push_back(static_cast<float>(random() % 2001) / 100 - 10);
    }
    bags.bags = rows;
    bags.samples = kSamples;
    bags.chunk_rows = chunk_rows.data();
    if (sparse) {
      bags.sparse_lengths = sparse_lengths.data();
    } else {
      bags.dense_lengths = lengths.data();
    }
  }

  // Of a bag that has one; -1: it has none.
  int64_t row_of(int64_t sample) const {
    if (lengths[static_cast<size_t>(sample)] == 0) return -1;
    return std::count_if(lengths.begin(), lengths.begin() + sample,
                         [](uint32_t length) { return length != 0; });
  }
  SentRows sent_rows(int64_t column) const { return {&bags, values.data() + column, kWidth}; }
  PresentRows present_rows(int64_t column) const {
    return {present.data(), values.data() + column, kWidth};
  }

  int64_t rows = 0;
  std::vector<uint32_t> lengths;
  std::vector<SparseLength> sparse_lengths;
  std::vector<uint32_t> chunk_rows;
  std::vector<uint64_t> present = std::vector<uint64_t>(kSamples / 64 + 1);
  std::vector<float> values;
  SentBags bags;
};

class Operations : public ::testing::TestWithParam<int> {
 protected:
  std::mt19937 random_{7};
  core::Threads threads_{GetParam()};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(cpu_kernels(), threads_);
};

// Columns 2 to 5 of four blocks, the last two of which are added up on their node, or not.
TEST_P(Operations, SumsOnNodesAreWhatTheirPartsAddUpTo) {
  constexpr int64_t kCols = 4;
  std::deque<Block> blocks;
  for (const bool sparse : {false, true, true, false}) blocks.emplace_back(random_, sparse, 3);
  std::vector<uint32_t> lengths(kSamples);
  for (const Block& block : blocks) {
    for (size_t s = 0; s < lengths.size(); ++s) lengths[s] += block.lengths[s];
  }
  std::vector<SentRows> addends;
  for (const Block& block : blocks) addends.push_back(block.sent_rows(2));
  const std::vector<PresentRows> present = {blocks[2].present_rows(2), blocks[3].present_rows(2)};

  NodeSum sum{.addends = present, .samples = kSamples, .cols = kCols};
  int64_t rows = 0;
  backend_->assembly().count_node_sums({&sum, 1}, {&rows, 1});
  std::vector<float> sums(static_cast<size_t>(rows * kCols));
  sum.out = sums.data();
  backend_->assembly().add_on_nodes({&sum, 1});
  std::vector<uint32_t> chunk_sums(static_cast<size_t>(chunks_of(kSamples)) + 1);
  const NodeSumCount count{std::span(addends).subspan(2), kSamples, chunk_sums.data()};
  int64_t counted = 0;
  backend_->assembly().count_chunk_sums({&count, 1}, {&counted, 1});
  EXPECT_EQ(chunk_sums.back(), rows);
  EXPECT_EQ(counted, rows);

  for (const bool added_up : {false, true}) {
    std::vector<NodeRows> nodes = {{.addends = std::span(addends).first(2)},
                                   {.addends = std::span(addends).subspan(2)}};
    if (added_up) nodes[1] = {nodes[1].addends, sums.data(), chunk_sums.data()};
    std::vector<float> out(kSamples * kCols, -1);
    const PooledOutput output{.nodes = nodes,
                              .bags = kSamples,
                              .lengths = lengths.data(),
                              .mean = true,
                              .cols = kCols,
                              .out = out.data(),
                              .out_stride = kCols};
    backend_->assembly().assemble_bags({&output, 1});
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      for (int64_t c = 0; c < kCols; ++c) {
        float node_sums[2] = {};
        for (size_t b = 0; b < blocks.size(); ++b) {
          const int64_t row = blocks[b].row_of(sample);
          if (row >= 0) {
            node_sums[b / 2] += blocks[b].values[static_cast<size_t>(row * kWidth + 2 + c)];
          }
        }
        const auto length = static_cast<float>(lengths[static_cast<size_t>(sample)]);
        const float expected = length == 0 ? 0 : (node_sums[0] + node_sums[1]) / length;
        ASSERT_EQ(out[static_cast<size_t>(sample * kCols + c)], expected)
            << "sample " << sample << (added_up ? ", added up" : ", singly");
      }
    }
  }
}

TEST_P(Operations, GradientsOfBagsAreDividedAndClamped) {
  const std::vector<float> gradient = [&] {
    std::vector<float> all;
    for (int64_t i = 0; i < kSamples * 10; ++i) {
      all.push_back(static_cast<float>(random_() % 2001) / 100 - 10);
    }
    return all;
  }();
  // Columns 4 to 7 and 0 to 1 of a feature that begins at column 2 of the output.
  const std::vector<ColumnMap> columns = {{0, 4, 4}, {4, 0, 2}};
  for (const bool sparse : {false, true}) {
    const Block block(random_, sparse, 4);
    std::vector<float> out(static_cast<size_t>(block.rows * kWidth));
    std::vector<float> unscaled(out.size());
    const BagGradients packed{.bags = &block.bags,
                              .lengths = block.lengths.data(),
                              .gradient = {gradient.data() + 2, Element::kFloat32, 10},
                              .columns = columns,
                              .width = kWidth,
                              .divisor = 3,
                              .max_gradient = 2,
                              .out = out.data(),
                              .unscaled = unscaled.data()};
    backend_->gradients().pack_bag_gradients({&packed, 1});
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      const int64_t row = block.row_of(sample);
      if (row < 0) continue;
      const auto length = static_cast<float>(block.lengths[static_cast<size_t>(sample)]);
      for (int64_t c = 0; c < kWidth; ++c) {
        const int64_t column = c < 4 ? c + 4 : c - 4;
        const float g = gradient[static_cast<size_t>(sample * 10 + 2 + column)];
        const auto at = static_cast<size_t>(row * kWidth + c);
        ASSERT_EQ(out[at], std::clamp(g / 3, -2.0F, 2.0F) / length) << sample;
        ASSERT_EQ(unscaled[at], g / length) << sample;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Operations, ::testing::Values(1, 3));

}  // namespace
}  // namespace shardrec::compute
