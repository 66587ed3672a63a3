// Calls about captures and graphs.
#include <atomic>

#include "calls.h"
#include "simt/control.h"

namespace simt {
namespace {

std::atomic<int64_t> graph_launches{0};
std::atomic<int64_t> graphs_made{0};

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
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (graph == nullptr) return cudaErrorInvalidValue;
    *graph = nullptr;
    if (!stream->is_capturing()) return cudaErrorIllegalState;
    std::unique_ptr<const simt::Captured> operations = stream->end_capture();
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
