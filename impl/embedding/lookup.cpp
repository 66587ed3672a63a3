#include "embedding/lookup.h"

#include <atomic>
#include <optional>
#include <utility>

#include "core/float_mode.h"
#include "core/tensor.h"

namespace shardrec::embedding {
namespace {

const char* update_name(Finish how) {
  switch (how) {
    case Finish::kSkip:
      return "SHARDREC_UPDATE_SKIP";
    case Finish::kAccumulate:
      return "SHARDREC_UPDATE_ACCUMULATE";
    default:
      return "SHARDREC_UPDATE_APPLY";
  }
}

// As calls are named to other ranks.
const char* finish_name(Finish how) {
  switch (how) {
    case Finish::kSkip:
      return "skip";
    case Finish::kAccumulate:
      return "accumulate";
    default:
      return "backward";
  }
}

}  // namespace

Lookup::Lookup(std::shared_ptr<Collection> collection, const LookupOptions& options)
    : collection_(std::move(collection)),
      options_(options),
      place_(*collection_),
      forward_(collection_->context()),
      backward_(collection_->context(), options, collection_->update()),
      caller_output_(backend().memory()),
      input_(collection_->context(), options.weight_gradient),
      name_(collection_->next_lookup_name()) {
  if (forward_.looks_up_only()) input_.set_stays();
}

Lookup::~Lookup() {
  if (receives_) {
    collection_->give_up("backward");
    try {
      backward_wait();
    } catch (...) {  // nobody is left to hear of it
    }
  }
  if (state_ == State::kBegun) collection_->give_up("forward");
  if (state_ == State::kSent) {
    collection_->give_up("backward");
    end_step();  // nobody reads what was lent any more
  }
  release_input();
  finish_operations(backend());  // they read what peers share
}

void Lookup::set_stream(int64_t stream) {
  backend().follow_caller(stream);  // is it one?
  stream_ = stream;
}

void Lookup::begin(const BatchArguments& arguments) {
  collection_->check_before("begin");
  if (state_ == State::kBegun) {
    core::fail(SHARDREC_INVALID_STATE,
               "begin was called twice: call forward for the batch that has begun first");
  }
  if (state_ == State::kSent) {
    core::fail(
        SHARDREC_INVALID_STATE,
        "begin was called while the gradients of the lookup are under way: call backward first");
  }
  release_input();
  state_ = State::kIdle;
  backward_.drop_weight_gradient();
  const core::TraceScope call(collection_->counters().track, "begin");
  OperationsScope operations(backend(), stream_);
  for (const shardrec_tensor* given : {arguments.values, arguments.lengths, arguments.offsets,
                                       arguments.weights, arguments.inverse}) {
    operations.reads_given(given);
  }
  const PhaseTimer timer(collection_->counters(), Phase::kRoute);
  input_.write(arguments);
  operations.done();  // behind what is posted nothing may fail
  input_.post(name_);
  state_ = State::kBegun;
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

OutputShape Lookup::output_shape(int32_t output) {
  check_output(output);
  if (state_ == State::kIdle) {
    core::fail(SHARDREC_INVALID_STATE, "the shape of an output is known after begin only");
  }
  settle_input();
  return input_.output_shape(output);
}

void Lookup::settle_input() {
  if (!input_.is_pending()) return;
  try {
    input_.settle();
  } catch (...) {  // what has begun can be ended no more
    collection_->give_up("begin");
    throw;
  }
}

bool Lookup::has_size_of_batch(const shardrec_tensor* out) const {
  return out != nullptr && out->ndim == 2 && out->shape[0] == input_.batch().batch_size();
}

OutputView Lookup::output_view(int32_t output, const shardrec_tensor* tensor,
                               const char* what) const {
  const auto [rows, columns] = input_.output_shape(output);
  // A refused batch has no size to hold the caller to; it writes nothing.
  const shardrec_dtype dtype = collection_->options().output_dtype;
  const core::AnyMatrix view =
      core::any_matrix_view(tensor, what, dtype, input_.verdict().good() ? rows : core::kAnySize,
                            columns, backend().caller_devices());
  return {static_cast<std::byte*>(view.data), element_of(dtype), view.stride, view.device};
}

void Lookup::forward(int32_t output, const shardrec_tensor* out) {
  check_output(output);
  if (state_ == State::kIdle) {
    core::fail(SHARDREC_INVALID_STATE, "forward was called without begin");
  }
  collection_->check_before("forward");
  // A batch that is refused needs no output of its size: for another one, it is known first whether it is.
  if (!has_size_of_batch(out)) settle_input();
  const OutputView view = output_view(output, out, "out");
  OperationsScope operations(backend(), stream_);
  operations.touches(view.device.type);
  const auto [rows, columns] = input_.output_shape(output);
  const OutputView reached = caller_output_.matrix(view, rows, columns, false, backend());
  const size_t bytes = static_cast<size_t>(rows * columns) * compute::element_bytes(view.element);
  const auto give_back = [&] {
    CallerMemory::give_back(reached, view, rows, columns, backend());
    operations.done();
  };
  if (state_ != State::kBegun) {
    forward_.write_again(input_, output, reached, bytes);
    return give_back();
  }
  collection_->ordered().require_nothing_posted("forward");
  const core::TraceScope call(collection_->counters().track, "forward");
  std::optional<core::Error> refused;
  try {
    PhaseTimer timer(collection_->counters(), Phase::kInputExchange);
    const bool pending = input_.is_pending();
    if (pending) {
      backward_.fork_plan();
      forward_.look_up_pending(input_, output, reached, bytes, timer);
      backend().submit();
      timer.next(Phase::kInputExchange);
      input_.settle();
    }
    input_.post(name_);  // if begin has not
    refused = input_.receive();
    if (!refused) {
      if (!pending) backward_.fork_plan();
      forward_.run(input_, name_, output, reached, bytes, pending, timer);
      backward_.begin();
      state_ = State::kForwarded;
      loads_before_ = collection_->loads();
      input_.count_received();
      give_back();
    }
  } catch (...) {
    // Peers wait for this rank's sums: they must hear that none will come.
    collection_->give_up("forward");
    throw;
  }
  if (refused) {
    state_ = State::kIdle;
    throw core::Error(*refused);
  }
  backward_.plan_ahead(input_);
}

bool Lookup::all_done() const {
  if (state_ != State::kForwarded && state_ != State::kSent) {
    core::fail(SHARDREC_INVALID_STATE, "all_done is known after forward only");
  }
  return input_.inbox().all_done();
}

void Lookup::set_gradient(int32_t output, const shardrec_tensor* gradient) {
  check_output(output);
  if (state_ != State::kForwarded) {
    core::fail(SHARDREC_INVALID_STATE, state_ == State::kSent
                                           ? "set_gradient was called after send_gradients"
                                           : "set_gradient was called before forward");
  }
  OperationsScope operations(backend(), stream_);
  backward_.set_gradient(input_, output, output_view(output, gradient, "gradient"), operations);
  operations.done();
}

template <class Body>
void Lookup::in_step(Body body) {
  try {
    body();
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_INVALID_BATCH) collection_->give_up("backward");
    end_step();
    throw;
  } catch (...) {
    collection_->give_up("backward");
    end_step();
    throw;
  }
}

void Lookup::send_gradients(bool accumulate) {
  constexpr const char* kName = "send_gradients";
  if (state_ != State::kForwarded) {
    core::fail(SHARDREC_INVALID_STATE, state_ == State::kSent
                                           ? "send_gradients was called twice: call backward"
                                           : "send_gradients was called before forward");
  }
  collection_->check_before(kName);
  collection_->ordered().require_nothing_posted(kName);
  if (end_where_loaded()) refuse_loaded(kName);
  send(accumulate ? Finish::kAccumulate : Finish::kBackward, kName);
}

void Lookup::send(Finish how, const char* name) {
  const core::TraceScope call(collection_->counters().track, name);
  OperationsScope operations(backend(), stream_);
  backward_.touch_borrowed(operations);
  in_step([&] {
    backward_.post(input_, name_, how);
    operations.done();
  });
  state_ = State::kSent;
}

void Lookup::check_finish(Finish how) const {
  if (state_ == State::kForwarded) return;
  if (state_ != State::kSent) {
    core::fail(SHARDREC_INVALID_STATE, "backward was called before forward");
  }
  const Finish told = backward_.posted();
  if (how != told) {
    core::fail(
        SHARDREC_INVALID_STATE,
        core::sentence("backward was called with ", update_name(how),
                       " after send_gradients, which told the other ranks ", update_name(told)));
  }
}

bool Lookup::may_finish(Finish how, const char* name) {
  check_finish(how);
  if (state_ == State::kSent) {
    collection_->require_whole();
    return true;
  }
  collection_->check_before(name);
  collection_->ordered().require_nothing_posted(name);
  if (!end_where_loaded()) return true;
  if (how != Finish::kSkip) refuse_loaded(name);
  return false;
}

void Lookup::finish(Finish how, const char* name) {
  const bool sent = state_ == State::kSent;
  const core::TraceScope call(collection_->counters().track, name);
  const std::atomic<int64_t>& updates = collection_->counters().updates;
  const int64_t updates_before = updates.load(std::memory_order_relaxed);
  {
    OperationsScope operations(backend(), stream_);
    backward_.touch_borrowed(operations);
    in_step([&] {
      if (sent) {
        collection_->communicator().check_before(name);  // in here: it may have lent something
      } else {
        backward_.post(input_, name_, how);
      }
      backward_.receive(input_, name_, stream_);
      operations.done();
    });
    end_step();
  }
  const bool updated = updates.load(std::memory_order_relaxed) != updates_before;
  if (updated && collection_->follower() != nullptr) collection_->follower()->updated();
}

void Lookup::backward(Finish how) {
  const char* const name = finish_name(how);
  if (may_finish(how, name)) finish(how, name);
}

void Lookup::backward_begin(Finish how) {
  const char* const name = finish_name(how);
  if (!may_finish(how, name)) return;
  if (state_ != State::kSent) send(how, name);
  collection_->set_in_backward(true);
  try {
    worker_.start([this, how, name] {
      const core::DefaultFloatMode mode;
      finish(how, name);
    });
  } catch (...) {  // the gradients are sent: backward may still be called
    collection_->set_in_backward(false);
    throw;
  }
  receives_ = true;
}

void Lookup::backward_wait() {
  if (!std::exchange(receives_, false)) return;
  const auto end = [&] { collection_->set_in_backward(false); };
  try {
    worker_.wait();
  } catch (...) {
    end();
    throw;
  }
  end();
}

bool Lookup::end_where_loaded() noexcept {
  if (collection_->loads() == loads_before_) return false;
  end_step();
  return true;
}

void Lookup::refuse_loaded(const char* name) {
  core::fail(
      SHARDREC_INVALID_STATE,
      core::sentence(name,
                     " was called for a batch whose forward came before the tables were loaded: "
                     "its gradients are those of other weights. The batch is over; call begin"),
      {.operation = name});
}

void Lookup::release_input() noexcept {
  backward_.end_plan();
  input_.release();
}

void Lookup::end_step() noexcept {
  backward_.end();
  release_input();
  state_ = State::kIdle;
}

void Lookup::weight_gradient(const shardrec_tensor* out) {
  const auto values = backward_.weight_gradient();
  if (!values) {
    core::fail(SHARDREC_INVALID_STATE,
               options_.weight_gradient
                   ? "gradients of weights are there after backward, up to the next begin"
                   : "the lookup has no gradients of weights: its option WEIGHT_GRADIENT is 0");
  }
  const auto view = core::vector_view<float>(out, "out", static_cast<int64_t>(values->size()),
                                             backend().caller_devices());
  OperationsScope operations(backend(), stream_);
  operations.touches(out);
  backend().transfer().copy(static_cast<std::byte*>(static_cast<void*>(view.data())),
                            static_cast<const std::byte*>(static_cast<const void*>(values->data())),
                            values->size_bytes());
  operations.done();
}

}  // namespace shardrec::embedding
