// Checkpoints through the C++ header: a whole model saved, resumed, moved to other ranks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace {

using shardrec::Checkpoint;
using shardrec::Collection;
using shardrec::Comm;
using shardrec::Error;
using shardrec::Options;

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    root_ = pattern;
  }
  ~Directory() { std::filesystem::remove_all(root_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path(const std::string& name = "run") const { return root_ + "/" + name; }

 private:
  std::string root_;
};

// Runs body on `ranks` threads; what one throws fails the test.
template <class Body>
void run(int ranks, const Body& body) {
  shardrec::Local group(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Comm comm(group, rank);
      try {
        body(comm, rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
        comm.abort("a test failed");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <class Call>
shardrec_status status_of(const Call& call, std::string* sentence = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (sentence != nullptr) *sentence = error.what();
    return error.status();
  }
  return SHARDREC_OK;
}

constexpr int64_t kBatch = 4;
constexpr int64_t kDims = 8 + 6;
constexpr int64_t kRows[] = {37, 11};

shardrec::Model make_model() {
  shardrec::Model model;
  Options half(SHARDREC_OPTIONS_TABLE);
  half.set(SHARDREC_OPTION_DTYPE, SHARDREC_BFLOAT16);
  model.add_feature(model.add_table("user", kRows[0], 8), "user_id");
  model.add_feature(model.add_table("item", kRows[1], 6, &half), "item_id", SHARDREC_POOLING_MEAN);
  Options adam(SHARDREC_OPTIONS_OPTIMIZER);
  adam.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ADAM);
  adam.set(SHARDREC_OPTION_LEARNING_RATE, 0.05);
  model.set_optimizer(adam);
  Options rowwise(SHARDREC_OPTIONS_OPTIMIZER);
  rowwise.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
  model.set_table_optimizer(1, &rowwise);
  return model;
}

shardrec::Plan make_plan(Comm& comm, const shardrec::Model& model, int ranks,
                         shardrec_sharding sharding) {
  (void)comm;
  Options options(SHARDREC_OPTIONS_PLAN);
  options.set(SHARDREC_OPTION_SHARDING, sharding);
  return shardrec::Plan(model, shardrec::Topology(ranks), &options);
}

Options mlp_options() {
  Options options(SHARDREC_OPTIONS_MLP);
  options.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ADAM);
  options.set(SHARDREC_OPTION_THREADS, 1);
  options.set(SHARDREC_OPTION_SEED, 5);
  return options;
}

// A small model in training: tables, a stack of layers and a parameter of the host's, averaged over
// the ranks.
class Job {
 public:
  // mesh null: on comm.
  Job(Comm& comm, shardrec::Mesh* mesh, const shardrec::Model& model, const shardrec::Plan& plan,
      std::optional<shardrec::Mlp> stack = std::nullopt)
      : tables(mesh == nullptr ? Collection(comm, model, plan) : Collection(*mesh, model, plan)),
        lookup_(tables),
        layers(stack ? std::move(*stack) : make_layers()),
        ddp(comm),
        rank_(comm.rank()) {
    for (int32_t p = 0; p < layers.parameter_count(); ++p) {
      const auto parameter = layers.parameter(p);
      ddp.add("layer" + std::to_string(p), parameter.value, parameter.gradient);
    }
    own_ddp_.emplace(comm);
    own_ddp_->add("bias", tensor_of(bias), tensor_of(bias_gradient_));
    ddp.commit();
    own_ddp_->commit();
  }

  shardrec::Ddp& own_ddp() { return *own_ddp_; }

  void step(int64_t number) {
    std::vector<int64_t> values;
    std::vector<int32_t> lengths;
    for (int f = 0; f < 2; ++f) {
      for (int64_t b = 0; b < kBatch; ++b) {
        lengths.push_back(static_cast<int32_t>((number + b) % 3));
        for (int32_t i = 0; i < lengths.back(); ++i) {
          values.push_back((number * 7 + b * 5 + i * 3 + rank_ * 11 + f) % kRows[f]);
        }
      }
    }
    std::vector<float> out(kBatch * kDims);
    lookup_.begin(kBatch, values, lengths);
    lookup_.forward(0, {out.data(), kBatch, kDims});
    std::vector<float> hidden(kBatch);
    layers.forward({out.data(), kBatch, kDims}, {hidden.data(), kBatch, 1});
    std::vector<float> gradient(kBatch);
    for (int64_t b = 0; b < kBatch; ++b) {
      gradient[static_cast<size_t>(b)] =
          hidden[static_cast<size_t>(b)] - 0.1F * static_cast<float>(b + number % 4) + bias[0];
    }
    bias_gradient_[0] = gradient[0] * 0.5F;
    std::vector<float> back(kBatch * kDims);
    layers.backward({gradient.data(), kBatch, 1}, {back.data(), kBatch, kDims});
    ddp.all_reduce();
    own_ddp_->all_reduce();
    layers.step();
    bias[0] -= 0.1F * bias_gradient_[0];
    lookup_.set_gradient(0, {back.data(), kBatch, kDims});
    lookup_.backward();
  }

  // Every number that training has changed. Collective.
  std::vector<float> state() {
    std::vector<float> all;
    const auto read = [&](int32_t table, shardrec_table_part part, int64_t width) {
      std::vector<float> rows(static_cast<size_t>(kRows[table] * width));
      tables.read(table, part, 0, kRows[table], {rows.data(), kRows[table], width});
      all.insert(all.end(), rows.begin(), rows.end());
    };
    read(0, SHARDREC_TABLE_WEIGHTS, 8);
    read(0, SHARDREC_TABLE_STATE, 8);
    read(0, SHARDREC_TABLE_STATE_2, 8);
    read(1, SHARDREC_TABLE_WEIGHTS, 6);
    read(1, SHARDREC_TABLE_STATE, 1);
    const std::vector<float> dense = dense_state();
    all.insert(all.end(), dense.begin(), dense.end());
    return all;
  }
  std::vector<float> dense_state() {
    std::vector<float> all;
    for (int32_t p = 0; p < layers.parameter_count(); ++p) {
      const shardrec_tensor value = layers.parameter(p).value;
      int64_t count = 1;
      for (int d = 0; d < value.ndim; ++d) count *= value.shape[d];
      const auto* data = static_cast<const float*>(value.data);
      all.insert(all.end(), data, data + count);
    }
    all.push_back(bias[0]);
    return all;
  }

  void begin_empty() {
    std::vector<int64_t> values;
    std::vector<int32_t> lengths(2 * kBatch, 0);
    lookup_.begin(kBatch, values, lengths);
  }

  Collection tables;

 private:
  shardrec::Lookup lookup_;

 public:
  shardrec::Mlp layers;
  shardrec::Ddp ddp;
  std::vector<float> bias = {0.25F};

 private:
  static shardrec::Mlp make_layers() {
    const Options options = mlp_options();
    shardrec::Mlp mlp(kDims, &options);
    mlp.add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
    return mlp;
  }
  static shardrec_tensor tensor_of(std::vector<float>& values) {
    shardrec_tensor tensor{};
    shardrec::check(shardrec_tensor_vector(values.data(), SHARDREC_FLOAT32,
                                           static_cast<int64_t>(values.size()), &tensor));
    return tensor;
  }

  std::vector<float> bias_gradient_ = {0};
  std::optional<shardrec::Ddp> own_ddp_;
  int rank_;
};

void add_all(Checkpoint& checkpoint, Job& job) {
  checkpoint.add("tables", job.tables);
  checkpoint.add("layers", job.layers);
  checkpoint.add("host", job.own_ddp());
}

// Damages one byte of the data of a step's first file.
void damage(const std::string& directory) {
  const std::string path = directory + "/rank_00000.safetensors";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(last);
}

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
            make_plan(comm, model, group, SHARDREC_SHARDING_COLUMN_WISE));
    job.tables.set_table_learning_rate(0, 0.02);
    job.layers.set_learning_rate(0.03);
    job.tables.set_frozen(1, true);
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    EXPECT_FALSE(checkpoint.try_open());
    for (int64_t i = 0; i < 3; ++i) job.step(i);
    job.tables.sync();
    job.tables.set_frozen(1, false);
    job.tables.set_table_learning_rate(1, 0.5);
    const std::vector<int64_t> position = {3, 100 + rank};
    checkpoint.set_tensor("position", position);
    checkpoint.commit(3);
    for (int64_t i = 3; i < 6; ++i) job.step(i);
    job.tables.sync();
    expected[static_cast<size_t>(rank)] = job.state();
  });
  run(ranks, [&](Comm& comm, int rank) {
    auto mesh = mesh_of(comm);
    Checkpoint checkpoint(comm, directory.path());
    ASSERT_TRUE(checkpoint.try_open());
    EXPECT_EQ(checkpoint.step(), 3);
    const Options options = mlp_options();
    Job job(comm, mesh ? &*mesh : nullptr, checkpoint.model("tables"), checkpoint.plan("tables"),
            checkpoint.mlp("layers", &options));
    job.bias[0] = -7;
    add_all(checkpoint, job);
    checkpoint.load();
    EXPECT_EQ(job.tables.step(), 3);
    std::vector<int64_t> position(2);
    checkpoint.get_tensor("position", rank, position);
    EXPECT_EQ(position, (std::vector<int64_t>{3, 100 + rank}));
    for (int64_t i = position[0]; i < 6; ++i) job.step(i);
    job.tables.sync();
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
    Job job(comm, nullptr, model, make_plan(comm, model, 2, SHARDREC_SHARDING_ROW_WISE));
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
              make_plan(comm, model, group, SHARDREC_SHARDING_MIXED));
      Checkpoint checkpoint(comm, directory.path());
      add_all(checkpoint, job);
      checkpoint.open(4);
      checkpoint.load();
      EXPECT_EQ(job.state(), expected);
    });
  }
}

