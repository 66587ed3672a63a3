// Bags that are counted through on a device begin where one meets them walking.
#include "compute/cuda/host/bag_index.h"

#include <deque>
#include <optional>

#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::Bags;
using compute::Random;
using compute::SparseLength;
using compute::uniform;

class BagIndexOnDevice : public DeviceTest {
 protected:
  // A block of bags, on the host and on the device.
  struct Block {
    Block(BagIndexOnDevice& test, Random& random, int64_t samples, bool sparse, int64_t longest) {
      for (int64_t s = 0; s < samples; ++s) {
        lengths.push_back(static_cast<uint32_t>(uniform(random, 0, longest)));
        if (lengths.back() != 0) {
          sparse_lengths.push_back({static_cast<uint32_t>(s), lengths.back()});
        }
        here.ids += lengths.back();
      }
      here.bags = std::ssize(sparse_lengths);
      here.samples = samples;
      dense_array.emplace(test, lengths.data(), lengths.size() * sizeof(uint32_t));
      sparse_array.emplace(test, sparse_lengths.data(),
                           sparse_lengths.size() * sizeof(SparseLength));
      there = here;
      if (sparse) {
        here.sparse_lengths = sparse_lengths.data();
        there.sparse_lengths = static_cast<const SparseLength*>(sparse_array->data());
      } else {
        here.dense_lengths = lengths.data();
        there.dense_lengths = static_cast<const uint32_t*>(dense_array->data());
      }
    }

    std::vector<uint32_t> lengths;
    std::vector<SparseLength> sparse_lengths;
    std::optional<Array> dense_array;
    std::optional<Array> sparse_array;
    Bags here;
    Bags there;
  };
};

TEST_F(BagIndexOnDevice, SaysWhereTheBagsOfEveryBlockBegin) {
  Random random(3);
  compute::cuda::host::BagIndex index(stream_);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::deque<Block> blocks;
    for (const int64_t samples : {0, 1, 700, 0, 33, 2047, 2048, 2049, 9000, 0}) {
      blocks.emplace_back(*this, random, samples, uniform(random, 0, 1) == 1,
                          samples == 33 ? 0 : uniform(random, 1, 3));
    }
    std::vector<const Bags*> there;
    for (const Block& block : blocks) there.push_back(&block.there);
    const auto indexed = index.run(there);
    ASSERT_EQ(indexed.size(), blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Bags& bags = blocks[b].here;
      if (bags.bags == 0) continue;
      std::vector<uint32_t> first_id;
      std::vector<uint32_t> sample;
      uint32_t ids = 0;
      for_each_bag(bags, [&](int64_t, int64_t s, uint32_t length) {
        first_id.push_back(ids);
        sample.push_back(static_cast<uint32_t>(s));
        ids += length;
      });
      first_id.push_back(ids);
      EXPECT_EQ(read(indexed[b].first_id, first_id.size()), first_id) << "block " << b;
      EXPECT_EQ(read(indexed[b].sample, sample.size()), sample) << "block " << b;
    }
  }
}

TEST_F(BagIndexOnDevice, TakesNoBlocksAndBlocksWithoutLengths) {
  compute::cuda::host::BagIndex index(stream_);
  EXPECT_TRUE(index.run({}).empty());
  const Bags none;
  const Bags* const blocks[] = {&none, &none};
  EXPECT_EQ(index.run(blocks).size(), 2U);
  stream_->wait();
}

}  // namespace
}  // namespace shardrec::test
