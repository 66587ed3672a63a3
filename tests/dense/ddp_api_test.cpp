// ddp.h through the C API: stacks, one flat gradient, dtypes, marks, what a set tells of itself.
#include "dense/ddp_api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <latch>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/layers.h"

namespace shardrec::test {
namespace {

Mlp small_stack() {
  Mlp mlp;
  EXPECT_OK(shardrec_mlp_create(2, nullptr, mlp.out()));
  EXPECT_OK(add_linear(mlp, 3, SHARDREC_ACTIVATION_RELU));
  EXPECT_OK(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE));
  return mlp;
}

// One forward and backward; returns the status of the latter.
shardrec_status train(shardrec_mlp* mlp, float sample) {
  std::vector<float> in = {sample, 1, 2, -sample}, out(2), slope = {1, -2};
  shardrec_tensor x{}, y{}, dy{};
  EXPECT_OK(shardrec_tensor_matrix(in.data(), SHARDREC_FLOAT32, 2, 2, &x));
  EXPECT_OK(shardrec_tensor_matrix(out.data(), SHARDREC_FLOAT32, 2, 1, &y));
  EXPECT_OK(shardrec_tensor_matrix(slope.data(), SHARDREC_FLOAT32, 2, 1, &dy));
  EXPECT_OK(shardrec_mlp_forward(mlp, &x, &y));
  return shardrec_mlp_backward(mlp, &dy, nullptr);
}

TEST(DdpApi, BackwardOfAStackMarksItsLayersAndASecondOneInAStepIsRefused) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    Mlp mlp = small_stack();
    std::vector<float> other(2), gradient(2, 1);
    const shardrec_tensor value = vector(other), slope = vector(gradient);
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, small_buckets(), ddp.out()));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "other", &value, &slope, nullptr));
    int32_t first = -1;
    ASSERT_OK(shardrec_ddp_add_mlp(ddp, "net", mlp, &first));
    EXPECT_EQ(first, 1);
    ASSERT_OK(shardrec_ddp_set_optimizer(ddp, nullptr));
    ASSERT_OK(shardrec_ddp_commit(ddp));
    ASSERT_OK(train(mlp, 1)) << "before a step nothing is marked";
    for (int step = 0; step < 3; ++step) {
      ASSERT_OK(shardrec_ddp_begin(ddp, 1));
      ASSERT_OK(train(mlp, static_cast<float>(rank + step)));
      EXPECT_EQ(train(mlp, 1), SHARDREC_INVALID_STATE);
      EXPECT_TRUE(contains(shardrec_last_error(), "\"net.layer.")) << shardrec_last_error();
      ASSERT_OK(shardrec_ddp_mark_ready(ddp, 0, 1));
      ASSERT_OK(shardrec_ddp_end(ddp));
      ASSERT_OK(shardrec_ddp_wait(ddp));
      ASSERT_OK(shardrec_ddp_step(ddp));
    }
    ASSERT_OK(shardrec_ddp_begin(ddp, 0));
    EXPECT_OK(train(mlp, 1));
    EXPECT_OK(train(mlp, 2)) << "without sync a layer may be gone over again";
    ASSERT_OK(shardrec_ddp_end(ddp));
    ASSERT_OK(shardrec_ddp_wait(ddp));
    EXPECT_OK(shardrec_ddp_check_equal(ddp));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpApi, AStackIsInOneSetAtATimeAndEitherMayBeDestroyedFirst) {
  run_ranks(1, [](shardrec_comm* comm, int) {
    Mlp mlp = small_stack();
    Ddp first, second;
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, first.out()));
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, second.out()));
    {
      Mlp empty;
      ASSERT_OK(shardrec_mlp_create(2, nullptr, empty.out()));
      EXPECT_EQ(shardrec_ddp_add_mlp(first, "net", empty, nullptr), SHARDREC_INVALID_STATE);
    }
    ASSERT_OK(shardrec_ddp_add_mlp(first, "net", mlp, nullptr));
    EXPECT_EQ(shardrec_ddp_add_mlp(second, "net", mlp, nullptr), SHARDREC_INVALID_STATE);
    EXPECT_EQ(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE), SHARDREC_INVALID_STATE)
        << "the set holds views of the parameters";
    shardrec_ddp_destroy(first.out());
    ASSERT_OK(train(mlp, 1)) << "a set that is gone wants no marks";
    int32_t at = -1;
    ASSERT_OK(shardrec_ddp_add_mlp(second, "net", mlp, &at));
    EXPECT_EQ(at, 0) << "what was refused has left nothing behind";
    ASSERT_OK(shardrec_ddp_set_optimizer(second, nullptr));
    ASSERT_OK(shardrec_ddp_commit(second));
    ASSERT_OK(shardrec_ddp_begin(second, 1));
    ASSERT_OK(train(mlp, 1));
    ASSERT_OK(shardrec_ddp_end(second));
    ASSERT_OK(shardrec_ddp_wait(second));
    shardrec_mlp_destroy(mlp.out());
    ASSERT_OK(shardrec_ddp_step(second)) << "the memory lives as long as the set";
    shardrec_tensor view{};
    ASSERT_OK(shardrec_ddp_gradient(second, 3, &view));
    EXPECT_EQ(*static_cast<float*>(view.data), -1) << "1 - 2, of the last bias";
  });
}

