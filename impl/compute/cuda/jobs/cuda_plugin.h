// The border between the core and the CUDA plug-in: one C function that fills a C table. Only plain C
// types cross it, so that core and plug-in may be built by different compilers. It is an exact match:
// another abi or another size is refused, never guessed at.
//
// What operations work on is said by the structs beside this header, a header for each family of operations.
//
// The plug-in decides nothing: it hands the CUDA runtime's calls on, and starts kernels on what structs
// say. It throws nothing, prints nothing, never waits for a whole device, and leaves the calling
// thread's current device as it was, but for enter_device().
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/assembly.h"
#include "compute/cuda/jobs/bags.h"
#include "compute/cuda/jobs/buckets.h"
#include "compute/cuda/jobs/given_numbers.h"
#include "compute/cuda/jobs/gradients.h"
#include "compute/cuda/jobs/layers.h"
#include "compute/cuda/jobs/lookup.h"
#include "compute/cuda/jobs/losses.h"
#include "compute/cuda/jobs/presence.h"
#include "compute/cuda/jobs/routing.h"
#include "compute/cuda/jobs/rows.h"
#include "compute/cuda/jobs/scaling.h"
#include "compute/cuda/jobs/slots.h"
#include "compute/cuda/jobs/transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

// Also the suffix of the plug-in's file name.
#define SHARDREC_CUDA_ABI 5

// What every function returns that can fail: 0, or the cudaError_t of the call that failed.
typedef int32_t shardrec_cuda_error;
enum {
  SHARDREC_CUDA_OK = 0,
  SHARDREC_CUDA_OUT_OF_MEMORY = 2,  // cudaErrorMemoryAllocation
  SHARDREC_CUDA_NOT_READY = 600,    // cudaErrorNotReady
  // No cudaError_t: a call of another library failed (shardrec_cuda_library_call).
  SHARDREC_CUDA_LIBRARY_FAILED = 1000
};

// What the plug-in's function returns.
enum { SHARDREC_CUDA_FILLED = 0, SHARDREC_CUDA_ABI_MISMATCH = 1 };

// A queue of operations of one device, and a place in one.
typedef struct shardrec_cuda_stream shardrec_cuda_stream;
typedef struct shardrec_cuda_event shardrec_cuda_event;

// Enqueues what a library with kernels of its own does, in a stream (the value of a cudaStream_t) of the device that is
// the calling thread's current one. The stream may be in a capture, and the kernels become part of a graph then: the
// call allocates nothing, and waits for nothing. Any thread. Returns 0, OUT_OF_MEMORY or LIBRARY_FAILED.
typedef shardrec_cuda_error (*shardrec_cuda_library_call)(int64_t stream, const void *values);

// What a device is, as far as it can be known without using it.
typedef struct shardrec_cuda_device {
  char name[256];
  int32_t capability_major;  // 9 of compute capability 9.0
  int32_t capability_minor;
  uint64_t bytes;      // of its memory
  int64_t l2_bytes;    // of its cache
  int64_t free_bytes;  // now; -1 where open_device was not called: to ask would take memory of it
} shardrec_cuda_device;

// Calls of the CUDA runtime by the plug-in, of all threads and devices, since it was loaded.
typedef struct shardrec_cuda_calls {
  int64_t calls;     // that enqueue, record, wait, query, or make and free something
  int64_t launches;  // among them, those of kernels
  int64_t waits;     // and those that return when a place in a stream is over
} shardrec_cuda_calls;

// All operations, family by family.
#define SHARDREC_CUDA_OPERATIONS(OPERATION)     \
  SHARDREC_CUDA_BAGS_OPERATIONS(OPERATION)      \
  SHARDREC_CUDA_PRESENCE_OPERATIONS(OPERATION)  \
  SHARDREC_CUDA_TRANSFER_OPERATIONS(OPERATION)  \
  SHARDREC_CUDA_ROUTING_OPERATIONS(OPERATION)   \
  SHARDREC_CUDA_LOOKUP_OPERATIONS(OPERATION)    \
  SHARDREC_CUDA_ASSEMBLY_OPERATIONS(OPERATION)  \
  SHARDREC_CUDA_GRADIENTS_OPERATIONS(OPERATION) \
  SHARDREC_CUDA_ROWS_OPERATIONS(OPERATION)      \
  SHARDREC_CUDA_SLOTS_OPERATIONS(OPERATION)     \
  SHARDREC_CUDA_LAYERS_OPERATIONS(OPERATION)    \
  SHARDREC_CUDA_BUCKETS_OPERATIONS(OPERATION)   \
  SHARDREC_CUDA_LOSSES_OPERATIONS(OPERATION)    \
  SHARDREC_CUDA_SCALING_OPERATIONS(OPERATION)   \
  SHARDREC_CUDA_GIVEN_NUMBERS_OPERATIONS(OPERATION)

