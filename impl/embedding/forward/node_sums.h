// Step 6 of the exchange on the way: where several parts of a table are on one node, what they have
// of a bag of another node's rank is added up there, by one rank, and only the sum crosses. Outputs
// have the same bits as without: sums are taken by node anyway (assembly.h).
//
// In two stages: owners send their partial sums to the adder, a rank of their own node, among their
// output messages; adders send the sums to the bags' ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/assembly_operations.h"
#include "compute/backend.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

class NodeSums {
 public:
  explicit NodeSums(const Layout& layout);

  // Bytes of the heads of output messages, by rank. Throws CORRUPT_DATA where one is cut off.
  std::span<const size_t> heads(std::span<const comm::ConstBytes> messages) const;

  // Takes what this rank is to add from output messages, the heads and the beginnings of the bodies;
  // they are read until the next call. Returns the rest of each body, for OutputAssembly. Throws
  // CORRUPT_DATA.
  std::span<const comm::ConstBytes> open(std::span<const comm::ConstBytes> messages,
                                         std::span<const comm::ConstBytes> bodies,
                                         compute::Backend& backend);

  // Adds, and writes the messages of sums into `buffer`.
  void compute(compute::Backend& backend, comm::MessageBuffer& buffer);

  // One per rank; empty for those of this node.
  std::span<const comm::ConstBytes> messages() const { return messages_; }

 private:
  // Partial sums of one part and feature of one source.
  struct Partial {
    int owner = 0;
    int64_t samples = 0;
    int64_t count = 0;  // rows
    int64_t width = 0;
    compute::PresentRows rows;
  };
  struct Input {
    size_t block = 0;  // among blocks of the node
    int64_t offset = 0;
  };
  // One feature's columns of one segment: the node's addends of it, in the order of their rows.
  struct Sum {
    int64_t cols = 0;
    std::vector<Input> addends;
  };

  static void read(const std::byte* header, comm::ConstBytes& rest, Partial& partial);
  void check_rows(compute::Backend& backend);
  void add_sum(int source, const Sum& sum, const Partial* partials);

  const Layout& layout_;
  std::vector<int> sources_;  // whose bags this rank adds up
  int first_owner_ = 0;       // ranks of this node
  int end_owner_ = 0;
  std::vector<size_t> first_block_;            // by owner of the node
  std::vector<size_t> heads_;                  // by rank: bytes of its message's head
  std::vector<Sum> sums_;                      // in the order of the messages
  std::vector<Partial> partials_;              // by source, then block of the node
  std::vector<compute::NodeSum> node_sums_;    // by source, then sum
  std::vector<compute::PresentRows> addends_;  // of node_sums_
  std::vector<compute::NodeSum> received_;     // a partial each
  std::vector<const Partial*> received_partial_;
  std::vector<int64_t> counts_;  // rows of sums
  std::vector<comm::ConstBytes> rests_;
  std::vector<comm::ConstBytes> messages_;
};

}  // namespace shardrec::embedding
