// What happens to the shards of a set: gradients are bounded, the optimizer steps, the host reads and
// writes parts and whole parameters, replicas are compared.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "compute/non_finite.h"
#include "core/error.h"
#include "core/float_mode.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/tensor.h"
#include "dense/fsdp/exchanging.h"
#include "dense/fsdp/fsdp.h"

namespace shardrec::dense {
namespace {

constexpr comm::Operation kNorm{.name = "fsdp: clip_gradients", .kind = 2};
constexpr comm::Operation kTrustRatios{.name = "fsdp: step", .kind = 3};
constexpr comm::Operation kGather{
    .name = "fsdp: full", .kind = 4, .deadline_kind = comm::DeadlineKind::kSetup};
constexpr comm::Operation kScatter{
    .name = "fsdp: set_full", .kind = 5, .deadline_kind = comm::DeadlineKind::kSetup};
constexpr comm::Operation kCheckEqual{.name = "fsdp: check_equal", .kind = 6};
constexpr comm::Operation kNonFinite{.name = "fsdp: wait", .kind = 7};

constexpr size_t kScatteredAtOnce = size_t{4} << 20;  // elements

}  // namespace

ElementOptimizer& Fsdp::require_optimizer(const char* call) const {
  require_committed(call);
  if (optimizer_ == nullptr) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence(call, " needs an optimizer; set one before commit"));
  }
  return *optimizer_;
}

// The host reads shards between steps, and when the communicator has ended, inside a step too.
bool Fsdp::has_ended() const {
  try {
    groups_.world->check();
  } catch (const core::Error&) {
    return true;
  }
  return false;
}

// Before this rank writes values that peers may still be reading.
void Fsdp::shards_change() {
  exchanging("fsdp: step", [&] { unsharded_->reclaim(); });
}

void Fsdp::zero_gradients() {
  require_idle("zero_gradients");
  for (Unit& unit : units_) {
    std::memset(unit.gradients.data(), 0, unit.gradients.size());
    unit.has_gradients = false;
  }
  reducer_->zero();
}

// The norm of this rank's parts is that of all where there is no other shard.
double Fsdp::norm_of_all(shardrec_clip kind) {
  if (kind != SHARDREC_CLIP_L2) {
    double norm = norm_.infinity(*threads_);
    if (!sharding_control_) return norm;
    sharding_control_->all_reduce(kNorm, comm::Reduction::kMax, std::span(&norm, 1));
    return norm;
  }
  const double norm = norm_.l2(*threads_);
  if (!sharding_control_) return norm;
  double square = norm * norm;
  sharding_control_->all_reduce(kNorm, comm::Reduction::kSum, std::span(&square, 1));
  return std::sqrt(square);
}

double Fsdp::clip_gradients(shardrec_clip kind, double bound) {
  require_idle("clip_gradients");
  groups_.world->check_before(kNorm.name);
  const core::DefaultFloatMode mode;
  double norm = 0;
  exchanging(kNorm.name, [&] { norm = norm_of_all(kind); });
  if (kind == SHARDREC_CLIP_VALUE) {
    norm_.bound_values(bound, *threads_);
  } else {
    norm_.bound_norm(norm, bound, *threads_);
  }
  return norm;
}

Fsdp::NonFinite Fsdp::non_finite_here() {
  for (size_t p = 0; p < parameters_.size(); ++p) {
    Unit& unit = units_[parameters_[p].unit];
    const ParameterPart part = unit.layout.part(parameters_[p].in_unit, sharding_rank());
    const int64_t element = compute::first_non_finite(unit.gradient_elements().data() + part.at,
                                                      SHARDREC_FLOAT32, part.count);
    if (element < 0) continue;
    return {.parameter = static_cast<int64_t>(p),
            .element = part.offset + element,
            .rank = groups_.world->rank()};
  }
  return {};
}

