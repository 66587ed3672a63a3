#include "compute/profile/memory_profile.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/json.h"

namespace shardrec::compute {
namespace {

using core::JsonValue;
using core::JsonWriter;

constexpr std::array<const char*, kPrefetchHints> kHintNames = {"none", "t0", "t1", "nta"};
constexpr double kMostRate = 1e6;  // GB/s; far beyond any memory
constexpr double kMostSeconds = 1e6;
constexpr int64_t kMostThreads = 1 << 20;
constexpr int64_t kMostRates = 1024;

double rate_of(const JsonValue& json) {
  const double rate = json.number();
  if (!(rate > 0 && rate < kMostRate)) json.fail("a rate is above 0 and below 1e6 GB/s");
  return rate;
}

double seconds_of(const JsonValue& json) {
  const double seconds = json.number();
  if (!(seconds >= 0 && seconds < kMostSeconds)) json.fail("0 or more and below 1e6 is accepted");
  return seconds;
}

double rate_or_zero(const JsonValue& object, std::string_view key) {
  const auto member = object.find(key);
  return member ? rate_of(*member) : 0;
}

bool one_of(const JsonValue& json, std::string_view yes, std::string_view no) {
  const std::string& text = json.text();
  if (text == yes) return true;
  if (text != no) json.fail(core::sentence("accepted: ", yes, ", ", no));
  return false;
}

PrefetchHint hint_of(const JsonValue& json) {
  for (size_t i = 0; i < kPrefetchHints; ++i) {
    if (json.text() == kHintNames[i]) return static_cast<PrefetchHint>(i);
  }
  json.fail("accepted: none, t0, t1, nta");
}

int64_t distance_of(const JsonValue& json) {
  return json.integer(kLeastPrefetchDistance, kMostPrefetchDistance);
}

Machine read_machine(const JsonValue& json) {
  json.expect_keys({"cpu", "processors", "l1_bytes", "l2_bytes", "l3_bytes", "instruction_set"});
  return {.cpu = json.at("cpu").text(),
          .processors = json.at("processors").integer(1, kMostThreads),
          .l1_bytes = json.at("l1_bytes").integer(0, INT64_MAX),
          .l2_bytes = json.at("l2_bytes").integer(0, INT64_MAX),
          .l3_bytes = json.at("l3_bytes").integer(0, INT64_MAX),
          .instruction_set = json.at("instruction_set").text()};
}

void write_machine(JsonWriter& json, const Machine& machine) {
  json.begin_object();
  json.key("cpu").text(machine.cpu);
  json.key("processors").integer(machine.processors);
  json.key("l1_bytes").integer(machine.l1_bytes);
  json.key("l2_bytes").integer(machine.l2_bytes);
  json.key("l3_bytes").integer(machine.l3_bytes);
  json.key("instruction_set").text(machine.instruction_set);
  json.end_object();
}

RowRate read_row_rate(const JsonValue& json) {
  json.expect_keys({"access", "row_bytes", "bag_length", "threads", "hint", "distance_rows",
                    "kernel_hint", "kernel_distance_rows", "pages", "stores", "gb_per_second",
                    "by_hint", "streaming", "small_pages"});
  RowRate rate;
  rate.access =
      one_of(json.at("access"), "gather", "update") ? MemoryAccess::kGather : MemoryAccess::kUpdate;
  rate.row_bytes = json.at("row_bytes").integer(1, int64_t{1} << 30);
  const bool gather = rate.access == MemoryAccess::kGather;
  rate.bag_length = json.at("bag_length").integer(gather ? 1 : 0, gather ? int64_t{1} << 30 : 0);
  rate.threads = json.at("threads").integer(1, kMostThreads);
  rate.hint = hint_of(json.at("hint"));
  rate.distance_rows = distance_of(json.at("distance_rows"));
  const bool near = one_of(json.at("kernel_hint"), "t0", "t1");
  rate.kernel = {.hint = near ? PrefetchHint::kT0 : PrefetchHint::kT1,
                 .distance_rows = distance_of(json.at("kernel_distance_rows"))};
  rate.huge_pages = one_of(json.at("pages"), "huge", "small");
  rate.streaming_stores = one_of(json.at("stores"), "streaming", "plain");
  rate.gb_per_second = rate_of(json.at("gb_per_second"));
  const JsonValue by_hint = json.at("by_hint");
  by_hint.expect_keys({"none", "t0", "t1", "nta"});
  for (size_t i = 0; i < kPrefetchHints; ++i) {
    rate.by_hint[i] = rate_or_zero(by_hint, kHintNames[i]);
  }
  rate.streaming = rate_or_zero(json, "streaming");
  rate.small_pages = rate_or_zero(json, "small_pages");
  return rate;
}

// Two digits behind the point: what is behind them is noise.
void write_rate(JsonWriter& json, std::string_view key, double rate) {
  if (rate > 0) json.key(key).number(std::max(std::round(rate * 100) / 100, 0.01));
}

void write_row_rate(JsonWriter& json, const RowRate& rate) {
  json.begin_object();
  json.key("access").text(rate.access == MemoryAccess::kGather ? "gather" : "update");
  json.key("row_bytes").integer(rate.row_bytes);
  json.key("bag_length").integer(rate.bag_length);
  json.key("threads").integer(rate.threads);
  json.key("hint").text(hint_name(rate.hint));
  json.key("distance_rows").integer(rate.distance_rows);
  json.key("kernel_hint").text(hint_name(rate.kernel.hint));
  json.key("kernel_distance_rows").integer(rate.kernel.distance_rows);
  json.key("pages").text(rate.huge_pages ? "huge" : "small");
  json.key("stores").text(rate.streaming_stores ? "streaming" : "plain");
  write_rate(json, "gb_per_second", rate.gb_per_second);
  json.key("by_hint").begin_object();
  for (size_t i = 0; i < kPrefetchHints; ++i) write_rate(json, kHintNames[i], rate.by_hint[i]);
  json.end_object();
  write_rate(json, "streaming", rate.streaming);
  write_rate(json, "small_pages", rate.small_pages);
  json.end_object();
}

int64_t count_of(const JsonValue& array, int64_t least) {
  const int64_t count = array.array_size();
  if (count < least || count > kMostRates) {
    array.fail(
        core::sentence("has ", count, " members; ", least, " to ", kMostRates, " are expected"));
  }
  return count;
}

double ratio(int64_t a, int64_t b) noexcept {
  return static_cast<double>(std::max(a, b)) /
         static_cast<double>(std::max<int64_t>(1, std::min(a, b)));
}

}  // namespace

const RowRate* nearest_rate(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                            int64_t bag_length) noexcept {
  const auto farness = [&](const RowRate& rate) {
    const double bags = access == MemoryAccess::kGather ? ratio(rate.bag_length, bag_length) : 1;
    return std::tuple(-rate.threads, bags, ratio(rate.row_bytes, row_bytes));
  };
  const RowRate* nearest = nullptr;
  for (const RowRate& rate : profile.rows) {
    if (rate.access != access) continue;
    if (nearest == nullptr || farness(rate) < farness(*nearest)) nearest = &rate;
  }
  return nearest;
}

const char* hint_name(PrefetchHint hint) noexcept { return kHintNames[static_cast<size_t>(hint)]; }

std::string profile_to_json(const MemoryProfile& profile) {
  JsonWriter json;
  json.begin_object(JsonWriter::Style::kLines);
  json.key("version").integer(kMemoryProfileVersion);
  json.key("machine");
  write_machine(json, profile.machine);
  json.key("table_bytes").integer(profile.table_bytes);
  json.key("seconds").number(std::round(profile.seconds * 1000) / 1000);
  json.key("quiet").boolean(profile.quiet);
  json.key("copies").begin_array(JsonWriter::Style::kLines);
  for (const CopyRate& copy : profile.copies) {
    json.begin_object();
    json.key("threads").integer(copy.threads);
    write_rate(json, "gb_per_second", copy.gb_per_second);
    json.end_object();
  }
  json.end_array();
  json.key("rows").begin_array(JsonWriter::Style::kLines);
  for (const RowRate& rate : profile.rows) write_row_rate(json, rate);
  json.end_array();
  json.end_object();
  return json.take();
}

MemoryProfile profile_from_json(std::string_view text, const std::string& path) {
  const core::JsonDocument document(text, "memory profile", SHARDREC_CORRUPT_DATA, path);
  const JsonValue root = document.root();
  const JsonValue version = root.at("version");
  if (version.integer(0, INT64_MAX) != kMemoryProfileVersion) {
    version.fail(core::sentence("version ", kMemoryProfileVersion, " is read"));
  }
  root.expect_keys({"version", "machine", "table_bytes", "seconds", "quiet", "copies", "rows"});
  MemoryProfile profile;
  profile.machine = read_machine(root.at("machine"));
  profile.table_bytes = root.at("table_bytes").integer(1, INT64_MAX);
  profile.seconds = seconds_of(root.at("seconds"));
  profile.quiet = root.at("quiet").boolean();
  const JsonValue copies = root.at("copies");
  profile.copies.reserve(static_cast<size_t>(count_of(copies, 0)));
  for (auto copy = copies.first(); copy; copy = copy->next()) {
    copy->expect_keys({"threads", "gb_per_second"});
    profile.copies.push_back({.threads = copy->at("threads").integer(1, kMostThreads),
                              .gb_per_second = rate_of(copy->at("gb_per_second"))});
  }
  const JsonValue rows = root.at("rows");
  profile.rows.reserve(static_cast<size_t>(count_of(rows, 1)));
  for (auto row = rows.first(); row; row = row->next()) {
    profile.rows.push_back(read_row_rate(*row));
  }
  return profile;
}

}  // namespace shardrec::compute
