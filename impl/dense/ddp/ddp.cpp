#include "dense/ddp/ddp.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "core/align.h"
#include "core/error.h"
#include "core/trace_source.h"
#include "dense/added.h"
#include "dense/ddp/description.h"
#include "dense/ddp/host_buckets.h"
#include "dense/device/kernels.h"
#include "plan/model/names.h"

namespace shardrec::dense {
namespace {

constexpr comm::Operation kCompare{
    .name = "ddp: commit", .kind = 1, .deadline_kind = comm::DeadlineKind::kSetup};
constexpr size_t kAlignment = 64;

bool is_accepted(int32_t dtype) noexcept {
  return dtype == SHARDREC_FLOAT32 || dtype == SHARDREC_FLOAT64 || dtype == SHARDREC_FLOAT16 ||
         dtype == SHARDREC_BFLOAT16;
}

std::span<float> floats(void* data, int64_t elements) noexcept {
  return {static_cast<float*>(data), static_cast<size_t>(elements)};
}

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(std::begin(text), std::end(text), value);
  return {text, error == std::errc{} ? end : text};
}

}  // namespace

std::span<std::byte> Ddp::Parameter::value_bytes() const noexcept {
  return {static_cast<std::byte*>(host_values), bytes()};
}

Ddp::Ddp(std::shared_ptr<comm::Communicator> communicator, const DdpOptions& options)
    : communicator_(std::move(communicator)), options_(options) {}

Ddp::~Ddp() {
  if (reducer_ != nullptr) reducer_->close();
  if (device_buckets_ == nullptr) return;
  try {
    device_buckets_->wait();
  } catch (...) {  // the device is lost, and what it had to do
    return;
  }
}

void Ddp::require_uncommitted(const char* call) const {
  if (reducer_ == nullptr) return;
  core::fail(SHARDREC_INVALID_STATE, core::sentence(call, " was called after commit"));
}

Reducer& Ddp::committed(const char* call) const {
  if (reducer_ == nullptr) {
    core::fail(SHARDREC_INVALID_STATE, core::sentence(call, " was called before commit"));
  }
  return *reducer_;
}

ElementOptimizer& Ddp::require_optimizer(const char* call) const {
  committed(call);
  if (optimizer_ == nullptr) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence(call, " needs an optimizer; set one before commit"));
  }
  return *optimizer_;
}

const Ddp::Parameter& Ddp::parameter(int64_t index) const {
  return parameters_[index_of_added("parameter", index, parameters_.size())];
}

void Ddp::require_device(const std::string& name, int32_t device) const {
  if (!device_ || *device_ == device) return;
  const auto place = [](int32_t its) {
    return its == kNoDevice ? std::string("the CPU") : core::sentence("CUDA device ", its);
  };
  core::fail(SHARDREC_UNSUPPORTED,
             core::sentence(name, " is on ", place(device), ", parameters before it are on ",
                            place(*device_), "; all parameters of a set are on one"),
             {.value = device});
}

int64_t Ddp::add(std::string name, std::vector<int64_t> shape, const core::FlatView& values,
                 const core::FlatView& gradient, int32_t device) {
  if (reducer_ != nullptr) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("parameter \"", name,
                              "\" was added after commit; add all parameters before it"));
  }
  if (name.empty()) {
    core::fail(SHARDREC_INVALID_ARGUMENT, "a parameter has an empty name; give each one its own");
  }
  for (const Parameter& known : parameters_) {
    if (known.name != name) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT, core::sentence("there is already a parameter named \"",
                                                         name, "\"; names must be unique"));
  }
  if (!is_accepted(values.dtype)) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("parameter \"", name, "\" has dtype ", core::dtype_name(values.dtype),
                              "; float32, float64, float16 and bfloat16 are accepted"),
               {.value = values.dtype});
  }
  if (gradient.data != nullptr &&
      (gradient.dtype != values.dtype || gradient.size != values.size)) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("parameter \"", name, "\" is ", values.size, " elements of ",
                              core::dtype_name(values.dtype), ", its gradient ", gradient.size,
                              " of ", core::dtype_name(gradient.dtype), "; they must be alike"));
  }
  require_device(core::sentence("parameter \"", name, "\""), device);
  stacks_.reserve(parameters_.size() + 1);
  parameters_.push_back({.name = std::move(name),
                         .shape = std::move(shape),
                         .dtype = static_cast<shardrec_dtype>(values.dtype),
                         .elements = values.size,
                         .values = values.data,
                         .gradient = gradient.data,
                         .host_values = device == kNoDevice ? values.data : nullptr});
  stacks_.emplace_back(nullptr);
  device_ = device;
  return static_cast<int64_t>(parameters_.size()) - 1;
}

