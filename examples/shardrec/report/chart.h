// A line of points over steps, as inline SVG that takes the width there is; what is written beside it keeps its size.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardrec::cli {

struct ChartPoint {
  double x = 0;
  std::optional<double> y;  // none: a gap
  std::string title;        // what a pointer over it shows
};

struct Chart {
  std::string title;
  std::string x_name;
  std::string colour;
  bool from_zero = false;  // the axis begins at 0
  std::vector<ChartPoint> points;
};

// Empty where no point has a value.
std::string line_chart(const Chart& chart);

// Round numbers from `least` to `most`, or a little beyond; three to seven. finest: the least distance of two.
std::vector<double> ticks(double least, double most, double finest = 0);

}  // namespace shardrec::cli
