// One optimizer step of touched rows (compute::RowUpdate), or the sums over columns that it would take.
//
// A group of lanes has a row, a warp as many rows as it has groups at one time, and its rows in rounds
// of so many. What a lane has of weights, state and gradient stays in its registers until it is stored.
// The columns of a row that is wider than its lanes have at once are walked in tiles, for sums twice.
#pragma once

#include "compute/cuda/kernels/rows/column_sums.h"
#include "compute/cuda/kernels/rows/row_store.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE OptimizerStep step_of(OptimizerKind kind, WeightDecay decay,
                                      const shardrec_cuda_optimizer_step& step) {
  return {.kind = kind,
          .decay_mode = decay,
          .learning_rate = step.learning_rate,
          .eps = step.eps,
          .weight_decay = step.weight_decay,
          .beta1 = step.beta1,
          .beta2 = step.beta2,
          .one_minus_beta1 = step.one_minus_beta1,
          .one_minus_beta2 = step.one_minus_beta2,
          .bias1 = step.bias1,
          .bias2 = step.bias2,
          .momentum = step.momentum,
          .eta = step.eta,
          .max_norm = step.max_norm};
}

// Lists of numbers that the sums of an optimizer read: of gradients, of weights, of the first matrix.
constexpr int summed_lists(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kPartialRowwiseLamb:
      return 3;
    case OptimizerKind::kPartialRowwiseAdam:
      return 1;
    default:
      return 2;
  }
}

// The formulas of an optimizer, with the decay of a job.
template <template <WeightDecay> class OfDecay>
struct Formulas {
  static constexpr OptimizerKind kKind = OfDecay<WeightDecay::kNone>::kKind;
  static constexpr StateNeeds kNeeds = state_needs(kKind);

  // Calls body(formula, settings).
  template <class Body>
  SHARDREC_DEVICE static void visit(const shardrec_cuda_optimizer_step& step, const Body& body) {
    switch (static_cast<WeightDecay>(step.decay)) {
      case WeightDecay::kNone:
        return call<WeightDecay::kNone>(step, body);
      case WeightDecay::kL2:
        return call<WeightDecay::kL2>(step, body);
      case WeightDecay::kDecouple:
        return call<WeightDecay::kDecouple>(step, body);
    }
  }

 private:
  template <WeightDecay kDecay, class Body>
  SHARDREC_DEVICE static void call(const shardrec_cuda_optimizer_step& step, const Body& body) {
    if constexpr (accepts(kKind, kDecay)) body(OfDecay<kDecay>{}, step_of(kKind, kDecay, step));
  }
};

template <class Row, template <WeightDecay> class OfDecay>
struct UpdateShared {
  using With = Formulas<OfDecay>;
  static constexpr int kSums = With::kNeeds.sums;
  static constexpr int kLists = summed_lists(With::kKind);
  struct Totals {
    SummedNumbers<kLists, Row::kColumns> numbers;
    RowTotals<kSums> of_row;
  };
  struct NoTotals {};
  struct OfWarp {
    WarpRows rows;
    std::conditional_t<kSums != 0, Totals, NoTotals> totals;
  };

  BlockJob job;
  OfWarp warp[kWarps];
};

// The rows of a warp.
template <class Row, template <WeightDecay> class OfDecay>
class WarpUpdate {
 public:
  using Shared = UpdateShared<Row, OfDecay>;

  SHARDREC_DEVICE WarpUpdate(const shardrec_cuda_row_job& job, typename Shared::OfWarp& own,
                             int rows)
      : job_(job), own_(own), group_(lane_group(job.lanes)), rows_(rows) {}

