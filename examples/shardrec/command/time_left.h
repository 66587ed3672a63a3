// How long work will still take, as its rate so far lets expect.
#pragma once

#include <chrono>
#include <string>

namespace shardrec::cli {

class TimeLeft {
 public:
  // The work begins now. fraction: of it that is done already, in [0, 1].
  explicit TimeLeft(double fraction = 0) : first_(fraction) {}
  // "  2:05 left"; empty in the first tenth of a second, while nothing was done, and when all is. fraction: done now.
  [[nodiscard]] std::string text(double fraction) const;

 private:
  using Clock = std::chrono::steady_clock;
  double first_;
  Clock::time_point begun_ = Clock::now();
};

// "0:07", "2:05", "3:02:05", "2 d 3 h"
std::string clock_text(double seconds);

}  // namespace shardrec::cli
