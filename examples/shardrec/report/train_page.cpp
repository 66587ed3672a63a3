// The sections of a training's page, in the order in which questions come up: how good, how fast, where the time went,
// what lies where, what was counted, on what.
#include "report/train_page.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "command/markup.h"
#include "command/numbers.h"
#include "plan/planned.h"
#include "report/bars.h"
#include "report/chart.h"
#include "report/figures.h"
#include "report/page.h"

namespace shardrec::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostColumns = 16;  // of ranks in a table

std::string place(const std::string& array, size_t index, const std::string& field = "") {
  return array + "/" + std::to_string(index) + (field.empty() ? "" : "/" + field);
}

std::string rank_name(size_t rank) { return "rank " + std::to_string(rank); }

std::string lead(const Figures& figures) {
  const json& data = figures.at("/data");
  std::string out = "Started " + figures.element("/started", Unit::kText) + " on ";
  constexpr size_t kMostFiles = 5;
  for (size_t i = 0; i < std::min(data.size(), kMostFiles); ++i) {
    out += (i == 0 ? "" : ", ") + figures.element(place("/data", i, "file"), Unit::kText) + " (" +
           figures.element(place("/data", i, "bytes"), Unit::kBytes) + ")";
  }
  if (data.size() > kMostFiles) {
    out += " and " + std::to_string(data.size() - kMostFiles) + " more files";
  }
  return out + "." +
         (figures.at("/interrupted").get<bool>() ? " <strong>Stopped by an interrupt.</strong>"
                                                 : "");
}

std::string summary(const Figures& figures) {
  std::vector<Card> entries{
      {"test AUC", figures.element("/test_auc", Unit::kQuality)},
      {"test normalised entropy", figures.element("/test_ne", Unit::kQuality)}};
  if (figures.document().contains("best_auc")) {
    entries.push_back({"best reachable AUC", figures.element("/best_auc", Unit::kQuality)});
  }
  entries.insert(
      entries.end(),
      {{"samples trained per second", figures.element("/samples_per_second", Unit::kCount)},
       {"whole run", figures.element("/seconds", Unit::kSeconds)},
       {"steps", figures.element("/steps", Unit::kCount)},
       {"samples trained", figures.element("/train_samples", Unit::kCount)},
       {"samples tested", figures.element("/test_samples", Unit::kCount)},
       {"unreadable lines", figures.element("/unreadable_lines", Unit::kCount)},
       {"ranks", figures.element("/ranks", Unit::kCount)}});
  return cards(entries);
}

// field: of the points; title: of the chart.
std::string history_chart(const Figures& figures, const std::string& title, const char* field,
                          Unit unit, size_t colour, bool from_zero) {
  Chart chart{.title = title,
              .x_name = "steps",
              .colour = colour_of_series(colour),
              .from_zero = from_zero};
  for (const json& point : figures.at("/history")) {
    const json& value = point.at(field);
    ChartPoint& added = chart.points.emplace_back();
    added.x = point.at("step");
    if (value.is_null()) continue;
    added.y = value.get<double>();
    added.title = "step " + shown(point.at("step"), Unit::kCount) + ": " + shown(value, unit);
  }
  return line_chart(chart);
}

std::string history_table(const Figures& figures) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < figures.at("/history").size(); ++i) {
    const auto cell = [&](const char* field, Unit unit) {
      return figures.element(place("/history", i, field), unit);
    };
    rows.push_back({cell("step", Unit::kCount), cell("loss", Unit::kQuality),
                    cell("ne", Unit::kQuality), cell("auc", Unit::kQuality),
                    cell("samples", Unit::kCount), cell("seconds", Unit::kSeconds),
                    cell("samples_per_second", Unit::kCount)});
  }
  return table(
      {"to step", "loss", "normalised entropy", "AUC", "samples", "seconds", "samples / s"}, rows);
}

std::string history(const Figures& figures) {
  if (figures.at("/history").empty()) return note("No step was made.");
  std::string out = "<div class=\"charts\">\n";
  out += history_chart(figures, "Loss (nats per sample)", "loss", Unit::kQuality, 0, false);
  out += history_chart(figures, "AUC", "auc", Unit::kQuality, 2, false);
  out += history_chart(figures, "Normalised entropy", "ne", Unit::kQuality, 4, false);
  out += history_chart(figures, "Samples per second", "samples_per_second", Unit::kCount, 1, true);
  out += "</div>\n";
  out += note(
      "Of the training samples, before the step that learns from them; a point is the mean since "
      "the one "
      "before.");
  return out + folded("All points as a table", history_table(figures));
}

