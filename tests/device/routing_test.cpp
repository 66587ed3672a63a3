// Ids go to the owners of their rows from a device as from the CPU: the same counts, the same blocks.
#include <algorithm>
#include <deque>
#include <optional>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/routing/family.h"
#include "device/device_arrays.h"
#include "device/routed_features.h"

namespace shardrec::test {
namespace {

using compute::BagLengths;
using compute::CheckedIds;
using compute::CheckedLengths;
using compute::LocalChunks;
using compute::WrittenBlocks;
using compute::cuda::host::require;

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
    forget();
  }

  void forget() {
    features_.clear();
    blocks_ = 0;
  }
  size_t blocks() const { return blocks_; }

  compute::cuda::host::IdRouting& routing() {
    if (routing_ == nullptr) routing_ = std::make_unique<compute::cuda::host::IdRouting>(stream_);
    return *routing_;
  }

  Random random_{11};
  std::deque<RoutedFeature> features_;
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);

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

// More bags than a tile of strips has.
TEST_F(RoutingOnDevice, HoldsForManyStrips) {
  for (const TableCut cut : {TableCut::kWhole, TableCut::kEven}) {
    add({.cut = cut, .bags = int64_t{SHARDREC_CUDA_TILE} * SHARDREC_CUDA_STRIP + 70, .longest = 1});
    add({.cut = cut, .bags = 2 * SHARDREC_CUDA_TILE + 1, .longest = 2});
  }
  compare();
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

// A batch whose features are one list, as the caller gives it.
class BatchRoutingOnDevice : public RoutingOnDevice {
 protected:
  template <class Integer>
  struct Given {
    // All features' lengths, one behind another, or offsets.
    Given(BatchRoutingOnDevice& test, bool are_offsets) {
      Integer end = 0;
      if (are_offsets) values.push_back(0);
      for (const RoutedFeature& feature : test.features_) {
        features.push_back({.are_offsets = are_offsets,
                            .first = std::ssize(values) - (are_offsets ? 1 : 0),
                            .bags = feature.shape().bags});
        bags += feature.lengths().size();
        for (const uint32_t length : feature.lengths()) {
          end += static_cast<Integer>(length);
          values.push_back(are_offsets ? end : static_cast<Integer>(length));
        }
        const auto ids = feature.ids();
        const size_t size = feature.shape().reads_64 ? sizeof(int64_t) : sizeof(int32_t);
        const auto own = ids.last(static_cast<size_t>(feature.count()) * size);
        batch.insert(batch.end(), own.begin(), own.end());
      }
      for (BagLengths& feature : features) feature.most = int64_t{end};
      batch_ids = int64_t{end};
    }

    std::vector<Integer> values;
    std::vector<BagLengths> features;
    size_t bags = 0;
    std::vector<std::byte> batch;
    int64_t batch_ids = 0;
  };

  // What a batch is given as, here or there, for routed_. What is read of its lengths goes to out.
  template <class Integer>
  compute::BatchLengths list(const Given<Integer>& given, const void* values, const void* ids,
                             const void* weights, uint32_t* out) {
    lengths_ = given.features;
    checked_lengths_.assign(lengths_.size(), {});
    checked_.assign(lengths_.size(), {});
    counts_.assign(blocks(), {});
    routed_.clear();
    for (size_t f = 0; f < lengths_.size(); ++f) {
      const RoutedFeature& feature = features_[f];
      lengths_[f].given = {values, sizeof(Integer) == sizeof(int64_t)};
      lengths_[f].out = out;
      RoutedIds& routed = routed_.emplace_back(feature.view(ids, weights, out, nullptr, nullptr));
      routed.first = routed.count = 0;
      out += feature.lengths().size();
    }
    return {lengths_, checked_lengths_, given.batch_ids};
  }
  // Counts a batch here, or there.
  template <class Integer>
  bool count(compute::RoutingOperations& routing, const Given<Integer>& given, const void* values,
             const void* ids, uint32_t* out) {
    const auto batch = list(given, values, ids, nullptr, out);
    return routing.count_batch(batch, routed_, checked_, counts_);
  }

  template <class Integer>
  void compare(const Given<Integer>& given) {
    std::vector<uint32_t> out(given.bags, 5);
    Array out_there(*this, out.data(), out.size() * sizeof(uint32_t));
    Array ids_there(*this, given.batch.data(), given.batch.size());
    Array there(*this, given.values.data(), given.values.size() * sizeof(Integer));
    const bool counted =
        count(cpu_->routing(), given, given.values.data(), given.batch.data(), out.data());
    const auto lengths = checked_lengths_;
    const auto counts = counts_;
    auto* const read = static_cast<uint32_t*>(out_there.data());
    ASSERT_EQ(count(family(), given, there.data(), ids_there.data(), read), counted);
    for (size_t f = 0; f < lengths.size(); ++f) {
      ASSERT_EQ(checked_lengths_[f].wrong.position, lengths[f].wrong.position) << f;
      if (lengths[f].wrong.position >= 0) continue;
      ASSERT_EQ(checked_lengths_[f].sum, lengths[f].sum) << f;
    }
    if (!counted) return;
    ASSERT_EQ(DeviceTest::read(read, out.size()), out);
    for (size_t b = 0; b < counts.size(); ++b) {
      ASSERT_EQ(counts_[b].ids, counts[b].ids) << "block " << b;
      ASSERT_EQ(counts_[b].bags, counts[b].bags) << "block " << b;
    }
  }

  // A batch that stays here has the same counts, and its ids are there for lookups before anybody knows. What the
  // caller gave is written over in between.
  template <class Integer>
  void compare_local(const Given<Integer>& given) {
    std::vector<uint32_t> out(given.bags, 5);
    const bool counted =
        count(cpu_->routing(), given, given.values.data(), given.batch.data(), out.data());
    const auto lengths = checked_lengths_;
    const auto counts = counts_;
    // The CPU checks whole features when it writes them.
    const auto checked = counted ? checks_of(given) : std::vector<CheckedIds>(lengths.size());
    std::vector<float> weights(static_cast<size_t>(given.batch_ids));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) + 0.5F;

    Array out_there(*this, std::vector<uint32_t>(given.bags, 5).data(), given.bags * 4);
    Array ids_there(*this, given.batch.data(), given.batch.size());
    Array weights_there(*this, weights.data(), weights.size() * sizeof(float));
    Array values_there(*this, given.values.data(), given.values.size() * sizeof(Integer));
    const bool wide = features_.front().shape().writes_64;
    const std::vector<std::byte> nothing(weights.size() * 8, std::byte{0x5A});
    Array copied(*this, nothing.data(), weights.size() * (wide ? 8 : 4));
    Array copied_weights(*this, nothing.data(), weights.size() * sizeof(float));
    size_t entries = 0;
    for (const RoutedFeature& feature : features_) {
      entries += static_cast<size_t>(compute::chunks_of(feature.shape().bags)) + 1;
    }
    Array chunks_there(*this, std::vector<uint32_t>(3 * entries, 7).data(), 12 * entries);
    std::vector<LocalChunks> chunks;
    auto* next = static_cast<uint32_t*>(chunks_there.data());
    for (const RoutedFeature& feature : features_) {
      const int64_t count = compute::chunks_of(feature.shape().bags) + 1;
      chunks.push_back({.rows = next, .ids = next + count, .batch_ids = next + 2 * count});
      next += 3 * count;
    }

    if (local_ == nullptr) local_ = family().make_local_batch();
    auto* const read = static_cast<uint32_t*>(out_there.data());
    const auto batch =
        list(given, values_there.data(), ids_there.data(), weights_there.data(), read);
    const bool weighted = features_.front().shape().weighted;
    local_->begin(batch, routed_, blocks(),
                  {.ids = copied.data(),
                   .weights = weighted ? static_cast<float*>(copied_weights.data()) : nullptr,
                   .chunks = chunks});
    for (Array* const given_there : {&ids_there, &weights_there, &values_there}) {
      require(compute::cuda::host::table().fill(stream_->handle(), given_there->data(), 0x77,
                                                given_there->bytes_there()),
              "write over what was given");
    }
    const bool is_good =
        counted && std::ranges::all_of(checked, [](auto& c) { return c.wrong.position < 0; });
    EXPECT_EQ(DeviceTest::read(local_->good(), 1).front() != 0, is_good);
    ASSERT_EQ(local_->finish(batch, routed_, checked_, counts_), counted);
    for (size_t f = 0; f < lengths.size(); ++f) {
      ASSERT_EQ(checked_lengths_[f].wrong.position, lengths[f].wrong.position) << f;
      if (lengths[f].wrong.position >= 0) {
        ASSERT_EQ(checked_lengths_[f].wrong.value, lengths[f].wrong.value) << f;
        ASSERT_EQ(checked_lengths_[f].wrong.before, lengths[f].wrong.before) << f;
      } else {
        ASSERT_EQ(checked_lengths_[f].sum, lengths[f].sum) << f;
      }
      if (!counted) continue;
      ASSERT_EQ(checked_[f].wrong.position, checked[f].wrong.position) << f;
      ASSERT_EQ(checked_[f].wrong.value, checked[f].wrong.value) << f;
      if (is_good) {
        ASSERT_EQ(checked_[f].out_of_range, checked[f].out_of_range) << f;
      }
    }
    if (!is_good) return;
    ASSERT_EQ(DeviceTest::read(read, out.size()), out);
    for (size_t b = 0; b < counts.size(); ++b) {
      ASSERT_EQ(counts_[b].ids, counts[b].ids) << "block " << b;
      ASSERT_EQ(counts_[b].bags, counts[b].bags) << "block " << b;
    }
    std::vector<int64_t> rows;
    for_each_id(given, [&](const RoutedFeature& feature, size_t, int64_t id) {
      rows.push_back(is_outside(feature, id) ? 0 : id);
    });
    ASSERT_EQ(copied_ids(copied, wide), rows);
    EXPECT_EQ(
        DeviceTest::read(static_cast<float*>(copied_weights.data()), weights.size()) == weights,
        weighted || weights.empty());
    compare_chunks(DeviceTest::read(static_cast<uint32_t*>(chunks_there.data()), 3 * entries));
  }

  std::vector<int64_t> copied_ids(Array& there, bool wide) {
    const auto bytes = there.bytes();
    std::vector<int64_t> ids(bytes.size() / (wide ? 8 : 4));
    for (size_t i = 0; i < ids.size(); ++i) {
      int32_t narrow = 0;
      if (wide) {
        std::memcpy(&ids[i], bytes.data() + 8 * i, 8);
      } else {
        std::memcpy(&narrow, bytes.data() + 4 * i, 4);
        ids[i] = narrow;
      }
    }
    return ids;
  }
  static bool is_outside(const RoutedFeature& feature, int64_t id) {
    return id < 0 || id >= feature.shape().rows;
  }
  // Calls visit(feature, its number, id), in the order of the batch.
  template <class Integer, class Visit>
  void for_each_id(const Given<Integer>& given, Visit visit) const {
    const std::byte* next = given.batch.data();
    for (size_t f = 0; f < features_.size(); ++f) {
      const bool reads_64 = features_[f].shape().reads_64;
      for (int64_t i = 0; i < features_[f].count(); ++i) {
        int64_t id = 0;
        int32_t narrow = 0;
        if (reads_64) {
          std::memcpy(&id, next, 8);
        } else {
          std::memcpy(&narrow, next, 4);
          id = narrow;
        }
        next += reads_64 ? 8 : 4;
        visit(features_[f], f, id);
      }
    }
  }
  template <class Integer>
  std::vector<CheckedIds> checks_of(const Given<Integer>& given) const {
    std::vector<CheckedIds> checks(features_.size());
    int64_t position = 0;
    for_each_id(given, [&](const RoutedFeature& feature, size_t f, int64_t id) {
      const int64_t here = position++;
      if (!is_outside(feature, id)) return;
      CheckedIds& check = checks[f];
      if (feature.shape().policy != SHARDREC_OUT_OF_RANGE_ERROR) {
        ++check.out_of_range;
      } else if (check.wrong.position < 0) {
        check.wrong = {.position = here, .value = id};
      }
    });
    return checks;
  }
  void compare_chunks(const std::vector<uint32_t>& found) const {
    size_t at = 0;
    uint32_t batch_ids = 0;
    for (const RoutedFeature& feature : features_) {
      const auto chunks = static_cast<size_t>(compute::chunks_of(feature.shape().bags)) + 1;
      uint32_t rows = 0;
      uint32_t ids = 0;
      for (size_t c = 0; c < chunks; ++c) {
        ASSERT_EQ(found[at + c], rows) << "chunk " << c;
        ASSERT_EQ(found[at + chunks + c], ids) << "chunk " << c;
        ASSERT_EQ(found[at + 2 * chunks + c], batch_ids + ids) << "chunk " << c;
        const size_t end = std::min(feature.lengths().size(), (c + 1) * size_t{kChunk});
        for (size_t bag = c * size_t{kChunk}; bag < end; ++bag) {
          rows += feature.lengths()[bag] != 0 ? 1 : 0;
          ids += feature.lengths()[bag];
        }
      }
      at += 3 * chunks;
      batch_ids += static_cast<uint32_t>(feature.count());
    }
  }

  // Features of one type of ids, of some tiles.
  void add_features(bool reads_64, std::initializer_list<TableCut> cuts) {
    for (const TableCut cut : cuts) {
      for (const int64_t bags :
           {int64_t{1}, int64_t{0}, cut == TableCut::kMany ? 70 : kTile + 77}) {
        add({.cut = cut,
             .bags = bags,
             .longest = bags == 1 ? 5000 : 3,
             .reads_64 = reads_64,
             .policy = SHARDREC_OUT_OF_RANGE_CLAMP,
             .wrong_ids = 1});
      }
    }
  }

  template <class Integer>
  void compare_all(bool are_offsets) {
    const Given<Integer> good(*this, are_offsets);
    ASSERT_NO_FATAL_FAILURE(compare(good));
    ASSERT_GT(good.batch_ids, 0);
    // Neither lengths that do not add up to the ids, nor wrong ones, have ids counted.
    for (const int64_t more : {-1, 1}) {
      Given<Integer> other = good;
      other.batch_ids += more;
      ASSERT_NO_FATAL_FAILURE(compare(other));
    }
    for (const size_t at : {size_t{1}, good.values.size() - 1}) {
      Given<Integer> wrong = good;
      wrong.values[at] = -1;
      ASSERT_NO_FATAL_FAILURE(compare(wrong));
    }
    ASSERT_NO_FATAL_FAILURE(compare(good));  // nothing is left of them
  }

  static constexpr int64_t kTile = SHARDREC_CUDA_TILE;
  compute::cuda::host::RoutingFamily& family() {
    if (family_ == nullptr) family_ = std::make_unique<compute::cuda::host::RoutingFamily>(stream_);
    return *family_;
  }

  std::vector<BagLengths> lengths_;
  std::vector<CheckedLengths> checked_lengths_;
  std::vector<RoutedIds> routed_;
  std::vector<CheckedIds> checked_;
  std::vector<BlockCount> counts_;
  std::unique_ptr<compute::cuda::host::RoutingFamily> family_;
  std::shared_ptr<compute::LocalBatch> local_;
};

