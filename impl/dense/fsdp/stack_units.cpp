#include "dense/fsdp/stack_units.h"

#include <utility>

#include "core/error.h"

namespace shardrec::dense {
namespace {

// Layers without parameters, such as dropout, are in the unit of those before them.
std::vector<LayerRange> cut(std::span<const Layer> layers, int64_t unit_elements) {
  std::vector<LayerRange> ranges;
  int64_t elements = 0;
  bool has_begun = false;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (!has_begun || (elements >= unit_elements && layers[l].elements > 0)) {
      ranges.push_back({.begin = l, .end = l});
      elements = 0;
      has_begun = true;
    }
    elements += layers[l].elements;
    ranges.back().end = l + 1;
  }
  return ranges;
}

std::string unit_name(const std::string& prefix, const LayerRange& range) {
  std::string name = core::sentence(prefix, "layer.", range.begin);
  if (range.end - range.begin > 1) name += core::sentence("-", range.end - 1);
  return name;
}

}  // namespace

StackUnits::StackUnits(std::unique_ptr<FsdpEntry> entry, std::vector<LayerRange> ranges,
                       int64_t first_unit, int64_t first_parameter, int32_t device)
    : entry_(std::move(entry)),
      ranges_(std::move(ranges)),
      first_unit_(first_unit),
      first_parameter_(first_parameter),
      device_(device) {}

void StackUnits::leave() noexcept {
  set_ = nullptr;
  entry_->leave();
}

void StackUnits::require_forward() const { set_->require_open("a stack's forward"); }

void StackUnits::require_backward() const {
  set_->require_open("a stack's backward");
  for (size_t unit = 0; unit < ranges_.size(); ++unit) set_->require_markable(unit_of(unit));
}

void StackUnits::unshard(size_t unit, Stream* user) {
  set_->unshard(unit_of(unit));
  set_->wait_unshard(unit_of(unit), user);
}

void StackUnits::reshard(size_t unit) { set_->reshard(unit_of(unit)); }

bool StackUnits::has_gradients(size_t unit) const noexcept {
  return set_->has_gradients(unit_of(unit));
}

void StackUnits::mark_ready(size_t unit, Stream* user) { set_->mark_ready(unit_of(unit), user); }

const float* StackUnits::values(int64_t parameter) const {
  return static_cast<const float*>(
      static_cast<const void*>(set_->parameter_values(first_parameter_ + parameter)));
}

float* StackUnits::gradients(int64_t parameter, Stream* user) {
  return static_cast<float*>(
      static_cast<void*>(set_->parameter_gradients(first_parameter_ + parameter, user)));
}

int64_t add_layers(Fsdp& set, const std::string& prefix, const std::shared_ptr<Mlp>& layers,
                   int64_t unit_elements, std::unique_ptr<FsdpEntry> entry) {
  return set.add_stack(layers, [&](int64_t first_unit, int64_t first_parameter) {
    const std::vector<LayerRange> ranges = cut(layers->layers(), unit_elements);
    for (const LayerRange& range : ranges) {
      const int64_t unit = set.add_unit(unit_name(prefix, range));
      for (size_t l = range.begin; l < range.end; ++l) {
        const Layer& layer = layers->layers()[l];
        for (int64_t p = layer.first; p < layer.first + layer.count; ++p) {
          const ParameterInfo& info = layers->parameters().infos()[static_cast<size_t>(p)];
          set.add_parameter(unit, prefix + info.name, info.shape);
        }
      }
    }
    layers->set_units(std::make_shared<StackUnits>(std::move(entry), ranges, first_unit,
                                                   first_parameter, set.device()));
  });
}

StackUnits* stack_units(const Mlp& layers) noexcept {
  return dynamic_cast<StackUnits*>(layers.units());
}

}  // namespace shardrec::dense
