#include "shardrec/probe.h"

#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/probe.h"
#include "compute/probe/probe.h"
#include "compute/probe/profile_cache.h"
#include "guard.h"
#include "objects/control_object.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace compute = shardrec::compute;

shardrec_status shardrec_probe_json(int32_t threads, shardrec_control* control_handle,
                                    char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    constexpr int32_t kMostThreads = 4096;
    if (threads < 0 || threads > kMostThreads)
      refuse_value("threads", int64_t{threads}, "0 to 4096");
    compute::require_cpu_target();
    const auto control = shared_control(control_handle);
    *out_text = copy_text(
        compute::profile_to_json(compute::probe::probe_this_machine(threads, control.get())));
  });
}

shardrec_status shardrec_probe_device_json(int32_t device, shardrec_control* control_handle,
                                           char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    constexpr int32_t kMostDevice = 1023;
    if (device < 0 || device > kMostDevice) refuse_value("device", int64_t{device}, "0 to 1023");
    const auto control = shared_control(control_handle);
    compute::require_cpu_target();
    *out_text = copy_text(
        compute::cuda::profile_to_json(compute::cuda::probe_device(device, control.get())));
  });
}

shardrec_status shardrec_probe_cached_json(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    compute::require_cpu_target();
    *out_text =
        copy_text(compute::profile_to_json(compute::require_profile(core::default_environment())));
  });
}
