#include "shardrec/fsdp.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clip.h"
#include "core/tensor.h"
#include "guard.h"
#include "objects/dense_objects.h"
#include "objects/fsdp_object.h"
#include "objects/mesh_object.h"
#include "options.h"

using namespace shardrec::capi;
namespace comm = shardrec::comm;
namespace core = shardrec::core;
namespace dense = shardrec::dense;

namespace {

constexpr int64_t kMostElements = int64_t{1} << 48;  // of a parameter

dense::FsdpOptions fsdp_options(const Options& values, const comm::Communicator& communicator) {
  const auto threads = values.find_i64(SHARDREC_OPTION_THREADS);
  dense::FsdpOptions out;
  out.strategy = values.choice<shardrec_fsdp_strategy>(SHARDREC_OPTION_FSDP_STRATEGY);
  out.prefetch = static_cast<int>(values.i64(SHARDREC_OPTION_FSDP_PREFETCH));
  out.held = static_cast<int>(values.i64(SHARDREC_OPTION_FSDP_HELD_UNITS));
  out.parameter_dtype = values.choice<shardrec_dtype>(SHARDREC_OPTION_FSDP_PARAMETER_DTYPE);
  out.reduce_dtype = values.choice<shardrec_dtype>(SHARDREC_OPTION_FSDP_REDUCE_DTYPE);
  out.non_finite = values.choice<shardrec_non_finite>(SHARDREC_OPTION_NON_FINITE);
  out.average = values.i64(SHARDREC_OPTION_DDP_AVERAGE) != 0;
  out.factor = values.f64(SHARDREC_OPTION_DDP_FACTOR);
  out.place = place_from(values);
  out.offload = values.i64(SHARDREC_OPTION_FSDP_OFFLOAD) != 0;
  out.threads = threads ? static_cast<int>(*threads) : communicator.default_threads();
  return out;
}

// A call on an open set whose body may exchange something.
template <class Body>
shardrec_status exchanging_set(shardrec_fsdp* fsdp, const char* name, Body body) {
  return guard([&] {
    const auto use = enter(fsdp, Access::kExclusive);
    use->membership->require_open();
    comm::tell_shortage(use->membership->communicator(), name, [&] { body(use->fsdp); });
  });
}

// Of full parameters and full gradients.
shardrec_tensor full_view(const dense::Fsdp& set, void* data, int32_t index) {
  shardrec_tensor view =
      core::compact_view(data, set.parameter_dtype(), set.parameter(index).shape);
  if (set.device() < 0) return view;
  view.device_type = SHARDREC_DEVICE_CUDA;
  view.device_id = set.device();
  return view;
}

// All elements of a parameter, of the host's.
core::FlatView whole_parameter(const dense::Fsdp& set, int32_t index, const shardrec_tensor* tensor,
                               const char* name) {
  const dense::Fsdp::Parameter& parameter = set.parameter(index);
  const core::FlatView view = core::flat_view(tensor, name);
  if (view.dtype != SHARDREC_FLOAT32 || view.size != parameter.elements) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence(name, " has ", view.size, " elements of ",
                              core::dtype_name(view.dtype), "; parameter \"", parameter.name,
                              "\" has ", parameter.elements, " of float32"));
  }
  return view;
}

}  // namespace

namespace shardrec::capi {

dense::Fsdp& StackEntry::enter() {
  std::shared_ptr<FsdpObject> object = object_.lock();
  if (object == nullptr) {
    core::fail(SHARDREC_CLOSED,
               "the set of sharded parameters that has the parameters of this stack was destroyed");
  }
  object->membership->require_open();
  if (!object->busy_flag().try_take()) throw_busy(Kind::kFsdp);
  entered_ = std::move(object);
  return entered_->fsdp;
}

void StackEntry::leave() noexcept {
  const std::shared_ptr<FsdpObject> object = std::move(entered_);
  object->busy_flag().give_back();
}

}  // namespace shardrec::capi

shardrec_status shardrec_fsdp_create(shardrec_comm* comm, shardrec_mesh* mesh,
                                     const shardrec_options* options, shardrec_fsdp** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(comm, Access::kShared);
    use->membership->require_open();
    const std::optional<shardrec::training::Mesh> groups = groups_of(use, mesh);
    const Options values = read_options(options, SHARDREC_OPTIONS_FSDP);
    dense::FsdpGroups ranks{.world = use->membership->share()};
    if (groups) {
      ranks.sharding = groups->sharding;
      ranks.replicas = groups->replicas;
    }
    create(out,
           std::make_shared<FsdpObject>(use->membership, std::move(ranks), groups.has_value(),
                                        fsdp_options(values, use->membership->communicator())));
  });
}

