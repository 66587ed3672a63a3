#include "embedding/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>

#include "embedding/half_matrix.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

shardrec_options* optimizer_options(const OptimizerSpec& o) {
  shardrec_options* options = nullptr;
  SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
  const auto set = [&](shardrec_option key, double value) {
    SR_EXPECT_OK(shardrec_options_set_f64(options, key, value));
  };
  SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, o.kind));
  SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_WEIGHT_DECAY_MODE, o.decay_mode));
  SR_EXPECT_OK(shardrec_options_set_i64(
      options, SHARDREC_OPTION_ROW_STATISTICS,
      o.shard_statistics ? SHARDREC_ROW_STATISTICS_SHARD : SHARDREC_ROW_STATISTICS_ROW));
  set(SHARDREC_OPTION_LEARNING_RATE, o.learning_rate);
  set(SHARDREC_OPTION_EPS, o.eps);
  set(SHARDREC_OPTION_WEIGHT_DECAY, o.weight_decay);
  set(SHARDREC_OPTION_MAX_GRADIENT, o.max_gradient);
  set(SHARDREC_OPTION_BETA1, o.beta1);
  set(SHARDREC_OPTION_BETA2, o.beta2);
  set(SHARDREC_OPTION_MOMENTUM, o.momentum);
  set(SHARDREC_OPTION_ETA, o.eta);
  set(SHARDREC_OPTION_MAX_NORM, o.max_norm);
  set(SHARDREC_OPTION_MOMENTUM_SCALE, o.momentum_scale);
  return options;
}

}  // namespace

shardrec_model* make_model(const Scenario& scenario) {
  shardrec_model* model = nullptr;
  SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
  shardrec_options* options = optimizer_options(scenario.optimizer);
  SR_EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
  shardrec_options_destroy(&options);
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    const std::string name = "table" + std::to_string(t);
    const TableSpec& table = scenario.tables[t];
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_EXPECT_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_OUT_OF_RANGE, table.out_of_range));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DTYPE, table.dtype));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_ROUNDING, table.rounding));
    SR_EXPECT_OK(
        shardrec_model_add_table(model, name.c_str(), table.rows, table.dim, options, nullptr));
    shardrec_options_destroy(&options);
    if (table.optimizer) {
      options = optimizer_options(*table.optimizer);
      SR_EXPECT_OK(shardrec_model_set_optimizer(model, static_cast<int32_t>(t), options));
      shardrec_options_destroy(&options);
    }
  }
  for (size_t f = 0; f < scenario.features.size(); ++f) {
    const std::string name = "feature" + std::to_string(f);
    const FeatureSpec& feature = scenario.features[f];
    SR_EXPECT_OK(shardrec_model_add_feature(model, feature.table, name.c_str(),
                                            feature.sequence ? SHARDREC_POOLING_NONE
                                            : feature.mean   ? SHARDREC_POOLING_MEAN
                                                             : SHARDREC_POOLING_SUM));
  }
  return model;
}

