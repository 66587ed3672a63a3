// Threads that call a scorer as those of a service do: each with batches and outputs of its own.
#pragma once

#include <cstdint>
#include <set>
#include <shardrec/shardrec.hpp>
#include <vector>

#include "serve/latencies.h"
#include "serve/serve_options.h"
#include "serve/served_model.h"

namespace shardrec::cli {

enum class ServeCall { kLookup, kPredict };
const char* name_of(ServeCall call);

// When the threads stop: after so long, or after so many calls of all together.
struct ServeEnd {
  double seconds = 0;
  int64_t calls = 0;  // 0: by the time
};

struct ServeResult {
  ServeCall call = ServeCall::kLookup;
  int threads = 0;
  double seconds = 0;  // from the first call to the end of the last one
  double cpu = 0;      // seconds of processor time that the threads took for it
  Latencies latencies;
  std::set<int64_t> steps;  // of the checkpoints that have answered
  [[nodiscard]] double samples_per_second(int64_t batch) const {
    return seconds > 0 ? static_cast<double>(latencies.count() * batch) / seconds : 0;
  }
};

class ServeLoad {
 public:
  // Makes the batches of all threads.
  ServeLoad(const Scorer& scorer, const ServedModel& model, const ServeOptions& options);

  // Calls from so many threads, at most those of the options, after a few calls of each that do not
  // count. Ends early where the user interrupts. Throws what the first thread that failed has thrown.
  [[nodiscard]] ServeResult run(ServeCall call, int threads, const ServeEnd& end) const;

  // Of a batch: means over all of them.
  [[nodiscard]] double ids() const { return ids_; }
  [[nodiscard]] double unique_rows() const { return unique_rows_; }

 private:
  const Scorer& scorer_;
  const ServedModel& model_;
  int64_t batch_;
  std::vector<std::vector<BenchBatch>> batches_;  // by thread
  std::vector<float> dense_;                      // read by all threads
  double ids_ = 0;
  double unique_rows_ = 0;
};

}  // namespace shardrec::cli
