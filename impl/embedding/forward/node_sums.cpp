#include "embedding/forward/node_sums.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "embedding/exchange/route.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kChunkWords = kChunk / kWordBits;

}  // namespace

NodeSums::NodeSums(const Layout& layout)
    : layout_(layout),
      rests_(static_cast<size_t>(layout.ranks())),
      messages_(static_cast<size_t>(layout.ranks())) {
  const int32_t node = layout.node_of(layout.rank());
  first_owner_ = layout.ranks();
  size_t blocks = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (layout.node_of(rank) != node) {
      if (layout.adder(rank, node) == layout.rank()) sources_.push_back(rank);
      continue;
    }
    first_owner_ = std::min(first_owner_, rank);
    end_owner_ = rank + 1;
    first_block_.push_back(blocks);
    blocks += layout.blocks_of(rank).size();
  }
  const auto features = static_cast<int32_t>(layout.model().features.size());
  for (int32_t feature = 0; feature < features; ++feature) {
    const auto f = static_cast<size_t>(feature);
    const TableLayout& table = layout.table(layout.model().features[f].table);
    const auto k = static_cast<size_t>(
        std::lower_bound(table.features.begin(), table.features.end(), feature) -
        table.features.begin());
    for (const Segment& segment : table.segments) {
      for (size_t n = 0; n < segment.nodes.size(); ++n) {
        if (segment.nodes[n] != node || !layout.sums_segment(feature, segment, n)) continue;
        Sum& sum = sums_.emplace_back();
        sum.cols = segment.cols;
        for (size_t a = segment.node_begin(n); a < segment.node_end(n); ++a) {
          const int32_t p = table.parts[static_cast<size_t>(segment.addends[a].part)];
          const int owner = layout.parts()[static_cast<size_t>(p)].owner;
          sum.addends.push_back({first_block_[static_cast<size_t>(owner - first_owner_)] +
                                     static_cast<size_t>(layout.block_of(p, k)),
                                 segment.addends[a].offset});
        }
        most_addends_ = std::max(most_addends_, sum.addends.size());
      }
    }
  }
  partials_.resize(sources_.size() * blocks);
  tasks_.reserve(sources_.size() * sums_.size());
  chunks_.reserve(tasks_.capacity());
}

void NodeSums::read(const std::byte*& at, const std::byte* end, int owner, Partial& partial) const {
  PartialHeader header;
  const auto left = [&] { return static_cast<size_t>(end - at); };
  bool whole = left() >= sizeof header;
  if (whole) {
    std::memcpy(&header, at, sizeof header);
    partial.samples = header.samples;
    partial.count = header.rows;
    const size_t presence = presence_bytes(partial.samples);
    whole = left() >= presence && left() - presence >= rows_bytes(partial.count, partial.width);
    if (whole) {
      partial.holds = static_cast<const uint64_t*>(static_cast<const void*>(at + sizeof header));
      partial.rows = static_cast<const float*>(static_cast<const void*>(at + presence));
      at += presence + rows_bytes(partial.count, partial.width);
      int64_t count = 0;
      for (int64_t w = 0; w < presence_words(partial.samples); ++w) {
        count += std::popcount(partial.holds[w]);
      }
      whole = count == partial.count;
    }
  }
  if (whole) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", owner, " sent partial sums that are not as long as they say"),
             {.rank = int64_t{owner}, .operation = "forward"});
}

std::span<const comm::ConstBytes> NodeSums::open(std::span<const comm::ConstBytes> messages) {
  std::copy(messages.begin(), messages.end(), rests_.begin());
  const size_t blocks = sources_.empty() ? 0 : partials_.size() / sources_.size();
  for (int owner = first_owner_; owner < end_owner_; ++owner) {
    const auto own = layout_.blocks_of(owner);
    comm::ConstBytes& rest = rests_[static_cast<size_t>(owner)];
    const std::byte* at = rest.data();
    const std::byte* end = at + rest.size();
    for (size_t s = 0; s < sources_.size(); ++s) {
      Partial* partials =
          partials_.data() + s * blocks + first_block_[static_cast<size_t>(owner - first_owner_)];
      for (size_t b = 0; b < own.size(); ++b) {
        if (!layout_.goes_by_node(own[b], sources_[s])) continue;
        partials[b].width = layout_.parts()[static_cast<size_t>(own[b].part)].width;
        read(at, end, owner, partials[b]);
      }
    }
    rest = {at, end};
  }
  tasks_.clear();
  for (size_t s = 0; s < sources_.size(); ++s) {
    for (const Sum& sum : sums_) {
      const Partial* partials = partials_.data() + s * blocks;
      const int64_t samples = partials[sum.addends[0].block].samples;
      for (const Input& addend : sum.addends) {
        if (partials[addend.block].samples == samples) continue;
        core::fail(SHARDREC_CORRUPT_DATA,
                   core::sentence("owners of a table know batches of ", samples, " and of ",
                                  partials[addend.block].samples, " samples of rank ", sources_[s]),
                   {.rank = int64_t{sources_[s]}, .operation = "forward"});
      }
      tasks_.push_back({.sum = &sum, .partials = partials, .chunks = compute::chunks_of(samples)});
    }
  }
  return rests_;
}

