// Gradients of the ids' weights: of id i of a pooled bag, the product of its row, as it is before
// the step, with the output gradient of the bag, divided by the bag's length for MEAN, neither
// divided by the divisor nor clamped. The owner takes the products (16-lane sums over the columns
// it has side by side) and sends them back in the order in which it got the ids; the source adds
// them up by ascending column. Ids that were dropped, and ids of sequences, have 0.
//
// Message from an owner to a source: per pooled block that the owner answers, [ids, ranges] floats,
// each block at a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/gradient_operations.h"
#include "embedding/batch/batch.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/route.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

// The owner's half.
class WeightProducts {
 public:
  explicit WeightProducts(const Layout& layout);

  // messages: the gradient messages of the step, checked (Update::open); their heads are read.
  // bodies: theirs, as floats. Writes the messages to the sources into `buffer`.
  void compute(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
               std::span<const comm::ConstBytes> bodies, std::span<const Shard> shards,
               compute::Backend& backend, comm::MessageBuffer& buffer);

  std::span<const comm::ConstBytes> messages() const { return messages_; }

 private:
  const Layout& layout_;
  std::vector<size_t> shard_of_block_;                     // by own block: index into shards
  std::vector<std::vector<compute::ColumnRange>> ranges_;  // by own block
  std::vector<compute::WeightProducts> products_;
  std::vector<comm::ConstBytes> messages_;
};

// The source's half.
class WeightGradients {
 public:
  explicit WeightGradients(const Layout& layout);

  // Writes [ids of the batch], in its order. bodies: of the owners' messages. Throws CORRUPT_DATA when
  // one is not as long as the batch needs.
  void assemble(const RoutedBatch& routed, const CheckedBatch& batch,
                std::span<const comm::ConstBytes> bodies, compute::Backend& backend, float* out);

 private:
  // Which products make up the gradient of a weight of a table.
  struct TableTerms {
    std::vector<compute::ProductTerm> terms;  // by interval, ascending columns
    std::vector<int32_t> first;               // by interval
  };
  TableTerms terms_of(int32_t table) const;

  const Layout& layout_;
  std::vector<size_t> range_counts_;           // by part
  std::vector<TableTerms> terms_;              // by table
  std::vector<size_t> first_source_;           // by feature
  std::vector<compute::ProductRows> sources_;  // by feature, then by part of its table
  std::vector<compute::WeightGradients> features_;
};

}  // namespace shardrec::embedding
