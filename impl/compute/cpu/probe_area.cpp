#include "compute/cpu/probe_area.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace shardrec::compute::cpu {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kMostRowBytes = kProbeRowBytes.back();
// Between updated rows, on average: about what batches of real models leave out.
constexpr int64_t kMostGap = 32;

template <class T>
T* as(core::Pages& pages) noexcept {
  return static_cast<T*>(static_cast<void*>(pages.data()));
}

struct Share {
  int64_t begin;
  int64_t end;
};
Share share_of(int64_t count, int64_t part, int64_t parts) noexcept {
  return {count * part / parts, count * (part + 1) / parts};
}

// Of a bag, and of an updated row: as memory_profile.h counts.
int64_t gathered_bytes(int64_t row_bytes, int64_t bag_length) noexcept {
  return bag_length * (row_bytes + static_cast<int64_t>(sizeof(int64_t))) + row_bytes;
}
int64_t updated_bytes(int64_t row_bytes) noexcept {
  return static_cast<int64_t>(sizeof(int64_t)) +
         2 * (row_bytes + static_cast<int64_t>(sizeof(float)));
}

// Touches [from, to).
void touch(core::Pages& pages, int64_t from, int64_t to, ProbeTeam& team) {
  const int64_t count = (to - from + kPage - 1) / kPage;
  team.run([&](int64_t part) {
    const Share share = share_of(count, part, team.count());
    for (int64_t page = share.begin; page < share.end; ++page) {
      pages.data()[from + page * kPage] = std::byte{0};
    }
  });
}
void touch(core::Pages& pages, ProbeTeam& team) {
  touch(pages, 0, static_cast<int64_t>(pages.size()), team);
}

}  // namespace

ProbeArea::ProbeArea(const ProbeSizes& sizes, ProbeTeam& team)
    : sizes_(sizes),
      table_bytes_(sizes.table),
      outputs_(static_cast<size_t>(sizes.outputs)),
      gradients_(static_cast<size_t>(kProbeGradients * kMostRowBytes)),
      jobs_(std::max({sizes.rough, sizes.fine, sizes.updates}) / kProbeRowBytes.front(),
            team.count()) {
  make_table(team, true);
  touch(outputs_, team);
  std::fill_n(as<float>(gradients_), gradients_.size() / sizeof(float), 0.01f);
  for (size_t size = 0; size < kProbeRowSizes; ++size) {
    fill_random(gathered_[size], kProbeRowBytes[size], sizes.gathered);
    fill_ascending(updated_[size], kProbeRowBytes[size]);
  }
}

void ProbeArea::make_table(ProbeTeam& team, bool huge_pages) {
  const auto pages = [&](int64_t bytes) {
    core::Pages made(static_cast<size_t>(bytes));
    if (!huge_pages) madvise(made.data(), made.size(), MADV_NOHUGEPAGE);
    return made;
  };
  table_ = pages(table_bytes_);
  // The second time, what the first gave: it comes at once.
  const auto until = std::chrono::steady_clock::now() + sizes_.touch_time;
  const int64_t slice = std::max<int64_t>(sizes_.table / 32, kPage);
  int64_t touched = 0;
  while (touched < table_bytes_ && (!huge_pages || touched < sizes_.least_table ||
                                    std::chrono::steady_clock::now() < until)) {
    const int64_t end = std::min(touched + slice, table_bytes_);
    touch(table_, touched, end, team);
    touched = end;
  }
  table_bytes_ = touched;
  state_ = pages(table_bytes_ / kProbeRowBytes.front() * static_cast<int64_t>(sizeof(float)));
  touch(state_, team);
}

void ProbeArea::use_small_pages(ProbeTeam& team) {
  table_ = core::Pages();  // before the other one comes
  state_ = core::Pages();
  make_table(team, false);
}

void ProbeArea::fill_random(Ids& ids, int64_t row_bytes, int64_t bytes) {
  const auto rows = static_cast<uint64_t>(table_bytes_ / row_bytes);
  ids.count = bytes / row_bytes;
  ids.memory = core::Pages(static_cast<size_t>(ids.count) * sizeof(int64_t));
  int64_t* id = as<int64_t>(ids.memory);
  for (int64_t i = 0; i < ids.count; ++i) {
    // A linear congruential generator (Knuth's MMIX); its high half times the rows is uniform.
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    id[i] = static_cast<int64_t>(((random_ >> 32) * rows) >> 32);
  }
}

// Two passes over the table, each with one random row of every `gap` ones. As many rows as a pass
// has, from anywhere on, are distinct.
void ProbeArea::fill_ascending(Ids& ids, int64_t row_bytes) {
  const int64_t gap = std::clamp<int64_t>(table_bytes_ / sizes_.updates, 1, kMostGap);
  const int64_t pass = table_bytes_ / row_bytes / gap;
  fill_random(ids, row_bytes, 2 * pass * row_bytes);
  int64_t* id = as<int64_t>(ids.memory);
  for (int64_t i = 0; i < ids.count; ++i) id[i] = i % pass * gap + id[i] % gap;
}

