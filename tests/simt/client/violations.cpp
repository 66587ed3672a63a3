#include "violations.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "quiet.h"
#include "sanitizers.h"

namespace simt {
namespace {

std::atomic<int64_t> number{0};
char last[512] = "";

// To the thread sanitizer it orders those that hold it: the C library, which writes the text, is looked into.
class TextLock {
 public:
  TextLock() {
    mutex_.lock();
    acquire(last);
  }
  ~TextLock() {
    release(last);
    mutex_.unlock();
  }
  TextLock(const TextLock&) = delete;
  TextLock& operator=(const TextLock&) = delete;

 private:
  static inline QuietMutex mutex_;
};

}  // namespace

void add_violation(const char* library, bool fatal, const char* format, std::va_list values) {
  const TextLock lock;
  std::vsnprintf(last, sizeof last, format, values);
  number.fetch_add(1);
  std::fprintf(stderr, "%s: violation: %s\n", library, last);
  if (fatal) std::abort();
}

int64_t violations() { return number.load(); }

const char* last_violation() {
  static thread_local char copy[sizeof last];
  const TextLock lock;
  std::snprintf(copy, sizeof copy, "%s", last);
  return copy;
}

void forget_violations() {
  const TextLock lock;
  number = 0;
  last[0] = '\0';
}

}  // namespace simt
