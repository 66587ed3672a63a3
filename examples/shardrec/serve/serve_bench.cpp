// serve-bench: opens a checkpoint as a service does and calls the scorer from many threads. Tables for
// people, a line of JSON, or with --serve a line for each round that the input asks for.
#include <iostream>
#include <optional>
#include <string>

#include "bench/bench_clock.h"
#include "bench/bench_rounds.h"
#include "command/commands.h"
#include "command/interrupt.h"
#include "command/long_work.h"
#include "command/numbers.h"
#include "command/user_error.h"
#include "serve/made_up.h"
#include "serve/serve_report.h"

namespace shardrec::cli {
namespace {

struct OpenedScorer {
  Scorer scorer;
  double seconds;
  int64_t bytes;  // that were read
};

OpenedScorer open(const ServeOptions& options, const std::string& directory) {
  const LongWork work("opening " + directory, !options.serve, LongWork::OnInterrupt::kCancel);
  const double start = bench_now();
  Scorer scorer(directory, options.step,
                ScorerOptions().tables(options.tables).collection(options.collection),
                work.control());
  const double seconds = bench_now() - start;
  return {std::move(scorer), seconds, work.control()->progress().done};
}

OpenedScorer open(const ServeOptions& options) {
  if (options.sizes.empty()) return open(options, options.directory);
  std::vector<BenchTable> tables;
  for (const std::string& size : options.sizes) {
    const std::vector<BenchTable> more = parse_bench_tables(size);
    tables.insert(tables.end(), more.begin(), more.end());
  }
  const MadeUpCheckpoint checkpoint(tables);
  return open(options, checkpoint.directory());
}

std::vector<ServeCall> calls_of(const ServeOptions& options, const ServedModel& model) {
  if (options.calls == "lookup") return {ServeCall::kLookup};
  if (model.scores > 0) {
    if (options.calls == "predict") return {ServeCall::kPredict};
    return {ServeCall::kLookup, ServeCall::kPredict};
  }
  if (options.calls == "predict") {
    throw UserError("--calls is 'predict', and the checkpoint has no dense half that fits.");
  }
  return {ServeCall::kLookup};
}

// Rounds of so many calls of all threads together, until the input ends.
void serve_rounds(const ServeOptions& options, const ServeLoad& load, ServeCall call) {
  std::cout << "ready\n" << std::flush;
  for (std::string line; !interrupted() && std::getline(std::cin, line);) {
    const auto calls = parse_integer(line);
    if (!calls || *calls < 1 || *calls > 1000000000) {
      throw UserError("--serve read '" + line + "'; accepted: a number of calls, a line each.");
    }
    std::cout << serve_round_json(options, load, load.run(call, options.threads, {.calls = *calls}))
              << "\n"
              << std::flush;
  }
}

int serve_bench(ServeOptions options) {
  if (options.threads == 0) options.threads = bench_threads(1);
  (void)parse_bag_lengths(options.pooling);  // before anything is read
  (void)parse_id_distribution(options.ids);
  handle_interrupts();
  OpenedScorer opened = open(options);
  ServeReport report{.step = opened.scorer.info().step,
                     .open = opened.seconds,
                     .bytes_read = opened.bytes,
                     .model = ServedModel(opened.scorer)};
  report.table_bytes = report.model.served_bytes(options.tables == "int8");
  const std::vector<ServeCall> calls = calls_of(options, report.model);
  const ServeLoad load(opened.scorer, report.model, options);
  report.ids = load.ids();
  report.unique_rows = load.unique_rows();
  if (options.serve) {
    serve_rounds(options, load, calls.front());
    return interrupted() ? kInterruptedExit : 0;
  }
  if (!options.json) std::cout << serve_header(options, report) << std::flush;
  Refresher refresher(opened.scorer, options.refresh_every);
  for (const ServeCall call : calls) {
    std::vector<int> threads{options.threads};
    if (options.scaling && options.threads > 1) threads.insert(threads.begin(), 1);
    for (const int count : threads) {
      if (interrupted()) break;
      report.results.push_back(load.run(call, count, {.seconds = options.seconds}));
    }
  }
  report.refreshes = refresher.stop();
  std::cout << (options.json ? serve_json(options, report) + "\n" : serve_rates(options, report))
            << std::flush;
  return interrupted() ? kInterruptedExit : 0;
}

void add_batch_options(CLI::App* command, ServeOptions& o) {
  command->add_option("--batch", o.batch, "Samples of a call")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command->add_option("--pooling", o.pooling, "Ids per bag: L or A..B")->capture_default_str();
  command->add_option("--ids", o.ids, "uniform or zipf:EXPONENT")->capture_default_str();
  command
      ->add_option("--batches", o.batches,
                   "Different batches of each thread, that rotate: enough, and no call finds its "
                   "rows in the cache")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
}

}  // namespace

Run add_serve_bench(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  ServeOptions& o = *options;
  CLI::App* command = app.add_subcommand("serve-bench",
                                         "Open a checkpoint as a service does, and measure lookups "
                                         "and predictions from many threads.");
  auto* directory = command->add_option("directory", o.directory, "Of checkpoints, or one of them");
  command
      ->add_option(
          "--table", o.sizes,
          "In place of a directory: made-up tables of one size as TABLESxROWSxDIM, such as "
          "2x4096x64; once for each size")
      ->excludes(directory);
  auto* step = command->add_option("--step", o.step, "The checkpoint to serve; default: the latest")
                   ->check(CLI::NonNegativeNumber)
                   ->needs(directory);
  command
      ->add_option("--collection", o.collection,
                   "Of the checkpoint; default: the only one, else that without a name")
      ->needs(directory);
  command
      ->add_option("--tables", o.tables,
                   "memory: read into memory; mapped: in the checkpoint's files, whose pages "
                   "processes share; int8: in memory, 8 bits per element")
      ->check(CLI::IsMember({"memory", "mapped", "int8"}))
      ->capture_default_str();
  command
      ->add_option("--calls", o.calls,
                   "lookup, predict, or all: lookups, then predictions where there is a dense half")
      ->check(CLI::IsMember({"lookup", "predict", "all"}))
      ->capture_default_str();
  command->add_option("--threads", o.threads, "That call at once; default: processors")
      ->check(CLI::Range(1, 4096));
  add_batch_options(command, o);
  auto* seconds = command->add_option("--seconds", o.seconds, "Measure each line this long")
                      ->check(CLI::Range(0.0, 86400.0))
                      ->capture_default_str();
  auto* refresh = command
                      ->add_option("--refresh-every", o.refresh_every,
                                   "Seconds: a thread looks for a newer checkpoint so often, and "
                                   "serves it from then on; default: never")
                      ->check(CLI::Range(0.001, 86400.0))
                      ->needs(directory)
                      ->excludes(step);
  auto* scaling =
      command->add_flag("--scaling", o.scaling, "One thread too, and how much faster all are");
  auto* json = command->add_flag("--json", o.json, "One line of JSON in place of the tables");
  command
      ->add_flag("--serve", o.serve,
                 "Print 'ready', then for each line of the input, a number of calls of all threads "
                 "together, make them and print their line of JSON: to measure in turn with "
                 "something else")
      ->excludes(seconds)
      ->excludes(refresh)
      ->excludes(scaling)
      ->excludes(json);
  command->callback([options] {
    if (options->directory.empty() && options->sizes.empty()) {
      throw CLI::RequiredError("directory, or --table,");
    }
  });
  return [options] { return serve_bench(*options); };
}

}  // namespace shardrec::cli
