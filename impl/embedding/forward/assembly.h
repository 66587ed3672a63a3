// Step 6 of the exchange, on the source: partial sums become outputs, in an order that knows no
// transport: nodes in the order of their first rows, inside a node its parts in ascending rows.
// Sums are fp32; an output of another type is rounded once, to nearest, at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/assembly_operations.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/batch/expansion.h"
#include "embedding/batch/output_view.h"
#include "embedding/exchange/route.h"
#include "embedding/exchange/step_scratch.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// Adds the partial sums of the rank's own bags and writes outputs.
class OutputAssembly {
 public:
  OutputAssembly(const Layout& layout, StepScratch& scratch,
                 const std::shared_ptr<compute::Memory>& memory);

  // messages: one per owner, as PartialSums wrote them; they and the routed batch are read until
  // the next call. direct: by own block, is it written by DirectLookup? Throws CORRUPT_DATA when a
  // message is not as long as the batch needs.
  void open(const RoutedBatch& routed, std::span<const uint8_t> direct,
            std::span<const comm::ConstBytes> messages);

  // Where parts are added up on their nodes: the sums, one message per rank, as NodeSums wrote
  // them. After open, with the same rules.
  void open_sums(const RoutedBatch& routed, std::span<const comm::ConstBytes> messages,
                 compute::Backend& backend);

  // Writes one output.
  void assemble(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                compute::Backend& backend, const OutputView& out);

 private:
  // The columns of a segment of a feature.
  struct Columns {
    int32_t feature = 0;
    size_t number = 0;  // of the feature among those of its table
    const Segment* segment = nullptr;
    size_t first_node = 0;    // into nodes_
    size_t first_addend = 0;  // of the batch, into addends_
    bool direct = false;      // is it written by DirectLookup? Then it has one addend
  };
  // What a node has of them comes as one sum.
  struct Sum {
    const Columns* columns = nullptr;
    size_t node = 0;  // of the segment
  };

  int32_t part_of(const Columns& columns, const Addend& addend) const;
  void add_addends(const RoutedBatch& routed, const Columns& columns, size_t node);
  void fill_addends(const RoutedBatch& routed, std::span<const uint8_t> direct);
  bool is_direct(const Columns& columns, std::span<const uint8_t> direct) const;
  compute::PooledOutput pooled_output(const RoutedBatch& routed, const Expansion& expansion,
                                      const Columns& columns, const OutputView& out) const;
  compute::SequenceOutput sequence_output(const RoutedBatch& routed, const Columns& columns,
                                          const OutputView& out) const;

  const Layout& layout_;
  StepScratch& scratch_;
  std::vector<Columns> columns_;  // by feature, then segment
  std::vector<compute::SentRows> addends_;
  std::vector<compute::NodeRows> nodes_;
  std::vector<size_t> node_ends_;  // by node, of its addends
  std::vector<Sum> sums_;          // none where nothing is added up on nodes
  compute::Buffer chunk_sums_memory_;
  std::vector<compute::NodeSumCount> sum_counts_;  // by sum
  std::vector<int64_t> sum_rows_;                  // by sum
  std::vector<size_t> message_ends_;               // of messages of sums, by rank
  std::vector<compute::PooledOutput> pooled_;      // while assembling
  std::vector<compute::SequenceOutput> sequences_;
};

}  // namespace shardrec::embedding
