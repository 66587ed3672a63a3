#include "checkpoint/store/step_commit.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "checkpoint/store/root_files.h"
#include "comm/collective/agree.h"
#include "core/error.h"
#include "core/log.h"

namespace shardrec::checkpoint {

using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

class StepCommit::Root {
 public:
  Root(std::string root, int64_t step, Environment& environment)
      : root_(std::move(root)), step_(step), environment_(environment) {}

  // Takes the lock and chooses the directory.
  void prepare(const Lineage& lineage, const std::optional<ManifestBase>& base) {
    if (root_.empty()) fail(SHARDREC_INVALID_ARGUMENT, "the directory of checkpoints has no name");
    environment_.make_directories(root_);
    if (environment_.exists(join_path(root_, kManifestName))) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence("the directory ", root_, " is itself a checkpoint, as a collection's save",
                    " writes it; commit to another one"),
           {.path = root_});
    }
    const std::string lock = join_path(root_, kLockName);
    const auto result = environment_.lock(lock, lock_);
    if (result == Environment::LockResult::kHeldByAnother) {
      fail(
          SHARDREC_INVALID_STATE,
          sentence("another job commits to ", root_, " now: each job needs a directory of its own"),
          {.path = lock});
    }
    locked_ = result == Environment::LockResult::kTaken;
    check_run(lineage);
    if (base) require_base(root_, *base, environment_);
    const std::vector<std::string> taken = environment_.list(root_);
    name_ = step_name(step_);
    for (int64_t i = 1; std::binary_search(taken.begin(), taken.end(), name_); ++i) {
      name_ = step_name(step_) + "." + std::to_string(i);
    }
  }

  const std::string& name() const { return name_; }

  // The moment from which the new checkpoint is the newest. After an error the one before is
  // again; where even that fails the new one stays, which is whole, and finish() tells.
  void publish() {
    try {
      write_latest(root_, name_, environment_);
    } catch (...) {
      if (take_back()) throw;
      failure_ = std::current_exception();
    }
  }

  // On all ranks, when the new checkpoint is there.
  void finish(const std::string& run, int64_t keep) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (locked_) tidy(run, keep);
    lock_.reset();
  }

 private:
  // Removes what the run no longer wants. Nothing depends on it: errors are logged, and what cannot
  // be removed does not keep the rest.
  void tidy(const std::string& run, int64_t keep) noexcept {
    try_to_remove([&] {
      for (const std::string& name : environment_.list(root_)) {
        if (is_unpublished_latest(name)) {
          try_to_remove([&] { environment_.remove(join_path(root_, name)); });
        }
      }
      std::vector<Entry> whole;
      for (const std::string& name : step_names(root_, environment_)) {
        const auto manifest = try_manifest(join_path(root_, name), environment_);
        if (manifest && manifest->run == run) {
          whole.push_back(entry_of(name, *manifest));
        } else if (!manifest &&
                   !environment_.exists(join_path(join_path(root_, name), kManifestName))) {
          // A commit of this run that was killed.
          try_to_remove([&] { remove_step(root_, name, environment_); });
        }
      }
      std::sort(whole.begin(), whole.end(),
                [](const Entry& a, const Entry& b) { return a.commit > b.commit; });
      std::set<int64_t> stay;
      for (const Entry& entry : whole) {
        const bool replaced = entry.step == step_ && entry.name != name_;
        if (entry.name == name_ || (!replaced && (keep == 0 || std::ssize(stay) < keep))) {
          stay.insert(entry.commit);
        }
      }
      stay = with_bases(whole, std::move(stay));
      // Deltas first: they have larger numbers than what they are changes of.
      for (const Entry& entry : whole) {
        if (stay.contains(entry.commit)) continue;
        try_to_remove([&] { remove_step(root_, entry.name, environment_); });
      }
    });
  }

  void try_to_remove(core::FunctionRef<void()> work) const noexcept {
    try {
      work();
    } catch (const core::Error& error) {
      tell_leftovers(error);
    } catch (...) {  // NOLINT(bugprone-empty-catch): memory ran out; the next commit tries again
    }
  }

  void tell_leftovers(const core::Error& error) const noexcept {
    try {
      core::log(
          SHARDREC_LOG_WARNING, -1,
          sentence("old checkpoints in ", root_, " could not be removed: ", error.sentence()));
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory to tell
    }
  }

  void check_run(const Lineage& lineage) {
    latest_ = read_latest(root_, environment_);
    if (latest_.empty()) return;
    const auto manifest = try_manifest(join_path(root_, latest_), environment_);
    const std::string run = manifest ? manifest->run : "";
    if (!lineage.run.empty() && lineage.run == run) {
      return check_not_overtaken(lineage, manifest->commit);
    }
    fail(SHARDREC_INVALID_STATE,
         sentence("the directory ", root_, " holds checkpoints of another run, the newest ",
                  latest_, ": open one to go on from it, or commit to another directory"),
         {.path = join_path(root_, latest_)});
  }

  // Two jobs that went on from one checkpoint, one after the other: the first to commit goes on.
  // published: the commit that LATEST names. A checkpoint that stayed behind a commit of this job
  // that failed is not published.
  void check_not_overtaken(const Lineage& lineage, int64_t published) const {
    if (published <= lineage.commit) return;
    fail(SHARDREC_INVALID_STATE,
         sentence("another job has committed to ", root_, " since this one opened it: commit ",
                  published, " is there, this job knows of ", lineage.commit,
                  "; open a checkpoint to go on from it, or commit to another directory"),
         {.value = lineage.commit, .limit = published, .path = root_});
  }

  // True when LATEST is known to be as before.
  bool take_back() noexcept {
    try {
      if (read_latest(root_, environment_) != name_) return true;
      if (latest_.empty()) {
        environment_.remove(join_path(root_, kLatestName));
      } else {
        write_latest(root_, latest_, environment_);
      }
      return true;
    } catch (...) {
      return false;
    }
  }

  const std::string root_;
  int64_t step_;
  Environment& environment_;
  std::unique_ptr<core::FileLock> lock_;
  bool locked_ = false;
  std::string latest_;  // before
  std::string name_;
  std::exception_ptr failure_;
};