// phases: array of {name, seconds by rank}.
std::string time_bars(const Figures& figures, const std::string& phases) {
  const json& names = figures.at(phases);
  const size_t ranks = names.front().at("seconds").size();
  std::vector<Bar> rows;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Bar& bar = rows.emplace_back();
    bar.name = rank_name(rank);
    double total = 0;
    for (size_t p = 0; p < names.size(); ++p) {
      const double seconds = names[p].at("seconds")[rank];
      bar.parts.push_back({seconds, colour_of_series(p),
                           names[p].at("name").get<std::string>() + ": " +
                               shown_precisely(seconds, Unit::kSeconds)});
      total += seconds;
    }
    bar.figure = shown(total, Unit::kSeconds);
  }
  std::vector<LegendEntry> entries;
  for (size_t p = 0; p < names.size(); ++p) {
    const json& seconds = names[p].at("seconds");
    if (std::any_of(seconds.begin(), seconds.end(), [](const json& s) { return s != 0.0; })) {
      entries.push_back({colour_of_series(p), names[p].at("name")});
    }
  }
  return bars(rows, "ranks") + legend(entries);
}

// A row for each member of an array that has a name and values, a column for each rank.
std::string by_rank_table(const Figures& figures, const std::string& array, const char* head,
                          const char* name, const char* values, Unit unit) {
  const json& members = figures.at(array);
  if (members.empty()) return "";
  const size_t ranks = members.front().at(values).size();
  const size_t columns = std::min(ranks, kMostColumns);
  std::vector<std::string> heads{head};
  for (size_t rank = 0; rank < columns; ++rank) heads.push_back(rank_name(rank));
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < members.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(escaped(members[i].at(name).get<std::string>()));
    for (size_t rank = 0; rank < columns; ++rank) {
      row.push_back(figures.element(place(place(array, i, values), rank), unit));
    }
  }
  std::string out = table(heads, rows);
  if (columns < ranks) {
    out += note("and " + with_separators(static_cast<int64_t>(ranks - columns)) +
                " more ranks, whose numbers are in the JSON of this page");
  }
  return out;
}

std::string time(const Figures& figures) {
  return time_bars(figures, "/phases") +
         by_rank_table(figures, "/phases", "phase", "name", "seconds", Unit::kSeconds) +
         "<h3>Inside the tables</h3>\n" + time_bars(figures, "/table_phases") +
         by_rank_table(figures, "/table_phases", "phase", "name", "seconds", Unit::kSeconds);
}

std::string groups(const json& members) {
  std::string out;
  for (const json& group : members) {
    std::string ranks;
    for (const json& rank : group) ranks += (ranks.empty() ? "" : ", ") + rank.dump();
    out += (out.empty() ? "" : "; ") + ranks;
  }
  return out;
}

// What the sharding groups of a mesh train, each or together.
std::string mesh_tables(const json& mesh, const std::vector<PictureTable>& tables) {
  const auto replicated = std::ranges::count_if(tables, &PictureTable::replicated);
  std::string out;
  if (replicated < std::ssize(tables)) {
    out += "Each of " + std::to_string(mesh.at("sharding_groups").size()) +
           " sharding groups has a replica of all tables, averaged every " +
           (mesh.at("sync_every") == 1 ? "step" : mesh.at("sync_every").dump() + " steps") + ". ";
  }
  if (replicated > 0) out += "Replicated tables: all ranks train them in every step. ";
  return out;
}

