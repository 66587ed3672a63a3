/* Memory of devices for programs that have no CUDA of their own, and copies of tensors.
 *
 *   create -> tensor -> copy there -> begin, forward, ... -> copy back -> destroy
 *
 * A tensor on a device is given to a lookup of a collection on that device (option DEVICE) as one on the
 * CPU is; the host reads what it holds by shardrec_tensor_copy. A program with CUDA needs none of this:
 * tensors view any memory of a device.
 *
 * Thread rule: any thread, several at once. Two calls that write one tensor, or of which one writes what
 * the other reads, are the caller's to order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_MEMORY_H
#define SHARDREC_MEMORY_H

#include "shardrec/options.h"
#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes on a device or on the CPU. Any thread. */
typedef struct shardrec_memory shardrec_memory;

/* Allocates memory, all zeros when the call returns, for work in any stream. type: SHARDREC_DEVICE_CUDA,
 * or SHARDREC_DEVICE_CPU: memory that devices copy from and to without another copy, where the CUDA plug-in
 * and its driver are there and have room for it, and plain memory elsewhere. It takes a context of CUDA,
 * which a process has of each device that it has used, and of device 0 where there is none: make it after
 * the collection where ranks have devices of their own. device_id: 0 on the CPU. bytes: 0 or more; it begins
 * at a multiple of 64 bytes, on a device of 256. out: owned by the caller.
 * Errors: UNSUPPORTED (no CUDA plug-in), INVALID_ARGUMENT (no such device, an unknown type, negative
 * bytes), OUT_OF_MEMORY, DEVICE_ERROR. May block while the device begins to be used. Since 0.1. */
SHARDREC_API shardrec_status shardrec_memory_create(shardrec_device_type type, int32_t device_id,
                                                    int64_t bytes,
                                                    SHARDREC_OPTIONS(NONE)
                                                    const shardrec_options *options,
                                                    shardrec_memory **out);

/* Destroys the handle and nulls the caller's copy; tensors of it are valid no more. Memory of a device is
 * given back behind what the legacy default stream of the device holds, which the library's own work on
 * tensors in that stream's order is part of: the caller need not wait for it. What other streams do with it
 * must be over. Never blocks, but for memory of the CPU where the plug-in is there: CUDA gives it back when
 * its devices have nothing to do. Since 0.1. */
SHARDREC_API void shardrec_memory_destroy(SHARDREC_NULLABLE shardrec_memory **memory);

/* Fills out with a compact, row-major view of the memory, valid while the handle is open. offset_bytes:
 * where the first element lies, a multiple of the dtype's size. shape: [ndim]; may be NULL where ndim is 0,
 * a tensor of one element. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT (an offset that is negative
 * or not aligned, an unknown dtype, ndim outside 0 to SHARDREC_MAX_DIMENSIONS, a negative size, or the
 * tensor does not end within the memory). Since 0.1. */
SHARDREC_API shardrec_status shardrec_memory_tensor(const shardrec_memory *memory,
                                                    int64_t offset_bytes, shardrec_dtype dtype,
                                                    int32_t ndim,
                                                    SHARDREC_NULLABLE const int64_t *shape,
                                                    shardrec_tensor *out);

/* Copies a tensor to another of the same dtype and shape, bit by bit. Each may be on the CPU or on a
 * device, in any memory, with rows (dimension 0) of any stride that keeps them apart; both on devices:
 * on the same one. They do not overlap.
 * Where a device takes part, the copy takes place in the order of the stream: the value of a cudaStream_t
 * of that device, which is not being captured; 0: its legacy default stream, which lookups follow too
 * unless shardrec_lookup_set_stream says otherwise. With a tensor on the CPU the call returns when that
 * was read or written; between two tensors of a device it enqueues, and what is enqueued in the stream
 * afterwards finds the copy made. Between tensors on the CPU stream is not looked at.
 * Errors: INVALID_ARGUMENT (tensors that differ, no such device, no stream of the device as far as CUDA can
 * tell), UNSUPPORTED (no CUDA plug-in, two devices), OUT_OF_MEMORY, DEVICE_ERROR (of this copy or of earlier
 * work on the device). Since 0.1. */
SHARDREC_API shardrec_status shardrec_tensor_copy(SHARDREC_WRITTEN const shardrec_tensor *to,
                                                  const shardrec_tensor *from, int64_t stream);

#ifdef __cplusplus
}
#endif
#endif
