// The scale of gradients of stacks in float16 on a device: as on the CPU, and without the host.
#include <dlfcn.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "core/error.h"
#include "dense/loss_scale_checks.h"
#include "dense_device/ddp_sets.h"
#include "device/held_streams.h"

namespace shardrec::dense {
namespace {

constexpr device::ContextOptions kOnDevice{.device = 0};

TEST(DeviceLossScale, FollowsTheGradients) {
  test::check_that_the_scale_follows_gradients(kOnDevice);
}
TEST(DeviceLossScale, StaysBetweenItsBounds) { test::check_the_bounds_of_the_scale(kOnDevice); }
TEST(DeviceLossScale, ASkippedStepChangesNothing) { test::check_skipped_steps(kOnDevice); }
TEST(DeviceLossScale, OneOverflowSkipsAnAccumulatedStep) {
  test::check_accumulated_overflows(kOnDevice);
}
TEST(DeviceLossScale, KeepsGradientsThatFloat16DoesNotHave) {
  test::check_what_the_scale_is_for(kOnDevice);
}
TEST(DeviceLossScale, AllRanksSkipTheStepOfOne) {
  test::check_that_all_ranks_skip({kOnDevice, {.device = 1}});
}

// Scales, skipped steps and their counts, and what Adam makes of them, are the CPU's where no matrix is multiplied.
TEST(DeviceLossScale, HasTheBitsOfTheCpu) {
  const test::StackOf of{"norms", 37, {test::layer_norm(), test::layer_norm(0.1)}};
  for (const bool accumulate : {false, true}) {
    test::Scaled scaled{.scale = {.scale = 4, .steps = 2}, .accumulate = accumulate};
    auto here = test::make_scaled(of, scaled);
    scaled.place = kOnDevice;
    auto there = test::make_scaled(of, scaled);
    for (const float gradient : {1.0F, 1e-3F, test::kOverflow, 1.0F, 3e4F, 1e-7F, 2.0F, 1.0F}) {
      for (Mlp* mlp : {here.get(), there.get()}) {
        if (accumulate && gradient == 3e4F) mlp->zero_gradients();
        test::train(*mlp, gradient, 150);
        mlp->step();
      }
      ASSERT_TRUE(test::same_bits(test::trained(*here), test::trained(*there))) << gradient;
      const LossScaleState a = test::scale_of(*here), b = test::scale_of(*there);
      ASSERT_EQ(a.scale, b.scale) << gradient;
      ASSERT_EQ(a.finite_backwards, b.finite_backwards) << gradient;
      ASSERT_EQ(a.skipped_steps, b.skipped_steps) << gradient;
    }
    EXPECT_GT(test::scale_of(*there).skipped_steps, 0);
  }
}

// Memory that runs out on emulated devices, and in the tests' cuBLASLt.
class DeviceLossScaleShortage : public shardrec::test::HeldStreamsTest {
 protected:
  // False: the call has said that there is none.
  static bool has_memory(const std::function<void()>& call) {
    const auto error = comm::error_of(call);
    if (error) {
      EXPECT_EQ(error->status(), SHARDREC_OUT_OF_MEMORY) << error->sentence();
    }
    return !error;
  }
};

// LAMB needs memory for a step: the device, which counts, does not count one that has none.
TEST_F(DeviceLossScaleShortage, AStepWithoutMemoryIsNone) {
  auto* const fail_allocation = shardrec::test::of_plugin<void(int64_t)>("simt_fail_allocation");
  const test::Scaled scaled{.place = kOnDevice,
                            .scale = {.scale = 8},
                            .optimizer = {.kind = SHARDREC_OPTIMIZER_LAMB, .learning_rate = 0.1}};
  auto mlp = test::make_scaled(test::small_stack(), scaled);
  auto undisturbed = test::make_scaled(test::small_stack(), scaled);
  for (Mlp* each : {mlp.get(), undisturbed.get()}) test::train(*each, 1);
  int failed = 0;
  const auto step = [&](int64_t n) {
    fail_allocation(n);
    return has_memory([&] { mlp->step(); });
  };
  while (!step(failed + 1)) ++failed;
  fail_allocation(0);
  EXPECT_GT(failed, 0);
  undisturbed->step();
  EXPECT_TRUE(test::same_bits(test::trained(*mlp), test::trained(*undisturbed)));
  EXPECT_EQ(test::trained(*mlp).back(), 1);
}

// Some tell of an overflow before memory runs out, which is in any of the calls that prepare products.
TEST_F(DeviceLossScaleShortage, ABackwardWithoutMemoryIsForgotten) {
  constexpr int kAllocFailed = 3;  // a cublasStatus_t
  void* const cublas = dlopen(std::getenv("SHARDREC_CUBLASLT_LIBRARY"), RTLD_NOW);
  ASSERT_NE(cublas, nullptr);
  const auto fail_call =
      std::bit_cast<void (*)(int64_t, int)>(dlsym(cublas, "fake_cublaslt_fail_call"));
  const auto train = [&](int64_t n) {
    auto mlp = test::make_scaled(test::small_stack(), {.place = kOnDevice, .scale = {.scale = 8}});
    fail_call(n, kAllocFailed);
    const bool is_whole = has_memory([&] { test::train(*mlp, test::kOverflow); });
    fail_call(0, 0);
    if (is_whole) return true;
    test::train(*mlp, 1);
    test::expect_scale(*mlp, 8, 1);
    return false;
  };
  int failed = 0;
  while (!train(failed + 1) && !HasFailure()) ++failed;
  EXPECT_GT(failed, 20) << "of two products forward and three backward";
}

class DeviceLossScaleStreams : public shardrec::test::HeldStreamsTest {};

// Steps, among them a skipped one, are enqueued while the device is held, and nothing is copied or allocated for them.
TEST_F(DeviceLossScaleStreams, StepsAreDecidedWithoutTheHost) {
  auto* const copies = shardrec::test::of_plugin<int64_t()>("simt_copies");
  auto* const allocations = shardrec::test::of_plugin<int64_t()>("simt_live_allocations");
  ASSERT_NE(copies, nullptr);
  constexpr int64_t kRows = 20;
  sets::Place place(0);
  test::Scaled scaled{.scale = {.scale = 8, .steps = 100}};
  scaled.place = {.device = 0, .caller_stream = caller_.number()};
  auto mlp = test::make_scaled(test::small_stack(), scaled);
  const auto matrix = [&](int64_t cols, float number) {
    const std::vector<float> numbers(static_cast<size_t>(kRows * cols), number);
    std::byte* const data = place.allocate(numbers.size() * sizeof(float));
    place.write(data, numbers.data(), numbers.size() * sizeof(float));
    return device::CallerMatrix({static_cast<float*>(static_cast<void*>(data)), kRows, cols, cols},
                                true);
  };
  const auto x = matrix(mlp->inputs(), 0.5F), dx = matrix(mlp->inputs(), 0);
  const auto y = matrix(mlp->outputs(), 0), dy = matrix(mlp->outputs(), 0.1F);
  const auto too_large = matrix(mlp->outputs(), test::kOverflow);
  const auto step = [&](const device::CallerMatrix& gradient) {
    mlp->forward(x, y);
    mlp->backward(gradient, dx);
    mlp->step();
  };
  for (int i = 0; i < 6; ++i) step(dy);  // memory is had now
  caller_.wait();
  const std::vector<float> before = test::trained(*mlp);
  step(dy);
  mlp->with_context([](device::Context& context) { context.wait(); });
  const int64_t copied = copies(), allocated = allocations();
  hold();
  EXPECT_TRUE(returns_while_held([&] {
    for (const auto& gradient : {dy, too_large, dy}) step(gradient);
  }));
  go_on_();
  mlp->with_context([](device::Context& context) { context.wait(); });
  EXPECT_EQ(copies(), copied);
  EXPECT_EQ(allocations(), allocated);
  EXPECT_EQ(test::trained(*mlp).back(), before.back() + 3);
  const LossScaleState state = test::scale_of(*mlp);
  EXPECT_EQ(state.scale, 4);
  EXPECT_EQ(state.finite_backwards, 1);
  EXPECT_EQ(state.skipped_steps, 1);
}

}  // namespace
}  // namespace shardrec::dense
