// Kernels that do something to each element of a matrix: a thread for four neighbouring columns of a row, where all
// rows begin and end at multiples of four elements, or for one. The threads of a block are cut into groups of a power
// of two, which go along a row.
#pragma once

#include <bit>
#include <type_traits>

#include "compute/cuda/jobs/layers.h"
#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/lane_columns.h"

namespace shardrec::compute::cuda {

struct ElementGrid {
  int64_t rows;
  int64_t cols;
  int32_t lane_bits;      // a group has 2^lane_bits threads
  uint32_t column_tiles;  // groups that a row takes
};

struct ElementPlace {
  int64_t row;
  int64_t column;  // the first of this thread's
  bool exists;
};

template <int kColumns>
SHARDREC_DEVICE ElementPlace place_in(const ElementGrid& grid) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t group = int64_t{blockIdx.x / grid.column_tiles} * (kThreads >> grid.lane_bits) +
                        (thread >> grid.lane_bits);
  const int64_t lane = (int64_t{blockIdx.x % grid.column_tiles} << grid.lane_bits) +
                       (thread & ((1 << grid.lane_bits) - 1));
  const int64_t column = lane * kColumns;
  return {.row = group, .column = column, .exists = group < grid.rows && column < grid.cols};
}

template <int kColumns, class Job>
SHARDREC_KERNEL(8)
for_each_element(Job job, ElementGrid grid) {
  const ElementPlace place = place_in<kColumns>(grid);
  if (place.exists) job.template at<kColumns>(place.row, place.column);
}

// The numbers of a matrix. kColumns of them, from number `at` on, or one.
struct Float32Elements {
  static constexpr size_t kBytes = sizeof(float);
  template <int kColumns>
  SHARDREC_DEVICE static void load(const void* list, int64_t at, float (&x)[kColumns]) {
    LaneFloats<kColumns>::load(static_cast<const float*>(list) + at, x);
  }
  template <int kColumns>
  SHARDREC_DEVICE static void store(void* list, int64_t at, const float (&x)[kColumns]) {
    LaneFloats<kColumns>::store(static_cast<float*>(list) + at, x);
  }
  SHARDREC_DEVICE static float number(const void* list, int64_t at) {
    return static_cast<const float*>(global(list))[at];
  }
  SHARDREC_DEVICE static void put(void* list, int64_t at, float x) {
    static_cast<float*>(global(list))[at] = x;
  }
};

template <class Half>
struct HalfElements {
  static constexpr size_t kBytes = sizeof(uint16_t);
  template <int kColumns>
  SHARDREC_DEVICE static void load(const void* list, int64_t at, float (&x)[kColumns]) {
    if constexpr (kColumns == 4) {
      const auto* const first = static_cast<const uint16_t*>(global(list)) + at;
      HalfColumns<Half>::widen(*reinterpret_cast<const uint2*>(first), x);
    } else {
      x[0] = number(list, at);
    }
  }
  template <int kColumns>
  SHARDREC_DEVICE static void store(void* list, int64_t at, const float (&x)[kColumns]) {
    if constexpr (kColumns == 4) {
      auto* const first = static_cast<uint16_t*>(global(list)) + at;
      *reinterpret_cast<uint2*>(first) =
          make_uint2(rounded(x[0]) | rounded(x[1]) << 16, rounded(x[2]) | rounded(x[3]) << 16);
    } else {
      put(list, at, x[0]);
    }
  }
  SHARDREC_DEVICE static float number(const void* list, int64_t at) {
    return widened_number<Half>(static_cast<const uint16_t*>(global(list))[at]);
  }
  SHARDREC_DEVICE static void put(void* list, int64_t at, float x) {
    static_cast<uint16_t*>(global(list))[at] = static_cast<uint16_t>(rounded(x));
  }

 private:
  SHARDREC_DEVICE static math::Word rounded(float x) { return nearest_number<Half>(x); }
};
using Float16Elements = HalfElements<math::Float16>;
using Bfloat16Elements = HalfElements<math::Bfloat16>;

// Where an element of a matrix is among its numbers.
SHARDREC_DEVICE int64_t element_index(const shardrec_cuda_matrix& matrix, int64_t row,
                                      int64_t column) {
  return row * matrix.stride + column;
}

