// A benchmark's page: fields by their unit, as their names have it, times and bytes as bars.
#include "report/bench_page.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "command/markup.h"
#include "report/bars.h"
#include "report/figures.h"
#include "report/page.h"

namespace shardrec::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kBandwidth = "_gb_per_second";

std::string without(const std::string& field, std::string_view ending) {
  std::string name = field.substr(0, field.size() - ending.size());
  while (name.ends_with('_')) name.pop_back();
  for (char& c : name) c = c == '_' ? ' ' : c;
  if (name == "cpu") return "processor time";
  return name.empty() ? "in all" : name;
}

Unit unit_of(const std::string& field, const nlohmann::ordered_json& value) {
  if (field.ends_with("_ms") || field.ends_with("_ms_median")) return Unit::kMilliseconds;
  return value.is_number_integer() || field.ends_with("_per_second") ? Unit::kCount : Unit::kNumber;
}

std::string summary(const Figures& figures, const nlohmann::ordered_json& fields) {
  std::vector<Card> entries;
  for (const auto& [field, value] : fields.items()) {
    const bool headline = field == "step_ms_median" || field == "forward_ms_median" ||
                          field == "backward_ms_median" ||
                          (field.ends_with("_per_second") && !field.ends_with(kBandwidth)) ||
                          field == "batch" || field == "ids";
    if (!headline) continue;
    std::string name = field;
    for (char& c : name) c = c == '_' ? ' ' : c;
    if (const size_t end = name.find(" ms median"); end != std::string::npos) name.resize(end);
    if (name == "batch") name = "samples of a step";
    if (name == "ids") name = "ids of a step";
    entries.push_back({name, figures.element("/" + field, unit_of(field, value))});
  }
  return cards(entries);
}

// A row for each number whose field ends so, in the order of the line.
std::string bars_of(const Figures& figures, const nlohmann::ordered_json& fields,
                    std::string_view ending, Unit unit, size_t colour) {
  std::vector<Bar> rows;
  for (const auto& [field, value] : fields.items()) {
    if (!field.ends_with(ending) || !value.is_number()) continue;
    const std::string name = without(field, ending);
    rows.push_back({name,
                    {{value.get<double>(), colour_of_series(colour),
                      name + ": " + shown_precisely(value.get<double>(), unit)}},
                    figures.element("/" + field, unit)});
  }
  return rows.empty() ? "" : bars(rows, "rows");
}

bool ends_with_any(const std::string& field, const std::vector<std::string_view>& endings) {
  for (const std::string_view ending : endings) {
    if (field.ends_with(ending)) return true;
  }
  return false;
}

// What no bars show.
std::string other_facts(const Figures& figures, const nlohmann::ordered_json& fields,
                        const std::vector<std::string_view>& in_bars) {
  std::vector<Card> entries;
  for (const auto& [field, value] : fields.items()) {
    if (field == "version" || value.is_object() ||
        (value.is_number() && ends_with_any(field, in_bars)))
      continue;
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        entries.push_back({without(field, ""),
                           figures.element("/" + field + "/" + std::to_string(i), Unit::kText)});
      }
      continue;
    }
    const std::string_view ending = field.ends_with("_ms") ? "_ms" : "";
    entries.push_back(
        {without(field, ending), figures.element("/" + field, unit_of(field, value))});
  }
  return facts(entries);
}

}  // namespace

std::string bench_page(const std::string& title, const std::string& line) {
  const json document = json::parse(line);
  const auto fields = nlohmann::ordered_json::parse(line);  // in the order of the line
  const Figures figures(document);
  Page page("shardrec " + title, "Measured " + figures.element("/measured", Unit::kText) + ", " +
                                     figures.element("/steps", Unit::kCount) + " steps on " +
                                     figures.element("/ranks", Unit::kCount) +
                                     (document.at("ranks") == 1 ? " rank" : " ranks") +
                                     ". A step is as long as its slowest rank.");
  page.add("", summary(figures, fields));
  page.add("Median time of a step and its parts",
           bars_of(figures, fields, "_ms_median", Unit::kMilliseconds, 0));
  page.add("Least time", bars_of(figures, fields, "_ms_min", Unit::kMilliseconds, 2));
  page.add("Least time that memory allows",
           bars_of(figures, fields, "_limit_ms", Unit::kMilliseconds, 4));
  page.add("GB/s, of the least bytes that memory has to move",
           bars_of(figures, fields, kBandwidth, Unit::kBandwidth, 5));
  page.add("Share of what memory allows", bars_of(figures, fields, "_share", Unit::kPercent, 3));
  page.add("Least bytes that memory has to move",
           bars_of(figures, fields, "bytes_min", Unit::kBytes, 5));
  page.add("What was measured",
           other_facts(figures, fields,
                       {"_ms_median", "_ms_min", "_limit_ms", kBandwidth, "_share", "bytes_min"}));
  page.add("The machine of rank 0", machine_facts(figures));
  return page.html(line);
}

}  // namespace shardrec::cli
