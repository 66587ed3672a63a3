#include <nvtx3/nvToolsExt.h>

#include <map>
#include <source_location>
#include <string>

#include "quiet.h"
#include "simt/control.h"
#include "simt/warp.h"

struct nvtxDomain {
  std::string name;
};

namespace {

struct Ranges {
  simt::QuietMutex mutex;
  std::map<std::string, int64_t, std::less<>> begun;
  int64_t open = 0;
};
Ranges& ranges() {
  static Ranges* const all = new Ranges;
  return *all;
}

thread_local int depth = 0;

}  // namespace

nvtxDomainHandle_t nvtxDomainCreateA(const char* name) { return new nvtxDomain{name}; }

int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  if (domain == nullptr || range->version != NVTX_VERSION || range->size != sizeof *range ||
      range->messageType != NVTX_MESSAGE_TYPE_ASCII) {
    simt::stop("a range is malformed", std::source_location::current());
  }
  const simt::QuietLock lock(ranges().mutex);
  ++ranges().begun[range->message.ascii];
  ++ranges().open;
  return depth++;
}

int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
  if (domain == nullptr || depth == 0)
    simt::stop("a range is ended that was not begun", std::source_location::current());
  const simt::QuietLock lock(ranges().mutex);
  --ranges().open;
  return --depth;
}

int64_t simt_ranges_begun(const char* name) {
  const simt::QuietLock lock(ranges().mutex);
  const auto found = ranges().begun.find(name);
  return found == ranges().begun.end() ? 0 : found->second;
}

int64_t simt_open_ranges(void) {
  const simt::QuietLock lock(ranges().mutex);
  return ranges().open;
}
