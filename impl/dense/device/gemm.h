// Matrix products on a device, by NVIDIA's cuBLASLt: enqueued in a stream, with bias, ReLU and their gradients in the
// same kernel where cuBLASLt has that. The plug-in (dense/cublas) is loaded when the first Gemm is made, and stays.
//
// A product is one of the stream's operations, and part of the graphs that repeated operations are launched by. The
// first one of its kind is enqueued at once: cuBLASLt may refuse it then, and loads kernels, which it must not do in a
// capture.
//
// All matrices are row-major. Equal products have equal bits where device, version of cuBLASLt, workspace and the
// alignment of addresses are the same: no sum depends on the order in which blocks of threads come to it.
//
// Thread rule: a Gemm by the thread of its stream. gemm_on_device_available(): any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "compute/buffer.h"
#include "compute/cuda/host/stream.h"
#include "dense/cublas/cublas_plugin.h"

namespace shardrec::dense::device {

enum class DType : int32_t {
  kFloat32 = SHARDREC_CUBLAS_FLOAT32,
  kFloat16 = SHARDREC_CUBLAS_FLOAT16,
  kBfloat16 = SHARDREC_CUBLAS_BFLOAT16,
};

// How elements are multiplied. Sums are of 32 bits in all cases.
enum class Multiplier : int32_t {
  kExact = SHARDREC_CUBLAS_EXACT,  // as they are
  // Inputs of 32 bits may be rounded to TF32; others are multiplied as they are.
  kTf32 = SHARDREC_CUBLAS_TF32,
};

// What becomes of P = op(A) op(B) + beta C, in 32 bits, before it is written to C.
enum class Epilogue : int32_t {
  kNone = SHARDREC_CUBLAS_NONE,
  kBias = SHARDREC_CUBLAS_BIAS,           // C = P + bias, a value for each column
  kReluBias = SHARDREC_CUBLAS_RELU_BIAS,  // C = max(P + bias, 0)
  // The same; and a bit of the mask is 1 where P + bias is positive, 0 where it is negative. cuBLASLt does not say
  // which it is at 0.
  kReluBiasMask = SHARDREC_CUBLAS_RELU_BIAS_MASK,
  kDrelu = SHARDREC_CUBLAS_DRELU,  // C = P where the bit of the mask is 1, else 0. For k > 1
  // The same; and bias[j] becomes the sum of column j of C. For k > 1.
  kDreluBiasGradient = SHARDREC_CUBLAS_DRELU_BIAS_GRADIENT,
  // C = P; and bias[i] becomes the sum of row i of op(A), of m values. A layer's weight gradient dz^T x has the bias
  // gradient of dz by it. cuBLASLt has it for A that is transposed, as dz is there, and m > 1.
  kBiasGradientA = SHARDREC_CUBLAS_BIAS_GRADIENT_A,
  // C = P; and bias[j] becomes the sum of column j of op(B), of n values. cuBLASLt has it for B that is not
  // transposed, and n > 1.
  kBiasGradientB = SHARDREC_CUBLAS_BIAS_GRADIENT_B,
};

// C [m, n] = op(A) [m, k] op(B) [k, n] + beta C, in memory of the stream's device.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const void* a = nullptr;  // [m, k], or [k, m] where it is transposed
  const void* b = nullptr;  // [k, n], or [n, k] where it is transposed
  void* c = nullptr;
  int64_t lda = 0;  // elements from a row to the next: at least a row's width
  int64_t ldb = 0;
  int64_t ldc = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  float beta = 0;                  // 0: C is not read
  DType inputs = DType::kFloat32;  // of A and B
  DType output = DType::kFloat32;  // of C and bias: that of the inputs, or kFloat32
  Multiplier multiplier = Multiplier::kExact;
  Epilogue epilogue = Epilogue::kNone;
  void* bias = nullptr;  // contiguous; read, or written by the epilogues with a bias gradient
  // Bit (i * mask_ld + j), counted from the lowest bit of the first byte, is that of C's row i and column j.
  void* mask = nullptr;  // 16-byte aligned
  int64_t mask_ld = 0;   // bits from a row to the next: mask_ld(n), or more in steps of 128
};

// Bits that a row of a mask of n columns takes at least: the next multiple of 128.
constexpr int64_t mask_ld(int64_t n) { return (n + 127) / 128 * 128; }

inline constexpr size_t kGemmWorkspaceBytes = size_t{32} << 20;

class Gemm {
 public:
  // Makes a handle of cuBLASLt on the stream's device, and its workspace, which is booked as the stream says. Throws
  // UNSUPPORTED (the plug-in or NVIDIA's library is missing or too old; cuBLASLt does not know the device),
  // OUT_OF_MEMORY, DEVICE_ERROR.
  explicit Gemm(std::shared_ptr<compute::cuda::host::Stream> stream,
                size_t workspace_bytes = kGemmWorkspaceBytes);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // Enqueues the product in the stream; where cuBLASLt fails to once the operations begin, that is told as failures of
  // the device are. Where m or n is 0 there is nothing to do but the bias gradient, which is of
  // zeros. Where k is 0, P is beta C. Throws UNSUPPORTED where try_multiply() returns false, DEVICE_ERROR,
  // OUT_OF_MEMORY.
  void multiply(const Product& product);
  // The same. False: cuBLASLt has no algorithm for it, and nothing was enqueued; the caller may multiply without
  // the epilogue, and compute that itself.
  [[nodiscard]] bool try_multiply(const Product& product);

  // What computes, such as "cuBLASLt 13.0.2"; static storage.
  const char* library() const noexcept { return table_.library; }

 private:
  struct HandleDeleter {
    const shardrec_cublas_table* table;
    int32_t device;
    void operator()(shardrec_cublas_handle* handle) const noexcept;
  };

  // What is called when the operations begin: other bytes for each handle that there ever was.
  struct Call {
    const shardrec_cublas_table* table;
    shardrec_cublas_handle* handle;
    int64_t number;  // of the handle, in the process
    int64_t device;
    shardrec_cublas_product product;
  };
  static shardrec_cuda_error run(int64_t stream, const void* call) noexcept;

  bool multiply_empty(const Product& product);
  // False: there is no algorithm.
  bool enqueue(const Product& product, const shardrec_cublas_product& job);
  const void* zeros(size_t bytes);

  std::shared_ptr<compute::cuda::host::Stream> stream_;
  const shardrec_cublas_table& table_;
  compute::Buffer workspace_;
  size_t workspace_bytes_;
  compute::Buffer zeros_;
  size_t zero_bytes_ = 0;
  std::unique_ptr<shardrec_cublas_handle, HandleDeleter> handle_;
  int64_t number_;
};

// Loads the plug-in and NVIDIA's library; throws UNSUPPORTED as Gemm does.
void require_gemm();

// Whether a Gemm can be made on a device that there is: the plug-in and NVIDIA's library can be loaded. Loads them.
bool gemm_on_device_available() noexcept;

}  // namespace shardrec::dense::device
