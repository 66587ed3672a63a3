#include "plan/model/rectangle.h"

#include <iterator>
#include <map>
#include <vector>

namespace shardrec::plan {
namespace {

// A sweep over the rows. `active_` holds the rectangles that reach into the current row, by first
// column; as they are disjoint, they cover the row exactly when their widths add up to the table's.
class Sweep {
 public:
  Sweep(const Rectangle& table, std::span<const Rectangle> all) : table_(table), all_(all) {}

  std::optional<TilingFault> run() {
    std::vector<size_t> ends(all_.size());  // numbers of rectangles, by the row behind their last
    for (size_t i = 0; i < ends.size(); ++i) ends[i] = i;
    std::sort(ends.begin(), ends.end(),
              [&](size_t a, size_t b) { return all_[a].end_row() < all_[b].end_row(); });
    size_t start = 0;
    auto end = ends.begin();
    for (int64_t row = table_.row; row < table_.end_row();) {
      for (; end != ends.end() && all_[*end].end_row() == row; ++end) remove(all_[*end]);
      for (; start < all_.size() && all_[start].row == row; ++start) {
        if (const auto other = insert(start)) {
          return TilingFault{.overlap = true, .first = *other, .second = start};
        }
      }
      if (width_ != table_.cols) return TilingFault{.row = row, .col = first_gap()};
      // Covered rows have rectangles, so there is a next end.
      const int64_t next_end = all_[*end].end_row();
      row = start == all_.size() ? next_end : std::min(next_end, all_[start].row);
    }
    return std::nullopt;
  }

 private:
  // The rectangle that shares cells with it.
  std::optional<size_t> insert(size_t number) {
    const Rectangle& added = all_[number];
    const auto [place, fresh] = active_.emplace(added.col, number);
    if (!fresh) return place->second;
    if (place != active_.begin()) {
      const size_t left = std::prev(place)->second;
      if (all_[left].end_col() > added.col) return left;
    }
    if (const auto right = std::next(place); right != active_.end()) {
      if (added.end_col() > right->first) return right->second;
    }
    width_ += added.cols;
    return std::nullopt;
  }

  void remove(const Rectangle& ended) {
    active_.erase(ended.col);
    width_ -= ended.cols;
  }

  int64_t first_gap() const {
    int64_t col = table_.col;
    for (const auto& [first, number] : active_) {
      if (first != col) break;
      col = all_[number].end_col();
    }
    return col;
  }

  const Rectangle& table_;
  std::span<const Rectangle> all_;
  std::map<int64_t, size_t> active_;
  int64_t width_ = 0;
};

}  // namespace

std::optional<TilingFault> find_tiling_fault(const Rectangle& table,
                                             std::span<const Rectangle> rectangles) {
  return Sweep(table, rectangles).run();
}

}  // namespace shardrec::plan
