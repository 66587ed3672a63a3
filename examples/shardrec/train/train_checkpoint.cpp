#include "train/train_checkpoint.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "command/long_work.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

constexpr const char* kSettings = "settings";
constexpr const char* kPosition = "position";
using PositionNumbers = std::array<int64_t, 4>;

shardrec_tensor bytes_view(const std::string& text) {
  shardrec_tensor view;
  check(shardrec_tensor_vector(const_cast<char*>(text.data()), SHARDREC_UINT8,
                               static_cast<int64_t>(text.size()), &view));
  return view;
}

SavedRun read_run(shardrec_checkpoint* checkpoint, const std::string& directory) {
  SavedRun run;
  check(shardrec_checkpoint_step(checkpoint, &run.step));
  shardrec_tensor described{};
  const auto found = [&](const char* name) {
    const auto status = shardrec_checkpoint_tensor_info(checkpoint, name, 0, &described);
    if (status == SHARDREC_NOT_FOUND) return false;
    check(status);
    return true;
  };
  const auto refuse = [&] {
    throw UserError(directory + " holds checkpoints, but none of `shardrec train`.");
  };
  if (!found(kSettings)) {
    if (!std::filesystem::exists(directory + "/manifest.json")) refuse();
    return run;
  }
  if (described.dtype != SHARDREC_UINT8 || described.ndim != 1) refuse();
  run.settings.resize(static_cast<size_t>(described.shape[0]));
  shardrec_tensor view = bytes_view(run.settings);
  check(shardrec_checkpoint_get_tensor(checkpoint, kSettings, 0, &view));

  PositionNumbers numbers{};
  if (!found(kPosition) || described.dtype != SHARDREC_INT64 || described.ndim != 1 ||
      described.shape[0] != static_cast<int64_t>(numbers.size())) {
    refuse();
  }
  view = vector_view(std::span<const int64_t>(numbers));
  check(shardrec_checkpoint_get_tensor(checkpoint, kPosition, 0, &view));
  run.position = {
      .epoch = numbers[0], .batches = numbers[1], .steps = numbers[2], .samples = numbers[3]};
  for (const int64_t number : numbers) {
    if (number < 0) refuse();
  }
  return run;
}

}  // namespace

std::optional<SavedRun> newest_run(const std::string& directory) {
  std::optional<SavedRun> run;
  run_ranks({.ranks = 1}, [&](int, shardrec_comm* comm) {
    Checkpoint checkpoint;
    check(shardrec_checkpoint_create(comm, directory.c_str(), nullptr, checkpoint.out()));
    const auto status = shardrec_checkpoint_open(checkpoint.get(), -1);
    if (status == SHARDREC_NOT_FOUND) return;
    check(status);
    run = read_run(checkpoint.get(), directory);
  });
  return run;
}

RunStore::RunStore(shardrec_comm* comm, int rank, std::string directory, int64_t keep)
    : rank_(rank), directory_(std::move(directory)) {
  Options options(SHARDREC_OPTIONS_CHECKPOINT);
  options.set(SHARDREC_OPTION_KEEP_LAST, keep);
  check(shardrec_checkpoint_create(comm, directory_.c_str(), options.get(), checkpoint_.out()));
}

void RunStore::open(int64_t step) {
  check(shardrec_checkpoint_open(checkpoint_.get(), step));
  saved_step_ = step;
}

void RunStore::load(int64_t step) {
  open(step);
  const LongWork work("loading " + directory_, rank_ == 0, LongWork::OnInterrupt::kCancel);
  check(shardrec_checkpoint_load(checkpoint_.get(), work.control()));
}

void RunStore::commit(const std::string& settings, const TrainPosition& position) {
  if (position.steps == saved_step_) return;
  const PositionNumbers numbers{position.epoch, position.batches, position.steps, position.samples};
  if (rank_ == 0) {
    const shardrec_tensor text = bytes_view(settings);
    const shardrec_tensor place = vector_view(std::span<const int64_t>(numbers));
    check(shardrec_checkpoint_set_tensor(checkpoint_.get(), kSettings, &text));
    check(shardrec_checkpoint_set_tensor(checkpoint_.get(), kPosition, &place));
  }
  const LongWork work("saving " + directory_, rank_ == 0, LongWork::OnInterrupt::kFinish);
  check(shardrec_checkpoint_commit(checkpoint_.get(), position.steps, work.control()));
  saved_step_ = position.steps;
}

}  // namespace shardrec::cli
