// Buckets on their way while others become ready: what is launched, and what is told in which order.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/world.h"
#include "dense/ddp/ddp.h"
#include "dense/host_parameters.h"
#include "support/eventually.h"
#include "support/forwarding.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;

// Counts the buckets that a rank launches.
class CountingChannel final : public test::ForwardingChannel {
 public:
  CountingChannel(std::shared_ptr<comm::Channel> inner, std::atomic<int>& launched)
      : ForwardingChannel(std::move(inner)), launched_(launched) {}
  comm::Ticket post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                    std::shared_ptr<const void> owner) override {
    const comm::Ticket ticket = ForwardingChannel::post(operation, send, std::move(owner));
    if (std::string_view(operation.name) == "ddp: bucket") ++launched_;
    return ticket;
  }

 private:
  std::atomic<int>& launched_;
};

class CountingRank final : public test::ForwardingRank {
 public:
  CountingRank(std::shared_ptr<Communicator> inner, std::atomic<int>& launched)
      : ForwardingRank(std::move(inner)), launched_(launched) {}
  std::shared_ptr<comm::Channel> open_channel(comm::Purpose purpose) override {
    return std::make_shared<CountingChannel>(ForwardingRank::open_channel(purpose), launched_);
  }

 private:
  std::atomic<int>& launched_;
};

bool reaches(const std::atomic<int>& count, int value) {
  return test::eventually([&] { return count.load() >= value; });
}

DdpOptions one_parameter_per_bucket() {
  DdpOptions options;
  options.reducer.limits = {.first = 1, .others = 1};
  return options;
}

// Rank 1 begins its step when rank 0 has launched all buckets but the last, one mark after another.
// With 100,000 parameters in a bucket and three ranks, buckets take two exchanges.
TEST(DdpOverlap, ABucketIsLaunchedWhileTheMessagesOfAnOlderOneHaveNotCome) {
  constexpr int kBuckets = 6;
  for (const int ranks : {2, 3}) {
    std::atomic<int> launched{0};
    std::atomic<bool> is_tested{false};
    for (const auto& error : comm::run_ranks(ranks, [&](Communicator& communicator) {
           std::shared_ptr<Communicator> own(&communicator, [](Communicator*) {});
           const bool is_first = communicator.rank() == 0;
           if (is_first) own = std::make_shared<CountingRank>(own, launched);
           HostModel model(std::vector<int64_t>(kBuckets, 100000));
           Ddp ddp(own, one_parameter_per_bucket());
           model.add_to(ddp);
           ddp.commit();
           ASSERT_EQ(ddp.reducer().buckets().size(), size_t{kBuckets});
           if (is_first) {
             ddp.begin(true);
             for (int b = 0; b < kBuckets - 1; ++b) {
               ddp.mark_ready(kBuckets - 1 - b, 1);
               EXPECT_TRUE(reaches(launched, b + 1)) << "bucket " << b;
             }
             ddp.mark_ready(0, 1);
             is_tested = true;
           } else {
             EXPECT_TRUE(test::eventually([&] { return is_tested.load(); }));
             ddp.begin(true);
             for (int p = kBuckets; p-- > 0;) ddp.mark_ready(p, 1);
           }
           ddp.end();
           ddp.wait();
           ddp.check_equal();
         })) {
      EXPECT_FALSE(error) << error->sentence();
    }
  }
}

// Bucket 2 is refused; it is small, so that what the ranks say of it comes before the sums of older
// buckets.
TEST(DdpOverlap, AllRanksAreToldOfTheSameBucketsBeforeOneThatIsRefused) {
  constexpr int kRanks = 3;
  for (int repetition = 0; repetition < 10; ++repetition) {
    for (const auto& error : comm::run_ranks(kRanks, [&](Communicator& communicator) {
           HostModel model({10, 10, 200000, 200000});
           Ddp ddp(std::shared_ptr<Communicator>(&communicator, [](Communicator*) {}),
                   one_parameter_per_bucket());
           std::vector<int32_t> told;
           model.add_to(ddp);
           ddp.set_bucket_done([&](int32_t bucket) { told.push_back(bucket); });
           ddp.commit();
           ddp.begin(true);
           for (const int64_t p : {3, 2, 1, 0}) {
             if (p != 1 || communicator.rank() != kRanks - 1) ddp.mark_ready(p, 1);
           }
           ddp.end();
           const auto refusal = comm::error_of([&] { ddp.wait(); });
           ASSERT_TRUE(refusal);
           EXPECT_EQ(refusal->status(), SHARDREC_INVALID_STATE);
           EXPECT_EQ(refusal->parts().position, 1);
           EXPECT_EQ(told, (std::vector<int32_t>{0, 1})) << "rank " << communicator.rank();
         })) {
      EXPECT_FALSE(error) << error->sentence();
    }
  }
}

}  // namespace
}  // namespace shardrec::dense
