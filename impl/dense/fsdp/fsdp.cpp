#include "dense/fsdp/fsdp.h"

#include <algorithm>
#include <utility>

#include "comm/failure.h"
#include "core/error.h"
#include "core/tensor.h"
#include "dense/added.h"
#include "dense/ddp/description.h"
#include "dense/fsdp/exchanging.h"
#include "plan/model/names.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 48;

constexpr comm::Operation kCompare{
    .name = "fsdp: commit", .kind = 1, .deadline_kind = comm::DeadlineKind::kSetup};

const char* name_of(shardrec_fsdp_strategy strategy) noexcept {
  switch (strategy) {
    case SHARDREC_FSDP_SHARD_GRAD_OP:
      return "SHARD_GRAD_OP";
    case SHARDREC_FSDP_HYBRID_SHARD:
      return "HYBRID_SHARD";
    case SHARDREC_FSDP_NO_SHARD:
      return "NO_SHARD";
    default:
      return "FULL_SHARD";
  }
}

std::shared_ptr<comm::Communicator> if_several(std::shared_ptr<comm::Communicator> group) {
  return group != nullptr && group->size() > 1 ? std::move(group) : nullptr;
}

}  // namespace

Fsdp::Fsdp(FsdpGroups groups, bool mesh, const FsdpOptions& options)
    : groups_(std::move(groups)), options_(options) {
  const bool is_hybrid = options_.strategy == SHARDREC_FSDP_HYBRID_SHARD;
  if (mesh != is_hybrid) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the option FSDP_STRATEGY is ", name_of(options_.strategy),
                              mesh ? ", and a mesh is given" : ", and no mesh is given",
                              "; HYBRID_SHARD takes one, and the others none"));
  }
  const bool reduces_wide = options_.reduce_dtype == SHARDREC_FLOAT32 ||
                            options_.parameter_dtype == SHARDREC_FLOAT32 ||
                            options_.reduce_dtype == options_.parameter_dtype;
  if (!reduces_wide) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        core::sentence("the option FSDP_REDUCE_DTYPE is ", core::dtype_name(options_.reduce_dtype),
                       ", FSDP_PARAMETER_DTYPE ", core::dtype_name(options_.parameter_dtype),
                       "; one of them is FLOAT32, or they are equal"));
  }
  if (options_.offload && options_.place.device < 0) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               "the option FSDP_OFFLOAD is 1, and no DEVICE is given that full parameters are on");
  }
  if (options_.place.device >= 0) {
    if (!options_.offload) {
      core::fail(
          SHARDREC_UNSUPPORTED,
          "shards, and the sums of gradients, are in the host's memory; with a DEVICE, set the "
          "option FSDP_OFFLOAD to 1");
    }
    device_ = std::make_unique<UnitDevice>(options_.place);
  }
  if (!is_hybrid) {
    const bool shards = options_.strategy != SHARDREC_FSDP_NO_SHARD;
    groups_.sharding = shards ? groups_.world : nullptr;
    groups_.replicas = shards ? nullptr : groups_.world;
  }
  groups_.sharding = if_several(std::move(groups_.sharding));
  groups_.replicas = if_several(std::move(groups_.replicas));
}

Fsdp::~Fsdp() {
  if (device_ != nullptr) device_->settle();
  if (state_ != State::kIdle && groups_.world->size() > 1) groups_.world->fail("fsdp: step");
}

void Fsdp::require_committed(const char* call) const {
  if (is_committed()) return;
  core::fail(SHARDREC_INVALID_STATE, core::sentence(call, " was called before commit"));
}

// A communicator that has ended leaves a set inside a step: then it is told what ended it.
void Fsdp::check_before(const char* call) const {
  groups_.world->check_before(core::sentence("fsdp: ", call).c_str());
}

void Fsdp::require_idle(const char* call) const {
  require_committed(call);
  if (state_ == State::kIdle) return;
  check_before(call);
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call, " was called inside a step; call end and wait first"));
}

