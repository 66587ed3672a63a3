// A thread that serves the newest checkpoint again and again while calls go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <shardrec/shardrec.hpp>
#include <thread>

namespace shardrec::cli {

class Refresher {
 public:
  // every: seconds from the end of a refresh to the next one; 0: there is no thread.
  Refresher(Scorer& scorer, double every);
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;
  ~Refresher();

  struct Counts {
    int64_t refreshes = 0;
    int64_t swaps = 0;   // that have found another checkpoint
    double longest = 0;  // seconds
  };
  // Ends the thread, once; throws what a refresh has thrown.
  Counts stop();

 private:
  void refresh_until_stopped(double every);
  void join();

  Scorer& scorer_;
  Control control_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  Counts counts_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace shardrec::cli
