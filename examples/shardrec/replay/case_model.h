// The model and the plan of a recorded case.
#pragma once

#include <shardrec/shardrec.hpp>
#include <stdexcept>

#include "replay/case_runner.h"

namespace shardrec::cli {

// A case asks for what this library does not offer; the sentence is the library's where it has one.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The case was recorded under something that this run does away with.
class NotComparable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs calls whose refusal means that the library lacks something, not that it is wrong.
template <typename F>
void offered(const F& calls) {
  try {
    calls();
  } catch (const Error& error) {
    if (error.status() != SHARDREC_UNSUPPORTED && error.status() != SHARDREC_INVALID_ARGUMENT)
      throw;
    throw Unsupported(error.what());
  }
}

// Throws Unsupported.
Model make_model(const RecordedCase& recorded);

// Boxes as recorded, or each table under the kind of sharding that is named for it. Throws
// NotComparable for replicated tables in 2D parallel: the gradients of all ranks train them here at every step, and those
// of the replica's ranks did where the case was recorded.
Plan make_plan(const RecordedCase& recorded, const ReplayOptions& options, const Model& model,
               int ranks, int ranks_per_node);

}  // namespace shardrec::cli
