// The proof that the ranks of a collection are at one place in the order of its calls, before they exchange something
// elsewhere: they would wait for each other in different calls.
//
// Thread rule: as the collection's.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "embedding/collection.h"

namespace shardrec::training {

// Collective over the collection's ranks. Throws MISMATCH where one of them is in another call than that of this operation.
inline void prove_call_order(embedding::Collection& collection, const comm::Operation& operation) {
  const std::vector<comm::ConstBytes> nothing(
      static_cast<size_t>(collection.communicator().size()));
  embedding::OrderedChannel& ordered = collection.ordered();
  ordered.settle();
  ordered.exchange(embedding::ExchangeKind::kSync, operation.name, operation.kind, nothing,
                   nullptr);
  ordered.settle();
}

}  // namespace shardrec::training
