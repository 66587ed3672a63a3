// The command line of `bench dense`, and its ranks.
#include "bench/dense_bench.h"

#include <memory>

#include "bench/bench_result.h"
#include "bench/bench_rounds.h"
#include "bench/dense_rank.h"
#include "bench/dense_report.h"
#include "command/numbers.h"
#include "command/user_error.h"
#include "launch/engines.h"
#include "launch/ranks.h"

namespace shardrec::cli {

std::vector<int64_t> parse_layers(const std::string& text) {
  constexpr int64_t kMost = 65536;
  std::vector<int64_t> widths;
  for (const std::string_view part : split(text, '-')) {
    widths.push_back(parse_integer(part).value_or(0));
    if (widths.back() < 1 || widths.back() > kMost) widths.resize(0);
    if (widths.empty()) break;
  }
  if (widths.size() < 2) {
    throw UserError("--layers is '" + text +
                    "'; accepted: the width of the input and of each layer, 1 to 65536, such as "
                    "512-1024-1.");
  }
  return widths;
}

namespace {

// Collective: rank 0 prints what all have measured.
void print(Comm& comm, int rank, const DenseBenchOptions& options, const DenseRank& layers,
           DenseTimes& own, BenchResult& result) {
  own.loss = layers.loss();
  std::vector<DenseTimes> ranks;
  for (const std::vector<double>& numbers : gather(comm, numbers_of(own))) {
    ranks.push_back(dense_times_from(numbers));
  }
  if (rank != 0) return;
  result.print(dense_report(options, layers.parameters(), ranks));
}

void check(const DenseBenchOptions& options) {
  if (options.dense != "fsdp") return;
  if (options.precision != "float32" || options.device != "cpu") {
    throw UserError(
        "--dense fsdp has layers on the CPU, in float32; --device and --precision do not "
        "go with it.");
  }
  if (!options.overlap || options.ddp_thread) {
    throw UserError("--overlap 0 and --ddp-thread are of DDP; they do not go with --dense fsdp.");
  }
}

int bench_dense(DenseBenchOptions options) {
  options.widths = parse_layers(options.layers);
  check(options);
  if (options.threads == 0) options.threads = bench_threads(options.ranks);
  const RankGroup group = group_of(options);
  options.layers_on = TablesOn(options.device);
  if (starts_ranks(group)) return start_ranks(group);
  BenchResult result("bench dense", options.report, options.engine);
  run_ranks(group, [&](int rank, Comm& comm) {
    DenseRank layers(options, comm, rank);
    DenseTimes times;
    for (int64_t i = 0; i < kBenchWarmUp; ++i) layers.step(i);
    if (options.serve) {
      serve_bench_rounds(comm, rank, [&](int64_t steps) {
        times.steps.clear();
        for (int64_t i = 0; i < steps; ++i) times.steps.push_back(layers.step(i));
        print(comm, rank, options, layers, times, result);
      });
      return;
    }
    run_bench_seconds(comm, rank, options.seconds, [&] {
      const auto done = static_cast<int64_t>(times.steps.size());
      times.steps.push_back(layers.step(kBenchWarmUp + done));
    });
    print(comm, rank, options, layers, times, result);
  });
  return 0;
}

}  // namespace

DenseBench add_dense_bench(CLI::App& bench) {
  auto options = std::make_shared<DenseBenchOptions>();
  DenseBenchOptions& o = *options;
  CLI::App* command = bench.add_subcommand(
      "dense",
      "A stack of layers trained data-parallel (DDP, or FSDP: each rank keeps a part of each "
      "layer): forward, loss, backward, the mean of the gradients over the ranks, update.");
  command
      ->add_option("--layers", o.layers,
                   "Widths of the input and of each layer's output; a ReLU behind all but the last")
      ->capture_default_str();
  command
      ->add_option("--batch", o.batch,
                   "Samples of a step, of all ranks together: with 2 ranks each has half")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command->add_option("--optimizer", o.optimizer, "As train's --dense-optimizer")
      ->capture_default_str();
  command->add_option("--learning-rate", o.learning_rate)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--precision", o.precision,
                   "In what the layers multiply; tfloat32 on CUDA devices alone")
      ->check(CLI::IsMember({"float32", "tfloat32", "bfloat16", "float16"}))
      ->capture_default_str();
  command->add_option("--ranks", o.ranks, "Ranks")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--engine", o.engine, kEngineHelp)
      ->check(CLI::IsMember(engine_names()))
      ->capture_default_str();
  add_device_option(command, o.device,
                    "Where the layers are: cpu, cuda:N, or cuda: the ranks of a machine take its "
                    "CUDA devices in turn");
  CLI::Option* dense =
      command
          ->add_option("--dense", o.dense,
                       "How ranks keep the layers: ddp (each has all of them) or "
                       "fsdp (each has a part of every layer; on the CPU, in float32)")
          ->check(CLI::IsMember({"ddp", "fsdp"}))
          ->capture_default_str();
  command->add_option("--fsdp-strategy", o.fsdp_strategy, "full_shard, shard_grad_op or no_shard")
      ->check(CLI::IsMember({"full_shard", "shard_grad_op", "no_shard"}))
      ->needs(dense)
      ->capture_default_str();
  command
      ->add_option("--fsdp-prefetch", o.fsdp_prefetch,
                   "Layers that are made whole ahead of the one that is computed")
      ->check(CLI::Range(0, 8))
      ->needs(dense)
      ->capture_default_str();
  command
      ->add_option(
          "--overlap", o.overlap,
          "1: gradients travel while the backward computes others; 0: all of them after it")
      ->check(CLI::IsMember({"0", "1"}))
      ->default_str("1");
  command
      ->add_option("--ddp-thread", o.ddp_thread,
                   "1: a thread of DDP's own exchanges during the backward; 0: whoever calls it; "
                   "default: by the processors that a rank has")
      ->check(CLI::IsMember({"0", "1"}));
  command->add_option("--threads", o.threads, "Per rank; default: processors / ranks")
      ->check(CLI::Range(1, 4096));
  command->add_option("--batches", o.batches, "Different batches that rotate")
      ->check(CLI::Range(1, 1000))
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
  return {command, [options] { return bench_dense(*options); }};
}

}  // namespace shardrec::cli
