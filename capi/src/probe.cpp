#include "shardrec/probe.h"

#include <memory>
#include <mutex>
#include <string>

#include "compute/cpu_target.h"
#include "compute/probe/probe.h"
#include "compute/probe/profile_cache.h"
#include "control_object.h"
#include "core/log.h"
#include "core/threads.h"
#include "guard.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace compute = shardrec::compute;

namespace {

std::mutex& probing() {
  static std::mutex* const leaked = std::make_unique<std::mutex>().release();
  return *leaked;
}

// Where it cannot be kept, the measurement is still worth its text.
void keep(const compute::MemoryProfile& profile) {
  const std::string directory = compute::profile_directory();
  const auto warn = [](const std::string& why) {
    core::log(SHARDREC_LOG_WARNING, -1, "the memory profile is not stored: " + why);
  };
  if (!profile.quiet) {
    warn("other work disturbed the measurement; probe again when the machine is idle");
  } else if (directory.empty()) {
    warn("none of SHARDREC_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
  } else {
    try {
      compute::store_profile(core::default_environment(), directory, profile);
    } catch (const core::Error& error) {
      warn(error.sentence());
    }
  }
}

}  // namespace

shardrec_status shardrec_probe(int32_t threads, shardrec_control* control_handle, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    constexpr int32_t kMostThreads = 4096;
    if (threads < 0 || threads > kMostThreads)
      refuse_value("threads", int64_t{threads}, "0 to 4096");
    compute::require_cpu_target();
    std::shared_ptr<core::Control> control;
    if (control_handle != nullptr) control = enter(control_handle, Access::kShared).share();
    const std::unique_lock alone(probing(), std::try_to_lock);
    if (!alone.owns_lock()) {
      core::fail(SHARDREC_BUSY,
                 "another probe is running in this process; two would measure each other");
    }
    const int count = threads == 0 ? core::default_thread_count(1) : threads;
    const compute::MemoryProfile profile = compute::probe::probe_memory(
        count, control.get(), compute::probe::probe_sizes(compute::this_machine(), count));
    keep(profile);
    *out_text = copy_text(compute::profile_to_json(profile));
  });
}

shardrec_status shardrec_probe_cached(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    compute::require_cpu_target();
    const compute::Machine machine = compute::this_machine();
    const std::string directory = compute::profile_directory();
    const auto profile = compute::load_profile(core::default_environment(), directory, machine);
    if (!profile) {
      core::fail(SHARDREC_NOT_FOUND,
                 directory.empty()
                     ? "there is no memory profile: none of SHARDREC_CACHE_DIR, XDG_CACHE_HOME and "
                       "HOME is set"
                     : core::sentence("there is no memory profile of this machine in ", directory,
                                      "; shardrec_probe makes one"),
                 {.path = directory});
    }
    *out_text = copy_text(compute::profile_to_json(*profile));
  });
}
