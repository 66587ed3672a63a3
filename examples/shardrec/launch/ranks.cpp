#include "launch/ranks.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include "launch/processes.h"

namespace shardrec::cli {
namespace {

// The failure to report: the first one that is not an echo of another rank's.
class FirstFailure {
 public:
  void record(std::exception_ptr error, bool echo) {
    const std::scoped_lock lock(mutex_);
    if (error_ == nullptr || (echo_ && !echo)) {
      error_ = std::move(error);
      echo_ = echo;
    }
  }
  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  bool echo_ = false;
};

bool is_echo(shardrec_status status) {
  return status == SHARDREC_ABORTED || status == SHARDREC_PEER_FAILED || status == SHARDREC_CLOSED;
}

}  // namespace

namespace {

void run_rank(int rank, shardrec_comm* comm, const std::function<void(int, shardrec_comm*)>& body,
              FirstFailure& failure) {
  try {
    body(rank, comm);
    check(shardrec_comm_close(comm));
  } catch (const ApiError& error) {
    failure.record(std::current_exception(), is_echo(error.status()));
    (void)shardrec_comm_abort(comm, error.what());
  } catch (const std::exception& error) {
    failure.record(std::current_exception(), false);
    (void)shardrec_comm_abort(comm, error.what());
  }
}

void run_threads(const RankGroup& group, const std::function<void(int, shardrec_comm*)>& body) {
  Local local;
  check(shardrec_local_create(group.ranks, group.ranks_per_node, local.out()));
  std::vector<Comm> comms(static_cast<size_t>(group.ranks));
  for (int r = 0; r < group.ranks; ++r) {
    check(shardrec_comm_create_local(local.get(), r, comms[static_cast<size_t>(r)].out()));
  }
  FirstFailure failure;
  {
    std::vector<std::jthread> threads;
    threads.reserve(comms.size());
    for (int r = 0; r < group.ranks; ++r) {
      threads.emplace_back(
          [&, r] { run_rank(r, comms[static_cast<size_t>(r)].get(), body, failure); });
    }
  }
  failure.rethrow();
}

void run_process(const RankGroup& group, const std::function<void(int, shardrec_comm*)>& body) {
  Options options(SHARDREC_OPTIONS_COMM);
  options.set(SHARDREC_OPTION_ENGINE, group.engine);
  Comm comm;
  check(shardrec_comm_create_from_env(options.get(), comm.out()));
  int32_t rank = 0;
  int32_t size = 0;
  check(shardrec_comm_rank(comm.get(), &rank));
  check(shardrec_comm_size(comm.get(), &size));
  if (size != group.ranks) {
    throw UserError("--ranks is " + std::to_string(group.ranks) + "; " + std::to_string(size) +
                    " processes were started.");
  }
  FirstFailure failure;
  run_rank(rank, comm.get(), body, failure);
  failure.rethrow();
}

}  // namespace

void run_ranks(const RankGroup& group, const std::function<void(int, shardrec_comm*)>& body) {
  group.engine == "local" ? run_threads(group, body) : run_process(group, body);
}

bool starts_ranks(const RankGroup& group) {
  return group.engine != "local" && own_rank(group.engine) < 0;
}

int start_ranks(const RankGroup& group) {
  const LaunchEnd end = launch({.ranks = group.ranks,
                                .ranks_per_node = group.ranks_per_node,
                                .engine = group.engine,
                                .command = own_command()});
  if (!end.failure.empty()) std::cerr << "shardrec: " << end.failure << " first.\n";
  return end.code;
}

std::vector<std::vector<double>> gather(shardrec_comm* comm, const std::vector<double>& own) {
  int32_t rank = 0;
  int32_t size = 0;
  check(shardrec_comm_rank(comm, &rank));
  check(shardrec_comm_size(comm, &size));
  std::vector<double> all(own.size() * static_cast<size_t>(size));
  std::copy(own.begin(), own.end(), all.begin() + rank * static_cast<int64_t>(own.size()));
  shardrec_tensor view;
  check(shardrec_tensor_vector(all.data(), SHARDREC_FLOAT64, static_cast<int64_t>(all.size()),
                               &view));
  check(shardrec_comm_all_reduce(comm, &view, SHARDREC_REDUCTION_SUM));
  std::vector<std::vector<double>> by_rank;
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
    const auto first = all.begin() + static_cast<int64_t>(r * own.size());
    by_rank.emplace_back(first, first + static_cast<int64_t>(own.size()));
  }
  return by_rank;
}

Slice slice_of(int64_t global, int ranks, int rank, int64_t unit) {
  const int64_t units = (global + unit - 1) / unit;
  return {std::min(global, units * rank / ranks * unit),
          std::min(global, units * (rank + 1) / ranks * unit)};
}

}  // namespace shardrec::cli
