#include "command/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "command/numbers.h"

namespace shardrec::cli {
namespace {

constexpr std::chrono::seconds kLong{1};
constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kLine{10};

}  // namespace

ProgressLine::ProgressLine(std::string title, bool shown)
    : title_(std::move(title)),
      shown_(shown),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + kLong) {}

ProgressLine::~ProgressLine() {
  if (drawn_ > 0) std::cerr << "\r" << std::string(drawn_, ' ') << "\r" << std::flush;
}

void ProgressLine::show(double fraction, const std::string& details) {
  if (!shown_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kLine));
  std::string line = title_;
  if (fraction >= 0) line += " " + fixed(100 * std::min(fraction, 1.0), 0) + "%";
  if (!details.empty()) line += "  " + details;
  line += time_left_.text(fraction);
  if (!terminal_) {
    std::cerr << line + "\n";
    return;
  }
  const size_t width = line.size();
  line.resize(std::max(width, drawn_), ' ');
  drawn_ = width;
  std::cerr << "\r" << line << std::flush;
}

}  // namespace shardrec::cli
