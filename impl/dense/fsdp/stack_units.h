// The layers of a stack as units of a set of sharded parameters: the stack's forward and backward unshard them, and its
// backward marks them ready.
//
// Thread rule: as the set's, which FsdpEntry sees to.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dense/fsdp/fsdp.h"
#include "dense/layers/layer_units.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense {

// The way of a stack's calls into the set.
class FsdpEntry {
 public:
  FsdpEntry() = default;
  FsdpEntry(const FsdpEntry&) = delete;
  FsdpEntry& operator=(const FsdpEntry&) = delete;
  virtual ~FsdpEntry() = default;

  virtual bool expired() const noexcept = 0;  // the set is gone
  virtual bool is_into(const Fsdp& set) const noexcept = 0;
  // Keeps the set, and others out of it, until leave(). Throws BUSY; CLOSED where it is gone.
  virtual Fsdp& enter() = 0;
  virtual void leave() noexcept = 0;
};

class StackUnits final : public LayerUnits {
 public:
  // device: of the set.
  StackUnits(std::unique_ptr<FsdpEntry> entry, std::vector<LayerRange> ranges, int64_t first_unit,
             int64_t first_parameter, int32_t device);

  bool expired() const noexcept override { return entry_->expired(); }
  void enter() override { set_ = &entry_->enter(); }
  void leave() noexcept override;
  std::span<const LayerRange> ranges() const noexcept override { return ranges_; }
  void require_forward() const override;
  void require_backward() const override;
  int32_t device() const noexcept override { return device_; }
  void unshard(size_t unit, Stream* user) override;
  void reshard(size_t unit) override;
  bool has_gradients(size_t unit) const noexcept override;
  void mark_ready(size_t unit, Stream* user) override;
  const float* values(int64_t parameter) const override;
  float* gradients(int64_t parameter, Stream* user) override;

  bool are_of(const Fsdp& set) const noexcept { return entry_->is_into(set); }
  // Between enter() and leave().
  Fsdp& set() const noexcept { return *set_; }
  // Indices in the set.
  int64_t first_parameter() const noexcept { return first_parameter_; }

 private:
  int64_t unit_of(size_t unit) const noexcept { return first_unit_ + static_cast<int64_t>(unit); }

  std::unique_ptr<FsdpEntry> entry_;
  Fsdp* set_ = nullptr;
  std::vector<LayerRange> ranges_;
  int64_t first_unit_;
  int64_t first_parameter_;
  int32_t device_;
};

// Adds the layers of a stack to a set under prefix + "layer.0.weight" and so on, all or none. A unit is the next layers
// until they have unit_elements elements. Returns the index of the first parameter. entry: into this set. Throws what
// Fsdp::add_parameter() and Mlp::set_units() do.
int64_t add_layers(Fsdp& set, const std::string& prefix, const std::shared_ptr<Mlp>& layers,
                   int64_t unit_elements, std::unique_ptr<FsdpEntry> entry);

// The units of a stack whose parameters are sharded, else null.
StackUnits* stack_units(const Mlp& layers) noexcept;

}  // namespace shardrec::dense
