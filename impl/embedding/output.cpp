#include "embedding/output.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shardrec::embedding {
namespace {

// A task reads about this many bytes of rows: long enough to hide its start, short enough to
// balance.
constexpr int64_t kTaskBytes = 128 << 10;

int64_t ids_per_task(int64_t width) {
  return std::max<int64_t>(64, kTaskBytes / (width * static_cast<int64_t>(sizeof(float))));
}

}  // namespace

PartialSums::PartialSums(const Layout& layout)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  int32_t shard = -1;
  int32_t part = -1;
  for (const Block& block : layout.blocks_of(layout.rank())) {
    // A table without features has no block; its shard is passed over.
    while (part != block.part) part = layout.parts_of(layout.rank())[static_cast<size_t>(++shard)];
    shard_of_block_.push_back(shard);
  }
}

void PartialSums::compute(const Inbox& inbox, std::span<const Shard> shards,
                          const compute::Kernels& kernels, core::Threads& threads,
                          core::Scratch& work, core::Scratch& buffer) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  size_t bytes = 0;
  size_t offsets = 0;
  size_t longest = 0;  // sequence
  size_t most_tasks = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (!layout_.answers(part, source)) continue;
      bytes += rows_bytes(received[b].rows, part.width);
      if (blocks[b].sequence) {
        longest = std::max(longest, static_cast<size_t>(received[b].rows) + 1);
      } else {
        offsets += static_cast<size_t>(received[b].rows) + 1;
      }
      most_tasks += static_cast<size_t>(received[b].ids / ids_per_task(part.width)) + 1;
    }
  }
  std::byte* out = buffer.resize(bytes);
  int64_t* offset = work.resize_as<int64_t>(offsets + longest).data();
  // Bags of one id each, for all sequences.
  const std::span<int64_t> count(offset + offsets, longest);
  std::iota(count.begin(), count.end(), int64_t{0});

  tasks_.clear();
  core::reserve_with_slack(tasks_, most_tasks);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    std::byte* message = out;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (!layout_.answers(part, source)) continue;
      const ReceivedBlock& block = received[b];
      const Shard& shard = shards[static_cast<size_t>(shard_of_block_[b])];
      Task task;
      task.job = {.table = shard.weights(),
                  .stride = static_cast<size_t>(shard.width()),
                  .width = shard.width(),
                  .ids = block.id_data,
                  .weights = block.weights,
                  .offsets = nullptr,
                  .out = static_cast<float*>(static_cast<void*>(out)),
                  .out_stride = static_cast<size_t>(shard.width())};
      if (blocks[b].sequence) {
        add_sequence(task, block, count.data());
      } else {
        add_bags(task, block, offset);
        offset += block.rows + 1;
      }
      out += rows_bytes(block.rows, part.width);
    }
    messages_[static_cast<size_t>(source)] = {message, out};
  }
  threads.parallel_for(static_cast<int64_t>(tasks_.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const Task& task = tasks_[static_cast<size_t>(t)];
      kernels.pooled_lookup(task.job, task.first, task.last);
    }
  });
}

// Cuts the bags of a block into tasks of about as many ids.
void PartialSums::add_bags(Task task, const ReceivedBlock& block, int64_t* offset) {
  task.job.offsets = offset;
  const int64_t enough = ids_per_task(task.job.width);
  int64_t end = 0;
  int64_t task_ids = 0;
  offset[0] = 0;
  for_each_bag(block, [&](int64_t bag, int64_t, uint32_t length) {
    end += length;
    offset[bag + 1] = end;
    if (end - task_ids >= enough) {
      task.last = bag + 1;
      tasks_.push_back(task);
      task.first = bag + 1;
      task_ids = end;
    }
  });
  if (task.first < block.rows) {
    task.last = block.rows;
    tasks_.push_back(task);
  }
}

void PartialSums::add_sequence(Task task, const ReceivedBlock& block, const int64_t* count) {
  task.job.offsets = count;
  const int64_t enough = ids_per_task(task.job.width);
  for (; task.first < block.rows; task.first = task.last) {
    task.last = std::min(task.first + enough, block.rows);
    tasks_.push_back(task);
  }
}

OutputAssembly::OutputAssembly(const Layout& layout) : layout_(layout) {
  size_t sources = 0;
  for (const plan::Feature& feature : layout.model().features) {
    first_source_.push_back(sources);
    sources += layout.table(feature.table).parts.size();
  }
  sources_.resize(sources);
  first_task_.resize(layout.model().features.size() + 1);
  for (size_t t = 0; t < layout.table_count(); ++t) {
    widest_ = std::max(widest_, layout.model().tables[t].dim);
    for (const Segment& segment : layout.table(static_cast<int32_t>(t)).segments) {
      most_addends_ = std::max(most_addends_, segment.addends.size());
    }
  }
}

void OutputAssembly::open(const RoutedBatch& routed, std::span<const comm::ConstBytes> messages) {
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
      sources_[first_source_[static_cast<size_t>(blocks[b].feature)] + k] = {
          static_cast<const float*>(static_cast<const void*>(message.data() + at)), &sent[b],
          part.width};
      at += rows_bytes(sent[b].rows, part.width);
    }
    if (at != message.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", owner, " sent an output message of ", message.size(),
                                " bytes, ", at, " were expected"),
                 {.rank = int64_t{owner}, .operation = "forward"});
    }
  }
}

