#include "compute/booked_memory.h"

#include <utility>

namespace shardrec::compute {
namespace {

class BookedBlock final : public Allocation {
 public:
  BookedBlock(std::unique_ptr<Allocation> block, BookedBytes booked)
      : block_(std::move(block)),
        booked_(std::move(booked)),
        bytes_(static_cast<int64_t>(block_->size)) {
    data = block_->data;
    size = block_->size;
    booked_->fetch_add(bytes_, std::memory_order_relaxed);
  }
  ~BookedBlock() override { booked_->fetch_sub(bytes_, std::memory_order_relaxed); }

 private:
  std::unique_ptr<Allocation> block_;
  BookedBytes booked_;
  int64_t bytes_;
};

class BookedMemory final : public Memory {
 public:
  BookedMemory(std::shared_ptr<Memory> memory, BookedBytes booked)
      : memory_(std::move(memory)), booked_(std::move(booked)) {}

  shardrec_device_type device() const noexcept override { return memory_->device(); }
  std::unique_ptr<Allocation> allocate(size_t bytes) override {
    return std::make_unique<BookedBlock>(memory_->allocate(bytes), booked_);
  }
  bool freeing_waits() const noexcept override { return memory_->freeing_waits(); }
  std::unique_ptr<Allocation> allocate_zeros(size_t bytes) override {
    return memory_->allocate_zeros(bytes);
  }

 private:
  std::shared_ptr<Memory> memory_;
  BookedBytes booked_;
};

}  // namespace

std::shared_ptr<Memory> book(std::shared_ptr<Memory> memory, BookedBytes booked) {
  if (booked == nullptr) return memory;
  return std::make_shared<BookedMemory>(std::move(memory), std::move(booked));
}

}  // namespace shardrec::compute
