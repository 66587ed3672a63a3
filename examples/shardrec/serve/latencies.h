// Latencies of calls in buckets of about 1.6 % of their length: little memory, however many are added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardrec::cli {

class Latencies {
 public:
  Latencies();
  void add(int64_t nanoseconds);  // at least 0
  void add(const Latencies& others);

  [[nodiscard]] int64_t count() const { return count_; }
  // Seconds that no more than the share `quantile` of the calls has exceeded; 1: the longest call.
  // 0 where there was no call.
  [[nodiscard]] double seconds(double quantile) const;
  // The shortest call; 0 where there was none.
  [[nodiscard]] double least() const {
    return count_ == 0 ? 0 : 1e-9 * static_cast<double>(least_);
  }

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  int64_t least_ = std::numeric_limits<int64_t>::max();  // nanoseconds
  int64_t longest_ = 0;                                  // nanoseconds
};

}  // namespace shardrec::cli