void OutputAssembly::assemble(const RoutedBatch& routed, int32_t output,
                              const compute::Kernels& kernels, core::Threads& threads,
                              core::Scratch& work, const core::Matrix& out) {
  const auto& output_of = layout_.output().output;
  for (size_t f = 0; f < output_of.size(); ++f) {
    first_task_[f + 1] =
        first_task_[f] +
        (output_of[f] == output ? routed.chunks(static_cast<int32_t>(f)) : int64_t{0});
  }
  const int64_t tasks = first_task_.back();
  const int64_t pieces = std::min<int64_t>(tasks, int64_t{8} * threads.count());
  const size_t piece_bytes = align_up(static_cast<size_t>(widest_) * sizeof(float), 64) +
                             align_up(most_addends_ * sizeof(int64_t), 64);
  std::byte* scratch = work.resize(static_cast<size_t>(pieces) * piece_bytes);
  threads.parallel_for(pieces, 1, [&](int64_t first_piece, int64_t last_piece) {
    for (int64_t piece = first_piece; piece < last_piece; ++piece) {
      std::byte* own = scratch + static_cast<size_t>(piece) * piece_bytes;
      const Workspace workspace{static_cast<int64_t*>(static_cast<void*>(own)),
                                static_cast<float*>(static_cast<void*>(
                                    own + align_up(most_addends_ * sizeof(int64_t), 64)))};
      for (int64_t t = tasks * piece / pieces; t < tasks * (piece + 1) / pieces; ++t) {
        const auto above = std::upper_bound(first_task_.begin(), first_task_.end(), t);
        const auto feature = static_cast<int32_t>(above - first_task_.begin()) - 1;
        const int64_t chunk = t - first_task_[static_cast<size_t>(feature)];
        if (output == 0) {
          assemble_bags(routed, kernels, feature, chunk, workspace, out);
        } else {
          assemble_sequence(routed, feature, chunk, workspace, out);
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

void OutputAssembly::assemble_bags(const RoutedBatch& routed, const compute::Kernels& kernels,
                                   int32_t feature, int64_t chunk, const Workspace& work,
                                   const core::Matrix& out) const {
  const plan::Feature& description = layout_.model().features[static_cast<size_t>(feature)];
  const TableLayout& table = layout_.table(description.table);
  const int64_t column = layout_.output().column[static_cast<size_t>(feature)];
  const bool mean = description.pooling == SHARDREC_POOLING_MEAN;
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, routed.items(feature));
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto lengths = routed.lengths(feature);

  for (const Segment& segment : table.segments) {
    const auto bytes = static_cast<size_t>(segment.cols) * sizeof(float);
    start_chunk(segment, feature, chunk, work);
    for (int64_t sample = first; sample < last; ++sample) {
      float* row = out.data + sample * out.stride + column + segment.col;
      const uint32_t length = lengths[static_cast<size_t>(sample)];
      if (length == 0) {
        std::memset(row, 0, bytes);
        continue;
      }
      bool row_started = false;
      size_t a = 0;
      for (const int32_t node_end : segment.node_ends) {
        // The first node's sum grows in place; another's is taken apart, then added.
        float* sum = row_started ? work.node_sum : row;
        bool started = false;
        for (; a < static_cast<size_t>(node_end); ++a) {
          const Source& source = sources[segment.addends[a].part];
          if (!source.block->holds(work.next_row[a], sample)) continue;
          const float* x =
              source.rows + work.next_row[a]++ * source.width + segment.addends[a].offset;
          if (started) {
            kernels.add(x, sum, segment.cols);
          } else {
            std::memcpy(sum, x, bytes);
            started = true;
          }
        }
        if (started && row_started) kernels.add(work.node_sum, row, segment.cols);
        row_started = row_started || started;
      }
      if (mean) kernels.divide(row, static_cast<float>(length), segment.cols);
    }
  }
}

void OutputAssembly::assemble_sequence(const RoutedBatch& routed, int32_t feature, int64_t chunk,
                                       const Workspace& work, const core::Matrix& out) const {
  const TableLayout& table =
      layout_.table(layout_.model().features[static_cast<size_t>(feature)].table);
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, routed.items(feature));
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto intervals = routed.intervals(feature);

  for (const Segment& segment : table.segments) {
    const auto bytes = static_cast<size_t>(segment.cols) * sizeof(float);
    start_chunk(segment, feature, chunk, work);
    for (int64_t id = first; id < last; ++id) {
      float* row = out.data + id * out.stride + segment.col;
      const int32_t interval = intervals.empty() ? 0 : intervals[static_cast<size_t>(id)];
      if (interval == RoutedBatch::kDropped) {
        std::memset(row, 0, bytes);
        continue;
      }
      const auto a = static_cast<size_t>(segment.addend_of[static_cast<size_t>(interval)]);
      const Source& source = sources[segment.addends[a].part];
      std::memcpy(row, source.rows + work.next_row[a]++ * source.width + segment.addends[a].offset,
                  bytes);
    }
  }
}

}  // namespace shardrec::embedding
