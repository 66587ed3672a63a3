// Scenarios about messages that a rank reads in the memory of another one of its machine. Where
// they are switched off the same messages go over the connection, and what can be seen differs.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "support/asleep.h"
#include "support/eventually.h"
#include "transport/scenarios.h"

namespace shardrec::comm::remote {
namespace {

constexpr size_t kLarge = size_t{64} << 20;  // far more than a connection holds
constexpr uint32_t kBack = 9;
constexpr uint32_t kOffered = 8;

bool reads_peer_memory() {
  const char* least = std::getenv("SHARDREC_GLOO_DIRECT_BYTES");
  return least == nullptr || std::string(least) != "0";
}

void send_number(Transport& transport, int peer, uint32_t tag, int64_t number) {
  Bytes bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  expect_outcome(transport.carrier->send(peer, tag, bytes)->wait(kDeadline), Outcome::kDone,
                 "a number is sent");
}

int64_t receive_number(Transport& transport, int peer, uint32_t tag) {
  int64_t number = 0;
  Bytes bytes(sizeof number);
  expect_outcome(transport.carrier->receive(peer, tag, bytes)->wait(kDeadline), Outcome::kDone,
                 "a number is received");
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// A process that is stopped sends nothing, but its memory can be read.
void read_while_stopped(const Job& job) {
  Transport transport = open_job(job);
  if (transport.rank == 1) {
    const Bytes sent = pattern(1, 0, 5, kLarge);
    const auto request = transport.carrier->send(0, 5, sent);
    send_number(transport, 0, 1, getpid());
    raise(SIGSTOP);
    expect_outcome(request->wait(kDeadline), Outcome::kDone, "what was sent");
    receive_number(transport, 0, kBack);
    return;
  }
  const auto process = static_cast<pid_t>(receive_number(transport, 1, 1));
  expect(test::eventually([&] { return test::is_stopped(process); }), "rank 1 has not stopped");
  Bytes received(kLarge);
  const auto request = transport.carrier->receive(1, 5, received);
  const Outcome outcome = request->wait(1).outcome;
  kill(process, SIGCONT);
  expect(outcome == (reads_peer_memory() ? Outcome::kDone : Outcome::kTimeout),
         "outcome " + std::to_string(static_cast<int>(outcome)) + " of a rank that is stopped");
  if (!reads_peer_memory()) expect_outcome(request->wait(kDeadline), Outcome::kDone, "the rest");
  expect(received == pattern(1, 0, 5, kLarge), "other bytes arrived");
  send_number(transport, 1, kBack, 0);
}

// A message that its sender takes back before it is read never passes for whole, and harms no
// other.
void taken_back(const Job& job) {
  Transport transport = open_job(job);
  if (!reads_peer_memory()) return;
  if (transport.rank == 1) {
    Bytes sent(kLarge, std::byte{1});
    transport.carrier->send(0, 5, sent).reset();
    std::fill(sent.begin(), sent.end(), std::byte{2});
    send_number(transport, 0, 1, 0);
    receive_number(transport, 0, kBack);
    return;
  }
  receive_number(transport, 1, 1);
  Bytes received(kLarge);
  const Result result = transport.carrier->receive(1, 5, received)->wait(kDeadline);
  expect_outcome(result, Outcome::kFailed, "a message that was taken back");
  expect(result.peer == 1 && result.text.find("rank 1") != std::string::npos, result.text);
  send_number(transport, 1, kBack, 0);
}

// A receiver that gives a message up lets its sender go on, before and after the offer.
void given_up(const Job& job) {
  Transport transport = open_job(job);
  if (!reads_peer_memory()) return;
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    const auto tag = static_cast<uint32_t>(10 + round);
    Bytes memory(kLarge / 8);
    if (transport.rank == 1) {
      if (round % 2 == 0) receive_number(transport, 0, kBack);
      const auto request = transport.carrier->send(0, tag, memory);
      if (round % 2 != 0) send_number(transport, 0, kOffered, tag);
      expect_outcome(request->wait(kDeadline), Outcome::kDone, "what nobody wants any more");
      continue;
    }
    // Asked for before it is offered, given up then; or read at once, and nobody waits for it.
    if (round % 2 != 0) receive_number(transport, 1, kOffered);
    transport.carrier->receive(1, tag, memory).reset();
    if (round % 2 == 0) send_number(transport, 1, kBack, 0);
  }
  if (transport.rank == 1) return send_number(transport, 0, 1, 0);
  receive_number(transport, 1, 1);
}

// Memory is the caller's again at once, though another thread was reading into it.
void given_up_while_read(const Job& job) {
  Transport transport = open_job(job);
  if (!reads_peer_memory()) return;
  Bytes memory(kLarge, transport.rank == 1 ? std::byte{1} : std::byte{0});
  if (transport.rank == 1) {
    receive_number(transport, 0, kBack);
    expect_outcome(transport.carrier->send(0, 5, memory)->wait(kDeadline), Outcome::kDone, "sent");
    return send_number(transport, 0, 1, 0);
  }
  auto request = transport.carrier->receive(1, 5, memory);
  send_number(transport, 1, kBack, 0);
  const volatile std::byte& first = memory[0];
  for (const Stopwatch watch; first == std::byte{0};)
    expect(watch.seconds() < kDeadline, "nothing arrives");
  request.reset();
  std::fill(memory.begin(), memory.end(), std::byte{2});
  receive_number(transport, 1, 1);
  expect(memory == Bytes(kLarge, std::byte{2}), "memory that was given up was written to");
}

int count_sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the one that lists them
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:")) ++count;
  }
  return count;
}

// Peers that cannot read each other's memory have a connection for each direction, so that long
// messages of both travel at once.
void connections(const Job& job) {
  const int before = count_sockets();
  Transport transport = open_job(job);
  const int opened = count_sockets() - before;
  const int peers = transport.size - 1;
  expect(opened == (reads_peer_memory() ? peers : 2 * peers),
         std::to_string(opened) + " connections to " + std::to_string(peers) + " peers");
  // Nobody closes before all have counted.
  for (int peer = 0; peer < transport.size; ++peer) {
    if (peer == transport.rank) continue;
    if (peer > transport.rank) send_number(transport, peer, 1, 0);
    receive_number(transport, peer, 1);
    if (peer < transport.rank) send_number(transport, peer, 1, 0);
  }
}

}  // namespace

const std::map<std::string, Scenario>& peer_memory_scenarios() {
  static const std::map<std::string, Scenario> all = {{"read_while_stopped", read_while_stopped},
                                                      {"taken_back", taken_back},
                                                      {"given_up", given_up},
                                                      {"connections", connections},
                                                      {"given_up_while_read", given_up_while_read}};
  return all;
}

}  // namespace shardrec::comm::remote
