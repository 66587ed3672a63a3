// Ranks that meet, for the tests of the rendezvous.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/rendezvous/client/connect.h"
#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/server/server_loop.h"
#include "world.h"

namespace shardrec::comm::rendezvous {

#define EXPECT_SAYS(error, text) \
  EXPECT_NE((error).sentence().find(text), std::string::npos) << (error).sentence()

inline Clock::time_point in(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// What one rank's join came to.
struct Outcome {
  std::optional<Meeting> meeting{};
  std::optional<core::Error> error{};
};

inline Outcome try_join(const Token& token, int rank, int size, const JoinOptions& options) {
  Outcome outcome;
  outcome.error = error_of([&] { outcome.meeting = join(token, rank, size, options); });
  return outcome;
}

// The rank and what it thinks the size is.
struct Who {
  int rank = 0;
  int size = 1;
  JoinOptions options{.seconds = 20};
};

// Joins them all, each from a thread of its own.
inline std::vector<Outcome> join_all(const Token& token, const std::vector<Who>& ranks) {
  std::vector<Outcome> outcomes(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back(
        [&, i] { outcomes[i] = try_join(token, ranks[i].rank, ranks[i].size, ranks[i].options); });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

// A group that has to form.
inline std::vector<Meeting> meet(const Token& token, int size) {
  std::vector<Who> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back({.rank = rank, .size = size});
  std::vector<Meeting> meetings;
  for (Outcome& outcome : join_all(token, ranks)) {
    if (outcome.error) {
      ADD_FAILURE() << outcome.error->sentence();
      return {};
    }
    meetings.push_back(std::move(*outcome.meeting));
  }
  return meetings;
}

// Remembers what a state broadcast told.
class Ear {
 public:
  struct Loss {
    int rank;
    std::string how;
    Clock::time_point when;
  };

  remote::StateBroadcast::Listener listener() {
    return {.heard =
                [this](int from, ConstBytes group_state) {
                  const std::lock_guard lock(mutex_);
                  group_states_.emplace_back(from, text_of(group_state));
                  changed_.notify_all();
                },
            .lost =
                [this](int peer, const std::string& how) {
                  const std::lock_guard lock(mutex_);
                  losses_.push_back({peer, how, Clock::now()});
                  changed_.notify_all();
                }};
  }
  // What was heard by the time that there was so much, or after some seconds.
  std::vector<std::pair<int, std::string>> group_states(size_t count, double seconds = 10) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, in(seconds), [&] { return group_states_.size() >= count; });
    return group_states_;
  }
  std::vector<Loss> losses(size_t count, double seconds = 10) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, in(seconds), [&] { return losses_.size() >= count; });
    return losses_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int, std::string>> group_states_;
  std::vector<Loss> losses_;
};

}  // namespace shardrec::comm::rendezvous
