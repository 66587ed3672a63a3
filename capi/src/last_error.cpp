#include "last_error.h"

#include <pthread.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace shardrec::capi {
namespace {

// Trivial, so that it is readable as long as the thread lives, also from destructors of the host's
// thread-local objects that run after ours.
struct Summary {
  shardrec_status status = SHARDREC_OK;
  const char* sentence = "";  // a literal, or the text in Details
  bool has_details = false;
  bool details_gone = false;
};
thread_local constinit Summary summary;

struct Details {
  std::string sentence;
  core::ErrorParts parts;
};

// A pointer, which the thread's end follows by a key of the threads' library: glibc ends the
// process where it has no memory to note the destructor of a thread_local object.
thread_local constinit Details* details = nullptr;

void end_details(void* ended) {
  const std::unique_ptr<Details> owned(static_cast<Details*>(ended));
  details = nullptr;
  summary.details_gone = true;
  if (summary.has_details) summary.sentence = "the thread is ending: its last error is gone";
  summary.has_details = false;
}

pthread_key_t make_key() {
  pthread_key_t key{};
  if (pthread_key_create(&key, end_details) != 0) throw std::bad_alloc();
  return key;
}

Details& own_details() {
  if (details != nullptr) return *details;
  static const pthread_key_t key = make_key();
  auto made = std::make_unique<Details>();
  if (pthread_setspecific(key, made.get()) != 0) throw std::bad_alloc();
  details = made.release();
  return *details;
}

const char* without_details(shardrec_status status) noexcept {
  return status == SHARDREC_OUT_OF_MEMORY
             ? "the host has no memory left for what this call needs"
             : "the call failed, and there is no memory left to tell more than its status";
}

}  // namespace

shardrec_status record_error(const core::Error& error) noexcept {
  if (summary.details_gone) {
    return record_fixed_error(error.status(), without_details(error.status()));
  }
  try {
    std::string sentence = error.sentence();
    core::ErrorParts parts = error.parts();
    Details& own = own_details();
    own.sentence = std::move(sentence);
    own.parts = std::move(parts);
    summary.status = error.status();
    summary.sentence = own.sentence.c_str();
    summary.has_details = true;
    return error.status();
  } catch (...) {
    return record_fixed_error(error.status(), without_details(error.status()));
  }
}

shardrec_status record_fixed_error(shardrec_status status, const char* sentence) noexcept {
  summary.status = status;
  summary.sentence = sentence;
  summary.has_details = false;
  return status;
}

LastError last_error() noexcept {
  return {summary.status, summary.sentence, summary.has_details ? &details->parts : nullptr};
}

}  // namespace shardrec::capi
