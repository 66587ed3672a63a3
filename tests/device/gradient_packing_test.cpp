// Gradients packed on a device have the bits of the CPU's.
#include "compute/cuda/host/gradients/gradient_packing.h"

#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::BagGradients;
using compute::BagSamples;
using compute::ColumnMap;
using compute::Element;
using compute::element_bytes;
using compute::Elements;
using compute::kChunk;
using compute::kElements;
using compute::Numbers;
using compute::OutputGradient;
using compute::SentBags;
using compute::SequenceGradients;
using compute::uniform;

class GradientPackingOnDevice : public MirroredTest {
 protected:
  // Columns as blocks have them: of maps in any order of the feature's columns.
  struct Columns {
    std::vector<ColumnMap> maps;
    int64_t width = 0;
    int64_t of_feature = 0;
  };
  Columns some_columns(int64_t unit) {
    Columns out;
    const int64_t count = uniform(random_, 1, 3);
    for (int64_t m = 0; m < count; ++m) {
      out.of_feature += unit * uniform(random_, 0, 2);
      const ColumnMap map{
          .offset = out.width, .column = out.of_feature, .count = unit * uniform(random_, 1, 20)};
      out.maps.push_back(map);
      out.width += map.count;
      out.of_feature += map.count;
    }
    if (uniform(random_, 0, 1) == 1) {
      const ColumnMap first = out.maps.front();
      out.maps.front() = {.offset = first.offset, .column = 0, .count = first.count};
    }
    return out;
  }

  // Rows of a gradient on the host and on the device.
  std::pair<OutputGradient, OutputGradient> some_gradient(int64_t rows, const Columns& columns,
                                                          int64_t unit) {
    const Element element = kElements[uniform(random_, 0, 2)];
    const auto stride = static_cast<size_t>(columns.of_feature + unit * uniform(random_, 0, 2));
    const Numbers numbers = uniform(random_, 0, 1) == 1 ? Numbers::kSpecial : Numbers::kOrdinary;
    const Elements& elements = elements_.emplace_back(
        element, numbers_of(random_, static_cast<size_t>(rows) * stride, numbers));
    OutputGradient here{.rows = elements.data(), .element = element, .stride = stride};
    OutputGradient on_device = here;
    on_device.rows = there(elements.data(), elements.size() * element_bytes(element));
    return {here, on_device};
  }

  template <class Gradients>
  void set_scale(Gradients& block) {
    const float divisors[] = {1, 4, 3};
    const float limits[] = {0, 0.5F, 1e30F};
    block.divisor = divisors[uniform(random_, 0, 2)];
    block.max_gradient = limits[uniform(random_, 0, 2)];
  }

  // unit: of numbers of columns.
  void add_bags(int64_t samples, int64_t longest, int64_t unit) {
    const BagLists& lists =
        lists_.emplace_back(random_, samples, longest, uniform(random_, 0, 1) == 1);
    SentBags& bags_there = bags_there_.emplace_back(lists.bags);
    if (bags_there.dense_lengths != nullptr) bags_there.dense_lengths = there(lists.lengths);
    if (bags_there.sparse_lengths != nullptr) {
      bags_there.sparse_lengths = there(lists.sparse_lengths);
    }
    bags_there.chunk_rows = there(lists.chunk_rows);
    // The bags of the feature have ids in other blocks too.
    std::vector<uint32_t>& lengths = lengths_.emplace_back(lists.lengths);
    for (uint32_t& length : lengths) length += static_cast<uint32_t>(uniform(random_, 0, 3));
    const Columns& columns = columns_.emplace_back(some_columns(unit));
    int64_t rows = samples;
    BagSamples of_bags;
    BagSamples of_bags_there;
    if (uniform(random_, 0, 2) == 0) {
      auto& starts = starts_.emplace_back(1, 0U);
      auto& numbers = samples_.emplace_back();
      for (int64_t bag = 0; bag < samples; ++bag) {
        for (int64_t s = uniform(random_, 0, 3); s > 0; --s) {
          numbers.push_back(static_cast<uint32_t>(numbers.size()));
        }
        starts.push_back(static_cast<uint32_t>(numbers.size()));
      }
      rows = std::ssize(numbers);
      of_bags = {.starts = starts.data(), .samples = numbers.data()};
      of_bags_there = {.starts = there(starts), .samples = there(numbers)};
    }
    const auto [gradient, gradient_there] = some_gradient(rows, columns, unit);
    const bool mean = uniform(random_, 0, 1) == 1;
    const auto bytes = static_cast<size_t>(lists.bags.bags * columns.width) * sizeof(float);
    Written& out = written(bytes);
    BagGradients here{.bags = &lists.bags,
                      .lengths = mean ? lengths.data() : nullptr,
                      .samples = of_bags,
                      .gradient = gradient,
                      .columns = columns.maps,
                      .width = columns.width,
                      .out = out.on_host<float>()};
    set_scale(here);
    BagGradients on_device = here;
    on_device.bags = &bags_there;
    on_device.lengths = mean ? there(lengths) : nullptr;
    on_device.samples = of_bags_there;
    on_device.gradient = gradient_there;
    on_device.out = out.on_device<float>();
    if (uniform(random_, 0, 1) == 1) {
      Written& unscaled = written(bytes);
      here.unscaled = unscaled.on_host<float>();
      on_device.unscaled = unscaled.on_device<float>();
    }
    bags_here_.push_back(here);
    bag_blocks_there_.push_back(on_device);
  }

