#include "compute/cuda/kernels/layers/elements.h"
#include "compute/cuda/kernels/layers/interaction.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

int64_t vector_tiles(const shardrec_cuda_interaction& job) {
  return (job.features + kTileVectors) / kTileVectors;
}

// Do all vectors begin and end at multiples of 16 bytes?
bool vectors_fit(const shardrec_cuda_interaction& job, const shardrec_cuda_matrix& dense,
                 const shardrec_cuda_matrix& embeddings) {
  return fits_vectors(dense) && (job.features == 0 || fits_vectors(embeddings));
}

}  // namespace

shardrec_cuda_error load_interaction() {
  cudaError_t error = load(multiply_vectors<1>);
  if (error == cudaSuccess) error = load(multiply_vectors<4>);
  if (error == cudaSuccess) error = load(add_vector_gradients<1>);
  return error != cudaSuccess ? error : load(add_vector_gradients<4>);
}

shardrec_cuda_error interact(shardrec_cuda_stream* stream,
                             const shardrec_cuda_interaction* interaction) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t rows = vector_tiles(*interaction);
  const int64_t tiles = rows * (rows + 1) / 2;
  const bool vectors = vectors_fit(*interaction, interaction->dense, interaction->embeddings);
  return launch(vectors ? multiply_vectors<4> : multiply_vectors<1>,
                interaction->dense.rows * tiles, sizeof(ProductTiles), stream->commands,
                *interaction, tiles);
}

shardrec_cuda_error interaction_gradients(shardrec_cuda_stream* stream,
                                          const shardrec_cuda_interaction* interaction) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const GradientShape shape{.vector_tiles = vector_tiles(*interaction),
                            .column_tiles = (interaction->dim + kTileColumns - 1) / kTileColumns};
  const bool vectors =
      vectors_fit(*interaction, interaction->dense, interaction->embeddings) &&
      vectors_fit(*interaction, interaction->dense_gradient, interaction->embedding_gradient);
  return launch(vectors ? add_vector_gradients<4> : add_vector_gradients<1>,
                interaction->dense.rows * shape.vector_tiles * shape.column_tiles,
                sizeof(GradientTiles), stream->commands, *interaction, shape);
}

}  // namespace shardrec::compute::cuda
