// Gradients of weights taken on a device have the bits of the CPU's.
#include "compute/cuda/host/gradients/weight_products.h"

#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::ColumnRange;
using compute::Element;
using compute::element_bytes;
using compute::Elements;
using compute::kElements;
using compute::Numbers;
using compute::ProductRows;
using compute::ProductTerm;
using compute::SentBags;
using compute::uniform;
using compute::WeightGradients;
using compute::WeightProducts;

class WeightProductsOnDevice : public MirroredTest {
 protected:
  Numbers some_numbers() {
    return uniform(random_, 0, 2) == 0 ? Numbers::kSpecial : Numbers::kOrdinary;
  }

  // unit: of numbers of columns.
  void add_products(int64_t samples, int64_t longest, int64_t unit) {
    const BagLists& lists =
        lists_.emplace_back(random_, samples, longest, uniform(random_, 0, 1) == 1);
    const SentBags& bags = lists.bags;
    SentBags& bags_there = bags_there_.emplace_back(bags);
    if (bags.dense_lengths != nullptr) bags_there.dense_lengths = there(lists.lengths);
    if (bags.sparse_lengths != nullptr) bags_there.sparse_lengths = there(lists.sparse_lengths);
    auto& ranges = ranges_.emplace_back();
    int64_t width = 0;
    for (int64_t count = uniform(random_, 1, 3); count > 0; --count) {
      const int64_t end = width + unit * uniform(random_, 1, 12);
      ranges.push_back({width, end});
      width = end;
    }
    constexpr int64_t kRows = 30;
    const Element element = kElements[uniform(random_, 0, 2)];
    const auto stride = static_cast<size_t>(width + unit * uniform(random_, 0, 1));
    const Elements& table = tables_.emplace_back(
        element, numbers_of(random_, static_cast<size_t>(kRows) * stride, some_numbers()));
    auto& ids_64 = ids_64_.emplace_back();
    auto& ids_32 = ids_32_.emplace_back();
    for (int64_t i = 0; i < bags.ids; ++i) {
      ids_64.push_back(uniform(random_, 0, kRows - 1));
      ids_32.push_back(static_cast<int32_t>(ids_64.back()));
    }
    const bool is_64 = uniform(random_, 0, 1) == 1;
    const auto& gradients = floats_.emplace_back(
        numbers_of(random_, static_cast<size_t>(bags.bags * width), some_numbers()));
    Written& out = written(static_cast<size_t>(bags.ids) * ranges.size() * sizeof(float));
    WeightProducts here{
        .table = {.data = table.data(), .element = element, .stride = stride, .width = width},
        .ids = {.data = is_64 ? static_cast<const void*>(ids_64.data()) : ids_32.data(),
                .is_64 = is_64},
        .bags = &bags,
        .ranges = ranges,
        .gradients = gradients.data(),
        .out = out.on_host<float>()};
    WeightProducts on_device = here;
    on_device.table.data = there(table.data(), table.size() * element_bytes(element));
    on_device.ids.data = is_64 ? static_cast<const void*>(there(ids_64)) : there(ids_32);
    on_device.bags = &bags_there;
    on_device.gradients = there(gradients);
    on_device.out = out.on_device<float>();
    products_here_.push_back(here);
    products_there_.push_back(on_device);
  }

