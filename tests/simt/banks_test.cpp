// Which banks of shared memory the warps that update rows touch, computed from the layouts that the kernels use: 32 banks
// of 4 bytes, and a wavefront for each 128 bytes at most. Lanes of a warp that name different words of one bank need
// more wavefronts, one after the other.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>

#include "compute/cuda/kernels/rows/row_slots.h"
#include "queue.h"

namespace shardrec::test {
namespace {

using namespace compute::
    cuda;  // NOLINT(google-build-using-namespace): all names here are of kernels

constexpr int kNowhere = -1;
constexpr int kMostSlots = SHARDREC_CUDA_ROW_SLOTS;
constexpr int kMostRows = kMostSlots * SHARDREC_CUDA_ROWS_OF_A_SLOT;
constexpr int kMostReads = kMostRows * kVirtualLanes / 2;

// What a lane names of shared memory, in numbers of 4 bytes from the list's begin, and of a row.
struct Named {
  int place[kMostSlots];   // where its slots are put; kNowhere: it has no such slot
  int row[kMostSlots];     // of the wave
  int column[kMostSlots];  // of the row
  int read[kMostReads];    // what it reads for the sums, in its order
  int reads;
};

// As WarpUpdate puts and reads numbers of a wave (rows/row_update.h).
template <int kColumns, bool kWide>
__global__ void name_numbers(shardrec_cuda_row_job job, int rows, int tile, int slots, Named* out) {
  Named& own = out[threadIdx.x];
  const RowSlots<kColumns, kWide> where(job, rows, tile);
  for (int s = 0; s < slots; ++s) {
    own.place[s] = where.has(s) ? where.place(s) : kNowhere;
    own.row[s] = where.row(s);
    own.column[s] = where.column(s);
  }
  own.reads = 0;
  ColumnSums<1> sums;
  const int columns = where.columns_of_tile();
  for (int i = 0; 2 * i < rows; ++i) {
    const int row = ColumnSums<1>::row_of(i);
    if (row >= rows) continue;
    sums.add(SummedRow(row, columns), columns,
             [&](int at, float* /*lane*/) { own.read[own.reads++] = at; });
  }
}

// Wavefronts of one access of a warp, of `width` numbers for each lane from where it names: lanes go together as far
// as their numbers fill 128 bytes.
int wavefronts(const std::vector<int>& named, int width) {
  const size_t together = static_cast<size_t>(kWarp / width);
  int all = 0;
  for (size_t first = 0; first < named.size(); first += together) {
    std::map<int, std::set<int>> words;  // by bank
    for (size_t lane = first; lane < first + together; ++lane) {
      if (named[lane] == kNowhere) continue;
      for (int i = 0; i < width; ++i) words[(named[lane] + i) % kWarp].insert(named[lane] + i);
    }
    size_t most = 0;
    for (const auto& [bank, of_bank] : words) most = std::max(most, of_bank.size());
    all += static_cast<int>(most);
  }
  return all;
}

// The least that so many lanes need: none of those that go together is alone.
int least_wavefronts(const std::vector<int>& named, int width) {
  const size_t together = static_cast<size_t>(kWarp / width);
  int all = 0;
  for (size_t first = 0; first < named.size(); first += together) {
    all += std::any_of(named.begin() + static_cast<ptrdiff_t>(first),
                       named.begin() + static_cast<ptrdiff_t>(first + together),
                       [](int at) { return at != kNowhere; })
               ? 1
               : 0;
  }
  return all;
}

// A wave of rows of a job, as the host cuts it (host/rows/row_launches.cpp).
struct Wave {
  int columns;  // of the job
  int of_lane;  // columns that a lane has at a time
  int slots;
  int rows = 0;  // of a full wave
  int tiles = 1;
  shardrec_cuda_row_job job{};

  Wave(int columns_, int of_lane_, int slots_)
      : columns(columns_), of_lane(of_lane_), slots(slots_) {
    const auto loads = static_cast<unsigned>((columns + of_lane - 1) / of_lane);
    const int lanes = std::clamp(static_cast<int>(std::bit_ceil(loads)),
                                 int{SHARDREC_CUDA_LEAST_ROW_LANES}, kWarp);
    const int of_part = lanes * of_lane;
    const int needed = (columns + of_part - 1) / of_part;
    const int parts =
        std::min(static_cast<int>(std::bit_ceil(static_cast<unsigned>(needed))), slots);
    rows = std::min(kWarp / lanes * (slots / parts), slots * SHARDREC_CUDA_ROWS_OF_A_SLOT);
    tiles = (columns + of_part * parts - 1) / (of_part * parts);
    job.lanes = lanes;
    job.part_bits = std::countr_zero(static_cast<unsigned>(parts));
    job.columns = columns;
  }

