// The C functions of layers.h, ddp.h and metrics.h: what they accept, refuse and promise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "capi/capi_test.h"
#include "support/layers.h"

namespace shardrec::test {
namespace {

using Interaction = Owned<shardrec_interaction, shardrec_interaction_destroy>;
using Metrics = Owned<shardrec_metrics, shardrec_metrics_destroy>;

shardrec_tensor matrix(std::vector<float>& data, int64_t rows, int64_t cols) {
  shardrec_tensor view{};
  EXPECT_OK(shardrec_tensor_matrix(data.data(), SHARDREC_FLOAT32, rows, cols, &view));
  return view;
}
shardrec_tensor vector(std::vector<float>& data) {
  shardrec_tensor view{};
  EXPECT_OK(shardrec_tensor_vector(data.data(), SHARDREC_FLOAT32, static_cast<int64_t>(data.size()),
                                   &view));
  return view;
}

Mlp small_stack(const shardrec_options* options = nullptr) {
  Mlp mlp;
  EXPECT_OK(shardrec_mlp_create(2, options, mlp.out()));
  EXPECT_OK(add_linear(mlp, 3, SHARDREC_ACTIVATION_RELU));
  EXPECT_OK(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE));
  return mlp;
}

TEST(LayersApi, ParametersAreCompactViewsOfTheShapesAndWritingThemSetsValues) {
  Mlp mlp = small_stack();
  shardrec_layers info{};
  info.struct_size = sizeof info;
  ASSERT_OK(shardrec_mlp_info(mlp, &info));
  const int32_t count = info.parameters;
  ASSERT_EQ(count, 4);
  const std::vector<std::vector<int64_t>> shapes = {{3, 2}, {3}, {1, 3}, {1}};
  for (int32_t p = 0; p < count; ++p) {
    shardrec_tensor value{}, gradient{};
    ASSERT_OK(shardrec_mlp_parameter(mlp, p, &value, &gradient));
    int64_t size = 1;
    for (const shardrec_tensor* view : {&value, &gradient}) {
      ASSERT_EQ(view->ndim, static_cast<int32_t>(shapes[static_cast<size_t>(p)].size()));
      EXPECT_EQ(view->dtype, SHARDREC_FLOAT32);
      EXPECT_EQ(view->device_type, SHARDREC_DEVICE_CPU);
      size = 1;
      for (int32_t d = view->ndim; d-- > 0;) {
        EXPECT_EQ(view->shape[d], shapes[static_cast<size_t>(p)][static_cast<size_t>(d)]);
        EXPECT_EQ(view->stride[d], size);
        size *= view->shape[d];
      }
    }
    for (int64_t i = 0; i < size; ++i) static_cast<float*>(value.data)[i] = 1;
    EXPECT_OK(shardrec_mlp_parameter(mlp, p, nullptr, nullptr));
  }
  std::vector<float> in = {1, 2, -9, 1}, out(2);
  const shardrec_tensor input = matrix(in, 2, 2), output = matrix(out, 2, 1);
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  EXPECT_EQ(out, (std::vector<float>{13, 1})) << "3 * relu(1 + 2 + 1) + 1; 3 * relu(-7) + 1";
}

TEST(LayersApi, ALinearModelLearnsALine) {
  Options options;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_MLP, options.out()));
  ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ADAM));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 0.05));
  Mlp mlp;
  ASSERT_OK(shardrec_mlp_create(1, options, mlp.out()));
  ASSERT_OK(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE));
  std::vector<float> x, y, out(64), gradient(64);
  for (int i = 0; i < 64; ++i) {
    x.push_back(static_cast<float>(i) / 32 - 1);
    y.push_back(3 * x.back() - 2);
  }
  const shardrec_tensor input = matrix(x, 64, 1), output = matrix(out, 64, 1),
                        dy = matrix(gradient, 64, 1);
  for (int step = 0; step < 800; ++step) {
    ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
    for (size_t i = 0; i < 64; ++i) gradient[i] = (out[i] - y[i]) / 32;
    ASSERT_OK(shardrec_mlp_backward(mlp, &dy, nullptr));
    ASSERT_OK(shardrec_mlp_step(mlp));
  }
  shardrec_tensor weight{}, bias{};
  ASSERT_OK(shardrec_mlp_parameter(mlp, 0, &weight, nullptr));
  ASSERT_OK(shardrec_mlp_parameter(mlp, 1, &bias, nullptr));
  EXPECT_NEAR(*static_cast<float*>(weight.data), 3, 1e-3);
  EXPECT_NEAR(*static_cast<float*>(bias.data), -2, 1e-3);
}

