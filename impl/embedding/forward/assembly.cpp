#include "embedding/forward/assembly.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// The row of the output message for the n-th id of a sequence's block.
int64_t answer_of(const SentBlock& block, int64_t n) {
  if (block.unique == 0) return n;
  const size_t bytes = code_bytes(static_cast<uint64_t>(block.unique));
  if (bytes == 1) return static_cast<int64_t>(block.codes[n]);
  if (bytes == 2) {
    uint16_t code = 0;
    std::memcpy(&code, block.codes + 2 * n, sizeof code);
    return code;
  }
  uint32_t code = 0;
  std::memcpy(&code, block.codes + 4 * n, sizeof code);
  return code;
}

void check_size(int rank, const char* what, size_t bytes, size_t expected) {
  if (bytes == expected) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent ", what, " of ", bytes, " bytes, ", expected,
                            " were expected"),
             {.rank = int64_t{rank}, .operation = "forward"});
}

}  // namespace

OutputAssembly::OutputAssembly(const Layout& layout) : layout_(layout) {
  size_t sources = 0;
  for (const plan::Feature& feature : layout.model().features) {
    first_source_.push_back(sources);
    sources += layout.table(feature.table).parts.size();
  }
  sources_.resize(sources);
  tasks_.reserve(layout.model().features.size());
  for (size_t t = 0; t < layout.table_count(); ++t) {
    widest_ = std::max(widest_, layout.model().tables[t].dim);
    for (const Segment& segment : layout.table(static_cast<int32_t>(t)).segments) {
      most_addends_ = std::max(most_addends_, segment.addends.size());
      most_nodes_ = std::max(most_nodes_, segment.nodes.size());
    }
  }
  if (!layout.sums_on_nodes()) return;
  message_ends_.resize(static_cast<size_t>(layout.ranks()));
  for (size_t f = 0; f < layout.model().features.size(); ++f) {
    first_sum_.push_back(sums_.size());
    for (const Segment& segment : layout.table(layout.model().features[f].table).segments) {
      for (size_t n = 0; n < segment.nodes.size(); ++n) {
        const auto feature = static_cast<int32_t>(f);
        const bool comes = segment.nodes[n] != layout.node_of(layout.rank()) &&
                           layout.sums_segment(feature, segment, n);
        sums_.push_back({.segment = &segment, .feature = feature, .node = n, .comes = comes});
      }
    }
  }
}

void OutputAssembly::open(const RoutedBatch& routed, std::span<const uint8_t> direct,
                          std::span<const comm::ConstBytes> messages) {
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const comm::ConstBytes message = messages[static_cast<size_t>(owner)];
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    size_t at = 0;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (!layout_.answers(part, layout_.rank())) continue;
      const auto& parts = layout_.table(part.table).parts;
      const auto k = static_cast<size_t>(
          std::lower_bound(parts.begin(), parts.end(), blocks[b].part) - parts.begin());
      Source& source = sources_[first_source_[static_cast<size_t>(blocks[b].feature)] + k];
      source = {static_cast<const float*>(static_cast<const void*>(message.data() + at)), &sent[b],
                part.width, owner == layout_.rank() && direct[b] != 0};
      if (source.direct || layout_.goes_by_node(blocks[b], layout_.rank())) continue;
      at += rows_bytes(sent[b].answers(blocks[b].sequence), part.width);
    }
    check_size(owner, "an output message", message.size(), at);
  }
}

void OutputAssembly::open_sums(const RoutedBatch& routed,
                               std::span<const comm::ConstBytes> messages, core::Threads& threads) {
  size_t counts = 0;
  for (const NodeSum& sum : sums_) {
    if (sum.comes) counts += static_cast<size_t>(routed.chunks(sum.feature)) + 1;
  }
  const size_t count_bytes = align_up(counts * sizeof(uint32_t), 64);
  std::byte* memory =
      sums_memory_.resize(count_bytes + sums_.size() * most_addends_ * sizeof(int64_t));
  auto* chunk_rows = static_cast<uint32_t*>(static_cast<void*>(memory));
  auto* next_rows = static_cast<int64_t*>(static_cast<void*>(memory + count_bytes));
  for (NodeSum& sum : sums_) {
    if (!sum.comes) continue;
    sum.chunk_rows = chunk_rows;
    chunk_rows += routed.chunks(sum.feature) + 1;
  }
  threads.parallel_for(static_cast<int64_t>(sums_.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      const NodeSum& sum = sums_[static_cast<size_t>(s)];
      if (!sum.comes) continue;
      count_rows(routed, sum, next_rows + static_cast<size_t>(s) * most_addends_);
    }
  });
  std::vector<size_t>& at = message_ends_;
  std::fill(at.begin(), at.end(), size_t{0});
  for (NodeSum& sum : sums_) {
    if (!sum.comes) continue;
    const auto adder =
        static_cast<size_t>(layout_.adder(layout_.rank(), sum.segment->nodes[sum.node]));
    sum.rows =
        static_cast<const float*>(static_cast<const void*>(messages[adder].data() + at[adder]));
    at[adder] += rows_bytes(sum.chunk_rows[routed.chunks(sum.feature)], sum.segment->cols);
  }
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    check_size(static_cast<int>(rank), "a message of sums", messages[rank].size(), at[rank]);
  }
}

