// Collectives against references that know nothing of channels, over world sizes and message sizes:
// the same bits on every engine.
#include "comm/collective/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "conformance/engine.h"
#include "support/one_nan.h"

namespace shardrec::comm {
namespace {

constexpr Operation kCollectiveTest{.name = "test", .kind = 7};

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
    ASSERT_EQ(shardrec::test::bits_with_one_nan(got[i]), shardrec::test::bits_with_one_nan(want[i]))
        << of << " element " << i << ": " << got[i] << " is not " << want[i];
  }
}

template <class T>
std::vector<Reduction> reductions_of() {
  if (std::is_integral_v<T>) return {Reduction::kSum, Reduction::kMin, Reduction::kMax};
  return {Reduction::kSum, Reduction::kMin, Reduction::kMax, Reduction::kMean};
}

constexpr size_t kMebibyte = size_t{1} << 20;

// Messages of 1 MiB take the same way whatever is in them: a sanitizer sees those of one type.
template <class T>
constexpr bool kLongMessages = SHARDREC_SANITIZED == 0 || std::is_same_v<T, float>;

// One reduction and what it is to give.
template <class T>
struct Case {
  Reduction reduction = Reduction::kSum;
  std::vector<T> want;
};

// Elements per rank: none, one, odd, and 1 MiB, for which one reduction tells enough. Made once for
// all engines.
template <class T>
const std::vector<Case<T>>& cases(int world, bool scattered) {
  static std::map<std::pair<int, bool>, std::vector<Case<T>>> known;
  std::vector<Case<T>>& made = known[{world, scattered}];
  if (!made.empty()) return made;
  for (const Reduction reduction : reductions_of<T>()) {
    std::vector<size_t> counts = {0, 1, 63, 1025, 5001};
    if (reduction == Reduction::kSum && kLongMessages<T>) counts.push_back(kMebibyte / sizeof(T));
    for (size_t count : counts) {
      if (scattered) count *= static_cast<size_t>(world);
      Case<T> one{.reduction = reduction, .want = std::vector<T>(count)};
      for (size_t i = 0; i < count; ++i) one.want[i] = expected<T>(reduction, world, i);
      made.push_back(std::move(one));
    }
  }
  return made;
}

template <class T>
std::shared_ptr<std::vector<T>> values_of(int rank, size_t count) {
  auto values = std::make_shared<std::vector<T>>(count);
  for (size_t i = 0; i < count; ++i) (*values)[i] = value<T>(rank, i);
  return values;
}

template <class T>
void check_all_reduce(const Engine& engine) {
  for (const int world : engine.worlds) {
    const auto& all = cases<T>(world, false);
    run_well(engine, world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      for (const Case<T>& one : all) {
        for (const bool in_place : {false, true}) {
          const auto data = values_of<T>(comm.rank(), one.want.size());
          collectives.all_reduce<T>(kCollectiveTest, one.reduction, *data,
                                    in_place ? data : nullptr);
          expect_same_bits(
              *data, one.want,
              core::sentence("world ", world, " reduction ", static_cast<int>(one.reduction)));
        }
      }
    });
  }
}

template <class T>
void check_reduce_scatter(const Engine& engine) {
  for (const int world : engine.worlds) {
    const auto& all = cases<T>(world, true);
    run_well(engine, world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
      for (const Case<T>& one : all) {
        const auto part = static_cast<std::ptrdiff_t>(one.want.size()) / world;
        const auto begin = one.want.begin() + comm.rank() * part;
        for (const bool in_place : {false, true}) {
          const auto data = values_of<T>(comm.rank(), one.want.size());
          const auto mine = collectives.reduce_scatter<T>(
              kCollectiveTest, one.reduction, std::span<const T>(*data), in_place ? data : nullptr);
          expect_same_bits(std::vector<T>(mine.begin(), mine.end()),
                           std::vector<T>(begin, begin + part),
                           core::sentence("world ", world, " part ", part));
        }
      }
    });
  }
}

TEST_P(CollectiveConformance, AllReduceOfFloatIsThePairwiseTreeOverRanksInBits) {
  check_all_reduce<float>(engine());
}
TEST_P(CollectiveConformance, AllReduceOfDoubleIsThePairwiseTreeOverRanksInBits) {
  check_all_reduce<double>(engine());
}
TEST_P(CollectiveConformance, AllReduceOfInt32IsThePairwiseTreeOverRanksInBits) {
  check_all_reduce<int32_t>(engine());
}
TEST_P(CollectiveConformance, AllReduceOfInt64IsThePairwiseTreeOverRanksInBits) {
  check_all_reduce<int64_t>(engine());
}
TEST_P(CollectiveConformance, ReduceScatterOfFloatGivesEachRankItsPartOfTheSameTree) {
  check_reduce_scatter<float>(engine());
}
TEST_P(CollectiveConformance, ReduceScatterOfDoubleGivesEachRankItsPartOfTheSameTree) {
  check_reduce_scatter<double>(engine());
}
TEST_P(CollectiveConformance, ReduceScatterOfInt32GivesEachRankItsPartOfTheSameTree) {
  check_reduce_scatter<int32_t>(engine());
}
TEST_P(CollectiveConformance, ReduceScatterOfInt64GivesEachRankItsPartOfTheSameTree) {
  check_reduce_scatter<int64_t>(engine());
}

