#include "train/train_counters.h"

#include <algorithm>

#include "command/machine.h"

namespace shardrec::cli {

RankCounters counters_of(const Collection& collection, size_t tables) {
  RankCounters counters;
  counters.table_bytes = collection.stat(SHARDREC_STAT_BYTES_TABLES);
  counters.buffer_bytes = collection.stat(SHARDREC_STAT_BYTES_BUFFERS);
  counters.peak_bytes = peak_memory_bytes();
  for (size_t i = 0; i < kRankCounters.size(); ++i) {
    counters.counts[i] = collection.stat(kRankCounters[i].stat);
  }
  counters.tables.resize(tables);
  for (size_t t = 0; t < tables; ++t) {
    for (size_t i = 0; i < kTableCounters.size(); ++i) {
      counters.tables[t][i] = collection.stat(kTableCounters[i].stat, static_cast<int32_t>(t));
    }
  }
  return counters;
}

std::vector<double> numbers_of(const RankCounters& counters) {
  std::vector<double> numbers{counters.table_bytes, counters.buffer_bytes, counters.peak_bytes};
  numbers.insert(numbers.end(), counters.counts.begin(), counters.counts.end());
  for (const auto& table : counters.tables) {
    numbers.insert(numbers.end(), table.begin(), table.end());
  }
  return numbers;
}

RankCounters counters_from(const std::vector<double>& numbers) {
  RankCounters counters;
  auto at = numbers.begin();
  for (double* field : {&counters.table_bytes, &counters.buffer_bytes, &counters.peak_bytes}) {
    *field = *at++;
  }
  const auto take = [&](auto& counts) {
    std::copy_n(at, counts.size(), counts.begin());
    at += std::ssize(counts);
  };
  take(counters.counts);
  while (at != numbers.end()) take(counters.tables.emplace_back());
  return counters;
}

}  // namespace shardrec::cli
