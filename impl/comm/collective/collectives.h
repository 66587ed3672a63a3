// Blocking collectives on a channel, the same bits on every engine. Each call is collective.
//
// Reductions are reproducible: the ranks' values of an element are combined in a pairwise tree over
// the rank number, ((0+1)+(2+3))+((4+5)+6), in the tensor's own dtype, on one rank, and everybody
// gets that rank's bits (or adds them in the same order itself, when they are few).
//
// After an error the communicator is dead, and memory given with a keep_alive may still be read by
// peers until they have dropped that.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "comm/collective/reduce.h"
#include "comm/communicator.h"

namespace shardrec::comm {

// Buffers and message tables of the collectives of one channel, on which nobody else posts; reused, so
// that a steady call allocates nothing. One thread at a time. Operation::size is set by the calls, unless
// one says otherwise; kind is below 2^24.
class Collectives {
 public:
  Collectives(std::shared_ptr<Channel> channel, int rank, int size);
  ~Collectives();
  Collectives(Collectives&&) noexcept;
  Collectives& operator=(Collectives&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;

  // Returns when every rank has entered.
  void barrier(const Operation& operation);

  // Every rank gets every rank's message, in rank order. Sizes may differ and need not be known.
  // Views are valid until the next call on this object.
  std::span<const ConstBytes> all_gather(const Operation& operation, ConstBytes mine);

  // data of root is copied over data of all others; sizes are equal (else MISMATCH).
  void broadcast(const Operation& operation, int root, std::span<std::byte> data);

  // Reduces in place. T: float, double, int32_t, int64_t. Sizes are equal (else MISMATCH). With an
  // keep_alive that owns data, peers read data where it is; without one, they read a copy.
  template <class T>
  void all_reduce(const Operation& operation, Reduction reduction, std::span<T> data,
                  std::shared_ptr<const void> keep_alive = nullptr);

  // Reduces; rank r gets the r-th of size() equal parts (data.size() divisible by it), valid until
  // the next call on this object. keep_alive: as above.
  template <class T>
  std::span<const T> reduce_scatter(const Operation& operation, Reduction reduction,
                                    std::span<const T> data,
                                    std::shared_ptr<const void> keep_alive = nullptr);

  // Memory for the messages of the next call, which must be all_to_all(); valid until that call.
  std::span<std::byte> stage(size_t bytes);

  // Every rank gets the messages that are for it, in rank order: send[r], which lies in memory of
  // stage(), goes to rank r. Sizes may differ and need not be known; operation.size, which is the
  // caller's here, must be equal on all ranks (else MISMATCH). Views are valid until the next call
  // on this object.
  std::span<const ConstBytes> all_to_all(const Operation& operation,
                                         std::span<const ConstBytes> send);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardrec::comm
