#include "compute/cuda/host/routing/wrong_values.h"

#include <cstring>

namespace shardrec::compute::cuda::host {

// Little-endian, as the formats of messages are.
template <class T>
int64_t WrongValues::fetch(const void* at, size_t bytes) {
  std::byte* const fetched = value_.resize(sizeof(T));
  stream_->copy(fetched, at, bytes);
  stream_->wait();
  T value = 0;
  std::memcpy(&value, fetched, bytes);
  return value;
}

int64_t WrongValues::of(const Integers& integers, int64_t position) {
  const size_t bytes = integers.is_64 ? sizeof(int64_t) : sizeof(int32_t);
  const auto* const at =
      static_cast<const std::byte*>(integers.data) + static_cast<size_t>(position) * bytes;
  return integers.is_64 ? fetch<int64_t>(at, bytes) : fetch<int32_t>(at, bytes);
}

int64_t WrongValues::of_code(const std::byte* at, size_t bytes) {
  return fetch<uint32_t>(at, bytes);
}

}  // namespace shardrec::compute::cuda::host
