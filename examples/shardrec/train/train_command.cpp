// The command line of `shardrec train`.
#include <cstdint>
#include <memory>
#include <string>

#include "command/commands.h"
#include "command/option_texts.h"
#include "launch/devices.h"
#include "launch/engines.h"
#include "launch/ranks.h"
#include "train/train.h"

namespace shardrec::cli {
namespace {

void add_data_options(CLI::App* command, TrainOptions& o) {
  command->add_option("--format", o.format, "criteo or movielens")
      ->required()
      ->check(CLI::IsMember({"criteo", "movielens"}));
  command
      ->add_option(
          "--data", o.data,
          "Criteo's TSV or CSV: files, patterns and directories, read one after another, "
          "those of a directory by name and number. MovieLens' u.data, ratings.dat, "
          "ratings.csv or ml-100k.inter, with their users and items beside them. As text or "
          "gzip")
      ->required();
  command->add_option("--labels", o.labels, "Criteo: binary (1 and 0) or signed (1 and -1)")
      ->check(CLI::IsMember({"binary", "signed"}))
      ->capture_default_str();
  command
      ->add_option("--max-unreadable", o.max_unreadable,
                   "Share of lines that may be unreadable and are left out; more end the run")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

void add_rank_options(CLI::App* command, TrainOptions& o) {
  command->add_option("--ranks", o.ranks, "Ranks")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--ranks-per-node", o.ranks_per_node,
                   "Ranks that count as one node; default: all")
      ->check(CLI::Range(1, 1024));
  command->add_option("--engine", o.engine, kEngineHelp)
      ->check(CLI::IsMember(engine_names()))
      ->capture_default_str();
  add_device_option(command, o.device, kTablesOnHelp);
  add_device_wait_option(command, o.device_wait);
  command
      ->add_option("--dense-device", o.dense_device,
                   "Where the layers are: cpu, device (that of the tables), or auto: device where "
                   "NVIDIA's cuBLASLt is there")
      ->check(CLI::IsMember({"auto", "cpu", "device"}))
      ->capture_default_str();
  command
      ->add_option(
          "--precision", o.precision,
          "In what the layers multiply: float32, tfloat32 (on devices), bfloat16, or float16, "
          "with scaled gradients: a stack or the tables skip a step whose gradients overflow")
      ->check(CLI::IsMember({"float32", "tfloat32", "bfloat16", "float16"}))
      ->capture_default_str();
  CLI::Option* dense =
      command
          ->add_option("--dense", o.dense,
                       "How ranks keep the layers: ddp (each has all of them) or fsdp (each has a "
                       "part of every layer, its gradients and optimizer states; on the CPU, in "
                       "float32)")
          ->check(CLI::IsMember({"ddp", "fsdp"}))
          ->capture_default_str();
  command
      ->add_option(
          "--fsdp-strategy", o.fsdp_strategy,
          "Of --dense fsdp: full_shard, shard_grad_op (a layer stays whole from forward to "
          "backward), hybrid_shard (parts over the ranks of a sharding group) or no_shard")
      ->check(CLI::IsMember({"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"}))
      ->needs(dense)
      ->capture_default_str();
  command
      ->add_option("--ddp-reduction", o.ddp_reduction,
                   "Who adds up the gradients of layers on devices: ordered (the library, with the "
                   "same bits whatever carries them) or nccl (--engine nccl)")
      ->check(CLI::IsMember({"ordered", "nccl"}))
      ->capture_default_str();
  command
      ->add_option(
          "--sharding", o.sharding,
          "auto, table_wise, row_wise, column_wise, table_row_wise, table_column_wise, grid, "
          "data_parallel or mixed")
      ->capture_default_str();
  CLI::Option* group =
      command
          ->add_option("--sharding-group-size", o.sharding_group_size,
                       "Ranks that share a copy of the tables, a divisor of --ranks; each group "
                       "trains a copy of its own (2D parallel). Default: all ranks share one")
          ->check(CLI::Range(1, 1024));
  command->add_option("--sync-every", o.sync_every, "Steps after which the copies are averaged")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->needs(group)
      ->capture_default_str();
  command
      ->add_option("--sync", o.sync,
                   "Rows that are averaged: touched (those that a copy has changed since) or full "
                   "(all); or exact: none, for ids and gradients of all ranks train every copy in "
                   "each step, as without groups; sharded: as exact, but each copy keeps its share "
                   "of the optimizer states, and sends the rows that it updates to the others")
      ->check(CLI::IsMember({"touched", "full", "exact", "sharded"}))
      ->needs(group)
      ->capture_default_str();
  command
      ->add_flag("--sync-overlap", o.sync_overlap,
                 "Average while the next steps are taken, whose changes stay: what is averaged at "
                 "one time is there at the next. What is evaluated and saved is averaged as "
                 "without this option")
      ->needs(group);
  command
      ->add_option("--placement", o.placement,
                   "Ranks that are neighbours: intra_node_sync (those of a replica group) or "
                   "intra_node_shard (those of a sharding group)")
      ->needs(group)
      ->capture_default_str();
}

void add_model_options(CLI::App* command, TrainOptions& o) {
  command
      ->add_option("--batch", o.batch,
                   "Samples of a global batch; default: criteo 1024, movielens 512")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command
      ->add_option("--epochs", o.epochs,
                   "Passes over the data; default: criteo 1, movielens 3; 0: test only")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--dim", o.dim, "Columns of each table")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option(
          "--arch", o.arch,
          "How the vectors of tables and dense features meet: dlrm, in dot products, or dcn, "
          "in cross layers (DCN-v2)")
      ->check(CLI::IsMember({"dlrm", "dcn"}))
      ->capture_default_str();
  command->add_option("--cross-layers", o.cross_layers, "Cross layers of --arch dcn")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--cross-rank", o.cross_rank,
                   "Rank of the matrices of cross layers, as products of two; 0: whole matrices")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  command->add_option("--bottom", o.bottom, "Widths of the hidden layers below the interaction")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--top", o.top, "Widths of the hidden layers above it or the cross layers")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_flag("--layer-norm", o.layer_norm,
                    "A layer norm between two hidden layers of a stack");
  command
      ->add_option("--dropout", o.dropout,
                   "Probability that an output of a hidden layer is dropped in training; loss and "
                   "AUC of the "
                   "steps are with it, those of the test are not")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

