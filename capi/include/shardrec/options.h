/* Options: settings of a create call, as a handle with typed setters.
 *
 * One handle type serves all nouns: a kind, given at creation, says which keys it takes, so that a
 * new setting is a new enumerator, not a new symbol. Every create call takes
 * `const shardrec_options *`; NULL means the defaults. An options handle is read during the call it
 * is passed to and may be changed or destroyed afterwards.
 * Thread rule: one thread at a time per handle, else BUSY; reading it in create calls counts too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_OPTIONS_H
#define SHARDREC_OPTIONS_H

#include "shardrec/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_options shardrec_options;

typedef enum shardrec_options_kind {
  SHARDREC_OPTIONS_OPTIMIZER = 1,   /* keys 100-199; for shardrec_model_set_optimizer,
                                       shardrec_ddp_set_optimizer and shardrec_fsdp_set_optimizer */
  SHARDREC_OPTIONS_TABLE = 2,       /* keys 200-299 */
  SHARDREC_OPTIONS_PLAN = 3,        /* keys 300-399 */
  SHARDREC_OPTIONS_COLLECTION = 4,  /* keys 400-499 */
  SHARDREC_OPTIONS_LOOKUP = 5,      /* keys 500-599 */
  SHARDREC_OPTIONS_DDP = 6,         /* keys 600-699 */
  SHARDREC_OPTIONS_MLP = 7,         /* keys 700-799, and 100-199 for its optimizer */
  SHARDREC_OPTIONS_MESH = 8,        /* keys 800-899 */
  SHARDREC_OPTIONS_COMM = 9,        /* keys 900-999 */
  SHARDREC_OPTIONS_RENDEZVOUS = 10, /* keys 1000-1099 */
  SHARDREC_OPTIONS_CHECKPOINT = 11, /* keys 1100-1199 */
  SHARDREC_OPTIONS_SCORER = 12,     /* keys 1200-1299 */
  SHARDREC_OPTIONS_METRICS = 13,    /* DEVICE, DEVICE_WAIT and STREAM */
  SHARDREC_OPTIONS_FSDP = 14,       /* keys 1300-1399, DDP_AVERAGE, DDP_FACTOR, THREADS, NON_FINITE,
                                       DEVICE, DEVICE_WAIT and STREAM */
  SHARDREC_OPTIONS_KIND_FORCE_32 = 0x7fffffff
} shardrec_options_kind;

/* Formulas: of tables shardrec_model_set_optimizer, of layers and of parameters that a shardrec_ddp
 * steps shardrec_mlp_create. Used elsewhere than said here: UNSUPPORTED. */
typedef enum shardrec_optimizer {
  SHARDREC_OPTIMIZER_SGD = 1,                  /* tables, layers and DDP */
  SHARDREC_OPTIMIZER_ADAGRAD = 2,              /* tables, layers and DDP */
  SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD = 3,      /* tables */
  SHARDREC_OPTIMIZER_ADAM = 4,                 /* tables, layers and DDP */
  SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM = 5, /* tables */
  SHARDREC_OPTIMIZER_LAMB = 6,                 /* tables, layers and DDP */
  SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB = 7, /* tables */
  SHARDREC_OPTIMIZER_LARS_SGD = 8,             /* tables */
  SHARDREC_OPTIMIZER_MOMENTUM_SGD = 9,         /* layers and DDP */
  SHARDREC_OPTIMIZER_FORCE_32 = 0x7fffffff
} shardrec_optimizer;

typedef enum shardrec_weight_decay {
  SHARDREC_WEIGHT_DECAY_NONE = 0,
  SHARDREC_WEIGHT_DECAY_L2 = 1,       /* as part of the gradient */
  SHARDREC_WEIGHT_DECAY_DECOUPLE = 2, /* w *= 1 - learning rate * decay, touched rows only */
  SHARDREC_WEIGHT_DECAY_FORCE_32 = 0x7fffffff
} shardrec_weight_decay;

/* Over which columns what an optimizer keeps or computes once per row (row-wise states, the norms of
 * LAMB, LARS and MAX_NORM) is taken where a table is cut by columns. */
typedef enum shardrec_row_statistics {
  SHARDREC_ROW_STATISTICS_ROW = 0,   /* over the whole row, the same under every plan */
  SHARDREC_ROW_STATISTICS_SHARD = 1, /* over the columns of each box, as TorchRec does */
  SHARDREC_ROW_STATISTICS_FORCE_32 = 0x7fffffff
} shardrec_row_statistics;

typedef enum shardrec_init {
  SHARDREC_INIT_UNIFORM = 0, /* uniform in [INIT_MIN, INIT_MAX); default +-sqrt(1 / rows) */
  SHARDREC_INIT_ZEROS = 1,   /* touches no page of memory */
  SHARDREC_INIT_FORCE_32 = 0x7fffffff
} shardrec_init;