TEST(CheckpointApi, ALoadThatFailsHalfwayIsRefusedUntilOneSucceeds) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(comm, model, 2, SHARDREC_SHARDING_ROW_WISE));
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
    expect_refused([&] { job.tables.save(directory.path("flat")); });
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

TEST(CheckpointApi, ReplicasAreAveragedBeforeOneIsSaved) {
  Directory directory;
  run(4, [&](Comm& comm, int rank) {
    shardrec::Mesh mesh(comm, 2);
    const shardrec::Model model = make_model();
    Job job(comm, &mesh, model, make_plan(comm, model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", job.tables);
    job.step(0);
    EXPECT_EQ(status_of([&] { checkpoint.commit(1); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { job.tables.save(directory.path("flat")); }), SHARDREC_INVALID_STATE);
    job.tables.sync();
    job.tables.save(directory.path("flat"));
    checkpoint.commit(1);
    const auto saved = job.state();
    job.step(1);
    // All replicas are filled, also those that wrote nothing.
    job.tables.load(directory.path("flat"));
    auto loaded = job.state();
    const size_t tables = loaded.size() - job.dense_state().size();
    EXPECT_TRUE(std::equal(loaded.begin(), loaded.begin() + static_cast<std::ptrdiff_t>(tables),
                           saved.begin()))
        << "rank " << rank;
    // One of two that save to one directory is refused.
    EXPECT_EQ(status_of([&] { job.tables.save(directory.path("flat")); }),
              SHARDREC_INVALID_ARGUMENT);
  });
}

TEST(CheckpointApi, OpensWhatACollectionSaved) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(comm, model, 2, SHARDREC_SHARDING_ROW_WISE));
    job.step(0);
    const auto saved = job.state();
    job.tables.save(directory.path("flat"));
    job.step(1);
    Checkpoint checkpoint(comm, directory.path("flat"));
    checkpoint.add("", job.tables);
    checkpoint.open();
    EXPECT_EQ(checkpoint.step(), 1);
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
    Job job(comm, nullptr, model, make_plan(comm, model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path(), &options);
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
    Checkpoint checkpoint(comm, directory.path(), &options);
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
      const shardrec_tensor info = checkpoint.tensor_info("settings", from);
      EXPECT_EQ(info.dtype, SHARDREC_UINT8);
      EXPECT_EQ(info.ndim, 1);
      EXPECT_EQ(info.shape[0], 3);
      EXPECT_EQ(info.data, nullptr);
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
    EXPECT_EQ(checkpoint.tensor_info("nothing", 0).shape[0], 0);
    std::vector<double> other(3);
    EXPECT_EQ(status_of([&] { checkpoint.get_tensor("only here", 1, other); }),
              SHARDREC_INVALID_ARGUMENT);
  });
}

