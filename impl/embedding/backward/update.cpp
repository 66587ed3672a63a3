#include "embedding/backward/update.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "plan/model/optimizer_step.h"

namespace shardrec::embedding {

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
    const bool own = static_cast<int>(rank) == own_rank;
    const bool readable = header.lends == Lends::kNothing ||
                          (header.lends == Lends::kToItself && own) ||
                          (header.lends == Lends::kToProcess && reads_in_place);
    if (!readable) {
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

Update::Update(const StepContext& context)
    : context_(context),
      shards_(context.shards),
      wanted_(shards_.size()),
      replicated_(context.layout, context.bodies),
      replica_rows_(context.make_exchange(ExchangeKind::kReplicaRows, "backward")),
      replica_sums_(context.make_exchange(ExchangeKind::kReplicaSums, "backward")),
      statistics_(context.layout, shards_, sums_by_table(context.model()), context.bodies),
      statistics_exchange_(context.make_exchange(ExchangeKind::kStatistics, "backward")),
      norms_(context.layout, shards_, norms_by_table(context.model()), context.bodies),
      norms_exchange_(context.make_exchange(ExchangeKind::kNorms, "backward")),
      weights_(context),
      weights_exchange_(context.make_exchange(ExchangeKind::kReplicaWeights, "backward")),
      rows_(shards_.size()),
      gradients_(context.layout, context.backend().memory()),
      buffer_memory_(context.backend().memory()),
      buffers_(shards_.size()),
      sums_(shards_.size()),
      row_steps_(shards_.size()),
      totals_(shards_.size()) {
  touched_.reserve(shards_.size());
  own_replicas_.resize(replicated_.count());
  for (const Shard& shard : shards_) {
    kept_.push_back(context.backend().gradients().make_kept_gradients(shard.width()));
    const auto replicas = replicated_.tables();
    const auto place = std::find(replicas.begin(), replicas.end(), shard.table());
    replicated_of_.push_back(place == replicas.end() ? -1
                                                     : static_cast<int>(place - replicas.begin()));
  }
}

void Update::group(const Inbox& inbox, std::span<const TableStep> steps, IndexPlan& plan) {
  {
    const std::lock_guard lock(counting_);
    if (uncounted_ == &plan) count_uncounted();  // before it is built anew
  }
  for (size_t s = 0; s < shards_.size(); ++s) {
    const Part& part = context_.layout.parts()[static_cast<size_t>(shards_[s].part())];
    const bool frozen = steps[static_cast<size_t>(shards_[s].table())].frozen;
    wanted_[s] = frozen || !context_.layout.updates(part) ? 0 : 1;
  }
  plan.build(inbox, wanted_);
}

void Update::open(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
                  std::span<const comm::ConstBytes> bodies,
                  std::span<const std::span<const GradientRows>> lent, const Divisors& divisors,
                  std::span<const TableStep> steps, const IndexPlan& plan, GradientUse use) {
  gradients_.open(inbox, messages, bodies, lent);
  gradients_.list(inbox, plan);
  plan_ = &plan;
  steps_ = steps;
  divisors_ = divisors;
  from_kept_ = false;
  from_replicas_ = false;
  use_ = use;
  list_touched();
  for (size_t s = 0; s < shards_.size(); ++s) touched_[s].located = gradients_.located(s);
  context_.backend().rows().open_rows(touched_);
}

std::span<const int64_t> Update::rows_of(size_t shard) const {
  if (from_replicas_ && replicated_of_[shard] >= 0) {
    return replicated_.rows(static_cast<size_t>(replicated_of_[shard]));
  }
  return from_kept_ ? kept_[shard]->rows() : plan_->rows(shard);
}

compute::TouchedRows Update::touched(size_t shard) const {
  Shard& own = shards_[shard];
  const TableStep& step = steps_[static_cast<size_t>(own.table())];
  compute::TouchedRows touched;
  compute::RowUpdate& job = touched.job;
  job.table = own.weights();
  own.describe(job);
  if (from_replicas_ && replicated_of_[shard] >= 0) {
    replicated_.describe(static_cast<size_t>(replicated_of_[shard]), job);
    touched.rows = touched.bags = std::ssize(rows_of(shard));
  } else if (from_kept_) {
    kept_[shard]->describe(job);
    touched.rows = touched.bags = std::ssize(rows_of(shard));
  } else {
    plan_->describe(shard, job);
    touched.rows = plan_->most_rows(shard);
    touched.counted = plan_->row_count(shard);
    job.gradients = gradients_.rows(shard);
    touched.bags = plan_->bags(shard);
    const TableLayout& table = context_.layout.table(own.table());
    job.gradient_scale = divisors_.of(table).owner_scale(table);
  }
  job.step = step.optimizer;
  job.rounding = step.rounding;
  if (use_ == GradientUse::kStep) touched.changed = context_.changed_rows.bits(shard);
  return touched;
}

void Update::list_touched() {
  touched_.clear();
  for (size_t s = 0; s < shards_.size(); ++s) touched_.push_back(touched(s));
}

void Update::open_rows() {
  list_touched();
  context_.backend().rows().open_rows(touched_);
}

template <class Wanted>
void Update::sum_gradients(Wanted wanted) {
  const auto floats_of = [&](size_t shard) {
    return wanted(shard) ? rows_of(shard).size() * static_cast<size_t>(shards_[shard].width()) : 0;
  };
  size_t floats = 0;
  for (size_t s = 0; s < shards_.size(); ++s) floats += floats_of(s);
  float* at = buffer_memory_.resize_as<float>(floats).data();
  for (size_t s = 0; s < shards_.size(); ++s) {
    buffers_[s] = wanted(s) ? at : nullptr;
    at += floats_of(s);
  }
  context_.backend().rows().sum_gradients(buffers_);
}

void Update::accumulate() {
  for (size_t s = 0; s < shards_.size(); ++s) {
    const auto most = std::ssize(kept_[s]->rows()) + std::ssize(plan_->rows(s));
    if (most < compute::KeptGradients::kMostRows) continue;
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("accumulated gradients would touch ", most,
                              " rows of one box; fewer than 2^32 are supported"),
               {.value = most, .limit = compute::KeptGradients::kMostRows});
  }
  sum_gradients([](size_t) { return true; });
  for (size_t s = 0; s < shards_.size(); ++s) {
    kept_[s]->add(plan_->rows(s), buffers_[s]);
  }
  ++kept_lookups_;
}

void Update::take_step(uint64_t lookup, PhaseTimer& timer) {
  if (kept_lookups_ > 0) add_kept();
  if (replicated_.needed()) sum_replicas(lookup, timer);
  if (statistics_.needed()) sum_statistics(lookup, timer);
  update_rows();
  if (norms_.needed()) rescale(lookup, timer);
  if (weights_.needed()) exchange_weights(lookup, timer);
  count_updated();
  drop_accumulated();
}

void Update::add_kept() {
  accumulate();
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (steps_[static_cast<size_t>(shards_[s].table())].frozen) kept_[s]->clear();
    kept_[s]->finish();
  }
  from_kept_ = true;
  open_rows();
}

