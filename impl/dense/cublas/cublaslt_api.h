// The part of NVIDIA's cuBLASLt that the plug-in calls, declared here: nothing of NVIDIA's is needed to build it. It is
// the interface of cuBLASLt 12.0, which later versions keep; tests/cuda/cublas_library compares it with NVIDIA's header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dense/cublas/cublas_plugin.h"

namespace shardrec::dense::cublas {

inline constexpr int kOldestVersion = 120000;  // 12.0.0: a library of less is refused

// cublasStatus_t.
enum Status : int32_t {
  kSuccess = SHARDREC_CUBLAS_OK,
  kNotInitialized = 1,
  kAllocFailed = SHARDREC_CUBLAS_OUT_OF_MEMORY,
  kInvalidValue = 7,
  kArchMismatch = SHARDREC_CUBLAS_ARCH_MISMATCH,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15,
};

// cudaDataType; all of them: shardrec_cublas_dtype.
inline constexpr int32_t kFloat32 = SHARDREC_CUBLAS_FLOAT32;

// cublasComputeType_t.
inline constexpr int32_t kCompute32 = 68;
inline constexpr int32_t kCompute32FastTf32 = 77;

// cublasOperation_t.
inline constexpr int32_t kAsItIs = 0;
inline constexpr int32_t kTransposed = 1;

// cublasLtMatmulDescAttributes_t.
enum DescAttribute : int32_t {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAuxPointer = 11,
  kAuxLd = 12,
};

// cublasLtEpilogue_t. A and B are those of the library: matrices in columns.
enum LtEpilogue : uint32_t {
  kDefault = 1,
  kBias = 4,
  kReluBias = 6,
  kReluAuxBias = 134,
  kDrelu = 136,
  kDreluBgrad = 152,
  kBgradA = 256,
  kBgradB = 512,
};

// cublasLtMatmulPreferenceAttributes_t.
enum PreferenceAttribute : int32_t {
  kMaxWorkspaceBytes = 1,
  kReductionSchemeMask = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8,
};

// cublasLtReductionScheme_t, how sums over k that were taken apart are added up. In place is the one of which bits
// may follow the order in which blocks come to it. Sums that were not taken apart need none, whatever the mask is.
inline constexpr uint32_t kReduceInPlace = 1;
inline constexpr uint32_t kReduceInComputeType = 2;
inline constexpr uint32_t kReduceInOutputType = 4;

// cublasLtHandle_t and the descriptors, which are pointers to types that the library keeps to itself.
using LtHandle = struct LtHandleType*;
using MatmulDesc = struct MatmulDescType*;
using MatrixLayout = struct MatrixLayoutType*;
using Preference = struct PreferenceType*;
using CudaStream = void*;

// cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t data[8];
};

// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

// The functions, by the names that the library exports.
struct Api {
  size_t (*cublasLtGetVersion)();
  const char* (*cublasLtGetStatusName)(Status status);
  const char* (*cublasLtGetStatusString)(Status status);
  Status (*cublasLtCreate)(LtHandle* handle);
  Status (*cublasLtDestroy)(LtHandle handle);
  Status (*cublasLtMatmulDescCreate)(MatmulDesc* desc, int32_t compute_type, int32_t scale_type);
  Status (*cublasLtMatmulDescDestroy)(MatmulDesc desc);
  Status (*cublasLtMatmulDescSetAttribute)(MatmulDesc desc, DescAttribute attribute,
                                           const void* value, size_t bytes);
  Status (*cublasLtMatrixLayoutCreate)(MatrixLayout* layout, int32_t dtype, uint64_t rows,
                                       uint64_t columns, int64_t ld);
  Status (*cublasLtMatrixLayoutDestroy)(MatrixLayout layout);
  Status (*cublasLtMatmulPreferenceCreate)(Preference* preference);
  Status (*cublasLtMatmulPreferenceDestroy)(Preference preference);
  Status (*cublasLtMatmulPreferenceSetAttribute)(Preference preference,
                                                 PreferenceAttribute attribute, const void* value,
                                                 size_t bytes);
  Status (*cublasLtMatmulAlgoGetHeuristic)(LtHandle handle, MatmulDesc desc, MatrixLayout a,
                                           MatrixLayout b, MatrixLayout c, MatrixLayout d,
                                           Preference preference, int wanted,
                                           HeuristicResult* results, int* found);
  Status (*cublasLtMatmul)(LtHandle handle, MatmulDesc desc, const void* alpha, const void* a,
                           MatrixLayout a_layout, const void* b, MatrixLayout b_layout,
                           const void* beta, const void* c, MatrixLayout c_layout, void* d,
                           MatrixLayout d_layout, const Algorithm* algorithm, void* workspace,
                           size_t workspace_bytes, CudaStream stream);
};

}  // namespace shardrec::dense::cublas
