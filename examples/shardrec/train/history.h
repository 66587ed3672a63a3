// How a training went: loss and quality over its steps, in a bounded number of points.
//
// A point is the mean of windows, each of at most RankTrainer::kReportSteps steps. When there are more than kMost,
// each two neighbours become one: long runs have longer points. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardrec::cli {

struct HistoryPoint {
  int64_t step = 0;     // of the run, behind which it ends
  int64_t samples = 0;  // that it is the mean of
  double seconds = 0;   // of training
  double loss = 0;      // nats per sample
  // Of the windows that have both labels, weighted by their samples; of no sample: not known.
  double normalised_entropy = 0;
  double auc = 0;
  int64_t known_samples = 0;
};

class History {
 public:
  static constexpr size_t kMost = 400;

  void add(const HistoryPoint& window);
  [[nodiscard]] const std::vector<HistoryPoint>& points() const { return points_; }

 private:
  std::vector<HistoryPoint> points_;
  size_t windows_per_point_ = 1;
  size_t windows_in_last_ = 0;
};

}  // namespace shardrec::cli
