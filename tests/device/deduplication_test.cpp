// Ids that repeat, in messages on a device: the dictionaries of the CPU, byte for byte.
#include "compute/cuda/host/routing/deduplication.h"

#include <algorithm>

#include "compute/id_sections.h"
#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::DeduplicatedBlocks;
using compute::PlainBlock;
using compute::uniform;

struct IdsShape {
  int64_t ids = 0;
  int64_t different = 1;  // at most
  bool is_64 = false;
  bool weighted = false;
};

class DeduplicationOnDevice : public MirroredTest {
 protected:
  struct Message {
    std::vector<PlainBlock> blocks;
    std::vector<std::byte> bytes;
    std::vector<int64_t> unique;

    DeduplicatedBlocks at(void* data) {
      unique.assign(blocks.size(), -1);
      return {static_cast<std::byte*>(data), blocks, unique};
    }
  };

  template <class T>
  static void append(Message& message, const std::vector<T>& list) {
    const auto bytes = std::as_bytes(std::span(list));
    message.bytes.insert(message.bytes.end(), bytes.begin(), bytes.end());
    message.bytes.resize(core::align_up(message.bytes.size(), 8));
  }

  Message message_of(const std::vector<IdsShape>& shapes) {
    Message message;
    for (const IdsShape& shape : shapes) {
      const auto lengths = static_cast<size_t>(uniform(random_, 0, 50));
      append(message, std::vector<uint64_t>(lengths, message.blocks.size()));
      // Some of the different ids stand in most places.
      const int64_t stride = shape.is_64 ? (int64_t{1} << 40) + 7 : 31;
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < shape.ids; ++i) {
        const int64_t most =
            uniform(random_, 0, 2) == 0 ? shape.different : shape.different / 9 + 1;
        ids.push_back(uniform(random_, 0, most - 1) * stride);
      }
      if (shape.is_64) {
        append(message, ids);
      } else {
        append(message, std::vector<int32_t>(ids.begin(), ids.end()));
      }
      const size_t weights = shape.weighted ? ids.size() : 0;
      append(message,
             std::vector<float>(weights, 0.5F + static_cast<float>(message.blocks.size())));
      message.blocks.push_back({.lengths_bytes = lengths * 8,
                                .ids = shape.ids,
                                .is_64 = shape.is_64,
                                .weights_bytes = core::align_up(weights * sizeof(float), 8)});
    }
    return message;
  }

  // Is what travels of the messages the same?
  static void expect_same(const Message& here, std::span<const std::byte> there) {
    size_t bytes = 0;
    for (size_t b = 0; b < here.blocks.size(); ++b) {
      const PlainBlock& block = here.blocks[b];
      bytes += block.lengths_bytes + block.weights_bytes +
               compute::id_section_bytes(static_cast<uint64_t>(block.ids),
                                         static_cast<uint64_t>(here.unique[b]), block.is_64);
    }
    const auto [at, other] = std::mismatch(
        here.bytes.begin(), here.bytes.begin() + static_cast<ptrdiff_t>(bytes), there.begin());
    ASSERT_EQ(at - here.bytes.begin(), static_cast<ptrdiff_t>(bytes)) << "differs there";
  }

  // All in one call, here and there.
  void compare(const std::vector<std::vector<IdsShape>>& shapes) {
    std::vector<Message> here;
    std::vector<std::unique_ptr<Array>> arrays;
    for (const auto& of_message : shapes) {
      here.push_back(message_of(of_message));
      here.back().bytes.resize(here.back().bytes.size() + 8);  // of an empty one too
      arrays.push_back(
          std::make_unique<Array>(*this, here.back().bytes.data(), here.back().bytes.size()));
    }
    std::vector<Message> there = here;
    std::vector<DeduplicatedBlocks> on_host;
    std::vector<DeduplicatedBlocks> on_device;
    for (size_t m = 0; m < here.size(); ++m) {
      on_host.push_back(here[m].at(here[m].bytes.data()));
      on_device.push_back(there[m].at(arrays[m]->data()));
    }
    cpu_->routing().deduplicate_ids(on_host);
    deduplication().run(on_device);
    for (size_t m = 0; m < here.size(); ++m) {
      SCOPED_TRACE("message " + std::to_string(m));
      ASSERT_EQ(there[m].unique, here[m].unique);
      ASSERT_NO_FATAL_FAILURE(expect_same(here[m], arrays[m]->bytes()));
    }
  }

  compute::cuda::host::Deduplication& deduplication() {
    if (deduplication_ == nullptr) {
      deduplication_ = std::make_unique<compute::cuda::host::Deduplication>(stream_);
    }
    return *deduplication_;
  }

  std::unique_ptr<compute::cuda::host::Deduplication> deduplication_;
};

TEST_F(DeduplicationOnDevice, WritesTheDictionariesOfTheCpu) {
  constexpr int64_t kTile = SHARDREC_CUDA_TILE;
  ASSERT_NO_FATAL_FAILURE(compare({{{100, 1}}}));
  // Every width of codes, plain ones between, and messages of which nothing changes.
  ASSERT_NO_FATAL_FAILURE(compare({
      {{15, 1}, {16, 1}, {kTile, 256, false, true}, {0, 1}, {kTile + 1, 257, true, true}},
      {},
      {{15, 3}, {kTile - 1, 1 << 30, false, true}},
      {{5 * kTile + 77, 1 << 30},
       {33, 2, true},
       {7 * kTile + 5, 3000, true},
       {901, 40, false, true}},
      {{0, 1}},
      {{40 * kTile, 70000, true, true}, {200000, 66000, true}, {200000, 40000}},
  }));
  // Buffers that have grown serve smaller batches too.
  ASSERT_NO_FATAL_FAILURE(compare({{{3000, 10, true, true}, {3000, 10, false, true}}}));
}

TEST_F(DeduplicationOnDevice, LeavesMessagesThatWouldNotBeShorter) {
  compare({{{5, 1}, {12, 2, true}}, {}});
  compare({{{4000, 1 << 30, false, true}}});
  deduplication().run({});
}

TEST_F(DeduplicationOnDevice, AgreesOnRandomMessages) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::vector<IdsShape>> shapes(static_cast<size_t>(uniform(random_, 1, 4)));
    for (std::vector<IdsShape>& message : shapes) {
      message.resize(static_cast<size_t>(uniform(random_, 0, 6)));
      for (IdsShape& shape : message) {
        shape = {.ids = uniform(random_, 0, 5000),
                 .different = uniform(random_, 1, 2000),
                 .is_64 = uniform(random_, 0, 1) == 1,
                 .weighted = uniform(random_, 0, 1) == 1};
      }
    }
    SCOPED_TRACE("repeat " + std::to_string(repeat));
    ASSERT_NO_FATAL_FAILURE(compare(shapes));
  }
}

}  // namespace
}  // namespace shardrec::test
