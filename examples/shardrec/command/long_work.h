// One long call of the library (save, load, verify): shows how far it has come when it takes long,
// and where it may end early, Ctrl-C cancels it. On a terminal a line that is drawn anew in place,
// else one now and then. On standard error.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shardrec/shardrec.hpp>
#include <string>
#include <thread>

#include "command/progress_line.h"

namespace shardrec::cli {

class LongWork {
 public:
  enum class OnInterrupt { kFinish, kCancel };

  // title: such as "saving". shown: by one rank.
  LongWork(std::string title, bool shown, OnInterrupt on_interrupt);
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
  ~LongWork();

  // For the call.
  [[nodiscard]] const Control* control() const { return &control_; }

 private:
  void watch();

  ProgressLine line_;
  OnInterrupt on_interrupt_;
  Control control_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace shardrec::cli
