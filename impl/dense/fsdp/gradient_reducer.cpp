#include "dense/fsdp/gradient_reducer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "core/tensor.h"

namespace shardrec::dense {

GradientReducer::GradientReducer(int world_rank, comm::Communicator* sharding,
                                 comm::Communicator* replicas, const ReductionOptions& options,
                                 std::span<Unit> units, UnitDevice* device)
    : options_(options),
      units_(units),
      device_(device),
      channels_(sharding, replicas),
      sharding_sums_(channels_.sharding_ranks),
      replica_sums_(channels_.replica_ranks),
      states_(units.size()) {
  channels_.world_rank = world_rank;
  sharding_sums_.make_room(options_.wire);
  sharding_sums_.make_room(options_.dtype);  // of a rank that is alone
  replica_sums_.make_room(options_.wire);
  int64_t elements = 0;
  int64_t shard_elements = 0;
  for (size_t u = 0; u < units_.size(); ++u) {
    reductions_.push_back(std::make_unique<UnitReduction>(units_[u], u, channels_, sharding_sums_,
                                                          replica_sums_, options_.dtype,
                                                          options_.wire, options_.scale));
    elements = std::max(elements, units_[u].layout.elements());
    shard_elements = std::max(shard_elements, units_[u].layout.shard_elements());
  }
  const size_t count = std::min(units_.size(), static_cast<size_t>(options_.buffers));
  for (size_t b = 0; b < count; ++b) {
    buffers_.push_back({.memory = GradientMemory(channels_, options_.dtype, options_.wire, elements,
                                                 shard_elements, device_)});
  }
  order_.reserve(units_.size());
  posted_.reserve(units_.size());
}

void GradientReducer::begin(bool sync, uint64_t step) {
  for (const auto& reduction : reductions_) reduction->reclaim();
  for (Buffer& buffer : buffers_) buffer.unit = kNoBuffer;
  sync_ = sync;
  step_ = step;
  done_ = 0;
  marked_ = kNoBuffer;
  order_.clear();
  posted_.clear();
  refused_ = {};
  for (State& state : states_) {
    state.buffer = kNoBuffer;
    state.has_memory = state.is_ready = false;
    state.user = nullptr;
  }
}

size_t GradientReducer::bytes_of(size_t unit) const noexcept {
  return static_cast<size_t>(units_[unit].layout.elements()) * core::dtype_size(options_.dtype);
}

GradientMemory& GradientReducer::keep(size_t unit) {
  State& state = states_[unit];
  if (state.kept == nullptr) {
    state.kept = std::make_unique<GradientMemory>(channels_, options_.dtype, options_.wire,
                                                  units_[unit].layout.elements(),
                                                  units_[unit].layout.shard_elements(), device_);
  }
  if (!state.has_kept) state.kept->clear(bytes_of(unit));
  state.has_kept = true;
  return *state.kept;
}

bool GradientReducer::take_buffer(size_t unit) {
  // Of the free ones, that whose last reduction was posted first: peers have most likely read it.
  const auto age = [this](const Buffer& b) {
    if (b.unit == kNoBuffer) return ptrdiff_t{-1};
    return std::ranges::find(posted_, b.unit) - posted_.begin();
  };
  auto buffer = buffers_.end();
  for (auto b = buffers_.begin(); b != buffers_.end(); ++b) {
    if (b->is_used) continue;
    if (buffer == buffers_.end() || age(*b) < age(*buffer)) buffer = b;
  }
  if (buffer == buffers_.end()) return false;
  if (buffer->unit != kNoBuffer) reductions_[buffer->unit]->reclaim();
  buffer->memory.clear(bytes_of(unit));
  buffer->unit = unit;
  buffer->is_used = true;
  states_[unit].buffer = static_cast<size_t>(buffer - buffers_.begin());
  return true;
}

bool GradientReducer::wait_for_buffer() {
  if (done_ == posted_.size()) post_ready(Posting::kReady);
  if (done_ == posted_.size()) return false;
  step_oldest();
  return true;
}

std::byte* GradientReducer::gradients(size_t unit, UnitDevice::Stream* user) {
  State& state = states_[unit];
  if (sync_ && state.is_ready) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("the gradients of unit \"", units_[unit].name,
                              "\" were asked for after they were marked ready in this step"),
               {.position = static_cast<int64_t>(unit)});
  }
  const bool is_new = !state.has_memory;
  if (!state.has_memory) {
    if (!sync_) {
      keep(unit);
    } else if (!state.has_kept) {
      const auto start = std::chrono::steady_clock::now();
      bool has_buffer = take_buffer(unit);
      while (!has_buffer && wait_for_buffer()) has_buffer = take_buffer(unit);
      if (!has_buffer) keep(unit);
      waited_seconds_ +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    state.has_memory = true;
  }
  if (device_ != nullptr && (is_new || state.user != user)) {
    device_->hold_up(user);
    state.user = user;
  }
  return memory_of(unit).data();
}

