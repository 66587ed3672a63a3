#include "embedding/lookup.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/tensor.h"

namespace shardrec::embedding {

namespace {

std::unique_ptr<WireCodec> codec_of(Collection& collection, shardrec_compression compression) {
  if (compression == SHARDREC_COMPRESSION_NONE) return nullptr;
  return std::make_unique<WireCodec>(collection.layout(), compression, collection.bodies());
}

}  // namespace

Lookup::Lookup(std::shared_ptr<Collection> collection, const LookupOptions& options)
    : collection_(std::move(collection)),
      options_(options),
      place_(*collection_),
      batch_(collection_->backend().memory()),
      routed_(collection_->layout(), options.weight_gradient, collection_->backend().memory()),
      input_views_(static_cast<size_t>(collection_->layout().ranks())),
      inbox_(collection_->layout(), collection_->bodies()),
      partial_sums_(collection_->layout()),
      assembly_(collection_->layout(), collection_->backend().memory()),
      direct_(collection_->layout()),
      plan_(collection_->layout(), collection_->backend()),
      packing_(collection_->layout()),
      output_codec_(codec_of(*collection_, collection_->options().forward_compression)),
      gradient_codec_(codec_of(*collection_, collection_->options().backward_compression)),
      caller_output_(collection_->backend().memory()) {
  for (int32_t g = 0; g < collection_->layout().output().outputs(); ++g) {
    gradients_.emplace_back(collection_->backend().memory());
  }
  if (options_.weight_gradient) {
    weight_gradient_state_ =
        std::make_unique<WeightGradientState>(collection_->layout(), collection_->bodies());
  }
  if (collection_->layout().sums_on_nodes()) {
    node_sums_ = std::make_unique<NodeSumState>(collection_->layout(), collection_->bodies());
  }
  posted_.steps.reserve(collection_->model().tables.size());
  comm::Communicator& communicator = collection_->communicator();
  input_channel_ = communicator.open_channel(comm::Purpose::kInput);
  routed_.set_deduplicates(collection_->options().deduplicate.value_or(
      communicator.ranks_in_process() < communicator.size()));
  name_ = collection_->next_lookup_name();  // last: nothing can fail any more
}

Lookup::~Lookup() {
  if (state_ == State::kBegun) collection_->communicator().fail("forward");
  if (state_ == State::kSent) {
    collection_->communicator().fail("backward");
    end_step();  // nobody reads what was lent any more
  }
  end_batch();
  collection_->finish_operations();  // they read what peers share
}

void Lookup::set_stream(int64_t stream) {
  collection_->backend().follow_caller(stream);  // is it one?
  stream_ = stream;
}

void Lookup::begin(const BatchArguments& arguments) {
  collection_->communicator().check_before("begin");
  if (state_ == State::kBegun) {
    core::fail(SHARDREC_INVALID_STATE,
               "begin was called twice: call forward for the batch that has begun first");
  }
  if (state_ == State::kSent) {
    core::fail(SHARDREC_INVALID_STATE,
               "begin was called while the gradients of the lookup are under way: call backward "
               "or accumulate first");
  }
  end_batch();
  state_ = State::kIdle;
  const core::TraceScope call(collection_->counters().track, "begin");
  OperationsScope operations(*collection_, stream_);
  for (const shardrec_tensor* given : {arguments.values, arguments.lengths, arguments.offsets,
                                       arguments.weights, arguments.inverse}) {
    operations.touches(given);
  }
  if (weight_gradient_state_ != nullptr) weight_gradient_state_->ready = false;
  PhaseTimer timer(collection_->counters(), Phase::kRoute);
  Outgoing& outgoing = outgoing_[turn_];
  if (outgoing.posted) {
    // Every reader let go of it before this rank could come here (it began the batch after).
    outgoing.posted = false;
    input_channel_->reclaim(outgoing.ticket);
  }
  verdict_ = batch_.fill(arguments, collection_->model(), collection_->backend());
  routed_.set_looked_up(collection_->counters().ids_received.load(std::memory_order_relaxed));
  verdict_ = routed_.route(batch_, verdict_, collection_->backend(), *outgoing.buffer);
  collection_->bodies().finish_writing();
  operations.done();  // behind what is posted nothing may fail
  const comm::Operation operation{
      .name = "begin", .kind = 1, .detail = name_, .deadline_kind = comm::DeadlineKind::kStep};
  outgoing.ticket = input_channel_->post(operation, routed_.messages(), outgoing.buffer->owner());
  outgoing.posted = true;
  turn_ = 1 - turn_;
  state_ = State::kBegun;

  Counters& counters = collection_->counters();
  counters.ids_sent.fetch_add(routed_.ids_sent(), std::memory_order_relaxed);
  const auto& features = collection_->model().features;
  for (size_t f = 0; f < features.size(); ++f) {
    const int64_t count = routed_.out_of_range(static_cast<int32_t>(f));
    if (count == 0) continue;
    collection_->table_counters(features[f].table)
        .ids_out_of_range.fetch_add(count, std::memory_order_relaxed);
  }
  count_bytes(routed_.messages(), counters.bytes_input);
}

void Lookup::check_output(int32_t output) const {
  const int32_t outputs = collection_->layout().output().outputs();
  if (output < 0 || output >= outputs) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("output ", output,
                              " does not exist: output 0 holds the pooled features, outputs 1 to ",
                              outputs - 1, " the sequences"),
               {.value = int64_t{output}, .limit = int64_t{outputs}});
  }
}

