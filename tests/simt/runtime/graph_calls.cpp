// Calls about captures and graphs.
#include <atomic>
#include <new>

#include "calls.h"
#include "simt/control.h"

namespace simt {
namespace {

std::atomic<int64_t> graph_launches{0};
std::atomic<int64_t> graphs_made{0};
std::atomic<int64_t> captures_to_failure{0};
thread_local int64_t captures_of_thread = 0;

uintptr_t number(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

std::unique_ptr<const Captured> copy_of(const Captured& operations) {
  auto copies = std::make_unique<Captured>();
  for (const auto& operation : operations) copies->push_back(operation->copy());
  return copies;
}

}  // namespace
}  // namespace simt

using simt::call;

int64_t simt_graph_launches(void) { return simt::graph_launches.load(); }

int64_t simt_graphs_made(void) { return simt::graphs_made.load(); }

int simt_thread_captures(void) { return simt::captures_of_thread > 0 ? 1 : 0; }

int simt_stream_captures(int64_t stream) {
  const simt::Stream* const found = simt::find_stream(reinterpret_cast<cudaStream_t>(stream));
  return found != nullptr && found->is_capturing() ? 1 : 0;
}

void simt_fail_capture(int64_t nth) { simt::captures_to_failure = nth; }

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
      return cudaErrorInvalidValue;
    }
    if (stream->is_capturing()) return cudaErrorIllegalState;
    stream->begin_capture();
    ++simt::captures_of_thread;
    return cudaSuccess;
  });
}

// Also on a broken device, and where the capture is invalid: the capture ends.
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  simt::Stream* const stream = simt::find_stream(handle);
  const bool captures = stream != nullptr && stream->is_capturing();
  std::unique_ptr<const simt::Captured> operations;
  bool has_room = true;
  if (captures) {
    try {
      operations = stream->end_capture();
    } catch (const std::bad_alloc&) {
      has_room = false;
    }
    --simt::captures_of_thread;
    if (simt::captures_to_failure.fetch_sub(1) == 1) operations.reset();
  }
  if (graph != nullptr) *graph = nullptr;
  return call([&]() -> cudaError_t {
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (graph == nullptr) return cudaErrorInvalidValue;
    if (!captures) return cudaErrorIllegalState;
    if (!has_room) return cudaErrorMemoryAllocation;
    if (operations == nullptr) return cudaErrorStreamCaptureInvalidated;
    *graph = reinterpret_cast<cudaGraph_t>(simt::add_graph(std::move(operations)));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return call([&]() -> cudaError_t {
    if (executable == nullptr || flags != 0) return cudaErrorInvalidValue;
    const simt::Captured* const operations = simt::find_graph(simt::number(graph));
    if (operations == nullptr) return cudaErrorInvalidValue;
    *executable = reinterpret_cast<cudaGraphExec_t>(simt::add_graph(simt::copy_of(*operations)));
    simt::graphs_made.fetch_add(1);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    const simt::Captured* const operations = simt::find_graph(simt::number(executable));
    if (operations == nullptr) return cudaErrorInvalidValue;
    simt::graph_launches.fetch_add(1);
    stream->enqueue(*operations);
    return cudaSuccess;
  });
}

// Also on a broken device: the graph goes, the error stays. What was launched takes place still.
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  cudaError_t error = simt::availability();
  if (error == cudaSuccess && simt::remove_graph(simt::number(graph)) == nullptr) {
    error = cudaErrorInvalidValue;
  }
  return call([&] { return error; });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  cudaError_t error = simt::availability();
  if (error == cudaSuccess && simt::remove_graph(simt::number(executable)) == nullptr) {
    error = cudaErrorInvalidValue;
  }
  return call([&] { return error; });
}
