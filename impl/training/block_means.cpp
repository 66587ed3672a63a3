#include "training/block_means.h"

#include <algorithm>
#include <utility>

#include "comm/ipc/carrier.h"
#include "comm/nccl/carrier.h"
#include "compute/backends/registry.h"
#include "core/error.h"
#include "embedding/batch/operations_scope.h"
#include "embedding/exchange/exchange.h"

namespace shardrec::training {
namespace {

// A block on a device is as large as makes its two exchanges worth their messages between hosts.
constexpr size_t kMostOnDevice = size_t{16} << 20;

}  // namespace

BlockMeans::BlockMeans(const std::shared_ptr<comm::Communicator>& replicas,
                       std::shared_ptr<comm::Channel> channel,
                       std::shared_ptr<embedding::Collection> collection, core::Threads* threads)
    : collection_(std::move(collection)), ranks_(replicas->size()), rank_(replicas->rank()) {
  const int32_t device = collection_->backend().caller_devices().cuda;
  const bool on_device = device != core::DeviceSet::kNoDevice;
  std::shared_ptr<comm::nccl::StopWord> stop;
  if (on_device && replicas->device_bodies() == comm::DeviceBodies::kNccl) {
    stop = std::make_shared<comm::nccl::StopWord>(replicas);
  }
  if (on_device || threads != nullptr) {
    own_backend_ = compute::backend_named(collection_->options().backend)
                       .make({.threads = threads != nullptr ? *threads : collection_->threads(),
                              .device = device,
                              .peers_in_process = replicas->reads_in_place() && stop == nullptr,
                              .wait = collection_->options().device_wait,
                              .booked = collection_->counters().buffer_bytes,
                              .stop = stop});
  }
  backend_ = own_backend_ != nullptr ? own_backend_.get() : &collection_->backend();
  bodies_ = stop == nullptr
                ? comm::ipc::make_carrier(*backend_, replicas, collection_->counters().buffer_bytes)
                : comm::nccl::make_carrier(*backend_, replicas, std::move(stop),
                                           comm::nccl::LaneSet::kOne);
  channel_ = std::make_unique<embedding::OrderedChannel>(
      bodies_->over(std::move(channel), comm::Purpose::kControl), ranks_, *bodies_);
  rows_sent_ = bodies_->make_buffer();
  means_sent_ = bodies_->make_buffer();
  rows_received_ = bodies_->make_received();
  means_received_ = bodies_->make_received();
  most_bytes_ = on_device ? kMostOnDevice : compute::kMostTransferred;
  messages_.resize(static_cast<size_t>(ranks_));
  parts_.resize(static_cast<size_t>(ranks_));
}

// Operations end before the memory that they read is let go of.
BlockMeans::~BlockMeans() { embedding::finish_operations(*backend_); }

std::byte* BlockMeans::begin(compute::Element element, int64_t count) {
  element_ = element;
  elements_ = count;
  return rows_ = rows_sent_->resize(bytes_of(count));
}

void BlockMeans::average(const char* operation, std::byte* means) {
  const comm::OwnedRanges ranges{.count = elements_,
                                 .ranks = ranks_,
                                 .grain = comm::line_grain(compute::element_bytes(element_))};
  const comm::OwnedRange own = ranges.of(rank_);
  rows_sent_->publish(rows_, rows_ + bytes_of(elements_));
  for (int r = 0; r < ranks_; ++r) {
    const comm::OwnedRange range = ranges.of(r);
    const std::byte* const at = rows_ + bytes_of(range.begin);
    messages_[static_cast<size_t>(r)] = rows_sent_->host(at, at + bytes_of(range.count));
  }
  const auto addends = rows_received_->open(exchange(operation, *rows_sent_));
  for (size_t r = 0; r < addends.size(); ++r) {
    require_size(addends[r], own, r, operation);
    parts_[r] = addends[r].data();
  }
  std::byte* const own_means = means_sent_->resize(bytes_of(own.count));
  backend_->transfer().average(
      {.ranks = parts_, .means = own_means, .element = element_, .count = own.count});
  means_sent_->publish(own_means, own_means + bytes_of(own.count));
  std::fill(messages_.begin(), messages_.end(),
            means_sent_->host(own_means, own_means + bytes_of(own.count)));
  const auto parts = means_received_->open(exchange(operation, *means_sent_));
  for (size_t r = 0; r < parts.size(); ++r) {
    const comm::OwnedRange range = ranges.of(static_cast<int64_t>(r));
    require_size(parts[r], range, r, operation);
    backend_->transfer().copy(means + bytes_of(range.begin), parts[r].data(), parts[r].size());
  }
  // Throws where messages were broken off on their way: zeros have come instead then.
  backend_->wait();
  channel_->settle();
}

std::span<const comm::ConstBytes> BlockMeans::exchange(const char* operation,
                                                       const comm::MessageBuffer& sent) {
  collection_->counters().bytes_sync.fetch_add(embedding::bytes_to_others(messages_, rank_),
                                               std::memory_order_relaxed);
  return channel_->exchange(embedding::ExchangeKind::kSync, operation,
                            static_cast<uint64_t>(elements_), messages_, sent.keep_alive());
}

void BlockMeans::require_size(comm::ConstBytes part, const comm::OwnedRange& range, size_t from,
                              const char* operation) const {
  if (part.size() == bytes_of(range.count)) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("replica ", from, " sent ", part.size(), " bytes of a block; it has ",
                            bytes_of(range.count), " there"),
             {.rank = static_cast<int64_t>(from), .operation = operation});
}

}  // namespace shardrec::training
