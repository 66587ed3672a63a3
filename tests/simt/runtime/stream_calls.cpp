// Calls about streams and events.
#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>

#include "calls.h"
#include "simt/control.h"

namespace simt {
namespace {

std::atomic<int64_t> stream_waits{0};
std::atomic<int64_t> event_waits{0};
std::atomic<int64_t> spinning_waits{0};
std::atomic<int64_t> early_elapsed_times{0};

cudaError_t create_stream(cudaStream_t* handle, unsigned flags) {
  return call([&]() -> cudaError_t {
    if (handle == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *handle = add_stream(Stream::make(current_device()));
    return cudaSuccess;
  });
}

// A kernel of another library, whose argument has a holder in each copy.
class LibraryKernel {
 public:
  LibraryKernel(const simt_kernel& kernel, void* argument) : kernel_(kernel), argument_(argument) {
    kernel_.keep(argument_);
  }
  LibraryKernel(const LibraryKernel& other) : LibraryKernel(other.kernel_, other.argument_) {}
  LibraryKernel& operator=(const LibraryKernel&) = delete;
  ~LibraryKernel() { kernel_.drop(argument_); }

  void operator()() const { kernel_.function(argument_); }

 private:
  simt_kernel kernel_;
  void* argument_;
};

// The event and its last recording, if it has one.
cudaError_t event_of(cudaEvent_t handle, Event*& event) {
  event = find_event(handle);
  return event == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess;
}

}  // namespace
}  // namespace simt

using simt::call;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return simt::create_stream(stream, flags);
}

// Streams here are as quick as the machine's scheduler makes them.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return simt::create_stream(stream, flags);
}

// Also on a broken device: the stream goes, the error stays.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  simt::Stream* stream = nullptr;
  cudaError_t error = simt::availability();
  if (error == cudaSuccess) error = simt::free_stream_of(handle, stream);
  if (error == cudaSuccess) simt::remove_stream(handle)->close();
  return call([&] { return error; });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::free_stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    simt::stream_waits.fetch_add(1);
    stream->synchronize();
    return simt::error_of_device(stream->device());
  });
}

int64_t simt_stream_waits(void) { return simt::stream_waits.load(); }

int64_t simt_event_waits(void) { return simt::event_waits.load(); }

int64_t simt_spinning_waits(void) { return simt::spinning_waits.load(); }

int64_t simt_early_elapsed_times(void) { return simt::early_elapsed_times.load(); }

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::free_stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (!stream->is_idle()) return cudaErrorNotReady;
    return simt::error_of_device(stream->device());
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle,
                                unsigned flags) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    simt::Event* event = nullptr;
    if (const cudaError_t error = simt::stream_or_default(stream_handle, stream);
        error != cudaSuccess) {
      return error;
    }
    if (const cudaError_t error = simt::event_of(event_handle, event); error != cudaSuccess) {
      return error;
    }
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    if (event->is_of_another_process()) {
      stream->enqueue(simt::Access::kWait,
                      [places = event->places(), number = event->places()->recorded()] {
                        places->wait(number);
                      });
      return cudaSuccess;
    }
    if (simt::RecordingPointer recording = event->recording()) {
      stream->wait_for(std::move(recording));
    }
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::free_stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = stream->device();
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* user_data) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::free_stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (function == nullptr) return cudaErrorInvalidValue;
    stream->enqueue(simt::Access::kHostFunction, [=] { function(user_data); });
    return cudaSuccess;
  });
}

// Of libraries with kernels of their own.
int simt_enqueue_steps(int64_t handle, const simt_step* steps, int count, void* argument) {
  return simt::call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    const auto of = reinterpret_cast<cudaStream_t>(handle);
    if (const cudaError_t error = simt::free_stream_of(of, stream); error != cudaSuccess) {
      return error;
    }
    for (int i = 0; i < count; ++i) {
      const simt::Access access =
          steps[i].on_device != 0 ? simt::Access::kDevice : simt::Access::kWait;
      stream->enqueue(access, [function = steps[i].function, argument] { function(argument); });
    }
    return cudaSuccess;
  });
}

int simt_enqueue_kernel(int64_t handle, const simt_kernel* kernel, void* argument) {
  return simt::call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    const auto of = reinterpret_cast<cudaStream_t>(handle);
    if (const cudaError_t error = simt::stream_of(of, stream); error != cudaSuccess) return error;
    stream->enqueue(simt::Access::kDevice, simt::LibraryKernel(*kernel, argument));
    return cudaSuccess;
  });
}

