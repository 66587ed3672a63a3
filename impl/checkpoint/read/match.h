// Finds what a load wants in a checkpoint, by name, and checks that it fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/read/load.h"
#include "checkpoint/read/load_rules.h"

namespace shardrec::checkpoint {

enum class Fate : uint8_t { kLoaded, kMissing, kLeftOut };

struct MatchedTable {
  Fate fate = Fate::kLeftOut;
  int32_t saved = -1;  // index in the manifest's collection; -1: it has none of the name
  StateRule state = StateRule::kLoad;
};

struct MatchedCollection {
  Fate fate = Fate::kLeftOut;
  int32_t collection = -1;           // index in the manifest; -1: there is none of the name
  std::vector<MatchedTable> tables;  // by table of the model
};

// A collection or table that is to be loaded and that the checkpoint has not.
enum class MissingRule : uint8_t { kError, kKeep };

// Throws NOT_FOUND (a collection or table that the checkpoint has not), INVALID_ARGUMENT (another
// shape, dtype or optimizer than the rules allow; rules for a table that the model has not).
MatchedCollection match(const Opened& opened, const CollectionContents& wanted,
                        const CollectionRules& rules = {},
                        MissingRule missing = MissingRule::kError);

// The item of this kind and name that this rank (for host tensors) or rank 0 wrote; NOT_FOUND.
const ManifestItem& find_item(const Opened& opened, ItemKind kind, const std::string& name,
                              int32_t rank = 0);
// "stack of layers": what errors call items of a kind.
const char* name_of(ItemKind kind);

// The collection of this name; NOT_FOUND.
int32_t find_collection(const Opened& opened, const std::string& name);

// The tensors of the item, in the order of wanted.tensors; throws INVALID_ARGUMENT where a name,
// shape or dtype differs, or one is missing or left over.
std::vector<const ManifestDense*> match(const Opened& opened, const ManifestItem& item,
                                        const ItemContents& wanted);

}  // namespace shardrec::checkpoint
