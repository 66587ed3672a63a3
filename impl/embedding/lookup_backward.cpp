// The second half of a lookup's way: from gradients to updated tables.
#include <algorithm>

#include "core/tensor.h"
#include "embedding/lookup.h"

namespace shardrec::embedding {

template <class Stage>
void Lookup::step_stage(Stage stage) {
  try {
    stage();
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_INVALID_BATCH) collection_->communicator().fail("backward");
    end_step();
    throw;
  } catch (...) {
    collection_->communicator().fail("backward");
    end_step();
    throw;
  }
}

void Lookup::send_gradients(bool accumulate) {
  constexpr const char* kName = "send_gradients";
  if (state_ != State::kForwarded) {
    core::fail(SHARDREC_INVALID_STATE,
               state_ == State::kSent
                   ? "send_gradients was called twice: call backward or accumulate"
                   : "send_gradients was called before forward");
  }
  collection_->communicator().check_before(kName);
  collection_->require_nothing_posted(kName);
  const core::TraceScope call(collection_->counters().track, kName);
  OperationsScope operations(*collection_, stream_);
  touch_borrowed(operations);
  step_stage([&] {
    post_gradients(accumulate ? Finish::kAccumulate : Finish::kBackward);
    operations.done();
  });
  state_ = State::kSent;
}

void Lookup::check_finish(Finish how, const char* name) const {
  if (state_ == State::kForwarded) return;
  if (state_ != State::kSent) {
    core::fail(SHARDREC_INVALID_STATE, core::sentence(name, " was called before forward"));
  }
  const Finish promised = posted_.accumulate ? Finish::kAccumulate : Finish::kBackward;
  if (how != promised) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence(name,
                              " was called after send_gradients, which told the other ranks "
                              "that ",
                              posted_.accumulate ? "accumulate" : "backward", " will be"));
  }
}

void Lookup::finish(Finish how) {
  const char* name = how == Finish::kSkip         ? "skip"
                     : how == Finish::kAccumulate ? "accumulate"
                                                  : "backward";
  check_finish(how, name);
  const bool sent = state_ == State::kSent;
  if (!sent) {
    collection_->communicator().check_before(name);
    collection_->require_nothing_posted(name);
  }
  const core::TraceScope call(collection_->counters().track, name);
  OperationsScope operations(*collection_, stream_);
  touch_borrowed(operations);
  step_stage([&] {
    if (sent) {
      collection_->communicator().check_before(name);  // in here: it may have lent something
    } else {
      post_gradients(how);
    }
    receive_gradients(how);
    operations.done();
  });
  end_step();
}

bool Lookup::pack_gradients(Finish how) {
  const int32_t missing = how == Finish::kSkip ? -1 : missing_gradient();
  const bool packed = how != Finish::kSkip && missing < 0;
  if (how == Finish::kSkip) {
    packing_.decline(GradientVerdict::kSkip, {}, gradient_buffer_);
  } else if (missing >= 0) {
    packing_.decline(
        GradientVerdict::kError,
        {.defect = Defect::kNoGradient, .argument = Argument::kGradient, .value = missing},
        gradient_buffer_);
  } else {
    lay_out_gradients();
    for (size_t g = 0; g < gradients_.size(); ++g) {
      const Gradient& gradient = gradients_[g];
      // One that was not given has no elements; but bags that no sample uses have rows.
      if (options_.borrow || !gradient.given) {
        pack_gradient(static_cast<int32_t>(g), gradient.given ? gradient.borrowed : OutputView{});
      }
    }
  }
  packing_.seal(how == Finish::kAccumulate,
                collection_->settings().fingerprint(collection_->step()));
  return packed;
}

