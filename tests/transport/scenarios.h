// What a rank of transport_ranks does: each scenario is run by every rank of a job, over a plug-in,
// and throws where a promise of transport_plugin.h is broken.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/remote/transport.h"
#include "transport/file_store.h"

namespace shardrec::comm::remote {

struct Job {
  std::string engine;
  int rank = -1;
  int size = -1;
  std::filesystem::path folder{};  // the store's; empty for launched engines
};

// A scenario throws it where what it is about was over too early to be seen: the rank's exit status
// says so, and the driver tries again.
struct TooLate {};
constexpr int kTooLate = 3;

using Scenario = std::function<void(const Job&)>;
const std::map<std::string, Scenario>& message_scenarios();
const std::map<std::string, Scenario>& ending_scenarios();
const std::map<std::string, Scenario>& failure_scenarios();
const std::map<std::string, Scenario>& peer_memory_scenarios();

// Opens the n-th transport of the job.
Transport open_job(const Job& job, int n = 0, double seconds = 20);

using Bytes = std::vector<std::byte>;
Bytes pattern(int from, int to, uint32_t tag, size_t size);
void expect(bool holds, const std::string& what);
void expect_outcome(const Result& result, Outcome outcome, const std::string& what);

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

constexpr double kDeadline = 60;  // seconds: what ends later hangs

}  // namespace shardrec::comm::remote
