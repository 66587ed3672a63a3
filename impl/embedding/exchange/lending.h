// Gradients that ranks of one process read where their caller keeps them. They may be read until
// backward returns; it does when all have read, and when the step fails, not before nobody reads.
//
// Messages name what is lent by a number of the process: no address travels, and none that a message says is
// read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {

// Where the gradient rows of a block lie: at rows + r * stride, r the number of the bag among those
// that are not empty or, by_sample, its sample; of a sequence, the number of the id.
struct GradientRows {
  const float* rows = nullptr;  // null: in the message
  int64_t stride = 0;
  bool by_sample = false;
};

// One rank's gradients of one lookup. Any thread, but for blocks().
class Lending {
 public:
  // Of no blocks.
  Lending() = default;
  // blocks: by owner, how many blocks with rows its message has. Nothing of them is lent yet. While nobody reads.
  void make_room(std::span<const size_t> blocks);

  void lend();
  // From now on nobody reads. Waits for those who do.
  void take_back();

  // False: they have been taken back. Else stop() follows, on the same thread.
  bool read();
  void stop() { mutex_.unlock_shared(); }

  // Of the message to an owner, by block with rows; none of an owner that there is not. The lender writes them before lend(); the owner reads them between
  // read() and stop().
  std::span<GradientRows> blocks(int owner);

 private:
  std::shared_mutex mutex_;
  bool lent_ = false;
  std::vector<GradientRows> rows_;
  std::vector<size_t> first_ = {0};  // [owners + 1], of rows_
};

// The number by which other ranks of the process find a lending, for as long as this lives.
class LendingNumber {
 public:
  explicit LendingNumber(const std::shared_ptr<Lending>& lending);
  ~LendingNumber();
  LendingNumber(const LendingNumber&) = delete;
  LendingNumber& operator=(const LendingNumber&) = delete;

  uint64_t value() const { return value_; }

 private:
  uint64_t value_;
};

// What a rank lends of the gradients of a step in place of packing it.
struct Loan {
  Lends lends = Lends::kNothing;
  Lending* lending = nullptr;  // the rank's; null: it lends nothing
  uint64_t number = 0;         // of the lending
};

// What the ranks have lent whose gradient messages an owner has received.
//
// Thread rule: one thread at a time.
class LentGradients {
 public:
  // rank: the owner.
  LentGradients(int ranks, int rank);

  // By source, its blocks that are lent to the owner; of a message that lends nothing, none.
  std::span<const std::span<const GradientRows>> blocks() const { return blocks_; }

 private:
  friend class Reading;
  int rank_;
  std::vector<std::shared_ptr<Lending>> read_;  // by source; null: nothing that stop() is owed for
  std::vector<std::span<const GradientRows>> blocks_;
};

// Reads what is lent until it is destroyed.
class Reading {
 public:
  // Finds in `lent` what the messages name. Where something was taken back, throws what killed the
  // communicator.
  Reading(LentGradients& lent, std::span<const comm::ConstBytes> gradients,
          const comm::Communicator& communicator);
  ~Reading() { stop(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  void stop();
  LentGradients& lent_;
};

// Does any of the gradient messages lend something to other ranks?
bool any_lent(std::span<const comm::ConstBytes> gradients);

}  // namespace shardrec::embedding
