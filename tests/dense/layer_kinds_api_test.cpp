// shardrec_mlp_add and shardrec_mlp_set_f64: what they accept, refuse and promise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "capi/capi_test.h"
#include "support/layers.h"

namespace shardrec::test {
namespace {

shardrec_tensor matrix(std::vector<float>& data, int64_t rows, int64_t cols) {
  shardrec_tensor view{};
  EXPECT_OK(shardrec_tensor_matrix(data.data(), SHARDREC_FLOAT32, rows, cols, &view));
  return view;
}

Mlp stack(int64_t inputs) {
  Mlp mlp;
  EXPECT_OK(shardrec_mlp_create(inputs, nullptr, mlp.out()));
  return mlp;
}

shardrec_layers info_of(const shardrec_mlp* mlp) {
  shardrec_layers info{};
  info.struct_size = sizeof info;
  EXPECT_OK(shardrec_mlp_info(mlp, &info));
  return info;
}

TEST(LayerKindsApi, LayersAreCountedAsAddedAndParametersAsTheyAre) {
  const Mlp mlp = stack(4);
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_DROPOUT, .rate = 0.5}));
  EXPECT_EQ(info_of(mlp).layers, 1);
  EXPECT_EQ(info_of(mlp).parameters, 0);
  EXPECT_EQ(info_of(mlp).outputs, 4);
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_LAYER_NORM}));
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_CROSS}));
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_CROSS, .rank = 3}));
  ASSERT_OK(add_linear(mlp, 5, SHARDREC_ACTIVATION_RELU));
  const shardrec_layers info = info_of(mlp);
  EXPECT_EQ(info.layers, 5);
  EXPECT_EQ(info.parameters, 0 + 2 + 2 + 3 + 2);
  EXPECT_EQ(info.elements, (4 + 4) + (16 + 4) + (12 + 12 + 4) + (20 + 5));
  EXPECT_EQ(info.outputs, 5);
  shardrec_tensor down{};
  ASSERT_OK(shardrec_mlp_parameter(mlp, 4, &down, nullptr));
  EXPECT_EQ(down.shape[0], 3);
  EXPECT_EQ(down.shape[1], 4);
}

TEST(LayerKindsApi, WrongLayersAreRefusedWithASentenceAndLeaveTheStack) {
  const Mlp mlp = stack(3);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto refuses = [&](const char* what, const shardrec_layer& layer, const char* sentence) {
    return MalformedCall{what, [&mlp, layer] { return add_layer(mlp, layer); },
                         SHARDREC_INVALID_ARGUMENT, sentence};
  };
  constexpr int32_t kCross = SHARDREC_LAYER_CROSS, kNorm = SHARDREC_LAYER_LAYER_NORM,
                    kDropout = SHARDREC_LAYER_DROPOUT;
  expect_refused({
      {"no layer", [&] { return shardrec_mlp_add(mlp, nullptr); }, SHARDREC_INVALID_ARGUMENT,
       "layer is NULL"},
      {"no size",
       [&] {
         const shardrec_layer layer{.outputs = 2};
         return shardrec_mlp_add(mlp, &layer);
       },
       SHARDREC_INVALID_ARGUMENT, "layer.struct_size is 0"},
      refuses("kind 4", {.kind = 4}, "there is no layer kind number 4; LINEAR, CROSS"),
      refuses("kind -1", {.kind = -1}, "there is no layer kind number -1"),
      refuses("no outputs", {}, "cannot have 0 outputs; 1 .. 65536 is accepted"),
      refuses("linear with a rank", {.outputs = 2, .rank = 1},
              "rank of a linear layer is 1; 0 is accepted"),
      refuses("cross with outputs", {.kind = kCross, .outputs = 3},
              "outputs of a cross layer is 3; 0 is accepted"),
      refuses("cross with an activation", {.kind = kCross, .activation = SHARDREC_ACTIVATION_RELU},
              "activation of a cross layer is 1; NONE is accepted"),
      refuses("rank -1", {.kind = kCross, .rank = -1},
              "rank of a cross layer is -1; 0 .. 65536 is accepted"),
      refuses("rank 65537", {.kind = kCross, .rank = 65537}, "rank of a cross layer is 65537"),
      refuses("cross with epsilon", {.kind = kCross, .epsilon = 0.5},
              "epsilon of a cross layer is 0.5; 0 is accepted"),
      refuses("epsilon -1", {.kind = kNorm, .epsilon = -1},
              "epsilon of a layer norm layer is -1; 1e-30 .. 1e30 is accepted"),
      refuses("epsilon that float32 has not", {.kind = kNorm, .epsilon = 1e-50}, "1e-50"),
      refuses("epsilon NaN", {.kind = kNorm, .epsilon = kNan},
              "epsilon of a layer norm layer is nan"),
      refuses("layer norm with a rate", {.kind = kNorm, .rate = 0.5},
              "rate of a layer norm layer is 0.5; 0 is accepted"),
      refuses("rate 1", {.kind = kDropout, .rate = 1},
              "rate of a dropout layer is 1; a number from 0 to below 1 is accepted"),
      refuses("rate -0.1", {.kind = kDropout, .rate = -0.1}, "rate of a dropout layer is -0.1"),
      refuses("rate NaN", {.kind = kDropout, .rate = kNan}, "rate of a dropout layer is nan"),
      refuses("dropout with outputs", {.kind = kDropout, .outputs = 3},
              "outputs of a dropout layer"),
      {"a member of a later release",
       [&] {
         struct {
           shardrec_layer known;
           int64_t later;
         } layer = {.known = {.struct_size = sizeof layer, .outputs = 2}, .later = 1};
         return shardrec_mlp_add(mlp, &layer.known);
       },
       SHARDREC_UNSUPPORTED, "layer is a struct of a later release"},
  });
  EXPECT_EQ(info_of(mlp).layers, 0);
  EXPECT_EQ(info_of(mlp).elements, 0);
}

