// Messages to and from ranks of other processes, of tables on a device: the host waits for what it sends and
// for copies of what it received, and for nothing that is computed with them.
#include "comm/local/local_group.h"
#include "device/device_arrays.h"
#include "device/of_plugin.h"
#include "device/rank_on_device.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "plan/plan.h"
#include "planner/planner.h"
#include "support/forwarding.h"

namespace shardrec::test {
namespace {

// It takes ranks, itself among them, for those of other processes.
class RemoteRank final : public ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;
  bool reads_in_place() const noexcept override { return false; }
};

class RemotePeers : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    stream_waits_ = of_plugin<int64_t()>("simt_stream_waits");
    if (stream_waits_ == nullptr) GTEST_SKIP() << "only CUDA on the CPU counts what hosts wait for";
  }
  template <class Call>
  int64_t waits_of(const Call& call) {
    const int64_t before = stream_waits_();
    call();
    return stream_waits_() - before;
  }
  int64_t (*stream_waits_)() = nullptr;
};

TEST_F(RemotePeers, NobodyWaitsForTheUpdate) {
  plan::Model model;
  plan::add_table(model, {.name = "t", .rows = kRows, .dim = kDim});
  plan::add_feature(model, {.name = "f", .table = 0, .pooling = SHARDREC_POOLING_SUM});
  const auto communicator =
      std::make_shared<RemoteRank>(comm::local::join(comm::local::make_group(1, 1), 0));
  embedding::CollectionOptions options;
  options.backend = "cuda";
  options.device = 0;
  const auto collection = std::make_shared<embedding::Collection>(
      communicator, model,
      planner::make_plan(model, {.ranks = 1, .ranks_per_node = 1}, SHARDREC_SHARDING_TABLE_WISE),
      options);
  embedding::Lookup lookup(collection, {});
  const Batch batch;
  Array ids(*this, batch.ids.data(), batch.ids.size() * sizeof(int64_t));
  Array lengths(*this, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t));
  Array numbers(*this, batch.gradient.data(), batch.gradient.size() * sizeof(float));
  const auto values = vector_at(ids.data(), SHARDREC_INT64, batch.ids.size(), true);
  const auto bags = vector_at(lengths.data(), SHARDREC_INT32, batch.lengths.size(), true);
  const auto out = matrix_at(numbers.data(), true);
  for (int step = 0; step < 3; ++step) {
    lookup.begin({.batch_size = kBatch, .values = &values, .lengths = &bags});
    lookup.forward(0, &out);
    lookup.set_gradient(0, &out);
    // Once, for the message that it sends.
    EXPECT_EQ(waits_of([&] { lookup.backward(); }), 1) << "step " << step;
  }
  collection->synchronize();
}

}  // namespace
}  // namespace shardrec::test
