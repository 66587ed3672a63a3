// What marking a gradient ready costs the host's backward: through the C API, on one of two ranks,
// with buckets that its marks send to a thread of the library. "longest" is the mean over the steps
// of the slowest of a step's marks: one that wakes that thread.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "measured.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::bench {
namespace {

constexpr int64_t kParameters = 32;
constexpr int64_t kSize = 4096;  // elements

void one_step(Ddp& ddp, double& marks, double& longest) {
  using Clock = std::chrono::steady_clock;
  ddp.begin();
  double slowest = 0;
  for (int64_t p = kParameters; p-- > 0;) {
    const auto start = Clock::now();
    ddp.mark_ready(p);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    marks += seconds;
    slowest = std::max(slowest, seconds);
  }
  longest += slowest;
  ddp.end();
  ddp.wait();
}

void mark_ready(benchmark::State& state) {
  double marks = 0;
  double longest = 0;
  const auto steps = static_cast<int64_t>(state.max_iterations);
  run(2, [&](Comm& comm) {
    std::vector<std::vector<float>> values(kParameters, std::vector<float>(kSize));
    Ddp ddp(comm, DdpOptions().bucket_bytes(1 << 16, 1 << 16).thread(true));
    for (size_t p = 0; p < values.size(); ++p) {
      ddp.add("p" + std::to_string(p), Vector(values[p].data(), kSize));
    }
    ddp.commit();
    if (comm.rank() == 0) {
      for (auto _ : state) one_step(ddp, marks, longest);
    } else {
      double unused = 0;
      for (int64_t i = 0; i < steps; ++i) one_step(ddp, unused, unused);
    }
  });
  const auto count = static_cast<double>(state.iterations());
  state.counters["mark_ns"] = marks / count / kParameters * 1e9;
  state.counters["longest_ns"] = longest / count * 1e9;
}

}  // namespace

void register_ddp() { benchmark::RegisterBenchmark("ddp/mark_ready", mark_ready)->UseRealTime(); }

}  // namespace shardrec::bench
