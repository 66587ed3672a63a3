// Stacks of all kinds trained data-parallel: what ranks get is the mean of what each has alone, also where
// backward tells of gradients in parts that cut a run of cross layers in two.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"
#include "support/one_nan.h"

namespace shardrec_test {
namespace {

using shardrec::Mlp;

constexpr int kRanks = 2;
constexpr int64_t kRowsOfRank = 37;

Mlp make_kinds(int64_t inputs, int rank, const char* precision) {
  shardrec::MlpOptions options;
  options.seed(5 + rank).threads(1).optimizer("sgd").precision(precision);
  Mlp mlp(inputs, options);
  mlp.add_dropout(0.1).add_layer_norm().add_cross().add_cross(9).add_cross().add_dropout(0.3);
  mlp.add_linear(6).add_cross().add_layer_norm(0.1).add_dropout(0.2).add_linear(2);
  return mlp;
}

// The gradients of a batch that is the rank's in this step.
void train_kinds(Mlp& mlp, int rank, int step) {
  std::mt19937 random(static_cast<unsigned>(10 * step + rank));
  std::normal_distribution<float> normal;
  const int64_t inputs = mlp.info().inputs;
  std::vector<float> x(static_cast<size_t>(kRowsOfRank * inputs)), y(kRowsOfRank * 2),
      dy(kRowsOfRank * 2);
  for (float& v : x) v = normal(random);
  for (float& v : dy) v = normal(random);
  mlp.forward({x.data(), kRowsOfRank, inputs}, {y.data(), kRowsOfRank, 2});
  mlp.backward({dy.data(), kRowsOfRank, 2});
}

std::vector<float> all_of(Mlp& mlp, bool gradients) {
  std::vector<float> all;
  for (int32_t p = 0; p < mlp.info().parameters; ++p) {
    const auto parameter = mlp.parameter(p);
    const auto& of = gradients ? parameter.gradient : parameter.value;
    all.insert(all.end(), of.data<float>(), of.data<float>() + of.elements());
  }
  return all;
}

void write(Mlp& mlp, const std::vector<float>& values) {
  const float* from = values.data();
  for (int32_t p = 0; p < mlp.info().parameters; ++p) {
    const auto value = mlp.parameter(p).value;
    std::copy_n(from, value.elements(), value.data<float>());
    from += value.elements();
  }
}

bool same_values(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

void expect_mean(int64_t inputs, const char* precision = "float32") {
  run(kRanks, [&](shardrec::Comm& comm, int rank) {
    Mlp mlp = make_kinds(inputs, rank, precision);
    std::vector<Mlp> alone;  // of each rank
    for (int r = 0; r < kRanks; ++r) alone.push_back(make_kinds(inputs, r, precision));
    EXPECT_EQ(mlp.info().layers, 11);
    EXPECT_EQ(mlp.info().parameters, 2 + 2 + 3 + 2 + 2 + 2 + 2 + 2);
    shardrec::Ddp ddp(comm, shardrec::DdpOptions().bucket_bytes(1 << 12, 1 << 16));
    ddp.add("stack", mlp);
    ddp.commit();
    ddp.broadcast(0);
    for (int step = 0; step < 3; ++step) {
      std::vector<float> expected(static_cast<size_t>(mlp.info().elements), 0.0F);
      for (int r = 0; r < kRanks; ++r) {
        Mlp& own = alone[static_cast<size_t>(r)];
        write(own, all_of(mlp, false));
        train_kinds(own, r, step);
        const std::vector<float> gradient = all_of(own, true);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += gradient[i];
      }
      for (float& value : expected) value *= 1.0F / kRanks;
      ddp.begin();
      train_kinds(mlp, rank, step);
      ddp.end();
      ddp.wait();
      EXPECT_TRUE(same_values(all_of(mlp, true), expected)) << "rank " << rank << ", step " << step;
      mlp.step();
    }
    ddp.check_equal();
    comm.close();
  });
}

TEST(LayerKindsDdp, GradientsAreTheMeanOfThoseOfEachRankAlone) { expect_mean(13); }

TEST(LayerKindsDdp, AlsoWhereBackwardTellsOfThemInParts) { expect_mean(530); }

TEST(LayerKindsDdp, AlsoInBfloat16) {
  expect_mean(13, "bfloat16");
  expect_mean(530, "bfloat16");
}

}  // namespace
}  // namespace shardrec_test