// Two steps with one gradient g: lr * g, then lr * (1 + momentum) * g.
TEST(LayersApi, AnMlpTakesMomentumAndRefusesOptimizersThatOnlyTablesHave) {
  Options options;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_MLP, options.out()));
  ASSERT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, "momentum_sgd"));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 0.5));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_MOMENTUM, 0.25));
  Mlp mlp;
  ASSERT_OK(shardrec_mlp_create(1, options, mlp.out()));
  ASSERT_OK(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE));
  shardrec_tensor bias{};
  ASSERT_OK(shardrec_mlp_parameter(mlp, 1, &bias, nullptr));
  auto& value = *static_cast<float*>(bias.data);
  value = 8;
  std::vector<float> in = {1}, out(1), one = {1};
  const shardrec_tensor input = matrix(in, 1, 1), output = matrix(out, 1, 1),
                        dy = matrix(one, 1, 1);
  for (const float expected : {7.5F, 6.875F}) {
    ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
    ASSERT_OK(shardrec_mlp_backward(mlp, &dy, nullptr));
    ASSERT_OK(shardrec_mlp_step(mlp));
    EXPECT_EQ(value, expected);
  }
  ASSERT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, "lars_sgd"));
  Mlp refused;
  EXPECT_EQ(shardrec_mlp_create(1, options, refused.out()), SHARDREC_UNSUPPORTED);
  EXPECT_NE(std::string(shardrec_last_error()).find("MOMENTUM_SGD, ADAGRAD, ADAM and LAMB"),
            std::string::npos);
}

// The sum of two halves is the whole, and a step takes it; without the option the last half stays.
TEST(LayersApi, GradientsAddUpOverMicroBatchesUntilTheyAreZeroed) {
  Options options;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_MLP, options.out()));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 1));
  ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_ACCUMULATE_GRADIENTS, 1));
  Mlp added = small_stack(options), plain = small_stack();
  std::vector<float> first = {1, 2}, second = {-3, 0.5f}, out(1), one = {1};
  const shardrec_tensor output = matrix(out, 1, 1), dy = matrix(one, 1, 1);
  const auto bias_gradient = [](shardrec_mlp* mlp) {
    shardrec_tensor gradient{};
    EXPECT_OK(shardrec_mlp_parameter(mlp, 3, nullptr, &gradient));
    return *static_cast<const float*>(gradient.data);
  };
  const auto backward = [&](shardrec_mlp* mlp, std::vector<float>& x) {
    const shardrec_tensor input = matrix(x, 1, 2);
    EXPECT_OK(shardrec_mlp_forward(mlp, &input, &output));
    EXPECT_OK(shardrec_mlp_backward(mlp, &dy, nullptr));
  };
  EXPECT_OK(shardrec_mlp_zero_gradients(added));
  EXPECT_EQ(shardrec_mlp_step(added), SHARDREC_INVALID_STATE) << "no backward yet";
  shardrec_tensor bias{};
  ASSERT_OK(shardrec_mlp_parameter(added, 3, &bias, nullptr));
  const float before = *static_cast<const float*>(bias.data);
  for (shardrec_mlp* mlp : {added.get(), plain.get()}) {
    backward(mlp, first);
    backward(mlp, second);
  }
  EXPECT_EQ(bias_gradient(added), 2);
  EXPECT_EQ(bias_gradient(plain), 1);
  ASSERT_OK(shardrec_mlp_step(added));
  EXPECT_EQ(*static_cast<const float*>(bias.data), before - 2);
  EXPECT_EQ(bias_gradient(added), 2) << "a step leaves the gradients";
  ASSERT_OK(shardrec_mlp_zero_gradients(added));
  EXPECT_EQ(bias_gradient(added), 0);
  ASSERT_OK(shardrec_mlp_step(added));
  EXPECT_EQ(*static_cast<const float*>(bias.data), before - 2);
  backward(added, second);
  EXPECT_EQ(bias_gradient(added), 1);
  // The gradient of the input is that of its batch.
  std::vector<float> of_input = {50, 60}, again = {-70, 80};
  const shardrec_tensor dx = matrix(of_input, 1, 2), other_dx = matrix(again, 1, 2);
  EXPECT_OK(shardrec_mlp_backward(added, &dy, &dx));
  EXPECT_OK(shardrec_mlp_backward(added, &dy, &other_dx));
  EXPECT_EQ(of_input, again);
  EXPECT_EQ(shardrec_mlp_zero_gradients(nullptr), SHARDREC_INVALID_HANDLE);
}

