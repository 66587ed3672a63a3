#include "compute/cuda/kernels/layers/tile_sums.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_tile_sums() {
  const cudaError_t error = load_for_each_type([]<class Elements>(Elements) {
    const cudaError_t of_columns = load(sum_rows_of_tiles<ColumnSums, Elements>);
    return of_columns != cudaSuccess ? of_columns
                                     : load(sum_rows_of_tiles<LayerNormSums, Elements>);
  });
  return error != cudaSuccess ? error : load(add_up_tree);
}

shardrec_cuda_error sum_tiles(shardrec_cuda_stream* stream, const shardrec_cuda_tile_sums* sums) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  if (sums->x.rows == 0 || sums->x.cols == 0) return cudaSuccess;
  const int64_t tiles = (sums->x.rows + sums->tile_rows - 1) / sums->tile_rows;
  const ElementGrid grid = grid_of(tiles, sums->x.cols, 1);
  return with_elements(sums->x, [&]<class Elements>(Elements) {
    return launch(sums->statistics == nullptr ? sum_rows_of_tiles<ColumnSums, Elements>
                                              : sum_rows_of_tiles<LayerNormSums, Elements>,
                  blocks_of(grid), 0, stream->commands, *sums, grid);
  });
}

shardrec_cuda_error add_tree(shardrec_cuda_stream* stream, const shardrec_cuda_tree* tree) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(add_up_tree, (tree->count + kWarp - 1) / kWarp, 0, stream->commands, *tree);
}

}  // namespace shardrec::compute::cuda
