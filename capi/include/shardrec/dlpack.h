/* DLPack: shardrec_tensor from and to DLTensor. Optional: needs <dlpack/dlpack.h> (Debian's
 * libdlpack-dev); no other header includes it. No memory is copied and nobody's ownership changes: a
 * view is good as long as the memory and, for a DLTensor, the shardrec_tensor that it was made from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_DLPACK_H
#define SHARDREC_DLPACK_H

#include <dlpack/dlpack.h>
#include <string.h>

#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills out with a view of the same memory. DLPack's byte_offset is added to data; a DLTensor without
 * strides is compact. Errors (this thread's error is left alone): INVALID_ARGUMENT for a NULL, more
 * than SHARDREC_MAX_DIMENSIONS dimensions, or a negative number of them; UNSUPPORTED for a dtype or
 * device that shardrec_tensor has no number for. Any thread. Since 0.1. */
static inline shardrec_status shardrec_tensor_from_dlpack(const DLTensor *from,
                                                          shardrec_tensor *out) {
  shardrec_tensor tensor;
  int32_t d;
  memset(&tensor, 0, sizeof tensor);
  if (from == NULL || out == NULL) return SHARDREC_INVALID_ARGUMENT;
  if (from->ndim < 0 || from->ndim > SHARDREC_MAX_DIMENSIONS) return SHARDREC_INVALID_ARGUMENT;
  if (from->ndim > 0 && from->shape == NULL) return SHARDREC_INVALID_ARGUMENT;
  tensor.dtype = (int32_t)((uint32_t)from->dtype.code | (uint32_t)from->dtype.bits << 8 |
                           (uint32_t)from->dtype.lanes << 16);
  switch (tensor.dtype) {
    case SHARDREC_UINT8:
    case SHARDREC_INT32:
    case SHARDREC_INT64:
    case SHARDREC_FLOAT16:
    case SHARDREC_BFLOAT16:
    case SHARDREC_FLOAT32:
    case SHARDREC_FLOAT64:
      break;
    default:
      return SHARDREC_UNSUPPORTED;
  }
  if (from->device.device_type != kDLCPU && from->device.device_type != kDLCUDA) {
    return SHARDREC_UNSUPPORTED;
  }
  tensor.device_type = (int32_t)from->device.device_type;
  tensor.device_id = (int32_t)from->device.device_id;
  tensor.data = from->data == NULL ? NULL : (void *)((char *)from->data + from->byte_offset);
  tensor.ndim = from->ndim;
  for (d = 0; d < from->ndim; ++d) {
    tensor.shape[d] = from->shape[d];
    tensor.stride[d] = from->strides == NULL ? 0 : from->strides[d];
  }
  *out = tensor;
  return SHARDREC_OK;
}

/* Fills out with a view of the same memory; its shape and strides point into `from`, which must stay in
 * place as long as out is used. Errors: INVALID_ARGUMENT for a NULL. Any thread. Since 0.1. */
static inline shardrec_status shardrec_tensor_to_dlpack(shardrec_tensor *from, DLTensor *out) {
  int32_t d;
  int compact = 1;
  if (from == NULL || out == NULL) return SHARDREC_INVALID_ARGUMENT;
  for (d = 0; d < from->ndim; ++d) compact = compact && from->stride[d] == 0;
  out->data = from->data;
  out->device.device_type = (DLDeviceType)from->device_type;
  out->device.device_id = from->device_id;
  out->ndim = from->ndim;
  out->dtype.code = (uint8_t)(from->dtype & 0xff);
  out->dtype.bits = (uint8_t)(from->dtype >> 8 & 0xff);
  out->dtype.lanes = (uint16_t)(from->dtype >> 16);
  out->shape = from->shape;
  out->strides = compact ? NULL : from->stride;
  out->byte_offset = 0;
  return SHARDREC_OK;
}

#ifdef __cplusplus
}
#endif
#endif
