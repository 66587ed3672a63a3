#include "shardrec/ddp.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clip.h"
#include "core/tensor.h"
#include "dense/ddp/layers.h"
#include "guard.h"
#include "objects/dense_objects.h"
#include "options.h"

using namespace shardrec::capi;
namespace comm = shardrec::comm;
namespace compute = shardrec::compute;
namespace core = shardrec::core;
namespace dense = shardrec::dense;

namespace {

std::vector<int64_t> shape_of(const shardrec_tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

// The CUDA device of a tensor; kNoDevice: it is another one's.
int32_t device_of(const shardrec_tensor* tensor) {
  const bool on_device = tensor != nullptr && tensor->device_type == SHARDREC_DEVICE_CUDA;
  return on_device ? tensor->device_id : dense::Ddp::kNoDevice;
}

// Elements of any device: a set may be on each.
core::FlatView flat_view_anywhere(const shardrec_tensor* tensor, const char* name) {
  if (device_of(tensor) < 0) return core::flat_view(tensor, name);
  shardrec_tensor like_host = *tensor;
  like_host.device_type = SHARDREC_DEVICE_CPU;
  like_host.device_id = 0;
  return core::flat_view(&like_host, name);
}

// A view of what a set has, where that is.
shardrec_tensor view_in(const dense::Ddp& set, void* data, shardrec_dtype dtype,
                        const std::vector<int64_t>& shape) {
  shardrec_tensor view = core::compact_view(data, dtype, shape);
  if (set.device() == dense::Ddp::kNoDevice) return view;
  view.device_type = SHARDREC_DEVICE_CUDA;
  view.device_id = set.device();
  return view;
}

shardrec_dtype wire_of(shardrec_compression compression) {
  switch (compression) {
    case SHARDREC_COMPRESSION_FLOAT16:
      return SHARDREC_FLOAT16;
    case SHARDREC_COMPRESSION_BFLOAT16:
      return SHARDREC_BFLOAT16;
    default:
      return SHARDREC_FLOAT32;
  }
}

dense::Unused unused_of(shardrec_unused unused) {
  switch (unused) {
    case SHARDREC_UNUSED_MARK:
      return dense::Unused::kMark;
    case SHARDREC_UNUSED_ZERO:
      return dense::Unused::kZero;
    default:
      return dense::Unused::kError;
  }
}

dense::DdpOptions ddp_options(const Options& values, const comm::Communicator& communicator) {
  const auto on = [&](shardrec_option key) { return values.i64(key) != 0; };
  const auto threads = values.find_i64(SHARDREC_OPTION_THREADS);
  dense::DdpOptions out;
  out.caller_stream = values.i64(SHARDREC_OPTION_STREAM);
  out.wait =
      values.choice<shardrec_device_wait>(SHARDREC_OPTION_DEVICE_WAIT) == SHARDREC_DEVICE_WAIT_SPIN
          ? compute::HostWait::kSpin
          : compute::HostWait::kSleep;
  out.broadcast = on(SHARDREC_OPTION_DDP_BROADCAST);
  out.step_in_backward = on(SHARDREC_OPTION_DDP_STEP_IN_BACKWARD);
  out.threads = threads ? static_cast<int>(*threads) : communicator.default_threads();
  out.non_finite = values.choice<shardrec_non_finite>(SHARDREC_OPTION_NON_FINITE);
  dense::ReducerOptions& reducer = out.reducer;
  reducer.average = on(SHARDREC_OPTION_DDP_AVERAGE);
  reducer.factor = values.f64(SHARDREC_OPTION_DDP_FACTOR);
  reducer.divide_by_live =
      values.i64(SHARDREC_OPTION_DDP_JOIN_DIVISOR) == SHARDREC_JOIN_DIVISOR_LIVE;
  reducer.limits = {.first = values.i64(SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES),
                    .others = values.i64(SHARDREC_OPTION_DDP_BUCKET_BYTES)};
  reducer.order = values.i64(SHARDREC_OPTION_DDP_ORDER) == SHARDREC_DDP_ORDER_RECORDED
                      ? dense::BucketOrder::kRecorded
                      : dense::BucketOrder::kReverse;
  reducer.reduction = values.i64(SHARDREC_OPTION_DDP_REDUCTION) == SHARDREC_DDP_REDUCTION_NCCL
                          ? dense::BucketReduction::kNccl
                          : dense::BucketReduction::kOrdered;
  reducer.own_thread = values.find_i64(SHARDREC_OPTION_DDP_THREAD)
                           .value_or(communicator.default_threads() > 1 ? 1 : 0) != 0;
  reducer.unused = unused_of(values.choice<shardrec_unused>(SHARDREC_OPTION_DDP_UNUSED));
  reducer.wire = wire_of(values.choice<shardrec_compression>(SHARDREC_OPTION_DDP_COMPRESSION));
  return out;
}

// A call on an open set whose body may exchange something.
template <class Body>
shardrec_status exchanging(shardrec_ddp* ddp, const char* name, Body body) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    use->membership->require_open();
    comm::tell_shortage(use->membership->communicator(), name, [&] { body(use->ddp); });
  });
}

}  // namespace

