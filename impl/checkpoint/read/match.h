// Finds what a load wants in a checkpoint, by name, and checks that it fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/read/load.h"

namespace shardrec::checkpoint {

struct MatchedCollection {
  int32_t collection = 0;       // index in the manifest
  std::vector<int32_t> tables;  // index in the manifest's collection, by table of the model
};

// Throws NOT_FOUND (a collection or table that the checkpoint has not), INVALID_ARGUMENT (another
// shape, dtype or optimizer).
MatchedCollection match(const Opened& opened, const CollectionContents& wanted);

// The item of this kind and name that this rank (for host tensors) or rank 0 wrote; NOT_FOUND.
const ManifestItem& find_item(const Opened& opened, ItemKind kind, const std::string& name,
                              int32_t rank = 0);

// The collection of this name; NOT_FOUND.
int32_t find_collection(const Opened& opened, const std::string& name);

// The tensors of the item, in the order of wanted.tensors; throws INVALID_ARGUMENT where a name,
// shape or dtype differs, or one is missing or left over.
std::vector<const ManifestDense*> match(const Opened& opened, const ManifestItem& item,
                                        const ItemContents& wanted);

}  // namespace shardrec::checkpoint
