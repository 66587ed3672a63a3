#include "compute/buffer.h"
#include "core/memory.h"

namespace shardrec::compute {
namespace {

struct GrowingBlock final : Allocation {
  explicit GrowingBlock(size_t bytes) {
    data = memory_.resize(bytes);
    size = memory_.capacity();
  }

 private:
  core::Scratch memory_;
};

struct ZeroBlock final : Allocation {
  explicit ZeroBlock(size_t bytes) : pages_(bytes) {
    data = pages_.data();
    size = pages_.size();
  }

 private:
  core::Pages pages_;
};

class CpuMemory final : public Memory {
 public:
  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CPU; }
  std::unique_ptr<Allocation> allocate(size_t bytes) override {
    return std::make_unique<GrowingBlock>(bytes);
  }
  std::unique_ptr<Allocation> allocate_zeros(size_t bytes) override {
    return std::make_unique<ZeroBlock>(bytes);
  }
};

}  // namespace

const std::shared_ptr<Memory>& cpu_memory() {
  // Never destroyed: buffers may live as long as the process.
  static const auto* const memory = new std::shared_ptr<Memory>(std::make_shared<CpuMemory>());
  return *memory;
}

}  // namespace shardrec::compute
