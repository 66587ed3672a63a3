#include "plan/find.h"

#include <string>

#include "core/error.h"

namespace shardrec::plan {
namespace {

void require_box(const Model& model, int32_t table, int32_t box, size_t boxes) {
  const auto count = static_cast<int64_t>(boxes);
  if (box >= 0 && box < count) return;
  const std::string& name = model.tables[static_cast<size_t>(table)].name;
  core::fail(
      SHARDREC_NOT_FOUND,
      core::sentence("there is no box ", box, "; table \"", name, "\" has ", count, " boxes"),
      {.value = box, .limit = count, .table = name});
}

}  // namespace

const Table& find_model_table(const Model& model, int32_t table) {
  const auto count = static_cast<int64_t>(model.tables.size());
  if (table < 0 || table >= count) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("there is no table ", table, "; the model has ", count, " tables"),
               {.value = table, .limit = count});
  }
  return model.tables[static_cast<size_t>(table)];
}

const TablePlan& find_table(const Plan& plan, int32_t table) {
  const auto count = static_cast<int64_t>(plan.tables.size());
  if (table < 0 || table >= count) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("there is no table ", table, "; the plan has ", count, " tables"),
               {.value = table, .limit = count});
  }
  return plan.tables[static_cast<size_t>(table)];
}

const Box& find_box(const Plan& plan, const Model& model, int32_t table, int32_t box) {
  const TablePlan& found = find_table(plan, table);
  require_box(model, table, box, found.boxes.size());
  return found.boxes[static_cast<size_t>(box)];
}

Box find_box_or_copy(const Plan& plan, const Model& model, int32_t table, int32_t box) {
  if (!find_table(plan, table).replicated) return find_box(plan, model, table, box);
  require_box(model, table, box, 1);
  return {.rank = -1, .cells = model.tables[static_cast<size_t>(table)].cells()};
}

Bytes find_box_bytes(const Plan& plan, const Model& model, int32_t table, int32_t box) {
  const TablePlan& found = find_table(plan, table);
  require_box(model, table, box, found.replicated ? 1 : found.boxes.size());
  const auto index = static_cast<size_t>(table);
  return found.replicated ? bytes_of_whole(model, index)
                          : bytes_of_box(plan, model, index, static_cast<size_t>(box));
}

FeatureColumns find_feature_columns(const Model& model, int32_t feature) {
  const auto count = static_cast<int64_t>(model.features.size());
  if (feature < 0 || feature >= count) {
    core::fail(
        SHARDREC_NOT_FOUND,
        core::sentence("there is no feature ", feature, "; the model has ", count, " features"),
        {.value = feature, .limit = count});
  }
  const auto index = static_cast<size_t>(feature);
  const Feature& found = model.features[index];
  const OutputLayout layout = output_layout(model);
  const int64_t dim = model.tables[static_cast<size_t>(found.table)].dim;
  return {.output = layout.output[index],
          .first = layout.column[index],
          .count = dim,
          .output_width = found.pooling == SHARDREC_POOLING_NONE ? dim : layout.width};
}

}  // namespace shardrec::plan
