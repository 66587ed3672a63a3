// The checkpoints of `train`: tables and layers, and beside them, set by rank 0, the settings (JSON)
// and the position in the data.
#pragma once

#include <cstdint>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <string>

#include "train/train_settings.h"

namespace shardrec::cli {

// A checkpoint as it lies in a directory.
struct SavedRun {
  int64_t step = 0;
  std::string settings;  // JSON; empty: saved by an earlier release, tables and layers only
  TrainPosition position;
};

// Deltas that were published for scorers may be without the states of optimizers.
enum class Newest { kAny, kWithStates };

// The newest checkpoint of a directory, read by this process for itself; none: there is none there.
// Throws UserError for a checkpoint that `train` has not written.
std::optional<SavedRun> newest_run(const std::string& directory, Newest which);

// One rank's view of a directory of checkpoints.
class RunStore {
 public:
  RunStore(Comm& comm, int rank, std::string directory, const CheckpointOptions& options);

  [[nodiscard]] Checkpoint& checkpoint() { return checkpoint_; }

  // Fills what was added. Collective. CANCELLED when a rank was interrupted.
  void load(int64_t step);
  // The same under rules (JSON); returns the report of what was loaded.
  std::string load(int64_t step, const std::string& rules);
  // Takes part in the run that has this checkpoint, without a load. Collective.
  void open(int64_t step);

  // Collective; an interrupt does not end it. A position that is saved already is not saved again.
  void commit(const std::string& settings, const TrainPosition& position);
  // The same of what has changed since the last one.
  void publish(const std::string& settings, const TrainPosition& position);

 private:
  template <class Commit>
  void save(const std::string& settings, const TrainPosition& position, Commit commit);

  int rank_;
  std::string directory_;
  Checkpoint checkpoint_;
  int64_t saved_step_ = -1;
};

}  // namespace shardrec::cli