void Update::drop_accumulated() {
  for (const auto& kept : kept_) kept->clear();
  kept_lookups_ = 0;
  from_kept_ = false;
  from_replicas_ = false;
}

void Update::sum_replicas(uint64_t lookup, PhaseTimer& timer) {
  sum_gradients([&](size_t shard) { return replicated_of_[shard] >= 0; });
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (replicated_of_[s] < 0) continue;
    own_replicas_[static_cast<size_t>(replicated_of_[s])] = {rows_of(s), buffers_[s]};
  }
  replicated_.pack(own_replicas_, replica_rows_.buffer());
  timer.next(Phase::kGradientExchange);
  replica_rows_.post(lookup, replicated_.messages());
  replicated_.add_up(replica_rows_.receive(), replica_sums_.buffer());
  replica_sums_.post(lookup, replicated_.messages());
  replicated_.take(replica_sums_.receive());
  replica_rows_.count_sent(context_.counters.bytes_gradient);
  replica_sums_.count_sent(context_.counters.bytes_gradient);
  from_replicas_ = true;
  open_rows();
  timer.next(Phase::kUpdate);
}

void Update::sum_statistics(uint64_t lookup, PhaseTimer& timer) {
  for (size_t s = 0; s < shards_.size(); ++s) rows_[s] = rows_of(s);
  statistics_.prepare(rows_);
  for (size_t s = 0; s < shards_.size(); ++s) {
    sums_[s] = {};
    if (statistics_.shares(s)) sums_[s] = {statistics_.ranges(s), statistics_.sums(s)};
  }
  context_.backend().rows().sum_rows(sums_);
  statistics_.pack(statistics_exchange_.buffer());
  timer.next(Phase::kGradientExchange);
  statistics_exchange_.post(lookup, statistics_.messages());
  statistics_.add_up(statistics_exchange_.receive());
  timer.next(Phase::kUpdate);
}

