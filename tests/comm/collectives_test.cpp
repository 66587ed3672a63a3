// Collectives against references that know nothing of channels, over world sizes and message sizes.
#include "comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "world.h"

namespace shardrec::comm {
namespace {

constexpr int kWorlds[] = {1, 2, 3, 4, 8};
constexpr Operation kTest{.name = "test", .kind = 7};

// Element i of what rank r brings: differs between ranks, and sums of floats depend on their order.
template <class T>
T value(int rank, size_t i) {
  // splitmix64
  uint64_t x = (static_cast<uint64_t>(rank) + 1) * 0xD1B54A32D192ED03U + i * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  x ^= x >> 31;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    const double uniform = std::ldexp(static_cast<double>(x >> 11), -52) - 1;
    return static_cast<T>(std::ldexp(uniform, static_cast<int>(x % 24)));
  }
}

// The tree by strides: x[i] op= x[i + s] for s = 1, 2, 4, ...
template <class T>
T expected(Reduction reduction, int ranks, size_t i) {
  std::vector<T> x;
  for (int r = 0; r < ranks; ++r) x.push_back(value<T>(r, i));
  for (size_t stride = 1; stride < x.size(); stride *= 2) {
    for (size_t at = 0; at + stride < x.size(); at += 2 * stride) {
      const T a = x[at];
      const T b = x[at + stride];
      switch (reduction) {
        case Reduction::kMin:
          x[at] = std::min(a, b);
          break;
        case Reduction::kMax:
          x[at] = std::max(a, b);
          break;
        default:
          if constexpr (std::is_integral_v<T>) {
            x[at] = static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
          } else {
            x[at] = a + b;
          }
      }
    }
  }
  if constexpr (!std::is_integral_v<T>) {
    if (reduction == Reduction::kMean) return x[0] / static_cast<T>(ranks);
  }
  return x[0];
}

template <class T>
void expect_same_bits(const std::vector<T>& got, const std::vector<T>& want,
                      const std::string& of) {
  ASSERT_EQ(got.size(), want.size()) << of;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
        << of << " element " << i << ": " << got[i] << " is not " << want[i];
  }
}

template <class T>
class Reductions : public testing::Test {};
using Dtypes = testing::Types<float, double, int32_t, int64_t>;
TYPED_TEST_SUITE(Reductions, Dtypes);

template <class T>
std::vector<Reduction> reductions_of() {
  if (std::is_integral_v<T>) return {Reduction::kSum, Reduction::kMin, Reduction::kMax};
  return {Reduction::kSum, Reduction::kMin, Reduction::kMax, Reduction::kMean};
}

TYPED_TEST(Reductions, AllReduceIsThePairwiseTreeOverRanksInBits) {
  using T = TypeParam;
  for (const int world : kWorlds) {
    for (const Reduction reduction : reductions_of<T>()) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{63}, size_t{1025}, size_t{5001}}) {
        std::vector<T> want(count);
        for (size_t i = 0; i < count; ++i) want[i] = expected<T>(reduction, world, i);
        const auto errors = run_ranks(world, [&](Communicator& comm) {
          Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
          for (const bool in_place : {false, true}) {
            auto data = std::make_shared<std::vector<T>>(count);
            for (size_t i = 0; i < count; ++i) (*data)[i] = value<T>(comm.rank(), i);
            collectives.all_reduce<T>(kTest, reduction, *data, in_place ? data : nullptr);
            expect_same_bits(*data, want,
                             core::sentence("world ", world, " reduction ",
                                            static_cast<int>(reduction), " count ", count));
          }
        });
        for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
      }
    }
  }
}

TYPED_TEST(Reductions, ReduceScatterGivesEachRankItsPartOfTheSameTree) {
  using T = TypeParam;
  for (const int world : kWorlds) {
    for (const Reduction reduction : reductions_of<T>()) {
      for (const size_t part : {size_t{0}, size_t{1}, size_t{777}}) {
        const size_t count = part * static_cast<size_t>(world);
        const auto errors = run_ranks(world, [&](Communicator& comm) {
          Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
          for (const bool in_place : {false, true}) {
            auto data = std::make_shared<std::vector<T>>(count);
            for (size_t i = 0; i < count; ++i) (*data)[i] = value<T>(comm.rank(), i);
            const auto mine = collectives.reduce_scatter<T>(
                kTest, reduction, std::span<const T>(*data), in_place ? data : nullptr);
            std::vector<T> want(part);
            for (size_t i = 0; i < part; ++i) {
              want[i] = expected<T>(reduction, world, static_cast<size_t>(comm.rank()) * part + i);
            }
            expect_same_bits(std::vector<T>(mine.begin(), mine.end()), want,
                             core::sentence("world ", world, " part ", part));
          }
        });
        for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
      }
    }
  }
}

