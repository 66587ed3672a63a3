// A peer whose envelope is right and whose message has another length than what it announces: no
// collective reads past it.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "world.h"

namespace shardrec::comm {
namespace {

constexpr Operation kTest{.name = "test", .kind = 1};

// Every rank sends what this one does, but rank 1 a byte less, from the exchange `from` on.
class ShortChannel final : public Channel {
 public:
  explicit ShortChannel(int from) : from_(from) {}
  Ticket post(const Operation& /*operation*/, std::span<const ConstBytes> send,
              std::shared_ptr<const void> /*owner*/) override {
    sent_.assign(send.begin(), send.end());
    return {.sequence = next_++};
  }
  void receive(Ticket /*ticket*/, std::span<ConstBytes> received) override {
    for (ConstBytes& message : received) message = sent_[0];
    if (static_cast<int>(next_) > from_ && !received[1].empty()) {
      received[1] = received[1].first(received[1].size() - 1);
    }
  }
  bool has_arrived(Ticket /*ticket*/) noexcept override { return true; }
  void release(Ticket /*ticket*/) noexcept override {}
  void reclaim(Ticket /*ticket*/) override {}

 private:
  int from_;
  uint64_t next_ = 0;
  std::vector<ConstBytes> sent_;
};

TEST(Collectives, AMessageOfAnotherLengthIsAnErrorOfTheRankThatSentIt) {
  const auto reduce = [](size_t count) {
    return [=](Collectives& c) {
      std::vector<float> data(count);
      c.all_reduce<float>(kTest, Reduction::kSum, data);
    };
  };
  const std::pair<int, std::function<void(Collectives&)>> calls[] = {
      {0, reduce(10)},
      {0, reduce(10000)},
      {1, reduce(10000)},  // the parts come, the sums do not
      {0,
       [](Collectives& c) {
         const std::vector<float> data(300);
         (void)c.reduce_scatter<float>(kTest, Reduction::kSum, std::span<const float>(data));
       }},
  };
  for (const auto& [from, call] : calls) {
    Collectives collectives(std::make_shared<ShortChannel>(from), 0, 3);
    const auto error = error_of([&] { call(collectives); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_CORRUPT_DATA);
    EXPECT_EQ(error->parts().rank, 1);
    EXPECT_NE(error->sentence().find("rank 1 sent "), std::string::npos) << error->sentence();
  }
  Collectives collectives(std::make_shared<ShortChannel>(0), 0, 3);
  std::string data(100, 'x');
  const auto error =
      error_of([&] { collectives.broadcast(kTest, 1, std::as_writable_bytes(std::span(data))); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_CORRUPT_DATA);
  EXPECT_EQ(error->sentence(), "rank 1 sent 0 bytes in \"test\", where 100 are to come");
}

}  // namespace
}  // namespace shardrec::comm
