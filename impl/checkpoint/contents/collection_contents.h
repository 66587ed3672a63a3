// A collection as checkpoints see it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/contents/contents.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "training/tables.h"

namespace shardrec::checkpoint {

// What a save of the collection writes. Of a mesh the first replica has the boxes, others have
// none. Throws what training::Tables::writes_rows() does.
CollectionContents contents_to_save(training::Tables& tables, const std::string& name);
// Does a delta have the states of the optimizers, or weights alone?
enum class DeltaStates : uint8_t { kWritten, kLeftOut };
// What a delta writes: the rows that have changed since the mark, which knows of all until now and outlives this.
CollectionContents changes_to_save(training::Tables& tables, const std::string& name,
                                   const embedding::RowMark& mark, DeltaStates states);
// What a load fills: the boxes of this rank.
CollectionContents contents_to_load(training::Tables& tables, const std::string& name);
// When all boxes are filled: step, learning rates and what is frozen, as a load has found them.
void apply_loaded(training::Tables& tables, const CollectionContents& loaded) noexcept;

// The channels on which the ranks of a communicator save and load together. All ranks make theirs in
// the same order.
class GroupChannels {
 public:
  explicit GroupChannels(comm::Communicator& communicator)
      : collectives_(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                     communicator.size()),
        channel_(communicator.open_channel(comm::Purpose::kControl)),
        rank_(communicator.rank()),
        size_(communicator.size()) {}

  Group group() { return {collectives_, *channel_, rank_, size_}; }

 private:
  comm::Collectives collectives_;
  std::shared_ptr<comm::Channel> channel_;
  int rank_;
  int size_;
};

}  // namespace shardrec::checkpoint
