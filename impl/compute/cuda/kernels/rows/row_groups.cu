#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/rows/row_groups.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

// One type of keys, and one of values.
template <class Key, class Value>
struct Grouping {
  static cudaError_t load_all() {
    cudaError_t error = load(write_occurrences<Key, Value>);
    if (error == cudaSuccess) error = load_sort_pairs<Key, Value>();
    return error != cudaSuccess ? error : load(list_rows<Key, Value>);
  }

  static cudaError_t sort(const shardrec_cuda_row_grouping& job, size_t& bytes,
                          CommandList& commands) {
    return sort_pairs(job.room, bytes, static_cast<const Key*>(job.keys),
                      static_cast<Key*>(job.sorted_keys), static_cast<const Value*>(job.values),
                      static_cast<Value*>(job.sorted_values), job.occurrences, 0, job.key_bits,
                      commands);
  }

  static cudaError_t run(shardrec_cuda_row_grouping& job, CommandList& commands) {
    size_t bytes = job.room_bytes;
    if (job.room == nullptr) {
      const cudaError_t error = sort(job, bytes, commands);
      job.room_bytes = bytes;
      return error;
    }
    if (job.occurrences > 0) {
      cudaError_t error = launch(write_occurrences<Key, Value>, job.block_tiles.count,
                                 sizeof(TileBags), commands, job);
      if (error == cudaSuccess) error = sort(job, bytes, commands);
      if (error != cudaSuccess) return error;
    }
    return launch(list_rows<Key, Value>, job.part_tiles.count, sizeof(ScanMemory), commands, job);
  }
};

// Calls body with the Grouping of a job.
template <class Body>
cudaError_t with_kind(bool wide, bool weighted, Body body) {
  if (wide)
    return weighted ? body(Grouping<uint64_t, uint64_t>()) : body(Grouping<uint64_t, uint32_t>());
  return weighted ? body(Grouping<uint32_t, uint64_t>()) : body(Grouping<uint32_t, uint32_t>());
}

}  // namespace

shardrec_cuda_error load_row_groups() {
  for (const bool wide : {false, true}) {
    for (const bool weighted : {false, true}) {
      const cudaError_t error =
          with_kind(wide, weighted, [](auto kind) { return kind.load_all(); });
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

shardrec_cuda_error group_rows(shardrec_cuda_stream* stream, shardrec_cuda_row_grouping* grouping) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return with_kind(grouping->key_bits > 32, grouping->weighted != 0,
                   [&](auto kind) { return kind.run(*grouping, stream->commands); });
}

}  // namespace shardrec::compute::cuda
