// The GEMM plug-in: OpenBLAS's serial build, linked statically with its symbols hidden, so that
// neither another BLAS of the host nor its threads can take its place.
#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <utility>

#include "dense/gemm_plugin.h"

namespace {

// OpenBLAS has 128 work buffers for a process and fails without a way back when they are all taken. It asks
// for the memory of one when it first takes it, and again and again where there is none: so they are made
// beforehand, and no more products are let in than there are buffers.
constexpr int kMostAtOnce = 96;
std::counting_semaphore<kMostAtOnce> calls(0);

// Of a buffer, in the builds that are known; where another build asks for more, it gets it by itself.
constexpr size_t kBufferBytes = size_t{128} << 20;

void sgemm(const shardrec_gemm* job) {
  calls.acquire();
  cblas_sgemm(CblasRowMajor, job->transpose_a != 0 ? CblasTrans : CblasNoTrans,
              job->transpose_b != 0 ? CblasTrans : CblasNoTrans, static_cast<int>(job->m),
              static_cast<int>(job->n), static_cast<int>(job->k), 1.0F, job->a,
              static_cast<int>(job->lda), job->b, static_cast<int>(job->ldb), job->beta, job->c,
              static_cast<int>(job->ldc));
  calls.release();
}

constinit std::mutex buffers;  // guards OpenBLAS's list of them, and what follows
void* spare = nullptr;         // memory for the buffer that OpenBLAS makes next
bool mapped = false;           // it has made one
int made = 0;

}  // namespace

// Debian's serial build hands out its work buffers without a lock, so that two threads may get the
// same one. The linker puts these in front of its two functions (--wrap).
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
void* __real_blas_memory_alloc(int kind);
void __real_blas_memory_free(void* buffer);
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);

// The buffers' lock is held: OpenBLAS maps memory for buffers only.
void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  mapped = true;
  if (spare != nullptr && bytes <= kBufferBytes) return std::exchange(spare, nullptr);
  return __real_mmap(address, bytes, protection, flags, file, offset);
}

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

namespace {

int32_t reserve(int32_t at_once) {
  const std::lock_guard lock(buffers);
  // OpenBLAS makes a buffer when all that it has are taken.
  std::array<void*, kMostAtOnce> taken{};
  size_t count = 0;
  const int before = made;
  const int wanted = std::min(at_once, kMostAtOnce);
  while (made < wanted && count < taken.size()) {
    if (spare == nullptr) {
      void* const memory = __real_mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) break;
      spare = memory;
    }
    mapped = false;
    taken[count++] = __real_blas_memory_alloc(0);
    if (mapped) ++made;
  }
  for (size_t i = 0; i < count; ++i) __real_blas_memory_free(taken[i]);
  if (made != before) calls.release(made - before);
  return made == 0 ? SHARDREC_GEMM_OUT_OF_MEMORY : SHARDREC_GEMM_OK;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_gemm_plugin(shardrec_gemm_table* table) {
  const bool same = table->abi == SHARDREC_GEMM_ABI && table->size == sizeof(shardrec_gemm_table);
  table->abi = SHARDREC_GEMM_ABI;
  table->size = sizeof(shardrec_gemm_table);
  if (!same) return SHARDREC_GEMM_ABI_MISMATCH;
  if (openblas_get_parallel() != OPENBLAS_SEQUENTIAL) return SHARDREC_GEMM_UNUSABLE;
  table->library = openblas_get_config();
  table->sgemm = &sgemm;
  table->reserve = &reserve;
  return SHARDREC_GEMM_OK;
}
