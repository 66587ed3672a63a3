// Turns one rank's failure into everybody's: the collective creates, saves and loads of the library
// end the same way on all ranks.
#pragma once

#include "comm/collectives.h"
#include "core/function_ref.h"

namespace shardrec::comm {

// Runs work on this rank, then compares notes with all ranks. Where work threw on some rank, every
// rank throws the error of the lowest such rank, with that rank in its parts and its sentence.
// Collective; errors of the communicator itself pass through.
void agree(Collectives& collectives, const Operation& operation, core::FunctionRef<void()> work);

}  // namespace shardrec::comm