/* What becomes of an id outside [0, rows) of its table; the same under every plan. */
typedef enum shardrec_out_of_range {
  SHARDREC_OUT_OF_RANGE_ERROR = 0, /* the batch is refused on all ranks: INVALID_BATCH */
  SHARDREC_OUT_OF_RANGE_DROP = 1, /* as if the id were not in its bag (MEAN divides by the ids that stay);
                                      in a sequence its row is 0 and its gradient goes nowhere */
  SHARDREC_OUT_OF_RANGE_CLAMP = 2, /* row 0 is used in its place */
  SHARDREC_OUT_OF_RANGE_FORCE_32 = 0x7fffffff
} shardrec_out_of_range;

/* How the weights of a 16-bit table are rounded after an update. */
typedef enum shardrec_rounding {
  SHARDREC_ROUNDING_NEAREST = 0,    /* to the nearest, ties to even */
  SHARDREC_ROUNDING_STOCHASTIC = 1, /* up or down with a probability that makes the mean right: random
                                       bits of Philox4x32-10, from (seed, step, table, row, column)
                                       only, so the same under every plan */
  SHARDREC_ROUNDING_FORCE_32 = 0x7fffffff
} shardrec_rounding;

/* The named ways of cutting and placing tables; see plan.h for the exact cuts. */
typedef enum shardrec_sharding {
  SHARDREC_SHARDING_AUTO = 0, /* balanced by size */
  SHARDREC_SHARDING_TABLE_WISE = 1,
  SHARDREC_SHARDING_ROW_WISE = 2,
  SHARDREC_SHARDING_COLUMN_WISE = 3,
  SHARDREC_SHARDING_TABLE_ROW_WISE = 4,
  SHARDREC_SHARDING_TABLE_COLUMN_WISE = 5,
  SHARDREC_SHARDING_GRID = 6,
  SHARDREC_SHARDING_DATA_PARALLEL = 7,
  SHARDREC_SHARDING_MIXED = 8, /* table i takes kind 1 + i mod 7 */
  SHARDREC_SHARDING_FORCE_32 = 0x7fffffff
} shardrec_sharding;

/* How the ranks of a replicated (data-parallel) table learn of each other's gradients. */
typedef enum shardrec_replication {
  SHARDREC_REPLICATION_AUTO = 0, /* what sends least, by BATCH_SIZE and BAG_LENGTH; SAMPLES without */
  SHARDREC_REPLICATION_SAMPLES = 1, /* every rank receives all ids and output gradients: the bits of
                                       one rank */
  SHARDREC_REPLICATION_ROWS = 2, /* sums of touched rows, as a list: replicas equal bit for bit, one
                                     rank's result up to rounding; at most 2^32 rows per rank */
  SHARDREC_REPLICATION_DENSE = 3, /* the same with a bit per row in place of the list */
  SHARDREC_REPLICATION_FORCE_32 = 0x7fffffff
} shardrec_replication;

/* What a plan spreads evenly over the ranks. */
typedef enum shardrec_balance {
  SHARDREC_BALANCE_BYTES = 0, /* the bytes of weights */
  SHARDREC_BALANCE_TIME = 1, /* the time that lookups and updates are expected to keep the memory of a
                                rank busy: features of the table x BAG_LENGTH x what a row moves, at the
                                rates of the planning machine's profile (probe.h), or of bytes without
                                one: machines may plan differently, so ranks that must agree use
                                shardrec_plan_collective, where rank 0 plans. Neither exchanges nor the
                                memory that a rank has count */
  SHARDREC_BALANCE_FORCE_32 = 0x7fffffff
} shardrec_balance;

/* What output gradients are divided by first. On a mesh, ranks and batch are those of the sharding group;
 * of replicated tables, of all groups, and CUSTOM counts once for each. */
typedef enum shardrec_divisor {
  SHARDREC_DIVISOR_RANKS = 0,   /* the number of ranks: each rank's loss is a mean over its batch */
  SHARDREC_DIVISOR_NONE = 1,    /* 1: the loss is already a mean over the global batch, or a sum */
  SHARDREC_DIVISOR_CUSTOM = 2,  /* GRADIENT_DIVISOR_VALUE */
  SHARDREC_DIVISOR_SAMPLES = 3, /* global batch / own batch: each sample weighs the same */
  SHARDREC_DIVISOR_FORCE_32 = 0x7fffffff
} shardrec_divisor;

/* How numbers travel between ranks. All are rounded so, also what a rank sends to itself and what
 * replicated tables give: the numbers depend on this choice, not on the engine or on who owns a box.
 * With FLOAT16 and BFLOAT16 they keep the promises of collection.h about plans; with INT8 those hold
 * among plans that cut columns alike, for a row of a box has one scale. What a bag's sum in a row box
 * loses is within the bound below; what rounding takes away is not added to a later message. */
