#include "shardrec/probe.h"

#include <string>
#include <string_view>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/probe.h"
#include "compute/probe/probe.h"
#include "compute/probe/profile_cache.h"
#include "device_name.h"
#include "guard.h"
#include "objects/control_object.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace compute = shardrec::compute;

shardrec_status shardrec_probe_json(const char* device, int32_t threads, int32_t cached,
                                    shardrec_control* control_handle, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    if (cached != 0 && cached != 1) refuse_value("cached", int64_t{cached}, "0 or 1");
    const std::string_view text = device == nullptr ? "cpu" : require_text(device, "device");
    const auto name = read_device_name(text);
    if (!name) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("device is \"", text, "\"; ", kDeviceNames, " is accepted"));
    }
    constexpr int32_t kMostThreads = 4096;
    if (threads < 0 || threads > kMostThreads)
      refuse_value("threads", int64_t{threads}, "0 to 4096");
    if (threads != 0 && (name->is_cuda || cached != 0)) {
      refuse_value("threads", int64_t{threads}, name->is_cuda ? "of a device 0" : "with cached 0");
    }
    if (name->is_cuda && cached != 0) {
      core::fail(SHARDREC_UNSUPPORTED, core::sentence("the profile of \"", text,
                                                      "\" is not kept; cached is for \"cpu\""));
    }
    const auto control = shared_control(control_handle);
    compute::require_cpu_target();
    std::string json;
    if (name->is_cuda) {
      json =
          compute::cuda::profile_to_json(compute::cuda::probe_device(name->number, control.get()));
    } else if (cached != 0) {
      json = compute::profile_to_json(compute::require_profile(core::default_environment()));
    } else {
      json = compute::profile_to_json(compute::probe::probe_this_machine(threads, control.get()));
    }
    *out_text = copy_text(json);
  });
}
