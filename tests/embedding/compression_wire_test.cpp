// Compressed messages on the engines, and messages of a peer that are not what they should be.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "comm/local/local_group.h"
#include "core/error.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "planner/planner.h"
#include "support/forwarding.h"
#include "support/memory_link.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

using comm::Communicator;
using Join = std::function<std::shared_ptr<Communicator>(int rank)>;

constexpr int kWireRanks = 3;
constexpr int64_t kWireBatch = 40;
constexpr int64_t kDim = 13;

// Shortens the messages of one operation that come from rank 0, or lengthens them.
struct Damage {
  std::string operation;
  int64_t bytes = 0;
  bool in_place = true;  // else the rank takes the others for ranks of other processes
};

class DamagedChannel final : public test::ForwardingChannel {
 public:
  DamagedChannel(std::shared_ptr<comm::Channel> channel, Damage damage)
      : ForwardingChannel(std::move(channel)), damage_(std::move(damage)) {}

  comm::Ticket post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                    std::shared_ptr<const void> owner) override {
    name_ = operation.name;
    return ForwardingChannel::post(operation, send, std::move(owner));
  }
  void receive(comm::Ticket ticket, std::span<comm::ConstBytes> received) override {
    ForwardingChannel::receive(ticket, received);
    if (name_ != damage_.operation) return;
    const auto size = static_cast<size_t>(std::ssize(received[0]) + damage_.bytes);
    copy_.assign(size, std::byte{0});
    std::copy_n(received[0].begin(), std::min(size, received[0].size()), copy_.begin());
    received[0] = copy_;
  }

 private:
  Damage damage_;
  std::string name_;
  std::vector<std::byte> copy_;
};

class DamagedRank final : public test::ForwardingRank {
 public:
  DamagedRank(std::shared_ptr<Communicator> inner, Damage damage)
      : ForwardingRank(std::move(inner)), damage_(std::move(damage)) {}

  bool reads_in_place() const noexcept override { return damage_.in_place; }
  std::shared_ptr<comm::Channel> open_channel(comm::Purpose purpose) override {
    auto channel = ForwardingRank::open_channel(purpose);
    if (purpose != comm::Purpose::kOutput) return channel;
    return std::make_shared<DamagedChannel>(std::move(channel), damage_);
  }

 private:
  Damage damage_;
};

struct Result {
  std::vector<float> outputs;
  std::vector<std::byte> weights;
  std::optional<core::Error> error;
};

// Two steps on one rank; what it saw.
void train(const std::shared_ptr<Communicator>& communicator, shardrec_compression compression,
           shardrec_sharding kind, bool borrow, Result& result) {
  plan::Model model;
  plan::add_table(model, {.name = "a", .rows = 50, .dim = kDim});
  plan::add_table(model, {.name = "b", .rows = 7, .dim = kDim});
  plan::add_feature(model, {.name = "a", .table = 0, .pooling = SHARDREC_POOLING_SUM});
  plan::add_feature(model, {.name = "b", .table = 1, .pooling = SHARDREC_POOLING_MEAN});
  const plan::Topology topology{.ranks = kWireRanks, .ranks_per_node = 2};
  CollectionOptions options;
  options.threads = 1;
  if (borrow) options.divisor = SHARDREC_DIVISOR_NONE;  // by three, gradients are not lent
  options.forward_compression = compression;
  options.backward_compression = compression;
  const auto collection = std::make_shared<Collection>(
      communicator, model, planner::make_plan(model, topology, kind), options);
  Lookup lookup(collection, {.borrow = borrow});
  std::mt19937_64 random(static_cast<uint64_t>(communicator->rank()));
  for (int step = 0; step < 2; ++step) {
    std::vector<int64_t> values;
    std::vector<int64_t> lengths(2 * kWireBatch, 2);
    for (int64_t i = 0; i < 4 * kWireBatch; ++i) {
      values.push_back(static_cast<int64_t>(random() % (i < 2 * kWireBatch ? 50U : 7U)));
    }
    std::vector<float> out(static_cast<size_t>(kWireBatch * 2 * kDim));
    std::vector<float> gradient(out.size());
    for (float& g : gradient) g = static_cast<float>(random() % 1000) / 777;
    const shardrec_tensor values_tensor = test::vector_of(values);
    const shardrec_tensor lengths_tensor = test::vector_of(lengths);
    const shardrec_tensor out_tensor = test::matrix(out.data(), kWireBatch, 2 * kDim);
    const shardrec_tensor gradient_tensor = test::matrix(gradient.data(), kWireBatch, 2 * kDim);
    lookup.begin({.batch_size = kWireBatch, .values = &values_tensor, .lengths = &lengths_tensor});
    lookup.forward(0, &out_tensor);
    result.outputs.insert(result.outputs.end(), out.begin(), out.end());
    lookup.set_gradient(0, &gradient_tensor);
    lookup.backward();
  }
  for (const Shard& shard : collection->shards()) {
    const auto bytes = static_cast<size_t>(shard.rows()) * shard.row_bytes();
    const size_t before = result.weights.size();
    result.weights.resize(before + bytes);
    collection->backend().transfer().copy(result.weights.data() + before, shard.weights(), bytes);
    collection->backend().wait();
  }
}