typedef enum shardrec_compression {
  SHARDREC_COMPRESSION_NONE = 0,     /* float32, 4 bytes */
  SHARDREC_COMPRESSION_FLOAT16 = 1,  /* 2 bytes, to nearest even: |error| <= max(2^-11 |x|, 2^-25);
                                       a finite |x| >= 65520 becomes 65504 with its sign and is counted
                                       (SHARDREC_STAT_SATURATED, "saturated" of
                                       shardrec_ddp_statistics_json); NaN and infinities stay */
  SHARDREC_COMPRESSION_BFLOAT16 = 2, /* 2 bytes, to nearest even: |error| <= max(2^-8 |x|, 2^-134) */
  SHARDREC_COMPRESSION_INT8 = 3, /* 1 byte, and a scale and an offset in float32 per row of a box
                                    (FBGEMM's row-wise 8 bits, TorchRec's quantized communication, but
                                    without the 1e-8 that FBGEMM adds to the range): with range = most
                                    - least of the row, q = round((x - least) 255 / range), to nearest
                                    even, comes back as q range / 255 + least: |error| <= range / 510
                                    (1 + 2^-12) + 2^-23 max |x|. A range below 2^-100 counts as 0: all
                                    of the row is its least. A row that holds a NaN or an infinity, or
                                    whose range is no finite float32, comes back as NaN */
  SHARDREC_COMPRESSION_FORCE_32 = 0x7fffffff
} shardrec_compression;

/* What becomes of a NaN or an infinity in the gradients and weights that the host gives
 * (NON_FINITE). */
typedef enum shardrec_non_finite {
  SHARDREC_NON_FINITE_ALLOW = 0, /* nobody looks; they go into rows, values and outputs */
  SHARDREC_NON_FINITE_ERROR = 1, /* the call is refused with the place; no table or parameter changes */
  SHARDREC_NON_FINITE_SKIP = 2, /* no rank applies the step; calls return OK, and it is counted */
  SHARDREC_NON_FINITE_FORCE_32 = 0x7fffffff
} shardrec_non_finite;

/* How a thread waits for what a CUDA device computes (DEVICE_WAIT). */
typedef enum shardrec_device_wait {
  SHARDREC_DEVICE_WAIT_SLEEP = 0, /* until the driver wakes it; the processor does other work */
  SHARDREC_DEVICE_WAIT_SPIN = 1, /* it keeps asking, which takes a processor, and goes on earlier */
  SHARDREC_DEVICE_WAIT_FORCE_32 = 0x7fffffff
} shardrec_device_wait;

/* How the replicas of a collection on a mesh are kept equal: which rows syncs move between them, or by what all of
 * them are trained (REPLICA_SYNC; mesh.h). */
typedef enum shardrec_replica_sync {
  SHARDREC_REPLICA_SYNC_FULL = 0,    /* all rows of all tables */
  SHARDREC_REPLICA_SYNC_TOUCHED = 1, /* those that any replica has changed since the last sync */
  SHARDREC_REPLICA_SYNC_EXACT = 2, /* none: ids and gradients of all ranks train each replica. Since 0.2 */
  SHARDREC_REPLICA_SYNC_SHARDED = 3, /* as EXACT, but each of R replicas has the optimizer states of 1 / R of the
                                        rows, and sends their new weights to the others. Since 0.2 */
  SHARDREC_REPLICA_SYNC_FORCE_32 = 0x7fffffff
} shardrec_replica_sync;

/* In what number format a stack of layers multiplies matrices (PRECISION); layers.h has the arithmetic. */
typedef enum shardrec_precision {
  SHARDREC_PRECISION_FLOAT32 = 0,
  SHARDREC_PRECISION_TFLOAT32 = 1, /* factors are rounded to 10 bits of mantissa */
  SHARDREC_PRECISION_BFLOAT16 = 2, /* what lies between layers, too, is in bfloat16; parameters stay
                                      float32 */
  SHARDREC_PRECISION_FLOAT16 = 3,  /* the same in float16, with gradients scaled between layers
                                     (LOSS_SCALE) */
  SHARDREC_PRECISION_FORCE_32 = 0x7fffffff
} shardrec_precision;

/* What becomes of DDP parameters that are not marked ready when a step with sync ends. */
typedef enum shardrec_unused {
  SHARDREC_UNUSED_ERROR = 0, /* shardrec_ddp_wait is INVALID_STATE on all ranks and names one */
  SHARDREC_UNUSED_MARK = 1, /* they count as unused: this rank gives zeros, and a gradient that no rank
                               used stays as it is, as PyTorch's find_unused_parameters has it; a bit
                               per parameter travels with each bucket */
  SHARDREC_UNUSED_ZERO = 2, /* this rank gives zeros; a gradient that no rank used becomes zero */
  SHARDREC_UNUSED_FORCE_32 = 0x7fffffff
} shardrec_unused;

/* In which order DDP expects parameters to become ready. */
typedef enum shardrec_ddp_order {
  SHARDREC_DDP_ORDER_REVERSE = 0, /* the last one added first, as backward goes */
  SHARDREC_DDP_ORDER_RECORDED = 1, /* reversed in the first step with sync, then as they became ready in
                                      it on rank 0 */
  SHARDREC_DDP_ORDER_FORCE_32 = 0x7fffffff
} shardrec_ddp_order;

/* By what DDP adds up the gradients of the ranks. */
typedef enum shardrec_ddp_reduction {
  SHARDREC_DDP_REDUCTION_ORDERED = 0, /* in the order of ranks: the same bits whatever carries messages, on
                                         CPUs and devices */
  SHARDREC_DDP_REDUCTION_NCCL = 1, /* by NCCL's all-reduce of each bucket, between devices: the same bits
                                      on all ranks, but they may change with the number and the places of
                                      ranks and with NCCL's version */
  SHARDREC_DDP_REDUCTION_FORCE_32 = 0x7fffffff
} shardrec_ddp_reduction;