const int64_t* ProbeArea::take(Ids& ids, int64_t count) noexcept {
  if (ids.next + count > ids.count) ids.next = 0;
  const int64_t at = ids.next;
  ids.next += count;
  return as<int64_t>(ids.memory) + at;
}

std::byte* ProbeArea::take_outputs(int64_t bytes) noexcept {
  if (next_output_ + bytes > sizes_.outputs) next_output_ = 0;
  std::byte* out = outputs_.data() + next_output_;
  // Whole rows of the largest size, so that those of all sizes are aligned.
  next_output_ += (bytes + kMostRowBytes - 1) / kMostRowBytes * kMostRowBytes;
  return out;
}

double ProbeArea::rate(const ProbeCase& what, const ProbeWay& way, int64_t bytes, ProbeTeam& team) {
  const int64_t rows = std::max<int64_t>(bytes / kProbeRowBytes[what.row_size], 1);
  return what.access == MemoryAccess::kGather ? gather_rate(what, way, rows, team)
                                              : update_rate(what, way, rows, team);
}

double ProbeArea::gather_rate(const ProbeCase& what, const ProbeWay& way, int64_t rows,
                              ProbeTeam& team) {
  const int64_t row_bytes = kProbeRowBytes[what.row_size];
  const int64_t bags = std::max<int64_t>(rows / what.bag_length, 1);
  const int64_t* ids = take(gathered_[what.row_size], bags * what.bag_length);
  std::byte* out = take_outputs(bags * row_bytes);
  const ProbeKernels::Gather kernel =
      probe_kernels()
          .gather[what.row_size][static_cast<size_t>(way.hint)][way.streaming_stores ? 1 : 0];
  const double seconds = team.run([&](int64_t part) {
    const Share share = share_of(bags, part, team.count());
    kernel({.table = as<float>(table_),
            .ids = ids + share.begin * what.bag_length,
            .bags = share.end - share.begin,
            .bag_length = what.bag_length,
            .out = static_cast<float*>(static_cast<void*>(out + share.begin * row_bytes)),
            .distance = way.distance_rows});
  });
  return static_cast<double>(bags * gathered_bytes(row_bytes, what.bag_length)) / seconds;
}

double ProbeArea::update_rate(const ProbeCase& what, const ProbeWay& way, int64_t rows,
                              ProbeTeam& team) {
  const int64_t row_bytes = kProbeRowBytes[what.row_size];
  const int64_t* ids = take(updated_[what.row_size], rows);
  const ProbeKernels::Update kernel =
      probe_kernels().update[what.row_size][static_cast<size_t>(way.hint)];
  const double seconds = team.run([&](int64_t part) {
    const Share share = share_of(rows, part, team.count());
    kernel({.table = as<float>(table_),
            .state = as<float>(state_),
            .rows = ids + share.begin,
            .count = share.end - share.begin,
            .gradients = as<float>(gradients_),
            .distance = way.distance_rows});
  });
  return static_cast<double>(rows * updated_bytes(row_bytes)) / seconds;
}

double ProbeArea::kernel_rate(const ProbeCase& what, const Prefetch& way, int64_t bytes,
                              ProbeTeam& team) {
  const Kernels& kernels = cpu_kernels();
  const int64_t row_bytes = kProbeRowBytes[what.row_size];
  const int64_t rows = std::max<int64_t>(bytes / row_bytes, 1);
  if (what.access == MemoryAccess::kUpdate) {
    const RowUpdate job = jobs_.update(as<float>(table_), as<float>(state_), row_bytes,
                                       take(updated_[what.row_size], rows), way);
    const double seconds = team.run([&](int64_t part) {
      const Share share = share_of(rows, part, team.count());
      kernels.row_update(job, share.begin, share.end, jobs_.scratch(part));
    });
    return static_cast<double>(rows * updated_bytes(row_bytes)) / seconds;
  }
  const int64_t bags = std::max<int64_t>(rows / what.bag_length, 1);
  std::byte* out = take_outputs(bags * row_bytes);
  const PooledLookup job = jobs_.lookup(
      as<float>(table_), row_bytes, take(gathered_[what.row_size], bags * what.bag_length),
      what.bag_length, static_cast<float*>(static_cast<void*>(out)), way);
  const double seconds = team.run([&](int64_t part) {
    const Share share = share_of(bags, part, team.count());
    kernels.pooled_lookup(job, share.begin, share.end);
  });
  return static_cast<double>(bags * gathered_bytes(row_bytes, what.bag_length)) / seconds;
}

double ProbeArea::copy_rate(ProbeTeam& team) {
  const int64_t half = table_bytes_ / 2;
  const double seconds = team.run([&](int64_t part) {
    const Share share = share_of(half / kPage, part, team.count());
    std::memcpy(table_.data() + half + share.begin * kPage, table_.data() + share.begin * kPage,
                static_cast<size_t>((share.end - share.begin) * kPage));
  });
  const int64_t copied = half / kPage * kPage;
  return 2 * static_cast<double>(copied) / seconds;
}

}  // namespace shardrec::compute::cpu
