// Barriers and warp operations give what CUDA defines, in any order of threads.
#include <cstring>
#include <numeric>
#include <set>

#include "orders.h"

namespace shardrec::test {
namespace {

using WarpOperations = InEachOrder;

// ---- shuffles: what the lane reads, by PTX's rules (shfl.sync), computed with its clamp and mask

enum class Shuffle { kIndex, kUp, kDown, kXor };

int lane_by_ptx(Shuffle shuffle, int lane, int b, int width) {
  const int clamp = shuffle == Shuffle::kUp ? 0 : 31;
  const int segment = 32 - width;  // a mask: its upper bits name the segment
  const int bits = b & 31;
  const int most = (lane & segment) | (clamp & ~segment);
  const int least = lane & segment;
  switch (shuffle) {
    case Shuffle::kIndex: {
      const int read = least | (bits & ~segment);
      return read <= most ? read : lane;
    }
    case Shuffle::kUp:
      return lane - bits >= most ? lane - bits : lane;
    case Shuffle::kDown:
      return lane + bits <= most ? lane + bits : lane;
    case Shuffle::kXor:
      return (lane ^ bits) <= most ? lane ^ bits : lane;
  }
  return lane;
}

template <class T, Shuffle kShuffle>
__global__ void shuffles(const T* in, T* out, int b, int width) {
  const T value = in[threadIdx.x];
  T read{};
  if constexpr (kShuffle == Shuffle::kIndex) {
    read = __shfl_sync(0xFFFFFFFF, value, b, width);
  } else if constexpr (kShuffle == Shuffle::kUp) {
    read = __shfl_up_sync(0xFFFFFFFF, value, static_cast<unsigned>(b), width);
  } else if constexpr (kShuffle == Shuffle::kDown) {
    read = __shfl_down_sync(0xFFFFFFFF, value, static_cast<unsigned>(b), width);
  } else {
    read = __shfl_xor_sync(0xFFFFFFFF, value, b, width);
  }
  out[threadIdx.x] = read;
}

template <class T, Shuffle kShuffle>
void check_shuffles(Queue& queue, const std::vector<T>& in) {
  const T* device_in = queue.upload(in);
  T* device_out = queue.allocate<T>(in.size());
  for (const int width : {2, 8, 16, 32}) {
    for (const int b : {0, 1, 3, 8, 15, 31}) {
      queue.run(shuffles<T, kShuffle>, 1, static_cast<unsigned>(in.size()), 0, device_in,
                device_out, b, width);
      const std::vector<T> out = queue.download(device_out, in.size());
      for (int i = 0; i < static_cast<int>(in.size()); ++i) {
        const int from = i / 32 * 32 + lane_by_ptx(kShuffle, i % 32, b, width);
        ASSERT_EQ(out[static_cast<size_t>(i)], in[static_cast<size_t>(from)])
            << "thread " << i << ", b " << b << ", width " << width;
      }
    }
  }
}

template <class T>
void check_all_shuffles() {
  Queue queue;
  std::vector<T> in(64);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<T>(static_cast<T>(i) * static_cast<T>(1.25) + static_cast<T>(3));
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) in[i] = in[i] << 33 | in[i];
  }
  check_shuffles<T, Shuffle::kIndex>(queue, in);
  check_shuffles<T, Shuffle::kUp>(queue, in);
  check_shuffles<T, Shuffle::kDown>(queue, in);
  check_shuffles<T, Shuffle::kXor>(queue, in);
}

TEST_P(WarpOperations, ShufflesOfFloats) { check_all_shuffles<float>(); }
TEST_P(WarpOperations, ShufflesOfEightByteIntegers) { check_all_shuffles<unsigned long long>(); }

TEST(WarpOperationTypes, ShufflesTakeWhatCudasTake) {
  check_all_shuffles<int>();
  check_all_shuffles<unsigned>();
  check_all_shuffles<long>();
  check_all_shuffles<double>();
}

