/* The library itself: version, capabilities, live objects, hash.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_LIBRARY_H
#define SHARDREC_LIBRARY_H

#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* major * 1000 + minor of the API that the loaded library serves. Any thread. Since 0.1. */
SHARDREC_API int32_t shardrec_api_version(void);

/* What this library can do on this machine, as JSON:
 *   "version"            integer: 1
 *   "library_version"    text: "0.2.0"
 *   "api_version"        integer: SHARDREC_API_VERSION of the library
 *   "processors"         integer >= 1: that the calling thread may run on, at most the cgroup quota, rounded down. Since 0.2
 *   "engines"            array of texts: "local", and those whose plug-ins are installed; "nccl" where
 *                        NVIDIA's library is, too
 *   "devices"            array of texts: "cpu", and "cuda" where cuda_devices has any
 *   "cuda_devices[].index"               integer: what SHARDREC_OPTION_DEVICE takes
 *   "cuda_devices[].name"                text: "NVIDIA H100 80GB HBM3"
 *   "cuda_devices[].compute_capability"  text: "9.0"
 *   "cuda_devices[].memory_bytes"        integer
 *   "cuda_devices[].free_bytes"          integer or null: null as long as this library has not used the
 *                        device in this process, because to ask for it would take memory of the device
 *   "cuda_missing"       text or null: why cuda_devices is empty or incomplete: there is no plug-in, no
 *                        driver, no device, or one does not answer
 *   "cpu_targets"        array of texts: instruction sets of this machine, "scalar", "avx2" and so on
 *   "cpu_target"         text: the one in use
 *   "dense"              text or null: the GEMM plug-in, "openblas"; null when it is not installed
 *   "dense_cuda"         text or null: that of layers on CUDA devices, "cublas"; null when it, or NVIDIA's
 *                        library, is not installed. Since 0.2
 * The CUDA plug-in is loaded where it is installed; no device is used. The environment variable
 * SHARDREC_CPU_TARGET forces a lower instruction set (read once, at the first use). Where it names none of
 * cpu_targets, this call and those that make collections, layers and profiles get INVALID_ARGUMENT.
 * out_text: freed by the caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_capabilities_json(char **out_text);

/* What shardrec_available asks for. */
typedef enum shardrec_capability {
  SHARDREC_CAPABILITY_ENGINE = 0, /* an engine of communicators: "local", "gloo", "mpi" or "nccl" */
  SHARDREC_CAPABILITY_DEVICE = 1, /* what tables can live on: "cpu", "cuda" (any device), "cuda:1" */
  SHARDREC_CAPABILITY_CPU_TARGET = 2, /* kernels for an instruction set: "scalar", "avx2" and so on */
  SHARDREC_CAPABILITY_DENSE = 3,      /* a GEMM plug-in of layers: "openblas", "cublas" (CUDA) */
  SHARDREC_CAPABILITY_FORCE_32 = 0x7fffffff
} shardrec_capability;

/* Whether this library has something on this machine: 1 or 0. Plug-ins are loaded to see; no device is used.
 * name: as shardrec_capabilities_json lists it; a name that nobody knows is not available either.
 * out_reason: freed by the caller with shardrec_text_free; may be NULL. Why not, and what to install or what
 * there is; an empty text where it is available.
 * Errors: INVALID_ARGUMENT (the kind; SHARDREC_CPU_TARGET, as shardrec_capabilities_json), OUT_OF_MEMORY.
 * Any thread. Since 0.2. */
SHARDREC_API shardrec_status shardrec_available(shardrec_capability kind, const char *name,
                                                SHARDREC_FLAG int32_t *out_available,
                                                SHARDREC_NULLABLE char **out_reason);

/* Handles of any kind that are open in this process, or closed with a call still inside.
 * A test suite asserts that it ends at 0. Errors: INVALID_ARGUMENT. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_live_objects(int64_t *out);

/* XXH3-64 of size bytes with a seed: the same value in every language and on every machine, for
 * mapping raw ids to rows (take it modulo the number of rows) and for splitting data sets.
 * bytes may be NULL when size is 0 (or less). Never fails. Any thread. Since 0.1. */
SHARDREC_API uint64_t shardrec_hash64(uint64_t seed, SHARDREC_NULLABLE const void *bytes,
                                      int64_t size);

/* Maps raw ids to rows of a table: out[i] = shardrec_hash64(seed, the 8 bytes of ids[i] as int64_t,
 * little-endian, 8) modulo rows, taken as unsigned. rows 0: the hash itself, its 64 bits as int64_t.
 * ids: compact, one dimension, INT64 or INT32 (which hash as the same numbers in 64 bits). rows >= 0.
 * out: as long, INT64, or INT32 where rows is in [1, 2^31]; may be the memory of ids where the dtypes
 * agree, must not overlap it otherwise. Errors: INVALID_ARGUMENT, UNSUPPORTED (device). Any thread.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_hash64_ids(uint64_t seed, const shardrec_tensor *ids,
                                                 int64_t rows,
                                                 SHARDREC_WRITTEN const shardrec_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