TEST(CheckpointApi, RefusesWhatIsMisused) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(comm, model, 2, SHARDREC_SHARDING_ROW_WISE));
    EXPECT_EQ(status_of([&] { Checkpoint nameless(comm, ""); }), SHARDREC_INVALID_ARGUMENT);
    Checkpoint checkpoint(comm, directory.path());
    EXPECT_EQ(status_of([&] { checkpoint.commit(0); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.load(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { checkpoint.verify(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status_of([&] { (void)checkpoint.step(); }), SHARDREC_INVALID_STATE);
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

TEST(CheckpointApi, StepsThatDifferBetweenRanksAreAMismatch) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.set_tensor("x", std::vector<float>{1});
    EXPECT_EQ(status_of([&] { checkpoint.commit(rank); }), SHARDREC_MISMATCH);
  });
}

// A model, plan and group of ranks by chance, and what all its tables and states hold.
class RandomWorld {
 public:
  explicit RandomWorld(uint32_t seed) : random_(seed) {
    tables_ = 1 + random_() % 4;
    for (size_t t = 0; t < tables_; ++t) {
      shapes_.push_back(
          {1 + static_cast<int64_t>(random_() % 40), 1 + static_cast<int64_t>(random_() % 20)});
      dtypes_.push_back(
          std::vector{SHARDREC_FLOAT32, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}[random_() % 3]);
      optimizers_.push_back(static_cast<shardrec_optimizer>(1 + random_() % 8));
    }
  }

  shardrec::Model model() const {
    shardrec::Model model;
    for (size_t t = 0; t < tables_; ++t) {
      Options options(SHARDREC_OPTIONS_TABLE);
      options.set(SHARDREC_OPTION_DTYPE, dtypes_[t]);
      const std::string name = "table " + std::to_string(t);
      const int32_t table = model.add_table(name, shapes_[t].first, shapes_[t].second, &options);
      model.add_feature(table, "feature " + std::to_string(t));
      Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
      optimizer.set(SHARDREC_OPTION_OPTIMIZER, optimizers_[t]);
      model.set_table_optimizer(table, &optimizer);
    }
    return model;
  }

  // {sharding groups, their size}
  std::pair<int, int> ranks() {
    return {1 + static_cast<int>(random_() % 3), 1 + static_cast<int>(random_() % 3)};
  }
  shardrec_sharding sharding() { return static_cast<shardrec_sharding>(1 + random_() % 6); }

  // Writes numbers into all rows and states that a later read can be compared with.
  void fill(Collection& tables) const {
    each([&](int32_t table, shardrec_table_part part, int64_t rows, int64_t width) {
      std::vector<float> values(static_cast<size_t>(rows * width));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<float>(static_cast<int64_t>(i * 7 + static_cast<size_t>(table)) % 200);
      }
      tables.write(table, part, 0, rows, {values.data(), rows, width});
    });
  }
  std::vector<float> read(Collection& tables) const {
    std::vector<float> all;
    each([&](int32_t table, shardrec_table_part part, int64_t rows, int64_t width) {
      std::vector<float> values(static_cast<size_t>(rows * width));
      tables.read(table, part, 0, rows, {values.data(), rows, width});
      all.insert(all.end(), values.begin(), values.end());
    });
    return all;
  }

 private:
  template <class Visit>
  void each(const Visit& visit) const {
    for (size_t t = 0; t < tables_; ++t) {
      const auto table = static_cast<int32_t>(t);
      const auto [rows, dim] = shapes_[t];
      const shardrec_optimizer optimizer = optimizers_[t];
      visit(table, SHARDREC_TABLE_WEIGHTS, rows, dim);
      if (optimizer == SHARDREC_OPTIMIZER_SGD) continue;
      visit(table, SHARDREC_TABLE_STATE, rows,
            optimizer == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD ? 1 : dim);
      if (optimizer == SHARDREC_OPTIMIZER_ADAM || optimizer == SHARDREC_OPTIMIZER_LAMB) {
        visit(table, SHARDREC_TABLE_STATE_2, rows, dim);
      } else if (optimizer == SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM ||
                 optimizer == SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB) {
        visit(table, SHARDREC_TABLE_STATE_2, rows, 1);
      }
    }
  }

  std::mt19937 random_;
  size_t tables_ = 0;
  std::vector<std::pair<int64_t, int64_t>> shapes_;
  std::vector<shardrec_dtype> dtypes_;
  std::vector<shardrec_optimizer> optimizers_;
};

TEST(CheckpointApi, RoundTripsOfAnyModelPlanAndReplicasAreBitEqual) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Directory directory;
    RandomWorld world(seed);
    std::vector<float> expected;
    for (const bool saving : {true, false}) {
      const std::pair<int, int> ranks = world.ranks();
      const int groups = ranks.first;
      const int size = ranks.second;
      const shardrec_sharding sharding = world.sharding();
      run(groups * size, [&](Comm& comm, int rank) {
        std::optional<shardrec::Mesh> mesh;
        if (groups > 1) mesh.emplace(comm, size);
        const shardrec::Model model = world.model();
        const shardrec::Plan plan = make_plan(comm, model, size, sharding);
        Collection tables = mesh ? Collection(*mesh, model, plan) : Collection(comm, model, plan);
        Checkpoint checkpoint(comm, directory.path());
        checkpoint.add("tables", tables);
        if (saving) {
          world.fill(tables);
          tables.set_step(0);
          checkpoint.commit(seed);
        } else {
          checkpoint.open();
          checkpoint.verify();
          checkpoint.load();
        }
        auto all = world.read(tables);
        if (!saving) {
          EXPECT_EQ(all, expected) << "rank " << rank;
        }
        shardrec::check(shardrec_comm_barrier(comm.get()));
        if (saving && rank == 0) expected = std::move(all);
      });
    }
  }
}

}  // namespace
