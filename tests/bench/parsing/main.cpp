// Samples per second that `shardrec train` reads, parses and packs, by the number of its --parse-threads, from a
// log in Criteo's format of ROWS rows with planted weights. Rounds are taken in turns; the best of each is told,
// for others may use the machine. "ns of processors" is what all threads took for a sample.
//
//   parse_bench FOLDER [ROWS=1000000] [ROUNDS=3] [RANKS=1] [BATCH=1024] [THREADS...=1, 2, 4 ... the processors]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "command/machine.h"
#include "data/line_sink.h"
#include "data/planted.h"
#include "train/batch_feed.h"

namespace {

using namespace shardrec::cli;

struct Measured {
  double samples_per_second = 0;
  double processor_ns = 0;  // of a sample
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void write_log(const std::string& path, int64_t rows) {
  const PlantedClicks clicks(1);
  LineSink sink(path);
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    text.clear();
    clicks.append_line(clicks.row(row), text);
    sink.write(text);
  }
  sink.finish();
}

// One pass over the training rows, taken by a reader for each rank.
Measured measure(const std::string& path, int ranks, int64_t batch, int threads) {
  const auto log = open_criteo({.paths = {path}});
  const double processor = processor_seconds();
  const auto begun = std::chrono::steady_clock::now();
  int64_t samples = 0;
  {
    BatchFeed feed(*log, {.batch = batch,
                          .readers = ranks,
                          .ranks = ranks,
                          .threads = threads,
                          .keeps_samples = false});
    const auto read = [&](int rank) {
      BatchFeed::Reader reader(feed, rank);
      PackedBatch own;
      while (const auto next = reader.next()) {
        if (rank == 0) samples += next->size;
        if (!next->packed.empty()) continue;
        const Slice slice = slice_of(next->size, ranks, rank);
        pack(log->schema(), next->samples, slice.first, slice.last, own);
      }
    };
    std::vector<std::jthread> others;
    for (int rank = 1; rank < ranks; ++rank) others.emplace_back(read, rank);
    read(0);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  const auto count = static_cast<double>(samples);
  return {.samples_per_second = count / seconds.count(),
          .processor_ns = (processor_seconds() - processor) / count * 1e9};
}

int64_t argument(int count, char** arguments, int index, int64_t otherwise) {
  return index < count ? std::max<int64_t>(std::atoll(arguments[index]), 1) : otherwise;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "parse_bench FOLDER [ROWS] [ROUNDS] [RANKS] [BATCH] [THREADS...]\n");
    return 2;
  }
  const std::string path = (std::filesystem::path(arguments[1]) / "parse_bench.tsv").string();
  const int64_t rows = argument(count, arguments, 2, 1'000'000);
  const auto rounds = argument(count, arguments, 3, 3);
  const auto ranks = static_cast<int>(argument(count, arguments, 4, 1));
  const int64_t batch = argument(count, arguments, 5, 1024);
  std::vector<int> threads;
  for (int i = 6; i < count; ++i)
    threads.push_back(static_cast<int>(argument(count, arguments, i, 1)));
  if (threads.empty()) {
    for (int t = 1; t <= usable_processors(); t *= 2) threads.push_back(t);
  }
  write_log(path, rows);
  std::vector<Measured> best(threads.size());
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < threads.size(); ++i) {
      const Measured now = measure(path, ranks, batch, threads[i]);
      if (now.samples_per_second > best[i].samples_per_second) best[i] = now;
    }
  }
  std::filesystem::remove(path);
  for (size_t i = 0; i < threads.size(); ++i) {
    std::printf("%3d threads %10.0f samples/s %6.0f ns of processors\n", threads[i],
                best[i].samples_per_second, best[i].processor_ns);
  }
  return 0;
}