// Replicas of a shard have the same gradients: of their findings the first one's counts.
Fsdp::NonFinite Fsdp::non_finite_of_all() {
  const NonFinite mine = non_finite_here();
  NonFinite first;
  for (const comm::ConstBytes message :
       control_->all_gather(kNonFinite, std::as_bytes(std::span(&mine, 1)))) {
    NonFinite its;
    if (message.size() != sizeof its) {
      core::fail(SHARDREC_CORRUPT_DATA, "what a rank has found has another size",
                 {.operation = kNonFinite.name});
    }
    std::memcpy(&its, message.data(), sizeof its);
    if (std::tie(its.parameter, its.element) < std::tie(first.parameter, first.element)) {
      first = its;
    }
  }
  return first;
}

void Fsdp::refuse_non_finite(const NonFinite& found) {
  if (found.parameter == INT64_MAX) return;
  ++non_finite_steps_;
  skips_step_ = options_.non_finite == SHARDREC_NON_FINITE_SKIP;
  if (skips_step_) return;
  core::fail(SHARDREC_INVALID_BATCH,
             core::sentence("the reduced gradient of parameter \"", parameter(found.parameter).name,
                            "\" is NaN or infinite at element ", found.element, ", which rank ",
                            found.rank, " has, and the option NON_FINITE is ERROR"),
             {.rank = found.rank,
              .position = found.parameter,
              .value = found.element,
              .operation = kNonFinite.name});
}

void Fsdp::step() {
  ElementOptimizer& optimizer = require_optimizer("step");
  require_idle("step");
  if (skips_step_) return;
  const core::DefaultFloatMode mode;
  shards_change();
  optimizer.begin_step();
  if (!sharding_control_) return optimizer.step(0, parameters_.size(), *threads_);
  exchanging(kTrustRatios.name, [&] {
    optimizer.step_parts(*threads_, [this](std::span<double> sums) {
      sharding_control_->all_reduce(kTrustRatios, comm::Reduction::kSum, sums);
    });
  });
}

void Fsdp::set_learning_rate(double rate) {
  if (!is_committed() && optimizer_options_) {
    optimizer_options_->learning_rate = rate;
    return;
  }
  ElementOptimizer& optimizer = require_optimizer("set_learning_rate");
  require_idle("set_learning_rate");
  optimizer.set_learning_rate(rate);
}

Fsdp::Shard Fsdp::shard(int64_t index, int32_t what) {
  const Parameter& its = parameter(index);
  require_committed("shard");
  const bool ended = has_ended();
  if (!ended) require_idle("shard");
  Unit& unit = units_[its.unit];
  const ParameterPart part = unit.layout.part(its.in_unit, sharding_rank());
  const auto at = static_cast<size_t>(part.at);
  const auto count = static_cast<size_t>(part.count);
  if (what == SHARDREC_FSDP_VALUES) {
    if (!ended) shards_change();
    return {.offset = part.offset, .elements = unit.value_elements().subspan(at, count)};
  }
  if (what == SHARDREC_FSDP_GRADIENT) {
    return {.offset = part.offset, .elements = unit.gradient_elements().subspan(at, count)};
  }
  const int states = optimizer_ == nullptr ? 0 : optimizer_->states();
  const int state = what < SHARDREC_FSDP_STATE ? -1 : what - SHARDREC_FSDP_STATE;
  if (state < 0 || state >= states) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("there is no array ", what, "; 0 is the values, 1 the gradient, and ",
                              states, " optimizer states follow"),
               {.value = what, .limit = SHARDREC_FSDP_STATE + states});
  }
  return {.offset = part.offset, .elements = optimizer_->state(static_cast<size_t>(index), state)};
}

