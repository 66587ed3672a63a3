// The border between the core and the cuBLASLt plug-in: one C function that fills a C table. Only plain C types
// cross it. It is an exact match: another abi or another size is refused, never guessed at.
//
// The plug-in finds NVIDIA's library, writes a product down as the library wants it, asks for an algorithm, and
// enqueues it. It throws nothing, prints nothing and waits for nobody. The calling thread's current device is the
// handle's at each call that takes one.
//
// Thread rule: any thread, but for destroy().
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Also the suffix of the plug-in's file name.
#define SHARDREC_CUBLAS_ABI 1

// What every function returns that can fail: a cublasStatus_t, or one of the others here.
typedef int32_t shardrec_cublas_result;
enum {
  SHARDREC_CUBLAS_OK = 0,             // CUBLAS_STATUS_SUCCESS
  SHARDREC_CUBLAS_OUT_OF_MEMORY = 3,  // CUBLAS_STATUS_ALLOC_FAILED
  SHARDREC_CUBLAS_ARCH_MISMATCH = 8,  // CUBLAS_STATUS_ARCH_MISMATCH
  // The library has no algorithm for it; nothing was enqueued.
  SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT = -1,
  SHARDREC_CUBLAS_NOT_PREPARED = -2,  // prepare() comes before multiply(); nothing was enqueued
  SHARDREC_CUBLAS_NO_ROOM = -3        // for another algorithm, unless one is forgotten
};

// What the plug-in's function returns.
enum {
  SHARDREC_CUBLAS_FILLED = 0,
  SHARDREC_CUBLAS_ABI_MISMATCH = 1,
  SHARDREC_CUBLAS_MISSING = 2,  // NVIDIA's library, or a function in it: `reason` says which
  SHARDREC_CUBLAS_TOO_OLD = 3   // it is older than 12.0: `reason` has its version
};

// Elements: a cudaDataType.
typedef enum shardrec_cublas_dtype {
  SHARDREC_CUBLAS_FLOAT32 = 0,
  SHARDREC_CUBLAS_FLOAT16 = 2,
  SHARDREC_CUBLAS_BFLOAT16 = 14
} shardrec_cublas_dtype;

// How they are multiplied; sums are of 32 bits.
typedef enum shardrec_cublas_multiplier {
  SHARDREC_CUBLAS_EXACT = 0,
  SHARDREC_CUBLAS_TF32 = 1  // inputs of 32 bits may be rounded to TF32; of others the same as EXACT
} shardrec_cublas_multiplier;

// What becomes of P = op(A) op(B) + beta C before it is written to C.
typedef enum shardrec_cublas_epilogue {
  SHARDREC_CUBLAS_NONE = 0,
  SHARDREC_CUBLAS_BIAS = 1,                 // P + bias [n]
  SHARDREC_CUBLAS_RELU_BIAS = 2,            // max(P + bias, 0)
  SHARDREC_CUBLAS_RELU_BIAS_MASK = 3,       // the same, and the mask is written
  SHARDREC_CUBLAS_DRELU = 4,                // P where the mask has a 1, else 0
  SHARDREC_CUBLAS_DRELU_BIAS_GRADIENT = 5,  // the same; its column sums are written to bias [n]
  SHARDREC_CUBLAS_BIAS_GRADIENT_A = 6,      // P; the sums of op(A) over k are written to bias [m]
  SHARDREC_CUBLAS_BIAS_GRADIENT_B = 7       // P; the sums of op(B) over k are written to bias [n]
} shardrec_cublas_epilogue;

typedef struct shardrec_cublas_handle shardrec_cublas_handle;

// C [m, n] = op(A) [m, k] * op(B) [k, n] + beta * C and an epilogue, row-major, in memory of the device; op transposes
// where asked. m, n and k are positive; strides are in elements, and at least the rows' widths. beta 0: C is not read.
typedef struct shardrec_cublas_product {
  int64_t m;
  int64_t n;
  int64_t k;
  const void *a;
  const void *b;
  void *c;
  int64_t lda;
  int64_t ldb;
  int64_t ldc;
  float beta;
  int32_t transpose_a;   // A is stored [k, m]
  int32_t transpose_b;   // B is stored [n, k]
  int32_t input_dtype;   // of A and B
  int32_t output_dtype;  // of C and bias
  int32_t multiplier;
  int32_t epilogue;
  void *bias;  // contiguous; null where the epilogue has none
  void *
      mask;  // bit i * mask_ld + j, from the lowest of the first byte, is that of row i and column j; or null
  int64_t mask_ld;  // bits: a multiple of 128, at least n
  void *workspace;  // 256-byte aligned; used until what was enqueued is over
  uint64_t workspace_bytes;
} shardrec_cublas_product;

typedef struct shardrec_cublas_table {
  uint32_t size;        // in: sizeof of the core's table; out: of the plug-in's
  uint32_t abi;         // in: the core's SHARDREC_CUBLAS_ABI; out: the plug-in's
  const char *library;  // such as "cuBLASLt 13.0.2"; static storage
  const char
      *reason;      // where the table is not filled: a sentence without a full stop; static storage
  int32_t version;  // 130002 of 13.0.2

  // Meaning of a result; static storage, never null.
  const char *(*result_text)(shardrec_cublas_result result);
  // Which call of the library said what, of the last one that failed in this thread, such as "cublasLtCreate:
  // CUBLAS_STATUS_NOT_INITIALIZED"; "" where none did. Valid until the next call.
  const char *(*last_error)();

  // A handle on the thread's current device. After an error *out is null.
  shardrec_cublas_result (*create)(shardrec_cublas_handle **out);
  shardrec_cublas_result (*destroy)(shardrec_cublas_handle *handle);
  // Has the handle have an algorithm for products alike, not while the thread captures a stream: the library refuses to
  // choose one then. It depends on the product's numbers and the alignment of its addresses. forgets: 0: NO_ROOM where
  // the handle has as many as it keeps; 1: the one that was prepared longest ago goes. *was_enqueued: 1 where a product
  // alike was enqueued before, so that its kernels are on the device, else 0.
  shardrec_cublas_result (*prepare)(shardrec_cublas_handle *handle,
                                    const shardrec_cublas_product *product, int32_t forgets,
                                    int32_t *was_enqueued);
  // Enqueues the product, which was prepared, in the stream (the value of a cudaStream_t). One whose kernels are on the
  // device may be enqueued in a capture: they become part of the graph, with all that the product says.
  shardrec_cublas_result (*multiply)(shardrec_cublas_handle *handle, int64_t stream,
                                     const shardrec_cublas_product *product);
} shardrec_cublas_table;

// Exported as "shardrec_cublas_plugin". Sets size and abi always, reason unless they differ, and the rest when it
// returns FILLED.
typedef int32_t (*shardrec_cublas_plugin_function)(shardrec_cublas_table *table);

#ifdef __cplusplus
}
#endif
