// Bars of a page: a row each, with a name, a bar that may have several parts, and a figure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shardrec::cli {

struct BarPart {
  double value = 0;
  std::string colour;  // of CSS
  std::string title;   // what a pointer over it shows
};

struct Bar {
  std::string name;
  std::vector<BarPart> parts;
  std::string figure;  // markup
};

struct LegendEntry {
  std::string colour;
  std::string text;
};

// Bars in one scale, the longest as wide as there is room: at most kMostBars; `many` names what the others are, such
// as "ranks".
inline constexpr size_t kMostBars = 64;
std::string bars(const std::vector<Bar>& rows, const std::string& many);

std::string legend(const std::vector<LegendEntry>& entries);

// Colours that are told apart on light and on dark ground.
std::string colour_of_series(size_t index);

}  // namespace shardrec::cli
