// Collectives over the plug-in: sums from the last rank to the first, of each type, in place or not.
#include <cmath>

#include "ranks.h"

namespace shardrec::test {
namespace {

constexpr size_t kCount = 1000;

class NcclCollectives : public NcclTest {};

// Runs ranks with a communicator.
void with_ranks(int size, const std::function<void(Rank&, shardrec_nccl_comm*)>& body) {
  const Id id = make_id();
  run_ranks(size, 4, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    body(rank, comm);
    Rank::leave(comm);
  });
}

template <class T>
std::vector<T> values_of(int rank, size_t count = kCount) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>((static_cast<int>(i) % 97 - 48) * (rank + 1)) / static_cast<T>(3);
  }
  return values;
}

template <class T>
T reduced(int32_t reduction, T a, T b) {
  if (reduction == SHARDREC_NCCL_MAX) return std::max(a, b);
  if (reduction == SHARDREC_NCCL_MIN) return std::min(a, b);
  return static_cast<T>(a + b);
}

template <class T>
std::vector<T> expected_sum(int32_t reduction, int size, size_t count = kCount) {
  std::vector<T> sum = values_of<T>(size - 1, count);
  for (int rank = size - 1; rank-- > 0;) {
    const std::vector<T> other = values_of<T>(rank, count);
    for (size_t i = 0; i < count; ++i) sum[i] = reduced(reduction, sum[i], other[i]);
  }
  if (reduction == SHARDREC_NCCL_AVG) {
    for (T& value : sum) value /= static_cast<T>(size);
  }
  return sum;
}

template <class T>
void check_all_reduce(int32_t dtype) {
  for (const int32_t reduction :
       {SHARDREC_NCCL_SUM, SHARDREC_NCCL_MAX, SHARDREC_NCCL_MIN, SHARDREC_NCCL_AVG}) {
    with_ranks(3, [&](Rank& rank, shardrec_nccl_comm* comm) {
      const DeviceBytes in = rank.list(values_of<T>(rank.rank));
      const DeviceBytes out = rank.list(std::vector<T>(kCount));
      const shardrec_nccl_vector vector{in.data(), out.data(), kCount, dtype, reduction};
      EXPECT_EQ(settled(comm, nccl().all_reduce(comm, rank.in(), &vector)), SHARDREC_NCCL_OK);
      EXPECT_EQ(Rank::values<T>(out), expected_sum<T>(reduction, 3));
      const shardrec_nccl_vector in_place{in.data(), in.data(), kCount, dtype, reduction};
      EXPECT_EQ(settled(comm, nccl().all_reduce(comm, rank.in(), &in_place)), SHARDREC_NCCL_OK);
      EXPECT_EQ(Rank::values<T>(in), expected_sum<T>(reduction, 3));
    });
  }
}

TEST_F(NcclCollectives, ReduceFloats) { check_all_reduce<float>(SHARDREC_NCCL_FLOAT32); }
TEST_F(NcclCollectives, ReduceDoubles) { check_all_reduce<double>(SHARDREC_NCCL_FLOAT64); }
TEST_F(NcclCollectives, ReduceIntegers) { check_all_reduce<int32_t>(SHARDREC_NCCL_INT32); }
TEST_F(NcclCollectives, ReduceWideIntegers) { check_all_reduce<int64_t>(SHARDREC_NCCL_INT64); }

TEST_F(NcclCollectives, RoundEachSumOfHalves) {
  with_ranks(2, [](Rank& rank, shardrec_nccl_comm* comm) {
    // 2048 + 1 is between two values of fp16, 256 + 1 between two of bf16: the even one is taken.
    const std::vector<uint16_t> fp16{rank.rank == 0 ? uint16_t{0x6800} : uint16_t{0x3C00}};
    const std::vector<uint16_t> bf16{rank.rank == 0 ? uint16_t{0x4380} : uint16_t{0x3F80}};
    const auto sum_of = [&](const std::vector<uint16_t>& values, int32_t dtype) {
      const DeviceBytes data = rank.list(values);
      const shardrec_nccl_vector vector{data.data(), data.data(), 1, dtype, SHARDREC_NCCL_SUM};
      EXPECT_EQ(settled(comm, nccl().all_reduce(comm, rank.in(), &vector)), SHARDREC_NCCL_OK);
      return Rank::values<uint16_t>(data)[0];
    };
    EXPECT_EQ(sum_of(fp16, SHARDREC_NCCL_FLOAT16), 0x6800);
    EXPECT_EQ(sum_of(bf16, SHARDREC_NCCL_BFLOAT16), 0x4380);
  });
}

