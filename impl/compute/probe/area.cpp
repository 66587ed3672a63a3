#include "compute/probe/area.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::probe {
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

// Touches all of it, or what comes within `time` but `least` bytes; the bytes touched.
int64_t touch_in_time(core::Pages& pages, int64_t least, std::chrono::milliseconds time,
                      ProbeTeam& team) {
  const auto size = static_cast<int64_t>(pages.size());
  const auto until = std::chrono::steady_clock::now() + time;
  const int64_t slice = std::max<int64_t>(size / 32 / kPage * kPage, kPage);
  int64_t touched = 0;
  while (touched < size && (touched < least || std::chrono::steady_clock::now() < until)) {
    const int64_t end = std::min(touched + slice, size);
    touch(pages, touched, end, team);
    touched = end;
  }
  return touched;
}

// The first `size` bytes from huge pages into small ones, where they are: to give one part back
// divides the whole. Takes a hundredth of the time of new memory.
void split_pages(core::Pages& pages, int64_t size, ProbeTeam& team) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  madvise(pages.data(), pages.size(), MADV_NOHUGEPAGE);
  team.run([&](int64_t part) {
    const Share share = share_of(size / kHugePage, part, team.count());
    for (int64_t page = share.begin; page < share.end; ++page) {
      std::byte* first = pages.data() + page * kHugePage;
      madvise(first, kPage, MADV_DONTNEED);
      *first = std::byte{0};
    }
  });
}

}  // namespace

ProbeArea::ProbeArea(const ProbeSizes& sizes, ProbeTeam& team)
    : sizes_(sizes),
      table_(static_cast<size_t>(sizes.table)),
      outputs_(static_cast<size_t>(sizes.outputs)),
      gradients_(static_cast<size_t>(kProbeGradients * kMostRowBytes)),
      jobs_(std::max({sizes.rough, sizes.fine, sizes.updates}) / kProbeRowBytes.front(),
            team.count()) {
  table_bytes_ = touch_in_time(table_, sizes.least_table, sizes.touch_time, team);
  state_ = core::Pages(static_cast<size_t>(table_bytes_ / kProbeRowBytes.front()) * sizeof(float));
  touch(state_, team);
  sizes_.outputs = touch_in_time(outputs_, sizes.least_outputs, sizes.touch_time, team);
  std::fill_n(as<float>(gradients_), gradients_.size() / sizeof(float), 0.01f);
  for (size_t size = 0; size < kProbeRowSizes; ++size) {
    fill_random(gathered_[size], kProbeRowBytes[size], sizes.gathered, team);
    fill_ascending(updated_[size], kProbeRowBytes[size], team);
  }
}

void ProbeArea::use_small_pages(ProbeTeam& team) {
  split_pages(table_, table_bytes_, team);
  split_pages(state_, static_cast<int64_t>(state_.size()), team);
}

// id(i, random), where random is of 32 bits, on all threads.
template <class Id>
void ProbeArea::fill(Ids& ids, int64_t count, ProbeTeam& team, const Id& id) {
  ids.count = count;
  ids.memory = core::Pages(static_cast<size_t>(count) * sizeof(int64_t));
  int64_t* to = as<int64_t>(ids.memory);
  team.run([&](int64_t part) {
    const Share share = share_of(count, part, team.count());
    math::PhiloxCounter random = {};
    for (int64_t i = share.begin; i < share.end; ++i) {
      const auto n = static_cast<uint32_t>(i);
      if (n % 4 == 0 || i == share.begin) random = math::philox({n / 4}, {fills_});
      to[i] = id(i, random[n % 4]);
    }
  });
  ++fills_;
}

void ProbeArea::fill_random(Ids& ids, int64_t row_bytes, int64_t bytes, ProbeTeam& team) {
  const auto rows = static_cast<uint64_t>(table_bytes_ / row_bytes);
  fill(ids, bytes / row_bytes, team,
       [&](int64_t, uint64_t random) { return static_cast<int64_t>(random * rows >> 32); });
}

// Two passes over the table, each with one random row of every `gap` ones. As many rows as a pass
// has, from anywhere on, are distinct.
void ProbeArea::fill_ascending(Ids& ids, int64_t row_bytes, ProbeTeam& team) {
  const int64_t gap = std::clamp<int64_t>(table_bytes_ / sizes_.updates, 1, kMostGap);
  const int64_t pass = table_bytes_ / row_bytes / gap;
  fill(ids, 2 * pass, team, [&](int64_t i, uint64_t random) {
    return i % pass * gap + static_cast<int64_t>(random * static_cast<uint64_t>(gap) >> 32);
  });
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

}  // namespace shardrec::compute::probe
