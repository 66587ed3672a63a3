// A device's messages are the CPU's, byte for byte: what a rank posts on any channel does not show where its
// tables are. Stage by stage, because each stage of a step sends what it has worked out: ids, sums of rows,
// gradients, statistics of rows, replicas.
//
// Gradients are never lent here (option BORROW): a device lends none, and messages would name what is lent.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "digests/configurations.h"
#include "embedding/collection.h"
#include "embedding/variations.h"
#include "messages/comparison.h"
#include "messages/runs.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

using Recorder = std::function<std::deque<Record>(std::string_view backend)>;

class DeviceMessages : public testing::Test {
 protected:
  // Compares what is recorded on the CPU, with garbage in its memory and not, and on a device.
  void compare(const std::string& name, const Recorder& record) {
    const auto on_cpu = record("cpu");
    const auto garbage = record(kCpuWithGarbage);
    const auto other_garbage = record(kCpuWithOtherGarbage);
    const auto on_device = record(kDeviceByMessages);
    for (size_t rank = 0; rank < on_cpu.size(); ++rank) {
      compared_ += compare_messages(name + ", rank " + std::to_string(rank),
                                    {.cpu = on_cpu[rank],
                                     .garbage = garbage[rank],
                                     .other_garbage = other_garbage[rank],
                                     .device = on_device[rank]});
      count(on_cpu[rank]);
    }
  }
  void compare_training(const std::string& name, const Scenario& scenario, Deal deal) {
    deal.borrow = false;
    compare(name,
            [&](std::string_view backend) { return record_training(scenario, deal, backend); });
  }

  // Bytes between different ranks by what the exchange was for.
  int64_t bytes_of(embedding::ExchangeKind kind) { return bytes_[static_cast<uint32_t>(kind)]; }
  int64_t input_bytes() const { return input_bytes_; }
  const Compared& compared() const { return compared_; }

 private:
  void count(const Record& record) {
    for (const ChannelRecord& channel : record.channels()) {
      for (const PostedExchange& exchange : channel.posted) {
        for (size_t to = 0; to < exchange.messages.size(); ++to) {
          if (static_cast<int>(to) == channel.rank) continue;
          const int64_t bytes = std::ssize(exchange.messages[to]);
          if (channel.name.starts_with("output")) bytes_[exchange.kind] += bytes;
          if (channel.name.starts_with("input")) input_bytes_ += bytes;
        }
      }
    }
  }

  Compared compared_;
  std::map<uint32_t, int64_t> bytes_;
  int64_t input_bytes_ = 0;
};

// Do several ranks of one of several nodes have different rows of the table?
bool has_sums_on_nodes(const TablePlanSpec& table, const Deal& deal) {
  for (const BoxSpec& one : table.boxes) {
    for (const BoxSpec& other : table.boxes) {
      if (one.rank != other.rank && one.row != other.row && deal.ranks_per_node < deal.ranks &&
          one.rank / deal.ranks_per_node == other.rank / deal.ranks_per_node) {
        return true;
      }
    }
  }
  return false;
}

// What of a configuration another one may not have: the parts of its name, ways of tables that are replicated,
// sums on nodes.
std::set<std::string> parts_of(const Configuration& configuration) {
  std::set<std::string> parts;
  size_t place = 0;
  for (size_t at = 0; at != std::string::npos; ++place) {
    const size_t end = configuration.name.find_first_of("/+", at);
    parts.insert(std::to_string(place) + configuration.name.substr(at, end - at));
    at = end == std::string::npos ? end : end + 1;
  }
  const Deal deal = configuration.make().deal;
  for (const TablePlanSpec& table : deal.plan) {
    if (!table.replicated || deal.ranks == 1) continue;
    parts.insert("replication " + std::to_string(table.replication));
  }
  for (const TablePlanSpec& table : deal.plan) {
    if (deal.hierarchical && has_sums_on_nodes(table, deal)) parts.insert("sums on nodes");
  }
  return parts;
}

// The first configurations that bring something new.
std::vector<Configuration> some_of_every_kind() {
  std::vector<Configuration> chosen;
  std::set<std::string> seen;
  for (const Configuration& configuration : configurations()) {
    const size_t before = seen.size();
    seen.merge(parts_of(configuration));
    if (seen.size() != before) chosen.push_back(configuration);
  }
  return chosen;
}

TEST_F(DeviceMessages, OfEveryKindAreTheCpusByteForByte) {
  using embedding::ExchangeKind;
  for (const Configuration& configuration : some_of_every_kind()) {
    const auto [scenario, deal] = configuration.make();
    compare_training(configuration.name, scenario, deal);
  }
  EXPECT_GT(input_bytes(), 0);
  for (const ExchangeKind kind :
       {ExchangeKind::kOutput, ExchangeKind::kGradient, ExchangeKind::kStatistics,
        ExchangeKind::kReadRequest, ExchangeKind::kReadReply, ExchangeKind::kReplicaRows,
        ExchangeKind::kReplicaSums, ExchangeKind::kNorms, ExchangeKind::kWeightGradients,
        ExchangeKind::kNodeSums}) {
    EXPECT_GT(bytes_of(kind), 0) << "exchanges of kind " << static_cast<uint32_t>(kind);
  }
  EXPECT_LT(compared().padding, compared().bytes / 50);
}

