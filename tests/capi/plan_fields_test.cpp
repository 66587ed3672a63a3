// shardrec_plan_collective compares every field of models and options, and says which one differs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capi_test.h"
#include "plan/model_fields.h"
#include "plan/plan.h"
#include "planner/planner.h"

namespace shardrec::test {
namespace {

Model handle_of(const plan::Model& model) {
  Model handle;
  EXPECT_OK(shardrec_model_from_json(plan::model_to_json(model).c_str(), handle.out()));
  return handle;
}

// On both of two ranks, plan_collective is a mismatch of rank 1 that names these words.
void expect_mismatch(shardrec_comm* comm, shardrec_model* model, const shardrec_options* options,
                     const std::vector<std::string>& words) {
  shardrec_plan* plan = nullptr;
  EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, options, &plan), SHARDREC_DISAGREEMENT);
  EXPECT_EQ(plan, nullptr);
  const std::string sentence = shardrec_last_error();
  for (const std::string& word : words) EXPECT_TRUE(contains(sentence, word)) << sentence;
  int64_t rank = -1;
  EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank));
  EXPECT_EQ(rank, 1);
}

TEST(PlanFields, OfModelsAreComparedOneByOneAndNamed) {
  const auto differing = plan::models_that_differ();
  run_ranks(2, [&](shardrec_comm* comm, int rank) {
    for (const auto& [named, model] : differing) {
      SCOPED_TRACE(named);
      expect_mismatch(comm, handle_of(rank == 0 ? plan::model_of_all_fields() : model), nullptr,
                      {named, "on rank 1"});
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

struct OptionDifference {
  shardrec_option option;
  const char* name;
  const char* value;
};

// The options of a plan; a new one does not compile before it is among them. mesh_ranks is no option:
// it says what the function was called with.
std::vector<OptionDifference> options_that_differ() {
  const auto& [sharding, replication, batch_size, bag_length, balance, mesh_ranks] =
      planner::PlanOptions{};
  (void)sharding;
  return {{SHARDREC_OPTION_SHARDING, "SHARDING", "row_wise"},
          {SHARDREC_OPTION_REPLICATION, "REPLICATION", "dense"},
          {SHARDREC_OPTION_BATCH_SIZE, "BATCH_SIZE", "17"},
          {SHARDREC_OPTION_BAG_LENGTH, "BAG_LENGTH", "2.5"},
          {SHARDREC_OPTION_BALANCE, "BALANCE", "time"}};
}

TEST(PlanFields, OfOptionsAreComparedOneByOneAndNamed) {
  run_ranks(2, [&](shardrec_comm* comm, int rank) {
    const Model model = handle_of(plan::model_of_all_fields());
    for (const OptionDifference& difference : options_that_differ()) {
      SCOPED_TRACE(difference.name);
      Options options;
      EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, options.out()));
      if (rank == 1) {
        EXPECT_OK(shardrec_options_set_text(options, difference.option, difference.value));
      }
      expect_mismatch(comm, model, options,
                      {std::string("SHARDREC_OPTION_") + difference.name, difference.value});
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

}  // namespace
}  // namespace shardrec::test
