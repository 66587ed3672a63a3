#include "report/bars.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "command/markup.h"
#include "command/numbers.h"

namespace shardrec::cli {
namespace {

double length_of(const Bar& bar) {
  double length = 0;
  for (const BarPart& part : bar.parts) length += part.value;
  return length;
}

std::string part_of(const BarPart& part, double most) {
  const double share = most > 0 ? 100 * part.value / most : 0;
  return "<span style=\"width:" + fixed(share, 3) + "%;background:" + part.colour + "\" title=\"" +
         escaped(part.title) + "\"></span>";
}

}  // namespace

std::string bars(const std::vector<Bar>& rows, const std::string& many) {
  double most = 0;
  for (const Bar& bar : rows) most = std::max(most, length_of(bar));
  const size_t drawn = std::min(rows.size(), kMostBars);
  std::string out = "<div class=\"bars\">\n";
  for (size_t i = 0; i < drawn; ++i) {
    out += "<div class=\"bar\"><span class=\"name\">" + escaped(rows[i].name) +
           "</span><span class=\"track\">";
    for (const BarPart& part : rows[i].parts) {
      if (part.value > 0) out += part_of(part, most);
    }
    out += "</span><span class=\"figure\">" + rows[i].figure + "</span></div>\n";
  }
  out += "</div>\n";
  if (drawn < rows.size()) {
    out += "<p class=\"quiet\">and " + with_separators(static_cast<int64_t>(rows.size() - drawn)) +
           " more " + escaped(many) + "</p>\n";
  }
  return out;
}

std::string legend(const std::vector<LegendEntry>& entries) {
  std::string out = "<p class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    out += "<span><i style=\"background:" + entry.colour + "\"></i>" + escaped(entry.text) +
           "</span> ";
  }
  return out + "</p>\n";
}

std::string colour_of_series(size_t index) {
  constexpr std::array kColours{"#4c8fdc", "#e08a2e", "#4caa72", "#c2558f", "#8d74d8", "#c9a227",
                                "#2f9ea3", "#d2604f", "#7d9a3c", "#5f6fcf", "#a8743f", "#8b929b"};
  return kColours[index % kColours.size()];
}

}  // namespace shardrec::cli
