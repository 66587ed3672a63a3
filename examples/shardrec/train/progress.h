// The progress of training and of its test, for people, on standard error: on a terminal a bar that is drawn anew in
// place, else a line behind every so many steps, and one when half a minute has passed without. Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace shardrec::cli {

struct ProgressState {
  std::string title;    // such as "epoch 1/3"
  double fraction = 0;  // 0 .. 1
  int64_t step = 0;     // of the run; 0: not said
  double loss = 0;      // of the samples since the last report, like the next three
  double normalised_entropy = 0;
  double auc = 0;
  bool has_quality = false;  // false: not known yet
  double samples_per_second = 0;
  std::string time_left;  // TimeLeft::text
};

class Progress {
 public:
  // every: steps between two lines where there is no terminal; 0: no lines but the last of each title.
  Progress(bool enabled, int64_t every);
  // Shows the state if it is time to; `last` always, and ends the line.
  void show(const ProgressState& state, bool last);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool due(const ProgressState& state, Clock::time_point now) const;
  bool enabled_;
  int64_t every_;
  bool terminal_;
  Clock::time_point shown_;
  size_t drawn_ = 0;  // width of the bar on the screen
};

}  // namespace shardrec::cli
