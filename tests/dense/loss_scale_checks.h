// What holds of stacks in float16 wherever they are: how their scale follows their gradients, which steps are skipped,
// and what the scale is for. Each check is of a place: the CPU or a device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/world.h"
#include "dense/ddp/layers.h"
#include "dense/layer_stacks.h"
#include "dense/reference.h"

namespace shardrec::dense::test {

struct Scaled {
  device::ContextOptions place;
  LossScaleOptions scale;
  plan::Optimizer optimizer = {.kind = SHARDREC_OPTIMIZER_ADAM, .learning_rate = 0.1};
  bool accumulate = false;
  Precision precision = Precision::kFloat16;
};

inline std::unique_ptr<Mlp> make_scaled(const StackOf& of, const Scaled& scaled) {
  return make(of, {.optimizer = scaled.optimizer,
                   .seed = 7,
                   .accumulate = scaled.accumulate,
                   .precision = scaled.precision,
                   .loss_scale = scaled.scale,
                   .place = scaled.place});
}

inline const StackOf& small_stack() {
  static const StackOf kStack{"small", 3, {linear(5), layer_norm(), linear(2, false)}};
  return kStack;
}

// A batch whose output gradient is about so large: NaN, infinite or 1e30 for an overflow.
inline void train(Mlp& mlp, float gradient, int64_t rows = 7, float input = 1) {
  Rows x(rows, mlp.inputs()), y(rows, mlp.outputs()), dy(rows, mlp.outputs());
  std::mt19937 random(3);
  x.fill(random);
  dy.fill(random);
  for (int64_t r = 0; r < rows; ++r) {
    x.at(r, 0) *= input;
    for (int64_t c = 0; c < mlp.outputs(); ++c) dy.at(r, c) *= gradient;
  }
  mlp.forward(x.view(), y.view());
  mlp.backward(dy.view(), {});
}

inline LossScaleState scale_of(Mlp& mlp) {
  mlp.fetch_loss_scale();
  return mlp.loss_scale();
}

// Values, states, and the number of steps.
inline std::vector<float> trained(Mlp& mlp) {
  mlp.fetch();
  const Parameters& parameters = mlp.parameters();
  std::vector<float> all(parameters.values(), parameters.values() + parameters.size());
  for (size_t s = 0; s < state_names(parameters.optimizer().kind).size(); ++s) {
    const float* const state = parameters.state(static_cast<int>(s));
    all.insert(all.end(), state, state + parameters.size());
  }
  all.push_back(static_cast<float>(parameters.steps()));
  return all;
}

inline void expect_scale(Mlp& mlp, double scale, int64_t finite_backwards) {
  const LossScaleState state = scale_of(mlp);
  EXPECT_EQ(state.scale, scale);
  EXPECT_EQ(state.finite_backwards, finite_backwards);
}

constexpr float kOverflow = 1e30F;

inline void check_that_the_scale_follows_gradients(const device::ContextOptions& place) {
  auto mlp = make_scaled(small_stack(), {.place = place, .scale = {.scale = 8, .steps = 3}});
  expect_scale(*mlp, 8, 0);
  for (int i = 1; i <= 2; ++i) {
    train(*mlp, 1);
    expect_scale(*mlp, 8, i);
  }
  train(*mlp, 1);
  expect_scale(*mlp, 16, 0);
  train(*mlp, 1);
  train(*mlp, 1);
  train(*mlp, kOverflow);
  expect_scale(*mlp, 8, 0);
  train(*mlp, 1);
  train(*mlp, std::nanf(""));
  expect_scale(*mlp, 4, 0);
  train(*mlp, 1, 7, std::nanf(""));
  train(*mlp, INFINITY);
  train(*mlp, kOverflow);
  train(*mlp, kOverflow);
  expect_scale(*mlp, 1, 0);
  train(*mlp, 1, 0);
  expect_scale(*mlp, 1, 0);  // of an empty batch
  train(*mlp, 1, 1);
  expect_scale(*mlp, 1, 1);
}

inline void check_the_bounds_of_the_scale(const device::ContextOptions& place) {
  auto largest =
      make_scaled(small_stack(), {.place = place, .scale = {.scale = 0x1p23, .steps = 1}});
  for (int i = 0; i < 3; ++i) train(*largest, 1e-6F);
  expect_scale(*largest, 0x1p24, 0);
  auto constant = make_scaled(small_stack(), {.place = place, .scale = {.scale = 32, .steps = 0}});
  for (const float gradient : {1.0F, kOverflow, 1.0F}) train(*constant, gradient);
  expect_scale(*constant, 32, 0);
  auto exact = make_scaled(small_stack(), {.place = place, .precision = Precision::kFloat32});
  train(*exact, 1);
  expect_scale(*exact, 1, 0);
}

// A skipped step is as if there had not been one, of no optimizer: the next one has the bias corrections of its own
// number.
inline void check_skipped_steps(const device::ContextOptions& place) {
  for (const shardrec_optimizer kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    SCOPED_TRACE(kind);
    const Scaled scaled{.place = place,
                        .scale = {.scale = 8, .steps = 0},
                        .optimizer = {.kind = kind,
                                      .learning_rate = 0.1,
                                      .weight_decay = 0.1,
                                      .weight_decay_mode = SHARDREC_WEIGHT_DECAY_L2}};
    auto mlp = make_scaled(small_stack(), scaled), undisturbed = make_scaled(small_stack(), scaled);
    const auto train_both = [&] {
      for (Mlp* each : {mlp.get(), undisturbed.get()}) {
        train(*each, 1);
        each->step();
      }
    };
    train_both();
    train_both();
    const std::vector<float> before = trained(*mlp);
    for (const float gradient : {kOverflow, std::nanf("")}) {
      train(*mlp, gradient);
      mlp->step();
      EXPECT_TRUE(same_bits(trained(*mlp), before)) << gradient;
    }
    EXPECT_EQ(scale_of(*mlp).skipped_steps, 2);
    train_both();
    const std::vector<float> after = trained(*mlp);
    EXPECT_FALSE(same_bits(after, before));
    EXPECT_TRUE(same_bits(after, trained(*undisturbed)));
    EXPECT_EQ(after.back(), 3);
    EXPECT_EQ(scale_of(*mlp).skipped_steps, 2);
  }
}

// One overflow among the batches that are added up skips the step; zeroed gradients do not.
inline void check_accumulated_overflows(const device::ContextOptions& place) {
  auto mlp = make_scaled(small_stack(),
                         {.place = place, .scale = {.scale = 8, .steps = 100}, .accumulate = true});
  train(*mlp, 1);
  train(*mlp, kOverflow);
  train(*mlp, 1);
  expect_scale(*mlp, 4, 1);  // the third one had finite gradients
  const std::vector<float> before = trained(*mlp);
  mlp->step();
  mlp->step();
  EXPECT_TRUE(same_bits(trained(*mlp), before));
  EXPECT_EQ(scale_of(*mlp).skipped_steps, 2);
  mlp->zero_gradients();
  train(*mlp, 1);
  mlp->step();
  EXPECT_FALSE(same_bits(trained(*mlp), before));
  EXPECT_EQ(mlp->parameters().steps(), 1);
}

// Gradients that float16 does not have are lost without a scale, and are nearly those of float32 with one.
inline void check_what_the_scale_is_for(const device::ContextOptions& place) {
  const auto step_by = [&](double scale, Precision precision) {
    auto mlp = make_scaled(small_stack(), {.place = place,
                                           .scale = {.scale = scale, .steps = 0},
                                           .optimizer = {.learning_rate = 0x1p26},
                                           .precision = precision});
    const std::vector<float> before = trained(*mlp);
    train(*mlp, 0x1p-28F);
    mlp->step();
    std::vector<float> moved = trained(*mlp);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= before[i];
    moved.pop_back();
    return moved;
  };
  const std::vector<float> exact = step_by(1, Precision::kFloat32);
  double largest = 0;
  for (const float move : exact) largest = std::max(largest, std::fabs(static_cast<double>(move)));
  EXPECT_GT(largest, 0.1);
  EXPECT_TRUE(same_bits(step_by(1, Precision::kFloat16), std::vector<float>(exact.size())));
  const std::vector<float> scaled = step_by(0x1p24, Precision::kFloat16);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(scaled[i], exact[i], 0.01 * largest) << i;
  }
}

