// Outputs assembled on a device, and the sums of nodes counted there, have the bits of the CPU's.
#include "compute/cuda/host/assembly/assembly.h"

#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::BagSamples;
using compute::Element;
using compute::element_bytes;
using compute::kChunk;
using compute::kElements;
using compute::NodeRows;
using compute::NodeSumCount;
using compute::Numbers;
using compute::PooledOutput;
using compute::SentBags;
using compute::SentRows;
using compute::SequenceOutput;
using compute::uniform;

class AssemblyOnDevice : public MirroredTest {
 protected:
  // Of one side, the host's or the device's.
  struct Side {
    std::deque<std::vector<SentRows>> addends;
    std::deque<std::vector<NodeRows>> nodes;
    std::deque<SentBags> bags;
    std::vector<NodeSumCount> counts;
    std::vector<PooledOutput> pooled;
    std::vector<SequenceOutput> sequences;
  };

  struct Shape {
    int64_t bags = 70;
    int64_t longest = 4;
    int64_t cols = 16;
    int64_t nodes = 1;
    int64_t addends = 2;  // at most, of a node
    bool plain = false;   // fp32 rows at addresses of 16 bytes, a row per bag
  };

  Numbers some_numbers() {
    return uniform(random_, 0, 1) == 1 ? Numbers::kSpecial : Numbers::kOrdinary;
  }
  const std::vector<float>& some_floats(int64_t count) {
    return floats_.emplace_back(numbers_of(random_, static_cast<size_t>(count), some_numbers()));
  }

  // The rows of a block, some columns of wider ones.
  void add_rows(const SentBags& bags, const SentBags& bags_there, int64_t rows, int64_t cols,
                std::vector<SentRows>& on_host, std::vector<SentRows>& on_device) {
    const int64_t before = 4 * uniform(random_, 0, 1);
    const int64_t stride = before + cols + 4 * uniform(random_, 0, 1);
    const std::vector<float>& floats = some_floats(rows * stride + before + cols);
    on_host.push_back({.bags = &bags, .rows = floats.data() + before, .stride = stride});
    on_device.push_back({.bags = &bags_there, .rows = there(floats) + before, .stride = stride});
  }

  SentBags& on_device(const BagLists& lists) {
    SentBags& bags = there_.bags.emplace_back(lists.bags);
    bags.dense_lengths = bags.dense_lengths == nullptr ? nullptr : there(lists.lengths);
    bags.sparse_lengths = bags.sparse_lengths == nullptr ? nullptr : there(lists.sparse_lengths);
    bags.chunk_rows = there(lists.chunk_rows);
    return bags;
  }

  void add(const Shape& shape) {
    std::vector<uint32_t>& lengths = lengths_.emplace_back(static_cast<size_t>(shape.bags), 0U);
    auto& nodes = here_.nodes.emplace_back();
    auto& nodes_there = there_.nodes.emplace_back();
    for (int64_t n = 0; n < shape.nodes; ++n) {
      auto& addends = here_.addends.emplace_back();
      auto& addends_there = there_.addends.emplace_back();
      const int64_t count = uniform(random_, 1, shape.addends);
      for (int64_t a = 0; a < count; ++a) {
        const BagLists& lists =
            lists_.emplace_back(random_, shape.bags, shape.longest, uniform(random_, 0, 1) == 1);
        for (size_t b = 0; b < lengths.size(); ++b) lengths[b] += lists.lengths[b];
        add_rows(lists.bags, on_device(lists), lists.bags.bags, shape.cols, addends, addends_there);
      }
      nodes.push_back({.addends = addends});
      nodes_there.push_back({.addends = addends_there});
      if (uniform(random_, 0, 2) == 0) add_sums(shape, nodes.back(), nodes_there.back());
    }
    add_output(shape, lengths, nodes, nodes_there);
  }

  // Has the node added its rows up?
  void add_sums(const Shape& shape, NodeRows& node, NodeRows& on_device) {
    const auto chunks = static_cast<size_t>(compute::chunks_of(shape.bags));
    Written& chunk_sums = written((chunks + 1) * sizeof(uint32_t));
    here_.counts.push_back({.addends = node.addends,
                            .bags = shape.bags,
                            .chunk_sums = chunk_sums.on_host<uint32_t>()});
    there_.counts.push_back({.addends = on_device.addends,
                             .bags = shape.bags,
                             .chunk_sums = chunk_sums.on_device<uint32_t>()});
    node.chunk_sums = here_.counts.back().chunk_sums;
    on_device.chunk_sums = there_.counts.back().chunk_sums;
    const std::vector<float>& sums = some_floats(shape.bags * shape.cols);
    node.sums = sums.data();
    on_device.sums = there(sums);
  }

