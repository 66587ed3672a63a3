// Step 5 of the exchange: partial sums per (box, bag) on the owner, written straight into the
// messages that go back, to the bags' ranks or to those that add them up (node_sums.h). Of a
// sequence, the rows themselves, one per id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/lookup_operations.h"
#include "embedding/exchange/inbox.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

class PartialSums {
 public:
  explicit PartialSums(const Layout& layout);

  // Lays out the output messages in `buffer` and sums every bag for the messages to other ranks.
  // direct: by own block, is this rank's message to itself without it?
  void compute(const Inbox& inbox, std::span<const uint8_t> direct, std::span<const Shard> shards,
               compute::Backend& backend, comm::MessageBuffer& buffer);

  // Sums what this rank sends to itself: nobody else waits for it.
  void compute_own(compute::Backend& backend);

  // For the channel, by rank.
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // What of them operations write.
  std::span<const comm::ConstBytes> bodies() const { return bodies_; }

 private:
  // A part of a message: what a rank gets of the bags of a source, for itself or to add it up.
  struct Section {
    int to = 0;
    int source = 0;
    bool by_node = false;
  };

  bool sends(std::span<const uint8_t> direct, size_t block, const Section& section) const;
  template <class Visit>
  void for_each_sent(const Inbox& inbox, std::span<const uint8_t> direct, const Section& section,
                     Visit visit) const;
  // Is there anything to be written for a block?
  static bool writes(const Section& section, int64_t rows) { return section.by_node || rows != 0; }
  // Bytes of all messages; counts the heads, and makes room for the sums.
  size_t measure(const Inbox& inbox, std::span<const uint8_t> direct);
  void publish(int rank) const;

  const Layout& layout_;
  std::vector<Section> sections_;           // by rank that gets them
  std::vector<size_t> shard_of_block_;      // by own block: index into shards
  std::vector<compute::BagSums> sums_;      // for messages to other ranks
  std::vector<compute::BagSums> own_sums_;  // for this rank's to itself
  std::vector<size_t> partials_;            // by rank that gets them: to be added up on the node
  std::vector<comm::ConstBytes> messages_;
  std::vector<comm::ConstBytes> bodies_;
  const comm::MessageBuffer* buffer_ = nullptr;  // of the messages
};

}  // namespace shardrec::embedding
