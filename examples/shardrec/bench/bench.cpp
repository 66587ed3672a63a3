// bench lookup: tables on one rank. bench step: the same tables sharded over ranks. bench dense, bench sync: see
// dense_bench.h, sync_bench.h. One line of JSON, or with --serve one per round that the input asks for, or with --text a table.
#include <optional>

#include "bench/bench_report.h"
#include "bench/bench_result.h"
#include "bench/bench_rounds.h"
#include "bench/bench_tables.h"
#include "bench/bench_text.h"
#include "bench/dense_bench.h"
#include "bench/device_calls.h"
#include "bench/rank_times.h"
#include "bench/sync_bench.h"
#include "command/commands.h"
#include "command/option_texts.h"
#include "launch/devices.h"
#include "launch/engines.h"
#include "launch/processes.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

// Runs the ranks of a benchmark of tables: for a time, or for rounds.
class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options), result_(options.name, options.report, options.engine) {}

  void run() {
    run_ranks(group_of(options_), [&](int rank, Comm& comm) {
      BenchRank tables(options_, comm, rank);
      RankTimes times;
      times.create = tables.create_seconds();
      times.ids = tables.ids();
      times.unique_rows = tables.unique_rows();
      const bool on_cpu = options_.tables_on.on_cpu();
      for (int64_t i = 0; i < kBenchWarmUp; ++i) tables.step(i, false);
      if (options_.serve) {
        serve_bench_rounds(comm, rank, [&](int64_t steps) {
          times.steps.clear();
          times.calls = calls_during(comm, [&] {
            for (int64_t i = 0; i < steps; ++i) times.steps.push_back(tables.step(i, on_cpu));
          });
          print(comm, rank, times);
        });
        return;
      }
      times.calls = calls_during(comm, [&] {
        run_bench_seconds(comm, rank, options_.seconds, [&] {
          const auto done = static_cast<int64_t>(times.steps.size());
          times.steps.push_back(tables.step(kBenchWarmUp + done, on_cpu));
        });
      });
      if (!on_cpu) add_phases(tables, times.steps);
      times.destroy = tables.destroy();
      print(comm, rank, times);
    });
  }

 private:
  // The phases of steps behind those that were timed, in which the device's clock did not run. Collective.
  static void add_phases(BenchRank& tables, std::vector<StepTimes>& steps) {
    constexpr size_t kSteps = 64;
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].phases =
          i < kSteps ? tables.step(static_cast<int64_t>(i), true).phases : steps[i % kSteps].phases;
    }
  }

  // Of this process, while all ranks run the steps. Collective.
  template <class Steps>
  DeviceCalls calls_during(Comm& comm, const Steps& steps) {
    if (options_.tables_on.on_cpu()) {
      steps();
      return {};
    }
    comm.barrier();
    const DeviceCalls before = device_calls();
    comm.barrier();
    steps();
    comm.barrier();
    const DeviceCalls calls = device_calls() - before;
    comm.barrier();
    return calls;
  }

  // Collective: rank 0 prints what all have measured.
  void print(Comm& comm, int rank, const RankTimes& own) {
    std::vector<RankTimes> ranks;
    for (const std::vector<double>& numbers : gather(comm, numbers_of(own))) {
      ranks.push_back(times_from(numbers, own.ids.size()));
    }
    if (rank != 0) return;
    if (in_processes(options_.engine)) add_up_processes(ranks);
    const std::string line = bench_report(options_, ranks, probed_ ? &*probed_ : nullptr);
    result_.print(line, options_.text ? bench_text(line) : "");
  }

  static std::optional<ProbedMemory> memory_of(const BenchOptions& options) {
    if (options.tables_on.on_cpu()) return ProbedMemory::cached();
    if (in_processes(options.engine) && own_rank(options.engine) != 0) return std::nullopt;
    return ProbedMemory::of_device(options.tables_on.device_of(group_of(options), 0));
  }

  const BenchOptions& options_;
  BenchResult result_;
  const std::optional<ProbedMemory> probed_ = memory_of(options_);
};

int bench(BenchOptions options) {
  for (const std::string& size : options.sizes) {
    const std::vector<BenchTable> tables = parse_bench_tables(size);
    options.shape.tables.insert(options.shape.tables.end(), tables.begin(), tables.end());
  }
  if (options.sizes.empty()) {
    options.shape.tables.assign(static_cast<size_t>(options.tables), {options.rows, options.dim});
  }
  options.shape.lengths = parse_bag_lengths(options.pooling);
  options.shape.zipf = parse_id_distribution(options.ids);
  if (options.ranks_per_node == 0) options.ranks_per_node = options.ranks;
  if (options.threads == 0) options.threads = bench_threads(options.ranks);
  options.tables_on = TablesOn(options.device);
  if (starts_ranks(group_of(options))) return start_ranks(group_of(options));
  Bench(options).run();
  return 0;
}

