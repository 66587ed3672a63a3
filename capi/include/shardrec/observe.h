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
 * seconds, sizes in bytes. The names of families and phases, their labels and units: capi/NAMES.md. The
 * time of phases is the host's, and of collections on a device that of its stream, from phase to phase
 * without what the caller's stream holds up, counted from the first
 * shardrec_collection_stat on that reads one; the last phases count when they are over there. Families are
 * added by later releases and keep their names. out_text: freed by the caller. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Not blocking; any thread, also while steps run. Since 0.1. */
SHARDREC_API shardrec_status shardrec_counters_text(char **out_text);

/* Starts the trace of this process: the phases of the steps of all its ranks, from now on. A trace that
 * was taken before is forgotten.
 * events: how many are kept, in [1, 2^24], of 40 bytes each, allocated at once; when there are more,
 * the oldest are dropped. A training step has about 14 on each rank, and 30 more where that is on a device.
 * Off (the default), an event costs a few instructions; on, about 0.1 us, and on a device what a CUDA event costs.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_trace_start(int64_t events);

/* Ends the trace; what was recorded stays until the next start. Never fails. Any thread. Since 0.1. */
SHARDREC_API void shardrec_trace_stop(void);

/* The trace so far as JSON in Chrome's trace event format, which ui.perfetto.dev opens: a process per
 * rank, a thread per collection; the calls and inside them the phases, by the names of capi/NAMES.md. Of
 * collections on a device these are when the host called for them. When the device did what was called for is in
 * rows of their own, "cat": "device": of each collection by the same phases, of each stack of layers in a DDP
 * set, of the set's sums. Their times are those of CUDA events by this process' clock, which is compared with the
 * device's several times a second while a trace is on (some 10 us of the host's time); they are some 10 us
 * unsure, and two rows of one device less. What the device has not finished when the trace is read is not in it.
 * In Nsight Systems phases of collections are NVTX ranges, with the kernels beside them. Without a trace, no events.
 *   "displayTimeUnit"                 text: "ms"
 *   "otherData.version"               integer: 1
 *   "otherData.dropped_events"        integer: the oldest ones, for which there was no room
 *   "otherData.start_steady_nanoseconds"        integer: of this process' monotonic clock, where ts is 0
 *   "otherData.start_unix_nanoseconds"          integer: the same moment by the wall clock
 *   "otherData.clocks[].reference"    text: names the measurement, the same on all ranks
 *   "otherData.clocks[].rank"         integer
 *   "otherData.clocks[].offset_nanoseconds"     integer: rank 0's monotonic clock less this process'
 *   "otherData.clocks[].uncertainty_nanoseconds"    integer: half of the shortest round trip
 *   "traceEvents[].ph"                text: "X", a span of time, or "M", about a process
 *   "traceEvents[].pid"               integer: rank
 *   "traceEvents[].name"              text: of the call or phase; of an M what it says of the process,
 *                                     "process_name", "process_sort_index" or "thread_name"
 *   "traceEvents[].cat"               optional text: of an X "shardrec", the host's, or "device"
 *   "traceEvents[].tid"               optional integer: of an X or a thread_name, collection, or from 2^20 on a
 *                                     row of a device
 *   "traceEvents[].ts", "traceEvents[].dur"     optional number: begin and length in us, of an X
 *   "traceEvents[].args.name"         optional text: "rank 0", of a process_name; "collection 0, device",
 *                                     "layers 0, device" or "gradients of layers, device" of a thread_name
 *   "traceEvents[].args.sort_index"   optional integer: rank, of a process_sort_index
 * clocks: of the last 16 communicators between processes, measured when they were made. Clocks of different
 * machines drift apart, by some ms in an hour. Of ranks in several processes, `shardrec trace merge` makes
 * one trace. out_text: freed by the caller.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_trace_json(char **out_text);

#ifdef __cplusplus
}
#endif
#endif
