// Sets of DDP parameters on devices, in the order of the caller's stream, and without the host.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dense/ddp/layers.h"
#include "dense_device/ddp_sets.h"
#include "device/held_streams.h"

namespace shardrec::dense {
namespace {

using namespace sets;

class DdpStreams : public test::HeldStreamsTest {};

// The test holds the stream in which gradients are written: they are sent behind that.
TEST_F(DdpStreams, GradientsAreReadBehindWhatTheCallersStreamHolds) {
  for (const bool own_thread : {false, true}) {
    expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
      Place place(0);
      DdpOptions options = small_buckets();
      options.caller_stream = caller_.number();
      options.reducer.own_thread = own_thread;
      options.reducer.factor = 2;
      Model model(place, 0, SHARDREC_FLOAT32);
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      const std::array<float, 5> numbers = {1, 2, 3, 4, 5};
      std::byte* const source = place.allocate(sizeof numbers);
      place.write(source, numbers.data(), sizeof numbers);
      for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 1, 1);
      hold();
      caller_.copy(model.gradient(0), source, sizeof numbers);
      ddp.begin(true);
      ddp.mark_ready(0, static_cast<int64_t>(model.size()));
      ddp.end();
      EXPECT_TRUE(go_on_during([&] { ddp.wait(); }));
      const Bytes bytes = place.read(model.gradient(0), sizeof numbers);
      std::array<float, 5> twice{};
      std::memcpy(twice.data(), bytes.data(), sizeof twice);
      EXPECT_EQ(twice, (std::array<float, 5>{2, 4, 6, 8, 10}));
    }));
  }
}

// Numbers that the held stream brings to the gradient of a parameter of 5 elements, which are 0: what `step` makes of
// the values, 10 each, and of the gradient.
struct Held {
  std::array<float, 5> values{};
  std::array<float, 5> gradient{};
};

class DdpBehindHeldStreams : public DdpStreams {
 protected:
  Held run_held(DdpOptions options, const std::function<void(Ddp&)>& step) {
    Held held;
    expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
      Place place(0);
      options.caller_stream = caller_.number();
      std::byte* const memory = place.allocate(64);
      std::byte* const gradient = place.allocate(64);
      std::byte* const source = place.allocate(64);
      const std::array<float, 5> tens = {10, 10, 10, 10, 10}, numbers = {1, 2, 3, 4, 5};
      place.write(memory, tens.data(), sizeof tens);
      place.write(source, numbers.data(), sizeof numbers);
      Ddp ddp(borrow(communicator), options);
      const auto view = [](std::byte* data) {
        return core::FlatView{.data = data, .size = 5, .dtype = SHARDREC_FLOAT32};
      };
      ddp.add("p", {5}, view(memory), view(gradient), place.device());
      if (options.step_in_backward) {
        ddp.set_optimizer({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1});
      }
      ddp.commit();
      hold();
      caller_.copy(gradient, source, sizeof numbers);
      ddp.begin(true);
      step(ddp);
      ddp.end();
      EXPECT_TRUE(go_on_during([&] { ddp.wait(); }));
      std::memcpy(held.values.data(), place.read(memory, 20).data(), 20);
      std::memcpy(held.gradient.data(), place.read(gradient, 20).data(), 20);
    }));
    return held;
  }
};

TEST_F(DdpBehindHeldStreams, ARankThatIsAloneStepsInBackwardBehindItsGradients) {
  DdpOptions options;
  options.step_in_backward = true;
  const Held held = run_held(options, [](Ddp& ddp) { ddp.mark_ready(0, 1); });
  EXPECT_EQ(held.values, (std::array<float, 5>{9, 8, 7, 6, 5}));
}

TEST_F(DdpBehindHeldStreams, GradientsThatAreNotMarkedAreWrittenBehindTheStreamToo) {
  DdpOptions options;
  options.reducer.unused = Unused::kZero;
  const Held held = run_held(options, [](Ddp& ddp) { ddp.mark_unused(0, 1); });
  EXPECT_EQ(held.gradient, (std::array<float, 5>{}));
}

