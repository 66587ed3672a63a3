// Sharded parameters against DDP, which has them whole: the same bits where sums are the same, else the
// same numbers within rounding; what is held, and what misuse says.
#include "dense/fsdp/fsdp.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <latch>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/world.h"
#include "dense/reference.h"
#include "dense/sharded_parameters.h"
#include "dense/sharded_ranks.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;
using test::same_bits;

constexpr shardrec_optimizer kOptimizers[] = {
    SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
    SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB};

void expect_same(const Trained& sharded, const Trained& whole, bool bits) {
  ASSERT_EQ(sharded.values.size(), whole.values.size());
  ASSERT_EQ(sharded.states.size(), whole.states.size());
  if (bits) {
    EXPECT_TRUE(same_bits(sharded.values, whole.values));
    for (size_t s = 0; s < whole.states.size(); ++s) {
      EXPECT_TRUE(same_bits(sharded.states[s], whole.states[s])) << "state " << s;
    }
    return;
  }
  const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 2e-6 + 2e-5 * std::abs(b[i])) << "element " << i;
    }
  };
  near(sharded.values, whole.values);
  for (size_t s = 0; s < whole.states.size(); ++s) near(sharded.states[s], whole.states[s]);
}

TEST(Fsdp, EveryStrategyTrainsAsDdpOver20StepsOfEachOptimizer) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const shardrec_optimizer kind : kOptimizers) {
      for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP,
                                  SHARDREC_FSDP_NO_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
        if (strategy == SHARDREC_FSDP_HYBRID_SHARD && ranks % 2 != 0) continue;
        SCOPED_TRACE(testing::Message()
                     << ranks << " ranks, optimizer " << kind << ", strategy " << strategy);
        run_well(ranks, [&](Communicator& communicator) {
          const TrainingPlan plan{.optimizer = kind};
          const Trained whole = train_ddp(communicator, kUnits, plan);
          ShardedModel model(groups_for(communicator, strategy, 2),
                             strategy == SHARDREC_FSDP_HYBRID_SHARD, {.strategy = strategy}, kUnits,
                             optimizer_of(kind));
          model.fsdp().commit();
          model.fill();
          // Of two or four ranks, the tree inside neighbouring pairs and over them is the tree over all.
          const bool bits =
              kind != SHARDREC_OPTIMIZER_LAMB || strategy == SHARDREC_FSDP_NO_SHARD || ranks == 1;
          expect_same(model.train(plan), whole, bits);
          model.fsdp().check_equal();
        });
      }
    }
  }
}

TEST(Fsdp, SevenRanksWithEmptyShardsAndReplicasAddedUpInPartsTrainAsDdp) {
  const UnitSizes units = {{5}, {70000, 3}, {90}};
  const TrainingPlan plan{.optimizer = SHARDREC_OPTIMIZER_ADAGRAD, .steps = 5};
  for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_NO_SHARD}) {
    run_well(7, [&](Communicator& communicator) {
      const Trained whole = train_ddp(communicator, units, plan);
      ShardedModel model({.world = borrowed(communicator)}, false, {.strategy = strategy}, units,
                         optimizer_of(plan.optimizer));
      model.fsdp().commit();
      model.fill();
      expect_same(model.train(plan), whole, true);
    });
  }
  run_well(6, [&](Communicator& communicator) {  // three replicas: a tree of trees
    const Trained whole = train_ddp(communicator, units, plan);
    ShardedModel model(mesh_of(communicator, 2), true, {.strategy = SHARDREC_FSDP_HYBRID_SHARD},
                       units, optimizer_of(plan.optimizer));
    model.fsdp().commit();
    model.fill();
    expect_same(model.train(plan), whole, false);
    model.fsdp().check_equal();
  });
}

