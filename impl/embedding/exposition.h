// The figures of collections, for Prometheus.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/exposition.h"
#include "embedding/collection.h"

namespace shardrec::embedding {

struct ObservedCollection {
  std::shared_ptr<Collection> collection;
  std::string labels;  // of every sample of it: core::label
};

// Any thread: reads counters only, while others train.
void write_collections(core::Exposition& out, std::span<const ObservedCollection> all);

}  // namespace shardrec::embedding
