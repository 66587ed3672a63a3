// Memory of the device from the program (shardrec_device_set_allocator).
#include <cstring>
#include <map>
#include <mutex>

#include "compute/cuda/host/stream.h"
#include "device/device_arrays.h"
#include "device/rank_on_device.h"
#include "shardrec/native.h"

namespace shardrec::test {
namespace {

// Hands CUDA's memory on, until it has given as much as it may.
class ProgramAllocator {
 public:
  explicit ProgramAllocator(int64_t most) : left_(most) {
    EXPECT_OK(shardrec_device_set_allocator(allocate, release, this));
  }
  ~ProgramAllocator() {
    EXPECT_OK(shardrec_device_set_allocator(nullptr, nullptr, nullptr));
    EXPECT_EQ(bytes_.size(), 0) << "blocks were not given back";
  }
  ProgramAllocator(const ProgramAllocator&) = delete;
  ProgramAllocator& operator=(const ProgramAllocator&) = delete;

  size_t blocks() const { return bytes_.size(); }

 private:
  static void* allocate(void* context, int32_t device, int64_t bytes, int64_t stream) {
    auto& own = *static_cast<ProgramAllocator*>(context);
    EXPECT_EQ(device, 0);
    EXPECT_NE(stream, 0);
    const std::lock_guard lock(own.mutex_);
    void* memory = nullptr;
    if (own.left_-- <= 0) return nullptr;
    compute::cuda::host::require(compute::cuda::host::table().allocate(
                                     own.stream_.handle(), static_cast<uint64_t>(bytes), &memory),
                                 "allocate for the program");
    own.stream_.wait();  // for any stream
    own.bytes_[memory] = bytes;
    return memory;
  }
  static void release(void* context, int32_t device, void* memory, int64_t bytes, int64_t stream) {
    auto& own = *static_cast<ProgramAllocator*>(context);
    EXPECT_EQ(device, 0);
    EXPECT_NE(stream, 0);
    const std::lock_guard lock(own.mutex_);
    EXPECT_EQ(own.bytes_[memory], bytes);
    own.bytes_.erase(memory);
    own.given_back_.push_back(memory);
  }

  std::mutex mutex_;
  int64_t left_;
  compute::cuda::host::Stream stream_{0};
  std::map<void*, int64_t> bytes_;
  std::vector<void*> given_back_;  // not used again, since streams may still do so
};

class AllocatorOfTheProgram : public DeviceTest {};

TEST_F(AllocatorOfTheProgram, GivesAllMemoryOfTheDevice) {
  ProgramAllocator allocator(1 << 20);
  Rank cpu(-1);
  {
    Rank device(0);
    ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
    const size_t tables = allocator.blocks();
    EXPECT_GE(tables, 2);  // weights and states
    for (Rank* rank : {&cpu, &device}) {
      Batch batch;
      rank->step(vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
                 vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false),
                 matrix_at(batch.out.data(), false), matrix_at(batch.gradient.data(), false));
    }
    EXPECT_GT(allocator.blocks(), tables);
    EXPECT_EQ(cpu.rows(), device.rows());
  }
}

TEST_F(AllocatorOfTheProgram, MayHaveNone) {
  const ProgramAllocator allocator(1);
  const Rank device(0);
  EXPECT_EQ(device.status(), SHARDREC_OUT_OF_MEMORY);
  EXPECT_TRUE(contains(shardrec_last_error(), "the program's allocator has no"))
      << shardrec_last_error();
}

TEST(AllocatorArguments, AreBothOrNone) {
  EXPECT_EQ(
      shardrec_device_set_allocator(
          [](void*, int32_t, int64_t, int64_t) -> void* { return nullptr; }, nullptr, nullptr),
      SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "one of them is NULL")) << shardrec_last_error();
}

}  // namespace
}  // namespace shardrec::test