size_t Fsdp::unit_at(int64_t index) const { return index_of_added("unit", index, units_.size()); }

const Fsdp::Parameter& Fsdp::parameter(int64_t index) const {
  return parameters_[index_of_added("parameter", index, parameters_.size())];
}

int64_t Fsdp::add_unit(std::string name) {
  if (is_committed()) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("unit \"", name, "\" was added after commit"));
  }
  if (name.empty()) {
    core::fail(SHARDREC_INVALID_ARGUMENT, "a unit has an empty name; give each one its own");
  }
  for (const Unit& known : units_) {
    if (known.name != name) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is already a unit named \"", name, "\"; names are unique"));
  }
  const UnitOperations operations = operations_of(name);
  units_.push_back(
      {.name = std::move(name), .layout = UnitLayout(sharding_ranks()), .operations = operations});
  return static_cast<int64_t>(units_.size()) - 1;
}

int64_t Fsdp::add_parameter(int64_t unit, std::string name, std::vector<int64_t> shape) {
  if (is_committed()) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("parameter \"", name, "\" was added after commit"));
  }
  const size_t at = unit_at(unit);
  if (name.empty()) {
    core::fail(SHARDREC_INVALID_ARGUMENT, "a parameter has an empty name; give each one its own");
  }
  for (const Parameter& known : parameters_) {
    if (known.name != name) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is already a parameter named \"", name,
                              "\"; one that several layers share is added once"));
  }
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  const int64_t padded = UnitLayout::padded(elements);
  if (padded > kMostElements - elements_) {
    core::fail(SHARDREC_INVALID_ARGUMENT, core::sentence("parameter \"", name, "\" has ", elements,
                                                         " elements, those before it ", elements_,
                                                         "; a set has at most 2^48"));
  }
  parameters_.reserve(parameters_.size() + 1);
  Parameter added{.name = std::move(name),
                  .shape = std::move(shape),
                  .elements = elements,
                  .unit = at,
                  .in_unit = units_[at].layout.parameters()};
  units_[at].layout.add(elements);
  elements_ += padded;
  parameters_.push_back(std::move(added));
  return static_cast<int64_t>(parameters_.size()) - 1;
}

int64_t Fsdp::add_stack(std::shared_ptr<Mlp> stack,
                        core::FunctionRef<void(int64_t first_unit, int64_t first_parameter)> add) {
  if (is_committed()) {
    core::fail(SHARDREC_INVALID_STATE, "a stack of layers was added after commit");
  }
  if (options_.parameter_dtype != SHARDREC_FLOAT32) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("the option FSDP_PARAMETER_DTYPE is ",
                              core::dtype_name(options_.parameter_dtype),
                              "; layers of a stack are computed with parameters in float32"));
  }
  if (stack->scales() && options_.non_finite == SHARDREC_NON_FINITE_ALLOW) {
    core::fail(SHARDREC_UNSUPPORTED,
               "the stack has PRECISION FLOAT16, whose gradients may overflow: option NON_FINITE "
               "of a set of "
               "sharded parameters that has one is SKIP or ERROR");
  }
  const size_t units = units_.size();
  const size_t parameters = parameters_.size();
  const int64_t elements = elements_;
  const auto first = static_cast<int64_t>(parameters);
  stacks_.reserve(stacks_.size() + 1);
  try {
    add(static_cast<int64_t>(units), first);
  } catch (...) {
    units_.erase(units_.begin() + static_cast<ptrdiff_t>(units), units_.end());
    parameters_.erase(parameters_.begin() + static_cast<ptrdiff_t>(parameters), parameters_.end());
    elements_ = elements;
    throw;
  }
  stacks_.push_back({.layers = std::move(stack), .first = first});
  return first;
}