void Fsdp::gather(int64_t index, int32_t what, std::span<float> out) {
  require_idle("full");
  const Shard mine = shard(index, what);
  if (!sharding_control_) {
    std::ranges::copy(mine.elements, out.begin());
    return;
  }
  groups_.world->check_before(kGather.name);
  const Parameter& its = parameter(index);
  exchanging(kGather.name, [&] {
    comm::Operation operation = kGather;
    operation.detail = static_cast<uint64_t>(index) << 8 | static_cast<uint8_t>(what);
    const auto parts = sharding_control_->all_gather(operation, std::as_bytes(mine.elements));
    for (int rank = 0; rank < sharding_ranks(); ++rank) {
      const ParameterPart part = units_[its.unit].layout.part(its.in_unit, rank);
      const comm::ConstBytes message = parts[static_cast<size_t>(rank)];
      if (message.size() != static_cast<size_t>(part.count) * sizeof(float)) {
        core::fail(SHARDREC_CORRUPT_DATA, "a part of a parameter has another size than its layout",
                   {.rank = rank, .operation = kGather.name});
      }
      if (!message.empty()) std::memcpy(out.data() + part.offset, message.data(), message.size());
    }
  });
}

void Fsdp::scatter(int64_t index, int32_t what, std::span<const float> in, int root) {
  if (root >= groups_.world->size()) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no rank ", root, "; there are ", groups_.world->size()),
               {.value = root, .limit = groups_.world->size()});
  }
  require_idle("set_full");
  const Shard mine = shard(index, what);
  if (what == SHARDREC_FSDP_VALUES) shards_change();
  const int64_t elements = parameter(index).elements;
  if (what == SHARDREC_FSDP_GRADIENT) units_[parameter(index).unit].has_gradients = true;
  if (root < 0) {
    std::copy_n(in.data() + mine.offset, mine.elements.size(), mine.elements.data());
    return;
  }
  groups_.world->check_before(kScatter.name);
  exchanging(kScatter.name, [&] {
    const bool is_root = groups_.world->rank() == root;
    comm::Operation operation = kScatter;
    operation.detail = static_cast<uint64_t>(index) << 8 | static_cast<uint8_t>(what);
    core::Scratch memory;
    const auto end = static_cast<int64_t>(mine.elements.size()) + mine.offset;
    for (int64_t at = 0; at < elements; at += static_cast<int64_t>(kScatteredAtOnce)) {
      const auto count =
          static_cast<size_t>(std::min(elements - at, static_cast<int64_t>(kScatteredAtOnce)));
      const std::span<float> some = memory.resize_as<float>(count);
      if (is_root) std::copy_n(in.data() + at, count, some.data());
      control_->broadcast(operation, root, std::as_writable_bytes(some));
      const int64_t from = std::max(at, mine.offset);
      const int64_t to = std::min(at + static_cast<int64_t>(count), end);
      if (from < to) {
        std::copy_n(some.data() + (from - at), to - from,
                    mine.elements.data() + (from - mine.offset));
      }
    }
  });
}

void Fsdp::take_stacks() {
  for (const Stack& stack : stacks_) {
    stack.layers->fetch();
    const Parameters& own = stack.layers->parameters();
    for (size_t p = 0; p < own.infos().size(); ++p) {
      const ParameterInfo& info = own.infos()[p];
      scatter(stack.first + static_cast<int64_t>(p), SHARDREC_FSDP_VALUES,
              {own.values(info.offset), static_cast<size_t>(info.size)}, 0);
    }
    stack.layers->release_parameters();
  }
}

