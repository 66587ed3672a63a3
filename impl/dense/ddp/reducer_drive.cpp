// How a step is brought on, by its thread or by who waits. What is ready is launched first. Then what
// has come is taken, the oldest bucket's first, so that sums of a bucket leave while those of an
// older one are on their way. Only if nothing has come, and no mark can come first, peers are waited
// for. By CUDA IPC, what has come may still wait for the device of the peer that has written it (comm/ipc/body_channel.h).
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/float_mode.h"
#include "core/tensor.h"
#include "core/wait.h"
#include "dense/ddp/reducer.h"

namespace shardrec::dense {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// How long the thread sleeps before it asks again whether messages have come: at first, and at most.
// It sleeps so only during backward. A mark wakes it, but for the shortest pause: buckets that become
// ready at once are not worth a wake-up each.
constexpr auto kShortestPause = std::chrono::microseconds(250);
constexpr auto kLongestPause = std::chrono::microseconds(1000);

}  // namespace

bool Reducer::launchable() const noexcept {
  const size_t next = next_launch_.load();
  if (next == buckets_.size() || next - next_done_ >= comm::PipelinedChannel::kMost) return false;
  return pending_[next].load() == 0 || state_.load() == State::kEnded;
}

// True if a parameter's mark may let the next bucket be launched.
bool Reducer::awaits_mark() const noexcept {
  const size_t next = next_launch_.load();
  return next < buckets_.size() && next - next_done_ < comm::PipelinedChannel::kMost &&
         state_.load() == State::kOpen;
}

Reducer::Progress Reducer::advance(bool may_wait) {
  if (launchable()) {
    launch(next_launch_.load());
    return Progress::kSome;
  }
  const bool has_sums = next_done_ < next_receive_;
  const bool has_parts = next_receive_ < next_launch_.load();
  if (!may_wait || (!has_sums && !has_parts)) return Progress::kNone;
  // In one order, sums are taken before the parts of a later bucket.
  const bool sums_came = has_sums && exchanges_[next_done_]->has_arrived();
  const bool parts_came = !sums_came && has_parts && !(has_sums && memory_->has_one_order()) &&
                          exchanges_[next_receive_]->has_arrived();
  if (!sums_came && !parts_came && awaits_mark()) return Progress::kAwaiting;
  // If nothing has come, the oldest is waited for.
  if (sums_came || (has_sums && !parts_came)) {
    finish(next_done_);
  } else {
    receive(next_receive_);
  }
  return Progress::kSome;
}

Reducer::Progress Reducer::drive_one(bool may_wait) {
  const core::DefaultFloatMode mode;
  try {
    return advance(may_wait);
  } catch (...) {
    fail_step();
    return Progress::kNone;
  }
}

void Reducer::fail_step() noexcept {
  error_ = std::current_exception();
  communicator_->fail("ddp: step");  // nothing, where that is what failed
  // Nothing of the step is left to do, also after wait() has thrown: peers may still be reading.
  next_launch_.store(buckets_.size());
  next_receive_ = next_done_ = buckets_.size();
}

void Reducer::launch(size_t bucket) {
  const Bucket& its = buckets_[bucket];
  BucketHead head{.has_gradients = shadow_ ? 0U : 1U, .joined = shadow_ ? 1U : 0U, .steps = steps_};
  for (size_t s = 0; s < its.parameters.size(); ++s) {
    const auto parameter = static_cast<size_t>(its.parameters[s]);
    const Readiness mark = readiness_[parameter].load();
    used_[s] = !shadow_ && (mark == Readiness::kReady || used_before_[parameter] != 0) ? 1 : 0;
    if (mark == Readiness::kNone && head.verdict == BucketVerdict::kReady) {
      head.verdict = BucketVerdict::kNotReady;
      head.parameter = its.parameters[s];
      head.has_gradients = 0;
    }
  }
  launched_at_[bucket] = Clock::now();
  if (bucket == 0) first_launch_ = launched_at_[bucket];
  exchanges_[bucket]->post(head, std::span(used_).first(its.parameters.size()));
  next_launch_.store(bucket + 1);
}

void Reducer::receive(size_t bucket) {
  const auto scale = [this](const BucketHeads& heads) {
    const int ranks = communicator_->size();
    const int divisor = options_.divide_by_live ? std::max(1, ranks - heads.joined) : ranks;
    return GradientScale{.divisor = options_.average ? static_cast<double>(divisor) : 1.0,
                         .factor = options_.factor};
  };
  BucketExchange& exchange = *exchanges_[bucket];
  exchange.receive(scale);
  ++next_receive_;
  all_joined_ = exchange.heads().joined == communicator_->size();
  longest_ = exchange.heads().longest;
  complete();
}

