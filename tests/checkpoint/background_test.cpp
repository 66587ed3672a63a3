// Commits whose files are written while training goes on: their bytes, files that fail, commits that are
// given up.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoint/contents/gathering.h"
#include "checkpoint/faulty_environment.h"
#include "checkpoint/store/background_commit.h"
#include "checkpoint/store/root_files.h"
#include "checkpoint/store/step_commit.h"
#include "checkpoint/trained.h"
#include "checkpoint/world.h"
#include "support/eventually.h"

namespace shardrec_test {
namespace {

using shardrec::Comm;
using shardrec::comm::Operation;
namespace checkpoint = shardrec::checkpoint;
namespace core = shardrec::core;

constexpr Operation kWait{
    .name = "commit_wait", .kind = 1, .deadline_kind = shardrec::comm::DeadlineKind::kSetup};

// Files whose bytes are not written before somebody lets them.
class HeldEnvironment final : public checkpoint::HookedEnvironment {
 public:
  HeldEnvironment() {
    before = [this](const char* what, const std::string&) {
      if (std::string(what) != "write") return;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return open_; });
    };
  }
  ~HeldEnvironment() override { let_go(); }
  void let_go() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// One that lives as long as the program: the thread of a commit that was given up is not waited for.
HeldEnvironment& kept_environment() {
  static std::mutex mutex;
  static std::deque<HeldEnvironment> kept;
  const std::lock_guard lock(mutex);
  return kept.emplace_back();
}

// What one rank commits: its tables and a tensor of its own.
class Committed {
 public:
  Committed(Comm& comm, Trained& trained)
      : communicator_(shardrec::capi::enter(comm.get(), shardrec::capi::Access::kShared)
                          ->membership->communicator()),
        channels_(communicator_) {
    gathering_.add("tables", trained.behind());
    const std::vector<int64_t> position = {comm.rank()};
    const shardrec::Tensor tensor = position;
    tensors_.set("position", tensor.get(), names_);
  }

  void commit(const std::string& root, int64_t step) {
    checkpoint::Lineage lineage;
    checkpoint::commit_step(channels_.group(), root, step, 0, gathering_.to_save(tensors_), lineage,
                            nullptr);
  }
  std::unique_ptr<checkpoint::BackgroundCommit> begin(
      const std::string& root, int64_t step,
      core::Environment& environment = core::default_environment()) {
    checkpoint::FrozenContents frozen{.contents = gathering_.to_save(tensors_), .frozen = nullptr};
    frozen.frozen = gathering_.freeze(frozen.contents);
    auto begun = std::make_unique<checkpoint::BackgroundCommit>(
        std::make_unique<checkpoint::StepCommit>(root, step, 0, environment), std::move(frozen),
        nullptr);
    begun->begin(channels_.group(), lineage_);
    return begun;
  }
  // A whole commit, behind which changes are noted.
  void commit_base(const std::string& root) {
    checkpoint::commit_step(channels_.group(), root, 0, 0, gathering_.to_save(tensors_), lineage_,
                            nullptr);
    marked_ = gathering_.mark();
  }
  // What has changed since then, over the base in the root, and what it is written from.
  checkpoint::Contents changes(checkpoint::DeltaStates states) {
    (void)gathering_.mark();
    auto contents = gathering_.changes_to_save(tensors_, marked_, states);
    contents.base = lineage_.made;
    ++contents.base->deltas;
    return contents;
  }
  void commit_changes(const std::string& root, checkpoint::DeltaStates states) {
    auto lineage = lineage_;
    checkpoint::commit_step(channels_.group(), root, 3, 0, changes(states), lineage, nullptr);
  }
  std::unique_ptr<checkpoint::BackgroundCommit> begin_changes(const std::string& root,
                                                              checkpoint::DeltaStates states,
                                                              core::Environment& environment) {
    checkpoint::FrozenContents frozen{.contents = changes(states), .frozen = nullptr};
    frozen.frozen = gathering_.freeze(frozen.contents);
    auto begun = std::make_unique<checkpoint::BackgroundCommit>(
        std::make_unique<checkpoint::StepCommit>(root, 3, 0, environment), std::move(frozen),
        nullptr);
    begun->begin(channels_.group(), lineage_);
    return begun;
  }
  bool wait(checkpoint::BackgroundCommit& begun, int64_t timeout_ms) {
    return begun.wait(channels_.group(), communicator_, kWait, timeout_ms, lineage_);
  }