TEST(Fsdp, AccumulationWithAndWithoutCommunicationIsTheSumOfTheMicroSteps) {
  for (const bool sync_each : {false, true}) {
    for (const auto strategy :
         {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_NO_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
      SCOPED_TRACE(testing::Message() << "sync in each: " << sync_each << ", " << strategy);
      const bool mesh = strategy == SHARDREC_FSDP_HYBRID_SHARD;
      run_well(mesh ? 4 : 3, [&](Communicator& communicator) {
        const TrainingPlan plan{.optimizer = SHARDREC_OPTIMIZER_SGD,
                                .steps = 6,
                                .micro_steps = 3,
                                .sync_each = sync_each};
        const Trained whole = train_ddp(communicator, kUnits, plan);
        ShardedModel model(groups_for(communicator, strategy, 2), mesh, {.strategy = strategy},
                           kUnits, optimizer_of(plan.optimizer));
        model.fsdp().commit();
        model.fill();
        expect_same(model.train(plan), whole, !sync_each);
        const auto json = nlohmann::json::parse(model.fsdp().statistics_json());
        EXPECT_EQ(json["steps"], sync_each ? 18 : 6);
        EXPECT_EQ(json["steps_without_sync"], sync_each ? 0 : 12);
        EXPECT_EQ(json["kept_gradient_bytes"] == 0, sync_each);
      });
    }
  }
}

TEST(Fsdp, TheNormOverShardsIsThatOfTheWholeGradientAndAllRanksScaleAlike) {
  run_well(4, [&](Communicator& communicator) {
    const TrainingPlan plan{.optimizer = SHARDREC_OPTIMIZER_SGD, .steps = 4, .clip = 0.25};
    const Trained whole = train_ddp(communicator, kUnits, plan);
    for (const bool mesh : {false, true}) {
      const auto strategy = mesh ? SHARDREC_FSDP_HYBRID_SHARD : SHARDREC_FSDP_FULL_SHARD;
      ShardedModel model(groups_for(communicator, strategy, 2), mesh, {.strategy = strategy},
                         kUnits, optimizer_of(plan.optimizer));
      model.fsdp().commit();
      model.fill();
      const Trained sharded = model.train(plan);
      EXPECT_GT(whole.norm, plan.clip);
      EXPECT_NEAR(sharded.norm, whole.norm, 1e-6 * whole.norm);
      expect_same(sharded, whole, false);
      double largest = 0;
      for (const float g : model.whole(SHARDREC_FSDP_GRADIENT)) {
        largest = std::max(largest, static_cast<double>(std::abs(g)));
      }
      EXPECT_EQ(model.fsdp().clip_gradients(SHARDREC_CLIP_INFINITY, 1e9), largest);
      const Fsdp::Shard part = model.fsdp().shard(4, SHARDREC_FSDP_GRADIENT);
      if (communicator.rank() % 2 == 1) part.elements[0] = std::nanf("");
      for (const shardrec_clip kind : {SHARDREC_CLIP_INFINITY, SHARDREC_CLIP_L2}) {
        EXPECT_TRUE(std::isnan(model.fsdp().clip_gradients(kind, 1))) << "NaN of another rank";
      }
    }
  });
}

TEST(Fsdp, ReadsAndWritesWholeParametersOfOneRankOrOfEach) {
  run_well(3, [&](Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {}, kUnits,
                       optimizer_of(SHARDREC_OPTIMIZER_ADAM));
    Fsdp& fsdp = model.fsdp();
    fsdp.commit();
    std::vector<float> given(5000), read(5000);
    for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i);
    const int64_t parameter = 4;
    for (const int32_t what : {0, 1, 2, 3}) {
      for (const int root : {2, -1}) {
        std::fill(read.begin(), read.end(), -1.0F);
        const bool gives = root < 0 || communicator.rank() == root;
        fsdp.scatter(parameter, what, gives ? std::span<const float>(given) : std::span<float>(),
                     root);
        fsdp.gather(parameter, what, read);
        EXPECT_TRUE(same_bits(read, given)) << "array " << what << ", root " << root;
        given[17] += 1;
      }
    }
    EXPECT_EQ(model.whole(SHARDREC_FSDP_VALUES)[0], 0) << "others are as commit made them";
  });
}

