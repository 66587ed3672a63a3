// One rank of a job whose ranks are processes with a device each: device_rank ENGINE [options of GoogleTest]. Sets of
// DDP parameters have the bits of threads on the CPU, whatever carries their messages.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/collective/collectives.h"
#include "comm/engines/engine.h"
#include "comm/ipc/carrier.h"
#include "compute/cuda/backend.h"
#include "compute/cuda/host/sharing.h"
#include "core/error.h"
#include "core/threads.h"
#include "dense_device/ddp_sets.h"
#include "support/eventually.h"

namespace shardrec::dense {
namespace {

using namespace sets;

// All ranks of the job.
std::shared_ptr<Communicator> everyone;

// The devices of this rank refuse to be opened: SHARDREC_TEST_WITHOUT_IPC.
const char* const without_ipc = std::getenv("SHARDREC_TEST_WITHOUT_IPC");

bool goes_by_ipc() {
  if (without_ipc != nullptr) return false;
  const char* const wanted = std::getenv("SHARDREC_DEVICE_IPC");
  return wanted == nullptr || std::strcmp(wanted, "0") != 0;
}

// The first ranks of the job take part; each compares what is its own.
void expect_as_threads(const Job& job) {
  if (job.ranks > everyone->size()) return;
  SCOPED_TRACE(testing::Message() << job.ranks << " ranks, " << core::dtype_name(job.dtype));
  const int rank = everyone->rank();
  const bool takes_part = rank < job.ranks;
  const auto group = everyone->split(takes_part ? 0 : 1, 0);
  if (takes_part) {
    const int64_t before = compute::cuda::host::bytes_from_processes();
    Outcome outcome = nothing_yet(job);
    take_part(job, *group, true, outcome);
    const auto r = static_cast<size_t>(rank);
    const Outcome expected = run(job, {});
    EXPECT_TRUE(outcome.gradients[r] == expected.gradients[r]);
    EXPECT_TRUE(outcome.values[r] == expected.values[r]);
    EXPECT_EQ(outcome.saturated[r], expected.saturated[r]);
    EXPECT_EQ(compute::cuda::host::bytes_from_processes() > before, goes_by_ipc());
  }
  group->leave();
}

TEST(DdpBetweenProcesses, AnyWorldHasTheBitsOfThreads) {
  for (const int ranks : {2, 3, 4}) {
    Job job{.ranks = ranks, .body = two_steps};
    expect_as_threads(job);
    job.options.reducer.average = false;
    job.options.reducer.factor = 0.3;
    expect_as_threads(job);
  }
}

TEST(DdpBetweenProcesses, OtherDtypesAndWiresHaveTheBitsOfThreads) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT64, SHARDREC_BFLOAT16}) {
    expect_as_threads({.ranks = 3, .dtype = dtype, .body = two_steps});
  }
  Job job{.ranks = 4, .body = [](Communicator&, Ddp& ddp, Model& model) {
            take_step(ddp, model, 0, 80000);
            take_step(ddp, model, 1, 80000);
          }};
  job.options.reducer.wire = SHARDREC_FLOAT16;
  job.options.reducer.average = false;
  job.options.reducer.factor = 3;
  expect_as_threads(job);
}

TEST(DdpBetweenProcesses, UnusedParametersAndRanksThatHaveJoinedAreAsThoseOfThreads) {
  Job job{.ranks = 3, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
            for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 9, 1);
            take_step(ddp, model, 1, 1, true,
                      [&](size_t p) { return p != 1 && (p != 4 || communicator.rank() == 0); });
          }};
  job.options.reducer.unused = Unused::kZero;
  expect_as_threads(job);
  job = {.ranks = 3, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
           for (int step = 0; step <= communicator.rank(); ++step) take_step(ddp, model, step);
           ddp.join();
         }};
  job.options.reducer.divide_by_live = true;
  expect_as_threads(job);
}

TEST(DdpBetweenProcesses, OptimizersStepAsThoseOfThreads) {
  expect_as_threads({.ranks = 2,
                     .optimizer = plan::Optimizer{.kind = SHARDREC_OPTIMIZER_ADAM},
                     .body = [](Communicator&, Ddp& ddp, Model& model) {
                       for (int step = 0; step < 3; ++step) {
                         take_step(ddp, model, step);
                         ddp.step();
                       }
                     }});
}

// Several sets of one group: what went by a set that has ended is not written by another.
TEST(DdpBetweenProcesses, SetsFollowEachOther) {
  for (int time = 0; time < 3; ++time) expect_as_threads({.ranks = 2, .body = two_steps});
}

