// The memory of scans that take one pass over their lists (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a tile has told the tiles behind it. Each word holds 32 bits of a sum and, above them, what the sum is of:
// who reads both words reads one sum if they agree on that.
typedef struct shardrec_cuda_scan_tile {
  uint64_t words[2];
} shardrec_cuda_scan_tile;

// Of one launch. Zeros before the operation.
typedef struct shardrec_cuda_scan {
  uint32_t *begun;                 // tiles that blocks of threads have taken
  uint32_t *ended;                 // tiles that have told their sums and wait for nothing any more
  shardrec_cuda_scan_tile *tiles;  // as many as the launch has
} shardrec_cuda_scan;

#ifdef __cplusplus
}
#endif
