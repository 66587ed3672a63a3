#include "embedding/output.h"

#include <algorithm>
#include <cstring>

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
  size_t most_tasks = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (!layout_.answers(part, source)) continue;
      bytes += rows_bytes(static_cast<uint64_t>(received[b].bags), part.width);
      offsets += static_cast<size_t>(received[b].bags) + 1;
      most_tasks += static_cast<size_t>(received[b].ids / ids_per_task(part.width)) + 1;
    }
  }
  std::byte* out = buffer.resize(bytes);
  int64_t* offset = work.resize_as<int64_t>(offsets).data();

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
                  .offsets = offset,
                  .out = static_cast<float*>(static_cast<void*>(out)),
                  .out_stride = static_cast<size_t>(shard.width())};
      const int64_t enough = ids_per_task(shard.width());
      int64_t end = 0;
      int64_t task_ids = 0;
      offset[0] = 0;
      for_each_bag(block, inbox.batch_size(source), [&](int64_t bag, int64_t, uint32_t length) {
        end += length;
        offset[bag + 1] = end;
        if (end - task_ids >= enough) {
          task.last = bag + 1;
          tasks_.push_back(task);
          task.first = bag + 1;
          task_ids = end;
        }
      });
      if (task.first < block.bags) {
        task.last = block.bags;
        tasks_.push_back(task);
      }
      offset += block.bags + 1;
      out += rows_bytes(static_cast<uint64_t>(block.bags), part.width);
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

OutputAssembly::OutputAssembly(const Layout& layout) : layout_(layout) {
  size_t sources = 0;
  for (const plan::Feature& feature : layout.model().features) {
    first_source_.push_back(sources);
    sources += layout.table(feature.table).parts.size();
  }
  sources_.resize(sources);
  for (size_t t = 0; t < layout.table_count(); ++t) {
    widest_ = std::max(widest_, layout.model().tables[t].dim);
    for (const Segment& segment : layout.table(static_cast<int32_t>(t)).segments) {
      most_addends_ = std::max(most_addends_, segment.addends.size());
    }
  }
}

void OutputAssembly::assemble(const RoutedBatch& routed, const CheckedBatch& batch,
                              std::span<const comm::ConstBytes> messages,
                              const compute::Kernels& kernels, core::Threads& threads,
                              core::Scratch& work, const core::Matrix& out) {
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
      at += rows_bytes(static_cast<uint64_t>(sent[b].bags), part.width);
    }
    if (at != message.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", owner, " sent an output message of ", message.size(),
                                " bytes, ", at, " were expected"),
                 {.rank = int64_t{owner}, .operation = "forward"});
    }
  }
  const int64_t chunks = routed.chunks();
  const int64_t tasks = chunks * static_cast<int64_t>(layout_.model().features.size());
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
        assemble_chunk(routed, batch, kernels, static_cast<int32_t>(t / chunks), t % chunks,
                       workspace, out);
      }
    }
  });
}

void OutputAssembly::assemble_chunk(const RoutedBatch& routed, const CheckedBatch& batch,
                                    const compute::Kernels& kernels, int32_t feature, int64_t chunk,
                                    const Workspace& work, const core::Matrix& out) const {
  const plan::Feature& description = layout_.model().features[static_cast<size_t>(feature)];
  const TableLayout& table = layout_.table(description.table);
  const int64_t column = layout_.output().column[static_cast<size_t>(feature)];
  const bool mean = description.pooling == SHARDREC_POOLING_MEAN;
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, routed.batch_size());
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto lengths = batch.lengths(feature);

  for (const Segment& segment : table.segments) {
    const auto bytes = static_cast<size_t>(segment.cols) * sizeof(float);
    for (size_t a = 0; a < segment.addends.size(); ++a) {
      work.next_bag[a] = sources[segment.addends[a].part].block->chunk_bags[chunk];
    }
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
          if (!source.block->holds(work.next_bag[a], sample)) continue;
          const float* x =
              source.rows + work.next_bag[a]++ * source.width + segment.addends[a].offset;
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

}  // namespace shardrec::embedding
