// How a transport's ranks meet: connections first, then proofs on each of them.
#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/gloo/gloo_transport.h"
#include "comm/gloo/slots.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::Clock;
using plugin::Failure;
using plugin::sentence;

constexpr double kPollSeconds = 0.1;  // seconds

struct Greeting {
  Secret secret{};
  Whereabouts sender{};
};

// A connection is lost while ranks connect if its peer has stopped: it was the first to know that a
// third rank has failed. The job tells all ranks of that failure, though a little later. Throws what
// the job says, if it does in time.
void throw_job_failure(const shardrec_transport_job& job) {
  constexpr std::chrono::milliseconds kGrace{500};
  const Clock::time_point until = Clock::now() + kGrace;
  while (Clock::now() < until) {
    check_job(job);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

void Transport::meet(const shardrec_transport_job& job, const Peering& peering,
                     Clock::time_point deadline) {
  try {
    mesh_ = connect_mesh(job, peering, deadline);
    watcher_ = plugin::start_thread([this] { watch(); });
    greet(job, deadline);
    start_readers();
  } catch (const Failure& failure) {
    if (failure.status() == SHARDREC_TRANSPORT_FAILED) throw_job_failure(job);
    throw;
  }
}

// Sends each peer one word, and returns the word that each has sent.
template <class Word>
std::vector<Word> Transport::exchange_words(const shardrec_transport_job& job,
                                            Clock::time_point deadline, uint64_t slot,
                                            const std::vector<Word>& words) {
  std::vector<Word> received(words.size());
  std::vector<Request*> requests;
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer)) continue;
    const auto at = static_cast<size_t>(peer);
    requests.push_back(receive(peer, slot, &received[at], sizeof(Word)));
    requests.push_back(send(peer, slot, &words[at], sizeof(Word)));
  }
  for (Request* request : requests) {
    for (;;) {
      const int32_t status = wait(*request, kPollSeconds);
      if (status == SHARDREC_TRANSPORT_OK) break;
      if (status != SHARDREC_TRANSPORT_TIMEOUT) fail(request->peer);
      check_job(job);
      if (Clock::now() >= deadline)
        throw Failure(SHARDREC_TRANSPORT_TIMEOUT, request->peer,
                      sentence("rank ", request->peer, " did not greet in time"));
    }
  }
  for (Request* request : requests) forget(*request);
  return received;
}

// Both ends of each connection show that they have read the job's store; then those on one machine
// find out whether they can read each other's memory.
void Transport::greet(const shardrec_transport_job& job, Clock::time_point deadline) {
  const auto peers = static_cast<size_t>(size_);
  const Whereabouts mine = whereabouts(guard_words_.put());
  std::vector<Greeting> greetings(peers, {.sender = mine});
  for (size_t peer = 0; peer < peers; ++peer) greetings[peer].secret = mesh_.presented[peer];
  const std::vector<Greeting> heard = exchange_words(job, deadline, kGreetingSlot, greetings);
  std::vector<char> reached(peers);
  for (int peer = 0; peer < size_; ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (!is_peer(peer)) continue;
    if (heard[at].secret != mesh_.expected[at])
      throw Failure(SHARDREC_TRANSPORT_FAILED, peer,
                    sentence("another program connected in place of rank ", peer));
    reached[at] = reaches(mine, heard[at].sender) ? 1 : 0;
  }
  const std::vector<char> reached_by = exchange_words(job, deadline, kReachSlot, reached);
  for (size_t peer = 0; peer < peers; ++peer) {
    const uint64_t least = std::max(mine.least_bytes, heard[peer].sender.least_bytes);
    if (reached[peer] != 0) peers_[peer].least_read = least;
    if (reached_by[peer] != 0) peers_[peer].least_sent = least;
    peers_[peer].process = static_cast<pid_t>(heard[peer].sender.process);
  }
}

}  // namespace shardrec::comm::gloo_plugin
