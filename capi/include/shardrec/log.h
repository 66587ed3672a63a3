/* Log messages, pulled. The library writes nothing to stdout or stderr.
 *
 * Messages go to a ring of 1,024; the oldest is dropped when it is full. C and C++ programs may set
 * a sink instead (native.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_LOG_H
#define SHARDREC_LOG_H

#include "shardrec/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum shardrec_log_level {
  SHARDREC_LOG_DEBUG = 0,
  SHARDREC_LOG_INFO = 1,
  SHARDREC_LOG_WARNING = 2, /* such as: rank 3 is late in "forward" */
  SHARDREC_LOG_ERROR = 3,
  SHARDREC_LOG_OFF = 4,
  SHARDREC_LOG_LEVEL_FORCE_32 = 0x7fffffff
} shardrec_log_level;

/* Messages below level are not recorded; default WARNING. Errors: INVALID_ARGUMENT. Any thread.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_log_set_level(shardrec_log_level level);

/* Takes the oldest message. Waits up to timeout_ms for one (0: does not wait; negative: refused).
 * out_level, out_rank (-1: no rank) may be NULL. out_text: freed by the caller; NULL when no message
 * came in time, which is not an error. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_log_next(int32_t timeout_ms,
                                               SHARDREC_NULLABLE shardrec_log_level *out_level,
                                               SHARDREC_NULLABLE int32_t *out_rank,
                                               SHARDREC_OUT_NULLABLE char **out_text);

#ifdef __cplusplus
}
#endif
#endif
