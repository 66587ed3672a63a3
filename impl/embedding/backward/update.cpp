#include "embedding/backward/update.h"

#include <algorithm>
#include <cstring>

#include "compute/probe/memory_profile.h"
#include "plan/optimizer_step.h"

namespace shardrec::embedding {
namespace {

// Pieces of about this many occurrences: cut at rows, so a row's sum is never split.
constexpr int64_t kPieceOccurrences = 4096;
// Of gradients in a step: beyond them, or what the last cache holds, they come from memory.
constexpr int64_t kLeastFarBytes = int64_t{16} << 20;

int64_t most_lanes(const core::Threads& threads) { return int64_t{8} * threads.count(); }

}  // namespace

GradientDecision decide(std::span<const comm::ConstBytes> messages, int own_rank,
                        bool reads_in_place) {
  GradientDecision decision;
  GradientHeader first;
  int differs = -1;
  Defect how = Defect::kNone;
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    GradientHeader header;
    if (messages[rank].size() < sizeof header) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " sent a gradient message that is cut off"),
                 {.rank = static_cast<int64_t>(rank), .operation = "backward"});
    }
    std::memcpy(&header, messages[rank].data(), sizeof header);
    const bool may_lend = reads_in_place || static_cast<int>(rank) == own_rank;
    if (!may_lend && (header.lends != 0 || header.lending != nullptr)) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " lends gradients that cannot be read from here"),
                 {.rank = static_cast<int64_t>(rank), .operation = "backward"});
    }
    if (rank == 0) first = header;
    if (differs < 0 &&
        (header.accumulate != first.accumulate || header.settings != first.settings)) {
      differs = static_cast<int>(rank);
      how = header.accumulate != first.accumulate ? Defect::kAccumulation : Defect::kSettings;
    }
    if (header.decision > decision.verdict) {
      decision = {header.decision, static_cast<int>(rank), header.verdict};
    }
  }
  if (decision.verdict == GradientVerdict::kApply && differs >= 0) {
    return {GradientVerdict::kError, differs, {.defect = how, .argument = Argument::kGradient}};
  }
  return decision;
}

namespace {

// By table, floats per row and column range that the optimizer sums, or that max_norm does.
std::vector<int> sums_by_table(const plan::Model& model) {
  std::vector<int> sums;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const auto kind = plan::kind_of(model.optimizer_of(static_cast<int32_t>(t)).kind);
    sums.push_back(compute::state_needs(kind).sums);
  }
  return sums;
}

std::vector<int> norms_by_table(const plan::Model& model) {
  std::vector<int> norms;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    norms.push_back(model.optimizer_of(static_cast<int32_t>(t)).max_norm > 0 ? 1 : 0);
  }
  return norms;
}

}  // namespace

Update::Update(const Layout& layout, std::span<Shard> shards)
    : layout_(layout),
      shards_(shards),
      wanted_(shards.size()),
      replicated_(layout),
      statistics_(layout, shards, sums_by_table(layout.model())),
      norms_(layout, shards, norms_by_table(layout.model())),
      rows_(shards.size()),
      gradients_(layout),
      buffers_(shards.size()),
      far_bytes_(static_cast<size_t>(std::max(compute::this_machine().l3_bytes, kLeastFarBytes))) {
  own_replicas_.resize(replicated_.count());
  for (const Shard& shard : shards) {
    kept_.emplace_back(shard.width());
    const auto replicas = replicated_.tables();
    const auto place = std::find(replicas.begin(), replicas.end(), shard.table());
    replicated_of_.push_back(place == replicas.end() ? -1
                                                     : static_cast<int>(place - replicas.begin()));
    lane_bytes_ =
        std::max(lane_bytes_, align_up(compute::row_update_scratch_bytes(shard.width()), 64));
  }
}

int64_t Update::lane_count(const core::Threads& threads) const {
  return std::min<int64_t>(static_cast<int64_t>(pieces_.size()), most_lanes(threads));
}

