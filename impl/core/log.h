// The log: a bounded ring that hosts pull from, or a sink that C and C++ programs set. Silent by
// default; never stdout or stderr. All functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "shardrec/native.h"

namespace shardrec::core {

struct LogMessage {
  shardrec_log_level level = SHARDREC_LOG_INFO;
  int32_t rank = -1;  // -1: none
  std::string text;
};

// Records a message, or drops it when it is below the level, memory is short or the caller is
// inside a sink. A sink runs on one thread at a time.
void log(shardrec_log_level level, int32_t rank, const std::string& text) noexcept;

void set_log_level(shardrec_log_level level) noexcept;
bool set_log_sink(shardrec_log_sink sink, void* context);  // false: called from inside a sink
// Takes the oldest message, waiting up to timeout for one.
std::optional<LogMessage> next_log(std::chrono::milliseconds timeout);

}  // namespace shardrec::core
