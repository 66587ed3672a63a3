#include "dense/cublas/plan.h"

#include <algorithm>
#include <bit>

#include "dense/cublas/library.h"

namespace shardrec::dense::cublas {
namespace {

// The largest power of 2 that divides the address; no algorithm asks for more than 256.
uint32_t alignment(const void* address) {
  const auto number = std::bit_cast<uintptr_t>(address);
  return number == 0 ? 256 : uint32_t{1} << std::min(std::countr_zero(number), 8);
}

LtEpilogue epilogue_of(int32_t epilogue) {
  switch (epilogue) {
    case SHARDREC_CUBLAS_BIAS:
      return kBias;
    case SHARDREC_CUBLAS_RELU_BIAS:
      return kReluBias;
    case SHARDREC_CUBLAS_RELU_BIAS_MASK:
      return kReluAuxBias;
    case SHARDREC_CUBLAS_DRELU:
      return kDrelu;
    case SHARDREC_CUBLAS_DRELU_BIAS_GRADIENT:
      return kDreluBgrad;
    case SHARDREC_CUBLAS_BIAS_GRADIENT_A:
      return kBgradB;
    case SHARDREC_CUBLAS_BIAS_GRADIENT_B:
      return kBgradA;
    default:
      return kDefault;
  }
}

bool has_mask(LtEpilogue epilogue) { return (epilogue & 128U) != 0; }
bool has_bias(LtEpilogue epilogue) { return epilogue != kDefault && epilogue != kDrelu; }

template <class Value>
Status set(MatmulDesc desc, DescAttribute attribute, Value value) {
  return checked("cublasLtMatmulDescSetAttribute",
                 api().cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
}

template <class Value>
Status set(Preference preference, PreferenceAttribute attribute, Value value) {
  return checked(
      "cublasLtMatmulPreferenceSetAttribute",
      api().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

// A row-major matrix [rows, columns] has `columns` rows in the library's eyes.
struct Stored {
  int64_t rows;
  int64_t columns;
  int64_t ld;
  int32_t dtype;
};

Status make_layout(MatrixLayout& out, const Stored& stored) {
  return checked(
      "cublasLtMatrixLayoutCreate",
      api().cublasLtMatrixLayoutCreate(&out, stored.dtype, static_cast<uint64_t>(stored.columns),
                                       static_cast<uint64_t>(stored.rows), stored.ld));
}

// How the algorithm is to be chosen.
class Wishes {
 public:
  Wishes() = default;
  ~Wishes() {
    if (preference_ != nullptr) api().cublasLtMatmulPreferenceDestroy(preference_);
  }
  Wishes(const Wishes&) = delete;
  Wishes& operator=(const Wishes&) = delete;

  Status make(const PlanKey& key) {
    Status status = checked("cublasLtMatmulPreferenceCreate",
                            api().cublasLtMatmulPreferenceCreate(&preference_));
    const auto add = [&](PreferenceAttribute attribute, auto value) {
      if (status == kSuccess) status = set(preference_, attribute, value);
    };
    // Sums that were taken apart are never rounded to 16 bits before they are added up.
    const uint32_t schemes = key.output_dtype == kFloat32
                                 ? kReduceInComputeType | kReduceInOutputType
                                 : kReduceInComputeType;
    add(kMaxWorkspaceBytes, key.workspace_bytes);
    add(kReductionSchemeMask, schemes);
    add(kMinAlignmentA, key.align_b);
    add(kMinAlignmentB, key.align_a);
    add(kMinAlignmentC, key.align_c);
    add(kMinAlignmentD, key.align_c);
    return status;
  }
  Preference preference() const { return preference_; }

 private:
  Preference preference_ = nullptr;
};

}  // namespace

PlanKey::PlanKey(const shardrec_cublas_product& product)
    : m(product.m),
      n(product.n),
      k(product.k),
      lda(product.lda),
      ldb(product.ldb),
      ldc(product.ldc),
      mask_ld(product.mask_ld),
      workspace_bytes(product.workspace_bytes),
      input_dtype(product.input_dtype),
      output_dtype(product.output_dtype),
      multiplier(product.multiplier),
      epilogue(product.epilogue),
      transpose_a(product.transpose_a != 0),
      transpose_b(product.transpose_b != 0),
      adds(product.beta != 0),
      align_a(alignment(product.a)),
      align_b(alignment(product.b)),
      align_c(alignment(product.c)),
      align_bias(alignment(product.bias)),
      align_mask(alignment(product.mask)) {}

void Plan::DescDeleter::operator()(MatmulDesc desc) const noexcept {
  api().cublasLtMatmulDescDestroy(desc);
}

void Plan::LayoutDeleter::operator()(MatrixLayout layout) const noexcept {
  api().cublasLtMatrixLayoutDestroy(layout);
}

shardrec_cublas_result Plan::make(LtHandle handle, const shardrec_cublas_product& product) {
  Status status = describe(product);
  // Addresses count: the library takes the alignment of bias and mask from them.
  if (status == kSuccess) status = set_addresses(product);
  if (status != kSuccess) return status;
  status = choose(handle, PlanKey(product));
  if (status == kSuccess && !has_algorithm_) return SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT;
  return status;
}

Status Plan::describe(const shardrec_cublas_product& product) {
  const bool fast = product.multiplier == SHARDREC_CUBLAS_TF32 && product.input_dtype == kFloat32;
  MatmulDesc desc = nullptr;
  Status status = checked(
      "cublasLtMatmulDescCreate",
      api().cublasLtMatmulDescCreate(&desc, fast ? kCompute32FastTf32 : kCompute32, kFloat32));
  desc_.reset(desc);
  const auto add = [&](DescAttribute attribute, auto value) {
    if (status == kSuccess) status = set(desc, attribute, value);
  };
  const LtEpilogue epilogue = epilogue_of(product.epilogue);
  add(kTransA, product.transpose_b != 0 ? kTransposed : kAsItIs);
  add(kTransB, product.transpose_a != 0 ? kTransposed : kAsItIs);
  add(kEpilogue, static_cast<uint32_t>(epilogue));
  if (has_mask(epilogue)) add(kAuxLd, product.mask_ld);

  const auto lay_out = [&](Layout& out, Stored stored, bool transposed) {
    if (status != kSuccess) return;
    if (transposed) std::swap(stored.rows, stored.columns);
    MatrixLayout layout = nullptr;
    status = make_layout(layout, stored);
    out.reset(layout);
  };
  lay_out(a_, {product.k, product.n, product.ldb, product.input_dtype}, product.transpose_b != 0);
  lay_out(b_, {product.m, product.k, product.lda, product.input_dtype}, product.transpose_a != 0);
  lay_out(c_, {product.m, product.n, product.ldc, product.output_dtype}, false);
  return status;
}

Status Plan::set_addresses(const shardrec_cublas_product& product) const {
  const LtEpilogue epilogue = epilogue_of(product.epilogue);
  Status status = kSuccess;
  if (has_bias(epilogue)) status = set(desc_.get(), kBiasPointer, product.bias);
  if (status == kSuccess && has_mask(epilogue)) {
    status = set(desc_.get(), kAuxPointer, product.mask);
  }
  return status;
}

// What the library says of a product with an epilogue that it does not compute depends on its version.
Status Plan::choose(LtHandle handle, const PlanKey& key) {
  Wishes wishes;
  if (const Status status = wishes.make(key); status != kSuccess) return status;
  HeuristicResult result{};
  int found = 0;
  const Status status =
      api().cublasLtMatmulAlgoGetHeuristic(handle, desc_.get(), a_.get(), b_.get(), c_.get(),
                                           c_.get(), wishes.preference(), 1, &result, &found);
  const bool refused =
      status == kNotSupported || (status == kInvalidValue && key.epilogue != SHARDREC_CUBLAS_NONE);
  if (refused) return kSuccess;
  if (status != kSuccess) return checked("cublasLtMatmulAlgoGetHeuristic", status);
  has_algorithm_ = found > 0 && result.state == kSuccess;
  algorithm_ = result.algorithm;
  workspace_bytes_ = result.workspace_bytes;
  return kSuccess;
}

shardrec_cublas_result Plan::enqueue(LtHandle handle, CudaStream stream,
                                     const shardrec_cublas_product& product) {
  if (!has_algorithm_) return SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT;
  if (const Status status = set_addresses(product); status != kSuccess) return status;
  const float alpha = 1;
  void* const workspace = workspace_bytes_ > 0 ? product.workspace : nullptr;
  const Status status =
      checked("cublasLtMatmul",
              api().cublasLtMatmul(handle, desc_.get(), &alpha, product.b, a_.get(), product.a,
                                   b_.get(), &product.beta, product.c, c_.get(), product.c,
                                   c_.get(), &algorithm_, workspace, workspace_bytes_, stream));
  if (status == kSuccess) was_enqueued_ = true;
  return status;
}

}  // namespace shardrec::dense::cublas
