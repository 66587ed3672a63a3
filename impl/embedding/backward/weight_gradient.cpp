#include "embedding/backward/weight_gradient.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// Products of about so many numbers are one task.
constexpr int64_t kTaskElements = 32 << 10;

size_t products_bytes(int64_t ids, size_t ranges) {
  return align_up(static_cast<size_t>(ids) * ranges * sizeof(float), 64);
}

// Where the rows of a message begin that the products are taken with.
struct ProductRows {
  const std::byte* rows = nullptr;
  bool of_sequences = true;  // has rows of sequences too
};

// Those of the step, or, where the message has others behind them, those.
ProductRows product_rows(comm::ConstBytes message, const Layout& layout,
                         std::span<const ReceivedBlock> received) {
  GradientHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  const std::byte* rows = message.data() + sizeof header;
  if (header.unscaled == 0) return {rows, true};
  const auto blocks = layout.blocks_of(layout.rank());
  for (size_t b = 0; b < blocks.size(); ++b) {
    rows += rows_bytes(received[b].rows, layout.parts()[static_cast<size_t>(blocks[b].part)].width);
  }
  return {rows, false};
}

}  // namespace

std::vector<compute::ColumnRange> product_ranges(const Part& part) {
  std::vector<compute::ColumnRange> ranges;
  int64_t end = -1;  // column of the table behind the last range
  for (const ColumnPiece& piece : part.columns) {
    if (piece.col == end) {
      ranges.back().end += piece.cols;
    } else {
      ranges.push_back({piece.offset, piece.offset + piece.cols});
    }
    end = piece.col + piece.cols;
  }
  return ranges;
}

WeightProducts::WeightProducts(const Layout& layout)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  const auto parts = layout.parts_of(layout.rank());
  for (const Block& block : layout.blocks_of(layout.rank())) {
    const auto shard = std::find(parts.begin(), parts.end(), block.part) - parts.begin();
    shard_of_block_.push_back(static_cast<int32_t>(shard));
    ranges_.push_back(product_ranges(layout.parts()[static_cast<size_t>(block.part)]));
  }
}

void WeightProducts::compute(const Inbox& inbox, std::span<const comm::ConstBytes> gradients,
                             std::span<const Shard> shards, const StepContext& context,
                             core::Scratch& buffer) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  const auto part_of = [&](size_t b) -> const Part& {
    return layout_.parts()[static_cast<size_t>(blocks[b].part)];
  };
  const auto answered = [&](size_t b, int source) {
    return !blocks[b].sequence && layout_.answers(part_of(b), source);
  };
  size_t bytes = 0;
  size_t offsets = 0;
  size_t most_tasks = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (!answered(b, source)) continue;
      bytes += products_bytes(received[b].ids, ranges_[b].size());
      offsets += static_cast<size_t>(received[b].bags) + 1;
      most_tasks += static_cast<size_t>(received[b].ids * part_of(b).width / kTaskElements) + 1;
    }
  }
  std::byte* out = buffer.resize(bytes);
  int64_t* offset = context.work.resize_as<int64_t>(offsets).data();
  tasks_.clear();
  core::reserve_with_slack(tasks_, most_tasks);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    auto [rows, of_sequences] =
        product_rows(gradients[static_cast<size_t>(source)], layout_, received);
    std::byte* message = out;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const ReceivedBlock& block = received[b];
      if (answered(b, source)) {
        const int64_t enough = std::max<int64_t>(1, kTaskElements / part_of(b).width);
        Task task{.block = &block,
                  .shard = &shards[static_cast<size_t>(shard_of_block_[b])],
                  .ranges = ranges_[b],
                  .offsets = offset,
                  .gradients = static_cast<const float*>(static_cast<const void*>(rows)),
                  .out = static_cast<float*>(static_cast<void*>(out))};
        int64_t end = 0;
        int64_t task_ids = 0;
        offset[0] = 0;
        for_each_bag(block, [&](int64_t bag, int64_t, uint32_t length) {
          end += length;
          offset[bag + 1] = end;
          if (end - task_ids >= enough || bag + 1 == block.bags) {
            task.last = bag + 1;
            tasks_.push_back(task);
            task.first = bag + 1;
            task_ids = end;
          }
        });
        offset += block.bags + 1;
        out += products_bytes(block.ids, ranges_[b].size());
      }
      if (of_sequences || !blocks[b].sequence) rows += rows_bytes(block.rows, part_of(b).width);
    }
    messages_[static_cast<size_t>(source)] = {message, out};
  }
  context.threads.parallel_for(static_cast<int64_t>(tasks_.size()), 1,
                               [&](int64_t first, int64_t last) {
                                 for (int64_t t = first; t < last; ++t)
                                   run(tasks_[static_cast<size_t>(t)], context.kernels);
                               });
}