StepCommit::StepCommit(std::string root, int64_t step, int64_t keep, Environment& environment)
    : path_(std::move(root)),
      step_(step),
      keep_(keep),
      environment_(environment),
      root_(std::make_unique<Root>(path_, step, environment)) {}

StepCommit::~StepCommit() = default;

void StepCommit::open(const Group& group, const Contents& contents, const Lineage& lineage) {
  const comm::Operation operation = operation_on("commit", path_, step_);
  std::optional<ManifestBase> base = contents.base;
  next_ = {.run = lineage.run, .commit = lineage.commit + 1};
  comm::agree(group.collectives, operation, [&] {
    if (group.rank != 0) return;
    root_->prepare(lineage, base);
    if (next_.run.empty()) next_.run = core::unique_suffix();
    // Numbers of commits that failed are not used again.
    next_.commit =
        std::max(next_.commit, newest_of(list_checkpoints(path_, environment_), next_.run) + 1);
  });
  const std::string shared =
      share_text(group, operation, sentence(root_->name(), " ", next_.run, " ", next_.commit));
  const size_t first = shared.find(' ');
  const size_t second = shared.rfind(' ');
  next_ = {.run = shared.substr(first + 1, second - first - 1),
           .commit = std::stoll(shared.substr(second + 1))};
  next_.made = {.directory = shared.substr(0, first),
                .step = step_,
                .commit = next_.commit,
                .deltas = base ? base->deltas : 0};
  if (base) {
    // All that is not known on every rank.
    base->checksum = std::stoull(share_text(group, operation, std::to_string(base->checksum)));
  }
  saving_ =
      std::make_unique<SaveInParts>(SaveAs{.directory = join_path(path_, shared.substr(0, first)),
                                           .step = step_,
                                           .run = next_.run,
                                           .commit = next_.commit,
                                           .new_directory = true,
                                           .base = std::move(base)},
                                    environment_);
  saving_->open(group, contents);
}

std::string StepCommit::write(const Contents& contents, core::Control* control) {
  return saving_->write(contents, control);
}

void StepCommit::close(const Group& group, core::FunctionRef<std::string()> written,
                       Lineage& lineage) {
  saving_->close(group, written, [&] { root_->publish(); });
  next_.made.checksum = saving_->checksum();
  lineage = next_;
  comm::agree(group.collectives, operation_on("commit", path_, step_),
              [&] { root_->finish(next_.run, keep_); });
}

void StepCommit::abandon() noexcept {
  if (saving_ != nullptr) saving_->abandon();
  root_.reset();
}

}  // namespace shardrec::checkpoint
