// What checkpoints hold, as JSON for people and tools. Not collective.
#pragma once

#include <string>

#include "checkpoint/read/load.h"
#include "checkpoint/store/store.h"

namespace shardrec::checkpoint {

// The tables, boxes, layers, parameters and tensors of an open checkpoint, as
// shardrec_checkpoint_contents_json gives them.
std::string contents_json(const Opened& opened);
// The checkpoints of a root, as shardrec_checkpoint_list_json gives them.
std::string list_json(const Listing& listing);

}  // namespace shardrec::checkpoint
