// Sharded parameters on every engine: the values and states of DDP over 20 steps, in bits where sums are the same.
#include "dense/fsdp/fsdp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "conformance/engine.h"
#include "dense/sharded_parameters.h"

namespace shardrec::comm {
namespace {

using dense::kUnits;
using dense::ShardedModel;
using dense::Trained;
using dense::TrainingPlan;

void expect_same(const Trained& sharded, const Trained& whole, float tolerance) {
  ASSERT_EQ(sharded.values.size(), whole.values.size());
  for (size_t i = 0; i < whole.values.size(); ++i) {
    ASSERT_NEAR(sharded.values[i], whole.values[i], tolerance) << "element " << i;
  }
  ASSERT_EQ(sharded.states.size(), whole.states.size());
  for (size_t s = 0; s < whole.states.size(); ++s) {
    for (size_t i = 0; i < whole.states[s].size(); ++i) {
      ASSERT_NEAR(sharded.states[s][i], whole.states[s][i], tolerance) << "state " << s;
    }
  }
}

TEST_P(FsdpConformance, TwentyStepsOfEveryStrategyAreThoseOfDdp) {
  for (const int ranks : engine().worlds) {
    for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP,
                                SHARDREC_FSDP_HYBRID_SHARD, SHARDREC_FSDP_NO_SHARD}) {
      const bool mesh = strategy == SHARDREC_FSDP_HYBRID_SHARD;
      if (mesh && ranks % 2 != 0) continue;
      SCOPED_TRACE(testing::Message() << ranks << " ranks, strategy " << strategy);
      run_well(engine(), ranks, [&](Communicator& communicator) {
        const TrainingPlan plan{.optimizer = SHARDREC_OPTIMIZER_ADAM};
        const Trained whole = dense::train_ddp(communicator, kUnits, plan);
        ShardedModel model(mesh ? dense::mesh_of(communicator, 2)
                                : dense::FsdpGroups{.world = dense::borrowed(communicator)},
                           mesh, {.strategy = strategy}, kUnits,
                           dense::optimizer_of(plan.optimizer));
        model.fsdp().commit();
        model.fill();
        expect_same(model.train(plan), whole, 0);
        model.fsdp().check_equal();
      });
    }
  }
}

TEST_P(FsdpConformance, AccumulationClippingAndTrustRatiosAreThoseOfDdp) {
  for (const int ranks : engine().worlds) {
    run_well(engine(), ranks, [&](Communicator& communicator) {
      const TrainingPlan plan{
          .optimizer = SHARDREC_OPTIMIZER_LAMB, .steps = 6, .micro_steps = 2, .clip = 0.25};
      const Trained whole = dense::train_ddp(communicator, kUnits, plan);
      ShardedModel model({.world = dense::borrowed(communicator)}, false, {}, kUnits,
                         dense::optimizer_of(plan.optimizer));
      model.fsdp().commit();
      model.fill();
      const Trained sharded = model.train(plan);
      expect_same(sharded, whole, 2e-5F);
      EXPECT_NEAR(sharded.norm, whole.norm, 1e-5 * whole.norm);
    });
  }
}

}  // namespace
}  // namespace shardrec::comm
