// Sets of DDP parameters on devices: the bits of the same set on the CPU, whichever way messages go.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "dense_device/ddp_sets.h"

namespace shardrec::dense {
namespace {

using namespace sets;

TEST(DdpOnDevice, AnyWorldHasTheBitsOfTheCpu) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    Job job{.ranks = ranks, .body = two_steps};
    expect_as_on_the_cpu(job);
    job.options.reducer.average = false;
    job.options.reducer.factor = 0.3;
    expect_as_on_the_cpu(job, {Way::kShared});
  }
  for (const int ranks : {9, 18}) {  // with sums that wait at several levels of the tree
    expect_as_on_the_cpu({.ranks = ranks, .body = two_steps}, {Way::kShared});
  }
}

TEST(DdpOnDevice, AnyDtypeHasTheBitsOfTheCpu) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT64, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {1, 2, 4}) {
      Job job{.ranks = ranks, .dtype = dtype, .body = two_steps};
      job.options.reducer.factor = 0.7;
      expect_as_on_the_cpu(job, {Way::kShared, Way::kCopied});
    }
  }
}

// Numbers beyond float16's range stay finite on the way, and are counted.
TEST(DdpOnDevice, CompressedMessagesHaveTheBitsOfTheCpu) {
  for (const shardrec_dtype wire : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {1, 2, 3, 4, 5}) {  // of 5, the largest bucket is added up in parts
      Job job{.ranks = ranks, .body = [](Communicator&, Ddp& ddp, Model& model) {
                take_step(ddp, model, 0, 80000);
                take_step(ddp, model, 1, 80000);
              }};
      job.options.reducer.wire = wire;
      job.options.reducer.average = false;
      job.options.reducer.factor = 3;
      expect_as_on_the_cpu(job);
      if (wire != SHARDREC_FLOAT16) continue;
      EXPECT_GT(run(job, Way::kShared).saturated[0], 0);
    }
  }
}

TEST(DdpOnDevice, UnusedParametersStayOrAreZeros) {
  for (const Unused unused : {Unused::kMark, Unused::kZero}) {
    for (const int ranks : {1, 3}) {
      Job job{.ranks = ranks, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
                for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 9, 1);
                take_step(ddp, model, 0, 1, false, [](size_t p) { return p == 6; });
                // Nobody uses 1; rank 0 alone uses 4; 6 was used before.
                take_step(ddp, model, 1, 1, true, [&](size_t p) {
                  return p != 1 && p != 6 && (p != 4 || communicator.rank() == 0);
                });
              }};
      job.options.reducer.unused = unused;
      expect_as_on_the_cpu(job, {Way::kShared, Way::kNccl});
    }
  }
}

TEST(DdpOnDevice, ARankThatHasJoinedSendsZeros) {
  Job job{.ranks = 3, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
            for (int step = 0; step <= communicator.rank(); ++step) take_step(ddp, model, step);
            ddp.join();
          }};
  job.options.reducer.divide_by_live = true;
  // Gradients of the last step differ by who took part in it.
  const Outcome expected = run(job, {});
  for (const Way way : kWays) EXPECT_TRUE(run(job, way) == expected) << name_of(way);
}

TEST(DdpOnDevice, TheOrderThatIsRecordedIsSentInTheNextStep) {
  Job job{.ranks = 2, .body = [](Communicator&, Ddp& ddp, Model& model) {
            for (int step = 0; step < 3; ++step) {
              ddp.begin(true);
              for (const size_t p : {3U, 0U, 7U, 1U, 4U, 2U, 6U, 5U}) {
                model.write_gradient(p, step, 1);
                ddp.mark_ready(static_cast<int64_t>(p), 1);
              }
              ddp.end();
              ddp.wait();
            }
          }};
  job.options.reducer.order = BucketOrder::kRecorded;
  expect_as_on_the_cpu(job, {Way::kShared, Way::kNccl});
}

TEST(DdpOnDevice, OptimizersStepWithTheBitsOfTheCpu) {
  for (const shardrec_optimizer kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    for (const bool in_backward : {false, true}) {
      SCOPED_TRACE(testing::Message() << "optimizer " << kind << ", in backward " << in_backward);
      Job job{.ranks = 2,
              .optimizer = plan::Optimizer{.kind = kind, .learning_rate = 0.05},
              .body = [&](Communicator&, Ddp& ddp, Model& model) {
                for (int step = 0; step < 3; ++step) {
                  take_step(ddp, model, step);
                  if (!in_backward) ddp.step();
                }
              }};
      job.options.step_in_backward = in_backward;
      expect_as_on_the_cpu(job, {Way::kShared});
    }
  }
}