// Below: of the host.

// Calls body(Elements) for a type of numbers, and body(First, Second) for the types of two matrices, of which the
// second is of the first's or of floats.
template <class Body>
cudaError_t with_elements(const shardrec_cuda_matrix& matrix, const Body& body) {
  switch (matrix.element) {
    case SHARDREC_CUDA_FLOAT16:
      return body(Float16Elements{});
    case SHARDREC_CUDA_BFLOAT16:
      return body(Bfloat16Elements{});
    default:
      return body(Float32Elements{});
  }
}
template <class Body>
cudaError_t with_elements(const shardrec_cuda_matrix& first, const shardrec_cuda_matrix& second,
                          const Body& body) {
  const bool is_of_floats = second.element == SHARDREC_CUDA_FLOAT32;
  if (!is_of_floats && second.element != first.element) return cudaErrorInvalidValue;
  return with_elements(first, [&]<class First>(First) {
    return is_of_floats ? body(First{}, Float32Elements{}) : body(First{}, First{});
  });
}
// Calls load_type(Elements), or load_pair(First, Second), for all types that with_elements() knows, until one fails.
template <class Load>
cudaError_t load_for_each_type(const Load& load_type) {
  cudaError_t error = load_type(Float32Elements{});
  if (error == cudaSuccess) error = load_type(Float16Elements{});
  return error != cudaSuccess ? error : load_type(Bfloat16Elements{});
}
template <class Load>
cudaError_t load_for_each_pair(const Load& load_pair) {
  return load_for_each_type([&]<class Elements>(Elements) {
    const cudaError_t error = load_pair(Elements{}, Elements{});
    if constexpr (std::is_same_v<Elements, Float32Elements>) {
      return error;
    } else {
      return error != cudaSuccess ? error : load_pair(Elements{}, Float32Elements{});
    }
  });
}

inline ElementGrid grid_of(int64_t rows, int64_t cols, int columns) {
  const auto units = static_cast<uint64_t>((cols + columns - 1) / columns);
  const int bits = units >= kThreads ? std::countr_zero(unsigned{kThreads})
                                     : std::countr_zero(std::bit_ceil(units));
  return {.rows = rows,
          .cols = cols,
          .lane_bits = bits,
          .column_tiles = static_cast<uint32_t>((units + (uint64_t{1} << bits) - 1) >> bits)};
}

inline int64_t blocks_of(const ElementGrid& grid) {
  const int64_t groups = kThreads >> grid.lane_bits;
  return (grid.rows + groups - 1) / groups * int64_t{grid.column_tiles};
}

// Can four floats at the address, or those of each row of the matrix, be moved at once?
inline bool fits_vectors(const float* address) {
  return reinterpret_cast<uintptr_t>(address) % sizeof(float4) == 0;
}
inline bool fits_vectors(const shardrec_cuda_matrix& matrix) {
  const size_t bytes = 4 * (matrix.element == SHARDREC_CUDA_FLOAT32 ? Float32Elements::kBytes
                                                                    : Float16Elements::kBytes);
  return reinterpret_cast<uintptr_t>(matrix.data) % bytes == 0 && matrix.cols % 4 == 0 &&
         (matrix.stride % 4 == 0 || matrix.rows <= 1);
}

// Starts a kernel on rows x cols elements. vectors: do all lists that the job names fit them?
template <class Job>
cudaError_t launch_for_elements(const Job& job, const shardrec_cuda_matrix& shape, bool vectors,
                                CommandList& commands) {
  if (shape.rows == 0 || shape.cols == 0) return cudaSuccess;
  const ElementGrid grid = grid_of(shape.rows, shape.cols, vectors ? 4 : 1);
  return launch(vectors ? for_each_element<4, Job> : for_each_element<1, Job>, blocks_of(grid), 0,
                commands, job, grid);
}

template <class Job>
cudaError_t load_for_elements() {
  const cudaError_t error = load(for_each_element<4, Job>);
  return error != cudaSuccess ? error : load(for_each_element<1, Job>);
}

}  // namespace shardrec::compute::cuda
