// A caller's batch, and blocks that arrive, are checked on a device as on the CPU.
#include <algorithm>
#include <deque>
#include <optional>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/routing/batch_checks.h"
#include "compute/cuda/host/routing/received_blocks.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::BagDefect;
using compute::BagLengths;
using compute::Bags;
using compute::CheckedLengths;
using compute::CodedIds;
using compute::Integers;
using compute::Random;
using compute::SamplesByBag;
using compute::SparseLength;
using compute::uniform;
using compute::WrongInteger;

constexpr int64_t kTile = SHARDREC_CUDA_TILE;
constexpr int64_t kSizes[] = {0, 1, 33, kTile - 1, kTile, kTile + 1, 3 * kTile + 500};

class BatchOnDevice : public DeviceTest {
 protected:
  // Integers of one of the two types, here and there.
  struct List {
    List(BatchOnDevice& test, const std::vector<int64_t>& values, bool as_64)
        : wide(values), narrow(values.begin(), values.end()), is_64(as_64) {
      array.emplace(test, here().data, values.size() * (is_64 ? sizeof(int64_t) : sizeof(int32_t)));
    }
    Integers here() const {
      return {is_64 ? static_cast<const void*>(wide.data()) : narrow.data(), is_64};
    }
    Integers there() { return {array->data(), is_64}; }

    std::vector<int64_t> wide;
    std::vector<int32_t> narrow;
    bool is_64;
    std::optional<Array> array;
  };

  template <class T>
  std::vector<T> from_device(Array& array, size_t count) {
    std::vector<T> out(count);
    if (count != 0) std::memcpy(out.data(), array.bytes().data(), count * sizeof(T));
    return out;
  }

  // Features of these lengths, one behind another, read in one call here and there.
  void compare_lengths(const std::vector<std::vector<int64_t>>& lengths, bool are_offsets,
                       bool is_64, int64_t most) {
    std::vector<int64_t> given(3, -5);  // of nobody
    std::vector<BagLengths> here;
    int64_t offset = 0;
    if (are_offsets) given.back() = 0;
    size_t bags = 0;
    for (const std::vector<int64_t>& feature : lengths) {
      const int64_t first = std::ssize(given) - (are_offsets ? 1 : 0);
      here.push_back(
          {.are_offsets = are_offsets, .first = first, .bags = std::ssize(feature), .most = most});
      for (const int64_t length : feature) given.push_back(are_offsets ? offset += length : length);
      bags += feature.size();
    }
    List list(*this, given, is_64);
    std::vector<uint32_t> out(bags, 77);
    Array out_there(*this, out.data(), bags * sizeof(uint32_t));
    std::vector<BagLengths> there = here;
    size_t at = 0;
    for (size_t f = 0; f < here.size(); ++f) {
      here[f].given = list.here();
      here[f].out = out.data() + at;
      there[f].given = list.there();
      there[f].out = static_cast<uint32_t*>(out_there.data()) + at;
      at += lengths[f].size();
    }
    std::vector<CheckedLengths> expected(here.size());
    std::vector<CheckedLengths> found(here.size());
    cpu_->routing().read_lengths(here, expected);
    checks().read_lengths(there, found);
    const std::vector<uint32_t> read = from_device<uint32_t>(out_there, bags);
    at = 0;
    for (size_t f = 0; f < here.size(); at += lengths[f++].size()) {
      const WrongInteger& wrong = expected[f].wrong;
      ASSERT_EQ(found[f].wrong.position, wrong.position) << "feature " << f;
      ASSERT_EQ(found[f].wrong.value, wrong.value) << "feature " << f;
      ASSERT_EQ(found[f].wrong.before, wrong.before) << "feature " << f;
      if (wrong.position >= 0) continue;
      ASSERT_EQ(found[f].sum, expected[f].sum) << "feature " << f;
      ASSERT_TRUE(std::equal(here[f].out, here[f].out + here[f].bags, read.data() + at))
          << "feature " << f;
    }
  }

  std::vector<std::vector<int64_t>> random_lengths(int64_t longest) {
    std::vector<std::vector<int64_t>> lengths;
    for (const int64_t size : kSizes) {
      std::vector<int64_t>& feature = lengths.emplace_back(static_cast<size_t>(size));
      for (int64_t& length : feature) length = uniform(random_, 0, longest);
    }
    return lengths;
  }