int64_t Ddp::add_stack(
    const std::string& prefix, const std::shared_ptr<Mlp>& stack,
    const std::function<std::shared_ptr<GradientListener>(int64_t, int64_t)>& listener) {
  const size_t before = parameters_.size();
  const std::optional<int32_t> device_before = device_;
  try {
    for (const ParameterInfo& info : stack->parameters().infos()) {
      add(prefix + info.name, info.shape,
          {.data = stack->values(info.offset), .size = info.size, .dtype = SHARDREC_FLOAT32},
          {.data = stack->gradients(info.offset), .size = info.size, .dtype = SHARDREC_FLOAT32},
          stack->caller_devices().cuda);
      stacks_.back() = stack;
    }
    const auto first = static_cast<int64_t>(before);
    stack->set_listener(listener(first, static_cast<int64_t>(parameters_.size()) - first));
    stack->set_track(
        core::device_track(communicator_->rank(), core::DeviceRow::kLayers, stack_count_++));
    return first;
  } catch (...) {
    parameters_.resize(before);
    stacks_.resize(before);
    device_ = device_before;
    throw;
  }
}

void Ddp::set_flat_gradient(const core::FlatView& gradients, int32_t device) {
  require_uncommitted("set_flat_gradient");
  flat_ = gradients;
  flat_device_ = device;
}

void Ddp::set_optimizer(const plan::Optimizer& optimizer) {
  require_uncommitted("set_optimizer");
  state_names(optimizer.kind);  // throws for one that only tables have
  optimizer_options_ = optimizer;
}

void Ddp::set_bucket_done(Reducer::BucketDone done) {
  require_uncommitted("set_callback");
  bucket_done_ = std::move(done);
}

void Ddp::set_hook(Reducer::Hook hook) {
  require_uncommitted("set_hook");
  hook_ = std::move(hook);
}

// What would lead ranks to different exchanges or to different values.
std::string Ddp::describe() const {
  const ReducerOptions& reducer = options_.reducer;
  const plan::Optimizer optimizer = optimizer_options_.value_or(plan::Optimizer{});
  const bool steps = optimizer_options_.has_value();
  const auto flag = [](bool on) { return std::string(on ? "1" : "0"); };
  const auto choice = [](auto value) {
    std::string text;
    core::append(text, static_cast<int64_t>(value));
    return text;
  };
  const std::vector<OptionText> options = {
      {"option DDP_AVERAGE", flag(reducer.average)},
      {"option DDP_BROADCAST", flag(options_.broadcast)},
      {"option DDP_FACTOR", number(reducer.factor)},
      {"option DDP_JOIN_DIVISOR", flag(reducer.divide_by_live)},
      {"option DDP_FIRST_BUCKET_BYTES", choice(reducer.limits.first)},
      {"option DDP_BUCKET_BYTES", choice(reducer.limits.others)},
      {"option DDP_ORDER", choice(reducer.order)},
      {"option DDP_UNUSED", choice(reducer.unused)},
      {"option DDP_COMPRESSION", core::dtype_name(reducer.wire)},
      {"option DDP_REDUCTION", reducer.reduction == BucketReduction::kNccl ? "NCCL" : "ORDERED"},
      {"option NON_FINITE", choice(options_.non_finite)},
      {"option DDP_STEP_IN_BACKWARD", flag(options_.step_in_backward)},
      {"hook", hook_ != nullptr ? "set" : "not set"},
      {"place of parameters", device() == kNoDevice ? "the CPU" : "a CUDA device"},
      {"what carries gradients between devices", carries_by_nccl() ? "NCCL" : "the library"},
      {"optimizer", steps ? std::string(plan::name_of(optimizer.kind)) : "none"},
      {"option LEARNING_RATE", number(optimizer.learning_rate)},
      {"option EPS", number(optimizer.eps)},
      {"option WEIGHT_DECAY", number(optimizer.weight_decay)},
      {"option WEIGHT_DECAY_MODE", choice(optimizer.weight_decay_mode)},
      {"option MAX_GRADIENT", number(optimizer.max_gradient)},
      {"option BETA1", number(optimizer.beta1)},
      {"option BETA2", number(optimizer.beta2)},
      {"option MOMENTUM", number(optimizer.momentum)},
  };
  std::vector<ParameterText> parameters;
  for (const Parameter& parameter : parameters_) {
    parameters.push_back(
        {.name = parameter.name, .dtype = parameter.dtype, .shape = parameter.shape});
  }
  return dense::describe(options, parameters);
}

