// One optimizer step of touched rows (compute::RowUpdate), or the sums over columns that it would take.
//
// A group of lanes has a row, and each lane some slots, which hold neighbouring columns of one row each: of
// several rows, or where a row has more columns than its lanes, of several parts of a row. A warp loads
// the slots of all of its lanes, a wave of rows, before it uses the first. What a lane has of weights,
// state and gradient stays in its registers until it is stored; what sums over columns decide is computed
// by one lane for each row. A row that no wave has room for is walked in tiles, for sums twice.
#pragma once

#include "compute/cuda/kernels/rows/row_formulas.h"
#include "compute/cuda/kernels/rows/row_slots.h"
#include "compute/cuda/kernels/rows/row_store.h"

namespace shardrec::compute::cuda {

template <class Row, template <WeightDecay> class OfDecay>
struct UpdateShared {
  using With = Formulas<OfDecay>;
  static constexpr int kSums = With::kNeeds.sums;
  static constexpr int kSlots =
      With::kNeeds.matrices == 0 ? SHARDREC_CUDA_ROW_SLOTS : SHARDREC_CUDA_ROW_SLOTS_WITH_MATRICES;
  static constexpr int kMostRows = kSlots * SHARDREC_CUDA_ROWS_OF_A_SLOT;  // of a wave
  struct Totals {
    float state[kWarp];  // of the warp's rows
    // Of the rows of a wave.
    float sum[kMostRows][kSums == 0 ? 1 : kSums];
    math::Rates rates[kMostRows];
  };
  struct NoTotals {};
  struct OfWarp {
    WarpRows rows;
    void* begin[kWarp];  // of the rows, in the table
    // By row and column: first of gradients that a lane has summed for itself.
    float numbers[summed_lists(With::kKind)][kMostRows * kVirtualLanes];
    std::conditional_t<kSums != 0, Totals, NoTotals> totals;
  };

  BlockJob job;
  OfWarp warp[kWarps];
};

// The rows of a warp.
template <class Row, template <WeightDecay> class OfDecay, bool kWide>
class WarpUpdate {
 public:
  using Shared = UpdateShared<Row, OfDecay>;

  SHARDREC_DEVICE WarpUpdate(const shardrec_cuda_row_job& job, typename Shared::OfWarp& own)
      : job_(job), own_(own) {
    const int64_t row = own.rows.row[lane_index()].row;
    own.begin[lane_index()] = row_at(job, row);
    if constexpr (kNeeds.row_values != 0) {
      if (job.state != nullptr) own.totals.state[lane_index()] = global(job.state)[row];
    }
    __syncwarp();
  }

  // Rows that a warp has on their way at one time.
  SHARDREC_DEVICE int wave() const {
    const int rows = kWarp / job_.lanes * (kSlots >> (kWide ? job_.part_bits : 0));
    return rows < Shared::kMostRows ? rows : Shared::kMostRows;
  }

  // A wave, from row `begin` of the warp on.
  SHARDREC_DEVICE void step(int begin) {
    begin_ = begin;
    const int left = own_.rows.rows - begin;
    wave_ = left < wave() ? left : wave();
    const bool takes_sums = kSums != 0 && job_.sums == nullptr;
    const int tiles = kWide ? job_.tiles : 1;
    const int walks = takes_sums && tiles > 1 && job_.out == nullptr ? 2 * tiles : tiles;
    [[maybe_unused]] Sums sums;
    for (int walk = 0; walk < walks; ++walk) {
      const bool adds = takes_sums && walk < tiles;
      tile_ = walk < tiles ? walk : walk - tiles;
      math::Column x[kSlots][kColumns] = {};
      load(x);
      if constexpr (kSums != 0) {
        if (adds || kRereads) put(x);
        if (adds) {
          __syncwarp();
          add(sums);
          __syncwarp();
        }
        if (job_.out != nullptr || (adds && tiles > 1 && tile_ + 1 != tiles)) continue;
        if (takes_sums ? walk + 1 == tiles : walk == 0) set_rates();
        if (adds && tiles > 1) continue;
      }
      step_and_store(x);
      __syncwarp();  // the next one writes, or loads and does not use, what this one has read or stored
    }
    if constexpr (kSums != 0) {
      if (job_.out != nullptr && lane_index() < wave_) put_out();
    }
  }

