// Workers that share two queues with the reader thread.
#include "data/parse_threads.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace shardrec::cli {

ParseThreads::ParseThreads(int count) {
  workers_.reserve(static_cast<size_t>(std::max(count - 1, 0)));
  try {
    while (this->count() < count) workers_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // Those that were started, and the reader, do the same work.
  }
}

ParseThreads::~ParseThreads() {
  while (help(ParseStage::kBatch)) {
  }
  {
    const std::scoped_lock lock(mutex_);
    jobs_of(ParseStage::kLines).clear();
    stopping_ = true;
  }
  begun_.notify_all();
}

void ParseThreads::begin(std::shared_ptr<ParseJob> job, ParseStage stage) {
  {
    const std::scoped_lock lock(mutex_);
    job->is_done_ = false;
    jobs_of(stage).push_back(std::move(job));
  }
  begun_.notify_one();
}

void ParseThreads::finish(const ParseJob& job, ParseStage stage) {
  Lock lock(mutex_);
  Jobs& jobs = jobs_of(stage);
  while (!job.is_done_) {
    if (jobs.empty()) {
      done_.wait(lock);
    } else {
      run_first(lock, jobs);
    }
  }
}

bool ParseThreads::help(ParseStage stage) {
  Lock lock(mutex_);
  Jobs& jobs = jobs_of(stage);
  if (jobs.empty()) return false;
  run_first(lock, jobs);
  return true;
}

void ParseThreads::run_first(Lock& lock, Jobs& jobs) {
  std::shared_ptr<ParseJob> job = std::move(jobs.front());
  jobs.pop_front();
  lock.unlock();
  job->run();
  lock.lock();
  job->is_done_ = true;
}

void ParseThreads::work() {
  Lock lock(mutex_);
  for (;;) {
    const auto jobs = std::find_if(jobs_.begin(), jobs_.end(),
                                   [](const Jobs& of_stage) { return !of_stage.empty(); });
    if (jobs != jobs_.end()) {
      run_first(lock, *jobs);
      done_.notify_one();
    } else if (stopping_) {
      return;
    } else {
      begun_.wait(lock);
    }
  }
}

}  // namespace shardrec::cli
