// bench lookup: tables on one rank. bench step: the same tables sharded over ranks. One line of
// JSON.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench_ids.h"
#include "commands.h"
#include "ranks.h"

namespace shardrec::cli {
namespace {

constexpr int kBatches = 6;  // that rotate, so that no step finds its rows in the cache
constexpr int kWarmUp = 2;
constexpr int kLeastSteps = 5;

struct BenchOptions {
  BenchShape shape;
  int64_t dim = 64;
  std::string pooling = "20";
  std::string dtype = "float32";
  std::string ids = "uniform";
  std::string optimizer = "rowwise_adagrad";
  int threads = 0;
  double seconds = 3;
  int ranks = 1;
  int ranks_per_node = 0;
  std::string sharding = "table_wise";
  uint64_t seed = 7;
};

struct StepTimes {  // seconds
  double begin = 0;
  double forward = 0;   // begin and forward: with the validation of the batch
  double backward = 0;  // set_gradient and backward, with the building of the index plan
};

Model make_model(const BenchOptions& options) {
  Model model;
  check(shardrec_model_create(nullptr, model.out()));
  Options table_options(SHARDREC_OPTIONS_TABLE);
  table_options.set(SHARDREC_OPTION_DTYPE, options.dtype);
  for (int64_t t = 0; t < options.shape.tables; ++t) {
    const std::string name = "t" + std::to_string(t);
    int32_t table = 0;
    check(shardrec_model_add_table(model.get(), name.c_str(), options.shape.rows, options.dim,
                                   table_options.get(), &table));
    check(shardrec_model_add_feature(model.get(), table, name.c_str(), SHARDREC_POOLING_SUM));
  }
  Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
  optimizer.set(SHARDREC_OPTION_OPTIMIZER, options.optimizer);
  check(shardrec_model_set_optimizer(model.get(), optimizer.get()));
  return model;
}

Plan make_plan(const BenchOptions& options, const Model& model) {
  Topology topology;
  check(shardrec_topology_create(options.ranks, options.ranks_per_node, topology.out()));
  Options planner(SHARDREC_OPTIONS_PLAN);
  planner.set(SHARDREC_OPTION_SHARDING, options.sharding);
  Plan plan;
  check(shardrec_plan_create(model.get(), topology.get(), planner.get(), plan.out()));
  return plan;
}

// One rank's tables, and its share of the rotating batches.
class BenchRank {
 public:
  BenchRank(const BenchOptions& options, shardrec_comm* comm, int rank, const Model& model,
            const Plan& plan)
      : comm_(comm),
        size_(slice_of(options.shape.batch, options.ranks, rank).size()),
        width_(options.shape.tables * options.dim) {
    Options tables(SHARDREC_OPTIONS_COLLECTION);
    if (options.threads > 0) tables.set(SHARDREC_OPTION_THREADS, int64_t{options.threads});
    check(shardrec_collection_create(comm, model.get(), plan.get(), tables.get(), tables_.out()));
    check(shardrec_lookup_create(tables_.get(), nullptr, lookup_.out()));
    BenchShape shape = options.shape;
    shape.batch = size_;
    for (int b = 0; b < kBatches; ++b) {
      const auto number = static_cast<uint64_t>(rank * kBatches + b);
      batches_.push_back(make_bench_batch(shape, hash_number(options.seed, number)));
    }
    out_.resize(static_cast<size_t>(size_ * width_));
    gradient_.assign(out_.size(), 1e-3f);
  }

  StepTimes step(int64_t number) {
    const BenchBatch& batch = batches_[static_cast<size_t>(number % kBatches)];
    const shardrec_tensor values = vector_view(batch.ids);
    const shardrec_tensor lengths = vector_view(batch.lengths);
    const shardrec_tensor out = matrix_view(out_.data(), size_, width_);
    const shardrec_tensor gradient = matrix_view(gradient_.data(), size_, width_);
    check(shardrec_comm_barrier(comm_));

    const double planned = index_plan_seconds();
    const double t0 = now();
    check(shardrec_lookup_begin(lookup_.get(), size_, &values, &lengths, nullptr));
    const double t1 = now();
    check(shardrec_lookup_forward(lookup_.get(), 0, &out));
    const double t2 = now();
    const double plan_in_forward = index_plan_seconds() - planned;
    check(shardrec_lookup_set_gradient(lookup_.get(), 0, &gradient));
    check(shardrec_lookup_backward(lookup_.get()));
    const double t3 = now();
    return {t1 - t0, t2 - t0 - plan_in_forward, t3 - t2 + plan_in_forward};
  }