TEST(Collectives, AllGatherBringsEveryRanksMessageWhateverItsSize) {
  for (const int world : kWorlds) {
    const auto errors = run_ranks(world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      const auto message = [](int rank, int round) {
        const size_t size = round == 2 ? (size_t{1} << 20) + static_cast<size_t>(rank)
                                       : static_cast<size_t>(rank * round * 37);
        return std::string(size, static_cast<char>('a' + (rank + round) % 26));
      };
      for (int round = 0; round < 5; ++round) {
        std::string mine = message(comm.rank(), round);
        const auto all = collectives.all_gather(kTest, bytes_of(mine));
        mine.assign(mine.size(), '!');  // the caller's memory is its own again
        ASSERT_EQ(all.size(), static_cast<size_t>(world));
        for (int rank = 0; rank < world; ++rank) {
          ASSERT_EQ(text_of(all[static_cast<size_t>(rank)]), message(rank, round));
        }
      }
    });
    for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
  }
}

TEST(Collectives, BroadcastCopiesTheRootsBytesFromAnyRoot) {
  for (const int world : kWorlds) {
    const auto errors = run_ranks(world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      for (int root = 0; root < world; ++root) {
        for (const size_t size : {size_t{0}, size_t{1}, size_t{4097}, size_t{1} << 20}) {
          std::string data(size, static_cast<char>('a' + comm.rank()));
          collectives.broadcast(kTest, root, std::as_writable_bytes(std::span(data)));
          ASSERT_EQ(data, std::string(size, static_cast<char>('a' + root)));
        }
      }
    });
    for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
  }
}

TEST(Collectives, BarrierReturnsOnlyWhenEveryRankHasEntered) {
  constexpr int kRounds = 50;
  for (const int world : kWorlds) {
    std::atomic<int> entered{0};
    const auto errors = run_ranks(world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      for (int round = 1; round <= kRounds; ++round) {
        ++entered;
        collectives.barrier(kTest);
        ASSERT_GE(entered.load(), round * world);
      }
    });
    for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
  }
}

TEST(Collectives, NanOfAnyRankSurvivesMinimumAndMaximum) {
  for (const int world : {2, 3, 8}) {
    for (int bad = 0; bad < world; ++bad) {
      const auto errors = run_ranks(world, [&](Communicator& comm) {
        Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
        for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
          std::vector<float> data = {comm.rank() == bad ? std::nanf("") : 1.0F, 2.0F};
          collectives.all_reduce<float>(kTest, reduction, data);
          ASSERT_TRUE(std::isnan(data[0]));
          ASSERT_EQ(data[1], 2.0F);
        }
      });
      for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
    }
  }
}

TEST(Collectives, MeanOfIntegersAndUnevenPartsAreRefusedAndHarmNobody) {
  const auto errors = run_ranks(2, [&](Communicator& comm) {
    Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
    std::vector<int32_t> integers = {1, 2, 3};
    const auto mean =
        error_of([&] { collectives.all_reduce<int32_t>(kTest, Reduction::kMean, integers); });
    ASSERT_TRUE(mean);
    EXPECT_EQ(mean->status(), SHARDREC_INVALID_ARGUMENT);
    const auto uneven = error_of([&] {
      collectives.reduce_scatter<int32_t>(kTest, Reduction::kSum,
                                          std::span<const int32_t>(integers));
    });
    ASSERT_TRUE(uneven);
    EXPECT_EQ(uneven->status(), SHARDREC_INVALID_ARGUMENT);
    collectives.all_reduce<int32_t>(kTest, Reduction::kSum, integers);
    EXPECT_EQ(integers, (std::vector<int32_t>{2, 4, 6}));
  });
  for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
}

}  // namespace
}  // namespace shardrec::comm
