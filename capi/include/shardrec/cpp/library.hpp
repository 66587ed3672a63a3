// Part of shardrec.hpp: control, the log, traces, the probe, the library itself.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_LIBRARY_HPP
#define SHARDREC_CPP_LIBRARY_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardrec/control.h"
#include "shardrec/cpp/tensor.hpp"
#include "shardrec/library.h"
#include "shardrec/log.h"
#include "shardrec/native.h"
#include "shardrec/observe.h"
#include "shardrec/probe.h"

namespace shardrec {

// Progress and cancelling of a long call, from any thread.
class Control : public detail::Handle<shardrec_control, shardrec_control_destroy> {
 public:
  struct Progress {
    int64_t done;
    int64_t total;
  };

  Control() { check(shardrec_control_create(nullptr, out())); }
  using Handle::Handle;

  void cancel() { check(shardrec_control_cancel(get())); }
  Progress progress() const {
    Progress progress{};
    check(shardrec_control_progress(get(), &progress.done, &progress.total));
    return progress;
  }
};

namespace detail {
inline shardrec_control *control(const Control *control) noexcept {
  return control == nullptr ? nullptr : control->get();
}
}  // namespace detail

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

inline void set_log_level(shardrec_log_level level) { check(shardrec_log_set_level(level)); }
// nullptr: back to next_log(). native.h says what a sink may do.
inline void set_log_sink(shardrec_log_sink sink, void *context = nullptr) {
  check(shardrec_log_set_sink(sink, context));
}

// major * 1000 + minor of the API that the loaded library serves.
inline int32_t api_version() noexcept { return shardrec_api_version(); }

// What the library can do on this machine, as JSON.
inline std::string capabilities_json() {
  detail::Text text;
  check(shardrec_capabilities_json(text.out()));
  return text.str();
}

// Whether the library has an engine, a device, kernels or a plug-in on this machine, and why not.
struct Availability {
  bool is_available;
  std::string reason;  // empty where it is available

  explicit operator bool() const noexcept { return is_available; }
};
inline Availability available(shardrec_capability kind, std::string_view name) {
  int32_t is_available = 0;
  detail::Text reason;
  check(shardrec_available(kind, detail::c_text(name).c_str(), &is_available, reason.out()));
  return {is_available != 0, reason.str()};
}

// All counters of this process as Prometheus text.
inline std::string counters_text() {
  detail::Text text;
  check(shardrec_counters_text(text.out()));
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

// What memory does, as JSON, measured now: this machine's ("cpu"), which is kept, or a device's ("cuda:0").
inline std::string probe_json(std::string_view device = "cpu", int32_t threads = 0,
                              const Control *control = nullptr) {
  detail::Text text;
  check(shardrec_probe_json(detail::c_text(device).c_str(), threads, 0, detail::control(control),
                            text.out()));
  return text.str();
}
// This machine's, as it is kept.
inline std::string probe_cached_json() {
  detail::Text text;
  check(shardrec_probe_json(nullptr, 0, 1, nullptr, text.out()));
  return text.str();
}
// Empty when none is kept.
inline std::optional<std::string> find_probe_cached_json() {
  detail::Text text;
  if (!found(shardrec_probe_json(nullptr, 0, 1, nullptr, text.out()))) return std::nullopt;
  return text.str();
}

// Handles of any kind that are open in this process.
inline int64_t live_objects() {
  int64_t count = 0;
  check(shardrec_live_objects(&count));
  return count;
}

inline uint64_t hash64(std::string_view bytes, uint64_t seed = 0) {
  return shardrec_hash64(seed, bytes.data(), static_cast<int64_t>(bytes.size()));
}

// Rows of a table for raw ids, int64 or int32: hash64 of each as eight bytes, modulo rows; rows 0: the
// hash itself.
inline void hash64_ids(uint64_t seed, const Vector &ids, int64_t rows, const Vector &out) {
  check(shardrec_hash64_ids(seed, ids.get(), rows, out.get()));
}

}  // namespace shardrec

#endif
