#include "dense/fsdp/unit_reduction.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/collective/received.h"
#include "core/tensor.h"

namespace shardrec::dense {
namespace {

constexpr size_t kDirectBytes = size_t{256} << 10;  // from a rank to all others
constexpr int64_t kAddedAtOnce = 1024;              // elements, on the stack
constexpr size_t kRefusalBytes = sizeof(int64_t);   // less than any shard has

template <class T>
T* as(std::byte* data) noexcept {
  return static_cast<T*>(static_cast<void*>(data));
}

size_t bytes_of(int64_t elements, shardrec_dtype dtype) noexcept {
  return static_cast<size_t>(elements) * core::dtype_size(dtype);
}

}  // namespace

ReductionChannels::ReductionChannels(comm::Communicator* sharding, comm::Communicator* replicas) {
  if (sharding != nullptr) {
    sharding_ranks = sharding->size();
    parts.emplace(sharding->open_channel(comm::Purpose::kDense));
  }
  if (replicas != nullptr) {
    replica_ranks = replicas->size();
    replica_rank = replicas->rank();
    replica_parts.emplace(replicas->open_channel(comm::Purpose::kDense));
    replica_sums.emplace(replicas->open_channel(comm::Purpose::kDense));
  }
}

GradientMemory::GradientMemory(const ReductionChannels& channels, shardrec_dtype dtype,
                               shardrec_dtype wire, int64_t elements, int64_t shard_elements,
                               UnitDevice* device)
    : device_(device) {
  const auto require_room = [this](size_t bytes) {
    core::require_room(bytes, "the gradients of a set of sharded parameters");
    bytes_ += static_cast<int64_t>(bytes);
    return bytes;
  };
  const auto make = [&](core::Pages& pages, size_t bytes) {
    pages = core::Pages(require_room(bytes));
  };
  const size_t gradients = require_room(bytes_of(elements, dtype));
  pages_->gradients = UnitBytes(gradients, device_ != nullptr);
  if (device_ != nullptr) {
    copy_.emplace(*device_).there.resize(gradients);
    device_bytes_ = static_cast<int64_t>(gradients);
  }
  const bool is_alone = channels.sharding_ranks == 1 && channels.replica_ranks == 1;
  if (dtype != wire && !is_alone) make(pages_->message, bytes_of(elements, wire));
  if (channels.replica_ranks == 1) return;
  if (channels.sharding_ranks > 1)
    make(pages_->partial, bytes_of(shard_elements, SHARDREC_FLOAT32));
  make(pages_->sums, bytes_of(comm::owned_range(shard_elements, channels.replica_ranks,
                                                comm::line_grain(sizeof(float)), 0)
                                  .count,
                              SHARDREC_FLOAT32));
}

void GradientMemory::clear(size_t bytes) {
  if (device_ == nullptr) {
    std::memset(pages_->gradients.data(), 0, bytes);
  } else {
    device_->clear(data(), bytes);
  }
}

void GradientMemory::copy_to_host(size_t bytes) {
  if (device_ != nullptr) {
    device_->download(pages_->gradients.data(), data(), bytes, copy_->copied);
  }
}

void GradientMemory::wait_for_copy() const {
  if (copy_) copy_->copied.wait();
}

UnitReduction::UnitReduction(Unit& unit, size_t number, ReductionChannels& channels,
                             RankSums& sharding_sums, RankSums& replica_sums, shardrec_dtype dtype,
                             shardrec_dtype wire, const GradientScale& scale)
    : unit_(unit),
      number_(static_cast<uint32_t>(number)),
      channels_(channels),
      sharding_sums_(sharding_sums),
      replica_sums_(replica_sums),
      dtype_(dtype),
      wire_(wire),
      scale_(scale),
      sends_(static_cast<size_t>(std::max(channels.sharding_ranks, channels.replica_ranks))),
      inputs_(sends_.size()),
      refusals_(std::make_shared<std::array<int64_t, 2>>()) {
  if (channels_.parts) parts_.emplace(*channels_.parts, channels_.sharding_ranks);
  if (!channels_.replica_parts) return;
  replica_parts_.emplace(*channels_.replica_parts, channels_.replica_ranks);
  replica_gather_.emplace(*channels_.replica_sums, channels_.replica_ranks);
}

comm::OwnedRanges UnitReduction::replica_ranges() const noexcept {
  return {.count = unit_.layout.shard_elements(),
          .ranks = channels_.replica_ranks,
          .grain = comm::line_grain(sizeof(float))};
}

// Of the exchanges over replicas: everybody sends all of it to everybody.
bool UnitReduction::is_direct() const noexcept {
  const auto peers = static_cast<size_t>(channels_.replica_ranks - 1);
  return peers <= 1 ||
         peers * bytes_of(unit_.layout.shard_elements(), SHARDREC_FLOAT32) <= kDirectBytes;
}

comm::Operation UnitReduction::operation(const char* name, uint32_t kind) const noexcept {
  return {.name = name,
          .kind = kind + 4 * number_,
          .detail = step_,
          .size = static_cast<uint64_t>(unit_.layout.elements())};
}

comm::ConstBytes UnitReduction::refuse(Refusal exchange) noexcept {
  int64_t& rank = (*refusals_)[exchange];
  rank = refusing_rank_;
  return std::as_bytes(std::span(&rank, 1));
}

// In the dtype of the way.
const std::byte* UnitReduction::sent_gradients() const noexcept {
  const GradientMemory::Pages& pages = *memory_->pages_;
  return pages.message.size() != 0 ? pages.message.data() : pages.gradients.data();
}

void UnitReduction::post(GradientMemory& memory, uint64_t step) {
  step_ = step;
  memory_ = &memory;
  refusing_rank_ = -1;
  GradientMemory::Pages& pages = *memory.pages_;
  if (!parts_ && !replica_parts_) {  // alone
    sends_[0] = {pages.gradients.data(), pages.gradients.size()};
    add_up(sharding_sums_, std::span(sends_).first(1), dtype_, scale_,
           {.begin = 0, .count = unit_.layout.shard_elements()});
    unit_.has_gradients = true;
    return;
  }
  if (pages.message.size() != 0) {
    const int64_t elements = unit_.layout.elements();
    if (dtype_ == SHARDREC_FLOAT32) {
      convert_for_way(pages.gradients.data(), pages.message.data(), wire_, elements);
    } else {
      convert(pages.gradients.data(), dtype_, pages.message.data(), wire_, elements);
    }
  }
  if (parts_) {
    post_to_sharding(sent_gradients(), memory.pages_);
  } else {
    post_to_replicas();
  }
}

void UnitReduction::post_refusal(uint64_t step) {
  step_ = step;
  memory_ = nullptr;
  refusing_rank_ = channels_.world_rank;
  if (parts_) {
    post_to_sharding(nullptr, refusals_);
  } else if (replica_parts_) {
    post_to_replicas();
  }
}

void UnitReduction::post_to_sharding(const std::byte* sent,
                                     std::shared_ptr<const void> keep_alive) {
  const size_t shard = bytes_of(unit_.layout.shard_elements(), wire_);
  const auto ranks = static_cast<size_t>(channels_.sharding_ranks);
  const comm::ConstBytes refusal = sent == nullptr ? refuse(kOfParts) : comm::ConstBytes();
  for (size_t r = 0; r < ranks; ++r) {
    sends_[r] = sent == nullptr ? refusal : comm::ConstBytes(sent + r * shard, shard);
  }
  parts_->start(operation(unit_.operations.reduce, 1), std::span(sends_).first(ranks),
                std::move(keep_alive));
  if (sent != nullptr) bytes_sent_ += static_cast<int64_t>(shard * (ranks - 1));
  stage_ = Stage::kParts;
}

bool UnitReduction::has_arrived() const noexcept {
  switch (stage_) {
    case Stage::kParts:
      return parts_->has_arrived();
    case Stage::kReplicaParts:
      return replica_parts_->has_arrived();
    case Stage::kReplicaSums:
      return replica_gather_->has_arrived();
    case Stage::kDone:
      break;
  }
  return false;
}

void UnitReduction::advance() {
  switch (stage_) {
    case Stage::kParts:
      return take_parts();
    case Stage::kReplicaParts:
      return take_replica_parts();
    case Stage::kReplicaSums:
      return take_replica_sums();
    case Stage::kDone:
      return;
  }
}

bool UnitReduction::find_refusal(std::span<const comm::ConstBytes> messages) {
  for (const comm::ConstBytes message : messages) {
    if (message.size() != kRefusalBytes) continue;
    int64_t rank = -1;
    std::memcpy(&rank, message.data(), sizeof rank);
    refusing_rank_ = static_cast<int>(rank);
    return true;
  }
  return false;
}

// Adds elements `range` of the shard, which are what the messages have, to the gradients of the shard.
void UnitReduction::add_up(RankSums& sums, std::span<const comm::ConstBytes> messages,
                           shardrec_dtype from, const GradientScale& scale,
                           comm::OwnedRange range) {
  const std::span<const std::byte*> inputs = std::span(inputs_).first(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) inputs[r] = messages[r].data();
  float* const out = unit_.gradient_elements().data() + range.begin;
  if (!unit_.has_gradients) {
    sums.add_up(inputs, from, 0, range.count, scale, out, SHARDREC_FLOAT32, false);
    return;
  }
  alignas(64) std::array<float, kAddedAtOnce> some;
  for (int64_t at = 0; at < range.count; at += kAddedAtOnce) {
    const int64_t count = std::min(kAddedAtOnce, range.count - at);
    sums.add_up(inputs, from, at, count, scale, some.data(), SHARDREC_FLOAT32, false);
    add_values(some.data(), {.begin = range.begin + at, .count = count});
  }
}

void UnitReduction::add_values(const float* values, comm::OwnedRange range) {
  float* const out = unit_.gradient_elements().data() + range.begin;
  if (!unit_.has_gradients) {
    std::copy_n(values, range.count, out);
    return;
  }
  for (int64_t i = 0; i < range.count; ++i) out[i] += values[i];
}

void UnitReduction::take_parts() {
  parts_->finish([this](std::span<const comm::ConstBytes> messages) {
    if (find_refusal(messages)) return;
    const int64_t count = unit_.layout.shard_elements();
    const comm::Operation what = operation(unit_.operations.reduce, 1);
    for (size_t r = 0; r < messages.size(); ++r) {
      comm::require_size(what, r, messages[r], bytes_of(count, wire_));
    }
    if (!replica_parts_) {
      add_up(sharding_sums_, messages, wire_, scale_, {.begin = 0, .count = count});
      unit_.has_gradients = true;
      return;
    }
    for (size_t r = 0; r < messages.size(); ++r) inputs_[r] = messages[r].data();
    sharding_sums_.add_up(std::span(inputs_).first(messages.size()), wire_, 0, count, {},
                          memory_->pages_->partial.data(), SHARDREC_FLOAT32, false);
  });
  if (replica_parts_) {
    post_to_replicas();
  } else {
    stage_ = Stage::kDone;
  }
}

void UnitReduction::post_to_replicas() {
  const bool refuses = refusing_rank_ >= 0;
  const shardrec_dtype dtype = parts_ ? SHARDREC_FLOAT32 : wire_;
  const std::byte* sent = nullptr;
  std::shared_ptr<const void> keep_alive = refusals_;
  comm::ConstBytes refusal;
  if (refuses) {
    refusal = refuse(kOfReplicaParts);
  } else {
    sent = parts_ ? memory_->pages_->partial.data() : sent_gradients();
    keep_alive = memory_->pages_;
  }
  const auto ranks = static_cast<size_t>(channels_.replica_ranks);
  for (size_t r = 0; r < ranks; ++r) {
    const comm::OwnedRange range =
        is_direct() ? comm::OwnedRange{.begin = 0, .count = unit_.layout.shard_elements()}
                    : replica_ranges().of(static_cast<int64_t>(r));
    sends_[r] = refuses ? refusal
                        : comm::ConstBytes(sent + bytes_of(range.begin, dtype),
                                           bytes_of(range.count, dtype));
    if (!refuses && r != static_cast<size_t>(channels_.replica_rank)) {
      bytes_sent_ += static_cast<int64_t>(sends_[r].size());
    }
  }
  replica_parts_->start(operation(unit_.operations.replicas, 2), std::span(sends_).first(ranks),
                        std::move(keep_alive));
  stage_ = Stage::kReplicaParts;
}

void UnitReduction::take_replica_parts() {
  const shardrec_dtype dtype = parts_ ? SHARDREC_FLOAT32 : wire_;
  const comm::OwnedRange range =
      is_direct() ? comm::OwnedRange{.begin = 0, .count = unit_.layout.shard_elements()}
                  : replica_ranges().of(channels_.replica_rank);
  replica_parts_->finish([&](std::span<const comm::ConstBytes> messages) {
    if (find_refusal(messages)) return;
    const comm::Operation what = operation(unit_.operations.replicas, 2);
    for (size_t r = 0; r < messages.size(); ++r) {
      comm::require_size(what, r, messages[r], bytes_of(range.count, dtype));
    }
    if (is_direct()) {
      add_up(replica_sums_, messages, dtype, scale_, range);
      unit_.has_gradients = true;
      return;
    }
    for (size_t r = 0; r < messages.size(); ++r) inputs_[r] = messages[r].data();
    replica_sums_.add_up(std::span(inputs_).first(messages.size()), dtype, 0, range.count, scale_,
                         memory_->pages_->sums.data(), SHARDREC_FLOAT32, false);
  });
  if (refusing_rank_ >= 0 || is_direct()) {
    stage_ = Stage::kDone;
    return;
  }
  const size_t bytes = bytes_of(range.count, SHARDREC_FLOAT32);
  replica_gather_->start(operation(unit_.operations.replicas, 3),
                         {memory_->pages_->sums.data(), bytes}, memory_->pages_);
  bytes_sent_ += static_cast<int64_t>(bytes) * (channels_.replica_ranks - 1);
  stage_ = Stage::kReplicaSums;
}

void UnitReduction::take_replica_sums() {
  replica_gather_->finish();
  replica_gather_->for_each_range(
      replica_ranges(), sizeof(float),
      [this](const comm::OwnedRange& range, const std::byte* sums) {
        add_values(static_cast<const float*>(static_cast<const void*>(sums)), range);
      });
  replica_gather_->release();
  unit_.has_gradients = true;
  stage_ = Stage::kDone;
}

void UnitReduction::reclaim() {
  if (parts_) parts_->reclaim();
  if (replica_parts_) replica_parts_->reclaim();
  if (replica_gather_) replica_gather_->reclaim();
}

}  // namespace shardrec::dense
