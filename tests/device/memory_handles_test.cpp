// Memory of devices behind handles, and copies of tensors (memory.h).
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "compute/cuda/host/stream.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "support/eventually.h"

namespace shardrec::test {
namespace {

using MemoryHandle = Owned<shardrec_memory, shardrec_memory_destroy>;

class MemoryHandles : public HeldStreamsTest {
 protected:
  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    fail_allocation_ = of_plugin<void(int64_t)>("simt_fail_allocation");
    live_allocations_ = of_plugin<int64_t()>("simt_live_allocations");
  }
  void TearDown() override {
    HeldStreamsTest::TearDown();
    if (fail_allocation_ != nullptr) fail_allocation_(0);
  }

  static shardrec_tensor tensor(shardrec_memory* memory, int64_t offset, shardrec_dtype dtype,
                                std::vector<int64_t> shape) {
    shardrec_tensor view{};
    EXPECT_OK(shardrec_memory_tensor(memory, offset, dtype, static_cast<int32_t>(shape.size()),
                                     shape.data(), &view));
    return view;
  }
  static shardrec_tensor here(std::vector<float>& values, int64_t rows, int64_t columns,
                              int64_t stride) {
    shardrec_tensor view{};
    EXPECT_OK(shardrec_tensor_matrix(values.data(), SHARDREC_FLOAT32, rows, columns, &view));
    view.stride[0] = stride;
    return view;
  }
  static std::vector<float> counted(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
  }
  void (*fail_allocation_)(int64_t) = nullptr;
  int64_t (*live_allocations_)() = nullptr;
};

TEST_F(MemoryHandles, AreZerosOfTheDevice) {
  MemoryHandle memory;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 4000, nullptr, memory.out()));
  const shardrec_tensor there = tensor(memory, 0, SHARDREC_FLOAT32, {1000});
  EXPECT_EQ(there.device_type, SHARDREC_DEVICE_CUDA);
  EXPECT_EQ(there.device_id, 0);
  EXPECT_EQ(std::bit_cast<uintptr_t>(there.data) % 256, 0);
  std::vector<float> values = counted(1000);
  shardrec_tensor back{};
  ASSERT_OK(shardrec_tensor_vector(values.data(), SHARDREC_FLOAT32, 1000, &back));
  ASSERT_OK(shardrec_tensor_copy(&back, &there, 0));
  EXPECT_EQ(values, std::vector<float>(1000));
}

// Of each dtype, compact and with rows apart, there, on the device, and back.
TEST_F(MemoryHandles, KeepWhatIsCopiedThereAndOn) {
  for (const shardrec_dtype dtype :
       {SHARDREC_UINT8, SHARDREC_BFLOAT16, SHARDREC_FLOAT32, SHARDREC_INT64}) {
    const size_t element = dtype == SHARDREC_UINT8      ? 1
                           : dtype == SHARDREC_BFLOAT16 ? 2
                           : dtype == SHARDREC_FLOAT32  ? 4
                                                        : 8;
    for (const int64_t gap : {0, 3}) {
      SCOPED_TRACE(testing::Message() << "dtype " << dtype << ", gap " << gap);
      constexpr int64_t kCount = 37, kColumns = 5;
      const int64_t stride = kColumns + gap;
      const size_t bytes = static_cast<size_t>(kCount * stride) * element;
      std::vector<unsigned char> given(bytes), got(bytes, 0xee);
      for (size_t i = 0; i < bytes; ++i) given[i] = static_cast<unsigned char>(i * 7 + 1);
      MemoryHandle first, second;
      ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, static_cast<int64_t>(bytes),
                                       nullptr, first.out()));
      ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, static_cast<int64_t>(bytes),
                                       nullptr, second.out()));
      const auto rows_of = [&](void* data, bool on_device, int64_t rows_apart) {
        shardrec_tensor view{};
        EXPECT_OK(shardrec_tensor_matrix(data, dtype, kCount, kColumns, &view));
        view.stride[0] = rows_apart;
        if (on_device) view.device_type = SHARDREC_DEVICE_CUDA;
        return view;
      };
      const shardrec_tensor from = rows_of(given.data(), false, stride);
      const shardrec_tensor there =
          rows_of(tensor(first, 0, dtype, {kCount, kColumns}).data, true, kColumns);
      const shardrec_tensor apart =
          rows_of(tensor(second, 0, dtype, {kCount, kColumns}).data, true, stride);
      const shardrec_tensor to = rows_of(got.data(), false, stride);
      ASSERT_OK(shardrec_tensor_copy(&there, &from, 0));
      ASSERT_OK(shardrec_tensor_copy(&apart, &there, caller_.number()));
      ASSERT_OK(shardrec_tensor_copy(&to, &apart, caller_.number()));
      for (int64_t r = 0; r < kCount; ++r) {
        const size_t at = static_cast<size_t>(r * stride) * element;
        const size_t used = kColumns * element;
        EXPECT_EQ(std::memcmp(&got[at], &given[at], used), 0) << r;
        for (size_t i = at + used; i < static_cast<size_t>((r + 1) * stride) * element; ++i) {
          ASSERT_EQ(got[i], 0xee) << "between rows, byte " << i;
        }
      }
    }
  }
}

