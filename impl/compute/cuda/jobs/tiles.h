// How lists of lists are shared out to blocks of threads (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A block of threads takes so many items of one list, the last one of a list those that are left.
#define SHARDREC_CUDA_TILE 2048

// first[l]: tiles of the lists before l.
typedef struct shardrec_cuda_tiles {
  const int64_t *first;  // [lists + 1]
  int64_t count;         // of all lists
  int32_t lists;
  int32_t reserved;  // 0: jobs are equal where their bytes are
} shardrec_cuda_tiles;

#ifdef __cplusplus
}
#endif
