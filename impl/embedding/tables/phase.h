// Where the time of steps goes: one clock per phase, summed since creation. Any thread may read.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/trace.h"

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
// As traces and metrics name them: part of the library's interface.
inline constexpr std::array<const char*, kPhases> kPhaseNames = {
    "route",           "input exchange", "index plan",        "lookup",
    "output exchange", "gradient",       "gradient exchange", "update"};

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
  core::TraceTrack track;  // constant once the collection is in use
};

// The same of one table.
struct TableCounters {
  std::atomic<int64_t> ids_out_of_range{0};  // of this rank's batches: dropped or clamped
  std::atomic<int64_t> ids_looked_up{0};     // in this rank's boxes; once per range of rows
  std::atomic<int64_t> rows_updated{0};      // of this rank's boxes; once per range and step
};

// Adds the time of its scope, or up to next(), to a phase.
class PhaseTimer {
 public:
  PhaseTimer(Counters& counters, Phase phase)
      : counters_(counters), phase_(phase), start_(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() { end(std::chrono::steady_clock::now()); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

  void next(Phase phase) {
    const auto now = std::chrono::steady_clock::now();
    end(now);
    phase_ = phase;
    start_ = now;
  }

 private:
  void end(std::chrono::steady_clock::time_point now) {
    const auto phase = static_cast<size_t>(phase_);
    counters_.nanoseconds[phase].fetch_add(std::chrono::nanoseconds(now - start_).count(),
                                           std::memory_order_relaxed);
    if (core::tracing()) core::record_event(counters_.track, kPhaseNames[phase], start_, now);
  }

  Counters& counters_;
  Phase phase_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace shardrec::embedding
