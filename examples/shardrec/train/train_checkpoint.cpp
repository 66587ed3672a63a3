// Checkpoints of a run: what `train` adds to tables and layers, written and read back.
#include "train/train_checkpoint.h"

#include <array>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "command/long_work.h"
#include "command/user_error.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

constexpr const char* kSettings = "settings";
constexpr const char* kPosition = "position";
using PositionNumbers = std::array<int64_t, 4>;

SavedRun read_run(const Checkpoint& checkpoint, const std::string& directory) {
  SavedRun run;
  run.step = checkpoint.info().step;
  const auto refuse = [&] {
    throw UserError(directory + " holds checkpoints, but none of `shardrec train`.");
  };
  const auto settings = checkpoint.find_tensor_info(kSettings);
  if (!settings) {
    if (!std::filesystem::exists(directory + "/manifest.json")) refuse();
    return run;
  }
  if (settings->tensor.dtype() != SHARDREC_UINT8 || settings->tensor.dimensions() != 1) refuse();
  run.settings.resize(static_cast<size_t>(settings->bytes));
  checkpoint.get_tensor(kSettings, 0, run.settings);

  PositionNumbers numbers{};
  const auto position = checkpoint.find_tensor_info(kPosition);
  if (!position || position->tensor.dtype() != SHARDREC_INT64 ||
      position->tensor.dimensions() != 1 || position->tensor.elements() != std::ssize(numbers)) {
    refuse();
  }
  checkpoint.get_tensor(kPosition, 0, numbers);
  run.position = {
      .epoch = numbers[0], .batches = numbers[1], .steps = numbers[2], .samples = numbers[3]};
  for (const int64_t number : numbers) {
    if (number < 0) refuse();
  }
  return run;
}

// Where the newest, which is open, is a delta without states: the newest one before it that has them.
void open_with_states(Checkpoint& checkpoint, const std::string& directory) {
  const int64_t newest = checkpoint.info().commit;
  std::optional<int64_t> step;
  const auto list = nlohmann::json::parse(Checkpoint::list_json(directory));
  for (const auto& entry : list.at("checkpoints")) {
    if (entry.at("commit") > newest || !entry.at("states").get<bool>()) continue;
    step = entry.at("step").get<int64_t>();
  }
  if (step && *step != checkpoint.info().step) checkpoint.open(*step);
}

}  // namespace

std::optional<SavedRun> newest_run(const std::string& directory, Newest which) {
  std::optional<SavedRun> run;
  run_ranks({.ranks = 1}, [&](int, Comm& comm) {
    Checkpoint checkpoint(comm, directory);
    if (!checkpoint.try_open()) return;
    if (which == Newest::kWithStates) open_with_states(checkpoint, directory);
    run = read_run(checkpoint, directory);
  });
  return run;
}

RunStore::RunStore(Comm& comm, int rank, std::string directory, const CheckpointOptions& options)
    : rank_(rank), directory_(std::move(directory)), checkpoint_(comm, directory_, options) {}

void RunStore::open(int64_t step) {
  checkpoint_.open(step);
  saved_step_ = step;
}

void RunStore::load(int64_t step) {
  open(step);
  const LongWork work("loading " + directory_, rank_ == 0, LongWork::OnInterrupt::kCancel);
  checkpoint_.load(work.control());
}

std::string RunStore::load(int64_t step, const std::string& rules) {
  open(step);
  const LongWork work("loading " + directory_, rank_ == 0, LongWork::OnInterrupt::kCancel);
  return checkpoint_.load_partial(rules, work.control());
}

template <class Commit>
void RunStore::save(const std::string& settings, const TrainPosition& position, Commit commit) {
  if (position.steps == saved_step_) return;
  const PositionNumbers numbers{position.epoch, position.batches, position.steps, position.samples};
  if (rank_ == 0) {
    checkpoint_.set_tensor(kSettings, settings);
    checkpoint_.set_tensor(kPosition, numbers);
  }
  const LongWork work("saving " + directory_, rank_ == 0, LongWork::OnInterrupt::kFinish);
  commit(position.steps, work.control());
  saved_step_ = position.steps;
}

void RunStore::commit(const std::string& settings, const TrainPosition& position) {
  save(settings, position,
       [&](int64_t step, const Control* control) { checkpoint_.commit(step, control); });
}

void RunStore::publish(const std::string& settings, const TrainPosition& position) {
  save(settings, position,
       [&](int64_t step, const Control* control) { checkpoint_.commit_delta(step, control); });
}

}  // namespace shardrec::cli
