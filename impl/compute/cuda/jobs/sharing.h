// A second table of the CUDA plug-in (cuda_plugin.h, whose rules hold): what processes of one machine give each other of
// a device, memory and events, by handles. A plug-in without it is as good else: messages between processes go through
// their hosts then.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/cuda_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

// What another process opens: the bytes of CUDA's cudaIpcMemHandle_t and cudaIpcEventHandle_t.
typedef struct shardrec_cuda_handle {
  uint8_t bytes[64];
} shardrec_cuda_handle;

typedef struct shardrec_cuda_sharing {
  uint32_t size;  // in: sizeof of the core's table; out: of the plug-in's
  uint32_t abi;   // in: the core's SHARDREC_CUDA_ABI; out: the plug-in's

  // Memory of a device that other processes of the machine may open, and not the one that it is of; it may be used at
  // once. It is released when nobody has it open, which is the callers' affair; releasing waits for the whole device.
  // 256-byte aligned.
  shardrec_cuda_error (*allocate)(int32_t device, uint64_t bytes, void **out,
                                  shardrec_cuda_handle *handle);
  shardrec_cuda_error (*release)(int32_t device, void *memory);
  // Memory of another process, as memory of this device; closed when no operation uses it any more.
  shardrec_cuda_error (*open)(int32_t device, const shardrec_cuda_handle *handle, void **out);
  shardrec_cuda_error (*close)(int32_t device, void *memory);
  // An event that other processes may open, for the first table's functions. And one of another process, which is only
  // queried and destroyed, and that before the other process destroys it. It is where that process recorded it last;
  // where that has ended, it may never take place.
  shardrec_cuda_error (*create_event)(int32_t device, shardrec_cuda_event **out,
                                      shardrec_cuda_handle *handle);
  shardrec_cuda_error (*open_event)(int32_t device, const shardrec_cuda_handle *handle,
                                    shardrec_cuda_event **out);
} shardrec_cuda_sharing;

// Exported as "shardrec_cuda_sharing_plugin". Sets size and abi always, the rest when it returns FILLED.
typedef int32_t (*shardrec_cuda_sharing_function)(shardrec_cuda_sharing *table);

#ifdef __cplusplus
}
#endif
