// Sums of bags taken on a device have the bits of the CPU's.
#include "compute/cuda/host/lookup/bag_sums.h"

#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::BagSums;
using compute::Element;
using compute::element_bytes;
using compute::Elements;
using compute::kElements;
using compute::Numbers;
using compute::Random;
using compute::SentBags;
using compute::uniform;

class BagSumsOnDevice : public MirroredTest {
 protected:
  struct Shape {
    int64_t samples = 70;
    int64_t longest = 5;
    int64_t width = 16;
    bool bags = true;  // or single ids
  };

  void add(const Shape& shape) {
    const BagLists& lists =
        lists_.emplace_back(random_, shape.samples, shape.longest, uniform(random_, 0, 1) == 1);
    const SentBags& bags = lists.bags;
    SentBags& bags_there = bags_there_.emplace_back(bags);
    if (bags.dense_lengths != nullptr) bags_there.dense_lengths = there(lists.lengths);
    if (bags.sparse_lengths != nullptr) bags_there.sparse_lengths = there(lists.sparse_lengths);
    const int64_t ids = shape.bags ? bags.ids : shape.samples;
    constexpr int64_t kRows = 40;
    const Element element = kElements[uniform(random_, 0, 2)];
    const auto stride = static_cast<size_t>(shape.width + 8 * uniform(random_, 0, 1));
    const Numbers numbers = uniform(random_, 0, 1) == 1 ? Numbers::kSpecial : Numbers::kOrdinary;
    const Elements& table = tables_.emplace_back(
        element, numbers_of(random_, static_cast<size_t>(kRows) * stride, numbers));
    auto& ids_64 = ids_64_.emplace_back();
    auto& ids_32 = ids_32_.emplace_back();
    for (int64_t i = 0; i < ids; ++i) {
      ids_64.push_back(uniform(random_, 0, kRows - 1));
      ids_32.push_back(static_cast<int32_t>(ids_64.back()));
    }
    const auto& weights =
        weights_.emplace_back(numbers_of(random_, static_cast<size_t>(ids), numbers));
    const bool is_64 = uniform(random_, 0, 1) == 1;
    const bool weighted = uniform(random_, 0, 1) == 1;
    const int64_t rows = shape.bags ? bags.bags : ids;
    Written& out = written(static_cast<size_t>(rows * shape.width) * sizeof(float));
    BagSums here{
        .table = {.data = table.data(), .element = element, .stride = stride, .width = shape.width},
        .ids = {.data = is_64 ? static_cast<const void*>(ids_64.data()) : ids_32.data(),
                .is_64 = is_64},
        .weights = weighted ? weights.data() : nullptr,
        .bags = shape.bags ? &bags : nullptr,
        .rows = rows,
        .out = out.on_host<float>()};
    BagSums on_device = here;
    on_device.table.data = there(table.data(), table.size() * element_bytes(element));
    on_device.ids.data = is_64 ? static_cast<const void*>(there(ids_64)) : there(ids_32);
    on_device.weights = weighted ? there(weights) : nullptr;
    on_device.bags = shape.bags ? &bags_there : nullptr;
    on_device.out = out.on_device<float>();
    if (shape.bags && uniform(random_, 0, 3) != 0) {
      const auto words = static_cast<size_t>((shape.samples + 63) / 64 + uniform(random_, 0, 2));
      Written& present = written(words * sizeof(uint64_t));
      here.present = {present.on_host<uint64_t>(), words};
      on_device.present = {present.on_device<uint64_t>(), words};
    }
    here_.push_back(here);
    there_.push_back(on_device);
  }

  void compare() {
    cpu_->lookup().sum_bags(here_);
    if (summation_ == nullptr) {
      summation_ = std::make_unique<compute::cuda::host::BagSummation>(stream_);
    }
    summation_->run(there_);
    for (size_t i = 0; i < written_.size(); ++i) {
      ASSERT_TRUE(same_numbers(Element::kFloat32, written_[i].there->bytes(), written_[i].here))
          << "list " << i;
    }
    clear();
    here_.clear();
    there_.clear();
  }

  std::deque<BagLists> lists_;
  std::deque<SentBags> bags_there_;
  std::deque<Elements> tables_;
  std::deque<std::vector<int64_t>> ids_64_;
  std::deque<std::vector<int32_t>> ids_32_;
  std::deque<std::vector<float>> weights_;
  std::vector<BagSums> here_;
  std::vector<BagSums> there_;
  std::unique_ptr<compute::cuda::host::BagSummation> summation_;
};

TEST_F(BagSumsOnDevice, HaveTheBitsOfTheCpu) {
  for (const int64_t width : {1, 3, 4, 8, 20, 33, 64, 130}) {
    for (int block = 0; block < 6; ++block) {
      add({.samples = uniform(random_, 1, 300),
           .longest = uniform(random_, 1, 9),
           .width = width,
           .bags = uniform(random_, 0, 3) != 0});
    }
    ASSERT_NO_FATAL_FAILURE(compare()) << "width " << width;
  }
}

TEST_F(BagSumsOnDevice, HoldAcrossChunksAndWords) {
  for (const int64_t samples : {63, 64, 65, 511, 512, 513, 1300}) {
    add({.samples = samples, .longest = 2, .width = 4});
    add({.samples = samples, .width = 4, .bags = false});
  }
  compare();
}

TEST_F(BagSumsOnDevice, HoldForBlocksWithoutBagsAndForNone) {
  add({.samples = 0});
  add({.longest = 0});
  add({.samples = 0, .bags = false});
  add({.samples = 200, .longest = 0});
  add({.samples = 3, .longest = 1500});
  compare();
  compare();
}

}  // namespace
}  // namespace shardrec::test
