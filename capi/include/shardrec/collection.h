/* A collection: this rank's boxes of the sharded tables, with their optimizer state.
 *
 * Forward, backward, rows read and written, and commits and loads of checkpoints (checkpoint.h) take effect
 * in call order, and the order is the same on all ranks (checked by sequence numbers: MISMATCH). One thread at a time per
 * collection and its lookups, else BUSY; no thread affinity.
 *
 * Given the same output gradients, tables are bit-equal under every plan, number of ranks, thread
 * count and instruction set (for the same global batch), except where a row statistic is cut by
 * columns. Initial values depend on (seed, table name, row, column) only: Philox4x32-10 (Salmon et
 * al. 2011), key from the seed and XXH3 of the name, counter from row and column / 4.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_COLLECTION_H
#define SHARDREC_COLLECTION_H

#include "shardrec/mesh.h"
#include "shardrec/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_collection shardrec_collection;

/* What of a table is read or written. */
typedef enum shardrec_table_part {
  SHARDREC_TABLE_WEIGHTS = 0, /* [rows, dim] */
  SHARDREC_TABLE_STATE = 1,   /* the first state of the table's optimizer, float32: "sum" (AdaGrad,
                               row-wise AdaGrad), "exp_avg" (Adam, LAMB and their partial forms),
                               "momentum_buffer" (LARS); SGD has none: NOT_FOUND */
  SHARDREC_TABLE_STATE_2 = 2, /* the second one: "exp_avg_sq". A state of one value per element is [rows,
                                 dim]; one of one value per row (row-wise AdaGrad's sum, exp_avg_sq of
                                 the partial forms) is [rows, 1], with SHARD statistics [rows, dim],
                                 each column holding its box's value */
  SHARDREC_TABLE_PART_FORCE_32 = 0x7fffffff
} shardrec_table_part;

/* What shardrec_collection_stat tells of this rank, since creation. Counts and bytes are whole numbers. The
 * counters of shardrec_counters_text are the same: capi/NAMES.md. */
