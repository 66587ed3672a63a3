#include "ranks.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

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

void run_ranks(int ranks, int ranks_per_node,
               const std::function<void(int, shardrec_comm*)>& body) {
  Local group;
  check(shardrec_local_create(ranks, ranks_per_node, group.out()));
  std::vector<Comm> comms(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    check(shardrec_comm_create_local(group.get(), r, comms[static_cast<size_t>(r)].out()));
  }

  FirstFailure failure;
  const auto run_one = [&](int rank) {
    shardrec_comm* comm = comms[static_cast<size_t>(rank)].get();
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
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r) threads.emplace_back(run_one, r);
  }
  failure.rethrow();
}

Slice slice_of(int64_t global, int ranks, int rank) {
  return {global * rank / ranks, global * (rank + 1) / ranks};
}

}  // namespace shardrec::cli
