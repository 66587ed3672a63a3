// Sharded parameters on every engine: the values and states of DDP over 20 steps, in bits where sums are the same.
#include "dense/fsdp/fsdp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
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

TEST_P(FsdpConformance, AUnitThatARankDidNotMarkIsNamedOnAllRanksAndTheyGoOn) {
  for (const int ranks : engine().worlds) {
    run_well(engine(), ranks, [&](Communicator& communicator) {
      ShardedModel model({.world = dense::borrowed(communicator)}, false, {}, kUnits,
                         dense::optimizer_of(SHARDREC_OPTIMIZER_SGD));
      dense::Fsdp& fsdp = model.fsdp();
      fsdp.commit();
      model.fill();
      const int silent = ranks - 1;
      model.forward(true);
      model.backward_of_all(
          0, communicator.rank() == silent ? std::optional<size_t>(2) : std::nullopt);
      fsdp.end();
      const auto error = error_of([&] { fsdp.wait(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
      EXPECT_EQ(error->parts().rank, silent);
      EXPECT_EQ(error->parts().position, 2);
      EXPECT_NE(error->sentence().find("unit \"u2\""), std::string::npos) << error->sentence();
      model.train({.optimizer = SHARDREC_OPTIMIZER_SGD, .steps = 2});
      fsdp.check_equal();
    });
  }
}

TEST_P(FailureConformance, RanksThatUnshardDifferentUnitsAreToldBoth) {
  const int ranks = *std::max_element(engine().worlds.begin(), engine().worlds.end());
  if (ranks < 2) return;
  for (const auto& [rank, error] : run(engine(), ranks, [&](Communicator& communicator) {
         ShardedModel model({.world = dense::borrowed(communicator)}, false, {}, kUnits,
                            std::nullopt);
         model.fsdp().commit();
         model.fsdp().begin(true);
         const int64_t unit = communicator.rank() == 1 ? 2 : 0;
         model.fsdp().unshard(unit);
         model.fsdp().wait_unshard(unit);
       })) {
    ASSERT_TRUE(error) << "rank " << rank;
    EXPECT_EQ(error->status(), SHARDREC_MISMATCH) << error->sentence();
    for (const char* name : {"all_gather of unit \"u0\"", "all_gather of unit \"u2\""}) {
      EXPECT_NE(error->sentence().find(name), std::string::npos) << error->sentence();
    }
  }
}

// A model of four units in its third step; reach() is called where a rank may die.
void step_sharded(dense::Fsdp& fsdp, ShardedModel& model, const std::function<void()>& reach) {
  fsdp.begin(true);
  reach();
  for (int64_t u = 0; u < 4; ++u) {
    fsdp.unshard(u);
    if (u == 1) reach();
    fsdp.wait_unshard(u);
    fsdp.reshard(u);
  }
  for (size_t u = 4; u-- > 0;) {
    if (u == 2) reach();
    model.backward(u, 2);
    if (u == 2) reach();
  }
  fsdp.end();
  reach();
  fsdp.wait();
  reach();
  fsdp.clip_gradients(SHARDREC_CLIP_L2, 0.25);
  reach();
  fsdp.step();
  reach();
  std::vector<float> one(static_cast<size_t>(fsdp.parameters()[0].elements));
  fsdp.gather(0, SHARDREC_FSDP_VALUES, one);
  reach();
  fsdp.scatter(0, SHARDREC_FSDP_VALUES, one, 0);
  fsdp.check_equal();
}
constexpr int kPlacesOfAStep = 9;

std::vector<float> values_here(dense::Fsdp& fsdp) {
  std::vector<float> values;
  for (size_t p = 0; p < fsdp.parameters().size(); ++p) {
    const auto part = fsdp.shard(static_cast<int64_t>(p), SHARDREC_FSDP_VALUES).elements;
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

// The others are told of it, and still have their shards, as they were before the step that failed or are after it.
TEST_P(FailureConformance, ARankThatDiesInAShardedStepEndsItForAllOthers) {
  const int ranks = *std::max_element(engine().worlds.begin(), engine().worlds.end());
  if (ranks < 2) return;
  for (int place = 0; place < kPlacesOfAStep; ++place) {
    SCOPED_TRACE(testing::Message() << "place " << place);
    for (const auto& [rank, error] : run(engine(), ranks, [&](Communicator& communicator) {
           ShardedModel model({.world = dense::borrowed(communicator)}, false, {}, kUnits,
                              dense::optimizer_of(SHARDREC_OPTIMIZER_LAMB));
           dense::Fsdp& fsdp = model.fsdp();
           fsdp.commit();
           model.fill();
           model.train({.optimizer = SHARDREC_OPTIMIZER_LAMB, .steps = 2});
           int reached = 0;
           const auto reach = [&] {
             if (communicator.rank() == 1 && reached == place) {
               core::fail(SHARDREC_INTERNAL, "this rank dies here");
             }
             ++reached;
           };
           const std::vector<float> before = values_here(fsdp);
           const auto died = error_of([&] { step_sharded(fsdp, model, reach); });
           ASSERT_TRUE(died);
           if (communicator.rank() == 1) throw *died;
           const auto again = error_of([&] { fsdp.begin(true); });
           ASSERT_TRUE(again);
           EXPECT_EQ(again->status(), SHARDREC_PEER_FAILED) << again->sentence();
           const std::vector<float> left = values_here(fsdp);
           const bool has_stepped = left != before;
           // A rank that dies behind its step may leave others in theirs.
           if (place != 7) {
             EXPECT_EQ(has_stepped, place > 7);
           }
           throw *died;
         })) {
      ASSERT_TRUE(error) << "rank " << rank;
      if (rank == 1) {
        EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
        continue;
      }
      EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
      EXPECT_EQ(error->parts().rank, 1) << error->sentence();
      EXPECT_EQ(error->parts().operation.find("fsdp: "), 0U) << error->sentence();
      // They have begun the step, wait for its shards or gradients, and say of which unit.
      if (place > 0 && place < 4) {
        EXPECT_NE(error->parts().operation.find(" of unit \"u"), std::string::npos)
            << error->sentence();
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::comm
