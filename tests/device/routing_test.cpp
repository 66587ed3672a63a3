// Ids go to the owners of their rows from a device as from the CPU: the same counts, the same blocks.
#include <algorithm>
#include <deque>
#include <optional>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/routing/id_routing.h"
#include "device/device_arrays.h"
#include "device/routed_features.h"

namespace shardrec::test {
namespace {

using compute::CheckedIds;
using compute::WrittenBlocks;

class RoutingOnDevice : public DeviceTest {
 protected:
  struct OnDevice {
    OnDevice(RoutingOnDevice& test, RoutedFeature& feature)
        : ids(test, feature.ids().data(), feature.ids().size()),
          weights(test, feature.weights().data(), feature.weights().size() * sizeof(float)),
          lengths(test, feature.lengths().data(), feature.lengths().size() * sizeof(uint32_t)),
          kept(test, feature.kept().data(), feature.kept().size() * sizeof(uint32_t)),
          interval_of(test, feature.interval_of().data(),
                      feature.interval_of().size() * sizeof(int32_t)) {}
    RoutedIds view(const RoutedFeature& feature) {
      return feature.view(ids.data(), weights.data(), lengths.data(), kept.data(),
                          interval_of.data());
    }
    Array ids, weights, lengths, kept, interval_of;
  };

  RoutedFeature& add(const RoutedShape& shape) {
    // Blocks of nobody lie between those of features.
    RoutedFeature& feature = features_.emplace_back(random_, shape, blocks_ + 1);
    blocks_ += feature.blocks_in_call() + 1;
    return feature;
  }

  // All features in one call, on the device and on the CPU; then none is left. counted: is write()
  // called behind the count() of the same features?
  void compare(bool counted = true) {
    std::deque<OnDevice> on_device;
    std::vector<RoutedIds> here;
    std::vector<RoutedIds> there;
    for (RoutedFeature& feature : features_) {
      here.push_back(feature.on_host());
      there.push_back(on_device.emplace_back(*this, feature).view(feature));
    }
    std::vector<CheckedIds> expected(here.size());
    std::vector<CheckedIds> found(here.size());
    std::vector<BlockCount> expected_counts(blocks_);
    std::vector<BlockCount> counts(blocks_, {.ids = 9, .bags = 9});
    cpu_->routing().count_ids(here, expected, expected_counts);
    routing().count(there, found, counts);
    std::vector<std::byte> messages;
    std::vector<BlockSections> sections;
    if (good(expected)) {
      lay_out(expected_counts);
      messages.assign(bytes_, std::byte{0x5A});
      messages_there_.emplace(*this, messages.data(), bytes_);
      sections = sections_at(messages.data());
      cpu_->routing().write_ids(here, WrittenBlocks(sections), expected);
    }
    for (size_t f = 0; f < here.size(); ++f) {
      ASSERT_EQ(found[f].wrong.position, expected[f].wrong.position) << "feature " << f;
      ASSERT_EQ(found[f].wrong.value, expected[f].wrong.value) << "feature " << f;
      if (good(expected)) {
        ASSERT_EQ(found[f].out_of_range, expected[f].out_of_range) << f;
      }
    }
    if (good(expected)) {
      for (size_t b = 0; b < blocks_; ++b) {
        ASSERT_EQ(counts[b].ids, expected_counts[b].ids) << "block " << b;
        ASSERT_EQ(counts[b].bags, expected_counts[b].bags) << "block " << b;
      }
      if (!counted) routing().count({}, {}, {});
      routing().write(there,
                      WrittenBlocks(sections_at(static_cast<std::byte*>(messages_there_->data()))));
      ASSERT_NO_FATAL_FAILURE(compare_blocks(messages));
      for (size_t f = 0; f < here.size(); ++f) {
        ASSERT_TRUE(same(on_device[f].kept, features_[f].kept())) << "feature " << f;
        ASSERT_TRUE(same(on_device[f].interval_of, features_[f].interval_of())) << "feature " << f;
      }
    }
    features_.clear();
    blocks_ = 0;
  }

  compute::cuda::host::IdRouting& routing() {
    if (routing_ == nullptr) routing_ = std::make_unique<compute::cuda::host::IdRouting>(stream_);
    return *routing_;
  }

  Random random_{11};
  std::deque<RoutedFeature> features_;

 private:
  static bool good(const std::vector<CheckedIds>& checked) {
    return std::ranges::all_of(checked, [](const CheckedIds& c) { return c.wrong.position < 0; });
  }

  template <class T>
  static bool same(Array& there, const std::vector<T>& here) {
    return std::ranges::equal(there.bytes(), std::as_bytes(std::span(here)));
  }

  void lay_out(const std::vector<BlockCount>& counts) {
    rooms_.clear();
    bytes_ = 8;  // where blocks are of nobody
    for (const RoutedFeature& feature : features_) {
      const int64_t items = feature.shape().sequence ? feature.count() : feature.shape().bags;
      for (const uint32_t b : feature.blocks()) {
        BlockRoom room(feature.shape(), counts[b], compute::chunks_of(items));
        rooms_.push_back({b, bytes_, room});
        bytes_ += room.size;
      }
    }
  }

