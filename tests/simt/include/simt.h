// Launches of kernels on the CPU, and the shared memory of their blocks. Kernels are plain functions
// here; a header of the CUDA sources has two versions of launch(): nvcc's, with <<<>>>, and this one.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt/language.h"
#include "simt/runtime.h"

namespace simt {

// A kernel with its arguments.
class Kernel {
 public:
  Kernel() = default;
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  virtual void run() const = 0;  // one thread of it
  virtual const void* function() const noexcept = 0;
  virtual std::unique_ptr<const Kernel> copy() const = 0;
};

template <class... Parameters>
class KernelCall final : public Kernel {
 public:
  template <class... Arguments>
  explicit KernelCall(void (*kernel)(Parameters...), Arguments&&... arguments)
      : function_(kernel), arguments_(std::forward<Arguments>(arguments)...) {}

  void run() const override { std::apply(function_, arguments_); }
  const void* function() const noexcept override {
    return reinterpret_cast<const void*>(function_);
  }
  std::unique_ptr<const Kernel> copy() const override {
    return std::apply(
        [this](const Parameters&... arguments) {
          return std::make_unique<KernelCall>(function_, arguments...);
        },
        arguments_);
  }

 private:
  void (*function_)(Parameters...);
  std::tuple<Parameters...> arguments_;
};

struct Shape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
};

// kernel null: there was no memory for it.
cudaError_t enqueue(std::unique_ptr<const Kernel> kernel, const Shape& shape, cudaStream_t stream);

// Enqueues the kernel with copies of the arguments. The errors are those of cudaLaunchKernel();
// cudaGetLastError() returns them too.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                "a device gets the bytes of the arguments");
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "what a kernel's arguments may take");
  std::unique_ptr<const Kernel> call(
      new (std::nothrow) KernelCall<Parameters...>(kernel, std::forward<Arguments>(arguments)...));
  return enqueue(std::move(call), Shape{.grid = grid, .block = block, .shared_bytes = shared_bytes},
                 stream);
}

// Of the block whose thread calls: 16-byte aligned bytes of any content, as many as its launch named.
void* shared_memory() noexcept;
size_t shared_bytes() noexcept;

}  // namespace simt
