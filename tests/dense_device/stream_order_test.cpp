// Stacks of layers and interactions in the order of a caller's stream, which a test holds.
#include <algorithm>
#include <array>

#include "device/held_streams.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::copy;
using shardrec::Interaction;
using shardrec::Matrix;
using shardrec::Memory;
using shardrec::Mlp;
using shardrec::MlpOptions;

constexpr int64_t kBatch = 30;
constexpr int64_t kColumns = 6;
constexpr int64_t kBytes = 4 * kBatch * kColumns;

class StreamOrder : public shardrec::test::HeldStreamsTest {
 protected:
  // A matrix there, of zeros at first.
  Matrix there(int64_t number) {
    return memory_there_.matrix(SHARDREC_FLOAT32, kBatch, kColumns, number * kBytes);
  }
  std::vector<float> read(const Matrix& matrix) {
    std::vector<float> values(kBatch * kColumns);
    copy(Matrix(values.data(), kBatch, kColumns), matrix, caller_.number());
    return values;
  }
  MlpOptions in_stream() {
    MlpOptions options;
    options.seed(3).device(0).stream(caller_.number());
    return options;
  }

  Memory memory_there_{SHARDREC_DEVICE_CUDA, 0, 8 * kBytes};
};

// All is enqueued while the stream is held: what comes in by it is what is computed with, and what it takes on is what was
// computed.
TEST_F(StreamOrder, CallsComputeBetweenWhatTheStreamHoldsAndWhatFollows) {
  std::vector<float> input(kBatch * kColumns), ones(kBatch * kColumns, 1.0F);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 13) - 6;
  Mlp stack(kColumns, in_stream()), expected(kColumns, MlpOptions().seed(3).device(0));
  for (Mlp* mlp : {&stack, &expected}) {
    mlp->add_linear(kColumns).add_layer_norm().add_linear(kColumns, SHARDREC_ACTIVATION_NONE);
  }
  std::vector<float> y(kBatch * kColumns), dx(kBatch * kColumns), again(kBatch * kColumns);
  const auto mine = [](std::vector<float>& floats) {
    return Matrix(floats.data(), kBatch, kColumns);
  };
  expected.forward(mine(input), mine(y));
  expected.backward(mine(ones), mine(dx));
  expected.step();
  expected.forward(mine(input), mine(again));
  (void)stack.parameter(0);  // memory for them is had now

  const Matrix given = there(0), gradient = there(1), x = there(2), dy = there(3);
  copy(given, mine(input), caller_.number());
  copy(gradient, mine(ones), caller_.number());
  hold();
  copy(x, given, caller_.number());
  stack.forward(x, there(4));
  copy(there(5), there(4), caller_.number());
  copy(dy, gradient, caller_.number());
  stack.backward(dy, there(6));
  stack.step();
  stack.forward(x, there(4));
  copy(there(7), there(6), caller_.number());
  go_on_();
  EXPECT_EQ(read(there(5)), y);
  EXPECT_EQ(read(there(7)), dx);
  EXPECT_EQ(read(there(4)), again);
}

// Of the host's inputs two are on their way, whatever the host does with them afterwards; with a third one it waits.
TEST_F(StreamOrder, InputsOfTheHostAreCopiedAheadOfStepsThatHaveNotRun) {
  Mlp stack(kColumns, in_stream()), expected(kColumns, MlpOptions().seed(3).device(0));
  for (Mlp* mlp : {&stack, &expected}) mlp->add_linear(kColumns, SHARDREC_ACTIVATION_NONE);
  std::vector<float> input(kBatch * kColumns), ones(kBatch * kColumns, 1.0F);
  const auto fill = [&](int step) {
    for (size_t i = 0; i < input.size(); ++i) {
      input[i] = static_cast<float>((i + 5 * static_cast<size_t>(step)) % 17) - 8;
    }
    return Matrix(input.data(), kBatch, kColumns);
  };
  std::array<std::vector<float>, 3> outputs;
  for (int step = 0; step < 3; ++step) {
    auto& output = outputs[static_cast<size_t>(step)];
    output.resize(input.size());
    expected.forward(fill(step), Matrix(output.data(), kBatch, kColumns));
    expected.backward(Matrix(ones.data(), kBatch, kColumns));
    expected.step();
  }
  const auto train = [&](int step) {
    stack.forward(fill(step), there(step));
    std::fill(input.begin(), input.end(), -99.0F);
    stack.backward(there(3));
    stack.step();
  };
  copy(there(3), Matrix(ones.data(), kBatch, kColumns), caller_.number());
  stack.forward(fill(0), there(4));  // memory is had now
  stack.forward(fill(1), there(4));
  (void)read(there(4));
  hold();
  EXPECT_TRUE(returns_while_held([&] {
    train(0);
    train(1);
  }));
  EXPECT_TRUE(go_on_during([&] { train(2); }));
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(read(there(step)), outputs[static_cast<size_t>(step)]) << step;
  }
}

TEST_F(StreamOrder, AnInteractionToo) {
  Interaction pairs(1, kColumns - 1, in_stream());  // columns and one product
  ASSERT_EQ(pairs.outputs(), kColumns);
  std::vector<float> ones(kBatch * kColumns, 1.0F);
  const auto columns = [&](int64_t number) {
    return memory_there_.matrix(SHARDREC_FLOAT32, kBatch, kColumns - 1, number * kBytes);
  };
  copy(there(0), Matrix(ones.data(), kBatch, kColumns), caller_.number());
  hold();
  copy(there(1), there(0), caller_.number());
  pairs.forward(columns(1), columns(1), there(2));
  copy(there(3), there(2), caller_.number());
  go_on_();
  const std::vector<float> output = read(there(3));
  for (int64_t i = 0; i < kBatch * kColumns; ++i) {
    const bool is_product = i % kColumns == kColumns - 1;
    ASSERT_EQ(output[static_cast<size_t>(i)], is_product ? kColumns - 1 : 1) << i;
  }
}

}  // namespace
}  // namespace shardrec_test
