#include "dense/device/gemm.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "compute/cuda/host/current_device.h"
#include "compute/cuda/host/library_calls.h"
#include "compute/cuda/host/memory.h"
#include "core/error.h"
#include "dense/device/plugin.h"

namespace shardrec::dense::device {
namespace {

namespace host = compute::cuda::host;

constexpr size_t kWorkspaceAlignment = 256;

// A product without depth is one of zeros of this depth: cuBLASLt has none of depth 0, and few epilogues of depth 1.
constexpr int64_t kZeroDepth = 8;

size_t bytes_of(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

std::byte* align(std::byte* address) {
  const auto rest = std::bit_cast<uintptr_t>(address) % kWorkspaceAlignment;
  return rest == 0 ? address : address + (kWorkspaceAlignment - rest);
}

shardrec_cublas_product job_of(const Product& product) {
  shardrec_cublas_product job{};
  job.m = product.m;
  job.n = product.n;
  job.k = product.k;
  job.a = product.a;
  job.b = product.b;
  job.c = product.c;
  job.lda = product.lda;
  job.ldb = product.ldb;
  job.ldc = product.ldc;
  job.beta = product.beta;
  job.transpose_a = product.transpose_a ? 1 : 0;
  job.transpose_b = product.transpose_b ? 1 : 0;
  job.input_dtype = static_cast<int32_t>(product.inputs);
  job.output_dtype = static_cast<int32_t>(product.output);
  job.multiplier = static_cast<int32_t>(product.multiplier);
  job.epilogue = static_cast<int32_t>(product.epilogue);
  job.bias = product.bias;
  job.mask = product.mask;
  job.mask_ld = product.mask_ld;
  return job;
}

// "cuBLASLt 13.0.2 cannot ...: what the status means (the call that failed)"
std::string failure_text(const shardrec_cublas_table& table, shardrec_cublas_result result,
                         const std::string& what) {
  return core::sentence(table.library, " cannot ", what, ": ", table.result_text(result), " (",
                        table.last_error(), ")");
}

[[noreturn]] void fail_with(const shardrec_cublas_table& table, shardrec_cublas_result result,
                            const std::string& what) {
  const shardrec_status status = result == SHARDREC_CUBLAS_OUT_OF_MEMORY   ? SHARDREC_OUT_OF_MEMORY
                                 : result == SHARDREC_CUBLAS_ARCH_MISMATCH ? SHARDREC_UNSUPPORTED
                                                                           : SHARDREC_DEVICE_ERROR;
  core::fail(status, failure_text(table, result, what));
}

// Handles are counted through: what comes behind one that is gone may be at its address.
int64_t next_number() {
  static std::atomic<int64_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) + 1;
}

shardrec_cublas_handle* make_handle(const shardrec_cublas_table& table, int32_t device) {
  const host::CurrentDevice current(device);
  shardrec_cublas_handle* handle = nullptr;
  const shardrec_cublas_result result = table.create(&handle);
  if (result != SHARDREC_CUBLAS_OK) {
    fail_with(table, result, core::sentence("begin on device ", device));
  }
  return handle;
}

// A Product, or the plug-in's.
template <class AnyProduct>
std::string name_of(const AnyProduct& product, int64_t device) {
  return core::sentence("multiply [", product.m, ", ", product.k, "] by [", product.k, ", ",
                        product.n, "] on device ", device);
}

}  // namespace

void Gemm::HandleDeleter::operator()(shardrec_cublas_handle* handle) const noexcept {
  // Where the device has failed, the handle is destroyed all the same.
  const bool entered = host::table().enter_device(device) == 0;
  table->destroy(handle);
  if (entered) host::table().leave_device();
}

Gemm::Gemm(std::shared_ptr<host::Stream> stream, size_t workspace_bytes)
    : stream_(std::move(stream)),
      table_(device::table()),
      workspace_(host::make_memory(stream_)),
      workspace_bytes_(workspace_bytes),
      zeros_(host::make_memory(stream_)),
      handle_(make_handle(table_, stream_->device()), {&table_, stream_->device()}),
      number_(next_number()) {
  if (workspace_bytes_ > 0) workspace_.resize(workspace_bytes_ + kWorkspaceAlignment);
}

// What was multiplied is enqueued, while there is a handle; where that fails, the stream's next call tells.
Gemm::~Gemm() { (void)stream_->number(); }

void Gemm::multiply(const Product& product) {
  if (try_multiply(product)) return;
  core::fail(SHARDREC_UNSUPPORTED,
             core::sentence(table_.library, " cannot ", name_of(product, stream_->device()),
                            ": it has no algorithm for elements, strides and epilogue of these"));
}

bool Gemm::try_multiply(const Product& product) {
  if (product.m == 0 || product.n == 0) return multiply_empty(product);
  shardrec_cublas_product job = job_of(product);
  if (product.k == 0) {
    job.k = kZeroDepth;
    job.lda = product.transpose_a ? product.m : kZeroDepth;
    job.ldb = product.transpose_b ? kZeroDepth : product.n;
    const auto elements = static_cast<size_t>(std::max(product.m, product.n) * kZeroDepth);
    job.a = job.b = zeros(elements * bytes_of(product.inputs));
  }
  if (workspace_bytes_ > 0) {
    job.workspace = align(workspace_.data());
    job.workspace_bytes = workspace_bytes_;
  }
  return enqueue(product, job);
}

bool Gemm::enqueue(const Product& product, const shardrec_cublas_product& job) {
  const host::CurrentDevice current(stream_->device());
  int32_t was_enqueued = 0;
  shardrec_cublas_result result = table_.prepare(handle_.get(), &job, 0, &was_enqueued);
  if (result == SHARDREC_CUBLAS_NO_ROOM) {
    stream_->submit();  // those that are written down need theirs no more then
    result = table_.prepare(handle_.get(), &job, 1, &was_enqueued);
  }
  if (result == SHARDREC_CUBLAS_OK && was_enqueued == 0) {
    stream_->submit();
    result = table_.multiply(handle_.get(), stream_->number(), &job);
  } else if (result == SHARDREC_CUBLAS_OK) {
    Call call{};
    call.table = &table_;
    call.handle = handle_.get();
    call.number = number_;
    call.device = stream_->device();
    call.product = job;
    host::call_library(*stream_, &Gemm::run, &call, sizeof call);
  }
  if (result == SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT) return false;
  if (result != SHARDREC_CUBLAS_OK) {
    fail_with(table_, result, name_of(product, stream_->device()));
  }
  return true;
}

shardrec_cuda_error Gemm::run(int64_t stream, const void* call) noexcept {
  const Call& made = *static_cast<const Call*>(call);
  const shardrec_cublas_result result = made.table->multiply(made.handle, stream, &made.product);
  if (result == SHARDREC_CUBLAS_OK) return SHARDREC_CUDA_OK;
  try {
    return host::fail_library_call(
        failure_text(*made.table, result, name_of(made.product, made.device)));
  } catch (const std::bad_alloc&) {
    return SHARDREC_CUDA_OUT_OF_MEMORY;
  }
}

// C has no elements. Column sums of nothing are zeros; sums of an operand are a product's affair only beside C.
bool Gemm::multiply_empty(const Product& product) {
  int64_t sums = 0;
  switch (product.epilogue) {
    case Epilogue::kDreluBiasGradient:
      sums = product.n;
      break;
    case Epilogue::kBiasGradientA:
      sums = product.m;
      break;
    case Epilogue::kBiasGradientB:
      sums = product.n;
      break;
    default:
      break;
  }
  if (sums == 0) return true;
  if (product.epilogue != Epilogue::kDreluBiasGradient && product.k != 0) return false;
  const size_t bytes = static_cast<size_t>(sums) * bytes_of(product.output);
  host::require(host::table().fill(stream_->handle(), product.bias, 0, bytes), "zero ", bytes,
                " bytes on device ", stream_->device());
  return true;
}

const void* Gemm::zeros(size_t bytes) {
  if (zero_bytes_ >= bytes) return zeros_.data();
  zero_bytes_ = 0;
  std::byte* const data = zeros_.resize(bytes);
  host::require(host::table().fill(stream_->handle(), data, 0, bytes), "zero ", bytes,
                " bytes on device ", stream_->device());
  zero_bytes_ = bytes;
  return data;
}

void require_gemm() { (void)table(); }

bool gemm_on_device_available() noexcept {
  try {
    require_gemm();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace shardrec::dense::device