// Has any part of a node ids of a bag, the next one in order? Steps over its rows.
bool OutputAssembly::take_bag(const Segment& segment, size_t n, const Source* sources, int64_t bag,
                              int64_t* next_row) {
  bool any = false;
  for (size_t a = segment.node_begin(n); a < segment.node_end(n); ++a) {
    const bool holds = sources[segment.addends[a].part].block->holds(next_row[a], bag);
    next_row[a] += holds;
    any = any || holds;
  }
  return any;
}

// Bags before each chunk of which any part of the node has ids.
void OutputAssembly::count_rows(const RoutedBatch& routed, const NodeSum& sum,
                                int64_t* next_row) const {
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(sum.feature)];
  std::fill_n(next_row, most_addends_, int64_t{0});
  uint32_t* chunk_rows = sum.chunk_rows;
  uint32_t rows = 0;
  const int64_t bags = routed.items(sum.feature);
  for (int64_t bag = 0; bag < bags; ++bag) {
    if (bag % kChunk == 0) *chunk_rows++ = rows;
    rows += take_bag(*sum.segment, sum.node, sources, bag, next_row);
  }
  *chunk_rows = rows;
}

bool OutputAssembly::all_direct(int32_t feature) const {
  const int32_t table = layout_.model().features[static_cast<size_t>(feature)].table;
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto& segments = layout_.table(table).segments;
  return std::all_of(segments.begin(), segments.end(),
                     [&](const Segment& segment) { return is_direct(segment, sources); });
}

void OutputAssembly::assemble(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                              const StepContext& context, const OutputView& out) {
  const auto& output_of = layout_.output().output;
  tasks_.clear();
  for (size_t f = 0; f < output_of.size(); ++f) {
    const auto feature = static_cast<int32_t>(f);
    const bool wanted = output_of[f] == output && !all_direct(feature);
    tasks_.add(wanted ? routed.chunks(feature) : int64_t{0});
  }
  const int64_t tasks = tasks_.count();
  const int64_t pieces = std::min<int64_t>(tasks, int64_t{8} * context.threads.count());
  const size_t row_bytes = align_up(static_cast<size_t>(widest_) * sizeof(float), 64);
  const size_t piece_bytes =
      2 * row_bytes + align_up((most_addends_ + most_nodes_) * sizeof(int64_t), 64);
  std::byte* scratch = context.work.resize(static_cast<size_t>(pieces) * piece_bytes);
  context.threads.parallel_for(pieces, 1, [&](int64_t first_piece, int64_t last_piece) {
    for (int64_t piece = first_piece; piece < last_piece; ++piece) {
      std::byte* own = scratch + static_cast<size_t>(piece) * piece_bytes;
      auto* next = static_cast<int64_t*>(static_cast<void*>(own + 2 * row_bytes));
      const Workspace workspace{
          .next_row = next,
          .next_sum = next + most_addends_,
          .row = static_cast<float*>(static_cast<void*>(own)),
          .node_sum = static_cast<float*>(static_cast<void*>(own + row_bytes))};
      for (int64_t t = tasks * piece / pieces; t < tasks * (piece + 1) / pieces; ++t) {
        const auto [group, chunk] = tasks_.find(t);
        const auto feature = static_cast<int32_t>(group);
        if (output == 0) {
          assemble_bags(routed, expansion, context.kernels, feature, chunk, workspace, out);
        } else {
          assemble_sequence(routed, context.kernels, feature, chunk, workspace, out);
        }
      }
    }
  });
}

void OutputAssembly::start_chunk(const Segment& segment, int32_t feature, int64_t chunk,
                                 const Workspace& work) const {
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  for (size_t a = 0; a < segment.addends.size(); ++a) {
    work.next_row[a] = sources[segment.addends[a].part].block->chunk_rows[chunk];
  }
}