// The norm is that of the CPU to the last bit, and so are the gradients behind it.
TEST(DdpOnDevice, ClippingHasTheBitsOfTheCpu) {
  for (const shardrec_dtype dtype :
       {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const shardrec_clip clip :
         {SHARDREC_CLIP_L2, SHARDREC_CLIP_INFINITY, SHARDREC_CLIP_VALUE}) {
      std::vector<double> norms;  // of the CPU, then of the device
      const Job job{.ranks = 1, .dtype = dtype, .body = [&](Communicator&, Ddp& ddp, Model& model) {
                      take_step(ddp, model, 0, dtype == SHARDREC_FLOAT64 ? 1e200 : 1);
                      norms.push_back(ddp.clip_gradients(clip, 0.25));
                      // Some more, for a root forgets the last bit of half of the sums.
                      for (int step = 1; step < 8; ++step) {
                        take_step(ddp, model, step);
                        norms.push_back(ddp.clip_gradients(clip, 1e300));
                      }
                    }};
      expect_as_on_the_cpu(job, {Way::kShared});
      ASSERT_EQ(norms.size(), 16U);
      EXPECT_GT(norms[0], 0.25);
      for (size_t n = 0; n < 8; ++n) EXPECT_EQ(norms[n], norms[n + 8]) << n;
    }
  }
}

// Float64 gradients whose squares are beyond float64, beside others.
TEST(DdpOnDevice, ANormOverSeveralDtypesIsThatOfTheCpu) {
  Place there(0);
  device::Gradients on_device(there.stream_pointer());
  GradientNorm on_host;
  core::Threads threads(1);
  std::vector<Bytes> kept;
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT64, SHARDREC_FLOAT32, SHARDREC_FLOAT16,
                                     SHARDREC_BFLOAT16, SHARDREC_FLOAT64}) {
    Model model(there, 3, dtype);
    const double of_double = kept.empty() ? 1e20 : 1e190;
    for (size_t p = 0; p < model.size(); ++p) {
      model.write_gradient(p, 1, dtype == SHARDREC_FLOAT64 ? of_double : 1);
      kept.push_back(there.read(model.gradient(p), model.bytes(p)));
      std::byte* const copy = there.allocate(model.bytes(p));
      there.write(copy, kept.back().data(), kept.back().size());
      const auto elements = static_cast<int64_t>(model.bytes(p) / core::dtype_size(dtype));
      on_host.add({.data = kept.back().data(), .size = elements, .dtype = dtype});
      on_device.add({.data = copy, .size = elements, .dtype = dtype});
    }
  }
  EXPECT_EQ(l2_norm(on_device), on_host.l2(threads));
  EXPECT_EQ(infinity_norm(on_device), on_host.infinity(threads));
  EXPECT_GT(on_host.l2(threads), 1e189);
}

TEST(DdpOnDevice, GradientsThatAreNotFiniteAreRefusedOrSkipped) {
  for (const shardrec_non_finite policy : {SHARDREC_NON_FINITE_ERROR, SHARDREC_NON_FINITE_SKIP}) {
    Job job{.ranks = 2,
            .optimizer = plan::Optimizer{.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 0.1},
            .body = [&](Communicator& communicator, Ddp& ddp, Model& model) {
              ddp.begin(true);
              for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 0, 1);
              if (communicator.rank() == 1) {
                model.set_element(4, 30001, std::numeric_limits<float>::infinity());
                model.set_element(4, 31000, std::numeric_limits<float>::quiet_NaN());
                model.set_element(6, 1, std::numeric_limits<float>::infinity());
              }
              ddp.mark_ready(0, static_cast<int64_t>(model.size()));
              ddp.end();
              const auto error = comm::error_of([&] { ddp.wait(); });
              ASSERT_EQ(error.has_value(), policy == SHARDREC_NON_FINITE_ERROR);
              if (error) {
                EXPECT_EQ(error->status(), SHARDREC_INVALID_BATCH);
                EXPECT_EQ(error->parts().position, 4);
                EXPECT_EQ(error->parts().value, 30001);
              } else {
                ddp.step();
              }
              for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 1, 1);
            }};
    job.options.non_finite = policy;
    expect_as_on_the_cpu(job, {Way::kShared});
  }
}

TEST(DdpOnDevice, ZeroGradientsAreZerosOfAnyDtype) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_BFLOAT16}) {
    const Job job{.ranks = 1, .dtype = dtype, .body = [](Communicator&, Ddp& ddp, Model& model) {
                    take_step(ddp, model, 0);
                    ddp.zero_gradients();
                    const Bytes all = model.all_gradients();
                    EXPECT_EQ(std::count(all.begin(), all.end(), std::byte{0}), std::ssize(all));
                  }};
    expect_as_on_the_cpu(job, {Way::kShared});
  }
}

