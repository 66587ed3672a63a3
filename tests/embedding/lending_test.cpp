// Gradients that are lent to ranks of the process are read while they are lent, and never after.
#include "embedding/exchange/lending.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "comm/local/local_group.h"
#include "core/error.h"
#include "embedding/exchange/wire.h"
#include "support/asleep.h"
#include "support/eventually.h"

namespace shardrec::embedding {
namespace {

using Message = std::array<std::byte, sizeof(GradientHeader)>;

Message message_of(Lending* lending) {
  const GradientHeader header{.lends = 1, .lending = lending};
  Message message;
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

TEST(Lending, IsTakenBackWhenNobodyReadsAnyMore) {
  Lending first;
  Lending second;
  first.lend();
  second.lend();
  const std::array messages = {message_of(&first), message_of(nullptr), message_of(&second)};
  const std::array<comm::ConstBytes, 3> views = {messages[0], messages[1], messages[2]};
  EXPECT_TRUE(any_lent(views));
  const auto communicator = comm::local::join(comm::local::make_group(1, 1), 0);
  std::atomic<pid_t> lender_id{0};
  std::atomic<bool> taken_back{false};
  std::thread lender;
  {
    const Reading reading(views, *communicator);
    lender = std::thread([&] {
      lender_id = gettid();
      second.take_back();
      taken_back = true;
    });
    EXPECT_TRUE(test::eventually([&] { return taken_back || test::is_asleep(lender_id); }));
    EXPECT_FALSE(taken_back);
  }
  lender.join();
  EXPECT_TRUE(taken_back);
  EXPECT_TRUE(first.read());
  first.stop();
  EXPECT_FALSE(second.read());
}

TEST(Lending, OfARankThatLeftTheStepIsNotRead) {
  Lending here;
  Lending gone;
  here.lend();
  const std::array messages = {message_of(&here), message_of(&gone)};
  const std::array<comm::ConstBytes, 2> views = {messages[0], messages[1]};
  const auto group = comm::local::make_group(2, 2);
  const auto rank = comm::local::join(group, 0);
  const auto other = comm::local::join(group, 1);
  const auto refused = [&] {
    try {
      const Reading reading(views, *rank);
    } catch (const core::Error& error) {
      return error;
    }
    throw core::Error(SHARDREC_OK, "it was read");
  };
  const core::Error unknown = refused();
  EXPECT_EQ(unknown.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(unknown.parts().rank, 1);
  other->abort("enough");
  EXPECT_EQ(refused().status(), SHARDREC_ABORTED);
  here.take_back();  // what was read has been let go of
  const Message plain = message_of(nullptr);
  EXPECT_FALSE(any_lent(std::array<comm::ConstBytes, 1>{plain}));
}

}  // namespace
}  // namespace shardrec::embedding
