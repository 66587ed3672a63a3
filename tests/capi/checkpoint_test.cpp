// Checkpoints through the C++ header: a whole model saved, resumed, moved to other ranks.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Collection;
using shardrec::Comm;
using shardrec::Error;
using shardrec::Options;

class Resumed : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Resumed, TrainingHasTheBitsOfOneThatWasNotStopped) {
  const int ranks = GetParam().first;
  const int group = GetParam().second;
  const bool on_mesh = group != ranks;
  Directory directory;
  std::vector<std::vector<float>> expected(static_cast<size_t>(ranks));
  const auto mesh_of = [&](Comm& comm) {
    std::optional<shardrec::Mesh> mesh;
    if (on_mesh) mesh.emplace(comm, group);
    return mesh;
  };
  run(ranks, [&](Comm& comm, int rank) {
    auto mesh = mesh_of(comm);
    const shardrec::Model model = make_model();
    Job job(comm, mesh ? &*mesh : nullptr, model,
            make_plan(model, group, SHARDREC_SHARDING_COLUMN_WISE));
    job.tables.set_learning_rate(0, 0.02);
    job.layers.set_learning_rate(0.03);
    job.tables.set_frozen(1, true);
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    EXPECT_FALSE(checkpoint.try_open());
    for (int64_t i = 0; i < 3; ++i) job.step(i);
    job.tables.sync_replicas();
    job.tables.set_frozen(1, false);
    job.tables.set_learning_rate(1, 0.5);
    const std::vector<int64_t> position = {3, 100 + rank};
    checkpoint.set_tensor("position", position);
    checkpoint.commit(3);
    for (int64_t i = 3; i < 6; ++i) job.step(i);
    job.tables.sync_replicas();
    expected[static_cast<size_t>(rank)] = job.state();
  });
  run(ranks, [&](Comm& comm, int rank) {
    auto mesh = mesh_of(comm);
    Checkpoint checkpoint(comm, directory.path());
    ASSERT_TRUE(checkpoint.try_open());
    const shardrec_opened opened = checkpoint.info();
    EXPECT_EQ(opened.step, 3);
    EXPECT_EQ(opened.ranks, comm.size());
    EXPECT_EQ(opened.format, 2);
    const Options options = mlp_options();
    Job job(comm, mesh ? &*mesh : nullptr, checkpoint.model("tables"), checkpoint.plan("tables"),
            checkpoint.mlp("layers", options));
    job.bias[0] = -7;
    add_all(checkpoint, job);
    checkpoint.load();
    EXPECT_EQ(job.tables.step(), 3);
    std::vector<int64_t> position(2);
    checkpoint.get_tensor("position", rank, position);
    EXPECT_EQ(position, (std::vector<int64_t>{3, 100 + rank}));
    for (int64_t i = position[0]; i < 6; ++i) job.step(i);
    job.tables.sync_replicas();
    EXPECT_EQ(job.state(), expected[static_cast<size_t>(rank)]);
    checkpoint.commit(6);
  });
}

INSTANTIATE_TEST_SUITE_P(RanksAndShardingGroups, Resumed,
                         ::testing::Values(std::pair(1, 1), std::pair(2, 2), std::pair(4, 2),
                                           std::pair(3, 1), std::pair(4, 4)));

TEST(CheckpointApi, MovesToOtherPlansRanksAndReplicas) {
  Directory directory;
  std::vector<float> expected;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    for (int64_t i = 0; i < 4; ++i) job.step(i);
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    checkpoint.commit(4);
    auto state = job.state();
    if (rank == 0) expected = std::move(state);
  });
  for (const std::pair<int, int>& world : {std::pair(1, 1), std::pair(3, 3), std::pair(6, 3)}) {
    const int ranks = world.first;
    const int group = world.second;
    run(ranks, [&](Comm& comm, int) {
      std::optional<shardrec::Mesh> mesh;
      if (ranks != group) mesh.emplace(comm, group);
      const shardrec::Model model = make_model();
      Job job(comm, mesh ? &*mesh : nullptr, model,
              make_plan(model, group, SHARDREC_SHARDING_MIXED));
      Checkpoint checkpoint(comm, directory.path());
      add_all(checkpoint, job);
      checkpoint.open(4);
      checkpoint.load();
      EXPECT_EQ(job.state(), expected);
    });
  }
}

