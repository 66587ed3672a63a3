// The probe: its kernels compute what they say, and whatever it measures is usable. No test here
// depends on how fast the machine is.
#include "compute/probe/probe.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "compute/probe/choice.h"
#include "compute/probe/jobs.h"
#include "compute/probe/kernels.h"
#include "compute/probe/machine.h"
#include "compute/probe/team.h"
#include "compute/profile/prefetch.h"
#include "core/error.h"
#include "core/memory.h"

namespace shardrec::compute::probe {
namespace {

std::span<float> floats(core::Pages& pages) {
  return {static_cast<float*>(static_cast<void*>(pages.data())), pages.size() / sizeof(float)};
}

// Rows of small whole numbers, whose sums are exact in any order.
struct Rows {
  explicit Rows(size_t row_size)
      : columns(static_cast<size_t>(kProbeRowBytes[row_size]) / sizeof(float)),
        memory(kCount * columns * sizeof(float)) {
    std::mt19937 random(7);
    for (float& x : floats(memory)) x = static_cast<float>(random() % 1000);
  }
  static constexpr size_t kCount = 200;
  size_t columns;
  core::Pages memory;
};

template <class Body>
void for_all_sets(const Body& body) {
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    force_cpu_kernels(&cpu_kernels_at(set));
    SCOPED_TRACE(cpu_kernels_at(set).name);
    for (size_t size = 0; size < kProbeRowSizes; ++size) {
      SCOPED_TRACE(kProbeRowBytes[size]);
      for (size_t hint = 0; hint < kPrefetchHints; ++hint) body(size, hint);
    }
  }
  force_cpu_kernels(nullptr);
}

TEST(ProbeKernels, SumTheRowsOfEachBag) {
  constexpr size_t kBags = 13;
  constexpr size_t kBag = 7;
  for_all_sets([&](size_t size, size_t hint) {
    Rows rows(size);
    std::mt19937 random(3);
    std::vector<int64_t> ids(kBags * kBag);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % Rows::kCount);
    for (const size_t streaming : {0U, 1U}) {
      core::Pages out((kBags + 1) * rows.columns * sizeof(float));
      probe_kernels().gather[size][hint][streaming]({.table = floats(rows.memory).data(),
                                                     .ids = ids.data(),
                                                     .bags = kBags,
                                                     .bag_length = kBag,
                                                     .out = floats(out).data(),
                                                     .distance = 8});
      for (size_t bag = 0; bag <= kBags; ++bag) {
        for (size_t c = 0; c < rows.columns; ++c) {
          float sum = 0;
          for (size_t i = 0; bag < kBags && i < kBag; ++i) {
            sum += floats(rows.memory)[static_cast<size_t>(ids[bag * kBag + i]) * rows.columns + c];
          }
          ASSERT_EQ(floats(out)[bag * rows.columns + c], sum) << bag << " " << c;
        }
      }
    }
  });
}

TEST(ProbeKernels, StepEachRowOnce) {
  for_all_sets([&](size_t size, size_t hint) {
    Rows rows(size);
    Rows before(size);
    core::Pages gradients(static_cast<size_t>(kProbeGradients) * rows.columns * sizeof(float));
    for (size_t i = 0; i < floats(gradients).size(); ++i) {
      floats(gradients)[i] = 0.5F + static_cast<float>(i % 5);
    }
    std::vector<float> state(Rows::kCount, 2.0F);
    std::vector<int64_t> touched;
    for (int64_t row = 1; row < static_cast<int64_t>(Rows::kCount); row += 3)
      touched.push_back(row);
    probe_kernels().update[size][hint]({.table = floats(rows.memory).data(),
                                        .state = state.data(),
                                        .rows = touched.data(),
                                        .count = static_cast<int64_t>(touched.size()),
                                        .gradients = floats(gradients).data(),
                                        .distance = 8});
    for (size_t row = 0; row < Rows::kCount; ++row) {
      const bool stepped = row % 3 == 1;
      const size_t turn = row / 3 % static_cast<size_t>(kProbeGradients) * rows.columns;
      double squares = 0;
      for (size_t c = 0; c < rows.columns; ++c) {
        squares += std::pow(double{floats(gradients)[turn + c]}, 2);
      }
      const double h = 2 + (stepped ? squares / static_cast<double>(rows.columns) : 0);
      ASSERT_NEAR(state[row], h, 1e-5 * h);
      for (size_t c = 0; c < rows.columns; ++c) {
        const double was = floats(before.memory)[row * rows.columns + c];
        const double step = stepped ? 0.01 / std::sqrt(h) * floats(gradients)[turn + c] : 0;
        ASSERT_NEAR(floats(rows.memory)[row * rows.columns + c], was - step,
                    stepped ? 1e-3 + 1e-6 * was : 0);
      }
    }
  });
}

