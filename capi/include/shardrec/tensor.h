/* Tensors: views of the caller's memory, with DLPack's numbers for devices and dtypes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_TENSOR_H
#define SHARDREC_TENSOR_H

#include "shardrec/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack's DLDeviceType. */
typedef enum shardrec_device_type {
  SHARDREC_DEVICE_CPU = 1,
  SHARDREC_DEVICE_CUDA = 2,
  SHARDREC_DEVICE_TYPE_FORCE_32 = 0x7fffffff
} shardrec_device_type;

/* DLPack's DLDataType in one number: type code | bits << 8 | lanes << 16. */
typedef enum shardrec_dtype {
  SHARDREC_UINT8 = 67585, /* bytes; tensors of checkpoints, and where a function says so */
  SHARDREC_INT32 = 73728,
  SHARDREC_INT64 = 81920,
  SHARDREC_FLOAT16 = 69634,
  SHARDREC_BFLOAT16 = 69636,
  SHARDREC_FLOAT32 = 73730,
  SHARDREC_FLOAT64 = 81922,
  SHARDREC_DTYPE_FORCE_32 = 0x7fffffff
} shardrec_dtype;

#define SHARDREC_MAX_DIMENSIONS 8

/* A view; its layout is frozen. It is copied on entry; the memory behind data stays the caller's.
 * Unless a function says otherwise, no call keeps data after it has returned.
 * shape and stride count elements; all strides zero means compact, row-major. A dimension of size
 * zero is allowed, and then data may be NULL or dangling; else it is aligned to its dtype. */
typedef struct shardrec_tensor {
  void *data;
  int32_t device_type; /* shardrec_device_type */
  int32_t device_id;   /* 0 on the CPU */
  int32_t dtype;       /* shardrec_dtype */
  int32_t ndim;        /* 0 .. SHARDREC_MAX_DIMENSIONS */
  int64_t shape[SHARDREC_MAX_DIMENSIONS];
  int64_t stride[SHARDREC_MAX_DIMENSIONS];
} shardrec_tensor;

/* Fills out with a compact CPU view of length elements. Does not look at data.
 * Errors: INVALID_ARGUMENT for out NULL, an unknown dtype or a negative length. Any thread.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_tensor_vector(SHARDREC_NULLABLE void *data,
                                                    shardrec_dtype dtype, int64_t length,
                                                    shardrec_tensor *out);

/* Fills out with a compact row-major CPU view of [rows, cols] elements. As shardrec_tensor_vector.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_tensor_matrix(SHARDREC_NULLABLE void *data,
                                                    shardrec_dtype dtype, int64_t rows,
                                                    int64_t cols, shardrec_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