// More than what travels at once.
TEST_F(MemoryHandles, TakeLongRowsThatLieApart) {
  constexpr int64_t kRowsThere = 3, kColumns = (5 << 20) / 4;
  std::vector<float> given = counted(kRowsThere * (kColumns + 1));
  std::vector<float> got(given.size());
  MemoryHandle memory;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, kRowsThere * kColumns * 4, nullptr,
                                   memory.out()));
  const shardrec_tensor there = tensor(memory, 0, SHARDREC_FLOAT32, {kRowsThere, kColumns});
  const shardrec_tensor from = here(given, kRowsThere, kColumns, kColumns + 1);
  const shardrec_tensor to = here(got, kRowsThere, kColumns, kColumns + 1);
  ASSERT_OK(shardrec_tensor_copy(&there, &from, 0));
  ASSERT_OK(shardrec_tensor_copy(&to, &there, 0));
  for (int64_t r = 0; r < kRowsThere; ++r) {
    given[static_cast<size_t>((r + 1) * (kColumns + 1) - 1)] = 0;  // between rows
  }
  EXPECT_EQ(got, given);
}

TEST_F(MemoryHandles, AreReadAndWrittenInTheOrderOfTheCallersStream) {
  MemoryHandle first, second;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 4000, nullptr, first.out()));
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 4000, nullptr, second.out()));
  const shardrec_tensor a = tensor(first, 0, SHARDREC_FLOAT32, {1000});
  const shardrec_tensor b = tensor(second, 0, SHARDREC_FLOAT32, {1000});
  std::vector<float> given = counted(1000), got(1000), other(1000);
  const compute::cuda::host::PinnedMemory pinned(4000);
  std::memcpy(pinned.data(), given.data(), 4000);

  // The call between tensors of the device returns while what it follows is held.
  hold_(caller_.number());
  caller_.copy(a.data, pinned.data(), 4000);
  ASSERT_OK(shardrec_tensor_copy(&b, &a, caller_.number()));
  compute::cuda::host::require(compute::cuda::host::table().fill(caller_.handle(), a.data, 0, 4000),
                               "overwrite what was copied");
  // Another stream does not wait for it.
  shardrec_tensor out{};
  ASSERT_OK(shardrec_tensor_vector(other.data(), SHARDREC_FLOAT32, 1000, &out));
  ASSERT_OK(shardrec_tensor_copy(&out, &b, 0));
  EXPECT_EQ(other, std::vector<float>(1000)) << "the copy took place before its stream came to it";

  shardrec_tensor to{};
  ASSERT_OK(shardrec_tensor_vector(got.data(), SHARDREC_FLOAT32, 1000, &to));
  go_on_during([&] { ASSERT_OK(shardrec_tensor_copy(&to, &b, caller_.number())); });
  EXPECT_EQ(got, given);
  ASSERT_OK(shardrec_tensor_copy(&to, &a, caller_.number()));
  EXPECT_EQ(got, std::vector<float>(1000));

  // Memory of the CPU that devices copy to by themselves is written when the call returns.
  MemoryHandle on_cpu;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 4000, nullptr, on_cpu.out()));
  const shardrec_tensor direct = tensor(on_cpu, 0, SHARDREC_FLOAT32, {1000});
  hold_(caller_.number());
  go_on_during([&] {
    ASSERT_OK(shardrec_tensor_copy(&direct, &b, caller_.number()));
    EXPECT_EQ(std::memcmp(direct.data, given.data(), 4000), 0);
  });

  // What the caller enqueues behind a copy to the device finds it made.
  const shardrec_tensor from = out;
  std::iota(other.begin(), other.end(), 1.0F);
  ASSERT_OK(shardrec_tensor_copy(&a, &from, caller_.number()));
  std::memset(pinned.data(), 0, 4000);
  caller_.copy(pinned.data(), a.data, 4000);
  caller_.wait();
  EXPECT_EQ(std::memcmp(pinned.data(), other.data(), 4000), 0);
}