typedef struct shardrec_cuda_table {
  uint32_t size;        // in: sizeof of the core's table; out: of the plug-in's
  uint32_t abi;         // in: the core's SHARDREC_CUDA_ABI; out: the plug-in's
  const char *library;  // what the plug-in was built with, such as "CUDA 13.0"; static storage

  // Name and meaning of an error; static storage, never null.
  const char *(*error_name)(shardrec_cuda_error error);
  const char *(*error_text)(shardrec_cuda_error error);

  shardrec_cuda_error (*count_devices)(int32_t *out);
  shardrec_cuda_error (*describe_device)(int32_t device, shardrec_cuda_device *out);
  // Begins to use a device: makes what a process keeps there, and loads all kernels.
  shardrec_cuda_error (*open_device)(int32_t device);
  // Makes a device, which was opened, the calling thread's current one until leave_device(), for libraries that work
  // on it. They nest. No other device is touched.
  shardrec_cuda_error (*enter_device)(int32_t device);
  void (*leave_device)();

  // Memory of a device, in the order of a stream: it may be used by what follows there, and is given
  // back when what is before it there is over. 256-byte aligned.
  shardrec_cuda_error (*allocate)(shardrec_cuda_stream *stream, uint64_t bytes, void **out);
  shardrec_cuda_error (*release)(shardrec_cuda_stream *stream, void *memory);  // any thread
  // Memory of the host that devices read and write without another copy.
  shardrec_cuda_error (*allocate_pinned)(uint64_t bytes, void **out);
  shardrec_cuda_error (*release_pinned)(void *memory);

  shardrec_cuda_error (*create_stream)(int32_t device, shardrec_cuda_stream **out);
  void (*destroy_stream)(shardrec_cuda_stream *stream);         // what it holds takes place still
  shardrec_cuda_error (*submit)(shardrec_cuda_stream *stream);  // operations (below) begin
  shardrec_cuda_error (*wait_for_stream)(shardrec_cuda_stream *stream);
  // 1: updates of rows that were enqueued did not take place, for an error that some call has returned, since this was
  // last asked with forget 1. Any thread.
  int32_t (*lost)(shardrec_cuda_stream *stream, int32_t forget);

  // spins: a host that waits for the event keeps asking, 0: it sleeps.
  shardrec_cuda_error (*create_event)(int32_t device, int32_t spins, shardrec_cuda_event **out);
  void (*destroy_event)(shardrec_cuda_event *event);
  // The event is where the stream is now; waiting for one that was never recorded returns at once.
  shardrec_cuda_error (*record)(shardrec_cuda_event *event, shardrec_cuda_stream *stream);
  shardrec_cuda_error (*wait_for_event)(shardrec_cuda_event *event);
  // What is enqueued in the stream from now on, which may be another device's, takes place behind the
  // event.
  shardrec_cuda_error (*follow)(shardrec_cuda_stream *stream, shardrec_cuda_event *event);

  // OK once the event, which was recorded, has taken place; before that NOT_READY.
  shardrec_cuda_error (*query_event)(shardrec_cuda_event *event);

  // Events that know when they took place. The time between two of them is asked for when both have:
  // before that it is an error of the program, which NVIDIA's compute-sanitizer lists.
  shardrec_cuda_error (*create_timed_event)(int32_t device, shardrec_cuda_event **out);
  shardrec_cuda_error (*milliseconds_between)(shardrec_cuda_event *first,
                                              shardrec_cuda_event *second, float *out);
  // Ranges of the calling thread for NVIDIA's profilers (NVTX), in the domain "shardrec"; they nest.
  void (*begin_range)(const char *name);
  void (*end_range)();

  // Streams as numbers: the value of a cudaStream_t. Those of callers are of the event's device; 0 is its
  // legacy default stream.
  int64_t (*stream_number)(shardrec_cuda_stream *stream);
  shardrec_cuda_error (*record_caller)(shardrec_cuda_event *event, int64_t stream);
  shardrec_cuda_error (*caller_follows)(int64_t stream, shardrec_cuda_event *event);

  // Inside the memory of the stream's device, and between it and pinned memory. Memory of the host that
  // is not pinned works as well, but may take the caller's time.
  shardrec_cuda_error (*copy)(shardrec_cuda_stream *stream, void *to, const void *from,
                              uint64_t bytes);
  // The same where the host's memory is pinned, and is kept as it is until an event behind the copy has taken
  // place.
  shardrec_cuda_error (*copy_kept)(shardrec_cuda_stream *stream, void *to, const void *from,
                                   uint64_t bytes);
  // From memory of another device to that of the stream's.
  shardrec_cuda_error (*copy_from_device)(shardrec_cuda_stream *stream, void *to, int32_t device,
                                          const void *from, uint64_t bytes);
  shardrec_cuda_error (*fill)(shardrec_cuda_stream *stream, void *to, uint8_t byte, uint64_t bytes);

  void (*count_calls)(shardrec_cuda_calls *out);

  // Operations: in the order of the stream. They, calls of libraries, fills and copies of what is kept begin when
  // something else is asked of the stream: an event that is recorded behind them, a wait. Lists lie in the device's
  // memory. What each takes is said where its family is (SHARDREC_CUDA_OPERATIONS).
#define SHARDREC_CUDA_ENTRY(name, ...) \
  shardrec_cuda_error (*name)(shardrec_cuda_stream * stream, __VA_ARGS__);
  SHARDREC_CUDA_OPERATIONS(SHARDREC_CUDA_ENTRY)
#undef SHARDREC_CUDA_ENTRY
  // A call of a library as an operation. The values, which begin at a multiple of 8, are copied. Calls of the same bytes
  // enqueue the same: where a list of operations comes again they are not called, and its graph is launched.
  shardrec_cuda_error (*call_library)(shardrec_cuda_stream *stream, shardrec_cuda_library_call call,
                                      const void *values, uint64_t bytes);
} shardrec_cuda_table;

// Exported as "shardrec_cuda_plugin". Sets size and abi always, the rest when it returns FILLED.
typedef int32_t (*shardrec_cuda_plugin_function)(shardrec_cuda_table *table);

#ifdef __cplusplus
}
#endif
