// A peer that sends whatever it likes, and peers that vanish at any message: the others get an
// error that names it, in time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/remote/envelope.h"
#include "comm/remote/group_state.h"
#include "rank.h"
#include "support/eventually.h"
#include "support/memory_link.h"

namespace shardrec::comm {
namespace {

using remote::Envelope;
using remote::GroupState;
using remote::kEnvelopeBytes;
using support::MemoryLink;

using Bytes = std::array<std::byte, kEnvelopeBytes>;

// Rank 0 of two is an honest communicator, rank 1 whoever has the link.
struct Siege {
  Siege()
      : link(MemoryLink::make(2)),
        carrier(link->carrier(1)),
        state_broadcast(link->state_broadcast(1)) {
    zero = std::make_unique<Rank>(link->join(0));
  }
  // What rank 0 throws when it is sent the envelope, and no message.
  core::Error answer(const Bytes& bytes, double seconds = 0.02) {
    const auto request =
        carrier->send(0, remote::tag_of(1, 0, remote::TransferKind::kEnvelope), bytes);
    zero->comm->set_deadlines({.step = seconds, .setup = 60, .warn = 30});
    const auto error = error_of([&] { receive(*zero->channel, 2, post(*zero->channel, 2)); });
    return error ? *error : core::Error(SHARDREC_OK, "nothing was thrown");
  }
  void announce(const GroupState& group_state) {
    state_broadcast->announce(write_group_state(group_state).view());
  }
  void wait_until_heard() const {
    EXPECT_TRUE(test::eventually([&] { return link->unheard(0) == 0; }));
  }

