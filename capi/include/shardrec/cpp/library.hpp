// Part of shardrec.hpp: options, control, communicators, the log, the library itself.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_LIBRARY_HPP
#define SHARDREC_CPP_LIBRARY_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "shardrec/comm.h"
#include "shardrec/control.h"
#include "shardrec/cpp/base.hpp"
#include "shardrec/library.h"
#include "shardrec/log.h"
#include "shardrec/observe.h"
#include "shardrec/options.h"
#include "shardrec/probe.h"
#include "shardrec/rendezvous.h"

namespace shardrec {

class Options : public detail::Handle<shardrec_options, shardrec_options_destroy> {
 public:
  explicit Options(shardrec_options_kind kind) { check(shardrec_options_create(kind, out())); }

  // Integers (and enumerators), real numbers, or text.
  template <class Value>
  Options &set(shardrec_option key, const Value &value) {
    if constexpr (std::is_floating_point<Value>::value) {
      check(shardrec_options_set_f64(get(), key, static_cast<double>(value)));
    } else if constexpr (std::is_integral<Value>::value || std::is_enum<Value>::value) {
      check(shardrec_options_set_i64(get(), key, static_cast<int64_t>(value)));
    } else {
      check(shardrec_options_set_text(get(), key, detail::c_text(value).c_str()));
    }
    return *this;
  }

  int64_t i64(shardrec_option key) const {
    int64_t value = 0;
    check(shardrec_options_get_i64(get(), key, &value));
    return value;
  }
  double f64(shardrec_option key) const {
    double value = 0;
    check(shardrec_options_get_f64(get(), key, &value));
    return value;
  }
  std::string text(shardrec_option key) const {
    detail::Text text;
    check(shardrec_options_get_text(get(), key, text.out()));
    return text.str();
  }
};

namespace detail {
inline const shardrec_options *options(const Options *options) noexcept {
  return options == nullptr ? nullptr : options->get();
}
}  // namespace detail

class Control : public detail::Handle<shardrec_control, shardrec_control_destroy> {
 public:
  struct Progress {
    int64_t done;
    int64_t total;
  };

  Control() { check(shardrec_control_create(out())); }
  void cancel() { check(shardrec_control_cancel(get())); }
  Progress progress() const {
    Progress progress{};
    check(shardrec_control_progress(get(), &progress.done, &progress.total));
    return progress;
  }
};

// How processes meet: made in one of them, its token given to all.
class Rendezvous : public detail::Handle<shardrec_rendezvous, shardrec_rendezvous_destroy> {
 public:
  explicit Rendezvous(const Options *options = nullptr) {
    check(shardrec_rendezvous_create(detail::options(options), out()));
  }
  std::string token() const {
    detail::Text text;
    check(shardrec_rendezvous_token(get(), text.out()));
    return text.str();
  }
};

class Local : public detail::Handle<shardrec_local, shardrec_local_destroy> {
 public:
  // ranks_per_node 0: all ranks are one node.
  explicit Local(int32_t ranks, int32_t ranks_per_node = 0) {
    check(shardrec_local_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, out()));
  }
};

