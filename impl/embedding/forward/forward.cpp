#include "embedding/forward/forward.h"

#include "core/error.h"

namespace shardrec::embedding {

Forward::Forward(const StepContext& context)
    : context_(context),
      partial_sums_(context.layout),
      direct_(context.layout),
      exchange_(context.make_exchange(ExchangeKind::kOutput, "forward")),
      codec_(make_codec(context.layout, context.options.forward_compression, context.bodies,
                        context.counters.saturated)),
      assembly_(context.layout, context.scratch, context.backend().memory()) {
  if (context.layout.sums_on_nodes()) on_nodes_ = std::make_unique<OnNodes>(context);
}

void Forward::look_up_pending(const InputExchange& input, int32_t output, const OutputView& out,
                              size_t bytes, PhaseTimer& timer) {
  timer.next(Phase::kLookup);
  direct_.open(true);
  direct_.compute_pending(input.routed(), context_.shards, output, context_.backend(), out, bytes);
}

void Forward::run(const InputExchange& input, uint64_t lookup, int32_t output,
                  const OutputView& out, size_t bytes, bool looked_up, PhaseTimer& timer) {
  context_.ordered.settle();
  timer.next(Phase::kLookup);
  // Bags that stand for several samples need the assembly; what is compressed is so everywhere.
  direct_.open(!input.batch().expansion().present() && codec_ == nullptr);
  partial_sums_.compute(input.inbox(), direct_.blocks(), context_.shards, context_.backend(),
                        exchange_.buffer());
  exchange_sums(input, lookup, output, out, bytes, looked_up, timer);
  epoch_ = context_.ordered.times_let_go();
  assemble(input, output, out);
}

void Forward::write_again(const InputExchange& input, int32_t output, const OutputView& out,
                          size_t bytes) {
  if (epoch_ != context_.ordered.times_let_go()) {
    core::fail(SHARDREC_INVALID_STATE,
               "the output is gone: ask for it again before the next call that exchanges anything "
               "on this collection");
  }
  PhaseTimer timer(context_.counters, Phase::kLookup);
  look_up_directly(input, output, out, bytes);
  timer.next(Phase::kOutputExchange);
  assemble(input, output, out);
}

void Forward::exchange_sums(const InputExchange& input, uint64_t lookup, int32_t output,
                            const OutputView& out, size_t bytes, bool looked_up,
                            PhaseTimer& timer) {
  compute::Backend& backend = context_.backend();
  if (codec_ != nullptr) {
    partial_sums_.compute_own(backend);
    const auto coded = codec_->encode_outputs(input.inbox(), partial_sums_.bodies(), backend);
    timer.next(Phase::kOutputExchange);
    exchange_.post(lookup, coded, codec_->keep_alive());
    timer.next(Phase::kLookup);
  } else {
    timer.next(Phase::kOutputExchange);
    exchange_.post(lookup, partial_sums_.messages());
    timer.next(Phase::kLookup);
    partial_sums_.compute_own(backend);
  }
  if (!looked_up) look_up_directly(input, output, out, bytes);
  timer.next(Phase::kOutputExchange);
  const auto messages = exchange_.receive();
  if (on_nodes_ != nullptr) {
    const auto bodies = exchange_.bodies(on_nodes_->sums.heads(messages));
    assembly_.open(input.routed(), direct_.blocks(),
                   on_nodes_->sums.open(messages, bodies, backend));
    exchange_node_sums(input, lookup);
  } else {
    auto bodies = exchange_.bodies();
    if (codec_ != nullptr) {
      bodies = codec_->decode_outputs(input.routed(), bodies, backend, exchange_.buffer());
    }
    assembly_.open(input.routed(), direct_.blocks(), bodies);
  }
  exchange_.count_sent(context_.counters.bytes_output);
}

void Forward::exchange_node_sums(const InputExchange& input, uint64_t lookup) {
  NodeSums& sums = on_nodes_->sums;
  Exchange& exchange = on_nodes_->exchange;
  sums.compute(context_.backend(), exchange.buffer());
  exchange.post(lookup, sums.messages());
  exchange.receive();
  assembly_.open_sums(input.routed(), exchange.bodies(), context_.backend());
  exchange.count_sent(context_.counters.bytes_output);
}

void Forward::look_up_directly(const InputExchange& input, int32_t output, const OutputView& out,
                               size_t bytes) {
  direct_.compute(input.routed(), input.inbox(), context_.shards, output, context_.backend(), out,
                  bytes);
}

void Forward::assemble(const InputExchange& input, int32_t output, const OutputView& out) {
  assembly_.assemble(input.routed(), input.batch().expansion(), output, context_.backend(), out);
}

}  // namespace shardrec::embedding
