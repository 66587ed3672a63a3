// What `shardrec train` does from its first line to its last: data, ranks, steps, checkpoints, report.
#include "train/train.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "command/interrupt.h"
#include "command/machine.h"
#include "command/numbers.h"
#include "command/user_error.h"
#include "data/data_files.h"
#include "data/planted_meta.h"
#include "launch/engines.h"
#include "launch/processes.h"
#include "plan/planned.h"
#include "report/report_file.h"
#include "report/train_page.h"
#include "trace/trace_file.h"
#include "train/feeds.h"
#include "train/load_rules.h"
#include "train/rank_trainer.h"
#include "train/train_checkpoint.h"
#include "train/train_mesh.h"
#include "train/train_report.h"

namespace shardrec::cli {
namespace {

struct FormatDefaults {
  int64_t batch;
  int epochs;
  double learning_rate;
  double eps;
};

FormatDefaults defaults_of(const std::string& format) {
  return format == "movielens" ? FormatDefaults{512, 3, 0.1, 1e-3}
                               : FormatDefaults{1024, 1, 0.02, 1e-8};
}

std::unique_ptr<ClickLog> open_log(const TrainOptions& options) {
  const ClickLogOptions log{
      .paths = options.data,
      .seed = options.seed,
      .tolerance = {.strict = options.strict, .share = options.max_unreadable},
      .labels = labels_of(options.labels),
      .rows_per_table = options.rows_per_table,
      .table_rows = options.table_rows};
  return options.format == "movielens" ? open_movielens(log) : open_criteo(log);
}

// Tables start in +-kInitialRange, small and large ones alike.
constexpr double kInitialRange = 0.05;

Model make_model(const TrainOptions& options, const Schema& schema) {
  TableOptions start;
  start.init_range(-kInitialRange, kInitialRange).dtype(options.dtype);
  Model model;
  for (const Feature& feature : schema.features) {
    model.add_feature(model.add_table(feature.name, feature.rows, options.dim, start),
                      feature.name);
  }
  model.set_optimizer(OptimizerOptions()
                          .optimizer(options.optimizer)
                          .learning_rate(options.learning_rate)
                          .eps(options.eps)
                          .momentum_scale(options.momentum_scale));
  return model;
}

Plan make_plan(const TrainOptions& options, const Model& model) {
  return Plan(model, Topology(options.ranks, options.ranks_per_node),
              PlanOptions().sharding(options.sharding));
}

void print_plan(const Plan& plan) { std::cout << plan.to_text() << "\n" << std::flush; }

// The plan of the ranks that share a copy of the tables; the first rank prints it, and on a mesh
// who they are. Collective.
Plan agree_on_plan(int rank, Comm& comm, Mesh* mesh, const TrainOptions& options,
                   const Model& model, std::optional<MeshGroups>& groups) {
  if (mesh == nullptr) {
    Plan plan = make_plan(options, model);
    if (rank == 0) print_plan(plan);
    return plan;
  }
  MeshGroups places = groups_of(comm, *mesh);
  Plan plan = plan_on(comm, *mesh, options, model);
  if (rank == 0) {
    std::cout << mesh_text(options, places, model, plan) << "\n";
    print_plan(plan);
    groups = std::move(places);
  }
  return plan;
}

RankReport report_of(const RankTrainer& trainer) {
  RankReport report;
  report.phases = trainer.times().seconds();
  report.first_losses = trainer.first_losses();
  for (size_t i = 0; i < kTableStats.size(); ++i) {
    report.table_seconds[i] = trainer.collection().stat(kTableStats[i].stat);
  }
  return report;
}

// Collective.
TrainDetails details_of(Comm& comm, const RankTrainer& trainer, const std::string& settings,
                        size_t tables) {
  TrainDetails details{.settings = settings, .history = trainer.history().points()};
  for (const auto& numbers :
       gather_on_first(comm, numbers_of(counters_of(trainer.collection(), tables)))) {
    details.counters.push_back(counters_from(numbers));
  }
  if (comm.rank() == 0) {
    const Plan plan = trainer.collection().plan();
    details.plan = planned_json(read_plan(plan, plan.to_json()));
  }
  return details;
}

// What a run begins with: nothing, a checkpoint of its own, or one of another run.
struct Start {
  std::optional<SavedRun> resumed;  // of --save
  std::optional<SavedRun> loaded;   // of --load
  std::string rules;                // of --load-rules, JSON
};

// Fills tables and layers from a checkpoint, if the run begins with one. Collective.
void begin(const TrainOptions& options, const Start& start, Comm& comm, int rank,
           RankTrainer& trainer, std::optional<RunStore>& store, TrainResult& result) {
  if (start.resumed) {
    store->load(start.resumed->step);
    trainer.start_at(start.resumed->position);
  } else if (start.loaded && start.loaded->settings.empty()) {
    trainer.load_format_1(options.load);
  } else if (start.loaded) {
    RunStore other(comm, rank, options.load, CheckpointOptions());
    trainer.add_to(other.checkpoint());
    if (start.rules.empty()) return other.load(start.loaded->step);
    const std::string report = other.load(start.loaded->step, start.rules);
    if (rank != 0) return;
    std::cout << load_text(report) << "\n" << std::flush;
    result.load_report = report;
  }
}

// Where rank 0 lives, the result; elsewhere only whether it was interrupted.
TrainResult run(const TrainOptions& options, const Start& start, ClickLog& log, TraceFile& trace,
                PredictionFile& predictions) {
  TrainResult result;
  Feeds feeds(log, options);
  const std::string settings = settings_json(options, log.schema());
  run_ranks(group_of(options), [&](int rank, Comm& comm) {
    const Model model = make_model(options, log.schema());
    std::optional<Mesh> mesh;
    if (trains_on_mesh(options)) mesh.emplace(make_mesh(comm, options));
    Mesh* const on = mesh ? &*mesh : nullptr;
    RankTrainer trainer(comm, rank, options, log.schema(), model,
                        agree_on_plan(rank, comm, on, options, model, result.mesh), on);
    if (const std::string text = trainer.sharded_text(); rank == 0 && !text.empty()) {
      std::cout << text << "\n\n" << std::flush;
    }
    std::optional<RunStore> store;
    if (!options.save.empty()) {
      store.emplace(
          comm, rank, options.save,
          CheckpointOptions().keep_last(options.keep).delta_states(options.publish_states));
      trainer.add_to(store->checkpoint());
    }
    begin(options, start, comm, rank, trainer, store, result);
    const RankTrainer::Saving saving{
        .every = store ? options.save_every : 0,
        .publish_every = store ? options.publish_every : 0,
        .save = [&](const TrainPosition& position, RankTrainer::Saved saved) {
          if (saved == RankTrainer::Saved::kWhole) {
            store->commit(settings, position);
          } else {
            store->publish(settings, position);
          }
        }};
    const TrainPosition first = trainer.position();
    Progress progress(rank == 0, options.progress_every);
    bool stopped = false;
    for (auto epoch = static_cast<int>(first.epoch); epoch < options.epochs && !stopped; ++epoch) {
      BatchFeed& feed = feeds.train(rank, epoch, epoch == first.epoch ? first.batches : 0);
      trainer.train(feed, epoch,
                    "epoch " + std::to_string(epoch + 1) + "/" + std::to_string(options.epochs),
                    progress, saving);
      stopped = feed.cut_short() || trainer.stopped();
    }
    trainer.enter(Phase::kSave);
    if (store) store->commit(settings, trainer.position());
    trainer.enter(Phase::kOther);
    Quality test;
    if (!stopped) {
      BatchFeed& feed = feeds.test(rank);
      test = trainer.evaluate(feed, predictions, progress);
      stopped = feed.cut_short() || trainer.stopped();
    }
    trainer.enter(Phase::kOther);
    trace.write(comm);
    const auto reports = gather_on_first(comm, numbers_of(report_of(trainer)));
    std::optional<TrainDetails> details;
    if (!options.report.empty()) {
      details = details_of(comm, trainer, settings, log.schema().features.size());
    }
    if (rank == 0 || in_processes(options.engine)) result.interrupted = stopped;
    if (rank == 0) {
      for (const std::vector<double>& numbers : reports) {
        result.ranks.push_back(report_from(numbers));
      }
      result.test = test;
      result.samples_trained = trainer.samples_trained();
      result.position = trainer.position();
      result.seconds_trained = trainer.seconds_trained();
      result.details = std::move(details);
    }
  });
  return result;
}

void print_bad_lines(const BadLines& bad_lines) {
  if (bad_lines.count() == 0) return;
  std::cerr << with_separators(bad_lines.count())
            << " unreadable lines were left out; the first ones:\n";
  for (const auto& line : bad_lines.first()) {
    std::cerr << "  " << line.path << ", line " << line.number << ": " << line.reason << "\n";
  }
}

// A DLRM of linear layers, which earlier releases had alone.
bool is_plain(const TrainOptions& options) {
  return options.arch == "dlrm" && !options.layer_norm && options.dropout == 0;
}

void check_layers(const TrainOptions& options) {
  if (options.dropout >= 1) {
    throw UserError("--dropout is " + number_text(options.dropout) +
                    "; accepted: at least 0, below 1.");
  }
  for (const char* option : {"--cross-layers", "--cross-rank"}) {
    if (options.arch == "dcn" || !options.given.contains(option)) continue;
    throw UserError(std::string(option) + " goes with --arch dcn; the model is a DLRM.");
  }
}

// Also takes the settings of the checkpoint that the run begins with.
Start start_of(TrainOptions& options) {
  Start start;
  if (!options.save.empty()) start.resumed = newest_run(options.save, Newest::kWithStates);
  if (start.resumed) {
    if (start.resumed->settings.empty()) {
      throw UserError(options.save +
                      " holds a checkpoint already, of an earlier release: --load starts from it, "
                      "--save needs another directory.");
    }
    if (!options.resume) {
      throw UserError(options.save +
                      " holds a checkpoint already; --resume goes on with it, a new run needs "
                      "another directory for --save.");
    }
    take_settings(start.resumed->settings, options.save, TakeSettings::kRun, options);
  } else if (!options.load.empty()) {
    if (!options.load_rules.empty()) start.rules = load_rules(options.load_rules);
    // Rules say what becomes of states.
    start.loaded =
        newest_run(options.load, start.rules.empty() ? Newest::kWithStates : Newest::kAny);
    if (!start.loaded) throw UserError(options.load + " holds no checkpoint.");
    if (!start.loaded->settings.empty()) {
      take_settings(start.loaded->settings, options.load,
                    start.rules.empty() ? TakeSettings::kModel : TakeSettings::kOthers, options);
    } else if (!is_plain(options)) {
      throw UserError(
          options.load +
          " holds a checkpoint of an earlier release, of a DLRM without layer norms and "
          "dropout: --arch dcn, --layer-norm and --dropout do not go with it.");
    } else if (!start.rules.empty()) {
      throw UserError(
          options.load +
          " holds a checkpoint of an earlier release, which --load-rules does not read.");
    } else if (options.dense == "fsdp") {
      throw UserError(
          options.load +
          " holds a checkpoint of an earlier release, which --dense fsdp does not read; "
          "--dense ddp with --save makes one of this release of it.");
    }
  }
  return start;
}

void print_start(const TrainOptions& options, const Start& start) {
  if (!start.resumed) return;
  const TrainPosition& position = start.resumed->position;
  std::cout << "goes on with " << options.save << " behind step " << with_separators(position.steps)
            << " (epoch " << position.epoch + 1 << ", batch " << with_separators(position.batches)
            << ")\n";
}

// Throws UserError where the layers cannot be sharded.
void check_dense(const TrainOptions& options) {
  if (options.dense != "fsdp") {
    if (!options.given.contains("--fsdp-strategy")) return;
    throw UserError("--fsdp-strategy goes with --dense fsdp; the layers are in a DDP set.");
  }
  if (options.fsdp_strategy == "hybrid_shard" && options.sharding_group_size == 0) {
    throw UserError("--fsdp-strategy hybrid_shard needs --sharding-group-size.");
  }
}

// Throws UserError where NCCL cannot add up, as long as it is known without the ranks.
void check_reduction(const TrainOptions& options) {
  if (options.ddp_reduction != "nccl") return;
  if (!options.layers_on_device) {
    throw UserError("--ddp-reduction nccl needs layers on devices: --device cuda, and cuBLASLt");
  }
  if (options.ranks == 1 || options.engine == "nccl") return;
  throw UserError("--ddp-reduction nccl needs --engine nccl");
}

void check_precision(const TrainOptions& options) {
  const bool is_half = options.precision == "bfloat16" || options.precision == "float16";
  if (options.dense == "fsdp" && options.layers_on_device && is_half) {
    throw UserError("--dense fsdp has layers of 16 bits on the CPU; --precision " +
                    options.precision + " goes with --dense-device cpu there.");
  }
  if (options.precision != "tfloat32" || options.layers_on_device) return;
  throw UserError("--precision tfloat32 needs layers on devices: --device cuda, and cuBLASLt");
}

// Throws UserError for options that do not go with the way in which replicas are kept equal; also where rows of a sync and
// of steps would be under way at once over NCCL.
void check_sync(const TrainOptions& options) {
  if (!options.averages() && options.sync_overlap) {
    throw UserError("--sync-overlap does not go with --sync " + options.sync +
                    ", which averages nothing.");
  }
  if (!options.averages() && options.momentum_scale != 1) {
    throw UserError("--momentum-scale is of replicas that are averaged; --sync " + options.sync +
                    " averages nothing.");
  }
  if (!options.sync_overlap || options.engine != "nccl" || options.tables_on.on_cpu()) return;
  throw UserError(
      "--sync-overlap does not go with --engine nccl and tables on devices: its "
      "exchanges and those of steps would be under way at once.");
}

// What --dense-device means. Returns what the user is told, or nothing. Throws UserError.
std::string place_layers(TrainOptions& options) {
  if (options.tables_on.on_cpu()) {
    if (options.dense_device != "device") return {};
    throw UserError("--dense-device device needs tables on a device: --device cuda");
  }
  if (options.dense_device == "cpu") return {};
  const Availability layers = available(SHARDREC_CAPABILITY_DENSE, "cublas");
  options.layers_on_device = layers.is_available;
  if (layers.is_available) return {};
  if (options.dense_device == "device") throw UserError("--dense-device device: " + layers.reason);
  return "the layers are on the CPU: " + layers.reason;
}

}  // namespace

int train(TrainOptions options) {
  options.data = data_files(options.data);
  const Start start = start_of(options);
  check_layers(options);
  if (options.batch == 0) options.batch = defaults_of(options.format).batch;
  if (options.epochs < 0) options.epochs = defaults_of(options.format).epochs;
  if (options.learning_rate < 0) options.learning_rate = defaults_of(options.format).learning_rate;
  if (options.eps < 0) options.eps = defaults_of(options.format).eps;
  if (options.ranks_per_node == 0) options.ranks_per_node = options.ranks;
  options.tables_on = TablesOn(options.device);
  check_dense(options);
  const std::string layers_note = place_layers(options);
  check_reduction(options);
  check_precision(options);
  check_sync(options);
  if (starts_ranks(group_of(options))) return start_ranks(group_of(options));
  handle_interrupts();
  const auto begun = std::chrono::steady_clock::now();
  const std::string started = utc_now();
  const std::unique_ptr<ClickLog> log = open_log(options);
  const bool processes = in_processes(options.engine);
  const int own = processes ? own_rank(options.engine) : 0;
  if (!log->labelled() && options.epochs != 0) {
    throw UserError(
        options.data.front() +
        " has no labels to train with; --epochs 0 with --load and --output predicts it.");
  }
  if (own == 0) print_start(options, start);
  if (own == 0 && !layers_note.empty() && !options.json) std::cout << layers_note << '\n';
  ReportFile report(own == 0 ? options.report : "");
  TraceFile trace(options.trace, processes ? own : -1);
  PredictionFile predictions(own == 0 ? options.output : "", log->labelled());
  TrainResult result = run(options, start, *log, trace, predictions);
  if (!result.interrupted) predictions.finish();
  trace.finish();
  if (own != 0) return result.interrupted ? kInterruptedExit : 0;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  result.unreadable_lines = log->bad_lines().count();
  result.labelled = log->labelled();
  if (!result.interrupted) result.best_auc = planted_best_auc(options, result.test);
  print_bad_lines(log->bad_lines());
  if (result.details) result.details->started = started;
  const bool wants_line = options.json || result.details;
  const std::string line = wants_line ? json_line(options, result) : "";
  print_report(options, result, line);
  if (result.details) report.write(train_page(line));
  return result.interrupted ? kInterruptedExit : 0;
}

}  // namespace shardrec::cli