// Destroyed while a stream that it follows is still to read it.
TEST_F(MemoryHandles, GoWhenTheLegacyDefaultStreamIsThroughWithThem) {
  std::vector<float> given = counted(1000), got(1000);
  shardrec_tensor from{}, to{};
  ASSERT_OK(shardrec_tensor_vector(given.data(), SHARDREC_FLOAT32, 1000, &from));
  ASSERT_OK(shardrec_tensor_vector(got.data(), SHARDREC_FLOAT32, 1000, &to));
  MemoryHandle kept;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 4000, nullptr, kept.out()));
  const shardrec_tensor b = tensor(kept, 0, SHARDREC_FLOAT32, {1000});
  compute::cuda::host::Event gate(0);
  {
    MemoryHandle memory;
    ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 4000, nullptr, memory.out()));
    const shardrec_tensor a = tensor(memory, 0, SHARDREC_FLOAT32, {1000});
    ASSERT_OK(shardrec_tensor_copy(&a, &from, 0));
    hold_(caller_.number());
    gate.record(caller_);
    gate.hold_up_caller(0);
    ASSERT_OK(shardrec_tensor_copy(&b, &a, 0));
  }
  // What is given back is overwritten by CUDA on the CPU: memory that is given back too early has time for it.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  go_on_();
  ASSERT_OK(shardrec_tensor_copy(&to, &b, 0));
  EXPECT_EQ(got, given);
}

TEST_F(MemoryHandles, TrainAStepLikeTheCpu) {
  Rank cpu(-1, true);
  Rank device(0, true);
  ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
  Batch batch;
  const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
  const auto lengths = vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
  const auto gradient = matrix_at(batch.gradient.data(), false);
  const auto out = matrix_at(batch.out.data(), false);
  cpu.step(ids, lengths, out, gradient);
  std::vector<float> of_weights(batch.ids.size()), got_of_weights(batch.ids.size());
  const auto of_weights_here =
      vector_at(of_weights.data(), SHARDREC_FLOAT32, of_weights.size(), false);
  ASSERT_OK(shardrec_lookup_weight_gradient(cpu.lookup(), &of_weights_here));

  MemoryHandle memory;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 1 << 16, nullptr, memory.out()));
  int64_t used = 0;
  const auto there = [&](const shardrec_tensor& like) {
    const std::vector<int64_t> shape(like.shape, like.shape + like.ndim);
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    const shardrec_tensor view =
        tensor(memory, used, static_cast<shardrec_dtype>(like.dtype), shape);
    used += (elements * (like.dtype >> 8 & 0xff) / 8 + 255) / 256 * 256;
    return view;
  };
  const auto ids_there = there(ids), lengths_there = there(lengths), out_there = there(out),
             gradient_there = there(gradient), of_weights_there = there(of_weights_here);
  ASSERT_OK(shardrec_tensor_copy(&ids_there, &ids, 0));
  ASSERT_OK(shardrec_tensor_copy(&lengths_there, &lengths, 0));
  ASSERT_OK(shardrec_tensor_copy(&gradient_there, &gradient, 0));
  device.step(ids_there, lengths_there, out_there, gradient_there);
  std::vector<float> got(batch.out.size());
  const auto got_here = matrix_at(got.data(), false);
  ASSERT_OK(shardrec_tensor_copy(&got_here, &out_there, 0));
  EXPECT_EQ(got, batch.out);
  ASSERT_OK(shardrec_lookup_weight_gradient(device.lookup(), &of_weights_there));
  const auto fetched =
      vector_at(got_of_weights.data(), SHARDREC_FLOAT32, got_of_weights.size(), false);
  ASSERT_OK(shardrec_tensor_copy(&fetched, &of_weights_there, 0));
  EXPECT_NE(of_weights[0], 0);
  EXPECT_EQ(got_of_weights, of_weights);
  EXPECT_EQ(cpu.rows(), device.rows());
}

