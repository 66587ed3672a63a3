// The table is made of the line of JSON, so that both say the same.
#include "bench/bench_text.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "command/numbers.h"
#include "command/text_table.h"

namespace shardrec::cli {
namespace {

constexpr int kTimeDigits = 3;
constexpr int kCallDigits = 1;  // a mean over the steps

std::string text_or_dash(const nlohmann::json& value, int digits) {
  return value.is_number() ? fixed(value.get<double>(), digits) : "-";
}

std::string percent_or_dash(const nlohmann::json& share) {
  return share.is_number() ? fixed(100 * share.get<double>(), 1) + " %" : "-";
}

std::string plural(const nlohmann::json& count, const char* noun) {
  return with_separators(count.get<int64_t>()) + " " + noun + (count == 1 ? "" : "s");
}

// "8 tables of 1,000,000 rows x 64 columns", or of their sizes.
std::string tables_text(const nlohmann::json& line) {
  std::string text = plural(line.at("tables"), "table");
  if (line.contains("sizes")) {
    for (const auto& size : line.at("sizes")) text += " " + size.get<std::string>();
    return text;
  }
  return text + " of " + with_separators(line.at("rows").get<int64_t>()) + " x " +
         with_separators(line.at("dim").get<int64_t>());
}

std::string head(const nlohmann::json& line) {
  const auto word = [&](const char* field) { return line.at(field).get<std::string>(); };
  return word("device") + ": " + tables_text(line) + " " + word("dtype") + ", " +
         word("optimizer") + "; " + plural(line.at("batch"), "sample") + " with " +
         word("pooling") + " ids a bag, " + word("id_distribution") + "; " +
         plural(line.at("ranks"), "rank") + ", " + word("sharding") + ", " +
         plural(line.at("threads"), "thread") + " each; " + plural(line.at("steps"), "step") + "\n";
}

// A part of a step: how far it is inside the one above it, its fields, and those of its bytes and its limit; null
// where it has none.
struct Part {
  const char* title;
  const char* name;
  const char* bytes = nullptr;
  const char* limit = nullptr;
};
constexpr std::array<Part, 12> kParts{{
    {"begin", "begin", "begin_bytes_min", "begin_limit_ms"},
    {"forward, with begin", "forward", "forward_bytes_min", "forward_limit_ms"},
    {"  route", "route"},
    {"  input exchange", "input_exchange"},
    {"  lookup", "lookup", "forward_bytes_min", "forward_limit_ms"},
    {"  output exchange", "output_exchange"},
    {"backward", "backward", "backward_bytes_min", "backward_limit_ms"},
    {"  gradient", "gradient"},
    {"  gradient exchange", "gradient_exchange"},
    {"  index plan", "index_plan"},
    {"  update", "update", "backward_bytes_min", "backward_limit_ms"},
    {"step", "step", "bytes_min"},
}};

void add_part(TextTable& table, const nlohmann::json& line, const Part& part) {
  const std::string name = part.name;
  const auto field = [&](const std::string& ending) {
    return line.value(name + ending, nlohmann::json());
  };
  std::string moved = "-";
  std::string limit = "-";
  if (part.bytes != nullptr) moved = fixed(line.at(part.bytes).get<double>() / 1e6, kTimeDigits);
  if (part.limit != nullptr) limit = text_or_dash(line.at(part.limit), kTimeDigits);
  if (name == "step" && line.at("forward_limit_ms").is_number() &&
      line.at("backward_limit_ms").is_number()) {
    limit = fixed(
        line.at("forward_limit_ms").get<double>() + line.at("backward_limit_ms").get<double>(),
        kTimeDigits);
  }
  table.add({part.title, text_or_dash(field("_ms_median"), kTimeDigits),
             text_or_dash(field("_ms_min"), kTimeDigits), moved,
             text_or_dash(field("_gb_per_second"), 1), limit, percent_or_dash(field("_share"))});
}

std::string limit_text(const nlohmann::json& line) {
  const nlohmann::json& limit = line.at("limit");
  const std::string rules =
      "Share: what the least bytes take at the memory's bandwidth, over the median. ";
  if (limit == "probed") {
    return rules +
           "The bandwidth is the device's, probed before the first step, for rows of this size" +
           (line.at("ranks") == 1 ? "" : " and for each device that the ranks have") + ".\n";
  }
  if (limit == "cached" && line.at("forward_limit_ms").is_number()) {
    return rules + "The bandwidth is what `shardrec probe` has kept of this machine.\n";
  }
  return "No share: `shardrec probe` has kept nothing for so many threads, or ranks of the CPU "
         "exchange what no probe knows.\n";
}

std::string calls_text(const nlohmann::json& line) {
  if (!line.contains("kernel_launches")) return "";
  const auto count = [&](const char* field) {
    return fixed(line.at(field).get<double>(), kCallDigits);
  };
  return "A step of a rank: " + count("kernel_launches") + " kernel launches, " +
         count("driver_calls") + " calls of the driver with them; in " + count("host_waits") +
         " the host waits if the device has not got there, two of them the benchmark's own.\n";
}

}  // namespace

std::string bench_text(const std::string& line) {
  const nlohmann::json document = nlohmann::json::parse(line);
  TextTable table({{"part", TextTable::Align::kLeft},
                   {"median ms"},
                   {"least ms"},
                   {"MB to move"},
                   {"GB/s"},
                   {"limit ms"},
                   {"share"}});
  for (const Part& part : kParts) add_part(table, document, part);
  return head(document) + "\n" + table.text() + "\n" + limit_text(document) + calls_text(document);
}

}  // namespace shardrec::cli
