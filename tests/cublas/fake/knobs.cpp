#include "knobs.h"

#include <cstdarg>
#include <cstdlib>

#include "../fake_cublaslt.h"
#include "violations.h"

namespace fake_cublaslt {
namespace {

constexpr int kOwnVersion = 130002;

int number_of(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? static_cast<int>(std::strtol(value, nullptr, 10)) : 0;
}

}  // namespace

Knobs::Knobs() {
  version = number_of("SHARDREC_FAKE_CUBLASLT_VERSION");
  if (version == 0) version = kOwnVersion;
  fatal = number_of("SHARDREC_FAKE_CUBLASLT_FATAL") == 1;
}

Knobs& knobs() {
  static Knobs& all = *new Knobs;
  return all;
}

shardrec::dense::cublas::Status next_failure() {
  const bool fails =
      knobs().calls_to_failure.load() > 0 && knobs().calls_to_failure.fetch_sub(1) == 1;
  return fails ? static_cast<shardrec::dense::cublas::Status>(knobs().failure.load())
               : shardrec::dense::cublas::kSuccess;
}

void violation(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  simt::add_violation("fake cuBLASLt", knobs().fatal, format, values);
  va_end(values);
}

}  // namespace fake_cublaslt

int64_t fake_cublaslt_violations(void) { return simt::violations(); }

const char* fake_cublaslt_last_violation(void) { return simt::last_violation(); }

void fake_cublaslt_forget_violations(void) { simt::forget_violations(); }

int64_t fake_cublaslt_live(void) { return fake_cublaslt::knobs().live.load(); }

int64_t fake_cublaslt_heuristics(void) { return fake_cublaslt::knobs().heuristics.load(); }

int64_t fake_cublaslt_products(void) { return fake_cublaslt::knobs().products.load(); }

int64_t fake_cublaslt_computed(void) { return fake_cublaslt::knobs().computed.load(); }

void fake_cublaslt_set_no_algorithm(uint32_t epilogue) {
  fake_cublaslt::knobs().no_algorithm = epilogue;
}

void fake_cublaslt_set_workspace(uint64_t bytes) { fake_cublaslt::knobs().workspace = bytes; }

void fake_cublaslt_fail_call(int64_t nth, int status) {
  fake_cublaslt::knobs().failure = status;
  fake_cublaslt::knobs().calls_to_failure = nth;
}
