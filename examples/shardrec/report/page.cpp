#include "report/page.h"

#include <utility>

#include "command/markup.h"

namespace shardrec::cli {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ground: #f4f5f7; --card: #ffffff; --ink: #1c1c1c; --quiet: #5f5f5f;
  --rule: #dcdfe4; --track: #eceef1 }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0f1113; --card: #17191c; --ink: #ececec; --quiet: #a5a5a5; --rule: #32363c; --track: #25282d }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 20px 16px 40px }
h1 { font-size: 24px; margin: 8px 0 4px }
h2 { font-size: 17px; margin: 0 0 12px }
h3 { font-size: 15px; margin: 20px 0 8px }
p { margin: 0 0 10px; overflow-wrap: anywhere }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 16px; margin-top: 16px }
.quiet, figcaption, .unit, .x, .y, th { color: var(--quiet) }
.quiet, figcaption { font-size: 13px }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); gap: 12px; margin: 0 }
.cards div { border-left: 3px solid var(--rule); padding-left: 10px }
.cards dt { color: var(--quiet); font-size: 13px }
.cards dd { margin: 0; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 20px }
.chart { margin: 0; min-width: 0 }
figcaption { font-weight: 600; margin-bottom: 8px }
.plot { display: grid; grid-template-columns: auto 1fr; font-size: 12px; font-variant-numeric: tabular-nums }
.plot svg { display: block; width: 100%; height: 180px; overflow: visible }
.y { position: relative; width: 58px }
.y span { position: absolute; right: 8px; transform: translateY(-50%) }
.x { grid-column: 2; position: relative; height: 20px; margin-top: 4px }
.x span { position: absolute; transform: translateX(-50%) }
.x .first { transform: none }
.x .last { transform: translateX(-100%) }
.unit { grid-column: 2; text-align: right }
.grid { stroke: var(--rule); fill: none; vector-effect: non-scaling-stroke }
.line { stroke: currentColor; stroke-width: 2; fill: none; stroke-linejoin: round; vector-effect: non-scaling-stroke }
.dot { stroke: currentColor; stroke-width: 6; stroke-linecap: round; vector-effect: non-scaling-stroke }
.many .dot { stroke: transparent; stroke-width: 12 }
.many .dot:hover { stroke: currentColor; stroke-width: 8 }
.bars { display: grid; grid-template-columns: minmax(90px, 22%) 1fr auto; gap: 6px 10px }
.bar { display: grid; grid-template-columns: subgrid; grid-column: 1 / 4; align-items: center }
.bar .name { overflow-wrap: anywhere }
.bar .figure { text-align: right; font-variant-numeric: tabular-nums; font-size: 13px }
.track { display: flex; height: 16px; background: var(--track); border-radius: 4px; overflow: hidden }
.track span { display: block; height: 100%; flex: none }
.legend { font-size: 13px; margin: 10px 0 0; line-height: 1.9 }
.legend span { display: inline-block; margin-right: 12px }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px }
.scroll { overflow-x: auto; margin-top: 12px }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: 4px 8px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule) }
th { font-weight: 600 }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal; min-width: 110px }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); gap: 4px 24px;
  margin: 0; font-size: 13px }
.facts div { display: flex; justify-content: space-between; gap: 12px; border-bottom: 1px solid var(--rule);
  padding: 3px 0 }
.facts dt { color: var(--quiet); flex: none }
.facts dd { margin: 0; text-align: right; overflow-wrap: anywhere; min-width: 0 }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 280px), 1fr)); gap: 16px;
  margin-bottom: 8px }
summary { cursor: pointer; color: var(--quiet); font-size: 13px; margin-top: 12px }
@media (max-width: 560px) {
  main { padding: 12px 10px 32px }
  section { padding: 12px }
  .bars { grid-template-columns: 1fr }
  .bar { grid-template-columns: 1fr auto; grid-column: 1; gap: 2px 10px }
  .bar .track { grid-column: 1 / 3; grid-row: 2 }
  .cards { grid-template-columns: repeat(auto-fill, minmax(125px, 1fr)) }
}
@media print { section { break-inside: avoid } }
)";

// Of JSON, so that it cannot end the element, and is the same for readers of XML: what they would look at stands in
// texts only, which may be written so.
std::string inside_script(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const std::string_view rest = std::string_view(line).substr(i);
    if (line[i] == '<') {
      out += "\\u003c";
    } else if (line[i] == '>') {
      out += "\\u003e";
    } else if (line[i] == '&') {
      out += "\\u0026";
    } else if (rest.starts_with("\xef\xbf\xbe") || rest.starts_with("\xef\xbf\xbf")) {
      out += line[i + 2] == '\xbe' ? "\\ufffe" : "\\uffff";
      i += 2;
    } else {
      out += line[i];
    }
  }
  return out;
}

std::string definitions(const char* kind, const std::vector<Card>& entries) {
  std::string out = std::string("<dl class=\"") + kind + "\">\n";
  for (const Card& entry : entries) {
    out += "<div><dt>" + escaped(entry.name) + "</dt><dd>" + entry.figure + "</dd></div>\n";
  }
  return out + "</dl>\n";
}

}  // namespace

Page::Page(std::string title, std::string lead)
    : title_(std::move(title)),
      body_("<h1>" + escaped(title_) + "</h1>\n<p class=\"quiet\">" + lead + "</p>\n"),
      style_(kStyle) {}

void Page::add(const std::string& title, const std::string& markup) {
  if (markup.empty()) return;
  body_ += "<section>\n";
  if (!title.empty()) body_ += "<h2>" + escaped(title) + "</h2>\n";
  body_ += markup + "</section>\n";
}

std::string Page::html(const std::string& line) const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escaped(title_) + "</title>\n<style>" + style_ + "</style>\n</head>\n<body>\n<main>\n" +
         body_ + "</main>\n<script type=\"application/json\" id=\"report-json\">" +
         inside_script(line) + "</script>\n</body>\n</html>\n";
}

std::string cards(const std::vector<Card>& entries) { return definitions("cards", entries); }
std::string facts(const std::vector<Card>& entries) { return definitions("facts", entries); }

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& cell : head) out += "<th scope=\"col\">" + escaped(cell) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + cell + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string folded(const std::string& summary, const std::string& markup) {
  return "<details><summary>" + escaped(summary) + "</summary>\n" + markup + "</details>\n";
}

std::string note(const std::string& text) {
  return "<p class=\"quiet\">" + escaped(text) + "</p>\n";
}

std::string machine_facts(const Figures& figures) {
  std::vector<Card> entries{
      {"processor", figures.element("/machine/processor", Unit::kText)},
      {"processors for this process", figures.element("/machine/processors", Unit::kCount)},
      {"memory", figures.element("/machine/memory_bytes", Unit::kBytes)},
      {"system", figures.element("/machine/system", Unit::kText)},
      {"instruction set", figures.element("/machine/cpu_target", Unit::kText)},
      {"libshardrec", figures.element("/machine/library_version", Unit::kText)}};
  const auto add_each = [&](const char* name, const std::string& array) {
    for (size_t i = 0; i < figures.at(array).size(); ++i) {
      entries.push_back({name, figures.element(array + "/" + std::to_string(i), Unit::kText)});
    }
  };
  add_each("engine", "/machine/engines");
  add_each("CUDA device", "/machine/cuda_devices");
  return facts(entries);
}

}  // namespace shardrec::cli
