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

}  // namespace shardrec::cli
