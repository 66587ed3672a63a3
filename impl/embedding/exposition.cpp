#include "embedding/exposition.h"

#include "core/error.h"

namespace shardrec::embedding {
namespace {

// One sample per collection.
template <class Value>
void write_each(core::Exposition& out, std::span<const ObservedCollection> all, Value value) {
  for (const ObservedCollection& one : all) out.sample(one.labels, value(one));
}

// One sample per table of each collection.
template <class Value>
void write_tables(core::Exposition& out, std::span<const ObservedCollection> all, Value value) {
  for (const ObservedCollection& one : all) {
    const auto& tables = one.collection->model().tables;
    for (size_t t = 0; t < tables.size(); ++t) {
      const TableCounters& counters = one.collection->table_counters(static_cast<int32_t>(t));
      out.sample(core::sentence(one.labels, ",", core::label("table", tables[t].name)),
                 int64_t{value(counters)});
    }
  }
}

}  // namespace

void write_collections(core::Exposition& out, std::span<const ObservedCollection> all) {
  out.family("shardrec_steps_total", "counter", "Updates that were applied.");
  write_each(out, all, [](const ObservedCollection& one) { return one.collection->step(); });

  out.family("shardrec_table_memory_bytes", "gauge",
             "Memory of this rank's boxes and their state.");
  write_each(out, all, [](const ObservedCollection& one) { return one.collection->table_bytes(); });

  out.family("shardrec_buffer_memory_bytes", "gauge",
             "Memory of buffers: lookups, updates, operations.");
  write_each(out, all, [](const ObservedCollection& one) {
    return one.collection->counters().buffer_bytes->load();
  });

  out.family("shardrec_exchange_bytes_total", "counter", "Bytes sent to other ranks.");
  for (const ObservedCollection& one : all) {
    const auto put = [&](const char* exchange, int64_t bytes) {
      out.sample(core::sentence(one.labels, ",", core::label("exchange", exchange)), bytes);
    };
    put("input", one.collection->counters().bytes_input);
    put("output", one.collection->counters().bytes_output);
    put("gradient", one.collection->counters().bytes_gradient);
    put("sync", one.collection->counters().bytes_sync);
  }

  out.family("shardrec_rows_synced_total", "counter",
             "Rows of this rank's boxes that syncs have averaged over the replicas.");
  write_each(out, all, [](const ObservedCollection& one) {
    return one.collection->counters().rows_synced.load();
  });

  out.family("shardrec_ids_sent_total", "counter", "Ids that this rank's batches had looked up.");
  write_each(out, all, [](const ObservedCollection& one) {
    return one.collection->counters().ids_sent.load();
  });

  out.family("shardrec_ids_looked_up_total", "counter", "Ids that this rank looked up.");
  write_each(out, all, [](const ObservedCollection& one) {
    return one.collection->counters().ids_received.load();
  });

  out.family("shardrec_saturated_total", "counter",
             "Finite numbers beyond float16's range that compression made its largest number.");
  write_each(out, all, [](const ObservedCollection& one) {
    return one.collection->counters().saturated.load();
  });

  out.family("shardrec_imbalance_ratio", "gauge",
             "Ids looked up by the busiest rank / the mean of all ranks.");
  write_each(out, all,
             [](const ObservedCollection& one) { return one.collection->counters().imbalance(); });

  out.family("shardrec_threads_seen", "gauge", "Most threads that worked at once in a kernel.");
  write_each(out, all, [](const ObservedCollection& one) {
    return int64_t{one.collection->threads().most_seen()};
  });

  out.family("shardrec_phase_seconds_total", "counter", "Time of the phases of steps.");
  for (const ObservedCollection& one : all) {
    for (size_t phase = 0; phase < kPhases; ++phase) {
      out.sample(core::sentence(one.labels, ",", core::label("phase", kPhaseNames[phase])),
                 one.collection->counters().seconds(phase));
    }
  }

  out.family("shardrec_table_ids_total", "counter", "Ids looked up in this rank's boxes.");
  write_tables(out, all, [](const auto& counters) { return counters.ids_looked_up.load(); });

  out.family("shardrec_table_rows_updated_total", "counter",
             "Rows of this rank's boxes that steps have updated.");
  write_tables(out, all, [](const auto& counters) { return counters.rows_updated.load(); });

  out.family("shardrec_table_ids_out_of_range_total", "counter",
             "Ids of this rank's batches that were dropped or clamped.");
  write_tables(out, all, [](const auto& counters) { return counters.ids_out_of_range.load(); });

  out.family("shardrec_table_non_finite_total", "counter",
             "Batches of this rank that were refused or skipped for a NaN or an infinity.");
  write_tables(out, all, [](const auto& counters) { return counters.non_finite.load(); });
}

}  // namespace shardrec::embedding
