// Calls of libraries with kernels of their own, as cuBLASLt's products, among the operations of a stream: they take place
// when the operations before them do, and become part of the graphs that repeated operations are launched by.
//
// A call that fails says so where operations begin, by the exception of whoever had them begin.
#pragma once

#include <cstddef>
#include <string_view>

#include "compute/cuda/host/stream.h"

namespace shardrec::compute::cuda::host {

// Enqueues call(stream, values), as shardrec_cuda_table::call_library has it. Throws OUT_OF_MEMORY. Thread rule: that of
// the stream.
void call_library(Stream& stream, shardrec_cuda_library_call call, const void* values,
                  size_t bytes);

// By a call that fails: keeps the sentence for the calling thread, and returns LIBRARY_FAILED. Any thread.
shardrec_cuda_error fail_library_call(std::string_view sentence) noexcept;

// Throws DEVICE_ERROR with the sentence that a call has left in the calling thread; where another thread had it begin,
// with what could not be done since. Any thread.
[[noreturn]] void tell_library_failure(std::string_view what);

}  // namespace shardrec::compute::cuda::host
