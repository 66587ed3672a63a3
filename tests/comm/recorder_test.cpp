// The flight recorder: what it keeps, and what it says when a peer fails.
#include "comm/recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/collectives.h"
#include "core/log.h"
#include "support/eventually.h"
#include "world.h"

namespace shardrec::comm {
namespace {

using nlohmann::json;

json operations(const Recorder& recorder) { return json::parse(recorder.json()).at("operations"); }

struct Recorders {
  std::vector<std::shared_ptr<Recorder>> all;
  Errors run(int ranks, const Body& body) {
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(std::make_shared<Recorder>(rank, ranks));
    }
    const auto group = local::make_group(ranks, ranks);
    return run_joined(
        ranks,
        [&](int rank) {
          return recorded(local::join(group, rank), all[static_cast<size_t>(rank)]);
        },
        body);
  }
};

TEST(Recorder, KeepsEveryOperationWithItsBytesAndState) {
  Recorders recorders;
  const Errors errors = recorders.run(3, [](Communicator& comm) {
    const auto channel = comm.open_channel(Purpose::kDense);
    const std::vector<std::byte> data(10);
    for (const char* name : {"first", "second"}) {
      // 10 bytes to each other rank, 10 to itself that go nowhere.
      const std::vector<ConstBytes> send(3, ConstBytes(data));
      std::vector<ConstBytes> received(3);
      const Ticket ticket = channel->post({.name = name, .kind = 1}, send, nullptr);
      channel->receive(ticket, received);
      channel->release(ticket);
      channel->reclaim(ticket);
    }
  });
  for (const auto& error : errors) EXPECT_FALSE(error.has_value());
  for (const auto& recorder : recorders.all) {
    const json all = operations(*recorder);
    ASSERT_EQ(all.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(all[i].at("number"), i);
      EXPECT_EQ(all[i].at("sequence"), i);
      EXPECT_EQ(all[i].at("operation"), i == 0 ? "first" : "second");
      EXPECT_EQ(all[i].at("purpose"), "dense");
      EXPECT_EQ(all[i].at("bytes"), 20);
      EXPECT_EQ(all[i].at("state"), "done");
      EXPECT_TRUE(all[i].at("peer").is_null());
      EXPECT_GE(all[i].at("end_seconds").get<double>(), all[i].at("start_seconds").get<double>());
    }
    EXPECT_GE(all[1].at("start_seconds").get<double>(), all[0].at("end_seconds").get<double>());
  }
}

TEST(Recorder, KeepsTheLastThousandOnly) {
  const auto owner = std::make_unique<Recorder>(0, 2);
  Recorder& recorder = *owner;
  for (uint64_t i = 0; i < 2500; ++i) {
    const uint64_t number = recorder.begin(Purpose::kInput, i, "step", i);
    if (i != 2499) recorder.finish(number);
  }
  recorder.wait(2499);
  recorder.finish(7);  // long gone: changes nothing
  const json all = operations(recorder);
  ASSERT_EQ(all.size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(all[i].at("number"), 1500 + i);
    EXPECT_EQ(all[i].at("bytes"), 1500 + i);
    EXPECT_EQ(all[i].at("state"), i == 999 ? "waiting" : "done");
  }
  EXPECT_TRUE(all[999].at("end_seconds").is_null());
}

TEST(Recorder, AFailureNamesThePeerAndIsToldToTheLogOnce) {
  core::set_log_level(SHARDREC_LOG_ERROR);
  while (core::next_log(std::chrono::milliseconds(0))) {
  }
  Recorders recorders;
  std::atomic<bool> is_over{false};
  const Errors errors = recorders.run(2, [&](Communicator& comm) {
    comm.set_deadlines({.step = 0.2});
    Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
    collectives.barrier({.name = "begin", .kind = 1});
    if (comm.rank() == 1) {
      EXPECT_TRUE(test::eventually([&] { return is_over.load(); }));
      return;
    }
    for (int again = 0; again < 2; ++again) {
      const auto error = error_of([&] { collectives.barrier({.name = "forward", .kind = 2}); });
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
    }
    is_over = true;
  });
  const json all = operations(*recorders.all[0]);
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(all[0].at("state"), "done");
  EXPECT_EQ(all[1].at("operation"), "forward");
  EXPECT_EQ(all[1].at("state"), "failed");
  EXPECT_EQ(all[1].at("peer"), 1);
  int told = 0;
  while (const auto message = core::next_log(std::chrono::milliseconds(0))) {
    if (message->text.find("its last operations:") == std::string::npos) continue;
    ++told;
    EXPECT_EQ(message->rank, 0);
    EXPECT_NE(message->text.find("control exchange 0 of \"begin\", 0 bytes, done"),
              std::string::npos)
        << message->text;
    EXPECT_NE(message->text.find("control exchange 1 of \"forward\", 0 bytes, failed"),
              std::string::npos)
        << message->text;
    EXPECT_NE(message->text.find("at rank 1"), std::string::npos) << message->text;
  }
  EXPECT_EQ(told, 1);
  core::set_log_level(SHARDREC_LOG_WARNING);
}

TEST(Recorder, IsReadWhileOthersWrite) {
  const auto owner = std::make_unique<Recorder>(0, 1);
  Recorder& recorder = *owner;
  std::atomic<bool> over{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&] {
      for (uint64_t i = 0; i < 20000; ++i) {
        recorder.finish(recorder.begin(Purpose::kDense, i, "all_reduce", i));
      }
    });
  }
  std::thread reader([&] {
    while (!over) EXPECT_LE(operations(recorder).size(), 1000u);
  });
  for (auto& writer : writers) writer.join();
  over = true;
  reader.join();
  for (const json& each : operations(recorder)) EXPECT_EQ(each.at("state"), "done");
}

TEST(Recorder, PartsOfASplitHaveTheirOwn) {
  Recorders recorders;
  const Errors errors = recorders.run(4, [](Communicator& comm) {
    const auto part = comm.split(comm.rank() % 2, 0);
    EXPECT_EQ(part->size(), 2);
    Collectives collectives(part->open_channel(Purpose::kDense), part->rank(), part->size());
    collectives.barrier({.name = "inside", .kind = 1});
    part->leave();
  });
  for (const auto& error : errors) EXPECT_FALSE(error.has_value());
  for (const auto& recorder : recorders.all) {
    EXPECT_EQ(recorder->json().find("inside"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardrec::comm
