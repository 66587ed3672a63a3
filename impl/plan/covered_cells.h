// Which cells of a table rectangles cover that are added one at a time, in any order. Adding one, and asking
// whether one shares cells with those before it, take time in proportion to the logarithms of the table's rows
// and of the number of rectangles.
//
// A binary tree over the rows. A node knows the columns of rectangles that cover all of its rows, and of those
// that cover some of them; a leaf keeps the latter, and is cut in two where they become many. Columns are kept
// as intervals that do not touch: of rectangles side by side, one.
//
// Thread rule: one thread at a time. Where adding throws, the object is of no use any more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "plan/model/rectangle.h"

namespace shardrec::plan {

class CoveredCells {
 public:
  // Of a table, of which none is covered yet.
  explicit CoveredCells(const Rectangle& table);

  // rectangle: inside the table and not empty.
  bool intersects(const Rectangle& rectangle) const;
  void add(const Rectangle& rectangle);

  // Nodes that intersects() and add() have looked at: what their time is in proportion to, but for the
  // searches of intervals.
  uint64_t visits() const { return visits_; }

 private:
  // Disjoint intervals that do not touch: their ends by their beginnings.
  class Intervals {
   public:
    bool intersect(int64_t begin, int64_t end) const;
    void add(int64_t begin, int64_t end);

   private:
    std::map<int64_t, int64_t> ends_;
  };
  struct Node {
    int64_t row = 0;
    int64_t rows = 0;
    Intervals
        whole;       // columns of rectangles that cover all rows of the node, and not of its parent
    Intervals part;  // of those that cover some of them
    std::vector<Rectangle> rectangles;  // of a leaf: those of `part`
    std::unique_ptr<Node> halves[2];    // none: a leaf

    int64_t end_row() const { return row + rows; }
  };
  static constexpr size_t kMostInLeaf = 16;

  bool intersects(const Node& node, const Rectangle& rectangle) const;
  void add(Node& node, const Rectangle& rectangle);
  void cut(Node& leaf);

  Node root_;
  mutable uint64_t visits_ = 0;
};

}  // namespace shardrec::plan