void Update::update_rows() {
  // What may need memory comes before the first change.
  if (norms_.needed()) {
    for (size_t s = 0; s < shards_.size(); ++s) rows_[s] = rows_of(s);
    norms_.prepare(rows_);
  }
  for (size_t s = 0; s < shards_.size(); ++s) {
    const auto table = static_cast<size_t>(shards_[s].table());
    compute::RowStep& step = row_steps_[s];
    step = {.rescales = steps_[table].optimizer.max_norm != 0 && !norms_.shares(s)};
    if (!statistics_.shares(s)) continue;
    step.sums = statistics_.totals(s);
    step.statistic_columns = context_.layout.model().tables[table].dim;
  }
  const RowChange change(context_.snapshot);
  if (change) {
    for (size_t s = 0; s < shards_.size(); ++s) change.keep(s, rows_[s] = rows_of(s));
    if (weights_.needed()) weights_.keep(rows_, change);
  }
  context_.backend().rows().update_rows(row_steps_);
}

void Update::rescale(uint64_t lookup, PhaseTimer& timer) {
  for (size_t s = 0; s < shards_.size(); ++s) {
    sums_[s] = {};
    if (norms_.shares(s)) sums_[s] = {norms_.ranges(s), norms_.sums(s)};
  }
  context_.backend().rows().sum_norms(sums_);
  norms_.pack(norms_exchange_.buffer());
  timer.next(Phase::kGradientExchange);
  norms_exchange_.post(lookup, norms_.messages());
  const auto messages = norms_exchange_.receive();
  timer.next(Phase::kUpdate);
  norms_.add_up(messages);
  for (size_t s = 0; s < shards_.size(); ++s) {
    totals_[s] = norms_.shares(s) ? norms_.totals(s) : nullptr;
  }
  const RowChange change(context_.snapshot);  // of rows that update_rows() has kept
  context_.backend().rows().rescale_rows(totals_);
}

// An error ends the communicator: some groups may have rows that others have not.
void Update::exchange_weights(uint64_t lookup, PhaseTimer& timer) {
  for (size_t s = 0; s < shards_.size(); ++s) rows_[s] = rows_of(s);
  weights_.pack(rows_, weights_exchange_.buffer());
  timer.next(Phase::kGradientExchange);
  weights_exchange_.post(lookup, weights_.messages());
  weights_.take(weights_exchange_.receive());
  weights_exchange_.count_sent(context_.counters.bytes_sync);
  context_.counters.rows_synced.fetch_add(weights_.taken(), std::memory_order_relaxed);
  timer.next(Phase::kUpdate);
}

// Where the host does not know yet how many rows there were, it counts them later.
void Update::count_updated() {
  const std::lock_guard lock(counting_);
  count_uncounted();
  if (from_kept_ || from_replicas_ || plan_->counted()) {
    for (size_t s = 0; s < shards_.size(); ++s) count_rows_of(s, rows_of(s).size());
  } else {
    uncounted_ = plan_;
  }
}

void Update::count_rows_of(size_t shard, size_t rows) {
  context_.counters.tables[static_cast<size_t>(shards_[shard].table())].rows_updated.fetch_add(
      static_cast<int64_t>(rows), std::memory_order_relaxed);
}

void Update::count_rows() {
  const std::lock_guard lock(counting_);
  count_uncounted();
}

void Update::count_uncounted() {
  const IndexPlan* const plan = std::exchange(uncounted_, nullptr);
  if (plan == nullptr) return;
  try {
    for (size_t s = 0; s < shards_.size(); ++s) count_rows_of(s, plan->rows(s).size());
  } catch (const std::exception&) {  // the device has failed, or a peer: nobody knows
  }
}

void Update::forget(const IndexPlan& plan) noexcept {
  count_rows();
  if (plan_ == &plan) plan_ = nullptr;
}

}  // namespace shardrec::embedding
