// Blocking collectives on a channel, the same bits on every engine. Each call is collective.
// Reductions are reproducible: element i belongs to a slot of one owner; the owner adds the ranks'
// values in a pairwise tree over the rank number (((0+1)+(2+3))+((4+5)+...)), in the tensor's own
// dtype, and everybody gets the owner's bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/memory.h"

namespace shardrec::comm {

enum class Reduction : uint8_t { kSum, kMin, kMax, kMean };

// Buffers and message tables of the collectives of one channel; reused, so that a steady call
// allocates nothing. One thread at a time.
class Collectives {
 public:
  Collectives(std::shared_ptr<Channel> channel, int rank, int size);

  // Returns when every rank has entered.
  void barrier(const Operation& operation);

  // Every rank gets every rank's message, in rank order. Sizes may differ and need not be known.
  // Views are valid until the next call on this object.
  std::span<const ConstBytes> all_gather(const Operation& operation, ConstBytes mine);

  // data of root is copied over data of all others; sizes are equal (else MISMATCH).
  void broadcast(const Operation& operation, int root, std::span<std::byte> data);

  // In place. T: float, double, int32_t, int64_t (kMean: floating point only). Sizes are equal
  // (else MISMATCH).
  template <class T>
  void all_reduce(const Operation& operation, Reduction reduction, std::span<T> data);

  // Reduces and leaves on rank r the r-th of size() equal parts of data (data.size() divisible by
  // it).
  template <class T>
  std::span<const T> reduce_scatter(const Operation& operation, Reduction reduction,
                                    std::span<const T> data);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shardrec::comm