  // A row for each group, from row `begin` of the warp on.
  SHARDREC_DEVICE void step(int begin) {
    const int number = begin + group_.number;
    const bool has_row = number < rows_;
    const TouchedRow& row = own_.rows.row[has_row ? number : begin];
    const bool takes_sums = kSums != 0 && job_.sums == nullptr;
    float state = 0;
    if constexpr (kNeeds.row_values != 0) {
      if (job_.state != nullptr) state = global(job_.state)[row.row];
    }
    const int tiles = job_.tiles;
    const int walks = takes_sums && tiles > 1 && job_.out == nullptr ? 2 * tiles : tiles;
    [[maybe_unused]] Sums sums;
    for (int walk = 0; walk < walks; ++walk) {
      const bool adds = takes_sums && walk < tiles;
      const int tile = walk < tiles ? walk : walk - tiles;
      const LaneColumns lane =
          columns_of_lane<kColumns>(tile, group_.lanes, group_.lane, job_.columns);
      const bool has_columns = has_row && lane.count > 0;
      math::Column x[kColumns] = {};
      if (has_columns) load(row, lane, x);
      if constexpr (kSums != 0) {
        if (adds) {
          put(x);
          __syncwarp();
          add(begin, tile, tiles, sums);
          __syncwarp();
        }
      }
      if (job_.out != nullptr || (adds && tiles > 1)) continue;
      float moved = state;
      if (has_columns) {
        step_columns(number, moved, x);
        store(row, lane, x);
      }
      if constexpr (kNeeds.row_values != 0) {
        if (walk + 1 < walks) continue;
        __syncwarp();  // all lanes have read it
        if (has_row && group_.lane == 0) global(job_.state)[row.row] = moved;
      }
    }
    if constexpr (kSums != 0) {
      if (job_.out != nullptr && has_row && group_.lane == 0) put_out(number);
    }
  }

 private:
  using With = Formulas<OfDecay>;
  static constexpr StateNeeds kNeeds = With::kNeeds;
  static constexpr int kSums = kNeeds.sums;
  static constexpr int kColumns = Row::kColumns;
  using Sums = ColumnSums<kSums == 0 ? 1 : kSums>;