void WeightProducts::run(const Task& task, const compute::Kernels& kernels) {
  const Shard& shard = *task.shard;
  const size_t element_bytes = compute::element_bytes(shard.element());
  const size_t row_bytes = static_cast<size_t>(shard.width()) * element_bytes;
  const auto* ids32 = static_cast<const int32_t*>(task.block->id_data.data);
  const auto* ids64 = static_cast<const int64_t*>(task.block->id_data.data);
  const auto row_of = [&](int64_t id) {
    const int64_t row = task.block->id_data.is_64 ? ids64[id] : ids32[id];
    return shard.weights() + static_cast<size_t>(row) * row_bytes;
  };
  const int64_t end = task.offsets[task.last];
  for (int64_t bag = task.first; bag < task.last; ++bag) {
    const float* gradient = task.gradients + bag * shard.width();
    for (int64_t id = task.offsets[bag]; id < task.offsets[bag + 1]; ++id) {
      constexpr int64_t kAhead = 8;
      if (id + kAhead < end) __builtin_prefetch(row_of(id + kAhead));
      const std::byte* row = row_of(id);
      float* out = task.out + id * static_cast<int64_t>(task.ranges.size());
      for (const compute::ColumnRange& range : task.ranges) {
        *out++ = kernels.dot(row + static_cast<size_t>(range.begin) * element_bytes,
                             shard.element(), gradient + range.begin, range.end - range.begin);
      }
    }
  }
}

WeightGradients::WeightGradients(const Layout& layout) : layout_(layout) {
  for (const Part& part : layout.parts()) range_counts_.push_back(product_ranges(part).size());
  for (size_t t = 0; t < layout.table_count(); ++t) {
    const TableLayout& table = layout.table(static_cast<int32_t>(t));
    std::vector<std::vector<Term>>& terms = terms_.emplace_back(table.routing.intervals());
    for (size_t k = 0; k < table.parts.size(); ++k) {
      const Part& part = layout.parts()[static_cast<size_t>(table.parts[k])];
      if (!layout.answers(part, layout.rank())) continue;
      const std::vector<compute::ColumnRange> ranges = product_ranges(part);
      for (size_t r = 0; r < ranges.size(); ++r) {
        const auto piece =
            std::find_if(part.columns.begin(), part.columns.end(),
                         [&](const ColumnPiece& p) { return p.offset == ranges[r].begin; });
        for (int32_t i = part.first_interval; i < part.end_interval; ++i) {
          terms[static_cast<size_t>(i)].push_back(
              {static_cast<int32_t>(k), static_cast<int32_t>(r), piece->col});
        }
      }
    }
    for (std::vector<Term>& of_interval : terms) {
      std::sort(of_interval.begin(), of_interval.end(),
                [](const Term& a, const Term& b) { return a.col < b.col; });
    }
  }
  size_t sources = 0;
  for (const plan::Feature& feature : layout.model().features) {
    first_source_.push_back(sources);
    sources += layout.table(feature.table).parts.size();
  }
  sources_.resize(sources);
}

void WeightGradients::assemble(const RoutedBatch& routed, const CheckedBatch& batch,
                               std::span<const comm::ConstBytes> messages,
                               const StepContext& context, float* out) {
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const comm::ConstBytes message = messages[static_cast<size_t>(owner)];
    const auto blocks = layout_.blocks_of(owner);
    size_t at = 0;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (blocks[b].sequence || !layout_.answers(part, layout_.rank())) continue;
      const auto& parts = layout_.table(part.table).parts;
      const auto k = static_cast<size_t>(
          std::lower_bound(parts.begin(), parts.end(), blocks[b].part) - parts.begin());
      const size_t ranges = range_counts_[static_cast<size_t>(blocks[b].part)];
      sources_[first_source_[static_cast<size_t>(blocks[b].feature)] + k] = {
          static_cast<const float*>(static_cast<const void*>(message.data() + at)),
          static_cast<int64_t>(ranges)};
      at += products_bytes(routed.blocks(owner)[b].ids, ranges);
    }
    if (at != message.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", owner, " sent gradients of weights of ", message.size(),
                                " bytes, ", at, " were expected"),
                 {.rank = int64_t{owner}, .operation = "backward"});
    }
  }
  int64_t* next = context.work.resize_as<int64_t>(sources_.size()).data();
  context.threads.parallel_for(
      static_cast<int64_t>(first_source_.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t f = first; f < last; ++f) {
          const auto feature = static_cast<int32_t>(f);
          assemble_feature(routed, feature, next + first_source_[static_cast<size_t>(f)],
                           out + batch.first_id(feature));
        }
      });
}

// next: room for the position of the next id in each source.
void WeightGradients::assemble_feature(const RoutedBatch& routed, int32_t feature, int64_t* next,
                                       float* out) const {
  const int64_t ids = routed.ids(feature);
  if (layout_.is_sequence(feature)) {
    std::fill(out, out + ids, 0.0F);
    return;
  }
  const int32_t table = layout_.model().features[static_cast<size_t>(feature)].table;
  const auto& terms = terms_[static_cast<size_t>(table)];
  const Source* sources = sources_.data() + first_source_[static_cast<size_t>(feature)];
  const auto intervals = routed.intervals(feature);
  std::fill(next, next + layout_.table(table).parts.size(), 0);
  for (int64_t id = 0; id < ids; ++id) {
    const int32_t interval = intervals.empty() ? 0 : intervals[static_cast<size_t>(id)];
    float sum = 0;
    if (interval != RoutedBatch::kDropped) {
      for (const Term& term : terms[static_cast<size_t>(interval)]) {
        const Source& source = sources[term.part];
        sum += source.products[next[term.part] * source.ranges + term.range];
      }
      // Each part once, however many ranges it has.
      for (const Term& term : terms[static_cast<size_t>(interval)]) {
        if (term.range == 0) ++next[term.part];
      }
    }
    out[id] = sum;
  }
}

}  // namespace shardrec::embedding
