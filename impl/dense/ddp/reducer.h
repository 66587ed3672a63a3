// When which bucket travels: a step's parameters become ready in any order, on any thread; buckets
// are launched strictly in their order, so that all ranks post the same exchanges without asking
// each other; what has come is added up and written back.
//
//   idle -- begin --> open -- mark_ready... --> end --> ended -- wait --> idle
//
// A step without sync sends nothing: gradients stay, to be added to. A bucket whose parameters are
// ready is launched, added up and written by a thread of this object while the host computes, also
// while the messages of older buckets have not come; the last one, for which nothing is left to hide
// behind, by whoever calls end and wait. Where there is only one bucket, or the rank has no processor
// for such a thread, they do all of it.
//
// Thread rule: mark_ready and mark_unused from any thread, several at once; the others one at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/memory.h"
#include "dense/ddp/bucket_memory.h"
#include "dense/ddp/buckets.h"
#include "dense/ddp/exchange.h"

namespace shardrec::dense {

// What becomes of parameters that were not marked ready when the step ends.
enum class Unused : uint8_t {
  kError,  // the step is refused on all ranks
  kMark,   // zeros of this rank; where no rank used it, the gradient stays as it is
  kZero,   // zeros of this rank
};

enum class BucketOrder : uint8_t {
  kReverse,   // the last parameter added is expected first
  kRecorded,  // from the second step on, as they became ready on rank 0 in the first one
};

struct ReducerOptions {
  bool average = true;
  double factor = 1;
  bool divide_by_live = false;  // the mean is over ranks that have not joined
  BucketLimits limits{};
  BucketOrder order = BucketOrder::kReverse;
  Unused unused = Unused::kError;
  shardrec_dtype wire = SHARDREC_FLOAT32;                 // of float32 gradients on their way
  BucketReduction reduction = BucketReduction::kOrdered;  // kNccl: the memory makes all-reduces
  // Buckets travel during backward, by a thread of the reducer's own; ranks may differ.
  bool own_thread = true;
};

struct ReducedParameter {
  std::string name;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  int64_t elements = 0;
  void* gradient = nullptr;
};

// Of all steps so far.
struct BucketStatistics {
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  int64_t parameters = 0;
  int64_t elements = 0;
  int64_t bytes_sent = 0;
  int64_t saturated = 0;  // numbers beyond the range of the dtype of the way
  double seconds = 0;     // from launch to the gradients' being written
};
struct ReducerStatistics {
  int64_t steps = 0;
  int64_t local_steps = 0;      // without sync
  double exchange_seconds = 0;  // from the first launch to the last gradient
  double waited_seconds = 0;    // inside wait
  double hidden_seconds = 0;    // of the exchange, while the host did something else
  std::vector<BucketStatistics> buckets;
};

class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  // Called when the gradients of a bucket are written, on the thread that did it; on a device, when that is enqueued.
  using BucketDone = std::function<void(int32_t bucket)>;
  // Replaces the exchange of gradients: a bucket's elements, to be reduced in place. Throws.
  using Hook = std::function<void(int32_t bucket, shardrec_dtype dtype, std::span<std::byte> data)>;

  // control: for what is agreed between steps; outlives this object. memory: where the gradients are.
  Reducer(std::shared_ptr<comm::Communicator> communicator, comm::Collectives& control,
          std::shared_ptr<BucketMemory> memory, const ReducerOptions& options,
          std::vector<ReducedParameter> parameters, BucketDone bucket_done, Hook hook);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  // Ends the thread. Peers that wait for a step of this rank get PEER_FAILED.
  void close() noexcept;

  // Collective once, where the order is recorded: in the second step with sync.
  void begin(bool sync);
  // given: as BucketMemory::mark_ready().
  void mark_ready(int64_t first, int64_t count, compute::cuda::host::Stream* given = nullptr) {
    mark(first, count, Readiness::kReady, given);
  }
  void mark_unused(int64_t first, int64_t count);
  // Waits for nobody but for peers that are more than a step behind.
  void end();
  // Throws INVALID_STATE, the same on all ranks, where a rank has not marked what it must.
  void wait();

  // A step of a rank without batches. True: it was such a step of all ranks.
  bool shadow_step();
  // The first of the ranks that have taken most steps with gradients of their own, as of the last
  // step.
  int longest_rank() const noexcept { return longest_; }

