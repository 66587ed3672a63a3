// Scenarios about messages that arrive.
#include <algorithm>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "core/error.h"
#include "support/eventually.h"
#include "transport/scenarios.h"

namespace shardrec::comm::remote {
namespace {

void finish(std::vector<std::unique_ptr<Request>>& requests, const std::string& what) {
  for (auto& request : requests) {
    expect_outcome(request->wait(kDeadline), Outcome::kDone, what);
    request.reset();
  }
  requests.clear();
}

void ring(Transport& transport, size_t size, uint32_t tag) {
  const int rank = transport.rank, ranks = transport.size;
  if (ranks == 1) return;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const Bytes sent = pattern(rank, next, tag, size);
  Bytes received(size, std::byte{0x55});
  std::vector<std::unique_ptr<Request>> requests;
  requests.push_back(transport.carrier->receive(previous, tag, received));
  requests.push_back(transport.carrier->send(next, tag, sent));
  finish(requests, "ring of " + std::to_string(size));
  expect(received == pattern(previous, rank, tag, size),
         "ring of " + std::to_string(size) + " bytes: other bytes arrived");
}

void all_to_all(Transport& transport, size_t size, uint32_t tag, bool send_first) {
  const auto ranks = static_cast<size_t>(transport.size);
  std::vector<Bytes> sent(ranks), received(ranks, Bytes(size));
  std::vector<std::unique_ptr<Request>> requests;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t peer = 0; peer < ranks; ++peer) {
      const int other = static_cast<int>(peer);
      if (other == transport.rank) continue;
      if ((pass == 0) == send_first) {
        sent[peer] = pattern(transport.rank, other, tag, size);
        requests.push_back(transport.carrier->send(other, tag, sent[peer]));
      } else {
        requests.push_back(transport.carrier->receive(other, tag, received[peer]));
      }
    }
  }
  finish(requests, "all-to-all of " + std::to_string(size));
  for (size_t peer = 0; peer < ranks; ++peer) {
    const int other = static_cast<int>(peer);
    expect(
        other == transport.rank || received[peer] == pattern(other, transport.rank, tag, size),
        "all-to-all of " + std::to_string(size) + ": other bytes of rank " + std::to_string(other));
  }
}

void barrier(Transport& transport, uint32_t tag) { all_to_all(transport, 0, tag, true); }

void sizes(const Job& job) {
  Transport transport = open_job(job);
  uint32_t tag = 1;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{777}, size_t{16} << 10,
                            (size_t{16} << 10) + 1, (size_t{64} << 10) + 3, size_t{1} << 20}) {
    ring(transport, size, tag);
    all_to_all(transport, size, tag + 1, true);
    all_to_all(transport, size, tag + 2, false);
    tag += 3;
  }
  ring(transport, size_t{64} << 20, (1U << 31U) - 1);  // the largest tag
  barrier(transport, 0);
}

// Longer than a count of 31 bits can say.
void huge(const Job& job) {
  Transport transport = open_job(job);
  const size_t size = (size_t{1} << 31) + 8;
  Bytes memory(size);
  if (transport.rank == 0) {
    for (size_t i = 0; i < size; i += 4099) memory[i] = static_cast<std::byte>(i / 4099 * 31);
    expect_outcome(transport.carrier->send(1, 5, memory)->wait(kDeadline), Outcome::kDone, "send");
  } else if (transport.rank == 1) {
    expect_outcome(transport.carrier->receive(0, 5, memory)->wait(kDeadline), Outcome::kDone,
                   "receive");
    for (size_t i = 0; i < size; ++i) {
      const auto byte = i % 4099 == 0 ? static_cast<std::byte>(i / 4099 * 31) : std::byte{0};
      if (memory[i] != byte) expect(false, "another byte at " + std::to_string(i));
    }
  }
  barrier(transport, 0);
}

// 300 messages each way with every peer, under way at once, posted and waited for in orders of each
// rank's own.
void tags(const Job& job) {
  Transport transport = open_job(job);
  constexpr uint32_t kTags = 300;
  std::mt19937 random(static_cast<unsigned>(transport.rank + 1));
  const auto size_of = [](uint32_t tag) { return size_t{tag} * 37 % 40000; };
  struct Message {
    int peer;
    uint32_t tag;
    bool sent;
    Bytes bytes{};
    std::unique_ptr<Request> request{};
  };
  std::vector<Message> messages;
  for (int peer = 0; peer < transport.size; ++peer) {
    for (uint32_t i = 0; peer != transport.rank && i < kTags; ++i) {
      const uint32_t tag = i * 0x6fffff % 0x7fffffff;  // all over the 31 bits
      messages.push_back({.peer = peer, .tag = tag, .sent = true});
      messages.push_back({.peer = peer, .tag = tag, .sent = false});
    }
  }
  std::shuffle(messages.begin(), messages.end(), random);
  for (Message& message : messages) {
    if (message.sent) {
      message.bytes = pattern(transport.rank, message.peer, message.tag, size_of(message.tag));
      message.request = transport.carrier->send(message.peer, message.tag, message.bytes);
    } else {
      message.bytes.resize(size_of(message.tag));
      message.request = transport.carrier->receive(message.peer, message.tag, message.bytes);
    }
  }
  std::shuffle(messages.begin(), messages.end(), random);
  for (Message& message : messages) {
    expect_outcome(message.request->wait(kDeadline), Outcome::kDone, "many tags");
    message.request.reset();
    expect(message.sent || message.bytes == pattern(message.peer, transport.rank, message.tag,
                                                    size_of(message.tag)),
           "many tags: other bytes under tag " + std::to_string(message.tag));
  }
  barrier(transport, 0);
}