// Saved once, by whichever way it was kept in step, and loaded by every rank.
TEST(CheckpointApi, AReplicatedTableOfAMeshMovesToOtherMeshesAndToNone) {
  Directory directory;
  std::vector<float> expected;
  run(4, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    shardrec::Mesh mesh(comm, 2);
    Job job(comm, &mesh, model, half_replicated_plan(model, 2, SHARDREC_REPLICATION_ROWS));
    for (int64_t i = 0; i < 4; ++i) job.step(i);
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    // The copies of the other table differ.
    EXPECT_EQ(status_of([&] { checkpoint.commit(4); }), SHARDREC_INVALID_STATE);
    job.tables.sync_replicas();
    checkpoint.commit(4);
    auto state = job.state();
    if (rank == 0) expected = std::move(state);
  });
  for (const std::pair<int, int>& world : {std::pair(1, 1), std::pair(3, 3), std::pair(6, 3)}) {
    const int ranks = world.first;
    const int group = world.second;
    std::mutex mutex;
    std::vector<std::vector<float>> trained;
    run(ranks, [&](Comm& comm, int) {
      std::optional<shardrec::Mesh> mesh;
      if (ranks != group) mesh.emplace(comm, group);
      const shardrec::Model model = make_model();
      Job job(comm, mesh ? &*mesh : nullptr, model,
              half_replicated_plan(model, group, SHARDREC_REPLICATION_SAMPLES));
      Checkpoint checkpoint(comm, directory.path());
      add_all(checkpoint, job);
      checkpoint.open(4);
      checkpoint.load();
      EXPECT_EQ(job.state(), expected);
      job.step(4);
      job.tables.sync_replicas();
      auto state = job.state();
      const std::lock_guard lock(mutex);
      trained.push_back(std::move(state));
    });
    for (const auto& state : trained) EXPECT_EQ(state, trained.front());
  }
}

TEST(CheckpointApi, ALoadThatFailsHalfwayIsRefusedUntilOneSucceeds) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", job.tables);  // alone: the last bytes of rank 0's file are of a table
    job.step(0);
    checkpoint.commit(1);
    const auto good = job.state();
    job.step(1);
    checkpoint.commit(2);
    checkpoint.add("layers", job.layers);
    checkpoint.commit(3);
    shardrec::check(shardrec_comm_barrier(comm.get()));
    if (rank == 0) damage(directory.path("run/step_000000000002"));
    shardrec::check(shardrec_comm_barrier(comm.get()));
    Checkpoint tables_only(comm, directory.path());
    tables_only.add("tables", job.tables);
    tables_only.open(2);
    const auto dense = job.dense_state();
    std::string sentence;
    EXPECT_EQ(status_of([&] { tables_only.load(); }, &sentence), SHARDREC_CORRUPT_DATA);
    EXPECT_NE(sentence.find("tensor \"tables/"), std::string::npos) << sentence;
    EXPECT_EQ(job.dense_state(), dense);
    const auto expect_refused = [&](const auto& call) {
      EXPECT_EQ(status_of(call, &sentence), SHARDREC_INVALID_STATE);
      EXPECT_NE(sentence.find("filled in part"), std::string::npos) << sentence;
    };
    expect_refused([&] { job.begin_empty(); });
    expect_refused([&] { job.state(); });
    expect_refused([&] { tables_only.commit(9); });
    tables_only.open(1);
    tables_only.load();
    auto tables = job.state();
    // The layers were trained on meanwhile.
    tables.resize(tables.size() - dense.size());
    EXPECT_TRUE(std::equal(tables.begin(), tables.end(), good.begin()));
    job.step(1);
  });
}

