// Where points, lines and numbers of a chart go: the plot is 1000 x 300 units that are stretched, lines and dots in it
// are not; numbers stand beside it as text of the page.
#include "report/chart.h"

#include <algorithm>
#include <cmath>

#include "command/markup.h"
#include "command/numbers.h"

namespace shardrec::cli {
namespace {

constexpr double kWidth = 1000;
constexpr double kHeight = 300;
constexpr size_t kMostDots = 40;  // of more, dots are seen only under a pointer

struct Axis {
  double first, last;
  [[nodiscard]] double share(double value) const {
    return last > first ? (value - first) / (last - first) : 0.5;
  }
};

// As many digits behind the point as tell ticks apart; thousands and millions are shortened, so that there is room
// for all of them on a narrow screen.
// largest: of all ticks, without sign.
std::string tick_text(double value, double step, double largest) {
  if (value == 0) return "0";
  if (largest >= 1e6) return tick_text(value / 1e6, step / 1e6, 0) + "M";
  if (largest >= 1e4) return tick_text(value / 1e3, step / 1e3, 0) + "k";
  if (step >= 1) return with_separators(static_cast<int64_t>(std::llround(value)));
  const int digits = static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return digits > 6 ? scientific(value, 1) : fixed(value, digits);
}

std::string percent(double share) { return fixed(100 * share, 2) + "%"; }
std::string at(double value) { return fixed(value, 1); }

std::string labels(const char* axis, const char* side, const std::vector<double>& values,
                   const Axis& scale, bool downward) {
  const double step = values.size() > 1 ? values[1] - values[0] : 1;
  const double largest = std::max(std::abs(values.front()), std::abs(values.back()));
  std::string out = std::string("<div class=\"") + axis + "\" aria-hidden=\"true\">";
  for (const double value : values) {
    const double share = downward ? 1 - scale.share(value) : scale.share(value);
    const char* const end = downward       ? ""
                            : share < 0.05 ? " class=\"first\""
                            : share > 0.95 ? " class=\"last\""
                                           : "";
    out += std::string("<span") + end + std::string(" style=\"") + side + ":" + percent(share) +
           "\">" + tick_text(value, step, largest) + "</span>";
  }
  return out + "</div>";
}

}  // namespace

std::vector<double> ticks(double least, double most, double finest) {
  if (!(most > least)) return {least};
  const double rough = (most - least) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double lead : {5, 2, 1}) {
    if (rough <= lead * power * (1 + 1e-9)) step = lead * power;
  }
  step = std::max(step, finest);
  std::vector<double> values;
  for (double i = std::floor(least / step + 1e-9); i <= std::ceil(most / step - 1e-9); ++i) {
    values.push_back(i * step);
  }
  return values;
}

std::string line_chart(const Chart& chart) {
  double least = INFINITY;
  double most = -INFINITY;
  for (const ChartPoint& point : chart.points) {
    if (!point.y) continue;
    least = std::min(least, *point.y);
    most = std::max(most, *point.y);
  }
  if (least > most) return "";
  if (chart.from_zero) least = std::min(least, 0.0);
  if (least == most) {
    const double room = least == 0 ? 1 : std::abs(least) / 10;
    least -= room;
    most += room;
  }
  const std::vector<double> y_ticks = ticks(least, most);
  const Axis y{y_ticks.front(), y_ticks.back()};
  const Axis x{chart.points.front().x, chart.points.back().x};
  std::vector<double> x_ticks = ticks(x.first, x.last, 1);
  std::erase_if(x_ticks, [&](double value) { return value < x.first || value > x.last; });

  const auto across = [&](double value) { return at(kWidth * x.share(value)); };
  const auto down = [&](double value) { return at(kHeight * (1 - y.share(value))); };
  std::string grid;
  for (const double value : y_ticks) grid += "M0 " + down(value) + "H1000";
  std::string line;
  std::string dots;
  bool connected = false;
  for (const ChartPoint& point : chart.points) {
    if (point.y) {
      const std::string place = across(point.x) + " " + down(*point.y);
      line += (connected ? "L" : "M") + place;
      dots += "<path class=\"dot\" d=\"M" + place + "h0\"><title>" + escaped(point.title) +
              "</title></path>\n";
    }
    connected = point.y.has_value();
  }
  return "<figure class=\"chart\"><figcaption>" + escaped(chart.title) + "</figcaption>\n" +
         "<div class=\"plot\">" + labels("y", "top", y_ticks, y, true) +
         "\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 300\" "
         "preserveAspectRatio=\"none\" role=\"img\" class=\"" +
         (chart.points.size() > kMostDots ? "many" : "few") + "\" style=\"color:" + chart.colour +
         "\"><title>" + escaped(chart.title) + "</title><path class=\"grid\" d=\"" + grid +
         "\"/><path class=\"line\" d=\"" + line + "\"/>\n" + dots + "</svg>\n" +
         labels("x", "left", x_ticks, x, false) + "<div class=\"unit\">" + escaped(chart.x_name) +
         "</div></div></figure>\n";
}

}  // namespace shardrec::cli
