#include "plan/tiling.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "core/error.h"

namespace shardrec::plan {

namespace {

using core::fail;
using core::sentence;

[[noreturn]] void fail_missing(const Table& table, int64_t row, int64_t col) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("no box owns row ", row, ", column ", col, " of table \"", table.name,
                "\"; every cell needs exactly one owner, or the table is replicated"),
       {.table = table.name});
}

// A sweep over the rows. `active_` holds the boxes that reach into the current row, by first
// column; as they are disjoint, they cover the row exactly when their widths add up to dim.
class Sweep {
 public:
  explicit Sweep(const Table& table) : table_(table) {}

  void run(const std::vector<Box>& starts) {
    std::vector<const Box*> ends;
    ends.reserve(starts.size());
    for (const Box& box : starts) ends.push_back(&box);
    std::sort(ends.begin(), ends.end(),
              [](const Box* a, const Box* b) { return a->row + a->rows < b->row + b->rows; });
    auto start = starts.begin();
    auto end = ends.begin();
    for (int64_t row = 0; row < table_.rows;) {
      for (; end != ends.end() && (*end)->row + (*end)->rows == row; ++end) remove(**end);
      for (; start != starts.end() && start->row == row; ++start) insert(*start);
      if (width_ != table_.dim) fail_missing(table_, row, first_gap());
      // Covered rows have boxes, so there is a next end.
      const int64_t next_end = (*end)->row + (*end)->rows;
      row = start == starts.end() ? next_end : std::min(next_end, start->row);
    }
  }

 private:
  void insert(const Box& box) {
    const auto [place, fresh] = active_.emplace(box.col, &box);
    if (!fresh) fail_overlap(table_, *place->second, box);
    if (place != active_.begin()) {
      const Box& before = *std::prev(place)->second;
      if (before.col + before.cols > box.col) fail_overlap(table_, before, box);
    }
    if (const auto after = std::next(place); after != active_.end()) {
      if (box.col + box.cols > after->first) fail_overlap(table_, *after->second, box);
    }
    width_ += box.cols;
  }

  void remove(const Box& box) {
    active_.erase(box.col);
    width_ -= box.cols;
  }

  int64_t first_gap() const {
    int64_t col = 0;
    for (const auto& [first, box] : active_) {
      if (first != col) break;
      col += box->cols;
    }
    return col;
  }

  const Table& table_;
  std::map<int64_t, const Box*> active_;
  int64_t width_ = 0;
};

}  // namespace

std::string describe(const Box& box) {
  return sentence("rows [", box.row, ", ", box.row + box.rows, ") x columns [", box.col, ", ",
                  box.col + box.cols, ") on rank ", box.rank);
}

void check_box(const Table& table, const Topology& topology, const Box& box) {
  // Compared without adding, so that no sum can overflow.
  const bool inside = box.rows >= 1 && box.cols >= 1 && box.row >= 0 && box.col >= 0 &&
                      box.row < table.rows && box.rows <= table.rows - box.row &&
                      box.col < table.dim && box.cols <= table.dim - box.col;
  if (!inside) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a box of ", box.rows, " rows from row ", box.row, " and ", box.cols,
                  " columns from column ", box.col, " is empty or leaves table \"", table.name,
                  "\" (", table.rows, " rows, ", table.dim, " columns)"),
         {.table = table.name});
  }
  if (box.rank < 0 || box.rank >= topology.ranks) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a box of table \"", table.name, "\" names rank ", box.rank, "; the plan has ",
                  topology.ranks, " ranks"),
         {.value = box.rank, .limit = topology.ranks, .table = table.name});
  }
}

bool overlap(const Box& a, const Box& b) noexcept {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols &&
         b.col < a.col + a.cols;
}

void fail_overlap(const Table& table, const Box& a, const Box& b) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("two boxes of table \"", table.name, "\" overlap: ", describe(a), " and ",
                describe(b)),
       {.table = table.name});
}

void check_table_tiling(const Table& table, const Topology& topology, const TablePlan& plan) {
  if (plan.replicated) {
    if (plan.boxes.empty()) return;
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name,
                  "\" is replicated and has boxes; it takes one or the other"),
         {.table = table.name});
  }
  const Box* before = nullptr;
  for (const Box& box : plan.boxes) {
    check_box(table, topology, box);
    if (before != nullptr && std::tie(box.row, box.col) < std::tie(before->row, before->col)) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence("the boxes of table \"", table.name, "\" are not ordered by row and column: ",
                    describe(box), " comes behind ", describe(*before)),
           {.table = table.name});
    }
    before = &box;
  }
  Sweep(table).run(plan.boxes);
}

void check_tiling(const Plan& plan, const Model& model) {
  check_topology(plan.topology);
  if (plan.tables.size() != model.tables.size()) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the plan is for ", plan.tables.size(),
                                             " tables, the model has ", model.tables.size()));
  }
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    check_table_tiling(model.tables[i], plan.topology, plan.tables[i]);
  }
}

}  // namespace shardrec::plan
