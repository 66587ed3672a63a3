// Types of numbers and sizes that all operations of the CUDA plug-in share (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Types of numbers, as compute/element.h counts them.
enum { SHARDREC_CUDA_FLOAT32 = 0, SHARDREC_CUDA_FLOAT16 = 1, SHARDREC_CUDA_BFLOAT16 = 2 };

// Items of a feature are handled in chunks of so many (compute::kChunk).
#define SHARDREC_CUDA_CHUNK 512

#ifdef __cplusplus
}
#endif