bool Fsdp::is_of_stack(int64_t parameter) const noexcept {
  return std::ranges::any_of(stacks_, [&](const Stack& stack) {
    const auto count = static_cast<int64_t>(stack.layers->parameters().infos().size());
    return parameter >= stack.first && parameter < stack.first + count;
  });
}

void Fsdp::set_optimizer(const plan::Optimizer& optimizer) {
  if (is_committed()) {
    core::fail(SHARDREC_INVALID_STATE, "set_optimizer was called after commit");
  }
  state_names(optimizer.kind);  // throws for one that only tables have
  optimizer_options_ = optimizer;
}

// What would lead ranks to different exchanges or to different values.
std::string Fsdp::describe() const {
  const plan::Optimizer optimizer = optimizer_options_.value_or(plan::Optimizer{});
  const auto integer = [](auto value) { return core::sentence(static_cast<int64_t>(value)); };
  const auto number = [](double value) { return comm::decimal(value); };
  std::string units;
  std::string of_parameters;
  for (const Parameter& parameter : parameters_) {
    of_parameters += core::sentence(of_parameters.empty() ? "" : ", ", parameter.unit);
  }
  for (const Unit& unit : units_) {
    units += core::sentence(units.empty() ? "\"" : ", \"", unit.name, "\" of ",
                            unit.layout.parameters(), " parameters");
  }
  const std::vector<OptionText> options = {
      {"option FSDP_STRATEGY", name_of(options_.strategy)},
      {"size of sharding groups", integer(sharding_ranks())},
      {"option FSDP_PREFETCH", integer(options_.prefetch)},
      {"option FSDP_HELD_UNITS", integer(options_.held)},
      {"option FSDP_PARAMETER_DTYPE", core::dtype_name(options_.parameter_dtype)},
      {"option FSDP_REDUCE_DTYPE", core::dtype_name(options_.reduce_dtype)},
      {"option FSDP_OFFLOAD", integer(options_.offload)},
      {"option NON_FINITE", integer(options_.non_finite)},
      {"option DDP_AVERAGE", integer(options_.average)},
      {"option DDP_FACTOR", number(options_.factor)},
      {"optimizer",
       optimizer_options_ ? std::string(plan::name_of(optimizer.kind)) : std::string("none")},
      {"option LEARNING_RATE", number(optimizer.learning_rate)},
      {"option EPS", number(optimizer.eps)},
      {"option WEIGHT_DECAY", number(optimizer.weight_decay)},
      {"option WEIGHT_DECAY_MODE", integer(optimizer.weight_decay_mode)},
      {"option MAX_GRADIENT", number(optimizer.max_gradient)},
      {"option BETA1", number(optimizer.beta1)},
      {"option BETA2", number(optimizer.beta2)},
      {"option MOMENTUM", number(optimizer.momentum)},
      {"list of units", units},
      {"list of the units of parameters", of_parameters},
  };
  std::vector<ParameterText> parameters;
  for (const Parameter& parameter : parameters_) {
    parameters.push_back({.name = parameter.name, .shape = parameter.shape});
  }
  return dense::describe(options, parameters);
}

void Fsdp::require_room(const UnshardedUnits& unsharded) const {
  uint64_t shards = 0;
  for (const Unit& unit : units_) shards += static_cast<uint64_t>(unit.layout.shard_elements());
  const size_t states = optimizer_options_ ? state_names(optimizer_options_->kind).size() : 0;
  const uint64_t bytes =
      (2 + states) * shards * sizeof(float) +
      static_cast<uint64_t>(unsharded.buffer_bytes() + unsharded.message_bytes()) +
      static_cast<uint64_t>(reducer_->buffer_bytes());
  const auto sharers = static_cast<uint64_t>(groups_.world->ranks_in_process());
  core::require_room(bytes > UINT64_MAX / sharers ? UINT64_MAX : bytes * sharers,
                     "a set of sharded parameters");
}