void Update::group(const Inbox& inbox, std::span<const TableStep> steps, const StepContext& context,
                   IndexPlan& plan) {
  for (size_t s = 0; s < shards_.size(); ++s) {
    wanted_[s] = steps[static_cast<size_t>(shards_[s].table())].frozen ? 0 : 1;
  }
  if (!plan.built(wanted_)) plan.build(inbox, wanted_, context);
}

void Update::open(const Inbox& inbox, std::span<const comm::ConstBytes> gradients,
                  float owner_scale, std::span<const TableStep> steps, const IndexPlan& plan,
                  const StepContext& context) {
  plan.check();
  gradients_.open(inbox, gradients);
  gradients_.locate(inbox, plan, context);
  plan_ = &plan;
  steps_ = steps;
  owner_scale_ = owner_scale;
  far_gradients_ = gradients_.bytes() > far_bytes_;
  from_kept_ = false;
  from_replicas_ = false;
  context.work.resize(lane_bytes_ * static_cast<size_t>(most_lanes(context.threads)));
  cut_pieces(context);
}

std::span<const int64_t> Update::rows_of(size_t shard) const {
  if (from_replicas_ && replicated_of_[shard] >= 0) {
    return replicated_.rows(static_cast<size_t>(replicated_of_[shard]));
  }
  return from_kept_ ? kept_[shard].rows() : plan_->rows(shard);
}

std::span<const int64_t> Update::run_of(size_t shard) const {
  if (from_replicas_ && replicated_of_[shard] >= 0) {
    return replicated_.run(static_cast<size_t>(replicated_of_[shard]));
  }
  return from_kept_ ? kept_[shard].run() : plan_->run(shard);
}

void Update::cut_pieces(const StepContext& context) {
  pieces_.clear();
  hot_.clear();
  size_t most_pieces = 0;
  for (size_t s = 0; s < shards_.size(); ++s) {
    const auto run = run_of(s);
    const int64_t occurrences = run.empty() ? 0 : run.back();
    most_pieces += static_cast<size_t>(occurrences / kPieceOccurrences) + 1;
    most_pieces += static_cast<size_t>(occurrences / HotRows::kOccurrences);
  }
  core::reserve_with_slack(pieces_, most_pieces);
  for (size_t s = 0; s < shards_.size(); ++s) {
    const auto run = run_of(s);
    const int64_t unique = std::ssize(rows_of(s));
    for (int64_t first = 0; first < unique;) {
      const int64_t goal = run[static_cast<size_t>(first)] + kPieceOccurrences;
      const auto above = std::lower_bound(run.begin() + first + 1, run.end() - 1, goal);
      const int64_t last = above - run.begin();
      add_pieces(s, first, last);
      first = last;
    }
  }
  hot_.sum(context, context.work.data(), lane_bytes_, most_lanes(context.threads));
}

// Only the last row of a piece can be a hot one.
void Update::add_pieces(size_t shard, int64_t first, int64_t last) {
  const auto run = run_of(shard);
  const int64_t occurrences = run[static_cast<size_t>(last)] - run[static_cast<size_t>(last - 1)];
  if (occurrences <= HotRows::kOccurrences) {
    pieces_.push_back({shard, first, last});
    return;
  }
  if (first < last - 1) pieces_.push_back({shard, first, last - 1});
  pieces_.push_back({shard, last - 1, last, hot_.add(job_for(shard), last - 1)});
}

Update::Share Update::share_of(const Piece& piece) const {
  const compute::RowUpdate job = job_for(piece.shard);
  if (piece.hot < 0) return {job, piece.first, piece.last, 0};
  return {hot_.job(piece.hot, job), 0, 1, piece.first};
}

int Update::sums_of(size_t shard) const {
  const auto table = shards_[shard].table();
  return compute::state_needs(plan::kind_of(layout_.model().optimizer_of(table).kind)).sums;
}

