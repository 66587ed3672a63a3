// The replicas of one rank, its steps and its syncs.
#include "bench/sync_rank.h"

#include <cstring>
#include <utility>

#include "bench/bench_clock.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

Model make_replicated_model(const SyncBenchOptions& options) {
  Model model;
  TableOptions table_options;
  table_options.dtype(options.dtype);
  for (int64_t t = 0; t < options.tables; ++t) {
    const std::string name = "t" + std::to_string(t);
    model.add_feature(model.add_table(name, options.rows, options.dim, table_options), name);
  }
  model.set_optimizer(OptimizerOptions().optimizer(options.optimizer));
  return model;
}

Collection make_replicas(const SyncBenchOptions& options, Comm& comm, Mesh& mesh, int64_t device,
                         const std::string& rows) {
  const Model model = make_replicated_model(options);
  const Topology topology(options.sharding_group_size);
  const Plan plan(model, topology, PlanOptions().sharding(options.sharding));
  CollectionOptions tables;
  tables.threads(options.threads).device(device).replica_sync(rows);
  return Collection(comm, mesh, model, plan, tables);
}

}  // namespace

SyncRank::SyncRank(const SyncBenchOptions& options, Comm& comm, int rank, const std::string& rows)
    : comm_(comm),
      device_(options.tables_on.device_of(group_of(options), rank)),
      size_(slice_of(options.shape.batch, options.ranks, rank).size()),
      steps_(options.steps),
      mesh_(comm, options.sharding_group_size),
      tables_(make_replicas(options, comm, mesh_, device_, rows)),
      lookup_(tables_, LookupOptions().borrow(true)),
      tensors_(device_) {
  make_batches(options, rank);
  const int64_t width = options.tables * options.dim;
  const std::vector<float> gradient(static_cast<size_t>(size_ * width), 0x1p-10F);
  gradient_bytes_.resize(gradient.size() * sizeof(float));
  std::memcpy(gradient_bytes_.data(), gradient.data(), gradient_bytes_.size());
  out_bytes_.resize(gradient_bytes_.size());
  out_ = tensors_.place(out_bytes_, SHARDREC_FLOAT32, size_, width);
  gradient_ = tensors_.place(gradient_bytes_, SHARDREC_FLOAT32, size_, width);
}

void SyncRank::make_batches(const SyncBenchOptions& options, int rank) {
  BenchShape shape = options.shape;
  shape.batch = size_;
  for (int b = 0; b < options.batches; ++b) {
    BenchBatch batch =
        make_bench_batch(shape, seed_of_batch(options.seed, rank, options.batches, b));
    const auto& ids = numbers_.emplace_back(std::move(batch.ids));
    const auto& lengths = numbers_.emplace_back(std::move(batch.lengths));
    batches_.push_back({.ids = tensors_.place(ids), .lengths = tensors_.place(lengths)});
  }
}

double SyncRank::take_steps(int64_t count) {
  comm_.barrier();
  const double begun = bench_now();
  for (int64_t i = 0; i < count; ++i) {
    const Batch& batch = batches_[static_cast<size_t>(taken_++) % batches_.size()];
    lookup_.begin(size_, batch.ids, batch.lengths);
    lookup_.forward(0, out_);
    lookup_.set_gradient(0, gradient_);
    lookup_.backward();
  }
  tables_.wait_device();
  return (bench_now() - begun) / static_cast<double>(count);
}

SyncTimes SyncRank::counted() const {
  return {.bytes = tables_.stat(SHARDREC_STAT_BYTES_SYNC),
          .rows = tables_.stat(SHARDREC_STAT_ROWS_SYNCED),
          .step_bytes = tables_.stat(SHARDREC_STAT_BYTES_INPUT) +
                        tables_.stat(SHARDREC_STAT_BYTES_OUTPUT) +
                        tables_.stat(SHARDREC_STAT_BYTES_GRADIENT)};
}

SyncTimes SyncRank::counted_since(const SyncTimes& before) const {
  const SyncTimes now = counted();
  return {.bytes = now.bytes - before.bytes,
          .rows = now.rows - before.rows,
          .step_bytes = (now.step_bytes - before.step_bytes) / static_cast<double>(steps_),
          .table_bytes = tables_.stat(SHARDREC_STAT_BYTES_TABLES)};
}

SyncTimes SyncRank::blocking() {
  const SyncTimes before = counted();
  const double step = take_steps(steps_);
  comm_.barrier();
  const double begun = bench_now();
  tables_.sync_replicas();
  const double ended = bench_now();
  SyncTimes times = counted_since(before);
  times.step = step;
  times.wait = ended - begun;
  return times;
}

SyncTimes SyncRank::overlapped(int64_t steps_meanwhile) {
  const SyncTimes before = counted();
  const double step = take_steps(steps_);
  comm_.barrier();
  const double begun = bench_now();
  tables_.sync_begin();
  const double under_way = bench_now();
  const double meanwhile = take_steps(steps_meanwhile);
  comm_.barrier();
  const double waited = bench_now();
  tables_.sync_wait();
  const double ended = bench_now();
  SyncTimes times = counted_since(before);
  times.step = step;
  times.begin = under_way - begun;
  times.wait = ended - waited;
  times.meanwhile = meanwhile;
  return times;
}

}  // namespace shardrec::cli
