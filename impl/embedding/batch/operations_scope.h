// When operations on what a caller has given take place, as the caller sees it.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>

#include "compute/backend.h"
#include "shardrec/tensor.h"

namespace shardrec::embedding {

// Waits for the operations, where nothing can be done if one fails.
void finish_operations(compute::Backend& backend) noexcept;

// Operations on what a caller has given: tensors on the device of the back end in the order of the
// caller's stream, without a wait of the host; others are read and written when the scope ends.
class OperationsScope {
 public:
  // stream: as shardrec_lookup_set_stream() has it.
  OperationsScope(compute::Backend& backend, int64_t stream) : backend_(backend), stream_(stream) {}
  // Where done() was not called, waits for the operations.
  ~OperationsScope();
  OperationsScope(const OperationsScope&) = delete;
  OperationsScope& operator=(const OperationsScope&) = delete;

  // Before the first operation on each tensor. device_type: any number; the tensor may be refused.
  void touches(int32_t device_type);
  void touches(const shardrec_tensor* tensor);  // null: none
  // The same for a tensor of a batch (GivenTensors): operations do not touch the host's, which are not waited for.
  void reads_given(const shardrec_tensor* tensor);  // null: none
  // All operations were called: what the caller enqueues now takes place behind them.
  void done();

 private:
  compute::Backend& backend_;
  int64_t stream_;
  bool on_host_ = false;
  bool on_device_ = false;
  bool done_ = false;
};

}  // namespace shardrec::embedding
