// Random numbers of the system, for secrets and for names that nobody else takes. Where the system
// gives none, that is an error: libsodium's own generator ends the process.
//
// Any thread. In a header, for the plug-ins too.
#pragma once

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/error.h"

namespace shardrec::core {

// Fills `out`. Soon after the machine's start, getrandom() waits until the system has gathered
// enough entropy. /dev/urandom stands in where a kernel or a filter of system calls has no
// getrandom(). Throws IO_ERROR.
inline void fill_random(std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::getrandom(out.data() + done, out.size() - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  if (done == out.size()) return;
  const int why = errno;
  const int device = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  while (device >= 0 && done < out.size()) {
    const ssize_t got = ::read(device, out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  if (device >= 0) ::close(device);
  if (done == out.size()) return;
  const char* const reason = strerrordesc_np(why);
  fail(SHARDREC_IO_ERROR,
       sentence("the system gives no random numbers: getrandom: ",
                reason != nullptr ? reason : "an unknown error",
                "; and /dev/urandom cannot be read"),
       {.value = why});
}

}  // namespace shardrec::core