// What is enqueued behind the stream's work is enqueued at once, and the stream goes on behind it.
TEST_F(DdpStreams, StepsAreBetweenWhatTheStreamHoldsAndWhatFollows) {
  expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
    Place place(0);
    DdpOptions options;
    options.caller_stream = caller_.number();
    Model model(place, 0, SHARDREC_FLOAT32, {4});
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.set_optimizer({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1});
    ddp.commit();
    const std::array<float, 4> ones = {1, 1, 1, 1}, zeros{};
    std::byte* const source = place.allocate(sizeof ones);
    std::byte* const after = place.allocate(sizeof ones);
    place.write(source, ones.data(), sizeof ones);
    place.write(model.gradient(0), zeros.data(), sizeof zeros);
    place.write(ddp.parameter(0).values, zeros.data(), sizeof zeros);
    hold();
    caller_.copy(model.gradient(0), source, sizeof ones);
    EXPECT_TRUE(returns_while_held([&] {
      ddp.step();
      ddp.zero_gradients();
    }));
    caller_.copy(after, ddp.parameter(0).values, sizeof ones);
    go_on_();
    caller_.wait();
    const auto floats = [&](const void* there) {
      std::array<float, 4> out{};
      const Bytes bytes = place.read(there, sizeof out);
      std::memcpy(out.data(), bytes.data(), sizeof out);
      return out;
    };
    EXPECT_EQ(floats(after), (std::array<float, 4>{-1, -1, -1, -1}));
    EXPECT_EQ(floats(model.gradient(0)), zeros);
  }));
}

// Between ranks of a process nothing of a step is copied but lists that change, and nothing is allocated.
TEST_F(DdpStreams, ASteadyStepCopiesNoGradientsAndAllocatesNothing) {
  auto* const copies = test::of_plugin<int64_t()>("simt_copies");
  auto* const allocations = test::of_plugin<int64_t()>("simt_live_allocations");
  ASSERT_NE(copies, nullptr);
  std::array<int64_t, 2> counted{}, allocated{};
  expect_none(comm::run_ranks(2, [&](Communicator& communicator) {
    Place place(0);
    DdpOptions options = small_buckets();
    options.caller_stream = place.stream_number();
    Model model(place, communicator.rank(), SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.commit();
    comm::Collectives both(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                           2);
    constexpr comm::Operation kMeet{.name = "test", .kind = 99};
    for (int step = 0; step < 8; ++step) ddp.all_reduce();
    both.barrier(kMeet);
    if (communicator.rank() == 0) {
      counted[0] = copies();
      allocated[0] = allocations();
    }
    both.barrier(kMeet);
    for (int step = 0; step < 4; ++step) ddp.all_reduce();
    both.barrier(kMeet);
    if (communicator.rank() == 0) {
      counted[1] = copies();
      allocated[1] = allocations();
    }
    both.barrier(kMeet);
  }));
  EXPECT_EQ(counted[1], counted[0]);
  EXPECT_EQ(allocated[1], allocated[0]);
}

// Nothing changes the gradients of a rank that is alone: nothing is done to them.
TEST_F(DdpStreams, ARankThatIsAloneLaunchesNothing) {
  auto* const launches = test::of_plugin<int64_t()>("simt_launches");
  ASSERT_NE(launches, nullptr);
  for (const Unused unused : {Unused::kError, Unused::kMark, Unused::kZero}) {
    expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
      Place place(0);
      DdpOptions options = small_buckets();
      options.reducer.unused = unused;
      options.caller_stream = place.stream_number();
      Model model(place, 0, SHARDREC_FLOAT32);
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 0, 1);
      const Bytes before = model.all_gradients();
      const int64_t launched = launches();
      ddp.all_reduce();
      EXPECT_EQ(launches(), launched);
      EXPECT_TRUE(model.all_gradients() == before);
    }));
  }
}

