// Ids of messages on a device that shall travel once each (compute::DeduplicatedBlocks). The host looks
// for those that are equal, in a copy: messages that this is worth for are on their way there anyhow.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/memory.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

class Deduplication {
 public:
  // host: does it; it outlives this.
  Deduplication(std::shared_ptr<Stream> stream, RoutingOperations& host);

  // All results are there when the call returns.
  void run(std::span<const DeduplicatedBlocks> messages);

 private:
  std::shared_ptr<Stream> stream_;
  RoutingOperations& host_;
  Buffer here_;
  std::vector<DeduplicatedBlocks> on_host_;
};

}  // namespace shardrec::compute::cuda::host