TEST(DdpApi, AFlatGradientHoldsThoseThatWereAddedWithoutOneInTheirOrder) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> a(3), b(2), c(4), own(2), flat(7), longer(8);
    const shardrec_tensor a_view = vector(a), b_view = vector(b), c_view = vector(c),
                          own_view = vector(own), flat_view = vector(flat),
                          longer_view = vector(longer);
    shardrec_tensor halves = flat_view;
    halves.dtype = SHARDREC_FLOAT16;
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, small_buckets(), ddp.out()));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "a", &a_view, nullptr, nullptr));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "b", &b_view, &own_view, nullptr));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "c", &c_view, nullptr, nullptr));
    ASSERT_OK(shardrec_ddp_set_flat_gradient(ddp, &longer_view));
    EXPECT_EQ(shardrec_ddp_commit(ddp), SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "8 elements")) << shardrec_last_error();
    ASSERT_OK(shardrec_ddp_set_flat_gradient(ddp, &halves));
    EXPECT_EQ(shardrec_ddp_commit(ddp), SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "float16")) << shardrec_last_error();
    ASSERT_OK(shardrec_ddp_set_flat_gradient(ddp, &flat_view));
    ASSERT_OK(shardrec_ddp_commit(ddp));
    EXPECT_EQ(shardrec_ddp_set_flat_gradient(ddp, &flat_view), SHARDREC_INVALID_STATE);
    shardrec_tensor view{};
    ASSERT_OK(shardrec_ddp_gradient(ddp, 0, &view));
    EXPECT_EQ(view.data, flat.data());
    ASSERT_OK(shardrec_ddp_gradient(ddp, 2, &view));
    EXPECT_EQ(view.data, flat.data() + 3);
    for (size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<float>(rank * 10) + i;
    own = {static_cast<float>(rank), 2};
    ASSERT_OK(shardrec_ddp_all_reduce(ddp));
    EXPECT_EQ(flat, (std::vector<float>{5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(own, (std::vector<float>{0.5F, 2}));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

// The upper half of a float's bits, rounded to nearest even.
uint16_t to_bfloat16(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
double from_bfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Normal numbers only.
uint16_t to_float16(double value) {
  int exponent = 0;
  const double part = std::frexp(std::abs(value), &exponent);  // [0.5, 1)
  const auto mantissa = static_cast<int>(std::nearbyint(part * 2048));
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) + ((exponent + 13) << 10) + mantissa);
}
double from_float16(uint16_t bits) {
  const double size = std::ldexp(1024 + (bits & 0x3ff), ((bits >> 10) & 0x1f) - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

// Every rank gets the mean of what the ranks hold, rounded once.
template <class Element>
void expect_means(shardrec_dtype dtype, Element (*to)(double), double (*from)(Element)) {
  constexpr int kRanks = 3;
  constexpr int64_t kSize = 300;
  const auto number = [](int rank, int64_t i) {
    return (1 + static_cast<double>(i) / kSize) * (rank == 1 ? -0.75 : 1.25 + rank);
  };
  run_ranks(kRanks, [&](shardrec_comm* comm, int rank) {
    std::vector<Element> value(kSize), gradient;
    for (int64_t i = 0; i < kSize; ++i) gradient.push_back(to(number(rank, i)));
    shardrec_tensor value_view{}, gradient_view{};
    ASSERT_OK(shardrec_tensor_vector(value.data(), dtype, kSize, &value_view));
    ASSERT_OK(shardrec_tensor_vector(gradient.data(), dtype, kSize, &gradient_view));
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, ddp.out()));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "w", &value_view, &gradient_view, nullptr));
    ASSERT_OK(shardrec_ddp_commit(ddp));
    ASSERT_OK(shardrec_ddp_all_reduce(ddp));
    const double ulp = dtype == SHARDREC_FLOAT64 ? 1e-15 : 1e-6;
    for (int64_t i = 0; i < kSize; ++i) {
      double sum = 0;
      for (int r = 0; r < kRanks; ++r) sum += from(to(number(r, i)));
      const double nearest = from(to(sum / kRanks));
      const double step = dtype == SHARDREC_FLOAT64 ? 0 : std::abs(nearest) * ulp;
      const double got = from(gradient[static_cast<size_t>(i)]);
      // Where float32's rounding crosses the middle of two halves, the neighbour.
      const bool tie = std::abs(from(to(sum / kRanks + step)) - got) == 0 ||
                       std::abs(from(to(sum / kRanks - step)) - got) == 0;
      ASSERT_TRUE(tie || std::abs(got - nearest) <= ulp * std::abs(nearest))
          << got << " for " << nearest << ", element " << i;
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpApi, OtherDtypesAreReducedInWiderOnesAndRoundedOnce) {
  expect_means<double>(SHARDREC_FLOAT64, [](double x) { return x; }, [](double x) { return x; });
  expect_means<uint16_t>(SHARDREC_FLOAT16, to_float16, from_float16);
  expect_means<uint16_t>(SHARDREC_BFLOAT16, to_bfloat16, from_bfloat16);
}

TEST(DdpApi, ReducedGradientsThatAreNotFiniteAreRefusedOrSkippedOnAllRanks) {
  for (const bool skips : {false, true}) {
    run_ranks(2, [&](shardrec_comm* comm, int rank) {
      Options options = small_buckets();
      ASSERT_OK(
          shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE, skips ? "skip" : "error"));
      HostSet set(comm, options, {3, 2, 4});
      ASSERT_OK(shardrec_ddp_set_optimizer(set.ddp, nullptr));
      ASSERT_OK(shardrec_ddp_commit(set.ddp));
      const auto values = set.values;
      for (auto& gradient : set.gradients) std::fill(gradient.begin(), gradient.end(), 1.0F);
      // Each rank's is finite, their sum is not.
      set.gradients[2][3] = 3e38F;
      if (skips) {
        ASSERT_OK(shardrec_ddp_all_reduce(set.ddp));
        ASSERT_OK(shardrec_ddp_step(set.ddp));
        EXPECT_EQ(set.values, values);
      } else {
        EXPECT_EQ(shardrec_ddp_all_reduce(set.ddp), SHARDREC_INVALID_BATCH) << "rank " << rank;
        EXPECT_TRUE(contains(shardrec_last_error(), "\"p2\"")) << shardrec_last_error();
        EXPECT_TRUE(contains(shardrec_last_error(), "element 3")) << shardrec_last_error();
      }
      for (auto& gradient : set.gradients) std::fill(gradient.begin(), gradient.end(), 1.0F);
      ASSERT_OK(shardrec_ddp_all_reduce(set.ddp));
      ASSERT_OK(shardrec_ddp_step(set.ddp));
      EXPECT_NE(set.values, values);
      EXPECT_EQ(set.gradients[2][3], 1);
      char* text = nullptr;
      ASSERT_OK(shardrec_ddp_statistics_json(set.ddp, &text));
      EXPECT_EQ(nlohmann::json::parse(text)["non_finite_steps"], 1);
      shardrec_text_free(text);
      EXPECT_OK(shardrec_comm_close(comm));
    });
  }
}

// Gradients of float16's size on every rank, as float16 on the way, added up whole (a small bucket) or
// in parts (a large one).
void expect_no_overflow(int ranks, size_t size, bool average, double factor) {
  run_ranks(ranks, [&](shardrec_comm* comm, int rank) {
    Options options;
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_DDP, options.out()));
    ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_AVERAGE, average ? 1 : 0));
    ASSERT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_DDP_FACTOR, factor));
    ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_COMPRESSION,
                                       SHARDREC_COMPRESSION_FLOAT16));
    HostSet set(comm, options, {size});
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    std::vector<float>& gradient = set.gradients[0];
    std::fill(gradient.begin(), gradient.end(), rank == 0 ? -32.0F : 60000.0F);
    gradient[1] = rank == 1 ? -1e6F : 0.0F;
    gradient[2] = rank == 1 ? HUGE_VALF : 0.0F;
    gradient[3] = rank == 1 ? std::nanf("") : 0.0F;
    gradient[4] = 65519.0F;
    ASSERT_OK(shardrec_ddp_all_reduce(set.ddp));
    const double scale = factor / (average ? ranks : 1);
    const double sum = (-32 + 60000.0 * (ranks - 1)) * scale;
    const double tolerance = size > 100000 ? 0x1p-11 : 0x1p-23;
    EXPECT_NEAR(gradient[0], sum, tolerance * std::abs(sum)) << "rank " << rank;
    EXPECT_NEAR(gradient.back(), sum, tolerance * std::abs(sum)) << "rank " << rank;
    EXPECT_NEAR(gradient[1], -65504 * scale, tolerance * 65504 * std::abs(scale));
    EXPECT_EQ(gradient[2], HUGE_VALF);
    EXPECT_TRUE(std::isnan(gradient[3]));
    EXPECT_NEAR(gradient[4], 65504 * scale * ranks, tolerance * 65504 * scale * ranks);
    char* text = nullptr;
    ASSERT_OK(shardrec_ddp_statistics_json(set.ddp, &text));
    const auto json = nlohmann::json::parse(text);
    shardrec_text_free(text);
    EXPECT_EQ(json["buckets"][0]["saturated"], rank == 1 ? 1 : 0) << "rank " << rank;
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpApi, FiniteGradientsStayFiniteAsFloat16OnTheWay) {
  for (const size_t size : {100U, 150000U}) {
    for (const int ranks : {2, 3, 4}) {
      expect_no_overflow(ranks, size, false, 1);
      expect_no_overflow(ranks, size, true, 1);
      expect_no_overflow(ranks, size, true, 48);
    }
  }
}

