// Sets of DDP parameters whose gradients NCCL adds up: sums within the bounds of their dtype, the same on all ranks, and
// all else that a set does as where sums are ordered. Of two ranks a sum has one order: its bits are those of the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "dense_device/ddp_sets.h"
#include "device/held_streams.h"

namespace shardrec::dense {
namespace {

using namespace sets;

// The job with sums by NCCL.
Job by_nccl(Job job) {
  job.options.reducer.reduction = BucketReduction::kNccl;
  return job;
}

void expect_as_where_ordered(const Job& job) {
  const Outcome expected = run(job, {});
  const Outcome there = run(by_nccl(job), Way::kNccl);
  EXPECT_FALSE(expected.gradients[0].empty());
  EXPECT_TRUE(there == expected);
}

std::vector<double> numbers_of(const Bytes& bytes, shardrec_dtype dtype) {
  std::vector<double> numbers(bytes.size() / core::dtype_size(dtype));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::byte* const at = bytes.data() + i * core::dtype_size(dtype);
    if (dtype == SHARDREC_FLOAT64) {
      std::memcpy(&numbers[i], at, sizeof(double));
    } else {
      float number = 0;
      convert(at, dtype, &number, SHARDREC_FLOAT32, 1);
      numbers[i] = number;
    }
  }
  return numbers;
}

// The gradients that a rank brings to a step.
std::vector<double> own_gradients(int rank, int step, shardrec_dtype dtype, double largest) {
  Place here(-1);
  Model model(here, rank, dtype);
  for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, step, largest);
  return numbers_of(model.all_gradients(), dtype);
}

// Halves of the distance of two numbers near 1, and the least number that keeps all bits.
double unit_of(shardrec_dtype dtype) {
  return std::ldexp(1, dtype == SHARDREC_FLOAT64   ? -53
                       : dtype == SHARDREC_FLOAT32 ? -24
                       : dtype == SHARDREC_FLOAT16 ? -11
                                                   : -8);
}
double least_of(shardrec_dtype dtype) {
  return std::ldexp(1, dtype == SHARDREC_FLOAT64 ? -1022 : dtype == SHARDREC_FLOAT16 ? -14 : -126);
}

// Each number is the scaled sum over the ranks, but for a rounding of each number that goes, of each sum and of
// what is made of it, in the dtype of the way.
void expect_sums(const Outcome& outcome, const Job& job, double scale) {
  const ReducerOptions& reducer = job.options.reducer;
  const shardrec_dtype way = job.dtype == SHARDREC_FLOAT32 ? reducer.wire : job.dtype;
  const bool saturates = way != job.dtype && way == SHARDREC_FLOAT16;
  std::vector<std::vector<double>> given;
  for (int rank = 0; rank < job.ranks; ++rank) {
    given.push_back(own_gradients(rank, 0, job.dtype, job.largest));
  }
  const double room = way == SHARDREC_FLOAT16 ? headroom({}, job.ranks) : 1;
  const std::vector<double> sums = numbers_of(outcome.gradients[0], job.dtype);
  ASSERT_EQ(sums.size(), given[0].size());
  for (size_t i = 0; i < sums.size(); ++i) {
    double sum = 0, magnitude = 0;
    for (const std::vector<double>& numbers : given) {
      const double number = saturates ? std::clamp(numbers[i], -65504.0, 65504.0) : numbers[i];
      sum += number;
      magnitude += std::abs(number);
    }
    const double roundings = job.ranks + 3;
    const double bound = roundings * unit_of(way) * (magnitude + job.ranks * least_of(way) * room);
    ASSERT_NEAR(sums[i], sum * scale, std::abs(scale) * bound + 1e-300) << i;
  }
  for (const Bytes& others : outcome.gradients) EXPECT_TRUE(others == outcome.gradients[0]);
}

TEST(DdpByNccl, SumsOfAnyDtypeAreWithinItsBounds) {
  for (const shardrec_dtype dtype :
       {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(testing::Message() << core::dtype_name(dtype) << ", " << ranks << " ranks");
      Job job{.ranks = ranks, .dtype = dtype, .body = [](Communicator&, Ddp& ddp, Model& model) {
                take_step(ddp, model, 0);
              }};
      job.options.reducer.average = ranks != 2;
      job.options.reducer.factor = 0.75;
      const Outcome there = run(by_nccl(job), Way::kNccl);
      expect_sums(there, job, job.options.reducer.average ? 0.75 / ranks : 0.75);
      // Of two the order is one; in float16 and bfloat16 what is ordered is rounded once.
      EXPECT_TRUE(ranks == 2 || there.gradients != run(job, {}).gradients);
    }
  }
}

