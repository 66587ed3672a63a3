// The C API's structs in one expression, for tests of the C functions.
#pragma once

#include "shardrec/lookup.h"
#include "shardrec/plan.h"
#include "shardrec/scorer.h"

namespace shardrec {

// batch: designated members; struct_size is set here.
inline shardrec_status begin_batch(shardrec_lookup* lookup, shardrec_batch batch) {
  batch.struct_size = sizeof batch;
  return shardrec_lookup_begin(lookup, &batch);
}

inline shardrec_status add_box(shardrec_plan* plan, int32_t table, int32_t rank, int64_t row,
                               int64_t rows, int64_t col, int64_t cols) {
  const shardrec_box box{
      .struct_size = sizeof box, .rank = rank, .row = row, .rows = rows, .col = col, .cols = cols};
  return shardrec_plan_add_box(plan, table, &box);
}

inline shardrec_status read_box(const shardrec_plan* plan, int32_t table, int32_t box,
                                shardrec_box* out) {
  out->struct_size = sizeof *out;
  return shardrec_plan_box(plan, table, box, out);
}

}  // namespace shardrec
