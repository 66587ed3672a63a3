// Steps while a commit is written in the background, beside steps without, in turns in one run; and how long
// the commit takes beside one that training waits for.
//
//   background_commit_bench DIRECTORY [GIB=2] [RANKS=1] [THREADS=1] [ROUNDS=5]
//
// Eight tables of dim 64 with row-wise AdaGrad, batches of 4,096 samples a rank, 8 ids of each table a sample,
// drawn evenly (every one another row) or by Zipf's law with exponent 1.05. A step is begin, forward,
// set_gradient and backward: nothing of the dense half that would hide what it costs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace {

constexpr int kTables = 8;
constexpr int64_t kDim = 64;
constexpr int64_t kSamples = 4096;
constexpr int64_t kIds = 8;  // of a table in a sample
constexpr int kBatches = 16;

using Clock = std::chrono::steady_clock;

// Milliseconds of a processor that this thread has had: what a step costs where others use the machine too.
double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

struct Setup {
  std::string root;
  int64_t rows = 0;  // of a table
  int ranks = 1;
  int threads = 1;
  int rounds = 1;
  bool skewed = false;
};

class Rank {
 public:
  Rank(shardrec::Comm& comm, const Setup& setup)
      : comm_(comm),
        tables_(make(comm, setup)),
        lookup_(tables_),
        checkpoint_(comm, setup.root, keep_one()) {
    checkpoint_.add("tables", tables_);
    std::mt19937_64 random(static_cast<uint64_t>(comm.rank()) + 1);
    lengths_.assign(static_cast<size_t>(kTables * kSamples), static_cast<int32_t>(kIds));
    for (int b = 0; b < kBatches; ++b) {
      std::vector<int64_t>& ids =
          batches_.emplace_back(static_cast<size_t>(kTables * kSamples * kIds));
      for (int64_t& id : ids) id = draw(random, setup);
    }
    out_.resize(static_cast<size_t>(kSamples * kDim * kTables));
    gradient_.assign(out_.size(), 1e-3F);
  }

  struct Times {
    std::vector<double> steps;      // milliseconds, each
    std::vector<double> processor;  // ... of this thread
  };
  void step(Times* times = nullptr) {
    const auto start = Clock::now();
    const double processor = processor_time();
    const auto& ids = batches_[next_++ % batches_.size()];
    lookup_.begin(kSamples, ids, lengths_);
    lookup_.forward(0, {out_.data(), kSamples, kDim * kTables});
    lookup_.set_gradient(0, {gradient_.data(), kSamples, kDim * kTables});
    lookup_.backward();
    if (times == nullptr) return;
    times->steps.push_back(milliseconds_since(start));
    times->processor.push_back(processor_time() - processor);
  }

  struct Round {
    Times without, during;
    double begin = 0, commit = 0, blocking = 0, kept = 0;
  };
  Round round(int64_t number) {
    Round out;
    for (int i = 0; i < 2 * kBatches; ++i) step(&out.without);
    auto start = Clock::now();
    checkpoint_.commit(2 * number);
    out.blocking = milliseconds_since(start);
    for (int i = 0; i < kBatches; ++i) step();
    const double buffers = tables_.stat(SHARDREC_STAT_BYTES_BUFFERS);
    start = Clock::now();
    checkpoint_.commit_begin(2 * number + 1);
    out.begin = milliseconds_since(start);
    do {
      step(&out.during);
      out.kept = std::max(out.kept, tables_.stat(SHARDREC_STAT_BYTES_BUFFERS) - buffers);
    } while (!checkpoint_.commit_wait(0));
    out.commit = milliseconds_since(start);
    return out;
  }

 private:
  static shardrec::Options keep_one() {
    shardrec::Options options(SHARDREC_OPTIONS_CHECKPOINT);
    options.set(SHARDREC_OPTION_KEEP_LAST, 1);
    return options;
  }