  void add_output(const Shape& shape, const std::vector<uint32_t>& lengths,
                  const std::vector<NodeRows>& nodes, const std::vector<NodeRows>& nodes_there) {
    const Element element = shape.plain ? Element::kFloat32 : kElements[uniform(random_, 0, 2)];
    const auto stride =
        static_cast<size_t>(shape.cols + (shape.plain ? 0 : uniform(random_, 0, 4)));
    PooledOutput out{.nodes = nodes,
                     .bags = shape.bags,
                     .lengths = lengths.data(),
                     .mean = uniform(random_, 0, 1) == 1,
                     .cols = shape.cols,
                     .out_element = element,
                     .out_stride = stride};
    int64_t rows = shape.bags;
    BagSamples samples_there;
    if (!shape.plain && uniform(random_, 0, 2) == 0) {
      auto& starts = starts_.emplace_back(1, 0U);
      auto& samples = samples_.emplace_back();
      for (int64_t bag = 0; bag < shape.bags; ++bag) {
        const int64_t count = uniform(random_, 0, 2);
        for (int64_t s = 0; s < count; ++s)
          samples.push_back(static_cast<uint32_t>(samples.size()));
        starts.push_back(static_cast<uint32_t>(samples.size()));
      }
      std::reverse(samples.begin(), samples.end());
      rows = std::ssize(samples);
      out.samples = {.starts = starts.data(), .samples = samples.data()};
      samples_there = {.starts = there(starts), .samples = there(samples)};
    }
    Written& written_rows = written(static_cast<size_t>(rows) * stride * element_bytes(element));
    elements_.push_back({&written_rows, element});
    out.out = written_rows.on_host<void>();
    here_.pooled.push_back(out);
    out.nodes = nodes_there;
    out.lengths = there(lengths);
    out.samples = samples_there;
    out.out = written_rows.on_device<void>();
    there_.pooled.push_back(out);
  }

  // A sequence of ids, each of which went to one of some blocks, or to none.
  void add_sequence(int64_t ids, int64_t addend_count, int64_t cols, bool dropping = true) {
    auto& addend_of = addend_of_.emplace_back();
    for (int64_t i = 0; i < addend_count + 2; ++i) {
      addend_of.push_back(
          static_cast<int32_t>(i < addend_count ? i : uniform(random_, 0, addend_count - 1)));
    }
    auto& intervals = intervals_.emplace_back();
    const bool one = addend_count == 1 && !dropping;
    std::vector<std::vector<uint32_t>> chunk_rows(static_cast<size_t>(addend_count));
    std::vector<uint32_t> rows(static_cast<size_t>(addend_count), 0U);
    for (int64_t i = 0; i <= ids; ++i) {
      if (i % kChunk == 0 || i == ids) {
        for (size_t a = 0; a < rows.size(); ++a) chunk_rows[a].push_back(rows[a]);
      }
      if (i == ids) break;
      intervals.push_back(static_cast<int32_t>(
          one ? 0 : uniform(random_, dropping ? -1 : 0, std::ssize(addend_of) - 1)));
      if (intervals.back() >= 0) {
        ++rows[static_cast<size_t>(addend_of[static_cast<size_t>(intervals.back())])];
      }
    }
    auto& addends = here_.addends.emplace_back();
    auto& addends_there = there_.addends.emplace_back();
    for (size_t a = 0; a < rows.size(); ++a)
      add_answers(chunk_rows[a], rows[a], cols, addends, addends_there);
    const Element element = kElements[uniform(random_, 0, 2)];
    const auto stride = static_cast<size_t>(cols + uniform(random_, 0, 4));
    Written& out = written(static_cast<size_t>(ids) * stride * element_bytes(element));
    elements_.push_back({&out, element});
    SequenceOutput output{.addends = addends,
                          .ids = ids,
                          .intervals = one ? nullptr : intervals.data(),
                          .addend_of = addend_of,
                          .cols = cols,
                          .out = out.on_host<void>(),
                          .out_element = element,
                          .out_stride = stride};
    here_.sequences.push_back(output);
    output.addends = addends_there;
    output.intervals = one ? nullptr : there(intervals);
    output.out = out.on_device<void>();
    there_.sequences.push_back(output);
  }

  // A row for each of so many ids, or one for each different one.
  void add_answers(const std::vector<uint32_t>& chunk_rows, uint32_t ids, int64_t cols,
                   std::vector<SentRows>& addends, std::vector<SentRows>& addends_there) {
    const auto& rows = chunk_rows_.emplace_back(chunk_rows);
    SentBags& bags = here_.bags.emplace_back();
    bags.chunk_rows = rows.data();
    const int64_t uniques[] = {0, 5, 300, 70000};
    bags.unique = uniques[uniform(random_, 0, ids > 500 ? 3 : 2)];
    SentBags& bags_there = there_.bags.emplace_back(bags);
    bags_there.chunk_rows = there(rows);
    if (bags.unique != 0) {
      const size_t bytes = compute::code_bytes(static_cast<uint64_t>(bags.unique));
      const auto shift = static_cast<size_t>(uniform(random_, 0, 1));  // codes at any address
      auto& codes = codes_.emplace_back(ids * bytes + shift);
      for (uint32_t i = 0; i < ids; ++i) {
        const auto code = static_cast<uint32_t>(uniform(random_, 0, bags.unique - 1));
        std::memcpy(codes.data() + shift + i * bytes, &code, bytes);
      }
      bags.codes = codes.data() + shift;
      bags_there.codes = there(codes) + shift;
    }
    add_rows(bags, bags_there, bags.unique != 0 ? bags.unique : ids, cols, addends, addends_there);
  }

