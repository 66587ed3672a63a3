/* Callbacks: for C and C++ programs only. Other hosts pull (log.h, control.h) or wait (ddp.h); bindings
 * leave this header out (bindings/native_only.txt).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_NATIVE_H
#define SHARDREC_NATIVE_H

#include "shardrec/ddp.h"
#include "shardrec/log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with each message, on the thread that logs; must return soon, must not call the library,
 * must not throw. text is valid during the call. */
typedef void (*shardrec_log_sink)(void *context, shardrec_log_level level, int32_t rank,
                                  const char *text);

/* Sends messages to sink instead of the ring; NULL: back to the ring. When it returns, the former
 * sink is no longer running (do not call it from a sink: BUSY). Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_log_set_sink(SHARDREC_NULLABLE shardrec_log_sink sink,
                                                   SHARDREC_NULLABLE SHARDREC_KEPT void *context);

/* Called when the gradients of a bucket have been reduced and written (after the step of
 * DDP_STEP_IN_BACKWARD, where that is on), in the order of buckets, inside shardrec_ddp_wait or on a
 * thread of the library. It may read and write parameters and gradients of the bucket
 * (shardrec_ddp_bucket_of), must return soon, and calls of this handle but shardrec_ddp_gradient,
 * _state and _bucket_of are refused inside it with INVALID_STATE. */
typedef void (*shardrec_ddp_callback)(void *context, int32_t bucket);

/* callback NULL: none. Before commit; not collective. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_STATE. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_ddp_set_callback(shardrec_ddp *ddp, SHARDREC_NULLABLE shardrec_ddp_callback callback,
                          SHARDREC_NULLABLE SHARDREC_KEPT void *context);

/* Takes the place of the exchange of gradients, of all buckets in their order, on the threads of
 * shardrec_ddp_callback. buffer: [elements], the bucket's dtype, this rank's gradients (zeros of what it
 * did not use), to be overwritten with the reduced ones, the same on all ranks; valid during the call.
 * It may block, in collectives of another communicator for example; what a callback may not call is
 * refused here too. DDP_AVERAGE, DDP_FACTOR and DDP_COMPRESSION do not apply. Another status than OK ends
 * the step and the communicator. */
typedef shardrec_status (*shardrec_ddp_hook)(void *context, int32_t bucket,
                                             const shardrec_tensor *buffer);

/* hook NULL: none; set on all ranks or on none. Before commit; not collective. Errors: as
 * shardrec_ddp_set_callback. C and C++ only. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_set_hook(shardrec_ddp *ddp,
                                                   SHARDREC_NULLABLE shardrec_ddp_hook hook,
                                                   SHARDREC_NULLABLE SHARDREC_KEPT void *context);

/* Memory of devices from the program in place of CUDA's stream-ordered pool, so that both live from one
 * reserve (PyTorch's caching allocator, for example).
 * allocate: at least bytes bytes of the device, 256-byte aligned, for what the library enqueues in the
 * stream (the value of a cudaStream_t of its own) from then on; NULL: there is no memory, which the call
 * that asked tells as OUT_OF_MEMORY.
 * release: it gives back what allocate gave, with the same bytes and stream; it may be used again behind
 * what the stream holds then.
 * Both are called on any thread, several at once; they must not call the library and must not throw. */
typedef void *(*shardrec_device_allocate)(void *context, int32_t device, int64_t bytes,
                                          int64_t stream);
typedef void (*shardrec_device_release)(void *context, int32_t device, void *memory, int64_t bytes,
                                        int64_t stream);

/* Sets the allocator of the process for what is allocated from now on; both NULL: CUDA's. What an allocator
 * gave is given back to it, also after another one was set: it and its context live until the
 * collections on a device that were made meanwhile are destroyed with their lookups, and so is the memory of
 * devices (memory.h). Any thread. Errors: INVALID_ARGUMENT (one of both NULL). C and C++ only. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_device_set_allocator(SHARDREC_NULLABLE shardrec_device_allocate allocate,
                              SHARDREC_NULLABLE shardrec_device_release release,
                              SHARDREC_NULLABLE SHARDREC_KEPT void *context);

#ifdef __cplusplus
}
#endif
#endif