shardrec_status shardrec_ddp_create(shardrec_comm* comm, const shardrec_options* options,
                                    shardrec_ddp** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(comm, Access::kShared);
    use->membership->require_open();
    const Options values = read_options(options, SHARDREC_OPTIONS_DDP);
    create(out, std::make_shared<DdpObject>(use->membership,
                                            ddp_options(values, use->membership->communicator())));
  });
}

void shardrec_ddp_destroy(shardrec_ddp** ddp) { destroy(ddp); }

shardrec_status shardrec_ddp_add_parameter(shardrec_ddp* ddp, const char* name,
                                           const shardrec_tensor* parameter,
                                           const shardrec_tensor* gradient, int32_t* out_index) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    const std::string text(require_text(name, "name"));
    const core::FlatView values = flat_view_anywhere(parameter, "parameter");
    core::FlatView slopes;
    std::vector<int64_t> shape = shape_of(*parameter);
    if (gradient != nullptr) {
      slopes = flat_view_anywhere(gradient, "gradient");
      if (device_of(gradient) != device_of(parameter)) {
        core::fail(SHARDREC_INVALID_ARGUMENT,
                   core::sentence("parameter \"", text,
                                  "\" and its gradient are on different devices; one is accepted"));
      }
      if (shape != shape_of(*gradient)) {
        core::fail(
            SHARDREC_INVALID_ARGUMENT,
            core::sentence("parameter \"", text,
                           "\" and its gradient have different shapes; one shape is accepted"));
      }
    }
    const int64_t index =
        use->ddp.add(text, std::move(shape), values, slopes, device_of(parameter));
    if (out_index != nullptr) *out_index = index;
  });
}

shardrec_status shardrec_ddp_add_mlp(shardrec_ddp* ddp, const char* name, shardrec_mlp* mlp,
                                     int32_t* out_first) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    const auto stack = enter(mlp, Access::kExclusive);
    const std::string prefix = std::string(require_text(name, "name")) + ".";
    const int64_t first = dense::add_layers(std::shared_ptr<dense::Ddp>(use.share(), &use->ddp),
                                            prefix, stack.share());
    if (out_first != nullptr) *out_first = first;
  });
}

shardrec_status shardrec_ddp_set_flat_gradient(shardrec_ddp* ddp,
                                               const shardrec_tensor* gradients) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    use->ddp.set_flat_gradient(flat_view_anywhere(gradients, "gradients"), device_of(gradients));
  });
}

shardrec_status shardrec_ddp_set_optimizer(shardrec_ddp* ddp, const shardrec_options* options) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    use->ddp.set_optimizer(optimizer_from(read_options(options, SHARDREC_OPTIONS_OPTIMIZER)));
  });
}

shardrec_status shardrec_ddp_commit(shardrec_ddp* ddp) {
  return exchanging(ddp, "ddp: commit", [](dense::Ddp& set) { set.commit(); });
}