TEST_F(MemoryHandles, AreGivenBack) {
  const int64_t before = live_allocations_();
  for (const shardrec_device_type type : {SHARDREC_DEVICE_CPU, SHARDREC_DEVICE_CUDA}) {
    MemoryHandle memory;
    ASSERT_OK(shardrec_memory_create(type, 0, 1000, nullptr, memory.out()));
    EXPECT_EQ(live_allocations_(), before + 1) << "memory of the CPU is pinned too";
  }
  stream_->wait();
  EXPECT_TRUE(eventually([&] { return live_allocations_() == before; })) << live_allocations_();
}

TEST_F(MemoryHandles, AreRefusedWithASentence) {
  MemoryHandle memory;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 64, nullptr, memory.out()));
  shardrec_memory* out = nullptr;
  const auto create = [&](int32_t device, int64_t bytes) {
    return shardrec_memory_create(SHARDREC_DEVICE_CUDA, device, bytes, nullptr, &out);
  };
  const shardrec_tensor good = tensor(memory, 0, SHARDREC_FLOAT32, {16});
  std::vector<float> values(16);
  shardrec_tensor on_cpu{};
  ASSERT_OK(shardrec_tensor_vector(values.data(), SHARDREC_FLOAT32, 16, &on_cpu));
  const auto copy_of = [&](auto change, int64_t stream = 0) {
    shardrec_tensor changed = good;
    change(changed);
    return shardrec_tensor_copy(&on_cpu, &changed, stream);
  };
  expect_refused({
      {"no such device", [&] { return create(7, 64); }, SHARDREC_INVALID_ARGUMENT,
       "device 7 does not exist"},
      {"negative device", [&] { return create(-1, 64); }, SHARDREC_INVALID_ARGUMENT,
       "device -1 does not exist"},
      {"negative size", [&] { return create(0, -1); }, SHARDREC_INVALID_ARGUMENT, "bytes is -1"},
      {"allocation that fails",
       [&] {
         fail_allocation_(1);
         return create(0, 64);
       },
       SHARDREC_OUT_OF_MEMORY, "out of memory"},
      {"pinned memory for rows that lie apart",
       [&] {
         MemoryHandle fresh;
         EXPECT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 64, nullptr, fresh.out()));
         shardrec_tensor apart = tensor(fresh, 0, SHARDREC_FLOAT32, {4, 2});
         apart.stride[0] = 4;
         const auto to = here(values, 4, 2, 4);
         const compute::cuda::host::Stream other(0);  // has no pinned memory yet
         fail_allocation_(1);
         return shardrec_tensor_copy(&to, &apart, other.number());
       },
       SHARDREC_OUT_OF_MEMORY, "pin 64 bytes"},
      {"copy from no device", [&] { return copy_of([](auto& t) { t.device_id = 7; }); },
       SHARDREC_INVALID_ARGUMENT, "device 7 does not exist"},
      {"copy from a negative device", [&] { return copy_of([](auto& t) { t.device_id = -1; }); },
       SHARDREC_INVALID_ARGUMENT, "from is on CUDA device -1"},
      {"copy without data", [&] { return copy_of([](auto& t) { t.data = nullptr; }); },
       SHARDREC_INVALID_ARGUMENT, "from has no data"},
      {"no stream", [&] { return copy_of([](auto&) {}, 1 << 20); }, SHARDREC_INVALID_ARGUMENT,
       "no stream of device 0"},
      {"two devices",
       [&] {
         shardrec_tensor other = good;
         other.device_id = 1;
         return shardrec_tensor_copy(&other, &good, 0);
       },
       SHARDREC_UNSUPPORTED, "from is on CUDA device 0, to on device 1"},
  });
  EXPECT_EQ(out, nullptr);
  EXPECT_OK(shardrec_tensor_copy(&on_cpu, &good, 0)) << "as before";
  EXPECT_OK(create(0, 64));
  shardrec_memory_destroy(&out);
}