// Adds what the parts of a segment have of one bag. sums: by node, or null.
void OutputAssembly::add_parts(const Segment& segment, const compute::Kernels& kernels,
                               const Source* sources, const NodeSum* sums, int64_t bag,
                               const Workspace& work, float* row) const {
  bool row_started = false;
  for (size_t n = 0; n < segment.nodes.size(); ++n) {
    if (sums != nullptr && sums[n].comes) {
      if (!take_bag(segment, n, sources, bag, work.next_row)) continue;
      const float* x = sums[n].rows + work.next_sum[n]++ * segment.cols;
      if (row_started) {
        kernels.add(x, row, segment.cols);
      } else {
        std::memcpy(row, x, static_cast<size_t>(segment.cols) * sizeof(float));
        row_started = true;
      }
      continue;
    }
    // The first node's sum grows in place; another's is taken apart, then added.
    float* sum = row_started ? work.node_sum : row;
    bool started = false;
    for (size_t a = segment.node_begin(n); a < segment.node_end(n); ++a) {
      const Source& source = sources[segment.addends[a].part];
      if (!source.block->holds(work.next_row[a], bag)) continue;
      const float* x = source.rows + work.next_row[a]++ * source.width + segment.addends[a].offset;
      if (started) {
        kernels.add(x, sum, segment.cols);
      } else {
        std::memcpy(sum, x, static_cast<size_t>(segment.cols) * sizeof(float));
        started = true;
      }
    }
    if (started && row_started) kernels.add(work.node_sum, row, segment.cols);
    row_started = row_started || started;
  }
}

void OutputAssembly::assemble_bags(const RoutedBatch& routed, const Expansion& expansion,
                                   const compute::Kernels& kernels, int32_t feature, int64_t chunk,
                                   const Workspace& work, const OutputView& out) const {
  const plan::Feature& description = layout_.model().features[static_cast<size_t>(feature)];
  const TableLayout& table = layout_.table(description.table);
  const bool mean = description.pooling == SHARDREC_POOLING_MEAN;
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, routed.items(feature));
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto lengths = routed.lengths(feature);
  const bool in_place = out.element == compute::Element::kFloat32 && !expansion.present();

  const NodeSum* next_sums =
      first_sum_.empty() ? nullptr : sums_.data() + first_sum_[static_cast<size_t>(feature)];
  for (const Segment& segment : table.segments) {
    const NodeSum* sums = next_sums;
    if (sums != nullptr) next_sums += segment.nodes.size();
    if (is_direct(segment, sources)) continue;
    const int64_t column = layout_.output().column[static_cast<size_t>(feature)] + segment.col;
    start_chunk(segment, feature, chunk, work);
    for (size_t n = 0; sums != nullptr && n < segment.nodes.size(); ++n) {
      if (sums[n].comes) work.next_sum[n] = sums[n].chunk_rows[chunk];
    }
    for (int64_t bag = first; bag < last; ++bag) {
      float* row = in_place ? static_cast<float*>(out.at(bag, column)) : work.row;
      const uint32_t length = lengths[static_cast<size_t>(bag)];
      if (length == 0) {
        std::memset(row, 0, static_cast<size_t>(segment.cols) * sizeof(float));
      } else {
        add_parts(segment, kernels, sources, sums, bag, work, row);
        if (mean) kernels.divide(row, static_cast<float>(length), segment.cols);
      }
      if (in_place) continue;
      if (!expansion.present()) {
        kernels.narrow(row, out.element, out.at(bag, column), segment.cols);
        continue;
      }
      for (const uint32_t sample : expansion.samples(feature, bag)) {
        kernels.narrow(row, out.element, out.at(sample, column), segment.cols);
      }
    }
  }
}

void OutputAssembly::assemble_sequence(const RoutedBatch& routed, const compute::Kernels& kernels,
                                       int32_t feature, int64_t chunk, const Workspace& work,
                                       const OutputView& out) const {
  const TableLayout& table =
      layout_.table(layout_.model().features[static_cast<size_t>(feature)].table);
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, routed.items(feature));
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto intervals = routed.intervals(feature);

  for (const Segment& segment : table.segments) {
    if (is_direct(segment, sources)) continue;
    start_chunk(segment, feature, chunk, work);
    for (int64_t id = first; id < last; ++id) {
      void* row = out.at(id, segment.col);
      const int32_t interval = intervals.empty() ? 0 : intervals[static_cast<size_t>(id)];
      if (interval == RoutedBatch::kDropped) {
        std::memset(row, 0,
                    static_cast<size_t>(segment.cols) * compute::element_bytes(out.element));
        continue;
      }
      const auto a = static_cast<size_t>(segment.addend_of[static_cast<size_t>(interval)]);
      const Source& source = sources[segment.addends[a].part];
      const int64_t answer = answer_of(*source.block, work.next_row[a]++);
      kernels.narrow(source.rows + answer * source.width + segment.addends[a].offset, out.element,
                     row, segment.cols);
    }
  }
}

}  // namespace shardrec::embedding
