// One bucket's way over the ranks: gradients are copied into messages, added up over the ranks, and
// written back. Nobody reads a gradient after post() but receive() and finish(), which overwrite it.
//
// Two ranks, or a small bucket: everybody sends all of it to everybody and adds up for itself, one
// exchange. Else a reduce-scatter, and an all-gather on a channel of its own, so that all ranks post
// in one order on either channel, whatever is ready when. The choice depends on sizes alone; the
// bits are the same. A rank that is alone sends nothing: what it would have got back is computed in place.
//
//   post -- receive --> done                             direct
//        \- receive --> sums posted -- finish --> done   in parts
//
// Where NCCL adds up (option DDP_REDUCTION), messages are heads alone. Behind them, in the order of receive(), which is
// that of the buckets on all ranks, each rank enqueues one all-reduce of a copy of the bucket in the dtype of the way;
// what averages is done to the sum, which is written back. Ranks with nothing to add copy zeros. Nothing is enqueued
// where a head says that its rank is not ready.
//
// What touches elements is the memory's affair (bucket_memory.h): on a device it is enqueued when a call returns.
// Thread rule: one thread at a time for all exchanges of one pair of channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/all_gather.h"
#include "comm/collective/owned_range.h"
#include "comm/collective/pipelined_channel.h"
#include "comm/collective/reduce_scatter.h"
#include "core/function_ref.h"
#include "dense/ddp/bucket_gradients.h"
#include "dense/ddp/bucket_memory.h"
#include "dense/ddp/message.h"

namespace shardrec::dense {

// What all buckets of a set travel on.
struct BucketChannels {
  comm::PipelinedChannel parts;
  comm::PipelinedChannel sums;
};

// Who adds up what the ranks have.
enum class BucketReduction : uint8_t {
  kOrdered,  // each rank, in the order of ranks: rank_sums.h
  kNccl,
};

struct ExchangeShape {
  int rank = 0;
  int ranks = 1;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_dtype wire = SHARDREC_FLOAT32;  // of the messages
  bool asks_who_used = false;
  bool carries_gradients = true;                          // else only heads travel
  BucketReduction reduction = BucketReduction::kOrdered;  // kNccl: the memory makes all-reduces
};

class BucketExchange {
 public:
  // The channels and the memory outlive this object.
  BucketExchange(const ExchangeShape& shape, BucketChannels& channels, BucketMemory& memory,
                 size_t number, int64_t elements, std::vector<BucketParameter> parameters);

  using ScaleOf = core::FunctionRef<GradientScale(const BucketHeads&)>;

  // used: by this rank, per parameter; where it is 0 zeros are sent. Copies the gradients.
  void post(const BucketHead& head, std::span<const char> used);
  // After post(). Waits for the peers. scale_of: by what the heads say. Without a verdict but kReady
  // nothing is written.
  void receive(ScaleOf scale_of);
  // After receive(), unless is_done(): waits for the peers' sums.
  void finish();
  // After post(), unless is_done(): whether receive() or finish(), whichever is next, would not wait.
  bool has_arrived() const noexcept;

  // Whether nothing of the bucket is left to come.
  bool is_done() const noexcept { return state_ == State::kDone; }
  // Of the last receive().
  const BucketHeads& heads() const noexcept { return heads_; }
  // Whether peers wait for nothing that this rank does after post().
  bool is_sent_by_post() const noexcept { return direct_ && !adds_by_nccl(); }
  // After receive(): whether some rank has used it, where the ranks ask.
  bool is_written(size_t parameter) const noexcept { return written_[parameter] != 0; }
  // To all peers, with gradients, both exchanges together; to NCCL, what it is given.
  size_t bytes_sent() const noexcept;

 private:
  enum class State : uint8_t { kPosted, kSumsPosted, kDone };

  // The elements of the bucket that this rank's message to `rank` has.
  comm::OwnedRange part_of(int rank) const noexcept;
  // Bytes from one message to the next one.
  size_t message_stride() const noexcept;
  size_t sums_room() const noexcept;
  bool alone() const noexcept { return shape_.ranks == 1; }
  bool is_compressed() const noexcept { return shape_.wire != shape_.dtype; }
  bool adds_by_nccl() const noexcept {
    return shape_.reduction == BucketReduction::kNccl && shape_.carries_gradients && !alone();
  }
  bool sends_gradients() const noexcept { return shape_.carries_gradients && !adds_by_nccl(); }
  // By which what NCCL adds up in float16 is divided before.
  double room_for_ranks() const noexcept;
  // A list of sums with so many addends each. Each is a run, and its inputs.
  void begin_sums(size_t addends) noexcept;
  void add_run(std::byte* out, int64_t count) { sum_.push_back({.out = out, .count = count}); }
  void add_input(const std::byte* input) { inputs_.push_back(input); }
  void add_up(BucketAdder& adder, BucketSum sum);
  void take_own(const GradientScale& scale);
  void add_parts(std::span<const comm::ConstBytes> bodies, const GradientScale& scale);
  void post_sums();
  void give_to_nccl(std::span<const char> used);
  void add_by_nccl(const GradientScale& scale);

  const ExchangeShape shape_;
  const uint64_t number_;
  BucketMemory& memory_;
  const BucketGradients gradients_;
  const BucketFormat format_;
  const comm::OwnedRanges ranges_;
  const bool direct_;
  comm::ReduceScatter reduce_scatter_;
  comm::AllGather all_gather_;
  State state_ = State::kDone;
  // One for each list that is alike step after step.
  std::unique_ptr<BucketAdder> packing_;
  std::unique_ptr<BucketAdder> adding_;
  std::unique_ptr<BucketAdder> writing_;
  std::unique_ptr<comm::MessageBuffer> outgoing_;
  std::unique_ptr<comm::MessageBuffer> own_sums_;
  std::unique_ptr<comm::ReceivedBodies> parts_;
  std::unique_ptr<comm::ReceivedBodies> sums_;
  std::unique_ptr<comm::nccl::AllReduce> all_reduce_;  // null: sums are ordered
  std::vector<comm::ConstBytes> send_;
  std::vector<size_t> head_bytes_;  // by rank
  std::vector<BucketRun> sum_;
  std::vector<const std::byte*> inputs_;
  size_t addends_ = 1;
  std::byte* own_sums_at_ = nullptr;
  std::vector<char> used_;     // by parameter, of a rank that is alone
  std::vector<char> written_;  // by parameter
  BucketHead own_head_;
  BucketHeads heads_;
  double factor_behind_ = 1;  // of sums that have travelled
};

}  // namespace shardrec::dense
