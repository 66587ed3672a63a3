// What `train` was asked to do. The same on all ranks; read only while they run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "launch/devices.h"

namespace shardrec::cli {

struct TrainOptions {
  std::string format;
  std::vector<std::string> data;  // as given: files, patterns, directories; then the files
  int ranks = 1;
  int ranks_per_node = 0;  // 0: all on one node
  std::string engine = "local";
  std::string device = "cpu";
  std::string device_wait = "sleep";
  std::string dense_device = "auto";
  std::string ddp_reduction = "ordered";
  std::string precision = "float32";
  std::string dense = "ddp";
  std::string fsdp_strategy = "full_shard";  // of dense fsdp
  TablesOn tables_on;                        // what device means here
  bool layers_on_device = false;  // what dense_device means here: on that of the rank's tables
  std::string forward_compression = "none";
  std::string backward_compression = "none";
  std::string sharding = "auto";
  int sharding_group_size = 0;   // 0: no mesh
  int64_t sync_every = 1;        // steps; on a mesh
  std::string sync = "touched";  // rows that are averaged
  bool sync_overlap = false;     // while the next steps are taken
  // Are replicas averaged, and not trained by all ranks?
  bool averages() const { return sync != "exact" && sync != "sharded"; }
  std::string placement = "intra_node_sync";
  int64_t batch = 0;  // global; 0: the format's default
  int epochs = -1;    // -1: the format's default
  int64_t dim = 16;
  std::string arch = "dlrm";
  int64_t cross_layers = 3;          // of arch dcn
  int64_t cross_rank = 0;            // likewise; 0: whole matrices
  std::vector<int64_t> bottom{64};   // hidden layers; the last layer has dim outputs
  std::vector<int64_t> top{64, 32};  // hidden layers; the last layer has one output
  bool layer_norm = false;
  double dropout = 0;  // share of the outputs of hidden layers
  std::string optimizer = "rowwise_adagrad";
  std::string dtype = "float32";
  double learning_rate = -1;  // below 0: the format's default; eps likewise
  double eps = -1;
  double momentum_scale = 1;  // of row-wise AdaGrad
  std::string dense_optimizer = "adam";
  double dense_learning_rate = 1e-3;
  uint64_t seed = 0;
  int threads = 0;        // per rank; 0: the library's default
  int parse_threads = 0;  // per process; 0: as many as processors are idle
  int64_t rows_per_table = 0;
  std::string save;
  int64_t save_every = 0;     // steps; 0: at the end only
  int64_t publish_every = 0;  // steps; 0: never
  bool publish_states = true;
  int64_t keep = 3;  // checkpoints that stay; 0: all
  bool resume = false;
  std::string load;
  std::string load_rules;  // file that says what of load may differ
  std::string output;      // file for the predictions of the test part
  std::string trace;
  std::string report;            // file for a page about the run
  int64_t progress_every = 100;  // steps, where there is no terminal; 0: never
  bool json = false;
  bool strict = false;
  double max_unreadable = 0.01;  // share of lines
  std::string labels = "binary";
  std::set<std::string> given;      // names of the options on the command line
  std::vector<int64_t> table_rows;  // of a checkpoint to start from; empty: as the data say
};

inline RankGroup group_of(const TrainOptions& options) {
  return {
      .ranks = options.ranks, .ranks_per_node = options.ranks_per_node, .engine = options.engine};
}

}  // namespace shardrec::cli
