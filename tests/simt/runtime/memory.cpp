#include "memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "devices.h"
#include "quiet.h"
#include "sanitizers.h"

namespace simt {
namespace {

constexpr size_t kAddresses = size_t{256} << 30;
constexpr size_t kPage = 4096;
// Opening and closing takes time for each page: with large ones a thousandth of it.
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kBefore = 256;  // CUDA's blocks are aligned to as many
constexpr size_t kBehind = 256;  // at least
constexpr size_t kPinnedAlignment = 4096;
// Addresses are taken again only when this many others were.
constexpr size_t kAddressesBeforeReuse = size_t{32} << 20;
constexpr unsigned char kGarbage = 0xFF;  // NaN as floats, -1 as integers
constexpr unsigned char kUntouched = 0xA5;

size_t rounded_up(size_t number, size_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

constexpr uint64_t kFiles = 0x73696D742D6D656D;

// Behind the pages of a block in its file.
struct Openers {
  static constexpr size_t kMost = 64;
  int64_t processes[kMost];  // that have it open; 0: none
};

struct DeviceBlock {
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  size_t bytes = 0;
  bool prepared = false;
  bool retired = false;
  int file = -1;  // that it lies in
  Openers* openers = nullptr;
  uint64_t inode = 0;  // of the file of an opened one
  int times_opened = 0;
  int uses = 0;  // of an opened one, by operations that are not over

  size_t pages() const { return rounded_up(kBefore + bytes + kBehind, kPage); }
};

// By the address of their pages, kBefore less than the one that was handed out.
using DeviceBlocks = std::map<uintptr_t, DeviceBlock>;

struct PinnedBlock {
  size_t bytes = 0;
};

// Addresses, counted from the first one of all.
struct Area {
  size_t begin = 0;
  size_t used = 0;    // that were ever handed out, from the first on; whole large pages
  size_t cursor = 0;  // where the next block is looked for

  size_t end() const { return begin + used; }
};

struct State {
  QuietMutex mutex;
  uintptr_t first = 0;
  // Blocks in files have an area of their own: among others they would split large pages.
  Area area;
  Area of_files{.begin = kAddresses / 2};
  int openings = 0;
  DeviceBlocks blocks;
  std::map<uintptr_t, PinnedBlock> pinned;
  size_t used_by_device[kMostDevices] = {};
  int64_t live = 0;
};

// Never destroyed: threads of streams may outlive main().
State& memory() {
  static State& state = *new State;
  return state;
}

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }
unsigned char* bytes_at(uintptr_t address) { return reinterpret_cast<unsigned char*>(address); }

void protect(uintptr_t from, size_t bytes, bool open) {
  if (bytes == 0) return;
  if (mprotect(bytes_at(from), bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    std::perror("simt: mprotect");
    std::abort();
  }
}

// Room for so many bytes between the blocks, at or after `from`; the end of all that were handed out if
// there is none between.
size_t gap_from(const State& state, size_t from, size_t bytes) {
  size_t at = from;
  auto next = state.blocks.lower_bound(state.first + from);
  if (next != state.blocks.begin()) {
    const auto before = std::prev(next);
    at = std::max(at, before->first - state.first + before->second.pages());
  }
  for (; next != state.blocks.end(); ++next) {
    if (next->first - state.first - at >= bytes) return at;
    at = next->first - state.first + next->second.pages();
  }
  return at;
}

size_t find_addresses(const State& state, Area& area, size_t bytes) {
  if (area.cursor > kAddressesBeforeReuse) area.cursor = 0;
  return gap_from(state, area.begin + area.cursor, bytes);
}

void protect_all(const State& state, bool open) {
  for (const Area* area : {&state.area, &state.of_files}) {
    protect(state.first + area->begin, area->used, open);
  }
}

bool has_addresses(State& state) {
  if (state.first != 0) return true;
  void* addresses = mmap(nullptr, kAddresses + kLargePage, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) return false;
  state.first = rounded_up(number_of(addresses), kLargePage);
  madvise(bytes_at(state.first), kAddresses, MADV_HUGEPAGE);  // at worst it is slow
  return true;
}

// Makes addresses a block's. Those of an earlier block are mapped anew: to the thread sanitizer, nobody
// has touched them.
bool take_addresses(State& state, Area& area, size_t at, size_t bytes) {
  if (at < area.end()) {
    void* again = bytes_at(state.first + at);
    const size_t old = std::min(bytes, area.end() - at);
    const int protection = state.openings != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (kThreadSanitizer &&
        mmap(again, old, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED) {
      return false;
    }
    if (kThreadSanitizer) madvise(again, old, MADV_HUGEPAGE);
  }
  if (const size_t end = rounded_up(at + bytes, kLargePage); end > area.end()) {
    const uintptr_t fresh = state.first + area.end();
    if (state.openings != 0) protect(fresh, end - area.end(), true);
    poison(bytes_at(fresh), end - area.end());
    area.used = end - area.begin;
  }
  return true;
}

DeviceBlocks::iterator block_of(State& state, const void* address) {
  return state.blocks.find(number_of(address) - kBefore);
}

// The block's addresses are its file's from now on.
bool put_in_file(const State& state, uintptr_t pages, DeviceBlock& block, int file) {
  if (file < 0) return false;
  void* const openers = map_file(file, block.pages(), sizeof(Openers));
  const int protection = state.openings != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  if (openers == nullptr || mmap(bytes_at(pages), block.pages(), protection, MAP_SHARED | MAP_FIXED,
                                 file, 0) == MAP_FAILED) {
    if (openers != nullptr) munmap(openers, sizeof(Openers));
    close(file);
    return false;
  }
  block.file = file;
  block.openers = static_cast<Openers*>(openers);
  return true;
}

// And the device's again, for another block.
void take_from_file(const State& state, uintptr_t pages, const DeviceBlock& block) {
  if (block.file < 0) return;
  const int protection = state.openings != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  if (mmap(bytes_at(pages), block.pages(), protection,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    std::perror("simt: mmap");
    std::abort();
  }
  munmap(block.openers, sizeof(Openers));
  close(block.file);
}

bool set_opener(Openers& openers, int64_t from, int64_t to) {
  for (int64_t& process : openers.processes) {
    int64_t expected = from;
    if (__atomic_compare_exchange_n(&process, &expected, to, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return true;
    }
  }
  return false;
}

// CUDA does not say what becomes of a process that uses memory which its owner has freed.
void require_not_open(const DeviceBlock& block) {
  if (block.kind != MemoryKind::kDevice || block.openers == nullptr) return;
  for (const int64_t& slot : block.openers->processes) {
    const int64_t process = __atomic_load_n(&slot, __ATOMIC_SEQ_CST);
    if (process == 0 || !is_process_alive(static_cast<pid_t>(process))) continue;
    std::fprintf(stderr, "simt: a block of %zu bytes is freed which process %lld has open\n",
                 block.bytes, static_cast<long long>(process));
    std::abort();
  }
}

// For the address sanitizer, all that is no memory of a block is poisoned.
void fill_around(uintptr_t pages, const DeviceBlock& block) {
  if constexpr (kAddressSanitizer) return;
  volatile unsigned char* at = bytes_at(pages);
  std::fill_n(at, kBefore, kUntouched);
  std::fill_n(at + kBefore + block.bytes, kBehind, kUntouched);
}

// Not memcmp(), for the thread sanitizer.
bool is_untouched(const unsigned char* at, size_t bytes) {
  static_assert(kBefore % 8 == 0 && kBehind % 8 == 0);
  constexpr uint64_t kWord = kUntouched * uint64_t{0x0101010101010101};
  uint64_t differences = 0;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, at + i, sizeof word);
    differences |= word ^ kWord;
  }
  return differences == 0;
}

void check_around(uintptr_t pages, const DeviceBlock& block) {
  if constexpr (kAddressSanitizer) return;
  const unsigned char* at = bytes_at(pages);
  if (is_untouched(at, kBefore) && is_untouched(at + kBefore + block.bytes, kBehind)) return;
  std::fprintf(stderr, "simt: an operation wrote before or behind a block of %zu bytes\n",
               block.bytes);
  std::abort();
}

}  // namespace

MemoryRange find_memory(const void* address) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  const uintptr_t number = number_of(address);
  auto after = state.blocks.upper_bound(number - kBefore);
  if (state.first != 0 && number >= state.first && number - state.first < kAddresses) {
    MemoryRange range{.kind = MemoryKind::kDevice, .device = 0, .bytes_left = 0};
    if (number < kBefore || after == state.blocks.begin()) return range;
    const auto& [pages, block] = *std::prev(after);
    const size_t offset = number - pages - kBefore;
    if (block.retired || offset >= block.bytes) return range;
    return {.kind = block.kind,
            .device = block.device,
            .bytes_left = block.bytes - offset,
            .begins_block = offset == 0};
  }
  auto pinned = state.pinned.upper_bound(number);
  if (pinned != state.pinned.begin()) {
    --pinned;
    const size_t offset = number - pinned->first;
    if (offset < pinned->second.bytes) {
      return {.kind = MemoryKind::kPinned,
              .bytes_left = pinned->second.bytes - offset,
              .begins_block = offset == 0};
    }
  }
  return {};
}

void* reserve_device_memory(int device, size_t bytes, MemoryKind kind) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  if (bytes > memory_of_device() - state.used_by_device[device]) return nullptr;
  const DeviceBlock block{.kind = kind, .device = device, .bytes = bytes};
  if (!has_addresses(state)) return nullptr;
  Area& area = kind == MemoryKind::kDevice ? state.of_files : state.area;
  const size_t at = find_addresses(state, area, block.pages());
  if (kAddresses - at < block.pages()) return nullptr;
  const uintptr_t pages = state.first + at;
  try {
    state.blocks.emplace(pages, block);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  DeviceBlock& placed = state.blocks[pages];
  if (!take_addresses(state, area, at, block.pages()) ||
      (kind == MemoryKind::kDevice &&
       !put_in_file(state, pages, placed, make_file(block.pages() + sizeof(Openers))))) {
    state.blocks.erase(pages);
    return nullptr;
  }
  area.cursor = at + block.pages() - area.begin;
  state.used_by_device[device] += bytes;
  ++state.live;
  return bytes_at(pages + kBefore);
}

void prepare_device_memory(void* block) noexcept {
  size_t bytes = 0;
  {
    State& state = memory();
    const QuietLock lock(state.mutex);
    const auto found = block_of(state, block);
    bytes = found->second.bytes;
    unpoison(block, bytes);
    fill_around(found->first, found->second);
    found->second.prepared = true;
  }
  std::memset(block, kGarbage, bytes);
}

void retire_device_memory(void* block) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  DeviceBlock& retired = block_of(state, block)->second;
  require_not_open(retired);
  retired.retired = true;
  state.used_by_device[retired.device] -= retired.bytes;
  --state.live;
}

void discard_device_memory(void* block) noexcept {
  size_t bytes = 0;
  {
    State& state = memory();
    const QuietLock lock(state.mutex);
    bytes = block_of(state, block)->second.bytes;
  }
  std::memset(block, kGarbage, bytes);
  State& state = memory();
  const QuietLock lock(state.mutex);
  const auto found = block_of(state, block);
  check_around(found->first, found->second);
  poison(block, bytes);
  take_from_file(state, found->first, found->second);
  // A part of a large page would only be split from it.
  const uintptr_t from = rounded_up(found->first, kLargePage);
  const uintptr_t end = (found->first + found->second.pages()) / kLargePage * kLargePage;
  if (from < end) madvise(bytes_at(from), end - from, MADV_DONTNEED);
  state.blocks.erase(found);
}

bool export_device_memory(const void* block, FileHandle& handle) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  const auto found = block_of(state, block);
  if (found == state.blocks.end() || found->second.kind != MemoryKind::kDevice ||
      found->second.retired) {
    return false;
  }
  handle = handle_of(found->second.file, kFiles, found->second.bytes, found->second.device);
  return true;
}

