// The command line of `bench sync`, and its ranks.
#include "bench/sync_bench.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "bench/bench_rounds.h"
#include "bench/step_statistics.h"
#include "bench/sync_rank.h"
#include "bench/sync_report.h"
#include "command/option_texts.h"
#include "command/user_error.h"
#include "launch/engines.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

// Of all ranks, on all of them. Collective.
std::vector<MeasuredSyncs> gathered(Comm& comm, const MeasuredSyncs& own) {
  std::vector<MeasuredSyncs> ranks;
  for (const std::vector<double>& numbers : gather(comm, numbers_of(own))) {
    ranks.push_back(syncs_from(numbers));
  }
  return ranks;
}

// The first sync makes its memory, and is not measured.
template <class Sync>
std::vector<MeasuredSyncs> measure(Comm& comm, int64_t syncs, const Sync& sync) {
  MeasuredSyncs own;
  (void)sync();
  for (int64_t i = 0; i < syncs; ++i) own.steps.push_back(sync());
  return gathered(comm, own);
}

// As many as take about twice as long as a blocking sync: steps are not equally long.
int64_t steps_meanwhile(const std::vector<MeasuredSyncs>& blocking) {
  const auto milliseconds = [&](double SyncTimes::* of) {
    return median(slowest_milliseconds(blocking, [of](const SyncTimes& sync) { return sync.*of; }));
  };
  const double steps =
      std::ceil(2 * milliseconds(&SyncTimes::wait) / milliseconds(&SyncTimes::step));
  return std::clamp<int64_t>(static_cast<int64_t>(steps) + 1, 1, 100000);
}

void run_rank(const SyncBenchOptions& options, int rank, Comm& comm) {
  SyncKinds kinds;
  const auto blocking = [&](const char* way) {
    SyncRank measured(options, comm, rank, way);
    return measure(comm, options.syncs, [&] { return measured.blocking(); });
  };
  kinds.full = blocking("full");
  kinds.exact = blocking("exact");
  kinds.sharded = blocking("sharded");
  SyncRank touched(options, comm, rank, "touched");
  kinds.touched = measure(comm, options.syncs, [&] { return touched.blocking(); });
  const int64_t meanwhile = steps_meanwhile(kinds.touched);
  // Rows that are changed meanwhile are averaged before the next one, for as many rows to be averaged each time.
  kinds.overlapped = measure(comm, options.syncs, [&] {
    const SyncTimes times = touched.overlapped(meanwhile);
    (void)touched.blocking();
    return times;
  });
  if (rank == 0) std::cout << sync_report(options, kinds, meanwhile) << "\n" << std::flush;
}

int bench_sync(SyncBenchOptions options) {
  options.shape.tables.assign(static_cast<size_t>(options.tables), {options.rows, options.dim});
  options.shape.lengths = parse_bag_lengths(options.pooling);
  options.shape.zipf = parse_id_distribution(options.ids);
  if (options.ranks % options.sharding_group_size != 0 ||
      options.ranks == options.sharding_group_size) {
    throw UserError("--sharding-group-size is " + std::to_string(options.sharding_group_size) +
                    "; accepted: divisors of --ranks, but that itself: there would be nothing to "
                    "average.");
  }
  if (options.threads == 0) options.threads = bench_threads(options.ranks);
  const RankGroup group = group_of(options);
  options.tables_on = TablesOn(options.device);
  if (starts_ranks(group)) return start_ranks(group);
  run_ranks(group, [&](int rank, Comm& comm) { run_rank(options, rank, comm); });
  return 0;
}

}  // namespace

SyncBench add_sync_bench(CLI::App& bench) {
  auto options = std::make_shared<SyncBenchOptions>();
  SyncBenchOptions& o = *options;
  CLI::App* command = bench.add_subcommand(
      "sync",
      "Averaging replicas of tables (2D parallel): all rows, those that were touched, and these "
      "while steps are taken; and steps of replicas that all ranks train, each with all optimizer "
      "states, or with its share.");
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command->add_option("--tables", o.tables, "Tables")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rows", o.rows, "Rows of each table")->check(count)->capture_default_str();
  command->add_option("--dim", o.dim, "Columns of each table")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--batch", o.shape.batch, "Samples of a step, of all ranks together")
      ->check(count)
      ->capture_default_str();
  command->add_option("--pooling", o.pooling, "Ids per bag: L or A..B")->capture_default_str();
  command->add_option("--ids", o.ids, "uniform or zipf:EXPONENT")->capture_default_str();
  command->add_option("--dtype", o.dtype, "Of the tables: float32, float16 or bfloat16")
      ->capture_default_str();
  command->add_option("--optimizer", o.optimizer, kTableOptimizers)->capture_default_str();
  command->add_option("--sharding", o.sharding, "As for train")->capture_default_str();
  command->add_option("--steps", o.steps, "Steps between two syncs")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--syncs", o.syncs, "Syncs of each kind that are measured")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--batches", o.batches, "Different batches that rotate")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--ranks", o.ranks, "Ranks")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  command
      ->add_option("--sharding-group-size", o.sharding_group_size,
                   "Ranks that share a replica: there are --ranks / this replicas")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--engine", o.engine, kEngineHelp)
      ->check(CLI::IsMember(engine_names()))
      ->capture_default_str();
  add_device_option(command, o.device, kTablesOnHelp);
  command->add_option("--threads", o.threads, "Per rank; default: processors / ranks")
      ->check(CLI::Range(1, 4096));
  return {command, [options] { return bench_sync(*options); }};
}

}  // namespace shardrec::cli