// The next units are gathered before they are asked for, in the order of the step before.
TEST(Fsdp, PrefetchFollowsTheOrderOfTheStepBeforeAndAnotherOrderHarmsNobody) {
  for (const int prefetch : {0, 1, 2}) {
    run_well(2, [&](Communicator& communicator) {
      ShardedModel model({.world = borrowed(communicator)}, false, {.prefetch = prefetch}, kUnits,
                         optimizer_of(SHARDREC_OPTIMIZER_SGD));
      Fsdp& fsdp = model.fsdp();
      fsdp.commit();
      model.fill();
      const auto number = [&](const char* name) {
        return nlohmann::json::parse(fsdp.statistics_json())[name].get<int64_t>();
      };
      model.pass(true, 0);
      EXPECT_EQ(number("prefetched"), 0);
      const int64_t first = number("gathers");
      EXPECT_EQ(first, 8);
      model.pass(true, 1);
      EXPECT_EQ(number("gathers") - first, prefetch == 0 ? 8 : 7)
          << "the last one stays for backward";
      EXPECT_EQ(number("prefetched"), prefetch == 0 ? 0 : 7);
      // Evaluation, in another order.
      fsdp.begin(false);
      for (const size_t unit : {3, 0, 2, 1, 3}) {
        const auto its = static_cast<int64_t>(unit);
        const int64_t index = std::array<int64_t, 4>{0, 3, 4, 7}[unit];
        fsdp.unshard(its);
        fsdp.wait_unshard(its);
        const auto* values =
            static_cast<const float*>(static_cast<const void*>(fsdp.parameter_values(index)));
        EXPECT_EQ(values[0], first_value(static_cast<size_t>(index), 0));
        fsdp.reshard(its);
      }
      fsdp.end();
      fsdp.wait();
      fsdp.zero_gradients();
      model.pass(true, 2);
      fsdp.step();
    });
  }
}

TEST(Fsdp, AsManyUnitsAreHeldAtOnceAsTheOptionSays) {
  run_well(2, [&](Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {.prefetch = 0, .held = 3}, kUnits,
                       std::nullopt);
    Fsdp& fsdp = model.fsdp();
    fsdp.commit();
    model.fill();
    fsdp.begin(false);
    for (const int64_t unit : {2, 0, 3}) fsdp.unshard(unit);
    const auto error = comm::error_of([&] { fsdp.unshard(1); });
    ASSERT_TRUE(error);
    EXPECT_NE(error->sentence().find("all 3 buffers"), std::string::npos) << error->sentence();
    for (const int64_t unit : {0, 2, 3}) fsdp.wait_unshard(unit);
    const auto first = [&](int64_t parameter) {
      return *static_cast<const float*>(static_cast<const void*>(fsdp.parameter_values(parameter)));
    };
    EXPECT_EQ(first(0), first_value(0, 0));
    EXPECT_EQ(first(4), first_value(4, 0));
    EXPECT_EQ(first(7), first_value(7, 0));
    for (const int64_t unit : {0, 2, 3}) fsdp.reshard(unit);
    fsdp.end();
    fsdp.wait();
  });
}

TEST(Fsdp, MisuseIsRefusedByItsRankAndTheStepGoesOn) {
  run_well(2, [&](Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {.prefetch = 0}, kUnits,
                       optimizer_of(SHARDREC_OPTIMIZER_SGD));
    Fsdp& fsdp = model.fsdp();
    const auto refused = [](const std::function<void()>& call, const char* words) {
      const auto error = comm::error_of(call);
      ASSERT_TRUE(error) << words;
      EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE) << error->sentence();
      EXPECT_NE(error->sentence().find(words), std::string::npos) << error->sentence();
    };
    refused([&] { fsdp.begin(true); }, "before commit");
    fsdp.commit();
    refused([&] { fsdp.commit(); }, "a second time");
    refused([&] { fsdp.add_unit("late"); }, "after commit");
    refused([&] { fsdp.unshard(0); }, "unshard was called before begin");
    fsdp.begin(true);
    refused([&] { fsdp.begin(true); }, "inside a step");
    refused([&] { fsdp.step(); }, "inside a step");
    refused([&] { fsdp.shard(0, 0); }, "inside a step");
    refused([&] { fsdp.wait_unshard(1); }, "\"u1\", which is not unsharded");
    refused([&] { fsdp.mark_ready(1); }, "\"u1\" were marked ready in a step in which it was not");
    refused([&] { fsdp.parameter_gradients(0); }, "\"u0\" was asked for in a step");
    fsdp.unshard(0);
    refused([&] { fsdp.parameter_values(0); }, "before wait_unshard");
    refused([&] { fsdp.unshard(0); }, "\"u0\" was unsharded twice");
    refused([&] { fsdp.unshard(1); },
            "unit \"u1\" was unsharded while all 1 buffers are held by units that were not "
            "resharded: \"u0\"");
    refused([&] { fsdp.end(); }, "unit \"u0\" is unsharded");
    fsdp.wait_unshard(0);
    fsdp.reshard(0);
    fsdp.unshard(1);
    fsdp.parameter_gradients(0);  // out of order: the next one gets memory of its own
    EXPECT_NE(fsdp.parameter_gradients(3), fsdp.parameter_gradients(0));
    fsdp.mark_ready(0);
    refused([&] { fsdp.mark_ready(0); }, "\"u0\" were marked ready twice");
    refused([&] { fsdp.parameter_gradients(0); }, "after they were marked ready");
    fsdp.mark_ready(1);
    refused([&] { fsdp.wait(); }, "without an end");
    fsdp.end();
    refused([&] { fsdp.unshard(0); }, "after end");
    fsdp.wait();
    for (const float g : model.whole(SHARDREC_FSDP_GRADIENT))
      ASSERT_EQ(g, 0) << "nothing was added";
    model.fill();
    model.pass(true, 0);
    fsdp.step();
  });
}

