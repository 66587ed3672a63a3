// What happens to the values of a set: steps of the optimizer, copies and comparisons over the ranks.
#include <algorithm>
#include <utility>

#include "compute/non_finite.h"
#include "core/error.h"
#include "core/float_mode.h"
#include "core/hash.h"
#include "core/json.h"
#include "dense/ddp/ddp.h"

namespace shardrec::dense {
namespace {

constexpr comm::Operation kBroadcast{
    .name = "ddp: broadcast", .kind = 2, .deadline_kind = comm::DeadlineKind::kSetup};
constexpr comm::Operation kCheckEqual{.name = "ddp: check_equal", .kind = 6};
constexpr comm::Operation kSteps{
    .name = "ddp: broadcast of steps", .kind = 7, .deadline_kind = comm::DeadlineKind::kSetup};

constexpr size_t kBroadcastBytes = size_t{16} << 20;  // in one message

}  // namespace

void Ddp::bucket_is_done(int32_t bucket) {
  const std::span<const int32_t> parameters =
      reducer_->buckets()[static_cast<size_t>(bucket)].parameters;
  if (options_.step_in_backward) {
    // What was broken off is told before anything is stepped by it.
    if (carries_by_nccl()) device_buckets_->wait();
    if (bucket == 0) optimizer_->begin_step();
    if (on_device_ != nullptr) {
      on_device_->step_reduced(parameters);
    } else {
      for (const int32_t parameter : parameters) {
        optimizer_->step(static_cast<size_t>(parameter), 1, *one_thread_);
      }
    }
  }
  if (bucket_done_ != nullptr && device_buckets_ != nullptr) device_buckets_->wait();
  // A copy: the callback may destroy the set that it belongs to.
  if (const Reducer::BucketDone host = bucket_done_; host != nullptr) host(bucket);
}

void Ddp::fetch() {
  if (device() == kNoDevice) return;
  constexpr const char* kCall = "a call that copies what the device has";
  committed(kCall).require_idle(kCall);
  on_device_->fetch();
}

void Ddp::publish() noexcept {
  if (on_device_ == nullptr) return;
  on_device_->host_changed();
  try {
    on_device_->receive();
  } catch (...) {  // the host stays newer
    return;
  }
}

void Ddp::begin(bool sync) {
  Reducer& reducer = committed("begin");
  if (on_device_ != nullptr) on_device_->receive();
  reducer.begin(sync);
}

void Ddp::wait() {
  committed("wait").wait();
  check_finite();
}

void Ddp::check_finite() {
  skips_step_ = false;
  if (options_.non_finite == SHARDREC_NON_FINITE_ALLOW) return;
  std::optional<std::span<const int64_t>> on_device;  // by parameter, once they are asked for
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = parameters_[p];
    if (!reducer_->has_reduced(static_cast<int32_t>(p))) continue;
    if (on_device_ != nullptr && !on_device) on_device = on_device_->non_finite();
    const int64_t element =
        on_device
            ? (*on_device)[p]
            : compute::first_non_finite(parameter.gradient, parameter.dtype, parameter.elements);
    if (element < 0) continue;
    ++non_finite_steps_;
    skips_step_ = options_.non_finite == SHARDREC_NON_FINITE_SKIP;
    if (skips_step_) return;
    core::fail(SHARDREC_INVALID_BATCH,
               core::sentence("the reduced gradient of parameter \"", parameter.name,
                              "\" is NaN or infinite at element ", element,
                              ", and the option NON_FINITE is ERROR"),
               {.position = static_cast<int64_t>(p), .value = element, .operation = "ddp: wait"});
  }
}

void Ddp::for_each_state(const std::function<void(std::span<std::byte>)>& body) const {
  for (const Parameter& parameter : parameters_) body(parameter.value_bytes());
  for (int s = 0; optimizer_ != nullptr && s < optimizer_->states(); ++s) {
    for (size_t p = 0; p < parameters_.size(); ++p) {
      body(std::as_writable_bytes(optimizer_->state(p, s)));
    }
  }
}