// Clips a gradient of the dtype, and compares each element with the formula in double, rounded once.
template <class Element>
void expect_clipped(shardrec_dtype dtype, Element (*to)(double), double (*from)(Element)) {
  constexpr int64_t kSize = 5000;
  run_ranks(1, [&](shardrec_comm* comm, int) {
    std::vector<Element> value(kSize), before, gradient(kSize);
    double squares = 0, largest = 0;
    for (int64_t i = 0; i < kSize; ++i) {
      before.push_back(to((1 + static_cast<double>(i % 977) / 300) * (i % 3 == 0 ? -1.5 : 0.75)));
      squares += from(before.back()) * from(before.back());
      largest = std::max(largest, std::abs(from(before.back())));
    }
    shardrec_tensor value_view{}, gradient_view{};
    ASSERT_OK(shardrec_tensor_vector(value.data(), dtype, kSize, &value_view));
    ASSERT_OK(shardrec_tensor_vector(gradient.data(), dtype, kSize, &gradient_view));
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, ddp.out()));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "w", &value_view, &gradient_view, nullptr));
    ASSERT_OK(shardrec_ddp_commit(ddp));
    for (const shardrec_clip kind :
         {SHARDREC_CLIP_L2, SHARDREC_CLIP_INFINITY, SHARDREC_CLIP_VALUE}) {
      gradient = before;
      const double expected = kind == SHARDREC_CLIP_L2 ? std::sqrt(squares) : largest;
      const double bound = 0.625 * expected;
      double norm = 0;
      ASSERT_OK(shardrec_ddp_clip_gradients(ddp, kind, bound, &norm));
      EXPECT_NEAR(norm, expected, 1e-13 * expected);
      const double exact = bound / (expected + 1e-6);
      const double factor = dtype == SHARDREC_FLOAT64 ? exact : static_cast<float>(exact);
      for (size_t i = 0; i < gradient.size(); ++i) {
        const double x = from(before[i]);
        const double want = kind == SHARDREC_CLIP_VALUE ? std::clamp(x, -bound, bound) : x * factor;
        const double got = from(gradient[i]);
        ASSERT_LE(std::abs(got - from(to(want))), dtype == SHARDREC_FLOAT64 ? 1e-13 : 0)
            << "dtype " << dtype << ", kind " << kind << ", element " << i << " from " << x;
      }
      gradient = before;
      ASSERT_OK(shardrec_ddp_clip_gradients(ddp, kind, 2 * expected, nullptr));
      EXPECT_EQ(gradient, before);
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpApi, GradientsOfEveryDtypeAreClippedAndRoundedToNearest) {
  expect_clipped<float>(
      SHARDREC_FLOAT32, [](double x) { return static_cast<float>(x); },
      [](float x) { return double{x}; });
  expect_clipped<double>(SHARDREC_FLOAT64, [](double x) { return x; }, [](double x) { return x; });
  expect_clipped<uint16_t>(SHARDREC_FLOAT16, to_float16, from_float16);
  expect_clipped<uint16_t>(SHARDREC_BFLOAT16, to_bfloat16, from_bfloat16);
}