  compute::cuda::host::BatchChecks& checks() {
    if (checks_ == nullptr) checks_ = std::make_unique<compute::cuda::host::BatchChecks>(stream_);
    return *checks_;
  }

  Random random_{7};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::BatchChecks> checks_;
};

TEST_F(BatchOnDevice, LengthsAndOffsetsOfAllFeaturesAreReadAtOnce) {
  for (const bool are_offsets : {false, true}) {
    for (const bool is_64 : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(compare_lengths(random_lengths(9), are_offsets, is_64, 9));
      ASSERT_NO_FATAL_FAILURE(compare_lengths({{}}, are_offsets, is_64, 1));
    }
  }
  checks().read_lengths({}, {});
  // A sum beyond 32 bits.
  compare_lengths({std::vector<int64_t>(5000, INT32_MAX)}, false, false, INT32_MAX);
}

TEST_F(BatchOnDevice, TheFirstWrongLengthOfEachFeatureIsTold) {
  for (const bool is_64 : {false, true}) {
    for (const int64_t wrong :
         {int64_t{-1}, int64_t{10}, is_64 ? INT64_MIN : INT32_MIN, is_64 ? INT64_MAX : INT32_MAX}) {
      for (int repeat = 0; repeat < 4; ++repeat) {
        std::vector<std::vector<int64_t>> lengths = random_lengths(9);
        for (std::vector<int64_t>& feature : lengths) {
          // One, and others behind it; in some features none.
          if (feature.empty() || uniform(random_, 0, 3) == 0) continue;
          const auto last = std::ssize(feature) - 1;
          for (int64_t i = uniform(random_, 0, last); i <= last; i += uniform(random_, 1, 900)) {
            feature[static_cast<size_t>(i)] = wrong;
          }
        }
        ASSERT_NO_FATAL_FAILURE(compare_lengths(lengths, false, is_64, 9));
      }
    }
  }
}

TEST_F(BatchOnDevice, TheFirstFallingOffsetOfEachFeatureIsTold) {
  for (const bool is_64 : {false, true}) {
    for (int repeat = 0; repeat < 4; ++repeat) {
      std::vector<std::vector<int64_t>> lengths = random_lengths(9);
      for (std::vector<int64_t>& feature : lengths) {
        if (feature.empty() || uniform(random_, 0, 3) == 0) continue;
        const auto last = std::ssize(feature) - 1;
        for (int64_t i = uniform(random_, 0, last); i <= last; i += uniform(random_, 1, 900)) {
          feature[static_cast<size_t>(i)] = -uniform(random_, 1, 5);
        }
      }
      ASSERT_NO_FATAL_FAILURE(compare_lengths(lengths, true, is_64, 0));
    }
  }
  // Differences that 64 bits do not hold.
  compare_lengths({{INT64_MAX, INT64_MIN, 3}}, true, true, 0);
}

TEST_F(BatchOnDevice, SamplesAreSortedByTheirBags) {
  for (const bool is_64 : {false, true}) {
    for (const bool with_wrong : {false, true}) {
      std::vector<int64_t> bag_of(2, -9);
      std::vector<SamplesByBag> here;
      size_t words = 0;
      for (const int64_t size : kSizes) {
        for (const int64_t bags : {int64_t{1}, size / 3 + 1, 2 * size + 5}) {
          here.push_back({.first = std::ssize(bag_of), .count = size, .bags = bags});
          for (int64_t s = 0; s < size; ++s) bag_of.push_back(uniform(random_, 0, bags - 1));
          if (with_wrong && size != 0 && uniform(random_, 0, 2) != 0) {
            const int64_t wrong = uniform(random_, 0, 1) == 0 ? -1 - size : bags;
            for (int64_t s = uniform(random_, 0, size - 1); s < size; s += 1 + size / 3) {
              bag_of[bag_of.size() - static_cast<size_t>(size - s)] = wrong;
            }
          }
          words += static_cast<size_t>(size + bags + 1);
        }
      }
      // No bags: any sample is wrong.
      here.push_back({.first = std::ssize(bag_of), .count = with_wrong ? 2 : 0, .bags = 0});
      bag_of.insert(bag_of.end(), {0, 4});
      words += 3;
      List list(*this, bag_of, is_64);
      std::vector<uint32_t> out(words, 77);
      Array out_there(*this, out.data(), words * sizeof(uint32_t));
      std::vector<SamplesByBag> there = here;
      size_t at = 0;
      for (size_t f = 0; f < here.size(); ++f) {
        auto* const base = static_cast<uint32_t*>(out_there.data());
        here[f].bag_of = list.here();
        here[f].starts = out.data() + at;
        there[f].bag_of = list.there();
        there[f].starts = base + at;
        at += static_cast<size_t>(here[f].bags + 1);
        here[f].samples = out.data() + at;
        there[f].samples = base + at;
        at += static_cast<size_t>(here[f].count);
      }
      std::vector<WrongInteger> expected(here.size());
      std::vector<WrongInteger> found(here.size());
      cpu_->routing().sort_samples(here, expected);
      checks().sort_samples(there, found);
      const std::vector<uint32_t> sorted = from_device<uint32_t>(out_there, words);
      for (size_t f = 0; f < here.size(); ++f) {
        ASSERT_EQ(found[f].position, expected[f].position) << "feature " << f;
        ASSERT_EQ(found[f].value, expected[f].value) << "feature " << f;
        if (expected[f].position >= 0) continue;
        const auto* const first = here[f].starts;
        const auto length = here[f].bags + 1 + here[f].count;
        ASSERT_TRUE(std::equal(first, first + length, sorted.data() + (first - out.data())))
            << "feature " << f << ": " << here[f].count << " samples of " << here[f].bags
            << " bags";
      }
    }
  }
  checks().sort_samples({}, {});
}

