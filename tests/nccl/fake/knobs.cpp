#include "knobs.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "../fake_nccl.h"
#include "violations.h"

namespace fake_nccl {

std::atomic<int64_t> live{0};
std::atomic<int64_t> bytes_sent{0};

namespace {

constexpr int kOwnVersion = 23203;

const char* text_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

long number_of(const char* name) { return std::strtol(text_of(name), nullptr, 10); }

// "RANK:NUMBER"
bool pair_of(const char* name, int& rank, int64_t& number) {
  long long found = 0;
  if (std::sscanf(text_of(name), "%d:%lld", &rank, &found) != 2) return false;
  number = found;
  return true;
}

void set(RankOperation& which, const char* name) {
  int rank = 0;
  int64_t operation = 0;
  if (!pair_of(name, rank, operation)) return;
  which.rank = rank;
  which.operation = operation;
}

}  // namespace

Knobs::Knobs() {
  version = static_cast<int>(number_of("SHARDREC_FAKE_NCCL_VERSION"));
  if (version == 0) version = kOwnVersion;
  fatal = number_of("SHARDREC_FAKE_NCCL_FATAL") == 1;
  polls = static_cast<int>(number_of("SHARDREC_FAKE_NCCL_POLLS"));
  int rank = 0;
  if (int64_t ms = 0; pair_of("SHARDREC_FAKE_NCCL_INIT", rank, ms)) {
    late_rank = rank;
    late_ms = static_cast<int>(ms);
  }
  set(async_error, "SHARDREC_FAKE_NCCL_ASYNC_ERROR");
  set(hang, "SHARDREC_FAKE_NCCL_HANG");
  abort_is_seen = number_of("SHARDREC_FAKE_NCCL_ABORT_IS_SEEN") == 1;
  one_rank_per_device = number_of("SHARDREC_FAKE_NCCL_ONE_RANK_PER_DEVICE") == 1;
}

Knobs& knobs() {
  static Knobs& all = *new Knobs;
  return all;
}

void violation(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  simt::add_violation("fake NCCL", knobs().fatal, format, values);
  va_end(values);
}

}  // namespace fake_nccl

using fake_nccl::knobs;

int64_t fake_nccl_violations(void) { return simt::violations(); }

const char* fake_nccl_last_violation(void) { return simt::last_violation(); }

void fake_nccl_forget_violations(void) { simt::forget_violations(); }

int64_t fake_nccl_live(void) { return fake_nccl::live.load(); }

int64_t fake_nccl_bytes_sent(void) { return fake_nccl::bytes_sent.load(); }

void fake_nccl_set_polls(int polls) { knobs().polls = polls; }

void fake_nccl_delay_init(int rank, int milliseconds) {
  knobs().late_rank = rank;
  knobs().late_ms = milliseconds;
}

void fake_nccl_set_async_error(int rank, int64_t operation) {
  knobs().async_error.rank = rank;
  knobs().async_error.operation = operation;
}

void fake_nccl_set_hang(int rank, int64_t operation) {
  knobs().hang.rank = rank;
  knobs().hang.operation = operation;
}

void fake_nccl_set_abort_is_seen(int seen) { knobs().abort_is_seen = seen != 0; }

void fake_nccl_set_one_rank_per_device(int one) { knobs().one_rank_per_device = one != 0; }

void fake_nccl_set_call_time(int milliseconds) { knobs().call_ms = milliseconds; }