std::pair<int64_t, int64_t> Lookup::output_shape(int32_t output) const {
  check_output(output);
  if (state_ == State::kIdle) {
    core::fail(SHARDREC_INVALID_STATE, "the shape of an output is known after begin only");
  }
  const Layout& layout = collection_->layout();
  const int64_t rows =
      output == 0 ? batch_.batch_size()
                  : routed_.ids(layout.output().sequences[static_cast<size_t>(output) - 1]);
  return {verdict_.good() ? rows : 0, layout.width_of(output)};
}

OutputView Lookup::output_view(int32_t output, const shardrec_tensor* tensor,
                               const char* what) const {
  const auto [rows, columns] = output_shape(output);
  // A refused batch has no size to hold the caller to; it writes nothing.
  const shardrec_dtype dtype = collection_->options().output_dtype;
  const core::AnyMatrix view =
      core::any_matrix_view(tensor, what, dtype, verdict_.good() ? rows : core::kAnySize, columns,
                            collection_->backend().caller_devices());
  return {static_cast<std::byte*>(view.data), element_of(dtype), view.stride, view.device};
}

void Lookup::forward(int32_t output, const shardrec_tensor* out) {
  check_output(output);
  if (state_ == State::kIdle) {
    core::fail(SHARDREC_INVALID_STATE, "forward was called without begin");
  }
  collection_->communicator().check_before("forward");
  const OutputView view = output_view(output, out, "out");
  OperationsScope operations(*collection_, stream_);
  operations.touches(view.device.type);
  const auto [rows, columns] = output_shape(output);
  const OutputView reached =
      caller_output_.matrix(view, rows, columns, false, collection_->backend());
  const auto finish = [&] {
    assemble(output, reached);
    CallerMemory::give_back(reached, view, rows, columns, collection_->backend());
    operations.done();
  };
  if (state_ != State::kBegun) {
    if (output_epoch_ != collection_->times_let_go()) {
      core::fail(SHARDREC_INVALID_STATE,
                 "the output is gone: ask for it again before the next call that exchanges "
                 "anything on this collection");
    }
    {
      const PhaseTimer timer(collection_->counters(), Phase::kLookup);
      look_up_directly(output, reached);
    }
    finish();
    return;
  }
  collection_->require_nothing_posted("forward");
  const core::TraceScope call(collection_->counters().track, "forward");
  try {
    exchange_and_look_up(output, reached);
    finish();
  } catch (const core::Error&) {
    // Idle: what all ranks refuse alike. Else peers wait for this rank's sums: they must hear that
    // none will come.
    if (state_ != State::kIdle) collection_->communicator().fail("forward");
    throw;
  } catch (...) {
    collection_->communicator().fail("forward");
    throw;
  }
}

