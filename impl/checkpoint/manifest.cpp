#include "checkpoint/manifest.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "plan/tiling.h"

namespace shardrec::checkpoint {

bool has_state(const plan::Optimizer& optimizer) {
  return optimizer.kind == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
}

const char* name_of(Part part) noexcept { return part == Part::kWeights ? "weights" : "state/sum"; }

void check_coverage(const Manifest& manifest, shardrec_status status, const std::string& path) {
  const bool state = has_state({.kind = manifest.optimizer});
  std::vector<plan::TablePlan> weights(manifest.tables.size());
  std::vector<plan::TablePlan> states(manifest.tables.size());
  for (const ManifestTensor& tensor : manifest.tensors) {
    auto& parts = tensor.part == Part::kWeights ? weights : states;
    parts[static_cast<size_t>(tensor.table)].boxes.push_back(
        {0, tensor.row, tensor.rows, tensor.col, tensor.cols});
  }
  const auto check = [&](size_t i, Part part, plan::TablePlan& plan) {
    std::sort(plan.boxes.begin(), plan.boxes.end(), [](const plan::Box& a, const plan::Box& b) {
      return std::tie(a.row, a.col) < std::tie(b.row, b.col);
    });
    const ManifestTable& table = manifest.tables[i];
    try {
      plan::check_table_tiling({.name = table.name, .rows = table.rows, .dim = table.dim}, {1, 1},
                               plan);
    } catch (const core::Error& error) {
      core::fail(status,
                 core::sentence("the checkpoint ", path, " does not hold every cell of the ",
                                name_of(part), " exactly once: ", error.sentence()),
                 {.table = table.name, .path = path});
    }
  };
  for (size_t i = 0; i < manifest.tables.size(); ++i) {
    check(i, Part::kWeights, weights[i]);
    if (state) {
      check(i, Part::kState, states[i]);
    } else if (!states[i].boxes.empty()) {
      core::fail(status,
                 core::sentence("the checkpoint ", path, " holds a state of table \"",
                                manifest.tables[i].name, "\"; its optimizer has none"),
                 {.table = manifest.tables[i].name, .path = path});
    }
  }
}

}  // namespace shardrec::checkpoint