TEST(DdpByNccl, CompressedSumsAreWithinTheBoundsOfTheWay) {
  for (const shardrec_dtype wire : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(testing::Message() << core::dtype_name(wire) << ", " << ranks << " ranks");
      Job job{.ranks = ranks, .largest = 80000, .body = [](Communicator&, Ddp& ddp, Model& model) {
                take_step(ddp, model, 0, 80000);
              }};
      job.options.reducer.wire = wire;
      job.options.reducer.average = false;
      const Outcome there = run(by_nccl(job), Way::kNccl);
      expect_sums(there, job, 1);
      EXPECT_TRUE(there.saturated == run(job, Way::kNccl).saturated);
      EXPECT_EQ(there.saturated[0] > 0, wire == SHARDREC_FLOAT16);
    }
  }
}

// 65504 of each rank: the sum is beyond float16, on the way and where gradients are of it the mean is not.
TEST(DdpByNccl, MeansOfTheLargestHalvesAreFinite) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT32, SHARDREC_FLOAT16}) {
    expect_none(run(Way::kNccl, 3, [&](Communicator& communicator) {
      Place place(0);
      DdpOptions options;
      options.caller_stream = place.stream_number();
      options.reducer.wire = SHARDREC_FLOAT16;
      options.reducer.reduction = BucketReduction::kNccl;
      std::byte* const values = place.allocate(64);
      std::byte* const gradient = place.allocate(64);
      constexpr float kLargest = 65504;
      Bytes largest(core::dtype_size(dtype));
      convert(&kLargest, SHARDREC_FLOAT32, largest.data(), dtype, 1);
      place.write(values, largest.data(), largest.size());
      place.write(gradient, largest.data(), largest.size());
      Ddp ddp(borrow(communicator), options);
      ddp.add("p", {1}, {.data = values, .size = 1, .dtype = dtype},
              {.data = gradient, .size = 1, .dtype = dtype}, 0);
      ddp.commit();
      ddp.all_reduce();
      EXPECT_NEAR(numbers_of(place.read(gradient, largest.size()), dtype)[0], kLargest, 64);
    }));
  }
}

TEST(DdpByNccl, StepsAfterStepsHaveTheBitsOfTwoRanks) {
  for (const Unused unused : {Unused::kError, Unused::kMark, Unused::kZero}) {
    Job job{.ranks = 2, .body = two_steps};
    job.options.reducer.unused = unused;
    job.options.reducer.factor = 0.3;
    expect_as_where_ordered(job);
  }
  Job alone{.ranks = 1, .body = two_steps};
  alone.options.reducer.factor = 0.3;
  expect_as_where_ordered(alone);
}

TEST(DdpByNccl, UnusedParametersStayOrAreZeros) {
  for (const Unused unused : {Unused::kMark, Unused::kZero}) {
    Job job{.ranks = 2, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
              for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 9, 1);
              take_step(ddp, model, 0, 1, false, [](size_t p) { return p == 6; });
              // Nobody uses 1; rank 0 alone uses 4; 6 was used before.
              take_step(ddp, model, 1, 1, true, [&](size_t p) {
                return p != 1 && p != 6 && (p != 4 || communicator.rank() == 0);
              });
            }};
    job.options.reducer.unused = unused;
    expect_as_where_ordered(job);
  }
}

// A rank that has not marked all is told of on all ranks, whose gradients stay, and the next step is a good one.
TEST(DdpByNccl, AStepThatIsNotReadyIsRefusedOnAllRanks) {
  const Job job{.ranks = 2, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
                  ddp.begin(true);
                  for (size_t p = 0; p < model.size(); ++p) {
                    model.write_gradient(p, 0, 1);
                    if (p == 4 && communicator.rank() == 1) continue;
                    ddp.mark_ready(static_cast<int64_t>(p), 1);
                  }
                  ddp.end();
                  const auto error = comm::error_of([&] { ddp.wait(); });
                  ASSERT_TRUE(error);
                  EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
                  EXPECT_EQ(error->parts().rank, 1);
                  take_step(ddp, model, 1);
                }};
  expect_as_where_ordered(job);
}

TEST(DdpByNccl, ARankThatHasJoinedGivesZeros) {
  for (const bool of_live : {false, true}) {
    Job job{.ranks = 2, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
              for (int step = 0; step <= communicator.rank(); ++step) take_step(ddp, model, step);
              ddp.join();
            }};
    job.options.reducer.divide_by_live = of_live;
    expect_as_where_ordered(job);
  }
}