TEST(ProbeTeam, RunsEachPartOnceOnAThreadOfItsOwn) {
  core::Threads threads(3);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  lead_team(threads, [&](ProbeTeam& team) {
    ASSERT_GE(team.count(), 1);
    ASSERT_LE(team.count(), 3);
    std::array<std::atomic<int>, 3> runs{};
    for (int round = 0; round < 100; ++round) {
      const double seconds = team.run([&](int64_t part) { ++runs[static_cast<size_t>(part)]; });
      EXPECT_GT(seconds, 0);
    }
    for (int64_t part = 0; part < 3; ++part) {
      EXPECT_EQ(runs[static_cast<size_t>(part)], part < team.count() ? 100 : 0);
    }
  });
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ProbeTeam, EndsWhenItsLeaderFails) {
  core::Threads threads(2);
  EXPECT_THROW(lead_team(threads, [](ProbeTeam&) { throw std::runtime_error("lead"); }),
               std::runtime_error);
  int64_t parts = 0;
  lead_team(threads, [&](ProbeTeam& team) { parts = team.count(); });
  EXPECT_GE(parts, 1);
}

TEST(ProbeChoice, WaysBeginWithTheUsualOneAndAreDifferent) {
  for (const int64_t row_bytes : kProbeRowBytes) {
    const std::vector<TimedPrefetch> ways = kernel_ways(row_bytes);
    EXPECT_EQ(ways.front().way, usual_prefetch(row_bytes));
    std::set<std::pair<PrefetchHint, int64_t>> seen;
    for (const TimedPrefetch& timed : ways) {
      EXPECT_TRUE(seen.insert({timed.way.hint, timed.way.distance_rows}).second);
      EXPECT_GE(timed.way.distance_rows, kLeastPrefetchDistance);
      EXPECT_LE(timed.way.distance_rows, kMostPrefetchDistance);
    }
    EXPECT_TRUE(std::any_of(ways.begin(), ways.end(), [](const TimedPrefetch& timed) {
      return timed.way.hint == PrefetchHint::kT0;
    }));
  }
}

TEST(ProbeChoice, LeavesTheUsualWayForMoreThanNoiseOnly) {
  const Prefetch usual = usual_prefetch(512);
  const Prefetch near{.hint = PrefetchHint::kT0, .distance_rows = 16};
  const Prefetch far{.hint = PrefetchHint::kT1, .distance_rows = 64};
  const auto chosen = [&](double of_usual, double of_near, double of_far) {
    return choose_way(
        std::array<TimedPrefetch, 3>{{{usual, of_usual}, {near, of_near}, {far, of_far}}});
  };
  EXPECT_EQ(chosen(10, 13, 12), near);
  EXPECT_EQ(chosen(10, 12, 13), far);
  EXPECT_EQ(chosen(10, 9, 8), usual);
  EXPECT_EQ(chosen(10, 10.1, 10.15), usual);
  EXPECT_EQ(chosen(10, 10.3, 10.1), near);
  EXPECT_EQ(chosen(0, 0, 0), usual);  // no time was left
  EXPECT_EQ(chosen(10, 0, 0), usual);
}

