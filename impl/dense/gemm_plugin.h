// The border between the core and the GEMM plug-in: one C function that fills a C table. Only plain
// C types and statuses cross it, so that core and plug-in may be built by different compilers. It
// is an exact match: another abi or another size is refused, never guessed at.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Also the suffix of the plug-in's file name.
#define SHARDREC_GEMM_ABI 1

enum {
  SHARDREC_GEMM_OK = 0,
  SHARDREC_GEMM_ABI_MISMATCH = 1,
  SHARDREC_GEMM_UNUSABLE = 2,
  SHARDREC_GEMM_OUT_OF_MEMORY = 3
};

// C [m, n] = op(A) [m, k] * op(B) [k, n] + beta * C, row-major; op transposes where asked. Strides
// (lda, ldb, ldc) are at least the rows' widths and fit in 32 bits, as m, n and k do. beta 0: C is
// not read. Any number of threads at once: those for which there is no room wait. Computes on the calling
// thread only.
typedef struct shardrec_gemm {
  int64_t m;
  int64_t n;
  int64_t k;
  const float *a;
  const float *b;
  float *c;
  int64_t lda;
  int64_t ldb;
  int64_t ldc;
  float beta;
  int32_t transpose_a;  // A is stored [k, m]
  int32_t transpose_b;  // B is stored [n, k]
} shardrec_gemm;

typedef struct shardrec_gemm_table {
  uint32_t size;        // in: sizeof of the core's table; out: of the plug-in's
  uint32_t abi;         // in: the core's SHARDREC_GEMM_ABI; out: the plug-in's
  const char *library;  // what computes, such as "OpenBLAS 0.3.21"; static storage
  // After a reserve() that returned OK.
  void (*sgemm)(const shardrec_gemm *job);
  // Has room for so many products at once, as far as the memory goes. OK: for one at least; OUT_OF_MEMORY:
  // for none. Room stays. Any thread.
  int32_t (*reserve)(int32_t at_once);
} shardrec_gemm_table;

// Exported as "shardrec_gemm_plugin". Sets size and abi always, the rest when it returns OK.
typedef int32_t (*shardrec_gemm_plugin_function)(shardrec_gemm_table *table);

#ifdef __cplusplus
}
#endif