  std::vector<Named> named(Queue& queue, int rows_there, int tile) const {
    Named* const out = queue.allocate<Named>(kWarp);
    const bool wide = columns > kWarp * of_lane;
    const auto run = [&](auto kernel) {
      queue.run(kernel, 1, kWarp, 0, job, rows_there, tile, slots, out);
    };
    if (of_lane == 1) {
      wide ? run(name_numbers<1, true>) : run(name_numbers<1, false>);
    } else {
      wide ? run(name_numbers<SHARDREC_CUDA_LANE_COLUMNS, true>)
           : run(name_numbers<SHARDREC_CUDA_LANE_COLUMNS, false>);
    }
    std::vector<Named> result = queue.download(out, kWarp);
    queue.wait();
    return result;
  }
};

// check(wave, what all lanes name, a text that says where): of full waves and of such with fewer rows, of all tiles.
template <class Check>
void for_waves(int of_lane, const Check& check) {
  Queue queue;
  for (const int slots : {SHARDREC_CUDA_ROW_SLOTS, SHARDREC_CUDA_ROW_SLOTS_WITH_MATRICES}) {
    for (int columns = of_lane; columns <= 1100;
         columns += columns < 160 ? of_lane : 37 * of_lane) {
      const Wave wave(columns, of_lane, slots);
      for (const int rows : std::set<int>{wave.rows, (wave.rows + 1) / 2, 1}) {
        for (int tile = 0; tile < wave.tiles; ++tile) {
          check(wave, wave.named(queue, rows, tile),
                std::to_string(columns) + " columns, " + std::to_string(slots) + " slots, " +
                    std::to_string(rows) + " rows, tile " + std::to_string(tile));
        }
      }
    }
  }
}

std::vector<int> places(const std::vector<Named>& lanes, int slot) {
  std::vector<int> result;
  for (const Named& lane : lanes) result.push_back(lane.place[slot]);
  return result;
}

std::vector<int> reads(const std::vector<Named>& lanes, int number) {
  std::vector<int> result;
  for (const Named& lane : lanes) {
    result.push_back(number < lane.reads ? lane.read[number] : kNowhere);
  }
  return result;
}

int most_reads(const std::vector<Named>& lanes) {
  int most = 0;
  for (const Named& lane : lanes) most = std::max(most, lane.reads);
  return most;
}

void expect_one_wavefront(const std::vector<int>& named, int width, const std::string& where) {
  EXPECT_EQ(wavefronts(named, width), least_wavefronts(named, width)) << where;
}

// Of what lanes put. Rows lie 16 numbers apart at the least: those of 8 columns or fewer leave half of the banks empty or
// more, and rows meet in the others. Two of them where a lane has four columns, of whose lanes 8 go together.
void expect_put(const Wave& wave, const std::vector<int>& named, const std::string& where) {
  if (wave.columns > kVirtualLanes / 2) return expect_one_wavefront(named, wave.of_lane, where);
  const int times = wave.of_lane == 1 ? kVirtualLanes / wave.job.lanes : 2;
  EXPECT_LE(wavefronts(named, wave.of_lane), times * least_wavefronts(named, wave.of_lane))
      << where;
}

// The check itself: a stride of 32 is the worst, one of 1 the best.
TEST(Banks, CountsWavefronts) {
  std::vector<int> named(kWarp);
  for (const auto [stride, width, expected] :
       {std::array{0, 1, 1}, {1, 1, 1}, {2, 1, 2}, {32, 1, 32}, {4, 4, 4}, {8, 4, 8}}) {
    for (int lane = 0; lane < kWarp; ++lane) named[static_cast<size_t>(lane)] = lane * stride;
    EXPECT_EQ(wavefronts(named, width), expected) << stride << " " << width;
  }
  std::fill(named.begin() + 8, named.end(), kNowhere);
  EXPECT_EQ(wavefronts(named, 4), 2);
  EXPECT_EQ(least_wavefronts(named, 4), 1);
}

// The two rows that the halves of a warp read.
TEST(Banks, SumsOfColumnsReadEachBankOnce) {
  for (const int of_lane : {1, SHARDREC_CUDA_LANE_COLUMNS}) {
    for_waves(of_lane, [](const Wave&, const std::vector<Named>& lanes, const std::string& where) {
      for (int i = 0; i < most_reads(lanes); ++i) {
        expect_one_wavefront(reads(lanes, i), 1, where + ", read " + std::to_string(i));
      }
    });
  }
}

void expect_puts(int of_lane) {
  for_waves(of_lane,
            [](const Wave& wave, const std::vector<Named>& lanes, const std::string& where) {
              for (int s = 0; s < wave.slots; ++s) {
                expect_put(wave, places(lanes, s), where + ", slot " + std::to_string(s));
              }
            });
}

TEST(Banks, LanesPutFourColumnsIntoDifferentBanks) { expect_puts(SHARDREC_CUDA_LANE_COLUMNS); }

TEST(Banks, LanesPutSingleColumnsIntoDifferentBanks) { expect_puts(1); }

// So what a slot loads and stores of a row in global memory has no gaps: neighbouring lanes have neighbouring columns.
TEST(Banks, EachSlotOfARowIsOneRunOfColumns) {
  for (const int of_lane : {1, SHARDREC_CUDA_LANE_COLUMNS}) {
    for_waves(of_lane,
              [&](const Wave& wave, const std::vector<Named>& lanes, const std::string& where) {
                for (size_t lane = 1; lane < lanes.size(); ++lane) {
                  for (int s = 0; s < wave.slots; ++s) {
                    if (lane % static_cast<size_t>(wave.job.lanes) == 0) continue;
                    EXPECT_EQ(lanes[lane].row[s], lanes[lane - 1].row[s]) << where;
                    EXPECT_EQ(lanes[lane].column[s], lanes[lane - 1].column[s] + of_lane) << where;
                  }
                }
              });
  }
}

}  // namespace
}  // namespace shardrec::test
