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

const std::byte* Converter::converted(const BoxTensor& box, const Source& from, int64_t rows,
                                      int64_t cols) {
  compute::TransferOperations& host = box.converter->transfer();
  const compute::Element wanted = compute::element_of(box.layout.dtype);
  const auto columns = static_cast<size_t>(cols);
  const auto count = static_cast<size_t>(rows * cols);
  const std::span<float> floats = floats_.resize_as<float>(count).first(count);
  const compute::RowTransfer widen{
      .from = {from.data, compute::element_of(from.dtype),
               static_cast<size_t>(from.stride) / core::dtype_size(from.dtype)},
      .to = {floats.data(), compute::Element::kFloat32, columns},
      .rows = rows,
      .width = cols};
  host.convert_on_host({&widen, 1});
  if (wanted == compute::Element::kFloat32) return std::as_bytes(floats).data();
  if (wanted == compute::Element::kFloat16) {
    std::ranges::transform(floats, floats.begin(), compute::math::within_float16);
  }
  std::byte* const halves = halves_.resize(count * compute::element_bytes(wanted));
  const compute::RowTransfer narrow{.from = {floats.data(), compute::Element::kFloat32, columns},
                                    .to = {halves, wanted, columns},
                                    .rows = rows,
                                    .width = cols};
  host.convert_on_host({&narrow, 1});
  return halves;
}

void Converter::write_cells(const BoxTensor& box, const plan::Rectangle& cells,
                            const std::byte* from, int64_t from_stride, shardrec_dtype dtype) {
  plan::Rectangle strip = cells;
  const int64_t height = std::max<int64_t>(1, kAtOnce / cells.cols);
  for (int64_t row = 0; row < cells.rows; row += height) {
    strip.row = cells.row + row;
    strip.rows = std::min(height, cells.rows - row);
    checkpoint::write_cells(
        box, strip,
        converted(box, {from + row * from_stride, from_stride, dtype}, strip.rows, cells.cols),
        box.layout.row_bytes(cells.cols));
  }
}

void Converter::write_listed_cells(const BoxTensor& box, std::span<const int64_t> numbers,
                                   const Columns& columns, const Source& from) {
  const auto height = static_cast<size_t>(std::max<int64_t>(1, kAtOnce / columns.cols));
  for (size_t first = 0; first < numbers.size(); first += height) {
    const auto strip = numbers.subspan(first, std::min(height, numbers.size() - first));
    const Source source{from.data + static_cast<int64_t>(first) * from.stride, from.stride,
                        from.dtype};
    checkpoint::write_listed_cells(box, strip, columns.col, columns.cols,
                                   converted(box, source, std::ssize(strip), columns.cols),
                                   box.layout.row_bytes(columns.cols));
  }
}

}  // namespace shardrec::checkpoint
