#include "checkpoint/contents/mlp_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/contents/layers.h"
#include "comm/world.h"
#include "dense/reference.h"

namespace shardrec::checkpoint {
namespace {

using dense::Mlp;
using dense::test::Rows;

class MlpFile : public testing::Test {
 protected:
  MlpFile()
      : path_(testing::TempDir() + "shardrec_mlp_" + std::to_string(getpid()) + ".safetensors") {}
  ~MlpFile() override { std::filesystem::remove(path_); }

  shardrec_status load_status(Mlp& mlp, std::string* sentence = nullptr) const {
    const auto error = comm::error_of([&] { load_mlp(mlp, path_); });
    if (error && sentence != nullptr) *sentence = error->sentence();
    return error ? error->status() : SHARDREC_OK;
  }

  std::string path_;
};

std::unique_ptr<Mlp> make(shardrec_optimizer kind, int64_t hidden = 7, uint64_t seed = 1) {
  auto mlp = std::make_unique<Mlp>(
      5, dense::MlpOptions{.optimizer = {.kind = kind, .learning_rate = 0.1}, .seed = seed});
  mlp->add_linear(hidden, SHARDREC_ACTIVATION_RELU);
  mlp->add_linear(2, SHARDREC_ACTIVATION_NONE);
  return mlp;
}

void train(Mlp& mlp, int steps) {
  std::mt19937 random(3);
  Rows input(20, 5), output(20, 2), gradient(20, 2);
  for (int i = 0; i < steps; ++i) {
    input.fill(random);
    gradient.fill(random);
    mlp.forward(input.view(), output.view());
    mlp.backward(gradient.view(), {});
    mlp.step();
  }
}

std::vector<float> everything(Mlp& mlp) {
  const dense::Parameters& parameters = mlp.parameters();
  std::vector<float> all(parameters.values(), parameters.values() + parameters.size());
  const size_t states = dense::state_names(parameters.optimizer().kind).size();
  for (size_t s = 0; s < states; ++s) {
    const float* state = parameters.state(static_cast<int>(s));
    all.insert(all.end(), state, state + parameters.size());
  }
  return all;
}

TEST_F(MlpFile, TrainingGoesOnAfterLoadingWithTheSameBits) {
  for (const auto kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    auto saved = make(kind);
    train(*saved, 3);
    save_mlp(*saved, path_);
    auto loaded = make(kind, 7, 99);
    load_mlp(*loaded, path_);
    EXPECT_EQ(loaded->parameters().steps(), 3);
    EXPECT_EQ(everything(*saved), everything(*loaded));
    train(*saved, 2);
    train(*loaded, 2);
    EXPECT_EQ(everything(*saved), everything(*loaded));
  }
}

// As checkpoints describe a stack: with all settings of its optimizer.
TEST_F(MlpFile, ADescriptionMakesAStackWithTheSameOptimizer) {
  for (const auto kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    const plan::Optimizer optimizer{.kind = kind,
                                    .learning_rate = 0.1,
                                    .weight_decay = 0.01,
                                    .weight_decay_mode = SHARDREC_WEIGHT_DECAY_L2,
                                    .momentum = 0.75};
    Mlp saved(5, dense::MlpOptions{.optimizer = optimizer});
    saved.add_linear(2, SHARDREC_ACTIVATION_RELU);
    saved.parameters().set_learning_rate(0.5);
    const auto made = make_layers(describe_layers(saved), {}, "a file");
    EXPECT_EQ(made->parameters().optimizer(), optimizer) << kind;
  }
}

TEST_F(MlpFile, AFileOfAnotherStackIsRefusedAndNothingChanges) {
  auto saved = make(SHARDREC_OPTIMIZER_ADAGRAD);
  save_mlp(*saved, path_);
  std::string sentence;
  const auto expect_refused = [&](std::unique_ptr<Mlp> other, const char* part) {
    const std::vector<float> before = everything(*other);
    EXPECT_EQ(load_status(*other, &sentence), SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_EQ(everything(*other), before);
  };
  expect_refused(make(SHARDREC_OPTIMIZER_ADAM), "tensors");
  expect_refused(make(SHARDREC_OPTIMIZER_SGD), "tensors");
  expect_refused(make(SHARDREC_OPTIMIZER_MOMENTUM_SGD), "layer.0.weight.momentum");
  expect_refused(make(SHARDREC_OPTIMIZER_ADAGRAD, 8), "layer.0.weight");
  auto deeper = make(SHARDREC_OPTIMIZER_ADAGRAD);
  deeper->add_linear(3, SHARDREC_ACTIVATION_NONE);
  expect_refused(std::move(deeper), "tensors");
}

TEST_F(MlpFile, MissingAndDamagedFilesAreRefusedAndNothingChanges) {
  auto mlp = make(SHARDREC_OPTIMIZER_ADAM);
  const std::vector<float> before = everything(*mlp);
  EXPECT_EQ(load_status(*mlp), SHARDREC_NOT_FOUND);
  save_mlp(*make(SHARDREC_OPTIMIZER_ADAM, 7, 2), path_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_EQ(load_status(*mlp), SHARDREC_CORRUPT_DATA);
  std::ofstream(path_, std::ios::binary) << "not a safetensors file at all";
  EXPECT_EQ(load_status(*mlp), SHARDREC_CORRUPT_DATA);
  EXPECT_EQ(everything(*mlp), before);
}

TEST_F(MlpFile, AnyFlippedBitIsNoticedAndNothingChanges) {
  auto saved = make(SHARDREC_OPTIMIZER_ADAGRAD);
  train(*saved, 2);
  save_mlp(*saved, path_);
  std::ifstream in(path_, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  auto mlp = make(SHARDREC_OPTIMIZER_ADAGRAD, 7, 99);
  const std::vector<float> before = everything(*mlp);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << (bit % 8));
    std::ofstream(path_, std::ios::binary) << bad;
    ASSERT_NE(load_status(*mlp), SHARDREC_OK) << "bit " << bit;
  }
  EXPECT_EQ(everything(*mlp), before);
  std::ofstream(path_, std::ios::binary) << good;
  EXPECT_EQ(load_status(*mlp), SHARDREC_OK);
}

TEST_F(MlpFile, OfSeveralThatSaveAtOnceOneStaysWhole) {
  std::vector<std::unique_ptr<Mlp>> stacks;
  for (int i = 0; i < 4; ++i)
    stacks.push_back(make(SHARDREC_OPTIMIZER_ADAM, 7, 10 + static_cast<uint64_t>(i)));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (const auto& stack : stacks) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        if (comm::error_of([&] { save_mlp(*stack, path_); })) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  auto loaded = make(SHARDREC_OPTIMIZER_ADAM);
  ASSERT_EQ(load_status(*loaded), SHARDREC_OK);
  EXPECT_EQ(
      std::count_if(stacks.begin(), stacks.end(),
                    [&](const auto& stack) { return everything(*stack) == everything(*loaded); }),
      1);
  // No temporary file is left.
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
    files += entry.path().string().starts_with(path_) ? 1 : 0;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(MlpFile, SavingToAFolderThatDoesNotExistIsAnIoError) {
  auto mlp = make(SHARDREC_OPTIMIZER_SGD);
  const auto error = comm::error_of([&] { save_mlp(*mlp, "/nonexistent/folder/file"); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->status() == SHARDREC_IO_ERROR || error->status() == SHARDREC_NOT_FOUND)
      << error->sentence();
}

}  // namespace
}  // namespace shardrec::checkpoint
