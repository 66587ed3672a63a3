// Checkpoints to serve, and what a lookup of one rank and the layers say of the same batches.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"
#include "support/one_nan.h"

namespace shardrec_test {

// Table "a" (float32): a pooled feature, a sequence and another pooled feature. "b" (bfloat16): MEAN.
// "c" (float16): SUM. All pooled features have kDim columns, so that they fit an interaction.
inline constexpr int64_t kDim = 12;
inline constexpr int64_t kTableRows[] = {97, 53, 31};
inline constexpr int64_t kFeatures = 5;
inline constexpr int kTableOf[kFeatures] = {0, 0, 0, 1, 2};
inline constexpr int64_t kPooled = 4;
inline constexpr int64_t kWidth = kPooled * kDim;
inline constexpr int64_t kDense = 3;

inline shardrec::Model served_model(shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR) {
  shardrec::Model model;
  const auto table = [&](const char* name, int64_t rows, shardrec_dtype dtype) {
    return model.add_table(name, rows, kDim,
                           shardrec::TableOptions().dtype(dtype).out_of_range(policy));
  };
  const int32_t a = table("a", kTableRows[0], SHARDREC_FLOAT32);
  const int32_t b = table("b", kTableRows[1], SHARDREC_BFLOAT16);
  const int32_t c = table("c", kTableRows[2], SHARDREC_FLOAT16);
  model.add_feature(a, "a0");
  model.add_feature(a, "a_sequence", SHARDREC_POOLING_NONE);
  model.add_feature(a, "a1");
  model.add_feature(b, "b0", SHARDREC_POOLING_MEAN);
  model.add_feature(c, "c0");
  model.set_optimizer(shardrec::OptimizerOptions().optimizer("rowwise_adagrad").learning_rate(0.1));
  return model;
}

struct ServedBatch {
  int64_t size = 0;
  std::vector<float> dense;
  std::vector<int64_t> values;
  std::vector<int64_t> lengths;
  std::vector<float> weights;
  int64_t sequence_ids = 0;
};

// wild: ids beyond both ends of the tables too.
inline ServedBatch random_batch(uint64_t seed, int64_t size, bool wild = false) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  ServedBatch batch;
  batch.size = size;
  for (int64_t i = 0; i < size * kDense; ++i) {
    batch.dense.push_back(static_cast<float>(below(2001) - 1000) / 500.0F);
  }
  for (int64_t f = 0; f < kFeatures; ++f) {
    const int64_t rows = kTableRows[kTableOf[f]];
    for (int64_t s = 0; s < size; ++s) {
      batch.lengths.push_back(below(5));
      for (int64_t i = 0; i < batch.lengths.back(); ++i) {
        batch.values.push_back(wild ? below(2 * rows) - rows / 2 : below(rows));
        batch.weights.push_back(static_cast<float>(below(401) - 200) / 100.0F);
      }
      if (f == 1) batch.sequence_ids += batch.lengths.back();
    }
  }
  return batch;
}

// Which layers the stacks have.
enum class Layers { kLinear, kAllKinds };

// Two stacks of layers of a DLRM with the model's features, in evaluation.
struct Net {
  explicit Net(Layers layers = Layers::kLinear)
      : bottom(kDense, shardrec::MlpOptions().seed(11).threads(1)),
        top(interaction().outputs(), shardrec::MlpOptions().seed(12).threads(1)) {
    const bool all = layers == Layers::kAllKinds;
    if (all) bottom.add_cross().add_dropout(0.2);
    bottom.add_linear(20, SHARDREC_ACTIVATION_RELU);
    if (all) bottom.add_cross(3).add_cross().add_layer_norm().add_cross(30);
    bottom.add_linear(kDim);
    if (all) top.add_layer_norm(0.1).add_cross().add_cross(5).add_cross().add_dropout(0.5);
    top.add_linear(9, SHARDREC_ACTIVATION_RELU);
    top.add_linear(1);
    if (all) top.add_cross().add_dropout(0.1);
    bottom.set_training(false);
    top.set_training(false);
  }
  static shardrec::Interaction interaction() {
    return {kPooled, kDim, shardrec::MlpOptions().threads(1)};
  }

  std::vector<float> logits(const ServedBatch& batch, const std::vector<float>& pooled) {
    const int64_t n = batch.size;
    auto cross = interaction();
    std::vector<float> vectors(static_cast<size_t>(n * kDim));
    std::vector<float> crossed(static_cast<size_t>(n * cross.outputs()));
    std::vector<float> out(static_cast<size_t>(n));
    bottom.forward({batch.dense.data(), n, kDense}, {vectors.data(), n, kDim});
    cross.forward({vectors.data(), n, kDim}, {pooled.data(), n, kWidth},
                  {crossed.data(), n, cross.outputs()});
    top.forward({crossed.data(), n, cross.outputs()}, {out.data(), n, 1});
    return out;
  }
  std::vector<float> scores(const ServedBatch& batch, const std::vector<float>& pooled) {
    const std::vector<float> z = logits(batch, pooled);
    std::vector<float> out(z.size());
    const std::vector<float> labels(z.size(), 0.0F);
    shardrec::bce_with_logits(z, labels, out);
    return out;
  }

  shardrec::Mlp bottom;
  shardrec::Mlp top;
};

