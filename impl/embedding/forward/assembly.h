// Step 6 of the exchange, on the source: partial sums become outputs, in an order that knows no
// transport: nodes in the order of their first rows, inside a node its parts in ascending rows.
// Sums are fp32; an output of another type is rounded once, to nearest, at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/kernels.h"
#include "core/grouped_tasks.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/batch/expansion.h"
#include "embedding/batch/output_view.h"
#include "embedding/exchange/route.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/step_context.h"

namespace shardrec::embedding {

// Adds the partial sums of the rank's own bags and writes outputs.
class OutputAssembly {
 public:
  explicit OutputAssembly(const Layout& layout);

  // messages: one per owner, as PartialSums wrote them; they and the routed batch are read until
  // the next call. direct: by own block, is it written by DirectLookup? Throws CORRUPT_DATA when a
  // message is not as long as the batch needs.
  void open(const RoutedBatch& routed, std::span<const uint8_t> direct,
            std::span<const comm::ConstBytes> messages);

  // Where parts are added up on their nodes: the sums, one message per rank, as NodeSums wrote
  // them. After open, with the same rules.
  void open_sums(const RoutedBatch& routed, std::span<const comm::ConstBytes> messages,
                 core::Threads& threads);

  // Writes one output.
  void assemble(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                const StepContext& context, const OutputView& out);

 private:
  // Where a block stands in the owner's message and in the routed batch.
  struct Source {
    const float* rows = nullptr;
    const SentBlock* block = nullptr;
    int64_t width = 0;
    bool direct = false;
  };
  // What a node has of a segment of a feature.
  struct NodeSum {
    const Segment* segment = nullptr;
    int32_t feature = 0;
    size_t node = 0;     // of the segment
    bool comes = false;  // as one sum; else the node's parts come singly
    const float* rows = nullptr;
    uint32_t* chunk_rows = nullptr;  // as SentBlock's
  };
  // What one thread needs while it works on a chunk.
  struct Workspace {
    int64_t* next_row = nullptr;  // by addend of a segment
    int64_t* next_sum = nullptr;  // by node of a segment
    float* row = nullptr;       // [columns of the widest table], where the output is not of floats
    float* node_sum = nullptr;  // [columns of the widest table]
  };
  void assemble_bags(const RoutedBatch& routed, const Expansion& expansion,
                     const compute::Kernels& kernels, int32_t feature, int64_t chunk,
                     const Workspace& work, const OutputView& out) const;
  void add_parts(const Segment& segment, const compute::Kernels& kernels, const Source* sources,
                 const NodeSum* sums, int64_t bag, const Workspace& work, float* row) const;
  static bool take_bag(const Segment& segment, size_t n, const Source* sources, int64_t bag,
                       int64_t* next_row);
  void count_rows(const RoutedBatch& routed, const NodeSum& sum, int64_t* next_row) const;
  void assemble_sequence(const RoutedBatch& routed, const compute::Kernels& kernels,
                         int32_t feature, int64_t chunk, const Workspace& work,
                         const OutputView& out) const;
  // Is a segment of a feature written by DirectLookup? Then it has one addend.
  bool is_direct(const Segment& segment, const Source* sources) const {
    return sources[segment.addends[0].part].direct;
  }
  bool all_direct(int32_t feature) const;
  // Rows of each addend's message before a chunk.
  void start_chunk(const Segment& segment, int32_t feature, int64_t chunk,
                   const Workspace& work) const;

  const Layout& layout_;
  int64_t widest_ = 0;  // columns of the widest table
  size_t most_addends_ = 0;
  size_t most_nodes_ = 0;
  std::vector<size_t> first_source_;  // by feature
  std::vector<Source> sources_;       // by feature, then by part of its table
  std::vector<size_t> first_sum_;     // by feature; none where nothing is added up on nodes
  std::vector<NodeSum> sums_;         // by feature, then segment, then node
  core::Scratch sums_memory_;
  std::vector<size_t> message_ends_;  // of messages of sums, by rank
  core::GroupedTasks tasks_;          // chunks by feature, while assembling
};

}  // namespace shardrec::embedding
