// Which columns of one thing are which of another (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// compute::ColumnMap: columns [offset, offset + count) are columns from `column` on of what they are part
// of, a table or the gradient of an output.
typedef struct shardrec_cuda_column_map {
  int64_t offset;
  int64_t column;
  int64_t count;
} shardrec_cuda_column_map;

#ifdef __cplusplus
}
#endif
