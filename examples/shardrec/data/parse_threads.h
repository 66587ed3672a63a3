// The threads that parse a log: the reader thread of a feed, which begins jobs, and workers beside it that do
// them. Without workers the reader does each job itself.
//
// Jobs of a stage begin in the order in which they were handed over. Workers take those of kBatch first, because
// ranks wait for them. Workers have the priority of the thread that made them, and sleep while there is no job.
//
// Thread rule: all calls are made by the reader thread, which is the one that made the object.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace shardrec::cli {

class ParseJob {
 public:
  ParseJob() = default;
  ParseJob(const ParseJob&) = delete;
  ParseJob& operator=(const ParseJob&) = delete;
  virtual ~ParseJob() = default;
  // Keeps what fails for those who need the result.
  virtual void run() noexcept = 0;

 private:
  friend class ParseThreads;
  bool is_done_ = true;  // with the mutex of its threads held
};

enum class ParseStage {
  kBatch,  // rows of a batch become samples
  kLines   // lines of the file are checked
};

class ParseThreads {
 public:
  // count: the calling thread and its workers. Fewer where the system starts no more threads.
  explicit ParseThreads(int count);
  ParseThreads(const ParseThreads&) = delete;
  ParseThreads& operator=(const ParseThreads&) = delete;
  // Returns when all jobs of kBatch are done; jobs of kLines that have not begun are dropped.
  ~ParseThreads();

  [[nodiscard]] int count() const { return static_cast<int>(workers_.size()) + 1; }
  void begin(std::shared_ptr<ParseJob> job, ParseStage stage);
  // Returns when the job is done. While it waits, the calling thread runs jobs of this stage that have not begun.
  void finish(const ParseJob& job, ParseStage stage);
  // Does a job of the stage that has not begun. False: there is none.
  bool help(ParseStage stage);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Jobs = std::deque<std::shared_ptr<ParseJob>>;
  [[nodiscard]] Jobs& jobs_of(ParseStage stage) { return jobs_[static_cast<size_t>(stage)]; }
  void run_first(Lock& lock, Jobs& jobs);
  void work();

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable done_;
  std::array<Jobs, 2> jobs_;  // of each stage, that have not begun
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace shardrec::cli
