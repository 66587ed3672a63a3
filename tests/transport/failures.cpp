// Scenarios about ranks that die or do not come, and launches that cannot work.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "core/error.h"
#include "support/eventually.h"
#include "transport/scenarios.h"

namespace shardrec::comm::remote {
namespace {

constexpr double kSoon = 1;      // seconds after a death
constexpr uint32_t kPosted = 8;  // the sender has posted what the other is to find

void meet(Transport& transport, int without, uint32_t tag) {
  std::vector<std::unique_ptr<Request>> requests;
  for (int peer = 0; peer < transport.size; ++peer) {
    if (peer == transport.rank || peer == without) continue;
    requests.push_back(transport.carrier->receive(peer, tag, {}));
    requests.push_back(transport.carrier->send(peer, tag, {}));
  }
  for (const auto& request : requests)
    expect_outcome(request->wait(kDeadline), Outcome::kDone, "meeting");
}

void expect_failed(const Result& result, int peer, const Stopwatch& watch) {
  expect_outcome(result, Outcome::kFailed, "a wait for a dead rank");
  expect(result.peer == peer, "rank " + std::to_string(result.peer) + " is blamed");
  expect(result.text.find("rank " + std::to_string(peer)) != std::string::npos, result.text);
  expect(watch.seconds() < kSoon + 0.2,
         "a death was seen after " + std::to_string(watch.seconds()) + " s");
}

// Rank 0 dies: idle, or while a message is half through to it and from it. Should one have been
// through already, the driver is told, for another try; what rank 0 never sends fails in any case.
void killed(const Job& job, bool half_through) {
  Transport transport = open_job(job);
  const size_t large = half_through ? size_t{64} << 20 : 0;
  Bytes memory(std::max<size_t>(large, 1000));
  Bytes other(memory.size(), std::byte{0x77});
  meet(transport, -1, 0);
  if (transport.rank == 0) {
    std::vector<std::unique_ptr<Request>> requests;
    for (int peer = 1; half_through && peer < transport.size; ++peer) {
      requests.push_back(transport.carrier->receive(peer, 1, memory));
      requests.push_back(transport.carrier->send(peer, kPosted, {}));
      requests.push_back(transport.carrier->send(peer, 2, other));
    }
    const volatile std::byte& quarter = memory[memory.size() / 4];
    for (const Stopwatch watch; half_through && quarter == std::byte{0};)
      expect(watch.seconds() < kDeadline, "nothing arrives");
    for (int peer = 1; !half_through && peer < transport.size; ++peer) {
      expect_outcome(transport.carrier->receive(peer, kPosted, {})->wait(kDeadline), Outcome::kDone,
                     "what a rank posted");
    }
    kill(getpid(), SIGKILL);
    return;
  }
  Bytes nothing(1000);
  std::unique_ptr<Request> never, send, receive;
  std::unique_ptr<Request> posted;
  try {
    // Rank 0 may be dead already, of what it got from another rank.
    const auto ready = half_through ? transport.carrier->receive(0, kPosted, {}) : nullptr;
    if (ready != nullptr && ready->wait(kDeadline).outcome != Outcome::kDone) throw TooLate();
    never = transport.carrier->receive(0, 4, nothing);
    if (half_through) send = transport.carrier->send(0, 1, other);
    receive = transport.carrier->receive(0, 2, memory);  // may read until rank 0 dies
    if (!half_through) posted = transport.carrier->send(0, kPosted, {});
  } catch (const core::Error& error) {
    expect(half_through && error.parts().rank == 0, error.what());
    throw TooLate();
  }
  const Stopwatch watch;
  expect_failed(never->wait(kDeadline), 0, watch);
  bool too_late = false;
  for (Request* request : {receive.get(), send.get()}) {
    if (request == nullptr) continue;
    const Result result = request->wait(kDeadline);
    if (half_through && result.outcome == Outcome::kDone) {
      too_late = true;
    } else {
      expect_failed(result, 0, watch);
    }
  }
  expect_outcome(never->wait(1), Outcome::kFailed, "a second wait");
  try {
    const auto more = transport.carrier->send(0, 3, std::span(memory).first(100));
    expect(false, "a send to a dead rank was begun");
  } catch (const core::Error& error) {
    expect(error.status() == SHARDREC_PEER_FAILED, error.what());
    expect(error.parts().rank == 0, "another rank is blamed for a send to the dead");
  }
  meet(transport, 0, 7);  // the others go on
  if (too_late) throw TooLate();
}

// Writes to a rank that dies while it reads, from this thread and before anything tells of it.
void written_to(const Job& job) {
  Transport transport = open_job(job);
  meet(transport, -1, 0);
  constexpr uint32_t kAhead = 8;
  Bytes bytes(300'000);
  std::vector<std::unique_ptr<Request>> requests;
  const auto is_over = [](Request& request) {
    return request.wait(kDeadline).outcome != Outcome::kDone;
  };
  if (transport.rank == 0) {
    const Stopwatch watch;
    for (uint32_t tag = 1; watch.seconds() < 0.2; ++tag) {
      for (int peer = 1; peer < transport.size; ++peer)
        requests.push_back(transport.carrier->receive(peer, tag, bytes));
      if (tag < kAhead) continue;
      for (int peer = 1; peer < transport.size; ++peer) {
        is_over(*requests.front());
        requests.erase(requests.begin());
      }
    }
    kill(getpid(), SIGKILL);
    return;
  }
  const Stopwatch watch;
  bool failed = false;
  for (uint32_t tag = 1; !failed && watch.seconds() < 10; ++tag) {
    try {
      requests.push_back(transport.carrier->send(0, tag, bytes));
      if (tag < kAhead) continue;
      failed = is_over(*requests.front());
      requests.erase(requests.begin());
    } catch (const core::Error& error) {
      expect(error.status() == SHARDREC_PEER_FAILED, error.what());
      failed = true;
    }
  }
  expect(failed, "ten seconds of writing to a dead rank went well");
  requests.clear();
  meet(transport, 0, 7);
}

void one_dies_on_mpi(const Job& job) {
  Transport transport = open_job(job);
  meet(transport, -1, 0);
  if (transport.rank == 0) kill(getpid(), SIGKILL);
  transport.carrier->receive(0, 2, {})->wait(kDeadline);
}

// Rank 0 never comes: the others are told in time, and who.
void absent(const Job& job) {
  if (job.rank == 0) return;
  const Stopwatch watch;
  try {
    open_job(job, 0, 1);
    expect(false, "met without rank 0");
  } catch (const core::Error& error) {
    expect(error.status() == SHARDREC_TIMEOUT, error.what());
    expect(error.sentence().find("rank 0") != std::string::npos, error.what());
  }
  expect(watch.seconds() < 3, "it took " + std::to_string(watch.seconds()) + " s");
}

// The store tells that the job is over while ranks wait for each other.
void store_fails(const Job& job) {
  if (job.rank == 0) return;
  TransportStore store = file_store(job.folder / "0");
  const Stopwatch watch;
  const auto get = store.get;
  store.get = [&](const std::string& key, double seconds) {
    if (watch.seconds() > 0.3) core::fail(SHARDREC_PEER_FAILED, "rank 0 is gone", {.rank = 0});
    return get(key, seconds);
  };
  try {
    open_transport(
        {.engine = job.engine, .rank = job.rank, .size = job.size, .seconds = 30, .store = &store});
    expect(false, "met without rank 0");
  } catch (const core::Error& error) {
    expect(error.status() == SHARDREC_PEER_FAILED && error.sentence() == "rank 0 is gone",
           error.what());
  }
  expect(watch.seconds() < 1.5, "it took " + std::to_string(watch.seconds()) + " s");
}

// Rank 2 falls silent while the ranks meet. Rank 0 hears of it, and closes its connections; rank 1
// hears of it a little later, and takes it for no fault of rank 0's.
void heard_later(const Job& job) {
  const std::filesystem::path known = job.folder / "known";
  std::filesystem::create_directories(job.folder);
  TransportStore store = file_store(job.folder / "0");
  const Stopwatch watch;
  const auto heard = [&] {
    if (job.rank == 0) return watch.seconds() > 0.3;
    std::error_code none;
    const auto when = std::filesystem::last_write_time(known, none);
    return !none &&
           std::filesystem::file_time_type::clock::now() - when > std::chrono::milliseconds(200);
  };
  const auto get = store.get;
  store.get = [&](const std::string& key, double seconds) {
    const bool silent = job.rank == 2 && key.starts_with("gloo/1/");
    if (silent) expect(test::eventually(heard, kDeadline), "rank 0 has not heard of it");
    if (heard()) core::fail(SHARDREC_PEER_FAILED, "rank 2 is silent", {.rank = 2});
    return get(key, seconds);
  };
  try {
    open_transport(
        {.engine = job.engine, .rank = job.rank, .size = job.size, .seconds = 30, .store = &store});
    expect(false, "met without rank 2");
  } catch (const core::Error& error) {
    expect(error.sentence() == "rank 2 is silent", error.what());
  }
  if (job.rank == 0) std::ofstream(known) << "now";
}

// A plug-in that is not installed, or of another release, or no plug-in at all.
void refused(const Job& job, const std::string& says) {
  for (int i = 0; i < 2; ++i) {
    try {
      load_transport(job.engine);
      expect(false, "loaded");
    } catch (const core::Error& error) {
      expect(error.status() == SHARDREC_UNSUPPORTED, error.what());
      expect(error.sentence().find(says) != std::string::npos, error.what());
    }
  }
}

void unlaunched(const Job& job) {
  try {
    open_job(job);
    expect(false, "a job of MPI without mpirun");
  } catch (const core::Error& error) {
    expect(error.status() == SHARDREC_UNSUPPORTED, error.what());
    expect(error.sentence().find("mpirun") != std::string::npos, error.what());
  }
}

}  // namespace

const std::map<std::string, Scenario>& failure_scenarios() {
  static const std::map<std::string, Scenario> all{
      {"killed", [](const Job& job) { killed(job, false); }},
      {"killed_half_through", [](const Job& job) { killed(job, true); }},
      {"written_to", written_to},
      {"one_dies_on_mpi", one_dies_on_mpi},
      {"absent", absent},
      {"store_fails", store_fails},
      {"heard_later", heard_later},
      {"unlaunched", unlaunched},
      {"missing",
       [](const Job& job) {
         refused(job, job.engine == "gloo" ? "libgloo-dev" : "openmpi-bin");
         refused(job, "SHARDREC_PLUGIN_PATH");
       }},
      {"other_abi", [](const Job& job) { refused(job, "has ABI 1000 ("); }},
      {"no_plugin", [](const Job& job) { refused(job, "cannot be loaded"); }}};
  return all;
}

}  // namespace shardrec::comm::remote