void shardrec_fsdp_destroy(shardrec_fsdp** fsdp) { destroy(fsdp); }

shardrec_status shardrec_fsdp_add_unit(shardrec_fsdp* fsdp, const char* name, int32_t* out_unit) {
  return guard([&] {
    const auto use = enter(fsdp, Access::kExclusive);
    const int64_t unit = use->fsdp.add_unit(std::string(require_text(name, "name")));
    if (out_unit != nullptr) *out_unit = static_cast<int32_t>(unit);
  });
}

shardrec_status shardrec_fsdp_add_parameter(shardrec_fsdp* fsdp, int32_t unit, const char* name,
                                            int64_t rows, int64_t columns, int32_t* out_index) {
  return guard([&] {
    const auto use = enter(fsdp, Access::kExclusive);
    const std::string text(require_text(name, "name"));
    if (rows < 0) refuse_value("rows", rows, "0 or more");
    if (columns < 0) refuse_value("columns", columns, "0 or more");
    if (rows > kMostElements / std::max(columns, int64_t{1})) {
      refuse_value("rows", rows, "a parameter of at most 2^48 elements");
    }
    std::vector<int64_t> shape = {rows};
    if (columns != 0) shape.push_back(columns);
    const int64_t index = use->fsdp.add_parameter(unit, text, std::move(shape));
    if (out_index != nullptr) *out_index = static_cast<int32_t>(index);
  });
}

shardrec_status shardrec_fsdp_add_mlp(shardrec_fsdp* fsdp, const char* name, shardrec_mlp* mlp,
                                      int64_t unit_elements, int32_t* out_first) {
  return guard([&] {
    const auto use = enter(fsdp, Access::kExclusive);
    const auto stack = enter(mlp, Access::kExclusive);
    const std::string prefix = std::string(require_text(name, "name")) + ".";
    if (unit_elements < 1) refuse_value("unit_elements", unit_elements, "1 or more");
    const int64_t first = dense::add_layers(use->fsdp, prefix, stack.share(), unit_elements,
                                            std::make_unique<StackEntry>(use.share()));
    if (out_first != nullptr) *out_first = static_cast<int32_t>(first);
  });
}

shardrec_status shardrec_fsdp_set_optimizer(shardrec_fsdp* fsdp, const shardrec_options* options) {
  return guard([&] {
    const auto use = enter(fsdp, Access::kExclusive);
    use->fsdp.set_optimizer(optimizer_from(read_options(options, SHARDREC_OPTIONS_OPTIMIZER)));
  });
}

shardrec_status shardrec_fsdp_commit(shardrec_fsdp* fsdp) {
  return exchanging_set(fsdp, "fsdp: commit", [](dense::Fsdp& set) { set.commit(); });
}

shardrec_status shardrec_fsdp_begin(shardrec_fsdp* fsdp, int32_t sync) {
  return exchanging_set(fsdp, "fsdp: begin", [&](dense::Fsdp& set) {
    if (sync != 0 && sync != 1) refuse_value("sync", int64_t{sync}, "0 or 1");
    set.begin(sync == 1);
  });
}

shardrec_status shardrec_fsdp_unshard(shardrec_fsdp* fsdp, int32_t unit) {
  return exchanging_set(fsdp, "fsdp: unshard", [&](dense::Fsdp& set) { set.unshard(unit); });
}

shardrec_status shardrec_fsdp_wait_unshard(shardrec_fsdp* fsdp, int32_t unit) {
  return exchanging_set(fsdp, "fsdp: wait_unshard",
                        [&](dense::Fsdp& set) { set.wait_unshard(unit); });
}

shardrec_status shardrec_fsdp_parameter(shardrec_fsdp* fsdp, int32_t index, shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(fsdp, Access::kExclusive);
    const dense::Fsdp& set = use->fsdp;
    *out = full_view(set, set.parameter_values(index), index);
  });
}

shardrec_status shardrec_fsdp_reshard(shardrec_fsdp* fsdp, int32_t unit) {
  return exchanging_set(fsdp, "fsdp: reshard", [&](dense::Fsdp& set) { set.reshard(unit); });
}