void Ddp::broadcast(int root) {
  Reducer& reducer = committed("broadcast");
  reducer.require_idle("broadcast");
  const int ranks = communicator_->size();
  if (root < 0 || root >= ranks) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no rank ", root, "; there are ", ranks),
               {.value = root, .limit = ranks});
  }
  communicator_->check_before("ddp: broadcast");
  collectively("ddp: broadcast", [&] {
    fetch();
    // Small ones travel together.
    const bool is_root = communicator_->rank() == root;
    core::Scratch memory;
    std::vector<std::span<std::byte>> together;
    size_t bytes = 0;
    const auto send = [&] {
      const std::span<std::byte> message(memory.resize(bytes), bytes);
      auto at = message.begin();
      for (const std::span<std::byte> part : together) {
        at = is_root ? std::copy(part.begin(), part.end(), at)
                     : at + static_cast<std::ptrdiff_t>(part.size());
      }
      control_->broadcast(kBroadcast, root, message);
      at = message.begin();
      for (const std::span<std::byte> part : together) {
        if (!is_root) std::copy_n(at, part.size(), part.begin());
        at += static_cast<std::ptrdiff_t>(part.size());
      }
      together.clear();
      bytes = 0;
    };
    for_each_state([&](std::span<std::byte> part) {
      while (!part.empty()) {
        const std::span<std::byte> some =
            part.first(std::min(part.size(), kBroadcastBytes - bytes));
        together.push_back(some);
        bytes += some.size();
        part = part.subspan(some.size());
        if (bytes == kBroadcastBytes) send();
      }
    });
    if (bytes != 0) send();
    publish();
    if (optimizer_ == nullptr) return;
    int64_t steps = optimizer_->steps();
    control_->broadcast(kSteps, root, std::as_writable_bytes(std::span(&steps, 1)));
    optimizer_->set_steps(steps);
  });
}

void Ddp::check_equal() {
  committed("check_equal").require_idle("check_equal");
  communicator_->check_before("ddp: check_equal");
  collectively("ddp: check_equal", [&] {
    fetch();
    std::vector<uint64_t> hashes;
    for_each_state([&](std::span<std::byte> part) { hashes.push_back(core::hash64(0, part)); });
    if (optimizer_ != nullptr) hashes.push_back(static_cast<uint64_t>(optimizer_->steps()));
    const auto all = control_->all_gather(kCheckEqual, std::as_bytes(std::span(hashes)));
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const auto [first, other] = std::ranges::mismatch(all[0], all[rank]);
      if (first == all[0].end()) continue;
      const auto at = static_cast<size_t>(first - all[0].begin()) / sizeof(uint64_t);
      const size_t parameter = at % parameters_.size();
      core::ErrorParts parts{.rank = static_cast<int64_t>(rank), .operation = "ddp: check_equal"};
      if (at + 1 == hashes.size() && optimizer_ != nullptr) {
        core::fail(SHARDREC_DISAGREEMENT,
                   core::sentence("rank ", rank,
                                  " differs from rank 0: its optimizer has taken another number of "
                                  "steps"),
                   std::move(parts));
      }
      parts.position = static_cast<int64_t>(parameter);
      core::fail(SHARDREC_DISAGREEMENT,
                 core::sentence("rank ", rank, " differs from rank 0: ",
                                at < parameters_.size() ? "the values" : "the optimizer state",
                                " of its parameter \"", parameters_[parameter].name, "\""),
                 std::move(parts));
    }
  });
}

void Ddp::join() {
  Reducer& reducer = committed("join");
  while (!reducer.shadow_step()) {
  }
  broadcast(reducer.longest_rank());
}

void Ddp::zero_gradients() {
  committed("zero_gradients").require_idle("zero_gradients");
  if (on_device_ != nullptr) return on_device_->zero_gradients();
  for (const Parameter& parameter : parameters_) {
    std::fill_n(static_cast<std::byte*>(parameter.gradient), parameter.bytes(), std::byte{0});
  }
}

