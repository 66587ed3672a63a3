// Gradients that are lent to ranks of the process are read while they are lent, and never after.
#include "embedding/exchange/lending.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
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

// None: it lends nothing.
Message message_of(uint64_t lending) {
  const GradientHeader header{.lends = lending == 0 ? Lends::kNothing : Lends::kToProcess,
                              .lending = lending};
  Message message;
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

struct Lender {
  std::shared_ptr<Lending> lending = std::make_shared<Lending>();
  LendingNumber number{lending};
};

TEST(Lending, IsTakenBackWhenNobodyReadsAnyMore) {
  const Lender first;
  const Lender second;
  first.lending->lend();
  second.lending->lend();
  const std::array messages = {message_of(first.number.value()), message_of(0),
                               message_of(second.number.value())};
  const std::array<comm::ConstBytes, 3> views = {messages[0], messages[1], messages[2]};
  EXPECT_TRUE(any_lent(views));
  const auto communicator = comm::local::join(comm::local::make_group(1, 1), 0);
  std::atomic<pid_t> lender_id{0};
  std::atomic<bool> taken_back{false};
  std::thread lender;
  {
    LentGradients lent(3, 0);
    const Reading reading(lent, views, *communicator);
    lender = std::thread([&] {
      lender_id = gettid();
      second.lending->take_back();
      taken_back = true;
    });
    EXPECT_TRUE(test::eventually([&] { return taken_back || test::is_asleep(lender_id); }));
    EXPECT_FALSE(taken_back);
  }
  lender.join();
  EXPECT_TRUE(taken_back);
  EXPECT_TRUE(first.lending->read());
  first.lending->stop();
  EXPECT_FALSE(second.lending->read());
}

TEST(Lending, OfARankThatLeftTheStepIsNotRead) {
  const Lender here;
  const Lender gone;
  here.lending->lend();
  const std::array messages = {message_of(here.number.value()), message_of(gone.number.value())};
  const std::array<comm::ConstBytes, 2> views = {messages[0], messages[1]};
  const auto group = comm::local::make_group(2, 2);
  const auto rank = comm::local::join(group, 0);
  const auto other = comm::local::join(group, 1);
  const auto refused = [&] {
    try {
      LentGradients lent(2, 0);
      const Reading reading(lent, views, *rank);
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
  here.lending->take_back();  // what was read has been let go of
  const Message plain = message_of(0);
  EXPECT_FALSE(any_lent(std::array<comm::ConstBytes, 1>{plain}));
}

TEST(Lending, IsFoundByItsNumberAndByNoOther) {
  const std::array<size_t, 2> blocks = {1, 3};
  const auto lending = std::make_shared<Lending>();
  lending->make_room(blocks);
  std::optional<LendingNumber> number(lending);
  lending->lend();
  const float value = 7;
  lending->blocks(1)[2] = {.rows = &value, .stride = 5};
  const auto communicator = comm::local::join(comm::local::make_group(1, 1), 0);
  const auto rows_of = [&](uint64_t said) {
    const Message message = message_of(said);
    const std::array<comm::ConstBytes, 1> views = {message};
    LentGradients lent(1, 1);
    const Reading reading(lent, views, *communicator);
    EXPECT_EQ(lent.blocks()[0].size(), 3U);
    return lent.blocks()[0][2].rows;
  };
  const uint64_t good = number->value();
  EXPECT_EQ(rows_of(good), &value);
  // What a message may say in its place: others' numbers, addresses.
  for (const uint64_t other : {good + 1, ~uint64_t{0}, std::bit_cast<uint64_t>(lending.get())}) {
    EXPECT_THROW(rows_of(other), core::Error) << other;
  }
  number.reset();
  EXPECT_THROW(rows_of(good), core::Error);
  EXPECT_NE(LendingNumber(lending).value(), good);
  EXPECT_TRUE(lending->blocks(2).empty());
}

}  // namespace
}  // namespace shardrec::embedding