compute::RowUpdate Update::job_for(size_t shard) const {
  Shard& own = shards_[shard];
  const TableStep& step = steps_[static_cast<size_t>(own.table())];
  compute::RowUpdate job;
  job.table = own.weights();
  own.describe(job);
  if (from_replicas_ && replicated_of_[shard] >= 0) {
    replicated_.describe(static_cast<size_t>(replicated_of_[shard]), job);
  } else if (from_kept_) {
    kept_[shard].describe(job);
  } else {
    plan_->describe(shard, job);
    job.gradients = gradients_.rows(shard);
    if (layout_.table(own.table()).owner_applies_divisor) job.gradient_scale = owner_scale_;
    job.far_gradients = far_gradients_;
  }
  job.step = step.optimizer;
  job.rounding = step.rounding;
  return job;
}

// Calls body(piece, scratch) for every piece, with the scratch of a kernel call.
template <class Body>
void Update::for_each_piece(const StepContext& context, Body body) {
  const auto pieces = static_cast<int64_t>(pieces_.size());
  const int64_t lanes = lane_count(context.threads);
  const size_t scratch_bytes = lane_bytes_;
  std::byte* scratch = context.work.data();
  context.threads.parallel_for(lanes, 1, [&](int64_t first, int64_t last) {
    for (int64_t lane = first; lane < last; ++lane) {
      for (int64_t p = pieces * lane / lanes; p < pieces * (lane + 1) / lanes; ++p) {
        body(pieces_[static_cast<size_t>(p)], scratch + static_cast<size_t>(lane) * scratch_bytes);
      }
    }
  });
}

void Update::carve_buffers(size_t (*floats_per_row)(const Shard&)) {
  size_t floats = 0;
  for (size_t s = 0; s < shards_.size(); ++s) {
    floats += rows_of(s).size() * floats_per_row(shards_[s]);
  }
  float* at = buffer_memory_.resize_as<float>(floats).data();
  for (size_t s = 0; s < shards_.size(); ++s) {
    buffers_[s] = at;
    at += rows_of(s).size() * floats_per_row(shards_[s]);
  }
}

// The gradients of a piece's rows.
void Update::sum_into_buffer(const Piece& piece, const StepContext& context,
                             std::byte* scratch) const {
  const Share share = share_of(piece);
  context.kernels.row_gradients(share.job, buffers_[piece.shard] + share.base * share.job.width,
                                share.first, share.last, scratch);
}

void Update::accumulate(const StepContext& context) {
  carve_buffers([](const Shard& shard) { return static_cast<size_t>(shard.width()); });
  for_each_piece(context, [&](const Piece& piece, std::byte* scratch) {
    sum_into_buffer(piece, context, scratch);
  });
  for (size_t s = 0; s < shards_.size(); ++s) {
    kept_[s].add(plan_->rows(s), buffers_[s], context);
  }
  ++kept_lookups_;
}

void Update::add_accumulated(const StepContext& context) {
  accumulate(context);
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (steps_[static_cast<size_t>(shards_[s].table())].frozen) kept_[s].clear();
    kept_[s].finish();
  }
  from_kept_ = true;
  cut_pieces(context);
}

void Update::drop_accumulated() {
  for (Accumulation& kept : kept_) kept.clear();
  kept_lookups_ = 0;
  from_kept_ = false;
  from_replicas_ = false;
}

void Update::pack_replicas(const StepContext& context, core::Scratch& buffer) {
  carve_buffers([](const Shard& shard) { return static_cast<size_t>(shard.width()); });
  for_each_piece(context, [&](const Piece& piece, std::byte* scratch) {
    if (replicated_of_[piece.shard] >= 0) sum_into_buffer(piece, context, scratch);
  });
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (replicated_of_[s] < 0) continue;
    own_replicas_[static_cast<size_t>(replicated_of_[s])] = {rows_of(s), buffers_[s]};
  }
  replicated_.pack(own_replicas_, buffer);
}

