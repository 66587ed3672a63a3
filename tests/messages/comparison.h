// What ranks posted in one run and in another, compared byte for byte.
#pragma once

#include <cstdint>
#include <string>

#include "messages/recording.h"

namespace shardrec::test {

struct Compared {
  int64_t exchanges = 0;
  int64_t bytes = 0;
  int64_t padding = 0;  // of them, not compared

  Compared& operator+=(const Compared& other);
};

// What a rank posted in runs that should be alike.
struct Records {
  const Record& cpu;
  // On the CPU as well, with memory full of one byte and of another.
  const Record& garbage;
  const Record& other_garbage;
  const Record& device;
};

// Compares what the rank posted on the CPU with what it posted on the device, in the order of its posts.
// Bytes that the garbage shows in are padding, which nobody reads and nobody writes; it must be as short as
// alignment makes it. Fails the current test, naming the first exchange of each channel that differs.
Compared compare_messages(const std::string& of_rank, const Records& records);

}  // namespace shardrec::test
