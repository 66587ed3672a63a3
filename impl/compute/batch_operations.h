// Operations on a batch as its caller gave it: integers in, checked numbers out, and the first one
// that is wrong (operations.h).
#pragma once

#include <cstdint>

namespace shardrec::compute {

// int32 or int64.
struct Integers {
  const void* data = nullptr;
  bool is_64 = false;
};

struct WrongInteger {
  int64_t position = -1;  // -1: none is wrong
  int64_t value = 0;
  int64_t before = 0;  // of an offset: the one before it
};

// The lengths of the bags of one feature: of the given integers, those from `first` on, or the
// differences of one more offsets. A length is wrong where it is not in [0, most], an offset where it
// is less than the one before. Differences fit 32 bits: the caller has compared the last offset.
struct BagLengths {
  Integers given;
  bool are_offsets = false;
  int64_t first = 0;
  int64_t bags = 0;
  int64_t most = 0;         // of lengths
  uint32_t* out = nullptr;  // [bags]
};
struct CheckedLengths {
  int64_t sum = 0;  // of the lengths; of offsets, the last one
  WrongInteger wrong;
};

// The samples of each bag of one feature, ascending: of sample s the bag is number bag_of[first + s].
// A number is wrong where it is not in [0, bags).
struct SamplesByBag {
  Integers bag_of;
  int64_t first = 0;
  int64_t count = 0;  // of samples
  int64_t bags = 0;
  uint32_t* starts = nullptr;   // [bags + 1]: where the samples of each bag begin
  uint32_t* samples = nullptr;  // [count]
};

}  // namespace shardrec::compute
