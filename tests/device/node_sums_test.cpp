// Sums of nodes counted and added up on a device have the bits of the CPU's.
#include "compute/cuda/host/assembly/node_sums.h"

#include <bit>

#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::Element;
using compute::NodeSum;
using compute::Numbers;
using compute::PresentRows;
using compute::uniform;

class NodeSumsOnDevice : public MirroredTest {
 protected:
  // likely: of four samples, so many are in a part.
  void add(int64_t samples, int64_t addend_count, int64_t cols, int64_t likely) {
    auto& addends = addends_.emplace_back();
    auto& addends_there = addends_.emplace_back();
    const auto words = static_cast<size_t>((samples + 63) / 64);
    std::vector<uint64_t> any(words, 0U);
    for (int64_t a = 0; a < addend_count; ++a) {
      auto& present = present_.emplace_back(words, 0U);
      for (int64_t s = 0; s < samples; ++s) {
        if (uniform(random_, 1, 4) > likely) continue;
        present[static_cast<size_t>(s / 64)] |= uint64_t{1} << (s % 64);
      }
      int64_t rows = 0;
      for (size_t w = 0; w < words; ++w) {
        any[w] |= present[w];
        rows += std::popcount(present[w]);
      }
      const int64_t before = 4 * uniform(random_, 0, 1);
      const int64_t stride = before + cols + 4 * uniform(random_, 0, 1);
      const Numbers numbers = uniform(random_, 0, 1) == 1 ? Numbers::kSpecial : Numbers::kOrdinary;
      const auto& floats = floats_.emplace_back(
          numbers_of(random_, static_cast<size_t>(rows * stride + before + cols), numbers));
      addends.push_back(
          {.present = present.data(), .rows = floats.data() + before, .stride = stride});
      addends_there.push_back(
          {.present = there(present), .rows = there(floats) + before, .stride = stride});
    }
    int64_t rows = 0;
    for (const uint64_t word : any) rows += std::popcount(word);
    Written& out = written(static_cast<size_t>(rows * cols) * sizeof(float));
    here_.push_back(
        {.addends = addends, .samples = samples, .cols = cols, .out = out.on_host<float>()});
    there_.push_back({.addends = addends_there,
                      .samples = samples,
                      .cols = cols,
                      .out = out.on_device<float>()});
  }

  void compare() {
    if (summation_ == nullptr) {
      summation_ = std::make_unique<compute::cuda::host::NodeSummation>(stream_);
    }
    std::vector<int64_t> rows(here_.size(), -1);
    std::vector<int64_t> rows_there(here_.size(), -2);
    cpu_->assembly().count_node_sums(here_, rows);
    summation_->count(there_, rows_there);
    ASSERT_EQ(rows, rows_there);
    cpu_->assembly().add_on_nodes(here_);
    summation_->run(there_);
    for (size_t i = 0; i < written_.size(); ++i) {
      ASSERT_TRUE(same_numbers(Element::kFloat32, written_[i].there->bytes(), written_[i].here))
          << "sum " << i;
    }
    clear();
    here_.clear();
    there_.clear();
  }

  std::deque<std::vector<PresentRows>> addends_;
  std::deque<std::vector<uint64_t>> present_;
  std::deque<std::vector<float>> floats_;
  std::vector<NodeSum> here_, there_;
  std::unique_ptr<compute::cuda::host::NodeSummation> summation_;
};

TEST_F(NodeSumsOnDevice, HaveTheBitsOfTheCpu) {
  for (const int64_t cols : {1, 3, 4, 16, 33, 64, 132}) {
    for (const int64_t addends : {1, 2, 3, 8}) {
      add(uniform(random_, 1, 200), addends, cols, uniform(random_, 1, 4));
    }
    ASSERT_NO_FATAL_FAILURE(compare()) << cols << " columns";
  }
}

TEST_F(NodeSumsOnDevice, HoldAcrossWordsAndBlocksOfThem) {
  for (const int64_t samples : {63, 64, 65, 128, 64 * 256, 64 * 256 + 1, 64 * 700}) {
    add(samples, 2, 1, 1);
  }
  compare();
}

TEST_F(NodeSumsOnDevice, HoldWhereNoneOrNothingIsThere) {
  add(0, 2, 4, 4);
  add(100, 2, 4, 0);
  add(100, 3, 4, 4);
  compare();
  compare();
}

}  // namespace
}  // namespace shardrec::test
