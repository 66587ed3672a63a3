// Touched rows in slots on a device: written, checked and read (compute/slot_operations.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/tiles.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cuda::host {

// As the plug-in's operations read it.
shardrec_cuda_slot on_device(const SlotRows& slot);

class Slots {
 public:
  explicit Slots(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the lists of structs are copied.
  void pack(std::span<const SlotPacking> slots);
  void unpack(std::span<const SlotUnpacking> tables);
  // good[i]: is slot i what it says? There when the call returns.
  void check(std::span<const SlotRows> slots, std::span<uint8_t> good);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  Buffer set_before_;
  Buffer room_;
  Tiles words_;
  Tiles floats_;
  std::vector<shardrec_cuda_slot> slots_;
  std::vector<shardrec_cuda_slot_packing> packings_;
  std::vector<shardrec_cuda_slot_unpacking> unpackings_;
};

}  // namespace shardrec::compute::cuda::host
