// What the library has counted on a rank, as the line of JSON and the report of `train` show it. Names are those of
// capi/NAMES.md.
#pragma once

#include <array>
#include <cstdint>
#include <shardrec/shardrec.hpp>
#include <vector>

namespace shardrec::cli {

struct CounterName {
  shardrec_stat stat;
  const char* name;
  const char* what;
};

inline constexpr std::array<CounterName, 11> kRankCounters{{
    {SHARDREC_STAT_STEPS, "shardrec_steps_total", "updates applied"},
    {SHARDREC_STAT_IDS_SENT, "shardrec_ids_sent_total", "ids routed, those of own boxes included"},
    {SHARDREC_STAT_IDS_RECEIVED, "shardrec_ids_looked_up_total", "ids looked up"},
    {SHARDREC_STAT_BYTES_INPUT, "shardrec_exchange_bytes_total{exchange=\"input\"}",
     "bytes of ids sent to other ranks"},
    {SHARDREC_STAT_BYTES_OUTPUT, "shardrec_exchange_bytes_total{exchange=\"output\"}",
     "bytes of outputs sent to other ranks"},
    {SHARDREC_STAT_BYTES_GRADIENT, "shardrec_exchange_bytes_total{exchange=\"gradient\"}",
     "bytes of gradients sent to other ranks"},
    {SHARDREC_STAT_BYTES_SYNC, "shardrec_exchange_bytes_total{exchange=\"sync\"}",
     "bytes of averages sent to other replicas"},
    {SHARDREC_STAT_ROWS_SYNCED, "shardrec_rows_synced_total", "rows averaged over the replicas"},
    {SHARDREC_STAT_SATURATED, "shardrec_saturated_total", "numbers beyond float16's range"},
    {SHARDREC_STAT_IMBALANCE, "shardrec_imbalance_ratio",
     "ids looked up by the busiest rank over the mean"},
    {SHARDREC_STAT_THREADS_SEEN, "shardrec_threads_seen", "most threads at once in a kernel"},
}};

inline constexpr std::array<CounterName, 4> kTableCounters{{
    {SHARDREC_STAT_TABLE_IDS, "shardrec_table_ids_total", "ids looked up"},
    {SHARDREC_STAT_TABLE_ROWS_UPDATED, "shardrec_table_rows_updated_total", "rows updated"},
    {SHARDREC_STAT_TABLE_OUT_OF_RANGE, "shardrec_table_ids_out_of_range_total", "ids out of range"},
    {SHARDREC_STAT_TABLE_NON_FINITE, "shardrec_table_non_finite_total",
     "batches with a NaN or an infinity"},
}};

struct RankCounters {
  double table_bytes = 0;   // of its boxes and their states
  double buffer_bytes = 0;  // of lookups, updates, operations
  double peak_bytes = 0;    // of its process, which other ranks may share
  std::array<double, kRankCounters.size()> counts{};
  // For each table kTableCounters.
  std::vector<std::array<double, kTableCounters.size()>> tables;
};

RankCounters counters_of(const Collection& collection, size_t tables);

// To and from plain numbers, for the rank that prints.
std::vector<double> numbers_of(const RankCounters& counters);
RankCounters counters_from(const std::vector<double>& numbers);

}  // namespace shardrec::cli
