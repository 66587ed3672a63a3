#include "embedding/gradient.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {

GradientPacking::GradientPacking(const Layout& layout)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  size_t blocks = 0;
  for (int owner = 0; owner < layout.ranks(); ++owner) blocks += layout.blocks_of(owner).size();
  tasks_.resize(blocks);
}

void GradientPacking::pack(const RoutedBatch& routed, const CheckedBatch& batch,
                           const core::Matrix& gradient, float divisor, float max_gradient,
                           const compute::Kernels& kernels, core::Threads& threads,
                           core::Scratch& buffer) {
  size_t bytes = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    bytes += sizeof(GradientHeader);
    for (size_t b = 0; b < blocks.size(); ++b) {
      bytes += rows_bytes(static_cast<uint64_t>(sent[b].bags),
                          layout_.parts()[static_cast<size_t>(blocks[b].part)].width);
    }
  }
  std::byte* out = buffer.resize(bytes);
  size_t task = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    std::byte* message = out;
    const GradientHeader header;
    std::memcpy(out, &header, sizeof header);
    out += sizeof header;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      tasks_[task++] = {&sent[b], &part, blocks[b].feature,
                        static_cast<float*>(static_cast<void*>(out))};
      out += rows_bytes(static_cast<uint64_t>(sent[b].bags), part.width);
    }
    messages_[static_cast<size_t>(owner)] = {message, out};
  }

  const int64_t chunks = routed.chunks();
  threads.parallel_for(
      chunks * static_cast<int64_t>(tasks_.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) {
          const Task& item = tasks_[static_cast<size_t>(t / chunks)];
          const int64_t chunk = t % chunks;
          const plan::Feature& feature =
              layout_.model().features[static_cast<size_t>(item.feature)];
          const bool mean = feature.pooling == SHARDREC_POOLING_MEAN;
          const auto lengths = batch.lengths(item.feature);
          const int64_t column = layout_.output().column[static_cast<size_t>(item.feature)];
          compute::ScaleGradient scale{.divisor = divisor, .max_gradient = max_gradient};
          int64_t bag = item.block->chunk_bags[chunk];
          const int64_t bag_end = item.block->chunk_bags[chunk + 1];
          for (int64_t sample = chunk * kChunk; bag < bag_end; ++sample) {
            if (!item.block->holds(bag, sample)) continue;
            if (mean) scale.length = static_cast<float>(lengths[static_cast<size_t>(sample)]);
            const float* row = gradient.data + sample * gradient.stride + column;
            float* to = item.rows + bag * item.part->width;
            for (const ColumnPiece& piece : item.part->columns) {
              kernels.scale_gradient(scale, row + piece.col, to + piece.offset, piece.cols);
            }
            ++bag;
          }
        }
      });
}

void GradientPacking::decline(GradientVerdict decision, const Verdict& verdict,
                              core::Scratch& buffer) {
  GradientHeader header;
  header.decision = decision;
  header.verdict = verdict;
  std::byte* out = buffer.resize(sizeof header);
  std::memcpy(out, &header, sizeof header);
  std::fill(messages_.begin(), messages_.end(), comm::ConstBytes{out, sizeof header});
}

}  // namespace shardrec::embedding
