// What the stages of a step need while one of them runs, and nothing behind it: the collection has it once, for all of
// its lookups. Of many ranks it is much, for it is by block of the messages to all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/routing_operations.h"

namespace shardrec::embedding {

struct StepScratch {
  // A batch on its way out (route.h): by block, what it gets; by block that travels, where it is written to, and how its
  // different ids are found.
  std::vector<compute::BlockCount> counts;
  std::vector<compute::BlockSections> sections;
  std::vector<compute::PlainBlock> plain_blocks;
  std::vector<int64_t> unique;
  // What has arrived (inbox.h): the bags of the blocks that hold any, what was wrong with them, and the rank that sent them.
  std::vector<compute::Bags> bags;
  std::vector<compute::BagDefect> defects;
  std::vector<int> bags_source;
  // Outputs (assembly.h): by block that travelled, where its rows stand in the owner's message, null where they do not.
  std::vector<const float*> rows;
};

}  // namespace shardrec::embedding
