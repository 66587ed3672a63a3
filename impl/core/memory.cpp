#include "core/memory.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/align.h"
#include "core/error.h"
#include "core/host.h"

namespace shardrec::core {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

[[noreturn]] void out_of_memory(size_t bytes) {
  fail(SHARDREC_OUT_OF_MEMORY, sentence("cannot allocate ", bytes, " bytes"),
       {.value = static_cast<int64_t>(bytes)});
}

}  // namespace

void require_room(uint64_t bytes, const char* what) {
  constexpr uint64_t kLarge = uint64_t{64} << 20;
  if (bytes >= kLarge) require_memory(bytes, what);
}

Pages::Pages(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes < kPage) {
    const size_t rounded = align_up(bytes, 64);
    data_ = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    if (data_ == nullptr) out_of_memory(bytes);
    std::memset(data_, 0, rounded);
    return;
  }
  const bool huge = bytes >= kHugePage;
  if (bytes > SIZE_MAX - 2 * kHugePage) out_of_memory(bytes);
  const size_t extra = huge ? kHugePage : 0;
  mapped_ = align_up(bytes + extra, kPage);
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) out_of_memory(bytes);
  data_ = static_cast<std::byte*>(mapping);
  if (!huge) return;
  // Give back what lies outside the aligned part, so that data_ .. data_ + mapped_ is the mapping.
  const size_t misaligned = std::bit_cast<uintptr_t>(data_) & (kHugePage - 1);
  const size_t head = misaligned == 0 ? 0 : kHugePage - misaligned;
  if (head != 0) munmap(data_, head);
  if (extra != head) munmap(data_ + mapped_ - (extra - head), extra - head);
  data_ += head;
  mapped_ -= extra;
  madvise(data_, mapped_, MADV_HUGEPAGE);
}

Pages::~Pages() {
  if (mapped_ == 0) {
    std::free(data_);
  } else {
    munmap(data_, mapped_);
  }
}

void Pages::clear() noexcept {
  if (mapped_ != 0 && madvise(data_, mapped_, MADV_DONTNEED) == 0) return;
  if (size_ != 0) std::memset(data_, 0, size_);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

std::byte* Scratch::resize(size_t bytes) {
  if (bytes <= capacity_ && capacity_ != 0) return pages_.get();
  // A sixteenth more than asked, so that batches of about one size do not allocate again.
  const size_t slack = bytes / 16 + 1;
  if (bytes > PTRDIFF_MAX / 2) out_of_memory(bytes);
  const size_t rounded = align_up(bytes + slack, 64);
  pages_.reset();  // before the new allocation: the contents are not kept
  capacity_ = 0;
  require_room(rounded, "a buffer");
  void* memory = std::aligned_alloc(64, rounded);
  if (memory == nullptr) out_of_memory(bytes);
  pages_.reset(static_cast<std::byte*>(memory));
  capacity_ = rounded;
  return pages_.get();
}

void Scratch::Free::operator()(std::byte* data) const noexcept { std::free(data); }

}  // namespace shardrec::core