  std::shared_ptr<MemoryLink> link;
  std::shared_ptr<remote::Carrier> carrier;
  std::shared_ptr<remote::StateBroadcast> state_broadcast;
  std::unique_ptr<Rank> zero;
};

// As rank 0 sends it: its first channel has number 1.
Envelope honest() {
  return {.purpose = Purpose::kOutput, .channel = 1, .kind = kForward.kind, .name = "forward"};
}
Bytes written(const Envelope& envelope) {
  Bytes bytes;
  write_envelope(envelope, {}, bytes);
  return bytes;
}

TEST(HostilePeer, AnHonestEnvelopeIsAccepted) {
  Siege siege;
  EXPECT_EQ(siege.answer(written(honest()), 20).status(), SHARDREC_OK);
}

TEST(HostilePeer, EnvelopesOfOtherGroupsChannelsAndExchangesAreGarbled) {
  std::vector<Envelope> foreign(4, honest());
  foreign[0].group = 1;
  foreign[1].channel = 2;
  foreign[2].sequence = 64;  // the same tag
  foreign[3].bytes = remote::kMostBytes + 1;
  for (const Envelope& envelope : foreign) {
    Siege siege;
    const auto error = siege.answer(written(envelope), 20);
    EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
    EXPECT_EQ(error.parts().rank, 1);
    EXPECT_SAYS(error, "what came from rank 1 in \"forward\" (exchange 0) is no message of this");
  }
}

TEST(HostilePeer, AnEnvelopeOfAnotherLengthEndsTheWait) {
  Siege siege;
  std::array<std::byte, 17> few{};
  const auto request =
      siege.carrier->send(0, remote::tag_of(1, 0, remote::TransferKind::kEnvelope), few);
  const auto error =
      error_of([&] { receive(*siege.zero->channel, 2, post(*siege.zero->channel, 2)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_SAYS(*error, "another length");
}

TEST(HostilePeer, RandomAndDamagedEnvelopesEndInAnErrorOfTheRank) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes = written(honest());
    const bool all = round % 3 == 0;
    for (size_t i = 0; i < kEnvelopeBytes; ++i) {
      // Not the upper bytes of the length: memory for a terabyte is no memory error everywhere.
      if (i >= 43 && i < 48) continue;
      if (all || random() % 100 == 0) bytes[i] = std::byte(random() % 256);
    }
    Siege siege;
    const auto error = siege.answer(bytes);
    const bool known = error.status() == SHARDREC_PEER_FAILED ||
                       error.status() == SHARDREC_MISMATCH || error.status() == SHARDREC_TIMEOUT ||
                       error.status() == SHARDREC_OK;  // only its content was damaged
    EXPECT_TRUE(known) << error.sentence();
    if (error.status() != SHARDREC_OK) {
      EXPECT_EQ(error.parts().rank, 1) << error.sentence();
    }
  }
}

TEST(HostilePeer, GroupStatesThatAreNoneAreNotHeard) {
  std::mt19937 random(5);
  Siege siege;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bytes(random() % 1025);
    for (auto& byte : bytes) byte = std::byte(random() % 256);
    siege.state_broadcast->announce(bytes);
  }
  // Of ranks that there are not, of groups that there are not, of an inherited death.
  siege.announce({.sort = GroupState::Sort::kFailure, .failure = {.failed_rank = 2}});
  siege.announce({.sort = GroupState::Sort::kFailure, .failure = {.observer = 7}});
  siege.announce({.sort = GroupState::Sort::kFailure, .failure = {.inherited = true}});
  for (uint64_t group = 1; group < 500; ++group) {
    siege.announce({.sort = GroupState::Sort::kFailure, .group = group});
  }
  for (uint32_t channel = 0; channel < 500; ++channel) {
    GroupState progress{.sort = GroupState::Sort::kProgress, .count = 1};
    progress.progress[0] = {.channel = channel << 20, .closed = true, .posted = UINT64_MAX};
    if (channel != 0) siege.announce(progress);
  }
  siege.wait_until_heard();
  siege.zero->comm->check();
  EXPECT_EQ(siege.answer(written(honest()), 20).status(), SHARDREC_OK);
}

TEST(HostilePeer, ProgressThatWasNeverMadeEndsInATimeout) {
  Siege siege;
  GroupState progress{.sort = GroupState::Sort::kProgress, .count = 1};
  progress.progress[0] = {.channel = 1, .closed = true, .posted = UINT64_MAX, .received = 5};
  siege.announce(progress);
  siege.announce({.sort = GroupState::Sort::kDeparture, .presence = remote::Presence::kLeft});
  siege.wait_until_heard();
  siege.zero->comm->set_deadlines({.step = 0.05, .setup = 60, .warn = 30});
  const auto error =
      error_of([&] { receive(*siege.zero->channel, 2, post(*siege.zero->channel, 2)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_EQ(error->parts().rank, 1);
}

// A step of several exchanges, small and large, over and over.
void steps(Communicator& comm) {
  const auto channel = comm.open_channel(Purpose::kInput);
  Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
  const auto text = std::make_shared<std::string>(5000, 'x');
  const std::vector<ConstBytes> send(static_cast<size_t>(comm.size()), bytes_of(*text));
  std::vector<float> data(3000, 1.0F);
  for (;;) {
    const Ticket ahead = channel->post(kForward, send, text);
    collectives.all_reduce<float>(kBackward, Reduction::kSum, data);
    receive(*channel, comm.size(), ahead);
    channel->release(ahead);
    channel->reclaim(ahead);
  }
}

TEST(LostPeer, AtAnyMessageEndsAllOthersNamingIt) {
  constexpr int kWorld = 3;
  constexpr int kVictim = 1;
  for (const bool rendezvous : {false, true}) {
    for (int last = rendezvous ? 1 : 0; last < 40; last += 3) {
      const auto link =
          MemoryLink::make(kWorld, {.rendezvous = rendezvous, .broadcast_delay = 0.005});
      std::atomic<int> sent{0};
      // After its last message it is silent, then its process ends.
      link->lose([&](int from, int, uint32_t) { return from == kVictim && ++sent > last; });
      std::thread killer([&] {
        while (sent.load() <= last) std::this_thread::yield();
        link->cut(kVictim);
      });
      const auto errors = run_joined(kWorld, [&](int rank) { return link->join(rank); }, steps);
      killer.join();
      for (const size_t rank : {0U, 2U}) {
        ASSERT_TRUE(errors[rank]);
        EXPECT_EQ(errors[rank]->status(), SHARDREC_PEER_FAILED) << errors[rank]->sentence();
        EXPECT_EQ(errors[rank]->parts().rank, kVictim) << errors[rank]->sentence();
        EXPECT_SAYS(*errors[rank], "its process ended");
      }
      EXPECT_EQ(link->requests(), 0);
    }
  }
}

TEST(LostPeer, OfAPartKillsThatPartAndTheWholeButNoOtherPart) {
  const auto link = MemoryLink::make(4);
  std::atomic<int> left{0};
  std::atomic<bool> is_cut{false};
  const auto all_heard = [&] {
    return link->unheard(0) + link->unheard(1) + link->unheard(2) == 0;
  };
  const auto errors = run_joined(
      4, [&](int rank) { return link->join(rank); },
      [&](Communicator& comm) {
        // Ranks 0 and 1, 2 and 3. Everybody leaves the whole, so that its end is no failure.
        const auto half = comm.split(comm.rank() / 2, 0);
        Collectives inside(half->open_channel(Purpose::kDense), half->rank(), 2);
        inside.barrier(kForward);
        Collectives(comm.open_channel(Purpose::kControl), comm.rank(), 4).barrier(kForward);
        comm.leave();
        if (++left == 4) {
          EXPECT_TRUE(test::eventually(all_heard));
          link->cut(3);
          is_cut = true;
        }
        EXPECT_TRUE(test::eventually([&] { return is_cut && link->unheard(comm.rank()) == 0; }));
        if (comm.rank() == 3) return;
        const auto error = error_of([&] {
          for (int i = 0; i < 20; ++i) inside.barrier(kForward);
        });
        if (comm.rank() < 2) {
          EXPECT_FALSE(error) << error->sentence();
        } else {
          ASSERT_TRUE(error);
          EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
          EXPECT_EQ(error->parts().rank, 1);  // in its part
          EXPECT_SAYS(*error, "rank 1 is gone: its process ended");
        }
        half->leave();
      });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

}  // namespace
}  // namespace shardrec::comm
