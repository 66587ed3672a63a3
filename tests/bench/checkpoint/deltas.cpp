// Deltas beside whole checkpoints, in turns in one run: time and bytes of a commit, time of a scorer's refresh; and
// what a mark costs a step.
//
//   delta_bench DIRECTORY [GIB=1] [SHARE=0.01] [ROUNDS=5]
//
// Eight tables of dim 64 with row-wise AdaGrad, one rank, one thread. Behind each round a share of the rows of each
// table, drawn evenly, has changed. Steps: batches of 4,096 samples, 8 ids of each table a sample, drawn evenly.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace {

constexpr int kTables = 8;
constexpr int64_t kDim = 64;
constexpr int64_t kSamples = 4096;
constexpr int64_t kIds = 8;  // of a table in a sample
constexpr int kSteps = 24;

double milliseconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Of this thread: what a step costs where others use the machine too.
double processor_milliseconds_of(const auto& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  };
  const double start = now();
  work();
  return now() - start;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

shardrec::Model make_model(int64_t rows) {
  shardrec::Model model;
  shardrec::TableOptions options;
  options.init_range(-1, 1);  // every page is touched
  for (int t = 0; t < kTables; ++t) {
    const std::string number = std::to_string(t);
    model.add_feature(model.add_table("table" + number, rows, kDim, options), "id" + number);
  }
  return model;
}

class Trained {
 public:
  Trained(shardrec::Comm& comm, int64_t rows)
      : model_(make_model(rows)),
        tables(comm, model_,
               shardrec::Plan(model_, shardrec::Topology(1),
                              shardrec::PlanOptions().sharding(SHARDREC_SHARDING_TABLE_WISE)),
               shardrec::CollectionOptions().threads(1)),
        lookup_(tables),
        rows_(rows),
        lengths_(static_cast<size_t>(kTables * kSamples), static_cast<int32_t>(kIds)),
        out_(static_cast<size_t>(kSamples * kDim * kTables)) {}

  void change(double share) {
    std::vector<int64_t> ids(
        static_cast<size_t>(std::max(1.0, share * static_cast<double>(rows_))));
    std::vector<float> values(ids.size() * kDim);
    for (int32_t t = 0; t < kTables; ++t) {
      for (int64_t& id : ids) id = draw();
      for (float& value : values) value = static_cast<float>(draw() % 1000) * 1e-3F;
      tables.write_rows(t, SHARDREC_TABLE_WEIGHTS, ids, {values.data(), std::ssize(ids), kDim});
    }
  }
  double step_milliseconds() {
    std::vector<int64_t> ids(static_cast<size_t>(kTables * kSamples * kIds));
    std::vector<double> times;
    for (int i = 0; i < kSteps; ++i) {
      for (int64_t& id : ids) id = draw();
      times.push_back(processor_milliseconds_of([&] {
        lookup_.begin(kSamples, ids, lengths_);
        lookup_.forward(0, {out_.data(), kSamples, kDim * kTables});
        lookup_.set_gradient(0, {out_.data(), kSamples, kDim * kTables});
        lookup_.backward();
      }));
    }
    return median(times);
  }

 private:
  int64_t draw() { return static_cast<int64_t>(random_() % static_cast<uint64_t>(rows_)); }

  shardrec::Model model_;

 public:
  shardrec::Collection tables;

 private:
  shardrec::Lookup lookup_;
  int64_t rows_;
  std::vector<int32_t> lengths_;
  std::vector<float> out_;
  std::mt19937_64 random_{1};
};

// Of the newest checkpoint; a handle that commits would go on with a whole one behind its open.
double bytes_of(shardrec::Comm& comm, const std::string& root) {
  shardrec::Checkpoint opened(comm, root);
  opened.open();
  return static_cast<double>(opened.info().bytes);
}

void run(const std::string& root, int64_t rows, double share, int rounds) {
  shardrec::Local group(1);
  shardrec::Comm comm(group, 0);
  Trained trained(comm, rows);
  std::vector<double> with, without;
  trained.step_milliseconds();
  for (int i = 0; i < rounds; ++i) {
    without.push_back(trained.step_milliseconds());
    const int64_t mark = trained.tables.mark();
    with.push_back(trained.step_milliseconds());
    trained.tables.release_mark(mark);
  }
  std::printf("step: %.2f ms of a processor, with a mark %.2f ms: %.4f times (medians)\n",
              median(without), median(with), median(with) / median(without));

  shardrec::Checkpoint whole(comm, root + "/whole", shardrec::CheckpointOptions().keep_last(1));
  shardrec::Checkpoint deltas(comm, root + "/deltas", shardrec::CheckpointOptions().keep_last(1));
  whole.add("tables", trained.tables);
  deltas.add("tables", trained.tables);
  whole.commit(0);
  deltas.commit_delta(0);
  for (const char* kind : {"memory", "int8"}) {
    shardrec::Scorer of_whole(root + "/whole", -1, shardrec::ScorerOptions().tables(kind));
    shardrec::Scorer of_deltas(root + "/deltas", -1, shardrec::ScorerOptions().tables(kind));
    std::vector<double> commits, delta_commits, refreshes, delta_refreshes, bytes;
    static int64_t step = 0;
    for (int i = 0; i < rounds; ++i) {
      trained.change(share);
      ++step;
      commits.push_back(milliseconds_of([&] { whole.commit(step); }));
      delta_commits.push_back(milliseconds_of([&] { deltas.commit_delta(step); }));
      refreshes.push_back(milliseconds_of([&] { of_whole.refresh(); }));
      delta_refreshes.push_back(milliseconds_of([&] { of_deltas.refresh(); }));
      bytes.push_back(bytes_of(comm, root + "/deltas") / bytes_of(comm, root + "/whole"));
    }
    std::printf(
        "%s, %.3f of the rows: a delta has %.4f of the bytes; commit %.1f ms beside %.1f ms: %.4f;"
        " refresh %.1f ms beside %.1f ms: %.4f (medians of %d rounds)\n",
        kind, share, median(bytes), median(delta_commits), median(commits),
        median(delta_commits) / median(commits), median(delta_refreshes), median(refreshes),
        median(delta_refreshes) / median(refreshes), rounds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: delta_bench DIRECTORY [GIB=1] [SHARE=0.01] [ROUNDS=5]\n");
    return 2;
  }
  const double gib = argc > 2 ? std::atof(argv[2]) : 1;
  const std::string root = std::string(argv[1]) + "/delta_bench";
  std::filesystem::remove_all(root);
  run(root, static_cast<int64_t>(gib * (1 << 30) / (kTables * (kDim + 1) * 4)),
      argc > 3 ? std::atof(argv[3]) : 0.01, argc > 4 ? std::atoi(argv[4]) : 5);
  std::filesystem::remove_all(root);
  return 0;
}