// Tables alone, and one lookup of them.
class TablesInSteps {
 public:
  explicit TablesInSteps(Comm& comm)
      : model_(make_model()),
        tables(comm, model_, make_plan(model_, comm.size(), SHARDREC_SHARDING_ROW_WISE)),
        lookup(tables),
        out_(kBatch * kDims),
        gradient_(kBatch * kDims, 0.5F) {}

  void begin() { lookup.begin(kBatch, values_, lengths_); }
  void forward() { lookup.forward(0, {out_.data(), kBatch, kDims}); }
  void set_gradient() { lookup.set_gradient(0, {gradient_.data(), kBatch, kDims}); }
  std::vector<float> rows() {
    std::vector<float> all(static_cast<size_t>(kRows[0] * 8));
    tables.read_range(0, SHARDREC_TABLE_WEIGHTS, 0, kRows[0], {all.data(), kRows[0], 8});
    return all;
  }

 private:
  shardrec::Model model_;

 public:
  Collection tables;
  shardrec::Lookup lookup;

 private:
  const std::vector<int64_t> values_ = {3, 30, 3, 9, 1, 2, 2, 10};
  const std::vector<int32_t> lengths_ = std::vector<int32_t>(2 * kBatch, 1);
  std::vector<float> out_, gradient_;
};

// Gradients of a batch are of the weights that its forward saw: behind a load they are applied nowhere.
TEST(CheckpointApi, ALoadEndsTheBatchThatIsBehindForward) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    TablesInSteps job(comm);
    Checkpoint saved(comm, directory.path("tables"));
    saved.add("tables", job.tables);
    saved.commit(0);
    saved.open();
    const std::vector<float> rows = job.rows();
    using Call = void (*)(shardrec::Lookup&);
    const Call backward = [](shardrec::Lookup& lookup) { lookup.backward(); };
    const Call accumulate = [](shardrec::Lookup& lookup) {
      lookup.backward(SHARDREC_UPDATE_ACCUMULATE);
    };
    const Call send = [](shardrec::Lookup& lookup) { lookup.send_gradients(); };
    const Call skip = [](shardrec::Lookup& lookup) { lookup.backward(SHARDREC_UPDATE_SKIP); };
    for (const Call call : {backward, accumulate, send, skip}) {
      job.begin();
      job.forward();
      job.set_gradient();
      saved.load();
      std::string sentence;
      // Ranks that skip need not wait for those that do not.
      const Call own = call == skip && rank == 1 ? backward : call;
      const auto status = status_of([&] { own(job.lookup); }, &sentence);
      EXPECT_EQ(status, own == skip ? SHARDREC_OK : SHARDREC_INVALID_STATE) << sentence;
      if (own != skip) {
        EXPECT_NE(sentence.find("before the tables were loaded"), std::string::npos) << sentence;
      }
      EXPECT_EQ(status_of([&] { job.lookup.backward(); }), SHARDREC_INVALID_STATE);
      EXPECT_EQ(job.rows(), rows);
    }
    // Gradients that are under way, of any rank, keep the tables from being loaded.
    job.begin();
    job.forward();
    job.set_gradient();
    if (rank == 1) job.lookup.send_gradients();
    std::string sentence;
    EXPECT_EQ(status_of([&] { saved.load(); }, &sentence), SHARDREC_INVALID_STATE);
    EXPECT_NE(sentence.find("gradients of a lookup are under way"), std::string::npos) << sentence;
    job.lookup.backward();
    const std::vector<float> trained = job.rows();
    EXPECT_NE(trained, rows);
    // So does a step that is taken in the background, which is not saved either.
    job.begin();
    job.forward();
    job.set_gradient();
    rank == 1 ? job.lookup.backward_begin() : job.lookup.backward();
    EXPECT_EQ(status_of([&] { saved.load(); }, &sentence), SHARDREC_INVALID_STATE);
    EXPECT_NE(sentence.find("a backward is under way"), std::string::npos) << sentence;
    EXPECT_EQ(status_of([&] { saved.commit(1); }, &sentence), SHARDREC_INVALID_STATE);
    EXPECT_NE(sentence.find("a backward is under way"), std::string::npos) << sentence;
    if (rank == 1) job.lookup.backward_wait();
    // A batch that has only begun sees what is loaded.
    job.begin();
    saved.load();
    job.forward();
    job.set_gradient();
    job.lookup.backward();
    EXPECT_EQ(job.rows(), trained);
  });
}

