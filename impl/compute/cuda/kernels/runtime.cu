#include <atomic>
#include <cstring>
#include <new>

#include "compute/cuda/kernels/calls.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/peers.h"
#include "compute/cuda/kernels/runtime.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

const char* error_name(shardrec_cuda_error error) {
  return cudaGetErrorName(static_cast<cudaError_t>(error));
}

const char* error_text(shardrec_cuda_error error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

shardrec_cuda_error count_devices(int32_t* out) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  *out = error == cudaSuccess ? count : 0;
  if (error != cudaErrorNoDevice) return error;
  cudaGetLastError();  // an answer, and no failure of the next call
  return cudaSuccess;
}

// Bit by bit, the devices that have all kernels.
std::atomic<uint64_t> loaded_devices{0};
static_assert(kMostDevices == 64);

shardrec_cuda_error describe_device(int32_t device, shardrec_cuda_device* out) {
  *out = {.free_bytes = -1};
  cudaDeviceProp properties{};
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error;
  static_assert(sizeof out->name == sizeof properties.name);
  std::memcpy(out->name, properties.name, sizeof out->name);
  out->name[sizeof out->name - 1] = '\0';
  out->capability_major = properties.major;
  out->capability_minor = properties.minor;
  out->bytes = properties.totalGlobalMem;
  out->l2_bytes = properties.l2CacheSize;
  if (!is_entered(device)) return cudaSuccess;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  size_t free_bytes = 0;
  size_t all_bytes = 0;
  const cudaError_t asked = called(cudaMemGetInfo(&free_bytes, &all_bytes));
  if (asked == cudaSuccess) out->free_bytes = static_cast<int64_t>(free_bytes);
  return asked;
}

shardrec_cuda_error open_device(int32_t device) {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  // The first call that needs the device makes what the process keeps there.
  const cudaError_t error = called(cudaFree(nullptr));
  if (error != cudaSuccess) return error;
  const uint64_t bit = uint64_t{1} << device;
  if ((loaded_devices.load() & bit) != 0) return cudaSuccess;
  const shardrec_cuda_error loaded = load_kernels();
  if (loaded == SHARDREC_CUDA_OK) loaded_devices.fetch_or(bit);
  return loaded;
}

shardrec_cuda_error enter(int32_t device) { return enter_device(device); }
void leave() { leave_device(); }

shardrec_cuda_error allocate(shardrec_cuda_stream* stream, uint64_t bytes, void** out) {
  *out = nullptr;
  const CurrentDevice current(stream->device);
  if (current.error() != cudaSuccess) return current.error();
  return stream->commands.ahead(
      [&](cudaStream_t in) { return called(cudaMallocAsync(out, bytes, in)); });
}

shardrec_cuda_error release(shardrec_cuda_stream* stream, void* memory) {
  const CurrentDevice current(stream->device);
  if (current.error() != cudaSuccess) return current.error();
  return stream->commands.behind(
      [&](cudaStream_t in) { return called(cudaFreeAsync(memory, in)); });
}

shardrec_cuda_error allocate_pinned(uint64_t bytes, void** out) {
  *out = nullptr;
  const CurrentDevice current(any_entered_device());
  if (current.error() != cudaSuccess) return current.error();
  return called(cudaHostAlloc(out, bytes, cudaHostAllocPortable));
}

shardrec_cuda_error release_pinned(void* memory) {
  const CurrentDevice current(any_entered_device());
  if (current.error() != cudaSuccess) return current.error();
  return called(cudaFreeHost(memory));
}

