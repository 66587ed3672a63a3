// A plan as a picture, for people: an SVG file that stands alone, in the colours of a light or a dark screen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardrec::cli {

struct PictureBox {
  int32_t rank = 0;
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  int64_t bytes = 0;  // weights and optimizer states
};

struct PictureTable {
  std::string name;
  int64_t rows = 0, dim = 0;
  int64_t bytes = 0;  // of all ranks together
  bool replicated = false;
  std::vector<PictureBox> boxes;  // one where it is replicated
};

struct Picture {
  std::vector<PictureTable> tables;
  std::vector<int64_t> bytes_by_rank;
};

// Tables as rectangles, rows downward and columns to the right, cut into boxes in the colours of their ranks;
// then the bytes of each rank as bars. What does not fit is counted: at most 40 tables, 256 boxes of each, and 64
// ranks are drawn.
std::string draw_plan(const Picture& picture);

// The same in parts, for a page that lays them out: an SVG element of 280 units for each table, then what is said of
// those that are not drawn (empty: all are).
struct PlanParts {
  std::vector<std::string> tables;
  std::string rest;
};
PlanParts draw_plan_parts(const Picture& picture);
// The rules of CSS that the parts need, once on their page.
std::string plan_style();
// "2 tables on 4 ranks, 1.3 MiB of weights and optimizer states"
std::string plan_title(const Picture& picture);

// Of a rank in pictures, as CSS has it: neighbours in number are far apart in hue.
std::string colour_of_rank(int32_t rank);

}  // namespace shardrec::cli
