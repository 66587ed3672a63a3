#include "planner/replication.h"

#include <algorithm>
#include <cmath>

namespace shardrec::planner {

double replication_bytes(const Model& model, size_t table, int32_t ranks,
                         shardrec_replication replication, const PlanOptions& expected) {
  const Table& shape = model.tables[table];
  const auto features = static_cast<double>(std::count_if(
      model.features.begin(), model.features.end(),
      [&](const Feature& feature) { return static_cast<size_t>(feature.table) == table; }));
  const auto rows = static_cast<double>(shape.rows);
  const double gradient = 4.0 * static_cast<double>(shape.dim);
  const double bags = features * static_cast<double>(expected.batch_size);
  const double ids = bags * expected.bag_length;
  const double others = ranks - 1;
  if (replication == SHARDREC_REPLICATION_SAMPLES) {
    // Lengths, ids and gradients of bags that are not empty, to every other rank.
    const double id = shape.rows < (int64_t{1} << 31) ? 4 : 8;
    return others * (4 * bags + id * ids + gradient * std::min(bags, ids));
  }
  // Uniform ids: the most rows that a step can be expected to touch.
  const auto touched = [&](double drawn) {
    return rows * -std::expm1(drawn * std::log1p(-1 / rows));
  };
  const double own = shape.rows == 1 ? std::min(1.0, ids) : touched(ids);
  const double all = shape.rows == 1 ? std::min(1.0, ids) : touched(ids * ranks);
  const double index_own = replication == SHARDREC_REPLICATION_DENSE ? rows / 8 : 4 * own;
  const double index_all = replication == SHARDREC_REPLICATION_DENSE ? rows / 8 : 4 * all;
  // All slots but the own to their ranks, then the sums of the own slot to all.
  return others / ranks * (own * gradient + index_own) +
         others / ranks * (all * gradient + index_all);
}

shardrec_replication choose_replication(const Model& model, size_t table, int32_t ranks,
                                        const PlanOptions& options) {
  if (options.replication != SHARDREC_REPLICATION_AUTO) return options.replication;
  if (options.batch_size == 0 || !plan::fits_slots(model.tables[table].rows, ranks)) {
    return SHARDREC_REPLICATION_SAMPLES;
  }
  shardrec_replication best = SHARDREC_REPLICATION_SAMPLES;
  for (const auto other : {SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE}) {
    if (replication_bytes(model, table, ranks, other, options) <
        replication_bytes(model, table, ranks, best, options)) {
      best = other;
    }
  }
  return best;
}

}  // namespace shardrec::planner
