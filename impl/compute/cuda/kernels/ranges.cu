#include "compute/cuda/kernels/ranges.h"

// NVTX is headers only, which a toolkit may lack.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace shardrec::compute::cuda {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("shardrec");
  return made;
}

}  // namespace

void begin_range(const char* name) {
  nvtxEventAttributes_t range = {};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &range);
}

void end_range() { nvtxDomainRangePop(domain()); }

}  // namespace shardrec::compute::cuda
#else

namespace shardrec::compute::cuda {

void begin_range(const char*) {}
void end_range() {}

}  // namespace shardrec::compute::cuda
#endif
