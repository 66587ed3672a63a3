// What tests set: order of threads, failures. Also by the environment, read once:
//   SHARDREC_SIMT_DEVICES          number of devices, 1 by default; -1: as without a driver
//   SHARDREC_SIMT_MEMORY           bytes of memory of each device
//   SHARDREC_SIMT_FAIL_ALLOCATION  as simt_fail_allocation()
//   SHARDREC_SIMT_IPC              0: processes do not open each other's memory; 1 by default
//   SHARDREC_SIMT_ORDER            ascending, descending or random:SEED
//
// Visible from a shared library, so that a test finds them in a plug-in that it has loaded.
//
// Thread rule: any thread.
#pragma once

#include <stdint.h>

#define SIMT_VISIBLE __attribute__((visibility("default")))

extern "C" {

// The order of blocks and of the threads of a block, for launches from now on: 0 ascending,
// 1 descending, 2 random, from the seed.
SIMT_VISIBLE void simt_set_order(int order, uint64_t seed);

// The n-th allocation from now, of device or pinned memory, fails with cudaErrorMemoryAllocation:
// 1 is the next, 0 none.
SIMT_VISIBLE void simt_fail_allocation(int64_t nth);

// The n-th kernel, copy or memset that any stream comes to from now does not take place and breaks its
// device with the error: all that is enqueued there is left out (but events), all calls return it.
SIMT_VISIBLE void simt_fail_operation(int64_t nth, int error);
// The devices are whole again, as in a new process; what was allocated is still there.
SIMT_VISIBLE void simt_repair_devices(void);

// What is enqueued in the stream (the value of its handle) from now on waits for simt_go_on(), which lets
// all streams go on.
SIMT_VISIBLE void simt_hold_stream(int64_t stream);
SIMT_VISIBLE void simt_go_on(void);
// What a library enqueues that has kernels of its own: steps that the stream takes in order. Those on the device may
// touch its memory; they are left out on a broken device, and simt_fail_operation() counts them. The others may wait,
// touch no such memory, and always take place. All steps are enqueued, or none. Returns a cudaError_t.
struct simt_step {
  void (*function)(void* argument);
  int on_device;
};
SIMT_VISIBLE int simt_enqueue_steps(int64_t stream, const simt_step* steps, int count,
                                    void* argument);
// What such a library enqueues that may become part of graphs: function(argument) as often as the stream comes to it, on
// the device. keep(argument) is called for each copy that the runtime makes, drop(argument) when one of them goes. Also
// in a stream that is captured. Returns a cudaError_t.
struct simt_kernel {
  void (*function)(void* argument);
  void (*keep)(void* argument);
  void (*drop)(void* argument);
};
SIMT_VISIBLE int simt_enqueue_kernel(int64_t stream, const simt_kernel* kernel, void* argument);
// Is a capture on its way that the calling thread has begun? Is that of the stream?
SIMT_VISIBLE int simt_thread_captures(void);
SIMT_VISIBLE int simt_stream_captures(int64_t stream);
// The n-th capture that ends from now is found invalid: 1 is the next, 0 none.
SIMT_VISIBLE void simt_fail_capture(int64_t nth);
// The calling thread's current device; the device of a stream. -1: there is none.
SIMT_VISIBLE int simt_current_device(void);
SIMT_VISIBLE int simt_device_of_stream(int64_t stream);

// So far, of all threads: calls of cudaStreamSynchronize(); calls of cudaEventSynchronize(), but for events that
// lie before what the thread has waited for already; kernels that were launched; copies and memsets that were
// enqueued, those of graphs as often as these were launched.
SIMT_VISIBLE int64_t simt_stream_waits(void);
SIMT_VISIBLE int64_t simt_event_waits(void);
SIMT_VISIBLE int64_t simt_launches(void);
// Of simt_event_waits(), those for events without cudaEventBlockingSync.
SIMT_VISIBLE int64_t simt_spinning_waits(void);
SIMT_VISIBLE int64_t simt_copies(void);
// Calls of the runtime that used a device, launches among them.
SIMT_VISIBLE int64_t simt_calls(void);
// Graphs that were launched, and those that were made to be.
SIMT_VISIBLE int64_t simt_graph_launches(void);
SIMT_VISIBLE int64_t simt_graphs_made(void);
// Calls of cudaEventElapsedTime() for events that had not taken place: compute-sanitizer lists each as an error.
SIMT_VISIBLE int64_t simt_early_elapsed_times(void);

// Whether devices reach each other's memory, from now on: 0 they do where it is asked for, 1 they cannot, and
// cudaDeviceCanAccessPeer() says so, 2 what asks for it fails.
SIMT_VISIBLE void simt_set_peer_access(int which);
// Calls of cudaDeviceCanAccessPeer() so far; bit by bit, the devices whose pools a device was given access to
// (cudaMemPoolSetAccess()), and those that cudaDeviceEnablePeerAccess() was called for.
SIMT_VISIBLE int64_t simt_peer_questions(void);
SIMT_VISIBLE uint64_t simt_pools_reached(int device);
SIMT_VISIBLE uint64_t simt_peers_enabled(int device);
// What cudaPeekAtLastError() says to the calling thread.
SIMT_VISIBLE int simt_last_error(void);

// Ranges of this name (NVTX) that were begun so far, and those of all threads that were not ended.
SIMT_VISIBLE int64_t simt_ranges_begun(const char* name);
SIMT_VISIBLE int64_t simt_open_ranges(void);

// Bit by bit: the devices that the process has a context on, as CUDA would make them.
SIMT_VISIBLE uint64_t simt_devices_with_contexts(void);

// Kernels that came onto a device when they were launched there first, not before by
// cudaFuncGetAttributes().
SIMT_VISIBLE int64_t simt_kernels_loaded_by_launches(void);

// Allocations of device and pinned memory that were not freed; streams, events and graphs not destroyed.
SIMT_VISIBLE int64_t simt_live_allocations(void);
SIMT_VISIBLE int64_t simt_live_handles(void);
}