/* What DDP averages are divided by when some ranks have joined (shardrec_ddp_join). */
typedef enum shardrec_join_divisor {
  SHARDREC_JOIN_DIVISOR_WORLD = 0, /* all ranks */
  SHARDREC_JOIN_DIVISOR_LIVE = 1,  /* those that have not joined */
  SHARDREC_JOIN_DIVISOR_FORCE_32 = 0x7fffffff
} shardrec_join_divisor;

/* Which ranks have what of the parameters of an FSDP set (fsdp.h). */
typedef enum shardrec_fsdp_strategy {
  SHARDREC_FSDP_FULL_SHARD = 0, /* shards over all ranks, gathered for forward and for backward */
  SHARDREC_FSDP_SHARD_GRAD_OP = 1, /* the same, but what was gathered stays until gradients are ready */
  SHARDREC_FSDP_HYBRID_SHARD = 2, /* shards over the sharding groups of a mesh, replicas between them */
  SHARDREC_FSDP_NO_SHARD = 3,     /* each rank has all */
  SHARDREC_FSDP_STRATEGY_FORCE_32 = 0x7fffffff
} shardrec_fsdp_strategy;

/* Which ranks of a mesh are neighbours. */
typedef enum shardrec_placement {
  SHARDREC_PLACEMENT_INTRA_NODE_SYNC = 0, /* those of a replica group: averaging stays in the node */
  SHARDREC_PLACEMENT_INTRA_NODE_SHARD = 1, /* those of a sharding group: lookups stay in the node */
  SHARDREC_PLACEMENT_FORCE_32 = 0x7fffffff
} shardrec_placement;

/* Where a scorer keeps the weights of tables (scorer.h). */
typedef enum shardrec_served_tables {
  SHARDREC_SERVED_TABLES_MEMORY = 0, /* as the checkpoint has them, read into memory of the process */
  SHARDREC_SERVED_TABLES_MAPPED = 1, /* in the checkpoint's files, mapped: shared between processes */
  SHARDREC_SERVED_TABLES_INT8 = 2, /* in memory, 8 bits per element, a scale and an offset per row */
  SHARDREC_SERVED_TABLES_FORCE_32 = 0x7fffffff
} shardrec_served_tables;

