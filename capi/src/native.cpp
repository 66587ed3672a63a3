#include "shardrec/native.h"

#include "compute/cuda/host/allocator.h"
#include "core/log.h"
#include "core/tensor.h"
#include "guard.h"
#include "handle.h"
#include "objects/dense_objects.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace device = shardrec::compute::cuda::host;

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

shardrec_status shardrec_ddp_set_callback(shardrec_ddp* ddp, shardrec_ddp_callback callback,
                                          void* context) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    if (callback == nullptr) return use->ddp.set_bucket_done(nullptr);
    use->ddp.set_bucket_done([=](int32_t bucket) {
      const InCallback scope(ddp);
      callback(context, bucket);
    });
  });
}

shardrec_status shardrec_ddp_set_hook(shardrec_ddp* ddp, shardrec_ddp_hook hook, void* context) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    if (hook == nullptr) return use->ddp.set_hook(nullptr);
    use->ddp.set_hook([=](int32_t bucket, shardrec_dtype dtype, std::span<std::byte> data) {
      const int64_t elements =
          static_cast<int64_t>(data.size()) / static_cast<int64_t>(core::dtype_size(dtype));
      const shardrec_tensor buffer =
          core::compact_view(data.data(), dtype, std::span(&elements, 1));
      const shardrec_status status = [&] {
        const InCallback scope(ddp);
        return hook(context, bucket, &buffer);
      }();
      if (status == SHARDREC_OK) return;
      core::fail(status,
                 core::sentence("the hook of bucket ", bucket, " returned status ",
                                static_cast<int>(status)),
                 {.value = bucket, .operation = "ddp: hook"});
    });
  });
}

shardrec_status shardrec_device_set_allocator(shardrec_device_allocate allocate,
                                              shardrec_device_release release, void* context) {
  return guard([&] {
    if ((allocate == nullptr) != (release == nullptr)) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 "an allocator of devices is two functions, or none: one of them is NULL");
    }
    device::set_allocator({allocate, release, context});
  });
}
