// What tests have set (fake_nccl.h), and what was found.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace fake_nccl {

// Operations of a rank: none where `operation` is 0.
struct RankOperation {
  std::atomic<int> rank{-1};
  std::atomic<int64_t> operation{0};

  bool is(int of_rank, int64_t number) const {
    return operation.load() == number && rank.load() == of_rank;
  }
};

struct Knobs {
  Knobs();  // by the environment

  int version = 0;
  bool fatal = false;
  std::atomic<int> polls{0};
  std::atomic<int> late_rank{-1};
  std::atomic<int> late_ms{0};
  RankOperation async_error;
  RankOperation hang;
  std::atomic<bool> abort_is_seen{false};
  std::atomic<bool> one_rank_per_device{false};
  std::atomic<int> call_ms{0};
};
Knobs& knobs();

// Counts a violation, and says it on stderr.
[[gnu::format(printf, 1, 2)]] void violation(const char* format, ...);

// Communicators and operations of the process.
extern std::atomic<int64_t> live;
// What its sends were given.
extern std::atomic<int64_t> bytes_sent;

}  // namespace fake_nccl
