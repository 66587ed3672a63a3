// The means over ranks of a block of elements that all of them have: the elements go from back end to back end, as those of
// a step do (comm/bodies/carrier.h), and never change on the way.
//
// Two exchanges: every rank sends each part of the block to the rank that adds it up
// (comm/collective/owned_range.h), which sends the means to all.
//
// On a device operations are those of a back end of this object's own: other ranks wait for them, and what ends the
// replicas' communicator stops them, neither of which is so of the collection's.
//
// Thread rule: one thread at a time, where it is asked for other than the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/collective/collectives.h"
#include "comm/collective/owned_range.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "core/threads.h"
#include "embedding/collection.h"
#include "embedding/exchange/ordered_channel.h"

namespace shardrec::training {

class BlockMeans {
 public:
  // replicas: the ranks; channel: of theirs, for this object alone; threads: of a thread that is not the collection's,
  // which outlive this, or null: those of the collection. Throws as the back end and the carrier do.
  BlockMeans(const std::shared_ptr<comm::Communicator>& replicas,
             std::shared_ptr<comm::Channel> channel,
             std::shared_ptr<embedding::Collection> collection, core::Threads* threads);
  ~BlockMeans();
  BlockMeans(const BlockMeans&) = delete;
  BlockMeans& operator=(const BlockMeans&) = delete;

  // Once, before the first block. Collective over the replicas; an error ends their communicator.
  void connect(comm::Collectives& of_replicas) { bodies_->connect(of_replicas); }

  // Whose operations write blocks and read means.
  compute::Backend& backend() { return *backend_; }
  // Bytes of a block at most.
  size_t most_bytes() const { return most_bytes_; }

  // Begins a block: where operations write its elements, side by side.
  std::byte* begin(compute::Element element, int64_t count);
  // These operations have been called. Collective over the replicas: the means are in `means` when it returns, which are
  // not where the block is. Throws CORRUPT_DATA, and what channels and operations throw.
  void average(const char* operation, std::byte* means);

 private:
  std::span<const comm::ConstBytes> exchange(const char* operation,
                                             const comm::MessageBuffer& sent);
  void require_size(comm::ConstBytes part, const comm::OwnedRange& range, size_t from,
                    const char* operation) const;
  size_t bytes_of(int64_t elements) const {
    return static_cast<size_t>(elements) * compute::element_bytes(element_);
  }

  const std::shared_ptr<embedding::Collection> collection_;
  const int ranks_;
  const int rank_;
  size_t most_bytes_ = 0;
  std::unique_ptr<compute::Backend> own_backend_;  // null: the collection's
  compute::Backend* backend_ = nullptr;
  std::unique_ptr<comm::BodyCarrier> bodies_;
  std::unique_ptr<embedding::OrderedChannel> channel_;
  std::unique_ptr<comm::MessageBuffer> rows_sent_;
  std::unique_ptr<comm::MessageBuffer> means_sent_;
  std::unique_ptr<comm::ReceivedBodies> rows_received_;
  std::unique_ptr<comm::ReceivedBodies> means_received_;
  // Of the block.
  compute::Element element_ = compute::Element::kFloat32;
  int64_t elements_ = 0;
  std::byte* rows_ = nullptr;
  std::vector<comm::ConstBytes> messages_;  // by rank
  std::vector<const std::byte*> parts_;     // likewise
};

}  // namespace shardrec::training