typedef enum shardrec_stat {
  SHARDREC_STAT_STEPS = 1,          /* applied updates (shardrec_collection_step) */
  SHARDREC_STAT_BYTES_TABLES = 2,   /* memory of own boxes and their state */
  SHARDREC_STAT_BYTES_BUFFERS = 3,  /* memory of buffers: lookups, updates, operations */
  SHARDREC_STAT_BYTES_INPUT = 4,    /* sent to other ranks by input exchanges */
  SHARDREC_STAT_BYTES_OUTPUT = 5,   /* ... by output exchanges */
  SHARDREC_STAT_BYTES_GRADIENT = 6, /* ... by gradient exchanges */
  SHARDREC_STAT_IDS_SENT = 7,       /* ids routed by this rank, own boxes included */
  SHARDREC_STAT_IDS_RECEIVED = 8,   /* ids looked up by this rank */
  SHARDREC_STAT_THREADS_SEEN = 9,   /* most threads that worked at once in a kernel of this rank */
  SHARDREC_STAT_SATURATED = 10, /* finite numbers beyond float16's range that this rank sent as +-65504
                                   (options FORWARD_COMPRESSION, BACKWARD_COMPRESSION: FLOAT16); not
                                   counted with a DEVICE other than the CPU. Since 0.2 */
  SHARDREC_STAT_BYTES_SYNC = 11, /* sent to other replicas by syncs, and by steps with REPLICA_SYNC SHARDED. Since 0.2 */
  SHARDREC_STAT_ROWS_SYNCED = 12, /* rows of this rank's boxes that syncs have averaged, or with REPLICA_SYNC SHARDED
                                     steps have written here that other replicas updated; boxes side by side
                                     count once. Since 0.2 */
  /* In seconds. With a DEVICE other than the CPU those of its stream, from the first call of
   * shardrec_collection_stat on that reads one of them: until then no clock takes time of its own. */
  SHARDREC_STAT_SECONDS_ROUTE = 101,           /* check and route ids (begin) */
  SHARDREC_STAT_SECONDS_INPUT_EXCHANGE = 102,  /* waiting for and copying ids */
  SHARDREC_STAT_SECONDS_INDEX_PLAN = 103,      /* grouping ids by row */
  SHARDREC_STAT_SECONDS_LOOKUP = 104,          /* reading rows */
  SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE = 105, /* waiting for and adding partial sums */
  SHARDREC_STAT_SECONDS_GRADIENT = 106, /* scaling output gradients (set_gradient, backward) */
  SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE = 107, /* waiting for and copying gradients */
  SHARDREC_STAT_SECONDS_UPDATE = 108,            /* summing gradients by row and optimizer steps */
  SHARDREC_STAT_IMBALANCE = 109, /* no time: ids looked up by the busiest rank / the mean of all ranks, 1
                                    when even; up to the batch before, as the ranks tell each other
                                    with their batches */
  /* of one table, or of all tables together */
  SHARDREC_STAT_TABLE_OUT_OF_RANGE = 201, /* ids of this rank's batches outside [0, rows) that were
                                             dropped or clamped (option OUT_OF_RANGE) */
  SHARDREC_STAT_TABLE_IDS = 202, /* ids looked up in this rank's boxes; boxes side by side count once */
  SHARDREC_STAT_TABLE_ROWS_UPDATED = 203, /* rows of this rank's boxes that steps have updated: different
                                             rows of one step, summed over the steps */
  SHARDREC_STAT_TABLE_NON_FINITE = 204, /* batches of this rank that were refused or skipped for a NaN or
                                           an infinity (option NON_FINITE), the first of which belongs
                                           to a feature of the table. Since 0.2 */
  SHARDREC_STAT_FORCE_32 = 0x7fffffff
} shardrec_stat;

/* Allocates and fills this rank's boxes. The plan's ranks must be the communicator's. Rank checks:
 * model, plan and options agree on all ranks. options: kind COLLECTION or NULL. out: owned by the
 * caller; keeps what it needs of comm and mesh, copies model and plan (ranks of one process that bring
 * the same plan share the copy).
 * mesh: NULL on all ranks, or a mesh of comm on all, else DISAGREEMENT on all: one replica per sharding
 * group, whose ranks the plan is for, the same everywhere. Lookups, rows read and written concern the own replica
 * and are collective over its sharding group; backward with the option NON_FINITE SKIP, and checkpoints, are so over
 * the whole mesh. Where the plan replicates a table, and with REPLICA_SYNC EXACT or SHARDED, all of these are collective over
 * the whole mesh, lookups are as many on all of its ranks and made in the same order, LOOKUPS, too, is the same on
 * all of them, and HIERARCHICAL 1 is UNSUPPORTED (mesh.h). What one sharding group refuses, all ranks of the mesh
 * refuse. Model, plan and the options that decide which numbers come out (SEED, GRADIENT_DIVISOR and its VALUE,
 * OUTPUT_DTYPE, the compressions, NON_FINITE, REPLICA_SYNC, SYNC_EVERY) are the same on all ranks of the mesh, else
 * DISAGREEMENT on all of them, naming rank and option.
 * Option SYNC_EVERY n, above 0, on a mesh of several replicas: the n-th update (shardrec_lookup_backward, or _backward_begin
 * and _wait, with SHARDREC_UPDATE_APPLY, that has not been skipped) behind the last sync ends with one, as
 * shardrec_collection_sync_replicas is, and is collective over the mesh: lookups without an update may be more or fewer on
 * each replica. A sync that was asked for (shardrec_collection_sync_replicas, _sync_wait), _replica_fill and
 * a load begin the count anew; between _sync_begin and _sync_wait no step ends with one. What the sync throws is the
 * error of that backward, or _backward_wait, whose update has been made: after DISAGREEMENT of all ranks (steps, learning
 * rates, frozen flags) no row was averaged, and the next update ends with a sync; after any other error this rank's
 * sharding and replica groups and the mesh are dead. The lookups then keep what a sync needs, also where the
 * collection's handle is destroyed.
 * Before anything is allocated, what the boxes of all ranks of a machine (of a cgroup) need together, and
 * what their steps keep of each peer at least, is held against what the machine has left (the cgroup may
 * still take): more is OUT_OF_MEMORY. So is a thread that the system does not start, and memory of the
 * device (option DEVICE) that there is not.
 * What one rank gets wrong in its arguments, but for comm, all ranks get as their error; the communicator
 * lives on, and the call may be made again.
 * Collective, blocking (setup deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (also: the
 * plan does not fit the model; a mesh of another communicator), OUT_OF_MEMORY (on any rank: all get it,
 * with the rank and the bytes; where there is not even memory to tell, they get PEER_FAILED), UNSUPPORTED
 * (DEVICE without the plug-in; replicated tables on a mesh with HIERARCHICAL 1), DEVICE_ERROR (as any later call of a
 * collection on a device), DISAGREEMENT (ranks bring different models, plans or options, or a mesh on some
 * only), MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_create(
    shardrec_comm *comm, SHARDREC_NULLABLE shardrec_mesh *mesh, const shardrec_model *model,
    const shardrec_plan *plan, SHARDREC_OPTIONS(COLLECTION) const shardrec_options *options,
    shardrec_collection **out);

/* Destroys the handle and nulls the caller's copy; its lookups stay destroyable. Not collective. Never
 * blocks, but on a device, as shardrec_lookup_destroy does. Where processes copy from each other's devices
 * by CUDA IPC it waits up to 2 seconds more, for peers to close what they have opened. Since 0.1. */
