#include "dense/ddp/reducer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/start_thread.h"
#include "core/tensor.h"

namespace shardrec::dense {
namespace {

constexpr comm::Operation kRecord{.name = "ddp: order of buckets", .kind = 5};
constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

std::vector<int32_t> reverse_order(size_t parameters) {
  std::vector<int32_t> order(parameters);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

comm::PipelinedChannel open_channel(comm::Communicator& communicator, BucketMemory& memory) {
  return comm::PipelinedChannel(memory.bodies().over(
      communicator.open_channel(comm::Purpose::kDense), comm::Purpose::kDense));
}

}  // namespace

Reducer::Reducer(std::shared_ptr<comm::Communicator> communicator, comm::Collectives& control,
                 std::shared_ptr<BucketMemory> memory, const ReducerOptions& options,
                 std::vector<ReducedParameter> parameters, BucketDone bucket_done, Hook hook)
    : communicator_(std::move(communicator)),
      control_(control),
      options_(options),
      parameters_(std::move(parameters)),
      bucket_done_(std::move(bucket_done)),
      hook_(std::move(hook)),
      memory_(std::move(memory)),
      channels_{.parts = open_channel(*communicator_, *memory_),
                .sums = open_channel(*communicator_, *memory_)},
      bucket_of_(parameters_.size()),
      readiness_(std::make_unique<std::atomic<Readiness>[]>(parameters_.size())),
      ready_at_(parameters_.size(), kNever),
      used_before_(parameters_.size(), 0) {
  order_is_final_ = options_.order == BucketOrder::kReverse;
  lay_out(reverse_order(parameters_.size()));
}

Reducer::~Reducer() { close(); }

void Reducer::lay_out(std::span<const int32_t> order) {
  std::vector<BucketItem> items;
  for (const ReducedParameter& parameter : parameters_) {
    items.push_back({.dtype = parameter.dtype, .elements = parameter.elements});
  }
  std::vector<Bucket> buckets = cut_buckets(items, order, options_.limits);
  std::vector<std::unique_ptr<BucketExchange>> exchanges;
  size_t widest = 0;
  int64_t largest = 0;
  ReducerStatistics statistics;
  memory_->set_buckets(buckets.size());
  for (const Bucket& bucket : buckets) {
    ExchangeShape shape{.rank = communicator_->rank(),
                        .ranks = communicator_->size(),
                        .dtype = bucket.dtype,
                        .wire = bucket.dtype == SHARDREC_FLOAT32 ? options_.wire : bucket.dtype,
                        .asks_who_used = options_.unused == Unused::kMark,
                        .reduction = options_.reduction};
    const bool changes_nothing = shape.ranks == 1 && shape.wire == shape.dtype &&
                                 options_.factor == 1 && options_.unused != Unused::kZero;
    shape.carries_gradients = hook_ == nullptr && !changes_nothing;
    std::vector<BucketParameter> in_bucket;
    for (size_t s = 0; s < bucket.parameters.size(); ++s) {
      const ReducedParameter& its = parameters_[static_cast<size_t>(bucket.parameters[s])];
      in_bucket.push_back(
          {.gradient = its.gradient, .offset = bucket.offsets[s], .elements = its.elements});
    }
    widest = std::max(widest, in_bucket.size());
    if (hook_ != nullptr) {
      largest =
          std::max(largest, bucket.elements * static_cast<int64_t>(core::dtype_size(bucket.dtype)));
    }
    statistics.buckets.push_back({.dtype = bucket.dtype,
                                  .parameters = static_cast<int64_t>(in_bucket.size()),
                                  .elements = bucket.elements});
    exchanges.push_back(std::make_unique<BucketExchange>(
        shape, channels_, *memory_, exchanges.size(), bucket.elements, std::move(in_bucket)));
  }
  hook_memory_.resize(static_cast<size_t>(largest));
  used_.resize(std::max(used_.size(), widest));
  launched_at_.resize(buckets.size());
  pending_ = std::make_unique<std::atomic<int32_t>[]>(buckets.size());
  statistics.steps = statistics_.steps;
  statistics.local_steps = statistics_.local_steps;
  statistics.exchange_seconds = statistics_.exchange_seconds;
  statistics.waited_seconds = statistics_.waited_seconds;
  statistics.hidden_seconds = statistics_.hidden_seconds;
  statistics_ = std::move(statistics);
  buckets_ = std::move(buckets);
  exchanges_ = std::move(exchanges);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (const int64_t parameter : buckets_[b].parameters) {
      bucket_of_[static_cast<size_t>(parameter)] = static_cast<int32_t>(b);
    }
  }
}

void Reducer::record_order() {
  std::vector<int32_t> order = reverse_order(parameters_.size());
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const uint32_t first = ready_at_[static_cast<size_t>(a)];
    const uint32_t second = ready_at_[static_cast<size_t>(b)];
    return first != second ? first < second : a > b;
  });
  control_.broadcast(kRecord, 0, std::as_writable_bytes(std::span(order)));
  const std::lock_guard lock(drive_);
  lay_out(order);
  order_is_final_ = true;
}

