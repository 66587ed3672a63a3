// No field of a model or a plan is forgotten by fingerprints and JSON.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "plan/model_fields.h"
#include "plan/plan.h"
#include "support/plan_boxes.h"

namespace shardrec::plan {
namespace {

TEST(Fields, OfAModelTravelInItsJsonAndChangeItsFingerprint) {
  const Model base = model_of_all_fields();
  std::set<uint64_t> fingerprints = {model_fingerprint(base)};
  for (const auto& [named, model] : models_that_differ()) {
    SCOPED_TRACE(named);
    EXPECT_NE(model, base);
    EXPECT_EQ(model_from_json(model_to_json(model)), model);
    EXPECT_TRUE(fingerprints.insert(model_fingerprint(model)).second);
  }
}

// A plan with every field at work: a table in boxes and a replicated one.
Plan plan_of_all_fields(const Model& model) {
  Plan plan{.topology = {.ranks = 4, .ranks_per_node = 2}, .tables = std::vector<TablePlan>(2)};
  add_box(plan, model, 0, {.rank = 0, .cells = {.row = 0, .rows = 10, .col = 0, .cols = 8}});
  add_box(plan, model, 0, {.rank = 3, .cells = {.row = 10, .rows = 30, .col = 0, .cols = 3}});
  add_box(plan, model, 0, {.rank = 1, .cells = {.row = 10, .rows = 30, .col = 3, .cols = 5}});
  replicate(plan, model, 1, SHARDREC_REPLICATION_ROWS);
  return plan;
}

TEST(Fields, OfAPlanTravelInItsJson) {
  const Model model = model_of_all_fields();
  const Plan plan = plan_of_all_fields(model);
  EXPECT_EQ(plan_from_json(model, plan_to_json(plan, model)), plan);
}

TEST(Fields, OfAPlanChangeItsFingerprint) {
  const Model model = model_of_all_fields();
  Plan plan = plan_of_all_fields(model);
  std::set<uint64_t> fingerprints = {plan_fingerprint(plan, model)};
  // Plans that differ in one field need not be valid to have a fingerprint.
  const auto change = [&](const char* named, auto& field, auto other) {
    std::swap(field, other);
    EXPECT_TRUE(fingerprints.insert(plan_fingerprint(plan, model)).second) << named;
    std::swap(field, other);
  };
  auto& [topology, tables] = plan;
  auto& [ranks, ranks_per_node] = topology;
  change("ranks", ranks, int32_t{5});
  change("ranks_per_node", ranks_per_node, int32_t{4});
  auto& [replicated, boxes, replication] = tables[1];
  change("replicated", replicated, false);
  change("replication", replication, SHARDREC_REPLICATION_DENSE);
  change("boxes", boxes, tables[0].boxes);
  auto& [rank, cells] = tables[0].boxes[2];
  change("rank", rank, int32_t{2});
  auto& [row, rows, col, cols] = cells;
  change("row", row, int64_t{11});
  change("rows", rows, int64_t{29});
  change("col", col, int64_t{4});
  change("cols", cols, int64_t{4});
}

}  // namespace
}  // namespace shardrec::plan
