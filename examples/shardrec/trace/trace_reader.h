// A trace file as shardrec_trace_json writes it, read as a stream: the head (what is said of the
// whole), then the events one by one, in bounded memory whatever the file holds.
//
// Every complaint is a UserError that names the file and the byte.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shardrec::cli {

// This process' clock beside that of rank 0 of a group.
struct TraceClock {
  std::string reference;  // the same on all ranks of the group
  int64_t rank = 0;
  int64_t offset = 0;       // nanoseconds
  int64_t uncertainty = 0;  // nanoseconds, either way
};

struct TraceHead {
  int64_t start_steady = 0;  // nanoseconds of the process' own clock
  int64_t start_unix = 0;
  int64_t dropped_events = 0;
  std::vector<TraceClock> clocks;
};

class TraceReader {
 public:
  explicit TraceReader(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Reads the file to its end.
  TraceHead head() const;
  // An event is an object with a text "ph" and an integer "pid"; "ts" and "dur" are numbers.
  void each_event(const std::function<void(nlohmann::json&)>& body) const;

 private:
  std::string path_;
};

}  // namespace shardrec::cli
