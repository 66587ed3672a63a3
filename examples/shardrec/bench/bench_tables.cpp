// The tables of one rank and one timed step over them.
#include "bench/bench_tables.h"

#include <cstring>

#include "bench/bench_clock.h"
#include "command/user_error.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

Model make_model(const BenchOptions& options) {
  Model model;
  TableOptions table_options;
  table_options.dtype(options.dtype);
  for (size_t t = 0; t < options.shape.tables.size(); ++t) {
    const BenchTable& size = options.shape.tables[t];
    const std::string name = "t" + std::to_string(t);
    model.add_feature(model.add_table(name, size.rows, size.dim, table_options), name);
  }
  model.set_optimizer(
      OptimizerOptions().optimizer(options.optimizer).row_statistics(options.row_statistics));
  return model;
}

Plan make_plan(const BenchOptions& options, const Model& model) {
  const Topology topology(options.ranks, options.ranks_per_node);
  PlanOptions planner;
  planner.sharding(options.sharding)
      .replication(options.replication)
      .balance(options.balance)
      .batch_size((options.shape.batch + options.ranks - 1) / options.ranks)
      .bag_length(options.shape.lengths.mean());
  return Plan(model, topology, planner);
}

Collection make_tables(const BenchOptions& options, Comm& comm, int64_t device) {
  CollectionOptions tables;
  if (options.threads > 0) tables.threads(options.threads);
  tables.output_dtype(options.output_dtype)
      .device(device)
      .device_wait(options.device_wait)
      .forward_compression(options.forward_compression)
      .backward_compression(options.backward_compression);
  const Model model = make_model(options);
  return Collection(comm, model, make_plan(options, model), tables);
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

}  // namespace

BenchRank::BenchRank(const BenchOptions& options, Comm& comm, int rank)
    : comm_(comm),
      output_dtype_(parse_output_dtype(options.output_dtype)),
      device_(options.tables_on.device_of(group_of(options), rank)),
      size_(slice_of(options.shape.batch, options.ranks, rank).size()),
      started_(bench_now()),
      tables_(make_tables(options, comm, device_)),
      lookup_(tables_, LookupOptions().borrow(options.borrow)),
      create_seconds_(bench_now() - started_),
      ids_(options.shape.tables.size()),
      unique_rows_(options.shape.tables.size()),
      tensors_(device_) {
  make_batches(options, rank);
  for (const BenchBatch& batch : batches_) {
    batch_ids_.push_back(tensors_.place(batch.ids));
    batch_lengths_.push_back(tensors_.place(batch.lengths));
  }
  gradient_bytes_ = make_gradient(output_dtype_, static_cast<size_t>(size_ * width_));
  out_bytes_.resize(gradient_bytes_.size());
  out_ = tensors_.place(out_bytes_, output_dtype_, size_, width_);
  gradient_ = tensors_.place(gradient_bytes_, output_dtype_, size_, width_);
}

void BenchRank::make_batches(const BenchOptions& options, int rank) {
  BenchShape shape = options.shape;
  shape.batch = size_;
  for (int b = 0; b < options.batches; ++b) {
    batches_.push_back(
        make_bench_batch(shape, seed_of_batch(options.seed, rank, options.batches, b)));
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
}

StepTimes BenchRank::step(int64_t number, bool with_phases) {
  const size_t batch = static_cast<size_t>(number) % batches_.size();
  const BenchPhases before = with_phases ? phases() : BenchPhases{};
  comm_.barrier();

  const double cpu = bench_cpu();
  const double t0 = bench_now();
  lookup_.begin(size_, batch_ids_[batch], batch_lengths_[batch]);
  const double t1 = bench_now();
  lookup_.forward(0, out_);
  tables_.wait_device();
  const double t2 = bench_now();
  lookup_.set_gradient(0, gradient_);
  lookup_.backward();
  tables_.wait_device();
  const double t3 = bench_now();

  StepTimes times{.begin = t1 - t0,
                  .forward = t2 - t0,
                  .backward = t3 - t2,
                  .cpu = bench_cpu() - cpu,
                  .phases = with_phases ? phases() : BenchPhases{}};
  for (size_t p = 0; p < before.size(); ++p) times.phases[p] -= before[p];
  return times;
}

double BenchRank::destroy() {
  const double start = bench_now();
  lookup_.destroy();
  tables_.destroy();
  return bench_now() - start;
}

BenchPhases BenchRank::phases() const {
  BenchPhases seconds{};
  for (size_t p = 0; p < seconds.size(); ++p) {
    seconds[p] = tables_.stat(kBenchPhases[p].second);
  }
  return seconds;
}

}  // namespace shardrec::cli
