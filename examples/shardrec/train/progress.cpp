// How progress is drawn: a line in place on a terminal, else one behind every so many steps.
#include "train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "command/numbers.h"

namespace shardrec::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLine = std::chrono::seconds(30);

std::string bar(double fraction) {
  constexpr size_t kWidth = 24;
  const auto done = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  std::string text = "[" + std::string(done, '=');
  if (done < kWidth) text += ">";
  text.resize(kWidth + 1, ' ');
  return text + "]";
}

std::string describe(const ProgressState& state) {
  std::string text = " " + fixed(100 * std::clamp(state.fraction, 0.0, 1.0), 0) + "%";
  if (state.step > 0) text += "  step " + with_separators(state.step);
  if (state.has_quality) {
    text += "  loss " + fixed(state.loss, 4) + "  NE " + fixed(state.normalised_entropy, 4) +
            "  AUC " + fixed(state.auc, 4);
  }
  return text + "  " + with_separators(static_cast<int64_t>(state.samples_per_second)) +
         " samples/s" + state.time_left;
}

}  // namespace

Progress::Progress(bool enabled, int64_t every)
    : enabled_(enabled),
      every_(every),
      terminal_(isatty(STDERR_FILENO) == 1),
      shown_(Clock::now()) {}

bool Progress::due(const ProgressState& state, Clock::time_point now) const {
  if (terminal_) return now - shown_ >= kRedraw;
  if (every_ == 0) return false;
  return (state.step > 0 && state.step % every_ == 0) || now - shown_ >= kLine;
}

void Progress::show(const ProgressState& state, bool last) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (!last && !due(state, now)) return;
  shown_ = now;
  if (!terminal_) {
    std::cerr << state.title << describe(state) + "\n";
    return;
  }
  std::string line = state.title + " " + bar(state.fraction) + describe(state);
  const size_t width = line.size();
  if (width < drawn_) line.append(drawn_ - width, ' ');
  drawn_ = last ? 0 : width;
  std::cerr << "\r" << line << (last ? "\n" : "") << std::flush;
}

}  // namespace shardrec::cli
