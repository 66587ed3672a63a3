#include "dense/fsdp/unsharded_units.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"
#include "dense/ddp/rank_sums.h"

namespace shardrec::dense {
namespace {

constexpr uint32_t kGatherKind = 1;

using Clock = std::chrono::steady_clock;

}  // namespace

UnshardedUnits::UnshardedUnits(comm::Communicator* sharding, const UnshardOptions& options,
                               std::span<Unit> units, UnitDevice* device)
    : options_(options),
      units_(units),
      device_(device),
      sharding_(sharding != nullptr),
      ranks_(sharding == nullptr ? 1 : sharding->size()),
      messages_(units.size()),
      is_stale_(units.size(), 1),
      states_(units.size()) {
  const size_t size = core::dtype_size(options_.dtype);
  if (sharding_) {
    channel_.emplace(sharding->open_channel(comm::Purpose::kDense));
    for (size_t u = 0; u < units_.size(); ++u) {
      gathers_of_.push_back(std::make_unique<comm::AllGather>(*channel_, ranks_));
    }
  }
  size_t largest = 0;
  for (size_t u = 0; u < units_.size(); ++u) {
    largest = std::max(largest, static_cast<size_t>(units_[u].layout.elements()) * size);
    if (!sharding_ || options_.dtype == SHARDREC_FLOAT32) continue;
    const size_t bytes = static_cast<size_t>(units_[u].layout.shard_elements()) * size;
    messages_[u] = std::make_shared<core::Pages>(bytes);
    message_bytes_ += static_cast<int64_t>(bytes);
  }
  posted_.reserve(4 * units_.size() + 64);
  asked_.reserve(units_.size());
  order_.reserve(4 * units_.size() + 64);
  if (in_place()) return;
  const auto ring = static_cast<size_t>(options_.held) + static_cast<size_t>(options_.prefetch);
  const size_t count = options_.keep ? units_.size() : std::min(units_.size(), ring);
  for (size_t b = 0; b < count; ++b) {
    const size_t bytes =
        options_.keep ? static_cast<size_t>(units_[b].layout.elements()) * size : largest;
    Buffer& buffer = buffers_.emplace_back();
    buffer.memory = UnitBytes(bytes, device_ != nullptr);
    if (device_ != nullptr) buffer.copy.emplace(*device_).there.resize(bytes);
    buffer_bytes_ += static_cast<int64_t>(bytes);
  }
}

void UnshardedUnits::begin(uint64_t step) {
  step_ = step;
  position_ = 0;
  asked_.clear();
  for (State& state : states_) state = State{};
  std::fill(is_stale_.begin(), is_stale_.end(), 1);
  prefetch();
}

std::optional<size_t> UnshardedUnits::free_buffer(size_t unit) const noexcept {
  if (options_.keep) return unit;
  for (size_t b = 0; b < buffers_.size(); ++b) {
    if (!buffers_[b].is_used) return b;
  }
  return std::nullopt;
}

// Of a step that asks in another order than the one before it: what the host does not hold is given up.
bool UnshardedUnits::evict_prefetched() {
  for (size_t unit = units_.size(); unit > 0; --unit) {
    if (states_[unit - 1].is_held || !is_resident(unit - 1)) continue;
    take(unit - 1);
    release(unit - 1);
    return true;
  }
  return false;
}

comm::ConstBytes UnshardedUnits::message_of(size_t unit) {
  const std::span<float> values = units_[unit].value_elements();
  if (messages_[unit] == nullptr) return std::as_bytes(values);
  core::Pages& message = *messages_[unit];
  if (is_stale_[unit] != 0) {
    gathers_of_[unit]->reclaim();
    convert(values.data(), SHARDREC_FLOAT32, message.data(), options_.dtype,
            static_cast<int64_t>(values.size()));
    is_stale_[unit] = 0;
  }
  return {message.data(), message.size()};
}

std::byte* UnshardedUnits::memory_to_fill(size_t buffer) {
  Buffer& its = buffers_[buffer];
  if (its.copy) its.copy->copied.wait();
  its.is_copied = false;
  return its.memory.data();
}

void UnshardedUnits::copy_to_device(size_t unit, UnitDevice::Stream* user) {
  Buffer& buffer = buffers_[states_[unit].buffer];
  if (!buffer.is_copied) {
    const size_t bytes =
        static_cast<size_t>(units_[unit].layout.elements()) * core::dtype_size(options_.dtype);
    device_->upload(buffer.copy->there.data(), buffer.memory.data(), bytes, buffer.copy->copied);
    buffer.is_copied = true;
  }
  device_->hold_up(user);
  states_[unit].user = user;
}

void UnshardedUnits::follow_user(size_t unit) {
  if (device_ == nullptr || !states_[unit].is_waited_for) return;
  device_->follow(states_[unit].user);
}

void UnshardedUnits::post(size_t unit, size_t buffer) {
  Unit& its = units_[unit];
  if (!sharding_) {
    const std::span<float> values = its.value_elements();
    convert(values.data(), SHARDREC_FLOAT32, memory_to_fill(buffer), options_.dtype,
            static_cast<int64_t>(values.size()));
    states_[unit].buffer = buffer;
    buffers_[buffer].is_used = true;
    return;
  }
  const comm::Operation operation{.name = its.operations.gather,
                                  .kind = kGatherKind + 2 * static_cast<uint32_t>(unit),
                                  .detail = step_,
                                  .size = static_cast<uint64_t>(its.layout.elements())};
  if (posted_.size() - next_posted_ >= comm::PipelinedChannel::kMost) take_next();
  const comm::ConstBytes message = message_of(unit);
  const std::shared_ptr<core::Pages>& memory =
      messages_[unit] == nullptr ? its.values : messages_[unit];
  gathers_of_[unit]->start(operation, message, memory);
  posted_.push_back(unit);
  states_[unit].buffer = buffer;
  states_[unit].is_posted = true;
  buffers_[buffer].is_used = true;
  bytes_sent_ += static_cast<int64_t>(message.size()) * (ranks_ - 1);
  ++gathers_;
}

void UnshardedUnits::take_next() {
  const size_t unit = posted_[next_posted_];
  State& state = states_[unit];
  comm::AllGather& gather = *gathers_of_[unit];
  const std::span<const comm::ConstBytes> shards = gather.finish();
  const size_t bytes =
      static_cast<size_t>(units_[unit].layout.shard_elements()) * core::dtype_size(options_.dtype);
  gather.require_size_of_all(bytes);
  std::byte* out = memory_to_fill(state.buffer);
  for (const comm::ConstBytes& shard : shards) {
    std::memcpy(out, shard.data(), bytes);
    out += bytes;
  }
  gather.release();
  state.is_posted = false;
  if (++next_posted_ == posted_.size()) {
    posted_.clear();
    next_posted_ = 0;
  }
}

// Exchanges of a channel are taken in the order in which they were posted.
void UnshardedUnits::take(size_t unit) {
  const Clock::time_point start = Clock::now();
  if (!states_[unit].is_posted) return;
  while (states_[unit].is_posted) take_next();
  waited_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
}

void UnshardedUnits::release(size_t unit) {
  if (!is_resident(unit)) return;
  buffers_[states_[unit].buffer].is_used = false;
  states_[unit].buffer = kNoBuffer;
}

void UnshardedUnits::prefetch() {
  if (in_place()) return;
  const size_t last = std::min(order_.size(), position_ + static_cast<size_t>(options_.prefetch));
  for (size_t p = position_; p < last; ++p) {
    const size_t unit = order_[p];
    if (states_[unit].is_held) return;
    if (is_resident(unit)) continue;
    const std::optional<size_t> buffer = free_buffer(unit);
    if (!buffer || posted_.size() - next_posted_ >= comm::PipelinedChannel::kMost) return;
    post(unit, *buffer);
    if (sharding_) ++prefetched_;
  }
}

void UnshardedUnits::refuse_full(size_t unit) const {
  std::string held;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (!states_[u].is_held) continue;
    held += core::sentence(held.empty() ? "\"" : ", \"", units_[u].name, "\"");
  }
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence("unit \"", units_[unit].name, "\" was unsharded while all ",
                            buffers_.size(), " buffers are held by units that were not resharded: ",
                            held, "; reshard one of them, or set the option FSDP_HELD_UNITS"),
             {.position = static_cast<int64_t>(unit)});
}