namespace {

shardrec_plan* make_plan(const shardrec_model* model, const Deal& deal) {
  shardrec_topology* topology = nullptr;
  SR_EXPECT_OK(shardrec_topology_create(deal.ranks, deal.ranks_per_node, nullptr, &topology));
  shardrec_plan* plan = nullptr;
  SR_EXPECT_OK(shardrec_plan_create_empty(model, topology, nullptr, &plan));
  for (size_t t = 0; t < deal.plan.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    if (deal.plan[t].replicated) {
      SR_EXPECT_OK(shardrec_plan_replicate(plan, table, SHARDREC_REPLICATION_SAMPLES));
      SR_EXPECT_OK(shardrec_plan_replicate(plan, table, deal.plan[t].replication));
    }
    for (const BoxSpec& box : deal.plan[t].boxes) {
      SR_EXPECT_OK(add_box(plan, table, box.rank, box.row, box.rows, box.col, box.cols));
    }
  }
  shardrec_topology_destroy(&topology);
  return plan;
}

// A rank's slice of a global batch in the form that begin takes.
struct Slice {
  std::vector<int64_t> values;
  std::vector<int32_t> values32;
  std::vector<int64_t> lengths;
  std::vector<int32_t> offsets;
  std::vector<int64_t> batch_sizes;  // by feature
  std::vector<int32_t> inverse;      // [features * samples]
  std::vector<float> weights;
  std::vector<float> gradient;
  std::vector<std::vector<float>> sequence_gradients;  // by feature
};

Slice slice_of(const Scenario& scenario, const std::vector<Sample>& step, int64_t first,
               int64_t count, BatchForm form) {
  Slice slice;
  slice.offsets.push_back(0);
  slice.sequence_gradients.resize(scenario.features.size());
  for (size_t f = 0; f < scenario.features.size(); ++f) {
    // Number of each bag that stands already, where equal ones are given once.
    std::map<std::pair<std::vector<int64_t>, std::vector<float>>, int32_t> known;
    slice.batch_sizes.push_back(0);
    for (int64_t s = first; s < first + count; ++s) {
      const Sample& sample = step[static_cast<size_t>(s)];
      const auto next = static_cast<int32_t>(slice.batch_sizes.back());
      const auto [at, is_new] = known.try_emplace({sample.bags[f], sample.weights[f]}, next);
      const bool share = form == BatchForm::kVariableUnique && !scenario.features[f].sequence;
      slice.inverse.push_back(share ? at->second : next);
      if (share && !is_new) continue;
      ++slice.batch_sizes.back();
      if (scenario.features[f].sequence) {
        auto& rows = slice.sequence_gradients[f];
        rows.insert(rows.end(), sample.sequence_gradients[f].begin(),
                    sample.sequence_gradients[f].end());
      }
      for (size_t i = 0; i < sample.bags[f].size(); ++i) {
        slice.values.push_back(sample.bags[f][i]);
        slice.values32.push_back(static_cast<int32_t>(sample.bags[f][i]));
        slice.weights.push_back(sample.weights[f][i]);
      }
      slice.lengths.push_back(static_cast<int64_t>(sample.bags[f].size()));
      slice.offsets.push_back(static_cast<int32_t>(slice.values.size()));
    }
  }
  for (int64_t s = first; s < first + count; ++s) {
    const auto& gradient = step[static_cast<size_t>(s)].gradient;
    slice.gradient.insert(slice.gradient.end(), gradient.begin(), gradient.end());
  }
  return slice;
}

void read_table(shardrec_collection* tables, int32_t table, shardrec_table_part part, int64_t rows,
                int64_t cols, std::vector<float>& out) {
  out.assign(static_cast<size_t>(rows * cols), -1);
  const shardrec_tensor tensor = matrix(out.data(), rows, cols);
  SR_OK(shardrec_collection_read_range(tables, table, part, 0, rows, &tensor));
}

// The gradients of a step while the lookup may read them.
using Lent = std::list<HalfMatrix>;

void give_gradient(const Deal& deal, shardrec_lookup* lookup, int32_t output, int64_t rows,
                   int64_t columns, const std::vector<float>& gradient, Lent& lent) {
  const HalfMatrix& given = lent.emplace_back(deal.output_dtype, rows, columns, gradient);
  SR_OK(shardrec_lookup_set_gradient(lookup, output, &given.tensor));
  if (!deal.borrow) lent.clear();
}

// Copies of the outputs of the sequences of the samples [first, first + count) of a step; gives
// their gradients.
void take_sequences(const Scenario& scenario, const Deal& deal, shardrec_lookup* lookup,
                    const Slice& slice, const std::vector<Sample>& step, int64_t first,
                    int64_t count, std::vector<std::vector<std::vector<float>>>& out, Lent& lent) {
  out.assign(static_cast<size_t>(count), std::vector<std::vector<float>>(scenario.features.size()));
  int32_t output = 0;
  for (size_t f = 0; f < scenario.features.size(); ++f) {
    if (!scenario.features[f].sequence) continue;
    ++output;
    const int64_t dim = scenario.tables[static_cast<size_t>(scenario.features[f].table)].dim;
    const std::vector<float>& gradient = slice.sequence_gradients[f];
    int64_t rows = -1;
    int64_t columns = -1;
    SR_OK(shardrec_lookup_output_shape(lookup, output, &rows, &columns));
    ASSERT_EQ(columns, dim);
    ASSERT_EQ(rows * dim, static_cast<int64_t>(gradient.size()));
    HalfMatrix matrix_out(deal.output_dtype, rows, dim);
    SR_OK(shardrec_lookup_forward(lookup, output, &matrix_out.tensor));
    const std::vector<float> values = matrix_out.floats();
    auto at = values.begin();
    for (int64_t s = 0; s < count; ++s) {
      const auto ids = static_cast<int64_t>(step[static_cast<size_t>(first + s)].bags[f].size());
      out[static_cast<size_t>(s)][f].assign(at, at + ids * dim);
      at += ids * dim;
    }
    if (rows == 0) continue;  // needs no gradient
    give_gradient(deal, lookup, output, rows, dim, gradient, lent);
  }
}

// Deals the gradients of the weights out to the samples [first, first + count) of a step.
void take_weight_gradients(const Scenario& scenario, shardrec_lookup* lookup, const Slice& slice,
                           const std::vector<Sample>& step, int64_t first, int64_t count,
                           std::vector<std::vector<std::vector<float>>>& out) {
  std::vector<float> values(slice.values.size(), -1);
  const shardrec_tensor tensor = vector_of(values);
  SR_OK(shardrec_lookup_weight_gradient(lookup, &tensor));
  out.assign(static_cast<size_t>(count), {});
  auto at = values.begin();
  for (size_t f = 0; f < scenario.features.size(); ++f) {
    for (int64_t s = 0; s < count; ++s) {
      const auto ids = static_cast<int64_t>(step[static_cast<size_t>(first + s)].bags[f].size());
      out[static_cast<size_t>(s)].emplace_back(at, at + ids);
      at += ids;
    }
  }
}

// A batch whose i-th sample has row i of every table that has one, for the features of the table.
std::vector<Sample> all_rows(const Scenario& scenario) {
  int64_t most = 0;
  for (const TableSpec& table : scenario.tables) most = std::max(most, table.rows);
  std::vector<Sample> batch(static_cast<size_t>(most));
  for (int64_t row = 0; row < most; ++row) {
    Sample& sample = batch[static_cast<size_t>(row)];
    for (const FeatureSpec& feature : scenario.features) {
      const TableSpec& table = scenario.tables[static_cast<size_t>(feature.table)];
      const size_t ids = row < table.rows ? 1 : 0;
      sample.bags.emplace_back(ids, row);
      sample.weights.emplace_back(ids, 1.0F);
      sample.sequence_gradients.emplace_back();
    }
  }
  return batch;
}

// Output 0 and the sequences of all rows, as this rank sees them.
void look_up_all(const Scenario& scenario, const Deal& deal, shardrec_lookup* lookup,
                 std::vector<std::vector<float>>& out) {
  const std::vector<Sample> batch = all_rows(scenario);
  const auto count = static_cast<int64_t>(batch.size());
  Slice slice = slice_of(scenario, batch, 0, count, BatchForm::kPlain);
  const shardrec_tensor values = vector_of(slice.values);
  const shardrec_tensor lengths = vector_of(slice.lengths);
  SR_OK(begin_batch(lookup, {.batch_size = count, .values = &values, .lengths = &lengths}));
  int32_t outputs = 1;
  for (const FeatureSpec& feature : scenario.features) outputs += feature.sequence ? 1 : 0;
  for (int32_t output = 0; output < outputs; ++output) {
    int64_t rows = -1;
    int64_t columns = -1;
    SR_OK(shardrec_lookup_output_shape(lookup, output, &rows, &columns));
    HalfMatrix matrix_out(deal.output_dtype, rows, columns);
    SR_OK(shardrec_lookup_forward(lookup, output, &matrix_out.tensor));
    out.push_back(matrix_out.floats());
  }
  SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_SKIP));
}

