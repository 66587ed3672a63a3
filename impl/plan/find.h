// Tables, boxes and features by the numbers that a caller gives. Each function throws NOT_FOUND, with
// VALUE and LIMIT, for a number that the plan or model does not have.
#pragma once

#include <cstdint>

#include "plan/bytes.h"
#include "plan/model/model.h"
#include "plan/plan.h"

namespace shardrec::plan {

const Table& find_model_table(const Model& model, int32_t table);
const TablePlan& find_table(const Plan& plan, int32_t table);
const Box& find_box(const Plan& plan, const Model& model, int32_t table, int32_t box);
// The same, but of a replicated table box 0: all of it, of rank -1.
Box find_box_or_copy(const Plan& plan, const Model& model, int32_t table, int32_t box);
// What a box takes of its rank's memory. A replicated table counts as one box, number 0, which every
// rank has.
Bytes find_box_bytes(const Plan& plan, const Model& model, int32_t table, int32_t box);

// Where a feature stands in its output.
struct FeatureColumns {
  int32_t output = 0;
  int64_t first = 0;         // column of the output
  int64_t count = 0;         // columns of the feature
  int64_t output_width = 0;  // columns of the output, those of other features included
};
FeatureColumns find_feature_columns(const Model& model, int32_t feature);

}  // namespace shardrec::plan