// Bits of 64 samples: has any addend ids of their bags?
uint64_t NodeSums::any_holds(const Task& task, int64_t word) const {
  uint64_t any = 0;
  for (const Input& addend : task.sum->addends) any |= task.partials[addend.block].holds[word];
  return any;
}

void NodeSums::compute(const StepContext& context, core::Scratch& buffer) {
  const auto count = static_cast<int64_t>(tasks_.size());
  context.threads.parallel_for(count, 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      Task& task = tasks_[static_cast<size_t>(t)];
      const int64_t words = presence_words(task.partials[task.sum->addends[0].block].samples);
      task.rows = 0;
      for (int64_t w = 0; w < words; ++w) task.rows += std::popcount(any_holds(task, w));
    }
  });
  size_t bytes = 0;
  for (const Task& task : tasks_) bytes += rows_bytes(task.rows, task.sum->cols);
  std::byte* out = buffer.resize(bytes);
  std::fill(messages_.begin(), messages_.end(), comm::ConstBytes());
  chunks_.clear();
  size_t t = 0;
  for (const int source : sources_) {
    std::byte* message = out;
    for (size_t n = 0; n < sums_.size(); ++n, ++t) {
      Task& task = tasks_[t];
      task.out = static_cast<float*>(static_cast<void*>(out));
      out += rows_bytes(task.rows, task.sum->cols);
      chunks_.add(task.chunks);
    }
    messages_[static_cast<size_t>(source)] = {message, out};
  }
  const int64_t chunks = chunks_.count();
  const int64_t pieces = std::min<int64_t>(chunks, int64_t{8} * context.threads.count());
  int64_t* next_rows =
      context.work.resize_as<int64_t>(static_cast<size_t>(pieces) * most_addends_).data();
  context.threads.parallel_for(pieces, 1, [&](int64_t first_piece, int64_t last_piece) {
    for (int64_t piece = first_piece; piece < last_piece; ++piece) {
      int64_t* next_row = next_rows + static_cast<size_t>(piece) * most_addends_;
      for (int64_t c = chunks * piece / pieces; c < chunks * (piece + 1) / pieces; ++c) {
        const auto place = chunks_.find(c);
        add_chunk(tasks_[place.group], place.task, context.kernels, next_row);
      }
    }
  });
}

void NodeSums::add_chunk(const Task& task, int64_t chunk, const compute::Kernels& kernels,
                         int64_t* next_row) const {
  const std::vector<Input>& addends = task.sum->addends;
  const int64_t cols = task.sum->cols;
  const int64_t first = chunk * kChunkWords;
  const int64_t last =
      std::min(first + kChunkWords, presence_words(task.partials[addends[0].block].samples));
  float* out = task.out;
  std::fill_n(next_row, addends.size(), int64_t{0});
  for (int64_t w = 0; w < first; ++w) {
    for (size_t a = 0; a < addends.size(); ++a) {
      next_row[a] += std::popcount(task.partials[addends[a].block].holds[w]);
    }
    out += std::popcount(any_holds(task, w)) * cols;
  }
  for (int64_t w = first; w < last; ++w) {
    for (uint64_t any = any_holds(task, w); any != 0; any &= any - 1, out += cols) {
      const uint64_t bit = any & -any;
      bool started = false;
      for (size_t a = 0; a < addends.size(); ++a) {
        const Partial& partial = task.partials[addends[a].block];
        if ((partial.holds[w] & bit) == 0) continue;
        const float* x = partial.rows + next_row[a]++ * partial.width + addends[a].offset;
        if (started) {
          kernels.add(x, out, cols);
        } else {
          std::memcpy(out, x, static_cast<size_t>(cols) * sizeof(float));
          started = true;
        }
      }
    }
  }
}

}  // namespace shardrec::embedding
