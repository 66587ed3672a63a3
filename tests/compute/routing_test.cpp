// Ids on their way to the owners of their rows: the operations of the back end against a plain walk
// over the bags.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compute/backend_tools.h"

namespace shardrec::compute {
namespace {

constexpr int64_t kSamples = 2 * kChunk + 77;
constexpr int64_t kIdsBefore = 5;  // ids of other features before those of this one

enum class Cut : uint8_t { kWhole, kStreams, kUneven };

struct Case {
  Cut cut = Cut::kWhole;
  bool reads_64 = false;
  bool writes_64 = false;
  bool sequence = false;
  bool keeps_intervals = false;
  shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Cut cut : {Cut::kWhole, Cut::kStreams, Cut::kUneven}) {
    for (int bits = 0; bits < 16; ++bits) {
      for (const shardrec_out_of_range policy :
           {SHARDREC_OUT_OF_RANGE_ERROR, SHARDREC_OUT_OF_RANGE_DROP, SHARDREC_OUT_OF_RANGE_CLAMP}) {
        const Case c{.cut = cut,
                     .reads_64 = (bits & 1) != 0,
                     .writes_64 = (bits & 2) != 0,
                     .sequence = (bits & 4) != 0,
                     .keeps_intervals = (bits & 8) != 0,
                     .policy = policy};
        // What goes to its blocks whole drops nothing and has one interval.
        if (cut == Cut::kWhole && (c.keeps_intervals || policy == SHARDREC_OUT_OF_RANGE_DROP)) {
          continue;
        }
        cases.push_back(c);
      }
    }
  }
  return cases;
}

std::string name_of(const Case& c) {
  constexpr const char* kCuts[] = {"Whole", "Streams", "Uneven"};
  constexpr const char* kPolicies[] = {"Error", "Drop", "Clamp"};
  return std::string(kCuts[static_cast<int>(c.cut)]) + (c.reads_64 ? "64" : "32") +
         (c.writes_64 ? "To64" : "To32") + (c.sequence ? "Sequence" : "Pooled") +
         (c.keeps_intervals ? "Kept" : "") + kPolicies[c.policy];
}

// The ids of a feature that fall into a block.
struct PlainBags {
  std::vector<std::vector<int64_t>> ids = std::vector<std::vector<int64_t>>(kSamples);
  std::vector<std::vector<float>> weights = std::vector<std::vector<float>>(kSamples);
  std::vector<int64_t> items;  // of each id, in order: where a sequence has it

  BlockCount count() const {
    BlockCount out;
    for (const auto& bag : ids) out.ids += std::ssize(bag), out.bags += bag.empty() ? 0 : 1;
    return out;
  }
};

// A feature by chance, and what its blocks should hold.
class Feature {
 public:
  Feature(const Case& c, std::mt19937& random) : case_(c) {
    cut();
    for (int64_t i = 0; i < kIdsBefore; ++i) add_id(-77);
    const uint32_t often = random() % 2 == 0 ? 1 : 6;
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      lengths_.push_back(random() % often == 0 ? static_cast<uint32_t>(random() % 4) : 0);
      kept_.push_back(lengths_.back());
      for (uint32_t i = 0; i < lengths_.back(); ++i) choose_id(sample, random);
    }
    routed_ = {.first = kIdsBefore,
               .count = std::ssize(values_) - kIdsBefore,
               .weights = weights_.data(),
               .lengths = lengths_.data(),
               .bags = kSamples,
               .rows = rows(),
               .policy = c.policy,
               .sequence = c.sequence,
               .writes_64 = c.writes_64,
               .blocks = blocks_,
               .intervals = c.cut == Cut::kWhole ? nullptr : &intervals_,
               .targets = targets_};
    narrow_.assign(values_.begin(), values_.end());
    routed_.ids = {narrow_.data(), false};
    if (c.reads_64) routed_.ids = {values_.data(), true};
    if (c.policy == SHARDREC_OUT_OF_RANGE_DROP) routed_.kept_lengths = kept_out_.data();
    interval_out_.resize(values_.size());
    if (c.keeps_intervals) routed_.interval_of = interval_out_.data();
  }

  const RoutedIds& routed() const { return routed_; }
  size_t block_count() const { return expected_.size(); }
  const PlainBags& expected(size_t block) const { return expected_[block]; }
  int64_t out_of_range() const { return out_of_range_; }
  void expect_kept() const {
    if (case_.policy == SHARDREC_OUT_OF_RANGE_DROP) {
      EXPECT_EQ(kept_out_, kept_);
    }
    for (size_t i = 0; i < interval_.size() && case_.keeps_intervals; ++i) {
      ASSERT_EQ(interval_out_[i], interval_[i]) << i;
    }
  }

 private:
  int64_t rows() const { return case_.writes_64 ? (int64_t{1} << 31) + 60 : 100; }