double Ddp::clip_gradients(shardrec_clip kind, double bound) {
  committed("clip_gradients").require_idle("clip_gradients");
  if (options_.step_in_backward) {
    core::fail(SHARDREC_INVALID_STATE,
               "clip_gradients was called where steps are taken inside backward, before it (option "
               "DDP_STEP_IN_BACKWARD)");
  }
  if (on_device_ != nullptr) return on_device_->clip_gradients(kind, bound);
  const core::DefaultFloatMode mode;
  const double norm = kind == SHARDREC_CLIP_L2 ? norm_.l2(*threads_) : norm_.infinity(*threads_);
  if (kind == SHARDREC_CLIP_VALUE) {
    norm_.bound_values(bound, *threads_);
  } else {
    norm_.bound_norm(norm, bound, *threads_);
  }
  return norm;
}

void Ddp::step() {
  ElementOptimizer& optimizer = require_optimizer("step");
  reducer_->require_idle("step");
  if (options_.step_in_backward) {
    core::fail(SHARDREC_INVALID_STATE,
               "step was called where steps are taken inside backward (option "
               "DDP_STEP_IN_BACKWARD)");
  }
  if (skips_step_) return;
  const core::DefaultFloatMode mode;
  if (on_device_ != nullptr) return step_on_device(optimizer);
  optimizer.begin_step();
  optimizer.step(0, parameters_.size(), *threads_);
}

void Ddp::step_on_device(ElementOptimizer& optimizer) {
  const int64_t steps = optimizer.steps();
  try {
    on_device_->receive();
    optimizer.begin_step();
    on_device_->step(0, parameters_.size());
  } catch (...) {
    optimizer.set_steps(steps);
    throw;
  }
}

void Ddp::set_learning_rate(double rate) {
  if (optimizer_options_) optimizer_options_->learning_rate = rate;
  if (reducer_ == nullptr && optimizer_options_) return;
  ElementOptimizer& optimizer = require_optimizer("set_learning_rate");
  reducer_->require_idle("set_learning_rate");
  optimizer.set_learning_rate(rate);
}

float* Ddp::state(int64_t parameter, int state) const {
  const ElementOptimizer& optimizer = require_optimizer("state");
  this->parameter(parameter);
  if (state < 0 || state >= optimizer.states()) {
    core::fail(
        SHARDREC_NOT_FOUND,
        core::sentence("there is no optimizer state ", state, "; there are ", optimizer.states()),
        {.value = state, .limit = optimizer.states()});
  }
  const auto at = static_cast<size_t>(parameter);
  return on_device_ != nullptr ? on_device_->state(at, state) : optimizer.state(at, state).data();
}

std::string Ddp::statistics_json() const {
  const Reducer& reducer = committed("statistics");
  reducer.require_idle("statistics");
  const ReducerStatistics all = reducer.statistics();
  core::JsonWriter json;
  json.begin_object();
  json.key("version").integer(1);
  json.key("ranks").integer(communicator_->size());
  json.key("parameters").integer(static_cast<int64_t>(parameters_.size()));
  json.key("steps").integer(all.steps);
  json.key("steps_without_sync").integer(all.local_steps);
  json.key("non_finite_steps").integer(non_finite_steps_);
  json.key("exchange_seconds").number(all.exchange_seconds);
  json.key("waited_seconds").number(all.waited_seconds);
  json.key("hidden_seconds").number(all.hidden_seconds);
  json.key("buckets").begin_array();
  for (const BucketStatistics& bucket : all.buckets) {
    json.begin_object();
    json.key("dtype").text(core::dtype_name(bucket.dtype));
    json.key("parameters").integer(bucket.parameters);
    json.key("elements").integer(bucket.elements);
    json.key("bytes_sent").integer(bucket.bytes_sent);
    json.key("seconds").number(bucket.seconds);
    json.key("saturated").integer(bucket.saturated);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace shardrec::dense
