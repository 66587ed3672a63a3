// What tests have set (fake_cublaslt.h), and what is counted.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "dense/cublas/cublaslt_api.h"

namespace fake_cublaslt {

struct Knobs {
  Knobs();  // by the environment

  int version = 0;
  bool fatal = false;
  std::atomic<uint32_t> no_algorithm{0};
  std::atomic<uint64_t> workspace{0};
  std::atomic<int64_t> calls_to_failure{0};
  std::atomic<int> failure{0};

  std::atomic<int64_t> live{0};
  std::atomic<int64_t> heuristics{0};
  std::atomic<int64_t> products{0};
  std::atomic<int64_t> computed{0};
};
Knobs& knobs();

// Counts a call that can fail: what it fails with, or kSuccess.
shardrec::dense::cublas::Status next_failure();

// Counts a violation, and says it on stderr.
[[gnu::format(printf, 1, 2)]] void violation(const char* format, ...);

}  // namespace fake_cublaslt