void Reducer::require_idle(const char* call) const {
  if (state_.load() == State::kIdle || (state_.load() == State::kEnded && !sync_)) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call, " was called inside a step; call end and wait first"));
}

void Reducer::begin(bool sync) {
  require_idle("begin");
  communicator_->check_before("ddp: begin");
  if (sync) settle_order("ddp: begin");
  start_step(sync, false);
}

void Reducer::settle_order(const char* call) {
  if (order_is_final_ || statistics_.steps == 0) return;
  try {
    record_order();
  } catch (...) {
    communicator_->fail(call);
    throw;
  }
}

// Gradients that are not marked in the step are written too.
void Reducer::follow_sources() {
  try {
    const std::lock_guard lock(drive_);
    memory_->follow_sources();
  } catch (...) {
    communicator_->fail("ddp: begin");
    throw;
  }
}

void Reducer::start_step(bool sync, bool shadow) {
  if (sync) follow_sources();
  // Launches are left to end() where there is nothing to hide behind.
  if (sync && options_.own_thread && buckets_.size() > 1 && !thread_.joinable()) {
    thread_ = core::start_thread([self = shared_from_this()] { self->run(); });
  }
  state_.store(State::kIdle);
  recording_ = sync && !shadow && !order_is_final_;
  sync_ = sync;
  shadow_ = shadow;
  for (size_t i = 0; i < parameters_.size(); ++i) readiness_[i].store(Readiness::kNone);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    pending_[b].store(static_cast<int32_t>(buckets_[b].parameters.size()));
  }
  if (recording_) std::fill(ready_at_.begin(), ready_at_.end(), kNever);
  marked_.store(0);
  complete_.store(0);
  {
    const std::lock_guard lock(drive_);
    next_launch_.store(sync ? 0 : buckets_.size());
    next_receive_ = next_done_ = sync ? 0 : buckets_.size();
    error_ = nullptr;
    refused_ = false;
    all_joined_ = false;
  }
  state_.store(State::kOpen);
}

void Reducer::require_open(int64_t parameter, Readiness mark) const {
  const State state = state_.load();
  if (state == State::kOpen) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence("parameter \"", parameters_[static_cast<size_t>(parameter)].name,
                            "\" was marked ", mark == Readiness::kReady ? "ready" : "unused",
                            state == State::kEnded ? " after end" : " before begin"),
             {.position = parameter});
}

void Reducer::refuse_mark(int64_t parameter, Readiness mark, Readiness before) const {
  const auto word = [](Readiness its) { return its == Readiness::kReady ? "ready" : "unused"; };
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence("parameter \"", parameters_[static_cast<size_t>(parameter)].name,
                            "\" was marked ", word(mark), ", but it was marked ", word(before),
                            " already in this step"),
             {.position = parameter});
}

void Reducer::require_unmarked(int64_t first, int64_t count) const {
  if (!takes_marks() || !sync_) return;
  for (int64_t i = first; i < first + count; ++i) {
    const Readiness before = readiness_[static_cast<size_t>(i)].load();
    if (before != Readiness::kNone) refuse_mark(i, Readiness::kReady, before);
  }
}

void Reducer::mark_unused(int64_t first, int64_t count) {
  if (options_.unused == Unused::kError) {
    core::fail(SHARDREC_INVALID_STATE,
               "a parameter was marked unused, but the option DDP_UNUSED is ERROR; MARK and ZERO "
               "accept it");
  }
  mark(first, count, Readiness::kUnused);
}