int simt_current_device(void) {
  return simt::availability() == cudaSuccess ? simt::current_device() : -1;
}

int simt_device_of_stream(int64_t stream) {
  const simt::Stream* found = simt::find_stream(reinterpret_cast<cudaStream_t>(stream));
  return found == nullptr ? -1 : found->device();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&]() -> cudaError_t {
    constexpr unsigned kFlags =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (event == nullptr || (flags & ~kFlags) != 0) return cudaErrorInvalidValue;
    const int device = simt::current_device();
    std::shared_ptr<simt::SharedPlaces> places;
    if ((flags & cudaEventInterprocess) != 0) {
      if ((flags & cudaEventDisableTiming) == 0) return cudaErrorInvalidValue;
      places = simt::SharedPlaces::make(device);
      if (places == nullptr) return cudaErrorMemoryAllocation;
    }
    *event = simt::add_event(
        std::make_unique<simt::Event>(device, (flags & cudaEventDisableTiming) == 0,
                                      (flags & cudaEventBlockingSync) == 0, std::move(places)));
    return cudaSuccess;
  });
}

// As cudaStreamDestroy().
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t error = simt::availability();
  if (error == cudaSuccess && simt::remove_event(event) == nullptr) {
    error = cudaErrorInvalidResourceHandle;
  }
  return call([&] { return error; });
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t stream_handle) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    simt::Event* event = nullptr;
    if (const cudaError_t error = simt::event_of(event_handle, event); error != cudaSuccess) {
      return error;
    }
    if (const cudaError_t error = simt::stream_or_default(stream_handle, stream);
        error != cudaSuccess) {
      return error;
    }
    if (event->device() != stream->device()) return cudaErrorInvalidResourceHandle;
    if (event->is_of_another_process()) {
      std::fputs("simt: events of another process are not recorded here\n", stderr);
      return cudaErrorNotSupported;
    }
    if (event->places() != nullptr) {
      stream->enqueue(
          simt::Access::kMark,
          [places = event->places(), number = event->places()->record()] { places->mark(number); });
    }
    event->set_recording(stream->record());
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call([&]() -> cudaError_t {
    simt::Event* event = nullptr;
    if (const cudaError_t error = simt::event_of(handle, event); error != cudaSuccess) return error;
    if (event->is_of_another_process()) {
      simt::event_waits.fetch_add(1);
      event->places()->wait(event->places()->recorded());
      return simt::error_of_device(event->device());
    }
    const simt::RecordingPointer recording = event->recording();
    if (recording) {
      if (!recording->is_known_over()) {
        simt::event_waits.fetch_add(1);
        simt::spinning_waits.fetch_add(event->spins() ? 1 : 0);
      }
      recording->will_be_known_over();
      recording->wait();
    }
    return simt::error_of_device(event->device());
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call([&]() -> cudaError_t {
    simt::Event* event = nullptr;
    if (const cudaError_t error = simt::event_of(handle, event); error != cudaSuccess) return error;
    if (event->is_of_another_process() &&
        !event->places()->is_marked(event->places()->recorded())) {
      return cudaErrorNotReady;
    }
    const simt::RecordingPointer recording = event->recording();
    if (recording && !recording->is_marked()) return cudaErrorNotReady;
    return simt::error_of_device(event->device());
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle,
                                 cudaEvent_t end_handle) {
  return call([&]() -> cudaError_t {
    simt::Event* start = nullptr;
    simt::Event* end = nullptr;
    if (const cudaError_t error = simt::event_of(start_handle, start); error != cudaSuccess) {
      return error;
    }
    if (const cudaError_t error = simt::event_of(end_handle, end); error != cudaSuccess) {
      return error;
    }
    if (milliseconds == nullptr) return cudaErrorInvalidValue;
    const simt::RecordingPointer from = start->recording();
    const simt::RecordingPointer to = end->recording();
    if (!start->is_timed() || !end->is_timed() || start->device() != end->device() || !from ||
        !to) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!from->is_marked() || !to->is_marked()) {
      simt::early_elapsed_times.fetch_add(1);
      return cudaErrorNotReady;
    }
    const std::chrono::duration<float, std::milli> elapsed = to->time() - from->time();
    *milliseconds = elapsed.count();
    return cudaSuccess;
  });
}
