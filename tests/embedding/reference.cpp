#include "embedding/reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "embedding/reference_optimizer.h"

namespace shardrec::test {
namespace {

struct ColumnSpan {
  int64_t first = 0;
  int64_t last = 0;
};

// The columns over which the statistic of a row is taken.
std::vector<ColumnSpan> statistic_spans(const Scenario& scenario, const TablePlanSpec& plan,
                                        const TableSpec& table, int64_t row) {
  if (!scenario.optimizer_of(static_cast<size_t>(&table - scenario.tables.data()))
           .shard_statistics ||
      plan.replicated) {
    return {{0, table.dim}};
  }
  std::vector<ColumnSpan> spans;
  for (const BoxSpec& box : plan.boxes) {
    if (box.row <= row && row < box.row + box.rows) spans.push_back({box.col, box.col + box.cols});
  }
  return spans;
}

}  // namespace

std::vector<int64_t> rows_of(const std::vector<int64_t>& bag, const TableSpec& table) {
  std::vector<int64_t> rows;
  for (const int64_t id : bag) {
    const bool inside = id >= 0 && id < table.rows;
    rows.push_back(inside ? id : table.out_of_range == SHARDREC_OUT_OF_RANGE_CLAMP ? 0 : -1);
  }
  return rows;
}

ReferenceOutcome reference_train(const Scenario& scenario,
                                 const std::vector<std::vector<float>>& initial,
                                 const std::vector<TablePlanSpec>& plan) {
  ReferenceOutcome result;
  // Gradients that wait for their update: of each touched row, by (table, row).
  std::map<std::pair<size_t, int64_t>, std::vector<double>> gradients;
  int64_t update = 0;
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    result.tables.emplace_back(initial[t].begin(), initial[t].end());
    const TableSpec& table = scenario.tables[t];
    result.states.emplace_back();
    for (const bool by_row : scenario.optimizer_of(t).states_by_row()) {
      const bool one = by_row && !scenario.optimizer_of(t).shard_statistics;
      result.states.back().emplace_back(static_cast<size_t>(table.rows * (one ? 1 : table.dim)),
                                        0.0);
    }
  }
  result.out_of_range.resize(scenario.tables.size());
  const int64_t width = scenario.width();
  for (size_t step = 0; step < scenario.steps.size(); ++step) {
    const auto& batch = scenario.steps[step];
    std::vector<std::vector<double>> outputs;
    std::vector<std::vector<double>> magnitudes;
    std::vector<std::vector<std::vector<double>>> sequences;
    std::vector<std::vector<std::vector<double>>> weight_gradients;
    std::vector<std::vector<std::vector<double>>> weight_magnitudes;
    for (const Sample& sample : batch) {
      std::vector<double> out(static_cast<size_t>(width), 0.0);
      std::vector<double> magnitude(static_cast<size_t>(width), 0.0);
      std::vector<std::vector<double>> sequence_rows(scenario.features.size());
      std::vector<std::vector<double>> of_weights(scenario.features.size());
      for (size_t f = 0; f < of_weights.size(); ++f) of_weights[f].resize(sample.bags[f].size());
      std::vector<std::vector<double>> of_weights_magnitude = of_weights;
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const auto t = static_cast<size_t>(scenario.features[f].table);
        const int64_t dim = scenario.tables[t].dim;
        const bool sequence = scenario.features[f].sequence;
        const std::vector<int64_t> rows = rows_of(sample.bags[f], scenario.tables[t]);
        for (const int64_t id : sample.bags[f]) {
          result.out_of_range[t] += id < 0 || id >= scenario.tables[t].rows;
        }
        const auto length = static_cast<double>(
            std::count_if(rows.begin(), rows.end(), [](int64_t row) { return row >= 0; }));
        const double scale = scenario.features[f].mean && length > 0 ? 1 / length : 1;
        std::vector<double>& of_sequence = sequence_rows[f];
        if (sequence) of_sequence.resize(rows.size() * static_cast<size_t>(dim));
        for (size_t i = 0; i < rows.size(); ++i) {
          if (rows[i] < 0) continue;
          std::vector<double> unused;
          auto& gradient = scenario.frozen_at(t, step) ? unused : gradients[{t, rows[i]}];
          gradient.resize(static_cast<size_t>(dim));
          const double weight = scenario.weighted && !sequence ? sample.weights[f][i] : 1.0;
          for (int64_t c = 0; c < dim; ++c) {
            const auto column = static_cast<size_t>(sequence ? static_cast<int64_t>(i) * dim + c
                                                             : scenario.column(f) + c);
            const double w = result.tables[t][static_cast<size_t>(rows[i] * dim + c)];
            if (sequence) {
              of_sequence[column] = w;
            } else {
              out[column] += weight * w * scale;
              magnitude[column] += std::abs(weight * w * scale);
            }
            if (!sequence) {
              const double term = w * sample.gradient[column] * scale;
              of_weights[f][i] += term;
              of_weights_magnitude[f][i] += std::abs(term);
            }
            const auto& given = sequence ? sample.sequence_gradients[f] : sample.gradient;
            double g = given[column] / scenario.divisor;
            const double most = scenario.optimizer_of(t).max_gradient;
            if (most > 0) g = std::clamp(g, -most, most);
            gradient[static_cast<size_t>(c)] += weight * g * scale;
          }
        }
      }
      outputs.push_back(out);
      magnitudes.push_back(magnitude);
      sequences.push_back(sequence_rows);
      weight_gradients.push_back(of_weights);
      weight_magnitudes.push_back(of_weights_magnitude);
    }
    result.outputs.push_back(std::move(outputs));
    result.magnitudes.push_back(std::move(magnitudes));
    result.sequences.push_back(std::move(sequences));
    result.weight_gradients.push_back(std::move(weight_gradients));
    result.weight_magnitudes.push_back(std::move(weight_magnitudes));
    if (scenario.accumulates_at(step)) continue;
    ++update;
    for (auto& [key, gradient] : gradients) {
      const auto [t, row] = key;
      if (scenario.frozen_at(t, step)) continue;
      const TableSpec& table = scenario.tables[t];
      for (const ColumnSpan& span : statistic_spans(scenario, plan[t], table, row)) {
        const auto first = static_cast<size_t>(row * table.dim + span.first);
        const auto count = static_cast<size_t>(span.last - span.first);
        ReferenceRow part{
            .dtype = table.dtype,
            .weights = std::span(result.tables[t]).subspan(first, count),
            .gradient = std::span(gradient).subspan(static_cast<size_t>(span.first), count)};
        const OptimizerSpec& optimizer = scenario.optimizer_of(t);
        const std::vector<bool> by_row = optimizer.states_by_row();
        for (size_t k = 0; k < by_row.size(); ++k) {
          const bool one = by_row[k] && !optimizer.shard_statistics;
          part.states[k] = one ? std::span(result.states[t][k]).subspan(static_cast<size_t>(row), 1)
                               : std::span(result.states[t][k]).subspan(first, count);
        }
        reference_step(optimizer, update, part);
      }
    }
    gradients.clear();
  }
  return result;
}

}  // namespace shardrec::test