  static int64_t draw(std::mt19937_64& random, const Setup& setup) {
    const double u = std::generate_canonical<double, 53>(random);
    if (!setup.skewed) return static_cast<int64_t>(u * static_cast<double>(setup.rows));
    // The inverse of the continuous law's distribution; spread over the table by a prime.
    const double most = std::pow(static_cast<double>(setup.rows), -0.05);
    const auto rank = static_cast<int64_t>(std::pow(1 - u * (1 - most), -1 / 0.05)) - 1;
    return std::clamp<int64_t>(rank, 0, setup.rows - 1) * 1000003 % setup.rows;
  }

  static shardrec::Collection make(shardrec::Comm& comm, const Setup& setup) {
    shardrec::Model model;
    shardrec::Options table(SHARDREC_OPTIONS_TABLE);
    table.set(SHARDREC_OPTION_INIT_MIN, -1.0);  // every page is touched
    table.set(SHARDREC_OPTION_INIT_MAX, 1.0);
    for (int t = 0; t < kTables; ++t) {
      const std::string number = std::to_string(t);
      model.add_feature(model.add_table("table" + number, setup.rows, kDim, table), "id" + number);
    }
    shardrec::Options kind(SHARDREC_OPTIONS_PLAN);
    kind.set(SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_TABLE_WISE);
    shardrec::Options options(SHARDREC_OPTIONS_COLLECTION);
    options.set(SHARDREC_OPTION_THREADS, setup.threads);
    return shardrec::Collection(
        comm, model, shardrec::Plan(model, shardrec::Topology(setup.ranks), kind), options);
  }

  shardrec::Comm& comm_;
  shardrec::Collection tables_;
  shardrec::Lookup lookup_;
  shardrec::Checkpoint checkpoint_;
  std::vector<std::vector<int64_t>> batches_;
  std::vector<int32_t> lengths_;
  std::vector<float> out_, gradient_;
  size_t next_ = 0;
};

void run(const Setup& setup) {
  const char* const name = setup.skewed ? "Zipf  " : "evenly";
  shardrec::Local group(setup.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < setup.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      shardrec::Comm comm(group, rank);
      Rank own(comm, setup);
      for (int i = 0; i < 2 * kBatches; ++i) own.step();
      std::vector<double> ratios;
      std::vector<double> processor;
      for (int64_t i = 0; i < setup.rounds; ++i) {
        const Rank::Round round = own.round(i);
        ratios.push_back(mean(round.during.steps) / mean(round.without.steps));
        processor.push_back(mean(round.during.processor) / mean(round.without.processor));
        if (rank != 0) continue;
        std::printf(
            "  %s: step %6.2f ms, during a commit %6.2f ms (the longest %6.2f), %4zu steps: %.3f "
            "times,"
            " processor %.3f; begin %6.2f ms, commit %6.0f ms, blocking %6.0f ms, copies %5.0f "
            "MiB\n",
            name, mean(round.without.steps), mean(round.during.steps),
            *std::max_element(round.during.steps.begin(), round.during.steps.end()),
            round.during.steps.size(), ratios.back(), processor.back(), round.begin, round.commit,
            round.blocking, round.kept / (1 << 20));
        std::fflush(stdout);
      }
      if (rank == 0) {
        std::printf(
            "%s: a step during a commit takes %.3f times as long, and %.3f of a processor's time"
            " (medians of %d rounds)\n",
            name, median(ratios), median(processor), setup.rounds);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: background_commit_bench DIRECTORY [GIB=2] [RANKS=1] [THREADS=1] [ROUNDS=5]\n");
    return 2;
  }
  const double gib = argc > 2 ? std::atof(argv[2]) : 2;
  Setup setup{.root = std::string(argv[1]) + "/background_commit_bench",
              .rows = static_cast<int64_t>(gib * (1 << 30) / (kTables * (kDim + 1) * 4)),
              .ranks = argc > 3 ? std::atoi(argv[3]) : 1,
              .threads = argc > 4 ? std::atoi(argv[4]) : 1,
              .rounds = argc > 5 ? std::atoi(argv[5]) : 5};
  for (const bool skewed : {true, false}) {
    setup.skewed = skewed;
    std::filesystem::remove_all(setup.root);
    run(setup);
  }
  std::filesystem::remove_all(setup.root);
  return 0;
}
