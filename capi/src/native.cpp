#include "shardrec/native.h"

#include "core/log.h"
#include "guard.h"
#include "handle.h"

using namespace shardrec::capi;
namespace core = shardrec::core;

shardrec_status shardrec_log_set_sink(shardrec_log_sink sink, void* context) {
  return guard([&] {
    refuse_after_fork();
    watch_forks();
    if (!core::set_log_sink(sink, context)) {
      core::fail(SHARDREC_BUSY,
                 "shardrec_log_set_sink was called from inside a sink, which it would wait for; "
                 "call it from elsewhere");
    }
  });
}
