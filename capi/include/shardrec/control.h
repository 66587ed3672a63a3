/* Progress and cancellation of long local work (load, save, probe).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_CONTROL_H
#define SHARDREC_CONTROL_H

#include "shardrec/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All functions may be called from any thread at any time, also while the work runs. */
typedef struct shardrec_control shardrec_control;

/* Makes a control. options: NULL (no kind of options is for controls yet). out: owned by the caller; may
 * serve one call after another (progress starts anew with each). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_control_create(SHARDREC_OPTIONS(NONE)
                                                     const shardrec_options *options,
                                                     shardrec_control **out);

/* Destroys the handle and nulls the caller's copy; work that holds it goes on. Since 0.1. */
SHARDREC_API void shardrec_control_destroy(SHARDREC_NULLABLE shardrec_control **control);

/* Asks the work to end with CANCELLED; it does so at its next block of about a MiB. Later work with
 * this control is cancelled too. Errors: INVALID_HANDLE, CLOSED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_control_cancel(shardrec_control *control);

/* Bytes done and bytes in all of the work at hand; 0, 0 before it starts. Each may be NULL.
 * Errors: INVALID_HANDLE, CLOSED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_control_progress(const shardrec_control *control,
                                                       SHARDREC_NULLABLE int64_t *out_done,
                                                       SHARDREC_NULLABLE int64_t *out_total);

#ifdef __cplusplus
}
#endif
#endif
