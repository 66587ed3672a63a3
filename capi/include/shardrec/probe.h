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
 * machine's; the machine should have nothing else to do.
 * threads: in [0, 4096]; 0: all processors that this process may use.
 * control: progress and cancellation, NULL for none.
 * out_text: freed by the caller; a JSON object of
 *   "version"       4
 *   "machine"       {"cpu", "processors", "l1_bytes", "l2_bytes", "l3_bytes", "instruction_set"}; bytes
 *                   of the caches that one processor reaches, 0 where unknown
 *   "table_bytes"   that the rows were spread over
 *   "seconds"       that it took
 *   "quiet"         false: other work disturbed the measurement
 *   "copies"        [{"threads", "gb_per_second"}], bytes read and written
 *   "rows"          [{"access": "gather" | "update", "row_bytes", "bag_length" (0 for updates),
 * "threads",
 *                   the fastest way: "hint": "none" | "t0" | "t1" | "nta", "distance_rows" (prefetched
 *                   ahead), "pages": "huge" | "small", "stores": "plain" | "streaming",
 * "gb_per_second",
 *                   "kernel_hint": "t0" | "t1", "kernel_distance_rows": how this library's kernels
 * prefetch,
 *                   measured with them and one thread,
 *                   and others, each missing where it was not measured: "by_hint": GB/s of each hint at
 *                   its best distance with huge pages and plain stores, "streaming": with streaming
 *                   stores, "small_pages": the fastest way in small pages}]
 * 1 GB is 1e9 bytes. A gather counts 8 bytes per id, the rows and the sums; an update counts 8 bytes
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
 * random rows by row size. Nothing is kept: kernels of devices need no profile. Takes about a second,
 * up to 6 GiB of the device's free memory and 256 MiB of the host's; the device should have nothing
 * else to do.
 * device: as SHARDREC_OPTION_DEVICE, in [0, 1023].
 * control: progress and cancellation, NULL for none.
 * out_text: freed by the caller; a JSON object in the form of shardrec_probe_json's, of
 *   "version"       1
 *   "machine"       {"device": "cuda:0", "name", "compute_capability": "9.0", "memory_bytes",
 *                   "l2_bytes"}
 *   "table_bytes"   that the rows were spread over
 *   "seconds"       that it took
 *   "quiet"         false: other work disturbed the measurement
 *   "copies"        [{"from": "host" | "device", "to": "device" | "host", "gb_per_second"}]; memory of the
 *                   host is pinned. Bytes count once, of a copy on the device twice (read and written)
 *   "rows"          [{"access": "gather", "row_bytes", "bag_length", "gb_per_second"}]; 8 bytes per id, the
 *                   rows and the sums
 * 1 GB is 1e9 bytes.
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