void Lookup::exchange_and_look_up(int32_t output, const OutputView& out) {
  Counters& counters = collection_->counters();
  PhaseTimer timer(counters, Phase::kInputExchange);
  const Outgoing& outgoing = outgoing_[1 - turn_];
  input_channel_->receive(outgoing.ticket, input_views_);
  holds_input_ = true;
  inbox_.open(input_views_);
  if (const int rank = inbox_.differing_rank(); rank >= 0) {
    end_batch();
    state_ = State::kIdle;
    core::fail(SHARDREC_MISMATCH,
               core::sentence("the lookup of rank ", rank,
                              " has another option WEIGHT_GRADIENT than rank 0's: it must be the "
                              "same on all ranks"),
               {.rank = int64_t{rank}, .operation = "forward"});
  }
  if (inbox_.refused_rank() >= 0) {
    const core::Error error = verdict_error(inbox_.verdict(inbox_.refused_rank()),
                                            inbox_.refused_rank(), "forward", collection_->model());
    end_batch();
    state_ = State::kIdle;
    throw core::Error(error);
  }
  collection_->settle();
  timer.next(Phase::kLookup);
  // Bags that stand for several samples need the assembly; what is compressed is so everywhere.
  direct_.open(!batch_.expansion().present() && output_codec_ == nullptr);
  partial_sums_.compute(inbox_, direct_.blocks(), collection_->shards(), collection_->backend(),
                        *output_buffer_);
  exchange_outputs(output, out, timer);
  output_epoch_ = collection_->times_let_go();
  for (Gradient& gradient : gradients_) gradient.given = false;
  gradients_laid_out_ = false;
  state_ = State::kForwarded;

  count_lookups();
}

void Lookup::exchange_outputs(int32_t output, const OutputView& out, PhaseTimer& timer) {
  compute::Backend& backend = collection_->backend();
  auto messages = partial_sums_.messages();
  std::shared_ptr<const void> owner = output_buffer_->owner();
  if (output_codec_ != nullptr) {
    partial_sums_.compute_own(backend);
    messages = output_codec_->encode_outputs(inbox_, partial_sums_.bodies(), backend);
    owner = output_codec_->owner();
  }
  timer.next(Phase::kOutputExchange);
  collection_->post(Exchange::kOutput, "forward", name_, messages, std::move(owner));
  timer.next(Phase::kLookup);
  if (output_codec_ == nullptr) partial_sums_.compute_own(backend);
  look_up_directly(output, out);
  timer.next(Phase::kOutputExchange);
  const auto received = collection_->receive();
  if (node_sums_ != nullptr) {
    exchange_node_sums(received);
  } else {
    auto bodies = received_outputs_->open(received);
    if (output_codec_ != nullptr) {
      bodies = output_codec_->decode_outputs(routed_, bodies, backend, *output_buffer_);
    }
    assembly_.open(routed_, direct_.blocks(), bodies);
  }
  count_bytes(messages, collection_->counters().bytes_output);
}

void Lookup::exchange_node_sums(std::span<const comm::ConstBytes> messages) {
  NodeSums& sums = node_sums_->sums;
  compute::Backend& backend = collection_->backend();
  const auto bodies = received_outputs_->open(messages, sums.heads(messages));
  assembly_.open(routed_, direct_.blocks(), sums.open(messages, bodies, backend));
  sums.compute(backend, *node_sums_->buffer);
  const auto views = collection_->exchange(Exchange::kNodeSums, "forward", name_, sums.messages(),
                                           node_sums_->buffer->owner());
  assembly_.open_sums(routed_, node_sums_->received->open(views), backend);
  count_bytes(sums.messages(), collection_->counters().bytes_output);
}

size_t Lookup::output_bytes(int32_t output) const {
  const auto [rows, columns] = output_shape(output);
  return static_cast<size_t>(rows * columns) *
         compute::element_bytes(element_of(collection_->options().output_dtype));
}

// The boxes of this rank that nobody else adds to, straight into the output.
void Lookup::look_up_directly(int32_t output, const OutputView& out) {
  direct_.compute(routed_, inbox_, collection_->shards(), output, collection_->backend(), out,
                  output_bytes(output));
}

void Lookup::assemble(int32_t output, const OutputView& out) {
  const PhaseTimer timer(collection_->counters(), Phase::kOutputExchange);
  assembly_.assemble(routed_, batch_.expansion(), output, collection_->backend(), out);
}

bool Lookup::all_done() const {
  if (state_ != State::kForwarded && state_ != State::kSent) {
    core::fail(SHARDREC_INVALID_STATE, "all_done is known after forward only");
  }
  return inbox_.all_done();
}

