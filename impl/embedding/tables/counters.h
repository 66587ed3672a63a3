// What a rank has sent, looked up and done, and where the time of its steps goes, by phase, summed since
// creation. Any thread may read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compute/booked_memory.h"
#include "compute/operation_clock.h"
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

// What this rank has done with one table since creation.
struct TableCounters {
  std::atomic<int64_t> ids_out_of_range{0};  // of this rank's batches: dropped or clamped
  std::atomic<int64_t> ids_looked_up{0};     // in this rank's boxes; once per range of rows
  std::atomic<int64_t> non_finite{0};        // of this rank's batches: refused or skipped
  std::atomic<int64_t> rows_updated{0};      // of this rank's boxes; once per range and step
};

// The same of all.
struct Counters {
  explicit Counters(size_t of_tables = 0, size_t ranks = 0) : tables(of_tables), looked_up(ranks) {}

  std::array<std::atomic<int64_t>, kPhases> nanoseconds{};
  std::atomic<int64_t> steps{0};
  std::atomic<int64_t> updates{0};  // steps that were taken here; `steps` may be set
  std::atomic<int64_t> bytes_input{0};
  std::atomic<int64_t> bytes_output{0};
  std::atomic<int64_t> bytes_gradient{0};
  std::atomic<int64_t> bytes_sync{0};
  std::atomic<int64_t> rows_synced{0};  // of this rank's boxes; once per range and sync
  std::atomic<int64_t> ids_sent{0};
  std::atomic<int64_t> ids_received{0};
  std::atomic<int64_t> saturated{0};  // numbers beyond fp16's range, encoded by compression
  compute::BookedBytes buffer_bytes = std::make_shared<std::atomic<int64_t>>(0);
  std::vector<TableCounters> tables;
  // Ids that each rank has looked up, as far as this rank has heard.
  std::vector<std::atomic<int64_t>> looked_up;
  core::TraceTrack track;  // constant once the collection is in use
  // The back end's, which adds to nanoseconds from start_clock() on; null: the host's clock does.
  compute::OperationClock* clock = nullptr;

  double seconds(size_t phase) const {
    return static_cast<double>(nanoseconds[phase].load(std::memory_order_relaxed)) * 1e-9;
  }
  // A back end's clock counts from now on.
  void start_clock() const {
    if (clock != nullptr) clock->start();
  }

  // The most that a rank has looked up / the mean of all ranks; 1 before any lookup.
  double imbalance() const {
    int64_t most = 0;
    double all = 0;
    for (const auto& ids : looked_up) {
      most = std::max(most, ids.load(std::memory_order_relaxed));
      all += static_cast<double>(ids.load(std::memory_order_relaxed));
    }
    if (most == 0) return 1;
    return static_cast<double>(most) * static_cast<double>(looked_up.size()) / all;
  }
};

// Adds the time of its scope, or up to next(), to a phase: the host's, or that of the operations that it
// has called for. Traces have the host's. Scopes do not nest, and begin behind what operations have to
// follow of the caller's, which is not their time.
class PhaseTimer {
 public:
  PhaseTimer(Counters& counters, Phase phase)
      : counters_(counters), phase_(phase), start_(std::chrono::steady_clock::now()) {
    enter();
  }
  ~PhaseTimer() {
    count(std::chrono::steady_clock::now());
    if (counters_.clock != nullptr) counters_.clock->leave();
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

  void next(Phase phase) {
    const auto now = std::chrono::steady_clock::now();
    count(now);
    phase_ = phase;
    start_ = now;
    enter();
  }

 private:
  const char* name() const noexcept { return kPhaseNames[static_cast<size_t>(phase_)]; }

  void enter() noexcept {
    if (counters_.clock != nullptr) counters_.clock->enter(static_cast<size_t>(phase_), name());
  }
  void count(std::chrono::steady_clock::time_point now) noexcept {
    if (counters_.clock == nullptr) {
      counters_.nanoseconds[static_cast<size_t>(phase_)].fetch_add(
          std::chrono::nanoseconds(now - start_).count(), std::memory_order_relaxed);
    }
    if (core::tracing()) core::record_event(counters_.track, name(), start_, now);
  }

  Counters& counters_;
  Phase phase_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace shardrec::embedding
