// One unit's gradients on their way over the ranks: a reduce-scatter in the sharding group gives each
// rank the sum of its shard; where there are replicas, those sums are added up over the replica group.
// All sums are pairwise trees over the rank number (rank_sums.h). Without a sharding group the
// gradients themselves are added up over the replica group, as DDP does.
//
//   post -- (kParts) -- advance --> done                               no replicas
//                          \- (kReplicaParts) -- advance --> done      two replicas, or a small shard
//                                        \- (kReplicaSums) -- advance --> done
//
// A rank whose gradients are not ready sends its number in their place: all ranks then learn of it, and
// nobody's shard changes.
//
// Thread rule: one thread at a time for all reductions of one set of channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/collective/all_gather.h"
#include "comm/collective/owned_range.h"
#include "comm/collective/pipelined_channel.h"
#include "comm/collective/reduce_scatter.h"
#include "comm/communicator.h"
#include "core/memory.h"
#include "dense/ddp/rank_sums.h"
#include "dense/fsdp/unit.h"
#include "dense/fsdp/unit_device.h"
#include "shardrec/tensor.h"

namespace shardrec::dense {

// What the reductions of all units of a set travel on. A group that is missing has one rank: this one.
struct ReductionChannels {
  ReductionChannels(comm::Communicator* sharding, comm::Communicator* replicas);

  int world_rank = 0;
  int sharding_ranks = 1;
  int replica_ranks = 1;
  int replica_rank = 0;
  std::optional<comm::PipelinedChannel> parts;
  std::optional<comm::PipelinedChannel> replica_parts;
  std::optional<comm::PipelinedChannel> replica_sums;
};

// The full gradients of a unit and what is made of them on their way. Peers may read them after the set is gone. On a
// device full gradients are added to there, and copied to the host when they are whole.
class GradientMemory {
 public:
  // device: null: the CPU.
  GradientMemory(const ReductionChannels& channels, shardrec_dtype dtype, shardrec_dtype wire,
                 int64_t elements, int64_t shard_elements, UnitDevice* device);

  int64_t bytes() const noexcept { return bytes_; }
  int64_t device_bytes() const noexcept { return device_bytes_; }

  // Full gradients, where they are added to.
  std::byte* data() noexcept { return copy_ ? copy_->there.data() : pages_->gradients.data(); }
  // So many bytes of them become zeros.
  void clear(size_t bytes);
  // So many bytes of them go to the host, which has them behind wait_for_copy().
  void copy_to_host(size_t bytes);
  void wait_for_copy() const;

 private:
  friend class UnitReduction;
  friend class GradientReducer;

  struct Pages {
    UnitBytes gradients;  // [elements] of dtype
    core::Pages message;  // the same in the dtype of the way, where that is another one
    core::Pages partial;  // [shard elements] float32: sums of a sharding group
    core::Pages sums;     // of this rank's range of the shard
  };
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  UnitDevice* device_ = nullptr;
  std::optional<UnitCopy> copy_;  // on a device
  int64_t bytes_ = 0;
  int64_t device_bytes_ = 0;
};

class UnitReduction {
 public:
  // All outlive this object. dtype: of gradients; wire: of messages.
  UnitReduction(Unit& unit, size_t number, ReductionChannels& channels, RankSums& sharding_sums,
                RankSums& replica_sums, shardrec_dtype dtype, shardrec_dtype wire,
                const GradientScale& scale);

  // memory stays until is_done(), and unchanged until reclaim() has returned. step: equal on all ranks, else
  // MISMATCH.
  void post(GradientMemory& memory, uint64_t step);
  // This rank has no gradients.
  void post_refusal(uint64_t step);
  bool has_arrived() const noexcept;
  // Waits for what has_arrived() asks about, and takes it.
  void advance();
  bool is_done() const noexcept { return stage_ == Stage::kDone; }
  // Whether it waits on the channel that the other one waits on, which was posted before it.
  bool is_behind(const UnitReduction& other) const noexcept { return stage_ == other.stage_; }
  // After is_done(): the rank of the communicator whose gradients were not ready; -1: none.
  int refusing_rank() const noexcept { return refusing_rank_; }
  // Waits until peers have read what was posted last.
  void reclaim();
  int64_t bytes_sent() const noexcept { return bytes_sent_; }  // to all peers, so far

 private:
  enum class Stage : uint8_t { kParts, kReplicaParts, kReplicaSums, kDone };

  bool is_direct() const noexcept;
  comm::OwnedRanges replica_ranges() const noexcept;
  comm::Operation operation(const char* name, uint32_t kind) const noexcept;
  // Two, each written before it is sent and by nobody until reclaim(): peers read them where they are.
  enum Refusal : uint8_t { kOfParts, kOfReplicaParts };
  comm::ConstBytes refuse(Refusal exchange) noexcept;
  bool find_refusal(std::span<const comm::ConstBytes> messages);
  void take_parts();
  void take_replica_parts();
  void take_replica_sums();
  // sent null: a refusal.
  void post_to_sharding(const std::byte* sent, std::shared_ptr<const void> keep_alive);
  void post_to_replicas();
  const std::byte* sent_gradients() const noexcept;
  void add_up(RankSums& sums, std::span<const comm::ConstBytes> messages, shardrec_dtype from,
              const GradientScale& scale, comm::OwnedRange range);
  void add_values(const float* values, comm::OwnedRange range);

  Unit& unit_;
  const uint32_t number_;
  ReductionChannels& channels_;
  RankSums& sharding_sums_;
  RankSums& replica_sums_;
  const shardrec_dtype dtype_;
  const shardrec_dtype wire_;
  const GradientScale scale_;

  std::optional<comm::ReduceScatter> parts_;
  std::optional<comm::ReduceScatter> replica_parts_;
  std::optional<comm::AllGather> replica_gather_;
  std::vector<comm::ConstBytes> sends_;
  std::vector<const std::byte*> inputs_;
  std::shared_ptr<std::array<int64_t, 2>> refusals_;
  uint64_t step_ = 0;
  Stage stage_ = Stage::kDone;
  GradientMemory* memory_ = nullptr;
  int refusing_rank_ = -1;
  int64_t bytes_sent_ = 0;
};

}  // namespace shardrec::dense
