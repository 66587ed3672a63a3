/* Metrics of predictions over all ranks: exact AUC, normalised entropy, throughput.
 *
 * On a device (option DEVICE, kind METRICS) samples may each be on that device or on the CPU, and are kept
 * there until they are computed with. update takes place in the order of one stream of the caller (option
 * STREAM) and does not wait, but once per 2^24 samples, which then go to the host; the metrics, which the host computes, have the bits of the CPU.
 *
 * Thread rule: one thread at a time per handle, else BUSY.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_METRICS_H
#define SHARDREC_METRICS_H

#include "shardrec/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_metrics shardrec_metrics;

typedef enum shardrec_metric {
  SHARDREC_METRIC_AUC = 1,  /* area under the ROC curve, exact, ties count one half; NOT_FOUND when
                               all labels are equal */
  SHARDREC_METRIC_NE = 2,   /* mean cross-entropy / entropy of the base rate (He et al. 2014);
                               NOT_FOUND when all labels are equal */
  SHARDREC_METRIC_LOSS = 3, /* mean binary cross-entropy, nats */
  SHARDREC_METRIC_CTR = 4,  /* mean label; NOT_FOUND without samples */
  SHARDREC_METRIC_SAMPLES = 5,            /* number of samples, all ranks */
  SHARDREC_METRIC_SAMPLES_PER_SECOND = 6, /* samples of all ranks / seconds from create or reset to compute */
  SHARDREC_METRIC_FORCE_32 = 0x7fffffff
} shardrec_metric;

/* Makes an empty metric; its clock starts. comm: NULL for this rank alone. options: kind METRICS or NULL. out:
 * owned by the caller. Not collective. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY; on a
 * device UNSUPPORTED (no CUDA plug-in), DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_metrics_create(SHARDREC_NULLABLE shardrec_comm *comm,
                                                     SHARDREC_OPTIONS(METRICS)
                                                     const shardrec_options *options,
                                                     shardrec_metrics **out);

/* Destroys the handle and nulls the caller's copy. Since 0.1. */
SHARDREC_API void shardrec_metrics_destroy(SHARDREC_NULLABLE shardrec_metrics **metrics);

/* Adds samples. probabilities (0 .. 1) and labels (0 or 1): FLOAT32, compact, [batch] or [batch, 1].
 * Keeps 4 bytes a sample (12 during compute). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT
 * (with the position; nothing was added. Metrics on a device look at values there, and compute tells),
 * OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_metrics_update(shardrec_metrics *metrics,
                                                     const shardrec_tensor *probabilities,
                                                     const shardrec_tensor *labels);

/* Computes the metrics over all ranks' samples; every rank gets the same bits. Collective, blocking
 * (step deadline) unless made without a communicator. Of metrics on a device, waits for it; where the device
 * noticed a wrong value, this is INVALID_ARGUMENT on all ranks until the rank that has it calls reset, with
 * that rank, and the sample's position since create or reset. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_metrics_compute(shardrec_metrics *metrics);

/* A metric of the last compute. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no compute),
 * NOT_FOUND, INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_metrics_get(const shardrec_metrics *metrics,
                                                  shardrec_metric metric, double *out);

/* Forgets all samples and starts the clock anew. Errors: INVALID_HANDLE, CLOSED, BUSY; on a device
 * DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_metrics_reset(shardrec_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
