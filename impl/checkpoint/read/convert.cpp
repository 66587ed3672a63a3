#include "checkpoint/read/convert.h"

#include <algorithm>
#include <cstring>

#include "compute/math/scalar.h"
#include "core/tensor.h"

namespace shardrec::checkpoint {
namespace {

// Elements that are converted at once: 1 MiB of floats.
constexpr int64_t kAtOnce = int64_t{1} << 18;

bool is_beyond_float16(uint32_t magnitude) {
  return magnitude >= compute::math::Float16::kLeastOverflow &&
         magnitude < compute::math::kInfinity32;
}

}  // namespace

int64_t beyond_float16(std::span<const std::byte> elements, shardrec_dtype dtype) noexcept {
  int64_t beyond = 0;
  if (dtype == SHARDREC_FLOAT32) {
    for (size_t at = 0; at < elements.size(); at += sizeof(uint32_t)) {
      uint32_t bits = 0;
      std::memcpy(&bits, elements.data() + at, sizeof bits);
      beyond += is_beyond_float16(bits & ~compute::math::kSign32) ? 1 : 0;
    }
  } else if (dtype == SHARDREC_BFLOAT16) {
    for (size_t at = 0; at < elements.size(); at += sizeof(uint16_t)) {
      uint16_t half = 0;  // the upper bits of a float
      std::memcpy(&half, elements.data() + at, sizeof half);
      beyond += is_beyond_float16((uint32_t{half} << 16) & ~compute::math::kSign32) ? 1 : 0;
    }
  }
  return beyond;
}

void Converter::write_cells(const BoxTensor& box, const plan::Rectangle& cells,
                            const std::byte* from, int64_t from_stride, shardrec_dtype dtype) {
  compute::TransferOperations& host = box.converter->transfer();
  const compute::Element element = compute::element_of(dtype);
  const compute::Element wanted = compute::element_of(box.layout.dtype);
  const int64_t width = cells.cols;
  const auto columns = static_cast<size_t>(width);
  const auto stride = static_cast<size_t>(from_stride) / core::dtype_size(dtype);
  plan::Rectangle strip = cells;
  const int64_t height = std::max<int64_t>(1, kAtOnce / width);
  for (int64_t row = 0; row < cells.rows; row += height) {
    strip.row = cells.row + row;
    strip.rows = std::min(height, cells.rows - row);
    const auto count = static_cast<size_t>(strip.rows * width);
    const std::span<float> floats = floats_.resize_as<float>(count).first(count);
    const compute::RowTransfer widen{.from = {from + row * from_stride, element, stride},
                                     .to = {floats.data(), compute::Element::kFloat32, columns},
                                     .rows = strip.rows,
                                     .width = width};
    host.convert_on_host({&widen, 1});
    const void* converted = floats.data();
    if (wanted != compute::Element::kFloat32) {
      if (wanted == compute::Element::kFloat16) {
        std::ranges::transform(floats, floats.begin(), compute::math::within_float16);
      }
      std::byte* const halves = halves_.resize(count * compute::element_bytes(wanted));
      const compute::RowTransfer narrow{
          .from = {floats.data(), compute::Element::kFloat32, columns},
          .to = {halves, wanted, columns},
          .rows = strip.rows,
          .width = width};
      host.convert_on_host({&narrow, 1});
      converted = halves;
    }
    checkpoint::write_cells(box, strip, static_cast<const std::byte*>(converted),
                            box.layout.row_bytes(width));
  }
}

}  // namespace shardrec::checkpoint