TEST(CheckpointApi, ReplicasAreAveragedBeforeOneIsSaved) {
  Directory directory;
  run(4, [&](Comm& comm, int rank) {
    shardrec::Mesh mesh(comm, 2);
    const shardrec::Model model = make_model();
    Job job(comm, &mesh, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", job.tables);
    job.step(0);
    EXPECT_EQ(status_of([&] { checkpoint.commit(1); }), SHARDREC_INVALID_STATE);
    job.tables.sync_replicas();
    checkpoint.commit(1);
    const auto saved = job.state();
    job.step(1);
    // All replicas are filled, also those that wrote nothing.
    checkpoint.open();
    checkpoint.load();
    auto loaded = job.state();
    const size_t tables = loaded.size() - job.dense_state().size();
    EXPECT_TRUE(std::equal(loaded.begin(), loaded.begin() + static_cast<std::ptrdiff_t>(tables),
                           saved.begin()))
        << "rank " << rank;
  });
}

TEST(CheckpointApi, AHandleReadsAndWritesNothingBeforeItsFirstCall) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    const Checkpoint checkpoint(comm, directory.path("new/run"));
    const Checkpoint of_a_file(comm, "/dev/null/run");
    EXPECT_FALSE(std::filesystem::exists(directory.path("new")));
  });
}

TEST(CheckpointApi, ACommitLeavesOtherFilesOfItsRootAlone) {
  Directory directory;
  const std::string notes = directory.path("flat/notes.txt");
  std::filesystem::create_directory(directory.path("flat"));
  std::ofstream(notes) << "keep me";
  run(2, [&](Comm& comm, int) {
    TablesInSteps job(comm);
    Checkpoint checkpoint(comm, directory.path("flat"));
    checkpoint.add("tables", job.tables);
    checkpoint.commit(0);
  });
  std::ifstream file(notes);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "keep me");
  EXPECT_TRUE(std::filesystem::exists(directory.path("flat/LATEST")));
}

TEST(CheckpointApi, AHostTensorThatIsDamagedIsRefusedAndNotWritten) {
  Directory directory;
  run(1, [&](Comm& comm, int) {
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.set_tensor("x", std::vector<float>{1, 2, 3});
    checkpoint.commit(1);
    damage(directory.path("run/step_000000000001"));
    checkpoint.open();
    std::vector<float> x = {7, 7, 7};
    EXPECT_EQ(status_of([&] { checkpoint.get_tensor("x", 0, x); }), SHARDREC_CORRUPT_DATA);
    EXPECT_EQ(x, (std::vector<float>{7, 7, 7}));
    EXPECT_EQ(status_of([&] { checkpoint.verify(); }), SHARDREC_CORRUPT_DATA);
  });
}

TEST(CheckpointApi, VerifyFindsAnyByteThatIsDamaged) {
  Directory directory;
  run(1, [&](Comm& comm, int) {
    TablesInSteps job(comm);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", job.tables);
    checkpoint.set_tensor("x", std::vector<float>{1, 2, 3});
    checkpoint.commit(1);
    int flipped = 0;
    const auto files = std::filesystem::directory_iterator(directory.path("run/step_000000000001"));
    for (const std::filesystem::path& path : files) {
      const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
      for (int64_t at = 0; at < bytes; at += 7) {
        const auto flip = [&] {
          std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
          file.seekg(at);
          const char changed = static_cast<char>(file.get() ^ 1);
          file.seekp(at);
          file.put(changed);
        };
        flip();
        EXPECT_EQ(status_of([&] {
                    checkpoint.open();
                    checkpoint.verify();
                  }),
                  SHARDREC_CORRUPT_DATA)
            << path << " byte " << at;
        flip();
        ++flipped;
      }
    }
    EXPECT_GT(flipped, 300);
    checkpoint.open();
    checkpoint.verify();
  });
}

