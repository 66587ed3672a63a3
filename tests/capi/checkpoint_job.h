// A small model in training and the directories of its checkpoints, through the C++ header.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace shardrec_test {

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    root_ = pattern;
  }
  // Who gives a commit up does not wait for its thread, which removes the same files.
  ~Directory() {
    std::error_code error;
    for (int tries = 0; tries < 1000; ++tries) {
      std::filesystem::remove_all(root_, error);
      if (!error) return;
      std::this_thread::yield();
    }
    ADD_FAILURE() << root_ << " cannot be removed: " << error.message();
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path(const std::string& name = "run") const { return root_ + "/" + name; }

 private:
  std::string root_;
};

// Runs body on `ranks` threads; what one throws fails the test.
template <class Body>
inline void run(int ranks, const Body& body) {
  shardrec::Local group(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      shardrec::Comm comm(group, rank);
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
  } catch (const shardrec::Error& error) {
    if (sentence != nullptr) *sentence = error.what();
    return error.status();
  }
  return SHARDREC_OK;
}

inline constexpr int64_t kBatch = 4;
inline constexpr int64_t kDims = 8 + 6;
inline constexpr int64_t kRows[] = {37, 11};

inline shardrec::Model make_model() {
  shardrec::Model model;
  shardrec::Options half(SHARDREC_OPTIONS_TABLE);
  half.set(SHARDREC_OPTION_DTYPE, SHARDREC_BFLOAT16);
  model.add_feature(model.add_table("user", kRows[0], 8), "user_id");
  model.add_feature(model.add_table("item", kRows[1], 6, half), "item_id", SHARDREC_POOLING_MEAN);
  shardrec::Options adam(SHARDREC_OPTIONS_OPTIMIZER);
  adam.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ADAM);
  adam.set(SHARDREC_OPTION_LEARNING_RATE, 0.05);
  model.set_optimizer(adam);
  shardrec::Options rowwise(SHARDREC_OPTIONS_OPTIMIZER);
  rowwise.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
  model.set_optimizer(1, rowwise);
  return model;
}

inline shardrec::Plan make_plan(const shardrec::Model& model, int ranks,
                                shardrec_sharding sharding) {
  shardrec::Options options(SHARDREC_OPTIONS_PLAN);
  options.set(SHARDREC_OPTION_SHARDING, sharding);
  return shardrec::Plan(model, shardrec::Topology(ranks), options);
}

// "user" cut by rows, "item" on every rank.
inline shardrec::Plan half_replicated_plan(const shardrec::Model& model, int ranks,
                                           shardrec_replication way) {
  shardrec::Plan plan = shardrec::Plan::empty(model, shardrec::Topology(ranks));
  const int64_t each = (kRows[0] + ranks - 1) / ranks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const int64_t row = rank * each;
    plan.add_box(0, {.rank = rank, .row = row, .rows = std::min(each, kRows[0] - row), .cols = 8});
  }
  plan.replicate(1, way);
  return plan;
}

inline shardrec::Options mlp_options() {
  shardrec::Options options(SHARDREC_OPTIONS_MLP);
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
  Job(shardrec::Comm& comm, shardrec::Mesh* mesh, const shardrec::Model& model,
      const shardrec::Plan& plan, std::optional<shardrec::Mlp> stack = std::nullopt)
      : tables(mesh == nullptr ? shardrec::Collection(comm, model, plan)
                               : shardrec::Collection(comm, *mesh, model, plan)),
        lookup_(tables),
        layers(stack ? std::move(*stack) : make_layers()),
        ddp(comm),
        rank_(comm.rank()) {
    for (int32_t p = 0; p < layers.info().parameters; ++p) {
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
      tables.read_range(table, part, 0, kRows[table], {rows.data(), kRows[table], width});
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
    for (int32_t p = 0; p < layers.info().parameters; ++p) {
      const shardrec_tensor value = *layers.parameter(p).value.get();
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

  shardrec::Collection tables;

 private:
  shardrec::Lookup lookup_;

 public:
  shardrec::Mlp layers;
  shardrec::Ddp ddp;
  std::vector<float> bias = {0.25F};

 private:
  static shardrec::Mlp make_layers() {
    const shardrec::Options options = mlp_options();
    shardrec::Mlp mlp(kDims, options);
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

inline void add_all(shardrec::Checkpoint& checkpoint, Job& job) {
  checkpoint.add("tables", job.tables);
  checkpoint.add("layers", job.layers);
  checkpoint.add("host", job.own_ddp());
}

// Damages one byte of the data of a step's first file.
inline void damage(const std::string& directory) {
  const std::string path = directory + "/rank_00000.safetensors";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(last);
}

}  // namespace shardrec_test
