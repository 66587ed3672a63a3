// All that a load is about, matched with the checkpoint by the rules of the load.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/read/convert.h"
#include "checkpoint/read/match.h"

namespace shardrec::checkpoint {

struct MatchedItem {
  Fate fate = Fate::kLeftOut;
  const ManifestItem* saved = nullptr;        // null: there is none of the name
  std::vector<const ManifestDense*> tensors;  // where it is loaded, as wanted
};

// Something of the checkpoint that nothing wanted has the name of. Host tensors are none: hosts read them.
struct Extra {
  const char* kind;        // "collection", "table", "layers", "parameters"
  std::string collection;  // of a table
  std::string name;
};

struct MatchedLoad {
  std::vector<MatchedCollection> collections;  // as wanted
  std::vector<MatchedItem> items;              // as wanted
  std::vector<Extra> extra;
};

// Throws what match() of one collection and one item throws; NOT_FOUND, naming them, where something is extra
// that may not be; INVALID_ARGUMENT where rules name what is not wanted; INVALID_STATE where a part of a
// collection's tables would be loaded and that would not leave it one model. Sets what of wanted is loaded.
MatchedLoad match(const Opened& opened, Contents& wanted, const LoadRules& rules);

// The tables of which numbers beyond float16's range are counted, in the same order on all ranks.
std::vector<NarrowedTable> narrowed_tables(const Opened& opened, const Contents& wanted,
                                           const MatchedLoad& matched);

// How the report and errors call layers and parameters.
const char* kind_of(ItemKind kind);

}  // namespace shardrec::checkpoint
