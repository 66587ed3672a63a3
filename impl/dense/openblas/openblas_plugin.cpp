// The GEMM plug-in: OpenBLAS's serial build, linked statically with its symbols hidden, so that
// neither another BLAS of the host nor its threads can take its place.
#include <cblas.h>

#include <cstdint>
#include <mutex>
#include <semaphore>

#include "dense/gemm_plugin.h"

namespace {

// OpenBLAS has 128 work buffers for a process and fails without a way back when they are all taken.
constexpr int kMostAtOnce = 96;
std::counting_semaphore<kMostAtOnce> calls(kMostAtOnce);

void sgemm(const shardrec_gemm* job) {
  calls.acquire();
  cblas_sgemm(CblasRowMajor, job->transpose_a != 0 ? CblasTrans : CblasNoTrans,
              job->transpose_b != 0 ? CblasTrans : CblasNoTrans, static_cast<int>(job->m),
              static_cast<int>(job->n), static_cast<int>(job->k), 1.0F, job->a,
              static_cast<int>(job->lda), job->b, static_cast<int>(job->ldb), job->beta, job->c,
              static_cast<int>(job->ldc));
  calls.release();
}

constinit std::mutex buffers;

}  // namespace

// Debian's serial build hands out its work buffers without a lock, so that two threads may get the
// same one. The linker puts these in front of its two functions (--wrap).
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
void* __real_blas_memory_alloc(int kind);
void __real_blas_memory_free(void* buffer);

void* __wrap_blas_memory_alloc(int kind) {
  const std::lock_guard lock(buffers);
  return __real_blas_memory_alloc(kind);
}

void __wrap_blas_memory_free(void* buffer) {
  const std::lock_guard lock(buffers);
  __real_blas_memory_free(buffer);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_gemm_plugin(shardrec_gemm_table* table) {
  const bool same = table->abi == SHARDREC_GEMM_ABI && table->size == sizeof(shardrec_gemm_table);
  table->abi = SHARDREC_GEMM_ABI;
  table->size = sizeof(shardrec_gemm_table);
  if (!same) return SHARDREC_GEMM_ABI_MISMATCH;
  if (openblas_get_parallel() != OPENBLAS_SEQUENTIAL) return SHARDREC_GEMM_UNUSABLE;
  table->library = openblas_get_config();
  table->sgemm = &sgemm;
  return SHARDREC_GEMM_OK;
}