 private:
  shardrec::comm::Communicator& communicator_;
  checkpoint::GroupChannels channels_;
  checkpoint::Gathering gathering_;
  checkpoint::UsedNames names_;
  checkpoint::HostTensors tensors_;
  checkpoint::Lineage lineage_;
  std::vector<checkpoint::MarkedTables> marked_;
};

// The files of a checkpoint by their names, without the name of its run, which is by chance, and the
// checksum of the manifest.
std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const std::string& name : checkpoint::names_in(directory)) {
    std::string& text = files[name] = checkpoint::read_all(directory + "/" + name);
    if (name != "manifest.json") continue;
    for (const std::string key : {"\"run\": \"", "\n\"checksum\": \""}) {
      const size_t at = text.find(key) + key.size();
      text.erase(at, text.find('"', at) - at);
    }
  }
  return files;
}

// Names below a root, but for its lock.
std::vector<std::string> below(const std::string& root) {
  for (;;) {
    std::vector<std::string> names;
    std::error_code error;  // others may remove what is being listed
    if (!std::filesystem::exists(root, error)) return names;
    for (std::filesystem::recursive_directory_iterator at(root, error), end; !error && at != end;
         at.increment(error)) {
      if (at->path().filename() != "LOCK") names.push_back(at->path().filename().string());
    }
    if (!error) return names;
  }
}

class Commits : public ::testing::TestWithParam<std::pair<int, shardrec_sharding>> {
 protected:
  template <class Body>
  static void on_ranks(const Body& body) {
    const int ranks = GetParam().first;
    const shardrec_sharding sharding = GetParam().second;
    run(ranks, [&](Comm& comm, int rank) {
      Trained trained(comm, nullptr, sharding, ranks, SHARDREC_REPLICATION_SAMPLES);
      for (int64_t i = 0; i < 3; ++i) trained.step(i);
      Committed committed(comm, trained);
      body(comm, rank, trained, committed);
    });
  }
};

TEST_P(Commits, InTheBackgroundHaveTheBytesOfABlockingOne) {
  const Directory directory;
  on_ranks([&](Comm& comm, int rank, Trained& trained, Committed& committed) {
    committed.commit(directory.path("blocking"), 3);
    HeldEnvironment held;
    const auto begun = committed.begin(directory.path("background"), 3, held);
    for (int64_t i = 3; i < 12; ++i) {
      trained.step(i);
      trained.write_some(i);
    }
    trained.tables->set_step(99);
    trained.tables->set_learning_rate(0, 0.75);
    trained.tables->set_frozen(1, true);
    EXPECT_FALSE(committed.wait(*begun, 0));
    EXPECT_FALSE(committed.wait(*begun, rank == 0 ? 20 : 0));
    if (rank == 0) {
      EXPECT_EQ(checkpoint::list_checkpoints(directory.path("background")).latest, "");
    }
    comm.barrier();
    held.let_go();
    trained.step(12);
    EXPECT_TRUE(committed.wait(*begun, -1));
    if (rank == 0) {
      const std::string step = "/" + checkpoint::step_name(3);
      const auto got = files_of(directory.path("background") + step);
      const auto expected = files_of(directory.path("blocking") + step);
      EXPECT_EQ(got.size(), expected.size());
      for (const auto& [name, bytes] : expected) {
        EXPECT_TRUE(got.contains(name) && got.at(name) == bytes) << name << " differs";
      }
    }
    trained.step(13);
  });
}

// Rows that are in the delta change before they are written, and rows that are not in it do, too.
TEST_P(Commits, OfChangesInTheBackgroundHaveTheBytesOfBlockingOnes) {
  for (const auto states : {checkpoint::DeltaStates::kWritten, checkpoint::DeltaStates::kLeftOut}) {
    const Directory directory;
    const std::string step = "/" + checkpoint::step_name(3);
    on_ranks([&](Comm& comm, int rank, Trained& trained, Committed& committed) {
      committed.commit_base(directory.path());
      for (int64_t i = 3; i < 6; ++i) trained.step(i);
      trained.write_some(6);
      committed.commit_changes(directory.path(), states);
      comm.barrier();
      std::map<std::string, std::string> expected;
      if (rank == 0) {
        expected = files_of(directory.path() + step);
        std::filesystem::remove_all(directory.path() + step);
        std::filesystem::remove(directory.path() + "/LATEST");
      }
      comm.barrier();
      HeldEnvironment held;
      const auto begun = committed.begin_changes(directory.path(), states, held);
      for (int64_t i = 4; i < 14; ++i) {
        trained.step(i);
        trained.write_some(i);
      }
      EXPECT_FALSE(committed.wait(*begun, 0));
      comm.barrier();
      held.let_go();
      trained.step(14);
      EXPECT_TRUE(committed.wait(*begun, -1));
      if (rank != 0) return;
      const auto got = files_of(directory.path() + step);
      EXPECT_EQ(got.size(), expected.size());
      for (const auto& [name, bytes] : expected) {
        EXPECT_TRUE(got.contains(name) && got.at(name) == bytes) << name << " differs";
      }
    });
  }
}

