// Turns one rank's failure into everybody's: the collective creates, saves and loads of the library
// end the same way on all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/function_ref.h"

namespace shardrec::comm {

// One rank's error that every rank throws: the communicator lives on.
class AgreedError : public core::Error {
 public:
  using core::Error::Error;
};

// Runs work on this rank, then compares notes with all ranks. Where work threw on some rank, every
// rank throws the error of the lowest such rank, with that rank in its parts and its sentence.
// Collective; errors of the communicator itself pass through.
void agree(Collectives& collectives, const Operation& operation, core::FunctionRef<void()> work);

// A value that all ranks must bring alike, and what errors call it: "plan", "option SEED".
struct SharedValue {
  const char* name;
  uint64_t value;
  std::string_view table = {};  // whose value it is; empty: of no single table
};

// agree(), and require_same() of what work returns, in one exchange: where no work threw, the values are
// compared. Collective.
void agree_on_same(Collectives& collectives, const Operation& operation,
                   core::FunctionRef<std::vector<SharedValue>()> work);

// Compares the values of all ranks, which list the same names. Where one differs, every rank throws
// DISAGREEMENT for the lowest rank that brings another than rank 0. Collective.
void require_same(Collectives& collectives, const Operation& operation,
                  std::span<const SharedValue> values);

// The same of one text, such as a path: the sentence has both.
void require_same_text(Collectives& collectives, const Operation& operation, const char* what,
                       std::string_view text);

// Runs the body of a collective call. Memory that runs out on this rank alone, where nothing is
// agreed on, would leave the others waiting for it: it kills the communicator.
void tell_shortage(Communicator& communicator, const char* operation,
                   core::FunctionRef<void()> body);

}  // namespace shardrec::comm