TEST(DdpByNccl, TheOrderThatIsRecordedIsThatOfTheNextStep) {
  Job job{.ranks = 2, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
            std::vector<size_t> order = {3U, 0U, 7U, 1U, 4U, 2U, 6U, 5U};
            if (communicator.rank() == 1) std::reverse(order.begin(), order.end());
            for (int step = 0; step < 3; ++step) {
              ddp.begin(true);
              for (const size_t p : order) {
                model.write_gradient(p, step, 1);
                ddp.mark_ready(static_cast<int64_t>(p), 1);
              }
              ddp.end();
              ddp.wait();
            }
          }};
  job.options.reducer.order = BucketOrder::kRecorded;
  expect_as_where_ordered(job);
}

TEST(DdpByNccl, StepsAndClippingAreBehindTheSums) {
  for (const bool in_backward : {false, true}) {
    Job job{.ranks = 2,
            .optimizer = plan::Optimizer{.kind = SHARDREC_OPTIMIZER_ADAM, .learning_rate = 0.05},
            .body = [&](Communicator&, Ddp& ddp, Model& model) {
              for (int step = 0; step < 3; ++step) {
                take_step(ddp, model, step);
                if (in_backward) continue;
                ddp.clip_gradients(SHARDREC_CLIP_L2, 0.25);
                ddp.step();
              }
            }};
    job.options.step_in_backward = in_backward;
    expect_as_where_ordered(job);
  }
}

TEST(DdpByNccl, SumsThatAreNotFiniteAreSkipped) {
  Job job{.ranks = 2,
          .optimizer = plan::Optimizer{.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 0.1},
          .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
            ddp.begin(true);
            for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 0, 1);
            if (communicator.rank() == 1) {
              model.set_element(4, 30001, std::numeric_limits<float>::infinity());
            }
            ddp.mark_ready(0, static_cast<int64_t>(model.size()));
            ddp.end();
            ddp.wait();
            ddp.step();
          }};
  job.options.non_finite = SHARDREC_NON_FINITE_SKIP;
  expect_as_where_ordered(job);
}

TEST(DdpByNccl, ASetHasSeveralDtypes) {
  expect_none(run(Way::kNccl, 2, [](Communicator& communicator) {
    const int rank = communicator.rank();
    Place place(rank % 2), here(-1);
    DdpOptions options = small_buckets();
    options.caller_stream = place.stream_number();
    options.reducer.reduction = BucketReduction::kNccl;
    Model floats(place, rank, SHARDREC_FLOAT32), doubles(place, rank, SHARDREC_FLOAT64);
    Ddp ddp(borrow(communicator), options);
    floats.add_to(ddp);
    doubles.add_to(ddp, "q");
    ddp.commit();
    for (Model* model : {&floats, &doubles}) {
      for (size_t p = 0; p < model->size(); ++p) model->write_gradient(p, 0, 1);
    }
    ddp.all_reduce();
    for (const shardrec_dtype dtype : {SHARDREC_FLOAT32, SHARDREC_FLOAT64}) {
      const auto one = own_gradients(0, 0, dtype, 1), other = own_gradients(1, 0, dtype, 1);
      const auto means =
          numbers_of((dtype == SHARDREC_FLOAT32 ? floats : doubles).all_gradients(), dtype);
      for (size_t i = 0; i < means.size(); ++i) {
        ASSERT_NEAR(means[i], (one[i] + other[i]) / 2, unit_of(dtype)) << i;
      }
    }
  }));
}

