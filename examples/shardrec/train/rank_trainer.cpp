// One rank's steps: two lookups in flight around the dense half.
#include "train/rank_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "command/interrupt.h"
#include "command/long_work.h"
#include "command/numbers.h"
#include "command/user_error.h"
#include "launch/engines.h"

namespace shardrec::cli {
namespace {

// Of the collection in a checkpoint.
constexpr const char* kTablesName = "tables";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The loss is a mean over the global batch: gradients need no division. On a mesh each replica trains
// on the batches of its sharding group, and its loss is the mean over these.
Collection make_tables(Comm& comm, int rank, const TrainOptions& options, const Model& model,
                       const Plan& plan, Mesh* mesh) {
  CollectionOptions tables;
  tables.seed(static_cast<int64_t>(options.seed))
      .device(options.tables_on.device_of(group_of(options), rank))
      .device_wait(options.device_wait)
      .gradient_divisor(SHARDREC_DIVISOR_NONE)
      .replica_sync(options.sync)
      .forward_compression(options.forward_compression)
      .backward_compression(options.backward_compression);
  if (options.threads > 0) tables.threads(options.threads);
  // Where gradients of the layers overflow, their step is skipped: that of the tables too.
  if (options.precision == "float16") tables.non_finite(SHARDREC_NON_FINITE_SKIP);
  if (mesh == nullptr) return Collection(comm, model, plan, tables);
  tables.gradient_divisor_value(static_cast<double>(options.sharding_group_size) / options.ranks);
  return Collection(comm, *mesh, model, plan, tables);
}

int64_t layers_device(const TrainOptions& options, int rank) {
  return options.layers_on_device ? options.tables_on.device_of(group_of(options), rank) : -1;
}

// Of samples that layers on the device, or here, have.
Metrics make_metrics(Comm& comm, const TrainOptions& options, int64_t device) {
  MetricsOptions metrics;
  metrics.device(device).device_wait(options.device_wait);
  return Metrics(comm, metrics);
}

}  // namespace

RankTrainer::RankTrainer(Comm& comm, int rank, const TrainOptions& options, const Schema& schema,
                         const Model& model, const Plan& plan, Mesh* mesh)
    : comm_(comm),
      options_(options),
      rank_(rank),
      ranks_(options.ranks),
      writes_predictions_(!options.output.empty()),
      sync_every_(mesh != nullptr && options.averages() ? options.sync_every : 0),
      own_feed_(in_processes(options.engine)),
      schema_(schema),
      layers_on_device_(options.layers_on_device),
      net_(comm, mesh, options, layers_device(options, rank), schema.dense_columns,
           static_cast<int64_t>(schema.features.size())),
      collection_(make_tables(comm, rank, options, model, plan, mesh)),
      slots_{Slot(collection_, layers_device(options, rank)),
             Slot(collection_, layers_device(options, rank))},
      window_(make_metrics(comm, options, layers_device(options, rank))),
      test_(make_metrics(comm, options, layers_device(options, rank))),
      window_steps_(options.progress_every == 0 ? kReportSteps
                                                : std::min(kReportSteps, options.progress_every)) {
  // A device's clock starts when a time is read: the report has those of all steps.
  collection_.stat(SHARDREC_STAT_SECONDS_ROUTE);
}

int64_t RankTrainer::test_batch(const TrainOptions& options) {
  const int64_t tiles = (options.batch + kTile - 1) / kTile;
  return std::min(tiles * kTile, kTiledRows * options.ranks);
}

bool RankTrainer::fetch(Slot& slot, BatchFeed::Reader& reader, int64_t unit) {
  times_.enter(Phase::kRead);
  slot.batch = reader.next();
  if (slot.batch == nullptr) return false;
  slot.slice = slice_of(slot.global(), ranks_, rank_, unit);
  if (slot.batch->packed.empty()) {
    const int64_t first = slot.slice.first - slot.batch->slice.first;
    pack(schema_, slot.batch->samples, first, first + slot.slice.size(), slot.own);
    slot.packed = &slot.own;
  } else {
    slot.packed = &slot.batch->packed[static_cast<size_t>(own_feed_ ? 0 : rank_)];
  }

  times_.enter(Phase::kBegin);
  slot.lookup.begin(slot.packed->size, slot.packed->ids, slot.packed->lengths);
  return true;
}

// An interrupt reaches processes at different batches: they agree on the last one. Here that is the
// one before; in training the answer of each rank travels with the gradients of its step.
bool RankTrainer::go_on() {
  if (!own_feed_) return true;
  times_.enter(Phase::kRead);
  int32_t stop = interrupted() ? 1 : 0;
  comm_.all_reduce(Vector(&stop, 1), SHARDREC_REDUCTION_MAX);
  stopped_ = stop != 0;
  return !stopped_;
}

Matrix RankTrainer::vectors_of(Slot& slot) {
  return slot.vectors.matrix(slot.packed->size, net_.vector_columns());
}

void RankTrainer::forward(Slot& slot) {
  times_.enter(Phase::kForward);
  slot.lookup.forward(0, net_.embeddings_in(vectors_of(slot)));
}

std::optional<double> RankTrainer::dense_forward(Slot& slot, Metrics& metrics, bool wants_loss) {
  times_.enter(Phase::kDenseForward);
  const std::optional<double> loss = net_.forward(
      slot.packed->size, slot.packed->dense, vectors_of(slot), slot.packed->labels, wants_loss);
  if (loss && !std::isfinite(*loss)) refuse(*loss);
  times_.enter(Phase::kMetrics);
  metrics.update(net_.probabilities(), slot.packed->labels);
  return loss;
}

// A loss says whether the weights behind the step before are good: before they are saved, and behind that.
bool RankTrainer::wants_loss(const Saving& saving) const {
  return first_losses_.size() < kFirstLosses || position_.steps == saved_steps_[0] ||
         saving.due(position_.steps + 1).has_value();
}

void RankTrainer::refuse(double loss) const {
  std::string text = "The training has diverged: behind step " + with_separators(position_.steps) +
                     " the loss is " + std::to_string(loss) + ", with --learning-rate " +
                     number_text(options_.learning_rate) + " and --dense-learning-rate " +
                     number_text(options_.dense_learning_rate) + ". ";
  // What was saved behind this very step is what gave the loss.
  const int64_t good = saved_steps_[saved_steps_[0] == position_.steps ? 1 : 0];
  if (good < 0) {
    text += "No checkpoint was saved before; --save-every keeps some.";
  } else {
    text += "The last checkpoint before is step " + with_separators(good) + " of " + options_.save +
            "; lower rates may lead on from it.";
  }
  throw UserError(text);
}

void RankTrainer::step(Slot& slot, bool wants_loss, const std::function<void()>& fetch_next) {
  const std::optional<double> loss = dense_forward(slot, window_, wants_loss);
  if (loss && first_losses_.size() < kFirstLosses) {
    first_losses_.push_back(*loss / static_cast<double>(slot.global()));
  }
  times_.enter(Phase::kDenseBackward);
  net_.backward_top(slot.global());
  if (layers_on_device_) fetch_next();
  times_.enter(Phase::kBackward);
  slot.lookup.set_gradient(0, net_.embedding_gradient());
  slot.lookup.send_gradients();
  times_.enter(Phase::kDenseBackward);
  net_.backward_bottom(own_feed_ && interrupted());
  times_.enter(Phase::kBackward);
  slot.lookup.backward();
  times_.enter(Phase::kReduce);
  stopped_ = net_.wait();
  if (++steps_unsynced_ == sync_every_) options_.sync_overlap ? average_in_passing() : average();
  times_.enter(Phase::kDenseStep);
  net_.step();
  ++position_.batches;
  ++position_.steps;
  position_.samples += slot.global();
}

// All ranks have made as many steps. Without a mesh there is nothing to average.
void RankTrainer::average() {
  if (sync_every_ > 0 && (steps_unsynced_ > 0 || sync_under_way_)) {
    times_.enter(Phase::kSync);
    end_sync();
    collection_.sync_replicas();
  }
  steps_unsynced_ = 0;
}

// Rows that are averaged now are there when the next ones are.
void RankTrainer::average_in_passing() {
  times_.enter(Phase::kSync);
  end_sync();
  collection_.sync_begin();
  sync_under_way_ = true;
  steps_unsynced_ = 0;
}

void RankTrainer::end_sync() {
  if (sync_under_way_) collection_.sync_wait();
  sync_under_way_ = false;
}

void RankTrainer::train(BatchFeed& feed, int64_t epoch, const std::string& title,
                        Progress& progress, const Saving& saving) {
  if (position_.epoch != epoch) {
    position_.epoch = epoch;
    position_.batches = 0;
  }
  started_ = std::chrono::steady_clock::now();
  seconds_before_ = seconds_trained_;
  BatchFeed::Reader reader(feed, own_feed_ ? 0 : rank_);
  size_t now = 0;
  int64_t steps = 0;
  bool more = go_on() && fetch(slots_[now], reader, unit(Split::kTrain));
  const auto fetch_next = [&] {
    more = !stopped_ && fetch(slots_[now], reader, unit(Split::kTrain));
  };
  while (more) {
    Slot& slot = slots_[now];
    forward(slot);
    now = 1 - now;
    if (!layers_on_device_) fetch_next();
    step(slot, wants_loss(saving), fetch_next);
    ++steps;
    times_.enter(Phase::kMetrics);
    if (++steps_in_window_ == window_steps_) end_window();
    if (rank_ == 0 && more) progress.show(state_of(slot, title), false);
    if (const auto saved = saving.due(position_.steps)) {
      average();  // a checkpoint is one model
      times_.enter(Phase::kSave);
      saving.save(position_, *saved);
      saved_steps_ = {position_.steps, saved_steps_[0]};
    }
  }
  average();  // what is evaluated and saved is one model
  times_.enter(Phase::kMetrics);
  if (steps_in_window_ > 0) end_window();
  seconds_trained_ = seconds_now();
  if (rank_ == 0 && steps > 0) progress.show(state_of(slots_[1 - now], title), true);
  times_.enter(Phase::kOther);
}

double RankTrainer::seconds_now() const { return seconds_before_ + seconds_since(started_); }

void RankTrainer::end_window() {
  last_window_ = quality(window_);
  steps_in_window_ = 0;
  const double now = seconds_now();
  history_.add({.step = position_.steps,
                .samples = last_window_.samples,
                .seconds = now - window_began_,
                .loss = last_window_.loss,
                .normalised_entropy = last_window_.normalised_entropy,
                .auc = last_window_.auc,
                .known_samples = last_window_.known ? last_window_.samples : 0});
  window_began_ = now;
}

ProgressState RankTrainer::state_of(const Slot& slot, const std::string& title) {
  const double done =
      (static_cast<double>(position_.epoch) + slot.batch->fraction) / std::max(1, options_.epochs);
  if (!time_left_) time_left_.emplace(done);
  return {.title = title,
          .fraction = slot.batch->fraction,
          .step = position_.steps,
          .loss = last_window_.loss,
          .normalised_entropy = last_window_.normalised_entropy,
          .auc = last_window_.auc,
          .has_quality = last_window_.known,
          .samples_per_second = static_cast<double>(samples_trained()) / seconds_now(),
          .time_left = time_left_->text(done)};
}

Quality RankTrainer::evaluate(BatchFeed& feed, PredictionFile& predictions, Progress& progress) {
  BatchFeed::Reader reader(feed, own_feed_ ? 0 : rank_);
  const auto begun = std::chrono::steady_clock::now();
  const TimeLeft time_left;
  int64_t samples = 0;
  ProgressState state{.title = "test"};
  size_t now = 0;
  int64_t batches = 0;
  const auto next = [&] {
    return (batches++ % kAgreeBatches != 0 || go_on()) &&
           fetch(slots_[now], reader, unit(Split::kTest));
  };
  bool more = next();
  net_.set_training(false);
  while (more) {
    Slot& slot = slots_[now];
    forward(slot);
    now = 1 - now;
    more = next();
    dense_forward(slot, test_, false);
    if (writes_predictions_) write(slot, predictions);
    samples += slot.global();
    state.fraction = slot.batch->fraction;
    state.samples_per_second = static_cast<double>(samples) / seconds_since(begun);
    state.time_left = time_left.text(state.fraction);
    if (rank_ == 0 && more) progress.show(state, false);
  }
  net_.set_training(true);
  if (rank_ == 0 && samples > 0) progress.show(state, true);
  times_.enter(Phase::kMetrics);
  const Quality result = quality(test_);
  times_.enter(Phase::kOther);
  return result;
}

// The probabilities of all ranks, in the order of the batch: others have zeros where one has its
// own.
void RankTrainer::write(const Slot& slot, PredictionFile& predictions) {
  std::vector<float> all(static_cast<size_t>(slot.global()), 0.0F);
  const Vector own = net_.probabilities();
  copy(Vector(all.data() + slot.slice.first, static_cast<size_t>(own.elements())), own);
  comm_.all_reduce(all);
  if (rank_ == 0) predictions.add(slot.batch->samples, all);
}

// Of the samples since the last call. Collective.
Quality RankTrainer::quality(Metrics& metrics) {
  try {
    metrics.compute();
  } catch (const Error& error) {
    // Labels are 0 or 1: it is a probability.
    if (error.status() != SHARDREC_INVALID_ARGUMENT) throw;
    refuse(std::numeric_limits<double>::quiet_NaN());
  }
  Quality result;
  const auto auc = metrics.find_metric(SHARDREC_METRIC_AUC);
  const auto entropy = metrics.find_metric(SHARDREC_METRIC_NE);
  result.known = auc && entropy;
  result.auc = auc.value_or(0);
  result.normalised_entropy = entropy.value_or(0);
  result.samples = static_cast<int64_t>(metrics.metric(SHARDREC_METRIC_SAMPLES));
  if (result.samples > 0) {
    result.loss = metrics.metric(SHARDREC_METRIC_LOSS);
    result.click_rate = metrics.metric(SHARDREC_METRIC_CTR);
  }
  metrics.reset();
  return result;
}

std::string RankTrainer::sharded_text() { return net_.sharded_text(); }

void RankTrainer::add_to(Checkpoint& checkpoint) {
  checkpoint.add(kTablesName, collection_);
  net_.add_to(checkpoint);
}

void RankTrainer::load_format_1(const std::string& directory) {
  const LongWork work("loading " + directory, rank_ == 0, LongWork::OnInterrupt::kCancel);
  Checkpoint checkpoint(comm_, directory);
  checkpoint.add("", collection_);
  checkpoint.open();
  checkpoint.load(work.control());
  net_.load_format_1(directory);
}

void RankTrainer::start_at(const TrainPosition& position) {
  position_ = position;
  saved_steps_[0] = position.steps;
  samples_before_ = position.samples;
}

}  // namespace shardrec::cli
