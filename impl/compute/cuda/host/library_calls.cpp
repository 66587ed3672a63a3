#include "compute/cuda/host/library_calls.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

struct Sentence {
  std::array<char, 512> text{};
  size_t size = 0;
};
thread_local constinit Sentence failure{};

}  // namespace

void call_library(Stream& stream, shardrec_cuda_library_call call, const void* values,
                  size_t bytes) {
  require(table().call_library(stream.handle(), call, values, bytes),
          "write down a call of a library on device ", stream.device());
}

shardrec_cuda_error fail_library_call(std::string_view sentence) noexcept {
  failure.size = std::min(sentence.size(), failure.text.size());
  std::copy_n(sentence.begin(), failure.size, failure.text.begin());
  return SHARDREC_CUDA_LIBRARY_FAILED;
}

void tell_library_failure(std::string_view what) {
  const std::string said(failure.text.data(), failure.size);
  failure.size = 0;
  core::fail(SHARDREC_DEVICE_ERROR,
             !said.empty() ? said
                           : core::sentence("CUDA could not ", what,
                                            ": a library that is called before it has failed"));
}

}  // namespace shardrec::compute::cuda::host