void UnshardedUnits::unshard(size_t unit) {
  State& state = states_[unit];
  if (state.is_held) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("unit \"", units_[unit].name,
                              "\" was unsharded twice without a reshard between"),
               {.position = static_cast<int64_t>(unit)});
  }
  if (!in_place() && !is_resident(unit)) {
    std::optional<size_t> buffer = free_buffer(unit);
    if (!buffer && evict_prefetched()) buffer = free_buffer(unit);
    if (!buffer) refuse_full(unit);
    post(unit, *buffer);
  }
  if (position_ >= order_.size() || order_[position_] != unit) {
    order_.resize(position_);
    order_.push_back(unit);
  }
  ++position_;
  state.is_held = true;
  state.is_waited_for = false;
  if (!state.was_asked) asked_.push_back(unit);
  state.was_asked = true;
  prefetch();
}

void UnshardedUnits::require_held(size_t unit, const char* call) const {
  if (states_[unit].is_held) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call, " of unit \"", units_[unit].name,
                            "\", which is not unsharded; call unshard before it"),
             {.position = static_cast<int64_t>(unit)});
}

void UnshardedUnits::wait(size_t unit, UnitDevice::Stream* user) {
  require_held(unit, "wait_unshard");
  take(unit);
  if (device_ != nullptr) copy_to_device(unit, user);
  states_[unit].is_waited_for = true;
}

