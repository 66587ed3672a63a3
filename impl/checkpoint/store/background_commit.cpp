#include "checkpoint/store/background_commit.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/priority.h"
#include "core/start_thread.h"
#include "core/wait.h"

namespace shardrec::checkpoint {
namespace {

using std::chrono::steady_clock;

// Who waits for files looks so often whether the communicator is alive.
constexpr std::chrono::milliseconds kLook{50};

// How far a rank's files are, as it tells the others.
enum class Progress : uint8_t { kWriting, kWritten, kFailed };

}  // namespace

// What the two threads share.
class BackgroundCommit::Work {
 public:
  Work(std::unique_ptr<StepCommit> commit, FrozenContents contents,
       std::shared_ptr<core::Control> control)
      : commit_(std::move(commit)), contents_(std::move(contents)), control_(std::move(control)) {}

  StepCommit& commit() noexcept { return *commit_; }
  const Contents& contents() const noexcept { return contents_.contents; }

  // The thread.
  void run() noexcept {
    core::yield_to_others();  // to those that train
    std::unique_lock lock(mutex_);
    core::wait(changed_, lock, [&] { return state_ != State::kPrepared; });
    if (state_ == State::kWriting) {
      lock.unlock();
      write();
      lock.lock();
      if (state_ == State::kWriting) state_ = State::kWritten;
      changed_.notify_all();
    }
    core::wait(changed_, lock, [&] { return state_ == State::kOver || state_ == State::kGivenUp; });
    if (state_ == State::kGivenUp) commit_->abandon();
    let_go();
  }

  void begin() noexcept { set(State::kWriting); }
  // In place of the commit's end; behind it there is nothing to give up.
  void give_up() noexcept {
    if (contents_.frozen != nullptr) contents_.frozen->end();
    set(State::kGivenUp);
  }
  void end() noexcept { set(State::kOver); }
  // Writing ends soon, with an error.
  void stop() noexcept {
    if (contents_.frozen != nullptr) contents_.frozen->stop();
  }

  // Returns when the files are written, or at that time.
  Progress wait_until(steady_clock::time_point time) {
    std::unique_lock lock(mutex_);
    const bool written = changed_.wait_until(lock, time, [&] { return state_ != State::kWriting; });
    if (!written) return Progress::kWriting;
    return failure_ == nullptr ? Progress::kWritten : Progress::kFailed;
  }

  // Behind wait_until(), of files that are not being written: what write() returned, or throws what it threw.
  std::string take() {
    if (control_ != nullptr) control_->check();
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return text_;
  }

 private:
  enum class State : uint8_t { kPrepared, kWriting, kWritten, kOver, kGivenUp };

  void set(State state) noexcept {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kOver || state_ == State::kGivenUp) return;
    state_ = state;
    changed_.notify_all();
  }

  void write() noexcept {
    try {
      text_ = commit_->write(contents_.contents, control_.get());
    } catch (...) {
      failure_ = std::current_exception();
      stop();  // steps need to keep nothing more
    }
  }

  // The lock of the root, snapshots and copies.
  void let_go() noexcept {
    commit_.reset();
    contents_ = {};
  }

  std::unique_ptr<StepCommit> commit_;
  FrozenContents contents_;
  const std::shared_ptr<core::Control> control_;
  std::mutex mutex_;  // guards state_, and what write() leaves
  std::condition_variable changed_;
  State state_ = State::kPrepared;
  std::string text_;
  std::exception_ptr failure_;
};

BackgroundCommit::BackgroundCommit(std::unique_ptr<StepCommit> commit, FrozenContents contents,
                                   std::shared_ptr<core::Control> control)
    : work_(std::make_shared<Work>(std::move(commit), std::move(contents), std::move(control))),
      thread_(core::start_thread([work = work_] { work->run(); })) {}

BackgroundCommit::~BackgroundCommit() {
  if (!thread_.joinable()) return;
  work_->give_up();
  thread_.detach();
}

void BackgroundCommit::begin(const Group& group, const Lineage& lineage) {
  try {
    work_->commit().open(group, work_->contents(), lineage);
  } catch (...) {
    end();
    throw;
  }
  work_->begin();
}

void BackgroundCommit::end() noexcept {
  work_->end();
  thread_.join();
}

bool BackgroundCommit::wait(const Group& group, comm::Communicator& communicator,
                            const comm::Operation& operation, int64_t timeout_ms,
                            Lineage& lineage) {
  const auto begun = steady_clock::now();
  const auto left = [&] {
    if (timeout_ms < 0) return kLook;
    const auto passed = std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - begun);
    return std::clamp(std::chrono::milliseconds(timeout_ms) - passed, std::chrono::milliseconds(0),
                      kLook);
  };
  Progress own = work_->wait_until(begun);
  while (own == Progress::kWriting && left().count() > 0) {
    communicator.check_before(operation.name);
    own = work_->wait_until(steady_clock::now() + left());
  }
  bool writing = false;
  bool failed = false;
  for (const comm::ConstBytes told :
       group.collectives.all_gather(operation, std::as_bytes(std::span(&own, 1)))) {
    if (told.empty()) continue;
    writing = writing || told[0] == std::byte{static_cast<uint8_t>(Progress::kWriting)};
    failed = failed || told[0] == std::byte{static_cast<uint8_t>(Progress::kFailed)};
  }
  if (writing && !failed) return false;
  if (failed && own != Progress::kFailed) {  // another rank tells why
    work_->stop();
    while (work_->wait_until(steady_clock::now() + kLook) == Progress::kWriting) {
    }
  }
  const bool told_by_another = failed && own != Progress::kFailed;
  try {
    work_->commit().close(
        group, [&] { return told_by_another ? std::string() : work_->take(); }, lineage);
  } catch (...) {
    end();
    throw;
  }
  end();
  return true;
}

}  // namespace shardrec::checkpoint
