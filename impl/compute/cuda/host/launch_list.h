// Jobs of one launch, each of which takes some blocks of threads, or some other units of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"

namespace shardrec::compute::cuda::host {

// Of a block, in all kernels (kThreads in cuda/device.h).
inline constexpr int64_t kThreads = 256;

template <class Job>
class LaunchList {
 public:
  void clear() {
    jobs_.clear();
    first_unit_.assign(1, 0);
  }
  // A job without work is left out.
  void add(const Job& job, int64_t units) {
    if (units == 0) return;
    jobs_.push_back(job);
    first_unit_.push_back(first_unit_.back() + units);
  }

  bool empty() const { return jobs_.empty(); }
  int32_t count() const { return static_cast<int32_t>(jobs_.size()); }
  int64_t units() const { return first_unit_.back(); }
  std::span<Job> jobs() { return jobs_; }

  // What the two lists take of Arguments, and their addresses on the device.
  size_t bytes() const {
    return Arguments::bytes_of<Job>(jobs_.size()) +
           Arguments::bytes_of<int64_t>(first_unit_.size());
  }
  void send(Arguments& arguments) {
    jobs_there_ = arguments.add(std::span<const Job>(jobs_));
    first_unit_there_ = arguments.add(std::span<const int64_t>(first_unit_));
  }
  const Job* jobs_there() const { return jobs_there_; }
  // [count + 1]: units of the jobs before each.
  const int64_t* first_unit_there() const { return first_unit_there_; }

 private:
  std::vector<Job> jobs_;
  std::vector<int64_t> first_unit_ = {0};
  const Job* jobs_there_ = nullptr;
  const int64_t* first_unit_there_ = nullptr;
};

}  // namespace shardrec::compute::cuda::host