GradientMemory& GradientReducer::memory_of(size_t unit) {
  State& state = states_[unit];
  return state.buffer == kNoBuffer ? *state.kept : buffers_[state.buffer].memory;
}

void GradientReducer::require_markable(size_t unit) const {
  if (!sync_ || !states_[unit].is_ready) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence("the gradients of unit \"", units_[unit].name,
                            "\" were marked ready twice in this step"),
             {.position = static_cast<int64_t>(unit)});
}

void GradientReducer::mark_ready(size_t unit, std::span<const size_t> asked) {
  if (!sync_) return;
  require_markable(unit);
  gradients(unit, states_[unit].user);  // that nothing was written to: zeros, or what was kept
  memory_of(unit).copy_to_host(bytes_of(unit));
  states_[unit].is_ready = true;
  marked_ = unit;
  extend_order(asked);
  post_ready(Posting::kMarked);
  progress();
}

// Units that were asked for since the last call come behind the others, the last one first.
void GradientReducer::extend_order(std::span<const size_t> asked) {
  const auto added = asked.subspan(order_.size());
  order_.insert(order_.end(), added.rbegin(), added.rend());
}

void GradientReducer::post_ready(Posting posting) {
  while (posted_.size() < order_.size()) {
    const size_t unit = order_[posted_.size()];
    State& state = states_[unit];
    if (!state.is_ready && posting != Posting::kAll) return;
    if (unit == marked_ && device_ != nullptr && posting == Posting::kMarked) return;
    while (posted_.size() - done_ >= comm::PipelinedChannel::kMost) step_oldest();
    if (state.is_ready) {
      memory_of(unit).wait_for_copy();
      reductions_[unit]->post(memory_of(unit), step_);
    } else {
      reductions_[unit]->post_refusal(step_);
    }
    posted_.push_back(unit);
  }
}

void GradientReducer::finish(size_t unit) {
  State& state = states_[unit];
  const UnitReduction& reduction = *reductions_[unit];
  if (reduction.refusing_rank() >= 0 && refused_.rank < 0) {
    refused_ = {.rank = reduction.refusing_rank(), .unit = unit};
  }
  // Also of a unit that was refused: some ranks had its gradients in a buffer, which others take.
  if (state.buffer != kNoBuffer) buffers_[state.buffer].is_used = false;
  state.has_kept = false;
}

// Exchanges of a channel are taken in the order in which they were posted.
bool GradientReducer::step_one() {
  for (size_t p = done_; p < posted_.size(); ++p) {
    UnitReduction& reduction = *reductions_[posted_[p]];
    if (p > done_ && reduction.is_behind(*reductions_[posted_[p - 1]])) continue;
    if (reduction.is_done() || !reduction.has_arrived()) continue;
    reduction.advance();
    return true;
  }
  return false;
}

void GradientReducer::progress() {
  do {
    while (done_ < posted_.size() && reductions_[posted_[done_]]->is_done()) {
      finish(posted_[done_++]);
    }
  } while (step_one());
}

void GradientReducer::step_oldest() {
  const size_t done = done_;
  progress();
  // What the caller waits for may have come: to wait for the next one too could be for a mark that a peer
  // makes after an exchange which this rank has not come to.
  if (done_ != done || done_ == posted_.size()) return;
  reductions_[posted_[done_]]->advance();
  progress();
}

void GradientReducer::end(std::span<const size_t> asked) {
  if (sync_) {
    extend_order(asked);
    post_ready(Posting::kAll);
  }
  progress();
}

RefusedUnit GradientReducer::wait() {
  const auto start = std::chrono::steady_clock::now();
  while (done_ < posted_.size()) step_oldest();
  waited_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return refused_;
}

void GradientReducer::zero() noexcept {
  for (State& state : states_) state.has_kept = false;
}

int64_t GradientReducer::buffer_bytes() const noexcept {
  int64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.memory.bytes();
  return bytes;
}

int64_t GradientReducer::kept_bytes() const noexcept {
  int64_t bytes = 0;
  for (const State& state : states_) bytes += state.kept == nullptr ? 0 : state.kept->bytes();
  return bytes;
}

int64_t GradientReducer::device_bytes() const noexcept {
  int64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.memory.device_bytes();
  for (const State& state : states_)
    bytes += state.kept == nullptr ? 0 : state.kept->device_bytes();
  return bytes;
}

int64_t GradientReducer::bytes_sent() const noexcept {
  int64_t bytes = 0;
  for (const auto& reduction : reductions_) bytes += reduction->bytes_sent();
  return bytes;
}

}  // namespace shardrec::dense
