// What a scorer refuses: batches, outputs, options, checkpoints; and that nothing is written then.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "serving/served.h"

namespace shardrec_test {
namespace {

using shardrec::Error;
using shardrec::Scorer;
using shardrec::ScorerOptions;

class Refused : public ::testing::Test {
 protected:
  void SetUp() override { train(directory_.path(), {.ranks = 2, .steps = {3}}); }
  Directory directory_;
};

void expect_refused(const std::function<void()>& call, shardrec_status status,
                    const std::string& part) {
  std::string sentence;
  EXPECT_EQ(status_of(call, &sentence), status) << sentence;
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
}

TEST_F(Refused, ABadBatchIsToldWithItsPlaceAndWritesNothing) {
  const Scorer scorer(directory_.path());
  ServedBatch batch = random_batch(1, 8);
  std::vector<float> out(static_cast<size_t>(batch.size * kWidth), -7.0F);
  const auto call = [&] {
    scorer.lookup(0, {.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
                  shardrec::Matrix(out.data(), batch.size, kWidth));
  };
  const size_t last = batch.values.size() - 1;
  const int64_t good = batch.values[last];
  batch.values[last] = kTableRows[2];
  try {
    call();
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_BATCH);
    EXPECT_EQ(error.table(), "c");
    EXPECT_EQ(error.feature(), "c0");
    EXPECT_EQ(error.position(), static_cast<int64_t>(last));
    EXPECT_EQ(error.value(), kTableRows[2]);
    EXPECT_EQ(error.limit(), kTableRows[2]);
    EXPECT_EQ(error.operation(), "scorer_lookup");
    EXPECT_FALSE(error.rank().has_value());
    EXPECT_EQ(std::string(error.what()).find("the batch was refused in scorer_lookup: "), 0U)
        << error.what();
  }
  batch.values[last] = good;
  batch.lengths[0] += 1;
  expect_refused(call, SHARDREC_INVALID_BATCH, "lengths add up to");
  batch.lengths[0] = -1;
  expect_refused(call, SHARDREC_INVALID_BATCH, "must not be negative");
  for (const float x : out) ASSERT_EQ(x, -7.0F);
}

TEST_F(Refused, NumbersThatAreNotFiniteWhereTheOptionSaysSo) {
  ServedBatch batch = random_batch(1, 8);
  std::vector<float> out(static_cast<size_t>(batch.size * kWidth));
  std::vector<float> scores(static_cast<size_t>(batch.size));
  const auto look_up = [&](const Scorer& scorer) {
    scorer.lookup(0,
                  {.batch_size = batch.size,
                   .values = batch.values,
                   .lengths = batch.lengths,
                   .weights = batch.weights},
                  shardrec::Matrix(out.data(), batch.size, kWidth));
  };
  const auto predict = [&](const Scorer& scorer) {
    scorer.predict({.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
                   {batch.dense.data(), batch.size, kDense},
                   shardrec::Matrix(scores.data(), batch.size, 1));
  };
  const Scorer strict(directory_.path(), -1, shardrec::ScorerOptions().non_finite("error"));
  look_up(strict);
  predict(strict);
  batch.weights[7] = HUGE_VALF;
  batch.dense[4] = std::nanf("");
  look_up(Scorer(directory_.path()));
  predict(Scorer(directory_.path()));
  expect_refused([&] { look_up(strict); }, SHARDREC_INVALID_BATCH, "weights[7] is NaN or infinite");
  expect_refused([&] { predict(strict); }, SHARDREC_INVALID_ARGUMENT,
                 "dense is NaN or infinite at row 1, column 1");
  expect_refused(
      [&] { Scorer(directory_.path(), -1, shardrec::ScorerOptions().non_finite("skip")); },
      SHARDREC_INVALID_ARGUMENT, "NON_FINITE");
}

TEST_F(Refused, ArgumentsThatDoNotFit) {
  const Scorer scorer(directory_.path());
  const ServedBatch batch = random_batch(1, 8);
  std::vector<float> out(static_cast<size_t>(batch.size * kWidth));
  const auto look = [&](int32_t output, const shardrec::Matrix& into) {
    scorer.lookup(
        output, {.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths}, into);
  };
  expect_refused([&] { look(2, {out.data(), 8, kWidth}); }, SHARDREC_NOT_FOUND,
                 "there is no output 2; the model has 2 outputs");
  expect_refused([&] { look(-1, {out.data(), 8, kWidth}); }, SHARDREC_NOT_FOUND, "output -1");
  expect_refused([&] { look(0, {out.data(), 7, kWidth}); }, SHARDREC_INVALID_ARGUMENT, "out");
  expect_refused([&] { look(0, {out.data(), 8, kWidth - 1}); }, SHARDREC_INVALID_ARGUMENT, "out");
  expect_refused([&] { look(0, shardrec::Matrix(nullptr)); }, SHARDREC_INVALID_ARGUMENT, "out");
  expect_refused(
      [&] { look(0, shardrec::Matrix(static_cast<void*>(out.data()), SHARDREC_INT32, 8, kWidth)); },
      SHARDREC_INVALID_ARGUMENT, "float32, float16 and bfloat16 are accepted");
  expect_refused(
      [&] {
        scorer.lookup(0, {.batch_size = 8, .values = nullptr, .lengths = batch.lengths},
                      {out.data(), 8, kWidth});
      },
      SHARDREC_INVALID_BATCH, "values is NULL");
  expect_refused(
      [&] {
        scorer.lookup(0, {.batch_size = -1, .values = batch.values, .lengths = batch.lengths},
                      {out.data(), 8, kWidth});
      },
      SHARDREC_INVALID_BATCH, "batch_size is -1");
  std::vector<float> scores(8);
  const auto score = [&](const shardrec::Matrix& dense, const shardrec::Tensor& into) {
    scorer.predict({.batch_size = 8, .values = batch.values, .lengths = batch.lengths}, dense,
                   into);
  };
  expect_refused([&] { score({batch.dense.data(), 8, kDense - 1}, shardrec::Vector(scores)); },
                 SHARDREC_INVALID_ARGUMENT, "dense");
  expect_refused([&] { score(nullptr, shardrec::Vector(scores)); }, SHARDREC_INVALID_ARGUMENT,
                 "dense");
  expect_refused(
      [&] { score({batch.dense.data(), 8, kDense}, shardrec::Vector(scores.data(), 7)); },
      SHARDREC_INVALID_ARGUMENT, "out");
  expect_refused([&] { score({batch.dense.data(), 8, kDense}, nullptr); },
                 SHARDREC_INVALID_ARGUMENT, "out");
}

TEST_F(Refused, CheckpointsAndOptionsThatAreNotThere) {
  const auto open = [&](const std::string& path, int64_t step) {
    return [=] { Scorer(path, step); };
  };
  expect_refused(open(directory_.path("none"), -1), SHARDREC_NOT_FOUND, "none");
  expect_refused(open(directory_.path(), 99), SHARDREC_NOT_FOUND, "no checkpoint of step 99");
  expect_refused(open(directory_.path(), -2), SHARDREC_INVALID_ARGUMENT, "step is -2");
  expect_refused(open("", -1), SHARDREC_INVALID_ARGUMENT, "no name");
  const auto open_with = [&](const ScorerOptions& options) {
    return [&] { Scorer(directory_.path(), -1, options); };
  };
  expect_refused(open_with(ScorerOptions().collection("x")), SHARDREC_NOT_FOUND, "\"x\"");
  expect_refused(open_with(ScorerOptions().layers("x", "top")), SHARDREC_NOT_FOUND, "\"x\"");
  // The wrong way round: their columns do not fit.
  expect_refused(open_with(ScorerOptions().layers("top", "bottom")), SHARDREC_INVALID_ARGUMENT,
                 "no DLRM's");
  expect_refused([&] { Scorer(directory_.path(), -1, shardrec::TableOptions()); },
                 SHARDREC_INVALID_ARGUMENT, "kind TABLE; kind SCORER is accepted");
  shardrec_scorer* scorer = nullptr;
  EXPECT_EQ(shardrec_scorer_open(nullptr, -1, nullptr, nullptr, &scorer),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_scorer_open(directory_.path().c_str(), -1, nullptr, nullptr, nullptr),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_scorer_info(nullptr, nullptr), SHARDREC_INVALID_HANDLE);
}

TEST_F(Refused, AnOpenThatIsCancelledEndsSo) {
  shardrec::Control control;
  control.cancel();
  EXPECT_EQ(status_of([&] { Scorer(directory_.path(), -1, {}, &control); }), SHARDREC_CANCELLED);
  shardrec::Control counted;
  const Scorer scorer(directory_.path(), -1, {}, &counted);
  EXPECT_EQ(counted.progress().done, counted.progress().total);
  EXPECT_GT(counted.progress().total, 0);
}

std::vector<std::filesystem::path> files_of(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  return files;
}

// Any byte of the weights of tables and of layers: damage is told at open, wherever tables are kept.
TEST_F(Refused, DamagedFiles) {
  const auto info = shardrec::Checkpoint::list_json(directory_.path());
  ASSERT_NE(info.find("\"latest\""), std::string::npos);
  int flipped = 0;
  for (const auto& file : files_of(directory_.path())) {
    std::string bytes;
    {
      std::ifstream in(file, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto write = [&](const std::string& content) {
      std::ofstream(file, std::ios::binary).write(content.data(), std::ssize(content));
    };
    // States are not served, hence not read: weights of tables and parameters of layers are.
    const auto served = [&](size_t at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x40);
      write(changed);
      int refusals = 0;
      for (const char* kind : {"memory", "mapped", "int8"}) {
        refusals += status_of([&] {
                      Scorer(directory_.path(), -1, ScorerOptions().tables(kind));
                    }) == SHARDREC_CORRUPT_DATA;
      }
      write(bytes);
      return refusals;
    };
    for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 60) {
      const int refusals = served(at);
      EXPECT_TRUE(refusals == 0 || refusals == 3) << file << " byte " << at;
      flipped += refusals == 3;
    }
    write(bytes.substr(0, bytes.size() - 1));
    EXPECT_EQ(status_of([&] { Scorer(directory_.path()); }), SHARDREC_CORRUPT_DATA) << file;
    write(bytes);
  }
  EXPECT_GT(flipped, 50);
  EXPECT_EQ(status_of([&] { Scorer(directory_.path()); }), SHARDREC_OK);
}

}  // namespace
}  // namespace shardrec_test
