#include "train/history.h"

namespace shardrec::cli {
namespace {

double mean(double a, int64_t of_a, double b, int64_t of_b) {
  if (of_a + of_b == 0) return 0;
  return (a * static_cast<double>(of_a) + b * static_cast<double>(of_b)) /
         static_cast<double>(of_a + of_b);
}

// `next` follows `point`, which becomes both.
void join(HistoryPoint& point, const HistoryPoint& next) {
  point.step = next.step;
  point.seconds += next.seconds;
  point.loss = mean(point.loss, point.samples, next.loss, next.samples);
  point.samples += next.samples;
  point.normalised_entropy = mean(point.normalised_entropy, point.known_samples,
                                  next.normalised_entropy, next.known_samples);
  point.auc = mean(point.auc, point.known_samples, next.auc, next.known_samples);
  point.known_samples += next.known_samples;
}

}  // namespace

void History::add(const HistoryPoint& window) {
  if (!points_.empty() && windows_in_last_ < windows_per_point_) {
    join(points_.back(), window);
    ++windows_in_last_;
    return;
  }
  if (points_.size() == kMost) {
    for (size_t i = 0; i < kMost / 2; ++i) {
      points_[i] = points_[2 * i];
      join(points_[i], points_[2 * i + 1]);
    }
    points_.resize(kMost / 2);
    windows_per_point_ *= 2;
  }
  points_.push_back(window);
  windows_in_last_ = 1;
}

}  // namespace shardrec::cli