// A step of a stack in a set, with matrices there: nothing goes through the host, and nothing is allocated.
TEST_F(DdpStreams, AStepOfAStackStaysOnTheDevice) {
  auto* const copies = test::of_plugin<int64_t()>("simt_copies");
  auto* const allocations = test::of_plugin<int64_t()>("simt_live_allocations");
  constexpr int64_t kRows = 20, kInputs = 6;
  std::array<int64_t, 2> counted{}, allocated{};
  expect_none(comm::run_ranks(2, [&](Communicator& communicator) {
    Place place(0);
    MlpOptions stack_options{.optimizer = {.kind = SHARDREC_OPTIMIZER_ADAM, .learning_rate = 0.1}};
    stack_options.place = {.device = 0, .caller_stream = place.stream_number()};
    const auto stack = std::make_shared<Mlp>(kInputs, stack_options);
    stack->add_linear(8, SHARDREC_ACTIVATION_RELU);
    stack->add_linear(1, SHARDREC_ACTIVATION_NONE);
    const auto matrix = [&](int64_t cols) {
      auto* const data = static_cast<float*>(
          static_cast<void*>(place.allocate(static_cast<size_t>(kRows * cols) * sizeof(float))));
      const std::vector<float> numbers(static_cast<size_t>(kRows * cols),
                                       0.5F + static_cast<float>(communicator.rank()));
      place.write(data, numbers.data(), numbers.size() * sizeof(float));
      return device::CallerMatrix({data, kRows, cols, cols}, true);
    };
    const device::CallerMatrix x = matrix(kInputs), y = matrix(1), dy = matrix(1);
    const auto ddp = std::make_shared<Ddp>(borrow(communicator), DdpOptions{});
    add_layers(ddp, "stack.", stack);
    ddp->commit();
    const auto train = [&] {
      stack->forward(x, y);
      ddp->begin(true);
      stack->backward(dy, {{}, false});
      ddp->end();
      ddp->wait();
      stack->step();
    };
    comm::Collectives both(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                           2);
    constexpr comm::Operation kMeet{.name = "test", .kind = 99};
    for (int step = 0; step < 8; ++step) train();
    for (size_t at = 0; at < 2; ++at) {
      both.barrier(kMeet);
      if (communicator.rank() == 0) {
        counted[at] = copies();
        allocated[at] = allocations();
      }
      both.barrier(kMeet);
      for (int step = 0; step < 4; ++step) train();
    }
    ddp->check_equal();
  }));
  EXPECT_EQ(counted[1], counted[0]);
  EXPECT_EQ(allocated[1], allocated[0]);
}

// A set steps the float32 parameters of a stack whose products are of their copies in bfloat16.
TEST(DdpOnDevice, AStackInBfloat16TrainsAsItDoesByItself) {
  constexpr int64_t kRows = 20, kInputs = 6;
  const plan::Optimizer optimizer{.kind = SHARDREC_OPTIMIZER_ADAM, .learning_rate = 0.1};
  for (const bool in_backward : {false, true}) {
    std::array<Bytes, 2> values, outputs;
    expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
      for (const bool in_set : {false, true}) {
        Place place(0);
        MlpOptions stack_options{.optimizer = optimizer, .precision = Precision::kBfloat16};
        stack_options.place = {.device = 0, .caller_stream = place.stream_number()};
        const auto stack = std::make_shared<Mlp>(kInputs, stack_options);
        stack->add_linear(8, SHARDREC_ACTIVATION_RELU);
        stack->add_linear(1, SHARDREC_ACTIVATION_NONE);
        const auto matrix = [&](int64_t cols) {
          std::vector<float> numbers(static_cast<size_t>(kRows * cols));
          for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
          const size_t bytes = numbers.size() * sizeof(float);
          std::byte* const data = place.allocate(bytes);
          place.write(data, numbers.data(), bytes);
          return device::CallerMatrix(
              {static_cast<float*>(static_cast<void*>(data)), kRows, cols, cols}, true);
        };
        const device::CallerMatrix x = matrix(kInputs), y = matrix(1), dy = matrix(1);
        stack->forward(x, y);  // copies of the parameters as they are now
        DdpOptions options;
        options.step_in_backward = in_backward;
        options.caller_stream = place.stream_number();
        const auto ddp = std::make_shared<Ddp>(borrow(communicator), options);
        if (in_set) {
          add_layers(ddp, "stack.", stack);
          ddp->set_optimizer(optimizer);
          ddp->commit();
        }
        for (int step = 0; step < 3; ++step) {
          stack->forward(x, y);
          if (in_set) ddp->begin(true);
          stack->backward(dy, {{}, false});
          if (in_set) {
            ddp->end();
            ddp->wait();
            if (!in_backward) ddp->step();
          } else {
            stack->step();
          }
        }
        stack->forward(x, y);
        outputs[in_set ? 1 : 0] = place.read(y.rows.data, kRows * sizeof(float));
        const int64_t size = stack->parameters().size();
        values[in_set ? 1 : 0] =
            place.read(stack->values(0), static_cast<size_t>(size) * sizeof(float));
      }
    }));
    EXPECT_TRUE(values[0] == values[1]) << in_backward;
    EXPECT_TRUE(outputs[0] == outputs[1]) << in_backward;
  }
}

}  // namespace
}  // namespace shardrec::dense
