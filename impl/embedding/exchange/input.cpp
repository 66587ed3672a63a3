#include "embedding/exchange/input.h"

#include "core/error.h"
#include "embedding/batch/operations_scope.h"

namespace shardrec::embedding {

InputExchange::InputExchange(const StepContext& context, bool weight_gradient)
    : context_(context),
      outgoing_{{context.bodies.make_buffer()}, {context.bodies.make_buffer()}},
      batch_(context.backend().memory()),
      routed_(context.layout, weight_gradient, context.scratch, context.backend().memory()),
      views_(static_cast<size_t>(context.layout.ranks())),
      inbox_(context.layout, context.bodies, context.scratch) {
  comm::Communicator& communicator = context.communicator;
  channel_ =
      context.bodies.over(communicator.open_channel(comm::Purpose::kInput), comm::Purpose::kInput);
  routed_.set_deduplicates(
      context.options.deduplicate.value_or(communicator.ranks_in_process() < communicator.size()));
}

void InputExchange::write(const BatchArguments& arguments) {
  Outgoing& outgoing = outgoing_[turn_];
  is_posted_ = false;
  if (outgoing.posted) {
    // Every reader let go of it before this rank could come here (it began the batch after).
    outgoing.posted = false;
    channel_->reclaim(outgoing.ticket);
  }
  routed_.set_looked_up(context_.counters.ids_received.load(std::memory_order_relaxed));
  batch_.set_non_finite(context_.options.non_finite);
  verdict_ = routed_.route(batch_, arguments, context_.backend(), *outgoing.buffer);
  batch_.release_given();
  if (!is_pending()) context_.bodies.finish_writing();
}

void InputExchange::settle() {
  if (!is_pending()) return;
  verdict_ = routed_.settle(batch_, context_.backend(), *outgoing_[turn_].buffer);
  context_.bodies.finish_writing();
}

void InputExchange::post(uint64_t lookup) {
  if (is_posted_ || is_pending()) return;
  Outgoing& outgoing = outgoing_[turn_];
  const comm::Operation operation{
      .name = "begin", .kind = 1, .detail = lookup, .deadline_kind = comm::DeadlineKind::kStep};
  outgoing.ticket = channel_->post(operation, routed_.messages(), outgoing.buffer->keep_alive());
  outgoing.posted = true;
  is_posted_ = true;
  turn_ = 1 - turn_;
  count_sent();
}

OutputShape InputExchange::output_shape(int32_t output) const {
  const Layout& layout = context_.layout;
  const int64_t rows =
      output == 0 ? batch_.batch_size()
                  : routed_.ids(layout.output().sequences[static_cast<size_t>(output) - 1]);
  return {verdict_.good() ? rows : 0, layout.width_of(output)};
}

void InputExchange::count_sent() {
  Counters& counters = context_.counters;
  counters.ids_sent.fetch_add(routed_.ids_sent(), std::memory_order_relaxed);
  const auto& features = context_.model().features;
  for (size_t f = 0; f < features.size(); ++f) {
    const int64_t count = routed_.out_of_range(static_cast<int32_t>(f));
    if (count == 0) continue;
    counters.tables[static_cast<size_t>(features[f].table)].ids_out_of_range.fetch_add(
        count, std::memory_order_relaxed);
  }
  if (const Verdict& found = batch_.non_finite(); !found.good()) {
    counters.tables[static_cast<size_t>(features[static_cast<size_t>(found.feature)].table)]
        .non_finite.fetch_add(1, std::memory_order_relaxed);
  }
  counters.bytes_input.fetch_add(bytes_to_others(routed_.messages(), context_.layout.rank()),
                                 std::memory_order_relaxed);
}

std::optional<core::Error> InputExchange::receive() {
  channel_->receive(outgoing_[1 - turn_].ticket, views_);
  holds_views_ = true;
  inbox_.open(views_, routed_.local_blocks());
  if (const int rank = inbox_.differing_rank(); rank >= 0) {
    release();
    return core::Error(
        SHARDREC_DISAGREEMENT,
        core::sentence(
            "the lookup of rank ", rank,
            " has another option WEIGHT_GRADIENT than rank 0's: it must be the same on all"
            " ranks"),
        {.rank = int64_t{rank}, .operation = "forward"});
  }
  if (const int rank = inbox_.refused_rank(); rank >= 0) {
    core::Error refused = verdict_error(inbox_.verdict(rank), rank, "forward", context_.model());
    release();
    return refused;
  }
  return std::nullopt;
}

void InputExchange::count_received() {
  const Layout& layout = context_.layout;
  Counters& counters = context_.counters;
  counters.ids_received.fetch_add(inbox_.ids_received(), std::memory_order_relaxed);
  const auto hear = [&](int rank, int64_t ids) {
    counters.looked_up[static_cast<size_t>(rank)].store(ids, std::memory_order_relaxed);
  };
  const auto blocks = layout.blocks_of(layout.rank());
  for (int source = 0; source < layout.ranks(); ++source) {
    const auto received = inbox_.blocks(source);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
      if (received[b].ids == 0 || part.use == PartUse::kUpdates) continue;
      const int32_t table = part.table;
      counters.tables[static_cast<size_t>(table)].ids_looked_up.fetch_add(
          received[b].ids, std::memory_order_relaxed);
    }
    if (source != layout.rank()) hear(source, inbox_.looked_up(source));
  }
  hear(layout.rank(), routed_.looked_up());  // as the others, up to the batch before
}

void InputExchange::release() noexcept {
  if (!holds_views_) return;
  holds_views_ = false;
  try {
    context_.bodies.finish_reading();
  } catch (...) {  // the device has failed: what was read there is of no use
    finish_operations(context_.backend());
  }
  channel_->release(outgoing_[1 - turn_].ticket);
}

}  // namespace shardrec::embedding
