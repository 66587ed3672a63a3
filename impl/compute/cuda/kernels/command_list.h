// What operations enqueue in a stream is written down first, and handed to CUDA when something else is asked of the
// stream: an event behind it, a wait, a copy of memory that the host may change. A list that came before is one launch
// of a graph then (command_graphs.h).
//
// A command is a function with values: a kernel with its shape and arguments, a scan or a sort, a copy, a fill, a call
// of another library. Two lists of the same bytes do the same, whatever the memory that they name holds by then.
//
// Thread rule: one thread at a time, but for behind(): memory that a rank has shared is given back, in the order of the
// stream, by whichever rank has read it last.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "compute/cuda/jobs/cuda_plugin.h"
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
    return add_words(run_values<Values...>, 1 + (kWordsOf<Values> + ... + 0), [&](size_t at) {
      put(run, at);
      (put<Values>(values, at), ...);
    });
  }

  // call(stream, values), later, with the values as they are now.
  cudaError_t add_call(shardrec_cuda_library_call call, const void* values, size_t bytes) {
    return add_words(run_call, 2 + words_of(bytes), [&](size_t at) {
      put(call, at);
      put(bytes, at);
      std::memcpy(&list_.words[at], values, bytes);
    });
  }

  // Enqueues the commands, and forgets them, also where one fails. The stream's device is the current one. Tells of
  // commands before that failed and of which nobody was told.
  cudaError_t submit() {
    const std::lock_guard lock(mutex_);
    const cudaError_t submitted = submit_commands();
    const cudaError_t untold = std::exchange(untold_, cudaSuccess);
    return submitted != cudaSuccess ? submitted : untold;
  }
  // The same for who tells nobody: the next submit() does.
  void submit_untold() {
    const std::lock_guard lock(mutex_);
    keep_untold(submit_commands());
  }

  // What is added next is a part of a change that is of no use without its other parts.
  void note_change() {
    const std::lock_guard lock(mutex_);
    changes_ = true;
  }
  // Did commands of such a change not take place, whatever the reason? Any thread. forget: not any more.
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  void forget_lost() { lost_.store(false, std::memory_order_relaxed); }

  // call(stream), ahead of the commands, or behind them once they are submitted, how that was is told by the next
  // submit(); not while another thread submits them: what is called during a capture would be part of it.
  template <class Call>
  cudaError_t ahead(const Call& call) {
    const std::lock_guard lock(mutex_);
    return call(stream_);
  }
  template <class Call>
  cudaError_t behind(const Call& call) {
    const std::lock_guard lock(mutex_);
    keep_untold(submit_commands());
    return call(stream_);
  }

 private:
  // A command that reads `words` words behind its runner, which write(index of the first one) puts there.
  template <class Write>
  cudaError_t add_words(CommandRunner runner, size_t words, const Write& write) {
    const std::lock_guard lock(mutex_);
    size_t at = list_.words.size();
    try {
      // Zeros stand where values leave gaps.
      list_.words.resize(at + 1 + words);
    } catch (const std::bad_alloc&) {
      return cudaErrorMemoryAllocation;
    }
    put(runner, at);
    write(at);
    ++list_.count;
    return cudaSuccess;
  }

  void keep_untold(cudaError_t error) {
    if (untold_ == cudaSuccess) untold_ = error;
  }

  cudaError_t submit_commands() {
    if (list_.count == 0) return cudaSuccess;
    cudaError_t error = graphs_.run(list_, stream_);
    // Commands before it are under way, of a step perhaps: those that are left are tried once more, now, while the memory
    // that they name is there.
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      error = graphs_.run(list_, stream_);
    }
    if (error != cudaSuccess && changes_) lost_.store(true, std::memory_order_relaxed);
    changes_ = false;
    list_.words.clear();
    list_.count = 0;
    return error;
  }

  static constexpr size_t words_of(size_t bytes) {
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  }
  template <class T>
  static constexpr size_t kWordsOf = words_of(sizeof(T));

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

  static cudaError_t run_call(const uint64_t*& words, cudaStream_t stream) {
    const auto call = take<shardrec_cuda_library_call>(words);
    const auto bytes = take<size_t>(words);
    const void* const values = words;
    words += words_of(bytes);
    return static_cast<cudaError_t>(call(reinterpret_cast<intptr_t>(stream), values));
  }

  const cudaStream_t stream_;
  std::mutex mutex_;  // guards what follows
  Commands list_;
  CommandGraphs graphs_;
  cudaError_t untold_ = cudaSuccess;
  bool changes_ = false;  // the list has a part of a change
  std::atomic<bool> lost_ = false;
};

}  // namespace shardrec::compute::cuda
