// A process that can open few files more than it has open.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

namespace shardrec::test {

class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 0;
    for (int free = 0; free < more; ++few.rlim_cur) {
      if (::fcntl(static_cast<int>(few.rlim_cur), F_GETFD) < 0) ++free;
    }
    set_ = few.rlim_cur <= before_.rlim_max && ::setrlimit(RLIMIT_NOFILE, &few) == 0;
  }
  ~FewDescriptors() {
    if (set_) ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  bool set() const noexcept { return set_; }

 private:
  rlimit before_{};
  bool set_ = false;
};

}  // namespace shardrec::test
