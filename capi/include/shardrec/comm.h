/* Groups of ranks and a rank's membership of one.
 *
 * A collective call is one that every rank of the communicator makes, in the same order. Calls that
 * do not match end with MISMATCH on the ranks concerned, naming both; a rank that never comes ends
 * the others' call with TIMEOUT; a rank that is gone, with PEER_FAILED. After either the
 * communicator is dead: every later collective call on it returns the same status at once, and
 * everything made on it can still be destroyed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_COMM_H
#define SHARDREC_COMM_H

#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group of ranks that are threads of this process. Any thread. */
typedef struct shardrec_local shardrec_local;

/* One rank's membership. Collective calls of one rank on one communicator: one thread at a time,
 * not bound to a particular thread. Different communicators are independent. */
typedef struct shardrec_comm shardrec_comm;

typedef enum shardrec_comm_property {
  SHARDREC_COMM_STEP_SECONDS = 1, /* f64, > 0, at most 1e9 (all three); deadline of barrier, all_reduce,
                                     begin, forward, backward, rows, layers' reductions; default 600 */
  SHARDREC_COMM_SETUP_SECONDS = 2, /* f64, > 0; deadline of create, commit, save, load; default 1800 */
  SHARDREC_COMM_WARN_SECONDS = 3, /* f64, > 0; a wait this long logs the late rank; default 30 */
  SHARDREC_COMM_PROPERTY_FORCE_32 = 0x7fffffff
} shardrec_comm_property;

typedef enum shardrec_reduction {
  SHARDREC_REDUCTION_SUM = 0,
  SHARDREC_REDUCTION_MIN = 1,
  SHARDREC_REDUCTION_MAX = 2,
  SHARDREC_REDUCTION_MEAN = 3, /* the sum divided by the number of ranks; floating point only */
  SHARDREC_REDUCTION_FORCE_32 = 0x7fffffff
} shardrec_reduction;

/* Makes a group of `ranks` ranks inside this process, ranks_per_node of which count as one node
 * (rank r is on node r / ranks_per_node; the last node may be smaller).
 * ranks in [1, 1024], ranks_per_node in [1, ranks]. out: owned by the caller.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_local_create(int32_t ranks, int32_t ranks_per_node,
                                                   shardrec_local **out);

/* Destroys the handle and nulls the caller's copy; communicators made from it live on. Since 0.1. */
SHARDREC_API void shardrec_local_destroy(shardrec_local **group);

/* Joins the group as `rank`. Does not wait for the others: the first collective call does.
 * rank in [0, ranks), each at most once per group. out: owned by the caller.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, INVALID_STATE (the rank is taken), OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_create_local(shardrec_local *group, int32_t rank,
                                                        shardrec_comm **out);

/* Destroys the handle and nulls the caller's copy. Not collective, never blocks. Without a close
 * before it, peers that wait for this rank get PEER_FAILED at once. What was made on the
 * communicator keeps its memory until it is destroyed too, in any order. Since 0.1. */
SHARDREC_API void shardrec_comm_destroy(shardrec_comm **comm);

/* This rank's number and the number of ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT.
 * Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_rank(const shardrec_comm *comm, int32_t *out);
SHARDREC_API shardrec_status shardrec_comm_size(const shardrec_comm *comm, int32_t *out);

/* Changes a property of this rank's communicator for later calls, such as a deadline.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_set_f64(shardrec_comm *comm, shardrec_comm_property key,
                                                   double value);
SHARDREC_API shardrec_status shardrec_comm_get_f64(const shardrec_comm *comm,
                                                   shardrec_comm_property key, double *out);

/* OK while the communicator lives; the status that killed it afterwards (its sentence becomes this
 * thread's error). Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_status(const shardrec_comm *comm);

/* Returns when every rank has called it. Collective, blocking.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_barrier(shardrec_comm *comm);

/* Reduces a compact tensor over the ranks, in place; every rank gets the same bits (pairwise tree
 * over the rank number). dtype FLOAT32, FLOAT64, INT32 or INT64; same dtype and number of elements
 * on all ranks. Collective, blocking. Errors: as shardrec_comm_barrier; INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_all_reduce(shardrec_comm *comm,
                                                      const shardrec_tensor *tensor,
                                                      shardrec_reduction reduction);

/* The orderly end: returns when every rank has called it; later calls return CLOSED. Destroy the
 * handle afterwards. Collective, blocking. Errors: as shardrec_comm_barrier. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_close(shardrec_comm *comm);

/* Ends the communicator on every rank: collective calls that wait, and all later ones, return
 * ABORTED with this rank's number and reason (UTF-8, NULL allowed). Never blocks. Any thread.
 * Errors: INVALID_HANDLE, CLOSED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_abort(shardrec_comm *comm, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
