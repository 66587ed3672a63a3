/* A batch of ids, for training (lookup.h) and serving (scorer.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_BATCH_H
#define SHARDREC_BATCH_H

#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bags of a rank's samples. It is read during the call that takes it. Members that are not set are zero:
 *
 *   shardrec_batch batch = {.struct_size = sizeof batch, .batch_size = 2, .values = &ids, .lengths = &lengths};
 *
 * Bags are feature-major: all of feature 0, then feature 1, and so on, features as added to the model. All
 * tensors are compact, one-dimensional, on the CPU (or, where a function says so, on a device).
 *   struct_size  sizeof(shardrec_batch); a smaller struct ends before members of a later release
 *   batch_size   samples of this rank, 0 to 2^31 - 1: rows of output 0
 *   values       [ids], at most 2^31 - 1 of them, INT32 or INT64, bag after bag. NULL: this rank has no more
 *                data; then batch_size is 0 and all others are NULL
 *   lengths      [bags], INT32 or INT64, whose sum is ids. bags: features * batch_size, or the sum of batch_sizes
 *   offsets      in place of lengths: [bags + 1], INT32 or INT64, starting at 0, ascending or equal, the
 *                last one the number of ids
 *   weights      [ids], FLOAT32, one per id; NULL: all 1
 *   batch_sizes  [features], INT32 or INT64: number of bags of each feature, 0 to 2^31 - 1; NULL: batch_size
 *   inverse      with batch_sizes: [features * batch_size], INT32 or INT64, feature-major: the bag of each
 *                sample, in [0, batch_sizes[feature])
 *
 * batch_sizes and inverse are for batches in which many samples have the same bag, which is then given once
 * (TorchRec's variable batch size). Row s of output 0 holds bag inverse[f * batch_size + s] of each pooled
 * feature f; the gradients of samples that share a bag are added up in ascending order, before anything
 * else. A sequence feature's output holds the ids of its bags; its part of inverse is not read. Where all
 * batch sizes are batch_size and inverse counts from 0, this is the batch without both, bit for bit. */
typedef struct shardrec_batch {
  int64_t struct_size;
  int64_t batch_size;
  SHARDREC_NULLABLE const shardrec_tensor *values;
  SHARDREC_NULLABLE const shardrec_tensor *lengths;
  SHARDREC_NULLABLE const shardrec_tensor *offsets;
  SHARDREC_NULLABLE const shardrec_tensor *weights;
  SHARDREC_NULLABLE const shardrec_tensor *batch_sizes;
  SHARDREC_NULLABLE const shardrec_tensor *inverse;
} shardrec_batch;

#ifdef __cplusplus
}
#endif
#endif
