/* What happened: counters of the whole process for Prometheus, and a trace for Perfetto.
 *
 * The library opens no port and writes no file: the host serves or stores the text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_OBSERVE_H
#define SHARDREC_OBSERVE_H

#include "shardrec/collection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counters of all open communicators and collections of this process in Prometheus' text exposition
 * format (text/plain; version=0.0.4): families shardrec_*, counters with the suffix _total, times in
 * seconds, sizes in bytes. Labels: comm (number of the communicator in this process, from 0), rank,
 * collection (number of the collection on its communicator, the same on all ranks), and exchange,
 * phase or table:
 *   shardrec_live_objects                      shardrec_comm_up
 *   shardrec_steps_total                       shardrec_table_memory_bytes, _buffer_memory_bytes
 *   shardrec_exchange_bytes_total{exchange}    shardrec_ids_sent_total, _ids_looked_up_total
 *   shardrec_phase_seconds_total{phase}        shardrec_imbalance_ratio, shardrec_threads_seen
 *   shardrec_table_ids_total{table}, shardrec_table_rows_updated_total{table},
 *   shardrec_table_ids_out_of_range_total{table}, shardrec_table_non_finite_total{table},
 *   shardrec_saturated_total
 * The time of phases is the host's, and of collections on a device that of its stream, from phase to phase
 * without what the caller's stream holds up; the last phases count when they are over there.
 * Families are added by later releases, never renamed. out_text: freed by the caller.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Not blocking; any thread, also while steps run.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_counters_text(char **out_text);

/* Starts the trace of this process: the phases of every step of every rank, from now on. A trace that
 * was taken before is forgotten.
 * events: how many are kept, in [1, 2^24], of 40 bytes each, allocated at once; when there are more,
 * the   oldest are dropped. A training step has about 14 on each rank.
 * Off (the default), an event costs a few instructions; on, about 0.1 us.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_trace_start(int64_t events);

/* Ends the trace; what was recorded stays until the next start. Never fails. Any thread. Since 0.1. */
SHARDREC_API void shardrec_trace_stop(void);

/* The trace so far as JSON in Chrome's trace event format, which ui.perfetto.dev opens: a process per
 * rank, a thread per collection; the calls ("begin", "forward", "backward", "accumulate", "skip") and
 * inside them the phases ("route", "input exchange", "lookup", "output exchange", "gradient",
 * "gradient exchange", "index plan", "update"). Of collections on a device it shows when the host called
 * for them; in Nsight Systems they are NVTX ranges, with the kernels beside them. Without a trace, no
 * events. out_text: freed by the caller. Of ranks in several processes, `shardrec trace merge` makes one
 * trace, by what is in otherData:
 *   start_steady_nanoseconds   of this process' monotonic clock, where ts is 0
 *   start_unix_nanoseconds     the same moment by the wall clock
 *   clocks                     of the last 16 communicators between processes, measured when they were
 *                              made: reference (names the measurement, the same on all ranks), rank,
 *                              offset_nanoseconds (rank 0's monotonic clock less this process'),
 *                              uncertainty_nanoseconds (half of the shortest round trip). Clocks of
 *                              different machines drift apart, by some ms in an hour
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_trace_json(char **out_text);

#ifdef __cplusplus
}
#endif
#endif
