// Rows in 8 bits per element, as scorer.h describes them.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/element.h"
#include "compute/kernels.h"
#include "plan/model/model.h"

namespace shardrec::serving {

class RowEncoder {
 public:
  explicit RowEncoder(const plan::Table& table);

  // Bytes of a row.
  size_t row_bytes() const noexcept { return codes_.size() + sizeof(compute::RowScale); }
  // `from`: elements of the table's dtype; row: its number, for the error. Throws UNSUPPORTED where a finite row spans
  // a range that is no finite float32.
  void encode(const std::byte* from, int64_t row, std::byte* to);

 private:
  [[noreturn]] void refuse(int64_t row) const;

  const plan::Table& table_;
  const compute::Element element_;
  std::vector<float> floats_;
  std::vector<uint8_t> codes_;
};

}  // namespace shardrec::serving
