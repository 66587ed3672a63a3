#include "plan/picture.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "command/markup.h"
#include "command/numbers.h"

namespace shardrec::cli {
namespace {

constexpr size_t kMostTables = 40;
constexpr size_t kMostBoxes = 256;
constexpr size_t kMostRanks = 64;
constexpr size_t kMostLetters = 30;  // of a name

// In units of the picture, which are pixels where it is shown 760 wide.
constexpr double kWidth = 760;
constexpr double kMargin = 16;
constexpr double kLeft = 260;  // of tables and bars
constexpr double kTableWidth = 400;
constexpr double kPartWidth = 280;
constexpr double kLine = 18;
constexpr double kLeastHeight = 20;
constexpr double kMostHeight = 120;

constexpr const char* kStyle = R"(
    .plan text { font: 13px system-ui, sans-serif; fill: #1c1c1c }
    .plan .title { font-size: 16px; font-weight: 600 }
    .plan .quiet { fill: #5f5f5f }
    .plan .inside { font-size: 12px; fill: #161616; text-anchor: middle; dominant-baseline: central }
    .plan .box { stroke: #ffffff; stroke-width: 1 }
    .plan .rest { fill: #b8b8b8 }
    .plan .mean { stroke: #5f5f5f; stroke-dasharray: 3 3 }
    @media (prefers-color-scheme: dark) {
      .plan { background: #17191c }
      .plan text { fill: #ececec }
      .plan .quiet { fill: #a5a5a5 }
      .plan .inside { fill: #161616 }
      .plan .box { stroke: #17191c }
      .plan .mean { stroke: #a5a5a5 }
    }
)";

// At most so many characters.
std::string shortened(std::string_view text) {
  size_t letters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && ++letters > kMostLetters) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

std::string at(double value) { return fixed(value, 1); }

class Drawing {
 public:
  void text(double x, double y, std::string_view words, std::string_view kind = "") {
    out_ += "  <text x=\"" + at(x) + "\" y=\"" + at(y) + "\"";
    if (!kind.empty()) out_ += " class=\"" + std::string(kind) + "\"";
    out_ += ">" + escaped(words) + "</text>\n";
  }
  // title: what a pointer over it shows.
  void rectangle(double x, double y, double width, double height, std::string_view kind,
                 std::string_view colour, std::string_view title) {
    out_ += "  <rect class=\"" + std::string(kind) + "\" x=\"" + at(x) + "\" y=\"" + at(y) +
            "\" width=\"" + at(width) + "\" height=\"" + at(height) + "\"";
    if (!colour.empty()) out_ += " fill=\"" + std::string(colour) + "\"";
    out_ += "><title>" + escaped(title) + "</title></rect>\n";
  }
  void line(double x, double from, double to) {
    out_ += "  <line class=\"mean\" x1=\"" + at(x) + "\" x2=\"" + at(x) + "\" y1=\"" + at(from) +
            "\" y2=\"" + at(to) + "\"/>\n";
  }
  // style: an element of the picture's own; empty: its page has the rules.
  [[nodiscard]] std::string svg(double width, double height, std::string_view title,
                                std::string_view style) const {
    return "<svg class=\"plan\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + at(width) +
           " " + at(height) + "\" width=\"100%\" style=\"max-width: " + at(width) +
           "px\" role=\"img\">\n  <title>" + escaped(title) + "</title>\n" + std::string(style) +
           out_ + "</svg>\n";
  }

 private:
  std::string out_;
};

std::string range(const char* what, int64_t first, int64_t count) {
  return std::string(what) + " " + with_separators(first) + " to " +
         with_separators(first + count - 1);
}

std::string count_text(size_t count, const char* one, const char* many) {
  return with_separators(static_cast<int64_t>(count)) + " " + (count == 1 ? one : many);
}

// Higher for more bytes, of which the largest table has `most`.
double height_of(const PictureTable& table, int64_t most) {
  const double share = most == 0 ? 0 : static_cast<double>(table.bytes) / static_cast<double>(most);
  return kLeastHeight + (kMostHeight - kLeastHeight) * std::sqrt(share);
}

// Where the boxes of a table go.
struct Frame {
  double x, y, width, height;
};

void draw_boxes(Drawing& drawing, const PictureTable& table, const Frame& frame) {
  const auto across = [&](int64_t columns) {
    return frame.width * static_cast<double>(columns) / static_cast<double>(table.dim);
  };
  const auto down = [&](int64_t rows) {
    return frame.height * static_cast<double>(rows) / static_cast<double>(table.rows);
  };
  const size_t drawn = std::min(table.boxes.size(), kMostBoxes);
  if (drawn < table.boxes.size()) {
    drawing.rectangle(frame.x, frame.y, frame.width, frame.height, "rest", "",
                      count_text(table.boxes.size() - drawn, "more box", "more boxes"));
  }
  for (size_t b = 0; b < drawn; ++b) {
    const PictureBox& box = table.boxes[b];
    const double x = frame.x + across(box.col);
    const double top = frame.y + down(box.row);
    const std::string owner = table.replicated ? "every rank" : "rank " + std::to_string(box.rank);
    drawing.rectangle(x, top, across(box.cols), down(box.rows), "box",
                      table.replicated ? "hsl(0 0% 78%)" : colour_of_rank(box.rank),
                      owner + ": " + range("rows", box.row, box.rows) + ", " +
                          range("columns", box.col, box.cols) + ", " + bytes_text(box.bytes));
    const std::string label = table.replicated ? owner : std::to_string(box.rank);
    const double room = static_cast<double>(label.size()) * 7 + 4;
    if (across(box.cols) >= room && down(box.rows) >= 12) {
      drawing.text(x + across(box.cols) / 2, top + down(box.rows) / 2, label, "inside");
    }
  }
}

// Of the largest table that is drawn.
int64_t most_bytes(const Picture& picture) {
  int64_t most = 0;
  for (size_t t = 0; t < std::min(picture.tables.size(), kMostTables); ++t) {
    most = std::max(most, picture.tables[t].bytes);
  }
  return most;
}

std::string size_of(const PictureTable& table) {
  return with_separators(table.rows) + " x " + with_separators(table.dim) + ", " +
         bytes_text(table.bytes);
}

// What is said of the tables that are not drawn; empty: all are.
std::string rest_of_tables(const Picture& picture) {
  if (picture.tables.size() <= kMostTables) return "";
  const int64_t bytes =
      std::accumulate(picture.tables.begin() + kMostTables, picture.tables.end(), int64_t{0},
                      [](int64_t sum, const PictureTable& table) { return sum + table.bytes; });
  return "and " + count_text(picture.tables.size() - kMostTables, "more table", "more tables") +
         ", " + bytes_text(bytes);
}

double draw_tables(Drawing& drawing, const Picture& picture, double y) {
  const size_t drawn = std::min(picture.tables.size(), kMostTables);
  const int64_t most = most_bytes(picture);
  for (size_t t = 0; t < drawn; ++t) {
    const PictureTable& table = picture.tables[t];
    const double height = std::max(height_of(table, most), 2 * kLine);
    drawing.text(kMargin, y + 13, shortened(table.name));
    drawing.text(kMargin, y + 13 + kLine, size_of(table), "quiet");
    draw_boxes(drawing, table, {kLeft, y, kTableWidth, height});
    y += height + 10;
  }
  if (const std::string rest = rest_of_tables(picture); !rest.empty()) {
    drawing.text(kMargin, y + 13, rest, "quiet");
    y += kLine + 6;
  }
  return y;
}

double draw_ranks(Drawing& drawing, const Picture& picture, double y) {
  const std::vector<int64_t>& bytes = picture.bytes_by_rank;
  const int64_t most = *std::max_element(bytes.begin(), bytes.end());
  const double mean =
      std::accumulate(bytes.begin(), bytes.end(), 0.0) / static_cast<double>(bytes.size());
  const auto width = [&](double value) {
    return most == 0 ? 0 : kTableWidth * value / static_cast<double>(most);
  };
  drawing.text(kMargin, y + 13, "Bytes of each rank");
  drawing.text(kLeft, y + 13, "mean " + bytes_text(static_cast<int64_t>(mean)), "quiet");
  y += kLine + 6;
  const double top = y;
  const size_t drawn = std::min(bytes.size(), kMostRanks);
  for (size_t rank = 0; rank < drawn; ++rank) {
    const std::string name = "rank " + std::to_string(rank);
    const std::string size = bytes_text(bytes[rank]);
    drawing.text(kMargin, y + 12, name);
    drawing.rectangle(kLeft, y + 1, width(static_cast<double>(bytes[rank])), kLine - 5, "bar",
                      colour_of_rank(static_cast<int32_t>(rank)), name + ": " + size);
    drawing.text(kLeft + kTableWidth + 8, y + 12, size);
    y += kLine;
  }
  drawing.line(kLeft + width(mean), top - 2, y);
  if (drawn < bytes.size()) {
    drawing.text(kMargin, y + 13,
                 "and " + count_text(bytes.size() - drawn, "more rank", "more ranks") +
                     "; the largest of all has " + bytes_text(most),
                 "quiet");
    y += kLine;
  }
  return y;
}

}  // namespace

std::string colour_of_rank(int32_t rank) {
  return "hsl(" + fixed(std::fmod(205 + 137.508 * rank, 360), 0) + " 58% 66%)";
}

std::string plan_title(const Picture& picture) {
  const int64_t bytes =
      std::accumulate(picture.bytes_by_rank.begin(), picture.bytes_by_rank.end(), int64_t{0});
  return count_text(picture.tables.size(), "table", "tables") + " on " +
         count_text(picture.bytes_by_rank.size(), "rank", "ranks") + ", " + bytes_text(bytes) +
         " of weights and optimizer states";
}

std::string plan_style() { return kStyle; }

std::string draw_plan(const Picture& picture) {
  const std::string title = plan_title(picture);
  Drawing drawing;
  double y = kMargin + 14;
  drawing.text(kMargin, y, title, "title");
  y += 10;
  drawing.text(kMargin, y + 13,
               "Rows go down, columns to the right; colours and numbers are ranks.", "quiet");
  y = draw_tables(drawing, picture, y + kLine + 10);
  y = draw_ranks(drawing, picture, y + 14);
  return drawing.svg(kWidth, y + kMargin, title, "  <style>" + plan_style() + "  </style>\n");
}

PlanParts draw_plan_parts(const Picture& picture) {
  PlanParts parts;
  const int64_t most = most_bytes(picture);
  for (size_t t = 0; t < std::min(picture.tables.size(), kMostTables); ++t) {
    const PictureTable& table = picture.tables[t];
    const double height = height_of(table, most);
    Drawing drawing;
    drawing.text(0, 13, shortened(table.name));
    drawing.text(0, 13 + kLine, size_of(table), "quiet");
    draw_boxes(drawing, table, {0, 2 * kLine + 4, kPartWidth, height});
    parts.tables.push_back(drawing.svg(kPartWidth, 2 * kLine + 4 + height, table.name, ""));
  }
  parts.rest = rest_of_tables(picture);
  return parts;
}

}  // namespace shardrec::cli