void add_shape_options(CLI::App* command, BenchOptions& o) {
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 40);
  auto* tables = command->add_option("--tables", o.tables, "Tables")
                     ->check(CLI::Range(1, 100000))
                     ->capture_default_str();
  auto* rows = command->add_option("--rows", o.rows, "Rows of each table")
                   ->check(count)
                   ->capture_default_str();
  auto* dim = command->add_option("--dim", o.dim, "Columns of each table")
                  ->check(CLI::Range(1, 65536))
                  ->capture_default_str();
  command
      ->add_option("--table", o.sizes,
                   "Tables of one size as TABLESxROWSxDIM, such as 2x4096x64; once for each size")
      ->excludes(tables)
      ->excludes(rows)
      ->excludes(dim);
  command->add_option("--pooling", o.pooling, "Ids per bag: L or A..B")->capture_default_str();
  command->add_option("--dtype", o.dtype, "Of the tables: float32, float16 or bfloat16")
      ->capture_default_str();
  command->add_option("--output-dtype", o.output_dtype, "Of outputs and their gradients")
      ->capture_default_str();
  command->add_option("--ids", o.ids, "uniform or zipf:EXPONENT")->capture_default_str();
  command->add_option("--optimizer", o.optimizer, kTableOptimizers)->capture_default_str();
  command
      ->add_option("--row-statistics", o.row_statistics,
                   "What optimizers keep per row is taken over the whole row (row) or over the "
                   "columns of each box (shard)")
      ->capture_default_str();
  command
      ->add_flag("--borrow,!--no-borrow", o.borrow,
                 "Lend ids and gradients: the library reads them in place until backward has "
                 "returned, as C and C++ hosts can allow. --no-borrow: each call has read what it "
                 "was given when it returns, as hosts whose memory moves need")
      ->default_str("true");
  add_device_option(command, o.device,
                    std::string(kTablesOnHelp) +
                        ". On a device the batches, outputs and gradients are there too");
  add_device_wait_option(command, o.device_wait);
  command->add_option("--threads", o.threads, "Per rank; default: processors / ranks")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--batches", o.batches,
                   "Different batches that rotate, so that no step finds its rows in the cache")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  auto* seconds =
      command->add_option("--seconds", o.seconds, "Measure this long, and five steps at least")
          ->check(CLI::Range(0.0, 86400.0))
          ->capture_default_str();
  auto* serve =
      command
          ->add_flag("--serve", o.serve,
                     "Print 'ready', then for each line of the input, a number of steps, run them "
                     "and print their line of JSON: to measure in turn with something else")
          ->excludes(seconds);
  add_report_option(command, o.report, serve);
  auto* json = command->add_flag("--json", o.json, "One line of JSON, as without this option");
  command
      ->add_flag("--text", o.text,
                 "In place of the line of JSON a table for people: for each part of a step its "
                 "time, the bytes "
                 "that memory has to move at the least, GB/s and the share of what was probed; on "
                 "a device, "
                 "launches, calls and waits of a step")
      ->excludes(serve)
      ->excludes(json);
}

void add_batch_option(CLI::App* command, BenchOptions& o, const std::string& meaning) {
  command->add_option("--batch", o.shape.batch, meaning)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
}

}  // namespace

Run add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure; one line of JSON.");
  command->require_subcommand(1);
  CLI::App* lookup = command->add_subcommand(
      "lookup",
      "Begin, forward and backward on one rank, and their shares of the bandwidth that `shardrec "
      "probe` found.");
  add_batch_option(lookup, *options, "Samples of a step");
  add_shape_options(lookup, *options);
  CLI::App* step = command->add_subcommand("step", "The same, sharded over ranks.");
  add_batch_option(step, *options,
                   "Samples of a step, of all ranks together: with 2 ranks each has half");
  add_shape_options(step, *options);
  step->add_option("--ranks", options->ranks, "Ranks")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  step->add_option("--ranks-per-node", options->ranks_per_node, "Default: all")
      ->check(CLI::Range(1, 1024));
  step->add_option("--sharding", options->sharding, "As for train")->capture_default_str();
  step->add_option("--engine", options->engine, kEngineHelp)
      ->check(CLI::IsMember(engine_names()))
      ->capture_default_str();
  step->add_option("--forward-compression", options->forward_compression,
                   std::string("Of outputs between ranks: ") + kCompressions)
      ->capture_default_str();
  step->add_option("--backward-compression", options->backward_compression, "The same of gradients")
      ->capture_default_str();
  step->add_option("--replication", options->replication,
                   "Of replicated tables: auto, samples, rows or dense")
      ->capture_default_str();
  step->add_option(
          "--balance", options->balance,
          "What the plan spreads evenly over the ranks: bytes, or time as `shardrec probe` "
          "lets it expect")
      ->capture_default_str();
  const DenseBench dense = add_dense_bench(*command);
  const SyncBench sync = add_sync_bench(*command);
  return [options, dense, sync, step] {
    if (dense.command->parsed()) return dense.run();
    if (sync.command->parsed()) return sync.run();
    if (step->parsed()) options->name = "bench step";
    return bench(*options);
  };
}

}  // namespace shardrec::cli