TEST_F(BatchRoutingOnDevice, CountsAsTheCpuWhileItReadsTheLengths) {
  using enum TableCut;
  for (const bool reads_64 : {false, true}) {
    add_features(reads_64, {kEven, kWhole});
    ASSERT_NO_FATAL_FAILURE(compare_all<int32_t>(reads_64));
    ASSERT_NO_FATAL_FAILURE(compare_all<int64_t>(!reads_64));
    forget();
    add_features(reads_64, {kWhole});
    ASSERT_NO_FATAL_FAILURE(compare_all<int32_t>(!reads_64));
    forget();
    add_features(reads_64, {kMany});
    ASSERT_NO_FATAL_FAILURE(compare_all<int64_t>(reads_64));
    forget();
  }
}

TEST_F(BatchRoutingOnDevice, CopiesABatchThatStaysHere) {
  int wrong = 0;
  const auto compare_given = [&](auto& given) {
    ASSERT_NO_FATAL_FAILURE(compare_local(given));
    for (const int64_t more : {-1, 1}) {  // in a list that is long enough
      auto other = given;
      other.batch.resize(other.batch.size() + 8);
      other.batch_ids += more;
      if (other.batch_ids >= 0) {
        ASSERT_NO_FATAL_FAILURE(compare_local(other));
      }
    }
    if (given.values.size() < 2) return;
    for (const size_t at : {size_t{1}, given.values.size() - 1}) {
      auto other = given;
      other.values[at] = -5;
      ASSERT_NO_FATAL_FAILURE(compare_local(other));
    }
    ASSERT_NO_FATAL_FAILURE(compare_local(given));  // nothing is left of them
  };
  for (int repeat = 0; repeat < 24; ++repeat) {
    const bool reads_64 = repeat % 2 == 1;
    const bool writes_64 = repeat % 4 == 3;
    const bool refuses = repeat % 3 != 0;
    const int64_t features = uniform(random_, 1, 40);
    for (int64_t f = 0; f < features; ++f) {
      RoutedShape shape = random_shape(random_, TableCut::kWhole);
      shape.sequence = false;
      shape.reads_64 = reads_64;
      shape.writes_64 = writes_64;
      shape.rows = writes_64 ? int64_t{3} << 31 : 100;
      shape.weighted = repeat % 5 == 0;
      shape.policy = refuses ? SHARDREC_OUT_OF_RANGE_ERROR : SHARDREC_OUT_OF_RANGE_CLAMP;
      shape.wrong_ids = refuses ? 0 : 2;
      RoutedFeature& feature = add(shape);
      if (!refuses || feature.count() == 0 || uniform(random_, 0, features) != 0) continue;
      const int64_t beyond = reads_64 ? (int64_t{1} << 40) + 7 : -3;
      feature.spoil(uniform(random_, 0, feature.count() - 1), beyond);
      ++wrong;
    }
    if (reads_64) {
      Given<int64_t> given(*this, repeat % 8 < 4);
      ASSERT_NO_FATAL_FAILURE(compare_given(given));
    } else {
      Given<int32_t> given(*this, repeat % 8 < 4);
      ASSERT_NO_FATAL_FAILURE(compare_given(given));
    }
    forget();
  }
  EXPECT_GT(wrong, 3);
}

}  // namespace
}  // namespace shardrec::test
