// Threads that stay at work for many short measurements: each on a processor of its own, spinning
// between two of them, so that all start within a microsecond.
//
// Thread rule: run() is called by the leader only, inside lead_team().
#pragma once

#include <atomic>
#include <cstdint>

#include "core/function_ref.h"
#include "core/threads.h"

namespace shardrec::compute::probe {

class ProbeTeam {
 public:
  using Work = core::FunctionRef<void(int64_t part)>;  // must not throw

  int64_t count() const noexcept { return count_; }

  // Calls work(0) .. work(count() - 1) at once, one on each thread; the seconds from the first
  // start to the last end.
  double run(const Work& work) noexcept;

 private:
  friend void lead_team(core::Threads& threads, core::FunctionRef<void(ProbeTeam&)> lead);

  bool enlist(int64_t& part) noexcept;
  void follow() noexcept;
  void gather_followers(int64_t most) noexcept;
  void take_part(const Work& work, int64_t part) noexcept;

  std::atomic<int64_t> enlisted_{0};  // followers; kClosed added when no more are taken
  std::atomic<int64_t> calls_{0};     // of run(); -1: over
  std::atomic<int64_t> ended_{0};     // parts of this call
  std::atomic<int64_t> first_{0};     // start, in ticks of the clock
  std::atomic<int64_t> last_{0};      // end
  const Work* work_ = nullptr;
  int64_t count_ = 1;
};

// Calls lead(team) on one of the threads while the others follow it. Threads that are not free
// within a tenth of a second are left out of the team. What lead throws is thrown here.
void lead_team(core::Threads& threads, core::FunctionRef<void(ProbeTeam&)> lead);

}  // namespace shardrec::compute::probe
