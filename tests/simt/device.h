// What the kernels of these tests are written in, for nvcc and for the host's compiler: an example of
// the header that CUDA sources share.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace shardrec::test {

#if defined(__CUDACC__)

// The shared memory of the block, as many bytes as its launch named.
template <class T>
__device__ __forceinline__ T& shared() {
  extern __shared__ __align__(16) unsigned char memory[];
  return *reinterpret_cast<T*>(memory);
}

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), unsigned grid, unsigned block,
                   size_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

#else

template <class T>
T& shared(std::source_location where = std::source_location::current()) {
  if (sizeof(T) > simt::shared_bytes()) {
    simt::stop("a kernel uses more shared memory than its launch named", where);
  }
  return *static_cast<T*>(simt::shared_memory());
}

using simt::launch;

#endif

}  // namespace shardrec::test