// A rank overflows: no rank steps, whether the set or the stacks step, and only that rank's scale is halved.
inline void check_that_all_ranks_skip(const std::vector<device::ContextOptions>& places) {
  for (const bool set_steps : {true, false}) {
    std::vector<std::vector<float>> moved(2);
    const auto errors = comm::run_ranks(2, [&](comm::Communicator& communicator) {
      const auto rank = static_cast<size_t>(communicator.rank());
      const Scaled scaled{.place = places[rank], .scale = {.scale = 8, .steps = 100}};
      const std::shared_ptr<Mlp> mlp = make_scaled(small_stack(), scaled);
      DdpOptions options;
      if (set_steps) options.non_finite = SHARDREC_NON_FINITE_SKIP;
      const auto ddp = std::make_shared<Ddp>(
          std::shared_ptr<comm::Communicator>(&communicator, [](comm::Communicator*) {}), options);
      add_layers(ddp, "stack.", mlp);
      if (set_steps) ddp->set_optimizer(scaled.optimizer);
      ddp->commit();
      const auto step = [&](float gradient) {
        ddp->begin(true);
        train(*mlp, gradient);
        ddp->end();
        ddp->wait();
        if (set_steps) {
          ddp->step();
        } else {
          mlp->step();
        }
        return trained(*mlp);
      };
      const std::vector<float> first = step(1);
      EXPECT_TRUE(same_bits(step(rank == 1 ? kOverflow : 1), first));
      expect_scale(*mlp, rank == 1 ? 4 : 8, rank == 1 ? 0 : 2);
      EXPECT_EQ(scale_of(*mlp).skipped_steps, set_steps ? 0 : 1);
      moved[rank] = step(1);
      EXPECT_FALSE(same_bits(moved[rank], first));
      ddp->check_equal();
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
    EXPECT_TRUE(same_bits(moved[0], moved[1]));
  }
}

}  // namespace shardrec::dense::test
