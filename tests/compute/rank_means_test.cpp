// Means over ranks, against the reduction of host messages, which adds up in the same tree, and against doubles.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "comm/collective/reduce.h"
#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "jobs.h"

namespace shardrec::compute {
namespace {

class RankMeansOnCpu : public ::testing::TestWithParam<int> {
 protected:
  // Elements of a rank, and what they are as floats.
  struct Rank {
    std::vector<std::byte> elements;
    std::vector<float> floats;
  };

  Rank rank_of(Element element, int64_t count) {
    Rank rank{std::vector<std::byte>(static_cast<size_t>(count) * element_bytes(element)),
              numbers_of(random_, static_cast<size_t>(count), Numbers::kOrdinary)};
    if (element == Element::kFloat32) {
      std::memcpy(rank.elements.data(), rank.floats.data(), rank.elements.size());
    } else {
      cpu_kernels().narrow(rank.floats.data(), element, rank.elements.data(), count);
      cpu_kernels().widen(rank.elements.data(), element, rank.floats.data(), count);
    }
    return rank;
  }

  Random random_{7};
  core::Threads threads_{GetParam()};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(cpu_kernels(), threads_);
};

TEST_P(RankMeansOnCpu, AreThoseOfTheReductionOfMessages) {
  for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
    for (const int64_t count : {int64_t{1}, int64_t{127}, int64_t{129}, int64_t{150000}}) {
      for (const size_t ranks : {1, 2, 3, 4, 5, 7, 8, 13}) {
        if (count == 150000 && ranks > 3) continue;
        std::vector<Rank> all;
        std::vector<const std::byte*> elements;
        std::vector<comm::ConstBytes> floats;
        for (size_t r = 0; r < ranks; ++r) all.push_back(rank_of(element, count));
        for (const Rank& rank : all) {
          elements.push_back(rank.elements.data());
          floats.push_back(std::as_bytes(std::span(rank.floats)));
        }
        std::vector<float> expected(static_cast<size_t>(count));
        comm::reduce_ranks<float>(comm::Reduction::kMean, floats, expected);
        for (size_t i = 0; i < expected.size(); i += 61) {
          double sum = 0;
          for (const Rank& rank : all) sum += double{rank.floats[i]};
          ASSERT_NEAR(expected[i], sum / static_cast<double>(ranks), 1e-5);
        }
        std::vector<std::byte> rounded(static_cast<size_t>(count) * element_bytes(element));
        if (element == Element::kFloat32) {
          std::memcpy(rounded.data(), expected.data(), rounded.size());
        } else {
          cpu_kernels().narrow(expected.data(), element, rounded.data(), count);
        }
        std::vector<std::byte> means(rounded.size());
        backend_->transfer().average(
            {.ranks = elements, .means = means.data(), .element = element, .count = count});
        ASSERT_TRUE(means == rounded) << ranks << " ranks, " << count << " elements";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, RankMeansOnCpu, ::testing::Values(1, 3));

}  // namespace
}  // namespace shardrec::compute