void Update::add_replicas(std::span<const comm::ConstBytes> messages, const StepContext& context,
                          core::Scratch& buffer) {
  replicated_.add_up(messages, context.kernels, buffer);
}

void Update::take_replicas(std::span<const comm::ConstBytes> messages, const StepContext& context) {
  replicated_.take(messages);
  from_replicas_ = true;
  cut_pieces(context);
}

void Update::pack_statistics(const StepContext& context, core::Scratch& buffer) {
  for (size_t s = 0; s < shards_.size(); ++s) rows_[s] = rows_of(s);
  statistics_.prepare(rows_);
  for_each_piece(context, [&](const Piece& piece, std::byte* scratch) {
    if (!statistics_.shares(piece.shard)) return;
    const auto ranges = statistics_.ranges(piece.shard);
    const Share share = share_of(piece);
    const int64_t floats = std::ssize(ranges) * sums_of(piece.shard);
    context.kernels.row_sums(share.job, ranges.data(), static_cast<int>(ranges.size()),
                             statistics_.sums(piece.shard) + share.base * floats, share.first,
                             share.last, scratch);
  });
  statistics_.pack(buffer);
}

void Update::apply(const StepContext& context) {
  // What may need memory comes before the first change.
  for (size_t s = 0; s < shards_.size(); ++s) rows_[s] = rows_of(s);
  norms_.prepare(rows_);
  carve_buffers([](const Shard& shard) { return shard.columns().size(); });
  for_each_piece(context, [&](const Piece& piece, std::byte* scratch) {
    Share share = share_of(piece);
    compute::RowUpdate& job = share.job;
    const Shard& shard = shards_[piece.shard];
    if (statistics_.shares(piece.shard)) {
      job.sums = statistics_.totals(piece.shard) + share.base * sums_of(piece.shard);
      job.statistic_columns = layout_.model().tables[static_cast<size_t>(shard.table())].dim;
    }
    context.kernels.row_update(job, share.first, share.last, scratch);
    if (job.step.max_norm == 0 || norms_.shares(piece.shard)) return;
    float* const norms = buffers_[piece.shard] + share.base * job.statistics;
    context.kernels.row_norms(job, job.columns, job.statistics, norms, share.first, share.last,
                              scratch);
    context.kernels.row_rescale(job, job.columns, job.statistics, norms, share.first, share.last,
                                scratch);
  });
}

void Update::pack_norms(const StepContext& context, core::Scratch& buffer) {
  for_each_piece(context, [&](const Piece& piece, std::byte* scratch) {
    if (!norms_.shares(piece.shard)) return;
    const auto ranges = norms_.ranges(piece.shard);
    const Share share = share_of(piece);
    context.kernels.row_norms(share.job, ranges.data(), static_cast<int>(ranges.size()),
                              norms_.sums(piece.shard) + share.base * std::ssize(ranges),
                              share.first, share.last, scratch);
  });
  norms_.pack(buffer);
}

void Update::rescale(std::span<const comm::ConstBytes> messages, const StepContext& context) {
  norms_.add_up(messages);
  for_each_piece(context, [&](const Piece& piece, std::byte* scratch) {
    if (!norms_.shares(piece.shard)) return;
    const compute::ColumnRange row{0, shards_[piece.shard].width()};
    const Share share = share_of(piece);
    context.kernels.row_rescale(share.job, &row, 1, norms_.totals(piece.shard) + share.base,
                                share.first, share.last, scratch);
  });
}

size_t Update::memory() const {
  size_t bytes = statistics_.memory() + norms_.memory() + gradients_.memory() +
                 buffer_memory_.capacity() + replicated_.memory() + hot_.memory();
  for (const Accumulation& kept : kept_) bytes += kept.memory();
  return bytes;
}

}  // namespace shardrec::embedding