void add_optimizer_options(CLI::App* command, TrainOptions& o) {
  command->add_option("--optimizer", o.optimizer, kTableOptimizers)->capture_default_str();
  command->add_option("--dtype", o.dtype, "Of the tables: float32, float16 or bfloat16")
      ->capture_default_str();
  command
      ->add_option("--learning-rate", o.learning_rate,
                   "Of the tables; default: criteo 0.02, movielens 0.1")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--eps", o.eps, "Of the tables' optimizer; default: criteo 1e-8, movielens 1e-3")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--momentum-scale", o.momentum_scale,
                   "Of rowwise_adagrad with --sharding-group-size: divides its sums of squares; up "
                   "to the number of replicas")
      ->check(CLI::Range(1.0, 65536.0))
      ->capture_default_str();
  command
      ->add_option("--dense-optimizer", o.dense_optimizer,
                   "sgd, momentum_sgd, adagrad, adam or lamb")
      ->capture_default_str();
  command->add_option("--dense-learning-rate", o.dense_learning_rate, "Of the dense half")
      ->capture_default_str();
}

void add_run_options(CLI::App* command, TrainOptions& o) {
  command->add_option("--seed", o.seed, "Of the split, the order and the initial values")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 62))
      ->capture_default_str();
  command->add_option("--threads", o.threads, "Per rank; default: its part of the processors")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--parse-threads", o.parse_threads,
                   "Threads of a process that read and parse the data; default: a thread for each "
                   "processor that training leaves idle, up to 16, and one where it leaves none. "
                   "Their number changes no result")
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--rows-per-table", o.rows_per_table,
                   "Criteo; default: 64 x the values of generated data, else 65536")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 40));
  command
      ->add_option("--forward-compression", o.forward_compression,
                   std::string("Of outputs between ranks: ") + kCompressions)
      ->capture_default_str();
  command->add_option("--backward-compression", o.backward_compression, "The same of gradients")
      ->capture_default_str();
}

void add_checkpoint_options(CLI::App* command, TrainOptions& o) {
  CLI::Option* save = command->add_option(
      "--save", o.save,
      "Directory for checkpoints: one at the end, also where Ctrl-C ends the run");
  command->add_option("--save-every", o.save_every, "And one behind every so many steps")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->needs(save);
  command
      ->add_option("--publish-every", o.publish_every,
                   "And behind every so many steps one of what has changed since the one before, "
                   "from which scorers take the rows that have changed")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->needs(save);
  command
      ->add_flag("--publish-states,!--publish-weights", o.publish_states,
                 "Whether such a one has the states of tables' optimizers. Without them it is "
                 "smaller, and --resume goes on from the newest checkpoint that has them")
      ->needs(save);
  command
      ->add_option("--keep", o.keep,
                   "Checkpoints that stay, the newest ones, and what they are changes of; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->needs(save)
      ->capture_default_str();
  command
      ->add_flag("--resume", o.resume,
                 "Go on where the run in --save stopped, with its settings where no others are "
                 "given; starts anew where it holds none")
      ->needs(save);
}

void add_output_options(CLI::App* command, TrainOptions& o) {
  CLI::Option* load = command->add_option("--load", o.load,
                                          "Directory of checkpoints, or one of them, to start from "
                                          "with tables and layers as they are there");
  command
      ->add_option("--load-rules", o.load_rules,
                   "File of JSON that says what may differ from --load, be left out or start anew: "
                   "the document of shardrec_checkpoint_load_partial. Tables have the rows of the "
                   "data or of --rows-per-table; other options of the model are as in --load where "
                   "they are not given")
      ->needs(load);
  command->add_option(
      "--output", o.output,
      "File for the predictions of the test part: ROW, LABEL, PROBABILITY, separated "
      "by tabs, a line per sample in the order of the data; ROW counts from 0");
  command->add_option("--trace", o.trace,
                      "File for the phases of the steps (the last 262,144), for ui.perfetto.dev");
  command->add_option(
      "--report", o.report,
      "File for a page about the run, to be opened in a browser: loss and AUC over the steps, "
      "where "
      "the time went, the plan, memory, counters, the machine. It needs no network, and holds "
      "the line of --json, to which it adds fields");
  command
      ->add_option("--progress-every", o.progress_every,
                   "Where standard error is no terminal: a line about the training behind so many "
                   "steps; 0: one "
                   "for each epoch")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--json", o.json, "End with one line of JSON");
  command->add_flag("--strict", o.strict, "Stop at the first unreadable line");
}

}  // namespace

Run add_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand(
      "train", "Train a DLRM or DCN on a click log, its tables sharded over ranks.");
  add_data_options(command, *options);
  add_rank_options(command, *options);
  add_model_options(command, *options);
  add_optimizer_options(command, *options);
  add_run_options(command, *options);
  add_checkpoint_options(command, *options);
  add_output_options(command, *options);
  return [options, command] {
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() > 0) options->given.insert(option->get_name());
    }
    return train(*options);
  };
}

}  // namespace shardrec::cli
