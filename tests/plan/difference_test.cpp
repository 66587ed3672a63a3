// Ranks that bring different models are told which rank, table, feature and value differ first.
#include "plan/model/difference.h"

#include <gtest/gtest.h>

#include <functional>

namespace shardrec::plan {
namespace {

Model two_tables() {
  Model model;
  model.tables.push_back({.name = "user", .rows = 943, .dim = 64});
  model.tables.push_back({.name = "item", .rows = 1682, .dim = 64});
  model.features.push_back({.name = "user_id", .table = 0});
  model.features.push_back({.name = "item_id", .table = 1});
  return model;
}

struct Case {
  const char* what;
  std::function<void(Model&)> change;
  const char* sentence;
  const char* table = "";
  const char* feature = "";
};

TEST(FirstDifference, NamesTheRankTheTableTheFeatureAndBothValues) {
  const Case cases[] = {
      {"rows", [](Model& m) { m.tables[1].rows = 7; },
       "the number of rows of table \"item\" is 7 on rank 3 and 1682 on rank 0", "item"},
      {"the first of two", [](Model& m) { m.tables[0].dim = m.tables[1].dim = 8; },
       "the dim of table \"user\" is 8 on rank 3 and 64 on rank 0", "user"},
      {"name", [](Model& m) { m.tables[0].name = "users"; },
       "the name of table 0 is \"users\" on rank 3 and \"user\" on rank 0", "user"},
      {"fewer tables", [](Model& m) { m.tables.pop_back(); },
       "the number of tables (the first one that is missing is \"item\") is 1 on rank 3 and 2 on "
       "rank 0",
       "item"},
      {"pooling", [](Model& m) { m.features[1].pooling = SHARDREC_POOLING_MEAN; },
       "the pooling of feature \"item_id\" is mean on rank 3 and sum on rank 0", "", "item_id"},
      {"fewer features", [](Model& m) { m.features.pop_back(); },
       "the number of features is 1 on rank 3 and 2 on rank 0"},
      {"optimizer", [](Model& m) { m.optimizer.learning_rate = 0.5; },
       "the learning rate is 0.5 on rank 3 and 0.01 on rank 0"},
      {"a table's own optimizer", [](Model& m) { m.tables[1].optimizer = m.optimizer; },
       "the choice of the optimizer of table \"item\" is \"its own\" on rank 3 and \"the model's\" "
       "on rank 0",
       "item"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const Model reference = two_tables();
    Model other = two_tables();
    one.change(other);
    ASSERT_NE(model_fingerprint(reference), model_fingerprint(other));
    const core::Error error = first_difference(reference, other, 3);
    EXPECT_EQ(error.status(), SHARDREC_DISAGREEMENT);
    EXPECT_NE(std::string(error.sentence()).find(one.sentence), std::string::npos)
        << error.sentence();
    EXPECT_EQ(error.parts().rank, 3);
    EXPECT_EQ(error.parts().table, one.table);
    EXPECT_EQ(error.parts().feature, one.feature);
  }
}

}  // namespace
}  // namespace shardrec::plan
