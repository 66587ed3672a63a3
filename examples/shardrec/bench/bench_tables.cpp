#include "bench/bench_tables.h"

#include <time.h>

#include <chrono>
#include <cstring>

#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

Model make_model(const BenchOptions& options) {
  Model model;
  check(shardrec_model_create(nullptr, model.out()));
  Options table_options(SHARDREC_OPTIONS_TABLE);
  table_options.set(SHARDREC_OPTION_DTYPE, options.dtype);
  for (size_t t = 0; t < options.shape.tables.size(); ++t) {
    const BenchTable& size = options.shape.tables[t];
    const std::string name = "t" + std::to_string(t);
    int32_t table = 0;
    check(shardrec_model_add_table(model.get(), name.c_str(), size.rows, size.dim,
                                   table_options.get(), &table));
    check(shardrec_model_add_feature(model.get(), table, name.c_str(), SHARDREC_POOLING_SUM));
  }
  Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
  optimizer.set(SHARDREC_OPTION_OPTIMIZER, options.optimizer)
      .set(SHARDREC_OPTION_ROW_STATISTICS, options.row_statistics);
  check(shardrec_model_set_optimizer(model.get(), optimizer.get()));
  return model;
}

Plan make_plan(const BenchOptions& options, const Model& model) {
  Topology topology;
  check(shardrec_topology_create(options.ranks, options.ranks_per_node, topology.out()));
  Options planner(SHARDREC_OPTIONS_PLAN);
  planner.set(SHARDREC_OPTION_SHARDING, options.sharding)
      .set(SHARDREC_OPTION_REPLICATION, options.replication)
      .set(SHARDREC_OPTION_BALANCE, options.balance)
      .set(SHARDREC_OPTION_BATCH_SIZE, (options.shape.batch + options.ranks - 1) / options.ranks)
      .set(SHARDREC_OPTION_BAG_LENGTH, options.shape.lengths.mean());
  Plan plan;
  check(shardrec_plan_create(model.get(), topology.get(), planner.get(), plan.out()));
  return plan;
}

shardrec_dtype parse_output_dtype(const std::string& name) {
  if (name == "float32") return SHARDREC_FLOAT32;
  if (name == "float16") return SHARDREC_FLOAT16;
  if (name == "bfloat16") return SHARDREC_BFLOAT16;
  throw UserError("--output-dtype is '" + name + "'; accepted: float32, float16, bfloat16.");
}

// `count` times 2^-10, which every dtype holds exactly.
LineBytes make_gradient(shardrec_dtype dtype, size_t count) {
  if (dtype == SHARDREC_FLOAT32) {
    const std::vector<float> values(count, 0x1p-10f);
    LineBytes bytes(count * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  const std::vector<uint16_t> values(count, dtype == SHARDREC_FLOAT16 ? 0x1400 : 0x3a80);
  LineBytes bytes(count * sizeof(uint16_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

double cpu_now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double bench_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

BenchRank::BenchRank(const BenchOptions& options, shardrec_comm* comm, int rank)
    : comm_(comm),
      size_(slice_of(options.shape.batch, options.ranks, rank).size()),
      width_(0),
      ids_(options.shape.tables.size()),
      unique_rows_(options.shape.tables.size()),
      output_dtype_(parse_output_dtype(options.output_dtype)) {
  const double start = bench_now();
  Options tables(SHARDREC_OPTIONS_COLLECTION);
  if (options.threads > 0) tables.set(SHARDREC_OPTION_THREADS, int64_t{options.threads});
  tables.set(SHARDREC_OPTION_OUTPUT_DTYPE, options.output_dtype)
      .set(SHARDREC_OPTION_FORWARD_COMPRESSION, options.forward_compression)
      .set(SHARDREC_OPTION_BACKWARD_COMPRESSION, options.backward_compression);
  const Model model = make_model(options);
  const Plan plan = make_plan(options, model);
  check(shardrec_collection_create(comm, model.get(), plan.get(), tables.get(), tables_.out()));
  Options lookup(SHARDREC_OPTIONS_LOOKUP);
  lookup.set(SHARDREC_OPTION_BORROW, int64_t{options.borrow ? 1 : 0});
  check(shardrec_lookup_create(tables_.get(), lookup.get(), lookup_.out()));
  create_seconds_ = bench_now() - start;

  BenchShape shape = options.shape;
  shape.batch = size_;
  for (int b = 0; b < options.batches; ++b) {
    const auto number = static_cast<uint64_t>(rank) * static_cast<uint64_t>(options.batches) +
                        static_cast<uint64_t>(b);
    batches_.push_back(make_bench_batch(shape, hash_number(options.seed, number)));
    for (size_t t = 0; t < shape.tables.size(); ++t) {
      ids_[t] += static_cast<double>(batches_.back().table_ids[t]);
      unique_rows_[t] += static_cast<double>(batches_.back().table_rows[t]);
    }
  }
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    ids_[t] /= options.batches;
    unique_rows_[t] /= options.batches;
    width_ += shape.tables[t].dim;
  }
  gradient_ = make_gradient(output_dtype_, static_cast<size_t>(size_ * width_));
  out_.resize(gradient_.size());
}

StepTimes BenchRank::step(int64_t number) {
  const BenchBatch& batch = batches_[static_cast<size_t>(number) % batches_.size()];
  const shardrec_tensor values = vector_view(batch.ids);
  const shardrec_tensor lengths = vector_view(batch.lengths);
  shardrec_tensor out;
  shardrec_tensor gradient;
  check(shardrec_tensor_matrix(out_.data(), output_dtype_, size_, width_, &out));
  check(shardrec_tensor_matrix(gradient_.data(), output_dtype_, size_, width_, &gradient));
  const auto index_plan = [&] {
    double seconds = 0;
    check(shardrec_collection_stat_f64(tables_.get(), SHARDREC_STAT_SECONDS_INDEX_PLAN, &seconds));
    return seconds;
  };
  const BenchPhases before = phases();
  barrier();

  const double planned = index_plan();
  const double cpu = cpu_now();
  const double t0 = bench_now();
  check(shardrec_lookup_begin(lookup_.get(), size_, &values, &lengths, nullptr));
  const double t1 = bench_now();
  check(shardrec_lookup_forward(lookup_.get(), 0, &out));
  const double t2 = bench_now();
  const double plan_in_forward = index_plan() - planned;
  check(shardrec_lookup_set_gradient(lookup_.get(), 0, &gradient));
  check(shardrec_lookup_backward(lookup_.get()));
  const double t3 = bench_now();

  StepTimes times{.begin = t1 - t0,
                  .forward = t2 - t0 - plan_in_forward,
                  .backward = t3 - t2 + plan_in_forward,
                  .cpu = cpu_now() - cpu,
                  .phases = phases()};
  for (size_t p = 0; p < before.size(); ++p) times.phases[p] -= before[p];
  return times;
}

int64_t BenchRank::agree(int64_t value) {
  const shardrec_tensor view = vector_view(std::span<const int64_t>(&value, 1));
  check(shardrec_comm_all_reduce(comm_, &view, SHARDREC_REDUCTION_MAX));
  return value;
}

double BenchRank::destroy() {
  const double start = bench_now();
  lookup_ = Lookup();
  tables_ = Collection();
  return bench_now() - start;
}

BenchPhases BenchRank::phases() const {
  BenchPhases seconds{};
  for (size_t p = 0; p < seconds.size(); ++p) {
    check(shardrec_collection_stat_f64(tables_.get(), kBenchPhases[p].second, &seconds[p]));
  }
  return seconds;
}

}  // namespace shardrec::cli
