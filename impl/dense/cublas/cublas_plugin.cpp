// The cuBLASLt plug-in's one function and its table: handles of NVIDIA's library, and products on them.
#include "dense/cublas/cublas_plugin.h"

#include <bit>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "dense/cublas/library.h"
#include "dense/cublas/plans.h"

struct shardrec_cublas_handle {
  shardrec::dense::cublas::LtHandle lt = nullptr;
  std::mutex mutex;  // guards what follows
  shardrec::dense::cublas::Plans plans;
};

namespace shardrec::dense::cublas {
namespace {

const char* result_text(shardrec_cublas_result result) {
  if (result == SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT) return "there is no algorithm for the product";
  if (result == SHARDREC_CUBLAS_NOT_PREPARED) return "the product was not prepared";
  if (result == SHARDREC_CUBLAS_NO_ROOM) return "there is no room for another algorithm";
  const char* const text = api().cublasLtGetStatusString(static_cast<Status>(result));
  return text != nullptr ? text : "unknown status";
}

shardrec_cublas_result create(shardrec_cublas_handle** out) {
  *out = nullptr;
  std::unique_ptr<shardrec_cublas_handle> handle(new (std::nothrow) shardrec_cublas_handle);
  if (handle == nullptr) return SHARDREC_CUBLAS_OUT_OF_MEMORY;
  const Status status = checked("cublasLtCreate", api().cublasLtCreate(&handle->lt));
  if (status == kSuccess) *out = handle.release();
  return status;
}

shardrec_cublas_result destroy(shardrec_cublas_handle* handle) {
  const std::unique_ptr<shardrec_cublas_handle> owned(handle);
  return checked("cublasLtDestroy", api().cublasLtDestroy(owned->lt));
}

// A product that has no algorithm keeps its plan, which says so; one that failed is tried again.
shardrec_cublas_result prepare_plan(shardrec_cublas_handle& handle,
                                    const shardrec_cublas_product& product, bool forgets,
                                    int32_t& was_enqueued) {
  const PlanKey key(product);
  const Plan* plan = handle.plans.find(key);
  if (plan == nullptr) {
    if (!forgets && handle.plans.is_full()) return SHARDREC_CUBLAS_NO_ROOM;
    Plan made;
    const shardrec_cublas_result result = made.make(handle.lt, product);
    if (result != kSuccess && result != SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT) return result;
    plan = &handle.plans.add(key, std::move(made));
  }
  was_enqueued = plan->was_enqueued() ? 1 : 0;
  return plan->has_algorithm() ? SHARDREC_CUBLAS_OK : SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT;
}

shardrec_cublas_result prepare(shardrec_cublas_handle* handle,
                               const shardrec_cublas_product* product, int32_t forgets,
                               int32_t* was_enqueued) {
  const std::lock_guard lock(handle->mutex);
  *was_enqueued = 0;
  try {
    return prepare_plan(*handle, *product, forgets != 0, *was_enqueued);
  } catch (const std::bad_alloc&) {
    return SHARDREC_CUBLAS_OUT_OF_MEMORY;
  }
}

shardrec_cublas_result multiply(shardrec_cublas_handle* handle, int64_t stream,
                                const shardrec_cublas_product* product) {
  const std::lock_guard lock(handle->mutex);
  Plan* const plan = handle->plans.find(PlanKey(*product));
  if (plan == nullptr) return SHARDREC_CUBLAS_NOT_PREPARED;
  const shardrec_cublas_result result =
      plan->enqueue(handle->lt, std::bit_cast<CudaStream>(stream), *product);
  return result == kNotSupported ? SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT : result;
}

}  // namespace
}  // namespace shardrec::dense::cublas

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_cublas_plugin(shardrec_cublas_table* table) {
  namespace cublas = shardrec::dense::cublas;
  const bool same = table->size == sizeof *table && table->abi == SHARDREC_CUBLAS_ABI;
  table->size = sizeof *table;
  table->abi = SHARDREC_CUBLAS_ABI;
  if (!same) {
    return SHARDREC_CUBLAS_ABI_MISMATCH;  // and nothing more: the table may be a smaller one
  }
  table->reason = "";
  const int32_t status = cublas::load_library(*table);
  if (status != SHARDREC_CUBLAS_FILLED) return status;
  table->result_text = cublas::result_text;
  table->last_error = cublas::last_error;
  table->create = cublas::create;
  table->destroy = cublas::destroy;
  table->prepare = cublas::prepare;
  table->multiply = cublas::multiply;
  return SHARDREC_CUBLAS_FILLED;
}