  void cut() {
    const int64_t rows = this->rows();
    if (case_.cut == Cut::kWhole) {
      cuts_ = {0, rows};
      first_target_ = {0, 2};
      targets_ = {{2, 0}, {0, 0}};
    } else if (case_.cut == Cut::kStreams) {
      const int64_t even = case_.writes_64 ? 1000000000 : 34;
      cuts_ = {0, even, 2 * even, rows};
      first_target_ = {0, 1, 4, 5};
      targets_ = {{3, 0}, {0, even}, {4, even}, {2, even}, {1, 2 * even}};
      intervals_ = {.even = even,
                    // Wide tables divide.
                    .reciprocal = case_.writes_64 ? 0 : UINT64_MAX / 34 + 1,
                    .streams = true};
    } else {
      // Block 1 has two intervals, block 2 all of them.
      cuts_ = {0, 3, 40, rows};
      first_target_ = {0, 2, 4, 6};
      targets_ = {{0, 0}, {2, 0}, {1, 3}, {2, 0}, {1, 3}, {2, 0}};
    }
    intervals_.cuts = cuts_;
    intervals_.first_target = first_target_;
    for (const BlockTarget& target : targets_) {
      const auto block = static_cast<uint32_t>(target.block);
      if (std::ranges::find(blocks_, block) == blocks_.end()) blocks_.push_back(block);
    }
    expected_.resize(blocks_.size() + (case_.cut == Cut::kWhole ? 1 : 0));  // one gets nothing
  }

  void add_id(int64_t id) {
    values_.push_back(id);
    weights_.push_back(static_cast<float>(values_.size()) / 8);
  }

  void choose_id(int64_t sample, std::mt19937& random) {
    const bool refuses = case_.policy == SHARDREC_OUT_OF_RANGE_ERROR;
    const bool outside = !refuses && random() % 10 == 0;
    int64_t id = static_cast<int64_t>(random()) % rows();
    if (!case_.reads_64) id %= int64_t{1} << 31;
    if (outside) id = random() % 2 == 0 || !case_.reads_64 ? -1 - id : rows() + id;
    add_id(id);
    out_of_range_ += outside ? 1 : 0;
    const auto item = static_cast<int64_t>(interval_.size());
    if (outside && case_.policy == SHARDREC_OUT_OF_RANGE_DROP) {
      interval_.push_back(kDroppedId);
      --kept_[static_cast<size_t>(sample)];
      return;
    }
    const int64_t row = outside ? 0 : id;
    size_t interval = 0;
    while (row >= cuts_[interval + 1]) ++interval;
    interval_.push_back(static_cast<int32_t>(interval));
    for (int32_t n = first_target_[interval]; n < first_target_[interval + 1]; ++n) {
      const BlockTarget& target = targets_[static_cast<size_t>(n)];
      PlainBags& block = expected_[target.block];
      block.ids[static_cast<size_t>(sample)].push_back(row - target.row);
      block.weights[static_cast<size_t>(sample)].push_back(weights_.back());
      block.items.push_back(item);
    }
  }

  Case case_;
  std::vector<int64_t> cuts_;
  std::vector<int32_t> first_target_;
  std::vector<BlockTarget> targets_;
  std::vector<uint32_t> blocks_;
  RowIntervals intervals_;
  std::vector<int64_t> values_;
  std::vector<int32_t> narrow_;
  std::vector<float> weights_;
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> kept_;
  std::vector<uint32_t> kept_out_ = std::vector<uint32_t>(kSamples, 99);
  std::vector<int32_t> interval_;
  std::vector<int32_t> interval_out_;
  std::vector<PlainBags> expected_;
  int64_t out_of_range_ = 0;
  RoutedIds routed_;
};

// What an operation writes of a block, with a mark behind the last element of each array.
struct WrittenBlock {
  WrittenBlock(const BlockCount& count, bool use_sparse, bool is_64, bool weighted, int64_t chunks)
      : dense(kSamples + 1, 7),
        sparse(static_cast<size_t>(count.bags) + 1),
        ids_32(static_cast<size_t>(count.ids) + 1, -9),
        ids_64(static_cast<size_t>(count.ids) + 1, -9),
        weights(static_cast<size_t>(count.ids) + 1, -9),
        chunk_rows(static_cast<size_t>(chunks) + 1, 7),
        chunk_ids(static_cast<size_t>(chunks) + 1, 7),
        sections{.ids = ids_32.data(),
                 .weights = weighted ? weights.data() : nullptr,
                 .chunk_rows = chunk_rows.data(),
                 .chunk_ids = chunk_ids.data()},
        wide(is_64) {
    if (is_64) sections.ids = ids_64.data();
    if (use_sparse) {
      sections.sparse_lengths = sparse.data();
    } else {
      sections.dense_lengths = dense.data();
    }
  }
  int64_t id(size_t i) const { return wide ? ids_64[i] : ids_32[i]; }

