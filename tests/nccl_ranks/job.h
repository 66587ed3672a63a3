// Ranks that train tables on emulated devices, with NCCL, or nothing, between them: what became of each, so that two
// runs can be compared.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shardrec/shardrec.h"

namespace shardrec::test {

inline constexpr int kSteps = 4;

struct Job {
  int ranks = 2;
  bool over_nccl = true;
  shardrec_sharding kind = SHARDREC_SHARDING_ROW_WISE;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  double step_seconds = 60;
  double setup_seconds = 60;
  bool of_host =
      false;  // outputs and gradients are in the host's memory, else on the rank's device
  // Before each step of each rank; false: the rank destroys its communicator instead.
  std::function<bool(int rank, int step)> before_step{};
};

struct Outcome {
  std::string failed;  // the call that failed first; "" where none did
  shardrec_status status = SHARDREC_OK;
  int64_t rank = -1;  // of the error
  std::string operation;
  std::string sentence;
  double seconds = 0;  // that the call took
  int64_t step = -1;   // that the tables are at, by their own word
  uint64_t digest = 0;
  std::array<uint64_t, kSteps + 1> digests{};  // at each step that was waited for
};

// Trains kSteps steps. Tables are looked at, at each step, where look is true: it has ranks wait for their devices.
std::vector<Outcome> train(const Job& job, bool look = false);

}  // namespace shardrec::test
