// Lets this process take some more bytes of address space than it has. A sanitizer's shadow memory does not fit; there
// the limit is not set.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace shardrec::test {

class AddressSpace {
 public:
  explicit AddressSpace(uint64_t bytes) {
    if (SHARDREC_SANITIZED) return;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit small = before_;
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    small.rlim_cur = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    set_ = ::setrlimit(RLIMIT_AS, &small) == 0;
  }
  ~AddressSpace() {
    if (set_) ::setrlimit(RLIMIT_AS, &before_);
  }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  rlimit before_{};
  bool set_ = false;
};

}  // namespace shardrec::test