// Full parameters are the shards rounded once; gradients are rounded on their way and added up in float32.
TEST(Fsdp, In16BitsParametersAndGradientsAreRoundedOnceAndSumsAreFloat32) {
  for (const shardrec_dtype dtype : {SHARDREC_BFLOAT16, SHARDREC_FLOAT16}) {
    for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_NO_SHARD}) {
      SCOPED_TRACE(testing::Message() << "dtype " << dtype << ", strategy " << strategy);
      run_well(3, [&](Communicator& communicator) {
        ShardedModel model({.world = borrowed(communicator)}, false,
                           {.strategy = strategy, .parameter_dtype = dtype, .reduce_dtype = dtype},
                           {{700, 3}, {90}}, std::nullopt);
        Fsdp& fsdp = model.fsdp();
        fsdp.commit();
        model.fill();
        const auto rounded = [&](const std::vector<float>& values) {
          std::vector<uint16_t> narrow(values.size());
          convert(values.data(), SHARDREC_FLOAT32, narrow.data(), dtype,
                  static_cast<int64_t>(values.size()));
          return narrow;
        };
        std::vector<float> values(700), slopes(700);
        for (size_t i = 0; i < values.size(); ++i) values[i] = first_value(0, i);
        fsdp.begin(true);
        fsdp.unshard(0);
        fsdp.wait_unshard(0);
        const auto* seen =
            static_cast<const uint16_t*>(static_cast<const void*>(fsdp.parameter_values(0)));
        EXPECT_EQ(std::vector<uint16_t>(seen, seen + 700), rounded(values));
        const auto slope = [](int rank, size_t i) {
          return static_cast<float>(
              std::sin(static_cast<double>(rank * 700) + static_cast<double>(i)));
        };
        for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = slope(communicator.rank(), i);
        const std::vector<uint16_t> narrow = rounded(slopes);
        std::copy(narrow.begin(), narrow.end(),
                  static_cast<uint16_t*>(static_cast<void*>(fsdp.parameter_gradients(0))));
        fsdp.mark_ready(0);
        fsdp.end();
        fsdp.wait();
        std::vector<float> expected(700), of_rank(700), reduced(700);
        for (int rank = 0; rank < 3; ++rank) {
          for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = slope(rank, i);
          convert(rounded(slopes).data(), dtype, of_rank.data(), SHARDREC_FLOAT32, 700);
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += of_rank[i];
        }
        for (float& sum : expected) sum /= 3;
        fsdp.gather(0, SHARDREC_FSDP_GRADIENT, reduced);
        EXPECT_TRUE(same_bits(reduced, expected));
      });
    }
  }
}