TEST_P(Commits, ThatAreGivenUpLeaveNothing) {
  const Directory directory;
  const std::string root = directory.path();
  on_ranks([&](Comm& comm, int rank, Trained& trained, Committed& committed) {
    HeldEnvironment& held = kept_environment();
    auto begun = committed.begin(root, 3, held);
    trained.step(3);
    begun.reset();  // returns, though the files are held
    trained.collection().take_snapshot()->end();
    held.let_go();
    // The directory may stay where rank 0 was there before the others; it has no files.
    EXPECT_TRUE(
        shardrec::test::eventually([&] { return below(root).size() <= 1 || rank != 0; }, 30));
    comm.barrier();
    // The lock goes when rank 0's thread has ended.
    EXPECT_TRUE(shardrec::test::eventually(
        [&] {
          std::vector<double> failed = {0};
          try {
            committed.commit(root, 4);
          } catch (const core::Error& error) {
            EXPECT_EQ(error.status(), SHARDREC_INVALID_STATE) << error.what();
            failed[0] = 1;
          }
          comm.all_reduce(failed, SHARDREC_REDUCTION_MAX);
          return failed[0] == 0;
        },
        30));
    if (rank == 0) {
      EXPECT_EQ(checkpoint::list_checkpoints(root).entries.size(), 1U);
    }
  });
}

TEST_P(Commits, WhoseFilesFailAreToldOnAllRanksAndLeaveNothing) {
  const int victim = GetParam().first - 1;
  bool any_failed_late = false;
  for (int64_t allowed = 0;; ++allowed) {
    const Directory directory;
    const std::string root = directory.path();
    bool struck = false;
    on_ranks([&](Comm& comm, int rank, Trained& trained, Committed& committed) {
      checkpoint::FaultyEnvironment faulty(allowed, false);
      std::optional<core::Error> failed;
      bool late = false;
      try {
        const auto begun = committed.begin(
            root, 3,
            rank == victim ? static_cast<core::Environment&>(faulty) : core::default_environment());
        late = true;
        trained.step(3);
        EXPECT_TRUE(committed.wait(*begun, -1));
      } catch (const core::Error& error) {
        failed = error;
      }
      std::vector<double> count = {failed ? 1.0 : 0.0};
      comm.all_reduce(count, SHARDREC_REDUCTION_SUM);
      EXPECT_EQ(count[0], failed ? comm.size() : 0) << "the ranks got different ends";
      if (failed) {
        EXPECT_EQ(failed->status(), SHARDREC_IO_ERROR) << failed->what();
        EXPECT_EQ(failed->parts().rank, victim) << failed->what();
        if (rank == 0) {
          EXPECT_EQ(below(root), std::vector<std::string>{}) << failed->what();
          any_failed_late = any_failed_late || late;
        }
      }
      if (rank == victim) struck = faulty.failed();
      comm.barrier();
      if (failed) {  // the same tables, and the same directory
        const auto again = committed.begin(root, 4);
        trained.step(4);
        EXPECT_TRUE(committed.wait(*again, -1));
      }
      if (rank == 0) {
        EXPECT_EQ(checkpoint::list_checkpoints(root).entries.size(), 1U);
      }
    });
    if (!struck || HasFailure()) break;
  }
  EXPECT_TRUE(any_failed_late);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Commits,
                         ::testing::Values(std::pair(1, SHARDREC_SHARDING_TABLE_WISE),
                                           std::pair(2, SHARDREC_SHARDING_COLUMN_WISE),
                                           std::pair(3, SHARDREC_SHARDING_MIXED),
                                           std::pair(4, SHARDREC_SHARDING_GRID)));

}  // namespace
}  // namespace shardrec_test