/* Keys. The type, the default and the accepted values stand behind each. */
typedef enum shardrec_option {
  /* Optimizer (kinds OPTIMIZER and MLP). */
  SHARDREC_OPTION_OPTIMIZER = 100,         /* i64, shardrec_optimizer; tables: SGD; layers: SGD */
  SHARDREC_OPTION_LEARNING_RATE = 101,     /* f64, finite, >= 0; default 0.01 */
  SHARDREC_OPTION_EPS = 102,               /* f64, finite, >= 0; default 1e-8 */
  SHARDREC_OPTION_WEIGHT_DECAY = 103,      /* f64, finite, >= 0; default 0 */
  SHARDREC_OPTION_WEIGHT_DECAY_MODE = 104, /* i64, shardrec_weight_decay; default NONE */
  SHARDREC_OPTION_MAX_GRADIENT = 105,   /* f64, > 0 clamps gradients to +-value; 0 (default): off */
  SHARDREC_OPTION_BETA1 = 106,          /* f64 in [0, 1); default 0.9 */
  SHARDREC_OPTION_BETA2 = 107,          /* f64 in [0, 1); default 0.999 */
  SHARDREC_OPTION_ROW_STATISTICS = 108, /* i64, shardrec_row_statistics; default ROW */
  SHARDREC_OPTION_MOMENTUM = 109,       /* f64 in [0, 1); LARS_SGD, MOMENTUM_SGD; default 0.9 */
  SHARDREC_OPTION_ETA = 110,            /* f64, finite, >= 0; LARS; default 0.001; kind OPTIMIZER */
  SHARDREC_OPTION_MAX_NORM = 111, /* f64, > 0: a row that was updated is scaled down to this norm where
                                     it is above; 0 (default): off; kind OPTIMIZER */
  SHARDREC_OPTION_MOMENTUM_SCALE = 112, /* f64 in [1, 65536]; ROWWISE_ADAGRAD on a mesh (model.h); default
                                           1: off; kind OPTIMIZER */
  /* Table. */
  SHARDREC_OPTION_DTYPE = 200,    /* i64, shardrec_dtype: FLOAT32 (default), FLOAT16, BFLOAT16 */
  SHARDREC_OPTION_INIT = 201,     /* i64, shardrec_init; default UNIFORM */
  SHARDREC_OPTION_INIT_MIN = 202, /* f64, finite; default -sqrt(1 / rows) */
  SHARDREC_OPTION_INIT_MAX = 203, /* f64, finite, >= INIT_MIN (checked where it is used);
                                     default sqrt(1 / rows) */
  SHARDREC_OPTION_ROUNDING = 204, /* i64, shardrec_rounding; default NEAREST; STOCHASTIC is for 16-bit
                                     tables */
  SHARDREC_OPTION_OUT_OF_RANGE = 205, /* i64, shardrec_out_of_range; default ERROR */
  SHARDREC_OPTION_ALLOWED_SHARDING = 206, /* i64, a sum of 1 << kind over the kinds of shardrec_sharding,
                                             TABLE_WISE to DATA_PARALLEL, that a plan may use for the
                                             table; as text "row_wise, column_wise"; 0, "all" (default):
                                             all */
  SHARDREC_OPTION_ALLOWED_RANKS = 207, /* text, ranks that may own boxes of the table: "0-3, 7"; those
                                          that a plan does not have are passed over; empty (default):
                                          all. A table that may not be on all ranks is not replicated */
  SHARDREC_OPTION_MIN_COLUMNS = 208, /* i64 in [1, 65536], at most the table's dim: least columns of a
                                        box; default 1. (These three: see plan.h) */
  /* Plan. */
  SHARDREC_OPTION_SHARDING = 300,    /* i64, shardrec_sharding; default AUTO */
  SHARDREC_OPTION_REPLICATION = 301, /* i64, shardrec_replication, of all replicated tables; default
                                        AUTO */
  SHARDREC_OPTION_BATCH_SIZE = 302, /* i64, >= 0: samples per rank and step that the plan may expect;
                                        0 (default): unknown */
  SHARDREC_OPTION_BAG_LENGTH = 303, /* f64, finite, >= 0: ids per bag that it may expect; default 1 */
  SHARDREC_OPTION_BALANCE = 304,    /* i64, shardrec_balance; default BYTES */
  /* Collection. */
  SHARDREC_OPTION_SEED = 400,             /* i64; default 0; kinds COLLECTION and MLP */
  SHARDREC_OPTION_THREADS = 401,          /* i64 in [1, 1024]; default: this rank's part of the
                                             processors that it shares with the other ranks of its
                                             communicator on this machine, in this process and in
                                             others: each processor of its affinity mask divided by
                                             the ranks that may run on it, cgroup quotas of
                                             processor time likewise; rounded down, at least 1. Of
                                             an MLP, which has no communicator: the same part, of
                                             the communicators that live in this process when it is
                                             made; without one, all processors that the process may
                                             use. Of DDP and FSDP: of the optimizer. Kinds
                                             COLLECTION, MLP, DDP and FSDP */
  SHARDREC_OPTION_GRADIENT_DIVISOR = 402, /* i64, shardrec_divisor; default RANKS */
  SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE = 403, /* f64, finite, > 0; for CUSTOM; default 1 */
  SHARDREC_OPTION_LOOKUPS = 404,      /* i64 in [1, 8]; lookups alive at once; default 2 */
  SHARDREC_OPTION_OUTPUT_DTYPE = 405, /* i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16; of
                                         outputs and their gradients. Sums are taken in float32 and
                                         rounded once, to nearest even */
  SHARDREC_OPTION_DEDUPLICATE = 406, /* i64, 0 or 1; 1: an id that a batch repeats travels once where
                                        that takes fewer bytes, with the same results; default: 1
                                        where ranks live in several processes, else 0 */
  SHARDREC_OPTION_FORWARD_COMPRESSION = 407, /* i64, shardrec_compression, of the output exchange: sums
                                                per bag and box, before they are added up and divided
                                                by MEAN; rows of sequences. Default NONE, which costs
                                                no time; any other does where ranks share a
                                                machine; the same on all ranks */
  SHARDREC_OPTION_BACKWARD_COMPRESSION = 408, /* i64, shardrec_compression, of the gradient exchange:
                                                 gradients per bag and box, or id of a sequence, after
                                                 divisor (one that is a power of two may follow later),
                                                 clamp and MEAN. Sums that ranks exchange beside them
                                                 (replicas by rows or bits, row statistics, gradients
                                                 of weights) stay float32. Default NONE; the same on
                                                 all ranks */
  SHARDREC_OPTION_HIERARCHICAL = 409, /* i64, 0 or 1; 1: where several ranks of a node (of the plan's
                                         topology) hold rows of a table, what they have of a bag of
                                         another node's rank is added up on their node, and one sum
                                         crosses instead of one per rank; the same bits, one exchange more. 1 is
                                         UNSUPPORTED with FORWARD_COMPRESSION, and on a mesh with replicated tables,
                                         where it is 0 by default. Default elsewhere: 1 where ranks live in several
                                         processes and no exchange is compressed, else 0; the same on all ranks */
  SHARDREC_OPTION_DEVICE = 410, /* i64 in [-1, 1023]; -1 (default): tables are in the host's memory, and the
                                   CPU works on them; n: the CUDA device that this process knows by
                                   the number n, by the CUDA plug-in (UNSUPPORTED where it is not
                                   installed, INVALID_ARGUMENT where there is no such device,
                                   DEVICE_ERROR where it fails). Bits do not depend on it. Tensors may
                                   then be on that device, in the order of a stream of the caller
                                   (lookup.h), or on the CPU. The CPU on all ranks, or on none. Of kind MLP
                                   the parameters of a stack, see layers.h; of kind FSDP full parameters and
                                   full gradients, with FSDP_OFFLOAD, see fsdp.h */
  SHARDREC_OPTION_NON_FINITE = 411, /* i64, shardrec_non_finite; default ALLOW, which costs no time; the
                                       same on all ranks. Kinds COLLECTION, DDP, FSDP and SCORER. Since 0.2.
                                       COLLECTION: of weights of ids (begin) and output gradients
                                       (set_gradient): ERROR is INVALID_BATCH on all ranks, in forward
                                       or backward, with RANK, FEATURE, TABLE and POSITION; SKIP is as
                                       SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one
                                       sharding group does not apply is applied by none. backward then waits for all groups,
                                       so all must call it equally often. For gradients on a DEVICE the call that sends them
                                       (backward, backward_begin or send_gradients) waits until it has looked through them.
                                       DDP: of reduced gradients, see shardrec_ddp_wait; not with DDP_STEP_IN_BACKWARD.
                                       FSDP: the same, see shardrec_fsdp_wait. SCORER:
                                       ALLOW and ERROR, of ids' weights (INVALID_BATCH) and dense inputs (INVALID_ARGUMENT) */
  SHARDREC_OPTION_DEVICE_WAIT = 412, /* i64, shardrec_device_wait: how the host waits in a step for what
                                        it must know of a DEVICE that is not the CPU, and for memory
                                        that the device reads; default SLEEP. Of no bit. Waits for all
                                        that a device has to do (shardrec_collection_wait_device) are
                                        as the program's cudaSetDeviceFlags() says. Since 0.2 */
  SHARDREC_OPTION_REPLICA_SYNC = 413, /* i64, shardrec_replica_sync: which rows
                                         shardrec_collection_sync_replicas and
                                         shardrec_collection_sync_begin move. Default TOUCHED, for
                                         which a bit per row is kept where a mesh has several
                                         replicas. EXACT and SHARDED move none there;
                                         the same on all ranks. Since 0.2 */
  SHARDREC_OPTION_SYNC_EVERY = 414, /* i64, >= 0: on a mesh, so many updates after each other end with a sync
                                       of the replicas, as shardrec_collection_sync_replicas is; see
                                       shardrec_collection_create. Default 0: none comes of itself; with
                                       REPLICA_SYNC EXACT and SHARDED others are INVALID_ARGUMENT; the same on all
                                       ranks. Since 0.2 */
  /* Lookup. */
  SHARDREC_OPTION_BORROW = 500, /* i64, 0 or 1; 1: ids, weights and gradients are read in place and must
                                   stay until backward has returned; default 0 */
  SHARDREC_OPTION_WEIGHT_GRADIENT = 501, /* i64, 0 or 1; 1: backward computes the gradients of the ids'
                                            weights; the same on all ranks; default 0 */
  /* DDP. */
  SHARDREC_OPTION_DDP_AVERAGE = 600, /* i64, 0: gradients are summed, 1 (default): averaged; kinds DDP and
                                        FSDP */
  SHARDREC_OPTION_DDP_BROADCAST = 601, /* i64, 1 (default): commit copies rank 0's parameters to all */
  SHARDREC_OPTION_DDP_FACTOR = 602, /* f64, finite; the sum or average is multiplied by it; default 1;
                                       kinds DDP and FSDP */
  SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES = 603, /* i64, >= 1: the first bucket of each dtype is full from
                                                   so many bytes of gradients on; default 2^20 */
  SHARDREC_OPTION_DDP_BUCKET_BYTES = 604,       /* i64, >= 1: likewise the others; default 2^22 */
  SHARDREC_OPTION_DDP_ORDER = 605,              /* i64, shardrec_ddp_order; default REVERSE */
  SHARDREC_OPTION_DDP_UNUSED = 606,             /* i64, shardrec_unused; default ERROR */
  SHARDREC_OPTION_DDP_COMPRESSION = 607, /* i64, shardrec_compression, of FLOAT32 gradients on their way:
                                            NONE (default), FLOAT16 or BFLOAT16. Each rank's gradients
                                            are rounded, then added up in float32; where a bucket is
                                            added up in parts (more than two ranks, more than 256 KiB
                                            from a rank to all others together), the result, averaged,
                                            is rounded once more. With FLOAT16, where sums or DDP_FACTOR
                                            could exceed its range, that result is divided by a power
                                            of two before it is rounded and multiplied by it behind:
                                            sums of finite halves are finite. Gradients of other dtypes
                                            travel as they are */
  SHARDREC_OPTION_DDP_JOIN_DIVISOR = 608,     /* i64, shardrec_join_divisor; default WORLD */
  SHARDREC_OPTION_DDP_STEP_IN_BACKWARD = 609, /* i64, 0 or 1; 1: each bucket's parameters are stepped as
                                                 soon as their gradients are reduced; needs
                                                 shardrec_ddp_set_optimizer; a step that fails may have
                                                 changed some parameters; default 0 */
  SHARDREC_OPTION_DDP_THREAD = 610, /* i64, 0 or 1; 1: a thread of the library sends, adds up and writes
                                       buckets during backward; 0: shardrec_ddp_end sends all of them,
                                       shardrec_ddp_wait does the rest. The same bits; ranks may differ.
                                       Default: 1 where this rank's part of the processors (see
                                       THREADS) is more than one, because a thread that takes the
                                       processor from backward hides no time */
  SHARDREC_OPTION_DDP_REDUCTION = 611, /* i64, shardrec_ddp_reduction; default ORDERED. With NCCL, ranks add
                                          up in the dtype of the way, FLOAT32 gradients in that of
                                          DDP_COMPRESSION; then each rank averages in FLOAT32 (FLOAT64
                                          where gradients are) and rounds to the gradient's dtype. Numbers
                                          that are added up in FLOAT16 are divided before, when they have
                                          been rounded, by the least power of two that is not below the
                                          number of ranks, and multiplied by it behind, so that sums stay
                                          in range; those below 2^-14 times that power lose bits. commit
                                          says UNSUPPORTED where parameters are on the CPU, or where
                                          several ranks have no NCCL between their devices (ENGINE_NCCL,
                                          COMM_NCCL). Since 0.2 */
  /* Layers. */
  SHARDREC_OPTION_ACCUMULATE_GRADIENTS = 700, /* i64, 0 or 1; 1: shardrec_mlp_backward adds to the
                                                 gradients of the parameters; default 0 */
  SHARDREC_OPTION_STREAM = 701, /* i64, the value of a cudaStream_t of the DEVICE, which lives as long as the
                                   handle and is not being captured: what a stack, an interaction, a
                                   metric, a DDP set or an FSDP set on a device does takes place in its
                                   order; default 0, the legacy default stream. Memory that it works on is
                                   given back behind that. Not looked at on the CPU. Kinds MLP, METRICS,
                                   DDP and FSDP. Since 0.2 */
  SHARDREC_OPTION_PRECISION = 702, /* i64, shardrec_precision; default FLOAT32. Since 0.2 */
  SHARDREC_OPTION_LOSS_SCALE = 703, /* f64, a power of two in [1, 2^24]: what gradients between layers are
                                       multiplied by at first; default 65536. Not looked at but with
                                       PRECISION FLOAT16. Since 0.2 */
  SHARDREC_OPTION_LOSS_SCALE_STEPS = 704, /* i64, >= 0: the scale is doubled after so many backwards in a row
                                             whose gradients are finite; 0: it is constant; default
                                             2000. Not looked at but with PRECISION FLOAT16. Since
                                             0.2 */
  /* Mesh. */
  SHARDREC_OPTION_PLACEMENT = 800, /* i64, shardrec_placement; default INTRA_NODE_SYNC */
  /* Communicator. */
  SHARDREC_OPTION_ENGINE = 900, /* i64, shardrec_engine; default: as the environment says; for
                                   shardrec_comm_create_from_env */
  SHARDREC_OPTION_COMM_SETUP_SECONDS = 901, /* f64, > 0: to meet in; default 1800 */
  SHARDREC_OPTION_INTERFACE = 902, /* text, name of a network interface ("eth1") or an address of this
                                      machine, for the connections of this rank over Gloo. Any other
                                      than loopback needs ALLOW_PLAIN_TCP, here or of a rendezvous
                                      that is reached over the network. Empty (default): the
                                      interface that reaches the rendezvous */
  SHARDREC_OPTION_RANK_ZERO_SECONDS = 903, /* f64, > 0: how much later than this rank rank 0 may come,
                                              for shardrec_comm_create_from_env: where its address
                                              is known and its machine answers, but nobody listens
                                              there for so long, rank 0 is lost (PEER_FAILED);
                                              default 60 */
  /* Rendezvous. */
  SHARDREC_OPTION_ADDRESS = 1000, /* text, a name or an address of this machine to listen at; default
                                     127.0.0.1. Any other than loopback needs SECRET and
                                     ALLOW_PLAIN_TCP (checked where it is used) */
  SHARDREC_OPTION_PORT = 1001,    /* i64 in [0, 65535]; 0 (default): a free one */
  SHARDREC_OPTION_ADVERTISED_ADDRESS = 1002, /* text, under which ranks find it; empty (default): as
                                                ADDRESS */
  SHARDREC_OPTION_JOB = 1003,    /* text, name of the group: 1 to 64 letters, digits and -._~; empty
                                 (default): a random one */
  SHARDREC_OPTION_SECRET = 1004, /* text, 16 to 128 letters, digits and -._~; empty (default): a random
                                    one of 128 bits */
  SHARDREC_OPTION_ALLOW_PLAIN_TCP = 1005, /* i64, 0 or 1; 1: other machines may take part, and what ranks
                                             send each other is clear text on the network; default 0;
                                             kinds RENDEZVOUS and COMM */
  SHARDREC_OPTION_SILENCE_SECONDS = 1006, /* f64 in [0.1, 3600]: a rank that is silent for so long, or
                                             that a rank's connection does not reach, is lost to the
                                             others; default 4 */
  /* Checkpoint. */
  SHARDREC_OPTION_KEEP_LAST = 1100, /* i64, >= 0: checkpoints of the run that stay after a commit, the
                                       new one included; 0 (default): all. What a delta that stays is a
                                       change of stays, too: up to MOST_DELTAS more */
  SHARDREC_OPTION_MOST_DELTAS = 1101, /* i64 in [0, 1000]: deltas that follow a whole checkpoint before
                                         shardrec_checkpoint_commit_delta writes a whole one again, which
                                         those that stay (KEEP_LAST) no longer need; default 100. A
                                         load and the opening of a scorer read as many, an open and a
                                         commit their manifests.
                                         Since 0.2 */
  SHARDREC_OPTION_DELTA_STATES = 1102, /* i64, 0 or 1; 0: shardrec_checkpoint_commit_delta and _delta_begin
                                          leave the states of tables' optimizers out of deltas, for
                                          scorers; whole checkpoints have them. The same on all ranks;
                                          default 1. Since 0.2 */
  /* Scorer. */
  SHARDREC_OPTION_SERVED_TABLES = 1200,     /* i64, shardrec_served_tables; default MEMORY */
  SHARDREC_OPTION_SERVED_COLLECTION = 1201, /* text, name of a collection in the checkpoint; empty
                                               (default): the only one, else that of the name "" */
  SHARDREC_OPTION_BOTTOM_LAYERS = 1202, /* text, name of the stack of layers of the dense input; empty
                                           (default): "bottom", where the checkpoint has it and it
                                           fits, else there is no dense half */
  SHARDREC_OPTION_TOP_LAYERS = 1203, /* text, likewise of the stack behind the interaction; "top" */
  SHARDREC_OPTION_LOGITS = 1204,     /* i64, 0 or 1; 1: scores are what the top stack gives, without
                                        the sigmoid; default 0 */
  /* FSDP. The same on all ranks. */
  SHARDREC_OPTION_FSDP_STRATEGY = 1300, /* i64, shardrec_fsdp_strategy; default FULL_SHARD. Since 0.2 */
  SHARDREC_OPTION_FSDP_PREFETCH = 1301, /* i64 in [0, 4]: units that are gathered before the host asks for
                                           them; each takes one more buffer of full parameters; default
                                           1. 0 also leaves one buffer of full gradients of two.
                                           Since 0.2 */
  SHARDREC_OPTION_FSDP_HELD_UNITS = 1302, /* i64 in [1, 64]: units that the host holds unsharded at once;
                                             default 1. Not looked at with SHARD_GRAD_OP. Since 0.2 */
  SHARDREC_OPTION_FSDP_PARAMETER_DTYPE = 1303, /* i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or
                                                  BFLOAT16, of full parameters and full gradients, and
                                                  of parameters on their way. Shards are FLOAT32;
                                                  rounded to nearest. Since 0.2 */
  SHARDREC_OPTION_FSDP_REDUCE_DTYPE = 1304,    /* i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or
                                               BFLOAT16, of gradients on their way to the rank that
                                               adds them up in FLOAT32; sums of sharding groups go to
                                               their replicas as FLOAT32. Finite gradients beyond
                                               float16's range become +-65504. Since 0.2 */
  SHARDREC_OPTION_FSDP_OFFLOAD = 1305, /* i64, 0 or 1; 1: full parameters and full gradients are on the DEVICE, and
                                          shards, their gradients and the optimizer's states in the host's
                                          memory, where the CPU adds up and steps. With a DEVICE, 0 (default) is
                                          UNSUPPORTED; without one, 1 is INVALID_ARGUMENT. Since 0.2 */
  SHARDREC_OPTION_FORCE_32 = 0x7fffffff
} shardrec_option;