TEST(Fsdp, TrainsNearlyAsInFloat32WithParametersIn16Bits) {
  run_well(4, [&](Communicator& communicator) {
    const TrainingPlan plan{.optimizer = SHARDREC_OPTIMIZER_SGD};
    const Trained whole = train_ddp(communicator, kUnits, plan);
    for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
      ShardedModel model(groups_for(communicator, strategy, 2),
                         strategy == SHARDREC_FSDP_HYBRID_SHARD,
                         {.strategy = strategy, .reduce_dtype = SHARDREC_BFLOAT16}, kUnits,
                         optimizer_of(plan.optimizer));
      model.fsdp().commit();
      model.fill();
      const Trained sharded = model.train(plan);
      for (size_t i = 0; i < whole.values.size(); ++i) {
        ASSERT_NEAR(sharded.values[i], whole.values[i], 0.02) << "element " << i;
      }
      model.fsdp().check_equal();
    }
  });
}

// Unit 2, on the rank.
std::optional<size_t> unmarked_by(const Communicator& communicator, int rank) {
  return communicator.rank() == rank ? std::optional<size_t>(2) : std::nullopt;
}

TEST(Fsdp, AUnitThatOneRankDidNotMarkIsNamedOnAllRanksAndTheOthersAreReduced) {
  for (const auto strategy :
       {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_HYBRID_SHARD, SHARDREC_FSDP_NO_SHARD}) {
    run_well(4, [&](Communicator& communicator) {
      ShardedModel model(groups_for(communicator, strategy, 2),
                         strategy == SHARDREC_FSDP_HYBRID_SHARD, {.strategy = strategy}, kUnits,
                         optimizer_of(SHARDREC_OPTIMIZER_SGD));
      Fsdp& fsdp = model.fsdp();
      fsdp.commit();
      model.fill();
      model.forward(true);
      model.backward_of_all(0, unmarked_by(communicator, 3));
      fsdp.end();
      const auto error = comm::error_of([&] { fsdp.wait(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
      EXPECT_EQ(error->parts().rank, 3);
      EXPECT_EQ(error->parts().position, 2);
      EXPECT_NE(error->sentence().find("unit \"u2\""), std::string::npos) << error->sentence();
      const std::vector<float> gradients = model.whole(SHARDREC_FSDP_GRADIENT);
      EXPECT_NE(gradients[0], 0) << "of unit 0";
      EXPECT_EQ(gradients[704], 0) << "of unit 2";
      fsdp.zero_gradients();
      model.pass(true, 1);  // the communicator lives on
      EXPECT_NE(model.whole(SHARDREC_FSDP_GRADIENT)[704], 0);
    });
  }
}

// Rank 1 marks unit 2 after its exchange of unit 0. Rank 0 needs a buffer for the gradients of unit 1, and the one of
// unit 3 is free by then: were it to wait for unit 2 as well, neither rank would go on.
TEST(Fsdp, ARankWaitsForNoMoreThanTheBufferThatItNeeds) {
  std::latch asks(1);  // rank 0, for unit 1
  run_well(2, [&](Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {.prefetch = 1, .held = 4}, kUnits,
                       std::nullopt);
    Fsdp& fsdp = model.fsdp();
    fsdp.commit();
    model.fill();
    model.forward(true);
    const auto take = [&](int64_t unit, int64_t parameter) {
      fsdp.unshard(unit);
      if (unit == 1 && communicator.rank() == 0) asks.count_down();
      fsdp.wait_unshard(unit);
      fsdp.parameter_gradients(parameter);
    };
    const bool is_late = communicator.rank() == 1;
    take(3, 7);
    if (!is_late) fsdp.mark_ready(3);
    take(2, 4);
    if (!is_late) fsdp.mark_ready(2);
    if (is_late) {
      asks.wait();
      fsdp.mark_ready(3);
    }
    take(1, 3);
    fsdp.mark_ready(1);
    take(0, 0);
    if (is_late) fsdp.mark_ready(2);
    fsdp.mark_ready(0);
    fsdp.end();
    fsdp.wait();
  });
}

// Element 4000 of the first parameter of unit 2 is in the shard of one rank of each replica group.
TEST(Fsdp, GradientsThatAreNoNumbersAreRefusedOrSkippedOnAllRanks) {
  for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP,
                              SHARDREC_FSDP_HYBRID_SHARD, SHARDREC_FSDP_NO_SHARD}) {
    for (const auto choice :
         {SHARDREC_NON_FINITE_ALLOW, SHARDREC_NON_FINITE_ERROR, SHARDREC_NON_FINITE_SKIP}) {
      run_well(4, [&](Communicator& communicator) {
        ShardedModel model(groups_for(communicator, strategy, 2),
                           strategy == SHARDREC_FSDP_HYBRID_SHARD,
                           {.strategy = strategy, .non_finite = choice}, kUnits,
                           optimizer_of(SHARDREC_OPTIMIZER_ADAM));
        Fsdp& fsdp = model.fsdp();
        fsdp.commit();
        model.fill();
        model.pass(true, 0);
        fsdp.step();
        const std::vector<float> before = model.whole(SHARDREC_FSDP_VALUES);
        fsdp.zero_gradients();
        model.forward(true);
        for (size_t unit = 4; unit-- > 0;) {
          if (unit == 2 && communicator.rank() == 1) {
            fsdp.unshard(2);
            fsdp.wait_unshard(2);
            void* const gradients = fsdp.parameter_gradients(4);
            static_cast<float*>(gradients)[4000] = std::numeric_limits<float>::infinity();
            fsdp.mark_ready(2);
          } else {
            model.backward(unit, 1);
          }
        }
        fsdp.end();
        const auto error = comm::error_of([&] { fsdp.wait(); });
        ASSERT_EQ(error.has_value(), choice == SHARDREC_NON_FINITE_ERROR);
        if (error) {
          EXPECT_EQ(error->status(), SHARDREC_INVALID_BATCH);
          EXPECT_EQ(error->parts().position, 4);
          EXPECT_EQ(error->parts().value, 4000);
          const bool is_cut = strategy != SHARDREC_FSDP_NO_SHARD;
          EXPECT_EQ(error->parts().rank > 0, is_cut) << error->sentence();
          EXPECT_NE(error->sentence().find("\"p4\" is NaN or infinite at element 4000"),
                    std::string::npos)
              << error->sentence();
        }
        const auto counted = nlohmann::json::parse(fsdp.statistics_json())["non_finite_steps"];
        EXPECT_EQ(counted, choice == SHARDREC_NON_FINITE_ALLOW ? 0 : 1);
        if (choice == SHARDREC_NON_FINITE_ERROR) return;
        std::vector<float> gradients(700), clipped(700);
        fsdp.gather(0, SHARDREC_FSDP_GRADIENT, gradients);
        EXPECT_FALSE(std::isfinite(fsdp.clip_gradients(SHARDREC_CLIP_L2, 1e-3)));
        fsdp.gather(0, SHARDREC_FSDP_GRADIENT, clipped);
        EXPECT_TRUE(same_bits(clipped, gradients));
        fsdp.step();
        EXPECT_EQ(same_bits(model.whole(SHARDREC_FSDP_VALUES), before),
                  choice == SHARDREC_NON_FINITE_SKIP);
        fsdp.zero_gradients();
        if (choice == SHARDREC_NON_FINITE_SKIP) {  // the next step counts, whatever its wait says
          model.forward(true);
          model.backward_of_all(2, unmarked_by(communicator, 3));
          fsdp.end();
          EXPECT_TRUE(comm::error_of([&] { fsdp.wait(); }));
        } else {
          model.pass(true, 2);
        }
        fsdp.step();
        EXPECT_FALSE(same_bits(model.whole(SHARDREC_FSDP_VALUES), before));
      });
    }
  }
}