TEST(CheckpointApi, WhatIsAddedIsWrittenByEveryLaterCommit) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    std::vector<std::vector<float>> states;
    for (int64_t step = 1; step <= 3; ++step) {
      job.step(step);
      checkpoint.commit(step);
      states.push_back(job.state());
    }
    for (int64_t step = 1; step <= 3; ++step) {
      checkpoint.open(step);
      checkpoint.load();
      EXPECT_EQ(job.state(), states[static_cast<size_t>(step) - 1]);
    }
  });
}

// As release 0.1 wrote it: one collection of the name "".
TEST(CheckpointApi, OpensADirectoryThatIsACheckpointItself) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    job.step(0);
    const auto saved = job.state();
    Checkpoint written(comm, directory.path("run"));
    written.add("", job.tables);
    written.commit(1);
    if (rank == 0) {
      std::filesystem::rename(directory.path("run/step_000000000001"), directory.path("flat"));
    }
    comm.barrier();
    job.step(1);
    Checkpoint checkpoint(comm, directory.path("flat"));
    checkpoint.add("", job.tables);
    checkpoint.open();
    EXPECT_EQ(checkpoint.info().step, 1);
    checkpoint.load();
    const auto loaded = job.state();
    EXPECT_TRUE(std::equal(loaded.begin(),
                           loaded.end() - static_cast<std::ptrdiff_t>(job.dense_state().size()),
                           saved.begin()));
    EXPECT_EQ(status_of([&] { checkpoint.commit(2); }), SHARDREC_INVALID_ARGUMENT);
  });
}

TEST(CheckpointApi, KeepsTheLastAndListsThem) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    Options options(SHARDREC_OPTIONS_CHECKPOINT);
    options.set(SHARDREC_OPTION_KEEP_LAST, 2);
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path(), options);
    add_all(checkpoint, job);
    for (const int64_t step : {10, 20, 30}) checkpoint.commit(step);
    EXPECT_EQ(status_of([&] { checkpoint.open(10); }), SHARDREC_NOT_FOUND);
    checkpoint.open(20);
    checkpoint.verify();
    const std::string list = Checkpoint::list_json(directory.path());
    EXPECT_NE(list.find("\"latest\": 30"), std::string::npos) << list;
    EXPECT_EQ(list.find("\"step\": 10"), std::string::npos) << list;
    const std::string contents = checkpoint.contents_json();
    for (const char* part : {"\"step\": 20", "\"name\": \"user\"", "\"state/exp_avg_sq\"",
                             "\"layer.0.weight\"", "\"bias\"", "\"ranks\": 2"}) {
      EXPECT_NE(contents.find(part), std::string::npos) << part << " in " << contents;
    }
  });
}

// A directory that cannot go, for somebody has put a file of his own there, does not keep the others.
TEST(CheckpointApi, RemovesTheOldBesideWhatItCannotRemove) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    Options options(SHARDREC_OPTIONS_CHECKPOINT);
    options.set(SHARDREC_OPTION_KEEP_LAST, 1);
    Checkpoint checkpoint(comm, directory.path(), options);
    checkpoint.set_tensor("x", std::vector<float>{1});
    checkpoint.commit(10);
    if (rank == 0) {
      std::ofstream(directory.path("run/step_000000000010/notes.txt")) << "keep me";
      std::ofstream(directory.path("run/LATEST.0123456789abcdef.tmp")) << "of a killed commit";
    }
    shardrec::check(shardrec_comm_barrier(comm.get()));
    for (const int64_t step : {20, 30}) checkpoint.commit(step);
    EXPECT_EQ(status_of([&] { checkpoint.open(10); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { checkpoint.open(20); }), SHARDREC_NOT_FOUND);
    EXPECT_TRUE(std::filesystem::exists(directory.path("run/step_000000000010/notes.txt")));
    EXPECT_FALSE(std::filesystem::exists(directory.path("run/step_000000000020")));
    EXPECT_FALSE(std::filesystem::exists(directory.path("run/LATEST.0123456789abcdef.tmp")));
  });
}