template <class T>
concept CanShuffle = requires(T value) { __shfl_sync(0xFFFFFFFF, value, 0); };
static_assert(CanShuffle<float> && CanShuffle<double> && CanShuffle<long long>);
static_assert(!CanShuffle<char> && !CanShuffle<float4> && !CanShuffle<int*>);
template <class T>
concept CanReduce = requires(T value) { __reduce_min_sync(0xFFFFFFFF, value); };
static_assert(CanReduce<unsigned> && !CanReduce<int> && !CanReduce<float>);

// ---- votes, matches, reductions

struct Votes {
  unsigned ballot, any, all, matches, sum, least, most;
};

// Lanes with an odd index are a mask of their own.
__global__ void vote(const unsigned* in, Votes* out) {
  const unsigned i = threadIdx.x;
  const unsigned mask = i % 2 == 0 ? 0x55555555 : 0xAAAAAAAA;
  const unsigned value = in[i];
  Votes votes{};
  votes.ballot = __ballot_sync(mask, value & 4);
  votes.any = static_cast<unsigned>(__any_sync(mask, value == 9));
  votes.all = static_cast<unsigned>(__all_sync(mask, value < 20));
  votes.matches = __match_any_sync(mask, value);
  votes.sum = __reduce_add_sync(mask, value + 0x80000000);
  votes.least = __reduce_min_sync(mask, value);
  votes.most = __reduce_max_sync(mask, value);
  out[i] = votes;
}

TEST_P(WarpOperations, VotesMatchesAndReductionsAreOverTheirMask) {
  constexpr unsigned kThreads = 96;
  std::vector<unsigned> in(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) in[i] = i * 7 % 11 + (i == 70 ? 20 : 0);
  Queue queue;
  const unsigned* device_in = queue.upload(in);
  Votes* device_out = queue.allocate<Votes>(kThreads);
  queue.run(vote, 1, kThreads, 0, device_in, device_out);
  const std::vector<Votes> out = queue.download(device_out, kThreads);
  for (unsigned i = 0; i < kThreads; ++i) {
    Votes wanted{.ballot = 0, .any = 0, .all = 1, .matches = 0, .sum = 0, .least = ~0U, .most = 0};
    for (unsigned lane = i % 2; lane < 32; lane += 2) {
      const unsigned value = in[i / 32 * 32 + lane];
      if ((value & 4) != 0) wanted.ballot |= 1U << lane;
      if (value == 9) wanted.any = 1;
      if (value >= 20) wanted.all = 0;
      if (value == in[i]) wanted.matches |= 1U << lane;
      wanted.sum += value + 0x80000000;
      wanted.least = std::min(wanted.least, value);
      wanted.most = std::max(wanted.most, value);
    }
    EXPECT_EQ(std::memcmp(&out[i], &wanted, sizeof wanted), 0) << "thread " << i;
  }
}

__global__ void match_eight_bytes(unsigned* out) {
  const long long value = (static_cast<long long>(threadIdx.x % 3) << 32) - 5;
  out[threadIdx.x] = __match_any_sync(0xFFFFFFFF, value);
}
TEST(WarpOperationTypes, MatchesOfEightBytesLookAtAllOfThem) {
  Queue queue;
  unsigned* device = queue.allocate<unsigned>(32);
  queue.run(match_eight_bytes, 1, 32, 0, device);
  const std::vector<unsigned> out = queue.download(device, 32);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned wanted = 0;
    for (unsigned other = lane % 3; other < 32; other += 3) wanted |= 1U << other;
    EXPECT_EQ(out[lane], wanted);
  }
}

// Groups of lanes go round as often as they want, without each other.
__global__ void groups_of_own_length(unsigned* out) {
  const unsigned group = threadIdx.x / 8;
  const unsigned mask = 0xFFU << (group % 4 * 8);
  unsigned sum = 0;
  for (unsigned round = 0; round <= group; ++round) {
    sum += __shfl_sync(mask, threadIdx.x + round, static_cast<int>(round), 8);
    __syncwarp(mask);
  }
  out[threadIdx.x] = sum;
}
TEST_P(WarpOperations, GroupsOfAWarpNeedNotWaitForEachOther) {
  Queue queue;
  unsigned* device = queue.allocate<unsigned>(64);
  queue.run(groups_of_own_length, 1, 64, 0, device);
  const std::vector<unsigned> out = queue.download(device, 64);
  for (unsigned i = 0; i < 64; ++i) {
    unsigned wanted = 0;
    for (unsigned round = 0; round <= i / 8; ++round) wanted += i / 8 * 8 + round + round;
    EXPECT_EQ(out[i], wanted);
  }
}