SHARDREC_API void shardrec_collection_destroy(SHARDREC_NULLABLE shardrec_collection **collection);

/* The model and the plan that the collection was made with; on a mesh the plan is for the ranks of a
 * sharding group. out: a copy, owned by the caller. Any thread. Errors: INVALID_HANDLE, CLOSED,
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_model(const shardrec_collection *collection,
                                                       shardrec_model **out);
SHARDREC_API shardrec_status shardrec_collection_plan(const shardrec_collection *collection,
                                                      shardrec_plan **out);

/* Number of applied updates (accumulated lookups count once, with their update), the same on all
 * ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_step(const shardrec_collection *collection,
                                                      int64_t *out);

/* Sets the number of applied updates, which the bias correction of Adam and LAMB and stochastic
 * rounding go by, as when a training goes on elsewhere; set the same on all ranks before the same
 * step. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (negative). Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_set_step(shardrec_collection *collection,
                                                          int64_t step);

/* Returns when all that calls of the collection and its lookups have enqueued on its device (option
 * DEVICE) is over, and says whether it went well. Other streams and other ranks do not wait for
 * it. Of a collection on the CPU at once. Not collective, blocking. Errors: INVALID_HANDLE, BUSY,
 * OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_wait_device(shardrec_collection *collection);

/* Averages weights and every optimizer state over the replicas: the mean in float32 (pairwise tree
 * over the replica's number, divided once), rounded to the table's dtype; afterwards all replicas
 * are equal bit for bit. Tables that the plan replicates are so after every step, and are left alone
 * (mesh.h). With the option REPLICA_SYNC TOUCHED, the default, only rows that a step or a write
 * has changed on any replica since the last sync are averaged and moved, after the replicas have told each
 * other which: bytes and time are in proportion to them, and a pass over a bit per row. The
 * others are equal on all replicas already and stay as they are. FULL averages them too, which where the
 * number of replicas is a power of two gives the same bits (unless their sum overflows), and else may change
 * the last bit of a row that nobody has touched. Takes effect in call order, as reading and writing rows do;
 * call it on all ranks of the mesh after the same number of steps and with the same learning rate and frozen flag
 * of every table, else DISAGREEMENT on all ranks, naming rank and table: nothing was averaged then, and
 * the collection is as before (set what differs and call again). Local SGD with averaging, as
 * TorchRec's DMPCollection.sync, which knows row-wise AdaGrad's state only. Gradients that wait for
 * their step (SHARDREC_UPDATE_ACCUMULATE) are not averaged. On a collection without
 * a mesh, or with one replica, nothing happens. With REPLICA_SYNC EXACT or SHARDED steps and settings are
 * compared, and no row is averaged. Between shardrec_lookup_send_gradients and its
 * backward it is INVALID_STATE on this rank, and nothing has changed. After any other error but a handle's this
 * rank's sharding and replica groups and the mesh are dead: nobody trains on tables that are
 * averaged in part, or waits for a rank that has stopped.
 * Collective over the mesh, blocking (step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_STATE, DISAGREEMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_sync_replicas(shardrec_collection *collection);

/* shardrec_collection_sync_replicas in two halves, between which training goes on. begin copies the rows that are to be
 * averaged; a thread of the library averages the copies with those of the other replicas; wait adds to each row what
 * its copy has gained by that: row + (mean - copy) in float32, rounded to the table's dtype. States that are sums of
 * squares ("sum", "exp_avg_sq") become 0 where they would be less. A number that is still as it was when begin was
 * called becomes the mean, so that with nothing trained in between the two are shardrec_collection_sync_replicas, bit
 * for bit. Otherwise replicas differ after wait: rows that were updated in between count as changed, and are averaged
 * by the next sync; they are equal after a blocking sync only. A row may be longer than MAX_NORM until its next step.
 * Between the two, shardrec_collection_sync_replicas, _sync_begin, _check_replicas, _replica_fill, _write_range,
 * _write_rows and loads of checkpoints are INVALID_STATE, and nothing has changed; all other calls of the collection
 * and its lookups are as ever. wait without begin is INVALID_STATE. Steps and settings are compared by both, as
 * shardrec_collection_sync_replicas does; after DISAGREEMENT from wait the sync is still under way (set what differs and
 * call again).
 * Copies and means take twice the bytes of the rows that are averaged, in the host's memory or on the collection's
 * device, and rows that are fewer than all of a box 8 bytes each in the host's (STAT_BYTES_BUFFERS), which are kept for
 * the next time; where a rank has no room for them, begin is OUT_OF_MEMORY on all ranks, all is as before, and all
 * ranks free what they had. The thread exchanges over a channel of its own. What ends it (a dead peer, the step
 * deadline of an exchange, an abort, memory that runs out) ends this rank's sharding and replica groups and the mesh
 * at once, and wait says what it was. So does destroying the collection between the two. Rows change in wait only,
 * when all ranks of the mesh have all means.
 * On a collection without a mesh, or with one replica, nothing happens in either. With a DEVICE whose rows go by NCCL,
 * begin is UNSUPPORTED on all ranks, and all is as before: its exchanges and those of steps would be under way at once,
 * in orders that ranks do not share.
 * Both are collective over the mesh and take effect in call order; begin blocks until the rows are copied, wait until
 * the means are there on all ranks of the mesh: the step deadline must cover what the exchanges of one rank take longer
 * than those of another. Errors: as shardrec_collection_sync_replicas; begin also UNSUPPORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_sync_begin(shardrec_collection *collection);
SHARDREC_API shardrec_status shardrec_collection_sync_wait(shardrec_collection *collection);

/* Compares the copies of the tables, weights and all optimizer states, by hashes of 64 bits: of a table that is cut the
 * copies of the replicas, of one that the plan replicates those of all ranks. A NaN is equal to any other, 0 is not
 * equal to -0. Copies of cut tables are equal from creation or a load up to the next step, and after
 * shardrec_collection_sync_replicas and shardrec_collection_replica_fill; those of replicated tables, and with REPLICA_SYNC
 * EXACT or SHARDED of all, after each step. States that replicas share (SHARDED) have no copies, and are not compared.
 * Where some differ, all ranks of the mesh get DISAGREEMENT, with the first TABLE that differs, the first of its rows
 * that does (POSITION), and a RANK of the mesh whose row is another one than that of replica 0, or of rank 0 where the
 * table is replicated; the tables are as before, and the mesh lives on. Without a mesh, replicated tables are compared.
 * Each rank reads and hashes all its rows, in one thread (those of a device go through the host). INVALID_STATE: as
 * shardrec_collection_sync_replicas, and between sync_begin and sync_wait. After errors other than a handle's,
 * INVALID_STATE and DISAGREEMENT this rank's groups and the mesh are dead.
 * Collective over the mesh, or without one over the communicator, blocking (setup deadline; until the ranks of its
 * sharding group have called it the step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE,
 * DISAGREEMENT, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_check_replicas(shardrec_collection *collection);

/* Copies one replica to all others, bit for bit: tables with all optimizer states, the number of steps, learning rates
 * and frozen flags. For a sharding group that has joined: make a mesh of the ranks that there are now and a collection
 * on it, and call shardrec_collection_continue_from, which fills those that bring no tables. After a rank was lost its
 * mesh is dead, and rows of the collection before cannot be read: the same call takes them, or load a checkpoint.
 * replica: its number (replica_rank of shardrec_place), the same on all ranks. No row counts as changed afterwards, and
 * gradients that wait for their step (SHARDREC_UPDATE_ACCUMULATE) are dropped on all replicas, and so is a batch
 * between forward and backward, as by shardrec_checkpoint_load. Rows go through the
 * host, at most 4 MiB at a time. States that replicas share (REPLICA_SYNC SHARDED) are of none of them alone, and stay.
 * On a collection without a mesh, or with one replica, 0 is accepted and nothing happens. INVALID_STATE: as shardrec_collection_sync_replicas, and between sync_begin and sync_wait. What all ranks
 * refuse alike (INVALID_ARGUMENT, DISAGREEMENT) leaves all as it was; after errors other than these, INVALID_STATE
 * and a handle's this rank's groups and the mesh are dead: nobody trains on tables that are filled in part.
 * Collective over the mesh, blocking (setup deadline; until the ranks of its sharding group have called it the step
 * deadline): returns when all replicas are filled. Errors: INVALID_HANDLE,
 * CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT (no such replica on some rank), DISAGREEMENT (ranks name different
 * ones), MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_replica_fill(shardrec_collection *collection,
                                                              int32_t replica);

/* Goes on, in a new collection, with the tables that these ranks have trained in an earlier group: those that are left
 * after ranks were lost, or they and others that join them. The survivors make a communicator (and a mesh), and on it a
 * collection of the same model and plan, which is then filled from the memory of the ranks; no file is read.
 * from: this rank's collection on the group before, whose communicator may be dead; NULL: this rank brings none. It is
 * only read, stays as it is, and may be destroyed afterwards; until then both take memory. Other options of the
 * collection (REPLICA_SYNC, DEVICE, SEED ...) may be others than before.
 * A sharding group is whole where all of its ranks bring tables after the same step, sync and write: a rank that ends
 * between the steps of one group leaves the others whole. Where all groups of the new mesh are whole and at one step,
 * each keeps its own rows, and the next sync moves all of them, unless the replicas were equal; its mean is that of the
 * replicas that there are now. Else all groups get, bit for bit, the tables of the whole group with the highest step
 * (the lowest number among equals), as by shardrec_collection_replica_fill. Optimizer states, number of steps, learning
 * rates and frozen flags go along; gradients that wait for their step (SHARDREC_UPDATE_ACCUMULATE) do not.
 * UNSUPPORTED on all ranks: one of the collections has REPLICA_SYNC SHARDED, whose states have no copies.
 * INVALID_STATE: no group is whole, told on all ranks with a RANK that is not; a backward of `from` is under way on a
 * thread of the library; as shardrec_collection_replica_fill. After OUT_OF_MEMORY and DEVICE_ERROR that all ranks get
 * the tables are filled in part, until a load fills them; after errors other than these, a handle's, INVALID_STATE,
 * UNSUPPORTED and INVALID_ARGUMENT this rank's groups are dead.
 * Collective over the mesh, or without one over the communicator, blocking (setup deadline). Errors: INVALID_HANDLE,
 * CLOSED, BUSY (also of from), INVALID_ARGUMENT (from is the collection itself; on all ranks: it has another model,
 * plan or place in its sharding group), UNSUPPORTED, INVALID_STATE, MISMATCH, OUT_OF_MEMORY, DEVICE_ERROR,
 * PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_continue_from(
    shardrec_collection *collection, SHARDREC_NULLABLE shardrec_collection *from);

/* Sets the learning rate of a table, or of SHARDREC_ALL_TABLES, from the next backward on, in place of what
 * their optimizers say; set the same on all ranks before the same step, else that backward is
 * INVALID_BATCH. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT (not finite,
 * negative). Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_set_learning_rate(shardrec_collection *collection,
                                                                   int32_t table,
                                                                   double learning_rate);

/* The learning rate that the next backward uses for a table. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND
 * (table), INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_learning_rate(
    const shardrec_collection *collection, int32_t table, double *out);

/* Freezes a table (1) or trains it again (0): a frozen one is looked up, but backward changes neither
 * its weights nor its states. Its gradients are dropped, not put off: those of a lookup whose
 * backward with ACCUMULATE comes while it is frozen are never applied, also where it is trained again
 * before the next backward; those that were accumulated before are dropped by a backward that comes while
 * it is frozen, and applied by one that comes after it is trained again. Set the same on all ranks before
 * the same step, else that backward is INVALID_BATCH. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND
 * (table), INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_set_frozen(shardrec_collection *collection,
                                                            int32_t table,
                                                            SHARDREC_FLAG int32_t frozen);

/* Whether a table is frozen (1) or trained (0). Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table),
 * INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_frozen(const shardrec_collection *collection,
                                                        int32_t table, SHARDREC_FLAG int32_t *out);

/* Reads rows [row, row + rows) of a table into out, float32, [rows, width], any row stride, unit column
 * stride; weights of 16 bits are widened.
 * Each rank asks for what it wants, which may be no rows (rows = 0, out NULL), and gets whole rows, wherever
 * they live. Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (only this rank;
 * nothing was exchanged: call again), INVALID_STATE (a load, or a step on a device, that failed half-way, or between
 * shardrec_lookup_send_gradients and its backward; nothing was exchanged), NOT_FOUND (table, part),
 * OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_read_range(
    shardrec_collection *collection, int32_t table, shardrec_table_part part, int64_t row,
    int64_t rows, SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *out);

/* Writes rows [row, row + rows) of a table from values, as shardrec_collection_read_range; weights of 16 bits
 * are rounded to nearest. Writing states too is a warm start. Ranges of several
 * ranks may overlap; the highest rank's values stay. Replicas are all written. Collective, blocking.
 * Errors: as shardrec_collection_read_range; INVALID_STATE also between sync_begin and sync_wait. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_write_range(
    shardrec_collection *collection, int32_t table, shardrec_table_part part, int64_t row,
    int64_t rows, SHARDREC_NULLABLE const shardrec_tensor *values);

/* Reads the rows of a table that ids name, in their order, into out, float32, [ids, width], any row
 * stride, unit column stride; as shardrec_collection_read_range otherwise.
 * ids: INT32 or INT64 [n], compact, rows of the table in any order, any of them more than once; NULL
 * or empty: this rank asks for no rows, and out may be NULL. Each rank asks for what it wants, also of
 * another table or part. Ids are checked on the rank that gives them: one that is no row is
 * INVALID_ARGUMENT with its POSITION and VALUE on this rank only; nothing was exchanged and the others
 * wait: call again. Long lists go in blocks, and at most about 64 MiB go through a rank at once.
 * Collective, blocking (the step deadline holds for each block). Errors: as shardrec_collection_read_range.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_read_rows(
    shardrec_collection *collection, int32_t table, shardrec_table_part part,
    SHARDREC_NULLABLE const shardrec_tensor *ids,
    SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *out);

/* Writes the rows of a table that ids name from values, float32, [ids, width]; ids and values as in
 * shardrec_collection_read_rows, values rounded as shardrec_collection_write_range does. Where a row is
 * written more than once, the last entry of the highest rank stays. Replicas are all written.
 * After an error that ends the communicator, some of the rows may have been written. Collective,
 * blocking (the step deadline holds for each block). Errors: as shardrec_collection_write_range. Since 0.1. */
