// Where the time of steps goes: one clock per phase, summed since creation. Any thread may read.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace shardrec::embedding {

enum class Phase : uint8_t {
  kRoute,
  kInputExchange,
  kIndexPlan,
  kLookup,
  kOutputExchange,
  kGradient,
  kGradientExchange,
  kUpdate,
};
inline constexpr size_t kPhases = 8;

// What this rank has sent and done since creation.
struct Counters {
  std::array<std::atomic<int64_t>, kPhases> nanoseconds{};
  std::atomic<int64_t> steps{0};
  std::atomic<int64_t> bytes_input{0};
  std::atomic<int64_t> bytes_output{0};
  std::atomic<int64_t> bytes_gradient{0};
  std::atomic<int64_t> ids_sent{0};
  std::atomic<int64_t> ids_received{0};
  std::atomic<int64_t> buffer_bytes{0};
};

// The same of one table.
struct TableCounters {
  std::atomic<int64_t> ids_out_of_range{0};  // of this rank's batches: dropped or clamped
};

// Adds the time of its scope, or up to next(), to a phase.
class PhaseTimer {
 public:
  PhaseTimer(Counters& counters, Phase phase)
      : counters_(counters), phase_(phase), start_(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() { next(phase_); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

  void next(Phase phase) {
    const auto now = std::chrono::steady_clock::now();
    counters_.nanoseconds[static_cast<size_t>(phase_)].fetch_add(
        std::chrono::nanoseconds(now - start_).count(), std::memory_order_relaxed);
    phase_ = phase;
    start_ = now;
  }

 private:
  Counters& counters_;
  Phase phase_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace shardrec::embedding