void Fsdp::make_shards() {
  for (Unit& unit : units_) {
    const size_t bytes = static_cast<size_t>(unit.layout.shard_elements()) * sizeof(float);
    unit.values = std::make_shared<core::Pages>(bytes);
    unit.gradients = core::Pages(bytes);
    unit.has_gradients = false;
  }
  const UnshardOptions unshard{.dtype = options_.parameter_dtype,
                               .prefetch = options_.prefetch,
                               .held = options_.held,
                               .keep = options_.strategy == SHARDREC_FSDP_SHARD_GRAD_OP};
  const ReductionOptions reduction{
      .dtype = options_.parameter_dtype,
      .wire = options_.reduce_dtype,
      .scale = {.divisor = options_.average ? static_cast<double>(groups_.world->size()) : 1.0,
                .factor = options_.factor},
      .buffers = options_.prefetch > 0 ? 2 : 1};
  auto unsharded =
      std::make_unique<UnshardedUnits>(groups_.sharding.get(), unshard, units_, device_.get());
  reducer_ =
      std::make_unique<GradientReducer>(groups_.world->rank(), groups_.sharding.get(),
                                        groups_.replicas.get(), reduction, units_, device_.get());
  require_room(*unsharded);
  threads_ = std::make_unique<core::Threads>(options_.threads);
  if (optimizer_options_) optimizer_ = std::make_unique<ElementOptimizer>(*optimizer_options_);
  if (optimizer_ != nullptr) {
    int64_t elements = 0;
    for (const Parameter& p : parameters_) {
      elements += units_[p.unit].layout.part(p.in_unit, sharding_rank()).count;
    }
    optimizer_->reserve(parameters_.size(), elements);
  }
  for (const Parameter& p : parameters_) {
    Unit& unit = units_[p.unit];
    const ParameterPart part = unit.layout.part(p.in_unit, sharding_rank());
    const auto at = static_cast<size_t>(part.at);
    const auto count = static_cast<size_t>(part.count);
    const std::span<float> gradients = unit.gradient_elements().subspan(at, count);
    if (optimizer_ != nullptr) {
      optimizer_->add(unit.value_elements().subspan(at, count), gradients);
    }
    norm_.add({.data = gradients.data(), .size = part.count, .dtype = SHARDREC_FLOAT32});
  }
  if (groups_.sharding) {
    sharding_control_.emplace(groups_.sharding->open_channel(comm::Purpose::kDense),
                              sharding_rank(), sharding_ranks());
  }
  unsharded_ = std::move(unsharded);
}

void Fsdp::forget_shards() noexcept {
  if (device_ != nullptr) device_->settle();
  unsharded_.reset();
  reducer_.reset();
  optimizer_.reset();
  norm_ = GradientNorm();
}

void Fsdp::check_arguments() const {
  for (const Parameter& parameter : parameters_) {
    // Checkpoints hold the optimizer's states under such names.
    if (!optimizer_options_ || !parameter.name.starts_with("optimizer.")) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("parameter \"", parameter.name,
                              "\": names of a set with an optimizer do not begin with "
                              "\"optimizer.\""));
  }
}

void Fsdp::commit() {
  if (is_committed()) core::fail(SHARDREC_INVALID_STATE, "commit was called a second time");
  check_arguments();
  groups_.world->check_before(kCompare.name);
  exchanging(kCompare.name, [&] {
    if (!control_) {
      control_.emplace(groups_.world->open_channel(comm::Purpose::kDense), groups_.world->rank(),
                       groups_.world->size());
    }
    const std::string mine = describe();
    compare_descriptions(kCompare.name,
                         control_->all_gather(kCompare, std::as_bytes(std::span(mine))));
    if (parameters_.empty()) return;
    try {
      make_shards();
    } catch (...) {
      forget_shards();
      throw;
    }
    take_stacks();
  });
  // On all ranks alike: nobody waits, and the communicator is as before.
  if (parameters_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "no parameter was added before commit");
  }
}

}  // namespace shardrec::dense
