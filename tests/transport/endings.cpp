// Scenarios about waits and messages that are ended from this side.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "core/error.h"
#include "support/asleep.h"
#include "support/eventually.h"
#include "transport/scenarios.h"

namespace shardrec::comm::remote {
namespace {

constexpr std::byte kOwn{0xEE};

void meet(Transport& transport, uint32_t tag) {
  std::vector<std::unique_ptr<Request>> requests;
  for (int peer = 0; peer < transport.size; ++peer) {
    if (peer == transport.rank) continue;
    requests.push_back(transport.carrier->receive(peer, tag, {}));
    requests.push_back(transport.carrier->send(peer, tag, {}));
  }
  for (const auto& request : requests)
    expect_outcome(request->wait(kDeadline), Outcome::kDone, "meeting");
}

double close_time(Transport& transport) {
  const Stopwatch watch;
  transport.carrier.reset();
  transport.state_broadcast.reset();
  return watch.seconds();
}

void expect_quick_close(Transport& transport) {
  const double seconds = close_time(transport);
  expect(seconds < 1, "close took " + std::to_string(seconds) + " s");
}

// From another thread, for waits of both ways, and for good.
void cancel(const Job& job) {
  Transport transport = open_job(job), other = open_job(job, 1);
  const int peer = transport.rank == 0 ? 1 : 0;
  Bytes small(10), large(1 << 20);
  const auto first = transport.carrier->receive(peer, 1, small);
  const auto second = transport.carrier->receive(peer, 2, large);
  const Bytes sent(8 << 20);
  auto third = transport.carrier->send(peer, 3, sent);  // more than is taken without a receiver
  std::atomic<int> ended{0};
  std::array<std::atomic<pid_t>, 3> waiters{};
  std::vector<std::string> errors(3);
  {
    std::vector<std::jthread> waiting;
    int i = 0;
    for (Request* request : {first.get(), second.get(), third.get()}) {
      waiting.emplace_back([&, request, i] {
        waiters[static_cast<size_t>(i)] = gettid();
        try {
          expect_outcome(request->wait(kDeadline), Outcome::kCancelled, "a cancelled wait");
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(i)] = error.what();
        }
        ++ended;
      });
      ++i;
    }
    for (const std::atomic<pid_t>& waiter : waiters) {
      expect(test::eventually([&] { return test::is_asleep(waiter); }), "a wait does not wait");
    }
    expect(ended == 0, "a wait ended before it was cancelled");
    const Stopwatch watch;
    transport.carrier->cancel();
    expect(test::eventually([&] { return ended == 3; }, 10) && watch.seconds() < 1,
           "cancel took " + std::to_string(watch.seconds()) + " s");
  }
  for (const std::string& error : errors) expect(error.empty(), error);
  expect_outcome(first->wait(5), Outcome::kCancelled, "a wait after cancel");
  meet(other, 1);  // neither goes before both are here
}

// Memory of a receive that was given up is the caller's again at once.
void forget(const Job& job) {
  Transport transport = open_job(job);
  const size_t small = 1000, large = size_t{1} << 20;
  if (transport.rank == 0) {
    Bytes few(small), many(large);
    transport.carrier->receive(1, 1, few).reset();
    {
      const auto waited = transport.carrier->receive(1, 3, few);
      expect_outcome(waited->wait(0.01), Outcome::kTimeout, "a message nobody sends");
    }
    // Short messages are given up without harm to others.
    expect_outcome(transport.carrier->send(1, 2, {})->wait(kDeadline), Outcome::kDone, "go");
    Bytes other(small);
    expect_outcome(transport.carrier->receive(1, 4, other)->wait(kDeadline), Outcome::kDone,
                   "another message");
    expect(other == pattern(1, 0, 4, small), "another message has other bytes");
    transport.carrier->receive(1, 5, many).reset();
    std::fill(few.begin(), few.end(), kOwn);
    std::fill(many.begin(), many.end(), kOwn);
    try {
      transport.carrier->send(1, 6, {})->wait(1);
      transport.carrier->receive(1, 7, {})->wait(5);  // rank 1 has sent what it could
    } catch (const core::Error&) {                    // the connection may be gone
    }
    const auto untouched = [](std::byte byte) { return byte == kOwn; };
    expect(std::all_of(few.begin(), few.end(), untouched), "a short message came after all");
    expect(std::all_of(many.begin(), many.end(), untouched), "a long message came after all");
  } else if (transport.rank == 1) {
    Bytes go;
    expect_outcome(transport.carrier->receive(0, 2, go)->wait(kDeadline), Outcome::kDone, "go");
    const Bytes bytes = pattern(1, 0, 4, small), many(large);
    const auto ignored = transport.carrier->send(0, 1, bytes);
    expect_outcome(transport.carrier->send(0, 4, bytes)->wait(kDeadline), Outcome::kDone, "send");
    try {
      transport.carrier->receive(0, 6, go)->wait(5);
      transport.carrier->send(0, 5, many)->wait(1);
      transport.carrier->send(0, 7, {})->wait(1);
    } catch (const core::Error&) {  // rank 0 has given up what it was to receive
    }
  }
}

// Whatever is under way.
void pending(const Job& job) {
  Transport transport = open_job(job);
  meet(transport, 100);
  Bytes memory(4 << 20);
  std::vector<std::unique_ptr<Request>> requests;
  for (int peer = 0; peer < transport.size; ++peer) {
    if (peer == transport.rank) continue;
    for (uint32_t tag = 0; tag < 5; ++tag) {
      requests.push_back(transport.carrier->receive(peer, tag, std::span(memory).first(10)));
      requests.push_back(transport.carrier->receive(peer, tag + 10, memory));
      requests.push_back(transport.carrier->send(peer, tag + 20, std::span(memory).first(10)));
      requests.push_back(transport.carrier->send(peer, tag + 30, memory));
    }
  }
  meet(transport, 101);
  const Stopwatch watch;
  transport.carrier->cancel();
  requests.clear();
  expect_quick_close(transport);
  expect(watch.seconds() < 2, "the end took " + std::to_string(watch.seconds()) + " s");
  // What was given up is no obstacle to what comes next.
  transport = open_job(job, 1);
  const auto next = transport.carrier->receive((transport.rank + 1) % transport.size, 1, memory);
  const Bytes sent(memory.size());
  const auto to =
      transport.carrier->send((transport.rank + transport.size - 1) % transport.size, 1, sent);
  expect_outcome(next->wait(kDeadline), Outcome::kDone, "a receive after that");
  expect_outcome(to->wait(kDeadline), Outcome::kDone, "a send after that");
  meet(transport, 100);
}

// A rank that says nothing more holds nobody up.
void silent(const Job& job) {
  Transport transport = open_job(job);
  meet(transport, 100);
  if (transport.rank == 0) {
    // Silent on purpose, for longer than the others take.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return;
  }
  Bytes memory(4 << 20);
  auto request = transport.carrier->receive(0, 1, memory);
  expect_outcome(request->wait(0.1), Outcome::kTimeout, "a silent rank");
  transport.carrier->cancel();
  expect_outcome(request->wait(1), Outcome::kCancelled, "a cancelled wait");
  request.reset();
  expect_quick_close(transport);
}

}  // namespace

const std::map<std::string, Scenario>& ending_scenarios() {
  static const std::map<std::string, Scenario> all{
      {"cancel", cancel}, {"forget", forget}, {"pending", pending}, {"silent", silent}};
  return all;
}

}  // namespace shardrec::comm::remote