 private:
  using With = Formulas<OfDecay>;
  static constexpr StateNeeds kNeeds = With::kNeeds;
  static constexpr int kSums = kNeeds.sums;
  static constexpr int kLists = summed_lists(With::kKind);
  static constexpr int kColumns = Row::kColumns;
  static constexpr int kSlots = Shared::kSlots;
  using Sums = ColumnSums<kSums == 0 ? 1 : kSums>;
  using Slots = RowSlots<kColumns, kWide>;
  // Gradients are where the sums read them until they are needed, which leaves registers to the sums.
  static constexpr bool kRereads = kSums > 1 && !kWide;

  SHARDREC_DEVICE Slots slots() const { return Slots(job_, wave_, tile_); }

  // Of a row of the wave, among those of the warp: some row, of slots without one.
  SHARDREC_DEVICE int of_warp(int row) const { return (begin_ + row) & (kWarp - 1); }
  SHARDREC_DEVICE const TouchedRow& touched(int row) const { return own_.rows.row[of_warp(row)]; }

  // The gradients of rows that have several occurrences: few, where there are far more rows than ids.
  SHARDREC_DEVICE void sum_occurrences() {
    const Slots own = slots();
#pragma unroll 1
    for (int s = 0; s < kSlots; ++s) {
      if (!own.has(s) || !has_several(touched(own.row(s)))) continue;
      float g[kColumns];
      sum_gradient(job_.touched, own_.rows, touched(own.row(s)), job_.first_column + own.column(s),
                   g);
      put_numbers(own_.numbers[0] + own.place(s), g);
    }
  }