shardrec_cuda_error create_stream(int32_t device, shardrec_cuda_stream** out) {
  *out = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  cudaStream_t stream = nullptr;
  const cudaError_t error = called(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (error != cudaSuccess) return error;
  *out = new (std::nothrow) shardrec_cuda_stream(device, stream);
  if (*out != nullptr) return cudaSuccess;
  called(cudaStreamDestroy(stream));
  return cudaErrorMemoryAllocation;
}

void destroy_stream(shardrec_cuda_stream* stream) {
  if (stream == nullptr) return;
  const SubmittedStream submitted(*stream);
  called(cudaStreamDestroy(stream->commands.stream()));
  delete stream;
}

shardrec_cuda_error submit(shardrec_cuda_stream* stream) {
  return SubmittedStream(*stream).error();
}

shardrec_cuda_error wait_for_stream(shardrec_cuda_stream* stream) {
  const SubmittedStream submitted(*stream);
  if (submitted.error() != cudaSuccess) return submitted.error();
  return waited(cudaStreamSynchronize(stream->commands.stream()));
}

int32_t lost(shardrec_cuda_stream* stream, int32_t forget) {
  const int32_t were = stream->commands.lost() ? 1 : 0;
  if (forget != 0) stream->commands.forget_lost();
  return were;
}

shardrec_cuda_error make_event(int32_t device, unsigned flags, shardrec_cuda_event** out) {
  *out = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  cudaEvent_t event = nullptr;
  const cudaError_t error = called(cudaEventCreateWithFlags(&event, flags));
  if (error != cudaSuccess) return error;
  *out = new (std::nothrow) shardrec_cuda_event{device, event};
  if (*out != nullptr) return cudaSuccess;
  called(cudaEventDestroy(event));
  return cudaErrorMemoryAllocation;
}

shardrec_cuda_error create_event(int32_t device, int32_t spins, shardrec_cuda_event** out) {
  const unsigned waits = spins != 0 ? cudaEventDefault : cudaEventBlockingSync;
  return make_event(device, cudaEventDisableTiming | waits, out);
}

shardrec_cuda_error create_timed_event(int32_t device, shardrec_cuda_event** out) {
  return make_event(device, cudaEventBlockingSync, out);
}

shardrec_cuda_error milliseconds_between(shardrec_cuda_event* first, shardrec_cuda_event* second,
                                         float* out) {
  const CurrentDevice current(first->device);
  if (current.error() != cudaSuccess) return current.error();
  return called(cudaEventElapsedTime(out, first->event, second->event));
}

shardrec_cuda_error query_event(shardrec_cuda_event* event) {
  const CurrentDevice current(event->device);
  if (current.error() != cudaSuccess) return current.error();
  const cudaError_t error = cudaEventQuery(event->event);
  if (error == cudaErrorNotReady) {
    cudaGetLastError();  // an answer, and no failure of the next call
    return error;
  }
  return called(error);
}

void destroy_event(shardrec_cuda_event* event) {
  if (event == nullptr) return;
  const CurrentDevice current(event->device);
  called(cudaEventDestroy(event->event));
  delete event;
}

shardrec_cuda_error record(shardrec_cuda_event* event, shardrec_cuda_stream* stream) {
  const SubmittedStream submitted(*stream);
  if (submitted.error() != cudaSuccess) return submitted.error();
  return called(cudaEventRecord(event->event, stream->commands.stream()));
}

shardrec_cuda_error wait_for_event(shardrec_cuda_event* event) {
  const CurrentDevice current(event->device);
  if (current.error() != cudaSuccess) return current.error();
  return waited(cudaEventSynchronize(event->event));
}

shardrec_cuda_error follow(shardrec_cuda_stream* stream, shardrec_cuda_event* event) {
  const SubmittedStream submitted(*stream);
  if (submitted.error() != cudaSuccess) return submitted.error();
  return called(cudaStreamWaitEvent(stream->commands.stream(), event->event, cudaEventWaitDefault));
}

// Who enqueues there tells nobody how the commands before were.
int64_t stream_number(shardrec_cuda_stream* stream) {
  const CurrentDevice current(stream->device);
  if (current.error() == cudaSuccess) stream->commands.submit_untold();
  return reinterpret_cast<intptr_t>(stream->commands.stream());
}

// An error of a stream that is not of the device stays with this call: it is no failure of the device.
shardrec_cuda_error forget_refusal(cudaError_t error) {
  if (error == cudaErrorInvalidResourceHandle || error == cudaErrorInvalidValue) cudaGetLastError();
  return error;
}

shardrec_cuda_error record_caller(shardrec_cuda_event* event, int64_t stream) {
  const CurrentDevice current(event->device);
  if (current.error() != cudaSuccess) return current.error();
  return forget_refusal(
      called(cudaEventRecord(event->event, reinterpret_cast<cudaStream_t>(stream))));
}

shardrec_cuda_error caller_follows(int64_t stream, shardrec_cuda_event* event) {
  const CurrentDevice current(event->device);
  if (current.error() != cudaSuccess) return current.error();
  return forget_refusal(called(cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(stream),
                                                   event->event, cudaEventWaitDefault)));
}