// Two ranks with a device each, and messages of one byte over and over.
class TwoRanks {
 public:
  static constexpr size_t kBytes = 4096;

  explicit TwoRanks(std::shared_ptr<Communicator> group)
      : group_(std::move(group)),
        backend_(compute::cuda::make_cuda_backend(
            {.threads = threads_, .device = group_->rank() % 2, .wait = {}})),
        carrier_(comm::ipc::make_carrier(*backend_, group_, nullptr)),
        control_(group_->open_channel(comm::Purpose::kControl), group_->rank(), group_->size()) {
    carrier_->connect(control_);
  }
  ~TwoRanks() { backend_->wait(); }
  TwoRanks(const TwoRanks&) = delete;
  TwoRanks& operator=(const TwoRanks&) = delete;

  std::shared_ptr<comm::Channel> open_channel() {
    return carrier_->over(group_->open_channel(comm::Purpose::kDense), comm::Purpose::kDense);
  }
  void barrier() { control_.barrier({.name = "barrier", .kind = 1}); }
  // Behind the caller's stream, if one is given; else the letters are there when it returns.
  comm::Ticket post(comm::Channel& channel, char letter, std::optional<int64_t> behind = {}) {
    if (behind) backend_->follow_caller(*behind);
    const auto buffer = carrier_->make_buffer();
    std::byte* const at = buffer->resize(kBytes);
    const Bytes& letters = letters_.emplace_back(kBytes, static_cast<std::byte>(letter));
    backend_->transfer().copy(at, letters.data(), kBytes);
    buffer->publish(at, at + kBytes);
    carrier_->finish_writing();
    std::array<comm::ConstBytes, 2> messages;
    messages[static_cast<size_t>(1 - group_->rank())] = buffer->host(at, at + kBytes);
    const comm::Ticket ticket = channel.post(kLetters, messages, buffer->keep_alive());
    if (!behind) backend_->wait();
    return ticket;
  }
  Bytes receive(comm::Channel& channel, comm::Ticket ticket) {
    std::array<comm::ConstBytes, 2> messages;
    channel.receive(ticket, messages);
    const auto received = carrier_->make_received();
    const comm::ConstBytes body = received->open(messages)[static_cast<size_t>(1 - group_->rank())];
    Bytes letters(body.size());
    backend_->transfer().copy(letters.data(), body.data(), body.size());
    carrier_->finish_reading();
    backend_->wait();
    channel.release(ticket);
    return letters;
  }

 private:
  static constexpr comm::Operation kLetters{.name = "letters", .kind = 1};

  std::shared_ptr<Communicator> group_;
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<comm::BodyCarrier> carrier_;
  comm::Collectives control_;
  std::deque<Bytes> letters_;  // that were posted
};

Bytes letters_of(char letter) { return Bytes(TwoRanks::kBytes, static_cast<std::byte>(letter)); }

// One rank is done with a channel, and writes in another one, before the other rank has read what went by the first.
TEST(BodiesBetweenProcesses, ThoseOfAChannelThatHasEndedAreNotWrittenAgainBeforeTheyAreRead) {
  const int rank = everyone->rank();
  const auto group = everyone->split(rank < 2 ? 0 : 1, 0);
  if (rank < 2) {
    TwoRanks ranks(group);
    auto first = ranks.open_channel();
    const auto second = ranks.open_channel();
    const comm::Ticket of_first = ranks.post(*first, 'a');
    if (rank == 0) {
      EXPECT_EQ(ranks.receive(*first, of_first), letters_of('a'));
      first.reset();
    }
    const comm::Ticket of_second = ranks.post(*second, 'b');
    ranks.barrier();
    if (rank == 1) {
      EXPECT_EQ(ranks.receive(*first, of_first), letters_of('a'));
    }
    EXPECT_EQ(ranks.receive(*second, of_second), letters_of('b'));
    second->reclaim(of_second);
    ranks.barrier();
  }
  group->leave();
}

