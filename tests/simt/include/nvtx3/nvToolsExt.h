// Stands in for NVTX: ranges of threads, which tests read (simt/control.h).
#pragma once

#include <stdint.h>

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE (static_cast<uint16_t>(sizeof(nvtxEventAttributes_t)))
enum { NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1 };

struct nvtxDomain;
using nvtxDomainHandle_t = nvtxDomain*;

struct nvtxEventAttributes_t {
  uint16_t version;
  uint16_t size;
  int32_t messageType;
  union {
    const char* ascii;
  } message;
};

nvtxDomainHandle_t nvtxDomainCreateA(const char* name);
// Returns how many ranges of the thread this one is inside of; of one that is malformed or ended too
// often, it says so and ends the test.
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);
