// Stacks of all kinds in checkpoints: a run that goes on has the bits of one that never stopped.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"
#include "support/one_nan.h"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Mlp;

constexpr int64_t kInputs = 9;
constexpr int64_t kBatch = 40;

shardrec::MlpOptions options() {
  shardrec::MlpOptions options;
  options.seed(21).threads(2).optimizer("adam").learning_rate(0.01);
  return options;
}

Mlp make() {
  Mlp mlp(kInputs, options());
  mlp.add_cross().add_cross(2).add_dropout(0.25).add_layer_norm(0.001).add_linear(5);
  mlp.add_dropout(0.5).add_linear(1, SHARDREC_ACTIVATION_NONE);
  return mlp;
}

// Training steps [first, last); the outputs of all, and of an evaluation behind each.
std::vector<float> train(Mlp& mlp, int first, int last) {
  std::vector<float> all;
  for (int step = first; step < last; ++step) {
    std::mt19937 random(static_cast<unsigned>(step));
    std::normal_distribution<float> normal;
    std::vector<float> x(kBatch * kInputs), y(kBatch), dy(kBatch);
    for (float& v : x) v = normal(random);
    for (float& v : dy) v = normal(random);
    mlp.forward({x.data(), kBatch, kInputs}, {y.data(), kBatch, 1});
    all.insert(all.end(), y.begin(), y.end());
    mlp.backward({dy.data(), kBatch, 1});
    mlp.step();
    mlp.set_training(false);
    mlp.forward({x.data(), kBatch, kInputs}, {y.data(), kBatch, 1});
    all.insert(all.end(), y.begin(), y.end());
    mlp.set_training(true);
  }
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

TEST(LayersCheckpoint, ARunThatGoesOnHasTheBitsOfOneThatNeverStopped) {
  Directory directory;
  std::vector<float> expected;
  run(1, [&](shardrec::Comm& comm, int) {
    Mlp mlp = make();
    (void)train(mlp, 0, 3);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("layers", mlp);
    checkpoint.commit(3);
    expected = train(mlp, 3, 6);
  });
  run(1, [&](shardrec::Comm& comm, int) {
    Mlp mlp = make();
    (void)train(mlp, 0, 1);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("layers", mlp);
    checkpoint.open();
    checkpoint.load();
    EXPECT_TRUE(same(train(mlp, 3, 6), expected)) << "into a stack that has trained";
  });
  run(1, [&](shardrec::Comm& comm, int) {
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.open();
    Mlp mlp = checkpoint.mlp("layers", options());
    EXPECT_EQ(mlp.info().layers, 7);
    EXPECT_EQ(mlp.info().parameters, 2 + 3 + 2 + 2 + 2);
    checkpoint.add("layers", mlp);
    checkpoint.load();
    EXPECT_TRUE(same(train(mlp, 3, 6), expected)) << "into a stack that the checkpoint describes";
  });
}

TEST(LayersCheckpoint, AStackOfOtherKindsIsRefused) {
  Directory directory;
  run(1, [&](shardrec::Comm& comm, int) {
    Mlp saved(kInputs);
    saved.add_linear(4).add_linear(1);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("layers", saved);
    checkpoint.commit(1);
  });
  run(1, [&](shardrec::Comm& comm, int) {
    Mlp other(kInputs);
    other.add_linear(4).add_dropout(0.5).add_linear(1);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("layers", other);
    checkpoint.open();
    EXPECT_THROW(checkpoint.load(), shardrec::Error);
  });
}

}  // namespace
}  // namespace shardrec_test
