// How many threads work takes that is done without a communicator.
#pragma once

namespace shardrec::comm {

// The threads that one rank may use (Communicator::default_threads), while its communicator lives.
// Any thread.
class ThreadShare {
 public:
  explicit ThreadShare(int threads) noexcept;
  ~ThreadShare();
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

  // The threads of what is made without a communicator: the least share of those that were made
  // since this process had none; where it has none now, all threads that it may use.
  static int least();
};

}  // namespace shardrec::comm