TEST_F(NcclCollectives, ScatterWhatTheyReduce) {
  with_ranks(4, [](Rank& rank, shardrec_nccl_comm* comm) {
    constexpr size_t kEach = kCount / 4;
    const DeviceBytes in = rank.list(values_of<float>(rank.rank));
    const DeviceBytes out = rank.list(std::vector<float>(kEach));
    const shardrec_nccl_vector vector{in.data(), out.data(), kEach, SHARDREC_NCCL_FLOAT32,
                                      SHARDREC_NCCL_SUM};
    EXPECT_EQ(settled(comm, nccl().reduce_scatter(comm, rank.in(), &vector)), SHARDREC_NCCL_OK);
    const std::vector<float> sum = expected_sum<float>(SHARDREC_NCCL_SUM, 4);
    const auto begin = sum.begin() + static_cast<ptrdiff_t>(kEach) * rank.rank;
    EXPECT_EQ(Rank::values<float>(out), (std::vector<float>(begin, begin + kEach)));
  });
}

TEST_F(NcclCollectives, Gather) {
  OF_FAKE(fake_nccl_set_polls)(1);
  with_ranks(4, [](Rank& rank, shardrec_nccl_comm* comm) {
    const DeviceBytes in = rank.list(values_of<float>(rank.rank));
    const DeviceBytes out = rank.list(std::vector<float>(4 * kCount));
    const shardrec_nccl_vector vector{in.data(), out.data(), kCount, SHARDREC_NCCL_FLOAT32, 0};
    EXPECT_EQ(settled(comm, nccl().all_gather(comm, rank.in(), &vector)), SHARDREC_NCCL_OK);
    std::vector<float> expected;
    for (int peer = 0; peer < 4; ++peer) {
      const std::vector<float> theirs = values_of<float>(peer);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    EXPECT_EQ(Rank::values<float>(out), expected);
  });
}

TEST_F(NcclCollectives, GoOnInOrderWithoutTheHost) {
  with_ranks(2, [](Rank& rank, shardrec_nccl_comm* comm) {
    constexpr int kTimes = 100;
    const DeviceBytes data = rank.list(std::vector<double>{1.0});
    const shardrec_nccl_vector vector{data.data(), data.data(), 1, SHARDREC_NCCL_FLOAT64,
                                      SHARDREC_NCCL_SUM};
    for (int i = 0; i < kTimes; ++i) {
      EXPECT_EQ(nccl().all_reduce(comm, rank.in(), &vector), SHARDREC_NCCL_OK);
    }
    EXPECT_EQ(Rank::values<double>(data)[0], std::exp2(kTimes));
  });
}

TEST_F(NcclCollectives, WorkOnSeveralCommunicatorsOfARank) {
  const Id all = make_id();
  const std::array<Id, 2> pairs{make_id(), make_id()};
  run_ranks(4, 4, [&](Rank& rank) {
    shardrec_nccl_comm* const whole = rank.join(all);
    const Rank in_pair(rank.rank / 2, 2, rank.rank);
    shardrec_nccl_comm* const half = in_pair.join(pairs[static_cast<size_t>(rank.rank % 2)]);
    const DeviceBytes data = rank.list(std::vector<int32_t>{1 << (8 * rank.rank)});
    const shardrec_nccl_vector vector{data.data(), data.data(), 1, SHARDREC_NCCL_INT32,
                                      SHARDREC_NCCL_SUM};
    EXPECT_EQ(nccl().all_reduce(half, rank.in(), &vector), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().all_reduce(whole, rank.in(), &vector), SHARDREC_NCCL_OK);
    EXPECT_EQ(Rank::values<int32_t>(data)[0], 0x02020202);
    Rank::leave(half);
    Rank::leave(whole);
  });
}

}  // namespace
}  // namespace shardrec::test
