/* Callbacks: for C and C++ programs only. Other hosts pull (log.h, control.h); bindings leave this
 * header out (bindings/native_only.txt).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_NATIVE_H
#define SHARDREC_NATIVE_H

#include "shardrec/log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with each message, on the thread that logs; must return soon, must not call the library,
 * must not throw. text is valid during the call. */
typedef void (*shardrec_log_sink)(void *context, shardrec_log_level level, int32_t rank,
                                  const char *text);

/* Sends messages to sink instead of the ring; NULL: back to the ring. When it returns, the former
 * sink is no longer running (do not call it from a sink: BUSY). Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_log_set_sink(shardrec_log_sink sink, void *context);

#ifdef __cplusplus
}
#endif
#endif
