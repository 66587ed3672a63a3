// Where the bags of blocks begin, counted through on a device: what its operations read in place of
// walking bags (compute::Bags) from one to the next.
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/bags.h"
#include "compute/cuda/host/arguments.h"

namespace shardrec::compute::cuda::host {

// As the plug-in's operations read them.
shardrec_cuda_bags on_device(const Bags& bags);

// The lists of a block, on the device. A block without bags has none to read.
struct IndexedBags {
  const uint32_t* first_id = nullptr;  // [bags + 1]
  const uint32_t* sample = nullptr;    // [bags]
};

class BagIndex {
 public:
  explicit BagIndex(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; valid until the next call, in the order of the stream. The bags are
  // those of checked blocks.
  std::span<const IndexedBags> run(std::span<const Bags* const> blocks);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Buffer lists_;
  Buffer sums_;
  Buffer room_;
  std::vector<shardrec_cuda_bag_index> blocks_;
  std::vector<int64_t> first_length_;
  std::vector<IndexedBags> indexed_;
};

}  // namespace shardrec::compute::cuda::host