// Names are used again and again, and several threads send at once. A name is free again once both
// ends are through with it: here, when the exchange after that is over.
void threads(const Job& job) {
  Transport transport = open_job(job);
  std::vector<std::string> errors(4);
  {
    std::vector<std::jthread> running;
    for (uint32_t thread = 0; thread < 4; ++thread) {
      running.emplace_back([&, thread] {
        try {
          for (uint32_t i = 0; i < 100; ++i)
            all_to_all(transport, 1000 * thread, 2 * thread + 1 + i % 2, i / 2 % 2 == 0);
        } catch (const std::exception& error) {
          errors[thread] = error.what();
        }
      });
    }
  }
  for (const std::string& error : errors) expect(error.empty(), error);
  barrier(transport, 0);
}

// A wait that ends without the message leaves it under way, however often.
void late(const Job& job) {
  Transport transport = open_job(job);
  const size_t size = 100'000;
  if (transport.rank == 0) {
    Bytes received(size);
    const auto request = transport.carrier->receive(1, 9, received);
    for (const double seconds : {0.0, 0.05, 0.2, 0.0}) {
      const Stopwatch watch;
      expect_outcome(request->wait(seconds), Outcome::kTimeout, "a wait for a late message");
      expect(watch.seconds() >= seconds && watch.seconds() < seconds + 2,
             "a wait of " + std::to_string(seconds) + " s took " + std::to_string(watch.seconds()));
    }
    expect_outcome(transport.carrier->send(1, 1, {})->wait(kDeadline), Outcome::kDone, "go");
    expect_outcome(request->wait(kDeadline), Outcome::kDone, "a late message");
    expect(received == pattern(1, 0, 9, size), "a late message has other bytes");
    // Done or not yet is all that asking says.
    Bytes more(10);
    const auto asked = transport.carrier->receive(1, 10, more);
    expect_outcome(asked->wait(0), Outcome::kTimeout, "asking for what is not sent");
    expect_outcome(transport.carrier->send(1, 2, {})->wait(kDeadline), Outcome::kDone, "go");
    Result result;
    const bool answered = test::eventually([&] {
      result = asked->wait(0);
      return result.outcome != Outcome::kTimeout;
    });
    expect(answered, "a message does not come");
    expect_outcome(result, Outcome::kDone, "asking");
    expect_outcome(asked->wait(0), Outcome::kDone, "asking again");
  } else if (transport.rank == 1) {
    Bytes go;
    expect_outcome(transport.carrier->receive(0, 1, go)->wait(kDeadline), Outcome::kDone, "go");
    const Bytes sent = pattern(1, 0, 9, size), more = pattern(1, 0, 10, 10);
    expect_outcome(transport.carrier->send(0, 9, sent)->wait(kDeadline), Outcome::kDone, "send");
    expect_outcome(transport.carrier->receive(0, 2, go)->wait(kDeadline), Outcome::kDone, "go");
    expect_outcome(transport.carrier->send(0, 10, more)->wait(kDeadline), Outcome::kDone, "send");
  }
  barrier(transport, 0);
}

// One after the other, and two at once.
void reopen(const Job& job) {
  for (int n = 0; n < 3; ++n) {
    Transport transport = open_job(job, n);
    all_to_all(transport, 5000, 3, true);
    barrier(transport, 4);
  }
  Transport first = open_job(job, 3), second = open_job(job, 4);
  expect(first.rank == second.rank && first.size == second.size, "other ranks the second time");
  for (int i = 0; i < 20; ++i) {
    all_to_all(second, 3000, 3, true);
    all_to_all(first, 2000, 3, true);
  }
  barrier(first, 4);
  barrier(second, 4);
}

// What one rank tells, all others hear, whether they wait for something or not; in its order.
void group_states(const Job& job) {
  Transport transport = open_job(job);
  if (!transport.state_broadcast) return;
  std::mutex mutex;
  std::map<int, std::string> heard;
  transport.state_broadcast->listen({.heard =
                                         [&](int from, ConstBytes group_state) {
                                           const std::lock_guard lock(mutex);
                                           for (const std::byte byte : group_state)
                                             heard[from] += static_cast<char>(byte);
                                         },
                                     .lost = {}});
  for (const char* word : {"one ", "two ", "three"}) {
    const std::string text = word;
    Bytes bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char letter) { return static_cast<std::byte>(letter); });
    transport.state_broadcast->announce(bytes);
  }
  const bool all = test::eventually([&] {
    const std::lock_guard lock(mutex);
    return static_cast<int>(heard.size()) == transport.size - 1 &&
           std::all_of(heard.begin(), heard.end(),
                       [](const auto& entry) { return entry.second == "one two three"; });
  });
  expect(all, "not all was heard");
  barrier(transport, 0);
  transport.state_broadcast->listen({});
  for (int peer = 0; peer < transport.size; ++peer) {
    if (peer == transport.rank) continue;
    expect(heard[peer] == "one two three",
           "rank " + std::to_string(peer) + " was heard to say \"" + heard[peer] + "\"");
  }
}

}  // namespace

const std::map<std::string, Scenario>& message_scenarios() {
  static const std::map<std::string, Scenario> all{{"sizes", sizes},
                                                   {"huge", huge},
                                                   {"tags", tags},
                                                   {"threads", threads},
                                                   {"late", late},
                                                   {"reopen", reopen},
                                                   {"group_states", group_states}};
  return all;
}

}  // namespace shardrec::comm::remote
