// Sums over the ranks of what their messages hold, in a pairwise tree over the rank number
// (comm/collective/reduce.h): the bits depend on the values only, not on who adds them or how a
// bucket is cut. float16 and bfloat16 are added in float32 and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "shardrec/tensor.h"

namespace shardrec::dense {

// What a sum becomes: sum / divisor * factor, in float32 (float64 for float64).
struct GradientScale {
  double divisor = 1;
  double factor = 1;
};

// The power of two by which results of sums of float16 numbers are divided while they travel as float16,
// and multiplied behind: what finite numbers of `ranks` ranks add up to is then in float16's range.
double headroom(const GradientScale& scale, int ranks) noexcept;

// count elements, rounded to nearest even where `to` has fewer bits. from and to: equal, or one of
// them float32 and the other one of 16 bits.
void convert(const void* in, shardrec_dtype from, void* out, shardrec_dtype to, int64_t count);

// The same from float32 to the dtype of the way; finite numbers stay finite. Returns how many were beyond
// its range.
int64_t convert_for_way(const void* in, void* out, shardrec_dtype wire, int64_t count);

// Memory for blocks of the sums; one thread at a time.
class RankSums {
 public:
  explicit RankSums(int ranks);
  // Before sums of this dtype of messages.
  void make_room(shardrec_dtype wire);

  // out[i] = scaled sum over p of inputs[p][first + i], for i < count; an input that is null counts
  // as zeros. inputs are of dtype wire, aligned for it; out overlaps none of them.
  // for_way: finite sums stay finite in out. Returns how many were beyond its range.
  int64_t add_up(std::span<const std::byte* const> inputs, shardrec_dtype wire, int64_t first,
                 int64_t count, const GradientScale& scale, void* out, shardrec_dtype dtype,
                 bool for_way);

  // values[i] = scaled values[i]; float32 ones are rounded to wire first, as if they had travelled. Returns how many
  // were beyond its range, and stay finite.
  int64_t rescale(void* values, shardrec_dtype dtype, shardrec_dtype wire, int64_t count,
                  const GradientScale& scale);

 private:
  template <class T>
  void add_up_as(std::span<const std::byte* const> inputs, int64_t first, int64_t count,
                 const GradientScale& scale, T* out);
  void add_up_narrow(std::span<const std::byte* const> inputs, shardrec_dtype wire, int64_t first,
                     int64_t count, float* out);

  std::vector<comm::ConstBytes> views_;
  int64_t narrow_block_;        // elements that are widened at once, of each rank
  std::vector<float> wide_;     // [ranks, narrow_block_]; none where nothing narrow travels
  std::vector<float> block_;    // of a result that is rounded
  std::vector<uint16_t> sent_;  // of numbers as they would travel
};

}  // namespace shardrec::dense