void Lookup::post_gradients(Finish how) {
  posted_.packed = pack_gradients(how);
  posted_.accumulate = how == Finish::kAccumulate;
  const auto steps = collection_->settings().step_after(collection_->step());
  posted_.steps.assign(steps.begin(), steps.end());
  const PhaseTimer timer(collection_->counters(), Phase::kGradientExchange);
  // Not settle(): peers let go of this rank's outputs when they come to their own gradients, and
  // may still compute those. What was sent is left alone until it is reclaimed.
  collection_->let_go();
  compute::Backend& backend = collection_->backend();
  posted_.messages = packing_.messages();
  std::shared_ptr<const void> owner = gradient_memory_;
  if (gradient_codec_ != nullptr && posted_.packed) {
    posted_.messages =
        gradient_codec_->encode_gradients(routed_, posted_.messages, packing_.bodies(), backend);
    owner = gradient_codec_->owner();
  } else {
    packing_.publish(gradient_buffer_);
  }
  gradient_memory_->lending.lend();
  collection_->post(Exchange::kGradient, "backward", name_, posted_.messages, std::move(owner));
}

void Lookup::receive_gradients(Finish how) {
  PhaseTimer timer(collection_->counters(),
                   posted_.packed ? Phase::kIndexPlan : Phase::kGradientExchange);
  if (posted_.packed) {  // while they travel
    collection_->update().group(inbox_, posted_.steps, plan_);
    timer.next(Phase::kGradientExchange);
  }
  const auto received = collection_->receive();
  collection_->reclaim();  // every rank has posted this exchange, and let go of earlier ones before
  if (!all_apply(received)) return;
  use_gradients(received, how == Finish::kAccumulate, timer);
  count_bytes(posted_.messages, collection_->counters().bytes_gradient);
}

bool Lookup::all_apply(std::span<const comm::ConstBytes> messages) const {
  const GradientDecision decision =
      decide(messages, collection_->layout().rank(), collection_->communicator().reads_in_place());
  if (decision.verdict == GradientVerdict::kError) {
    throw verdict_error(decision.defect, decision.rank, "backward", collection_->model());
  }
  return decision.verdict == GradientVerdict::kApply;
}

void Lookup::use_gradients(std::span<const comm::ConstBytes> messages, bool accumulate,
                           PhaseTimer& timer) {
  compute::Backend& backend = collection_->backend();
  auto bodies = received_gradients_->open(messages, collection_->update().gradient_heads(messages));
  if (gradient_codec_ != nullptr) {
    bodies = gradient_codec_->decode_gradients(inbox_, messages, bodies, backend, gradient_buffer_);
  }
  {
    const Reading reading(messages, collection_->communicator());
    OperationsScope operations(*collection_,
                               stream_);  // on what is lent: they end before the reading
    if (any_lent(messages)) operations.touches(SHARDREC_DEVICE_CPU);
    apply(messages, bodies, accumulate, timer);
    operations.done();
  }
  // The caller may change its gradients when this returns: the peers must have read them.
  timer.next(Phase::kGradientExchange);
  if (any_lent(messages)) collection_->settle();
}

void Lookup::end_step() noexcept {
  // Where the step failed, peers that read them hear of it in their next exchange, at the latest.
  gradient_memory_->lending.take_back();
  end_batch();
  state_ = State::kIdle;
}

void Lookup::apply(std::span<const comm::ConstBytes> messages,
                   std::span<const comm::ConstBytes> bodies, bool accumulate, PhaseTimer& timer) {
  Counters& counters = collection_->counters();
  timer.next(Phase::kIndexPlan);
  Update& update = collection_->update();
  compute::Backend& backend = collection_->backend();
  update.open(inbox_, messages, bodies, owners_apply_divisor() ? 1 / divisor() : 1, posted_.steps,
              plan_, backend);
  if (weight_gradient_state_ != nullptr) {
    timer.next(Phase::kGradientExchange);
    exchange_weight_gradients(messages, bodies, backend);
  }
  timer.next(Phase::kUpdate);
  if (accumulate) {
    update.accumulate(backend);
  } else {
    take_step(update, backend, timer);
    counters.steps.fetch_add(1, std::memory_order_relaxed);
  }
}

