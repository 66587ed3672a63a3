// A rank's times to and from plain numbers.
#include "bench/rank_times.h"

#include <algorithm>

namespace shardrec::cli {

std::vector<double> numbers_of(const RankTimes& times) {
  std::vector<double> numbers{times.create, times.destroy, times.calls.launches, times.calls.calls,
                              times.calls.waits};
  numbers.insert(numbers.end(), times.ids.begin(), times.ids.end());
  numbers.insert(numbers.end(), times.unique_rows.begin(), times.unique_rows.end());
  for (const StepTimes& step : times.steps) {
    numbers.insert(numbers.end(), {step.begin, step.forward, step.backward, step.cpu});
    numbers.insert(numbers.end(), step.phases.begin(), step.phases.end());
  }
  return numbers;
}

RankTimes times_from(const std::vector<double>& numbers, size_t tables) {
  const double* at = numbers.data();
  const double* const end = at + numbers.size();
  const auto take = [&] { return *at++; };
  RankTimes times;
  for (double* field : {&times.create, &times.destroy, &times.calls.launches, &times.calls.calls,
                        &times.calls.waits}) {
    *field = take();
  }
  for (std::vector<double>* counts : {&times.ids, &times.unique_rows}) {
    counts->assign(at, at + tables);
    at += tables;
  }
  while (at != end) {
    StepTimes& step = times.steps.emplace_back();
    for (double* field : {&step.begin, &step.forward, &step.backward, &step.cpu}) *field = take();
    for (double& phase : step.phases) phase = take();
  }
  return times;
}

void add_up_processes(std::vector<RankTimes>& ranks) {
  for (size_t r = 1; r < ranks.size(); ++r) {
    ranks.front().calls = ranks.front().calls + ranks[r].calls;
    for (size_t i = 0; i < ranks[r].steps.size(); ++i) {
      ranks.front().steps[i].cpu += ranks[r].steps[i].cpu;
    }
  }
}

}  // namespace shardrec::cli
