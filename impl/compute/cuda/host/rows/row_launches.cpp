#include "compute/cuda/host/rows/row_launches.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

static_assert(sizeof(ColumnMap) == sizeof(shardrec_cuda_column_map));

constexpr int64_t kWarp = 32;
constexpr int64_t kWarpsOfBlock = 8;
// Warps take few rows each until a launch has about so many of them: enough for a large device.
constexpr int64_t kEnoughWarps = 8192;

bool same(const shardrec_cuda_row_kind& a, const shardrec_cuda_row_kind& b) {
  return a.operation == b.operation && a.optimizer == b.optimizer && a.element == b.element &&
         a.vectors == b.vectors && a.wide == b.wide;
}

int64_t columns_of_lane(const shardrec_cuda_row_kind& kind) {
  return kind.vectors != 0 ? SHARDREC_CUDA_LANE_COLUMNS : 1;
}

// As many as a row has groups of columns, rounded up to a power of two.
int64_t lanes_of(const shardrec_cuda_row_kind& kind, const shardrec_cuda_row_job& job) {
  const int64_t columns = columns_of_lane(kind);
  const auto loads = static_cast<uint64_t>((job.columns + columns - 1) / columns);
  return static_cast<int64_t>(
      std::clamp(std::bit_ceil(loads), uint64_t{SHARDREC_CUDA_LEAST_ROW_LANES}, uint64_t{kWarp}));
}

// Slots that a lane has in an operation; of the others there is one.
uint64_t slots_of(const shardrec_cuda_row_kind& kind) {
  if (kind.operation != SHARDREC_CUDA_ROW_UPDATE) return 1;
  return state_needs(static_cast<OptimizerKind>(kind.optimizer)).matrices == 0
             ? SHARDREC_CUDA_ROW_SLOTS
             : SHARDREC_CUDA_ROW_SLOTS_WITH_MATRICES;
}

const shardrec_cuda_column_map* on_device(const ColumnMap* maps) {
  return static_cast<const shardrec_cuda_column_map*>(static_cast<const void*>(maps));
}

}  // namespace

RowLaunches::RowLaunches(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

// The launches stay, empty, with the memory of their lists: steps of one model have the same.
void RowLaunches::clear() {
  for (Launch& launch : launches_) {
    launch.jobs.clear();
    launch.maps.clear();
  }
}

void RowLaunches::add(shardrec_cuda_row_kind kind, const shardrec_cuda_row_job& job,
                      std::span<const ColumnMap> maps) {
  if (job.touched.count == 0 || job.columns == 0) return;
  kind.wide =
      kind.operation == SHARDREC_CUDA_ROW_UPDATE && job.columns > kWarp * columns_of_lane(kind);
  auto to = std::find_if(launches_.begin(), launches_.end(),
                         [&](const Launch& known) { return same(known.kind, kind); });
  if (to == launches_.end()) {
    // Operations that one call needs are enqueued in the order of their numbers.
    to = std::find_if(launches_.begin(), launches_.end(),
                      [&](const Launch& known) { return known.kind.operation > kind.operation; });
    to = launches_.insert(to, Launch{.kind = kind});
  }
  to->jobs.push_back(job);
  to->maps.push_back(maps);
}

// Lanes and tiles of the jobs, and their blocks of threads.
void RowLaunches::cut(Launch& launch) {
  int64_t rows = 0;
  for (const shardrec_cuda_row_job& job : launch.jobs) rows += job.touched.count;
  const auto wanted = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max(rows / kEnoughWarps, int64_t{1}))));
  launch.first_block.assign(1, 0);
  for (shardrec_cuda_row_job& job : launch.jobs) {
    const int64_t lanes = lanes_of(launch.kind, job);
    const int64_t of_part = lanes * columns_of_lane(launch.kind);
    const uint64_t slots = slots_of(launch.kind);
    const auto needed = static_cast<uint64_t>((job.columns + of_part - 1) / of_part);
    const uint64_t parts = std::min(std::bit_ceil(needed), slots);
    const int64_t of_tile = of_part * static_cast<int64_t>(parts);
    const int64_t wave = std::min(kWarp / lanes * static_cast<int64_t>(slots / parts),
                                  static_cast<int64_t>(slots) * SHARDREC_CUDA_ROWS_OF_A_SLOT);
    job.lanes = static_cast<int32_t>(lanes);
    job.part_bits = std::countr_zero(parts);
    job.tiles = static_cast<int32_t>((job.columns + of_tile - 1) / of_tile);
    job.tile_rows = static_cast<int32_t>(std::clamp(wanted, wave, kWarp));
    const int64_t of_block = job.tile_rows * kWarpsOfBlock;
    launch.first_block.push_back(launch.first_block.back() +
                                 (job.touched.count + of_block - 1) / of_block);
  }
}

void RowLaunches::run() {
  size_t bytes = 0;
  for (Launch& launch : launches_) {
    if (launch.jobs.empty()) continue;
    cut(launch);
    bytes += Arguments::bytes_of<shardrec_cuda_row_job>(launch.jobs.size()) +
             Arguments::bytes_of<int64_t>(launch.first_block.size());
    for (const auto& maps : launch.maps) bytes += Arguments::bytes_of<ColumnMap>(maps.size());
  }
  if (bytes == 0) return;
  arguments_.begin(bytes);
  for (Launch& launch : launches_) {
    if (launch.jobs.empty()) continue;
    for (size_t j = 0; j < launch.jobs.size(); ++j) {
      launch.jobs[j].rounding.maps = on_device(arguments_.add(launch.maps[j]));
    }
    launch.jobs_there = arguments_.add(std::span<const shardrec_cuda_row_job>(launch.jobs));
    launch.first_block_there = arguments_.add(std::span<const int64_t>(launch.first_block));
  }
  arguments_.send();
  for (const Launch& launch : launches_) {
    if (launch.jobs.empty()) continue;
    require(table().work_on_rows(stream_->handle(), &launch.kind, launch.jobs_there,
                                 launch.first_block_there, static_cast<int32_t>(launch.jobs.size()),
                                 launch.first_block.back()),
            "work on touched rows on device ", stream_->device());
  }
}

}  // namespace shardrec::compute::cuda::host
