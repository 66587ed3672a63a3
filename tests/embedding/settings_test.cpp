// What the settings of a model's tables make of each step.
#include "embedding/tables/settings.h"

#include <gtest/gtest.h>

#include "plan/model/model.h"

namespace shardrec::test {
namespace {

plan::Model model_of(const plan::Optimizer& optimizer) {
  plan::Model model;
  plan::add_table(model, {.name = "t", .rows = 4, .dim = 2});
  plan::set_optimizer(model, optimizer);
  return model;
}

// lr / (sqrt(h / 4) + eps) is 2 * lr / (sqrt(h) + 2 * eps), also with a rate that is set later; decays are those of lr.
TEST(TrainingSettings, TakeTheMomentumScaleIntoEachStep) {
  plan::Optimizer optimizer{.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                            .learning_rate = 0.25,
                            .eps = 0.5,
                            .weight_decay = 0.125,
                            .weight_decay_mode = SHARDREC_WEIGHT_DECAY_DECOUPLE,
                            .momentum_scale = 4};
  const plan::Model decoupled = model_of(optimizer);
  embedding::TrainingSettings settings(decoupled, 0);
  EXPECT_EQ(settings.step_after(0)[0].optimizer.learning_rate, 0.5F);
  settings.set_learning_rate(1);
  const compute::OptimizerStep step = settings.step_after(1)[0].optimizer;
  EXPECT_EQ(step.learning_rate, 2);
  EXPECT_EQ(step.eps, 1);
  EXPECT_EQ(step.weight_decay, 0.0625F);
  // The rate of a row is in L2's decay already.
  optimizer.weight_decay_mode = SHARDREC_WEIGHT_DECAY_L2;
  const plan::Model of_l2 = model_of(optimizer);
  EXPECT_EQ(embedding::TrainingSettings(of_l2, 0).step_after(0)[0].optimizer.weight_decay, 0.125F);
}

}  // namespace
}  // namespace shardrec::test
