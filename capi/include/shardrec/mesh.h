/* Meshes: the ranks of a communicator arranged as replicas x sharding groups (2D parallel training).
 *
 * W ranks in sharding groups of S make R = W / S replicas of every table: each sharding group holds
 * all tables, cut over its S ranks by one plan, and trains them on its own batches; the ranks that
 * hold the same boxes form a replica group and average them now and then
 * (shardrec_collection_sync). Gradients are divided by S by default (option GRADIENT_DIVISOR).
 * Replicas start equal: initial values depend on the seed and on names only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_MESH_H
#define SHARDREC_MESH_H

#include "shardrec/collection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's place in a mesh. One thread at a time, else BUSY. */
typedef struct shardrec_mesh shardrec_mesh;

/* Arranges the ranks of comm. sharding_group_size: in [1, ranks], a divisor of the number of ranks.
 * options: kind MESH (PLACEMENT) or NULL. Both are the same on all ranks. out: owned by the caller;
 * keeps what it needs of comm and ends with it (abort, close, a dead peer).
 * Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (on any rank: all get
 * it), DISAGREEMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mesh_create(shardrec_comm *comm, int32_t sharding_group_size,
                                                  SHARDREC_OPTIONS(MESH)
                                                  const shardrec_options *options,
                                                  shardrec_mesh **out);

/* Destroys the handle and nulls the caller's copy. Not collective, never blocks; collections made on
 * it live on. Since 0.1. */
SHARDREC_API void shardrec_mesh_destroy(SHARDREC_NULLABLE shardrec_mesh **mesh);

/* This rank's number in its sharding group (the rank that plans speak of) and in its replica group
 * (the number of the replica it holds); the sizes of the groups. Each out may be NULL.
 * Errors: INVALID_HANDLE, CLOSED. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mesh_place(const shardrec_mesh *mesh,
                                                 SHARDREC_NULLABLE int32_t *out_sharding_rank,
                                                 SHARDREC_NULLABLE int32_t *out_sharding_size,
                                                 SHARDREC_NULLABLE int32_t *out_replica_rank,
                                                 SHARDREC_NULLABLE int32_t *out_replica_size);

/* Makes a communicator of the ranks of this rank's sharding group, or replica group, numbered as
 * shardrec_mesh_place says. It is one as any other: for collectives, collections, metrics and splits.
 * It is the host's own: nothing that the library does on the mesh goes over it, each call makes
 * another one, and it begins with the deadlines of the mesh's communicator. Closing it (collective
 * over its ranks), aborting it or a failure of it ends it alone: the mesh and what was made on it live
 * on. It ends with the mesh: when the communicator that the mesh was made of is closed, aborted or
 * destroyed, and by any failure of that or of the mesh's groups. Handles may be destroyed in any
 * order: the mesh's may go before. out: owned by the caller.
 * Collective over the mesh, blocking (setup deadline): all ranks ask for the same kind of group, else
 * MISMATCH. Between processes a mesh makes at most 8 of either kind in its life, each of which can be
 * split 8 times, and what comes of that no more: then UNSUPPORTED, on all ranks, and the mesh lives on.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (out NULL: only this rank; call again),
 * UNSUPPORTED, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mesh_sharding_comm(shardrec_mesh *mesh, shardrec_comm **out);
SHARDREC_API shardrec_status shardrec_mesh_replica_comm(shardrec_mesh *mesh, shardrec_comm **out);

/* Plans the model for a mesh: for the ranks of a sharding group, the same plan on all ranks, as
 * shardrec_collection_create_on_mesh takes it. No table is replicated, for a mesh holds none that
 * are: AUTO and MIXED take other kinds, DATA_PARALLEL is UNSUPPORTED. options: kind PLAN or NULL. As
 * shardrec_plan_collective. Collective over the mesh, blocking (setup deadline).
 * Errors: as shardrec_plan_collective; UNSUPPORTED (also: a table that may only be replicated).
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_collective_on_mesh(shardrec_mesh *mesh,
                                                              const shardrec_model *model,
                                                              SHARDREC_OPTIONS(PLAN)
                                                              const shardrec_options *options,
                                                              shardrec_plan **out);

/* As shardrec_collection_create, one replica per sharding group: the plan is for sharding_group_size
 * ranks and the same everywhere. Lookups, reads, writes, saves and loads concern the own replica and
 * are collective over its sharding group.
 * What one sharding group refuses, all ranks of the mesh refuse. Model, plan and the options that
 * decide which numbers come out (SEED, GRADIENT_DIVISOR and its VALUE, OUTPUT_DTYPE, the
 * compressions) are the same on all ranks of the mesh, else DISAGREEMENT on all of them, naming rank
 * and option.
 * Replicated (data-parallel) tables: UNSUPPORTED. Collective over the mesh, blocking.
 * Errors: as shardrec_collection_create; INVALID_HANDLE, CLOSED, BUSY for mesh. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_create_on_mesh(
    shardrec_mesh *mesh, const shardrec_model *model, const shardrec_plan *plan,
    SHARDREC_OPTIONS(COLLECTION) const shardrec_options *options, shardrec_collection **out);

/* Averages weights and every optimizer state over the replicas: the mean in float32 (pairwise tree
 * over the replica's number, divided once), rounded to the table's dtype; afterwards all replicas
 * are equal bit for bit. Takes effect in call order, as reading and writing rows do; call it on all
 * ranks of the mesh after the same number of steps and with the same learning rate and frozen flag
 * of every table, else DISAGREEMENT on all ranks, naming rank and table: nothing was averaged then, and
 * the collection is as before (set what differs and call again). Local SGD with averaging, as
 * TorchRec's DMPCollection.sync, which knows row-wise AdaGrad's state only. Gradients that wait for
 * their step (shardrec_lookup_accumulate) are not averaged. On a collection without
 * a mesh, or with one replica, nothing happens. Between shardrec_lookup_send_gradients and its
 * backward it is INVALID_STATE, and nothing has changed. After any other error but a handle's this
 * rank's sharding and replica groups and the mesh are dead: nobody trains on tables that are
 * averaged in part, or waits for a rank that has stopped.
 * Collective over the mesh, blocking (step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_STATE, DISAGREEMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_sync(shardrec_collection *collection);

#ifdef __cplusplus
}
#endif
#endif