/* Makes an options handle with every key at its default.
 * out: owned by the caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_create(shardrec_options_kind kind,
                                                     shardrec_options **out);

/* Destroys the handle and nulls the caller's copy; options or *options may be NULL. Never blocks.
 * Since 0.1. */
SHARDREC_API void shardrec_options_destroy(SHARDREC_NULLABLE shardrec_options **options);

/* Sets a number. Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT when the kind does not take
 * the key, the key is not an integer, or the value is not accepted (the sentence lists what is);
 * UNSUPPORTED for a value of a later release. Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_set_i64(shardrec_options *options,
                                                      shardrec_option key, int64_t value);

/* Sets a real number. Errors: as shardrec_options_set_i64. Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_set_f64(shardrec_options *options,
                                                      shardrec_option key, double value);

/* Sets a value by its text, as a command line or a configuration file has it: decimal numbers
 * in C's notation, whatever the locale, enumerators by their lower-case name without prefix
 * ("rowwise_adagrad", "mixed"). Keys of type text have no other setter.
 * Errors: as shardrec_options_set_i64. Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_set_text(shardrec_options *options,
                                                       shardrec_option key, const char *value);

/* Reads a number, set or default. out: one int64_t.
 * Errors: as shardrec_options_set_i64; NOT_FOUND where the default depends on what the options are
 * used for (THREADS, DEDUPLICATE, DDP_THREAD). Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_get_i64(const shardrec_options *options,
                                                      shardrec_option key, int64_t *out);

/* Reads a real number, set or default. out: one double. Errors: as shardrec_options_get_i64
 * (NOT_FOUND: INIT_MIN, INIT_MAX). Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_get_f64(const shardrec_options *options,
                                                      shardrec_option key, double *out);

/* Reads a value as the text that shardrec_options_set_text takes.
 * out_text: freed by the caller with shardrec_text_free. Errors: as shardrec_options_get_i64,
 * OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_options_get_text(const shardrec_options *options,
                                                       shardrec_option key, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
