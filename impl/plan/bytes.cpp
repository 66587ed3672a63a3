#include "plan/bytes.h"

#include <set>
#include <utility>

#include "core/tensor.h"

namespace shardrec::plan {
namespace {

// A model has at most 2^58 elements, and an optimizer two floats for each: no sum overflows.
Bytes bytes_of_shape(const Model& model, size_t table, const Rectangle& cells,
                     bool keeps_row_values) {
  Bytes bytes;
  bytes.weights = cells.area() * static_cast<int64_t>(core::dtype_size(model.tables[table].dtype));
  for (const OptimizerState& state :
       states_of(model.optimizer_of(static_cast<int32_t>(table)).kind)) {
    if (!state.by_row) {
      bytes.states += cells.area() * 4;
    } else if (keeps_row_values) {
      bytes.states += cells.rows * 4;
    }
  }
  return bytes;
}

bool keeps_own_row_values(const Model& model, size_t table) {
  return model.optimizer_of(static_cast<int32_t>(table)).row_statistics ==
         SHARDREC_ROW_STATISTICS_SHARD;
}

bool is_first_of_its_rows(const std::vector<Box>& boxes, size_t box) {
  // Those that begin at one row are neighbours.
  for (size_t other = box; other > 0 && boxes[other - 1].cells.row == boxes[box].cells.row;
       --other) {
    const Box& before = boxes[other - 1];
    if (before.cells.rows == boxes[box].cells.rows && before.rank == boxes[box].rank) return false;
  }
  return true;
}

}  // namespace

std::vector<Bytes> bytes_of_boxes(const Plan& plan, const Model& model, size_t table) {
  const bool by_box = keeps_own_row_values(model, table);
  std::set<std::pair<int32_t, int64_t>> seen;  // rank and rows of the boxes that begin at one row
  int64_t row = 0;
  std::vector<Bytes> bytes;
  bytes.reserve(plan.tables[table].boxes.size());
  for (const Box& box : plan.tables[table].boxes) {
    if (box.cells.row != row) seen.clear();
    row = box.cells.row;
    const bool first = seen.emplace(box.rank, box.cells.rows).second;
    bytes.push_back(bytes_of_shape(model, table, box.cells, by_box || first));
  }
  return bytes;
}

Bytes bytes_of_box(const Plan& plan, const Model& model, size_t table, size_t box) {
  const std::vector<Box>& boxes = plan.tables[table].boxes;
  return bytes_of_shape(model, table, boxes[box].cells,
                        keeps_own_row_values(model, table) || is_first_of_its_rows(boxes, box));
}

Bytes bytes_of_whole(const Model& model, size_t table) {
  return bytes_of_shape(model, table, model.tables[table].cells(), true);
}

}  // namespace shardrec::plan
