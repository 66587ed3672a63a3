// Who keeps the parameters of a stack in its place: in units, which are consecutive layers, whose parameters are whole
// only while these are computed.
//
// Thread rule: one thread at a time, between enter() and leave().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/cuda/host/stream.h"

namespace shardrec::dense {

// Layers [begin, end) of a stack.
struct LayerRange {
  size_t begin = 0;
  size_t end = 0;
};

class LayerUnits {
 public:
  // That layers on a device are computed in; null: they are on the CPU.
  using Stream = compute::cuda::host::Stream;

  LayerUnits() = default;
  LayerUnits(const LayerUnits&) = delete;
  LayerUnits& operator=(const LayerUnits&) = delete;
  virtual ~LayerUnits() = default;

  // Whether they are gone for good.
  virtual bool expired() const noexcept = 0;
  // The device that whole parameters and gradients are on; -1: the CPU.
  virtual int32_t device() const noexcept = 0;

  // Around each use. Throws BUSY, CLOSED, and INVALID_STATE where they are gone.
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;

  // All layers of the stack, in their order.
  virtual std::span<const LayerRange> ranges() const noexcept = 0;
  // Throw INVALID_STATE where no forward, or no backward, is possible now; nothing has changed then.
  virtual void require_forward() const = 0;
  virtual void require_backward() const = 0;

  // Waits until the parameters of a unit are whole. They are until reshard() or mark_ready().
  virtual void unshard(size_t unit, Stream* user) = 0;
  virtual void reshard(size_t unit) = 0;
  // Whether gradients of the unit are to be added to; else they are overwritten.
  virtual bool has_gradients(size_t unit) const noexcept = 0;
  // The gradients of a unit are whole.
  virtual void mark_ready(size_t unit, Stream* user) = 0;

  // Of a unit that is whole; parameter: its index in the stack.
  virtual const float* values(int64_t parameter) const = 0;
  virtual float* gradients(int64_t parameter, Stream* user) = 0;
};

// Keeps others out of the units while it lives.
class LayerUnitsUse {
 public:
  explicit LayerUnitsUse(LayerUnits& units) : units_(units) { units_.enter(); }
  ~LayerUnitsUse() { units_.leave(); }
  LayerUnitsUse(const LayerUnitsUse&) = delete;
  LayerUnitsUse& operator=(const LayerUnitsUse&) = delete;

 private:
  LayerUnits& units_;
};

}  // namespace shardrec::dense
