// Sums over rows and over columns, on a device, have the order of the CPU's.
#include <algorithm>

#include "core/threads.h"
#include "dense/layers/weight_gradients.h"
#include "dense_device/both_places.h"

namespace shardrec::dense::device::test {
namespace {

class SumsOnDevice : public OnDevice {
 protected:
  // Sums of tiles, for the CPU and for the device.
  struct Sums {
    Both parts;
    Both target;
    int64_t tile_rows;
    bool accumulate;

    TileSums there() {
      return {.tile_rows = tile_rows,
              .parts = parts.there().data,
              .target = target.there().data,
              .accumulate = accumulate};
    }
  };
  Sums sums(const Shape& shape, int64_t count, int64_t tile_rows, bool accumulate) {
    const int64_t tiles = (shape.rows + tile_rows - 1) / tile_rows;
    return {.parts = both({.rows = tiles, .cols = count}, 11),
            .target = both({.rows = 1, .cols = count, .layout = {.offset = 1}}, 12),
            .tile_rows = tile_rows,
            .accumulate = accumulate};
  }
  // The CPU's: sum_tile(tile, first row, rows) writes a row of parts, and what a stack of layers adds up
  // follows.
  template <class SumTile>
  void on_host(Sums& sums, const Shape& shape, const SumTile& sum_tile) {
    const core::Matrix parts = sums.parts.host();
    const core::Matrix target = sums.target.host();
    if (shape.rows == 0) {
      if (!sums.accumulate) std::fill_n(target.data, target.cols, 0.0F);
      return;
    }
    for (int64_t tile = 0; tile < parts.rows; ++tile) {
      const int64_t first = tile * sums.tile_rows;
      sum_tile(tile, first, std::min(sums.tile_rows, shape.rows - first));
    }
    add_up({.parts = parts.data,
            .count = parts.rows,
            .size = parts.cols,
            .stride = parts.cols,
            .target = target.data},
           {.accumulate = sums.accumulate}, threads_);
  }

  core::Threads threads_{1};
};

TEST_F(SumsOnDevice, OfColumns) {
  for_each_shape([&](const Shape& shape) {
    // 143 tiles of 1000 rows are added in three rounds.
    for (const int64_t tile_rows : {7, 64, 128}) {
      for (const bool accumulate : {false, true}) {
        Both x = both(shape, 1);
        Sums result = sums(shape, shape.cols, tile_rows, accumulate);
        on_host(result, shape, [&](int64_t tile, int64_t first, int64_t rows) {
          kernels().column_sums(x.host().row(first), x.host().stride, rows, shape.cols,
                                result.parts.host().row(tile));
        });
        column_sums(*stream_, x.there(), result.there());
        result.target.expect_same("sums");
      }
    }
  });
}

TEST_F(SumsOnDevice, OfLayerNormForward) {
  for_each_shape([&](const Shape& shape) {
    Both weight = vector(shape, 1), bias = vector(shape, 2);
    Both x = both(shape, 3), y = both(shape, 4);
    Both statistics = both({.rows = shape.rows, .cols = 2}, 5);
    const LayerNormForward host{
        .weight = weight.host().data, .bias = bias.host().data, .epsilon = 1e-5F};
    const LayerNormForward there{
        .weight = weight.there().data, .bias = bias.there().data, .epsilon = 1e-5F};
    kernels().layer_norm_forward(host, x.host(), y.host(), statistics.host().data);
    layer_norm_forward(*stream_, there, x.there(), y.there(), statistics.there().data);
    y.expect_same("y");
    statistics.expect_same("statistics");
    kernels().layer_norm_forward(host, x.host(), x.host(), nullptr);
    layer_norm_forward(*stream_, there, x.there(), x.there(), nullptr);
    x.expect_same("x in place");
  });
}

TEST_F(SumsOnDevice, OfLayerNormBackward) {
  enum class Inputs { kNone, kOwn, kInPlace };
  for_each_shape([&](const Shape& shape) {
    for (const Inputs inputs : {Inputs::kNone, Inputs::kOwn, Inputs::kInPlace}) {
      Both weight = vector(shape, 1), x = both(shape, 2), dy = both(shape, 3),
           other = both(shape, 4);
      Both statistics = both({.rows = shape.rows, .cols = 2}, 5);
      Both& dx = inputs == Inputs::kInPlace ? dy : other;
      Sums result = sums(shape, 2 * shape.cols, 64, inputs == Inputs::kOwn);
      on_host(result, shape, [&](int64_t tile, int64_t first, int64_t rows) {
        const auto rows_of = [&](Both& matrix) {
          return core::Matrix{matrix.host().row(first), rows, shape.cols, matrix.host().stride};
        };
        float* const parts = result.parts.host().row(tile);
        kernels().layer_norm_backward({.weight = weight.host().data,
                                       .statistics = statistics.host().row(first),
                                       .weight_sums = parts,
                                       .bias_sums = parts + shape.cols},
                                      rows_of(x), rows_of(dy),
                                      inputs == Inputs::kNone ? core::Matrix{} : rows_of(dx));
      });
      layer_norm_backward(*stream_, weight.there().data, statistics.there().data, x.there(),
                          dy.there(), inputs == Inputs::kNone ? core::Matrix{} : dx.there(),
                          result.there());
      result.target.expect_same("sums");
      dx.expect_same("dx");
    }
  });
}

}  // namespace
}  // namespace shardrec::dense::device::test