shardrec_status shardrec_ddp_gradient(const shardrec_ddp* ddp, int32_t index,
                                      shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(ddp, Access::kShared);
    static_cast<void>(use->ddp.reducer());
    const dense::Ddp::Parameter& parameter = use->ddp.parameter(index);
    *out = view_in(use->ddp, parameter.gradient, parameter.dtype, parameter.shape);
  });
}

shardrec_status shardrec_ddp_bucket_of(const shardrec_ddp* ddp, int32_t index, int32_t* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(ddp, Access::kShared);
    *out = use->ddp.bucket_of(index);
  });
}

shardrec_status shardrec_ddp_begin(shardrec_ddp* ddp, int32_t sync) {
  return exchanging(ddp, "ddp: begin", [&](dense::Ddp& set) {
    if (sync != 0 && sync != 1) refuse_value("sync", int64_t{sync}, "0 or 1");
    set.begin(sync == 1);
  });
}

shardrec_status shardrec_ddp_mark_ready(shardrec_ddp* ddp, int32_t first, int32_t count) {
  return guard([&] { enter(ddp, Access::kShared)->ddp.mark_ready(first, count); });
}

shardrec_status shardrec_ddp_mark_unused(shardrec_ddp* ddp, int32_t first, int32_t count) {
  return guard([&] { enter(ddp, Access::kShared)->ddp.mark_unused(first, count); });
}

shardrec_status shardrec_ddp_end(shardrec_ddp* ddp) {
  return exchanging(ddp, "ddp: end", [](dense::Ddp& set) { set.end(); });
}

shardrec_status shardrec_ddp_wait(shardrec_ddp* ddp) {
  return exchanging(ddp, "ddp: wait", [](dense::Ddp& set) { set.wait(); });
}

shardrec_status shardrec_ddp_all_reduce(shardrec_ddp* ddp) {
  return exchanging(ddp, "ddp: all_reduce", [](dense::Ddp& set) { set.all_reduce(); });
}

shardrec_status shardrec_ddp_join(shardrec_ddp* ddp) {
  return exchanging(ddp, "ddp: join", [](dense::Ddp& set) { set.join(); });
}

shardrec_status shardrec_ddp_zero_gradients(shardrec_ddp* ddp) {
  return guard([&] { enter(ddp, Access::kExclusive)->ddp.zero_gradients(); });
}

shardrec_status shardrec_ddp_clip_gradients(shardrec_ddp* ddp, shardrec_clip clip, double bound,
                                            double* out_norm) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    require_clip(clip, bound);
    const double norm = use->ddp.clip_gradients(clip, bound);
    if (out_norm != nullptr) *out_norm = norm;
  });
}

shardrec_status shardrec_ddp_step(shardrec_ddp* ddp) {
  return guard([&] { enter(ddp, Access::kExclusive)->ddp.step(); });
}

shardrec_status shardrec_ddp_set_learning_rate(shardrec_ddp* ddp, double learning_rate) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    if (!(std::isfinite(learning_rate) && learning_rate >= 0)) {
      refuse_value("learning_rate", learning_rate, "a finite number, 0 or more,");
    }
    use->ddp.set_learning_rate(learning_rate);
  });
}

shardrec_status shardrec_ddp_state(const shardrec_ddp* ddp, int32_t index, int32_t state,
                                   shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(ddp, Access::kShared);
    *out = view_in(use->ddp, use->ddp.state(index, state), SHARDREC_FLOAT32,
                   use->ddp.parameter(index).shape);
  });
}

shardrec_status shardrec_ddp_check_equal(shardrec_ddp* ddp) {
  return exchanging(ddp, "ddp: check_equal", [](dense::Ddp& set) { set.check_equal(); });
}

shardrec_status shardrec_ddp_broadcast(shardrec_ddp* ddp, int32_t root) {
  return exchanging(ddp, "ddp: broadcast", [&](dense::Ddp& set) { set.broadcast(root); });
}

shardrec_status shardrec_ddp_statistics_json(shardrec_ddp* ddp, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    const auto use = enter(ddp, Access::kExclusive);
    *out_text = copy_text(use->ddp.statistics_json());
  });
}