  // The parts of a table: some of its columns for each interval of its rows, some parts having several
  // intervals, and some ranges.
  void add_sums(int64_t ids, int32_t interval_count, int32_t part_count, bool any = true) {
    std::vector<int64_t> ranges;
    for (int32_t p = 0; p < part_count; ++p) ranges.push_back(uniform(random_, 1, 3));
    auto& terms = terms_.emplace_back();
    auto& first_term = first_term_.emplace_back(1, 0);
    std::vector<std::vector<bool>> got;
    for (int32_t i = 0; i < interval_count; ++i) {
      auto& parts = got.emplace_back(static_cast<size_t>(part_count), false);
      // In any order.
      const auto shift = static_cast<int32_t>(uniform(random_, 0, part_count - 1));
      for (int32_t n = 0; n < part_count; ++n) {
        const int32_t p = (n + shift) % part_count;
        if (uniform(random_, 0, 1) == 0) continue;
        parts[static_cast<size_t>(p)] = true;
        for (int64_t r = 0; r < ranges[static_cast<size_t>(p)]; ++r) {
          terms.push_back({p, static_cast<int32_t>(r)});
        }
      }
      first_term.push_back(static_cast<int32_t>(terms.size()));
    }
    if (!any) terms.clear();
    auto& intervals = intervals_.emplace_back();
    std::vector<int64_t> rows(static_cast<size_t>(part_count), 0);
    const bool one = interval_count == 1 && uniform(random_, 0, 1) == 1;
    for (int64_t i = 0; i < ids; ++i) {
      intervals.push_back(one ? 0 : static_cast<int32_t>(uniform(random_, -1, interval_count - 1)));
      if (intervals.back() < 0) continue;
      for (size_t p = 0; p < rows.size(); ++p) {
        rows[p] += got[static_cast<size_t>(intervals.back())][p] ? 1 : 0;
      }
    }
    auto& parts = parts_.emplace_back();
    auto& parts_there = parts_.emplace_back();
    for (size_t p = 0; p < rows.size(); ++p) {
      const auto& products = floats_.emplace_back(
          numbers_of(random_, static_cast<size_t>(rows[p] * ranges[p]), some_numbers()));
      parts.push_back({products.data(), ranges[p]});
      parts_there.push_back({there(products), ranges[p]});
    }
    Written& out = written(static_cast<size_t>(ids) * sizeof(float));
    sums_here_.push_back({.ids = ids,
                          .intervals = one ? nullptr : intervals.data(),
                          .parts = parts,
                          .terms = terms,
                          .first_term = first_term,
                          .out = out.on_host<float>()});
    sums_there_.push_back({.ids = ids,
                           .intervals = one ? nullptr : there(intervals),
                           .parts = parts_there,
                           .terms = terms,
                           .first_term = first_term,
                           .out = out.on_device<float>()});
  }

  void compare() {
    if (tasks_ == nullptr) {
      tasks_ = std::make_unique<compute::cuda::host::WeightProductTasks>(stream_);
    }
    cpu_->gradients().take_weight_products(products_here_);
    tasks_->run(products_there_);
    cpu_->gradients().sum_weight_products(sums_here_);
    tasks_->run(sums_there_);
    for (size_t i = 0; i < written_.size(); ++i) {
      ASSERT_TRUE(same_numbers(Element::kFloat32, written_[i].there->bytes(), written_[i].here))
          << "list " << i;
    }
    clear();
    products_here_.clear();
    products_there_.clear();
    sums_here_.clear();
    sums_there_.clear();
  }

  std::deque<BagLists> lists_;
  std::deque<SentBags> bags_there_;
  std::deque<std::vector<ColumnRange>> ranges_;
  std::deque<Elements> tables_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int64_t>> ids_64_;
  std::deque<std::vector<int32_t>> ids_32_, intervals_, first_term_;
  std::deque<std::vector<ProductTerm>> terms_;
  std::deque<std::vector<ProductRows>> parts_;
  std::vector<WeightProducts> products_here_, products_there_;
  std::vector<WeightGradients> sums_here_, sums_there_;
  std::unique_ptr<compute::cuda::host::WeightProductTasks> tasks_;
};

TEST_F(WeightProductsOnDevice, HaveTheBitsOfTheCpu) {
  for (const int64_t unit : {1, 4, 8, 16}) {
    for (int block = 0; block < 8; ++block) {
      add_products(uniform(random_, 1, 100), uniform(random_, 1, 6), unit);
    }
    ASSERT_NO_FATAL_FAILURE(compare()) << "columns by " << unit;
  }
}

TEST_F(WeightProductsOnDevice, HoldAcrossBlocksOfIdsAndWithoutAny) {
  for (const int64_t samples : {0, 1, 255, 256, 257, 513}) {
    add_products(samples, 1, 4);
    add_products(samples, 4, 1);
    add_products(samples, 0, 4);
  }
  add_products(5, 900, 4);
  compare();
  compare();
}

TEST_F(WeightProductsOnDevice, SumsHaveTheBitsOfTheCpu) {
  for (int round = 0; round < 5; ++round) {
    for (const int32_t parts : {1, 2, 5, 40}) {
      add_sums(uniform(random_, 1, 300), static_cast<int32_t>(uniform(random_, 1, 4)), parts);
    }
    ASSERT_NO_FATAL_FAILURE(compare());
  }
}

TEST_F(WeightProductsOnDevice, SumsHoldAcrossWordsAndWithoutTerms) {
  for (const int64_t ids : {0, 1, 63, 64, 65, 255, 256, 257, 17000}) {
    add_sums(ids, 2, 3);
    add_sums(ids, 2, 3, false);
  }
  compare();
  compare();
}

}  // namespace
}  // namespace shardrec::test
