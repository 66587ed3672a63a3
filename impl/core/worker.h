// A thread that does one piece of work at a time while its owner does something else. It is started with the first
// one, and waits for the next.
//
// Thread rule: start() and wait() one thread at a time.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace shardrec::core {

class Worker {
 public:
  Worker() = default;
  // Waits for the work, and drops what it threw.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Nothing is under way. Throws OUT_OF_MEMORY where the system starts no thread; nothing is under way then.
  void start(std::function<void()> work);
  // Waits for the work that was started, and throws what it threw.
  void wait();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // set: it is to be done, or is being done
  std::exception_ptr error_;    // of the last one
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace shardrec::core