void* open_device_memory(int device, const FileHandle& handle) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  for (auto& [pages, block] : state.blocks) {
    if (block.kind != MemoryKind::kOpened || block.inode != handle.inode ||
        block.device != device) {
      continue;
    }
    ++block.times_opened;
    return bytes_at(pages + kBefore);
  }
  const DeviceBlock block{.kind = MemoryKind::kOpened,
                          .device = device,
                          .bytes = handle.bytes,
                          .prepared = true,
                          .inode = handle.inode,
                          .times_opened = 1};
  if (!has_addresses(state)) return nullptr;
  Area& area = state.of_files;
  const size_t at = find_addresses(state, area, block.pages());
  if (kAddresses - at < block.pages()) return nullptr;
  const uintptr_t pages = state.first + at;
  try {
    state.blocks.emplace(pages, block);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  DeviceBlock& placed = state.blocks[pages];
  if (!take_addresses(state, area, at, block.pages()) ||
      !put_in_file(state, pages, placed, open_file(handle, kFiles)) ||
      !set_opener(*placed.openers, 0, getpid())) {
    take_from_file(state, pages, placed);
    state.blocks.erase(pages);
    return nullptr;
  }
  area.cursor = at + block.pages() - area.begin;
  ++state.live;
  unpoison(bytes_at(pages + kBefore), block.bytes);
  return bytes_at(pages + kBefore);
}

