#include "embedding/backward/backward.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "embedding/backward/replica_agreement.h"

namespace shardrec::embedding {

Backward::Backward(const StepContext& context, const LookupOptions& options, Update& update)
    : context_(context),
      options_(options),
      update_(update),
      packing_(context.layout),
      plan_(context.layout, context.backend()),
      exchange_(context.make_exchange(ExchangeKind::kGradient, "backward")),
      codec_(make_codec(context.layout, context.options.backward_compression, context.bodies,
                        context.counters.saturated)),
      lent_(std::make_shared<Lent>()),
      lent_number_(std::shared_ptr<Lending>(lent_, &lent_->lending)),
      lent_to_here_(context.layout.ranks(), context.layout.rank()) {
  for (int32_t g = 0; g < context.layout.output().outputs(); ++g) {
    gradients_.emplace_back(context.backend().memory());
  }
  posted_.steps.reserve(context.model().tables.size());
  if (options.weight_gradient) weight_gradients_ = std::make_unique<WeightGradientState>(context);
}

// plans_ahead_ is still set where the batch before was refused.
void Backward::fork_plan() {
  plans_ahead_ = (std::exchange(trains_, false) || plans_ahead_) && plan_.fork();
}

void Backward::plan_ahead(const InputExchange& input) noexcept {
  if (!std::exchange(plans_ahead_, false)) return;
  // No phase: the clock of operations counts what backward's wait for.
  const core::TraceScope trace(context_.counters.track,
                               kPhaseNames[static_cast<size_t>(Phase::kIndexPlan)]);
  try {
    update_.group(input.inbox(), context_.settings.step_after(context_.counters.steps.load()),
                  plan_);
  } catch (...) {  // backward says why
    return;
  }
}

void Backward::begin() {
  for (Gradient& gradient : gradients_) {
    gradient.given = false;
    gradient.finite.clear();
  }
  laid_out_ = false;
}

Divisors Backward::divisors(const InputExchange& input) const {
  const Layout& layout = context_.layout;
  const Divisor of_all = divisor(input, layout.ranks(), input.inbox().global_batch());
  if (layout.groups().exact) return {.cut = of_all, .replicated = of_all};
  return {.cut = divisor(input, layout.groups().size, input.inbox().group_batch()),
          .replicated = of_all};
}

Divisor Backward::divisor(const InputExchange& input, int ranks, int64_t samples) const {
  const CollectionOptions& options = context_.options;
  const int64_t batch_size = input.batch().batch_size();
  Divisor chosen;
  switch (options.divisor) {
    case SHARDREC_DIVISOR_NONE:
      break;
    case SHARDREC_DIVISOR_CUSTOM: {
      // What a sharding group is to be divided by: all of them together by so many times that.
      const int groups = ranks / context_.layout.groups().size;
      chosen.value = static_cast<float>(options.divisor_value * groups);
      break;
    }
    case SHARDREC_DIVISOR_SAMPLES:
      if (batch_size == 0) return chosen;
      chosen.value =
          static_cast<float>(static_cast<double>(samples) / static_cast<double>(batch_size));
      return chosen;
    default:
      chosen.value = static_cast<float>(ranks);
  }
  // The same on all ranks. By a power of two that leaves nothing of a gradient out of range.
  int exponent = 0;
  chosen.by_owner = !options_.weight_gradient && std::frexp(chosen.value, &exponent) == 0.5F &&
                    std::abs(exponent) < 64;
  return chosen;
}

void Backward::set_gradient(const InputExchange& input, int32_t output, const OutputView& gradient,
                            OperationsScope& operations) {
  Gradient& own = gradients_[static_cast<size_t>(output)];
  if (options_.borrow) {
    own.borrowed = gradient;
  } else {
    own.given = false;  // memory may run out half way
    operations.touches(gradient.device.type);
    look_through(input, output, gradient);
    pack(input, output, gradient);
  }
  own.given = true;
}

void Backward::touch_borrowed(OperationsScope& operations) const {
  for (const Gradient& gradient : gradients_) {
    if (options_.borrow && gradient.given) operations.touches(gradient.borrowed.device.type);
  }
}

int32_t Backward::missing_gradient(const InputExchange& input) const {
  for (size_t g = 0; g < gradients_.size(); ++g) {
    const auto output = static_cast<int32_t>(g);
    if (!gradients_[g].given && input.output_shape(output).elements() != 0) return output;
  }
  return -1;
}

void Backward::look_through(const InputExchange& input, int32_t output,
                            const OutputView& gradient) {
  if (context_.options.non_finite == SHARDREC_NON_FINITE_ALLOW) return;
  const auto [rows, columns] = input.output_shape(output);
  gradients_[static_cast<size_t>(output)].finite.look_through(gradient, rows, columns,
                                                              context_.backend());
}

Verdict Backward::non_finite_at(int32_t output, int64_t position, int64_t columns) const {
  const int64_t column = position % columns;
  const plan::OutputLayout& layout = context_.layout.output();
  int32_t feature = -1;
  for (size_t f = 0; f < layout.output.size(); ++f) {
    if (layout.output[f] == output && layout.column[f] <= column) {
      feature = static_cast<int32_t>(f);  // columns ascend with features
    }
  }
  return {.defect = Defect::kNonFinite,
          .argument = Argument::kGradient,
          .feature = feature,
          .position = position / columns,
          .value = column,
          .limit = output};
}

Verdict Backward::non_finite(const InputExchange& input) {
  for (size_t g = 0; g < gradients_.size(); ++g) {
    const Gradient& gradient = gradients_[g];
    if (options_.borrow && gradient.given) {
      look_through(input, static_cast<int32_t>(g), gradient.borrowed);
    }
  }
  // From the last search on: who waits for it need not wait for those before it.
  Verdict found;
  for (size_t g = gradients_.size(); g-- != 0;) {
    const auto output = static_cast<int32_t>(g);
    const int64_t position = gradients_[g].finite.first();
    if (position < 0) continue;
    found = non_finite_at(output, position, input.output_shape(output).columns);
  }
  if (found.good()) return input.batch().non_finite();  // counted by begin
  const int32_t table = context_.model().features[static_cast<size_t>(found.feature)].table;
  context_.counters.tables[static_cast<size_t>(table)].non_finite.fetch_add(
      1, std::memory_order_relaxed);
  return found;
}

// A peer's operations reach what this rank's reach only where that is the memory of one host.
Lends Backward::lends_to() const {
  return context_.communicator.reads_in_place() && context_.backend().reaches_host()
             ? Lends::kToProcess
             : Lends::kToItself;
}

void Backward::lay_out(const InputExchange& input) {
  if (laid_out_) return;
  const Divisors by = divisors(input);
  bool scaled = by.cut.value != 1 || by.replicated.value != 1;
  const plan::Model& model = context_.model();
  for (size_t t = 0; t < model.tables.size(); ++t) {
    scaled = scaled || model.optimizer_of(static_cast<int32_t>(t)).max_gradient != 0;
  }
  const auto may_lend = [](const Divisor& one) { return one.value == 1 || one.by_owner; };
  const bool lends = options_.borrow && !options_.weight_gradient &&
                     (may_lend(by.cut) || may_lend(by.replicated)) &&
                     !input.batch().expansion().present() &&
                     context_.options.output_dtype == SHARDREC_FLOAT32 && codec_ == nullptr;
  const Loan loan{.lends = lends ? lends_to() : Lends::kNothing,
                  .lending = &lent_->lending,
                  .number = lent_number_.value()};
  packing_.lay_out(input.routed(), options_.weight_gradient && scaled, by, loan,
                   exchange_.buffer());
  laid_out_ = true;
}

void Backward::pack(const InputExchange& input, int32_t output, const OutputView& gradient) {
  const PhaseTimer timer(context_.counters, Phase::kGradient);
  lay_out(input);
  const auto [rows, columns] = input.output_shape(output);
  const OutputView reached = gradients_[static_cast<size_t>(output)].reached.matrix(
      gradient, rows, columns, true, context_.backend());
  packing_.pack(input.routed(), input.batch().expansion(), output, reached, context_.backend());
}

bool Backward::write(const InputExchange& input, Finish how) {
  const int32_t missing = how == Finish::kSkip ? -1 : missing_gradient(input);
  const Verdict bad = how == Finish::kSkip || missing >= 0 ? Verdict{} : non_finite(input);
  const bool packs = how != Finish::kSkip && missing < 0 && bad.good();
  if (how == Finish::kSkip) {
    packing_.decline(GradientVerdict::kSkip, {}, exchange_.buffer());
  } else if (missing >= 0) {
    packing_.decline(
        GradientVerdict::kError,
        {.defect = Defect::kNoGradient, .argument = Argument::kGradient, .value = missing},
        exchange_.buffer());
  } else if (!bad.good()) {
    const bool skips = context_.options.non_finite == SHARDREC_NON_FINITE_SKIP;
    packing_.decline(skips ? GradientVerdict::kSkip : GradientVerdict::kError, bad,
                     exchange_.buffer());
  } else {
    lay_out(input);
    for (size_t g = 0; g < gradients_.size(); ++g) {
      const Gradient& gradient = gradients_[g];
      // One that was not given has no elements; but bags that no sample uses have rows.
      if (options_.borrow || !gradient.given) {
        pack(input, static_cast<int32_t>(g), gradient.given ? gradient.borrowed : OutputView{});
      }
    }
  }
  packing_.seal(how == Finish::kAccumulate,
                context_.settings.fingerprint(context_.counters.steps.load()));
  return packs;
}

void Backward::post(const InputExchange& input, uint64_t lookup, Finish how) {
  posted_.packed = write(input, how);
  posted_.how = how;
  trains_ = how != Finish::kSkip;
  const auto steps = context_.settings.step_after(context_.counters.steps.load());
  posted_.steps.assign(steps.begin(), steps.end());
  const PhaseTimer timer(context_.counters, Phase::kGradientExchange);
  // Not settle(): peers let go of this rank's outputs when they come to their own gradients, and
  // may still compute those. What was sent is left alone until it is reclaimed.
  context_.ordered.let_go();
  lent_->lending.lend();
  if (codec_ != nullptr && posted_.packed) {
    exchange_.post(lookup,
                   codec_->encode_gradients(input.routed(), packing_.messages(), packing_.bodies(),
                                            context_.backend()),
                   codec_->keep_alive());
  } else {
    packing_.publish(exchange_.buffer());
    lent_->messages = exchange_.buffer().keep_alive();
    exchange_.post(lookup, packing_.messages(), lent_);
  }
}

void Backward::receive(const InputExchange& input, uint64_t lookup, int64_t stream) {
  PhaseTimer timer(context_.counters,
                   posted_.packed ? Phase::kIndexPlan : Phase::kGradientExchange);
  if (posted_.packed) {  // while they travel
    update_.group(input.inbox(), posted_.steps, plan_);
    plan_.join();
    timer.next(Phase::kGradientExchange);
  }
  const auto messages = exchange_.receive();
  context_.ordered
      .reclaim();  // all ranks have posted this exchange, and let go of earlier ones before
  if (!all_apply(messages)) return;
  auto bodies = exchange_.bodies(update_.gradient_heads());
  if (codec_ != nullptr) {
    bodies = codec_->decode_gradients(input.inbox(), messages, bodies, context_.backend(),
                                      exchange_.buffer());
  }
  {
    const Reading reading(lent_to_here_, messages, context_.communicator);
    // On what is lent: the operations end before the reading.
    OperationsScope operations(context_.backend(), stream);
    if (any_lent(messages)) operations.touches(SHARDREC_DEVICE_CPU);
    apply(input, lookup, messages, bodies, timer);
    operations.done();
  }
  // The caller may change its gradients when this returns: the peers must have read them.
  timer.next(Phase::kGradientExchange);
  if (any_lent(messages)) context_.ordered.settle();
  exchange_.count_sent(context_.counters.bytes_gradient);
}

bool Backward::all_apply(std::span<const comm::ConstBytes> messages) const {
  const GradientDecision decision =
      decide(messages, context_.layout.rank(), context_.communicator.reads_in_place());
  const bool applies = decision.verdict == GradientVerdict::kApply;
  // Of an error too: the other replicas wait for this one.
  const bool all = context_.replicas == nullptr ? applies : context_.replicas->all_apply(applies);
  if (decision.verdict == GradientVerdict::kError) {
    throw verdict_error(decision.defect, decision.rank, "backward", context_.model());
  }
  return all;
}

void Backward::apply(const InputExchange& input, uint64_t lookup,
                     std::span<const comm::ConstBytes> messages,
                     std::span<const comm::ConstBytes> bodies, PhaseTimer& timer) {
  timer.next(Phase::kIndexPlan);
  update_.open(input.inbox(), messages, bodies, lent_to_here_.blocks(), divisors(input),
               posted_.steps, plan_,
               posted_.how == Finish::kAccumulate ? GradientUse::kKeep : GradientUse::kStep);
  if (weight_gradients_ != nullptr) {
    timer.next(Phase::kGradientExchange);
    exchange_weight_gradients(input, lookup, messages, bodies);
  }
  timer.next(Phase::kUpdate);
  if (posted_.how == Finish::kAccumulate) {
    update_.accumulate();
  } else {
    update_.take_step(lookup, timer);
    context_.counters.steps.fetch_add(1, std::memory_order_relaxed);
    context_.counters.updates.fetch_add(1, std::memory_order_relaxed);
  }
}

void Backward::exchange_weight_gradients(const InputExchange& input, uint64_t lookup,
                                         std::span<const comm::ConstBytes> messages,
                                         std::span<const comm::ConstBytes> bodies) {
  WeightGradientState& own = *weight_gradients_;
  compute::Backend& backend = context_.backend();
  own.products.compute(input.inbox(), messages, bodies, context_.shards, backend,
                       own.exchange.buffer());
  own.exchange.post(lookup, own.products.messages());
  own.exchange.receive();
  own.values = own.memory.resize_as<float>(static_cast<size_t>(input.batch().ids()));
  own.gradients.assemble(input.routed(), input.batch(), own.exchange.bodies(), backend,
                         own.values.data());
  own.ready = true;
}

void Backward::end() noexcept {
  // Where the step failed, peers that read them hear of it in their next exchange, at the latest.
  lent_->lending.take_back();
}

std::optional<std::span<const float>> Backward::weight_gradient() const {
  if (weight_gradients_ == nullptr || !weight_gradients_->ready) return std::nullopt;
  return weight_gradients_->values;
}

}  // namespace shardrec::embedding