// Plans and inputs by chance: three ranks share nothing evenly.
TEST_F(DeviceMessages, OfRandomPlansAreTheCpusByteForByte) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    std::mt19937_64 random(seed + 700);
    Scenario scenario = random_scenario(random, 3);
    vary_optimizers(scenario, random, static_cast<shardrec_optimizer>(1 + seed % 8));
    if (seed % 2 == 0) add_stray_ids(scenario, random);
    if (seed % 3 == 0) add_sequences(scenario, random);
    Deal deal = random_deal(scenario, random, 3);
    deal.deduplicate = seed % 2 == 1;
    compare_training("seed " + std::to_string(seed), scenario, deal);
  }
}

// Writes and reads rows by range and by ids, as a rank of a collection of tables cut in all ways.
void move_rows(int rank, shardrec_comm* comm) {
  constexpr int64_t kRows = 50;
  constexpr int64_t kDim = 12;
  constexpr int32_t kTables = 6;
  int32_t ranks = 0;
  SR_OK(shardrec_comm_size(comm, &ranks));
  Scenario scenario;
  for (int32_t t = 0; t < kTables; ++t) {
    scenario.tables.push_back({.rows = kRows, .dim = kDim});
    scenario.tables.back().dtype = t % 2 == 0 ? SHARDREC_FLOAT32 : SHARDREC_BFLOAT16;
    scenario.features.push_back({.table = t});
  }
  shardrec_model* model = make_model(scenario);
  shardrec_topology* topology = nullptr;
  SR_OK(shardrec_topology_create(ranks, 2, nullptr, &topology));
  shardrec_options* options = nullptr;
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_MIXED));
  shardrec_plan* plan = nullptr;
  SR_OK(shardrec_plan_create(model, topology, options, &plan));
  shardrec_collection* tables = nullptr;
  SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
  for (int32_t t = 0; t < kTables; ++t) {
    const int64_t first = 3 * rank + t;
    std::vector<float> range(20 * kDim);
    for (size_t i = 0; i < range.size(); ++i) range[i] = static_cast<float>(i + first) / 7;
    const shardrec_tensor of_range = matrix(range.data(), 20, kDim);
    SR_OK(shardrec_collection_write_range(tables, t, SHARDREC_TABLE_WEIGHTS, first, 20, &of_range));
    SR_OK(shardrec_collection_read_range(tables, t, SHARDREC_TABLE_STATE, first, 0, nullptr));
    std::vector<int64_t> ids = {first, 49, 0, first, 17 + rank};
    std::vector<float> rows(ids.size() * kDim, 0.25F * static_cast<float>(rank + 1));
    const shardrec_tensor of_ids = vector_of(ids);
    const shardrec_tensor of_rows = matrix(rows.data(), std::ssize(ids), kDim);
    SR_OK(shardrec_collection_write_rows(tables, t, SHARDREC_TABLE_WEIGHTS, &of_ids, &of_rows));
    SR_OK(shardrec_collection_read_rows(tables, t, SHARDREC_TABLE_WEIGHTS, &of_ids, &of_rows));
    SR_OK(shardrec_collection_read_range(tables, t, SHARDREC_TABLE_WEIGHTS, first, 20, &of_range));
  }
  shardrec_collection_destroy(&tables);
  shardrec_plan_destroy(&plan);
  shardrec_options_destroy(&options);
  shardrec_topology_destroy(&topology);
  shardrec_model_destroy(&model);
}

TEST_F(DeviceMessages, WithRowsOnTheirWayToAndFromHostsAreTheCpusByteForByte) {
  using embedding::ExchangeKind;
  compare("rows", [](std::string_view backend) { return record_ranks(4, 2, backend, move_rows); });
  for (const ExchangeKind kind :
       {ExchangeKind::kReadRequest, ExchangeKind::kReadReply, ExchangeKind::kWrite,
        ExchangeKind::kReadListRequest, ExchangeKind::kReadListReply, ExchangeKind::kWriteList}) {
    EXPECT_GT(bytes_of(kind), 0) << "exchanges of kind " << static_cast<uint32_t>(kind);
  }
}

// All of them, in turns so that it can be seen how far they are.
class AllDeviceMessages : public DeviceMessages, public testing::WithParamInterface<size_t> {
 protected:
  static constexpr size_t kTurns = 10;
};

TEST_P(AllDeviceMessages, AreTheCpusByteForByte) {
  const auto all = configurations();
  for (size_t i = GetParam(); i < all.size(); i += kTurns) {
    const auto [scenario, deal] = all[i].make();
    compare_training(all[i].name, scenario, deal);
  }
}

INSTANTIATE_TEST_SUITE_P(Turns, AllDeviceMessages, testing::Range<size_t>(0, 10));

}  // namespace
}  // namespace shardrec::test
