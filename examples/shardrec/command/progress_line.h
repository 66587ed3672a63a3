// What long work has done, on standard error, from its first second on: on a terminal a line that is drawn anew in
// place and goes at the end, else a line every ten seconds. Used by one thread.
#pragma once

#include <chrono>
#include <string>

#include "command/time_left.h"

namespace shardrec::cli {

class ProgressLine {
 public:
  // shown: false for no line at all.
  ProgressLine(std::string title, bool shown);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // Shows, if it is time to, the share that is done, in [0, 1] or below 0 where it is not known, the details and the
  // time left.
  void show(double fraction, const std::string& details = "");

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  bool shown_;
  bool terminal_;
  TimeLeft time_left_;
  Clock::time_point next_;
  size_t drawn_ = 0;  // width of what is on the screen
};

}  // namespace shardrec::cli
