// shardrec_tensor from and to DLPack.
#include "shardrec/dlpack.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

DLTensor dl_tensor(void* data, std::vector<int64_t>& shape, int64_t* strides, uint8_t code,
                   uint8_t bits) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(shape.size());
  tensor.dtype = {code, bits, 1};
  tensor.shape = shape.data();
  tensor.strides = strides;
  return tensor;
}

TEST(Dlpack, EveryDtypeHasDlpacksNumber) {
  struct Case {
    uint8_t code;
    uint8_t bits;
    shardrec_dtype dtype;
  };
  std::vector<int64_t> shape = {2};
  std::array<double, 2> data{};
  for (const Case& c : {Case{kDLUInt, 8, SHARDREC_UINT8}, Case{kDLInt, 32, SHARDREC_INT32},
                        Case{kDLInt, 64, SHARDREC_INT64}, Case{kDLFloat, 16, SHARDREC_FLOAT16},
                        Case{kDLFloat, 32, SHARDREC_FLOAT32}, Case{kDLFloat, 64, SHARDREC_FLOAT64},
                        Case{kDLBfloat, 16, SHARDREC_BFLOAT16}}) {
    const DLTensor from = dl_tensor(data.data(), shape, nullptr, c.code, c.bits);
    shardrec_tensor tensor{};
    ASSERT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_OK);
    EXPECT_EQ(tensor.dtype, c.dtype);
    DLTensor back{};
    ASSERT_EQ(shardrec_tensor_to_dlpack(&tensor, &back), SHARDREC_OK);
    EXPECT_EQ(back.dtype.code, c.code);
    EXPECT_EQ(back.dtype.bits, c.bits);
    EXPECT_EQ(back.dtype.lanes, 1);
  }
}

TEST(Dlpack, ShapeStridesAndOffsetGoBothWays) {
  std::array<float, 24> data{};
  std::vector<int64_t> shape = {2, 3};
  std::array<int64_t, 2> strides = {8, 1};
  DLTensor from = dl_tensor(data.data(), shape, strides.data(), kDLFloat, 32);
  from.byte_offset = 4 * sizeof(float);
  shardrec_tensor tensor{};
  ASSERT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_OK);
  EXPECT_EQ(tensor.data, data.data() + 4);
  EXPECT_EQ(tensor.device_type, SHARDREC_DEVICE_CPU);
  EXPECT_EQ(tensor.ndim, 2);
  EXPECT_EQ(tensor.shape[1], 3);
  EXPECT_EQ(tensor.stride[0], 8);
  DLTensor back{};
  ASSERT_EQ(shardrec_tensor_to_dlpack(&tensor, &back), SHARDREC_OK);
  EXPECT_EQ(back.data, data.data() + 4);
  EXPECT_EQ(back.byte_offset, 0u);
  EXPECT_EQ(back.shape, tensor.shape);
  EXPECT_EQ(back.strides, tensor.stride);
}

TEST(Dlpack, NoStridesMeansCompactBothWays) {
  std::array<float, 6> data{};
  std::vector<int64_t> shape = {2, 3};
  const DLTensor from = dl_tensor(data.data(), shape, nullptr, kDLFloat, 32);
  shardrec_tensor tensor{};
  ASSERT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_OK);
  EXPECT_EQ(tensor.stride[0], 0);
  DLTensor back{};
  ASSERT_EQ(shardrec_tensor_to_dlpack(&tensor, &back), SHARDREC_OK);
  EXPECT_EQ(back.strides, nullptr);
}

TEST(Dlpack, WhatHasNoNumberHereIsRefusedAndOutIsLeftAlone) {
  std::array<float, 6> data{};
  std::vector<int64_t> shape = {6};
  std::vector<int64_t> nine(9, 1);
  shardrec_tensor tensor{};
  tensor.ndim = -5;
  DLTensor from = dl_tensor(data.data(), shape, nullptr, kDLUInt, 16);
  EXPECT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_UNSUPPORTED);
  from = dl_tensor(data.data(), shape, nullptr, kDLFloat, 32);
  from.dtype.lanes = 4;
  EXPECT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_UNSUPPORTED);
  from = dl_tensor(data.data(), shape, nullptr, kDLFloat, 32);
  from.device.device_type = kDLOpenCL;
  EXPECT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_UNSUPPORTED);
  from = dl_tensor(data.data(), nine, nullptr, kDLFloat, 32);
  EXPECT_EQ(shardrec_tensor_from_dlpack(&from, &tensor), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_tensor_from_dlpack(nullptr, &tensor), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_tensor_from_dlpack(&from, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(tensor.ndim, -5);
  EXPECT_EQ(shardrec_tensor_to_dlpack(&tensor, nullptr), SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
