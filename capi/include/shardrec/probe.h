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
 * Of a CUDA device the probe measures, by the operations that lookups use there, copies, and sums of random
 * rows by row size. It takes about a second, up to 6 GiB of the device's free memory and 256 MiB of the
 * host's. The result is not kept: kernels of devices need no profile. Its document:
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
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_PROBE_H
#define SHARDREC_PROBE_H

#include "shardrec/control.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures what memory does, or reads what was measured.
 * device: NULL or "cpu": this machine's. Copies, gathers of random rows and updates of rows by row size,
 *   with one thread and with `threads`: which prefetch, distance, page size and kind of stores is fastest,
 *   and how fast. Stores the profile in the cache, unless other work disturbed it ("quiet" is then false);
 *   where it cannot be stored, it is returned all the same, with a warning in the log. Takes about 2.5 s
 *   and, depending on the caches, 0.6 to 2.5 GiB of memory, at most a sixth of the machine's.
 *   "cuda:0", in [0, 1023]; "cuda" is "cuda:0": that CUDA device's, whose document stands above.
 * Machine and device should have no other work.
 * threads: in [0, 4096]; 0: all processors that this process may use. Of a device, and with cached, 0.
 * cached: 1: this machine's profile as it stands in the cache, without a measurement. Of a device that is
 *   UNSUPPORTED.
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
 * Errors: INVALID_ARGUMENT (also: there is no such device), NOT_FOUND (cached: none, or one that is not
 * used), UNSUPPORTED (see cached; the CUDA plug-in is not installed), DEVICE_ERROR, BUSY (another probe of
 * the kind runs in this process), CANCELLED, INVALID_HANDLE, CLOSED, OUT_OF_MEMORY (also of the device).
 * Blocking; any thread. Since 0.2. */
SHARDREC_API shardrec_status shardrec_probe_json(SHARDREC_NULLABLE const char *device,
                                                 int32_t threads, SHARDREC_FLAG int32_t cached,
                                                 SHARDREC_NULLABLE shardrec_control *control,
                                                 char **out_text);

#ifdef __cplusplus
}
#endif
#endif
