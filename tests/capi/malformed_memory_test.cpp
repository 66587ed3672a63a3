// Malformed calls: memory behind handles, and copies of tensors, as far as the CPU goes.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "malformed.h"

namespace shardrec::test {
namespace {

using MemoryHandle = Owned<shardrec_memory, shardrec_memory_destroy>;

TEST_F(Malformed, MemoryThatIsNotThere) {
  shardrec_memory* out = nullptr;
  const auto create = [&](int type, int32_t device, int64_t bytes) {
    return shardrec_memory_create(static_cast<shardrec_device_type>(type), device, bytes, nullptr,
                                  &out);
  };
  expect_refused({
      {"no type", [&] { return create(0, 0, 8); }, SHARDREC_INVALID_ARGUMENT, "type is 0"},
      {"unknown type", [&] { return create(99, 0, 8); }, SHARDREC_INVALID_ARGUMENT, "type is 99"},
      {"negative bytes", [&] { return create(SHARDREC_DEVICE_CPU, 0, -1); },
       SHARDREC_INVALID_ARGUMENT, "bytes is -1"},
      {"second CPU", [&] { return create(SHARDREC_DEVICE_CPU, 1, 8); }, SHARDREC_INVALID_ARGUMENT,
       "device_id is 1"},
      {"more than there is", [&] { return create(SHARDREC_DEVICE_CPU, 0, INT64_MAX); },
       SHARDREC_OUT_OF_MEMORY, "bytes"},
      {"no out",
       [&] { return shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 8, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
  });
  EXPECT_EQ(out, nullptr);
  shardrec_memory_destroy(nullptr);
  shardrec_memory_destroy(&out);
}

// The plug-in is looked for in an empty place.
TEST_F(Malformed, MemoryOfADeviceWithoutThePlugIn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // one of this program may be loaded
  EXPECT_EXIT(
      {
        setenv("SHARDREC_PLUGIN_PATH", "/nonexistent", 1);
        shardrec_memory* out = nullptr;
        const shardrec_status status =
            shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 8, nullptr, &out);
        std::fprintf(stderr, "%s: %s\n", shardrec_status_name(status), shardrec_last_error());
        const bool plain =
            shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 8, nullptr, &out) == SHARDREC_OK;
        std::_Exit(status == SHARDREC_UNSUPPORTED && plain ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "SHARDREC_UNSUPPORTED: .*CUDA devices need");
}

TEST_F(Malformed, TensorsOfMemory) {
  MemoryHandle memory, closed;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 64, nullptr, memory.out()));
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 64, nullptr, closed.out()));
  shardrec_memory* copy = closed.get();
  shardrec_memory_destroy(&copy);
  std::array<int64_t, 9> shape = {4, 4, 1, 1, 1, 1, 1, 1, 1};
  shardrec_tensor out{};
  out.ndim = -77;
  const auto view = [&](int64_t offset, int32_t ndim, int dtype = SHARDREC_FLOAT32) {
    return shardrec_memory_tensor(memory, offset, static_cast<shardrec_dtype>(dtype), ndim,
                                  shape.data(), &out);
  };
  const auto of_size = [&](int64_t rows, int64_t columns) {
    const std::array<int64_t, 2> sizes = {rows, columns};
    return shardrec_memory_tensor(memory, 0, SHARDREC_FLOAT32, 2, sizes.data(), &out);
  };
  expect_refused({
      {"NULL",
       [&] { return shardrec_memory_tensor(nullptr, 0, SHARDREC_FLOAT32, 1, shape.data(), &out); },
       SHARDREC_INVALID_HANDLE, "a shardrec_memory is needed"},
      {"model as memory",
       [&] {
         return shardrec_memory_tensor(as<shardrec_memory>(model.get()), 0, SHARDREC_FLOAT32, 1,
                                       shape.data(), &out);
       },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_model; a shardrec_memory is needed"},
      {"destroyed",
       [&] { return shardrec_memory_tensor(closed, 0, SHARDREC_FLOAT32, 1, shape.data(), &out); },
       SHARDREC_CLOSED, "this shardrec_memory was destroyed"},
      {"no out",
       [&] {
         return shardrec_memory_tensor(memory, 0, SHARDREC_FLOAT32, 1, shape.data(), nullptr);
       },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"no shape",
       [&] { return shardrec_memory_tensor(memory, 0, SHARDREC_FLOAT32, 1, nullptr, &out); },
       SHARDREC_INVALID_ARGUMENT, "shape is NULL"},
      {"unknown dtype", [&] { return view(0, 1, 12345); }, SHARDREC_INVALID_ARGUMENT,
       "dtype is 12345"},
      {"negative offset", [&] { return view(-4, 1); }, SHARDREC_INVALID_ARGUMENT,
       "offset_bytes is -4"},
      {"offset out of alignment", [&] { return view(2, 1); }, SHARDREC_INVALID_ARGUMENT,
       "offset_bytes is 2; multiples of 4"},
      {"offset beyond the end", [&] { return view(INT64_MAX - 3, 1); }, SHARDREC_INVALID_ARGUMENT,
       "does not end within the memory's 64 bytes"},
      {"an element too much", [&] { return view(4, 2); }, SHARDREC_INVALID_ARGUMENT,
       "a tensor of 64 bytes from byte 4 on"},
      {"negative ndim", [&] { return view(0, -1); }, SHARDREC_INVALID_ARGUMENT, "ndim is -1"},
      {"ndim 9", [&] { return view(0, 9); }, SHARDREC_INVALID_ARGUMENT, "ndim is 9"},
      {"negative size", [&] { return of_size(2, -1); }, SHARDREC_INVALID_ARGUMENT,
       "shape[1] is -1"},
      {"size that overflows", [&] { return of_size(int64_t{1} << 40, int64_t{1} << 40); },
       SHARDREC_INVALID_ARGUMENT, "no memory can hold"},
      {"size that overflows to something small", [&] { return of_size(int64_t{1} << 62, 4); },
       SHARDREC_INVALID_ARGUMENT, "no memory can hold"},
  });
  EXPECT_EQ(out.ndim, -77);
  EXPECT_OK(view(0, 2));
  EXPECT_OK(of_size(0, int64_t{1} << 62)) << "a tensor without elements";
  EXPECT_OK(shardrec_memory_tensor(memory, 60, SHARDREC_FLOAT32, 0, nullptr, &out));
}

TEST_F(Malformed, CopiesOfTensors) {
  std::array<float, 8> data{}, more{};
  shardrec_tensor good{}, from{};
  ASSERT_OK(shardrec_tensor_matrix(data.data(), SHARDREC_FLOAT32, 2, 4, &good));
  ASSERT_OK(shardrec_tensor_matrix(more.data(), SHARDREC_FLOAT32, 2, 4, &from));
  const auto copy = [&](auto change) {
    shardrec_tensor changed = good;
    change(changed);
    return shardrec_tensor_copy(&changed, &from, 0);
  };
  expect_refused({
      {"no target", [&] { return shardrec_tensor_copy(nullptr, &from, 0); },
       SHARDREC_INVALID_ARGUMENT, "to is NULL"},
      {"no source", [&] { return shardrec_tensor_copy(&good, nullptr, 0); },
       SHARDREC_INVALID_ARGUMENT, "from is NULL"},
      {"another dtype", [&] { return copy([](auto& t) { t.dtype = SHARDREC_INT32; }); },
       SHARDREC_INVALID_ARGUMENT, "from has dtype float32, to has int32"},
      {"fewer dimensions", [&] { return copy([](auto& t) { t.ndim = 1; }); },
       SHARDREC_INVALID_ARGUMENT, "from has 2 dimensions, to has 1"},
      {"another shape",
       [&] {
         return copy([](auto& t) {
           std::swap(t.shape[0], t.shape[1]);
           t.stride[0] = 2;
         });
       },
       SHARDREC_INVALID_ARGUMENT, "from has 2 elements in dimension 0, to has 4"},
      {"device type", [&] { return copy([](auto& t) { t.device_type = 99; }); },
       SHARDREC_INVALID_ARGUMENT, "to has device type 99"},
      {"rows that overlap", [&] { return copy([](auto& t) { t.stride[0] = 2; }); },
       SHARDREC_INVALID_ARGUMENT, "to has stride 2 in dimension 0"},
      {"columns that lie apart", [&] { return copy([](auto& t) { t.stride[1] = 2; }); },
       SHARDREC_INVALID_ARGUMENT, "to has stride 2 in dimension 1"},
      {"data out of alignment",
       [&] { return copy([](auto& t) { t.data = static_cast<char*>(t.data) + 1; }); },
       SHARDREC_INVALID_ARGUMENT, "to has data that is not aligned"},
  });
}

// Rows of either side may lie apart.
TEST(Copies, OfTensorsOnTheCpu) {
  for (const int64_t from_stride : {3, 5}) {
    for (const int64_t to_stride : {3, 4}) {
      std::array<float, 20> given{}, got{};
      for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i + 1);
      shardrec_tensor from{}, to{};
      ASSERT_OK(shardrec_tensor_matrix(given.data(), SHARDREC_FLOAT32, 4, 3, &from));
      ASSERT_OK(shardrec_tensor_matrix(got.data(), SHARDREC_FLOAT32, 4, 3, &to));
      from.stride[0] = from_stride;
      to.stride[0] = to_stride;
      ASSERT_OK(shardrec_tensor_copy(&to, &from, 12345)) << "a stream means nothing";
      for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
        const int64_t row = i / to_stride, column = i % to_stride;
        const bool written = row < 4 && column < 3;
        EXPECT_EQ(got[static_cast<size_t>(i)],
                  written ? given[static_cast<size_t>(row * from_stride + column)] : 0)
            << i;
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::test