// A run whose first commit was killed just before it counted may have left a whole checkpoint.
TEST(CheckpointApi, AStepIsOpenedOfTheRunThatGoesOn) {
  Directory directory;
  run(1, [&](Comm& comm, int) {
    const auto commit_to = [&](const std::string& root, float value, int64_t first, int64_t last) {
      Checkpoint checkpoint(comm, directory.path(root));
      checkpoint.set_tensor("x", std::vector<float>{value});
      for (int64_t step = first; step <= last; ++step) checkpoint.commit(step);
    };
    commit_to("other", 2, 1, 3);
    commit_to("run", 1, 3, 3);
    const std::string third = "/step_000000000003";
    std::filesystem::copy(directory.path("other") + third, directory.path() + third + ".1");
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.open(3);
    std::vector<float> x(1);
    checkpoint.get_tensor("x", 0, x);
    EXPECT_EQ(x[0], 1);
    checkpoint.set_tensor("x", x);
    checkpoint.commit(4);
  });
}

TEST(CheckpointApi, HostTensorsAreOfEachRank) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    Checkpoint checkpoint(comm, directory.path());
    const std::vector<uint8_t> settings = {1, 2, static_cast<uint8_t>(rank)};
    checkpoint.set_tensor("settings", settings);
    if (rank == 1) checkpoint.set_tensor("only here", std::vector<double>{0.5, -2});
    checkpoint.set_tensor("nothing", std::vector<float>{});
    checkpoint.set_tensor("gone", std::vector<float>{1});
    checkpoint.set_tensor("gone", nullptr);
    EXPECT_EQ(status_of([&] { checkpoint.set_tensor("gone", nullptr); }), SHARDREC_NOT_FOUND);
    checkpoint.commit(0);
    checkpoint.open();
    for (int32_t from = 0; from < 2; ++from) {
      const shardrec_tensor info = *checkpoint.tensor_info("settings", from).tensor.get();
      EXPECT_EQ(info.dtype, SHARDREC_UINT8);
      EXPECT_EQ(info.ndim, 1);
      EXPECT_EQ(info.shape[0], 3);
      EXPECT_EQ(info.data, nullptr);
      EXPECT_EQ(checkpoint.tensor_info("settings", from).bytes, 3);
      std::vector<uint8_t> read(3);
      checkpoint.get_tensor("settings", from, read);
      EXPECT_EQ(read, (std::vector<uint8_t>{1, 2, static_cast<uint8_t>(from)}));
    }
    std::vector<double> values(2);
    checkpoint.get_tensor("only here", 1, values);
    EXPECT_EQ(values, (std::vector<double>{0.5, -2}));
    EXPECT_EQ(status_of([&] { checkpoint.get_tensor("only here", 0, values); }),
              SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { checkpoint.tensor_info("gone", 0); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(checkpoint.tensor_info("nothing", 0).tensor.size(0), 0);
    std::vector<double> other(3);
    EXPECT_EQ(status_of([&] { checkpoint.get_tensor("only here", 1, other); }),
              SHARDREC_INVALID_ARGUMENT);
  });
}