void Reducer::finish(size_t bucket) {
  exchanges_[bucket]->finish();
  complete();
}

// Buckets are done in their order, whatever the order in which they were written: ranks must agree
// on which were done before one that is refused.
void Reducer::complete() {
  while (next_done_ < next_receive_ && exchanges_[next_done_]->is_done()) {
    done(next_done_);
    ++next_done_;
  }
}

void Reducer::done(size_t bucket) {
  const BucketHeads& heads = exchanges_[bucket]->heads();
  const bool refused = heads.verdict != BucketVerdict::kReady;
  if (refused && !refused_) {
    refused_ = true;
    refusal_ = heads;
  }
  if (hook_ != nullptr && !refused) call_hook(bucket);
  last_done_ = Clock::now();
  BucketStatistics& its = statistics_.buckets[bucket];
  its.seconds += seconds(last_done_ - launched_at_[bucket]);
  if (!shadow_) its.bytes_sent += static_cast<int64_t>(exchanges_[bucket]->bytes_sent());
  if (bucket_done_ != nullptr && !refused_ && !shadow_) {
    bucket_done_(static_cast<int32_t>(bucket));
  }
}

void Reducer::call_hook(size_t bucket) {
  const Bucket& its = buckets_[bucket];
  const size_t size = core::dtype_size(its.dtype);
  const std::span<std::byte> data(hook_memory_.data(), static_cast<size_t>(its.elements) * size);
  const auto each = [&](const auto& body) {
    for (size_t s = 0; s < its.parameters.size(); ++s) {
      const ReducedParameter& parameter = parameters_[static_cast<size_t>(its.parameters[s])];
      body(s,
           data.subspan(static_cast<size_t>(its.offsets[s]) * size,
                        static_cast<size_t>(parameter.elements) * size),
           static_cast<std::byte*>(parameter.gradient));
    }
  };
  each([&](size_t s, std::span<std::byte> part, const std::byte* gradient) {
    const auto parameter = static_cast<size_t>(its.parameters[s]);
    const bool used = !shadow_ && (readiness_[parameter].load() == Readiness::kReady ||
                                   used_before_[parameter] != 0);
    if (used) {
      std::copy_n(gradient, part.size(), part.begin());
    } else {
      std::fill(part.begin(), part.end(), std::byte{0});
    }
  });
  hook_(static_cast<int32_t>(bucket), its.dtype, data);
  each([&](size_t s, std::span<std::byte> part, std::byte* gradient) {
    if (exchanges_[bucket]->is_written(s)) std::copy(part.begin(), part.end(), gradient);
  });
}

void Reducer::wake() {
  if (has_work_.exchange(true)) return;
  {
    const std::lock_guard lock(wake_mutex_);
  }
  woken_.notify_one();
}

void Reducer::run() noexcept {
  Progress last = Progress::kNone;
  auto pause = kShortestPause;
  for (;;) {
    {
      std::unique_lock lock(wake_mutex_);
      const auto asked = [this] { return stop_.load() || has_work_.load(); };
      if (last == Progress::kAwaiting) {
        asks_soon_.store(pause == kShortestPause);
        woken_.wait_for(lock, pause, asked);
        asks_soon_.store(false);  // before it looks which buckets are ready
        pause = std::min(2 * pause, kLongestPause);
      } else {
        core::wait(woken_, lock, asked);
      }
      if (stop_.load()) return;
    }
    has_work_.store(false);
    last = Progress::kNone;
    while (!caller_drives_.load() && !stop_.load()) {
      // Who else holds it drives, and wakes this thread for what it leaves.
      const std::unique_lock lock(drive_, std::try_to_lock);
      last = lock ? drive_one(true) : Progress::kNone;
      if (last != Progress::kSome) break;
      pause = kShortestPause;
    }
  }
}

void Reducer::count_step(Clock::duration waited) noexcept {
  ++statistics_.steps;
  if (!shadow_) ++steps_;
  const Clock::duration exchange = last_done_ - first_launch_;
  statistics_.exchange_seconds += seconds(exchange);
  statistics_.waited_seconds += seconds(waited);
  statistics_.hidden_seconds += std::max(0.0, seconds(exchange - waited));
}

}  // namespace shardrec::dense
