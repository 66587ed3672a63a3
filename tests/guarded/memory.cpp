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
// Opening and closing takes time for each page: with large ones a thousandth of it. They are given back as a
// whole, as a part that is given back splits its page.
constexpr size_t kLargePage = size_t{2} << 20;
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
    const size_t from = memory_->used_ / kLargePage * kLargePage;
    memory_->used_ += pages_;
    memory_->protect_from(from, true);
    std::fill_n(data + size, kBehind, kUntouched);
    if (!memory_->open_) memory_->protect_from(from, false);
  }
  ~Block() override {
    const std::scoped_lock lock(memory_->mutex_);
    memory_->blocks_.erase(this);
    const size_t begin = static_cast<size_t>(data - memory_->first_);
    const size_t from = rounded(begin, kLargePage);
    const size_t end = (begin + pages_) / kLargePage * kLargePage;
    if (from < end) madvise(memory_->first_ + from, end - from, MADV_DONTNEED);
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
  mapped_ = mmap(nullptr, kAddresses + kLargePage, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED) core::fail(SHARDREC_OUT_OF_MEMORY, "no addresses to guard");
  auto* const mapped = static_cast<std::byte*>(mapped_);
  const size_t behind = reinterpret_cast<uintptr_t>(mapped) % kLargePage;
  first_ = mapped + (behind == 0 ? 0 : kLargePage - behind);
  madvise(first_, kAddresses, MADV_HUGEPAGE);  // at worst it is slow
}

GuardedMemory::~GuardedMemory() { munmap(mapped_, kAddresses + kLargePage); }

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
  protect_from(0, open);
}

// Whole large pages: one that is opened in part would be split.
void GuardedMemory::protect_from(size_t begin, bool open) noexcept {
  const size_t end = std::min(rounded(used_, kLargePage), kAddresses);
  if (end <= begin) return;
  mprotect(first_ + begin, end - begin, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace shardrec::test