// Memory of the library's and a flat tensor there.
TEST(DdpOnDevice, GradientsOfTheLibraryAndInOneTensorAreThere) {
  for (const bool flat : {false, true}) {
    expect_none(run(Way::kShared, 2, [&](Communicator& communicator) {
      Place place(communicator.rank());
      DdpOptions options;
      options.broadcast = flat;
      options.caller_stream = place.stream_number();
      std::byte* const values = place.allocate(64);
      std::byte* const gradients = place.allocate(64);
      Ddp ddp(borrow(communicator), options);
      const std::array<float, 5> numbers = {1, 2, 3, 4, 5};
      place.write(values, numbers.data(), sizeof numbers);
      ddp.add("a", {3}, {.data = values, .size = 3, .dtype = SHARDREC_FLOAT32}, {}, place.device());
      ddp.add("b", {2}, {.data = values + 12, .size = 2, .dtype = SHARDREC_FLOAT32}, {},
              place.device());
      if (flat) {
        ddp.set_flat_gradient({.data = gradients, .size = 5, .dtype = SHARDREC_FLOAT32},
                              place.device());
      }
      ddp.commit();
      if (flat) {
        EXPECT_EQ(ddp.parameter(1).gradient, gradients + 12);
      } else {
        EXPECT_EQ(place.read(ddp.parameter(0).gradient, 12), Bytes(12));
      }
      const std::array<float, 3> mine = {1, 2, static_cast<float>(10 * communicator.rank())};
      place.write(ddp.parameter(0).gradient, mine.data(), sizeof mine);
      place.write(ddp.parameter(1).gradient, mine.data(), 8);
      ddp.all_reduce();
      const Bytes sums = place.read(ddp.parameter(0).gradient, 12);
      std::array<float, 3> mean{};
      std::memcpy(mean.data(), sums.data(), sizeof mean);
      EXPECT_EQ(mean, (std::array<float, 3>{1, 2, 5}));
    }));
  }
}

TEST(DdpOnDevice, WhatASetCannotHoldOnADeviceIsRefused) {
  expect_none(comm::run_ranks(1, [](Communicator& communicator) {
    Place there(0), other(1), here(-1);
    const auto view = [](Place& place) {
      return core::FlatView{.data = place.allocate(64), .size = 4, .dtype = SHARDREC_FLOAT32};
    };
    Ddp ddp(borrow(communicator), {});
    ddp.add("a", {4}, view(there), {}, 0);
    for (Place* place : {&other, &here}) {
      const auto error =
          comm::error_of([&] { ddp.add("b", {4}, view(*place), {}, place->device()); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
      EXPECT_NE(error->sentence().find("all parameters of a set are on one"), std::string::npos);
    }
    ddp.set_hook([](int32_t, shardrec_dtype, std::span<std::byte>) {});
    const auto error = comm::error_of([&] { ddp.commit(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
  }));
}

TEST(DdpOnDevice, ACopyToTheHostInsideAStepIsRefused) {
  expect_none(run(Way::kShared, 1, [](Communicator& communicator) {
    Place place(0);
    DdpOptions options = small_buckets();
    options.caller_stream = place.stream_number();
    Model model(place, 0, SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.commit();
    ddp.begin(true);
    try {
      ddp.fetch();
      ADD_FAILURE() << "it was copied";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_STATE);
    }
    ddp.mark_ready(0, static_cast<int64_t>(model.size()));
    ddp.end();
    ddp.wait();
    ddp.fetch();
  }));
}

TEST(DdpOnDevice, RanksAgreeOnTheKindOfPlace) {
  const comm::Errors errors = comm::run_ranks(2, [](Communicator& communicator) {
    Place place(communicator.rank() == 0 ? -1 : 0);
    Model model(place, 0, SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), {});
    model.add_to(ddp);
    ddp.commit();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_DISAGREEMENT);
    EXPECT_NE(error->sentence().find("a CUDA device"), std::string::npos) << error->sentence();
  }
}

// A peer that goes in the middle of a step: the others are told, whatever their devices wait for.
TEST(DdpOnDevice, APeerThatGoesEndsTheStepOfTheOthers) {
  for (const Way way : kWays) {
    SCOPED_TRACE(name_of(way));
    const comm::Errors errors = run(way, 3, [&](Communicator& communicator) {
      Place place(communicator.rank() % 2);
      Model model(place, communicator.rank(), SHARDREC_FLOAT32);
      DdpOptions options = small_buckets();
      options.caller_stream = place.stream_number();
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      take_step(ddp, model, 0);
      if (communicator.rank() == 1) {
        ddp.begin(true);
        ddp.mark_ready(7, 1);
        core::fail(SHARDREC_INVALID_ARGUMENT, "it leaves");
      }
      take_step(ddp, model, 1);
    });
    for (const size_t rank : {0U, 2U}) {
      ASSERT_TRUE(errors[rank]);
      EXPECT_EQ(errors[rank]->status(), SHARDREC_PEER_FAILED) << errors[rank]->sentence();
    }
  }
}

}  // namespace
}  // namespace shardrec::dense