float Lookup::divisor() const {
  const CollectionOptions& options = collection_->options();
  switch (options.divisor) {
    case SHARDREC_DIVISOR_NONE:
      return 1;
    case SHARDREC_DIVISOR_CUSTOM:
      return static_cast<float>(options.divisor_value);
    case SHARDREC_DIVISOR_SAMPLES:
      return batch_.batch_size() == 0
                 ? 1.0F
                 : static_cast<float>(static_cast<double>(inbox_.global_batch()) /
                                      static_cast<double>(batch_.batch_size()));
    default:
      return static_cast<float>(collection_->layout().ranks());
  }
}

// The same on all ranks. By a power of two that leaves nothing of a gradient out of range.
bool Lookup::owners_apply_divisor() const {
  if (options_.weight_gradient || collection_->options().divisor == SHARDREC_DIVISOR_SAMPLES) {
    return false;
  }
  int exponent = 0;
  return std::frexp(divisor(), &exponent) == 0.5F && std::abs(exponent) < 64;
}

void Lookup::set_gradient(int32_t output, const shardrec_tensor* gradient) {
  check_output(output);
  if (state_ != State::kForwarded) {
    core::fail(SHARDREC_INVALID_STATE, state_ == State::kSent
                                           ? "set_gradient was called after send_gradients"
                                           : "set_gradient was called before forward");
  }
  const OutputView view = output_view(output, gradient, "gradient");
  Gradient& own = gradients_[static_cast<size_t>(output)];
  if (options_.borrow) {
    own.borrowed = view;
  } else {
    own.given = false;  // memory may run out half way
    OperationsScope operations(*collection_, stream_);
    operations.touches(view.device.type);
    pack_gradient(output, view);
    operations.done();
  }
  own.given = true;
}

int32_t Lookup::missing_gradient() const {
  for (size_t g = 0; g < gradients_.size(); ++g) {
    const auto output = static_cast<int32_t>(g);
    const auto [rows, columns] = output_shape(output);
    if (!gradients_[g].given && rows != 0 && columns != 0) return output;
  }
  return -1;
}

void Lookup::lay_out_gradients() {
  if (gradients_laid_out_) return;
  bool scaled = divisor() != 1;
  const plan::Model& model = collection_->model();
  for (size_t t = 0; t < model.tables.size(); ++t) {
    scaled = scaled || model.optimizer_of(static_cast<int32_t>(t)).max_gradient != 0;
  }
  const bool unscaled = options_.weight_gradient && scaled;
  const bool lends = options_.borrow && !options_.weight_gradient &&
                     (divisor() == 1 || owners_apply_divisor()) && !batch_.expansion().present() &&
                     collection_->options().output_dtype == SHARDREC_FLOAT32 &&
                     gradient_codec_ == nullptr;
  packing_.lay_out(routed_, unscaled, owners_apply_divisor(), lends,
                   lends && lends_to_peers() ? &gradient_memory_->lending : nullptr,
                   gradient_buffer_);
  gradients_laid_out_ = true;
}

// A peer's operations reach what this rank's reach only where that is the memory of one host.
bool Lookup::lends_to_peers() const {
  return collection_->communicator().reads_in_place() && collection_->backend().reaches_host();
}

void Lookup::pack_gradient(int32_t output, const OutputView& gradient) {
  const PhaseTimer timer(collection_->counters(), Phase::kGradient);
  lay_out_gradients();
  compute::Backend& backend = collection_->backend();
  const auto [rows, columns] = output_shape(output);
  const OutputView reached = gradients_[static_cast<size_t>(output)].reached.matrix(
      gradient, rows, columns, true, backend);
  packing_.pack(routed_, batch_.expansion(), output, reached, divisor(), backend);
}

void Lookup::touch_borrowed(OperationsScope& operations) const {
  for (const Gradient& gradient : gradients_) {
    if (options_.borrow && gradient.given) operations.touches(gradient.borrowed.device.type);
  }
}

void Lookup::end_batch() noexcept {
  if (!holds_input_) return;
  holds_input_ = false;
  try {
    collection_->bodies().finish_reading();
  } catch (...) {  // the device has failed: what was read there is of no use
    collection_->finish_operations();
  }
  input_channel_->release(outgoing_[1 - turn_].ticket);
}

}  // namespace shardrec::embedding