struct Trained {
  int ranks = 1;
  shardrec_sharding sharding = SHARDREC_SHARDING_TABLE_WISE;
  shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR;
  std::vector<int64_t> steps = {1};  // a commit at each, after a step of training
  Layers layers = Layers::kLinear;
  int64_t samples = 16;  // of a step
  bool deltas = false;   // commits behind the first one are deltas
  int64_t most_deltas = 100;
  bool delta_states = true;
};

inline void train(const std::string& directory, const Trained& job) {
  run(job.ranks, [&](shardrec::Comm& comm, int rank) {
    const shardrec::Model model = served_model(job.policy);
    shardrec::Collection tables(comm, model, make_plan(model, job.ranks, job.sharding),
                                shardrec::CollectionOptions().seed(3).threads(1));
    shardrec::Lookup lookup(tables);
    Net net(job.layers);
    shardrec::Checkpoint checkpoint(
        comm, directory,
        shardrec::CheckpointOptions().most_deltas(job.most_deltas).delta_states(job.delta_states));
    checkpoint.add("tables", tables);
    checkpoint.add("bottom", net.bottom);
    checkpoint.add("top", net.top);
    for (const int64_t step : job.steps) {
      const ServedBatch batch = random_batch(static_cast<uint64_t>(100 * step + rank), job.samples);
      std::vector<float> pooled(static_cast<size_t>(batch.size * kWidth));
      std::vector<float> rows(static_cast<size_t>(batch.sequence_ids * kDim));
      lookup.begin(batch.size, batch.values, batch.lengths);
      lookup.forward(0, {pooled.data(), batch.size, kWidth});
      lookup.forward(1, {rows.data(), batch.sequence_ids, kDim});
      for (float& x : pooled) x += 0.5F;
      lookup.set_gradient(0, {pooled.data(), batch.size, kWidth});
      lookup.set_gradient(1, {rows.data(), batch.sequence_ids, kDim});
      lookup.backward();
      for (auto* stack : {&net.bottom, &net.top}) {
        for (int32_t p = 0; p < stack->info().parameters; ++p) {
          const auto parameter = stack->parameter(p).value;
          for (int64_t i = 0; i < parameter.elements(); ++i) {
            parameter.data<float>()[i] += 0.01F * static_cast<float>(step % 7);
          }
        }
      }
      if (job.deltas) {
        EXPECT_EQ(checkpoint.commit_delta(step), step != job.steps.front());
      } else {
        checkpoint.commit(step);
      }
    }
  });
}

// A checkpoint on one rank: what the scorer is compared with.
class OneRank {
 public:
  explicit OneRank(const std::string& directory, int64_t step = -1, Layers layers = Layers::kLinear)
      : comm_(group_, 0), checkpoint_(comm_, directory), net_(layers) {
    checkpoint_.open(step);
    model_.emplace(checkpoint_.model("tables"));
    tables_.emplace(comm_, *model_, make_plan(*model_, 1, SHARDREC_SHARDING_TABLE_WISE),
                    shardrec::CollectionOptions().threads(1));
    checkpoint_.add("tables", *tables_);
    checkpoint_.add("bottom", net_.bottom);
    checkpoint_.add("top", net_.top);
    checkpoint_.load();
    lookup_.emplace(*tables_);
  }

  std::vector<float> look_up(const ServedBatch& batch, int32_t output, bool weighted = false) {
    lookup_->begin(batch.size, batch.values, batch.lengths,
                   weighted ? shardrec::Vector(batch.weights) : shardrec::Vector(nullptr));
    const int64_t rows = output == 0 ? batch.size : batch.sequence_ids;
    const int64_t columns = output == 0 ? kWidth : kDim;
    std::vector<float> out(static_cast<size_t>(rows * columns));
    lookup_->forward(output, {out.data(), rows, columns});
    return out;
  }
  Net& net() { return net_; }
  shardrec::Lookup& lookup() { return *lookup_; }

 private:
  shardrec::Local group_{1};
  shardrec::Comm comm_;
  shardrec::Checkpoint checkpoint_;
  std::optional<shardrec::Model> model_;
  std::optional<shardrec::Collection> tables_;
  std::optional<shardrec::Lookup> lookup_;
  Net net_;
};

inline std::vector<float> look_up(const shardrec::Scorer& scorer, const ServedBatch& batch,
                                  int32_t output, bool weighted = false, int64_t* step = nullptr) {
  const int64_t rows = output == 0 ? batch.size : batch.sequence_ids;
  const int64_t columns = output == 0 ? kWidth : kDim;
  std::vector<float> out(static_cast<size_t>(rows * columns), -7.0F);
  const int64_t by = scorer.lookup(
      output,
      {.batch_size = batch.size,
       .values = batch.values,
       .lengths = batch.lengths,
       .weights = weighted ? shardrec::Vector(batch.weights) : shardrec::Vector(nullptr)},
      {out.data(), rows, columns});
  if (step != nullptr) *step = by;
  return out;
}

inline std::vector<float> predict(const shardrec::Scorer& scorer, const ServedBatch& batch,
                                  int64_t* step = nullptr) {
  std::vector<float> out(static_cast<size_t>(batch.size), -7.0F);
  const int64_t by =
      scorer.predict({.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
                     {batch.dense.data(), batch.size, kDense}, shardrec::Vector(out));
  if (step != nullptr) *step = by;
  return out;
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

}  // namespace shardrec_test