// A rank writes into its memory again when the other one has read what it had there before.
TEST(BodiesBetweenProcesses, AreNotWrittenAgainBeforeTheyAreReclaimed) {
  const int rank = everyone->rank();
  const auto group = everyone->split(rank < 2 ? 0 : 1, 0);
  if (rank < 2) {
    TwoRanks ranks(group);
    const auto first = ranks.open_channel();
    const auto second = ranks.open_channel();
    const comm::Ticket of_first = ranks.post(*first, 'a');
    if (rank == 0) {
      EXPECT_EQ(ranks.receive(*first, of_first), letters_of('a'));
      first->reclaim(of_first);
    }
    const comm::Ticket of_second = ranks.post(*second, 'b');
    if (rank == 1) {  // rank 0 has come here only where it has not waited
      (void)test::eventually([&] { return second->has_arrived(of_second); }, 0.05);
      EXPECT_EQ(ranks.receive(*first, of_first), letters_of('a'));
    }
    EXPECT_EQ(ranks.receive(*second, of_second), letters_of('b'));
    ranks.barrier();
  }
  group->leave();
}

// A rank that has enqueued a long time of work behind a message, and another message behind that, holds nobody up who
// receives the first one: the work may need what the other rank does next.
TEST(BodiesBetweenProcesses, AreThereThoughLaterOnesAreNot) {
  const int rank = everyone->rank();
  const auto group = everyone->split(rank < 2 && goes_by_ipc() ? 0 : 1, 0);
  if (rank < 2 && goes_by_ipc()) {
    group->set_deadlines({.step = 20, .setup = 60, .warn = 30});
    TwoRanks ranks(group);
    const auto first = ranks.open_channel();
    const auto second = ranks.open_channel();
    compute::cuda::host::Stream caller(rank);
    const comm::Ticket of_first = ranks.post(*first, 'a');
    comm::Ticket of_second{};
    if (rank == 0) {
      test::of_plugin<void(int64_t)>("simt_hold_stream")(caller.number());
      of_second = ranks.post(*second, 'b', caller.number());
    } else {
      EXPECT_EQ(ranks.receive(*first, of_first), letters_of('a'));
      of_second = ranks.post(*second, 'b');
    }
    ranks.barrier();  // rank 0 goes on when rank 1 has received the first one
    if (rank == 0) {
      test::of_plugin<void()>("simt_go_on")();
      EXPECT_EQ(ranks.receive(*first, of_first), letters_of('a'));
    }
    EXPECT_EQ(ranks.receive(*second, of_second), letters_of('b'));
    for (const auto& [channel, ticket] :
         {std::pair(first, of_first), std::pair(second, of_second)}) {
      channel->reclaim(ticket);
    }
    ranks.barrier();
  }
  group->leave();
}

TEST(BodiesBetweenProcesses, AWrongValueOfTheVariableIsRefused) {
  const char* const before = std::getenv("SHARDREC_DEVICE_IPC");
  const std::string kept = before == nullptr ? "" : before;
  setenv("SHARDREC_DEVICE_IPC", "yes", 1);
  try {
    const TwoRanks ranks(everyone);
    ADD_FAILURE() << "it is accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(error.sentence().find("SHARDREC_DEVICE_IPC"), std::string::npos);
  }
  setenv("SHARDREC_DEVICE_IPC", kept.c_str(), 1);
}

// What peers had open they have closed.
void expect_nothing_left() {
  for (const char* const count : {"simt_live_allocations", "simt_live_handles"}) {
    EXPECT_TRUE(test::eventually([&] { return test::of_plugin<int64_t()>(count)() == 0; }))
        << count;
  }
}

TEST(WhatProcessesShare, IsGivenBack) { expect_nothing_left(); }

// Of the ranks but one nothing is printed but what went wrong.
class Complaints : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", everyone->rank(),
                 result.file_name() == nullptr ? "" : result.file_name(), result.line_number(),
                 result.message());
  }
};

int run_tests(const std::string& engine) {
  everyone = comm::connect_from_environment({.engine = engine, .seconds = 60});
  if (without_ipc != nullptr && std::atoi(without_ipc) == everyone->rank()) {
    setenv("SHARDREC_SIMT_IPC", "0", 1);  // which the plug-in reads when it is loaded
  }
  everyone->set_deadlines({.step = 60, .setup = 60, .warn = 30});
  if (everyone->rank() != 0) {
    GTEST_FLAG_SET(output, "");
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Complaints);
  }
  const int status = RUN_ALL_TESTS();
  comm::Collectives(everyone->open_channel(comm::Purpose::kControl), everyone->rank(),
                    everyone->size())
      .barrier({.name = "end", .kind = 1});
  everyone->leave();
  everyone.reset();
  return status;
}

}  // namespace
}  // namespace shardrec::dense

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: device_rank ENGINE\n");
    return 2;
  }
  try {
    return shardrec::dense::run_tests(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_rank: %s\n", error.what());
    return 1;
  }
}