  SHARDREC_DEVICE void load(math::Column (&x)[kSlots][kColumns]) {
    sum_occurrences();
    typename Row::Raw raw[kSlots];
    float g[kSlots][kColumns];
    float m[kSlots][kColumns] = {};
    float v[kSlots][kColumns] = {};
    load_rows(raw, m, v);
    load_gradients(g);
    finish_gradients(g);
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      float w[kColumns];
      Row::widen(raw[s], w);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[s][c] = {w[c], g[s][c], m[s][c], v[s][c]};
    }
    if constexpr (math::kMovesFirst<OfDecay<WeightDecay::kNone>>) {
      With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
        const math::Constants k(step);
#pragma unroll
        for (int s = 0; s < kSlots; ++s) {
#pragma unroll
          for (int c = 0; c < kColumns; ++c) decltype(formula)::move(k, x[s][c]);
        }
      });
    }
  }

  SHARDREC_DEVICE void load_rows(typename Row::Raw (&raw)[kSlots], float (&m)[kSlots][kColumns],
                                 float (&v)[kSlots][kColumns]) const {
    const Slots own = slots();
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      const int row = own.row(s);
      raw[s] = Row::load(own_.begin[of_warp(row)], job_.element, own.some_column(s));
      const int64_t at = touched(row).row * job_.touched.width + own.some_column(s);
      if constexpr (kNeeds.matrices > 0) LaneFloats<kColumns>::load(job_.matrices[0] + at, m[s]);
      if constexpr (kNeeds.matrices > 1) LaneFloats<kColumns>::load(job_.matrices[1] + at, v[s]);
    }
  }

  SHARDREC_DEVICE void load_gradients(float (&g)[kSlots][kColumns]) const {
    const Slots own = slots();
    const auto first = [&](int s) {
      return touched(own.row(s)).gradient + (job_.first_column + own.some_column(s));
    };
    if (kColumns == 1 || own_.rows.aligned) {
#pragma unroll
      for (int s = 0; s < kSlots; ++s) LaneFloats<kColumns>::load(first(s), g[s]);
    } else {
#pragma unroll
      for (int s = 0; s < kSlots; ++s) LaneFloats<kColumns>::load_each(first(s), g[s]);
    }
  }

  // Makes gradients of what was loaded first.
  SHARDREC_DEVICE void finish_gradients(float (&g)[kSlots][kColumns]) const {
    const Slots own = slots();
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      const TouchedRow& row = touched(own.row(s));
      sum_first(job_.touched, row, g[s]);
      if (has_several(row) && own.has(s)) get_numbers(own_.numbers[0] + own.place(s), g[s]);
    }
  }

  // What the sums read of this lane's columns, for all lanes.
  SHARDREC_DEVICE void put(const math::Column (&x)[kSlots][kColumns]) {
    if constexpr (kSums == 1) {
      With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
        const math::Constants k(step);
        put_list(0, [&](int s, int c) { return decltype(formula)::summed(k, x[s][c]); });
      });
    } else {
      put_list(0, [&](int s, int c) { return x[s][c].g; });
      put_list(1, [&](int s, int c) { return x[s][c].w; });
      if constexpr (kLists > 2) put_list(2, [&](int s, int c) { return x[s][c].m; });
    }
  }

  template <class NumberOf>
  SHARDREC_DEVICE void put_list(int list, const NumberOf& number_of) {
    const Slots own = slots();
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      if (!own.has(s)) continue;
      float numbers[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) numbers[c] = number_of(s, c);
      put_numbers(own_.numbers[list] + own.place(s), numbers);
    }
  }

  SHARDREC_DEVICE static void put_numbers(float* at, const float (&x)[kColumns]) {
    if constexpr (kColumns == 1) {
      *at = x[0];
    } else {
      *reinterpret_cast<float4*>(at) = make_float4(x[0], x[1], x[2], x[3]);
    }
  }

  SHARDREC_DEVICE static void get_numbers(const float* at, float (&x)[kColumns]) {
    if constexpr (kColumns == 1) {
      x[0] = *at;
    } else {
      Float32Vector::widen(*reinterpret_cast<const float4*>(at), x);
    }
  }

  // Adds a tile of the rows of the wave. Where there are several tiles, that is one row.
  SHARDREC_DEVICE void add(Sums& sums) {
    const int columns = slots().columns_of_tile();
    const auto& lists = own_.numbers;
    for (int i = 0; 2 * i < wave_; ++i) {
      const int row = Sums::row_of(i);
      if (tile_ == 0) sums.clear();
      if (row < wave_) {
        sums.add(SummedRow(row, columns), columns, [&](int at, float* lane) {
          if constexpr (kSums == 1) {
            math::add_square(lists[0][at], lane[0]);
          } else {
            math::Column x{lists[1][at], lists[0][at], 0, 0};
            if constexpr (kLists > 2) x.m = lists[2][at];
            With::add(x, lane);
          }
        });
      }
      if (kWide && tile_ + 1 != job_.tiles) continue;
      sums.finish();
      if (row < wave_ && lane_index() % kVirtualLanes == 0) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) own_.totals.sum[row][k] = sums[k];
      }
    }
  }

  // A lane for each row of the wave: what the formulas need of its sums, and the next value of its state.
  SHARDREC_DEVICE void set_rates() {
    const int lane = lane_index();
    if (lane < wave_) {
      float state = 0;
      if constexpr (kNeeds.row_values != 0) state = own_.totals.state[begin_ + lane];
      float sums[kMostSums];
#pragma unroll
      for (int k = 0; k < kSums; ++k) {
        sums[k] = job_.sums == nullptr ? own_.totals.sum[lane][k]
                                       : global(job_.sums)[number_of(lane) * job_.sums_stride + k];
      }
      With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
        own_.totals.rates[lane] = decltype(formula)::rates(step, &state, sums, job_.sum_columns);
      });
      if constexpr (kNeeds.row_values != 0) {
        global(job_.state)[own_.rows.row[begin_ + lane].row] = state;
      }
    }
    __syncwarp();
  }

  // Of a row of the wave, among those of the job.
  SHARDREC_DEVICE int64_t number_of(int row) const { return own_.rows.first + begin_ + row; }

  SHARDREC_DEVICE void step_and_store(math::Column (&x)[kSlots][kColumns]) const {
    if constexpr (kSums == 0) __syncwarp();  // others have loaded what they do not use
    With::visit(job_.step, [&](auto formula, const OptimizerStep& step) {
      const math::Constants k(step);
      const Slots own = slots();
#pragma unroll
      for (int s = 0; s < kSlots; ++s) {
        if (!own.has(s)) continue;
        math::Rates rates;
        if constexpr (kSums != 0) rates = own_.totals.rates[own.row(s)];
        if constexpr (kRereads) {
          float g[kColumns];
          get_numbers(own_.numbers[0] + own.place(s), g);
#pragma unroll
          for (int c = 0; c < kColumns; ++c) x[s][c].g = g[c];
        }
#pragma unroll
        for (int c = 0; c < kColumns; ++c) decltype(formula)::step(k, rates, x[s][c]);
        store(own.row(s), own.column(s), x[s]);
      }
    });
  }

  SHARDREC_DEVICE void store(int row, int column, const math::Column (&x)[kColumns]) const {
    float numbers[kColumns];
    const int64_t at = touched(row).row * job_.touched.width + column;
    if constexpr (kNeeds.matrices > 0) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) numbers[c] = x[c].m;
      LaneFloats<kColumns>::store(job_.matrices[0] + at, numbers);
    }
    if constexpr (kNeeds.matrices > 1) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) numbers[c] = x[c].v;
      LaneFloats<kColumns>::store(job_.matrices[1] + at, numbers);
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) numbers[c] = x[c].w;
    store_columns(Row{}, job_, touched(row).row, own_.begin[of_warp(row)], column, numbers);
  }

  SHARDREC_DEVICE void put_out() const {
    float* const out = job_.out + number_of(lane_index()) * job_.out_stride;
#pragma unroll
    for (int k = 0; k < kSums; ++k) global(out)[k] = own_.totals.sum[lane_index()][k];
  }

  const shardrec_cuda_row_job& job_;
  typename Shared::OfWarp& own_;
  int begin_ = 0;  // of the wave
  int wave_ = 0;   // its rows
  int tile_ = 0;
};