// A device that is full takes no memory of the host away.
TEST_F(MemoryHandles, AreThereWithoutRoomToPinThem) {
  MemoryHandle memory;
  fail_allocation_(1);
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 64, nullptr, memory.out()));
  const shardrec_tensor zeros = tensor(memory, 0, SHARDREC_FLOAT32, {16});
  EXPECT_EQ(std::bit_cast<uintptr_t>(zeros.data) % 64, 0);
  EXPECT_EQ(std::memcmp(zeros.data, std::vector<float>(16).data(), 64), 0);
}

// No stride of an empty tensor counts: those that no number holds are 0.
TEST_F(MemoryHandles, HaveEmptyTensorsOfAnySizes) {
  MemoryHandle memory;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 64, nullptr, memory.out()));
  const shardrec_tensor empty = tensor(memory, 64, SHARDREC_FLOAT32, {0, INT64_MAX, 4});
  EXPECT_EQ(empty.shape[1], INT64_MAX);
  EXPECT_EQ(empty.stride[1], 4);
  EXPECT_EQ(empty.stride[0], 0);
}

TEST_F(MemoryHandles, AreClosedOnce) {
  MemoryHandle memory;
  ASSERT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 64, nullptr, memory.out()));
  shardrec_memory* copy = memory.get();
  shardrec_memory_destroy(&copy);
  EXPECT_EQ(copy, nullptr);
  const int64_t size = 4;
  shardrec_tensor view{};
  EXPECT_EQ(shardrec_memory_tensor(memory, 0, SHARDREC_FLOAT32, 1, &size, &view), SHARDREC_CLOSED);
  EXPECT_TRUE(contains(shardrec_last_error(), "this shardrec_memory was destroyed"));
}

// A device stays broken for its process: another one finds out.
TEST_F(MemoryHandles, HearOfFailures) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        MemoryHandle memory;
        constexpr int kIllegalAddress = 700;
        EXPECT_OK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, 0, 64, nullptr, memory.out()));
        const shardrec_tensor there = tensor(memory, 0, SHARDREC_FLOAT32, {16});
        std::vector<float> values(16);
        shardrec_tensor to{};
        EXPECT_OK(shardrec_tensor_vector(values.data(), SHARDREC_FLOAT32, 16, &to));
        of_plugin<void(int64_t, int)>("simt_fail_operation")(1, kIllegalAddress);
        const shardrec_status status = shardrec_tensor_copy(&to, &there, 0);
        std::fprintf(stderr, "%s: %s\n", shardrec_status_name(status), shardrec_last_error());
        shardrec_memory_destroy(memory.out());
        std::_Exit(status == SHARDREC_DEVICE_ERROR ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "SHARDREC_DEVICE_ERROR: .*illegal");
}

}  // namespace
}  // namespace shardrec::test
