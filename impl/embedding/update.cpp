#include "embedding/update.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// Pieces of about this many occurrences: cut at rows, so a row's sum is never split.
constexpr int64_t kPieceOccurrences = 4096;

}  // namespace

GradientDecision decide(std::span<const comm::ConstBytes> messages) {
  GradientDecision decision;
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    GradientHeader header;
    if (messages[rank].size() < sizeof header) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " sent a gradient message that is cut off"),
                 {.rank = static_cast<int64_t>(rank), .operation = "backward"});
    }
    std::memcpy(&header, messages[rank].data(), sizeof header);
    if (header.decision > decision.verdict) {
      decision = {header.decision, static_cast<int>(rank), header.verdict};
    }
  }
  return decision;
}

Update::Update(const Layout& layout, std::span<Shard> shards)
    : layout_(layout),
      shards_(shards),
      statistics_(layout, shards),
      gradient_blocks_(static_cast<size_t>(layout.ranks()) *
                       layout.blocks_of(layout.rank()).size()),
      own_sums_(shards.size()),
      totals_(shards.size()) {
  size_t first_block = 0;
  for (const Shard& shard : shards) {
    plans_.emplace_back(layout, shard.part(), first_block);
    const int32_t table = layout.parts()[static_cast<size_t>(shard.part())].table;
    first_block += layout.table(table).features.size();
    lane_bytes_ =
        std::max(lane_bytes_, align_up(compute::row_update_scratch_bytes(shard.width()), 64));
  }
}

int64_t Update::lane_count(const core::Threads& threads) const {
  return std::min<int64_t>(static_cast<int64_t>(pieces_.size()), int64_t{8} * threads.count());
}

void Update::group(const Inbox& inbox, std::span<const comm::ConstBytes> gradients,
                   core::Threads& threads, core::Scratch& work) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  for (int source = 0; source < layout_.ranks(); ++source) {
    const comm::ConstBytes message = gradients[static_cast<size_t>(source)];
    const auto received = inbox.blocks(source);
    size_t at = sizeof(GradientHeader);
    for (size_t b = 0; b < blocks.size(); ++b) {
      gradient_blocks_[static_cast<size_t>(source) * blocks.size() + b] =
          static_cast<const float*>(static_cast<const void*>(message.data() + at));
      at +=
          rows_bytes(received[b].rows, layout_.parts()[static_cast<size_t>(blocks[b].part)].width);
    }
    if (at != message.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", source, " sent a gradient message of ", message.size(),
                                " bytes, ", at, " were expected"),
                 {.rank = int64_t{source}, .operation = "backward"});
    }
  }
  for (IndexPlan& plan : plans_) plan.build(inbox, gradient_blocks_, threads, work);

  work.resize(lane_bytes_ * static_cast<size_t>(int64_t{8} * threads.count()));
  pieces_.clear();
  size_t most_pieces = 0;
  for (const IndexPlan& plan : plans_) {
    most_pieces += static_cast<size_t>(plan.occurrences() / kPieceOccurrences) + 1;
  }
  core::reserve_with_slack(pieces_, most_pieces);
  for (size_t s = 0; s < plans_.size(); ++s) {
    const auto run = plans_[s].run();
    for (int64_t first = 0; first < plans_[s].unique();) {
      const int64_t goal = run[static_cast<size_t>(first)] + kPieceOccurrences;
      const auto above = std::lower_bound(run.begin() + first + 1, run.end() - 1, goal);
      const int64_t last = above - run.begin();
      pieces_.push_back({s, first, last});
      first = last;
    }
  }
}

compute::RowUpdate Update::job_for(size_t shard, const compute::OptimizerStep& step) const {
  Shard& own = shards_[shard];
  compute::RowUpdate job;
  job.table = own.weights();
  job.stride = static_cast<size_t>(own.width());
  job.width = own.width();
  plans_[shard].describe(job);
  job.step = step;
  job.state = own.state();
  job.columns = own.columns().data();
  job.statistics = static_cast<int>(own.columns().size());
  return job;
}

// Calls body(piece, scratch) for every piece, with the scratch of a kernel call.
template <class Body>
void Update::for_each_piece(core::Threads& threads, core::Scratch& work, Body body) {
  const auto pieces = static_cast<int64_t>(pieces_.size());
  const int64_t lanes = lane_count(threads);
  const size_t scratch_bytes = lane_bytes_;
  std::byte* scratch = work.data();
  threads.parallel_for(lanes, 1, [&](int64_t first, int64_t last) {
    for (int64_t lane = first; lane < last; ++lane) {
      for (int64_t p = pieces * lane / lanes; p < pieces * (lane + 1) / lanes; ++p) {
        body(pieces_[static_cast<size_t>(p)], scratch + static_cast<size_t>(lane) * scratch_bytes);
      }
    }
  });
}

void Update::pack_statistics(const compute::OptimizerStep& step, const compute::Kernels& kernels,
                             core::Threads& threads, core::Scratch& work, core::Scratch& buffer) {
  size_t floats = 0;
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (!shards_[s].statistic_is_shared()) continue;
    const auto unique = static_cast<size_t>(plans_[s].unique());
    floats += unique * (1 + statistics_.ranges(shards_[s].part()).size());
  }
  float* at = sums_memory_.resize_as<float>(floats).data();
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (!shards_[s].statistic_is_shared()) continue;
    const auto unique = static_cast<size_t>(plans_[s].unique());
    totals_[s] = at;
    own_sums_[s] = at + unique;
    at += unique * (1 + statistics_.ranges(shards_[s].part()).size());
  }
  for_each_piece(threads, work, [&](const Piece& piece, std::byte* scratch) {
    const Shard& shard = shards_[piece.shard];
    if (!shard.statistic_is_shared()) return;
    const auto& ranges = statistics_.ranges(shard.part());
    kernels.row_sums(job_for(piece.shard, step), ranges.data(), static_cast<int>(ranges.size()),
                     own_sums_[piece.shard], piece.first, piece.last, scratch);
  });
  statistics_.pack(plans_, own_sums_, buffer);
}

void Update::add_statistics(std::span<const comm::ConstBytes> messages) {
  statistics_.add_up(plans_, own_sums_, messages, totals_);
}

void Update::apply(const compute::OptimizerStep& step, const compute::Kernels& kernels,
                   core::Threads& threads, core::Scratch& work) {
  for_each_piece(threads, work, [&](const Piece& piece, std::byte* scratch) {
    compute::RowUpdate job = job_for(piece.shard, step);
    const Shard& shard = shards_[piece.shard];
    if (shard.statistic_is_shared()) {
      const int32_t table = layout_.parts()[static_cast<size_t>(shard.part())].table;
      job.sums = totals_[piece.shard];
      job.statistic_columns = layout_.model().tables[static_cast<size_t>(table)].dim;
    }
    kernels.row_update(job, piece.first, piece.last, scratch);
  });
}

size_t Update::memory() const {
  size_t bytes = sums_memory_.capacity();
  for (const IndexPlan& plan : plans_) bytes += plan.memory();
  return bytes;
}

}  // namespace shardrec::embedding
