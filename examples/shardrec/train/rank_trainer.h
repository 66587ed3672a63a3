// One rank's training: its tables, its two lookups, its copy of the dense half. All ranks make the
// same calls in the same order; batches come from a feed that gives all of them the same global
// batches.
//
// A step with two lookups in flight: forward of this batch, begin of the next one, dense forward,
// backward of the top layers, whose gradients of the embeddings leave at once, backward of the bottom
// layers, tables' backward while the dense gradients travel, dense step. begin reads no weights, so that
// overlapping changes no number.
//
// With layers on a device, the next batch is fetched behind the backward of the top layers: while the device computes
// them, the host packs it, and begin copies it without a wait for them. The loss, for which the host waits, is asked for in the
// first steps, which keep it, and around checkpoints; elsewhere the metrics of a window notice one that is NaN.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "command/time_left.h"
#include "data/floats.h"
#include "launch/ranks.h"
#include "train/batch_feed.h"
#include "train/dense_net.h"
#include "train/history.h"
#include "train/phase_times.h"
#include "train/predictions.h"
#include "train/progress.h"
#include "train/train_options.h"
#include "train/train_settings.h"

namespace shardrec::cli {

struct Quality {
  bool known = false;  // both labels were seen
  double auc = 0;
  double normalised_entropy = 0;
  double loss = 0;
  double click_rate = 0;
  int64_t samples = 0;
};

class RankTrainer {
 public:
  // Layers multiply rows in tiles of so many, or of half as many, from the first row of a call on, while a call has at
  // most kTiledRows. Ranks that take whole tiles of the test samples, and no more than that, get
  // the same bits whatever their number.
  static constexpr int64_t kTile = 128;
  static constexpr int64_t kTiledRows = 1024;
  static constexpr size_t kFirstLosses = 20;
  // Steps whose samples loss and quality are the mean of; fewer where progress is shown more often.
  static constexpr int64_t kReportSteps = 50;
  // In evaluation, processes ask each other every so many batches whether one was interrupted.
  static constexpr int64_t kAgreeBatches = 16;

  // Collective. mesh: of comm, or null.
  RankTrainer(Comm& comm, int rank, const TrainOptions& options, const Schema& schema,
              const Model& model, const Plan& plan, Mesh* mesh);

  static int64_t test_batch(const TrainOptions& options);
  // What ranks share batches by.
  static int64_t unit(Split split) { return split == Split::kTest ? kTile : 1; }

  enum class Saved { kWhole, kChanges };
  // save is called behind every `every` steps of the run, on all ranks, and for the changes behind every
  // `publish_every` others; 0: never.
  struct Saving {
    int64_t every = 0;
    int64_t publish_every = 0;
    std::function<void(const TrainPosition&, Saved)> save;

    // Behind so many steps.
    std::optional<Saved> due(int64_t steps) const {
      if (every > 0 && steps % every == 0) return Saved::kWhole;
      if (publish_every > 0 && steps % publish_every == 0) return Saved::kChanges;
      return std::nullopt;
    }
  };

  // The feed's batches are those of the epoch behind the position at hand.
  void train(BatchFeed& feed, int64_t epoch, const std::string& title, Progress& progress,
             const Saving& saving);
  // predictions: of rank 0; the same calls are made on all ranks.
  // Of a feed with batches of test_batch(). The same numbers for any number of ranks with the same
  // model.
  Quality evaluate(BatchFeed& feed, PredictionFile& predictions, Progress& progress);

  // As of DenseNet.
  [[nodiscard]] std::string sharded_text();

  // Tables and layers, to be saved and loaded.
  void add_to(Checkpoint& checkpoint);
  // What an earlier release has saved, of a DLRM of linear layers. Collective.
  void load_format_1(const std::string& directory);
  // Before the first train(): goes on behind these steps.
  void start_at(const TrainPosition& position);
  [[nodiscard]] const TrainPosition& position() const { return position_; }

  // Per step, the loss summed over this rank's samples, divided by the global batch.
  [[nodiscard]] const std::vector<double>& first_losses() const { return first_losses_; }
  // Of all steps of this process; the same on all ranks but for the time.
  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] const PhaseTimes& times() const { return times_; }
  [[nodiscard]] const Collection& collection() const { return collection_; }
  // By this process; position() has those of the whole run.
  [[nodiscard]] int64_t samples_trained() const { return position_.samples - samples_before_; }
  [[nodiscard]] double seconds_trained() const { return seconds_trained_; }
  void enter(Phase phase) { times_.enter(phase); }
  // The ranks have agreed to end, behind the batch that has begun.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  // A batch on its way: what the library and the dense half read must stay until backward.
  struct Slot {
    Slot(Collection& tables, int64_t device) : lookup(tables), vectors(device) {}

    Lookup lookup;
    std::shared_ptr<const GlobalBatch> batch;
    Slice slice;                          // of the batch: this rank's samples
    PackedBatch own;                      // where this rank packs its slice
    const PackedBatch* packed = nullptr;  // the slice
    Floats vectors;                       // what tables and bottom layers give to the top layers
    [[nodiscard]] int64_t global() const { return batch->size; }
  };

  // unit: what ranks share the batch by.
  bool fetch(Slot& slot, BatchFeed::Reader& reader, int64_t unit);
  bool go_on();  // collective between processes
  Matrix vectors_of(Slot& slot);
  void forward(Slot& slot);
  // Returns the summed loss, on a device only where it is wanted. Throws UserError where it is no finite number.
  std::optional<double> dense_forward(Slot& slot, Metrics& metrics, bool wants_loss);
  // Is the next step one whose loss the host asks the device for?
  [[nodiscard]] bool wants_loss(const Saving& saving) const;
  [[noreturn]] void refuse(double loss) const;
  // fetch_next: called where layers are on a device.
  void step(Slot& slot, bool wants_loss, const std::function<void()>& fetch_next);
  void write(const Slot& slot, PredictionFile& predictions);
  // Throws UserError where a probability is NaN.
  Quality quality(Metrics& metrics);
  // Afterwards all replicas are one model.
  void average();
  // The same while training goes on, which leaves them different.
  void average_in_passing();
  void end_sync();
  // Ends the window of steps: takes their loss and quality. Collective.
  void end_window();
  [[nodiscard]] ProgressState state_of(const Slot& slot, const std::string& title);
  [[nodiscard]] double seconds_now() const;

  Comm& comm_;
  const TrainOptions& options_;
  int rank_;
  int ranks_;
  bool writes_predictions_;
  int64_t sync_every_;  // steps; 0: no mesh
  int64_t steps_unsynced_ = 0;
  bool sync_under_way_ = false;
  bool own_feed_;  // of this process; else the ranks share one
  bool stopped_ = false;
  const Schema& schema_;
  bool layers_on_device_;
  DenseNet net_;
  Collection collection_;
  std::array<Slot, 2> slots_;
  Metrics window_;
  Metrics test_;
  int64_t window_steps_;  // steps of a window
  int64_t steps_in_window_ = 0;
  Quality last_window_;
  History history_;
  double window_began_ = 0;            // seconds of training
  std::optional<TimeLeft> time_left_;  // of the training, from its first batch on
  PhaseTimes times_;
  std::vector<double> first_losses_;
  TrainPosition position_;
  // Steps of the last two checkpoints, the newer one first; -1: there is none.
  std::array<int64_t, 2> saved_steps_{-1, -1};
  int64_t samples_before_ = 0;
  double seconds_trained_ = 0;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace shardrec::cli
