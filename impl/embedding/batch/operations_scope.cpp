#include "embedding/batch/operations_scope.h"

#include <utility>

namespace shardrec::embedding {

void finish_operations(compute::Backend& backend) noexcept {
  try {
    backend.wait();
  } catch (...) {  // an operation ran out of memory: the call that began it has failed already
    return;
  }
}

OperationsScope::~OperationsScope() {
  if (!done_) finish_operations(backend_);
}

void OperationsScope::touches(int32_t device_type) {
  if (device_type == SHARDREC_DEVICE_CPU) {
    on_host_ = true;
  } else if (!std::exchange(on_device_, true)) {
    backend_.follow_caller(stream_);
  }
}

void OperationsScope::touches(const shardrec_tensor* tensor) {
  if (tensor != nullptr) touches(tensor->device_type);
}

void OperationsScope::reads_given(const shardrec_tensor* tensor) {
  if (tensor != nullptr && tensor->device_type != SHARDREC_DEVICE_CPU) touches(tensor);
}

void OperationsScope::done() {
  if (on_host_) backend_.wait();
  if (on_device_) backend_.hold_up_caller(stream_);
  if (!on_host_ && !on_device_) backend_.submit();
  done_ = true;
}

}  // namespace shardrec::embedding
