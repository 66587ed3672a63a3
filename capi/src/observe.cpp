#include "shardrec/observe.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collection_object.h"
#include "comm_object.h"
#include "core/trace.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

using core::sentence;

constexpr int64_t kMostEvents = int64_t{1} << 24;

// Prometheus' text format: families of samples, each family in one place.
class Exposition {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += sentence("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  // labels: as Labels makes them.
  void sample(std::string_view labels, int64_t value) { line(labels, sentence(value)); }
  void sample(std::string_view labels, double value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    line(labels, std::string_view(digits.data(), end.ptr));
  }
  const std::string& text() const { return text_; }

 private:
  void line(std::string_view labels, std::string_view value) {
    text_ += name_;
    if (!labels.empty()) text_ += sentence("{", labels, "}");
    text_ += sentence(" ", value, "\n");
  }

  std::string name_;
  std::string text_;
};

// name="value", escaped as the format wants it.
std::string label(std::string_view name, std::string_view value) {
  std::string out = sentence(name, "=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string place_of(const Membership& membership) {
  return sentence(label("comm", sentence(membership.number())), ",",
                  label("rank", sentence(membership.communicator().rank())));
}

struct Observed {
  std::shared_ptr<CollectionObject> object;
  std::string labels;

  const embedding::Collection& tables() const { return *object->collection; }
  const embedding::Counters& counters() const { return object->collection->counters(); }
};

std::vector<Observed> observed_collections() {
  auto objects = open_objects<shardrec_collection>();
  std::sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) {
    const uint64_t left = a->membership->number();
    const uint64_t right = b->membership->number();
    return left != right ? left < right : a->number < b->number;
  });
  std::vector<Observed> observed;
  for (auto& object : objects) {
    std::string labels =
        sentence(place_of(*object->membership), ",", label("collection", sentence(object->number)));
    observed.push_back({std::move(object), std::move(labels)});
  }
  return observed;
}

void write_communicators(Exposition& out) {
  auto comms = open_objects<shardrec_comm>();
  std::sort(comms.begin(), comms.end(), [](const auto& a, const auto& b) {
    return a->membership->number() < b->membership->number();
  });
  out.family("shardrec_comm_up", "gauge", "1 while the communicator is open and alive, else 0.");
  for (const auto& comm : comms) {
    bool up = !comm->membership->closed();
    try {
      comm->membership->communicator().check();
    } catch (const core::Error&) {
      up = false;
    }
    out.sample(place_of(*comm->membership), int64_t{up});
  }
}

// One sample per collection.
template <class Value>
void write_each(Exposition& out, const std::vector<Observed>& all, Value value) {
  for (const Observed& one : all) out.sample(one.labels, value(one));
}

// One sample per table of each collection.
template <class Value>
void write_tables(Exposition& out, const std::vector<Observed>& all, Value value) {
  for (const Observed& one : all) {
    const auto& tables = one.tables().model().tables;
    for (size_t t = 0; t < tables.size(); ++t) {
      const embedding::TableCounters& counters =
          one.object->collection->table_counters(static_cast<int32_t>(t));
      out.sample(sentence(one.labels, ",", label("table", tables[t].name)),
                 int64_t{value(counters)});
    }
  }
}

void write_collections(Exposition& out, const std::vector<Observed>& all) {
  out.family("shardrec_steps_total", "counter", "Updates that were applied.");
  write_each(out, all, [](const Observed& one) { return one.tables().step(); });

  out.family("shardrec_table_memory_bytes", "gauge",
             "Memory of this rank's boxes and their state.");
  write_each(out, all, [](const Observed& one) { return one.tables().table_bytes(); });

  out.family("shardrec_buffer_memory_bytes", "gauge", "Memory of the lookups' buffers.");
  write_each(out, all, [](const Observed& one) { return one.counters().buffer_bytes.load(); });

  out.family("shardrec_exchange_bytes_total", "counter", "Bytes sent to other ranks.");
  for (const Observed& one : all) {
    const auto put = [&](const char* exchange, int64_t bytes) {
      out.sample(sentence(one.labels, ",", label("exchange", exchange)), bytes);
    };
    put("input", one.counters().bytes_input);
    put("output", one.counters().bytes_output);
    put("gradient", one.counters().bytes_gradient);
  }

  out.family("shardrec_ids_sent_total", "counter", "Ids that this rank's batches had looked up.");
  write_each(out, all, [](const Observed& one) { return one.counters().ids_sent.load(); });

  out.family("shardrec_ids_looked_up_total", "counter", "Ids that this rank looked up.");
  write_each(out, all, [](const Observed& one) { return one.counters().ids_received.load(); });

  out.family("shardrec_imbalance_ratio", "gauge",
             "Ids looked up by the busiest rank / the mean of all ranks.");
  write_each(out, all, [](const Observed& one) { return one.tables().imbalance(); });

  out.family("shardrec_threads_seen", "gauge", "Most threads that worked at once in a kernel.");
  write_each(out, all,
             [](const Observed& one) { return int64_t{one.tables().threads().most_seen()}; });

  out.family("shardrec_phase_seconds_total", "counter", "Time of the phases of steps.");
  for (const Observed& one : all) {
    for (size_t phase = 0; phase < embedding::kPhases; ++phase) {
      out.sample(sentence(one.labels, ",", label("phase", embedding::kPhaseNames[phase])),
                 static_cast<double>(one.counters().nanoseconds[phase].load()) * 1e-9);
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
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_metrics_text(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    Exposition out;
    out.family("shardrec_live_objects", "gauge", "Handles that are open.");
    out.sample("", live_objects());
    write_communicators(out);
    write_collections(out, observed_collections());
    *out_text = copy_text(out.text());
  });
}

shardrec_status shardrec_trace_start(int64_t events) {
  return guard([&] {
    refuse_after_fork();
    if (events < 1 || events > kMostEvents) refuse_value("events", events, "1 to 2^24");
    core::start_trace(static_cast<size_t>(events));
    watch_forks();
  });
}

void shardrec_trace_stop(void) { core::stop_trace(); }

shardrec_status shardrec_trace_json(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    refuse_after_fork();
    *out_text = copy_text(core::trace_json());
  });
}
