// Data-parallel training on every engine: against one rank that has the whole batch, in float64, and
// bit for bit among the ranks.
#include "dense/ddp/ddp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "conformance/engine.h"
#include "dense/host_parameters.h"

namespace shardrec::comm {
namespace {

using dense::Ddp;
using dense::DdpOptions;
using dense::HostModel;
using dense::Unused;

// Not the communicator's owner: it lives as long as the test's body.
std::shared_ptr<Communicator> borrow(Communicator& communicator) {
  return {&communicator, [](Communicator*) {}};
}

// One bucket of several parameters, one of a large parameter, an empty one, tiny ones at the end.
const std::vector<int64_t> kSizes = {5, 30000, 7, 0, 15000, 1, 3, 100, 64};

DdpOptions options_with_small_buckets() {
  DdpOptions options;
  options.reducer.limits = {.first = 1 << 12, .others = 1 << 15};
  return options;
}

// micro_steps > 1: gradients add up, the last one is reduced.
void train(Communicator& communicator, Ddp& ddp, HostModel& model, int steps, int micro_steps) {
  for (int step = 0; step < steps; ++step) {
    for (int micro = 0; micro < micro_steps; ++micro) {
      ddp.begin(micro + 1 == micro_steps);
      if (micro == 0) model.zero_gradients();
      for (size_t p = model.size(); p-- > 0;) {
        model.backward(p, communicator.rank(), step * micro_steps + micro);
        ddp.mark_ready(static_cast<int64_t>(p), 1);
      }
      ddp.end();
      ddp.wait();
    }
    model.step();
  }
}

TEST_P(DdpConformance, TwentyStepsAreThoseOfOneRankWithTheWholeBatch) {
  for (const int ranks : engine().worlds) {
    for (const int micro_steps : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << micro_steps << " micro-steps");
      run_well(engine(), ranks, [&](Communicator& communicator) {
        HostModel model(kSizes);
        Ddp ddp(borrow(communicator), options_with_small_buckets());
        model.add_to(ddp);
        ddp.commit();
        train(communicator, ddp, model, 20, micro_steps);
        ddp.check_equal();
        model.expect_near_one_rank(ranks, 20, micro_steps);
      });
    }
  }
}

TEST_P(DdpConformance, AnyOrderFromSeveralThreadsGivesTheSameBits) {
  for (const int ranks : engine().worlds) {
    run_well(engine(), ranks, [&](Communicator& communicator) {
      std::vector<std::vector<float>> gradients;
      for (const bool at_once : {true, false}) {
        HostModel model(kSizes);
        DdpOptions options = options_with_small_buckets();
        options.reducer.own_thread = !at_once;
        if (!at_once) options.reducer.order = dense::BucketOrder::kRecorded;
        Ddp ddp(borrow(communicator), options);
        model.add_to(ddp);
        ddp.commit();
        std::mt19937 random(static_cast<unsigned>(communicator.rank()) + 7);
        for (int step = 0; step < 6; ++step) {
          model.zero_gradients();
          for (size_t p = 0; p < model.size(); ++p) model.backward(p, communicator.rank(), step);
          if (at_once) {
            ddp.all_reduce();
          } else {
            std::vector<int64_t> order(model.size());
            std::iota(order.begin(), order.end(), 0);
            std::shuffle(order.begin(), order.end(), random);
            ddp.begin(true);
            std::atomic<size_t> next{0};
            const auto mark = [&] {
              for (size_t i = next.fetch_add(1); i < order.size(); i = next.fetch_add(1)) {
                ddp.mark_ready(order[i], 1);
              }
            };
            std::thread one(mark);
            std::thread other(mark);
            mark();
            one.join();
            other.join();
            ddp.end();
            ddp.wait();
          }
          model.step();
        }
        gradients.push_back(model.all_values());
      }
      EXPECT_EQ(gradients[0], gradients[1]);
    });
  }
}

// More than may be in flight on a channel; with eight ranks each takes two exchanges.
TEST_P(DdpConformance, AnyNumberOfBucketsTravels) {
  for (const int ranks : engine().worlds) {
    for (const bool own_thread : {true, false}) {
      run_well(engine(), ranks, [&](Communicator& communicator) {
        HostModel model(std::vector<int64_t>(50, 10000));
        DdpOptions options;
        options.reducer.limits = {.first = 1, .others = 1};
        options.reducer.own_thread = own_thread;
        Ddp ddp(borrow(communicator), options);
        model.add_to(ddp);
        ddp.commit();
        EXPECT_EQ(ddp.reducer().buckets().size(), 50U);
        train(communicator, ddp, model, 3, 1);
        ddp.check_equal();
        model.expect_near_one_rank(ranks, 3, 1);
      });
    }
  }
}

TEST_P(DdpConformance, AParameterThatNoRankUsedKeepsItsGradientOrBecomesZero) {
  for (const int ranks : engine().worlds) {
    for (const Unused unused : {Unused::kMark, Unused::kZero}) {
      run_well(engine(), ranks, [&](Communicator& communicator) {
        const int rank = communicator.rank();
        HostModel model({50, 30000, 20, 10});
        DdpOptions options = options_with_small_buckets();
        options.reducer.unused = unused;
        options.reducer.average = false;
        Ddp ddp(borrow(communicator), options);
        model.add_to(ddp);
        ddp.commit();
        for (size_t p = 0; p < model.size(); ++p) {
          std::fill(model.gradient(p).begin(), model.gradient(p).end(), 3.0F);
        }
        // 0: by nobody; 1: by all; 2: by rank 0 alone; 3: by nobody, as said.
        ddp.begin(true);
        ddp.mark_unused(3, 1);
        ddp.mark_ready(1, 1);
        if (rank == 0) ddp.mark_ready(2, 1);
        ddp.end();
        ddp.wait();
        const float untouched = unused == Unused::kMark ? 3.0F : 0.0F;
        EXPECT_EQ(model.gradient(0), std::vector<float>(50, untouched));
        EXPECT_EQ(model.gradient(1), std::vector<float>(30000, 3.0F * static_cast<float>(ranks)));
        EXPECT_EQ(model.gradient(2), std::vector<float>(20, 3.0F));
        EXPECT_EQ(model.gradient(3), std::vector<float>(10, untouched));

        // What a step without sync has used counts in the next one with sync.
        std::fill(model.gradient(0).begin(), model.gradient(0).end(), 1.0F);
        ddp.begin(false);
        ddp.mark_ready(0, 1);
        ddp.end();
        ddp.begin(true);
        ddp.end();
        ddp.wait();
        EXPECT_EQ(model.gradient(0), std::vector<float>(50, static_cast<float>(ranks)));
      });
    }
  }
}

TEST_P(DdpConformance, RanksWithFewerBatchesJoinAndEndWithTheValuesOfTheLongest) {
  for (const int ranks : engine().worlds) {
    for (const bool live : {false, true}) {
      run_well(engine(), ranks, [&](Communicator& communicator) {
        const int rank = communicator.rank();
        HostModel model({40, 20000, 3});
        DdpOptions options = options_with_small_buckets();
        options.reducer.divide_by_live = live;
        Ddp ddp(borrow(communicator), options);
        model.add_to(ddp);
        ddp.set_optimizer({.learning_rate = 0.25});
        ddp.commit();
        const std::vector<float> first = model.all_values();
        // Rank r has r batches of the gradient 1: in step s, ranks - 1 - s of them are left.
        for (int step = 0; step < rank; ++step) {
          for (size_t p = 0; p < model.size(); ++p) {
            std::fill(model.gradient(p).begin(), model.gradient(p).end(), 1.0F);
          }
          ddp.all_reduce();
          ddp.step();
        }
        ddp.join();
        ddp.check_equal();
        double moved = 0;
        for (int step = 0; step + 1 < ranks; ++step) {
          const int at_work = ranks - 1 - step;
          moved += 0.25 * at_work / (live ? at_work : ranks);
        }
        const std::vector<float> last = model.all_values();
        for (size_t i = 0; i < last.size(); ++i) {
          ASSERT_NEAR(first[i] - last[i], moved, 1e-5 * (1 + moved)) << i;
        }
        EXPECT_EQ(ddp.optimizer()->steps(), ranks - 1);
        ddp.all_reduce();  // all take part again
      });
    }
  }
}

TEST_P(DdpConformance, CompressedGradientsAreWithinTheirRoundingAndTheSameOnAllRanks) {
  for (const int ranks : engine().worlds) {
    for (const shardrec_dtype wire : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
      run_well(engine(), ranks, [&](Communicator& communicator) {
        HostModel model(kSizes);
        DdpOptions options = options_with_small_buckets();
        options.reducer.wire = wire;
        Ddp ddp(borrow(communicator), options);
        model.add_to(ddp);
        ddp.commit();
        model.zero_gradients();
        std::vector<std::vector<double>> exact(model.size());
        std::vector<std::vector<double>> bound(model.size());
        const double unit = wire == SHARDREC_FLOAT16 ? 0x1p-11 : 0x1p-8;
        for (size_t p = 0; p < model.size(); ++p) {
          exact[p].resize(model.gradient(p).size());
          bound[p].resize(model.gradient(p).size());
          for (int r = 0; r < ranks; ++r) {
            model.zero_gradients();
            model.backward(p, r, 3);
            for (size_t i = 0; i < exact[p].size(); ++i) {
              exact[p][i] += static_cast<double>(model.gradient(p)[i]) / ranks;
              bound[p][i] += std::abs(static_cast<double>(model.gradient(p)[i])) / ranks;
            }
          }
        }
        model.zero_gradients();
        for (size_t p = 0; p < model.size(); ++p) model.backward(p, communicator.rank(), 3);
        ddp.all_reduce();
        bool rounded = false;
        for (size_t p = 0; p < model.size(); ++p) {
          for (size_t i = 0; i < exact[p].size(); ++i) {
            const double error = std::abs(static_cast<double>(model.gradient(p)[i]) - exact[p][i]);
            ASSERT_LE(error, 2.01 * unit * bound[p][i] + 0x1p-24);
            rounded = rounded || error > 1e-6 * bound[p][i];
          }
        }
        EXPECT_TRUE(rounded);
        model.step();
        ddp.check_equal();
      });
    }
  }
}

TEST_P(DdpConformance, AParameterThatARankDidNotMarkIsNamedOnAllRanksAndTheyGoOn) {
  for (const int ranks : engine().worlds) {
    run_well(engine(), ranks, [&](Communicator& communicator) {
      HostModel model(kSizes);
      Ddp ddp(borrow(communicator), options_with_small_buckets());
      model.add_to(ddp);
      ddp.commit();
      const int failed_rank = ranks - 1;
      ddp.begin(true);
      for (int64_t p = 0; p < static_cast<int64_t>(model.size()); ++p) {
        if (p != 4 || communicator.rank() != failed_rank) ddp.mark_ready(p, 1);
      }
      ddp.end();
      const auto error = error_of([&] { ddp.wait(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
      EXPECT_EQ(error->parts().rank, failed_rank);
      EXPECT_EQ(error->parts().position, 4);
      EXPECT_EQ(error->sentence(),
                "rank " + std::to_string(failed_rank) +
                    " did not mark parameter \"p4\" ready before the end of the step, and the "
                    "option DDP_UNUSED is ERROR; gradients are reduced in part");
      train(communicator, ddp, model, 2, 1);
      ddp.check_equal();
    });
  }
}

TEST_P(FailureConformance, ARankThatDiesInAStepEndsItForAllOthers) {
  const int ranks = *std::max_element(engine().worlds.begin(), engine().worlds.end());
  if (ranks < 2) return;
  for (int phase = 0; phase < 5; ++phase) {
    SCOPED_TRACE(testing::Message() << "phase " << phase);
    for (const auto& [rank, error] : run(engine(), ranks, [&](Communicator& communicator) {
           HostModel model(kSizes);
           Ddp ddp(borrow(communicator), options_with_small_buckets());
           model.add_to(ddp);
           ddp.commit();
           for (int step = 0; step < 4; ++step) {
             const auto maybe_die = [&](int at) {
               if (communicator.rank() == 1 && step == 2 && phase == at) {
                 core::fail(SHARDREC_INTERNAL, "this rank dies here");
               }
             };
             maybe_die(0);
             ddp.begin(true);
             maybe_die(1);
             ddp.mark_ready(4, 5);
             maybe_die(2);
             ddp.mark_ready(0, 4);
             maybe_die(3);
             ddp.end();
             maybe_die(4);
             ddp.wait();
           }
         })) {
      ASSERT_TRUE(error) << "rank " << rank;
      if (rank == 1) {
        EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
        continue;
      }
      EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
      EXPECT_EQ(error->parts().rank, 1) << error->sentence();
    }
  }
}

}  // namespace
}  // namespace shardrec::comm
