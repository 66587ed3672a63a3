#include "guarded/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace shardrec::test {
namespace {

constexpr size_t kAddresses = size_t{64} << 30;
constexpr size_t kBehind = 64;
constexpr std::byte kUntouched{0xA5};

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

class GuardedMemory::Block final : public compute::Allocation {
 public:
  Block(std::shared_ptr<GuardedMemory> memory, size_t bytes) : memory_(std::move(memory)) {
    const std::scoped_lock lock(memory_->mutex_);
    const size_t needed = rounded(bytes, 64);
    pages_ = rounded(needed + kBehind, page_bytes());
    if (pages_ > kAddresses - memory_->used_) {
      core::fail(SHARDREC_OUT_OF_MEMORY, core::sentence("no room for ", bytes, " guarded bytes"));
    }
    memory_->blocks_.insert(this);
    data = memory_->first_ + memory_->used_;
    size = needed;
    memory_->used_ += pages_;
    mprotect(data, pages_, PROT_READ | PROT_WRITE);
    std::fill_n(data + size, kBehind, kUntouched);
    if (!memory_->open_) mprotect(data, pages_, PROT_NONE);
  }
  ~Block() override {
    const std::scoped_lock lock(memory_->mutex_);
    memory_->blocks_.erase(this);
    madvise(data, pages_, MADV_DONTNEED);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void check() const noexcept {
    if (std::all_of(data + size, data + size + kBehind,
                    [](std::byte byte) { return byte == kUntouched; })) {
      return;
    }
    std::fprintf(stderr, "an operation wrote behind a block of %zu bytes\n", size);
    std::abort();
  }

 private:
  std::shared_ptr<GuardedMemory> memory_;
  size_t pages_ = 0;  // bytes
};

GuardedMemory::GuardedMemory() {
  void* addresses =
      mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) core::fail(SHARDREC_OUT_OF_MEMORY, "no addresses to guard");
  first_ = static_cast<std::byte*>(addresses);
}

GuardedMemory::~GuardedMemory() { munmap(first_, kAddresses); }

std::unique_ptr<compute::Allocation> GuardedMemory::allocate(size_t bytes) {
  return std::make_unique<Block>(shared_from_this(), bytes + bytes / 16);
}

std::unique_ptr<compute::Allocation> GuardedMemory::allocate_zeros(size_t bytes) {
  return std::make_unique<Block>(shared_from_this(), bytes);
}

void GuardedMemory::protect(bool open) {
  const std::scoped_lock lock(mutex_);
  if (!open) {
    for (const Block* block : blocks_) block->check();
  }
  open_ = open;
  if (used_ != 0) mprotect(first_, used_, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace shardrec::test
