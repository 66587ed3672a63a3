// Runs a recorded case through the C API and compares outputs, final weights and final states.
#pragma once

#include <optional>
#include <string>

#include "launch/devices.h"
#include "replay/recorded_case.h"

namespace shardrec::cli {

struct ReplayOptions {
  std::string path;
  std::string case_name;  // empty: all
  int ranks = 0;          // 0: as recorded
  std::string sharding;   // empty: as recorded
  std::string engine = "local";
  std::string device = "cpu";
  TablesOn tables_on;  // what device means here
};

enum class Outcome { kPassed, kFailed, kUnsupported, kNotComparable };

// The largest error of a kind of numbers.
struct LargestError {
  int64_t compared = 0;
  double absolute = 0;
  double of_tolerance =
      0;  // largest |x - expected| / (atol + rtol * |expected|); more than 1 fails

  void add(double value, double expected, double rtol, double atol);
  void add(const LargestError& other);
};

struct CaseResult {
  Outcome outcome = Outcome::kPassed;
  std::string reason;  // of all but kPassed
  int ranks = 0;
  LargestError out;  // of lookups; of dense parameters, losses and reduced gradients
  LargestError weights;
  LargestError state;
};

// On how many ranks a case runs.
int ranks_of(const RecordedCase& recorded, const ReplayOptions& options);

CaseResult run_case(const RecordedCase& recorded, const Safetensors& arrays,
                    const ReplayOptions& options);

}  // namespace shardrec::cli