TEST(DdpApi, ClippingGivesEveryRankTheSameBitsAndWaitsForNone) {
  std::latch clipped(1);
  std::array<std::vector<float>, 2> bits;
  run_ranks(2, [&](shardrec_comm* comm, int rank) {
    HostSet set(comm, small_buckets(), {300, 2, 400});
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    for (auto& gradient : set.gradients) {
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<float>(i % 13) / 7 + static_cast<float>(rank);
      }
    }
    ASSERT_OK(shardrec_ddp_all_reduce(set.ddp));
    if (rank == 1) clipped.wait();  // in an exchange rank 0 would wait for it
    ASSERT_OK(shardrec_ddp_clip_gradients(set.ddp, SHARDREC_CLIP_L2, 0.5, nullptr));
    if (rank == 0) clipped.count_down();
    for (const auto& gradient : set.gradients) {
      auto& own = bits[static_cast<size_t>(rank)];
      own.insert(own.end(), gradient.begin(), gradient.end());
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
  EXPECT_EQ(bits[0], bits[1]);
}

TEST(DdpApi, AnOptimizerStepsFloat32Only) {
  run_ranks(1, [](shardrec_comm* comm, int) {
    std::vector<double> value(3);
    shardrec_tensor view{};
    ASSERT_OK(shardrec_tensor_vector(value.data(), SHARDREC_FLOAT64, 3, &view));
    Ddp ddp;
    ASSERT_OK(shardrec_ddp_create(comm, nullptr, ddp.out()));
    ASSERT_OK(shardrec_ddp_add_parameter(ddp, "wide", &view, nullptr, nullptr));
    ASSERT_OK(shardrec_ddp_set_optimizer(ddp, nullptr));
    EXPECT_EQ(shardrec_ddp_commit(ddp), SHARDREC_UNSUPPORTED);
    EXPECT_TRUE(contains(shardrec_last_error(), "\"wide\"")) << shardrec_last_error();
  });
}

TEST(DdpApi, MarksOutOfPlaceAreRefusedByName) {
  run_ranks(2, [](shardrec_comm* comm, int) {
    HostSet set(comm, small_buckets(), {3, 2, 4});
    const auto refused = [&](const char* what, shardrec_status status, const char* wrong_value) {
      EXPECT_EQ(status, SHARDREC_INVALID_STATE) << what;
      EXPECT_TRUE(contains(shardrec_last_error(), wrong_value)) << what << shardrec_last_error();
      int64_t position = -1;
      EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_POSITION, &position));
      EXPECT_EQ(position, 1) << what;
    };
    EXPECT_EQ(shardrec_ddp_mark_ready(set.ddp, 0, 1), SHARDREC_INVALID_STATE) << "before commit";
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    refused("before begin", shardrec_ddp_mark_ready(set.ddp, 1, 1), "\"p1\"");
    for (const int32_t sync : {1, 0, 1}) {
      ASSERT_OK(shardrec_ddp_begin(set.ddp, sync));
      EXPECT_EQ(shardrec_ddp_begin(set.ddp, sync), SHARDREC_INVALID_STATE);
      EXPECT_EQ(shardrec_ddp_wait(set.ddp), SHARDREC_INVALID_STATE);
      EXPECT_EQ(shardrec_ddp_mark_unused(set.ddp, 1, 1), SHARDREC_INVALID_STATE) << "UNUSED ERROR";
      for (const auto& [first, count] :
           {std::pair<int64_t, int64_t>{-1, 1}, {0, -1}, {2, 2}, {INT64_MAX, INT64_MAX}, {4, 0}}) {
        EXPECT_EQ(shardrec_ddp_mark_ready(set.ddp, first, count), SHARDREC_INVALID_ARGUMENT);
      }
      EXPECT_OK(shardrec_ddp_mark_ready(set.ddp, 3, 0));
      ASSERT_OK(shardrec_ddp_mark_ready(set.ddp, 1, 1));
      if (sync == 1) refused("twice", shardrec_ddp_mark_ready(set.ddp, 0, 3), "\"p1\"");
      EXPECT_OK(shardrec_ddp_mark_ready(set.ddp, 2, 1)) << "0 is marked, 2 is not";
      ASSERT_OK(shardrec_ddp_end(set.ddp));
      refused("after end", shardrec_ddp_mark_ready(set.ddp, 1, 1), "\"p1\"");
      EXPECT_EQ(shardrec_ddp_end(set.ddp), SHARDREC_INVALID_STATE);
      if (sync == 1) {
        EXPECT_EQ(shardrec_ddp_step(set.ddp), SHARDREC_INVALID_STATE);
        EXPECT_EQ(shardrec_ddp_zero_gradients(set.ddp), SHARDREC_INVALID_STATE);
        EXPECT_EQ(shardrec_ddp_check_equal(set.ddp), SHARDREC_INVALID_STATE);
      }
      ASSERT_OK(shardrec_ddp_wait(set.ddp));
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpApi, DestroyInsideAStepEndsThePeersWait) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    HostSet set(comm, small_buckets(), {3, 2, 4});
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    if (rank == 1) {
      ASSERT_OK(shardrec_ddp_begin(set.ddp, 1));
      ASSERT_OK(shardrec_ddp_mark_ready(set.ddp, 1, 1));
      shardrec_ddp_destroy(set.ddp.out());
      EXPECT_NE(shardrec_comm_status(comm), SHARDREC_OK);
      return;
    }
    // The failure may show itself in any call from begin on.
    shardrec_status status = shardrec_ddp_begin(set.ddp, 1);
    if (status == SHARDREC_OK) status = shardrec_ddp_mark_ready(set.ddp, 0, 3);
    if (status == SHARDREC_OK) status = shardrec_ddp_end(set.ddp);
    if (status == SHARDREC_OK) status = shardrec_ddp_wait(set.ddp);
    EXPECT_EQ(status, SHARDREC_PEER_FAILED) << shardrec_last_error();
  });
}