void Lookup::exchange_weight_gradients(std::span<const comm::ConstBytes> messages,
                                       std::span<const comm::ConstBytes> bodies,
                                       compute::Backend& backend) {
  WeightGradientState& own = *weight_gradient_state_;
  own.products.compute(inbox_, messages, bodies, collection_->shards(), backend, *own.buffer);
  const auto products = collection_->exchange(Exchange::kWeightGradients, "backward", name_,
                                              own.products.messages(), own.buffer->owner());
  own.values = own.memory.resize_as<float>(static_cast<size_t>(batch_.ids()));
  own.gradients.assemble(routed_, batch_, own.received->open(products), backend, own.values.data());
  own.ready = true;
}

void Lookup::weight_gradient(const shardrec_tensor* out) {
  if (weight_gradient_state_ == nullptr || !weight_gradient_state_->ready) {
    core::fail(SHARDREC_INVALID_STATE,
               weight_gradient_state_ == nullptr
                   ? "the lookup has no gradients of weights: its option WEIGHT_GRADIENT is 0"
                   : "gradients of weights are there after backward, up to the next begin");
  }
  const std::span<float> values = weight_gradient_state_->values;
  compute::Backend& backend = collection_->backend();
  const auto view = core::vector_view<float>(out, "out", static_cast<int64_t>(values.size()),
                                             backend.caller_devices());
  OperationsScope operations(*collection_, stream_);
  operations.touches(out);
  backend.transfer().copy(static_cast<std::byte*>(static_cast<void*>(view.data())),
                          static_cast<const std::byte*>(static_cast<const void*>(values.data())),
                          values.size_bytes());
  operations.done();
}

void Lookup::take_step(Update& update, compute::Backend& backend, PhaseTimer& timer) {
  if (update.accumulated()) update.add_accumulated(backend);
  if (update.replicas_needed()) {
    std::atomic<int64_t>& bytes = collection_->counters().bytes_gradient;
    update.pack_replicas(backend, *replicas_buffer_);
    timer.next(Phase::kGradientExchange);
    count_bytes(update.replicas_messages(), bytes);
    const auto rows = collection_->exchange(Exchange::kReplicaRows, "backward", name_,
                                            update.replicas_messages(), replicas_buffer_->owner());
    update.add_replicas(rows, *replica_sums_buffer_);
    count_bytes(update.replicas_messages(), bytes);
    update.take_replicas(
        collection_->exchange(Exchange::kReplicaSums, "backward", name_, update.replicas_messages(),
                              replica_sums_buffer_->owner()),
        backend);
    timer.next(Phase::kUpdate);
  }
  if (update.statistics_needed()) {
    update.pack_statistics(backend, *statistics_buffer_);
    timer.next(Phase::kGradientExchange);
    update.add_statistics(collection_->exchange(Exchange::kStatistics, "backward", name_,
                                                update.statistics_messages(),
                                                statistics_buffer_->owner()));
    timer.next(Phase::kUpdate);
  }
  update.apply(backend);
  if (update.norms_needed()) {
    update.pack_norms(backend, *norms_buffer_);
    timer.next(Phase::kGradientExchange);
    const auto norms = collection_->exchange(Exchange::kNorms, "backward", name_,
                                             update.norms_messages(), norms_buffer_->owner());
    timer.next(Phase::kUpdate);
    update.rescale(norms, backend);
  }
  for (size_t s = 0; s < collection_->shards().size(); ++s) {
    const int32_t part = collection_->shards()[s].part();
    collection_->table_counters(collection_->layout().parts()[static_cast<size_t>(part)].table)
        .rows_updated.fetch_add(update.touched_rows(s), std::memory_order_relaxed);
  }
  update.drop_accumulated();
}

}  // namespace shardrec::embedding
