// Bodies of channels that have ended (comm/ipc/unread.h), which another channel of the rank asks for in a thread of its own.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/ipc/unread.h"
#include "comm/world.h"
#include "device/device_arrays.h"
#include "support/eventually.h"

namespace shardrec::test {
namespace {

using comm::ipc::Acknowledgements;
using comm::ipc::Unread;

// On which nothing arrives. asked: is called whenever that is asked for.
class SilentChannel : public comm::Channel {
 public:
  explicit SilentChannel(std::function<void()> asked) : asked_(std::move(asked)) {}

  comm::Ticket post(const comm::Operation& /*operation*/,
                    std::span<const comm::ConstBytes> /*send*/,
                    std::shared_ptr<const void> /*keep_alive*/) override {
    return {};
  }
  void receive(comm::Ticket /*ticket*/, std::span<comm::ConstBytes> /*received*/) override {
    ADD_FAILURE() << "it has not arrived";
  }
  bool has_arrived(comm::Ticket /*ticket*/) noexcept override {
    asked_();
    return false;
  }
  void release(comm::Ticket /*ticket*/) noexcept override {}
  void reclaim(comm::Ticket /*ticket*/) override {}

 private:
  const std::function<void()> asked_;
};

class UnreadBodies : public DeviceTest {
 protected:
  // A channel ends, of which a body was sent.
  static void end_channel(Unread& unread, std::function<void()> asked) {
    auto acknowledgements =
        std::make_unique<Acknowledgements>(std::make_shared<SilentChannel>(std::move(asked)), 1);
    acknowledgements->post("letters", nullptr);
    std::vector<Unread::Bodies> bodies;
    bodies.push_back({.sequence = 0, .from = {}, .peers = {0}, .written = nullptr});
    unread.add(std::move(acknowledgements), std::move(bodies));
  }
};

TEST_F(UnreadBodies, OfAChannelThatEndsWhileTheyAreAskedForAreAskedForLater) {
  const comm::Errors errors = comm::run_ranks(1, [](comm::Communicator& communicator) {
    const std::shared_ptr<comm::Communicator> group(&communicator, [](comm::Communicator*) {});
    Unread unread(std::make_shared<comm::ipc::Links>(group, 0, nullptr, false));
    int asked = 0;
    int asked_of_other = 0;
    std::atomic<bool> added{false};
    std::jthread other;
    end_channel(unread, [&] {
      if (asked++ > 0) return;
      other = std::jthread([&] {
        end_channel(unread, [&] { ++asked_of_other; });
        added = true;
      });
      EXPECT_FALSE(eventually([&] { return added.load(); }, 0.05)) << "in the middle of a list";
    });
    unread.let_go_of_read("letters");
    ASSERT_TRUE(other.joinable()) << "nobody was asked";
    other.join();
    EXPECT_EQ(asked, 1);
    unread.let_go_of_read("letters");
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(asked_of_other, 1);
  });
  EXPECT_FALSE(errors[0]) << errors[0]->sentence();
}

}  // namespace
}  // namespace shardrec::test
