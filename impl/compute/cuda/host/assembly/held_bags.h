// Which bags of a feature some blocks hold, and which row each has: bits on a device, in place of walking
// the bags of all blocks side by side.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/assembly_operations.h"
#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/launch_list.h"

namespace shardrec::compute::cuda::host {

class HeldBags {
 public:
  explicit HeldBags(std::shared_ptr<Stream> stream);

  // Begins other lists.
  void clear();
  // A list of the bags that any of the blocks holds, for which presence() is wanted; chunk_before:
  // [chunks + 1], such bags before each chunk.
  void add(std::span<const SentRows> blocks, int64_t bags, const uint32_t* chunk_before);
  // A list of which chunk_sums are wanted. Not both kinds of lists at once.
  void add_count(const NodeSumCount& count);

  // Enqueues what was asked for, which is there in the order of the stream until clear().
  void run();
  // Behind run(): by list, in the order of the calls of add().
  shardrec_cuda_presence presence(size_t list) const { return presence_[list]; }
  // Enqueues the sums over the chunks of lists of add_count(). rows: on the device, by list.
  void add_up(int64_t* rows);

 private:
  void add_list(std::span<const SentRows> blocks, shardrec_cuda_held_bags list);

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Buffer room_;
  std::vector<shardrec_cuda_sent_bags> blocks_;
  std::vector<shardrec_cuda_held_bags> lists_;  // blocks: only their number
  std::vector<shardrec_cuda_presence> presence_;
  LaunchList<shardrec_cuda_held_bags> launch_;
  const shardrec_cuda_held_bags* lists_there_ = nullptr;
};

}  // namespace shardrec::compute::cuda::host
