// Operations that take place in order, later than they are called: none before somebody waits, and
// then on a thread of the stream, with the guarded memory open to it.
//
// Thread rule: one thread at a time.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "guarded/memory.h"

namespace shardrec::test {

class Stream {
 public:
  explicit Stream(std::shared_ptr<GuardedMemory> memory);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void later(std::function<void()> operation) { waiting_.push_back(std::move(operation)); }
  // Throws what an operation threw; those behind it do not take place.
  void wait();
  // What an operation throws is thrown by the next wait().
  void finish() noexcept;

 private:
  void run();
  void run_all() noexcept;

  std::shared_ptr<GuardedMemory> memory_;
  std::vector<std::function<void()>> waiting_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace shardrec::test