// What is sent by messages are heads, and NCCL is given the bucket.
TEST(DdpByNccl, StatisticsTellWhatNcclWasGiven) {
  expect_none(run(Way::kNccl, 3, [](Communicator& communicator) {
    Place place(0);
    DdpOptions options = small_buckets();
    options.caller_stream = place.stream_number();
    options.reducer.reduction = BucketReduction::kNccl;
    options.reducer.wire = SHARDREC_BFLOAT16;
    Model model(place, communicator.rank(), SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.commit();
    ddp.all_reduce();
    for (const BucketStatistics& bucket : ddp.reducer().statistics().buckets) {
      EXPECT_EQ(bucket.bytes_sent, 2 * 64 + 2 * bucket.elements);
    }
  }));
}

// How a set on this place, with messages so, is refused by commit; "" if it is not.
std::string refusal(Way way, int ranks, bool on_device) {
  std::vector<std::string> sentences(static_cast<size_t>(ranks));
  expect_none(run(way, ranks, [&](Communicator& communicator) {
    Place place(on_device ? 0 : -1);
    Model model(place, communicator.rank(), SHARDREC_FLOAT32);
    for (const BucketReduction reduction : {BucketReduction::kNccl, BucketReduction::kOrdered}) {
      DdpOptions options = small_buckets();
      options.caller_stream = place.stream_number();
      options.reducer.reduction = reduction;
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      const auto error = comm::error_of([&] { ddp.commit(); });
      if (error) {
        EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
        EXPECT_EQ(reduction, BucketReduction::kNccl);
        sentences[static_cast<size_t>(communicator.rank())] = error->sentence();
      } else {
        ddp.all_reduce();
      }
    }
  }));
  for (const std::string& sentence : sentences) EXPECT_EQ(sentence, sentences[0]);
  return sentences[0];
}

TEST(DdpByNccl, WhereNcclIsNotBetweenTheDevicesItIsRefusedAndTheCommunicatorLives) {
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  for (const Way way : {Way::kShared, Way::kCopied}) {
    const std::string sentence = refusal(way, 2, true);
    EXPECT_TRUE(contains(sentence, "no NCCL is between the devices of the ranks")) << sentence;
  }
  for (const int ranks : {1, 2}) {
    const std::string sentence = refusal(Way::kNccl, ranks, false);
    EXPECT_TRUE(contains(sentence, "the parameters are on the CPU")) << sentence;
  }
  EXPECT_EQ(refusal(Way::kNccl, 2, true), "");
  EXPECT_EQ(refusal(Way::kShared, 1, true), "");
}

TEST(DdpByNccl, RanksAgreeOnWhoAddsUp) {
  const comm::Errors errors = run(Way::kNccl, 2, [](Communicator& communicator) {
    Place place(0);
    Model model(place, 0, SHARDREC_FLOAT32);
    DdpOptions options;
    if (communicator.rank() == 1) options.reducer.reduction = BucketReduction::kNccl;
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.commit();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_DISAGREEMENT);
    EXPECT_NE(error->sentence().find(
                  "rank 1 differs from rank 0: its option DDP_REDUCTION is NCCL, that of rank 0 "
                  "ORDERED"),
              std::string::npos)
        << error->sentence();
  }
}

class DdpStreamsByNccl : public test::HeldStreamsTest {};

// The stream in which one rank's gradients are written is held: no call but wait() waits for it.
TEST_F(DdpStreamsByNccl, TheHostWaitsInWaitAlone) {
  for (const bool own_thread : {false, true}) {
    expect_none(run(Way::kNccl, 2, [&](Communicator& communicator) {
      const bool is_held = communicator.rank() == 0;
      Place place(0);
      DdpOptions options = small_buckets();
      options.caller_stream = is_held ? caller_.number() : place.stream_number();
      options.reducer.own_thread = own_thread;
      options.reducer.reduction = BucketReduction::kNccl;
      Model model(place, communicator.rank(), SHARDREC_FLOAT32);
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      const std::vector<float> ones(5, 1), zeros(5, 0);
      std::byte* const source = place.allocate(20);
      place.write(source, ones.data(), 20);
      place.write(model.gradient(0), zeros.data(), 20);
      const auto step = [&] {
        ddp.begin(true);
        ddp.mark_ready(0, static_cast<int64_t>(model.size()));
        ddp.end();
      };
      if (is_held) {
        hold();
        caller_.copy(model.gradient(0), source, 20);
        EXPECT_TRUE(returns_while_held(step));
        EXPECT_TRUE(go_on_during([&] { ddp.wait(); }));
      } else {
        step();
        ddp.wait();
      }
      const auto half = numbers_of(place.read(model.gradient(0), 20), SHARDREC_FLOAT32);
      EXPECT_EQ(half, std::vector<double>(5, 0.5));
    }));
  }
}

// Nothing goes through the host, and nothing is allocated.
TEST_F(DdpStreamsByNccl, ASteadyStepCopiesNoGradientsAndAllocatesNothing) {
  auto* const copies = test::of_plugin<int64_t()>("simt_copies");
  auto* const allocations = test::of_plugin<int64_t()>("simt_live_allocations");
  std::array<int64_t, 2> counted{}, allocated{};
  expect_none(run(Way::kNccl, 2, [&](Communicator& communicator) {
    Place place(0);
    DdpOptions options = small_buckets();
    options.caller_stream = place.stream_number();
    options.reducer.reduction = BucketReduction::kNccl;
    Model model(place, communicator.rank(), SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.commit();
    comm::Collectives both(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                           2);
    constexpr comm::Operation kMeet{.name = "test", .kind = 99};
    for (size_t at = 0; at < 2; ++at) {
      for (int step = 0; step < (at == 0 ? 8 : 4); ++step) ddp.all_reduce();
      both.barrier(kMeet);
      if (communicator.rank() == 0) {
        counted[at] = copies();
        allocated[at] = allocations();
      }
      both.barrier(kMeet);
    }
  }));
  EXPECT_EQ(counted[1], counted[0]);
  EXPECT_EQ(allocated[1], allocated[0]);
}

}  // namespace
}  // namespace shardrec::dense
