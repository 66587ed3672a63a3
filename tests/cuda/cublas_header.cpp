// The plug-in's declarations of cuBLASLt (impl/dense/cublas/cublaslt_api.h) are those of NVIDIA's header: compiled, never
// run. NVIDIA's header comes with CUDA's, of which it needs little.
#include <cublasLt.h>

#include <cstddef>
#include <type_traits>

#include "dense/cublas/cublaslt_api.h"

namespace shardrec::dense::cublas {
namespace {

static_assert(CUBLAS_VERSION >= kOldestVersion);

static_assert(kSuccess == int{CUBLAS_STATUS_SUCCESS} &&
              kNotInitialized == int{CUBLAS_STATUS_NOT_INITIALIZED} &&
              kAllocFailed == int{CUBLAS_STATUS_ALLOC_FAILED} &&
              kInvalidValue == int{CUBLAS_STATUS_INVALID_VALUE} &&
              kArchMismatch == int{CUBLAS_STATUS_ARCH_MISMATCH} &&
              kExecutionFailed == int{CUBLAS_STATUS_EXECUTION_FAILED} &&
              kInternalError == int{CUBLAS_STATUS_INTERNAL_ERROR} &&
              kNotSupported == int{CUBLAS_STATUS_NOT_SUPPORTED});

static_assert(int{SHARDREC_CUBLAS_FLOAT32} == int{CUDA_R_32F} &&
              int{SHARDREC_CUBLAS_FLOAT16} == int{CUDA_R_16F} &&
              int{SHARDREC_CUBLAS_BFLOAT16} == int{CUDA_R_16BF});
static_assert(kCompute32 == int{CUBLAS_COMPUTE_32F} &&
              kCompute32FastTf32 == int{CUBLAS_COMPUTE_32F_FAST_TF32});
static_assert(kAsItIs == int{CUBLAS_OP_N} && kTransposed == int{CUBLAS_OP_T});

static_assert(kTransA == int{CUBLASLT_MATMUL_DESC_TRANSA} &&
              kTransB == int{CUBLASLT_MATMUL_DESC_TRANSB} &&
              kEpilogue == int{CUBLASLT_MATMUL_DESC_EPILOGUE} &&
              kBiasPointer == int{CUBLASLT_MATMUL_DESC_BIAS_POINTER} &&
              kAuxPointer == int{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER} &&
              kAuxLd == int{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD});
static_assert(kDefault == int{CUBLASLT_EPILOGUE_DEFAULT} && kBias == int{CUBLASLT_EPILOGUE_BIAS} &&
              kReluBias == int{CUBLASLT_EPILOGUE_RELU_BIAS} &&
              kReluAuxBias == int{CUBLASLT_EPILOGUE_RELU_AUX_BIAS} &&
              kDrelu == int{CUBLASLT_EPILOGUE_DRELU} &&
              kDreluBgrad == int{CUBLASLT_EPILOGUE_DRELU_BGRAD} &&
              kBgradA == int{CUBLASLT_EPILOGUE_BGRADA} && kBgradB == int{CUBLASLT_EPILOGUE_BGRADB});
static_assert(kMaxWorkspaceBytes == int{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES} &&
              kReductionSchemeMask == int{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK} &&
              kMinAlignmentA == int{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES} &&
              kMinAlignmentB == int{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES} &&
              kMinAlignmentC == int{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES} &&
              kMinAlignmentD == int{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES});
static_assert(kReduceInPlace == int{CUBLASLT_REDUCTION_SCHEME_INPLACE} &&
              kReduceInComputeType == int{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE} &&
              kReduceInOutputType == int{CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE});

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              alignof(Algorithm) == alignof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
#define SHARDREC_SAME_FIELD(ours, theirs)                                \
  static_assert(offsetof(HeuristicResult, ours) ==                       \
                    offsetof(cublasLtMatmulHeuristicResult_t, theirs) && \
                sizeof(HeuristicResult::ours) == sizeof(cublasLtMatmulHeuristicResult_t::theirs))
SHARDREC_SAME_FIELD(algorithm, algo);
SHARDREC_SAME_FIELD(workspace_bytes, workspaceSize);
SHARDREC_SAME_FIELD(state, state);
SHARDREC_SAME_FIELD(waves, wavesCount);
SHARDREC_SAME_FIELD(reserved, reserved);
#undef SHARDREC_SAME_FIELD

// A value of one type is passed as one of the other is: pointers and numbers (enumerations are).
template <class Ours, class Theirs>
constexpr bool kAlike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    !std::is_class_v<Ours> && !std::is_class_v<Theirs>;
template <class Ours, class Theirs>
constexpr bool kSameCall = false;
template <class Our, class... Ours, class Their, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
constexpr bool kSameCall<Our (*)(Ours...), Their (*)(Theirs...)> =
    kAlike<Our, Their> && (kAlike<Ours, Theirs> && ...);

#define SHARDREC_SAME_CALL(name) static_assert(kSameCall<decltype(Api::name), decltype(&::name)>)
SHARDREC_SAME_CALL(cublasLtGetVersion);
SHARDREC_SAME_CALL(cublasLtGetStatusName);
SHARDREC_SAME_CALL(cublasLtGetStatusString);
SHARDREC_SAME_CALL(cublasLtCreate);
SHARDREC_SAME_CALL(cublasLtDestroy);
SHARDREC_SAME_CALL(cublasLtMatmulDescCreate);
SHARDREC_SAME_CALL(cublasLtMatmulDescDestroy);
SHARDREC_SAME_CALL(cublasLtMatmulDescSetAttribute);
SHARDREC_SAME_CALL(cublasLtMatrixLayoutCreate);
SHARDREC_SAME_CALL(cublasLtMatrixLayoutDestroy);
SHARDREC_SAME_CALL(cublasLtMatmulPreferenceCreate);
SHARDREC_SAME_CALL(cublasLtMatmulPreferenceDestroy);
SHARDREC_SAME_CALL(cublasLtMatmulPreferenceSetAttribute);
SHARDREC_SAME_CALL(cublasLtMatmulAlgoGetHeuristic);
SHARDREC_SAME_CALL(cublasLtMatmul);
#undef SHARDREC_SAME_CALL

}  // namespace
}  // namespace shardrec::dense::cublas