bool Ddp::carries_by_nccl() const noexcept {
  return device() != kNoDevice && communicator_->device_bodies() == comm::DeviceBodies::kNccl;
}

std::string Ddp::refused_reduction() const {
  if (options_.reducer.reduction == BucketReduction::kOrdered) return {};
  constexpr const char* kOption = "the option DDP_REDUCTION is NCCL, ";
  if (device() == kNoDevice) {
    return core::sentence(
        kOption,
        "and the parameters are on the CPU; NCCL reduces between CUDA devices, ORDERED anywhere");
  }
  if (carries_by_nccl() || communicator_->size() == 1) return {};
  return core::sentence(kOption,
                        "and no NCCL is between the devices of the ranks; make the communicator "
                        "with the engine nccl, or set its COMM_NCCL, or take ORDERED");
}

// What only this rank knows; nothing has been exchanged.
void Ddp::check_arguments() const {
  if (flat_) require_device("the flat gradient", flat_device_);
  if (hook_ != nullptr && device() != kNoDevice) {
    core::fail(SHARDREC_UNSUPPORTED,
               "a hook reduces gradients in the host's memory; those of the set are on a device");
  }
  int64_t elements = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.gradient != nullptr || parameter.elements == 0) continue;
    elements += parameter.elements;
    if (!flat_ || flat_->dtype == parameter.dtype) continue;
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence("the flat gradient has dtype ", core::dtype_name(flat_->dtype),
                       ", parameter \"", parameter.name, "\" ", core::dtype_name(parameter.dtype)));
  }
  if (flat_ && flat_->size != elements) {
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence("the flat gradient has ", flat_->size,
                       " elements; parameters that were added without a gradient have ", elements),
        {.value = flat_->size, .limit = elements});
  }
  if (options_.step_in_backward && options_.non_finite != SHARDREC_NON_FINITE_ALLOW) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        "option NON_FINITE is ALLOW with DDP_STEP_IN_BACKWARD: parameters are stepped before "
        "all gradients have come");
  }
  const bool scales = std::ranges::any_of(
      stacks_, [](const auto& stack) { return stack != nullptr && stack->scales(); });
  if (scales && optimizer_options_ && options_.non_finite == SHARDREC_NON_FINITE_ALLOW) {
    core::fail(SHARDREC_UNSUPPORTED,
               "a stack of the set has PRECISION FLOAT16, whose gradients may overflow: option "
               "NON_FINITE of a set "
               "that steps it is SKIP or ERROR, and there is no DDP_STEP_IN_BACKWARD");
  }
  if (!optimizer_options_) {
    if (!options_.step_in_backward) return;
    core::fail(SHARDREC_INVALID_STATE,
               "the option DDP_STEP_IN_BACKWARD needs an optimizer; set one before commit");
  }
  for (const Parameter& parameter : parameters_) {
    // Checkpoints hold the optimizer's states under such names.
    if (parameter.name.starts_with("optimizer.")) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("parameter \"", parameter.name,
                                "\": names of a set with an optimizer do not begin with "
                                "\"optimizer.\""));
    }
    if (parameter.dtype == SHARDREC_FLOAT32) continue;
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("parameter \"", parameter.name, "\" has dtype ",
                              core::dtype_name(parameter.dtype),
                              "; the optimizer steps float32 parameters"),
               {.value = parameter.dtype});
  }
}

// What the set has of its device.
void Ddp::make_place() {
  if (device() == kNoDevice) return;
  device_buckets_ = std::make_shared<DeviceBuckets>(
      communicator_,
      SetPlace{.device = device(), .caller_stream = options_.caller_stream, .wait = options_.wait},
      stacks_);
}

// Gives memory to gradients that have none.
void Ddp::place_gradients() {
  const auto needs_memory = [](const Parameter& p) { return p.gradient == nullptr; };
  std::byte* at = nullptr;
  if (flat_) {
    at = static_cast<std::byte*>(flat_->data);
  } else {
    size_t bytes = 0;
    for (const Parameter& p : parameters_) {
      if (needs_memory(p)) bytes += core::align_up(p.bytes(), kAlignment);
    }
    if (device_buckets_ != nullptr) {
      device_gradients_.emplace(device_buckets_->memory());
      at = device_gradients_->resize(std::max(bytes, kAlignment));
      device::fill(*device_buckets_->stream(), static_cast<float*>(static_cast<void*>(at)), 0,
                   static_cast<int64_t>(bytes / sizeof(float)));
    } else {
      core::require_room(bytes, "the gradients of a set of parameters");
      gradients_ = core::Pages(bytes);
      at = gradients_.data();
    }
  }
  for (Parameter& p : parameters_) {
    if (!needs_memory(p)) continue;
    p.gradient = at;
    at += flat_ ? p.bytes() : core::align_up(p.bytes(), kAlignment);
  }
}

