#include "checkpoint/manifest.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "core/tensor.h"
#include "plan/names.h"
#include "plan/tiling.h"

namespace shardrec::checkpoint {

int64_t Layout::element_bytes() const { return static_cast<int64_t>(core::dtype_size(dtype)); }

int part_count(shardrec_optimizer optimizer) {
  return 1 + static_cast<int>(plan::states_of(optimizer).size());
}

Layout layout_of(shardrec_dtype table_dtype, shardrec_optimizer optimizer, Part part) {
  if (part == Part::kWeights) return {.by_row = false, .dtype = table_dtype};
  const auto states = plan::states_of(optimizer);
  const auto state = static_cast<size_t>(part) - static_cast<size_t>(Part::kState);
  if (state >= states.size()) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("the optimizer ", plan::name_of(optimizer), " has no state ", state));
  }
  return {.by_row = states[state].by_row, .dtype = SHARDREC_FLOAT32};
}

std::string name_of(shardrec_optimizer optimizer, Part part) {
  if (part == Part::kWeights) return "weights";
  const auto state = static_cast<size_t>(part) - static_cast<size_t>(Part::kState);
  return std::string("state/") + plan::states_of(optimizer)[state].name;
}

void check_coverage(const Manifest& manifest, shardrec_status status, const std::string& path) {
  // By table, by part.
  std::vector<std::vector<plan::TablePlan>> parts;
  for (const ManifestTable& table : manifest.tables) {
    parts.emplace_back(static_cast<size_t>(part_count(table.optimizer)));
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    parts[static_cast<size_t>(tensor.table)][static_cast<size_t>(tensor.part)].boxes.push_back(
        {0, tensor.row, tensor.rows, tensor.col, tensor.cols});
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const ManifestTable& table = manifest.tables[i];
    for (size_t p = 0; p < parts[i].size(); ++p) {
      plan::TablePlan& plan = parts[i][p];
      std::sort(plan.boxes.begin(), plan.boxes.end(), [](const plan::Box& a, const plan::Box& b) {
        return std::tie(a.row, a.col) < std::tie(b.row, b.col);
      });
      try {
        plan::check_table_tiling({.name = table.name, .rows = table.rows, .dim = table.dim}, {1, 1},
                                 plan);
      } catch (const core::Error& error) {
        core::fail(status,
                   core::sentence("the checkpoint ", path, " does not hold every cell of the ",
                                  name_of(table.optimizer, static_cast<Part>(p)),
                                  " exactly once: ", error.sentence()),
                   {.table = table.name, .path = path});
      }
    }
  }
}

}  // namespace shardrec::checkpoint