// Averages the replicas of a mesh where that is due after a step.
void sync_replicas(const Scenario& scenario, const Deal& deal, size_t step,
                   shardrec_collection* tables) {
  if (deal.replicas == 1) return;
  const bool last = step + 1 == scenario.steps.size();
  if (!last && (step + 1) % static_cast<size_t>(deal.sync_every) != 0) return;
  SR_OK(shardrec_collection_sync_replicas(tables));
}

}  // namespace

void train_rank(const Scenario& scenario, const Deal& deal, int rank, shardrec_comm* comm,
                std::mutex& mutex, Outcome& outcome) {
  shardrec_model* model = make_model(scenario);
  shardrec_plan* plan = make_plan(model, deal);
  shardrec_options* options = nullptr;
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SEED, scenario.seed));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, deal.threads));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEDUPLICATE, deal.deduplicate ? 1 : 0));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, deal.hierarchical ? 1 : 0));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_GRADIENT_DIVISOR, deal.divisor));
  SR_OK(
      shardrec_options_set_f64(options, SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE, scenario.divisor));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OUTPUT_DTYPE, deal.output_dtype));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_FORWARD_COMPRESSION,
                                 deal.forward_compression));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_BACKWARD_COMPRESSION,
                                 deal.backward_compression));
  SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_REPLICA_SYNC, deal.sync));
  shardrec_collection* tables = nullptr;
  shardrec_mesh* mesh = nullptr;
  if (deal.replicas == 1) {
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, options, &tables));
  } else {
    shardrec_options* mesh_options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_MESH, &mesh_options));
    SR_OK(shardrec_options_set_i64(mesh_options, SHARDREC_OPTION_PLACEMENT, deal.placement));
    SR_OK(shardrec_mesh_create(comm, deal.ranks, mesh_options, &mesh));
    shardrec_options_destroy(&mesh_options);
    SR_OK(shardrec_collection_create(comm, mesh, model, plan, options, &tables));
  }
  shardrec_lookup* lookup = nullptr;
  shardrec_options* lookup_options = nullptr;
  SR_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, &lookup_options));
  SR_OK(shardrec_options_set_i64(lookup_options, SHARDREC_OPTION_WEIGHT_GRADIENT,
                                 deal.weight_gradient ? 1 : 0));
  SR_OK(shardrec_options_set_i64(lookup_options, SHARDREC_OPTION_BORROW, deal.borrow ? 1 : 0));
  SR_OK(shardrec_lookup_create(tables, lookup_options, &lookup));
  shardrec_options_destroy(&lookup_options);

  std::vector<std::vector<float>> initial(scenario.tables.size());
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    read_table(tables, static_cast<int32_t>(t), SHARDREC_TABLE_WEIGHTS, scenario.tables[t].rows,
               scenario.tables[t].dim, initial[t]);
  }
  const int64_t width = scenario.width();
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += deal.share[s][static_cast<size_t>(r)];
    const int64_t count = deal.share[s][static_cast<size_t>(rank)];
    Slice slice = slice_of(scenario, scenario.steps[s], first, count, deal.form);
    const shardrec_tensor values =
        scenario.ids_are_32 ? vector_of(slice.values32) : vector_of(slice.values);
    const shardrec_tensor weights = vector_of(slice.weights);
    const shardrec_tensor* weights_or_null = scenario.weighted ? &weights : nullptr;
    if (deal.form != BatchForm::kPlain) {
      const shardrec_tensor sizes = vector_of(slice.batch_sizes);
      const shardrec_tensor inverse = vector_of(slice.inverse);
      const shardrec_tensor lengths = vector_of(slice.lengths);
      SR_OK(begin_batch(lookup, {.batch_size = count,
                                 .values = &values,
                                 .lengths = &lengths,
                                 .weights = weights_or_null,
                                 .batch_sizes = &sizes,
                                 .inverse = &inverse}));
    } else if (scenario.by_offsets) {
      const shardrec_tensor offsets = vector_of(slice.offsets);
      SR_OK(begin_batch(lookup, {.batch_size = count,
                                 .values = &values,
                                 .offsets = &offsets,
                                 .weights = weights_or_null}));
    } else {
      const shardrec_tensor lengths = vector_of(slice.lengths);
      SR_OK(begin_batch(lookup, {.batch_size = count,
                                 .values = &values,
                                 .lengths = &lengths,
                                 .weights = weights_or_null}));
    }
    HalfMatrix out(deal.output_dtype, count, width);
    SR_OK(shardrec_lookup_forward(lookup, 0, &out.tensor));
    const std::vector<float> values_out = out.floats();
    {
      const std::lock_guard lock(mutex);
      for (int64_t i = 0; i < count; ++i) {
        outcome.outputs[s][static_cast<size_t>(first + i)].assign(
            values_out.begin() + i * width, values_out.begin() + (i + 1) * width);
      }
    }
    std::vector<std::vector<std::vector<float>>> sequences;
    Lent lent;
    take_sequences(scenario, deal, lookup, slice, scenario.steps[s], first, count, sequences, lent);
    if (::testing::Test::HasFatalFailure()) return;
    {
      const std::lock_guard lock(mutex);
      std::move(sequences.begin(), sequences.end(), outcome.sequences[s].begin() + first);
    }
    give_gradient(deal, lookup, 0, count, width, slice.gradient, lent);
    if (scenario.frozen_table >= 0) {
      const auto table = static_cast<size_t>(scenario.frozen_table);
      SR_OK(shardrec_collection_set_frozen(tables, scenario.frozen_table,
                                           scenario.frozen_at(table, s) ? 1 : 0));
    }
    const shardrec_update update =
        scenario.accumulates_at(s) ? SHARDREC_UPDATE_ACCUMULATE : SHARDREC_UPDATE_APPLY;
    if (deal.sends_early_in(s, rank)) {
      SR_OK(shardrec_lookup_send_gradients(lookup, update));
    }
    if (deal.in_background(s, rank)) {
      SR_OK(shardrec_lookup_backward_begin(lookup, update));
      SR_OK(shardrec_lookup_backward_wait(lookup));
    } else {
      SR_OK(shardrec_lookup_backward(lookup, update));
    }
    sync_replicas(scenario, deal, s, tables);
    for (HalfMatrix& gradient : lent) gradient.spoil();  // whoever reads them now reads too late
    if (deal.weight_gradient) {
      std::vector<std::vector<std::vector<float>>> of_weights;
      take_weight_gradients(scenario, lookup, slice, scenario.steps[s], first, count, of_weights);
      if (::testing::Test::HasFatalFailure()) return;
      const std::lock_guard lock(mutex);
      std::move(of_weights.begin(), of_weights.end(), outcome.weight_gradients[s].begin() + first);
    }
  }
  std::vector<std::vector<float>> weights(scenario.tables.size());
  std::vector<std::vector<std::vector<float>>> states(scenario.tables.size());
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    const TableSpec& table = scenario.tables[t];
    read_table(tables, static_cast<int32_t>(t), SHARDREC_TABLE_WEIGHTS, table.rows, table.dim,
               weights[t]);
    const OptimizerSpec& optimizer = scenario.optimizer_of(t);
    int part = SHARDREC_TABLE_STATE;
    for (const bool by_row : optimizer.states_by_row()) {
      states[t].emplace_back();
      read_table(tables, static_cast<int32_t>(t), static_cast<shardrec_table_part>(part++),
                 table.rows, by_row && !optimizer.shard_statistics ? 1 : table.dim,
                 states[t].back());
    }
  }
  int64_t step = 0;
  SR_OK(shardrec_collection_step(tables, &step));
  EXPECT_EQ(step, scenario.updates());
  {
    const std::lock_guard lock(mutex);
    const auto stat = [&](shardrec_stat which, int32_t table = SHARDREC_ALL_TABLES) {
      double value = 0;
      SR_EXPECT_OK(shardrec_collection_stat(tables, which, table, &value));
      return static_cast<int64_t>(value);
    };
    for (size_t t = 0; t < scenario.tables.size(); ++t) {
      outcome.out_of_range[t] += stat(SHARDREC_STAT_TABLE_OUT_OF_RANGE, static_cast<int32_t>(t));
    }
    outcome.threads_seen = std::max(outcome.threads_seen, stat(SHARDREC_STAT_THREADS_SEEN));
    outcome.saturated += stat(SHARDREC_STAT_SATURATED);
    outcome.bytes_input += stat(SHARDREC_STAT_BYTES_INPUT);
    outcome.bytes_output += stat(SHARDREC_STAT_BYTES_OUTPUT);
    outcome.bytes_gradient += stat(SHARDREC_STAT_BYTES_GRADIENT);
    if (rank == 0) {
      outcome.initial = initial;
      outcome.tables = weights;
      outcome.states = states;
    } else {
      EXPECT_EQ(outcome.tables.empty() || outcome.tables == weights, true)
          << "rank " << rank << " reads other rows than rank 0";
    }
  }
  if (deal.look_up_all) {
    std::vector<std::vector<float>> seen;
    look_up_all(scenario, deal, lookup, seen);
    const std::lock_guard lock(mutex);
    outcome.all_rows[static_cast<size_t>(rank)] = std::move(seen);
  }
  shardrec_lookup_destroy(&lookup);
  shardrec_collection_destroy(&tables);
  shardrec_mesh_destroy(&mesh);
  shardrec_options_destroy(&options);
  shardrec_plan_destroy(&plan);
  shardrec_model_destroy(&model);
}