class ReceivedOnDevice : public BatchOnDevice {
 protected:
  struct Block {
    std::vector<uint32_t> dense;
    std::vector<SparseLength> sparse;
    bool is_sparse = false;
    std::optional<Array> array;
    Bags here;
    Bags there;
  };

  // Of good lengths, which a test then spoils.
  Block random_block(int64_t samples, bool sparse) {
    Block block;
    for (int64_t s = 0; s < samples; ++s) {
      block.dense.push_back(static_cast<uint32_t>(uniform(random_, 0, 3)));
      if (block.dense.back() != 0) {
        block.sparse.push_back({static_cast<uint32_t>(s), block.dense.back()});
      }
      block.here.ids += block.dense.back();
    }
    block.here.bags = std::ssize(block.sparse);
    block.here.samples = samples;
    sparse ? block.dense.clear() : block.sparse.clear();
    block.sparse.reserve(1);  // of no bags, too, there is a list
    block.is_sparse = sparse;
    return block;
  }

  void spoil(Block& block) {
    if (uniform(random_, 0, 5) == 0) ++block.here.ids;
    if (!block.dense.empty()) {
      const size_t s = static_cast<size_t>(uniform(random_, 0, std::ssize(block.dense) - 1));
      if (uniform(random_, 0, 1) == 0) block.dense[s] = 0;
    }
    if (block.sparse.size() < 2) return;
    const auto i = static_cast<size_t>(uniform(random_, 1, std::ssize(block.sparse) - 1));
    switch (uniform(random_, 0, 5)) {
      case 0:
        block.sparse[i].count = 0;
        break;
      case 1:
        block.sparse[i].sample = block.sparse[i - 1].sample;
        break;
      case 2:
        block.sparse.back().sample = static_cast<uint32_t>(block.here.samples);
        break;
      case 3:
        std::swap(block.sparse[i], block.sparse[i - 1]);
        break;
      default:
        break;
    }
  }

  void compare(std::deque<Block>& blocks) {
    std::vector<Bags> here;
    std::vector<Bags> there;
    for (Block& block : blocks) {
      block.there = block.here;
      if (block.is_sparse) {
        block.array.emplace(*this, block.sparse.data(), block.sparse.size() * sizeof(SparseLength));
        block.here.sparse_lengths = block.sparse.data();
        block.there.sparse_lengths = static_cast<const SparseLength*>(block.array->data());
      } else {
        block.array.emplace(*this, block.dense.data(), block.dense.size() * sizeof(uint32_t));
        block.here.dense_lengths = block.dense.data();
        block.there.dense_lengths = static_cast<const uint32_t*>(block.array->data());
      }
      here.push_back(block.here);
      there.push_back(block.there);
    }
    std::vector<BagDefect> expected(here.size());
    std::vector<BagDefect> found(here.size());
    cpu_->routing().check_bags(here, expected);
    compute::cuda::host::ReceivedBlocks(stream_).check_bags(there, found);
    EXPECT_EQ(found, expected);
    for (const BagDefect defect : expected) seen_.insert(seen_.end(), defect);
  }
  bool seen(BagDefect defect) const { return std::ranges::find(seen_, defect) != seen_.end(); }