std::vector<Result> train_all(const Join& join, shardrec_compression compression,
                              shardrec_sharding kind, bool borrow = false) {
  std::vector<Result> results(kWireRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWireRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Result& result = results[static_cast<size_t>(rank)];
      const auto communicator = join(rank);
      communicator->set_deadlines({.step = 30, .setup = 30, .warn = 20});
      try {
        train(communicator, compression, kind, borrow, result);
        communicator->leave();
      } catch (const core::Error& error) {
        result.error = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

Join on_local() {
  return [group = comm::local::make_group(kWireRanks, 2)](int rank) {
    return comm::local::join(group, rank);
  };
}

Join on_links() {
  support::MemoryLinkOptions options;
  options.ranks_per_node = 2;
  return [link = support::MemoryLink::make(kWireRanks, options)](int rank) {
    return link->join(rank);
  };
}

constexpr shardrec_compression kTypes[] = {
    SHARDREC_COMPRESSION_FLOAT16, SHARDREC_COMPRESSION_BFLOAT16, SHARDREC_COMPRESSION_INT8};

TEST(CompressionEngines, GiveTheSameBits) {
  for (const shardrec_sharding kind :
       {SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_ROW_WISE,
        SHARDREC_SHARDING_DATA_PARALLEL}) {
    for (const shardrec_compression type : kTypes) {
      const auto here = train_all(on_local(), type, kind);
      const auto there = train_all(on_links(), type, kind);
      for (size_t rank = 0; rank < kWireRanks; ++rank) {
        ASSERT_FALSE(here[rank].error) << here[rank].error->sentence();
        ASSERT_FALSE(there[rank].error) << there[rank].error->sentence();
        EXPECT_EQ(here[rank].outputs, there[rank].outputs);
        EXPECT_EQ(here[rank].weights, there[rank].weights);
      }
    }
  }
}

TEST(LentGradients, OfAnotherProcessAreCorruptData) {
  const Join join = on_local();
  const auto results = train_all(
      [&](int rank) -> std::shared_ptr<Communicator> {
        if (rank != 1) return join(rank);
        return std::make_shared<DamagedRank>(join(rank), Damage{.in_place = false});
      },
      SHARDREC_COMPRESSION_NONE, SHARDREC_SHARDING_ROW_WISE, true);
  ASSERT_TRUE(results[1].error);
  EXPECT_EQ(results[1].error->status(), SHARDREC_CORRUPT_DATA);
  EXPECT_NE(results[1].error->sentence().find("rank 0 lends"), std::string::npos)
      << results[1].error->sentence();
  for (const size_t other : {size_t{0}, size_t{2}}) {
    ASSERT_TRUE(results[other].error);
    EXPECT_EQ(results[other].error->status(), SHARDREC_PEER_FAILED);
  }
}

TEST(CompressedMessages, OfAnotherLengthAreCorruptData) {
  for (const char* operation : {"forward", "backward"}) {
    for (const shardrec_compression type : kTypes) {
      for (const int64_t bytes : {int64_t{-1}, int64_t{-64}, int64_t{1}, int64_t{64}}) {
        const Join join = on_local();
        const auto results = train_all(
            [&](int rank) -> std::shared_ptr<Communicator> {
              if (rank != 1) return join(rank);
              return std::make_shared<DamagedRank>(join(rank), Damage{operation, bytes});
            },
            type, SHARDREC_SHARDING_ROW_WISE);
        ASSERT_TRUE(results[1].error) << operation << ", " << bytes;
        EXPECT_EQ(results[1].error->status(), SHARDREC_CORRUPT_DATA);
        EXPECT_NE(results[1].error->sentence().find("rank 0 sent"), std::string::npos)
            << results[1].error->sentence();
        for (const size_t other : {size_t{0}, size_t{2}}) {
          ASSERT_TRUE(results[other].error);
          EXPECT_EQ(results[other].error->status(), SHARDREC_PEER_FAILED);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::embedding
