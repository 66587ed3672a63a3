/* Data-parallel dense parameters (DDP): the host's own parameters, the same on every rank, with
 * gradients averaged over the ranks.
 *
 * Thread rule: one thread at a time per handle, else BUSY.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_DDP_H
#define SHARDREC_DDP_H

#include "shardrec/comm.h"
#include "shardrec/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_ddp shardrec_ddp;

/* Makes an empty set of parameters. options: kind DDP or NULL. out: owned by the caller. Not
 * collective. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_create(shardrec_comm *comm,
                                                 const shardrec_options *options,
                                                 shardrec_ddp **out);

/* Destroys the handle and nulls the caller's copy; the parameters stay the host's. Since 0.1. */
SHARDREC_API void shardrec_ddp_destroy(shardrec_ddp **ddp);

/* Adds a parameter and its gradient: compact FLOAT32 tensors of one shape. Their memory must stay in
 * place until the handle is destroyed (it is used by commit and all_reduce only, not by others).
 * name: UTF-8, not empty, unique. Not collective.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (after commit), INVALID_ARGUMENT, UNSUPPORTED
 * (dtype, device), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_add(shardrec_ddp *ddp, const char *name,
                                              const shardrec_tensor *parameter,
                                              const shardrec_tensor *gradient);

/* Checks that all ranks added the same parameters (count, names, shapes, options), then copies rank
 * 0's values to all (option DDP_BROADCAST). Collective, blocking (setup deadline).
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (twice), MISMATCH (names rank and parameter; the
 * communicator lives on), OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_commit(shardrec_ddp *ddp);

/* Averages (or sums: option DDP_AVERAGE) every gradient over the ranks, in place, through buckets of
 * 1 MiB and then 8 MiB; every rank gets the same bits. Collective, blocking. Allocates nothing after
 * the first call. Errors: as shardrec_ddp_commit; INVALID_STATE (no commit). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_all_reduce(shardrec_ddp *ddp);

#ifdef __cplusplus
}
#endif
#endif
