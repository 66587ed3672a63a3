// Channels between processes: where messages lie, how long what is sent lives, what may be posted.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/remote/envelope.h"
#include "rank.h"
#include "support/memory_link.h"

namespace shardrec::comm {
namespace {

using support::MemoryLink;

Ticket post_text(Channel& channel, int world, const std::shared_ptr<std::string>& text) {
  return channel.post(kForward,
                      std::vector<ConstBytes>(static_cast<size_t>(world), bytes_of(*text)), text);
}

TEST(RemoteChannel, MessagesOfEverySizeAroundTheEnvelopesRoomArriveAlignedForAnyType) {
  for (const bool rendezvous : {false, true}) {
    const auto link = MemoryLink::make(2, {.rendezvous = rendezvous});
    const auto errors = run_joined(
        2, [&](int rank) { return link->join(rank); },
        [&](Communicator& comm) {
          const auto channel = comm.open_channel(Purpose::kInput);
          constexpr size_t kRoom = remote::kInlineBytes;
          for (const size_t size : {size_t{0}, size_t{1}, kRoom - 1, kRoom, kRoom + 1, 2 * kRoom}) {
            const auto text =
                std::make_shared<std::string>(size, static_cast<char>('a' + comm.rank()));
            const Ticket ticket = post_text(*channel, 2, text);
            std::vector<ConstBytes> received(2);
            channel->receive(ticket, received);
            const auto other = static_cast<size_t>(1 - comm.rank());
            EXPECT_EQ(text_of(received[other]), std::string(size, static_cast<char>('a' + other)));
            EXPECT_EQ(std::bit_cast<uintptr_t>(received[other].data()) % 64, 0U);
            // The own one is shown in place.
            EXPECT_EQ(received[1 - other].data(), bytes_of(*text).data());
            channel->release(ticket);
            channel->reclaim(ticket);
            EXPECT_EQ(text.use_count(), 1);
          }
        });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
    EXPECT_EQ(link->requests(), 0);
  }
}

TEST(RemoteChannel, ASteadyExchangeUsesItsMemoryAgain) {
  const auto link = MemoryLink::make(2);
  const auto errors = run_joined(
      2, [&](int rank) { return link->join(rank); },
      [&](Communicator& comm) {
        const auto channel = comm.open_channel(Purpose::kInput);
        const auto other = static_cast<size_t>(1 - comm.rank());
        std::set<const std::byte*> places;
        for (int i = 0; i < 100; ++i) {
          const auto text = std::make_shared<std::string>(5000, 'x');
          const Ticket ticket = post_text(*channel, 2, text);
          std::vector<ConstBytes> received(2);
          channel->receive(ticket, received);
          places.insert(received[other].data());
          channel->release(ticket);
          channel->reclaim(ticket);
        }
        EXPECT_LE(places.size(), 3U);
      });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

TEST(RemoteChannel, ViewsStayAsTheyAreUntilReleasedWhateverIsExchangedMeanwhile) {
  const auto link = MemoryLink::make(2);
  const auto errors = run_joined(
      2, [&](int rank) { return link->join(rank); },
      [&](Communicator& comm) {
        const auto channel = comm.open_channel(Purpose::kInput);
        const auto other = static_cast<size_t>(1 - comm.rank());
        constexpr int kHeld = Channel::kMostInFlight;
        std::vector<Ticket> tickets;
        std::vector<std::vector<ConstBytes>> views;
        for (int i = 0; i < kHeld; ++i) {
          const size_t size = i % 2 == 0 ? 100 : 5000;
          const auto text = std::make_shared<std::string>(size, static_cast<char>('a' + i));
          tickets.push_back(post_text(*channel, 2, text));
          views.emplace_back(2);
          channel->receive(tickets.back(), views.back());
          channel->reclaim(tickets.back());
        }
        for (int i = 0; i < kHeld; ++i) {
          const auto at = static_cast<size_t>(i);
          EXPECT_EQ(text_of(views[at][other]),
                    std::string(i % 2 == 0 ? 100 : 5000, static_cast<char>('a' + i)));
          channel->release(tickets[at]);
        }
      });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

TEST(RemoteChannel, PostingBeyondTheRingIsRefusedAndDoesNotBlock) {
  const auto link = MemoryLink::make(2, {.rendezvous = true});
  Rank zero(link->join(0));
  for (int i = 0; i < Channel::kMostInFlight; ++i) post(*zero.channel, 2);
  const auto error = error_of([&] { post(*zero.channel, 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
  EXPECT_SAYS(*error, "at most 16 may be in flight");
}

TEST(RemoteChannel, WrongTicketsAndMessageCountsAreRefused) {
  const auto link = MemoryLink::make(2);
  Rank zero(link->join(0));
  Rank one(link->join(1));
  EXPECT_EQ(error_of([&] { post(*zero.channel, 3); })->status(), SHARDREC_INTERNAL);
  std::vector<ConstBytes> received(2);
  EXPECT_EQ(error_of([&] { zero.channel->receive({.sequence = 0}, received); })->status(),
            SHARDREC_INTERNAL);
  EXPECT_EQ(error_of([&] { zero.channel->reclaim({.sequence = 5}); })->status(), SHARDREC_INTERNAL);
  zero.channel->release({.sequence = 3});
  const Ticket ticket = post(*zero.channel, 2);
  post(*one.channel, 2);
  zero.channel->receive(ticket, received);
  zero.channel->release(ticket);
  zero.channel->reclaim(ticket);
  zero.channel->reclaim(ticket);  // changes nothing
  zero.channel->release(ticket);
  EXPECT_EQ(error_of([&] { zero.channel->receive(ticket, received); })->status(),
            SHARDREC_INTERNAL);
}

TEST(RemoteChannel, EnvelopesAreAwaitedOneExchangeAhead) {
  const auto link = MemoryLink::make(2, {.rendezvous = true});
  Rank zero(link->join(0));
  Rank one(link->join(1));
  post(*one.channel, 2);
  // Rank 1 awaits exchanges 0 and 1, so that both can be sent away.
  const Ticket first = post(*zero.channel, 2);
  const Ticket second = post(*zero.channel, 2);
  zero.channel->reclaim(first);
  zero.channel->reclaim(second);
  zero.comm->check();
}

TEST(RemoteChannel, MessagesComeWhileTheRankIsBusyOnAnotherChannel) {
  const auto link = MemoryLink::make(2, {.rendezvous = true});
  const auto text = std::make_shared<std::string>(100000, 'x');
  Rank zero(link->join(0));
  Rank one(link->join(1));
  const auto side_of_zero = zero.comm->open_channel(Purpose::kInput);
  const auto side_of_one = one.comm->open_channel(Purpose::kInput);
  const Ticket sent = post_text(*side_of_zero, 2, text);
  post_text(*side_of_one, 2, text);
  // Rank 1 does not receive the large message, but goes on elsewhere.
  std::thread busy([&] { receive(*one.channel, 2, post(*one.channel, 2)); });
  side_of_zero->reclaim(sent);
  post(*zero.channel, 2);
  busy.join();
}

TEST(RemoteChannel, AMessageIsSentOnceWithItsEnvelope) {
  const auto link = MemoryLink::make(2);
  Rank zero(link->join(0));
  const auto text = std::make_shared<std::string>(100000, 'x');
  post_text(*zero.channel, 2, text);
  EXPECT_EQ(link->bytes_sent(), 100000 + remote::kEnvelopeBytes);
  post_text(*zero.channel, 2, std::make_shared<std::string>(remote::kInlineBytes, 'x'));
  EXPECT_EQ(link->bytes_sent(), 100000 + 2 * remote::kEnvelopeBytes);
}

TEST(RemoteChannel, SplittingOftenerThanThereAreChannelNumbersIsRefusedOnAllRanksAlike) {
  const auto link = MemoryLink::make(2);
  const auto errors = run_joined(
      2, [&](int rank) { return link->join(rank); },
      [](Communicator& comm) {
        const auto half = comm.split(0, 0);
        const auto third = half->split(0, 0);
        const auto last = third->split(0, 0);
        const auto error = error_of([&] { last->split(0, 0); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
        EXPECT_SAYS(*error, "can be split 0 times");
        // So are channels; the communicator lives on.
        std::vector<std::shared_ptr<Channel>> channels;
        for (int i = 0; i < 31; ++i) channels.push_back(last->open_channel(Purpose::kDense));
        const auto many = error_of([&] { last->open_channel(Purpose::kDense); });
        ASSERT_TRUE(many);
        EXPECT_EQ(many->status(), SHARDREC_UNSUPPORTED);
        EXPECT_SAYS(*many, "has opened all 31 channels");
        Collectives(channels.back(), last->rank(), last->size()).barrier(kForward);
        for (const auto& comm_of : {last, third, half}) comm_of->leave();
      });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

}  // namespace
}  // namespace shardrec::comm