TEST(LayerKindsApi, LayersAreRefusedAfterTheFirstForward) {
  const Mlp mlp = stack(2);
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_CROSS}));
  std::vector<float> x(6, 1), y(6);
  const shardrec_tensor input = matrix(x, 3, 2), output = matrix(y, 3, 2);
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  for (const int32_t kind :
       {SHARDREC_LAYER_CROSS, SHARDREC_LAYER_LAYER_NORM, SHARDREC_LAYER_DROPOUT}) {
    EXPECT_EQ(add_layer(mlp, {.kind = kind}), SHARDREC_INVALID_STATE);
    EXPECT_TRUE(contains(shardrec_last_error(), "after the first forward"));
  }
}

TEST(LayerKindsApi, AStackWithoutParametersTrains) {
  const Mlp mlp = stack(2);
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_DROPOUT, .rate = 0.5}));
  std::vector<float> x(6, 1), y(6), dx(6);
  const shardrec_tensor input = matrix(x, 3, 2), output = matrix(y, 3, 2),
                        gradient = matrix(dx, 3, 2);
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  ASSERT_OK(shardrec_mlp_backward(mlp, &input, &gradient));
  EXPECT_EQ(y, dx);
  ASSERT_OK(shardrec_mlp_zero_gradients(mlp));
  ASSERT_OK(shardrec_mlp_step(mlp));
  EXPECT_EQ(info_of(mlp).step, 1);
}

TEST(LayerKindsApi, SettingsAreCheckedAndTrainingTurnsDropoutOff) {
  const Mlp mlp = stack(4);
  ASSERT_OK(add_layer(mlp, {.kind = SHARDREC_LAYER_DROPOUT, .rate = 0.75}));
  expect_refused({
      {"training 0.5", [&] { return shardrec_mlp_set_f64(mlp, SHARDREC_MLP_TRAINING, 0.5); },
       SHARDREC_INVALID_ARGUMENT, "TRAINING is 0.5; 0 or 1 is accepted"},
      {"training NaN",
       [&] {
         return shardrec_mlp_set_f64(mlp, SHARDREC_MLP_TRAINING,
                                     std::numeric_limits<double>::quiet_NaN());
       },
       SHARDREC_INVALID_ARGUMENT, "TRAINING is nan"},
      {"learning rate -1",
       [&] { return shardrec_mlp_set_f64(mlp, SHARDREC_MLP_LEARNING_RATE, -1); },
       SHARDREC_INVALID_ARGUMENT, "LEARNING_RATE is -1; a finite number, 0 or more, is accepted"},
      {"no setting",
       [&] { return shardrec_mlp_set_f64(mlp, static_cast<shardrec_mlp_setting>(9), 1); },
       SHARDREC_INVALID_ARGUMENT, "there is no setting number 9; LEARNING_RATE and TRAINING"},
  });
  std::vector<float> x(400, 1), y(400);
  const shardrec_tensor input = matrix(x, 100, 4), output = matrix(y, 100, 4);
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  EXPECT_NE(x, y) << "in training at first";
  ASSERT_OK(shardrec_mlp_set_f64(mlp, SHARDREC_MLP_TRAINING, 0));
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  EXPECT_EQ(x, y);
  ASSERT_OK(shardrec_mlp_set_f64(mlp, SHARDREC_MLP_TRAINING, 1));
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  EXPECT_NE(x, y);
}

}  // namespace
}  // namespace shardrec::test