bool close_device_memory(void* block) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  const auto found = block_of(state, block);
  if (found == state.blocks.end() || found->second.kind != MemoryKind::kOpened) return false;
  if (--found->second.times_opened != 0) return true;
  if (found->second.uses != 0) {
    std::fprintf(stderr, "simt: memory of another process is closed while %d operations use it\n",
                 found->second.uses);
    std::abort();
  }
  set_opener(*found->second.openers, getpid(), 0);
  poison(block, found->second.bytes);
  take_from_file(state, found->first, found->second);
  state.blocks.erase(found);
  --state.live;
  return true;
}

void UseOfOpened::add(int uses) const noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  const uintptr_t number = number_of(address_);
  const auto after = state.blocks.upper_bound(number - kBefore);
  if (number < kBefore || after == state.blocks.begin()) return;
  if (DeviceBlock& block = std::prev(after)->second; block.kind == MemoryKind::kOpened) {
    block.uses += uses;
  }
}

DeviceAccess::DeviceAccess() noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  if (state.openings++ == 0) protect_all(state, true);
}

DeviceAccess::~DeviceAccess() {
  State& state = memory();
  const QuietLock lock(state.mutex);
  if (--state.openings != 0) return;
  for (const auto& [pages, block] : state.blocks) {
    if (block.prepared) check_around(pages, block);
  }
  protect_all(state, false);
}

void* allocate_pinned_memory(size_t bytes) noexcept {
  void* block = ::operator new(bytes, std::align_val_t{kPinnedAlignment}, std::nothrow);
  if (block == nullptr) return nullptr;
  std::memset(block, kGarbage, bytes);
  State& state = memory();
  const QuietLock lock(state.mutex);
  try {
    state.pinned.emplace(number_of(block), PinnedBlock{bytes});
  } catch (const std::bad_alloc&) {
    ::operator delete(block, std::align_val_t{kPinnedAlignment});
    return nullptr;
  }
  ++state.live;
  return block;
}

void free_pinned_memory(void* block) noexcept {
  State& state = memory();
  {
    const QuietLock lock(state.mutex);
    state.pinned.erase(number_of(block));
    --state.live;
  }
  ::operator delete(block, std::align_val_t{kPinnedAlignment});
}

size_t used_device_memory(int device) noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  return state.used_by_device[device];
}

int64_t live_memory_blocks() noexcept {
  State& state = memory();
  const QuietLock lock(state.mutex);
  return state.live;
}

}  // namespace simt