// The joined rank takes part in the exchange of the order too, whether the order is its own or not.
TEST(DdpApi, ARankMayJoinBeforeTheOrderIsRecorded) {
  for (const int joins : {0, 1}) {
    for (const int batches : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << "rank " << joins << " after " << batches);
      run_ranks(2, [&](shardrec_comm* comm, int rank) {
        ASSERT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 10));
        Options options = small_buckets();
        ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_ORDER,
                                           SHARDREC_DDP_ORDER_RECORDED));
        HostSet set(comm, options, {3, 2, 4});
        ASSERT_OK(shardrec_ddp_set_optimizer(set.ddp, nullptr));
        ASSERT_OK(shardrec_ddp_set_learning_rate(set.ddp, 1));
        ASSERT_OK(shardrec_ddp_commit(set.ddp));
        const int steps = rank == joins ? batches : 4;
        for (int step = 0; step < steps; ++step) {
          for (auto& gradient : set.gradients) gradient.assign(gradient.size(), 1);
          ASSERT_OK(shardrec_ddp_begin(set.ddp, 1));
          for (const int64_t p : {1, 2, 0}) ASSERT_OK(shardrec_ddp_mark_ready(set.ddp, p, 1));
          ASSERT_OK(shardrec_ddp_end(set.ddp));
          ASSERT_OK(shardrec_ddp_wait(set.ddp));
          ASSERT_OK(shardrec_ddp_step(set.ddp));
        }
        ASSERT_OK(shardrec_ddp_join(set.ddp));
        EXPECT_OK(shardrec_ddp_check_equal(set.ddp));
        const auto both = static_cast<float>(batches);
        EXPECT_EQ(set.values[2], std::vector<float>(4, -both - (4 - both) / 2));
        EXPECT_OK(shardrec_comm_close(comm));
      });
    }
  }
}

