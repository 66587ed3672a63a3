#include "shardrec/library.h"

#include <span>
#include <string>
#include <string_view>

#include "comm/engines/engine.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/devices.h"
#include "compute/kernels.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dense/device/gemm.h"
#include "dense/gemm.h"
#include "device_name.h"
#include "guard.h"
#include "handle.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace compute = shardrec::compute;

namespace {

void write_cuda(core::JsonWriter& json, const compute::cuda::host::FoundDevices& found) {
  json.key("cuda_devices").begin_array();
  for (const compute::cuda::host::DeviceDescription& device : found.devices) {
    json.begin_object();
    json.key("index").integer(device.index);
    json.key("name").text(device.name);
    json.key("compute_capability").text(device.capability);
    json.key("memory_bytes").integer(static_cast<int64_t>(device.bytes));
    json.key("free_bytes");
    if (device.free_bytes) {
      json.integer(static_cast<int64_t>(*device.free_bytes));
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_array();
  json.key("cuda_missing");
  if (found.missing.empty()) {
    json.null();
  } else {  // paths in it may be anything
    json.text(core::is_utf8(found.missing) ? found.missing : "the CUDA plug-in cannot be used");
  }
}

// Each: why there is no such thing here; empty where there is.
std::string missing_device(std::string_view name) {
  const auto device = read_device_name(name);
  if (!device) return core::sentence("there is no device \"", name, "\"; names are ", kDeviceNames);
  if (!device->is_cuda) return {};
  const compute::cuda::host::FoundDevices found = compute::cuda::host::find_devices();
  const auto count = static_cast<int32_t>(found.devices.size());
  if (device->number < count) return {};
  if (!found.missing.empty()) return found.missing;
  return core::sentence("there is no device \"", name, "\"; this process has ", count,
                        ", from \"cuda:0\" on");
}

std::string missing_cpu_target(std::string_view name) {
  std::string accepted;
  for (int i = 0; i < compute::cpu_kernel_count(); ++i) {
    if (compute::cpu_kernels_at(i).name == name) return {};
    core::append(accepted, core::sentence(i == 0 ? "" : ", ", compute::cpu_kernels_at(i).name));
  }
  return core::sentence("there are no kernels for \"", name, "\" on this machine; there are ",
                        accepted);
}

std::string missing_dense(std::string_view name) {
  if (name != "openblas" && name != "cublas") {
    return core::sentence("there is no GEMM plug-in \"", name,
                          "\"; there are \"openblas\" and \"cublas\"");
  }
  try {
    if (name == "openblas") {
      (void)shardrec::dense::gemm();
    } else {
      shardrec::dense::device::require_gemm();
    }
    return {};
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_UNSUPPORTED) throw;
    return error.sentence();
  }
}

std::string missing(shardrec_capability kind, std::string_view name) {
  switch (kind) {
    case SHARDREC_CAPABILITY_ENGINE:
      return shardrec::comm::missing_engine(std::string(name));
    case SHARDREC_CAPABILITY_DEVICE:
      return missing_device(name);
    case SHARDREC_CAPABILITY_CPU_TARGET:
      return missing_cpu_target(name);
    case SHARDREC_CAPABILITY_DENSE:
      return missing_dense(name);
    default:
      refuse_value("kind", static_cast<int64_t>(kind), "a shardrec_capability, 0 to 3,");
  }
}

}  // namespace

int32_t shardrec_api_version(void) { return SHARDREC_API_VERSION; }

shardrec_status shardrec_capabilities_json(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    core::JsonWriter json;
    compute::require_cpu_target();
    json.begin_object();
    json.key("version").integer(1);
    json.key("library_version").text(SHARDREC_VERSION);
    json.key("processors").integer(core::default_thread_count(1));
    json.key("api_version").integer(SHARDREC_API_VERSION);
    json.key("engines").begin_array();
    for (const std::string_view engine : shardrec::comm::installed_engines()) json.text(engine);
    json.end_array();
    const compute::cuda::host::FoundDevices cuda = compute::cuda::host::find_devices();
    json.key("devices").begin_array().text("cpu");
    if (!cuda.devices.empty()) json.text("cuda");
    json.end_array();
    write_cuda(json, cuda);
    json.key("cpu_targets").begin_array();
    for (int i = 0; i < compute::cpu_kernel_count(); ++i) {
      json.text(compute::cpu_kernels_at(i).name);
    }
    json.end_array();
    json.key("cpu_target").text(compute::cpu_kernels().name);
    const auto write_dense = [&](const char* key, const char* plugin, bool is_available) {
      json.key(key);
      if (is_available) {
        json.text(plugin);
      } else {
        json.null();
      }
    };
    write_dense("dense", "openblas", shardrec::dense::gemm_available());
    write_dense("dense_cuda", "cublas", shardrec::dense::device::gemm_on_device_available());
    json.end_object();
    *out_text = copy_text(json.str());
  });
}

shardrec_status shardrec_available(shardrec_capability kind, const char* name,
                                   int32_t* out_available, char** out_reason) {
  return guard([&] {
    require_out(out_available, "out_available");
    compute::require_cpu_target();
    std::string reason = missing(kind, require_text(name, "name"));
    if (!core::is_utf8(reason)) reason = "a plug-in cannot be used";  // paths in it may be anything
    OutText text(out_reason, reason);
    *out_available = reason.empty() ? 1 : 0;
    text.give();
  });
}

shardrec_status shardrec_live_objects(int64_t* out) {
  return guard([&] {
    require_out(out, "out");
    *out = live_objects();
  });
}

namespace {

template <class Id>
void hash_ids(uint64_t seed, const core::FlatView& ids, int64_t rows, const core::FlatView& out) {
  const std::span<const Id> from = ids.as<Id>();
  const auto modulus = static_cast<uint64_t>(rows);
  if (out.dtype == SHARDREC_INT64) {
    core::hash64_ids(seed, from, modulus, out.as<int64_t>());
  } else {
    core::hash64_ids(seed, from, modulus, out.as<int32_t>());
  }
}

}  // namespace

shardrec_status shardrec_hash64_ids(uint64_t seed, const shardrec_tensor* ids, int64_t rows,
                                    const shardrec_tensor* out) {
  return guard([&] {
    const core::FlatView from = core::id_view(ids, "ids");
    if (rows < 0) refuse_value("rows", rows, "0 or more");
    const core::FlatView to = core::id_view(out, "out", from.size);
    constexpr int64_t kMostOf32 = int64_t{1} << 31;
    if (to.dtype == SHARDREC_INT32 && (rows == 0 || rows > kMostOf32)) {
      refuse_value("rows", rows, "for out of int32 1 to 2147483648");
    }
    if (from.dtype == SHARDREC_INT64) {
      hash_ids<int64_t>(seed, from, rows, to);
    } else {
      hash_ids<int32_t>(seed, from, rows, to);
    }
  });
}

uint64_t shardrec_hash64(uint64_t seed, const void* bytes, int64_t size) {
  if (bytes == nullptr || size <= 0) return core::hash64(seed, std::string_view());
  return core::hash64(seed,
                      std::span(static_cast<const std::byte*>(bytes), static_cast<size_t>(size)));
}
