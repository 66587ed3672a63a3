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
#include "compute/cuda/host/scans.h"
#include "compute/cuda/host/tiles.h"

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
  // The same in two halves: where the lists will be; and what makes them, with zeros that the caller has cleared for
  // it.
  std::span<const IndexedBags> list(std::span<const Bags* const> blocks);
  size_t zero_bytes() const { return tiles_.count() == 0 ? 0 : scan_bytes(tiles_.count()); }
  void enqueue(std::byte* zeros);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Buffer lists_;
  Buffer zeros_;
  std::vector<shardrec_cuda_bag_index> blocks_;
  Tiles tiles_;
  std::vector<IndexedBags> indexed_;
};

}  // namespace shardrec::compute::cuda::host
