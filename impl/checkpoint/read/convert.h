// Weights of another dtype than the checkpoint's: float16 and bfloat16 become float32 exactly; what
// becomes one of 16 bits is rounded to nearest, ties to even. A finite number beyond float16's range
// becomes the largest finite one of its sign, and is counted.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/format/tensors.h"
#include "compute/buffer.h"

namespace shardrec::checkpoint {

// A table of float16 that is filled from numbers of a larger range.
struct NarrowedTable {
  size_t wanted_collection = 0;  // of the load, as wanted_table
  size_t wanted_table = 0;
  int32_t collection = 0;  // of the manifest, as table
  int32_t table = 0;
  int64_t rows = 0;       // of the table that is filled
  int64_t saturated = 0;  // numbers beyond its range, of what this rank has read
};

// Finite numbers beyond the range of float16, of elements that are float32 or bfloat16.
int64_t beyond_float16(std::span<const std::byte> elements, shardrec_dtype dtype) noexcept;

class Converter {
 public:
  // As write_cells() of weights, where the elements at `from` are of another dtype than the box's, which
  // has a converter. Throws OUT_OF_MEMORY.
  void write_cells(const BoxTensor& box, const plan::Rectangle& cells, const std::byte* from,
                   int64_t from_stride, shardrec_dtype dtype);
  // The same as write_listed_cells(), a strip of rows at once.
  struct Columns {
    int64_t col = 0;
    int64_t cols = 0;
  };
  struct Source {
    const std::byte* data = nullptr;
    int64_t stride = 0;  // bytes
    shardrec_dtype dtype = SHARDREC_FLOAT32;
  };
  void write_listed_cells(const BoxTensor& box, std::span<const int64_t> numbers,
                          const Columns& columns, const Source& from);

 private:
  // [rows, cols] elements of the box's dtype, one row behind the other; valid until the next call.
  const std::byte* converted(const BoxTensor& box, const Source& from, int64_t rows, int64_t cols);

  compute::Buffer floats_{compute::cpu_memory()};
  compute::Buffer halves_{compute::cpu_memory()};
};

}  // namespace shardrec::checkpoint
