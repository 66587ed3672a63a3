// Typed views of the tensors that callers pass.
#include "core/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "capi_test.h"
#include "core/error.h"

namespace shardrec::core {
namespace {

using test::contains;

shardrec_tensor tensor(void* data, shardrec_dtype dtype, std::vector<int64_t> shape,
                       std::vector<int64_t> stride = {}) {
  shardrec_tensor out{};
  out.data = data;
  out.device_type = SHARDREC_DEVICE_CPU;
  out.dtype = dtype;
  out.ndim = static_cast<int32_t>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) out.shape[d] = shape[d];
  for (size_t d = 0; d < stride.size(); ++d) out.stride[d] = stride[d];
  return out;
}

// The sentence of the error that a view gives, "" for none.
template <class View>
std::string refusal(const View& view) {
  try {
    view();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    return error.sentence();
  }
}

TEST(TensorView, AcceptsCompactVectorsWithAndWithoutStrides) {
  std::array<float, 6> data = {0, 1, 2, 3, 4, 5};
  for (const std::vector<int64_t>& stride : {std::vector<int64_t>{}, {0}, {1}}) {
    const shardrec_tensor t = tensor(data.data(), SHARDREC_FLOAT32, {6}, stride);
    const std::span<float> view = vector_view<float>(&t, "x", 6);
    ASSERT_EQ(view.size(), 6u);
    EXPECT_EQ(view.data(), data.data());
    EXPECT_EQ(view[5], 5);
  }
}

TEST(TensorView, CarriesItsDeviceAndTakesThoseThatTheCallNames) {
  std::array<float, 6> data{};
  shardrec_tensor t = tensor(data.data(), SHARDREC_FLOAT32, {2, 3});
  EXPECT_EQ(any_matrix_view(&t, "x", SHARDREC_FLOAT32).device.type, SHARDREC_DEVICE_CPU);
  t.device_type = SHARDREC_DEVICE_CUDA;
  t.device_id = 1;
  try {
    any_matrix_view(&t, "x", SHARDREC_FLOAT32);
    FAIL() << "a call that takes tensors of the host took one of a device";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
  }
  const AnyMatrix view = any_matrix_view(&t, "x", SHARDREC_FLOAT32, 2, 3, DeviceSet{.cuda = 1});
  EXPECT_EQ(view.device.type, SHARDREC_DEVICE_CUDA);
  EXPECT_EQ(view.device.id, 1);
  EXPECT_EQ(view.data, data.data());
  try {
    any_matrix_view(&t, "x", SHARDREC_FLOAT32, 2, 3, DeviceSet{.cuda = 0});
    FAIL() << "a call that takes tensors of device 0 took one of device 1";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(error.parts().value, 1);
  }
}

TEST(TensorView, ADimensionOfSizeZeroNeedsNoData) {
  const shardrec_tensor null = tensor(nullptr, SHARDREC_INT64, {0});
  EXPECT_EQ(vector_view<int64_t>(&null, "x").size(), 0u);
  std::array<char, 3> storage{};
  const shardrec_tensor dangling = tensor(storage.data() + 1, SHARDREC_FLOAT32, {0, 5}, {17, 3});
  const Matrix view = matrix_view(&dangling, "x");
  EXPECT_EQ(view.rows, 0);
  EXPECT_EQ(view.cols, 5);
  EXPECT_EQ(view.data, nullptr);
  const shardrec_tensor huge =
      tensor(nullptr, SHARDREC_FLOAT32, {INT64_MAX, INT64_MAX, 0, INT64_MAX});
  EXPECT_EQ(flat_view(&huge, "x").size, 0);
}

TEST(TensorView, AScalarHasOneElement) {
  double value = 3;
  const shardrec_tensor t = tensor(&value, SHARDREC_FLOAT64, {});
  EXPECT_EQ(flat_view(&t, "x").size, 1);
  EXPECT_EQ(flat_view(&t, "x").as<double>()[0], 3);
}

TEST(TensorView, StridesOfSizeOneDimensionsDoNotMatter) {
  std::array<float, 4> data{};
  const shardrec_tensor flat = tensor(data.data(), SHARDREC_FLOAT32, {1, 4, 1}, {99, 1, -3});
  EXPECT_EQ(flat_view(&flat, "x").size, 4);
  const shardrec_tensor one_row = tensor(data.data(), SHARDREC_FLOAT32, {1, 4}, {-7, 1});
  EXPECT_EQ(matrix_view(&one_row, "x").stride, 4);
  const shardrec_tensor one_column = tensor(data.data(), SHARDREC_FLOAT32, {2, 1}, {2, 55});
  EXPECT_EQ(matrix_view(&one_column, "x").stride, 2);
}

TEST(TensorView, MatricesMayHaveAnyRowStrideThatHoldsARow) {
  std::array<float, 12> data{};
  const shardrec_tensor gaps = tensor(data.data(), SHARDREC_FLOAT32, {3, 2}, {4, 1});
  const Matrix view = matrix_view(&gaps, "out", 3, 2);
  EXPECT_EQ(view.stride, 4);
  EXPECT_EQ(view.row(2), data.data() + 8);
  EXPECT_FALSE(view.compact());
  const shardrec_tensor plain = tensor(data.data(), SHARDREC_FLOAT32, {3, 4});
  EXPECT_TRUE(matrix_view(&plain, "out").compact());
}

TEST(TensorView, ColumnsMayStandForVectors) {
  std::array<float, 3> data{};
  const shardrec_tensor column = tensor(data.data(), SHARDREC_FLOAT32, {3, 1});
  EXPECT_EQ(column_view<float>(&column, "x", 3).size(), 3u);
  EXPECT_TRUE(
      contains(refusal([&] { vector_view<float>(&column, "x", 3); }), "x has shape [3, 1]"));
  const shardrec_tensor wide = tensor(data.data(), SHARDREC_FLOAT32, {1, 3});
  EXPECT_NE(refusal([&] { column_view<float>(&wide, "x"); }), "");
}

TEST(TensorView, IdsAreOfEitherWidth) {
  std::array<int64_t, 2> wide{};
  std::array<int32_t, 2> narrow{};
  const shardrec_tensor a = tensor(wide.data(), SHARDREC_INT64, {2});
  const shardrec_tensor b = tensor(narrow.data(), SHARDREC_INT32, {2});
  EXPECT_EQ(id_view(&a, "values").dtype, SHARDREC_INT64);
  EXPECT_EQ(id_view(&b, "values").dtype, SHARDREC_INT32);
  const shardrec_tensor c = tensor(narrow.data(), SHARDREC_FLOAT32, {2});
  EXPECT_EQ(refusal([&] { id_view(&c, "values"); }),
            "values has dtype float32; int64 or int32 is accepted");
}

TEST(TensorView, WhatDoesNotFitIsRefusedWithTheReason) {
  std::array<float, 16> data{};
  struct Case {
    shardrec_tensor tensor;
    const char* reason;
  };
  const auto f32 = SHARDREC_FLOAT32;
  const std::vector<Case> cases = {
      {tensor(data.data(), SHARDREC_FLOAT64, {2, 2}), "has dtype float64; float32 is accepted"},
      {tensor(data.data(), f32, {4}), "has shape [4]; two dimensions are accepted"},
      {tensor(data.data(), f32, {3, 2}), "has shape [3, 2]; 2 rows are needed"},
      {tensor(data.data(), f32, {2, 3}), "has shape [2, 3]; 2 columns are needed"},
      {tensor(data.data(), f32, {2, 2}, {2, 2}), "has column stride 2; 1 is accepted"},
      {tensor(data.data(), f32, {2, 2}, {1, 1}), "has row stride 1; 2 to"},
      {tensor(data.data(), f32, {2, 2}, {-2, 1}), "has row stride -2"},
      {tensor(data.data(), f32, {2, 2}, {INT64_MAX, 1}), "has row stride 9223372036854775807"},
      {tensor(data.data(), f32, {2, 2}, {0, 1}), "has row stride 0"},
      {tensor(nullptr, f32, {2, 2}), "has no data, but shape [2, 2]"},
  };
  for (const Case& c : cases) {
    const std::string sentence = refusal([&] { matrix_view(&c.tensor, "gradient", 2, 2); });
    EXPECT_TRUE(contains(sentence, std::string("gradient ") + c.reason)) << sentence;
  }
  EXPECT_EQ(refusal([] { matrix_view(nullptr, "gradient"); }),
            "gradient is NULL; a tensor is needed");
}

TEST(TensorView, KnowsItsDtypes) {
  EXPECT_STREQ(dtype_name(SHARDREC_BFLOAT16), "bfloat16");
  EXPECT_EQ(dtype_size(SHARDREC_FLOAT16), 2u);
  EXPECT_EQ(dtype_size(SHARDREC_FLOAT64), 8u);
  EXPECT_EQ(dtype_size(5), 0u);
  EXPECT_STREQ(dtype_name(5), "unknown dtype");
}

}  // namespace
}  // namespace shardrec::core
