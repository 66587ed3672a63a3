// Traces of several processes as one, their times by one clock.
#pragma once

#include <string>
#include <vector>

namespace shardrec::cli {

struct Merged {
  int64_t events = 0;
  double uncertainty_us = 0;   // of the times of one file beside another's; the largest
  bool by_wall_clock = false;  // the processes never compared their clocks
};

// Writes `output` from what shardrec_trace_json gave in each process: whole, or not at all. Takes
// memory for one event at a time. Throws UserError naming the file and the place.
Merged merge_traces(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace shardrec::cli
