// The calls of a step.
#include <utility>

#include "core/error.h"
#include "core/float_mode.h"
#include "dense/fsdp/exchanging.h"
#include "dense/fsdp/fsdp.h"

namespace shardrec::dense {

void Fsdp::require_open(const char* call) const {
  require_committed(call);
  if (state_ == State::kOpen) return;
  check_before(call);
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call, state_ == State::kEnded ? " was called after end"
                                                          : " was called before begin"));
}

void Fsdp::begin(bool sync) {
  require_idle("begin");
  groups_.world->check_before("fsdp: begin");
  const core::DefaultFloatMode mode;
  exchanging("fsdp: begin", [&] {
    sync_ = sync;
    // Ranks that are in different steps, or differ in sync, are told in their first exchange.
    const uint64_t step = 2 * ++begun_ + (sync ? 1 : 0);
    reducer_->begin(sync, step);
    unsharded_->begin(step);  // values may have changed since the last step
    state_ = State::kOpen;
  });
}

void Fsdp::unshard(int64_t unit) {
  require_open("unshard");
  const size_t at = unit_at(unit);
  const core::DefaultFloatMode mode;
  exchanging("fsdp: unshard", [&] {
    reducer_->progress();
    unsharded_->unshard(at);
  });
}

void Fsdp::wait_unshard(int64_t unit, Stream* user) {
  require_open("wait_unshard");
  const size_t at = unit_at(unit);
  const core::DefaultFloatMode mode;
  exchanging("fsdp: wait_unshard", [&] {
    reducer_->progress();
    unsharded_->wait(at, user);
  });
}

void Fsdp::reshard(int64_t unit) {
  require_open("reshard");
  const size_t at = unit_at(unit);
  const core::DefaultFloatMode mode;
  exchanging("fsdp: reshard", [&] { unsharded_->reshard(at); });
}

std::byte* Fsdp::parameter_values(int64_t parameter) const {
  const Parameter& its = this->parameter(parameter);
  require_open("a parameter's view");
  return unsharded_->data(its.unit) +
         static_cast<size_t>(units_[its.unit].layout.offset(its.in_unit)) *
             core::dtype_size(options_.parameter_dtype);
}

std::byte* Fsdp::parameter_gradients(int64_t parameter, Stream* user) {
  const Parameter& its = this->parameter(parameter);
  require_open("a gradient's view");
  const Unit& unit = units_[its.unit];
  if (!unsharded_->was_asked(its.unit)) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("a gradient of unit \"", unit.name,
                              "\" was asked for in a step in which it was not unsharded"),
               {.position = static_cast<int64_t>(its.unit)});
  }
  const core::DefaultFloatMode mode;
  std::byte* gradients = nullptr;
  exchanging("fsdp: gradient", [&] { gradients = reducer_->gradients(its.unit, user); });
  return gradients + static_cast<size_t>(unit.layout.offset(its.in_unit)) *
                         core::dtype_size(options_.parameter_dtype);
}

void Fsdp::mark_ready(int64_t unit, Stream* user) {
  require_open("mark_ready");
  const size_t at = unit_at(unit);
  if (!unsharded_->was_asked(at)) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("the gradients of unit \"", units_[at].name,
                              "\" were marked ready in a step in which it was not unsharded"),
               {.position = unit});
  }
  const core::DefaultFloatMode mode;
  exchanging("fsdp: mark_ready", [&] {
    // Of the gradients, and of parameters that were read for them.
    if (device_ != nullptr) device_->follow(user);
    // The next all-gather leaves before these gradients do.
    if (!sync_) {
      unsharded_->forget(at);
      return;
    }
    reducer_->require_markable(at);
    unsharded_->forget(at);
    reducer_->mark_ready(at, unsharded_->asked());
  });
}

void Fsdp::require_markable(int64_t unit) const { reducer_->require_markable(unit_at(unit)); }

bool Fsdp::has_gradients(int64_t unit) const noexcept {
  return reducer_->has_gradients(static_cast<size_t>(unit));
}

void Fsdp::end() {
  require_open("end");
  const core::DefaultFloatMode mode;
  exchanging("fsdp: end", [&] {
    unsharded_->end();
    state_ = State::kEnded;
    reducer_->end(unsharded_->asked());
  });
}

void Fsdp::wait() {
  require_committed("wait");
  if (state_ != State::kEnded) {
    check_before("wait");
    core::fail(SHARDREC_INVALID_STATE, "wait was called without an end before it");
  }
  const core::DefaultFloatMode mode;
  if (sync_) skips_step_ = false;
  const bool looks = sync_ && options_.non_finite != SHARDREC_NON_FINITE_ALLOW;
  RefusedUnit refused;
  NonFinite found;
  try {
    exchanging("fsdp: wait", [&] {
      refused = reducer_->wait();
      if (looks && refused.rank < 0) found = non_finite_of_all();
    });
  } catch (...) {
    state_ = State::kIdle;  // the communicator has ended
    throw;
  }
  state_ = State::kIdle;
  if (refused.rank >= 0) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("rank ", refused.rank, " did not mark the gradients of unit \"",
                              units_[refused.unit].name,
                              "\" ready before the end of the step; gradients of the others are "
                              "reduced, those of its shards are as they were"),
               {.rank = refused.rank,
                .position = static_cast<int64_t>(refused.unit),
                .operation = "fsdp: wait"});
  }
  ++(sync_ ? steps_ : local_steps_);
  if (looks) refuse_non_finite(found);
}

}  // namespace shardrec::dense