// After one step of Adam both means are those of the gradient, times 1 - beta.
TEST(LayersApi, TellWhatTheyAreAndShowTheirStates) {
  Options options;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_MLP, options.out()));
  ASSERT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, "adam"));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 0.125));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_BETA1, 0.75));
  ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_BETA2, 0.875));
  Mlp mlp;
  ASSERT_OK(shardrec_mlp_create(2, options, mlp.out()));
  shardrec_layers info{};
  info.struct_size = sizeof info;
  ASSERT_OK(shardrec_mlp_info(mlp, &info));
  EXPECT_EQ(info.outputs, 2);
  EXPECT_EQ(info.layers, 0);
  EXPECT_EQ(info.parameters, 0);
  ASSERT_OK(add_linear(mlp, 3, SHARDREC_ACTIVATION_RELU));
  ASSERT_OK(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE));
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y(4), dy = {1, -1, 2, 0.5F};
  const shardrec_tensor input = matrix(x, 4, 2), output = matrix(y, 4, 1),
                        gradient = matrix(dy, 4, 1);
  ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
  ASSERT_OK(shardrec_mlp_backward(mlp, &gradient, nullptr));
  ASSERT_OK(shardrec_mlp_step(mlp));
  ASSERT_OK(shardrec_mlp_set_f64(mlp, SHARDREC_MLP_LEARNING_RATE, 0.5));
  ASSERT_OK(shardrec_mlp_info(mlp, &info));
  EXPECT_EQ(info.inputs, 2);
  EXPECT_EQ(info.outputs, 1);
  EXPECT_EQ(info.layers, 2);
  EXPECT_EQ(info.parameters, 4);
  EXPECT_EQ(info.elements, 3 * 2 + 3 + 3 + 1);
  EXPECT_EQ(info.step, 1);
  EXPECT_EQ(info.learning_rate, 0.5);
  EXPECT_EQ(info.optimizer, SHARDREC_OPTIMIZER_ADAM);
  EXPECT_EQ(info.states, 2);
  int64_t different = 0;
  for (int32_t p = 0; p < info.parameters; ++p) {
    shardrec_tensor value{}, of_value{}, mean{}, square{};
    ASSERT_OK(shardrec_mlp_parameter(mlp, p, &value, &of_value));
    ASSERT_OK(shardrec_mlp_state(mlp, p, 0, &mean));
    ASSERT_OK(shardrec_mlp_state(mlp, p, 1, &square));
    int64_t size = 1;
    for (int32_t d = 0; d < value.ndim; ++d) {
      EXPECT_EQ(mean.shape[d], value.shape[d]);
      EXPECT_EQ(square.stride[d], value.stride[d]);
      size *= value.shape[d];
    }
    EXPECT_EQ(mean.ndim, value.ndim);
    EXPECT_EQ(mean.dtype, SHARDREC_FLOAT32);
    for (int64_t i = 0; i < size; ++i) {
      const float g = static_cast<const float*>(of_value.data)[i];
      EXPECT_FLOAT_EQ(static_cast<const float*>(mean.data)[i], 0.25F * g);
      EXPECT_FLOAT_EQ(static_cast<const float*>(square.data)[i], 0.125F * g * g);
      if (g != 0) ++different;
    }
  }
  EXPECT_GT(different, 4);
  shardrec_tensor none{};
  EXPECT_EQ(shardrec_mlp_state(mlp, 0, 2, &none), SHARDREC_NOT_FOUND);
  EXPECT_EQ(shardrec_mlp_state(mlp, 0, -1, &none), SHARDREC_NOT_FOUND);
  EXPECT_TRUE(contains(shardrec_last_error(), "keeps 2 of each")) << shardrec_last_error();
}