  // Rank 0 says whether to go on; all agree.
  bool agree(bool more) {
    int32_t value = more ? 1 : 0;
    const shardrec_tensor view = vector_view(std::span<const int32_t>(&value, 1));
    check(shardrec_comm_all_reduce(comm_, &view, SHARDREC_REDUCTION_MAX));
    return value == 1;
  }

  // Mean over the batches.
  [[nodiscard]] double ids() const {
    double sum = 0;
    for (const BenchBatch& batch : batches_)
      sum += static_cast<double>(batch.ids.size()) / kBatches;
    return sum;
  }
  [[nodiscard]] double unique() const {
    double sum = 0;
    for (const BenchBatch& batch : batches_) sum += static_cast<double>(batch.unique) / kBatches;
    return sum;
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  [[nodiscard]] double index_plan_seconds() const {
    double seconds = 0;
    check(shardrec_collection_stat_f64(tables_.get(), SHARDREC_STAT_SECONDS_INDEX_PLAN, &seconds));
    return seconds;
  }

  shardrec_comm* comm_;
  int64_t size_;
  int64_t width_;
  Collection tables_;
  Lookup lookup_;
  std::vector<BenchBatch> batches_;
  std::vector<float> out_;
  std::vector<float> gradient_;
};

struct RankTimes {
  std::vector<StepTimes> steps;
  double ids = 0;
  double unique = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// A step is as long as its slowest rank.
void add_times(nlohmann::ordered_json& json, const std::string& name,
               const std::vector<RankTimes>& ranks, double (*pick)(const StepTimes&)) {
  std::vector<double> milliseconds(ranks.front().steps.size(), 0.0);
  for (const RankTimes& rank : ranks) {
    for (size_t i = 0; i < milliseconds.size(); ++i) {
      milliseconds[i] = std::max(milliseconds[i], 1e3 * pick(rank.steps[i]));
    }
  }
  json[name + "_ms_median"] = median(milliseconds);
  json[name + "_ms_min"] = *std::min_element(milliseconds.begin(), milliseconds.end());
}

// Floats of optimizer state for a row.
double state_floats(const std::string& optimizer, double dim) {
  if (optimizer == "rowwise_adagrad") return 1;
  if (optimizer == "adagrad" || optimizer == "lars_sgd") return dim;
  if (optimizer == "adam" || optimizer == "lamb") return 2 * dim;
  if (optimizer.starts_with("partial_rowwise")) return dim + 1;
  return 0;
}

// The least traffic a step can do with: rows that are asked for again come from the cache if the
// distinct rows of a batch fit in it.
void add_bytes(nlohmann::ordered_json& json, const BenchOptions& options, double ids,
               double unique) {
  const double dim = static_cast<double>(options.dim);
  const double row_bytes = (options.dtype == "float32" ? 4.0 : 2.0) * dim;
  const double output =
      4.0 * static_cast<double>(options.shape.batch * options.shape.tables * options.dim);
  const double cache = static_cast<double>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  const double rows_read = unique * row_bytes <= cache ? unique : ids;
  const double state = 8.0 * state_floats(options.optimizer, dim);
  const double forward = 8 * ids + rows_read * row_bytes + output;
  const double backward = 8 * ids + output + unique * (2 * row_bytes + state);
  json["bytes_min"] = static_cast<int64_t>(forward + backward);
  json["forward_bytes_min"] = static_cast<int64_t>(forward);
  json["backward_bytes_min"] = static_cast<int64_t>(backward);
  json["ids"] = static_cast<int64_t>(ids);
  json["unique_rows"] = static_cast<int64_t>(unique);
}

void print_result(const BenchOptions& options, const std::vector<RankTimes>& ranks) {
  nlohmann::ordered_json json;
  json["tables"] = options.shape.tables;
  json["rows"] = options.shape.rows;
  json["dim"] = options.dim;
  json["batch"] = options.shape.batch;
  json["pooling"] = options.pooling;
  json["dtype"] = options.dtype;
  json["id_distribution"] = options.ids;
  json["optimizer"] = options.optimizer;
  json["threads"] = options.threads;
  json["ranks"] = options.ranks;
  json["sharding"] = options.sharding;
  json["steps"] = ranks.front().steps.size();
  add_times(json, "begin", ranks, [](const StepTimes& t) { return t.begin; });
  add_times(json, "forward", ranks, [](const StepTimes& t) { return t.forward; });
  add_times(json, "backward", ranks, [](const StepTimes& t) { return t.backward; });
  add_times(json, "step", ranks, [](const StepTimes& t) { return t.forward + t.backward; });
  double ids = 0;
  double unique = 0;
  for (const RankTimes& rank : ranks) {
    ids += rank.ids;
    unique += rank.unique;
  }
  add_bytes(json, options, ids, unique);
  std::cout << json.dump() << "\n" << std::flush;
}

int bench(BenchOptions options) {
  options.shape.lengths = parse_bag_lengths(options.pooling);
  options.shape.zipf = parse_id_distribution(options.ids);
  if (options.ranks_per_node == 0) options.ranks_per_node = options.ranks;
  std::vector<RankTimes> ranks(static_cast<size_t>(options.ranks));
  run_ranks(options.ranks, options.ranks_per_node, [&](int rank, shardrec_comm* comm) {
    const Model model = make_model(options);
    BenchRank tables(options, comm, rank, model, make_plan(options, model));
    RankTimes& times = ranks[static_cast<size_t>(rank)];
    times.ids = tables.ids();
    times.unique = tables.unique();
    for (int64_t i = 0; i < kWarmUp; ++i) tables.step(i);
    const double end = BenchRank::now() + options.seconds;
    do {
      times.steps.push_back(tables.step(kWarmUp + static_cast<int64_t>(times.steps.size())));
    } while (
        tables.agree(rank == 0 && (BenchRank::now() < end || times.steps.size() < kLeastSteps)));
  });
  print_result(options, ranks);
  return 0;
}

void add_shape_options(CLI::App* command, BenchOptions& o) {
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command->add_option("--tables", o.shape.tables, "Tables")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rows", o.shape.rows, "Rows of each table")
      ->check(count)
      ->capture_default_str();
  command->add_option("--dim", o.dim, "Columns of each table")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--batch", o.shape.batch, "Global batch")
      ->check(count)
      ->capture_default_str();
  command->add_option("--pooling", o.pooling, "Ids per bag: L or A..B")->capture_default_str();
  command->add_option("--dtype", o.dtype, "Of the tables: float32, float16 or bfloat16")
      ->capture_default_str();
  command->add_option("--ids", o.ids, "uniform or zipf:EXPONENT")->capture_default_str();
  command->add_option("--optimizer", o.optimizer, kTableOptimizers)->capture_default_str();
  command->add_option("--threads", o.threads, "Per rank; default: processors / ranks")
      ->check(CLI::Range(1, 4096));
  command->add_option("--seconds", o.seconds, "Measure this long, and five steps at least")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
}

}  // namespace

Run add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure; one line of JSON.");
  command->require_subcommand(1);
  add_shape_options(command->add_subcommand("lookup", "Begin, forward and backward on one rank."),
                    *options);
  CLI::App* step = command->add_subcommand("step", "The same, sharded over ranks.");
  add_shape_options(step, *options);
  step->add_option("--ranks", options->ranks, "Ranks")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  step->add_option("--ranks-per-node", options->ranks_per_node, "Default: all")
      ->check(CLI::Range(1, 1024));
  step->add_option("--sharding", options->sharding, "As for train")->capture_default_str();
  return [options] { return bench(*options); };
}

}  // namespace shardrec::cli