// Blocks of threads per multiprocessor: four, where 64 registers hold what a thread needs.
template <class Row, OptimizerKind kKind, bool kWide>
constexpr int update_blocks() {
  constexpr bool kHalves = std::is_same_v<typename Row::Raw, uint2>;
  constexpr StateNeeds kNeeds = state_needs(kKind);
  if (kNeeds.matrices != 0) return 3;
  if (!kHalves) return kWide ? 3 : 4;
  return kWide && kNeeds.sums != 0 ? 2 : 3;
}

// kWide: may rows have more columns than 32 lanes have in one slot each?
template <class Row, template <WeightDecay> class OfDecay, bool kWide>
SHARDREC_KERNEL((update_blocks<Row, Formulas<OfDecay>::kKind, kWide>()))
update_rows(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count) {
  auto& block = shared<UpdateShared<Row, OfDecay>>();
  const int64_t first = block.job.read(jobs, first_block, count);
  const int rows = block.job.rows_from(first);
  if (rows <= 0) return;
  const shardrec_cuda_row_job& job = block.job.job;
  auto& own = block.warp[warp_index()];
  read_rows(job.touched, first, rows, own.rows);
  WarpUpdate<Row, OfDecay, kWide> update(job, own);
  for (int begin = 0; begin < own.rows.rows; begin += update.wave()) update.step(begin);
}

}  // namespace shardrec::compute::cuda
