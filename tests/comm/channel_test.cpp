// Exchanges on channels of the `local` engine: what arrives, where it lies, how long it lives.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "message_texts.h"
#include "world.h"

namespace shardrec::comm {
namespace {

void expect_no_errors(const std::vector<std::optional<core::Error>>& errors) {
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

TEST(LocalChannel, PostingBeyondTheRingIsRefusedAndDoesNotBlock) {
  const auto group = local::make_group(2, 2);
  const auto one = local::join(group, 0);
  const auto channel = one->open_channel(Purpose::kInput);
  for (int round = 0; round < Channel::kMostInFlight; ++round) post(*channel, 0, round, 0, 2);
  const auto error = error_of([&] { post(*channel, 0, Channel::kMostInFlight, 0, 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
}

TEST(LocalChannel, ReceiveShowsTheSendersMemoryInPlace) {
  std::array<std::atomic<const std::byte*>, 2> sent{};
  expect_no_errors(run_ranks(2, [&](Communicator& comm) {
    const auto channel = comm.open_channel(Purpose::kInput);
    const auto text = std::make_shared<std::string>(1000, 'x');
    const ConstBytes bytes = bytes_of(*text);
    sent[static_cast<size_t>(comm.rank())] = bytes.data();
    const std::array<ConstBytes, 2> send = {bytes, bytes};
    const Ticket ticket = channel->post(kTest, send, text);
    std::array<ConstBytes, 2> received;
    channel->receive(ticket, received);
    for (size_t from = 0; from < 2; ++from) EXPECT_EQ(received[from].data(), sent[from].load());
    channel->release(ticket);
    channel->reclaim(ticket);
  }));
}

TEST(LocalChannel, PostWaitsForNobodyAndALateRankGetsAllMessages) {
  const auto group = local::make_group(3, 3);
  std::vector<std::thread> threads;
  std::atomic<int> posted{0};
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto comm = local::join(group, rank);
      const auto channel = comm->open_channel(Purpose::kInput);
      const Post first = post(*channel, 0, 0, rank, 3);
      const Post second = post(*channel, 0, 1, rank, 3);
      ++posted;
      receive(*channel, first.ticket, 0, 0, rank, 3);
      receive(*channel, second.ticket, 0, 1, rank, 3);
      channel->release(first.ticket);
      channel->release(second.ticket);
      channel->reclaim(first.ticket);
      channel->reclaim(second.ticket);
      comm->leave();
    });
  }
  // Posts wait for nobody: this would never end. That receives wait for this rank shows in what they
  // receive.
  while (posted.load() < 2) std::this_thread::yield();
  const auto comm = local::join(group, 2);
  const auto channel = comm->open_channel(Purpose::kInput);
  for (int round = 0; round < 2; ++round) {
    const Post mine = post(*channel, 0, round, 2, 3);
    receive(*channel, mine.ticket, 0, round, 2, 3);
    channel->release(mine.ticket);
  }
  comm->leave();
  for (auto& thread : threads) thread.join();
}

// All ranks in one thread's hands, so that nothing happens while a call waits.
TEST(LocalChannel, ReclaimWaitsForTheSlowestReader) {
  for (const bool released : {false, true}) {
    const auto group = local::make_group(3, 3);
    std::vector<std::shared_ptr<Communicator>> comms;
    std::vector<std::shared_ptr<Channel>> channels;
    std::vector<Post> posts;
    for (int rank = 0; rank < 3; ++rank) {
      comms.push_back(local::join(group, rank));
      channels.push_back(comms.back()->open_channel(Purpose::kInput));
      posts.push_back(post(*channels.back(), 0, 0, rank, 3));
    }
    for (size_t rank = 0; rank < 3; ++rank) {
      receive(*channels[rank], posts[rank].ticket, 0, 0, static_cast<int>(rank), 3);
      if (rank < 2 || released) channels[rank]->release(posts[rank].ticket);
    }
    comms[0]->set_deadlines({.step = released ? 60 : 0.01, .setup = 60, .warn = 30});
    const auto error = error_of([&] { channels[0]->reclaim(posts[0].ticket); });
    EXPECT_EQ(error.has_value(), !released);
    if (!error) continue;
    EXPECT_EQ(error->status(), SHARDREC_TIMEOUT) << error->sentence();
    EXPECT_EQ(error->parts().rank, 2);
  }
}

TEST(LocalChannel, OwnerIsHeldUntilTheLastReaderReleasesAndDroppedThen) {
  const auto group = local::make_group(2, 2);
  const auto reader = local::join(group, 1);
  auto reading = reader->open_channel(Purpose::kInput);
  const Post reply = post(*reading, 0, 0, 1, 2);
  std::weak_ptr<const void> owner;
  {
    const auto sender = local::join(group, 0);
    const auto channel = sender->open_channel(Purpose::kInput);
    const Post mine = post(*channel, 0, 0, 0, 2);
    owner = mine.texts;
  }
  // The sender and its end of the channel are gone; its message is not.
  ASSERT_FALSE(owner.expired());
  receive(*reading, reply.ticket, 0, 0, 1, 2);
  ASSERT_FALSE(owner.expired());
  reading->release(reply.ticket);
  EXPECT_TRUE(owner.expired());
  reading->reclaim(reply.ticket);  // the sender's end released what it will not read
}

TEST(LocalChannel, ViewsStayReadableWhenTheSenderIsGoneAndTheCommunicatorDead) {
  const auto group = local::make_group(2, 2);
  const auto reader = local::join(group, 1);
  auto reading = reader->open_channel(Purpose::kInput);
  const Post reply = post(*reading, 0, 0, 1, 2);
  std::weak_ptr<const void> owner;
  {
    const auto sender = local::join(group, 0);
    const auto channel = sender->open_channel(Purpose::kInput);
    owner = post(*channel, 0, 0, 0, 2).texts;
    sender->abort("over");
  }
  // The exchange was complete before the end.
  std::array<ConstBytes, 2> received;
  reading->receive(reply.ticket, received);
  EXPECT_EQ(text_of(received[0]), message_text(0, 0, 0, 1, uneven_size(0, 0, 1)));
  EXPECT_FALSE(owner.expired());
  reading.reset();  // a destroyed end releases
  EXPECT_TRUE(owner.expired());
}

TEST(LocalChannel, NothingStaysAliveAfterTheLastHandle) {
  std::weak_ptr<const void> owner;
  std::weak_ptr<local::Group> weak;
  {
    const auto group = local::make_group(3, 3);  // ranks 1 and 2 never join
    weak = group;
    const auto comm = local::join(group, 0);
    const auto channel = comm->open_channel(Purpose::kInput);
    owner = post(*channel, 0, 0, 0, 3).texts;
    Collectives collectives(comm->open_channel(Purpose::kControl), 0, 3);
    comm->set_deadlines({.step = 0.01, .setup = 0.01, .warn = 1});
    EXPECT_TRUE(error_of([&] { collectives.all_gather(kTest, bytes_of("x")); }));
  }
  EXPECT_TRUE(owner.expired());
  EXPECT_TRUE(weak.expired());
}

TEST(LocalGroup, RefusesWhatIsNoGroupAndRanksThatAreTakenOrOutside) {
  for (const auto& [ranks, per_node] : {std::pair(0, 1), {-1, 1}, {2, 0}, {2, 3}}) {
    const auto error = error_of([&] { local::make_group(ranks, per_node); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
  }
  const auto group = local::make_group(2, 1);
  EXPECT_EQ(local::group_size(*group), 2);
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(error_of([&] { local::join(group, rank); })->status(), SHARDREC_INVALID_ARGUMENT);
  }
  {
    const auto comm = local::join(group, 1);
    EXPECT_EQ(comm->rank(), 1);
    EXPECT_EQ(comm->size(), 2);
    EXPECT_EQ(comm->ranks_per_node(), 1);
    EXPECT_EQ(comm->ranks_in_process(), 2);
    EXPECT_EQ(error_of([&] { local::join(group, 1); })->status(), SHARDREC_INVALID_STATE);
  }
  EXPECT_EQ(error_of([&] { local::join(group, 1); })->status(), SHARDREC_INVALID_STATE);
}

}  // namespace
}  // namespace shardrec::comm
