#include "dense/layers/interaction.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "core/error.h"
#include "dense/reference.h"

namespace shardrec::dense {
namespace {

using test::Rows;
using test::same_bits;

struct Data {
  Data(int64_t batch, int64_t feature_count, int64_t width, int64_t gap, unsigned seed = 1)
      : features(feature_count),
        dim(width),
        outputs(dim + (features + 1) * features / 2),
        dense(batch, dim, gap),
        embeddings(batch, features * dim, gap),
        output(batch, outputs, gap),
        gradient(batch, outputs, gap),
        dense_gradient(batch, dim, gap),
        embedding_gradient(batch, features * dim, gap) {
    std::mt19937 random(seed);
    dense.fill(random);
    embeddings.fill(random);
    gradient.fill(random);
  }
  void run(Interaction& interaction) {
    interaction.forward(dense.view(), embeddings.view(), output.view());
    interaction.backward(gradient.view(), dense_gradient.view(), embedding_gradient.view());
  }
  double vector(int64_t s, int64_t i, int64_t c) {
    return i == 0 ? dense.at(s, c) : embeddings.at(s, (i - 1) * dim + c);
  }
  std::vector<float> results() {
    std::vector<float> all = output.values();
    for (Rows* rows : {&dense_gradient, &embedding_gradient}) {
      const std::vector<float> values = rows->values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  int64_t features, dim, outputs;
  Rows dense, embeddings, output, gradient, dense_gradient, embedding_gradient;
};

void check(int64_t batch, int64_t features, int64_t dim, int64_t gap) {
  SCOPED_TRACE(testing::Message() << "batch " << batch << " features " << features << " dim " << dim
                                  << " gap " << gap);
  Interaction interaction(features, dim, 2);
  Data data(batch, features, dim, gap);
  ASSERT_EQ(interaction.outputs(), data.outputs);
  data.run(interaction);

  std::vector<double> output, dense_gradient, embedding_gradient;
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t c = 0; c < dim; ++c) output.push_back(data.dense.at(s, c));
    std::vector<double> of_vectors(static_cast<size_t>((features + 1) * dim), 0.0);
    for (int64_t c = 0; c < dim; ++c) of_vectors[static_cast<size_t>(c)] = data.gradient.at(s, c);
    int64_t product = dim;
    for (int64_t i = 1; i <= features; ++i) {
      for (int64_t j = 0; j < i; ++j, ++product) {
        double sum = 0;
        const double g = data.gradient.at(s, product);
        for (int64_t c = 0; c < dim; ++c) {
          sum += data.vector(s, i, c) * data.vector(s, j, c);
          of_vectors[static_cast<size_t>(i * dim + c)] += g * data.vector(s, j, c);
          of_vectors[static_cast<size_t>(j * dim + c)] += g * data.vector(s, i, c);
        }
        output.push_back(sum);
      }
    }
    dense_gradient.insert(dense_gradient.end(), of_vectors.begin(), of_vectors.begin() + dim);
    embedding_gradient.insert(embedding_gradient.end(), of_vectors.begin() + dim, of_vectors.end());
  }
  test::expect_near(data.output.values(), output, 1e-5, "output");
  test::expect_near(data.dense_gradient.values(), dense_gradient, 1e-5, "dense gradient");
  test::expect_near(data.embedding_gradient.values(), embedding_gradient, 1e-5,
                    "embedding gradient");
  EXPECT_TRUE(data.output.gaps_untouched());
  EXPECT_TRUE(data.dense_gradient.gaps_untouched());
  EXPECT_TRUE(data.embedding_gradient.gaps_untouched());
}

TEST(Interaction, ForwardAndBackwardEqualTheDoubleReference) {
  for (const int64_t features : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 26, 33}) {
    for (const int64_t dim : {1, 3, 4, 8, 16, 20, 33}) check(3, features, dim, 0);
  }
  for (const int64_t batch : {0, 1, 5, 1000}) {
    check(batch, 8, 16, 0);
    check(batch, 5, 7, 3);
  }
}

// The products of a bilinear function: differences with a large step are exact.
TEST(Interaction, GradientsEqualFiniteDifferences) {
  constexpr int64_t kFeatures = 5, kDim = 6;
  Interaction interaction(kFeatures, kDim, 1);
  Data data(2, kFeatures, kDim, 0);
  data.run(interaction);
  const std::vector<float> analytic = data.embedding_gradient.values();
  const auto objective = [&] {
    interaction.forward(data.dense.view(), data.embeddings.view(), data.output.view());
    double sum = 0;
    for (int64_t s = 0; s < 2; ++s) {
      for (int64_t c = 0; c < data.outputs; ++c)
        sum += double{data.output.at(s, c)} * data.gradient.at(s, c);
    }
    return sum;
  };
  for (int64_t s = 0; s < 2; ++s) {
    for (int64_t c = 0; c < kFeatures * kDim; ++c) {
      float& x = data.embeddings.at(s, c);
      const float at = x;
      x = at + 0.5F;
      const double above = objective();
      x = at - 0.5F;
      const double below = objective();
      x = at;
      EXPECT_NEAR(analytic[static_cast<size_t>(s * kFeatures * kDim + c)], above - below, 2e-4);
    }
  }
}

TEST(Interaction, BitsDoNotDependOnTheNumberOfThreads) {
  Data one(6001, 26, 16, 0), two(6001, 26, 16, 0), four(6001, 26, 16, 0);
  Interaction first(26, 16, 1), second(26, 16, 2), third(26, 16, 4);
  one.run(first);
  two.run(second);
  four.run(third);
  EXPECT_TRUE(same_bits(one.results(), two.results()));
  EXPECT_TRUE(same_bits(one.results(), four.results()));
}

TEST(Interaction, AllInstructionSetsGiveTheSameBits) {
  for (const int64_t dim : {1, 5, 16, 37}) {
    std::vector<float> expected;
    for (int i = 0; i < compute::cpu_kernel_count(); ++i) {
      compute::force_cpu_kernels(&compute::cpu_kernels_at(i));
      ASSERT_STREQ(kernels().name, compute::cpu_kernels_at(i).name);
      Data data(7, 26, dim, 1);
      Interaction interaction(26, dim, 1);
      data.run(interaction);
      if (i == 0) expected = data.results();
      EXPECT_TRUE(same_bits(expected, data.results())) << kernels().name << " dim " << dim;
    }
    compute::force_cpu_kernels(nullptr);
  }
}

TEST(Interaction, WrongSizesAndOrderAreRefused) {
  const auto status_of = [](auto body) {
    try {
      body();
      return SHARDREC_OK;
    } catch (const core::Error& error) {
      return error.status();
    }
  };
  EXPECT_EQ(status_of([] { Interaction(-1, 4, 1); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { Interaction(3, 0, 1); }), SHARDREC_INVALID_ARGUMENT);
  Interaction interaction(3, 4, 1);
  Data data(2, 3, 4, 0), wrong(3, 3, 4, 0), other(2, 2, 4, 0);
  EXPECT_EQ(status_of([&] {
              interaction.backward(data.gradient.view(), data.dense_gradient.view(),
                                   data.embedding_gradient.view());
            }),
            SHARDREC_INVALID_STATE);
  EXPECT_EQ(status_of([&] {
              interaction.forward(data.dense.view(), other.embeddings.view(), data.output.view());
            }),
            SHARDREC_INVALID_ARGUMENT);
  data.run(interaction);
  EXPECT_EQ(status_of([&] {
              interaction.backward(wrong.gradient.view(), data.dense_gradient.view(),
                                   data.embedding_gradient.view());
            }),
            SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardrec::dense