class Comm : public detail::Handle<shardrec_comm, shardrec_comm_destroy> {
 public:
  Comm(const Local &group, int32_t rank) {
    check(shardrec_comm_create_local(group.get(), rank, out()));
  }
  // Ranks in several processes. token empty: for engines whose launcher says who the ranks are.
  Comm(shardrec_engine engine, int32_t rank, int32_t size, std::string_view token,
       const Options *options = nullptr) {
    const std::string text = detail::c_text(token);
    check(shardrec_comm_create(engine, rank, size, text.empty() ? nullptr : text.c_str(),
                               detail::options(options), out()));
  }
  // As the environment says.
  static Comm from_env(const Options *options = nullptr) {
    Comm comm;
    check(shardrec_comm_create_from_env(detail::options(options), comm.out()));
    return comm;
  }

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
  void all_reduce(const Vector &data, shardrec_reduction reduction = SHARDREC_REDUCTION_SUM) {
    check(shardrec_comm_all_reduce(get(), data.get(), reduction));
  }
  // The elements of rank root over those of all others.
  void broadcast(const Rows &tensor, int32_t root = 0) {
    check(shardrec_comm_broadcast(get(), tensor.get(), root));
  }
  // out: the elements of all ranks, in rank order.
  void all_gather(const Rows &tensor, const Rows &out) {
    check(shardrec_comm_all_gather(get(), tensor.get(), out.get()));
  }
  // out: this rank's part of the reduction.
  void reduce_scatter(const Rows &tensor, const Rows &out,
                      shardrec_reduction reduction = SHARDREC_REDUCTION_SUM) {
    check(shardrec_comm_reduce_scatter(get(), tensor.get(), out.get(), reduction));
  }
  // Equal parts of the rows to each rank.
  void all_to_all(const Rows &tensor, const Rows &out) {
    check(shardrec_comm_all_to_all(get(), tensor.get(), nullptr, out.get(), nullptr));
  }
  // As many rows as the counts say, int64, one per rank; nullptr: equal parts.
  void all_to_all(const Rows &tensor, const Vector &send_counts, const Rows &out,
                  const Vector &receive_counts) {
    check(shardrec_comm_all_to_all(get(), tensor.get(), send_counts.get(), out.get(),
                                   receive_counts.get()));
  }
  // The communicator of the ranks with this color; empty for a color below 0.
  std::optional<Comm> split(int32_t color, int32_t key = 0) {
    Comm part;
    check(shardrec_comm_split(get(), color, key, part.out()));
    if (part.get() == nullptr) return std::nullopt;
    return part;
  }
  void close() { check(shardrec_comm_close(get())); }
  void abort(std::string_view reason = {}) {
    check(shardrec_comm_abort(get(), detail::c_text(reason).c_str()));
  }

 private:
  friend class Mesh;
  Comm() = default;
};

struct LogMessage {
  shardrec_log_level level;
  int32_t rank;  // -1: none
  std::string text;
};

// Empty when no message came in time.
inline std::optional<LogMessage> next_log(int32_t timeout_ms) {
  LogMessage message{};
  detail::Text text;
  check(shardrec_log_next(timeout_ms, &message.level, &message.rank, text.out()));
  if (text.empty()) return std::nullopt;
  message.text = text.str();
  return message;
}

inline std::string capabilities() {
  detail::Text text;
  check(shardrec_capabilities(text.out()));
  return text.str();
}

// All counters of this process as Prometheus text.
inline std::string metrics_text() {
  detail::Text text;
  check(shardrec_metrics_text(text.out()));
  return text.str();
}

// The phases of steps, from start() on, as Chrome's trace JSON.
struct Trace {
  static void start(int64_t events = 1 << 18) { check(shardrec_trace_start(events)); }
  static void stop() noexcept { shardrec_trace_stop(); }
  static std::string json() {
    detail::Text text;
    check(shardrec_trace_json(text.out()));
    return text.str();
  }
};

// What this machine's memory does, as JSON: measured now and kept, or as kept.
inline std::string probe(int32_t threads = 0, const Control *control = nullptr) {
  detail::Text text;
  check(shardrec_probe(threads, control == nullptr ? nullptr : control->get(), text.out()));
  return text.str();
}
inline std::string probe_cached() {
  detail::Text text;
  check(shardrec_probe_cached(text.out()));
  return text.str();
}

inline int64_t live_objects() {
  int64_t count = 0;
  check(shardrec_live_objects(&count));
  return count;
}

inline uint64_t hash64(std::string_view bytes, uint64_t seed = 0) {
  return shardrec_hash64(seed, bytes.data(), static_cast<int64_t>(bytes.size()));
}

}  // namespace shardrec

#endif