void Reducer::mark(int64_t first, int64_t count, Readiness mark,
                   compute::cuda::host::Stream* given) {
  const auto size = static_cast<int64_t>(parameters_.size());
  if (first < 0 || count < 0 || first > size || count > size - first) {
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence(count == 1 ? core::sentence("parameter ", first, " was")
                                  : core::sentence(count, " parameters from ", first, " on were"),
                       " marked; there are ", size, ", numbered from 0"),
        {.value = first, .limit = size});
  }
  int32_t last_bucket = -1;
  size_t last_source = 0;
  for (int64_t i = first; i < first + count; ++i) {
    require_open(i, mark);
    const auto at = static_cast<size_t>(i);
    // Before it may be launched; also in a step without sync, whose gradients a later one sends.
    const size_t source = memory_->source_of(i);
    if (mark == Readiness::kReady && (bucket_of_[at] != last_bucket || source != last_source)) {
      last_bucket = bucket_of_[at];
      last_source = source;
      memory_->mark_ready(static_cast<size_t>(last_bucket), last_source, given);
    }
    Readiness before = Readiness::kNone;
    if (!readiness_[at].compare_exchange_strong(before, mark)) {
      if (!sync_ && before == mark) continue;  // backward may go over a layer several times
      refuse_mark(i, mark, before);
    }
    if (!sync_) continue;
    if (recording_) ready_at_[at] = marked_.fetch_add(1);
    const auto bucket = static_cast<size_t>(bucket_of_[at]);
    if (pending_[bucket].fetch_sub(1) != 1) continue;
    // The last one is left to end(), which comes at once: nothing is left to hide behind.
    if (complete_.fetch_add(1) + 1 == buckets_.size()) continue;
    if (options_.own_thread && next_launch_.load() == bucket && !asks_soon_.load()) wake();
  }
}

void Reducer::end() {
  if (state_.load() != State::kOpen) {
    core::fail(SHARDREC_INVALID_STATE, "end was called without a begin before it");
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool ready = readiness_[i].load() == Readiness::kReady;
    if (!sync_) {
      if (ready) used_before_[i] = 1;
    } else if (!ready && options_.unused != Unused::kError) {
      readiness_[i].store(Readiness::kUnused);
    }
  }
  state_.store(State::kEnded);
  if (!sync_) {
    ++statistics_.local_steps;
    return;
  }
  bool is_launched = false;
  if (const std::unique_lock lock(drive_, std::try_to_lock); lock) {
    while (drive_one(false) == Progress::kSome) {
    }
    is_launched = next_launch_.load() == buckets_.size();
  }
  // What comes is taken by wait(), unless somebody wants it sooner, or peers wait for sums.
  const bool is_sent = std::all_of(exchanges_.begin(), exchanges_.end(), [](const auto& exchange) {
    return exchange->is_sent_by_post();
  });
  if (!is_launched || !is_sent || bucket_done_ != nullptr || hook_ != nullptr) wake();
}

void Reducer::wait() {
  if (state_.load() != State::kEnded) {
    core::fail(SHARDREC_INVALID_STATE, "wait was called without an end before it");
  }
  if (!sync_) {
    state_.store(State::kIdle);
    return;
  }
  caller_drives_.store(true);
  const std::lock_guard lock(drive_);
  caller_drives_.store(false);
  const Clock::time_point start = Clock::now();
  while (error_ == nullptr && unfinished()) drive_one(true);
  if (error_ == nullptr) finish_operations();
  state_.store(State::kIdle);
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  std::fill(used_before_.begin(), used_before_.end(), 0);
  if (!refused_) {
    count_step(Clock::now() - start);
  } else if (!shadow_) {  // else it is the others' matter: their next step comes
    throw_refusal();
  }
}

// What a device failed at, or was broken off, is told here.
void Reducer::finish_operations() noexcept {
  try {
    memory_->wait();
  } catch (...) {
    fail_step();
  }
}

ReducerStatistics Reducer::statistics() const {
  ReducerStatistics statistics = statistics_;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    statistics.buckets[b].saturated = memory_->saturated(b);
  }
  return statistics;
}

bool Reducer::has_reduced(int32_t parameter) const {
  if (!sync_) return false;
  const auto bucket = static_cast<size_t>(bucket_of(parameter));
  const auto& members = buckets_[bucket].parameters;
  const auto place = std::find(members.begin(), members.end(), parameter);
  return exchanges_[bucket]->is_written(static_cast<size_t>(place - members.begin()));
}

void Reducer::throw_refusal() const {
  const std::string& name = parameters_[static_cast<size_t>(refusal_.parameter)].name;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence("rank ", refusal_.rank, " did not mark parameter \"", name,
                            "\" ready before the end of the step, and the option DDP_UNUSED is "
                            "ERROR; gradients are reduced in part"),
             {.rank = refusal_.rank, .position = refusal_.parameter, .operation = "ddp: wait"});
}

bool Reducer::shadow_step() {
  require_idle("join");
  communicator_->check_before("ddp: join");
  settle_order("ddp: join");
  start_step(true, true);
  for (size_t i = 0; i < parameters_.size(); ++i) readiness_[i].store(Readiness::kUnused);
  state_.store(State::kEnded);
  wait();
  return all_joined_;
}

void Reducer::close() noexcept {
  const bool owes_a_step = state_.load() != State::kIdle && sync_;
  if (owes_a_step && communicator_->size() > 1) communicator_->fail("ddp: step");
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(wake_mutex_);
    stop_.store(true);
  }
  woken_.notify_one();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace shardrec::dense