// The jobs touch what they say, and every kernel takes them.
TEST(ProbeJobs, SumBagsAndStepEachRowOnce) {
  constexpr int64_t kBag = 3;
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    const Kernels& kernels = cpu_kernels_at(set);
    ProbeJobs jobs(Rows::kCount, 2);
    for (size_t size = 0; size < kProbeRowSizes; ++size) {
      for (const PrefetchHint hint : {PrefetchHint::kT0, PrefetchHint::kT1}) {
        const Prefetch way{.hint = hint, .distance_rows = 8};
        Rows rows(size);
        Rows before(size);
        const std::vector<int64_t> ids = {5, 199, 5, 0, 17, 42, 3, 3, 3};
        for (const int64_t bag : {int64_t{1}, kBag}) {
          std::vector<float> out(ids.size() * rows.columns);
          const auto bags = std::ssize(ids) / bag;
          kernels.pooled_lookup(jobs.lookup(floats(rows.memory).data(), kProbeRowBytes[size],
                                            ids.data(), bag, out.data(), way),
                                0, bags);
          for (size_t i = 0; i < static_cast<size_t>(bags) * rows.columns; ++i) {
            float sum = 0;
            for (int64_t k = 0; k < bag; ++k) {
              const int64_t id =
                  ids[i / rows.columns * static_cast<size_t>(bag) + static_cast<size_t>(k)];
              sum += floats(rows.memory)[static_cast<size_t>(id) * rows.columns + i % rows.columns];
            }
            ASSERT_EQ(out[i], sum);
          }
        }
        std::vector<float> state(Rows::kCount);
        const std::vector<int64_t> touched = {0, 7, 8, 120, 199};
        const RowUpdate job = jobs.update(floats(rows.memory).data(), state.data(),
                                          kProbeRowBytes[size], touched.data(), way);
        kernels.row_update(job, 0, 2, jobs.scratch(0));
        kernels.row_update(job, 2, std::ssize(touched), jobs.scratch(1));
        for (size_t row = 0; row < Rows::kCount; ++row) {
          const bool stepped =
              std::count(touched.begin(), touched.end(), static_cast<int64_t>(row)) == 1;
          ASSERT_EQ(state[row] > 0, stepped) << row;
          for (size_t c = 0; c < rows.columns; ++c) {
            const size_t at = row * rows.columns + c;
            ASSERT_EQ(floats(rows.memory)[at] < floats(before.memory)[at], stepped) << row;
          }
        }
      }
    }
  }
}

constexpr ProbeSizes kSmall = {.table = 4 << 20,
                               .outputs = 1 << 20,
                               .rough = 32 << 10,
                               .fine = 64 << 10,
                               .updates = 64 << 10,
                               .fine_rounds = 2};

TEST(Probe, MeasuresEachCaseWithOneAndWithAllThreads) {
  const MemoryProfile profile = probe_memory(2, nullptr, kSmall);
  EXPECT_EQ(profile.machine, this_machine());
  EXPECT_GT(profile.seconds, 0);
  ASSERT_FALSE(profile.copies.empty());
  for (const CopyRate& copy : profile.copies) EXPECT_GT(copy.gb_per_second, 0);
  std::set<std::tuple<MemoryAccess, int64_t, int64_t, int64_t>> cases;
  for (const RowRate& rate : profile.rows) {
    EXPECT_TRUE(cases.insert({rate.access, rate.row_bytes, rate.bag_length, rate.threads}).second);
    EXPECT_GT(rate.gb_per_second, 0);
    EXPECT_GE(rate.distance_rows, kLeastPrefetchDistance);
    EXPECT_LE(rate.distance_rows, kMostPrefetchDistance);
    EXPECT_TRUE(rate.kernel.hint == PrefetchHint::kT0 || rate.kernel.hint == PrefetchHint::kT1);
    EXPECT_GE(rate.kernel.distance_rows, kLeastPrefetchDistance);
    EXPECT_LE(rate.kernel.distance_rows, kMostPrefetchDistance);
    EXPECT_TRUE(!rate.streaming_stores || rate.bag_length == 1);
    EXPECT_GT(rate.by_hint[static_cast<size_t>(PrefetchHint::kT1)], 0);
  }
  EXPECT_EQ(cases.size(), profile.copies.size() * kProbeRowSizes * 3);
  // What it writes is read.
  const MemoryProfile read = profile_from_json(profile_to_json(profile), "file");
  EXPECT_EQ(read.rows.size(), profile.rows.size());
}

TEST(Probe, WithoutTimeStillMeasuresEachCase) {
  ProbeSizes sizes = kSmall;
  sizes.rough_time = sizes.fine_time = sizes.small_pages_time = std::chrono::milliseconds(0);
  sizes.kernels_time = std::chrono::milliseconds(0);
  const MemoryProfile profile = probe_memory(1, nullptr, sizes);
  ASSERT_EQ(profile.rows.size(), kProbeRowSizes * 3);
  for (const RowRate& rate : profile.rows) {
    EXPECT_GT(rate.gb_per_second, 0);
    EXPECT_EQ(rate.hint, PrefetchHint::kT1);
    EXPECT_EQ(rate.distance_rows, usual_prefetch(rate.row_bytes).distance_rows);
    EXPECT_EQ(rate.kernel, usual_prefetch(rate.row_bytes));
    EXPECT_TRUE(rate.huge_pages);
  }
}