shardrec_cuda_error copy(shardrec_cuda_stream* stream, void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return cudaSuccess;
  const SubmittedStream submitted(*stream);
  if (submitted.error() != cudaSuccess) return submitted.error();
  return called(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream->commands.stream()));
}

shardrec_cuda_error copy_from_device(shardrec_cuda_stream* stream, void* to, int32_t device,
                                     const void* from, uint64_t bytes) {
  if (bytes == 0) return cudaSuccess;
  const SubmittedStream submitted(*stream);
  if (submitted.error() != cudaSuccess) return submitted.error();
  allow_peer_access(stream->device, device);
  return called(
      cudaMemcpyPeerAsync(to, stream->device, from, device, bytes, stream->commands.stream()));
}

cudaError_t copy_now(cudaStream_t stream, void* to, const void* from, uint64_t bytes) {
  return called(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

shardrec_cuda_error copy_kept(shardrec_cuda_stream* stream, void* to, const void* from,
                              uint64_t bytes) {
  return bytes == 0 ? cudaSuccess : stream->commands.add(copy_now, to, from, bytes);
}

cudaError_t fill_now(cudaStream_t stream, void* to, uint8_t byte, uint64_t bytes) {
  return called(cudaMemsetAsync(to, byte, bytes, stream));
}

shardrec_cuda_error fill(shardrec_cuda_stream* stream, void* to, uint8_t byte, uint64_t bytes) {
  return bytes == 0 ? cudaSuccess : stream->commands.add(fill_now, to, byte, bytes);
}

shardrec_cuda_error call_library(shardrec_cuda_stream* stream, shardrec_cuda_library_call call,
                                 const void* values, uint64_t bytes) {
  return stream->commands.add_call(call, values, bytes);
}

}  // namespace

void add_runtime(shardrec_cuda_table& table) {
  table.error_name = error_name;
  table.error_text = error_text;
  table.count_devices = count_devices;
  table.describe_device = describe_device;
  table.open_device = open_device;
  table.enter_device = enter;
  table.leave_device = leave;
  table.allocate = allocate;
  table.release = release;
  table.allocate_pinned = allocate_pinned;
  table.release_pinned = release_pinned;
  table.create_stream = create_stream;
  table.destroy_stream = destroy_stream;
  table.submit = submit;
  table.lost = lost;
  table.wait_for_stream = wait_for_stream;
  table.create_event = create_event;
  table.destroy_event = destroy_event;
  table.create_timed_event = create_timed_event;
  table.milliseconds_between = milliseconds_between;
  table.query_event = query_event;
  table.record = record;
  table.wait_for_event = wait_for_event;
  table.follow = follow;
  table.stream_number = stream_number;
  table.record_caller = record_caller;
  table.caller_follows = caller_follows;
  table.copy = copy;
  table.copy_kept = copy_kept;
  table.copy_from_device = copy_from_device;
  table.fill = fill;
  table.call_library = call_library;
  table.count_calls = count_calls;
}

}  // namespace shardrec::compute::cuda
