// A product as cuBLASLt wants it: its descriptors and the algorithm that the library has chosen for it. What differs
// between products alike are addresses and beta, which are given when it is enqueued.
//
// cuBLASLt's matrices are in columns: a row-major matrix is its transpose there. So C^T = op(B)^T op(A)^T is computed,
// and the library's A is our B.
//
// Thread rule: one thread at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>

#include "dense/cublas/cublaslt_api.h"

namespace shardrec::dense::cublas {

// What descriptors and algorithm follow from. Alignments are in bytes.
struct PlanKey {
  explicit PlanKey(const shardrec_cublas_product& product);
  auto operator<=>(const PlanKey&) const = default;

  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t mask_ld;
  uint64_t workspace_bytes;
  int32_t input_dtype, output_dtype;
  int32_t multiplier;
  int32_t epilogue;
  bool transpose_a, transpose_b;
  bool adds;  // to what is in C
  uint32_t align_a, align_b, align_c, align_bias, align_mask;
};

class Plan {
 public:
  Plan() = default;

  // Makes the descriptors, and asks for an algorithm. UNSUPPORTED_PRODUCT: there is none, and the plan stays to say so.
  shardrec_cublas_result make(LtHandle handle, const shardrec_cublas_product& product);
  bool has_algorithm() const noexcept { return has_algorithm_; }
  // Behind make().
  shardrec_cublas_result enqueue(LtHandle handle, CudaStream stream,
                                 const shardrec_cublas_product& product);
  // Did enqueue() succeed before?
  bool was_enqueued() const noexcept { return was_enqueued_; }

 private:
  struct DescDeleter {
    void operator()(MatmulDesc desc) const noexcept;
  };
  struct LayoutDeleter {
    void operator()(MatrixLayout layout) const noexcept;
  };
  using Desc = std::unique_ptr<MatmulDescType, DescDeleter>;
  using Layout = std::unique_ptr<MatrixLayoutType, LayoutDeleter>;

  Status describe(const shardrec_cublas_product& product);
  Status set_addresses(const shardrec_cublas_product& product) const;
  Status choose(LtHandle handle, const PlanKey& key);

  bool has_algorithm_ = false;
  bool was_enqueued_ = false;
  Desc desc_;
  Layout a_;  // the library's
  Layout b_;
  Layout c_;
  Algorithm algorithm_{};
  size_t workspace_bytes_ = 0;
};

}  // namespace shardrec::dense::cublas
