#include "core/log.h"

#include <chrono>
#include <optional>

#include "guard.h"
#include "handle.h"
#include "shardrec/log.h"

using namespace shardrec::capi;
namespace core = shardrec::core;

shardrec_status shardrec_log_set_level(shardrec_log_level level) {
  return guard([&] {
    if (level < SHARDREC_LOG_DEBUG || level > SHARDREC_LOG_OFF) {
      refuse_value("level", int64_t{level}, "SHARDREC_LOG_DEBUG to SHARDREC_LOG_OFF");
    }
    core::set_log_level(level);
  });
}

shardrec_status shardrec_log_next(int32_t timeout_ms, shardrec_log_level* out_level,
                                  int32_t* out_rank, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    if (timeout_ms < 0) refuse_value("timeout_ms", int64_t{timeout_ms}, "0 or more");
    refuse_after_fork();
    watch_forks();
    const std::optional<core::LogMessage> message =
        core::next_log(std::chrono::milliseconds(timeout_ms));
    if (!message.has_value()) {
      *out_text = nullptr;
      return;
    }
    *out_text = copy_text(message->text);
    if (out_level != nullptr) *out_level = message->level;
    if (out_rank != nullptr) *out_rank = message->rank;
  });
}