// ---- barriers

// Each thread adds what its neighbour wrote a round ago: wrong as soon as one runs ahead.
struct Ring {
  unsigned values[2][256];
};
__global__ void go_round(unsigned* out, unsigned rounds) {
  Ring& ring = shared<Ring>();
  const unsigned i = threadIdx.x;
  ring.values[0][i] = i;
  __syncthreads();
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned neighbour = ring.values[round % 2][(i + 1) % blockDim.x];
    ring.values[1 - round % 2][i] = neighbour * 3 + round;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + i] = ring.values[rounds % 2][i];
}
TEST_P(WarpOperations, ABarrierKeepsAllThreadsOfABlockTogether) {
  constexpr unsigned kThreads = 200;
  constexpr unsigned kRounds = 9;
  std::vector<unsigned> now(kThreads);
  std::iota(now.begin(), now.end(), 0U);
  for (unsigned round = 0; round < kRounds; ++round) {
    std::vector<unsigned> next(kThreads);
    for (unsigned i = 0; i < kThreads; ++i) next[i] = now[(i + 1) % kThreads] * 3 + round;
    now = next;
  }
  Queue queue;
  unsigned* device = queue.allocate<unsigned>(kThreads * 3);
  queue.run(go_round, 3, kThreads, sizeof(Ring), device, kRounds);
  const std::vector<unsigned> out = queue.download(device, kThreads * 3);
  for (unsigned i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], now[i % kThreads]);
}

// A butterfly, a barrier, and shared memory, as block sums have them.
__global__ void sum(const unsigned* in, unsigned* out, unsigned count) {
  auto& partial = shared<unsigned[32]>();
  unsigned own = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
    own += in[i];
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    own += __shfl_xor_sync(0xFFFFFFFF, own, distance);
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned all = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) all += partial[warp];
  atomicAdd(out, all);
}
TEST_P(WarpOperations, TheLargestBlockSums) {
  std::vector<unsigned> in(5000);
  std::iota(in.begin(), in.end(), 1U);
  Queue queue;
  const unsigned* device_in = queue.upload(in);
  unsigned* device_out = queue.upload(std::vector<unsigned>{0});
  queue.run(sum, 1, 1024, 128, device_in, device_out, 5000U);
  EXPECT_EQ(queue.download(device_out, 1)[0], 5000U * 5001 / 2);
}

// ---- the orders themselves

__global__ void lanes_take_turns(unsigned* next, unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1);
}
std::vector<unsigned> turns(Queue& queue) {
  unsigned* next = queue.upload(std::vector<unsigned>{0});
  unsigned* out = queue.allocate<unsigned>(192);
  queue.run(lanes_take_turns, 3, 64, 0, next, out);
  return queue.download(out, 192);
}
TEST(Orders, ThreadsAndBlocksRunAscendingDescendingOrMixed) {
  std::vector<unsigned> ascending(192);
  std::iota(ascending.begin(), ascending.end(), 0U);
  Queue queue;
  simt_set_order(0, 0);
  EXPECT_EQ(turns(queue), ascending);
  simt_set_order(1, 0);
  EXPECT_EQ(turns(queue), std::vector<unsigned>(ascending.rbegin(), ascending.rend()));
  std::set<std::vector<unsigned>> mixed;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    simt_set_order(2, seed);
    const std::vector<unsigned> order = turns(queue);
    std::vector<unsigned> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, ascending);
    mixed.insert(order);
  }
  EXPECT_EQ(mixed.size(), 8U);
  // The same seed gives the same order: on another stream, whose launches are counted anew.
  Queue other;
  simt_set_order(2, 3);
  const std::vector<unsigned> once = turns(other);
  Queue another;
  EXPECT_EQ(turns(another), once);
  simt_set_order(0, 0);
}

SIMT_IN_EACH_ORDER(WarpOperations);

}  // namespace
}  // namespace shardrec::test
