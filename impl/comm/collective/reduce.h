// The reproducible reduction over ranks: element i of out is the pairwise tree over the rank
// number, ((0+1)+(2+3))+((4+5)+6), of element i of the ranks' inputs. The bits depend on the inputs
// only, not on how a vector is cut into calls.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"

namespace shardrec::comm {

// kSum of integers wraps around. kMin and kMax of floating point: NaN where any rank has NaN.
// kMean: the sum divided by the number of ranks; floating point only.
enum class Reduction : uint8_t { kSum, kMin, kMax, kMean };

// inputs: one message per rank, of out.size() elements of T, aligned for T; out overlaps none of
// them.
template <class T>
void reduce_ranks(Reduction reduction, std::span<const ConstBytes> inputs,
                  std::span<T> out) noexcept;

}  // namespace shardrec::comm