  bool takes_marks() const noexcept { return state_.load() == State::kOpen; }
  // Throws INVALID_STATE where one of them has been marked in this step.
  void require_unmarked(int64_t first, int64_t count) const;
  // Throws INVALID_STATE where a step has begun.
  void require_idle(const char* call) const;
  int32_t bucket_of(int64_t parameter) const noexcept {
    return bucket_of_[static_cast<size_t>(parameter)];
  }
  std::span<const Bucket> buckets() const noexcept { return buckets_; }
  // After wait(): were the gradients of a parameter reduced, the same on all ranks?
  bool has_reduced(int32_t parameter) const;
  // Between steps. Throws what the memory does.
  ReducerStatistics statistics() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : uint8_t { kIdle, kOpen, kEnded };
  enum class Readiness : uint8_t { kNone, kReady, kUnused };

  void mark(int64_t first, int64_t count, Readiness mark,
            compute::cuda::host::Stream* given = nullptr);
  void require_open(int64_t parameter, Readiness mark) const;
  [[noreturn]] void refuse_mark(int64_t parameter, Readiness mark, Readiness before) const;
  void lay_out(std::span<const int32_t> order);
  void record_order();
  // Before every step with sync, of ranks that have joined too.
  void settle_order(const char* call);
  void follow_sources();
  void start_step(bool sync, bool shadow);

  enum class Progress : uint8_t {
    kSome,      // ask again
    kAwaiting,  // messages have not come, and it did not wait for them, because a mark may come first
    kNone,      // there is nothing to do before a mark, or before the next step
  };
  // Whoever holds drive_ brings the step on: launches, receives or finishes one bucket. Without
  // may_wait it only launches.
  Progress drive_one(bool may_wait);
  Progress advance(bool may_wait);  // the same; throws
  bool awaits_mark() const noexcept;
  void launch(size_t bucket);
  void receive(size_t bucket);
  void finish(size_t bucket);
  void complete();
  void done(size_t bucket);
  void call_hook(size_t bucket);
  bool launchable() const noexcept;
  bool unfinished() const noexcept { return next_done_ < buckets_.size(); }
  void fail_step() noexcept;
  void finish_operations() noexcept;
  [[noreturn]] void throw_refusal() const;
  void count_step(Clock::duration waited) noexcept;
  void wake();
  void run() noexcept;

  const std::shared_ptr<comm::Communicator> communicator_;
  comm::Collectives& control_;
  const ReducerOptions options_;
  const std::vector<ReducedParameter> parameters_;
  const BucketDone bucket_done_;
  const Hook hook_;
  const std::shared_ptr<BucketMemory> memory_;
  BucketChannels channels_;

  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<BucketExchange>> exchanges_;
  std::vector<int32_t> bucket_of_;  // by parameter
  core::Scratch hook_memory_;
  bool order_is_final_ = false;

  // Of the step.
  std::atomic<State> state_{State::kIdle};
  bool sync_ = false;
  bool shadow_ = false;
  std::unique_ptr<std::atomic<Readiness>[]> readiness_;  // by parameter
  std::unique_ptr<std::atomic<int32_t>[]> pending_;  // by bucket: parameters that are not marked
  std::atomic<size_t> complete_{0};                  // buckets
  std::atomic<uint32_t> marked_{0};
  std::vector<uint32_t> ready_at_;  // by parameter, while the order is recorded
  bool recording_ = false;
  std::vector<char> used_before_;  // by parameter: in a step without sync since the last sync

  // Held by who drives.
  std::mutex drive_;
  std::atomic<size_t> next_launch_{0};
  size_t next_receive_ = 0;
  size_t next_done_ = 0;  // of those received; between them: some whose sums have not come
  std::vector<char> used_;
  std::exception_ptr error_;
  bool refused_ = false;
  BucketHeads refusal_;
  bool all_joined_ = false;
  int longest_ = 0;
  uint64_t steps_ = 0;

  std::atomic<bool> caller_drives_{false};
  std::atomic<bool> has_work_{false};
  std::atomic<bool> asks_soon_{false};  // the thread, also if no mark wakes it
  std::mutex wake_mutex_;
  std::condition_variable woken_;
  std::atomic<bool> stop_{false};
  std::thread thread_;

  ReducerStatistics statistics_;  // written by who drives, read between steps
  std::vector<Clock::time_point> launched_at_;
  Clock::time_point first_launch_;
  Clock::time_point last_done_;
};

}  // namespace shardrec::dense