 private:
  std::vector<BagDefect> seen_;
};

TEST_F(ReceivedOnDevice, DefectsOfBagsAreThoseOfTheCpu) {
  for (int repeat = 0; repeat < 12; ++repeat) {
    std::deque<Block> blocks;
    for (const int64_t size : kSizes) {
      for (const bool sparse : {false, true}) {
        blocks.push_back(random_block(size, sparse));
        if (repeat > 0) spoil(blocks.back());
      }
    }
    ASSERT_NO_FATAL_FAILURE(compare(blocks));
  }
  EXPECT_TRUE(seen(BagDefect::kNone) && seen(BagDefect::kOrder) && seen(BagDefect::kSum));
  compute::cuda::host::ReceivedBlocks(stream_).check_bags({}, {});
}

TEST_F(ReceivedOnDevice, LengthsThatAddUpModulo32BitsOnlyAreADefect) {
  std::deque<Block> blocks(1);
  blocks[0].dense = {UINT32_MAX, 3, 3};
  blocks[0].here = {.ids = 5, .bags = 3, .samples = 3};
  compare(blocks);
  EXPECT_TRUE(seen(BagDefect::kSum));
}

TEST_F(ReceivedOnDevice, CodesAreExpandedAndTheFirstWrongOneIsTold) {
  struct Case {
    std::vector<std::byte> codes;
    std::optional<List> ids;
    std::vector<std::byte> out;
    std::optional<Array> codes_there;
    std::optional<Array> out_there;
  };
  std::deque<Case> cases;
  std::vector<CodedIds> here;
  std::vector<CodedIds> there;
  for (const bool is_64 : {false, true}) {
    for (const int64_t unique : {1, 200, 256, 257, 65536, 65537}) {
      for (const int64_t count : kSizes) {
        const bool with_wrong = uniform(random_, 0, 1) == 1;
        Case& one = cases.emplace_back();
        const size_t bytes = compute::code_bytes(static_cast<uint64_t>(unique));
        for (int64_t i = 0; i < count; ++i) {
          const auto code = static_cast<uint32_t>(
              uniform(random_, 0, with_wrong && i > count / 2 ? unique : unique - 1));
          const auto raw = std::as_bytes(std::span(&code, 1));
          one.codes.insert(one.codes.end(), raw.begin(), raw.begin() + static_cast<int>(bytes));
        }
        std::vector<int64_t> ids(static_cast<size_t>(unique));
        for (int64_t& id : ids) id = uniform(random_, 0, is_64 ? INT64_MAX : INT32_MAX);
        one.ids.emplace(*this, ids, is_64);
        one.out.assign(static_cast<size_t>(count) * (is_64 ? 8 : 4), std::byte{0x5A});
        one.codes_there.emplace(*this, one.codes.data(), one.codes.size());
        one.out_there.emplace(*this, one.out.data(), one.out.size());
        here.push_back({.codes = one.codes.data(),
                        .count = count,
                        .unique_ids = {one.ids->here().data, is_64},
                        .unique = unique,
                        .out = one.out.data()});
        there.push_back({.codes = static_cast<const std::byte*>(one.codes_there->data()),
                         .count = count,
                         .unique_ids = {one.ids->there().data, is_64},
                         .unique = unique,
                         .out = one.out_there->data()});
      }
    }
  }
  std::vector<WrongInteger> expected(here.size());
  std::vector<WrongInteger> found(here.size(), {.position = 3});
  cpu_->routing().expand_ids(here, expected);
  compute::cuda::host::ReceivedBlocks(stream_).expand_ids(there, found);
  for (size_t c = 0; c < cases.size(); ++c) {
    ASSERT_EQ(found[c].position, expected[c].position) << "block " << c;
    ASSERT_EQ(found[c].value, expected[c].value) << "block " << c;
    if (expected[c].position < 0) {
      ASSERT_TRUE(cases[c].out_there->bytes() == cases[c].out) << "block " << c;
    }
  }
  compute::cuda::host::ReceivedBlocks(stream_).expand_ids({}, {});
}

}  // namespace
}  // namespace shardrec::test
