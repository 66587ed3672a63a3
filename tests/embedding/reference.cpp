#include "embedding/reference.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shardrec::test {
namespace {

struct ColumnSpan {
  int64_t first = 0;
  int64_t last = 0;
};

// The columns over which the statistic of a row is taken.
std::vector<ColumnSpan> statistic_spans(const Scenario& scenario, const TablePlanSpec& plan,
                                        const TableSpec& table, int64_t row) {
  if (!scenario.optimizer.shard_statistics || plan.replicated) return {{0, table.dim}};
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
  const OptimizerSpec& o = scenario.optimizer;
  ReferenceOutcome result;
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    result.tables.emplace_back(initial[t].begin(), initial[t].end());
    const TableSpec& table = scenario.tables[t];
    result.states.emplace_back(
        static_cast<size_t>(table.rows * (o.shard_statistics ? table.dim : 1)), 0.0);
  }
  result.out_of_range.resize(scenario.tables.size());
  const int64_t width = scenario.width();
  for (const auto& batch : scenario.steps) {
    std::vector<std::vector<double>> outputs;
    std::vector<std::vector<double>> magnitudes;
    std::vector<std::vector<std::vector<double>>> sequences;
    // Gradient of each touched row, by (table, row).
    std::map<std::pair<size_t, int64_t>, std::vector<double>> gradients;
    for (const Sample& sample : batch) {
      std::vector<double> out(static_cast<size_t>(width), 0.0);
      std::vector<double> magnitude(static_cast<size_t>(width), 0.0);
      std::vector<std::vector<double>> sequence_rows(scenario.features.size());
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
          auto& gradient = gradients[{t, rows[i]}];
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
            const auto& given = sequence ? sample.sequence_gradients[f] : sample.gradient;
            double g = given[column] / scenario.divisor;
            if (o.max_gradient > 0) g = std::clamp(g, -o.max_gradient, o.max_gradient);
            gradient[static_cast<size_t>(c)] += weight * g * scale;
          }
        }
      }
      outputs.push_back(out);
      magnitudes.push_back(magnitude);
      sequences.push_back(sequence_rows);
    }
    for (auto& [key, gradient] : gradients) {
      const auto [t, row] = key;
      const TableSpec& table = scenario.tables[t];
      double* w = result.tables[t].data() + row * table.dim;
      const double lr = o.learning_rate;
      const double decay = o.decay_mode == SHARDREC_WEIGHT_DECAY_NONE ? 0 : o.weight_decay;
      const bool l2 = o.decay_mode == SHARDREC_WEIGHT_DECAY_L2;
      for (const ColumnSpan& span : statistic_spans(scenario, plan[t], table, row)) {
        double rate = lr;
        if (o.adagrad) {
          double sum = 0;
          for (int64_t c = span.first; c < span.last; ++c) {
            const double e = gradient[static_cast<size_t>(c)] + (l2 ? decay * w[c] : 0);
            sum += e * e;
          }
          double* h = o.shard_statistics ? result.states[t].data() + row * table.dim + span.first
                                         : result.states[t].data() + row;
          *h += sum / static_cast<double>(span.last - span.first);
          if (o.shard_statistics) std::fill(h, h + (span.last - span.first), *h);
          rate = lr / (std::sqrt(*h) + o.eps);
        }
        for (int64_t c = span.first; c < span.last; ++c) {
          const double g = gradient[static_cast<size_t>(c)];
          if (o.adagrad) {
            w[c] = (l2 ? 1 - rate * decay : 1 - lr * decay) * w[c] - rate * g;
          } else {
            w[c] = l2 ? w[c] - lr * (g + decay * w[c]) : (1 - lr * decay) * w[c] - lr * g;
          }
        }
      }
    }
    result.outputs.push_back(std::move(outputs));
    result.magnitudes.push_back(std::move(magnitudes));
    result.sequences.push_back(std::move(sequences));
  }
  return result;
}

}  // namespace shardrec::test