std::string plan(const Figures& figures) {
  const Picture picture = picture_of(figures.at("/plan"));
  const PlanParts parts = draw_plan_parts(picture);
  std::string out = note(plan_title(picture) +
                         ". Rows go down, columns to the right; colours and numbers are ranks.");
  if (figures.document().contains("mesh")) {
    const json& mesh = figures.at("/mesh");
    out += note(mesh_tables(mesh, picture.tables) +
                "Ranks of the sharding groups: " + groups(mesh.at("sharding_groups")) +
                ". Of the replica groups: " + groups(mesh.at("replica_groups")) + ".");
  }
  out += "<div class=\"pictures\">\n";
  for (const std::string& table : parts.tables) out += "<div>" + table + "</div>\n";
  out += "</div>\n";
  if (!parts.rest.empty()) out += note(parts.rest);
  std::vector<Bar> rows;
  for (size_t rank = 0; rank < picture.bytes_by_rank.size(); ++rank) {
    const std::string pointer = place("/plan/ranks", rank, "total_bytes");
    rows.push_back({rank_name(rank),
                    {{static_cast<double>(picture.bytes_by_rank[rank]),
                      colour_of_rank(static_cast<int32_t>(rank)),
                      rank_name(rank) + ": " + bytes_text(picture.bytes_by_rank[rank])}},
                    figures.element(pointer, Unit::kBytes)});
  }
  return out + "<h3>Bytes of each rank</h3>\n" + bars(rows, "ranks");
}

std::string memory(const Figures& figures) {
  const json& found = figures.at("/memory");
  std::vector<Bar> rows;
  for (size_t rank = 0; rank < found.at("table_bytes").size(); ++rank) {
    Bar& bar = rows.emplace_back();
    bar.name = rank_name(rank);
    const auto part = [&](const char* field, const char* name, size_t colour) {
      const json& bytes = found.at(field)[rank];
      bar.parts.push_back({bytes.get<double>(), colour_of_series(colour),
                           std::string(name) + ": " + shown(bytes, Unit::kBytes)});
      return figures.element(place(std::string("/memory/") + field, rank), Unit::kBytes);
    };
    bar.figure = part("table_bytes", "tables", 0) + " + ";
    bar.figure += part("buffer_bytes", "buffers", 1);
  }
  std::string out =
      bars(rows, "ranks") + legend({{colour_of_series(0), "tables and their optimizer states"},
                                    {colour_of_series(1), "buffers of lookups and updates"}});
  const json& peaks = found.at("process_peak_bytes");
  std::vector<Bar> processes;
  for (size_t process = 0; process < peaks.size(); ++process) {
    processes.push_back(
        {peaks.size() == 1 ? "the process" : "process of rank " + std::to_string(process),
         {{peaks[process].get<double>(), colour_of_series(4), shown(peaks[process], Unit::kBytes)}},
         figures.element(place("/memory/process_peak_bytes", process), Unit::kBytes)});
  }
  return out + "<h3>Most memory of a process</h3>\n" + bars(processes, "processes");
}

std::string table_counters(const Figures& figures) {
  const json& counters = figures.at("/table_counters");
  const json& tables = figures.at("/plan/plan/tables");
  std::vector<std::string> heads{"table"};
  for (const json& counter : counters) heads.push_back(counter.at("what"));
  std::vector<std::vector<std::string>> rows;
  for (size_t t = 0; t < tables.size(); ++t) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(escaped(tables[t].at("name").get<std::string>()));
    for (size_t i = 0; i < counters.size(); ++i) {
      row.push_back(figures.element(place(place("/table_counters", i, "values"), t), Unit::kCount));
    }
  }
  return table(heads, rows);
}

std::string counters(const Figures& figures) {
  return by_rank_table(figures, "/counters", "of the tables", "what", "values", Unit::kCount) +
         "<h3>Of each table, on all ranks together</h3>\n" + table_counters(figures);
}

std::string settings(const Figures& figures) {
  std::vector<Card> entries;
  for (size_t i = 0; i < figures.at("/settings").size(); ++i) {
    entries.push_back({figures.at(place("/settings", i, "option")),
                       figures.element(place("/settings", i, "value"), Unit::kText)});
  }
  return facts(entries);
}

}  // namespace

std::string train_page(const std::string& line) {
  const json document = json::parse(line);
  const Figures figures(document);
  Page page("Training with shardrec", lead(figures));
  page.add_style(plan_style());
  page.add("", summary(figures));
  page.add("Over the steps", history(figures));
  page.add("Where the time went", time(figures));
  page.add("What lies where", plan(figures));
  page.add("Memory", memory(figures));
  page.add("Counters", counters(figures));
  page.add("The machine of rank 0", machine_facts(figures));
  page.add("Settings", settings(figures));
  return page.html(line);
}

}  // namespace shardrec::cli