  std::vector<BlockSections> sections_at(std::byte* messages) const {
    std::vector<BlockSections> sections(blocks_);
    for (const auto& [block, offset, room] : rooms_) sections[block] = room.at(messages + offset);
    return sections;
  }

  void compare_blocks(const std::vector<std::byte>& expected) {
    const std::vector<std::byte> written = messages_there_->bytes();
    for (const auto& [block, offset, room] : rooms_) {
      const auto same_from = [&, base = offset](size_t from, size_t to) {
        return std::equal(expected.begin() + static_cast<int64_t>(base + from),
                          expected.begin() + static_cast<int64_t>(base + to),
                          written.begin() + static_cast<int64_t>(base + from));
      };
      ASSERT_TRUE(same_from(room.lengths, room.ids)) << "lengths of block " << block;
      ASSERT_TRUE(same_from(room.ids, room.weights)) << "ids of block " << block;
      ASSERT_TRUE(same_from(room.weights, room.chunk_rows)) << "weights of block " << block;
      ASSERT_TRUE(same_from(room.chunk_rows, room.chunk_ids)) << "rows of chunks, block " << block;
      ASSERT_TRUE(same_from(room.chunk_ids, room.size)) << "ids of chunks, block " << block;
    }
    ASSERT_TRUE(written == expected);
  }

  struct PlacedRoom {
    uint32_t block;
    size_t offset;
    BlockRoom room;
  };

  size_t blocks_ = 0;
  size_t bytes_ = 0;
  std::vector<PlacedRoom> rooms_;
  std::optional<Array> messages_there_;
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::IdRouting> routing_;
};

TEST_F(RoutingOnDevice, BlocksAreThoseOfTheCpuForEveryCutOfATable) {
  for (const TableCut cut : kTableCuts) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      const RoutedShape shape = random_shape(random_, cut);
      add(shape);
      ASSERT_NO_FATAL_FAILURE(compare())
          << "cut " << static_cast<int>(cut) << ", " << shape.bags << " bags of at most "
          << shape.longest << (shape.sequence ? ", sequence" : "") << ", policy " << shape.policy
          << ", form " << shape.form << ", " << (shape.reads_64 ? 64 : 32) << " to "
          << (shape.writes_64 ? 64 : 32) << " bits";
    }
  }
}

TEST_F(RoutingOnDevice, TakesManyFeaturesOfManyKindsAtOnce) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (int f = 0; f < 40; ++f) add(random_shape(random_, kTableCuts[uniform(random_, 0, 5)]));
    ASSERT_NO_FATAL_FAILURE(compare());
  }
  routing().count({}, {}, {});
  routing().write({}, WrittenBlocks());
}

TEST_F(RoutingOnDevice, CountsBeforeItWritesWhatWasNotCounted) {
  for (const TableCut cut : kTableCuts) {
    RoutedShape shape = random_shape(random_, cut);
    shape.policy = SHARDREC_OUT_OF_RANGE_CLAMP;
    add(shape);
  }
  compare(false);
}

// Ids of tiles behind the first one, bags that go on over many ids, chunks inside of bags.
TEST_F(RoutingOnDevice, HoldsForLongBagsAndLongLists) {
  for (const TableCut cut : {TableCut::kWhole, TableCut::kEven, TableCut::kTangled}) {
    for (const bool sequence : {false, true}) {
      add({.cut = cut, .bags = 3, .longest = 6000, .sequence = sequence});
      add({.cut = cut,
           .bags = 2 * kChunk + 77,
           .longest = 5,
           .reads_64 = true,
           .sequence = sequence,
           .weighted = true});
    }
  }
  compare();
}

TEST_F(RoutingOnDevice, TheFirstWrongIdOfEachFeatureIsTold) {
  int wrong_features = 0;
  for (int repeat = 0; repeat < 30; ++repeat) {
    for (int f = 0; f < 4; ++f) {
      RoutedShape shape = random_shape(random_, kTableCuts[uniform(random_, 0, 5)]);
      shape.policy = SHARDREC_OUT_OF_RANGE_ERROR;
      shape.wrong_ids = 0;
      RoutedFeature& feature = add(shape);
      if (feature.count() == 0 || uniform(random_, 0, 2) == 0) continue;
      int64_t i = uniform(random_, 0, feature.count() - 1);
      for (; i < feature.count(); i += uniform(random_, 1, 50)) {
        const int64_t beyond = shape.reads_64 ? shape.rows : std::min(shape.rows, int64_t{1} << 30);
        feature.spoil(i, uniform(random_, 0, 1) == 0 || beyond != shape.rows
                             ? -uniform(random_, 1, INT32_MAX)
                             : beyond + uniform(random_, 0, 5));
      }
      ++wrong_features;
    }
    ASSERT_NO_FATAL_FAILURE(compare());
  }
  EXPECT_GT(wrong_features, 30);
}

}  // namespace
}  // namespace shardrec::test