bool OptimizerSpec::has_sums() const {
  return max_norm > 0 || (kind != SHARDREC_OPTIMIZER_SGD && kind != SHARDREC_OPTIMIZER_ADAGRAD &&
                          kind != SHARDREC_OPTIMIZER_ADAM);
}

std::vector<bool> OptimizerSpec::states_by_row() const {
  switch (kind) {
    case SHARDREC_OPTIMIZER_SGD:
      return {};
    case SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD:
      return {true};
    case SHARDREC_OPTIMIZER_ADAM:
    case SHARDREC_OPTIMIZER_LAMB:
      return {false, false};
    case SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM:
    case SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB:
      return {false, true};
    default:
      return {false};
  }
}

int64_t Scenario::updates() const {
  int64_t count = 0;
  for (size_t s = 0; s < steps.size(); ++s) count += accumulates_at(s) ? 0 : 1;
  return count;
}

int64_t Scenario::width() const {
  int64_t width = 0;
  for (const FeatureSpec& feature : features)
    if (!feature.sequence) width += tables[static_cast<size_t>(feature.table)].dim;
  return width;
}

int64_t Scenario::column(size_t feature) const {
  int64_t column = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    for (size_t f = 0; f < features.size(); ++f) {
      if (features[f].table != static_cast<int32_t>(t) || features[f].sequence) continue;
      if (f == feature) return column;
      column += tables[t].dim;
    }
  }
  return column;
}

Outcome empty_outcome(const Scenario& scenario, const Deal& deal) {
  Outcome outcome;
  for (const auto& step : scenario.steps) {
    outcome.outputs.emplace_back(step.size());
    outcome.sequences.emplace_back(step.size());
    outcome.weight_gradients.emplace_back(step.size());
  }
  outcome.out_of_range.resize(scenario.tables.size());
  outcome.all_rows.resize(static_cast<size_t>(deal.world()));
  return outcome;
}

Outcome train(const Scenario& scenario, const Deal& deal) {
  Outcome outcome = empty_outcome(scenario, deal);
  std::mutex mutex;
  run_ranks(deal.world(), deal.ranks_per_node, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 60));
    train_rank(scenario, deal, rank, comm, mutex, outcome);
  });
  return outcome;
}

}  // namespace shardrec::test
