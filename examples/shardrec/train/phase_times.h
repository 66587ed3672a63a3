// Where a rank's time goes: at any moment exactly one phase runs, so that the phases add up to the
// whole.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace shardrec::cli {

enum class Phase {
  kRead,     // waiting for the reader thread, and packing the slice
  kBegin,    // lookup begin
  kForward,  // lookup forward
  kDenseForward,
  kDenseBackward,
  kReduce,    // waiting for the sum of the dense gradients over the ranks
  kBackward,  // lookup set_gradient and backward
  kSync,      // on a mesh: averaging the replicas
  kDenseStep,
  kMetrics,
  kSave,
  kOther,
};
inline constexpr std::array<const char*, 12> kPhaseNames{
    "read batch",       "tables: begin",  "tables: forward",
    "dense forward",    "dense backward", "dense reduce",
    "tables: backward", "tables: sync",   "dense step",
    "metrics",          "save",           "other"};

class PhaseTimes {
 public:
  // Ends the phase at hand and starts another.
  void enter(Phase phase) {
    const auto now = Clock::now();
    seconds_[static_cast<size_t>(phase_)] += std::chrono::duration<double>(now - since_).count();
    phase_ = phase;
    since_ = now;
  }
  [[nodiscard]] const std::array<double, kPhaseNames.size()>& seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::array<double, kPhaseNames.size()> seconds_{};
  Phase phase_ = Phase::kOther;
  Clock::time_point since_ = Clock::now();
};

}  // namespace shardrec::cli
