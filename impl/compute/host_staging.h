// A caller's tensors in the host's memory, on their way to a back end that does not reach it (Backend::reaches_host):
// they are copied into pinned memory, and from there to the memory of the back end, beside the operations that were called
// before. Nobody waits for those, but for what read the tensors that were sent before; where the host has to know what is
// in the tensors, it waits for these copies.
//
// Thread rule: that of the back end, which outlives it.
#pragma once

#include <cstddef>
#include <span>

#include "compute/routing_operations.h"

namespace shardrec::compute {

struct StagedTensor {
  const void* here = nullptr;
  size_t bytes = 0;
  const void* there = nullptr;  // written: where operations find it
};

class HostStaging {
 public:
  virtual ~HostStaging() = default;
  HostStaging(const HostStaging&) = delete;
  HostStaging& operator=(const HostStaging&) = delete;

  // The tensors have been read when the call returns, and operations that are called from now on find them, up to
  // release(). Throws OUT_OF_MEMORY, DEVICE_ERROR.
  virtual void send(std::span<StagedTensor> tensors) = 0;
  // The operations that read the tensors have been called: what is sent next comes to the same place behind them. Does
  // nothing where nothing was sent since the call before.
  virtual void release() = 0;

  // RoutingOperations::count_batch() of ids and lengths that were sent, and sort_samples() of numbers that were. What the
  // host is told is as there; what is written is written by operations that are called.
  virtual bool count_batch(const BatchLengths& lengths, std::span<RoutedIds> features,
                           std::span<CheckedIds> checked, std::span<BlockCount> counts) = 0;
  virtual void sort_samples(std::span<const SamplesByBag> features,
                            std::span<WrongInteger> wrong) = 0;
  // Likewise RoutingOperations::deduplicate_ids() of messages that write_ids() has written from a batch that was counted
  // here. blocks: as they were written. bodies: the memory of all messages.
  virtual void deduplicate_ids(const WrittenBlocks& blocks, std::span<const std::byte> bodies,
                               std::span<const DeduplicatedBlocks> messages) = 0;

 protected:
  HostStaging() = default;
};

}  // namespace shardrec::compute