TEST(Fsdp, RanksThatUnshardDifferentUnitsAreToldBothNames) {
  const auto errors = comm::run_ranks(2, [&](Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {}, kUnits, std::nullopt);
    model.fsdp().commit();
    model.fsdp().begin(true);
    const int64_t unit = communicator.rank() == 0 ? 0 : 2;
    model.fsdp().unshard(unit);
    model.fsdp().wait_unshard(unit);
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_MISMATCH);
    for (const char* name : {"all_gather of unit \"u0\"", "all_gather of unit \"u2\""}) {
      EXPECT_NE(error->sentence().find(name), std::string::npos) << error->sentence();
    }
  }
}

// Where rank 1 ends: the others are told, wherever they wait.
TEST(Fsdp, ARankThatEndsInsideAStepEndsTheWaitOfTheOthers) {
  for (int phase = 0; phase < 6; ++phase) {
    for (const auto strategy :
         {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_NO_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
      SCOPED_TRACE(testing::Message() << "phase " << phase << ", strategy " << strategy);
      const auto errors = comm::run_ranks(4, [&](Communicator& communicator) {
        ShardedModel model(groups_for(communicator, strategy, 2),
                           strategy == SHARDREC_FSDP_HYBRID_SHARD, {.strategy = strategy}, kUnits,
                           optimizer_of(SHARDREC_OPTIMIZER_SGD));
        Fsdp& fsdp = model.fsdp();
        fsdp.commit();
        model.fill();
        model.pass(true, 0);
        int reached = 0;
        const auto goes_on = [&] {
          if (communicator.rank() == 1 && reached++ == phase) {
            core::fail(SHARDREC_INTERNAL, "the host's own");
          }
        };
        fsdp.begin(true);
        goes_on();
        for (int64_t u = 0; u < 4; ++u) {
          fsdp.unshard(u);
          if (u == 1) goes_on();
          fsdp.wait_unshard(u);
          if (u == 2) goes_on();
          fsdp.reshard(u);
        }
        for (size_t u = 4; u-- > 0;) {
          if (u == 1) goes_on();
          model.backward(u, 1);
        }
        goes_on();
        fsdp.end();
        goes_on();
        fsdp.wait();
        fsdp.step();
        model.pass(true, 2);
      });
      for (size_t rank = 0; rank < errors.size(); ++rank) {
        ASSERT_TRUE(errors[rank]) << "rank " << rank;
        EXPECT_EQ(errors[rank]->status(), rank == 1 ? SHARDREC_INTERNAL : SHARDREC_PEER_FAILED)
            << errors[rank]->sentence();
      }
    }
  }
}

// A unit that one rank has not resharded where its buffers are needed: that rank is told at once, the others at
// their deadline.
TEST(Fsdp, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  std::latch told(1);
  const auto errors = comm::run_ranks(2, [&](Communicator& communicator) {
    ShardedModel model({.world = borrowed(communicator)}, false, {.prefetch = 0}, kUnits,
                       std::nullopt);
    Fsdp& fsdp = model.fsdp();
    fsdp.commit();
    communicator.set_deadlines({.step = 0.2, .setup = 60, .warn = 30});
    fsdp.begin(true);
    fsdp.unshard(0);
    fsdp.wait_unshard(0);
    if (communicator.rank() == 1) {
      const auto error = comm::error_of([&] { fsdp.unshard(1); });
      told.wait();
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
      communicator.check();
    }
    fsdp.reshard(0);
    fsdp.unshard(1);
    const auto error = comm::error_of([&] { fsdp.wait_unshard(1); });
    told.count_down();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
    EXPECT_EQ(error->parts().rank, 1);
    EXPECT_NE(error->sentence().find("all_gather of unit \"u1\""), std::string::npos)
        << error->sentence();
    throw *error;
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_TIMEOUT) << error->sentence();
  }
}

TEST(Fsdp, CommitNamesWhatDiffersAndTheCommunicatorLivesOn) {
  run_well(3, [&](Communicator& communicator) {
    const auto difference = [&](const std::function<void(Fsdp&, bool odd)>& add,
                                const std::string& sentence) {
      Fsdp fsdp({.world = borrowed(communicator)}, false, {});
      add(fsdp, communicator.rank() == 2);
      const auto error = comm::error_of([&] { fsdp.commit(); });
      ASSERT_TRUE(error) << sentence;
      EXPECT_EQ(error->status(), SHARDREC_DISAGREEMENT);
      EXPECT_EQ(error->sentence(), sentence);
      EXPECT_EQ(error->parts().rank, 2);
    };
    difference(
        [](Fsdp& fsdp, bool odd) {
          fsdp.add_unit("a");
          fsdp.add_parameter(0, "w", {2, odd ? 4 : 3});
        },
        "rank 2 differs from rank 0: its parameter \"w\" has shape [2, 4], that of rank 0 [2, 3]");
    difference(
        [](Fsdp& fsdp, bool odd) {
          fsdp.add_unit("a");
          fsdp.add_unit("b");
          fsdp.add_parameter(odd ? 1 : 0, "w", {2});
        },
        "rank 2 differs from rank 0: its list of units is \"a\" of 0 parameters, \"b\" of 1 "
        "parameters, that of rank 0 \"a\" of 1 parameters, \"b\" of 0 parameters");
    difference(
        [](Fsdp& fsdp, bool odd) {
          fsdp.add_unit("a");
          fsdp.add_unit("b");
          fsdp.add_parameter(odd ? 1 : 0, "v", {2});
          fsdp.add_parameter(odd ? 0 : 1, "w", {2});
        },
        "rank 2 differs from rank 0: its list of the units of parameters is 1, 0, that of rank 0 "
        "0, 1");
    difference(
        [](Fsdp& fsdp, bool odd) {
          fsdp.add_unit("a");
          fsdp.add_parameter(0, "w", {2});
          fsdp.set_optimizer(optimizer_of(odd ? SHARDREC_OPTIMIZER_SGD : SHARDREC_OPTIMIZER_ADAM));
        },
        "rank 2 differs from rank 0: its optimizer is sgd, that of rank 0 adam");
    ShardedModel model({.world = borrowed(communicator)}, false, {}, kUnits, std::nullopt);
    model.fsdp().commit();
    model.fill();
    model.pass(true, 0);
  });
}

TEST(Fsdp, CheckEqualNamesTheRankWhoseReplicaDiffers) {
  run_well(4, [&](Communicator& communicator) {
    ShardedModel model(mesh_of(communicator, 2), true, {.strategy = SHARDREC_FSDP_HYBRID_SHARD},
                       kUnits, optimizer_of(SHARDREC_OPTIMIZER_ADAM));
    model.fsdp().commit();
    model.fill();
    model.fsdp().check_equal();
    if (communicator.rank() == 3) model.fsdp().shard(4, SHARDREC_FSDP_STATE + 1).elements[0] = 1;
    const auto error = comm::error_of([&] { model.fsdp().check_equal(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->sentence(),
              "rank 3 differs from rank 1: the optimizer state of its parameter \"p4\"");
  });
}

// notes: 4 bytes for a value, a gradient and each state of a shard; full units in a ring.
TEST(Fsdp, MemoryOfARankIsThatOfItsShardsAndTheBuffers) {
  const UnitSizes units = {{40000, 100}, {60000, 200}, {20000, 50}, {60000, 10}};
  constexpr double kElements = 180360, kLargest = 60200, kRanks = 4;
  run_well(4, [&](Communicator& communicator) {
    const auto bytes = [&](const FsdpOptions& options) {
      ShardedModel model({.world = borrowed(communicator)}, false, options, units,
                         optimizer_of(SHARDREC_OPTIMIZER_ADAM));
      model.fsdp().commit();
      model.fill();
      if (options.parameter_dtype == SHARDREC_FLOAT32) {  // as the model computes
        model.train({.optimizer = SHARDREC_OPTIMIZER_ADAM, .steps = 3});
      }
      const auto json = nlohmann::json::parse(model.fsdp().statistics_json());
      double sum = 0;
      for (const char* name :
           {"value_bytes", "gradient_bytes", "state_bytes", "full_parameter_bytes",
            "full_gradient_bytes", "kept_gradient_bytes", "message_bytes"}) {
        sum += json[name].get<double>();
      }
      return sum;
    };
    const auto near = [](double seen, double expected) {
      EXPECT_NEAR(seen, expected, 0.05 * expected);
    };
    near(bytes({}), 16 * kElements / kRanks + (2 + 2) * 4 * kLargest);
    near(bytes({.prefetch = 0}), 16 * kElements / kRanks + (1 + 1) * 4 * kLargest);
    near(bytes({.strategy = SHARDREC_FSDP_SHARD_GRAD_OP}),
         16 * kElements / kRanks + 4 * kElements + 2 * 4 * kLargest);
    near(bytes({.parameter_dtype = SHARDREC_BFLOAT16, .reduce_dtype = SHARDREC_BFLOAT16}),
         18 * kElements / kRanks + (2 + 2) * 2 * kLargest);
  });
}

}  // namespace
}  // namespace shardrec::dense