TEST(LayersApi, MalformedCallsAreRefusedByName) {
  Mlp mlp = small_stack(), untouched = small_stack(), bad;
  Interaction interaction, none;
  ASSERT_OK(shardrec_interaction_create(2, 4, nullptr, interaction.out()));
  std::vector<float> data(64), more(64);
  const shardrec_tensor input = matrix(data, 4, 2), output = matrix(more, 4, 1);
  shardrec_tensor wrong = input, half = input, gpu = input, strided = input, null = input;
  wrong.dtype = SHARDREC_FLOAT64;
  half.shape[0] = -1;
  gpu.device_type = SHARDREC_DEVICE_CUDA;
  strided.stride[1] = 2;
  null.data = nullptr;
  shardrec_options* table = nullptr;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &table));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  int64_t outputs = 0;
  shardrec_layers info{};
  info.struct_size = sizeof info;
  shardrec_tensor view{};
  const auto foreign = [](shardrec_interaction* handle) {
    return static_cast<shardrec_mlp*>(static_cast<void*>(handle));
  };
  expect_refused({
      {"no inputs", [&] { return shardrec_mlp_create(0, nullptr, bad.out()); },
       SHARDREC_INVALID_ARGUMENT, "inputs"},
      {"too many inputs", [&] { return shardrec_mlp_create(65537, nullptr, bad.out()); },
       SHARDREC_INVALID_ARGUMENT, "inputs"},
      {"no out", [&] { return shardrec_mlp_create(2, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out"},
      {"options of another kind", [&] { return shardrec_mlp_create(2, table, bad.out()); },
       SHARDREC_INVALID_ARGUMENT, "options"},
      {"null handle", [&] { return add_linear(nullptr, 1, SHARDREC_ACTIVATION_NONE); },
       SHARDREC_INVALID_HANDLE, "mlp"},
      {"foreign handle", [&] { return shardrec_mlp_info(foreign(interaction), &info); },
       SHARDREC_INVALID_HANDLE, "mlp"},
      {"unknown activation",
       [&] { return add_linear(mlp, 1, static_cast<shardrec_activation>(5)); },
       SHARDREC_INVALID_ARGUMENT, "activation"},
      {"no outputs", [&] { return add_linear(mlp, 0, SHARDREC_ACTIVATION_NONE); },
       SHARDREC_INVALID_ARGUMENT, "outputs"},
      {"parameter -1", [&] { return shardrec_mlp_parameter(mlp, -1, nullptr, nullptr); },
       SHARDREC_NOT_FOUND, "parameter -1"},
      {"parameter 4", [&] { return shardrec_mlp_parameter(mlp, 4, nullptr, nullptr); },
       SHARDREC_NOT_FOUND, "parameter 4"},
      {"no input", [&] { return shardrec_mlp_forward(mlp, nullptr, &output); },
       SHARDREC_INVALID_ARGUMENT, "input"},
      {"input of doubles", [&] { return shardrec_mlp_forward(mlp, &wrong, &output); },
       SHARDREC_INVALID_ARGUMENT, "input"},
      {"negative rows", [&] { return shardrec_mlp_forward(mlp, &half, &output); },
       SHARDREC_INVALID_ARGUMENT, "input"},
      {"input on a GPU", [&] { return shardrec_mlp_forward(mlp, &gpu, &output); },
       SHARDREC_UNSUPPORTED, "input"},
      {"column stride 2", [&] { return shardrec_mlp_forward(mlp, &strided, &output); },
       SHARDREC_INVALID_ARGUMENT, "input"},
      {"no data", [&] { return shardrec_mlp_forward(mlp, &null, &output); },
       SHARDREC_INVALID_ARGUMENT, "input"},
      {"output of two columns", [&] { return shardrec_mlp_forward(mlp, &input, &input); },
       SHARDREC_INVALID_ARGUMENT, "output"},
      {"backward first", [&] { return shardrec_mlp_backward(untouched, &output, nullptr); },
       SHARDREC_INVALID_STATE, "forward"},
      {"step first", [&] { return shardrec_mlp_step(untouched); }, SHARDREC_INVALID_STATE,
       "backward"},
      {"learning rate NaN",
       [&] { return shardrec_mlp_set_f64(mlp, SHARDREC_MLP_LEARNING_RATE, nan); },
       SHARDREC_INVALID_ARGUMENT, "LEARNING_RATE"},
      {"learning rate -1",
       [&] { return shardrec_mlp_set_f64(mlp, SHARDREC_MLP_LEARNING_RATE, -1); },
       SHARDREC_INVALID_ARGUMENT, "LEARNING_RATE"},
      {"info without out", [&] { return shardrec_mlp_info(mlp, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"state without out", [&] { return shardrec_mlp_state(mlp, 0, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"a state that SGD has not", [&] { return shardrec_mlp_state(mlp, 0, 0, &view); },
       SHARDREC_NOT_FOUND, "no state 0"},
      {"state of no parameter", [&] { return shardrec_mlp_state(mlp, 4, 0, &view); },
       SHARDREC_NOT_FOUND, "no parameter 4"},
      {"features -1", [&] { return shardrec_interaction_create(-1, 4, nullptr, none.out()); },
       SHARDREC_INVALID_ARGUMENT, "features"},
      {"dim 0", [&] { return shardrec_interaction_create(2, 0, nullptr, none.out()); },
       SHARDREC_INVALID_ARGUMENT, "dim"},
      {"interaction backward first",
       [&] { return shardrec_interaction_backward(interaction, &input, &input, &input); },
       SHARDREC_INVALID_STATE, "forward"},
      {"interaction of wrong shapes",
       [&] { return shardrec_interaction_forward(interaction, &input, &input, &input); },
       SHARDREC_INVALID_ARGUMENT, "dense"},
      {"no out of outputs", [&] { return shardrec_interaction_outputs(interaction, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out"},
  });
  EXPECT_OK(shardrec_interaction_outputs(interaction, &outputs));
  EXPECT_EQ(outputs, 4 + 3);
  EXPECT_EQ(static_cast<shardrec_mlp*>(bad), nullptr);
  shardrec_options_destroy(&table);
  EXPECT_OK(shardrec_mlp_forward(mlp, &input, &output)) << "the refused calls changed nothing";
}

TEST(LayersApi, LossRefusesLabelsOutsideWithTheirPosition) {
  std::vector<float> logits = {0, 1, 2}, labels = {0, 1, 2}, gradient(3, 7);
  const shardrec_tensor z = vector(logits), y = vector(labels), g = vector(gradient);
  double loss = -1;
  EXPECT_EQ(shardrec_bce_with_logits(nullptr, &z, &y, nullptr, &g, &loss),
            SHARDREC_INVALID_ARGUMENT);
  int64_t position = 0;
  EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_POSITION, &position));
  EXPECT_EQ(position, 2);
  EXPECT_EQ(loss, -1);
  EXPECT_EQ(gradient[0], 7);
  labels[2] = 1;
  EXPECT_OK(shardrec_bce_with_logits(nullptr, &z, &y, nullptr, &g, nullptr));
  EXPECT_FLOAT_EQ(gradient[0], 0.5F / 3);
  labels.pop_back();
  const shardrec_tensor shorter = vector(labels);
  EXPECT_EQ(shardrec_bce_with_logits(nullptr, &z, &shorter, nullptr, nullptr, &loss),
            SHARDREC_INVALID_ARGUMENT);
}

TEST(LayersApi, TwoRanksTrainTheSameStackDataParallel) {
  std::vector<std::vector<float>> weights(2);
  run_ranks(2, [&](shardrec_comm* comm, int rank) {
    Options options;
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_MLP, options.out()));
    ASSERT_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_SEED, rank));  // commit makes them equal
    Mlp mlp = small_stack(options);
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, ddp.out()));
    for (int32_t p = 0; p < 4; ++p) {
      shardrec_tensor value{}, gradient{};
      ASSERT_OK(shardrec_mlp_parameter(mlp, p, &value, &gradient));
      ASSERT_OK(shardrec_ddp_add_parameter(ddp, ("p" + std::to_string(p)).c_str(), &value,
                                           &gradient, nullptr));
    }
    ASSERT_OK(shardrec_ddp_commit(ddp));
    std::vector<float> in = {1, 2, 3, static_cast<float>(rank)}, out(2), g = {1, -1};
    const shardrec_tensor input = matrix(in, 2, 2), output = matrix(out, 2, 1),
                          dy = matrix(g, 2, 1);
    for (int step = 0; step < 3; ++step) {
      ASSERT_OK(shardrec_mlp_forward(mlp, &input, &output));
      ASSERT_OK(shardrec_mlp_backward(mlp, &dy, nullptr));
      ASSERT_OK(shardrec_ddp_all_reduce(ddp));
      ASSERT_OK(shardrec_mlp_step(mlp));
    }
    for (int32_t p = 0; p < 4; ++p) {
      shardrec_tensor value{};
      ASSERT_OK(shardrec_mlp_parameter(mlp, p, &value, nullptr));
      const auto* floats = static_cast<const float*>(value.data);
      int64_t size = 1;
      for (int32_t d = 0; d < value.ndim; ++d) size *= value.shape[d];
      auto& mine = weights[static_cast<size_t>(rank)];
      mine.insert(mine.end(), floats, floats + size);
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
  ASSERT_EQ(weights[0].size(), 13U);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(LayersApi, DdpRefusesMalformedParametersAndNamesAMismatch) {
  run_ranks(2, [&](shardrec_comm* comm, int rank) {
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, ddp.out()));
    std::vector<float> a(6), b(6);
    const shardrec_tensor value = matrix(a, 2, 3), gradient = matrix(b, 2, 3),
                          other = matrix(b, 3, 2);
    shardrec_tensor integers = value, halves = value, strided = value;
    integers.dtype = SHARDREC_INT32;
    halves.dtype = SHARDREC_FLOAT16;
    strided.shape[1] = 2;
    const auto add = [&](const char* name, const shardrec_tensor* parameter,
                         const shardrec_tensor* slopes) {
      return shardrec_ddp_add_parameter(ddp, name, parameter, slopes, nullptr);
    };
    expect_refused({
        {"no name", [&] { return add(nullptr, &value, &gradient); }, SHARDREC_INVALID_ARGUMENT,
         "name"},
        {"empty name", [&] { return add("", &value, &gradient); }, SHARDREC_INVALID_ARGUMENT,
         "name"},
        {"not UTF-8", [&] { return add("\xff", &value, &gradient); }, SHARDREC_INVALID_ARGUMENT,
         "name"},
        {"no parameter", [&] { return add("w", nullptr, &gradient); }, SHARDREC_INVALID_ARGUMENT,
         "parameter"},
        {"integers", [&] { return add("w", &integers, nullptr); }, SHARDREC_UNSUPPORTED, "\"w\""},
        {"two dtypes", [&] { return add("w", &value, &halves); }, SHARDREC_INVALID_ARGUMENT,
         "\"w\""},
        {"not compact", [&] { return add("w", &strided, &gradient); }, SHARDREC_INVALID_ARGUMENT,
         "parameter"},
        {"two shapes", [&] { return add("w", &value, &other); }, SHARDREC_INVALID_ARGUMENT,
         "\"w\""},
        {"all_reduce before commit", [&] { return shardrec_ddp_all_reduce(ddp); },
         SHARDREC_INVALID_STATE, "commit"},
    });
    ASSERT_OK(
        shardrec_ddp_add_parameter(ddp, rank == 0 ? "left" : "right", &value, &gradient, nullptr));
    EXPECT_EQ(shardrec_ddp_commit(ddp), SHARDREC_DISAGREEMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "\"right\"")) << shardrec_last_error();
    int64_t failed_rank = -1;
    EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank));
    EXPECT_EQ(failed_rank, 1);
    EXPECT_OK(shardrec_comm_status(comm)) << "the communicator lives on";
    EXPECT_OK(shardrec_comm_barrier(comm));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(LayersApi, MetricsCountOverRanksAndRefuseBadSamples) {
  run_ranks(2, [&](shardrec_comm* comm, int rank) {
    Metrics metrics;
    ASSERT_OK(shardrec_metrics_create(comm, nullptr, metrics.out()));
    std::vector<float> p = {0.25F, rank == 0 ? 0.5F : 0.75F}, y = {0, 1}, bad = {0, 2};
    const shardrec_tensor predicted = vector(p), labels = vector(y), wrong = vector(bad);
    double value = -1;
    EXPECT_EQ(shardrec_metrics_get(metrics, SHARDREC_METRIC_AUC, &value), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_metrics_update(metrics, &predicted, &wrong), SHARDREC_INVALID_ARGUMENT);
    EXPECT_OK(shardrec_metrics_update(metrics, &predicted, &labels));
    EXPECT_OK(shardrec_metrics_compute(metrics));
    EXPECT_OK(shardrec_metrics_get(metrics, SHARDREC_METRIC_AUC, &value));
    EXPECT_EQ(value, 1);
    EXPECT_OK(shardrec_metrics_get(metrics, SHARDREC_METRIC_SAMPLES, &value));
    EXPECT_EQ(value, 4);
    EXPECT_OK(shardrec_metrics_reset(metrics));
    EXPECT_OK(shardrec_metrics_compute(metrics));
    EXPECT_EQ(shardrec_metrics_get(metrics, SHARDREC_METRIC_AUC, &value), SHARDREC_NOT_FOUND);
    EXPECT_OK(shardrec_comm_close(comm));
    EXPECT_EQ(shardrec_metrics_compute(metrics), SHARDREC_CLOSED);
  });
  Metrics alone;
  ASSERT_OK(shardrec_metrics_create(nullptr, nullptr, alone.out()));
  EXPECT_OK(shardrec_metrics_compute(alone));
}

}  // namespace
}  // namespace shardrec::test
