// A collection as checkpoints see it.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/contents.h"
#include "collection_object.h"

namespace shardrec::capi {

// What a save of the collection writes. Of a mesh the first replica has the pieces, others have
// none. Throws INVALID_STATE where replicas may differ, or where a load has left the tables filled
// in part.
checkpoint::CollectionContents contents_to_save(CollectionObject& object, const std::string& name);
// What a load fills: the pieces of this rank.
checkpoint::CollectionContents contents_to_load(CollectionObject& object, const std::string& name);
// Step, learning rates and what is frozen, as a load has found them.
void apply_loaded(CollectionObject& object, const checkpoint::CollectionContents& loaded) noexcept;

}  // namespace shardrec::capi
