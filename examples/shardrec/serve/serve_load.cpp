// One caller per thread; all begin together, when the last one is ready.
#include "serve/serve_load.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <numeric>
#include <thread>

#include "bench/bench_tables.h"
#include "command/interrupt.h"
#include "data/counter_random.h"

namespace shardrec::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 3;  // calls of each thread before those that count

// Processor time of the calling thread, in seconds.
double thread_cpu() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int64_t ids_of(const BenchBatch& batch) { return std::ssize(batch.ids); }

// A thread of the service: the memory that it reads its answers from.
class Caller {
 public:
  Caller(const Scorer& scorer, const ServedModel& model, int64_t batch,
         const std::vector<BenchBatch>& batches, const std::vector<float>& dense, ServeCall call)
      : scorer_(scorer),
        model_(model),
        batch_(batch),
        batches_(batches),
        dense_(dense),
        call_(call) {
    int64_t most = batch * (call == ServeCall::kPredict ? model.scores : model.width);
    if (call == ServeCall::kLookup) {
      for (const BenchBatch& each : batches) {
        for (const auto& sequence : model.sequences) {
          most = std::max(most, each.table_ids[sequence.feature] * sequence.dim);
        }
      }
    }
    out_.resize(static_cast<size_t>(most) * sizeof(float));
  }

  // Returns the step of the checkpoint that has answered (the last output of it).
  int64_t call(int64_t number) {
    const BenchBatch& batch = batches_[static_cast<size_t>(number) % batches_.size()];
    const Batch given{.batch_size = batch_, .values = batch.ids, .lengths = batch.lengths};
    if (call_ == ServeCall::kPredict) {
      return scorer_.predict(given, {dense_.data(), batch_, model_.dense_columns},
                             out(batch_, model_.scores));
    }
    int64_t step = 0;
    if (model_.width > 0) {
      step = scorer_.lookup(0, given, out(batch_, model_.width));
    }
    int32_t output = 1;
    for (const auto& [feature, dim] : model_.sequences) {
      step = scorer_.lookup(output++, given, out(batch.table_ids[feature], dim));
    }
    return step;
  }

 private:
  Matrix out(int64_t rows, int64_t columns) {
    return {static_cast<const void*>(out_.data()), SHARDREC_FLOAT32, rows, columns};
  }

  const Scorer& scorer_;
  const ServedModel& model_;
  int64_t batch_;
  const std::vector<BenchBatch>& batches_;
  const std::vector<float>& dense_;
  ServeCall call_;
  LineBytes out_;
};

// What the threads of a run share.
class Run {
 public:
  Run(int threads, const ServeEnd& end) : ready_(threads + 1), end_(end), left_(end.calls) {}

  // On each thread, with what makes its caller.
  template <class MakeCaller>
  void work(const MakeCaller& make_caller) {
    try {
      Caller caller = make_caller();
      for (int64_t i = 0; i < kWarmUp && !stopped(); ++i) caller.call(i);
      ready_.arrive_and_wait();
      measure(caller);
    } catch (...) {
      stop_ = true;
      if (!ready_.try_wait()) ready_.count_down();
      const std::scoped_lock lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }

  // Begins, when all are ready.
  void start() { ready_.arrive_and_wait(); }
  // In place of start(), where so many threads could not be made: those that are there end.
  void give_up(int missing) {
    stop_ = true;
    ready_.count_down(missing + 1);
  }
  // When all threads have ended.
  void end(ServeResult& result) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    result.cpu = cpu_;
    result.latencies.add(latencies_);
    result.steps = steps_;
    result.seconds = std::chrono::duration<double>(last_ - first_).count();
  }

 private:
  [[nodiscard]] bool stopped() const {
    return stop_.load(std::memory_order_relaxed) || interrupted();
  }

  void measure(Caller& caller) {
    Latencies latencies;
    std::set<int64_t> steps;
    const double cpu = thread_cpu();
    const Clock::time_point first = Clock::now();
    const auto last = first + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(end_.seconds));
    Clock::time_point now = first;
    for (int64_t i = kWarmUp; !stopped(); ++i) {
      if (end_.calls > 0 ? left_.fetch_sub(1, std::memory_order_relaxed) <= 0 : now >= last) break;
      const int64_t step = caller.call(i);
      const Clock::time_point after = Clock::now();
      latencies.add(std::chrono::nanoseconds(after - now).count());
      now = after;
      if (steps.empty() || *steps.rbegin() != step) steps.insert(step);
    }
    const double cpu_of_calls = thread_cpu() - cpu;
    const std::scoped_lock lock(mutex_);
    cpu_ += cpu_of_calls;
    latencies_.add(latencies);
    steps_.merge(steps);
    first_ = std::min(first_, first);
    last_ = std::max(last_, now);
  }

  std::latch ready_;
  const ServeEnd end_;
  std::atomic<int64_t> left_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
  double cpu_ = 0;
  Latencies latencies_;
  std::set<int64_t> steps_;
  Clock::time_point first_ = Clock::time_point::max();
  Clock::time_point last_ = Clock::time_point::min();
};

}  // namespace

const char* name_of(ServeCall call) { return call == ServeCall::kLookup ? "lookup" : "predict"; }

ServeLoad::ServeLoad(const Scorer& scorer, const ServedModel& model, const ServeOptions& options)
    : scorer_(scorer), model_(model), batch_(options.batch) {
  const BenchShape shape{.tables = model.features,
                         .batch = options.batch,
                         .lengths = parse_bag_lengths(options.pooling),
                         .zipf = parse_id_distribution(options.ids)};
  uint64_t seed = options.seed;
  for (int t = 0; t < options.threads; ++t) {
    std::vector<BenchBatch>& own = batches_.emplace_back();
    for (int b = 0; b < options.batches; ++b) {
      own.push_back(make_bench_batch(shape, seed++));
      ids_ += static_cast<double>(ids_of(own.back()));
      unique_rows_ += static_cast<double>(
          std::accumulate(own.back().table_rows.begin(), own.back().table_rows.end(), int64_t{0}));
    }
  }
  const double count = options.threads * options.batches;
  ids_ /= count;
  unique_rows_ /= count;
  dense_.resize(static_cast<size_t>(batch_ * model.dense_columns));
  CounterRandom bits(seed);
  for (float& value : dense_) value = static_cast<float>(unit_real(bits.next()));
}

ServeResult ServeLoad::run(ServeCall call, int threads, const ServeEnd& end) const {
  Run run(threads, end);
  std::vector<std::thread> workers;
  const auto join = [&workers] {
    for (std::thread& worker : workers) worker.join();
  };
  try {
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        run.work([&] {
          return Caller(scorer_, model_, batch_, batches_[static_cast<size_t>(t)], dense_, call);
        });
      });
    }
  } catch (...) {
    run.give_up(threads - static_cast<int>(workers.size()));
    join();
    throw;
  }
  run.start();
  join();
  ServeResult result{.call = call, .threads = threads};
  run.end(result);
  return result;
}

}  // namespace shardrec::cli
