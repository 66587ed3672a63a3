// How often the plug-in has called the CUDA runtime (shardrec_cuda_calls): each call that enqueues, records, waits,
// queries, or makes and frees something is counted where it is made, by the function around it.
//
// A call of CUB (cub.h) counts as one launch: it starts one to about ten kernels, a number that is CUB's own affair.
// Not counted: queries that find operations under way, which whoever waits repeats; what asks for devices and their
// properties, what loads kernels, what lets devices reach each other (peers.h), what other libraries enqueue
// (call_library), and the push and the pop of a context (contexts.h), a pair of which surrounds each function of the
// table that works on a device.
//
// Thread rule: any thread.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

#include "compute/cuda/jobs/cuda_plugin.h"

namespace shardrec::compute::cuda {

// A cache line for each: threads of several ranks count at the same time.
struct CallCounts {
  alignas(64) std::atomic<int64_t> calls{0};
  alignas(64) std::atomic<int64_t> launches{0};
  alignas(64) std::atomic<int64_t> waits{0};
};
inline CallCounts call_counts;
// While the thread captures a graph: its launches, which count when it is launched. Null: it captures none.
inline thread_local int64_t* captured_launches = nullptr;

// Around a call of the runtime; its error comes back.
inline cudaError_t called(cudaError_t error) {
  call_counts.calls.fetch_add(1, std::memory_order_relaxed);
  return error;
}
// The same of a call that launches kernels.
inline cudaError_t launched(cudaError_t error) {
  if (captured_launches != nullptr) {
    ++*captured_launches;
  } else {
    call_counts.launches.fetch_add(1, std::memory_order_relaxed);
  }
  return called(error);
}
// And of one that launches a graph.
inline cudaError_t launched_graph(cudaError_t error, int64_t launches) {
  call_counts.launches.fetch_add(launches, std::memory_order_relaxed);
  return called(error);
}
// And of one that returns when a place in a stream is over: the thread may have waited.
inline cudaError_t waited(cudaError_t error) {
  call_counts.waits.fetch_add(1, std::memory_order_relaxed);
  return called(error);
}

inline void count_calls(shardrec_cuda_calls* out) {
  *out = {.calls = call_counts.calls.load(std::memory_order_relaxed),
          .launches = call_counts.launches.load(std::memory_order_relaxed),
          .waits = call_counts.waits.load(std::memory_order_relaxed)};
}

}  // namespace shardrec::compute::cuda
