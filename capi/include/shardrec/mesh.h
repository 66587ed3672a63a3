/* Meshes: the ranks of a communicator arranged as replicas x sharding groups (2D parallel training).
 *
 * W ranks in sharding groups of S make R = W / S replicas of each table: each sharding group holds all tables, cut over
 * its S ranks by one plan, and trains them on its own batches; the ranks that hold the same boxes form a replica group
 * and average them now and then (shardrec_collection_sync_replicas). Gradients are divided by S by default (option
 * GRADIENT_DIVISOR). Replicas start equal: initial values depend on the seed and on names only.
 *
 * Tables that the plan replicates (data-parallel) belong to no sharding group: the gradients of all W ranks train them
 * in every step, divided by W by default, and they are equal on all ranks after it, so that averaging leaves them
 * alone. Their bits are those of one group of W ranks with the same batches, the same way of replication (option
 * REPLICATION) and, where it is CUSTOM, a divisor W / S times as large. With such a table, the sharding groups take
 * each step together: all calls of the collection and of its lookups that are collective are so over the whole mesh.
 *
 * The option REPLICA_SYNC EXACT does the same for all tables: ids and gradients of all W ranks go to all replicas, each
 * of which looks up for its own ranks only. Tables, states and outputs have the bits of one group of W ranks with the
 * same batches, for each optimizer, and replicas are equal after each step: R times the bytes of ids and gradients, and no
 * averages. The sharding groups take each step together then, gradients are divided as replicated tables' are, and rows
 * that a rank writes are written in all replicas.
 *
 * The option REPLICA_SYNC SHARDED trains with the bits of EXACT and keeps one copy of optimizer states (fully sharded 2D
 * parallel): the rows of each box are dealt out to the R replicas, in R ranges of equal length, of which the first ones
 * are longer by one row where R does not divide them. Ids of all W ranks go to the replica that looks them up and to the
 * one that has the row's states, gradients to the latter alone; it takes the step, and at its end the new weights of the
 * rows go to the other replicas. Each keeps all weights and 1 / R of the states. States are read and written where they
 * are, whoever asks; checkpoints have one copy of each, as any other has, and load under other plans and ways of
 * REPLICA_SYNC. After an error in the step the mesh is dead, as in any collective.
 *
 * Tables that want different numbers of replicas are in collections of their own, on meshes of different sizes over one
 * communicator: a step goes through each, and a checkpoint has them in one commit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_MESH_H
#define SHARDREC_MESH_H

#include "shardrec/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's place in a mesh. One thread at a time, else BUSY. */
typedef struct shardrec_mesh shardrec_mesh;

/* Arranges the ranks of comm. sharding_group_size: in [1, ranks], a divisor of the number of ranks.
 * options: kind MESH (PLACEMENT) or NULL. Both are the same on all ranks. out: owned by the caller;
 * keeps what it needs of comm and ends with it (abort, close, a dead peer).
 * Collective, blocking. What one rank gets wrong in options or out is every rank's error. Errors:
 * INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, DISAGREEMENT (sizes or placements differ), MISMATCH,
 * OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mesh_create(shardrec_comm *comm, int32_t sharding_group_size,
                                                  SHARDREC_OPTIONS(MESH)
                                                  const shardrec_options *options,
                                                  shardrec_mesh **out);

/* Destroys the handle and nulls the caller's copy. Not collective, never blocks; collections made on
 * it live on. Since 0.1. */
SHARDREC_API void shardrec_mesh_destroy(SHARDREC_NULLABLE shardrec_mesh **mesh);

/* Where a rank is in a mesh. */
typedef struct shardrec_place {
  int64_t struct_size;   /* sizeof(shardrec_place), set by the caller */
  int32_t sharding_rank; /* number in its sharding group: the rank that plans speak of */
  int32_t sharding_size; /* ranks of a sharding group */
  int32_t replica_rank;  /* number in its replica group: the number of the replica that it holds */
  int32_t replica_size;  /* ranks of a replica group: replicas */
} shardrec_place;

/* This rank's place. out: its struct_size is set; the members that fit in it are written.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mesh_place(const shardrec_mesh *mesh, shardrec_place *out);

/* A rank's groups. */
typedef enum shardrec_mesh_group {
  SHARDREC_MESH_GROUP_SHARDING = 0, /* the ranks that hold one replica of all tables */
  SHARDREC_MESH_GROUP_REPLICA = 1,  /* the ranks that hold the same boxes */
  SHARDREC_MESH_GROUP_FORCE_32 = 0x7fffffff
} shardrec_mesh_group;

/* Makes a communicator of the ranks of one of this rank's groups, numbered as shardrec_mesh_place says. It
 * is one as any other: for collectives, collections, metrics and splits. It is the host's own: nothing that
 * the library does on the mesh goes over it, each call makes another one, and it begins with the deadlines
 * of the mesh's communicator. Closing it (collective over its ranks), aborting it or a failure of it ends
 * it alone: the mesh and what was made on it live on. It ends with the mesh: when the communicator that the
 * mesh was made of is closed, aborted or destroyed, and by any failure of that or of the mesh's groups.
 * Handles may be destroyed in any order: the mesh's may go before. out: owned by the caller.
 * Collective over the mesh, blocking (setup deadline): all ranks ask for the same kind of group, else
 * MISMATCH. Between processes a mesh makes at most 8 of either kind in its life, each of which can be split
 * 8 times, and what comes of that no more: then UNSUPPORTED, on all ranks, and the mesh lives on.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (out NULL, no group: only this rank; call again),
 * UNSUPPORTED, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mesh_comm(shardrec_mesh *mesh, shardrec_mesh_group group,
                                                shardrec_comm **out);

#ifdef __cplusplus
}
#endif
#endif