TEST(DdpApi, StatisticsCountStepsAndBytesPerBucket) {
  run_ranks(2, [](shardrec_comm* comm, int) {
    HostSet set(comm, small_buckets(), {300, 2, 400});
    char* text = nullptr;
    EXPECT_EQ(shardrec_ddp_statistics_json(set.ddp, &text), SHARDREC_INVALID_STATE);
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    for (int step = 0; step < 3; ++step) ASSERT_OK(shardrec_ddp_all_reduce(set.ddp));
    ASSERT_OK(shardrec_ddp_statistics_json(set.ddp, &text));
    const auto before = nlohmann::json::parse(take(text));
    ASSERT_OK(shardrec_ddp_begin(set.ddp, 0));
    ASSERT_OK(shardrec_ddp_end(set.ddp));
    ASSERT_OK(shardrec_ddp_statistics_json(set.ddp, &text));
    const auto json = nlohmann::json::parse(take(text));
    EXPECT_EQ(json.at("buckets"), before.at("buckets")) << "a step without sync sends nothing";
    EXPECT_EQ(json.at("ranks"), 2);
    EXPECT_EQ(json.at("parameters"), 3);
    EXPECT_EQ(json.at("steps"), 3);
    EXPECT_EQ(json.at("steps_without_sync"), 1);
    for (const char* key : {"exchange_seconds", "waited_seconds", "hidden_seconds"}) {
      EXPECT_GE(json.at(key).get<double>(), 0) << key;
    }
    EXPECT_LE(json.at("hidden_seconds").get<double>(), json.at("exchange_seconds").get<double>());
    ASSERT_EQ(json.at("buckets").size(), 3U);
    const std::vector<int64_t> elements = {400, 2, 300};
    for (size_t b = 0; b < 3; ++b) {
      const auto& bucket = json.at("buckets").at(b);
      EXPECT_EQ(bucket.at("dtype"), "float32");
      EXPECT_EQ(bucket.at("parameters"), 1);
      EXPECT_EQ(bucket.at("elements"), elements[b]);
      EXPECT_GE(bucket.at("bytes_sent").get<int64_t>(), 3 * 4 * elements[b] / 2);
      int32_t at = -1;
      ASSERT_OK(shardrec_ddp_bucket_of(set.ddp, 2 - static_cast<int64_t>(b), &at));
      EXPECT_EQ(at, static_cast<int32_t>(b));
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpApi, TheLearningRateHoldsFromTheNextStep) {
  run_ranks(1, [](shardrec_comm* comm, int) {
    HostSet set(comm, nullptr, {2});
    EXPECT_EQ(shardrec_ddp_set_learning_rate(set.ddp, 1), SHARDREC_INVALID_STATE) << "no optimizer";
    ASSERT_OK(shardrec_ddp_set_optimizer(set.ddp, nullptr));
    ASSERT_OK(shardrec_ddp_set_learning_rate(set.ddp, 0.5)) << "before commit";
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    set.values[0] = {8, 8};
    set.gradients[0] = {1, 2};
    ASSERT_OK(shardrec_ddp_step(set.ddp));
    EXPECT_EQ(set.values[0], (std::vector<float>{7.5F, 7}));
    for (const double refused : {-1.0, std::nan(""), HUGE_VAL}) {
      EXPECT_EQ(shardrec_ddp_set_learning_rate(set.ddp, refused), SHARDREC_INVALID_ARGUMENT);
    }
    ASSERT_OK(shardrec_ddp_set_learning_rate(set.ddp, 2));
    ASSERT_OK(shardrec_ddp_begin(set.ddp, 1));
    EXPECT_EQ(shardrec_ddp_set_learning_rate(set.ddp, 4), SHARDREC_INVALID_STATE);
    ASSERT_OK(shardrec_ddp_mark_ready(set.ddp, 0, 1));
    ASSERT_OK(shardrec_ddp_end(set.ddp));
    ASSERT_OK(shardrec_ddp_wait(set.ddp));
    ASSERT_OK(shardrec_ddp_step(set.ddp));
    EXPECT_EQ(set.values[0], (std::vector<float>{5.5F, 3}));
  });
}

}  // namespace
}  // namespace shardrec::test
