#include "plan/covered_cells.h"

#include <algorithm>
#include <iterator>

namespace shardrec::plan {

CoveredCells::CoveredCells(const Rectangle& table) {
  root_.row = table.row;
  root_.rows = table.rows;
}

bool CoveredCells::intersects(const Rectangle& rectangle) const {
  return intersects(root_, rectangle);
}

void CoveredCells::add(const Rectangle& rectangle) { add(root_, rectangle); }

bool CoveredCells::intersects(const Node& node, const Rectangle& rectangle) const {
  ++visits_;
  if (rectangle.end_row() <= node.row || rectangle.row >= node.end_row()) return false;
  if (node.whole.intersect(rectangle.col, rectangle.end_col())) return true;
  if (!node.part.intersect(rectangle.col, rectangle.end_col())) return false;
  if (rectangle.row <= node.row && rectangle.end_row() >= node.end_row()) return true;
  if (node.halves[0] != nullptr) {
    return intersects(*node.halves[0], rectangle) || intersects(*node.halves[1], rectangle);
  }
  return std::any_of(node.rectangles.begin(), node.rectangles.end(),
                     [&](const Rectangle& other) { return !intersect(rectangle, other).empty(); });
}

void CoveredCells::add(Node& node, const Rectangle& rectangle) {
  ++visits_;
  if (rectangle.end_row() <= node.row || rectangle.row >= node.end_row()) return;
  if (rectangle.row <= node.row && rectangle.end_row() >= node.end_row()) {
    node.whole.add(rectangle.col, rectangle.end_col());
    return;
  }
  node.part.add(rectangle.col, rectangle.end_col());
  if (node.halves[0] != nullptr) {
    for (const auto& half : node.halves) add(*half, rectangle);
    return;
  }
  node.rectangles.push_back(rectangle);
  if (node.rectangles.size() > kMostInLeaf) cut(node);
}

// A leaf of one row has none that cover a part of it, so that there are two rows to be parted.
void CoveredCells::cut(Node& leaf) {
  const int64_t middle = leaf.row + leaf.rows / 2;
  const int64_t begins[] = {leaf.row, middle, leaf.end_row()};
  for (int h = 0; h < 2; ++h) {
    leaf.halves[h] = std::make_unique<Node>();
    leaf.halves[h]->row = begins[h];
    leaf.halves[h]->rows = begins[h + 1] - begins[h];
  }
  for (const Rectangle& rectangle : leaf.rectangles) {
    for (const auto& half : leaf.halves) add(*half, rectangle);
  }
  leaf.rectangles = {};
}

bool CoveredCells::Intervals::intersect(int64_t begin, int64_t end) const {
  const auto right = ends_.upper_bound(begin);
  if (right != ends_.end() && right->first < end) return true;
  return right != ends_.begin() && std::prev(right)->second > begin;
}

void CoveredCells::Intervals::add(int64_t begin, int64_t end) {
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin() && std::prev(at)->second >= begin) {
    --at;
    begin = at->first;
  } else {
    at = ends_.emplace_hint(at, begin, end);
  }
  auto behind = std::next(at);
  for (; behind != ends_.end() && behind->first <= end; ++behind) {
    end = std::max(end, behind->second);
  }
  at->second = std::max(at->second, end);
  ends_.erase(std::next(at), behind);
}

}  // namespace shardrec::plan