shardrec_status shardrec_fsdp_gradient(shardrec_fsdp* fsdp, int32_t index, shardrec_tensor* out) {
  return exchanging_set(fsdp, "fsdp: gradient", [&](dense::Fsdp& set) {
    require_out(out, "out");
    if (set.is_of_stack(index)) {
      core::fail(SHARDREC_INVALID_STATE,
                 core::sentence("the gradient of parameter \"", set.parameter(index).name,
                                "\" is written by the backward of its stack"));
    }
    *out = full_view(set, set.parameter_gradients(index), index);
  });
}

shardrec_status shardrec_fsdp_mark_ready(shardrec_fsdp* fsdp, int32_t unit) {
  return exchanging_set(fsdp, "fsdp: mark_ready", [&](dense::Fsdp& set) { set.mark_ready(unit); });
}

shardrec_status shardrec_fsdp_end(shardrec_fsdp* fsdp) {
  return exchanging_set(fsdp, "fsdp: end", [](dense::Fsdp& set) { set.end(); });
}

shardrec_status shardrec_fsdp_wait(shardrec_fsdp* fsdp) {
  return exchanging_set(fsdp, "fsdp: wait", [](dense::Fsdp& set) { set.wait(); });
}

shardrec_status shardrec_fsdp_zero_gradients(shardrec_fsdp* fsdp) {
  return guard([&] { enter(fsdp, Access::kExclusive)->fsdp.zero_gradients(); });
}

shardrec_status shardrec_fsdp_clip_gradients(shardrec_fsdp* fsdp, shardrec_clip clip, double bound,
                                             double* out_norm) {
  return exchanging_set(fsdp, "fsdp: clip_gradients", [&](dense::Fsdp& set) {
    require_clip(clip, bound);
    const double norm = set.clip_gradients(clip, bound);
    if (out_norm != nullptr) *out_norm = norm;
  });
}

shardrec_status shardrec_fsdp_step(shardrec_fsdp* fsdp) {
  return exchanging_set(fsdp, "fsdp: step", [](dense::Fsdp& set) { set.step(); });
}

shardrec_status shardrec_fsdp_set_learning_rate(shardrec_fsdp* fsdp, double learning_rate) {
  return guard([&] {
    const auto use = enter(fsdp, Access::kExclusive);
    if (!(std::isfinite(learning_rate) && learning_rate >= 0)) {
      refuse_value("learning_rate", learning_rate, "a finite number, 0 or more,");
    }
    use->fsdp.set_learning_rate(learning_rate);
  });
}

shardrec_status shardrec_fsdp_shard(shardrec_fsdp* fsdp, int32_t index, int32_t array,
                                    int64_t* out_offset, shardrec_tensor* out) {
  return exchanging_set(fsdp, "fsdp: shard", [&](dense::Fsdp& set) {
    require_out(out_offset, "out_offset");
    require_out(out, "out");
    const dense::Fsdp::Shard part = set.shard(index, array);
    const std::vector<int64_t> shape = {static_cast<int64_t>(part.elements.size())};
    *out = core::compact_view(part.elements.data(), SHARDREC_FLOAT32, shape);
    *out_offset = part.offset;
  });
}

shardrec_status shardrec_fsdp_full(shardrec_fsdp* fsdp, int32_t index, int32_t array,
                                   const shardrec_tensor* out) {
  return exchanging_set(fsdp, "fsdp: full", [&](dense::Fsdp& set) {
    set.gather(index, array, whole_parameter(set, index, out, "out").as<float>());
  });
}

shardrec_status shardrec_fsdp_set_full(shardrec_fsdp* fsdp, int32_t index, int32_t array,
                                       const shardrec_tensor* tensor, int32_t root) {
  return exchanging_set(fsdp, "fsdp: set_full", [&](dense::Fsdp& set) {
    if (root < -1) refuse_value("root", int64_t{root}, "-1, or the number of a rank");
    if (tensor == nullptr) core::fail(SHARDREC_INVALID_ARGUMENT, "tensor is NULL");
    const bool is_read = root == -1 || root == set.rank();
    core::FlatView view;
    if (is_read) view = whole_parameter(set, index, tensor, "tensor");
    set.scatter(index, array, view.as<float>(), root);
  });
}

shardrec_status shardrec_fsdp_check_equal(shardrec_fsdp* fsdp) {
  return exchanging_set(fsdp, "fsdp: check_equal", [](dense::Fsdp& set) { set.check_equal(); });
}

shardrec_status shardrec_fsdp_statistics_json(shardrec_fsdp* fsdp, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    const auto use = enter(fsdp, Access::kExclusive);
    *out_text = copy_text(use->fsdp.statistics_json());
  });
}
