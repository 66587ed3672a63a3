// The functions of cuBLASLt that the library exports.
#include <bit>
#include <compare>
#include <cstring>
#include <set>

#include "algorithm.h"
#include "emulated.h"
#include "objects.h"
#include "product.h"

#define FAKE_CUBLASLT_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake_cublaslt {
namespace {

struct Name {
  Status status;
  const char* name;
  const char* meaning;
};
constexpr Name kNames[] = {
    {kSuccess, "CUBLAS_STATUS_SUCCESS", "success"},
    {kNotInitialized, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {kAllocFailed, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {kInvalidValue, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was given"},
    {kArchMismatch, "CUBLAS_STATUS_ARCH_MISMATCH", "the device does not have a feature"},
    {kExecutionFailed, "CUBLAS_STATUS_EXECUTION_FAILED", "the program failed on the device"},
    {kInternalError, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {kNotSupported, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
};

const Name* find_name(Status status) {
  for (const Name& name : kNames) {
    if (name.status == status) return &name;
  }
  return nullptr;
}

// One of an object's values; a violation where it has another size.
template <class Value>
bool take(Value& into, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof into) {
    violation("an attribute of %zu bytes, where there are %zu", bytes, sizeof into);
    return false;
  }
  std::memcpy(&into, value, sizeof into);
  return true;
}

bool set_attribute(MatmulDescType& desc, int32_t attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case kTransA:
      return take(desc.transpose_a, value, bytes);
    case kTransB:
      return take(desc.transpose_b, value, bytes);
    case kEpilogue:
      return take(desc.epilogue, value, bytes);
    case kBiasPointer:
      return take(desc.bias, value, bytes);
    case kAuxPointer:
      return take(desc.aux, value, bytes);
    case kAuxLd:
      return take(desc.aux_ld, value, bytes);
    default:
      violation("an attribute %d of a product", attribute);
      return false;
  }
}

bool set_attribute(PreferenceType& preference, int32_t attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case kMaxWorkspaceBytes:
      return take(preference.workspace, value, bytes);
    case kReductionSchemeMask:
      return take(preference.schemes, value, bytes);
    case kMinAlignmentA:
      return take(preference.align_a, value, bytes);
    case kMinAlignmentB:
      return take(preference.align_b, value, bytes);
    case kMinAlignmentC:
      return take(preference.align_c, value, bytes);
    case kMinAlignmentD:
      return take(preference.align_d, value, bytes);
    default:
      violation("an attribute %d of a preference", attribute);
      return false;
  }
}

template <class Object>
Status set(Object* object, int32_t attribute, const void* value, size_t bytes) {
  if (const Status failure = next_failure(); failure != kSuccess) return failure;
  Object* const found = Objects<Object>::all().find(object, "an attribute is set");
  return found != nullptr && set_attribute(*found, attribute, value, bytes) ? kSuccess
                                                                            : kInvalidValue;
}

template <class Object>
Status create(Object** out, const Object& object) {
  if (const Status failure = next_failure(); failure != kSuccess) return failure;
  *out = Objects<Object>::all().add(object);
  return kSuccess;
}

template <class Object>
Status destroy(Object* object, const char* call) {
  return Objects<Object>::all().remove(object, call) ? kSuccess : kInvalidValue;
}

// The handle's device is the thread's current one; else null, and a violation.
LtHandleType* enter(LtHandle handle, const char* call) {
  LtHandleType* const found = Objects<LtHandleType>::all().find(handle, call);
  if (found == nullptr) return nullptr;
  const int current = simt::emulated()->current_device();
  if (current == found->device) return found;
  violation("%s for a handle of device %d, where device %d is current", call, found->device,
            current);
  return nullptr;
}

// True, and a violation: the thread captures a stream, where NVIDIA's library fails in the call.
bool is_in_capture(const char* call) {
  if (simt::emulated() == nullptr || simt::emulated()->thread_captures() == 0) return false;
  violation("%s during a capture", call);
  return true;
}

struct LoadedProduct {
  int device;
  uint64_t fingerprint;
  auto operator<=>(const LoadedProduct&) const = default;
};

// The products whose kernels are on a device.
class LoadedProducts {
 public:
  // Was one like it enqueued on the device? From now on it was.
  bool load(int device, uint64_t fingerprint) {
    const simt::QuietLock lock(mutex_);
    return !loaded_.insert({device, fingerprint}).second;
  }
  static LoadedProducts& all() {
    static LoadedProducts& products = *new LoadedProducts;
    return products;
  }

 private:
  simt::QuietMutex mutex_;
  std::set<LoadedProduct> loaded_;
};

bool find_problem(Problem& out, const char* call, MatmulDesc desc, MatrixLayout a, MatrixLayout b,
                  MatrixLayout c, MatrixLayout d) {
  const auto find = [&](MatrixLayoutType& into, MatrixLayout layout) {
    const MatrixLayoutType* const found = Objects<MatrixLayoutType>::all().find(layout, call);
    if (found != nullptr) into = *found;
    return found != nullptr;
  };
  const MatmulDescType* const found = Objects<MatmulDescType>::all().find(desc, call);
  if (found == nullptr) return false;
  out.desc = *found;
  return find(out.a, a) && find(out.b, b) && find(out.c, c) && find(out.d, d);
}

}  // namespace
}  // namespace fake_cublaslt

using namespace fake_cublaslt;

FAKE_CUBLASLT_EXPORT size_t cublasLtGetVersion() { return static_cast<size_t>(knobs().version); }

FAKE_CUBLASLT_EXPORT const char* cublasLtGetStatusName(Status status) {
  const Name* const found = find_name(status);
  return found != nullptr ? found->name : nullptr;
}

FAKE_CUBLASLT_EXPORT const char* cublasLtGetStatusString(Status status) {
  const Name* const found = find_name(status);
  return found != nullptr ? found->meaning : nullptr;
}

FAKE_CUBLASLT_EXPORT Status cublasLtCreate(LtHandle* handle) {
  if (is_in_capture("cublasLtCreate")) return kInternalError;
  const int device = simt::emulated() != nullptr ? simt::emulated()->current_device() : -1;
  return device < 0 ? kNotInitialized : create(handle, LtHandleType{.device = device});
}

FAKE_CUBLASLT_EXPORT Status cublasLtDestroy(LtHandle handle) {
  if (is_in_capture("cublasLtDestroy")) return kInternalError;
  if (enter(handle, "cublasLtDestroy") == nullptr) return kInvalidValue;
  return destroy(handle, "cublasLtDestroy");
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulDescCreate(MatmulDesc* desc, int32_t compute_type,
                                                     int32_t scale_type) {
  return create(desc, MatmulDescType{.compute_type = compute_type, .scale_type = scale_type});
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulDescDestroy(MatmulDesc desc) {
  return destroy(desc, "cublasLtMatmulDescDestroy");
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulDescSetAttribute(MatmulDesc desc, DescAttribute attribute,
                                                           const void* value, size_t bytes) {
  return set(desc, attribute, value, bytes);
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatrixLayoutCreate(MatrixLayout* layout, int32_t dtype,
                                                       uint64_t rows, uint64_t columns,
                                                       int64_t ld) {
  if (rows == 0 || columns == 0) {
    violation("a matrix of %lu rows and %lu columns", static_cast<unsigned long>(rows),
              static_cast<unsigned long>(columns));
    return kInvalidValue;
  }
  return create(layout, MatrixLayoutType{.dtype = dtype,
                                         .rows = static_cast<int64_t>(rows),
                                         .columns = static_cast<int64_t>(columns),
                                         .ld = ld});
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  return destroy(layout, "cublasLtMatrixLayoutDestroy");
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  return create(preference, PreferenceType{});
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  return destroy(preference, "cublasLtMatmulPreferenceDestroy");
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulPreferenceSetAttribute(Preference preference,
                                                                 PreferenceAttribute attribute,
                                                                 const void* value, size_t bytes) {
  return set(preference, attribute, value, bytes);
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmulAlgoGetHeuristic(LtHandle handle, MatmulDesc desc,
                                                           MatrixLayout a, MatrixLayout b,
                                                           MatrixLayout c, MatrixLayout d,
                                                           Preference preference, int wanted,
                                                           HeuristicResult* results, int* found) {
  constexpr const char* kCall = "cublasLtMatmulAlgoGetHeuristic";
  knobs().heuristics.fetch_add(1);
  *found = 0;
  if (const Status failure = next_failure(); failure != kSuccess) return failure;
  if (is_in_capture(kCall)) return kInternalError;
  Problem problem{};
  const PreferenceType* const preferred = Objects<PreferenceType>::all().find(preference, kCall);
  if (enter(handle, kCall) == nullptr || preferred == nullptr || wanted < 1 ||
      !find_problem(problem, kCall, desc, a, b, c, d)) {
    return kInvalidValue;
  }
  if ((preferred->schemes & kReduceInPlace) != 0) violation("sums whose bits need not repeat");
  if ((preferred->schemes & kReduceInOutputType) != 0 && problem.d.dtype != kFloat32) {
    violation("sums that are rounded to 16 bits before they are added up");
  }
  if (const Status status = check(problem, kCall); status != kSuccess) return status;
  const AlgorithmParts algorithm = choose_algorithm(problem, *preferred);
  if (algorithm.workspace > preferred->workspace) return kNotSupported;
  *results = {};
  std::memcpy(results->algorithm.data, &algorithm, sizeof algorithm);
  results->workspace_bytes = algorithm.workspace;
  results->state = kSuccess;
  *found = 1;
  return kSuccess;
}

FAKE_CUBLASLT_EXPORT Status cublasLtMatmul(LtHandle handle, MatmulDesc desc, const void* alpha,
                                           const void* a, MatrixLayout a_layout, const void* b,
                                           MatrixLayout b_layout, const void* beta, const void* c,
                                           MatrixLayout c_layout, void* d, MatrixLayout d_layout,
                                           const Algorithm* algorithm, void* workspace,
                                           size_t workspace_bytes, CudaStream stream) {
  constexpr const char* kCall = "cublasLtMatmul";
  knobs().products.fetch_add(1);
  if (const Status failure = next_failure(); failure != kSuccess) return failure;
  const LtHandleType* const entered = enter(handle, kCall);
  Problem problem{};
  if (entered == nullptr ||
      !find_problem(problem, kCall, desc, a_layout, b_layout, c_layout, d_layout)) {
    return kInvalidValue;
  }
  const auto number = std::bit_cast<int64_t>(stream);
  if (simt::emulated()->device_of_stream(number) != entered->device) {
    violation("cublasLtMatmul in a stream of another device");
    return kInvalidValue;
  }
  if (const Status status = check(problem, kCall); status != kSuccess) return status;
  if (algorithm == nullptr) {
    violation("cublasLtMatmul without an algorithm");
    return kInvalidValue;
  }
  AlgorithmParts parts{};
  std::memcpy(&parts, algorithm->data, sizeof parts);
  if (!fits(parts, problem, {a, b, c, d, workspace, workspace_bytes})) return kInvalidValue;
  float factors[2] = {};
  std::memcpy(&factors[0], alpha, sizeof(float));
  std::memcpy(&factors[1], beta, sizeof(float));
  const bool is_loaded = LoadedProducts::all().load(entered->device, parts.fingerprint);
  if (!is_loaded && simt::emulated()->stream_captures(number) != 0) {
    violation("cublasLtMatmul during a capture, of a product that was not enqueued before");
    return kInternalError;
  }
  auto* const product = new Product(problem, Product::Matrices{a, b, c, d}, factors[0], factors[1],
                                    workspace, parts.workspace);
  return Product::enqueue(product, number) ? kSuccess : kExecutionFailed;
}
