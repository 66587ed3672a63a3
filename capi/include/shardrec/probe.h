/* What this machine's memory does: measured once, kept for later processes.
 *
 * The library never measures by itself. Its kernels read the profile of this machine
 * from the cache, once per process at their first use; without one they use built-in defaults. A
 * profile changes how fast things are, never a bit of a result.
 *
 * The cache is $SHARDREC_CACHE_DIR, else $XDG_CACHE_HOME/shardrec, else $HOME/.cache/shardrec, with
 * a file per kind of machine (processor, number of processors, caches, instruction set). A file that
 * is broken or of another machine or version is not used, with a warning in the log.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_PROBE_H
#define SHARDREC_PROBE_H

#include "shardrec/control.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures copies, gathers of random rows and updates of rows by row size, with one thread and with
 * `threads`: which prefetch, distance, page size and kind of stores is fastest, and how fast. Stores
 * the profile in the cache, unless other work disturbed it ("quiet" is then false); where it cannot
 * be stored, it is returned all the same, with a warning in the log.
 * Takes about 2.5 s and, depending on the caches, 0.6 to 2.5 GiB of memory, at most a sixth of the
 * machine's; the machine should have no other work.
 * threads: in [0, 4096]; 0: all processors that this process may use.
 * control: progress and cancellation, NULL for none.
 * out_text: freed by the caller; JSON. GB/s are bytes read and written, in 1e9 a second.
 *   "version"                     integer: 4
 *   "machine.cpu"                 text: name of the processor
 *   "machine.processors"          integer
 *   "machine.l1_bytes", "machine.l2_bytes", "machine.l3_bytes"    integer: of the caches that one processor
 *                                 reaches, 0 where unknown
 *   "machine.instruction_set"     text
 *   "table_bytes"                 integer: that the rows were spread over
 *   "seconds"                     number: that it took
 *   "quiet"                       boolean: false: other work disturbed the measurement
 *   "copies[].threads"            integer
 *   "copies[].gb_per_second"      number
 *   "rows[].access"               text: "gather" or "update"
 *   "rows[].row_bytes", "rows[].bag_length", "rows[].threads"     integer; the bag length of an update is 0
 *   "rows[].hint"                 text: prefetch of the fastest way, "none", "t0", "t1" or "nta"
 *   "rows[].distance_rows"        integer: prefetched ahead
 *   "rows[].kernel_hint"          text: "t0" or "t1": how this library's kernels prefetch, measured with them
 *                                 and one thread
 *   "rows[].kernel_distance_rows" integer
 *   "rows[].pages"                text: "huge" or "small"
 *   "rows[].stores"               text: "plain" or "streaming"
 *   "rows[].gb_per_second"        number: of the fastest way
 *   "rows[].by_hint.none", "rows[].by_hint.t0"     optional number: GB/s of each hint at its best distance
 *   "rows[].by_hint.t1", "rows[].by_hint.nta"      optional number: with huge pages and plain stores
 *   "rows[].streaming"            optional number: GB/s with streaming stores
 *   "rows[].small_pages"          optional number: GB/s of the fastest way in small pages
 * A gather counts 8 bytes per id, the rows and the sums; an update counts 8 bytes
 * per id, and the row and 4 bytes of state twice.
 * Errors: INVALID_ARGUMENT, BUSY (another probe runs in this process), CANCELLED, INVALID_HANDLE,
 * CLOSED, OUT_OF_MEMORY. Blocking; any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_probe_json(int32_t threads,
                                                 SHARDREC_NULLABLE shardrec_control *control,
                                                 char **out_text);

/* This machine's profile as it stands in the cache, in the same form. out_text: freed by the caller.
 * Errors: INVALID_ARGUMENT, NOT_FOUND (none, or one that is not used), OUT_OF_MEMORY. Any thread.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_probe_cached_json(char **out_text);

/* Measures the memory of a CUDA device by the operations that lookups use there: copies, and sums of
 * random rows by row size. The result is not kept: kernels of devices need no profile. Takes about a second,
 * up to 6 GiB of the device's free memory and 256 MiB of the host's; the device should have no
 * other work.
 * device: as SHARDREC_OPTION_DEVICE, in [0, 1023].
 * control: progress and cancellation, NULL for none.
 * out_text: freed by the caller; JSON in the form of shardrec_probe_json's.
 *   "version"                     integer: 1
 *   "machine.device"              text: "cuda:0"
 *   "machine.name"                text
 *   "machine.compute_capability"  text: "9.0"
 *   "machine.memory_bytes", "machine.l2_bytes"     integer
 *   "table_bytes"                 integer: that the rows were spread over
 *   "seconds"                     number: that it took
 *   "quiet"                       boolean: false: other work disturbed the measurement
 *   "copies[].from", "copies[].to"                 text: "host", which is pinned memory, or "device"
 *   "copies[].gb_per_second"      number: bytes count once, of a copy on the device twice (read and written)
 *   "rows[].access"               text: "gather"
 *   "rows[].row_bytes", "rows[].bag_length"        integer
 *   "rows[].gb_per_second"        number: of 8 bytes per id, the rows and the sums
 * Errors: INVALID_ARGUMENT (there is no such device, too), UNSUPPORTED (the CUDA plug-in is not
 * installed), DEVICE_ERROR, BUSY (another probe of a device runs in this process), CANCELLED,
 * INVALID_HANDLE, CLOSED, OUT_OF_MEMORY (also of the device). Blocking; any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_probe_device_json(int32_t device,
                                                        SHARDREC_NULLABLE shardrec_control *control,
                                                        char **out_text);

#ifdef __cplusplus
}
#endif
#endif
