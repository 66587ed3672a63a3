// Part of shardrec.hpp: how ranks meet, communicators, ranks as threads.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_COMM_HPP
#define SHARDREC_CPP_COMM_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "shardrec/comm.h"
#include "shardrec/cpp/options.hpp"
#include "shardrec/cpp/tensor.hpp"
#include "shardrec/rendezvous.h"

namespace shardrec {

// How processes meet: made in one of them, its token given to all.
class Rendezvous : public detail::Handle<shardrec_rendezvous, shardrec_rendezvous_destroy> {
 public:
  explicit Rendezvous(const Options &options = {}) {
    check(shardrec_rendezvous_create(options.get(), out()));
  }
  using Handle::Handle;

  std::string token() const {
    detail::Text text;
    check(shardrec_rendezvous_token(get(), text.out()));
    return text.str();
  }
};

// A group of ranks that are threads of this process.
class Local : public detail::Handle<shardrec_local, shardrec_local_destroy> {
 public:
  // ranks_per_node 0: all ranks are one node.
  explicit Local(int32_t ranks, int32_t ranks_per_node = 0) {
    check(
        shardrec_local_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, nullptr, out()));
  }
  using Handle::Handle;
};

// One rank's membership of a group. Destroyed without close(), it ends the group for the others.
class Comm : public detail::Handle<shardrec_comm, shardrec_comm_destroy> {
 public:
  Comm(const Local &group, int32_t rank) {
    check(shardrec_comm_create_local(group.get(), rank, nullptr, out()));
  }
  // Ranks in several processes. token empty: for engines whose launcher says who the ranks are.
  Comm(shardrec_engine engine, int32_t rank, int32_t size, std::string_view token,
       const Options &options = {}) {
    const std::string text = detail::c_text(token);
    check(shardrec_comm_create(engine, rank, size, text.empty() ? nullptr : text.c_str(),
                               options.get(), out()));
  }
  // As the environment says.
  static Comm from_env(const Options &options = {}) {
    shardrec_comm *handle = nullptr;
    check(shardrec_comm_create_from_env(options.get(), &handle));
    return Comm(handle);
  }
  using Handle::Handle;

  int32_t rank() const {
    int32_t rank = 0;
    check(shardrec_comm_rank(get(), &rank));
    return rank;
  }
  int32_t size() const {
    int32_t size = 0;
    check(shardrec_comm_size(get(), &size));
    return size;
  }
  void set(shardrec_comm_property key, double value) {
    check(shardrec_comm_set_f64(get(), key, value));
  }
  double property(shardrec_comm_property key) const {
    double value = 0;
    check(shardrec_comm_get_f64(get(), key, &value));
    return value;
  }
  // Throws what killed the communicator.
  void check_alive() const { check(shardrec_comm_status(get())); }
  // The last 1,000 operations of this rank, as JSON.
  std::string operations_json() const {
    detail::Text text;
    check(shardrec_comm_operations_json(get(), text.out()));
    return text.str();
  }
  void barrier() { check(shardrec_comm_barrier(get())); }
  void all_reduce(const Tensor &data, shardrec_reduction reduction = SHARDREC_REDUCTION_SUM) {
    check(shardrec_comm_all_reduce(get(), data.get(), reduction));
  }
  // The elements of rank root over those of all others.
  void broadcast(const Tensor &tensor, int32_t root = 0) {
    check(shardrec_comm_broadcast(get(), tensor.get(), root));
  }
  // out: the elements of all ranks, in rank order.
  void all_gather(const Tensor &tensor, const Tensor &out) {
    check(shardrec_comm_all_gather(get(), tensor.get(), out.get()));
  }
  // out: this rank's part of the reduction.
  void reduce_scatter(const Tensor &tensor, const Tensor &out,
                      shardrec_reduction reduction = SHARDREC_REDUCTION_SUM) {
    check(shardrec_comm_reduce_scatter(get(), tensor.get(), out.get(), reduction));
  }
  // Equal parts of the rows to each rank.
  void all_to_all(const Tensor &tensor, const Tensor &out) {
    check(shardrec_comm_all_to_all(get(), tensor.get(), nullptr, out.get(), nullptr));
  }
  // As many rows as the counts say, int64, one per rank; nullptr: equal parts.
  void all_to_all(const Tensor &tensor, const Vector &send_counts, const Tensor &out,
                  const Vector &receive_counts) {
    check(shardrec_comm_all_to_all(get(), tensor.get(), send_counts.get(), out.get(),
                                   receive_counts.get()));
  }
  // The communicator of the ranks with this color; empty for a color below 0.
  std::optional<Comm> split(int32_t color, int32_t key = 0) {
    shardrec_comm *part = nullptr;
    check(shardrec_comm_split(get(), color, key, &part));
    if (part == nullptr) return std::nullopt;
    return Comm(part);
  }
  void close() { check(shardrec_comm_close(get())); }
  void abort(std::string_view reason = {}) {
    check(shardrec_comm_abort(get(), detail::c_text(reason).c_str()));
  }
};

namespace detail {

// Of the failures of a group's ranks, the one to report: the first that is no echo of another rank's.
class FirstFailure {
 public:
  void record(std::exception_ptr failure, bool echo) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ != nullptr && (!echo_ || echo)) return;
    failure_ = std::move(failure);
    echo_ = echo;
  }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  bool echo_ = false;
};

// What a rank sees of another one's failure.
inline bool is_echo(shardrec_status status) noexcept {
  return status == SHARDREC_ABORTED || status == SHARDREC_PEER_FAILED || status == SHARDREC_CLOSED;
}

inline void abort_quietly(const Comm &comm, const char *reason) noexcept {
  (void)shardrec_comm_abort(comm.get(), reason);
}

template <class Body>
void run_rank(Comm &comm, const Body &body, FirstFailure &failure) noexcept {
  try {
    body(comm);
    comm.close();
  } catch (const Error &error) {
    failure.record(std::current_exception(), is_echo(error.status()));
    abort_quietly(comm, error.what());
  } catch (const std::exception &error) {
    failure.record(std::current_exception(), false);
    abort_quietly(comm, error.what());
  } catch (...) {
    failure.record(std::current_exception(), false);
    abort_quietly(comm, nullptr);
  }
}

}  // namespace detail

// Calls body(comm) and closes comm, which is this rank's. A failure of body aborts comm on all ranks
// and is thrown.
template <class Body>
void run_rank(Comm &comm, const Body &body) {
  detail::FirstFailure failure;
  detail::run_rank(comm, body, failure);
  failure.rethrow();
}

// Calls body(comm) for each of `ranks` ranks, on a thread of its own, and closes comm behind it; returns
// when all have ended. The first failure aborts the others and is thrown.
// ranks_per_node 0: all ranks are one node.
template <class Body>
void run(int32_t ranks, const Body &body, int32_t ranks_per_node = 0) {
  const Local group(ranks, ranks_per_node);
  std::vector<Comm> comms;
  for (int32_t rank = 0; rank < ranks; ++rank) comms.emplace_back(group, rank);
  detail::FirstFailure failure;
  std::vector<std::thread> threads;
  threads.reserve(comms.size());
  try {
    for (Comm &comm : comms) {
      threads.emplace_back([&comm, &body, &failure] { detail::run_rank(comm, body, failure); });
    }
  } catch (...) {  // the system has no thread left: those that wait for its rank are told
    failure.record(std::current_exception(), false);
    for (Comm &comm : comms) detail::abort_quietly(comm, "no thread could be started");
  }
  for (std::thread &thread : threads) thread.join();
  failure.rethrow();
}

}  // namespace shardrec

#endif
