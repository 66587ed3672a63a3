#include "comm/gloo/peer_memory.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "comm/gloo/message.h"

namespace shardrec::comm::gloo_plugin {
namespace {

void* address_of(uint64_t there) noexcept { return std::bit_cast<void*>(there); }

bool read_memory(pid_t process, uint64_t from, void* to, uint64_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    iovec mine{.iov_base = at, .iov_len = bytes};
    iovec theirs{.iov_base = address_of(from), .iov_len = mine.iov_len};
    const ssize_t count = process_vm_readv(process, &mine, 1, &theirs, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    from += static_cast<uint64_t>(count);
    bytes -= static_cast<uint64_t>(count);
  }
  return true;
}

bool stands(pid_t process, uint64_t guard_at, uint64_t guard) noexcept {
  uint64_t found = 0;
  return read_memory(process, guard_at, &found, sizeof found) && found == guard;
}

std::string link_text(const char* path) {
  std::array<char, 64> text{};
  const ssize_t length = readlink(path, text.data(), text.size());
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

// Processes with a network of their own are hosts of their own: that is what their user says.
std::string machine_text() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const std::string network = link_text("/proc/self/ns/net");
  const std::string processes = link_text("/proc/self/ns/pid");
  if (boot.empty() || network.empty() || processes.empty()) return {};
  return boot + network + processes;
}

// Below, the answer takes longer than the copies that it spares.
constexpr uint64_t kUsualLeastBytes = uint64_t{1} << 20;
// Messages of up to kShort bytes are copied.
constexpr uint64_t kLowestLeastBytes = kShort + 1;

}  // namespace

uint64_t least_bytes_to_read() {
  const char* const text = std::getenv("SHARDREC_GLOO_DIRECT_BYTES");
  const std::string_view digits = text == nullptr ? "" : text;
  if (digits.empty()) return kUsualLeastBytes;
  uint64_t bytes = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  if (is_number && bytes == 0) return UINT64_MAX;
  if (is_number && bytes >= kLowestLeastBytes) return bytes;
  static_assert(kLowestLeastBytes == 16385);
  throw plugin::Failure(
      SHARDREC_TRANSPORT_UNUSABLE, -1,
      "the environment variable SHARDREC_GLOO_DIRECT_BYTES is no number of bytes; an integer of at "
      "least 16385, or 0 (no message is read so), is accepted");
}

GuardWords::GuardWords() : next_(0) {
  // Where there is no randomness the address has to do.
  if (getrandom(&next_, sizeof next_, 0) != sizeof next_) next_ = std::bit_cast<uint64_t>(this);
}

GuardWords::Word& GuardWords::put() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    // Room for all, so that take_away() needs none.
    if (free_.capacity() == words_.size()) free_.reserve(2 * words_.size() + 16);
    free_.push_back(&words_.emplace_back(0));
  }
  Word& word = *free_.back();
  free_.pop_back();
  if (++next_ == 0) ++next_;
  word.store(next_);
  return word;
}

void GuardWords::take_away(Word& word) noexcept {
  word.store(0);
  const std::lock_guard lock(mutex_);
  free_.push_back(&word);
}

Whereabouts whereabouts(const GuardWords::Word& guard) {
  Whereabouts here{.process = getpid(),
                   .guard_at = std::bit_cast<uint64_t>(&guard),
                   .guard = guard.load(),
                   .least_bytes = least_bytes_to_read()};
  const std::string machine = machine_text();
  if (machine.size() <= here.machine.size())
    std::copy(machine.begin(), machine.end(), here.machine.begin());
  return here;
}

bool reaches(const Whereabouts& mine, const Whereabouts& theirs) noexcept {
  return mine.machine[0] != '\0' && mine.machine == theirs.machine &&
         stands(static_cast<pid_t>(theirs.process), theirs.guard_at, theirs.guard);
}

bool read_offer(pid_t process, const Offer& offer, void* to) noexcept {
  return read_memory(process, offer.data, to, offer.bytes) &&
         stands(process, offer.guard_at, offer.guard);
}

}  // namespace shardrec::comm::gloo_plugin
