// From the times of a benchmark's steps to what is reported: a step is as long as its slowest rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shardrec::cli {

// Of at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Of each step, what pick(step) gives in seconds, on the slowest rank, in milliseconds. ranks: at
// least one, with as many `steps` each.
template <class Rank, class Pick>
std::vector<double> slowest_milliseconds(const std::vector<Rank>& ranks, const Pick& pick) {
  std::vector<double> result(ranks.front().steps.size(), 0.0);
  for (const Rank& rank : ranks) {
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] = std::max(result[i], 1e3 * pick(rank.steps[i]));
    }
  }
  return result;
}

}  // namespace shardrec::cli
