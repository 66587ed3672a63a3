// Sharded parameters whose units come in other orders than one forward and one backward, ranks that call differently,
// and what is refused before anything is sent.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/host.h"
#include "dense/fsdp/fsdp.h"
#include "dense/reference.h"
#include "dense/sharded_parameters.h"
#include "dense/sharded_ranks.h"

namespace shardrec::dense {
namespace {

constexpr shardrec_fsdp_strategy kStrategies[] = {
    SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP, SHARDREC_FSDP_NO_SHARD,
    SHARDREC_FSDP_HYBRID_SHARD};

// Each tower goes forward and backward before the next one is asked for.
using Towers = std::vector<std::vector<size_t>>;

TEST(FsdpOrder, TowersThatAreTrainedInTurnHaveTheGradientsOfDdp) {
  for (const Towers& towers : {Towers{{0}, {1}, {2}, {3}}, Towers{{2, 0}, {1, 3}}}) {
    for (const auto strategy : kStrategies) {
      for (const int prefetch : {0, 1}) {
        SCOPED_TRACE(testing::Message() << towers.size() << " towers, strategy " << strategy
                                        << ", prefetch " << prefetch);
        run_well(4, [&](comm::Communicator& communicator) {
          const TrainingPlan plan{.optimizer = SHARDREC_OPTIMIZER_SGD, .steps = 3};
          const Trained whole = train_ddp(communicator, kUnits, plan);
          ShardedModel model(
              groups_for(communicator, strategy, 2), strategy == SHARDREC_FSDP_HYBRID_SHARD,
              {.strategy = strategy, .prefetch = prefetch}, kUnits, optimizer_of(plan.optimizer));
          Fsdp& fsdp = model.fsdp();
          fsdp.commit();
          model.fill();
          for (int step = 0; step < plan.steps; ++step) {
            fsdp.zero_gradients();
            fsdp.begin(true);
            for (const std::vector<size_t>& tower : towers) {
              for (const size_t unit : tower) {
                fsdp.unshard(static_cast<int64_t>(unit));
                fsdp.reshard(static_cast<int64_t>(unit));
              }
              for (size_t u = tower.size(); u-- > 0;) model.backward(tower[u], step);
            }
            fsdp.end();
            fsdp.wait();
            fsdp.step();
          }
          EXPECT_TRUE(test::same_bits(model.whole(SHARDREC_FSDP_VALUES), whole.values));
        });
      }
    }
  }
}

// Rank 1 reduces nothing in the first step: without the number of the step its second one would be added to rank 0's
// first.
TEST(FsdpOrder, RanksThatDifferInSyncAreTold) {
  for (const auto strategy : kStrategies) {
    SCOPED_TRACE(testing::Message() << "strategy " << strategy);
    const auto errors = comm::run_ranks(4, [&](comm::Communicator& communicator) {
      ShardedModel model(groups_for(communicator, strategy, 2),
                         strategy == SHARDREC_FSDP_HYBRID_SHARD, {.strategy = strategy}, kUnits,
                         optimizer_of(SHARDREC_OPTIMIZER_SGD));
      model.fsdp().commit();
      model.fill();
      model.pass(communicator.rank() != 1, 0);
      model.fsdp().step();
      model.pass(true, 1);
    });
    int mismatches = 0;
    for (const auto& error : errors) {
      ASSERT_TRUE(error);
      if (error->status() == SHARDREC_MISMATCH) ++mismatches;
    }
    EXPECT_GE(mismatches, 2);
  }
}

// Both buffers are free: the one whose gradients were sent before the other's is taken.
TEST(FsdpOrder, BuffersOfGradientsAreTakenInTurn) {
  run_well(1, [](comm::Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {}, kUnits, std::nullopt);
    Fsdp& fsdp = model.fsdp();
    fsdp.commit();
    for (int step = 0; step < 2; ++step) {
      fsdp.begin(true);
      for (int64_t u = 0; u < 4; ++u) {
        fsdp.unshard(u);
        fsdp.reshard(u);
      }
      std::vector<const std::byte*> memory;
      for (int64_t u = 4; u-- > 0;) {
        const int64_t first[] = {0, 3, 4, 7};
        memory.push_back(fsdp.parameter_gradients(first[u]));
        fsdp.mark_ready(u);
      }
      fsdp.end();
      fsdp.wait();
      EXPECT_NE(memory[0], memory[1]);
      EXPECT_EQ(memory[0], memory[2]);
      EXPECT_EQ(memory[1], memory[3]);
    }
  });
}

// A step without sync has kept gradients; in the next one rank 2 does not mark unit 2, and then trains on without
// zero_gradients. Whatever memory a rank had them in, they are gone on all.
TEST(FsdpOrder, GradientsOfAUnitThatWasRefusedAreForgottenOnAllRanks) {
  for (const auto strategy : kStrategies) {
    for (const bool keeps : {false, true}) {
      SCOPED_TRACE(testing::Message() << "strategy " << strategy << ", kept before: " << keeps);
      run_well(4, [&](comm::Communicator& communicator) {
        const auto model_of = [&] {
          return std::make_unique<ShardedModel>(
              groups_for(communicator, strategy, 2), strategy == SHARDREC_FSDP_HYBRID_SHARD,
              FsdpOptions{.strategy = strategy}, kUnits, std::nullopt);
        };
        const auto model = model_of();
        Fsdp& fsdp = model->fsdp();
        fsdp.commit();
        model->fill();
        if (keeps) model->pass(false, 7);
        fsdp.begin(true);
        for (int64_t u = 0; u < 4; ++u) {
          fsdp.unshard(u);
          fsdp.reshard(u);
        }
        for (size_t u = 4; u-- > 0;) {
          if (u != 2 || communicator.rank() != 2) {
            model->backward(u, 0);
          } else {
            fsdp.unshard(2);
            fsdp.parameter_gradients(4);
            fsdp.reshard(2);
          }
        }
        fsdp.end();
        const auto error = comm::error_of([&] { fsdp.wait(); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
        EXPECT_EQ(error->parts().rank, 2);
        EXPECT_EQ(error->parts().position, 2);
        model->pass(true, 1);
        const auto other = model_of();
        other->fsdp().commit();
        other->fill();
        other->pass(true, 1);
        std::vector<float> seen(5000), expected(5000);
        fsdp.gather(4, SHARDREC_FSDP_GRADIENT, seen);
        other->fsdp().gather(4, SHARDREC_FSDP_GRADIENT, expected);
        EXPECT_TRUE(test::same_bits(seen, expected));
      });
    }
  }
}

TEST(FsdpOrder, ValuesThatAreNoneOfTheSetsAreRefusedBeforeAnythingIsSent) {
  run_well(2, [](comm::Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {}, kUnits,
                       optimizer_of(SHARDREC_OPTIMIZER_ADAM));
    Fsdp& fsdp = model.fsdp();
    fsdp.commit();
    const auto status_of = [](const std::function<void()>& call) {
      const auto error = comm::error_of(call);
      return error ? error->status() : SHARDREC_OK;
    };
    for (const int32_t what : {std::numeric_limits<int32_t>::min(), -1, 4}) {
      EXPECT_EQ(status_of([&] { fsdp.shard(4, what); }), SHARDREC_NOT_FOUND) << what;
    }
    const std::vector<float> given(5000, 1.0F);
    for (const int32_t what : {SHARDREC_FSDP_VALUES, SHARDREC_FSDP_GRADIENT}) {
      EXPECT_EQ(status_of([&] { fsdp.scatter(4, what, given, 2); }), SHARDREC_INVALID_ARGUMENT);
      std::vector<float> seen(5000, -1.0F);
      fsdp.gather(4, what, seen);
      EXPECT_EQ(seen, std::vector<float>(5000)) << "as before";
    }
    model.fill();
    model.pass(true, 0);
  });
}

TEST(FsdpOrder, ASetThatNoMachineHoldsIsRefused) {
  run_well(1, [](comm::Communicator& communicator) {
    Fsdp counted({.world = borrowed(communicator)}, false, {});
    counted.add_unit("a");
    counted.add_unit("b");
    constexpr int64_t kHalf = int64_t{1} << 47;
    counted.add_parameter(0, "p", {kHalf});
    counted.add_parameter(1, "q", {kHalf - 64});
    counted.add_parameter(0, "r", {33});  // takes 64
    const auto error = comm::error_of([&] { counted.add_parameter(1, "s", {1}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(error->sentence().find("\"s\""), std::string::npos) << error->sentence();
  });
  // Each unit has room, all together have not.
  const auto errors = comm::run_ranks(1, [](comm::Communicator& communicator) {
    Fsdp fsdp({.world = borrowed(communicator)}, false, {.strategy = SHARDREC_FSDP_NO_SHARD});
    const auto room = static_cast<int64_t>(core::memory_room().least());
    for (int64_t u = 0; u < 16; ++u) {
      fsdp.add_unit("u" + std::to_string(u));
      fsdp.add_parameter(u, "p" + std::to_string(u), {room / 4 / 16});
    }
    fsdp.commit();
  });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->status(), SHARDREC_OUT_OF_MEMORY) << errors[0]->sentence();
}

}  // namespace
}  // namespace shardrec::dense