  void compare() {
    std::vector<int64_t> rows(here_.counts.size(), -1);
    std::vector<int64_t> rows_there(here_.counts.size(), -2);
    cpu_->assembly().count_chunk_sums(here_.counts, rows);
    assembly().count(there_.counts, rows_there);
    ASSERT_EQ(rows, rows_there);
    cpu_->assembly().assemble_bags(here_.pooled);
    assembly().run(there_.pooled);
    cpu_->assembly().assemble_sequences(here_.sequences);
    assembly().run(there_.sequences);
    for (size_t i = 0; i < elements_.size(); ++i) {
      const auto& [list, element] = elements_[i];
      ASSERT_TRUE(same_numbers(element, list->there->bytes(), list->here))
          << "output " << i << ", " << name_of(element);
    }
    for (const NodeSumCount& count : here_.counts) {
      const auto chunk_sums = std::find_if(written_.begin(), written_.end(), [&](Written& list) {
        return list.on_host<uint32_t>() == count.chunk_sums;
      });
      ASSERT_EQ(chunk_sums->there->bytes(), chunk_sums->here);
    }
    clear();
    elements_.clear();
    here_ = {};
    there_ = {};
  }

  compute::cuda::host::Assembly& assembly() {
    if (assembly_ == nullptr) assembly_ = std::make_unique<compute::cuda::host::Assembly>(stream_);
    return *assembly_;
  }

  Side here_, there_;
  std::deque<BagLists> lists_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<uint32_t>> lengths_, starts_, samples_, chunk_rows_;
  std::deque<std::vector<int32_t>> addend_of_, intervals_;
  std::deque<std::vector<std::byte>> codes_;
  std::vector<std::pair<Written*, Element>> elements_;
  std::unique_ptr<compute::cuda::host::Assembly> assembly_;
};

TEST_F(AssemblyOnDevice, BagsHaveTheBitsOfTheCpuForNodesOfAddends) {
  for (const int64_t cols : {1, 3, 4, 8, 20, 64, 130, 132}) {
    for (int output = 0; output < 5; ++output) {
      add({.bags = uniform(random_, 1, 200),
           .longest = uniform(random_, 1, 6),
           .cols = cols,
           .nodes = uniform(random_, 1, 3),
           .addends = 3,
           .plain = output == 0});
    }
    ASSERT_NO_FATAL_FAILURE(compare()) << cols << " columns";
  }
}

TEST_F(AssemblyOnDevice, BagsHoldAcrossWordsAndChunks) {
  for (const int64_t bags : {63, 64, 65, 511, 512, 513, 1100}) {
    add({.bags = bags, .cols = 4, .nodes = 2});
    add({.bags = bags, .longest = 1, .cols = 4, .nodes = 2, .plain = true});
  }
  compare();
}

TEST_F(AssemblyOnDevice, CountsTheSumsOfManyChunks) {
  add({.bags = 300 * kChunk + 3, .longest = 1, .cols = 1, .nodes = 1, .addends = 1});
  NodeRows node = here_.nodes[0][0];
  NodeRows on_device = there_.nodes[0][0];
  add_sums({.bags = here_.pooled[0].bags, .cols = 1}, node, on_device);
  here_.pooled.clear();
  there_.pooled.clear();
  elements_.clear();
  compare();
}

TEST_F(AssemblyOnDevice, BagsHoldWhereNoneOrNothingIsThere) {
  add({.bags = 0});
  add({.bags = 90, .longest = 0});
  add({.bags = 0, .nodes = 3});
  compare();
  compare();
}

TEST_F(AssemblyOnDevice, SequencesHaveTheBitsOfTheCpu) {
  for (const int64_t cols : {1, 4, 20, 33, 64, 132}) {
    for (const int64_t addends : {1, 2, 7, 40})
      add_sequence(uniform(random_, 1, 150), addends, cols);
    add_sequence(90, 1, cols, false);
    ASSERT_NO_FATAL_FAILURE(compare()) << cols << " columns";
  }
}

TEST_F(AssemblyOnDevice, SequencesHoldAcrossChunksAndWithoutIds) {
  for (const int64_t ids : {0, 31, 32, 33, 511, 512, 513, 1700}) {
    add_sequence(ids, 3, 4);
    add_sequence(ids, 1, 4, false);
  }
  compare();
  compare();
}

}  // namespace
}  // namespace shardrec::test
