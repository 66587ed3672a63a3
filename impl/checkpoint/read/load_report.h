// What a load has done, as the JSON that shardrec_checkpoint_load_partial gives: its fields stand there.
#pragma once

#include <span>
#include <string>

#include "checkpoint/read/match_load.h"

namespace shardrec::checkpoint {

// wanted: with the steps that the collections are set to. narrowed: counted over all ranks.
std::string load_report(const Opened& opened, const Contents& wanted, const MatchedLoad& matched,
                        const LoadRules& rules, std::span<const NarrowedTable> narrowed);

}  // namespace shardrec::checkpoint