std::byte* UnshardedUnits::data(size_t unit) const {
  require_held(unit, "a parameter");
  if (!states_[unit].is_waited_for) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("a parameter of unit \"", units_[unit].name,
                              "\" was asked for before wait_unshard"),
               {.position = static_cast<int64_t>(unit)});
  }
  if (in_place()) return units_[unit].values->data();
  const Buffer& buffer = buffers_[states_[unit].buffer];
  return const_cast<std::byte*>(buffer.copy ? buffer.copy->there.data() : buffer.memory.data());
}

void UnshardedUnits::reshard(size_t unit) {
  require_held(unit, "reshard");
  State& state = states_[unit];
  follow_user(unit);
  state.is_held = state.is_waited_for = false;
  // What the host asks for next stays.
  const bool is_next = position_ < order_.size() && order_[position_] == unit;
  if (!options_.keep && !(is_next && options_.prefetch > 0) && is_resident(unit)) {
    take(unit);
    release(unit);
  }
  prefetch();
}

void UnshardedUnits::forget(size_t unit) {
  State& state = states_[unit];
  const bool is_next = position_ < order_.size() && order_[position_] == unit;
  follow_user(unit);
  state.is_held = state.is_waited_for = false;
  if (is_resident(unit) && !is_next) {
    take(unit);
    release(unit);
  }
  prefetch();
}

void UnshardedUnits::end() {
  for (size_t u = 0; u < units_.size(); ++u) {
    if (!states_[u].is_held) continue;
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("the step ends while unit \"", units_[u].name,
                              "\" is unsharded; reshard it, or mark its gradient ready"),
               {.position = static_cast<int64_t>(u)});
  }
  while (next_posted_ < posted_.size()) take_next();
  for (size_t u = 0; u < units_.size(); ++u) release(u);
}

void UnshardedUnits::reclaim() {
  for (const std::unique_ptr<comm::AllGather>& gather : gathers_of_) gather->reclaim();
}

}  // namespace shardrec::dense