TEST(CheckpointApi, RefusesWhatIsMisused) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    EXPECT_EQ(status_of([&] { Checkpoint nameless(comm, ""); }), SHARDREC_INVALID_ARGUMENT);
    Checkpoint checkpoint(comm, directory.path());
    EXPECT_EQ(status_of([&] { checkpoint.commit(0); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.load(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.verify(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { (void)checkpoint.info(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.model("tables"); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.contents_json(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.open(); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { checkpoint.open(-2); }), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { checkpoint.add("a/b", job.tables); }), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { checkpoint.add("", job.layers); }), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { checkpoint.add(std::string(256, 'x'), job.layers); }),
              SHARDREC_INVALID_ARGUMENT);
    checkpoint.add("tables", job.tables);
    EXPECT_EQ(status_of([&] { checkpoint.add("tables", job.layers); }), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { checkpoint.set_tensor("tables", std::vector<float>{1}); }),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { checkpoint.commit(-1); }), SHARDREC_INVALID_ARGUMENT);
    checkpoint.commit(1);
    checkpoint.open();
    EXPECT_EQ(status_of([&] { checkpoint.model("other"); }), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of([&] { checkpoint.mlp("tables"); }), SHARDREC_NOT_FOUND);
    checkpoint.add("layers", job.layers);
    std::string sentence;
    EXPECT_EQ(status_of([&] { checkpoint.load(); }, &sentence), SHARDREC_NOT_FOUND);
    EXPECT_NE(sentence.find("\"layers\""), std::string::npos) << sentence;
    // A failed load that found that out first has changed nothing.
    job.step(0);
    // Another run does not commit there, and steps that differ between ranks are told.
    Checkpoint other(comm, directory.path());
    other.add("tables", job.tables);
    EXPECT_EQ(status_of([&] { other.commit(2); }, &sentence), SHARDREC_INVALID_STATE);
    EXPECT_NE(sentence.find("another run"), std::string::npos) << sentence;
    // What was destroyed is named.
    {
      shardrec::Mlp gone(3);
      gone.add_linear(1);
      other.add("gone", gone);
    }
    EXPECT_EQ(status_of([&] { other.commit(2); }, &sentence), SHARDREC_CLOSED);
    EXPECT_NE(sentence.find("\"gone\""), std::string::npos) << sentence;
  });
}

TEST(CheckpointApi, WhatOneRankGetsWrongAllAreTold) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.set_tensor("x", std::vector<float>{1});
    auto* no_control = reinterpret_cast<shardrec_control*>(comm.get());
    const auto commit = [&] {
      shardrec::check(
          shardrec_checkpoint_commit(checkpoint.get(), 1, rank == 1 ? no_control : nullptr));
    };
    std::string sentence;
    EXPECT_EQ(status_of(commit, &sentence), SHARDREC_INVALID_HANDLE);
    EXPECT_NE(sentence.find("rank 1"), std::string::npos) << sentence;
    checkpoint.commit(1);
  });
}

TEST(CheckpointApi, DirectoriesThatDifferBetweenRanksAreBothNamed) {
  Directory directory;
  run(3, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 3, SHARDREC_SHARDING_ROW_WISE));
    const std::string own = directory.path(rank == 2 ? "there" : "here");
    Checkpoint checkpoint(comm, own);
    add_all(checkpoint, job);
    const auto expect_both = [&](const auto& call, const char* name) {
      std::string sentence;
      EXPECT_EQ(status_of(call, &sentence), SHARDREC_DISAGREEMENT) << name;
      for (const std::string& part :
           {std::string("rank 2 gave ") + name + " the directory \"" + directory.path("there"),
            "and rank 0 \"" + directory.path("here")}) {
        EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
      }
    };
    expect_both([&] { checkpoint.commit(1); }, "commit");
    expect_both([&] { checkpoint.open(); }, "open");
    // Nothing is lost: they go on.
    job.step(0);
    Checkpoint same(comm, directory.path("here"));
    add_all(same, job);
    same.commit(1);
    comm.barrier();
    EXPECT_FALSE(std::filesystem::exists(directory.path("there")));
  });
}

TEST(CheckpointApi, StepsThatDifferBetweenRanksAreAMismatch) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.set_tensor("x", std::vector<float>{1});
    EXPECT_EQ(status_of([&] { checkpoint.commit(rank); }), SHARDREC_MISMATCH);
  });
}

}  // namespace
}  // namespace shardrec_test
