// Commands of a stream (command_list.h) with the names of what they do at once: launches of kernels, CUB's scans and
// sorts.
#pragma once

#include "compute/cuda/kernels/command_list.h"
#include "compute/cuda/kernels/cub.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

template <class... Parameters>
cudaError_t launch_now(cudaStream_t stream, void (*kernel)(Parameters...), int64_t blocks,
                       size_t shared_bytes, Parameters... arguments) {
  return launch(kernel, blocks, shared_bytes, stream, arguments...);
}

template <class... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, size_t shared_bytes,
                   CommandList& commands, const std::type_identity_t<Parameters>&... arguments) {
  if (blocks == 0) return cudaSuccess;
  return commands.add(launch_now<Parameters...>, kernel, blocks, shared_bytes, arguments...);
}

template <class T>
cudaError_t exclusive_sum_now(cudaStream_t stream, void* room, size_t room_bytes, const T* in,
                              T* out, int64_t count) {
  return exclusive_sum(room, room_bytes, in, out, count, stream);
}

// As in cub.h: without room, it is asked at once how much it takes.
template <class T>
cudaError_t exclusive_sum(void* room, size_t& room_bytes, const T* in, T* out, int64_t count,
                          CommandList& commands) {
  if (room == nullptr) return exclusive_sum(room, room_bytes, in, out, count, commands.stream());
  return commands.add(exclusive_sum_now<T>, room, room_bytes, in, out, count);
}

template <class Key, class Value>
cudaError_t sort_pairs_now(cudaStream_t stream, void* room, size_t room_bytes, const Key* keys,
                           Key* sorted_keys, const Value* values, Value* sorted_values,
                           int64_t count, int begin_bit, int end_bit) {
  return sort_pairs(room, room_bytes, keys, sorted_keys, values, sorted_values, count, begin_bit,
                    end_bit, stream);
}

template <class Key, class Value>
cudaError_t sort_pairs(void* room, size_t& room_bytes, const Key* keys, Key* sorted_keys,
                       const Value* values, Value* sorted_values, int64_t count, int begin_bit,
                       int end_bit, CommandList& commands) {
  if (room == nullptr) {
    return sort_pairs(room, room_bytes, keys, sorted_keys, values, sorted_values, count, begin_bit,
                      end_bit, commands.stream());
  }
  return commands.add(sort_pairs_now<Key, Value>, room, room_bytes, keys, sorted_keys, values,
                      sorted_values, count, begin_bit, end_bit);
}

}  // namespace shardrec::compute::cuda