TEST_P(CollectiveConformance, AllGatherBringsEveryRanksMessageWhateverItsSize) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      const auto message = [](int rank, int round) {
        const size_t size = round == 2 ? (size_t{1} << 20) + static_cast<size_t>(rank)
                                       : static_cast<size_t>(rank * round * 37);
        return std::string(size, static_cast<char>('a' + (rank + round) % 26));
      };
      for (int round = 0; round < 5; ++round) {
        std::string mine = message(comm.rank(), round);
        const auto all = collectives.all_gather(kCollectiveTest, bytes_of(mine));
        mine.assign(mine.size(), '!');  // the caller's memory is its own again
        ASSERT_EQ(all.size(), static_cast<size_t>(world));
        for (int rank = 0; rank < world; ++rank) {
          ASSERT_EQ(text_of(all[static_cast<size_t>(rank)]), message(rank, round));
        }
      }
    });
  }
}

TEST_P(CollectiveConformance, BroadcastCopiesTheRootsBytesFromAnyRoot) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      for (int root = 0; root < world; ++root) {
        for (const size_t size : {size_t{0}, size_t{1}, size_t{4097}, size_t{1} << 20}) {
          std::string data(size, static_cast<char>('a' + comm.rank()));
          collectives.broadcast(kCollectiveTest, root, std::as_writable_bytes(std::span(data)));
          ASSERT_EQ(data, std::string(size, static_cast<char>('a' + root)));
        }
      }
    });
  }
}

// Each rank says when it entered and when it was let go; all ranks are on one machine, with one
// clock.
TEST_P(CollectiveConformance, BarrierReturnsOnlyWhenEveryRankHasEntered) {
  constexpr int kRounds = 50;
  using Clock = std::chrono::steady_clock;
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      std::vector<int64_t> mine;
      for (int round = 0; round < kRounds; ++round) {
        if (round % comm.size() == comm.rank()) {
          // Late on purpose: the others wait for it.
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        mine.push_back(Clock::now().time_since_epoch().count());
        collectives.barrier(kCollectiveTest);
        mine.push_back(Clock::now().time_since_epoch().count());
      }
      std::vector<int64_t> last_in(kRounds, 0);
      std::vector<int64_t> first_out(kRounds, INT64_MAX);
      for (const ConstBytes message :
           collectives.all_gather(kCollectiveTest, std::as_bytes(std::span(mine)))) {
        std::vector<int64_t> theirs(mine.size());
        ASSERT_EQ(message.size(), theirs.size() * sizeof(int64_t));
        std::memcpy(theirs.data(), message.data(), message.size());
        for (size_t round = 0; round < kRounds; ++round) {
          last_in[round] = std::max(last_in[round], theirs[2 * round]);
          first_out[round] = std::min(first_out[round], theirs[2 * round + 1]);
        }
      }
      for (size_t round = 0; round < kRounds; ++round) {
        ASSERT_GE(first_out[round], last_in[round]) << "round " << round;
      }
    });
  }
}

TEST_P(CollectiveConformance, NanOfAnyRankSurvivesMinimumAndMaximum) {
  for (const int world : {2, 3, 8}) {
    if (!engine().offers(world)) continue;
    for (int bad = 0; bad < world; ++bad) {
      run_well(engine(), world, [&](Communicator& comm) {
        Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
        for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
          std::vector<float> data = {comm.rank() == bad ? std::nanf("") : 1.0F, 2.0F};
          collectives.all_reduce<float>(kCollectiveTest, reduction, data);
          ASSERT_TRUE(std::isnan(data[0]));
          ASSERT_EQ(data[1], 2.0F);
        }
      });
    }
  }
}

TEST_P(CollectiveConformance, MeanOfIntegersAndUnevenPartsAreRefusedAndHarmNobody) {
  run_well(engine(), 2, [&](Communicator& comm) {
    Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
    std::vector<int32_t> integers = {1, 2, 3};
    const auto mean = error_of(
        [&] { collectives.all_reduce<int32_t>(kCollectiveTest, Reduction::kMean, integers); });
    ASSERT_TRUE(mean);
    EXPECT_EQ(mean->status(), SHARDREC_INVALID_ARGUMENT);
    const auto uneven = error_of([&] {
      collectives.reduce_scatter<int32_t>(kCollectiveTest, Reduction::kSum,
                                          std::span<const int32_t>(integers));
    });
    ASSERT_TRUE(uneven);
    EXPECT_EQ(uneven->status(), SHARDREC_INVALID_ARGUMENT);
    collectives.all_reduce<int32_t>(kCollectiveTest, Reduction::kSum, integers);
    EXPECT_EQ(integers, (std::vector<int32_t>{2, 4, 6}));
  });
}

}  // namespace
}  // namespace shardrec::comm