SHARDREC_API shardrec_status shardrec_collection_write_rows(
    shardrec_collection *collection, int32_t table, shardrec_table_part part,
    SHARDREC_NULLABLE const shardrec_tensor *ids, SHARDREC_NULLABLE const shardrec_tensor *values);

/* Makes a mark: rows of this rank's boxes that change from now on are noted for it, until it is released. Changed
 * are rows that a step updates, a write writes or a sync of replicas averages; after the begin of a load all rows are.
 * A row that has not changed since the mark is not noted; one that is noted may have its old values. With REPLICA_SYNC
 * SHARDED a write of a state is noted on the rank that has it. At most 8 marks of
 * a collection are there at once; each reader has its own. A mark takes a bit per row of this rank's boxes (counted by
 * SHARDREC_STAT_BYTES_BUFFERS), all of them together one more in the device's memory, or the host's, where steps set
 * it. Who reads changes again and again makes the next mark, reads the rows since the one before, and releases that.
 * out_mark: its number; numbers are not used again. Not collective: each rank has its own marks. Waits for the
 * operations of the device. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE (there are 8; between
 * backward_begin and backward_wait), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_mark(shardrec_collection *collection,
                                                      int64_t *out_mark);

/* Lists the rows of a table that this rank's boxes have and that have changed since a mark, from row `row` of the table
 * on: their numbers, ascending, each once however many boxes have it. Of a table that is replicated each rank has all
 * rows. rows: INT64 [n], compact, on the CPU: the first ones are written, as many as there is room for; where it is full
 * there may be more behind the last one. NULL: they are only counted. out_count: how many were written, or counted.
 * Not collective. Waits for the operations of the device. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (mark, table),
 * INVALID_ARGUMENT (row beyond the table, rows), INVALID_STATE (between backward_begin and backward_wait),
 * OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_changed_rows(
    shardrec_collection *collection, int64_t mark, int32_t table, int64_t row,
    SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *rows, int64_t *out_count);

/* Releases a mark, and its memory; the bits that all marks share stay until the collection is destroyed.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_release_mark(shardrec_collection *collection,
                                                              int64_t mark);

/* A count, a time or a ratio. table: of SHARDREC_STAT_TABLE_... a table's index or SHARDREC_ALL_TABLES (their
 * sum); of all others SHARDREC_ALL_TABLES. out: counts are exact up to 2^53. Errors: INVALID_HANDLE,
 * CLOSED, NOT_FOUND (table), INVALID_ARGUMENT. Any thread. Since 0.2. */
SHARDREC_API shardrec_status shardrec_collection_stat(const shardrec_collection *collection,
                                                      shardrec_stat stat, int32_t table,
                                                      double *out);

#ifdef __cplusplus
}
#endif
#endif