void Fsdp::check_equal() {
  require_idle("check_equal");
  groups_.world->check_before(kCheckEqual.name);
  exchanging(kCheckEqual.name, [&] {
    // The number of the shard, the number of steps, then hashes of values and states by parameter.
    std::vector<uint64_t> mine = {static_cast<uint64_t>(sharding_rank()),
                                  optimizer_ ? static_cast<uint64_t>(optimizer_->steps()) : 0};
    const size_t before = mine.size();
    const int states = optimizer_ == nullptr ? 0 : optimizer_->states();
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const auto hash = [&](int32_t what) {
        const auto elements = shard(static_cast<int64_t>(p), what).elements;
        mine.push_back(core::hash64(0, std::as_writable_bytes(elements)));
      };
      hash(SHARDREC_FSDP_VALUES);
      for (int s = 0; s < states; ++s) hash(SHARDREC_FSDP_STATE + s);
    }
    const auto all = control_->all_gather(kCheckEqual, std::as_bytes(std::span(mine)));
    std::vector<std::vector<uint64_t>> of_ranks;
    for (const comm::ConstBytes message : all) {
      std::vector<uint64_t> hashes(mine.size());
      std::memcpy(hashes.data(), message.data(),
                  std::min(message.size(), mine.size() * sizeof(uint64_t)));
      of_ranks.push_back(std::move(hashes));
    }
    for (size_t rank = 1; rank < of_ranks.size(); ++rank) {
      const auto same_shard = std::ranges::find_if(
          of_ranks, [&](const auto& its) { return its[0] == of_ranks[rank][0]; });
      const auto [first, other] = std::ranges::mismatch(*same_shard, of_ranks[rank]);
      if (first == same_shard->end()) continue;
      const auto at = static_cast<size_t>(first - same_shard->begin());
      const auto reference = static_cast<int64_t>(same_shard - of_ranks.begin());
      core::ErrorParts parts{.rank = static_cast<int64_t>(rank), .operation = kCheckEqual.name};
      if (at < before) {
        core::fail(SHARDREC_DISAGREEMENT,
                   core::sentence("rank ", rank, " differs from rank ", reference,
                                  ": its optimizer has taken another number of steps"),
                   std::move(parts));
      }
      const size_t parameter = (at - before) / static_cast<size_t>(states + 1);
      parts.position = static_cast<int64_t>(parameter);
      core::fail(SHARDREC_DISAGREEMENT,
                 core::sentence("rank ", rank, " differs from rank ", reference, ": ",
                                (at - before) % static_cast<size_t>(states + 1) == 0
                                    ? "the values"
                                    : "the optimizer state",
                                " of its parameter \"", parameters_[parameter].name, "\""),
                 std::move(parts));
    }
  });
}

std::string Fsdp::statistics_json() const {
  require_idle("statistics");
  int64_t shards = 0;
  int64_t states = 0;
  for (const Unit& unit : units_) shards += unit.layout.shard_elements();
  for (int s = 0; optimizer_ != nullptr && s < optimizer_->states(); ++s) {
    states += static_cast<int64_t>(optimizer_->state(s).size_bytes());
  }
  core::JsonWriter json;
  json.begin_object();
  json.key("version").integer(1);
  json.key("ranks").integer(groups_.world->size());
  json.key("sharding_ranks").integer(sharding_ranks());
  json.key("units").integer(static_cast<int64_t>(units_.size()));
  json.key("parameters").integer(static_cast<int64_t>(parameters_.size()));
  json.key("steps").integer(steps_);
  json.key("steps_without_sync").integer(local_steps_);
  json.key("non_finite_steps").integer(non_finite_steps_);
  json.key("value_bytes").integer(shards * static_cast<int64_t>(sizeof(float)));
  json.key("gradient_bytes").integer(shards * static_cast<int64_t>(sizeof(float)));
  json.key("state_bytes").integer(states);
  json.key("full_parameter_bytes").integer(unsharded_->buffer_bytes());
  json.key("full_gradient_bytes").integer(reducer_->buffer_bytes());
  json.key("kept_gradient_bytes").integer(reducer_->kept_bytes());
  json.key("device_bytes").integer(unsharded_->device_bytes() + reducer_->device_bytes());
  json.key("message_bytes").integer(unsharded_->message_bytes());
  json.key("gathers").integer(unsharded_->gathers());
  json.key("prefetched").integer(unsharded_->prefetched());
  json.key("gather_bytes_sent").integer(unsharded_->bytes_sent());
  json.key("reduction_bytes_sent").integer(reducer_->bytes_sent());
  json.key("unshard_waited_seconds").number(unsharded_->waited_seconds());
  json.key("gradient_waited_seconds").number(reducer_->waited_seconds());
  json.end_object();
  return json.take();
}

}  // namespace shardrec::dense