// Pages that nobody has touched cost nothing.
void Ddp::place_host_values() {
  if (device_buckets_ == nullptr) return;
  size_t bytes = 0;
  for (const Parameter& p : parameters_) bytes += core::align_up(p.bytes(), kAlignment);
  host_values_ = core::Pages(bytes);
  std::byte* at = host_values_.data();
  for (Parameter& p : parameters_) {
    p.host_values = at;
    at += core::align_up(p.bytes(), kAlignment);
  }
}

void Ddp::make_optimizer() {
  threads_ = std::make_unique<core::Threads>(options_.threads);
  if (options_.step_in_backward) one_thread_ = std::make_unique<core::Threads>(1);
  if (optimizer_options_) {
    optimizer_ = std::make_unique<ElementOptimizer>(*optimizer_options_);
    int64_t elements = 0;
    for (const Parameter& p : parameters_) elements += p.elements;
    optimizer_->reserve(parameters_.size(), elements);
    for (const Parameter& p : parameters_) {
      optimizer_->add(floats(p.host_values, p.elements), floats(p.gradient, p.elements));
    }
  }
  if (device_buckets_ == nullptr) {
    for (const Parameter& p : parameters_) {
      norm_.add({.data = p.gradient, .size = p.elements, .dtype = p.dtype});
    }
    return;
  }
  std::vector<DeviceParameter> there;
  for (const Parameter& p : parameters_) {
    there.push_back({.values = static_cast<std::byte*>(p.values),
                     .gradient = p.gradient,
                     .host_values = static_cast<std::byte*>(p.host_values),
                     .elements = p.elements,
                     .dtype = p.dtype});
  }
  on_device_ = std::make_unique<DeviceValues>(*device_buckets_, std::move(there), optimizer_.get());
}

void Ddp::forget_place() noexcept {
  reducer_.reset();
  on_device_.reset();
  optimizer_.reset();
  norm_ = GradientNorm();
  device_gradients_.reset();
  device_buckets_.reset();
}

void Ddp::commit() {
  if (reducer_ != nullptr) {
    core::fail(SHARDREC_INVALID_STATE, "commit was called a second time");
  }
  check_arguments();
  communicator_->check_before("ddp: commit");
  std::string refused;
  collectively("ddp: commit", [&] {
    if (!control_) {
      control_.emplace(communicator_->open_channel(comm::Purpose::kDense), communicator_->rank(),
                       communicator_->size());
    }
    const std::string mine = describe();
    compare_descriptions(kCompare.name,
                         control_->all_gather(kCompare, std::as_bytes(std::span(mine))));
    refused = refused_reduction();
    if (parameters_.empty() || !refused.empty()) return;
    const std::vector<Parameter> before = parameters_;
    try {
      make_place();
      place_gradients();
      place_host_values();
      make_optimizer();
      std::vector<ReducedParameter> reduced;
      for (const Parameter& p : parameters_) {
        reduced.push_back({p.name, p.dtype, p.elements, p.gradient});
      }
      std::shared_ptr<BucketMemory> memory = device_buckets_;
      if (memory == nullptr) memory = std::make_shared<HostBuckets>(communicator_->size());
      memory->bodies().connect(*control_);
      const bool wants = bucket_done_ != nullptr || options_.step_in_backward;
      auto reducer = std::make_shared<Reducer>(
          communicator_, *control_, std::move(memory), options_.reducer, std::move(reduced),
          wants ? [this](int32_t bucket) { bucket_is_done(bucket); } : Reducer::BucketDone{},
          hook_);
      reducer_ = std::move(reducer);
      if (options_.broadcast) broadcast(0);
      if (device_buckets_ != nullptr) device_buckets_->wait();  // what is zero at first
    } catch (...) {
      forget_place();
      parameters_ = before;
      throw;
    }
  });
  // On all ranks alike: nobody waits, and the communicator is as before.
  if (parameters_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "no parameter was added before commit");
  }
  if (!refused.empty()) core::fail(SHARDREC_UNSUPPORTED, std::move(refused));
}

void Ddp::all_reduce() {
  Reducer& reducer = committed("all_reduce");
  reducer.begin(true);
  reducer.mark_ready(0, static_cast<int64_t>(parameters_.size()));
  reducer.end();
  wait();
}

}  // namespace shardrec::dense
