#include "guarded/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

namespace shardrec::test {
namespace {

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

class GuardedMemory::Block final : public compute::MemoryBlock {
 public:
  Block(std::shared_ptr<GuardedMemory> memory, size_t bytes) : memory_(std::move(memory)) {
    size = rounded(bytes, 64);
    pages_ = rounded(size, page_bytes());
    first_ = mmap(nullptr, pages_ + page_bytes(), PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (first_ == MAP_FAILED) {
      core::fail(SHARDREC_OUT_OF_MEMORY, core::sentence("cannot map ", bytes, " guarded bytes"));
    }
    data = static_cast<std::byte*>(first_) + pages_ - size;
    const std::scoped_lock lock(memory_->mutex_);
    memory_->blocks_.insert(this);
    set_open(memory_->open_);
  }
  ~Block() override {
    const std::scoped_lock lock(memory_->mutex_);
    memory_->blocks_.erase(this);
    munmap(first_, pages_ + page_bytes());
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void set_open(bool open) const {
    if (pages_ != 0) mprotect(first_, pages_, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

 private:
  std::shared_ptr<GuardedMemory> memory_;
  void* first_ = nullptr;
  size_t pages_ = 0;  // bytes
};

std::unique_ptr<compute::MemoryBlock> GuardedMemory::allocate(size_t bytes) {
  return std::make_unique<Block>(shared_from_this(), bytes + bytes / 16);
}

std::unique_ptr<compute::MemoryBlock> GuardedMemory::allocate_zeros(size_t bytes) {
  return std::make_unique<Block>(shared_from_this(), bytes);
}

void GuardedMemory::protect(bool open) {
  const std::scoped_lock lock(mutex_);
  open_ = open;
  for (const Block* block : blocks_) block->set_open(open);
}

}  // namespace shardrec::test
