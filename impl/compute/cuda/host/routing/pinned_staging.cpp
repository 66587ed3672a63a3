#include "compute/cuda/host/routing/pinned_staging.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "compute/id_sections.h"
#include "core/align.h"
#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

// Tensors side by side begin at multiples of so many bytes.
constexpr size_t kTensorAlignment = 256;

size_t padded_bytes(const StagedTensor& tensor) {
  return core::align_up(tensor.bytes, kTensorAlignment);
}

template <class Integer>
WrongInteger first_wrong_bag(const Integer* bag_of, const SamplesByBag& feature) {
  for (int64_t i = feature.first; i < feature.first + feature.count; ++i) {
    if (bag_of[i] < 0 || bag_of[i] >= feature.bags) return {.position = i, .value = bag_of[i]};
  }
  return {};
}

// True if ids of any block may repeat so often that it is worth to look for them.
bool may_be_shorter(std::span<const DeduplicatedBlocks> messages) {
  return std::ranges::any_of(messages, [](const DeduplicatedBlocks& message) {
    return std::ranges::any_of(message.blocks, [](const PlainBlock& block) {
      return most_unique(block.ids, block.is_64) != 0;
    });
  });
}

}  // namespace

PinnedStaging::PinnedStaging(std::shared_ptr<Stream> copies, std::shared_ptr<Stream> operations,
                             RoutingFamily& routing)
    : copies_(std::move(copies)),
      operations_(std::move(operations)),
      routing_(routing),
      there_(make_memory(copies_)),
      copied_(*copies_),
      read_(*operations_),
      lengths_(copies_),
      ids_(copies_),
      deduplication_(copies_),
      own_lengths_(make_memory(copies_)),
      own_bodies_(make_memory(copies_)) {}

PinnedStaging::~PinnedStaging() {
  try {
    wait_for_copies();
    release();  // a batch that was sent may have failed since
    copies_->follow(read_);
  } catch (...) {
    // The device has failed, and nothing is read any more; or there is no memory to mark the place.
    table().wait_for_stream(operations_->handle());
    table().wait_for_stream(copies_->handle());
  }
}

void PinnedStaging::send(std::span<StagedTensor> tensors) {
  size_t bytes = 0;
  for (const StagedTensor& tensor : tensors) bytes += padded_bytes(tensor);
  wait_for_copies();
  copies_->follow(read_);
  std::byte* const to = here_.resize(bytes);
  std::byte* const there = there_.resize(bytes);
  size_t at = 0;
  for (StagedTensor& tensor : tensors) {
    if (tensor.bytes != 0) std::memcpy(to + at, tensor.here, tensor.bytes);
    tensor.there = there + at;
    at += padded_bytes(tensor);
  }
  followed_at_ = std::numeric_limits<uint64_t>::max();
  is_sent_ = true;
  try {
    copies_->copy(there, to, bytes);
    copied_at_ = copies_->next_place();
    copied_.record(*copies_);
  } catch (...) {  // as far as it was enqueued, it reads the pinned memory
    table().wait_for_stream(copies_->handle());
    throw;
  }
  operations_->follow(copied_);
  followed_at_ = operations_->next_place();
}

void PinnedStaging::release() {
  if (!is_sent_) return;
  read_.record(*operations_);
  is_sent_ = false;
}

void PinnedStaging::wait_for_copies() {
  if (copies_->is_known_over(copied_at_) || operations_->is_known_over(followed_at_)) return;
  copied_.wait();
}

const std::byte* PinnedStaging::here(const void* there) const {
  return here_.data() + (static_cast<const std::byte*>(there) - there_.data());
}

BatchLengths PinnedStaging::with_own_lengths(const BatchLengths& lengths,
                                             std::span<const RoutedIds> features) {
  own_bags_.assign(lengths.features.begin(), lengths.features.end());
  own_features_.assign(features.begin(), features.end());
  size_t bags = 0;
  for (const BagLengths& feature : own_bags_) bags += static_cast<size_t>(feature.bags);
  uint32_t* out = own_lengths_.resize_as<uint32_t>(bags).data();
  for (size_t f = 0; f < own_bags_.size(); ++f) {
    own_bags_[f].out = out;
    own_features_[f].lengths = out;
    own_features_[f].weights = nullptr;
    own_features_[f].kept_lengths = nullptr;
    own_features_[f].interval_of = nullptr;
    out += own_bags_[f].bags;
  }
  return {own_bags_, lengths.checked, lengths.ids};
}

bool PinnedStaging::count_batch(const BatchLengths& lengths, std::span<RoutedIds> features,
                                std::span<CheckedIds> checked, std::span<BlockCount> counts) {
  const BatchLengths own = with_own_lengths(lengths, features);
  routing_.recount(lengths, features, counts.size());
  const auto found =
      ids_.read_and_count(own_features_, counts.size(),
                          {.reading = lengths_.send_lengths(own.features), .batch_ids = own.ids});
  lengths_.take_lengths(own.features, found, lengths.checked);
  if (!place_ids(lengths, features)) return false;
  place_ids(own, own_features_);
  ids_.finish_count(own_features_, checked, counts);
  routing_.set_counted(features);
  return true;
}

void PinnedStaging::sort_samples(std::span<const SamplesByBag> features,
                                 std::span<WrongInteger> wrong) {
  bool all_right = true;
  for (size_t f = 0; f < features.size(); ++f) {
    const void* const bag_of = here(features[f].bag_of.data);
    wrong[f] = features[f].bag_of.is_64
                   ? first_wrong_bag(static_cast<const int64_t*>(bag_of), features[f])
                   : first_wrong_bag(static_cast<const int32_t*>(bag_of), features[f]);
    all_right = all_right && wrong[f].position < 0;
  }
  if (all_right) routing_.sort_checked_samples(features);
}

void PinnedStaging::deduplicate_ids(const WrittenBlocks& blocks, std::span<const std::byte> bodies,
                                    std::span<const DeduplicatedBlocks> messages) {
  if (!may_be_shorter(messages)) {
    for (const DeduplicatedBlocks& message : messages) std::ranges::fill(message.unique, 0);
    return;
  }
  std::byte* const own = own_bodies_.resize(bodies.size());
  // Sections of blocks without ids may lie elsewhere: nothing is written there.
  const auto moved = [&]<class T>(T* at) {
    const int64_t offset = bytes_between(bodies.data(), at);
    const bool is_moved = at != nullptr && offset >= 0 && offset < std::ssize(bodies);
    return is_moved ? static_cast<T*>(static_cast<void*>(own + offset)) : at;
  };
  own_sections_.clear();
  for (const BlockSections& sections : blocks.sections()) {
    own_sections_.push_back({.dense_lengths = moved(sections.dense_lengths),
                             .sparse_lengths = moved(sections.sparse_lengths),
                             .ids = moved(sections.ids)});
  }
  ids_.write(own_features_, WrittenBlocks(blocks.places(), own_sections_));
  own_messages_.assign(messages.begin(), messages.end());
  for (DeduplicatedBlocks& message : own_messages_) message.data = moved(message.data);
  deduplication_.find(own_messages_);
  routing_.write_deduplicated(messages);
}

}  // namespace shardrec::compute::cuda::host