  SHARDREC_DEVICE void load(const TouchedRow& row, const LaneColumns& lane,
                            math::Column (&x)[kColumns]) const {
    // On their way while gradients are summed.
    const typename Row::Raw raw =
        Row::load(job_.table, job_.element, row.row * job_.stride + lane.first, lane.count);
    const int64_t at = row.row * job_.touched.width + lane.first;
    float m[kColumns] = {};
    float v[kColumns] = {};
    if constexpr (kNeeds.matrices > 0)
      LaneFloats<kColumns>::load(job_.matrices[0] + at, lane.count, m);
    if constexpr (kNeeds.matrices > 1)
      LaneFloats<kColumns>::load(job_.matrices[1] + at, lane.count, v);
    float g[kColumns];
    sum_gradient(job_.touched, own_.rows, row, job_.first_column + lane.first, lane.count, g);
    float w[kColumns];
    Row::widen(raw, w);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) x[c] = {w[c], g[c], m[c], v[c]};
    if constexpr (math::kMovesFirst<OfDecay<WeightDecay::kNone>>) {
      With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
        const math::Constants k(step);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) decltype(formula)::move(k, x[c]);
      });
    }
  }

  // What the sums read of this lane's columns, for all lanes.
  SHARDREC_DEVICE void put(const math::Column (&x)[kColumns]) {
    auto& lists = own_.totals.numbers.x;
    const int at = lane_index() * kColumns;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      lists[0][at + c] = x[c].g;
      if constexpr (Shared::kLists > 1) lists[1][at + c] = x[c].w;
      if constexpr (Shared::kLists > 2) lists[2][at + c] = x[c].m;
    }
  }

  // Adds a tile of the rows that the groups have.
  SHARDREC_DEVICE void add(int begin, int tile, int tiles, Sums& sums) {
    const int left = rows_ - begin;
    const int rows = left < group_.groups ? left : group_.groups;
    const int of_tile = group_.lanes * kColumns;
    const int columns_left = job_.columns - tile * of_tile;
    const int columns = columns_left < of_tile ? columns_left : of_tile;
    const auto& lists = own_.totals.numbers.x;
    for (int i = 0; 2 * i < rows; ++i) {
      const int row = Sums::row_of(i);
      if (tile == 0) sums.clear();
      if (row < rows) {
        With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
          const math::Constants k(step);
          sums.add(columns, [&](int c, float* lane) {
            const int at = row * of_tile + c;
            math::Column x{0, lists[0][at], 0, 0};
            if constexpr (Shared::kLists > 1) x.w = lists[1][at];
            if constexpr (Shared::kLists > 2) x.m = lists[2][at];
            decltype(formula)::sum(k, x, lane);
          });
        });
      }
      if (tile + 1 == tiles) sums.finish(row, rows, own_.totals.of_row);
    }
  }

  // Of the row that this lane's group has, which is row `number` of the warp.
  SHARDREC_DEVICE void read_sums(int number, float (&sums)[kMostSums]) const {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      if (job_.sums == nullptr) {
        sums[k] = own_.totals.of_row.sum[group_.number][k];
      } else {
        sums[k] = global(job_.sums)[(own_.rows.first + number) * job_.sums_stride + k];
      }
    }
  }

  SHARDREC_DEVICE void step_columns([[maybe_unused]] int number, [[maybe_unused]] float& state,
                                    math::Column (&x)[kColumns]) const {
    With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
      const math::Constants k(step);
      math::Rates rates;
      if constexpr (kSums != 0) {
        float sums[kMostSums];
        read_sums(number, sums);
        rates = decltype(formula)::rates(step, &state, sums, job_.sum_columns);
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) decltype(formula)::step(k, rates, x[c]);
    });
  }

  SHARDREC_DEVICE void store(const TouchedRow& row, const LaneColumns& lane,
                             const math::Column (&x)[kColumns]) const {
    float numbers[kColumns];
    const int64_t at = row.row * job_.touched.width + lane.first;
    if constexpr (kNeeds.matrices > 0) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) numbers[c] = x[c].m;
      LaneFloats<kColumns>::store(job_.matrices[0] + at, lane.count, numbers);
    }
    if constexpr (kNeeds.matrices > 1) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) numbers[c] = x[c].v;
      LaneFloats<kColumns>::store(job_.matrices[1] + at, lane.count, numbers);
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) numbers[c] = x[c].w;
    store_columns(Row{}, job_, row.row, lane, numbers);
  }

  SHARDREC_DEVICE void put_out(int number) const {
    float* const out = job_.out + (own_.rows.first + number) * job_.out_stride;
#pragma unroll
    for (int k = 0; k < kSums; ++k) global(out)[k] = own_.totals.of_row.sum[group_.number][k];
  }

  const shardrec_cuda_row_job& job_;
  typename Shared::OfWarp& own_;
  LaneGroup group_;
  int rows_;
};

// Blocks of threads per multiprocessor: two leave a thread as many registers as the moments of eight
// columns take. Where there are none, more threads have as much on its way.
template <class Row, OptimizerKind kKind>
inline constexpr int kUpdateBlocks =
    Row::kColumns == 1 || kKind == OptimizerKind::kSgd ||
            (kKind == OptimizerKind::kRowwiseAdagrad && std::is_same_v<Row, Float32Columns>)
        ? 3
        : 2;

template <class Row, template <WeightDecay> class OfDecay>
SHARDREC_KERNEL((kUpdateBlocks<Row, Formulas<OfDecay>::kKind>))
update_rows(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count) {
  auto& block = shared<UpdateShared<Row, OfDecay>>();
  const int64_t first = block.job.read(jobs, first_block, count);
  const int rows = block.job.rows_from(first);
  if (rows <= 0) return;
  const shardrec_cuda_row_job& job = block.job.job;
  auto& own = block.warp[warp_index()];
  read_rows(job.touched, first, rows, own.rows);
  WarpUpdate<Row, OfDecay> update(job, own, rows);
  for (int begin = 0; begin < rows; begin += kWarp / job.lanes) update.step(begin);
}

}  // namespace shardrec::compute::cuda
