#include "stream.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <new>
#include <optional>
#include <system_error>

#include "block.h"
#include "devices.h"
#include "memory.h"
#include "sanitizers.h"

namespace simt {
namespace {

thread_local Runner* runner_of_thread = nullptr;
thread_local bool thread_of_stream = false;

// Blocks all signals while it lives, but those that a thread's own fault raises: threads that are started
// then never run a handler of the host program.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&blocked, own);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

bool opens_memory(Access access) { return access == Access::kMemory || access == Access::kDevice; }

// The last recording that the thread has waited for.
thread_local const void* known_stream = nullptr;
thread_local uint64_t known_number = 0;

}  // namespace

bool Recording::is_known_over() const noexcept {
  return known_stream == stream_ && number_ <= known_number;
}

void Recording::will_be_known_over() const noexcept {
  if (is_known_over()) return;
  known_stream = stream_;
  known_number = number_;
}

RecordingPointer::RecordingPointer(const RecordingPointer& other) noexcept
    : recording_(other.recording_) {
  if (recording_ != nullptr) __atomic_fetch_add(&recording_->holders_, 1, __ATOMIC_RELAXED);
}

RecordingPointer::~RecordingPointer() {
  if (recording_ != nullptr &&
      __atomic_sub_fetch(&recording_->holders_, 1, __ATOMIC_ACQ_REL) == 0) {
    delete recording_;
  }
}

void Recording::wait() noexcept {
  marked_.wait_past(0);
  acquire(&word_);
}

bool Recording::is_marked() noexcept {
  if (marked_.value() == 0) return false;
  acquire(&word_);
  return true;
}

void Recording::mark() noexcept {
  time_ = Clock::now();
  release(&word_);
  marked_.advance();
}

Stream* Stream::make(int device) {
  std::unique_ptr<Stream, void (*)(Stream*)> stream(new Stream(device),
                                                    [](Stream* unused) { delete unused; });
  pthread_t thread;
  const SignalsBlocked blocked;
  // It fails for want of memory, or of threads.
  if (pthread_create(&thread, nullptr, thread_main, stream.get()) != 0) throw std::bad_alloc();
  pthread_detach(thread);
  return stream.release();
}

void Stream::close() noexcept {
  const QuietLock lock(mutex_);
  closed_ = true;
  changed_.advance();
}

void Stream::put(std::unique_ptr<Operation> operation) {
  if (capture_ != nullptr) {
    capture_->push_back(std::move(operation));
  } else {
    push(operation.release());
  }
}

void Stream::begin_capture() { capture_ = std::make_unique<Captured>(); }

std::unique_ptr<Captured> Stream::end_capture() {
  std::unique_ptr<Captured> captured = std::move(capture_);
  const bool invalid = std::exchange(capture_is_invalid_, false);
  const bool repeatable =
      !invalid && std::all_of(captured->begin(), captured->end(),
                              [](const auto& operation) { return operation->copy() != nullptr; });
  return repeatable ? std::move(captured) : nullptr;
}

void Stream::enqueue(const Captured& operations) {
  for (const auto& operation : operations) put(operation->copy());
}

void Stream::push(Operation* operation) noexcept {
  if (operation->counted_ != nullptr) operation->counted_->fetch_add(1);
  release(operation);
  {
    const QuietLock lock(mutex_);
    (last_ == nullptr ? first_ : last_->next_) = operation;
    last_ = operation;
    ++pushed_;
  }
  changed_.advance();
}

RecordingPointer Stream::record() {
  static std::atomic<uint64_t> recorded{0};
  RecordingPointer recording =
      RecordingPointer::make(device_, this, recorded.fetch_add(1, std::memory_order_relaxed) + 1);
  // Whoever waits for a device marks streams whatever they do.
  const auto mark = [recording] { recording->mark(); };
  push(new FunctionOperation<decltype(mark)>(Access::kMark, mark));
  return recording;
}

void Stream::wait_for(RecordingPointer recording) {
  enqueue(Access::kWait, [recording = std::move(recording)] { recording->wait(); });
}

bool Stream::is_idle() noexcept {
  {
    const QuietLock lock(mutex_);
    if (done_ != pushed_) return false;
  }
  acquire(&done_word_);
  return true;
}

void* Stream::thread_main(void* stream) {
  thread_of_stream = true;
  static_cast<Stream*>(stream)->work();
  delete static_cast<Stream*>(stream);
  return nullptr;
}

// Null when there is nothing more to do.
Operation* Stream::take() noexcept {
  for (;;) {
    const uint32_t changes = changed_.value();
    {
      const QuietLock lock(mutex_);
      if (Operation* operation = first_; operation != nullptr) {
        first_ = operation->next_;
        if (first_ == nullptr) last_ = nullptr;
        return operation;
      }
      if (closed_) return nullptr;
    }
    changed_.wait_past(changes);
  }
}

void Stream::carry_out(Operation& operation) {
  const Access access = operation.access();
  if (access == Access::kHostFunction || access == Access::kDevice) {
    if (error_of_device(device_) != cudaSuccess) return;
  }
  if (access == Access::kDevice) {
    if (const cudaError_t error = next_operation_error(); error != cudaSuccess) {
      break_device(device_, error);
      return;
    }
  }
  operation.run();
}

void Stream::count_done() noexcept {
  release(&done_word_);
  const QuietLock lock(mutex_);
  ++done_;
}

void Stream::work() {
  Runner runner;
  runner_of_thread = &runner;
  // Kept from one operation to the next: each opening takes time for each page of the device.
  std::optional<DeviceAccess> access;
  while (Operation* operation = take()) {
    acquire(operation);
    const Access needs = operation->access();
    if (opens_memory(needs) && !access) access.emplace();
    if (needs == Access::kMark) count_done();
    carry_out(*operation);
    delete operation;
    // Nobody may find the stream idle, or hear of its recording, while the memory is open for it.
    bool goes_on = false;
    {
      const QuietLock lock(mutex_);
      goes_on = first_ != nullptr && opens_memory(first_->access());
    }
    if (!goes_on) access.reset();
    if (needs != Access::kMark) count_done();
  }
  runner_of_thread = nullptr;
}

Runner& Stream::runner() { return *runner_of_thread; }
bool Stream::is_thread_of_stream() noexcept { return thread_of_stream; }

}  // namespace simt
