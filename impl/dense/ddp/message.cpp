#include "dense/ddp/message.h"

#include <algorithm>
#include <cstring>

#include "comm/collective/received.h"
#include "core/tensor.h"

namespace shardrec::dense {
namespace {

// Bytes of a bit per parameter, whole cache lines.
constexpr size_t map_bytes(size_t parameters) noexcept { return (parameters + 511) / 512 * 64; }

constexpr comm::Operation kBucket{.name = "ddp: bucket"};

// Adds what the head of rank `from` says.
void add(const BucketHead& head, int from, BucketHeads& heads) noexcept {
  if (head.joined != 0) ++heads.joined;
  if (head.steps > heads.most_steps) {
    heads.most_steps = head.steps;
    heads.longest = from;
  }
  if (head.verdict != BucketVerdict::kReady && heads.verdict == BucketVerdict::kReady) {
    heads.verdict = head.verdict;
    heads.rank = from;
    heads.parameter = head.parameter;
  }
}

}  // namespace

BucketHeads heads_of(const BucketHead& own) noexcept {
  BucketHeads heads;
  add(own, 0, heads);
  return heads;
}

BucketFormat::BucketFormat(shardrec_dtype wire, size_t parameters, bool asks_who_used) noexcept
    : wire_(wire), parameters_(parameters), map_bytes_(asks_who_used ? map_bytes(parameters) : 0) {}

size_t BucketFormat::wire_bytes(int64_t elements) const noexcept {
  return static_cast<size_t>(elements) * core::dtype_size(wire_);
}

size_t BucketFormat::write_head(const BucketHead& head, std::span<const char> used,
                                int64_t elements, std::byte* out) const {
  std::memset(out, 0, bytes_before());
  std::memcpy(out, &head, sizeof head);
  std::byte* const map = out + kHeadBytes;
  for (size_t s = 0; map_bytes_ != 0 && s < parameters_; ++s) {
    if (used[s] != 0) map[s / 8] |= std::byte{1} << (s % 8);
  }
  return bytes_before() + (head.has_gradients == 0 ? 0 : wire_bytes(elements));
}

BucketHeads BucketFormat::read_heads(std::span<const comm::ConstBytes> messages, int64_t elements,
                                     std::span<char> written) const {
  BucketHeads heads;
  std::fill(written.begin(), written.end(), map_bytes_ == 0 ? 1 : 0);
  for (size_t p = 0; p < messages.size(); ++p) {
    const comm::ConstBytes message = messages[p];
    BucketHead head;
    if (message.size() < kHeadBytes) comm::require_size(kBucket, p, message, bytes_before());
    std::memcpy(&head, message.data(), sizeof head);
    comm::require_size(kBucket, p, message,
                       bytes_before() + (head.has_gradients == 0 ? 0 : wire_bytes(elements)));
    const std::byte* const map = message.data() + kHeadBytes;
    for (size_t s = 0; map_bytes_ != 0 && s < parameters_; ++s) {
      if ((map[s / 8] >> (s % 8) & std::byte{1}) != std::byte{0}) written[s] = 1;
    }
    add(head, static_cast<int>(p), heads);
  }
  return heads;
}

}  // namespace shardrec::dense
