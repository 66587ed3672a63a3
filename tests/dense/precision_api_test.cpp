// Precisions through the C++ header: options, checkpoints, DDP.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"
#include "support/one_nan.h"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Interaction;
using shardrec::Mlp;
using shardrec::MlpOptions;

constexpr int64_t kInputs = 9;
constexpr int64_t kBatch = 40;

// In FLOAT16 gradients of about 1 overflow at first, and the scale is doubled now and then.
Mlp make(shardrec_precision precision) {
  MlpOptions options;
  options.seed(21).threads(1).optimizer("adam").learning_rate(0.01).precision(precision);
  options.loss_scale(0x1p17).loss_scale_steps(2);
  Mlp mlp(kInputs, options);
  mlp.add_cross(2).add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
  return mlp;
}

std::vector<float> numbers(size_t count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  std::vector<float> all(count);
  for (float& number : all) number = normal(random);
  return all;
}

std::vector<float> train(Mlp& mlp, int first, int last) {
  std::vector<float> all;
  for (int step = first; step < last; ++step) {
    std::vector<float> x = numbers(kBatch * kInputs, step), dy = numbers(kBatch, step), y(kBatch);
    mlp.forward({x.data(), kBatch, kInputs}, {y.data(), kBatch, 1});
    all.insert(all.end(), y.begin(), y.end());
    mlp.backward({dy.data(), kBatch, 1});
    mlp.step();
  }
  return all;
}

// Outputs of steps, each followed by the scale behind it.
std::vector<float> outputs_and_scales(Mlp& mlp, int first, int last) {
  std::vector<float> all;
  for (int step = first; step < last; ++step) {
    const std::vector<float> outputs = train(mlp, step, step + 1);
    all.insert(all.end(), outputs.begin(), outputs.end());
    all.push_back(static_cast<float>(mlp.info().loss_scale));
  }
  return all;
}

std::vector<float> values_and_states(Mlp& mlp) {
  std::vector<float> all;
  for (int32_t p = 0; p < mlp.info().parameters; ++p) {
    const auto value = mlp.parameter(p).value;
    all.insert(all.end(), value.data<float>(), value.data<float>() + value.elements());
    for (int32_t s = 0; s < mlp.info().states; ++s) {
      const auto state = mlp.state(p, s);
      all.insert(all.end(), state.data<float>(), state.data<float>() + state.elements());
    }
  }
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

TEST(PrecisionApi, TheOptionChangesWhatAStackComputes) {
  for (const auto precision : {SHARDREC_PRECISION_BFLOAT16, SHARDREC_PRECISION_FLOAT16}) {
    Mlp exact = make(SHARDREC_PRECISION_FLOAT32), rounded = make(precision);
    EXPECT_TRUE(same(values_and_states(exact), values_and_states(rounded))) << "at first";
    const std::vector<float> a = train(exact, 0, 1), b = train(rounded, 0, 1);
    EXPECT_FALSE(same(a, b));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.1F * (1 + std::abs(a[i])));
  }
}

TEST(PrecisionApi, InfoHasTheLossScaleAndTheSkippedSteps) {
  Mlp exact = make(SHARDREC_PRECISION_FLOAT32), scaled = make(SHARDREC_PRECISION_FLOAT16);
  EXPECT_EQ(scaled.info().loss_scale, 0x1p17);
  (void)train(exact, 0, 2);
  (void)train(scaled, 0, 2);
  EXPECT_EQ(exact.info().loss_scale, 1);
  EXPECT_EQ(exact.info().skipped_steps, 0);
  EXPECT_EQ(exact.info().step, 2);
  EXPECT_EQ(scaled.info().loss_scale, 0x1p15);
  EXPECT_EQ(scaled.info().skipped_steps, 2);
  EXPECT_EQ(scaled.info().step, 0);
}

TEST(PrecisionApi, Tfloat32NeedsADeviceAndAnInteractionIgnoresIt) {
  EXPECT_EQ(status_of([] { (void)make(SHARDREC_PRECISION_TFLOAT32); }), SHARDREC_UNSUPPORTED);
  EXPECT_NE(std::string(shardrec_last_error()).find("TFLOAT32"), std::string::npos);
  Interaction interaction(2, 3, MlpOptions().precision(SHARDREC_PRECISION_TFLOAT32));
  EXPECT_EQ(interaction.outputs(), 3 + 3);
}

// Saved in one precision, gone on with in another; in the same one, the same bits, by the same scale.
TEST(PrecisionApi, CheckpointsAreLoadedInAllPrecisions) {
  constexpr shardrec_precision kAll[] = {SHARDREC_PRECISION_FLOAT32, SHARDREC_PRECISION_BFLOAT16,
                                         SHARDREC_PRECISION_FLOAT16};
  // In FLOAT16 behind the first of two backwards that double the scale, and behind the second.
  constexpr std::pair<shardrec_precision, int> kSaved[] = {{SHARDREC_PRECISION_FLOAT32, 7},
                                                           {SHARDREC_PRECISION_BFLOAT16, 7},
                                                           {SHARDREC_PRECISION_FLOAT16, 7},
                                                           {SHARDREC_PRECISION_FLOAT16, 8}};
  for (const auto& of : kSaved) {
    const shardrec_precision saved_in = of.first;
    const int last = of.second;
    Directory directory;
    run(1, [&](shardrec::Comm& comm, int) {
      Mlp mlp = make(saved_in);
      (void)train(mlp, 0, last);
      Checkpoint checkpoint(comm, directory.path());
      checkpoint.add("layers", mlp);
      checkpoint.commit(last);
      const std::vector<float> saved = values_and_states(mlp);
      const double scale = mlp.info().loss_scale;
      const std::vector<float> expected = outputs_and_scales(mlp, last, last + 5);
      for (const auto precision : kAll) {
        Mlp other = make(precision);
        (void)train(other, 0, 1);
        const double own_scale = other.info().loss_scale;
        Checkpoint again(comm, directory.path());
        again.add("layers", other);
        again.open();
        again.load();
        EXPECT_TRUE(same(values_and_states(other), saved));
        const bool is_same = precision == saved_in;
        EXPECT_EQ(other.info().loss_scale, is_same ? scale : own_scale);
        EXPECT_EQ(same(outputs_and_scales(other, last, last + 5), expected), is_same);
      }
      if (saved_in == SHARDREC_PRECISION_FLOAT16) {
        EXPECT_GT(mlp.info().step, 2);
        EXPECT_LT(scale, 0x1p17);
      }
    });
  }
}

}  // namespace
}  // namespace shardrec_test
