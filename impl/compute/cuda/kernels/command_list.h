// What operations enqueue in a stream is written down first, and handed to CUDA when something else is asked of the
// stream: an event behind it, a wait, a copy of memory that the host may change. A list that came before is one launch
// of a graph then (command_graphs.h).
//
// A command is a function with values: a kernel with its shape and arguments, a scan or a sort, a copy, a fill. Two
// lists of the same bytes do the same, whatever the memory that they name holds by then.
//
// Thread rule: one thread at a time, but for behind(): memory that a rank has shared is given back, in the order of the
// stream, by whichever rank has read it last.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <tuple>
#include <type_traits>

#include "compute/cuda/kernels/command_graphs.h"

namespace shardrec::compute::cuda {

class CommandList {
 public:
  explicit CommandList(cudaStream_t stream) : stream_(stream) {}

  cudaStream_t stream() const { return stream_; }

  // run(stream, values...), later.
  template <class... Values>
  cudaError_t add(cudaError_t (*run)(cudaStream_t, Values...),
                  const std::type_identity_t<Values>&... values) {
    static_assert((std::is_trivially_copyable_v<Values> && ...));
    const std::lock_guard lock(mutex_);
    try {
      // Zeros stand where values leave gaps.
      size_t at = list_.words.size();
      list_.words.resize(at + 2 + (kWordsOf<Values> + ... + 0));
      put<CommandRunner>(run_values<Values...>, at);
      put(run, at);
      (put<Values>(values, at), ...);
    } catch (const std::bad_alloc&) {
      return cudaErrorMemoryAllocation;
    }
    ++list_.count;
    return cudaSuccess;
  }

  // Enqueues the commands, and forgets them, also where one fails. The stream's device is the current one.
  cudaError_t submit() {
    const std::lock_guard lock(mutex_);
    return submit_commands();
  }

  // call(stream), ahead of the commands, or behind them once they are submitted; not while another thread submits them:
  // what is called during a capture would be part of it.
  template <class Call>
  cudaError_t ahead(const Call& call) {
    const std::lock_guard lock(mutex_);
    return call(stream_);
  }
  template <class Call>
  cudaError_t behind(const Call& call) {
    const std::lock_guard lock(mutex_);
    const cudaError_t submitted = submit_commands();
    const cudaError_t error = call(stream_);
    return submitted != cudaSuccess ? submitted : error;
  }

 private:
  cudaError_t submit_commands() {
    if (list_.count == 0) return cudaSuccess;
    const cudaError_t error = graphs_.run(list_, stream_);
    list_.words.clear();
    list_.count = 0;
    return error;
  }

  template <class T>
  static constexpr size_t kWordsOf = (sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t);

  template <class T>
  void put(const T& value, size_t& at) {
    std::memcpy(&list_.words[at], &value, sizeof(T));
    at += kWordsOf<T>;
  }
  template <class T>
  static T take(const uint64_t*& words) {
    T value;
    std::memcpy(&value, words, sizeof(T));
    words += kWordsOf<T>;
    return value;
  }
  template <class... Values>
  static cudaError_t run_values(const uint64_t*& words, cudaStream_t stream) {
    const auto run = take<cudaError_t (*)(cudaStream_t, Values...)>(words);
    // In braces, so that they are taken in order.
    const std::tuple<Values...> values{take<Values>(words)...};
    return std::apply([&](const Values&... each) { return run(stream, each...); }, values);
  }

  const cudaStream_t stream_;
  std::mutex mutex_;  // guards what follows
  Commands list_;
  CommandGraphs graphs_;
};

}  // namespace shardrec::compute::cuda