  std::vector<uint32_t> dense;
  std::vector<SparseLength> sparse;
  std::vector<int32_t> ids_32;
  std::vector<int64_t> ids_64;
  std::vector<float> weights;
  std::vector<uint32_t> chunk_rows;
  std::vector<uint32_t> chunk_ids;
  BlockSections sections;
  bool wide;
};

void expect_bags(const WrittenBlock& block, const PlainBags& expected) {
  size_t bag = 0;
  size_t next = 0;
  for (size_t sample = 0; sample < expected.ids.size(); ++sample) {
    const auto& ids = expected.ids[sample];
    if (block.sections.dense_lengths != nullptr) {
      ASSERT_EQ(block.dense[sample], ids.size()) << sample;
    } else if (!ids.empty()) {
      ASSERT_EQ(block.sparse[bag].sample, sample);
      ASSERT_EQ(block.sparse[bag].count, ids.size());
    }
    bag += ids.empty() ? 0 : 1;
    for (size_t i = 0; i < ids.size(); ++i, ++next) {
      ASSERT_EQ(block.id(next), ids[i]) << sample;
      if (block.sections.weights != nullptr) {
        ASSERT_EQ(block.weights[next], expected.weights[sample][i]);
      }
    }
  }
  EXPECT_EQ(block.id(next), -9);
  EXPECT_EQ(block.weights[next], -9);
  EXPECT_EQ(block.dense.back(), 7U);
  EXPECT_EQ(block.sparse[bag].count, 0U);
}

void expect_chunks(const WrittenBlock& block, const PlainBags& expected, bool sequence) {
  for (size_t chunk = 0; chunk < block.chunk_rows.size(); ++chunk) {
    const auto item = static_cast<int64_t>(chunk) * kChunk;
    BlockCount before;
    if (sequence) {
      before.ids = std::ranges::count_if(expected.items, [&](int64_t i) { return i < item; });
    }
    for (int64_t s = 0; s < std::min(item, kSamples) && !sequence; ++s) {
      const auto& bag = expected.ids[static_cast<size_t>(s)];
      before.ids += std::ssize(bag);
      before.bags += bag.empty() ? 0 : 1;
    }
    ASSERT_EQ(block.chunk_ids[chunk], before.ids) << chunk;
    ASSERT_EQ(block.chunk_rows[chunk], sequence ? before.ids : before.bags) << chunk;
  }
}

class Routing : public ::testing::TestWithParam<Case> {};

TEST_P(Routing, BlocksHoldTheIdsOfTheirRows) {
  BackendTools tools;
  for (const uint32_t seed : {1U, 2U, 3U, 4U}) {
    std::mt19937 random(seed);
    const Feature feature(GetParam(), random);
    std::vector<BlockCount> counts(feature.block_count());
    CheckedIds checked;
    tools.backend->routing().count_ids({&feature.routed(), 1}, {&checked, 1}, counts);
    EXPECT_EQ(checked.wrong.position, -1);
    EXPECT_EQ(checked.out_of_range, feature.out_of_range());
    std::vector<WrittenBlock> blocks;
    std::vector<BlockSections> sections;
    std::vector<uint32_t> place(counts.size());
    std::optional<uint32_t> empty;  // the sections that all blocks without ids have
    for (size_t b = 0; b < counts.size(); ++b) {
      const BlockCount expected = feature.expected(b).count();
      ASSERT_EQ(counts[b].ids, expected.ids);
      ASSERT_EQ(counts[b].bags, expected.bags);
      // Copies of one stream have one form, as it follows from their counts.
      const bool sparse = 2 * counts[b].bags < kSamples;
      const bool weighted = !GetParam().sequence && seed % 2 == 0;
      blocks.emplace_back(counts[b], sparse, GetParam().writes_64, weighted,
                          feature.routed().chunks());
    }
    for (const WrittenBlock& block : blocks) sections.push_back(block.sections);
    for (uint32_t b = 0; b < place.size(); ++b) {
      place[b] = b;
      if (counts[b].ids == 0) place[b] = empty.value_or(b);
      if (counts[b].ids == 0) empty = place[b];
    }
    RoutedIds routed = feature.routed();
    if (seed % 2 != 0) routed.weights = nullptr;
    tools.backend->routing().write_ids({&routed, 1}, WrittenBlocks(place, sections), {&checked, 1});
    EXPECT_EQ(checked.wrong.position, -1);
    feature.expect_kept();
    for (const uint32_t b : feature.routed().blocks) {
      expect_bags(blocks[place[b]], feature.expected(b));
      expect_chunks(blocks[place[b]], feature.expected(b), GetParam().sequence);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Routing, ::testing::ValuesIn(all_cases()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace shardrec::compute