  // The blocks of a sequence the ids of which went to some intervals, or to none.
  void add_sequence(int64_t ids, int32_t block_count, int64_t unit) {
    auto& intervals = intervals_.emplace_back();
    const bool one = block_count == 1 && uniform(random_, 0, 1) == 1;
    for (int64_t i = 0; i < ids; ++i) {
      intervals.push_back(one ? 0
                              : static_cast<int32_t>(uniform(random_, -1, 2 * block_count - 1)));
    }
    const int32_t* const intervals_there = there(intervals);
    for (int32_t b = 0; b < block_count; ++b) {
      const int32_t first = 2 * b;
      const int32_t end = first + 2;
      auto& chunk_rows = chunk_rows_.emplace_back();
      uint32_t rows = 0;
      for (int64_t i = 0; i < ids; ++i) {
        if (i % kChunk == 0) chunk_rows.push_back(rows);
        const int32_t interval = intervals[static_cast<size_t>(i)];
        rows += interval >= first && interval < end;
      }
      chunk_rows.push_back(rows);
      const Columns& columns = columns_.emplace_back(some_columns(unit));
      const auto [gradient, gradient_there] = some_gradient(ids, columns, unit);
      Written& out = written(static_cast<size_t>(rows * columns.width) * sizeof(float));
      SequenceGradients here{.ids = ids,
                             .intervals = one ? nullptr : intervals.data(),
                             .first_interval = first,
                             .end_interval = end,
                             .chunk_rows = chunk_rows.data(),
                             .gradient = gradient,
                             .columns = columns.maps,
                             .width = columns.width,
                             .out = out.on_host<float>()};
      set_scale(here);
      SequenceGradients on_device = here;
      on_device.intervals = one ? nullptr : intervals_there;
      on_device.chunk_rows = there(chunk_rows);
      on_device.gradient = gradient_there;
      on_device.out = out.on_device<float>();
      sequences_here_.push_back(here);
      sequences_there_.push_back(on_device);
    }
  }

  void compare() {
    if (packing_ == nullptr) {
      packing_ = std::make_unique<compute::cuda::host::GradientPacking>(stream_);
    }
    cpu_->gradients().pack_bag_gradients(bags_here_);
    packing_->run(bag_blocks_there_);
    cpu_->gradients().pack_sequence_gradients(sequences_here_);
    packing_->run(sequences_there_);
    for (size_t i = 0; i < written_.size(); ++i) {
      ASSERT_TRUE(same_numbers(Element::kFloat32, written_[i].there->bytes(), written_[i].here))
          << "list " << i;
    }
    clear();
    bags_here_.clear();
    bag_blocks_there_.clear();
    sequences_here_.clear();
    sequences_there_.clear();
  }

  std::deque<BagLists> lists_;
  std::deque<SentBags> bags_there_;
  std::deque<Columns> columns_;
  std::deque<Elements> elements_;
  std::deque<std::vector<uint32_t>> lengths_, starts_, samples_, chunk_rows_;
  std::deque<std::vector<int32_t>> intervals_;
  std::vector<BagGradients> bags_here_, bag_blocks_there_;
  std::vector<SequenceGradients> sequences_here_, sequences_there_;
  std::unique_ptr<compute::cuda::host::GradientPacking> packing_;
};

TEST_F(GradientPackingOnDevice, BagsHaveTheBitsOfTheCpu) {
  for (const int64_t unit : {1, 4, 8}) {
    for (int block = 0; block < 14; ++block) {
      add_bags(uniform(random_, 1, 150), uniform(random_, 1, 5), unit);
    }
    ASSERT_NO_FATAL_FAILURE(compare()) << "columns by " << unit;
  }
}

TEST_F(GradientPackingOnDevice, BagsHoldAcrossChunksAndWithoutAny) {
  for (const int64_t samples : {0, 1, 511, 512, 513, 1300}) {
    add_bags(samples, 3, 4);
    add_bags(samples, 0, 4);
  }
  compare();
  compare();
}

TEST_F(GradientPackingOnDevice, SequencesHaveTheBitsOfTheCpu) {
  for (const int64_t unit : {1, 4, 8}) {
    for (const int32_t blocks : {1, 1, 1, 3, 5})
      add_sequence(uniform(random_, 1, 200), blocks, unit);
    ASSERT_NO_FATAL_FAILURE(compare()) << "columns by " << unit;
  }
}

TEST_F(GradientPackingOnDevice, SequencesHoldAcrossChunksAndWithoutIds) {
  for (const int64_t ids : {0, 1, 511, 512, 513, 1300}) {
    add_sequence(ids, 2, 1);
    add_sequence(ids, 1, 1);
  }
  compare();
}

}  // namespace
}  // namespace shardrec::test
