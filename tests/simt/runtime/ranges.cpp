#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <source_location>
#include <string_view>

#include "quiet.h"
#include "simt/control.h"
#include "simt/warp.h"

struct nvtxDomain {
  const char* name = nullptr;
};

namespace {

// Without allocations, which tests let fail: a profiler is no reason why a program has no memory.
struct Name {
  const char* text = "";
  int64_t begun = 0;
};
struct Ranges {
  simt::QuietMutex mutex;
  std::array<Name, 64> names{};
  size_t known = 0;
  int64_t open = 0;

  Name* find(std::string_view text) {
    Name* const end = names.data() + known;
    Name* const found =
        std::find_if(names.data(), end, [&](const Name& n) { return n.text == text; });
    return found == end ? nullptr : found;
  }
};
constinit Ranges ranges;

thread_local int depth = 0;

}  // namespace

nvtxDomainHandle_t nvtxDomainCreateA(const char* name) {
  static nvtxDomain only;
  only.name = name;
  return &only;
}

int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  const auto here = std::source_location::current();
  if (domain == nullptr || range->version != NVTX_VERSION || range->size != sizeof *range ||
      range->messageType != NVTX_MESSAGE_TYPE_ASCII) {
    simt::stop("a range is malformed", here);
  }
  const simt::QuietLock lock(ranges.mutex);
  Name* name = ranges.find(range->message.ascii);
  if (name == nullptr) {
    if (ranges.known == ranges.names.size()) simt::stop("there are too many names of ranges", here);
    name = &ranges.names[ranges.known++];
    name->text = range->message.ascii;
  }
  ++name->begun;
  ++ranges.open;
  return depth++;
}

int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
  if (domain == nullptr || depth == 0) {
    simt::stop("a range is ended that was not begun", std::source_location::current());
  }
  const simt::QuietLock lock(ranges.mutex);
  --ranges.open;
  return --depth;
}

int64_t simt_ranges_begun(const char* name) {
  const simt::QuietLock lock(ranges.mutex);
  const Name* const found = ranges.find(name);
  return found == nullptr ? 0 : found->begun;
}

int64_t simt_open_ranges(void) {
  const simt::QuietLock lock(ranges.mutex);
  return ranges.open;
}
