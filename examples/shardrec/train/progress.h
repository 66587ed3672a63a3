// The progress of training, for people: on a terminal a bar that is drawn anew in place, else a
// line now and then. On standard error. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace shardrec::cli {

struct ProgressState {
  std::string title;    // such as "epoch 1/3"
  double fraction = 0;  // 0 .. 1
  double loss = 0;      // of the samples since the last report, like the next three
  double normalised_entropy = 0;
  double auc = 0;
  bool has_quality = false;  // false: not known yet
  double samples_per_second = 0;
};

class Progress {
 public:
  explicit Progress(bool enabled);
  // Shows the state if enough time has passed; `last` always, and ends the line.
  void show(const ProgressState& state, bool last);

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool terminal_;
  Clock::time_point shown_;
  size_t drawn_ = 0;  // width of the bar on the screen
};

}  // namespace shardrec::cli
