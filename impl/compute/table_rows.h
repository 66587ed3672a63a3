// Rows of a table, or of some of its columns, as operations read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/element.h"

namespace shardrec::compute {

// Rows of a part, or of some of its columns: row r begins at element r * stride.
struct TableRows {
  const void* data = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;   // elements; of a coded table bytes
  int64_t width = 0;   // columns
  bool coded = false;  // as PooledLookup::coded; for BagOutputs only
};

}  // namespace shardrec::compute
