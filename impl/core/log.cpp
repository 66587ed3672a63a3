#include "core/log.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace shardrec::core {
namespace {

constexpr size_t kRingSize = 1024;

// Ring and sink have a mutex each: a sink may take its time without holding up those who pull.
struct LogState {
  std::mutex ring_mutex;
  std::condition_variable arrived;
  std::array<LogMessage, kRingSize> ring;
  size_t first = 0;
  size_t count = 0;

  std::mutex sink_mutex;  // held while the sink runs, so that set_log_sink waits for its end
  shardrec_log_sink sink = nullptr;
  void* context = nullptr;
};

std::atomic<int> level_limit{SHARDREC_LOG_WARNING};
thread_local bool in_sink = false;

// Leaks: threads may still log, or wait for a message, while the process exits.
LogState& log_state() {
  static LogState& state = *std::make_unique<LogState>().release();
  return state;
}

// True when a sink took the message.
bool give_to_sink(LogState& state, shardrec_log_level level, int32_t rank,
                  const std::string& text) noexcept {
  std::lock_guard lock(state.sink_mutex);
  if (state.sink == nullptr) return false;
  in_sink = true;
  try {
    state.sink(state.context, level, rank, text.c_str());
  } catch (...) {  // a sink must not throw; one that does loses its message and nothing else
  }
  in_sink = false;
  return true;
}

void put_into_ring(LogState& state, LogMessage message) {
  {
    std::lock_guard lock(state.ring_mutex);
    const size_t slot = (state.first + state.count) % kRingSize;
    state.ring[slot] = std::move(message);
    if (state.count == kRingSize) {
      state.first = (state.first + 1) % kRingSize;
    } else {
      ++state.count;
    }
  }
  state.arrived.notify_one();
}

}  // namespace

void log(shardrec_log_level level, int32_t rank, const std::string& text) noexcept {
  if (level < level_limit.load(std::memory_order_relaxed)) return;
  if (in_sink) return;  // a sink that logs would wait for itself
  try {
    LogState& state = log_state();
    if (!give_to_sink(state, level, rank, text)) put_into_ring(state, {level, rank, text});
  } catch (...) {  // no memory: the message is lost
  }
}

void set_log_level(shardrec_log_level level) noexcept {
  level_limit.store(level, std::memory_order_relaxed);
}

bool set_log_sink(shardrec_log_sink sink, void* context) {
  if (in_sink) return false;
  LogState& state = log_state();
  std::lock_guard lock(state.sink_mutex);
  state.sink = sink;
  state.context = context;
  return true;
}

std::optional<LogMessage> next_log(std::chrono::milliseconds timeout) {
  LogState& state = log_state();
  std::unique_lock lock(state.ring_mutex);
  if (!state.arrived.wait_for(lock, timeout, [&] { return state.count != 0; })) return std::nullopt;
  LogMessage message = std::move(state.ring[state.first]);
  state.first = (state.first + 1) % kRingSize;
  --state.count;
  return message;
}

}  // namespace shardrec::core