TEST(Probe, WaitsForSlowMemoryNoLongerThanForTheLeastTable) {
  ProbeSizes sizes = kSmall;
  EXPECT_EQ(probe_memory(1, nullptr, sizes).table_bytes, sizes.table);
  sizes.least_table = 1 << 20;
  sizes.touch_time = std::chrono::milliseconds(0);
  EXPECT_EQ(probe_memory(1, nullptr, sizes).table_bytes, sizes.least_table);
}

TEST(Probe, StagesHaveLessTimeWhereMemoryCameSlowly) {
  using seconds = std::chrono::duration<double>;
  using std::chrono::milliseconds;
  // Wanted: 1.4 seconds with several threads, 0.9 with one; beside that, 0.2 and 0.1.
  const auto kept = [](double spent, int64_t threads) {
    ProbeSizes sizes = {.time = milliseconds(2000),
                        .rough_time = milliseconds(200),
                        .fine_time = milliseconds(240),
                        .kernels_time = milliseconds(400),
                        .small_pages_time = milliseconds(60)};
    keep_to_time(sizes, seconds(spent), threads);
    return std::array{sizes.rough_time, sizes.fine_time, sizes.kernels_time,
                      sizes.small_pages_time};
  };
  const auto times = [](int rough, int fine, int kernels, int small_pages) {
    return std::array{milliseconds(rough), milliseconds(fine), milliseconds(kernels),
                      milliseconds(small_pages)};
  };
  EXPECT_EQ(kept(0, 2), times(200, 240, 400, 60));
  EXPECT_EQ(kept(0.39, 8), times(200, 240, 400, 60));
  EXPECT_EQ(kept(1.1, 8), times(100, 120, 200, 30));
  EXPECT_EQ(kept(1.7, 2), times(50, 60, 100, 15));
  EXPECT_EQ(kept(9, 2), times(50, 60, 100, 15));
  EXPECT_EQ(kept(0.99, 1), times(200, 240, 400, 60));
  EXPECT_EQ(kept(1.45, 1), times(100, 120, 200, 30));
}

TEST(Probe, TellsItsProgressAndIsCancelled) {
  core::Control control;
  probe_memory(1, &control, kSmall);
  EXPECT_GT(control.total(), 0);
  EXPECT_EQ(control.done(), control.total());
  control.cancel();
  for (const int threads : {1, 2}) {
    try {
      probe_memory(threads, &control, kSmall);
      FAIL() << "not cancelled";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_CANCELLED);
    }
  }
}

// As where the memory was another probe's before, and has been written in since.
TEST(Probe, OffsetsOfBagsDoNotRestOnWhatTheMemoryHeld) {
  constexpr int64_t kRows = 1000;
  constexpr int64_t kBag = 20;
  const std::vector<int64_t> ids(kRows * kBag);
  core::Scratch behind;  // so that the memory stays with the process
  {
    std::array<core::Scratch, 64> before;
    for (core::Scratch& scratch : before) {
      std::ranges::fill(scratch.resize_as<int64_t>(4 * kRows), kBag);
    }
    behind.resize(64);
  }
  ProbeJobs jobs(kRows, 1);
  const PooledLookup job = jobs.lookup(nullptr, 64, ids.data(), kBag, nullptr, {});
  for (int64_t bag = 0; bag <= kRows; ++bag) ASSERT_EQ(job.offsets[bag], bag * kBag);
}

TEST(Probe, SizesExceedTheCachesAndKeepUpdatedRowsApart) {
  constexpr int64_t kMiB = 1 << 20;
  Machine machine = this_machine();
  for (const int64_t l3 : {int64_t{0}, 32 * kMiB, 384 * kMiB}) {
    machine.l3_bytes = l3;
    for (const int threads : {1, 2, 64, 4096}) {
      const ProbeSizes sizes = probe_sizes(machine, threads);
      EXPECT_GE(sizes.table, 64 * kMiB);
      EXPECT_LE(sizes.table, 2048 * kMiB);
      EXPECT_LE(sizes.rough, sizes.fine);
      EXPECT_LE(4 * sizes.fine, sizes.least_outputs);
      EXPECT_LE(sizes.least_outputs, sizes.outputs);
      EXPECT_LE(sizes.outputs, sizes.table);
      EXPECT_LE(8 * sizes.updates, sizes.table);
      EXPECT_TRUE(sizes.updates > l3 || 8 * sizes.updates == sizes.table);
    }
  }
}

}  // namespace
}  // namespace shardrec::compute::probe
