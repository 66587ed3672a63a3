// Made by bindings/rust/tools/swigxml2rust.py from bindings/shardrec.i; do not edit.

use core::ffi::{c_char, c_void};

/// major \* 1000 + minor of the API these headers describe. A binding refuses a library whose
/// shardrec_api_version() is lower than the SHARDREC_API_VERSION it was built with.
pub const SHARDREC_API_VERSION: i32 = 2;
/// The C API's `SHARDREC_MAX_DIMENSIONS`.
pub const SHARDREC_MAX_DIMENSIONS: i32 = 8;
/// In place of a table's index: all tables.
pub const SHARDREC_ALL_TABLES: i32 = -1;

/// Values are pinned; new ones are appended inside their family.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_status(pub u32);
/// The C API's `SHARDREC_OK`.
pub const SHARDREC_OK: shardrec_status = shardrec_status(0);
/// a value, shape, dtype or name that is not accepted
pub const SHARDREC_INVALID_ARGUMENT: shardrec_status = shardrec_status(1);
/// NULL, garbage, or a handle of another kind
pub const SHARDREC_INVALID_HANDLE: shardrec_status = shardrec_status(2);
/// the handle was destroyed, or its communicator was closed
pub const SHARDREC_CLOSED: shardrec_status = shardrec_status(3);
/// another thread is inside a call on this handle
pub const SHARDREC_BUSY: shardrec_status = shardrec_status(4);
/// a call out of order, such as backward before forward
pub const SHARDREC_INVALID_STATE: shardrec_status = shardrec_status(5);
/// some rank's batch or gradient was refused; no rank applied it
pub const SHARDREC_INVALID_BATCH: shardrec_status = shardrec_status(6);
/// a name, index, file or part of an error that does not exist
pub const SHARDREC_NOT_FOUND: shardrec_status = shardrec_status(7);
/// meaningful, but not available in this build; the sentence says why
pub const SHARDREC_UNSUPPORTED: shardrec_status = shardrec_status(8);
/// the ranks asked for different things, which is said to all of them: no rank has done any of it, and all may go on
pub const SHARDREC_DISAGREEMENT: shardrec_status = shardrec_status(9);
/// The C API's `SHARDREC_OUT_OF_MEMORY`.
pub const SHARDREC_OUT_OF_MEMORY: shardrec_status = shardrec_status(100);
/// the operating system refused a file operation
pub const SHARDREC_IO_ERROR: shardrec_status = shardrec_status(101);
/// a file or message does not hold what its format promises
pub const SHARDREC_CORRUPT_DATA: shardrec_status = shardrec_status(102);
/// a device failed; the sentence names it and the runtime's error
pub const SHARDREC_DEVICE_ERROR: shardrec_status = shardrec_status(103);
/// another rank is gone
pub const SHARDREC_PEER_FAILED: shardrec_status = shardrec_status(200);
/// a deadline passed; the sentence names the rank and the operation
pub const SHARDREC_TIMEOUT: shardrec_status = shardrec_status(201);
/// ranks made different calls, or made them in another order
pub const SHARDREC_MISMATCH: shardrec_status = shardrec_status(202);
/// shardrec_comm_abort was called on some rank
pub const SHARDREC_ABORTED: shardrec_status = shardrec_status(203);
/// shardrec_control_cancel was called
pub const SHARDREC_CANCELLED: shardrec_status = shardrec_status(300);
/// a defect of the library; please report the sentence
pub const SHARDREC_INTERNAL: shardrec_status = shardrec_status(400);
const _: () = assert!(core::mem::size_of::<shardrec_status>() == 4);

/// Parts of an error.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_error_part(pub u32);
/// the rank at fault
pub const SHARDREC_ERROR_RANK: shardrec_error_part = shardrec_error_part(1);
/// index into the array at fault (values, lengths, offsets, weights)
pub const SHARDREC_ERROR_POSITION: shardrec_error_part = shardrec_error_part(2);
/// the value that was refused
pub const SHARDREC_ERROR_VALUE: shardrec_error_part = shardrec_error_part(3);
/// what would have been accepted, exclusive
pub const SHARDREC_ERROR_LIMIT: shardrec_error_part = shardrec_error_part(4);
/// the sequence number of the operation
pub const SHARDREC_ERROR_SEQUENCE: shardrec_error_part = shardrec_error_part(5);
/// name of the table
pub const SHARDREC_ERROR_TABLE: shardrec_error_part = shardrec_error_part(101);
/// name of the feature
pub const SHARDREC_ERROR_FEATURE: shardrec_error_part = shardrec_error_part(102);
/// the operation that failed, such as "forward"
pub const SHARDREC_ERROR_OPERATION: shardrec_error_part = shardrec_error_part(103);
/// the file or directory
pub const SHARDREC_ERROR_PATH: shardrec_error_part = shardrec_error_part(104);
const _: () = assert!(core::mem::size_of::<shardrec_error_part>() == 4);

/// What shardrec_available asks for.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_capability(pub u32);
/// an engine of communicators: "local", "gloo", "mpi" or "nccl"
pub const SHARDREC_CAPABILITY_ENGINE: shardrec_capability = shardrec_capability(0);
/// what tables can live on: "cpu", "cuda" (any device), "cuda:1"
pub const SHARDREC_CAPABILITY_DEVICE: shardrec_capability = shardrec_capability(1);
/// kernels for an instruction set: "scalar", "avx2" and so on
pub const SHARDREC_CAPABILITY_CPU_TARGET: shardrec_capability = shardrec_capability(2);
/// a GEMM plug-in of layers: "openblas", "cublas" (CUDA)
pub const SHARDREC_CAPABILITY_DENSE: shardrec_capability = shardrec_capability(3);
const _: () = assert!(core::mem::size_of::<shardrec_capability>() == 4);

/// The C API's `shardrec_log_level`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_log_level(pub u32);
/// The C API's `SHARDREC_LOG_DEBUG`.
pub const SHARDREC_LOG_DEBUG: shardrec_log_level = shardrec_log_level(0);
/// The C API's `SHARDREC_LOG_INFO`.
pub const SHARDREC_LOG_INFO: shardrec_log_level = shardrec_log_level(1);
/// such as: rank 3 is late in "forward"
pub const SHARDREC_LOG_WARNING: shardrec_log_level = shardrec_log_level(2);
/// The C API's `SHARDREC_LOG_ERROR`.
pub const SHARDREC_LOG_ERROR: shardrec_log_level = shardrec_log_level(3);
/// The C API's `SHARDREC_LOG_OFF`.
pub const SHARDREC_LOG_OFF: shardrec_log_level = shardrec_log_level(4);
const _: () = assert!(core::mem::size_of::<shardrec_log_level>() == 4);

/// DLPack's DLDeviceType.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_device_type(pub u32);
/// The C API's `SHARDREC_DEVICE_CPU`.
pub const SHARDREC_DEVICE_CPU: shardrec_device_type = shardrec_device_type(1);
/// The C API's `SHARDREC_DEVICE_CUDA`.
pub const SHARDREC_DEVICE_CUDA: shardrec_device_type = shardrec_device_type(2);
const _: () = assert!(core::mem::size_of::<shardrec_device_type>() == 4);

/// DLPack's DLDataType in one number: type code | bits \<\< 8 | lanes \<\< 16.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_dtype(pub u32);
/// bytes; tensors of checkpoints, and where a function says so
pub const SHARDREC_UINT8: shardrec_dtype = shardrec_dtype(67585);
/// The C API's `SHARDREC_INT32`.
pub const SHARDREC_INT32: shardrec_dtype = shardrec_dtype(73728);
/// The C API's `SHARDREC_INT64`.
pub const SHARDREC_INT64: shardrec_dtype = shardrec_dtype(81920);
/// The C API's `SHARDREC_FLOAT16`.
pub const SHARDREC_FLOAT16: shardrec_dtype = shardrec_dtype(69634);
/// The C API's `SHARDREC_BFLOAT16`.
pub const SHARDREC_BFLOAT16: shardrec_dtype = shardrec_dtype(69636);
/// The C API's `SHARDREC_FLOAT32`.
pub const SHARDREC_FLOAT32: shardrec_dtype = shardrec_dtype(73730);
/// The C API's `SHARDREC_FLOAT64`.
pub const SHARDREC_FLOAT64: shardrec_dtype = shardrec_dtype(81922);
const _: () = assert!(core::mem::size_of::<shardrec_dtype>() == 4);

/// The C API's `shardrec_options_kind`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_options_kind(pub u32);
/// keys 100-199; for shardrec_model_set_optimizer, shardrec_ddp_set_optimizer and shardrec_fsdp_set_optimizer
pub const SHARDREC_OPTIONS_OPTIMIZER: shardrec_options_kind = shardrec_options_kind(1);
/// keys 200-299
pub const SHARDREC_OPTIONS_TABLE: shardrec_options_kind = shardrec_options_kind(2);
/// keys 300-399
pub const SHARDREC_OPTIONS_PLAN: shardrec_options_kind = shardrec_options_kind(3);
/// keys 400-499
pub const SHARDREC_OPTIONS_COLLECTION: shardrec_options_kind = shardrec_options_kind(4);
/// keys 500-599
pub const SHARDREC_OPTIONS_LOOKUP: shardrec_options_kind = shardrec_options_kind(5);
/// keys 600-699
pub const SHARDREC_OPTIONS_DDP: shardrec_options_kind = shardrec_options_kind(6);
/// keys 700-799, and 100-199 for its optimizer
pub const SHARDREC_OPTIONS_MLP: shardrec_options_kind = shardrec_options_kind(7);
/// keys 800-899
pub const SHARDREC_OPTIONS_MESH: shardrec_options_kind = shardrec_options_kind(8);
/// keys 900-999
pub const SHARDREC_OPTIONS_COMM: shardrec_options_kind = shardrec_options_kind(9);
/// keys 1000-1099
pub const SHARDREC_OPTIONS_RENDEZVOUS: shardrec_options_kind = shardrec_options_kind(10);
/// keys 1100-1199
pub const SHARDREC_OPTIONS_CHECKPOINT: shardrec_options_kind = shardrec_options_kind(11);
/// keys 1200-1299
pub const SHARDREC_OPTIONS_SCORER: shardrec_options_kind = shardrec_options_kind(12);
/// DEVICE, DEVICE_WAIT and STREAM
pub const SHARDREC_OPTIONS_METRICS: shardrec_options_kind = shardrec_options_kind(13);
/// keys 1300-1399, DDP_AVERAGE, DDP_FACTOR, THREADS, NON_FINITE, DEVICE, DEVICE_WAIT and STREAM
pub const SHARDREC_OPTIONS_FSDP: shardrec_options_kind = shardrec_options_kind(14);
const _: () = assert!(core::mem::size_of::<shardrec_options_kind>() == 4);

/// Formulas: of tables shardrec_model_set_optimizer, of layers and of parameters that a shardrec_ddp
/// steps shardrec_mlp_create. Used elsewhere than said here: UNSUPPORTED.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_optimizer(pub u32);
/// tables, layers and DDP
pub const SHARDREC_OPTIMIZER_SGD: shardrec_optimizer = shardrec_optimizer(1);
/// tables, layers and DDP
pub const SHARDREC_OPTIMIZER_ADAGRAD: shardrec_optimizer = shardrec_optimizer(2);
/// tables
pub const SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD: shardrec_optimizer = shardrec_optimizer(3);
/// tables, layers and DDP
pub const SHARDREC_OPTIMIZER_ADAM: shardrec_optimizer = shardrec_optimizer(4);
/// tables
pub const SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM: shardrec_optimizer = shardrec_optimizer(5);
/// tables, layers and DDP
pub const SHARDREC_OPTIMIZER_LAMB: shardrec_optimizer = shardrec_optimizer(6);
/// tables
pub const SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB: shardrec_optimizer = shardrec_optimizer(7);
/// tables
pub const SHARDREC_OPTIMIZER_LARS_SGD: shardrec_optimizer = shardrec_optimizer(8);
/// layers and DDP
pub const SHARDREC_OPTIMIZER_MOMENTUM_SGD: shardrec_optimizer = shardrec_optimizer(9);
const _: () = assert!(core::mem::size_of::<shardrec_optimizer>() == 4);

/// The C API's `shardrec_weight_decay`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_weight_decay(pub u32);
/// The C API's `SHARDREC_WEIGHT_DECAY_NONE`.
pub const SHARDREC_WEIGHT_DECAY_NONE: shardrec_weight_decay = shardrec_weight_decay(0);
/// as part of the gradient
pub const SHARDREC_WEIGHT_DECAY_L2: shardrec_weight_decay = shardrec_weight_decay(1);
/// w \*= 1 - learning rate \* decay, touched rows only
pub const SHARDREC_WEIGHT_DECAY_DECOUPLE: shardrec_weight_decay = shardrec_weight_decay(2);
const _: () = assert!(core::mem::size_of::<shardrec_weight_decay>() == 4);

/// Over which columns what an optimizer keeps or computes once per row (row-wise states, the norms of
/// LAMB, LARS and MAX_NORM) is taken where a table is cut by columns.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_row_statistics(pub u32);
/// over the whole row, the same under every plan
pub const SHARDREC_ROW_STATISTICS_ROW: shardrec_row_statistics = shardrec_row_statistics(0);
/// over the columns of each box, as TorchRec does
pub const SHARDREC_ROW_STATISTICS_SHARD: shardrec_row_statistics = shardrec_row_statistics(1);
const _: () = assert!(core::mem::size_of::<shardrec_row_statistics>() == 4);

/// The C API's `shardrec_init`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_init(pub u32);
/// uniform in \[INIT_MIN, INIT_MAX); default +-sqrt(1 / rows)
pub const SHARDREC_INIT_UNIFORM: shardrec_init = shardrec_init(0);
/// touches no page of memory
pub const SHARDREC_INIT_ZEROS: shardrec_init = shardrec_init(1);
const _: () = assert!(core::mem::size_of::<shardrec_init>() == 4);

/// What becomes of an id outside \[0, rows) of its table; the same under every plan.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_out_of_range(pub u32);
/// the batch is refused on all ranks: INVALID_BATCH
pub const SHARDREC_OUT_OF_RANGE_ERROR: shardrec_out_of_range = shardrec_out_of_range(0);
/// as if the id were not in its bag (MEAN divides by the ids that stay); in a sequence its row is 0 and its gradient goes nowhere
pub const SHARDREC_OUT_OF_RANGE_DROP: shardrec_out_of_range = shardrec_out_of_range(1);
/// row 0 is used in its place
pub const SHARDREC_OUT_OF_RANGE_CLAMP: shardrec_out_of_range = shardrec_out_of_range(2);
const _: () = assert!(core::mem::size_of::<shardrec_out_of_range>() == 4);

/// How the weights of a 16-bit table are rounded after an update.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_rounding(pub u32);
/// to the nearest, ties to even
pub const SHARDREC_ROUNDING_NEAREST: shardrec_rounding = shardrec_rounding(0);
/// up or down with a probability that makes the mean right: random bits of Philox4x32-10, from (seed, step, table, row, column) only, so the same under every plan
pub const SHARDREC_ROUNDING_STOCHASTIC: shardrec_rounding = shardrec_rounding(1);
const _: () = assert!(core::mem::size_of::<shardrec_rounding>() == 4);

/// The named ways of cutting and placing tables; see plan.h for the exact cuts.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_sharding(pub u32);
/// balanced by size
pub const SHARDREC_SHARDING_AUTO: shardrec_sharding = shardrec_sharding(0);
/// The C API's `SHARDREC_SHARDING_TABLE_WISE`.
pub const SHARDREC_SHARDING_TABLE_WISE: shardrec_sharding = shardrec_sharding(1);
/// The C API's `SHARDREC_SHARDING_ROW_WISE`.
pub const SHARDREC_SHARDING_ROW_WISE: shardrec_sharding = shardrec_sharding(2);
/// The C API's `SHARDREC_SHARDING_COLUMN_WISE`.
pub const SHARDREC_SHARDING_COLUMN_WISE: shardrec_sharding = shardrec_sharding(3);
/// The C API's `SHARDREC_SHARDING_TABLE_ROW_WISE`.
pub const SHARDREC_SHARDING_TABLE_ROW_WISE: shardrec_sharding = shardrec_sharding(4);
/// The C API's `SHARDREC_SHARDING_TABLE_COLUMN_WISE`.
pub const SHARDREC_SHARDING_TABLE_COLUMN_WISE: shardrec_sharding = shardrec_sharding(5);
/// The C API's `SHARDREC_SHARDING_GRID`.
pub const SHARDREC_SHARDING_GRID: shardrec_sharding = shardrec_sharding(6);
/// The C API's `SHARDREC_SHARDING_DATA_PARALLEL`.
pub const SHARDREC_SHARDING_DATA_PARALLEL: shardrec_sharding = shardrec_sharding(7);
/// table i takes kind 1 + i mod 7
pub const SHARDREC_SHARDING_MIXED: shardrec_sharding = shardrec_sharding(8);
const _: () = assert!(core::mem::size_of::<shardrec_sharding>() == 4);

/// How the ranks of a replicated (data-parallel) table learn of each other's gradients.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_replication(pub u32);
/// what sends least, by BATCH_SIZE and BAG_LENGTH; SAMPLES without
pub const SHARDREC_REPLICATION_AUTO: shardrec_replication = shardrec_replication(0);
/// every rank receives all ids and output gradients: the bits of one rank
pub const SHARDREC_REPLICATION_SAMPLES: shardrec_replication = shardrec_replication(1);
/// sums of touched rows, as a list: replicas equal bit for bit, one rank's result up to rounding; at most 2^32 rows per rank
pub const SHARDREC_REPLICATION_ROWS: shardrec_replication = shardrec_replication(2);
/// the same with a bit per row in place of the list
pub const SHARDREC_REPLICATION_DENSE: shardrec_replication = shardrec_replication(3);
const _: () = assert!(core::mem::size_of::<shardrec_replication>() == 4);

/// What a plan spreads evenly over the ranks.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_balance(pub u32);
/// the bytes of weights
pub const SHARDREC_BALANCE_BYTES: shardrec_balance = shardrec_balance(0);
/// the time that lookups and updates are expected to keep the memory of a rank busy: features of the table x BAG_LENGTH x what a row moves, at the rates of the planning machine's profile (probe.h), or of bytes without one: machines may plan differently, so ranks that must agree use shardrec_plan_collective, where rank 0 plans. Neither exchanges nor the memory that a rank has count
pub const SHARDREC_BALANCE_TIME: shardrec_balance = shardrec_balance(1);
const _: () = assert!(core::mem::size_of::<shardrec_balance>() == 4);

/// What output gradients are divided by first. On a mesh, ranks and batch are those of the sharding group;
/// of replicated tables, of all groups, and CUSTOM counts once for each.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_divisor(pub u32);
/// the number of ranks: each rank's loss is a mean over its batch
pub const SHARDREC_DIVISOR_RANKS: shardrec_divisor = shardrec_divisor(0);
/// 1: the loss is already a mean over the global batch, or a sum
pub const SHARDREC_DIVISOR_NONE: shardrec_divisor = shardrec_divisor(1);
/// GRADIENT_DIVISOR_VALUE
pub const SHARDREC_DIVISOR_CUSTOM: shardrec_divisor = shardrec_divisor(2);
/// global batch / own batch: each sample weighs the same
pub const SHARDREC_DIVISOR_SAMPLES: shardrec_divisor = shardrec_divisor(3);
const _: () = assert!(core::mem::size_of::<shardrec_divisor>() == 4);

/// How numbers travel between ranks. All are rounded so, also what a rank sends to itself and what
/// replicated tables give: the numbers depend on this choice, not on the engine or on who owns a box.
/// With FLOAT16 and BFLOAT16 they keep the promises of collection.h about plans; with INT8 those hold
/// among plans that cut columns alike, for a row of a box has one scale. What a bag's sum in a row box
/// loses is within the bound below; what rounding takes away is not added to a later message.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_compression(pub u32);
/// float32, 4 bytes
pub const SHARDREC_COMPRESSION_NONE: shardrec_compression = shardrec_compression(0);
/// 2 bytes, to nearest even: |error| \<= max(2^-11 |x|, 2^-25); a finite |x| \>= 65520 becomes 65504 with its sign and is counted (SHARDREC_STAT_SATURATED, "saturated" of shardrec_ddp_statistics_json); NaN and infinities stay
pub const SHARDREC_COMPRESSION_FLOAT16: shardrec_compression = shardrec_compression(1);
/// 2 bytes, to nearest even: |error| \<= max(2^-8 |x|, 2^-134)
pub const SHARDREC_COMPRESSION_BFLOAT16: shardrec_compression = shardrec_compression(2);
/// 1 byte, and a scale and an offset in float32 per row of a box (FBGEMM's row-wise 8 bits, TorchRec's quantized communication, but without the 1e-8 that FBGEMM adds to the range): with range = most - least of the row, q = round((x - least) 255 / range), to nearest even, comes back as q range / 255 + least: |error| \<= range / 510 (1 + 2^-12) + 2^-23 max |x|. A range below 2^-100 counts as 0: all of the row is its least. A row that holds a NaN or an infinity, or whose range is no finite float32, comes back as NaN
pub const SHARDREC_COMPRESSION_INT8: shardrec_compression = shardrec_compression(3);
const _: () = assert!(core::mem::size_of::<shardrec_compression>() == 4);

/// What becomes of a NaN or an infinity in the gradients and weights that the host gives
/// (NON_FINITE).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_non_finite(pub u32);
/// nobody looks; they go into rows, values and outputs
pub const SHARDREC_NON_FINITE_ALLOW: shardrec_non_finite = shardrec_non_finite(0);
/// the call is refused with the place; no table or parameter changes
pub const SHARDREC_NON_FINITE_ERROR: shardrec_non_finite = shardrec_non_finite(1);
/// no rank applies the step; calls return OK, and it is counted
pub const SHARDREC_NON_FINITE_SKIP: shardrec_non_finite = shardrec_non_finite(2);
const _: () = assert!(core::mem::size_of::<shardrec_non_finite>() == 4);

/// How a thread waits for what a CUDA device computes (DEVICE_WAIT).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_device_wait(pub u32);
/// until the driver wakes it; the processor does other work
pub const SHARDREC_DEVICE_WAIT_SLEEP: shardrec_device_wait = shardrec_device_wait(0);
/// it keeps asking, which takes a processor, and goes on earlier
pub const SHARDREC_DEVICE_WAIT_SPIN: shardrec_device_wait = shardrec_device_wait(1);
const _: () = assert!(core::mem::size_of::<shardrec_device_wait>() == 4);

/// How the replicas of a collection on a mesh are kept equal: which rows syncs move between them, or by what all of
/// them are trained (REPLICA_SYNC; mesh.h).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_replica_sync(pub u32);
/// all rows of all tables
pub const SHARDREC_REPLICA_SYNC_FULL: shardrec_replica_sync = shardrec_replica_sync(0);
/// those that any replica has changed since the last sync
pub const SHARDREC_REPLICA_SYNC_TOUCHED: shardrec_replica_sync = shardrec_replica_sync(1);
/// none: ids and gradients of all ranks train each replica. Since 0.2
pub const SHARDREC_REPLICA_SYNC_EXACT: shardrec_replica_sync = shardrec_replica_sync(2);
/// as EXACT, but each of R replicas has the optimizer states of 1 / R of the rows, and sends their new weights to the others. Since 0.2
pub const SHARDREC_REPLICA_SYNC_SHARDED: shardrec_replica_sync = shardrec_replica_sync(3);
const _: () = assert!(core::mem::size_of::<shardrec_replica_sync>() == 4);

/// In what number format a stack of layers multiplies matrices (PRECISION); layers.h has the arithmetic.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_precision(pub u32);
/// The C API's `SHARDREC_PRECISION_FLOAT32`.
pub const SHARDREC_PRECISION_FLOAT32: shardrec_precision = shardrec_precision(0);
/// factors are rounded to 10 bits of mantissa
pub const SHARDREC_PRECISION_TFLOAT32: shardrec_precision = shardrec_precision(1);
/// what lies between layers, too, is in bfloat16; parameters stay float32
pub const SHARDREC_PRECISION_BFLOAT16: shardrec_precision = shardrec_precision(2);
/// the same in float16, with gradients scaled between layers (LOSS_SCALE)
pub const SHARDREC_PRECISION_FLOAT16: shardrec_precision = shardrec_precision(3);
const _: () = assert!(core::mem::size_of::<shardrec_precision>() == 4);

/// What becomes of DDP parameters that are not marked ready when a step with sync ends.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_unused(pub u32);
/// shardrec_ddp_wait is INVALID_STATE on all ranks and names one
pub const SHARDREC_UNUSED_ERROR: shardrec_unused = shardrec_unused(0);
/// they count as unused: this rank gives zeros, and a gradient that no rank used stays as it is, as PyTorch's find_unused_parameters has it; a bit per parameter travels with each bucket
pub const SHARDREC_UNUSED_MARK: shardrec_unused = shardrec_unused(1);
/// this rank gives zeros; a gradient that no rank used becomes zero
pub const SHARDREC_UNUSED_ZERO: shardrec_unused = shardrec_unused(2);
const _: () = assert!(core::mem::size_of::<shardrec_unused>() == 4);

/// In which order DDP expects parameters to become ready.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_ddp_order(pub u32);
/// the last one added first, as backward goes
pub const SHARDREC_DDP_ORDER_REVERSE: shardrec_ddp_order = shardrec_ddp_order(0);
/// reversed in the first step with sync, then as they became ready in it on rank 0
pub const SHARDREC_DDP_ORDER_RECORDED: shardrec_ddp_order = shardrec_ddp_order(1);
const _: () = assert!(core::mem::size_of::<shardrec_ddp_order>() == 4);

/// By what DDP adds up the gradients of the ranks.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_ddp_reduction(pub u32);
/// in the order of ranks: the same bits whatever carries messages, on CPUs and devices
pub const SHARDREC_DDP_REDUCTION_ORDERED: shardrec_ddp_reduction = shardrec_ddp_reduction(0);
/// by NCCL's all-reduce of each bucket, between devices: the same bits on all ranks, but they may change with the number and the places of ranks and with NCCL's version
pub const SHARDREC_DDP_REDUCTION_NCCL: shardrec_ddp_reduction = shardrec_ddp_reduction(1);
const _: () = assert!(core::mem::size_of::<shardrec_ddp_reduction>() == 4);

/// What DDP averages are divided by when some ranks have joined (shardrec_ddp_join).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_join_divisor(pub u32);
/// all ranks
pub const SHARDREC_JOIN_DIVISOR_WORLD: shardrec_join_divisor = shardrec_join_divisor(0);
/// those that have not joined
pub const SHARDREC_JOIN_DIVISOR_LIVE: shardrec_join_divisor = shardrec_join_divisor(1);
const _: () = assert!(core::mem::size_of::<shardrec_join_divisor>() == 4);

/// Which ranks have what of the parameters of an FSDP set (fsdp.h).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_fsdp_strategy(pub u32);
/// shards over all ranks, gathered for forward and for backward
pub const SHARDREC_FSDP_FULL_SHARD: shardrec_fsdp_strategy = shardrec_fsdp_strategy(0);
/// the same, but what was gathered stays until gradients are ready
pub const SHARDREC_FSDP_SHARD_GRAD_OP: shardrec_fsdp_strategy = shardrec_fsdp_strategy(1);
/// shards over the sharding groups of a mesh, replicas between them
pub const SHARDREC_FSDP_HYBRID_SHARD: shardrec_fsdp_strategy = shardrec_fsdp_strategy(2);
/// each rank has all
pub const SHARDREC_FSDP_NO_SHARD: shardrec_fsdp_strategy = shardrec_fsdp_strategy(3);
const _: () = assert!(core::mem::size_of::<shardrec_fsdp_strategy>() == 4);

/// Which ranks of a mesh are neighbours.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_placement(pub u32);
/// those of a replica group: averaging stays in the node
pub const SHARDREC_PLACEMENT_INTRA_NODE_SYNC: shardrec_placement = shardrec_placement(0);
/// those of a sharding group: lookups stay in the node
pub const SHARDREC_PLACEMENT_INTRA_NODE_SHARD: shardrec_placement = shardrec_placement(1);
const _: () = assert!(core::mem::size_of::<shardrec_placement>() == 4);

/// Where a scorer keeps the weights of tables (scorer.h).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_served_tables(pub u32);
/// as the checkpoint has them, read into memory of the process
pub const SHARDREC_SERVED_TABLES_MEMORY: shardrec_served_tables = shardrec_served_tables(0);
/// in the checkpoint's files, mapped: shared between processes
pub const SHARDREC_SERVED_TABLES_MAPPED: shardrec_served_tables = shardrec_served_tables(1);
/// in memory, 8 bits per element, a scale and an offset per row
pub const SHARDREC_SERVED_TABLES_INT8: shardrec_served_tables = shardrec_served_tables(2);
const _: () = assert!(core::mem::size_of::<shardrec_served_tables>() == 4);

/// Keys. The type, the default and the accepted values stand behind each.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_option(pub u32);
/// i64, shardrec_optimizer; tables: SGD; layers: SGD
pub const SHARDREC_OPTION_OPTIMIZER: shardrec_option = shardrec_option(100);
/// f64, finite, \>= 0; default 0.01
pub const SHARDREC_OPTION_LEARNING_RATE: shardrec_option = shardrec_option(101);
/// f64, finite, \>= 0; default 1e-8
pub const SHARDREC_OPTION_EPS: shardrec_option = shardrec_option(102);
/// f64, finite, \>= 0; default 0
pub const SHARDREC_OPTION_WEIGHT_DECAY: shardrec_option = shardrec_option(103);
/// i64, shardrec_weight_decay; default NONE
pub const SHARDREC_OPTION_WEIGHT_DECAY_MODE: shardrec_option = shardrec_option(104);
/// f64, \> 0 clamps gradients to +-value; 0 (default): off
pub const SHARDREC_OPTION_MAX_GRADIENT: shardrec_option = shardrec_option(105);
/// f64 in \[0, 1); default 0.9
pub const SHARDREC_OPTION_BETA1: shardrec_option = shardrec_option(106);
/// f64 in \[0, 1); default 0.999
pub const SHARDREC_OPTION_BETA2: shardrec_option = shardrec_option(107);
/// i64, shardrec_row_statistics; default ROW
pub const SHARDREC_OPTION_ROW_STATISTICS: shardrec_option = shardrec_option(108);
/// f64 in \[0, 1); LARS_SGD, MOMENTUM_SGD; default 0.9
pub const SHARDREC_OPTION_MOMENTUM: shardrec_option = shardrec_option(109);
/// f64, finite, \>= 0; LARS; default 0.001; kind OPTIMIZER
pub const SHARDREC_OPTION_ETA: shardrec_option = shardrec_option(110);
/// f64, \> 0: a row that was updated is scaled down to this norm where it is above; 0 (default): off; kind OPTIMIZER
pub const SHARDREC_OPTION_MAX_NORM: shardrec_option = shardrec_option(111);
/// f64 in \[1, 65536\]; ROWWISE_ADAGRAD on a mesh (model.h); default 1: off; kind OPTIMIZER
pub const SHARDREC_OPTION_MOMENTUM_SCALE: shardrec_option = shardrec_option(112);
/// i64, shardrec_dtype: FLOAT32 (default), FLOAT16, BFLOAT16
pub const SHARDREC_OPTION_DTYPE: shardrec_option = shardrec_option(200);
/// i64, shardrec_init; default UNIFORM
pub const SHARDREC_OPTION_INIT: shardrec_option = shardrec_option(201);
/// f64, finite; default -sqrt(1 / rows)
pub const SHARDREC_OPTION_INIT_MIN: shardrec_option = shardrec_option(202);
/// f64, finite, \>= INIT_MIN (checked where it is used); default sqrt(1 / rows)
pub const SHARDREC_OPTION_INIT_MAX: shardrec_option = shardrec_option(203);
/// i64, shardrec_rounding; default NEAREST; STOCHASTIC is for 16-bit tables
pub const SHARDREC_OPTION_ROUNDING: shardrec_option = shardrec_option(204);
/// i64, shardrec_out_of_range; default ERROR
pub const SHARDREC_OPTION_OUT_OF_RANGE: shardrec_option = shardrec_option(205);
/// i64, a sum of 1 \<\< kind over the kinds of shardrec_sharding, TABLE_WISE to DATA_PARALLEL, that a plan may use for the table; as text "row_wise, column_wise"; 0, "all" (default): all
pub const SHARDREC_OPTION_ALLOWED_SHARDING: shardrec_option = shardrec_option(206);
/// text, ranks that may own boxes of the table: "0-3, 7"; those that a plan does not have are passed over; empty (default): all. A table that may not be on all ranks is not replicated
pub const SHARDREC_OPTION_ALLOWED_RANKS: shardrec_option = shardrec_option(207);
/// i64 in \[1, 65536\], at most the table's dim: least columns of a box; default 1. (These three: see plan.h)
pub const SHARDREC_OPTION_MIN_COLUMNS: shardrec_option = shardrec_option(208);
/// i64, shardrec_sharding; default AUTO
pub const SHARDREC_OPTION_SHARDING: shardrec_option = shardrec_option(300);
/// i64, shardrec_replication, of all replicated tables; default AUTO
pub const SHARDREC_OPTION_REPLICATION: shardrec_option = shardrec_option(301);
/// i64, \>= 0: samples per rank and step that the plan may expect; 0 (default): unknown
pub const SHARDREC_OPTION_BATCH_SIZE: shardrec_option = shardrec_option(302);
/// f64, finite, \>= 0: ids per bag that it may expect; default 1
pub const SHARDREC_OPTION_BAG_LENGTH: shardrec_option = shardrec_option(303);
/// i64, shardrec_balance; default BYTES
pub const SHARDREC_OPTION_BALANCE: shardrec_option = shardrec_option(304);
/// i64; default 0; kinds COLLECTION and MLP
pub const SHARDREC_OPTION_SEED: shardrec_option = shardrec_option(400);
/// i64 in \[1, 1024\]; default: this rank's part of the processors that it shares with the other ranks of its communicator on this machine, in this process and in others: each processor of its affinity mask divided by the ranks that may run on it, cgroup quotas of processor time likewise; rounded down, at least 1. Of an MLP, which has no communicator: the same part, of the communicators that live in this process when it is made; without one, all processors that the process may use. Of DDP and FSDP: of the optimizer. Kinds COLLECTION, MLP, DDP and FSDP
pub const SHARDREC_OPTION_THREADS: shardrec_option = shardrec_option(401);
/// i64, shardrec_divisor; default RANKS
pub const SHARDREC_OPTION_GRADIENT_DIVISOR: shardrec_option = shardrec_option(402);
/// f64, finite, \> 0; for CUSTOM; default 1
pub const SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE: shardrec_option = shardrec_option(403);
/// i64 in \[1, 8\]; lookups alive at once; default 2
pub const SHARDREC_OPTION_LOOKUPS: shardrec_option = shardrec_option(404);
/// i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16; of outputs and their gradients. Sums are taken in float32 and rounded once, to nearest even
pub const SHARDREC_OPTION_OUTPUT_DTYPE: shardrec_option = shardrec_option(405);
/// i64, 0 or 1; 1: an id that a batch repeats travels once where that takes fewer bytes, with the same results; default: 1 where ranks live in several processes, else 0
pub const SHARDREC_OPTION_DEDUPLICATE: shardrec_option = shardrec_option(406);
/// i64, shardrec_compression, of the output exchange: sums per bag and box, before they are added up and divided by MEAN; rows of sequences. Default NONE, which costs no time; any other does where ranks share a machine; the same on all ranks
pub const SHARDREC_OPTION_FORWARD_COMPRESSION: shardrec_option = shardrec_option(407);
/// i64, shardrec_compression, of the gradient exchange: gradients per bag and box, or id of a sequence, after divisor (one that is a power of two may follow later), clamp and MEAN. Sums that ranks exchange beside them (replicas by rows or bits, row statistics, gradients of weights) stay float32. Default NONE; the same on all ranks
pub const SHARDREC_OPTION_BACKWARD_COMPRESSION: shardrec_option = shardrec_option(408);
/// i64, 0 or 1; 1: where several ranks of a node (of the plan's topology) hold rows of a table, what they have of a bag of another node's rank is added up on their node, and one sum crosses instead of one per rank; the same bits, one exchange more. 1 is UNSUPPORTED with FORWARD_COMPRESSION, and on a mesh with replicated tables, where it is 0 by default. Default elsewhere: 1 where ranks live in several processes and no exchange is compressed, else 0; the same on all ranks
pub const SHARDREC_OPTION_HIERARCHICAL: shardrec_option = shardrec_option(409);
/// i64 in \[-1, 1023\]; -1 (default): tables are in the host's memory, and the CPU works on them; n: the CUDA device that this process knows by the number n, by the CUDA plug-in (UNSUPPORTED where it is not installed, INVALID_ARGUMENT where there is no such device, DEVICE_ERROR where it fails). Bits do not depend on it. Tensors may then be on that device, in the order of a stream of the caller (lookup.h), or on the CPU. The CPU on all ranks, or on none. Of kind MLP the parameters of a stack, see layers.h; of kind FSDP full parameters and full gradients, with FSDP_OFFLOAD, see fsdp.h
pub const SHARDREC_OPTION_DEVICE: shardrec_option = shardrec_option(410);
/// i64, shardrec_non_finite; default ALLOW, which costs no time; the same on all ranks. Kinds COLLECTION, DDP, FSDP and SCORER. Since 0.2. COLLECTION: of weights of ids (begin) and output gradients (set_gradient): ERROR is INVALID_BATCH on all ranks, in forward or backward, with RANK, FEATURE, TABLE and POSITION; SKIP is as SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one sharding group does not apply is applied by none. backward then waits for all groups, so all must call it equally often. For gradients on a DEVICE the call that sends them (backward, backward_begin or send_gradients) waits until it has looked through them. DDP: of reduced gradients, see shardrec_ddp_wait; not with DDP_STEP_IN_BACKWARD. FSDP: the same, see shardrec_fsdp_wait. SCORER: ALLOW and ERROR, of ids' weights (INVALID_BATCH) and dense inputs (INVALID_ARGUMENT)
pub const SHARDREC_OPTION_NON_FINITE: shardrec_option = shardrec_option(411);
/// i64, shardrec_device_wait: how the host waits in a step for what it must know of a DEVICE that is not the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all that a device has to do (shardrec_collection_wait_device) are as the program's cudaSetDeviceFlags() says. Since 0.2
pub const SHARDREC_OPTION_DEVICE_WAIT: shardrec_option = shardrec_option(412);
/// i64, shardrec_replica_sync: which rows shardrec_collection_sync_replicas and shardrec_collection_sync_begin move. Default TOUCHED, for which a bit per row is kept where a mesh has several replicas. EXACT and SHARDED move none there; the same on all ranks. Since 0.2
pub const SHARDREC_OPTION_REPLICA_SYNC: shardrec_option = shardrec_option(413);
/// i64, \>= 0: on a mesh, so many updates after each other end with a sync of the replicas, as shardrec_collection_sync_replicas is; see shardrec_collection_create. Default 0: none comes of itself; with REPLICA_SYNC EXACT and SHARDED others are INVALID_ARGUMENT; the same on all ranks. Since 0.2
pub const SHARDREC_OPTION_SYNC_EVERY: shardrec_option = shardrec_option(414);
/// i64, 0 or 1; 1: ids, weights and gradients are read in place and must stay until backward has returned; default 0
pub const SHARDREC_OPTION_BORROW: shardrec_option = shardrec_option(500);
/// i64, 0 or 1; 1: backward computes the gradients of the ids' weights; the same on all ranks; default 0
pub const SHARDREC_OPTION_WEIGHT_GRADIENT: shardrec_option = shardrec_option(501);
/// i64, 0: gradients are summed, 1 (default): averaged; kinds DDP and FSDP
pub const SHARDREC_OPTION_DDP_AVERAGE: shardrec_option = shardrec_option(600);
/// i64, 1 (default): commit copies rank 0's parameters to all
pub const SHARDREC_OPTION_DDP_BROADCAST: shardrec_option = shardrec_option(601);
/// f64, finite; the sum or average is multiplied by it; default 1; kinds DDP and FSDP
pub const SHARDREC_OPTION_DDP_FACTOR: shardrec_option = shardrec_option(602);
/// i64, \>= 1: the first bucket of each dtype is full from so many bytes of gradients on; default 2^20
pub const SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES: shardrec_option = shardrec_option(603);
/// i64, \>= 1: likewise the others; default 2^22
pub const SHARDREC_OPTION_DDP_BUCKET_BYTES: shardrec_option = shardrec_option(604);
/// i64, shardrec_ddp_order; default REVERSE
pub const SHARDREC_OPTION_DDP_ORDER: shardrec_option = shardrec_option(605);
/// i64, shardrec_unused; default ERROR
pub const SHARDREC_OPTION_DDP_UNUSED: shardrec_option = shardrec_option(606);
/// i64, shardrec_compression, of FLOAT32 gradients on their way: NONE (default), FLOAT16 or BFLOAT16. Each rank's gradients are rounded, then added up in float32; where a bucket is added up in parts (more than two ranks, more than 256 KiB from a rank to all others together), the result, averaged, is rounded once more. With FLOAT16, where sums or DDP_FACTOR could exceed its range, that result is divided by a power of two before it is rounded and multiplied by it behind: sums of finite halves are finite. Gradients of other dtypes travel as they are
pub const SHARDREC_OPTION_DDP_COMPRESSION: shardrec_option = shardrec_option(607);
/// i64, shardrec_join_divisor; default WORLD
pub const SHARDREC_OPTION_DDP_JOIN_DIVISOR: shardrec_option = shardrec_option(608);
/// i64, 0 or 1; 1: each bucket's parameters are stepped as soon as their gradients are reduced; needs shardrec_ddp_set_optimizer; a step that fails may have changed some parameters; default 0
pub const SHARDREC_OPTION_DDP_STEP_IN_BACKWARD: shardrec_option = shardrec_option(609);
/// i64, 0 or 1; 1: a thread of the library sends, adds up and writes buckets during backward; 0: shardrec_ddp_end sends all of them, shardrec_ddp_wait does the rest. The same bits; ranks may differ. Default: 1 where this rank's part of the processors (see THREADS) is more than one, because a thread that takes the processor from backward hides no time
pub const SHARDREC_OPTION_DDP_THREAD: shardrec_option = shardrec_option(610);
/// i64, shardrec_ddp_reduction; default ORDERED. With NCCL, ranks add up in the dtype of the way, FLOAT32 gradients in that of DDP_COMPRESSION; then each rank averages in FLOAT32 (FLOAT64 where gradients are) and rounds to the gradient's dtype. Numbers that are added up in FLOAT16 are divided before, when they have been rounded, by the least power of two that is not below the number of ranks, and multiplied by it behind, so that sums stay in range; those below 2^-14 times that power lose bits. commit says UNSUPPORTED where parameters are on the CPU, or where several ranks have no NCCL between their devices (ENGINE_NCCL, COMM_NCCL). Since 0.2
pub const SHARDREC_OPTION_DDP_REDUCTION: shardrec_option = shardrec_option(611);
/// i64, 0 or 1; 1: shardrec_mlp_backward adds to the gradients of the parameters; default 0
pub const SHARDREC_OPTION_ACCUMULATE_GRADIENTS: shardrec_option = shardrec_option(700);
/// i64, the value of a cudaStream_t of the DEVICE, which lives as long as the handle and is not being captured: what a stack, an interaction, a metric, a DDP set or an FSDP set on a device does takes place in its order; default 0, the legacy default stream. Memory that it works on is given back behind that. Not looked at on the CPU. Kinds MLP, METRICS, DDP and FSDP. Since 0.2
pub const SHARDREC_OPTION_STREAM: shardrec_option = shardrec_option(701);
/// i64, shardrec_precision; default FLOAT32. Since 0.2
pub const SHARDREC_OPTION_PRECISION: shardrec_option = shardrec_option(702);
/// f64, a power of two in \[1, 2^24\]: what gradients between layers are multiplied by at first; default 65536. Not looked at but with PRECISION FLOAT16. Since 0.2
pub const SHARDREC_OPTION_LOSS_SCALE: shardrec_option = shardrec_option(703);
/// i64, \>= 0: the scale is doubled after so many backwards in a row whose gradients are finite; 0: it is constant; default 2000. Not looked at but with PRECISION FLOAT16. Since 0.2
pub const SHARDREC_OPTION_LOSS_SCALE_STEPS: shardrec_option = shardrec_option(704);
/// i64, shardrec_placement; default INTRA_NODE_SYNC
pub const SHARDREC_OPTION_PLACEMENT: shardrec_option = shardrec_option(800);
/// i64, shardrec_engine; default: as the environment says; for shardrec_comm_create_from_env
pub const SHARDREC_OPTION_ENGINE: shardrec_option = shardrec_option(900);
/// f64, \> 0: to meet in; default 1800
pub const SHARDREC_OPTION_COMM_SETUP_SECONDS: shardrec_option = shardrec_option(901);
/// text, name of a network interface ("eth1") or an address of this machine, for the connections of this rank over Gloo. Any other than loopback needs ALLOW_PLAIN_TCP, here or of a rendezvous that is reached over the network. Empty (default): the interface that reaches the rendezvous
pub const SHARDREC_OPTION_INTERFACE: shardrec_option = shardrec_option(902);
/// f64, \> 0: how much later than this rank rank 0 may come, for shardrec_comm_create_from_env: where its address is known and its machine answers, but nobody listens there for so long, rank 0 is lost (PEER_FAILED); default 60
pub const SHARDREC_OPTION_RANK_ZERO_SECONDS: shardrec_option = shardrec_option(903);
/// text, a name or an address of this machine to listen at; default 127.0.0.1. Any other than loopback needs SECRET and ALLOW_PLAIN_TCP (checked where it is used)
pub const SHARDREC_OPTION_ADDRESS: shardrec_option = shardrec_option(1000);
/// i64 in \[0, 65535\]; 0 (default): a free one
pub const SHARDREC_OPTION_PORT: shardrec_option = shardrec_option(1001);
/// text, under which ranks find it; empty (default): as ADDRESS
pub const SHARDREC_OPTION_ADVERTISED_ADDRESS: shardrec_option = shardrec_option(1002);
/// text, name of the group: 1 to 64 letters, digits and -._~; empty (default): a random one
pub const SHARDREC_OPTION_JOB: shardrec_option = shardrec_option(1003);
/// text, 16 to 128 letters, digits and -._~; empty (default): a random one of 128 bits
pub const SHARDREC_OPTION_SECRET: shardrec_option = shardrec_option(1004);
/// i64, 0 or 1; 1: other machines may take part, and what ranks send each other is clear text on the network; default 0; kinds RENDEZVOUS and COMM
pub const SHARDREC_OPTION_ALLOW_PLAIN_TCP: shardrec_option = shardrec_option(1005);
/// f64 in \[0.1, 3600\]: a rank that is silent for so long, or that a rank's connection does not reach, is lost to the others; default 4
pub const SHARDREC_OPTION_SILENCE_SECONDS: shardrec_option = shardrec_option(1006);
/// i64, \>= 0: checkpoints of the run that stay after a commit, the new one included; 0 (default): all. What a delta that stays is a change of stays, too: up to MOST_DELTAS more
pub const SHARDREC_OPTION_KEEP_LAST: shardrec_option = shardrec_option(1100);
/// i64 in \[0, 1000\]: deltas that follow a whole checkpoint before shardrec_checkpoint_commit_delta writes a whole one again, which those that stay (KEEP_LAST) no longer need; default 100. A load and the opening of a scorer read as many, an open and a commit their manifests. Since 0.2
pub const SHARDREC_OPTION_MOST_DELTAS: shardrec_option = shardrec_option(1101);
/// i64, 0 or 1; 0: shardrec_checkpoint_commit_delta and _delta_begin leave the states of tables' optimizers out of deltas, for scorers; whole checkpoints have them. The same on all ranks; default 1. Since 0.2
pub const SHARDREC_OPTION_DELTA_STATES: shardrec_option = shardrec_option(1102);
/// i64, shardrec_served_tables; default MEMORY
pub const SHARDREC_OPTION_SERVED_TABLES: shardrec_option = shardrec_option(1200);
/// text, name of a collection in the checkpoint; empty (default): the only one, else that of the name ""
pub const SHARDREC_OPTION_SERVED_COLLECTION: shardrec_option = shardrec_option(1201);
/// text, name of the stack of layers of the dense input; empty (default): "bottom", where the checkpoint has it and it fits, else there is no dense half
pub const SHARDREC_OPTION_BOTTOM_LAYERS: shardrec_option = shardrec_option(1202);
/// text, likewise of the stack behind the interaction; "top"
pub const SHARDREC_OPTION_TOP_LAYERS: shardrec_option = shardrec_option(1203);
/// i64, 0 or 1; 1: scores are what the top stack gives, without the sigmoid; default 0
pub const SHARDREC_OPTION_LOGITS: shardrec_option = shardrec_option(1204);
/// i64, shardrec_fsdp_strategy; default FULL_SHARD. Since 0.2
pub const SHARDREC_OPTION_FSDP_STRATEGY: shardrec_option = shardrec_option(1300);
/// i64 in \[0, 4\]: units that are gathered before the host asks for them; each takes one more buffer of full parameters; default 1. 0 also leaves one buffer of full gradients of two. Since 0.2
pub const SHARDREC_OPTION_FSDP_PREFETCH: shardrec_option = shardrec_option(1301);
/// i64 in \[1, 64\]: units that the host holds unsharded at once; default 1. Not looked at with SHARD_GRAD_OP. Since 0.2
pub const SHARDREC_OPTION_FSDP_HELD_UNITS: shardrec_option = shardrec_option(1302);
/// i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16, of full parameters and full gradients, and of parameters on their way. Shards are FLOAT32; rounded to nearest. Since 0.2
pub const SHARDREC_OPTION_FSDP_PARAMETER_DTYPE: shardrec_option = shardrec_option(1303);
/// i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16, of gradients on their way to the rank that adds them up in FLOAT32; sums of sharding groups go to their replicas as FLOAT32. Finite gradients beyond float16's range become +-65504. Since 0.2
pub const SHARDREC_OPTION_FSDP_REDUCE_DTYPE: shardrec_option = shardrec_option(1304);
/// i64, 0 or 1; 1: full parameters and full gradients are on the DEVICE, and shards, their gradients and the optimizer's states in the host's memory, where the CPU adds up and steps. With a DEVICE, 0 (default) is UNSUPPORTED; without one, 1 is INVALID_ARGUMENT. Since 0.2
pub const SHARDREC_OPTION_FSDP_OFFLOAD: shardrec_option = shardrec_option(1305);
const _: () = assert!(core::mem::size_of::<shardrec_option>() == 4);

/// What carries messages between processes: a plug-in, loaded when it is first asked for.
/// Over GLOO, processes of one machine (same boot, network and process namespaces) read messages of
/// 1 MiB and more in each other's memory, by process_vm_readv(2), where the system lets them (same
/// user; Yama's ptrace_scope 0); all others go through TCP, and so do all where it does not. The
/// environment variable SHARDREC_GLOO_DIRECT_BYTES sets the least size (at least 16385; 0: none are
/// read so; anything else is INVALID_ARGUMENT of create); the largest of two ranks counts.
/// Where memory runs out on a thread of the library or of Gloo, the communicator ends: calls on this
/// rank return OUT_OF_MEMORY or PEER_FAILED, and the others are told that this rank is lost.
/// Programs that the host starts inherit no descriptor; but Gloo opens its own without O_CLOEXEC,
/// and they are marked right afterwards: a program that another thread starts within those
/// microseconds of a create keeps a connection open until it ends.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_engine(pub u32);
/// TCP, by Gloo; needs no launcher; processes meet at a rendezvous
pub const SHARDREC_ENGINE_GLOO: shardrec_engine = shardrec_engine(1);
/// the MPI whose launcher (mpirun, srun) has started the processes
pub const SHARDREC_ENGINE_MPI: shardrec_engine = shardrec_engine(2);
/// between devices NVIDIA's NCCL, 2.19 or newer; what hosts say to each other goes by MPI where that has started the processes, else by Gloo
pub const SHARDREC_ENGINE_NCCL: shardrec_engine = shardrec_engine(3);
const _: () = assert!(core::mem::size_of::<shardrec_engine>() == 4);

/// The C API's `shardrec_comm_property`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_comm_property(pub u32);
/// f64, \> 0, at most 1e9 (all three); deadline of barrier, collectives on tensors, begin, forward, backward, rows, layers' reductions; default 600
pub const SHARDREC_COMM_STEP_SECONDS: shardrec_comm_property = shardrec_comm_property(1);
/// f64, \> 0; deadline of create, split, commit, save, load; default 1800
pub const SHARDREC_COMM_SETUP_SECONDS: shardrec_comm_property = shardrec_comm_property(2);
/// f64, \> 0; a wait this long logs the late rank; default 30
pub const SHARDREC_COMM_WARN_SECONDS: shardrec_comm_property = shardrec_comm_property(3);
/// f64, 0 or 1; 1: NCCL carries what collections made from now on send between devices of ranks; the same on all ranks. Default 1 for ENGINE_NCCL, else 0: ranks of one process read each other's memory, processes of one machine copy from each other's devices where they can, others send through hosts. Meshes and what is split from a communicator have it as it is then
pub const SHARDREC_COMM_NCCL: shardrec_comm_property = shardrec_comm_property(4);
const _: () = assert!(core::mem::size_of::<shardrec_comm_property>() == 4);

/// The C API's `shardrec_reduction`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_reduction(pub u32);
/// The C API's `SHARDREC_REDUCTION_SUM`.
pub const SHARDREC_REDUCTION_SUM: shardrec_reduction = shardrec_reduction(0);
/// The C API's `SHARDREC_REDUCTION_MIN`.
pub const SHARDREC_REDUCTION_MIN: shardrec_reduction = shardrec_reduction(1);
/// The C API's `SHARDREC_REDUCTION_MAX`.
pub const SHARDREC_REDUCTION_MAX: shardrec_reduction = shardrec_reduction(2);
/// the sum divided by the number of ranks; floating point only
pub const SHARDREC_REDUCTION_MEAN: shardrec_reduction = shardrec_reduction(3);
const _: () = assert!(core::mem::size_of::<shardrec_reduction>() == 4);

/// A rank's groups.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_mesh_group(pub u32);
/// the ranks that hold one replica of all tables
pub const SHARDREC_MESH_GROUP_SHARDING: shardrec_mesh_group = shardrec_mesh_group(0);
/// the ranks that hold the same boxes
pub const SHARDREC_MESH_GROUP_REPLICA: shardrec_mesh_group = shardrec_mesh_group(1);
const _: () = assert!(core::mem::size_of::<shardrec_mesh_group>() == 4);

/// How the rows of a bag become one vector. w is the id's weight, 1 where a batch has no weights.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_pooling(pub u32);
/// sum of w \* row
pub const SHARDREC_POOLING_SUM: shardrec_pooling = shardrec_pooling(0);
/// sum of w \* row, divided by the bag's length; an empty bag is 0
pub const SHARDREC_POOLING_MEAN: shardrec_pooling = shardrec_pooling(1);
/// a sequence: one row per id, in an output of its own; weights do not count
pub const SHARDREC_POOLING_NONE: shardrec_pooling = shardrec_pooling(2);
const _: () = assert!(core::mem::size_of::<shardrec_pooling>() == 4);

/// What of a table is read or written.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_table_part(pub u32);
/// \[rows, dim\]
pub const SHARDREC_TABLE_WEIGHTS: shardrec_table_part = shardrec_table_part(0);
/// the first state of the table's optimizer, float32: "sum" (AdaGrad, row-wise AdaGrad), "exp_avg" (Adam, LAMB and their partial forms), "momentum_buffer" (LARS); SGD has none: NOT_FOUND
pub const SHARDREC_TABLE_STATE: shardrec_table_part = shardrec_table_part(1);
/// the second one: "exp_avg_sq". A state of one value per element is \[rows, dim\]; one of one value per row (row-wise AdaGrad's sum, exp_avg_sq of the partial forms) is \[rows, 1\], with SHARD statistics \[rows, dim\], each column holding its box's value
pub const SHARDREC_TABLE_STATE_2: shardrec_table_part = shardrec_table_part(2);
const _: () = assert!(core::mem::size_of::<shardrec_table_part>() == 4);

/// What shardrec_collection_stat tells of this rank, since creation. Counts and bytes are whole numbers. The
/// counters of shardrec_counters_text are the same: capi/NAMES.md.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_stat(pub u32);
/// applied updates (shardrec_collection_step)
pub const SHARDREC_STAT_STEPS: shardrec_stat = shardrec_stat(1);
/// memory of own boxes and their state
pub const SHARDREC_STAT_BYTES_TABLES: shardrec_stat = shardrec_stat(2);
/// memory of buffers: lookups, updates, operations
pub const SHARDREC_STAT_BYTES_BUFFERS: shardrec_stat = shardrec_stat(3);
/// sent to other ranks by input exchanges
pub const SHARDREC_STAT_BYTES_INPUT: shardrec_stat = shardrec_stat(4);
/// ... by output exchanges
pub const SHARDREC_STAT_BYTES_OUTPUT: shardrec_stat = shardrec_stat(5);
/// ... by gradient exchanges
pub const SHARDREC_STAT_BYTES_GRADIENT: shardrec_stat = shardrec_stat(6);
/// ids routed by this rank, own boxes included
pub const SHARDREC_STAT_IDS_SENT: shardrec_stat = shardrec_stat(7);
/// ids looked up by this rank
pub const SHARDREC_STAT_IDS_RECEIVED: shardrec_stat = shardrec_stat(8);
/// most threads that worked at once in a kernel of this rank
pub const SHARDREC_STAT_THREADS_SEEN: shardrec_stat = shardrec_stat(9);
/// finite numbers beyond float16's range that this rank sent as +-65504 (options FORWARD_COMPRESSION, BACKWARD_COMPRESSION: FLOAT16); not counted with a DEVICE other than the CPU. Since 0.2
pub const SHARDREC_STAT_SATURATED: shardrec_stat = shardrec_stat(10);
/// sent to other replicas by syncs, and by steps with REPLICA_SYNC SHARDED. Since 0.2
pub const SHARDREC_STAT_BYTES_SYNC: shardrec_stat = shardrec_stat(11);
/// rows of this rank's boxes that syncs have averaged, or with REPLICA_SYNC SHARDED steps have written here that other replicas updated; boxes side by side count once. Since 0.2
pub const SHARDREC_STAT_ROWS_SYNCED: shardrec_stat = shardrec_stat(12);
/// check and route ids (begin)
pub const SHARDREC_STAT_SECONDS_ROUTE: shardrec_stat = shardrec_stat(101);
/// waiting for and copying ids
pub const SHARDREC_STAT_SECONDS_INPUT_EXCHANGE: shardrec_stat = shardrec_stat(102);
/// grouping ids by row
pub const SHARDREC_STAT_SECONDS_INDEX_PLAN: shardrec_stat = shardrec_stat(103);
/// reading rows
pub const SHARDREC_STAT_SECONDS_LOOKUP: shardrec_stat = shardrec_stat(104);
/// waiting for and adding partial sums
pub const SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE: shardrec_stat = shardrec_stat(105);
/// scaling output gradients (set_gradient, backward)
pub const SHARDREC_STAT_SECONDS_GRADIENT: shardrec_stat = shardrec_stat(106);
/// waiting for and copying gradients
pub const SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE: shardrec_stat = shardrec_stat(107);
/// summing gradients by row and optimizer steps
pub const SHARDREC_STAT_SECONDS_UPDATE: shardrec_stat = shardrec_stat(108);
/// no time: ids looked up by the busiest rank / the mean of all ranks, 1 when even; up to the batch before, as the ranks tell each other with their batches
pub const SHARDREC_STAT_IMBALANCE: shardrec_stat = shardrec_stat(109);
/// ids of this rank's batches outside \[0, rows) that were dropped or clamped (option OUT_OF_RANGE)
pub const SHARDREC_STAT_TABLE_OUT_OF_RANGE: shardrec_stat = shardrec_stat(201);
/// ids looked up in this rank's boxes; boxes side by side count once
pub const SHARDREC_STAT_TABLE_IDS: shardrec_stat = shardrec_stat(202);
/// rows of this rank's boxes that steps have updated: different rows of one step, summed over the steps
pub const SHARDREC_STAT_TABLE_ROWS_UPDATED: shardrec_stat = shardrec_stat(203);
/// batches of this rank that were refused or skipped for a NaN or an infinity (option NON_FINITE), the first of which belongs to a feature of the table. Since 0.2
pub const SHARDREC_STAT_TABLE_NON_FINITE: shardrec_stat = shardrec_stat(204);
const _: () = assert!(core::mem::size_of::<shardrec_stat>() == 4);

/// What a batch does to the tables when it ends (shardrec_lookup_backward).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_update(pub u32);
/// one optimizer step with its gradients and those that were kept
pub const SHARDREC_UPDATE_APPLY: shardrec_update = shardrec_update(0);
/// its gradients are kept for the next step that is applied
pub const SHARDREC_UPDATE_ACCUMULATE: shardrec_update = shardrec_update(1);
/// no rank applies a step
pub const SHARDREC_UPDATE_SKIP: shardrec_update = shardrec_update(2);
const _: () = assert!(core::mem::size_of::<shardrec_update>() == 4);

/// What shardrec_ddp_clip_gradients bounds.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_clip(pub u32);
/// the root of the sum of all squares, summed in float64
pub const SHARDREC_CLIP_L2: shardrec_clip = shardrec_clip(0);
/// the largest magnitude, by scaling all gradients
pub const SHARDREC_CLIP_INFINITY: shardrec_clip = shardrec_clip(1);
/// each element by itself
pub const SHARDREC_CLIP_VALUE: shardrec_clip = shardrec_clip(2);
const _: () = assert!(core::mem::size_of::<shardrec_clip>() == 4);

/// What shardrec_fsdp_shard, _full and _set_full are of.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_fsdp_array(pub u32);
/// The C API's `SHARDREC_FSDP_VALUES`.
pub const SHARDREC_FSDP_VALUES: shardrec_fsdp_array = shardrec_fsdp_array(0);
/// The C API's `SHARDREC_FSDP_GRADIENT`.
pub const SHARDREC_FSDP_GRADIENT: shardrec_fsdp_array = shardrec_fsdp_array(1);
/// SHARDREC_FSDP_STATE + s: state s of the optimizer, as shardrec_ddp_state numbers them
pub const SHARDREC_FSDP_STATE: shardrec_fsdp_array = shardrec_fsdp_array(2);
const _: () = assert!(core::mem::size_of::<shardrec_fsdp_array>() == 4);

/// The C API's `shardrec_activation`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_activation(pub u32);
/// The C API's `SHARDREC_ACTIVATION_NONE`.
pub const SHARDREC_ACTIVATION_NONE: shardrec_activation = shardrec_activation(0);
/// The C API's `SHARDREC_ACTIVATION_RELU`.
pub const SHARDREC_ACTIVATION_RELU: shardrec_activation = shardrec_activation(1);
const _: () = assert!(core::mem::size_of::<shardrec_activation>() == 4);

/// What a layer computes from its input x, row by row of the batch. All but LINEAR have as many outputs
/// as inputs. x W^T is a matrix product; \* multiplies element by element.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_layer_kind(pub u32);
/// y = activation(x W^T + b)
pub const SHARDREC_LAYER_LINEAR: shardrec_layer_kind = shardrec_layer_kind(0);
/// y = x0 \* (x W^T + b) + x, of DCN-v2 (Wang et al. 2021)
pub const SHARDREC_LAYER_CROSS: shardrec_layer_kind = shardrec_layer_kind(1);
/// y = (x - mean) / sqrt(variance + epsilon) \* w + b (Ba et al. 2016)
pub const SHARDREC_LAYER_LAYER_NORM: shardrec_layer_kind = shardrec_layer_kind(2);
/// y = 0 with probability rate, else x / (1 - rate) (Srivastava et al. 2014)
pub const SHARDREC_LAYER_DROPOUT: shardrec_layer_kind = shardrec_layer_kind(3);
const _: () = assert!(core::mem::size_of::<shardrec_layer_kind>() == 4);

/// A number of a stack that can be changed.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_mlp_setting(pub u32);
/// finite, \>= 0; of the next step
pub const SHARDREC_MLP_LEARNING_RATE: shardrec_mlp_setting = shardrec_mlp_setting(1);
/// 1 (at first) or 0; 0 for evaluation: dropout layers give their input
pub const SHARDREC_MLP_TRAINING: shardrec_mlp_setting = shardrec_mlp_setting(2);
const _: () = assert!(core::mem::size_of::<shardrec_mlp_setting>() == 4);

/// The C API's `shardrec_metric`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_metric(pub u32);
/// area under the ROC curve, exact, ties count one half; NOT_FOUND when all labels are equal
pub const SHARDREC_METRIC_AUC: shardrec_metric = shardrec_metric(1);
/// mean cross-entropy / entropy of the base rate (He et al. 2014); NOT_FOUND when all labels are equal
pub const SHARDREC_METRIC_NE: shardrec_metric = shardrec_metric(2);
/// mean binary cross-entropy, nats
pub const SHARDREC_METRIC_LOSS: shardrec_metric = shardrec_metric(3);
/// mean label; NOT_FOUND without samples
pub const SHARDREC_METRIC_CTR: shardrec_metric = shardrec_metric(4);
/// number of samples, all ranks
pub const SHARDREC_METRIC_SAMPLES: shardrec_metric = shardrec_metric(5);
/// samples of all ranks / seconds from create or reset to compute
pub const SHARDREC_METRIC_SAMPLES_PER_SECOND: shardrec_metric = shardrec_metric(6);
const _: () = assert!(core::mem::size_of::<shardrec_metric>() == 4);

/// All functions may be called from any thread at any time, also while the work runs.
#[repr(C)]
pub struct shardrec_control {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Bytes on a device or on the CPU. Any thread.
#[repr(C)]
pub struct shardrec_memory {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_options`.
#[repr(C)]
pub struct shardrec_options {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// A group of ranks that are threads of this process. Any thread.
#[repr(C)]
pub struct shardrec_local {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// One rank's membership. Collective calls of one rank on one communicator: one thread at a time,
/// not bound to a particular thread. Different communicators are independent.
#[repr(C)]
pub struct shardrec_comm {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Any thread.
#[repr(C)]
pub struct shardrec_rendezvous {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// One rank's place in a mesh. One thread at a time, else BUSY.
#[repr(C)]
pub struct shardrec_mesh {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_model`.
#[repr(C)]
pub struct shardrec_model {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_topology`.
#[repr(C)]
pub struct shardrec_topology {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_plan`.
#[repr(C)]
pub struct shardrec_plan {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_collection`.
#[repr(C)]
pub struct shardrec_collection {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_lookup`.
#[repr(C)]
pub struct shardrec_lookup {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_ddp`.
#[repr(C)]
pub struct shardrec_ddp {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_fsdp`.
#[repr(C)]
pub struct shardrec_fsdp {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_mlp`.
#[repr(C)]
pub struct shardrec_mlp {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_interaction`.
#[repr(C)]
pub struct shardrec_interaction {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_checkpoint`.
#[repr(C)]
pub struct shardrec_checkpoint {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_scorer`.
#[repr(C)]
pub struct shardrec_scorer {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The C API's `shardrec_metrics`.
#[repr(C)]
pub struct shardrec_metrics {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// A view; its layout is frozen. It is copied on entry; the memory behind data stays the caller's.
/// Unless a function says otherwise, no call keeps data after it has returned.
/// shape and stride count elements; all strides zero means compact, row-major. A dimension of size
/// zero is allowed, and then data may be NULL or dangling; else it is aligned to its dtype.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_tensor {
    /// The C API's `shardrec_tensor.data`.
    pub data: *mut c_void,
    /// shardrec_device_type
    pub device_type: i32,
    /// 0 on the CPU
    pub device_id: i32,
    /// shardrec_dtype
    pub dtype: i32,
    /// 0 .. SHARDREC_MAX_DIMENSIONS
    pub ndim: i32,
    /// The C API's `shardrec_tensor.shape`.
    pub shape: [i64; 8],
    /// The C API's `shardrec_tensor.stride`.
    pub stride: [i64; 8],
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_tensor>() == 152);
    assert!(core::mem::align_of::<shardrec_tensor>() == 8);
    assert!(core::mem::offset_of!(shardrec_tensor, data) == 0);
    assert!(core::mem::offset_of!(shardrec_tensor, device_type) == 8);
    assert!(core::mem::offset_of!(shardrec_tensor, device_id) == 12);
    assert!(core::mem::offset_of!(shardrec_tensor, dtype) == 16);
    assert!(core::mem::offset_of!(shardrec_tensor, ndim) == 20);
    assert!(core::mem::offset_of!(shardrec_tensor, shape) == 24);
    assert!(core::mem::offset_of!(shardrec_tensor, stride) == 88);
};

/// Where a rank is in a mesh.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_place {
    /// sizeof(shardrec_place), set by the caller
    pub struct_size: i64,
    /// number in its sharding group: the rank that plans speak of
    pub sharding_rank: i32,
    /// ranks of a sharding group
    pub sharding_size: i32,
    /// number in its replica group: the number of the replica that it holds
    pub replica_rank: i32,
    /// ranks of a replica group: replicas
    pub replica_size: i32,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_place>() == 24);
    assert!(core::mem::align_of::<shardrec_place>() == 8);
    assert!(core::mem::offset_of!(shardrec_place, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_place, sharding_rank) == 8);
    assert!(core::mem::offset_of!(shardrec_place, sharding_size) == 12);
    assert!(core::mem::offset_of!(shardrec_place, replica_rank) == 16);
    assert!(core::mem::offset_of!(shardrec_place, replica_size) == 20);
};
impl shardrec_place {
    /// All members zero but its size.
    pub const fn new() -> shardrec_place {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_place = unsafe { core::mem::zeroed() };
        made.struct_size = 24;
        made
    }
}
impl Default for shardrec_place {
    fn default() -> shardrec_place {
        shardrec_place::new()
    }
}

/// What a model holds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_model_size {
    /// sizeof(shardrec_model_size), set by the caller
    pub struct_size: i64,
    /// number of tables
    pub tables: i32,
    /// number of features
    pub features: i32,
    /// how many of the features are sequences (POOLING_NONE)
    pub sequences: i32,
    /// 0
    pub reserved: i32,
    /// columns of output 0: the sum of the dims of all pooled features
    pub width: i64,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_model_size>() == 32);
    assert!(core::mem::align_of::<shardrec_model_size>() == 8);
    assert!(core::mem::offset_of!(shardrec_model_size, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_model_size, tables) == 8);
    assert!(core::mem::offset_of!(shardrec_model_size, features) == 12);
    assert!(core::mem::offset_of!(shardrec_model_size, sequences) == 16);
    assert!(core::mem::offset_of!(shardrec_model_size, reserved) == 20);
    assert!(core::mem::offset_of!(shardrec_model_size, width) == 24);
};
impl shardrec_model_size {
    /// All members zero but its size.
    pub const fn new() -> shardrec_model_size {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_model_size = unsafe { core::mem::zeroed() };
        made.struct_size = 32;
        made
    }
}
impl Default for shardrec_model_size {
    fn default() -> shardrec_model_size {
        shardrec_model_size::new()
    }
}

/// A table of a model.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_table {
    /// sizeof(shardrec_table), set by the caller
    pub struct_size: i64,
    /// number of rows
    pub rows: i64,
    /// elements of a row
    pub dim: i64,
    /// of its weights
    pub dtype: shardrec_dtype,
    /// its own, else the model's
    pub optimizer: shardrec_optimizer,
    /// that its optimizer begins with
    pub learning_rate: f64,
    /// states of its optimizer, 0 to 2: parts of shardrec_table_part
    pub states: i32,
    /// number of features that are looked up in it
    pub features: i32,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_table>() == 48);
    assert!(core::mem::align_of::<shardrec_table>() == 8);
    assert!(core::mem::offset_of!(shardrec_table, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_table, rows) == 8);
    assert!(core::mem::offset_of!(shardrec_table, dim) == 16);
    assert!(core::mem::offset_of!(shardrec_table, dtype) == 24);
    assert!(core::mem::offset_of!(shardrec_table, optimizer) == 28);
    assert!(core::mem::offset_of!(shardrec_table, learning_rate) == 32);
    assert!(core::mem::offset_of!(shardrec_table, states) == 40);
    assert!(core::mem::offset_of!(shardrec_table, features) == 44);
};
impl shardrec_table {
    /// All members zero but its size.
    pub const fn new() -> shardrec_table {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_table = unsafe { core::mem::zeroed() };
        made.struct_size = 48;
        made
    }
}
impl Default for shardrec_table {
    fn default() -> shardrec_table {
        shardrec_table::new()
    }
}

/// A feature of a model, and where lookups write it. Output 0 holds the pooled features: tables as added,
/// within a table its features as added.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_feature {
    /// sizeof(shardrec_feature), set by the caller
    pub struct_size: i64,
    /// index of the table that it is looked up in
    pub table: i32,
    /// how the rows of a bag become one vector
    pub pooling: shardrec_pooling,
    /// 0, or 1 + k for the k-th sequence feature in model order
    pub output: i32,
    /// 0
    pub reserved: i32,
    /// its first column of that output; 0 for a sequence
    pub column: i64,
    /// its number of columns: the table's dim
    pub columns: i64,
    /// columns of that output, those of other features included
    pub width: i64,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_feature>() == 48);
    assert!(core::mem::align_of::<shardrec_feature>() == 8);
    assert!(core::mem::offset_of!(shardrec_feature, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_feature, table) == 8);
    assert!(core::mem::offset_of!(shardrec_feature, pooling) == 12);
    assert!(core::mem::offset_of!(shardrec_feature, output) == 16);
    assert!(core::mem::offset_of!(shardrec_feature, reserved) == 20);
    assert!(core::mem::offset_of!(shardrec_feature, column) == 24);
    assert!(core::mem::offset_of!(shardrec_feature, columns) == 32);
    assert!(core::mem::offset_of!(shardrec_feature, width) == 40);
};
impl shardrec_feature {
    /// All members zero but its size.
    pub const fn new() -> shardrec_feature {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_feature = unsafe { core::mem::zeroed() };
        made.struct_size = 48;
        made
    }
}
impl Default for shardrec_feature {
    fn default() -> shardrec_feature {
        shardrec_feature::new()
    }
}

/// A box: rows \[row, row + rows) x columns \[col, col + cols) of a table, owned by a rank. Its bytes are what a
/// collection allocates for it on its rank, buffers aside; shardrec_plan_add_box does not read them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_box {
    /// sizeof(shardrec_box), set by the caller
    pub struct_size: i64,
    /// The C API's `shardrec_box.rank`.
    pub rank: i32,
    /// 0
    pub reserved: i32,
    /// The C API's `shardrec_box.row`.
    pub row: i64,
    /// The C API's `shardrec_box.rows`.
    pub rows: i64,
    /// The C API's `shardrec_box.col`.
    pub col: i64,
    /// The C API's `shardrec_box.cols`.
    pub cols: i64,
    /// rows x cols x the dtype's size
    pub weight_bytes: i64,
    /// of optimizer states, float32: per element, or one per row of the box; boxes of one row range on one rank share the latter where ROW_STATISTICS is ROW, and it counts with the first of them
    pub state_bytes: i64,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_box>() == 64);
    assert!(core::mem::align_of::<shardrec_box>() == 8);
    assert!(core::mem::offset_of!(shardrec_box, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_box, rank) == 8);
    assert!(core::mem::offset_of!(shardrec_box, reserved) == 12);
    assert!(core::mem::offset_of!(shardrec_box, row) == 16);
    assert!(core::mem::offset_of!(shardrec_box, rows) == 24);
    assert!(core::mem::offset_of!(shardrec_box, col) == 32);
    assert!(core::mem::offset_of!(shardrec_box, cols) == 40);
    assert!(core::mem::offset_of!(shardrec_box, weight_bytes) == 48);
    assert!(core::mem::offset_of!(shardrec_box, state_bytes) == 56);
};
impl shardrec_box {
    /// All members zero but its size.
    pub const fn new() -> shardrec_box {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_box = unsafe { core::mem::zeroed() };
        made.struct_size = 64;
        made
    }
}
impl Default for shardrec_box {
    fn default() -> shardrec_box {
        shardrec_box::new()
    }
}

/// The bags of a rank's samples. It is read during the call that takes it. Members that are not set are zero:
///
/// shardrec_batch batch = {.struct_size = sizeof batch, .batch_size = 2, .values = &ids, .lengths = &lengths};
///
/// Bags are feature-major: all of feature 0, then feature 1, and so on, features as added to the model. All
/// tensors are compact, one-dimensional, on the CPU (or, where a function says so, on a device).
/// struct_size  sizeof(shardrec_batch); a smaller struct ends before members of a later release
/// batch_size   samples of this rank, 0 to 2^31 - 1: rows of output 0
/// values       \[ids\], at most 2^31 - 1 of them, INT32 or INT64, bag after bag. NULL: this rank has no more
///              data; then batch_size is 0 and all others are NULL
/// lengths      \[bags\], INT32 or INT64, whose sum is ids. bags: features \* batch_size, or the sum of batch_sizes
/// offsets      in place of lengths: \[bags + 1\], INT32 or INT64, starting at 0, ascending or equal, the
///              last one the number of ids
/// weights      \[ids\], FLOAT32, one per id; NULL: all 1
/// batch_sizes  \[features\], INT32 or INT64: number of bags of each feature, 0 to 2^31 - 1; NULL: batch_size
/// inverse      with batch_sizes: \[features \* batch_size\], INT32 or INT64, feature-major: the bag of each
///              sample, in \[0, batch_sizes\[feature\])
///
/// batch_sizes and inverse are for batches in which many samples have the same bag, which is then given once
/// (TorchRec's variable batch size). Row s of output 0 holds bag inverse\[f \* batch_size + s\] of each pooled
/// feature f; the gradients of samples that share a bag are added up in ascending order, before anything
/// else. A sequence feature's output holds the ids of its bags; its part of inverse is not read. Where all
/// batch sizes are batch_size and inverse counts from 0, this is the batch without both, bit for bit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_batch {
    /// The C API's `shardrec_batch.struct_size`.
    pub struct_size: i64,
    /// The C API's `shardrec_batch.batch_size`.
    pub batch_size: i64,
    /// The C API's `shardrec_batch.values`.
    pub values: *const shardrec_tensor,
    /// The C API's `shardrec_batch.lengths`.
    pub lengths: *const shardrec_tensor,
    /// The C API's `shardrec_batch.offsets`.
    pub offsets: *const shardrec_tensor,
    /// The C API's `shardrec_batch.weights`.
    pub weights: *const shardrec_tensor,
    /// The C API's `shardrec_batch.batch_sizes`.
    pub batch_sizes: *const shardrec_tensor,
    /// The C API's `shardrec_batch.inverse`.
    pub inverse: *const shardrec_tensor,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_batch>() == 64);
    assert!(core::mem::align_of::<shardrec_batch>() == 8);
    assert!(core::mem::offset_of!(shardrec_batch, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_batch, batch_size) == 8);
    assert!(core::mem::offset_of!(shardrec_batch, values) == 16);
    assert!(core::mem::offset_of!(shardrec_batch, lengths) == 24);
    assert!(core::mem::offset_of!(shardrec_batch, offsets) == 32);
    assert!(core::mem::offset_of!(shardrec_batch, weights) == 40);
    assert!(core::mem::offset_of!(shardrec_batch, batch_sizes) == 48);
    assert!(core::mem::offset_of!(shardrec_batch, inverse) == 56);
};
impl shardrec_batch {
    /// All members zero but its size.
    pub const fn new() -> shardrec_batch {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_batch = unsafe { core::mem::zeroed() };
        made.struct_size = 64;
        made
    }
}
impl Default for shardrec_batch {
    fn default() -> shardrec_batch {
        shardrec_batch::new()
    }
}

/// A layer to add (shardrec_mlp_add). Members that its kind does not read are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_layer {
    /// sizeof(shardrec_layer), set by the caller
    pub struct_size: i64,
    /// a shardrec_layer_kind
    pub kind: i32,
    /// of LINEAR: a shardrec_activation
    pub activation: i32,
    /// of LINEAR: columns of its output, 1 to 65536
    pub outputs: i64,
    /// of CROSS: 0 for a whole matrix W, or columns of its factors, 1 to 65536
    pub rank: i64,
    /// of LAYER_NORM: 1e-30 to 1e30, or 0 for 1e-5
    pub epsilon: f64,
    /// of DROPOUT: probability that an element becomes 0, at least 0, below 1
    pub rate: f64,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_layer>() == 48);
    assert!(core::mem::align_of::<shardrec_layer>() == 8);
    assert!(core::mem::offset_of!(shardrec_layer, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_layer, kind) == 8);
    assert!(core::mem::offset_of!(shardrec_layer, activation) == 12);
    assert!(core::mem::offset_of!(shardrec_layer, outputs) == 16);
    assert!(core::mem::offset_of!(shardrec_layer, rank) == 24);
    assert!(core::mem::offset_of!(shardrec_layer, epsilon) == 32);
    assert!(core::mem::offset_of!(shardrec_layer, rate) == 40);
};
impl shardrec_layer {
    /// All members zero but its size.
    pub const fn new() -> shardrec_layer {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_layer = unsafe { core::mem::zeroed() };
        made.struct_size = 48;
        made
    }
}
impl Default for shardrec_layer {
    fn default() -> shardrec_layer {
        shardrec_layer::new()
    }
}

/// A stack of layers, as it is now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_layers {
    /// sizeof(shardrec_layers), set by the caller
    pub struct_size: i64,
    /// columns of the input
    pub inputs: i64,
    /// columns of the output; inputs while there is no layer
    pub outputs: i64,
    /// number of layers that were added
    pub layers: i32,
    /// number of parameters of all layers (shardrec_mlp_add)
    pub parameters: i32,
    /// of all parameters together
    pub elements: i64,
    /// optimizer steps (shardrec_mlp_step)
    pub step: i64,
    /// of the next step
    pub learning_rate: f64,
    /// that it was made with
    pub optimizer: shardrec_optimizer,
    /// states that the optimizer keeps for each parameter, 0 to 2
    pub states: i32,
    /// of the next backward with PRECISION FLOAT16, else 1
    pub loss_scale: f64,
    /// with PRECISION FLOAT16, of this handle; `step` is without them
    pub skipped_steps: i64,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_layers>() == 80);
    assert!(core::mem::align_of::<shardrec_layers>() == 8);
    assert!(core::mem::offset_of!(shardrec_layers, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_layers, inputs) == 8);
    assert!(core::mem::offset_of!(shardrec_layers, outputs) == 16);
    assert!(core::mem::offset_of!(shardrec_layers, layers) == 24);
    assert!(core::mem::offset_of!(shardrec_layers, parameters) == 28);
    assert!(core::mem::offset_of!(shardrec_layers, elements) == 32);
    assert!(core::mem::offset_of!(shardrec_layers, step) == 40);
    assert!(core::mem::offset_of!(shardrec_layers, learning_rate) == 48);
    assert!(core::mem::offset_of!(shardrec_layers, optimizer) == 56);
    assert!(core::mem::offset_of!(shardrec_layers, states) == 60);
    assert!(core::mem::offset_of!(shardrec_layers, loss_scale) == 64);
    assert!(core::mem::offset_of!(shardrec_layers, skipped_steps) == 72);
};
impl shardrec_layers {
    /// All members zero but its size.
    pub const fn new() -> shardrec_layers {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_layers = unsafe { core::mem::zeroed() };
        made.struct_size = 80;
        made
    }
}
impl Default for shardrec_layers {
    fn default() -> shardrec_layers {
        shardrec_layers::new()
    }
}

/// The checkpoint that is open.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_opened {
    /// sizeof(shardrec_opened), set by the caller
    pub struct_size: i64,
    /// as shardrec_checkpoint_commit was given it
    pub step: i64,
    /// its number in its run, from 1; 0 where it is of none
    pub commit: i64,
    /// of its files, the manifest aside
    pub bytes: i64,
    /// of its files (impl/checkpoint/FORMAT.md)
    pub format: i32,
    /// that wrote it
    pub ranks: i32,
    /// number of collections in it
    pub collections: i32,
    /// number of stacks of layers
    pub layers: i32,
    /// number of sets of DDP parameters
    pub parameters: i32,
    /// number of tensors that ranks had set
    pub tensors: i32,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_opened>() == 56);
    assert!(core::mem::align_of::<shardrec_opened>() == 8);
    assert!(core::mem::offset_of!(shardrec_opened, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_opened, step) == 8);
    assert!(core::mem::offset_of!(shardrec_opened, commit) == 16);
    assert!(core::mem::offset_of!(shardrec_opened, bytes) == 24);
    assert!(core::mem::offset_of!(shardrec_opened, format) == 32);
    assert!(core::mem::offset_of!(shardrec_opened, ranks) == 36);
    assert!(core::mem::offset_of!(shardrec_opened, collections) == 40);
    assert!(core::mem::offset_of!(shardrec_opened, layers) == 44);
    assert!(core::mem::offset_of!(shardrec_opened, parameters) == 48);
    assert!(core::mem::offset_of!(shardrec_opened, tensors) == 52);
};
impl shardrec_opened {
    /// All members zero but its size.
    pub const fn new() -> shardrec_opened {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_opened = unsafe { core::mem::zeroed() };
        made.struct_size = 56;
        made
    }
}
impl Default for shardrec_opened {
    fn default() -> shardrec_opened {
        shardrec_opened::new()
    }
}

/// A tensor of the host in a checkpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_saved_tensor {
    /// sizeof(shardrec_saved_tensor), set by the caller
    pub struct_size: i64,
    /// of its elements
    pub bytes: i64,
    /// dtype, shape and strides of a compact tensor on the CPU; data NULL
    pub tensor: shardrec_tensor,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_saved_tensor>() == 168);
    assert!(core::mem::align_of::<shardrec_saved_tensor>() == 8);
    assert!(core::mem::offset_of!(shardrec_saved_tensor, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_saved_tensor, bytes) == 8);
    assert!(core::mem::offset_of!(shardrec_saved_tensor, tensor) == 16);
};
impl shardrec_saved_tensor {
    /// All members zero but its size.
    pub const fn new() -> shardrec_saved_tensor {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_saved_tensor = unsafe { core::mem::zeroed() };
        made.struct_size = 168;
        made
    }
}
impl Default for shardrec_saved_tensor {
    fn default() -> shardrec_saved_tensor {
        shardrec_saved_tensor::new()
    }
}

/// What is served.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_served {
    /// sizeof(shardrec_served), set by the caller
    pub struct_size: i64,
    /// of the checkpoint
    pub step: i64,
    /// of the dense input; 0: no dense half that fits
    pub dense_columns: i64,
    /// per sample; 0: no dense half that fits
    pub scores: i64,
}
const _: () = {
    assert!(core::mem::size_of::<shardrec_served>() == 32);
    assert!(core::mem::align_of::<shardrec_served>() == 8);
    assert!(core::mem::offset_of!(shardrec_served, struct_size) == 0);
    assert!(core::mem::offset_of!(shardrec_served, step) == 8);
    assert!(core::mem::offset_of!(shardrec_served, dense_columns) == 16);
    assert!(core::mem::offset_of!(shardrec_served, scores) == 24);
};
impl shardrec_served {
    /// All members zero but its size.
    pub const fn new() -> shardrec_served {
        // SAFETY: zeros are a value of every member: numbers and pointers.
        let mut made: shardrec_served = unsafe { core::mem::zeroed() };
        made.struct_size = 32;
        made
    }
}
impl Default for shardrec_served {
    fn default() -> shardrec_served {
        shardrec_served::new()
    }
}

extern "C" {
    /// Name of a status, such as "SHARDREC_TIMEOUT"; "unknown status" for any other number.
    /// Never NULL; static storage. Any thread. Since 0.1.
    pub fn shardrec_status_name(status: shardrec_status) -> *const c_char;
    /// This thread's last error as one UTF-8 sentence; "" when no call of this thread has failed.
    /// Never NULL; owned by the library, valid until this thread's next failing call. Since 0.1.
    pub fn shardrec_last_error() -> *const c_char;
    /// Status of this thread's last error, SHARDREC_OK when there was none. Since 0.1.
    pub fn shardrec_last_error_status() -> shardrec_status;
    /// A part of this thread's last error as a number.
    /// part: SHARDREC_ERROR_RANK .. SHARDREC_ERROR_SEQUENCE. out: one int64_t.
    /// Errors: NOT_FOUND when the error has no such part (the error itself is left alone),
    /// INVALID_ARGUMENT when out is NULL. Since 0.1.
    pub fn shardrec_last_error_i64(part: shardrec_error_part, out: *mut i64) -> shardrec_status;
    /// A part of this thread's last error as text.
    /// part: SHARDREC_ERROR_TABLE .. SHARDREC_ERROR_PATH. out_text: UTF-8, freed by the caller with
    /// shardrec_text_free. Errors: as shardrec_last_error_i64, and OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_last_error_text(part: shardrec_error_part, out_text: *mut *mut c_char) -> shardrec_status;
    /// Frees a text that a function returned through a char \*\*. NULL is allowed. Any thread. Since 0.1.
    pub fn shardrec_text_free(text: *mut c_char);
    /// major \* 1000 + minor of the API that the loaded library serves. Any thread. Since 0.1.
    pub fn shardrec_api_version() -> i32;
    /// What this library can do on this machine, as JSON:
    /// "version"            integer: 1
    /// "library_version"    text: "0.2.0"
    /// "api_version"        integer: SHARDREC_API_VERSION of the library
    /// "processors"         integer \>= 1: that the calling thread may run on, at most the cgroup quota, rounded down. Since 0.2
    /// "engines"            array of texts: "local", and those whose plug-ins are installed; "nccl" where
    ///                      NVIDIA's library is, too
    /// "devices"            array of texts: "cpu", and "cuda" where cuda_devices has any
    /// "cuda_devices\[\].index"               integer: what SHARDREC_OPTION_DEVICE takes
    /// "cuda_devices\[\].name"                text: "NVIDIA H100 80GB HBM3"
    /// "cuda_devices\[\].compute_capability"  text: "9.0"
    /// "cuda_devices\[\].memory_bytes"        integer
    /// "cuda_devices\[\].free_bytes"          integer or null: null as long as this library has not used the
    ///                      device in this process, because to ask for it would take memory of the device
    /// "cuda_missing"       text or null: why cuda_devices is empty or incomplete: there is no plug-in, no
    ///                      driver, no device, or one does not answer
    /// "cpu_targets"        array of texts: instruction sets of this machine, "scalar", "avx2" and so on
    /// "cpu_target"         text: the one in use
    /// "dense"              text or null: the GEMM plug-in, "openblas"; null when it is not installed
    /// "dense_cuda"         text or null: that of layers on CUDA devices, "cublas"; null when it, or NVIDIA's
    ///                      library, is not installed. Since 0.2
    /// The CUDA plug-in is loaded where it is installed; no device is used. The environment variable
    /// SHARDREC_CPU_TARGET forces a lower instruction set (read once, at the first use). Where it names none of
    /// cpu_targets, this call and those that make collections, layers and profiles get INVALID_ARGUMENT.
    /// out_text: freed by the caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
    pub fn shardrec_capabilities_json(out_text: *mut *mut c_char) -> shardrec_status;
    /// Whether this library has something on this machine: 1 or 0. Plug-ins are loaded to see; no device is used.
    /// name: as shardrec_capabilities_json lists it; a name that nobody knows is not available either.
    /// out_reason: freed by the caller with shardrec_text_free; may be NULL. Why not, and what to install or what
    /// there is; an empty text where it is available.
    /// Errors: INVALID_ARGUMENT (the kind; SHARDREC_CPU_TARGET, as shardrec_capabilities_json), OUT_OF_MEMORY.
    /// Any thread. Since 0.2.
    pub fn shardrec_available(kind: shardrec_capability, name: *const c_char, out_available: *mut i32, out_reason: *mut *mut c_char) -> shardrec_status;
    /// Handles of any kind that are open in this process, or closed with a call still inside.
    /// A test suite asserts that it ends at 0. Errors: INVALID_ARGUMENT. Any thread. Since 0.1.
    pub fn shardrec_live_objects(out: *mut i64) -> shardrec_status;
    /// XXH3-64 of size bytes with a seed: the same value in every language and on every machine, for
    /// mapping raw ids to rows (take it modulo the number of rows) and for splitting data sets.
    /// bytes may be NULL when size is 0 (or less). Never fails. Any thread. Since 0.1.
    pub fn shardrec_hash64(seed: u64, bytes: *const c_void, size: i64) -> u64;
    /// Maps raw ids to rows of a table: out\[i\] = shardrec_hash64(seed, the 8 bytes of ids\[i\] as int64_t,
    /// little-endian, 8) modulo rows, taken as unsigned. rows 0: the hash itself, its 64 bits as int64_t.
    /// ids: compact, one dimension, INT64 or INT32 (which hash as the same numbers in 64 bits). rows \>= 0.
    /// out: as long, INT64, or INT32 where rows is in \[1, 2^31\]; may be the memory of ids where the dtypes
    /// agree, must not overlap it otherwise. Errors: INVALID_ARGUMENT, UNSUPPORTED (device). Any thread.
    /// Since 0.1.
    pub fn shardrec_hash64_ids(seed: u64, ids: *const shardrec_tensor, rows: i64, out: *const shardrec_tensor) -> shardrec_status;
    /// Messages below level are not recorded; default WARNING. Errors: INVALID_ARGUMENT. Any thread.
    /// Since 0.1.
    pub fn shardrec_log_set_level(level: shardrec_log_level) -> shardrec_status;
    /// Takes the oldest message. Waits up to timeout_ms for one (0: does not wait; negative: refused).
    /// out_level, out_rank (-1: no rank) may be NULL. out_text: freed by the caller; NULL when no message
    /// came in time, which is not an error. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread.
    /// Since 0.1.
    pub fn shardrec_log_next(timeout_ms: i32, out_level: *mut shardrec_log_level, out_rank: *mut i32, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes a control. options: NULL (no kind of options is for controls yet). out: owned by the caller; may
    /// serve one call after another (progress starts anew with each). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn shardrec_control_create(options: *const shardrec_options, out: *mut *mut shardrec_control) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; work that holds it goes on. Since 0.1.
    pub fn shardrec_control_destroy(control: *mut *mut shardrec_control);
    /// Asks the work to end with CANCELLED; it does so at its next block of about a MiB. Later work with
    /// this control is cancelled too. Errors: INVALID_HANDLE, CLOSED. Since 0.1.
    pub fn shardrec_control_cancel(control: *mut shardrec_control) -> shardrec_status;
    /// Bytes done and bytes in all of the work at hand; 0, 0 before it starts. Each may be NULL.
    /// Errors: INVALID_HANDLE, CLOSED. Since 0.1.
    pub fn shardrec_control_progress(control: *const shardrec_control, out_done: *mut i64, out_total: *mut i64) -> shardrec_status;
    /// Fills out with a compact CPU view of length elements. Does not look at data.
    /// Errors: INVALID_ARGUMENT for out NULL, an unknown dtype or a negative length. Any thread.
    /// Since 0.1.
    pub fn shardrec_tensor_vector(data: *mut c_void, dtype: shardrec_dtype, length: i64, out: *mut shardrec_tensor) -> shardrec_status;
    /// Fills out with a compact row-major CPU view of \[rows, cols\] elements. As shardrec_tensor_vector.
    /// Since 0.1.
    pub fn shardrec_tensor_matrix(data: *mut c_void, dtype: shardrec_dtype, rows: i64, cols: i64, out: *mut shardrec_tensor) -> shardrec_status;
    /// Allocates memory, all zeros when the call returns, for work in any stream. type: SHARDREC_DEVICE_CUDA,
    /// or SHARDREC_DEVICE_CPU: memory that devices copy from and to without another copy, where the CUDA plug-in
    /// and its driver are there and have room for it, and plain memory elsewhere. It takes a context of CUDA,
    /// which a process has of each device that it has used, and of device 0 where there is none: make it after
    /// the collection where ranks have devices of their own. device_id: 0 on the CPU. bytes: 0 or more; it begins
    /// at a multiple of 64 bytes, on a device of 256. out: owned by the caller.
    /// Errors: UNSUPPORTED (no CUDA plug-in), INVALID_ARGUMENT (no such device, an unknown type, negative
    /// bytes), OUT_OF_MEMORY, DEVICE_ERROR. May block while the device begins to be used. Since 0.1.
    pub fn shardrec_memory_create(r#type: shardrec_device_type, device_id: i32, bytes: i64, options: *const shardrec_options, out: *mut *mut shardrec_memory) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; tensors of it are valid no more. Memory of a device is
    /// given back behind what the legacy default stream of the device holds, which the library's own work on
    /// tensors in that stream's order is part of: the caller need not wait for it. What other streams do with it
    /// must be over. Never blocks, but for memory of the CPU where the plug-in is there: CUDA gives it back when
    /// its devices have nothing to do. Since 0.1.
    pub fn shardrec_memory_destroy(memory: *mut *mut shardrec_memory);
    /// Fills out with a compact, row-major view of the memory, valid while the handle is open. offset_bytes:
    /// where the first element lies, a multiple of the dtype's size. shape: \[ndim\]; may be NULL where ndim is 0,
    /// a tensor of one element. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT (an offset that is negative
    /// or not aligned, an unknown dtype, ndim outside 0 to SHARDREC_MAX_DIMENSIONS, a negative size, or the
    /// tensor does not end within the memory). Since 0.1.
    pub fn shardrec_memory_tensor(memory: *const shardrec_memory, offset_bytes: i64, dtype: shardrec_dtype, ndim: i32, shape: *const i64, out: *mut shardrec_tensor) -> shardrec_status;
    /// Copies a tensor to another of the same dtype and shape, bit by bit. Each may be on the CPU or on a
    /// device, in any memory, with rows (dimension 0) of any stride that keeps them apart; both on devices:
    /// on the same one. They do not overlap.
    /// Where a device takes part, the copy takes place in the order of the stream: the value of a cudaStream_t
    /// of that device, which is not being captured; 0: its legacy default stream, which lookups follow too
    /// unless shardrec_lookup_set_stream says otherwise. With a tensor on the CPU the call returns when that
    /// was read or written; between two tensors of a device it enqueues, and what is enqueued in the stream
    /// afterwards finds the copy made. Between tensors on the CPU stream is not looked at.
    /// Errors: INVALID_ARGUMENT (tensors that differ, no such device, no stream of the device as far as CUDA can
    /// tell), UNSUPPORTED (no CUDA plug-in, two devices), OUT_OF_MEMORY, DEVICE_ERROR (of this copy or of earlier
    /// work on the device). Since 0.1.
    pub fn shardrec_tensor_copy(to: *const shardrec_tensor, from: *const shardrec_tensor, stream: i64) -> shardrec_status;
    /// Makes an options handle with every key at its default.
    /// out: owned by the caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
    pub fn shardrec_options_create(kind: shardrec_options_kind, out: *mut *mut shardrec_options) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; options or \*options may be NULL. Never blocks.
    /// Since 0.1.
    pub fn shardrec_options_destroy(options: *mut *mut shardrec_options);
    /// Sets a number. Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT when the kind does not take
    /// the key, the key is not an integer, or the value is not accepted (the sentence lists what is);
    /// UNSUPPORTED for a value of a later release. Since 0.1.
    pub fn shardrec_options_set_i64(options: *mut shardrec_options, key: shardrec_option, value: i64) -> shardrec_status;
    /// Sets a real number. Errors: as shardrec_options_set_i64. Since 0.1.
    pub fn shardrec_options_set_f64(options: *mut shardrec_options, key: shardrec_option, value: f64) -> shardrec_status;
    /// Sets a value by its text, as a command line or a configuration file has it: decimal numbers
    /// in C's notation, whatever the locale, enumerators by their lower-case name without prefix
    /// ("rowwise_adagrad", "mixed"). Keys of type text have no other setter.
    /// Errors: as shardrec_options_set_i64. Since 0.1.
    pub fn shardrec_options_set_text(options: *mut shardrec_options, key: shardrec_option, value: *const c_char) -> shardrec_status;
    /// Reads a number, set or default. out: one int64_t.
    /// Errors: as shardrec_options_set_i64; NOT_FOUND where the default depends on what the options are
    /// used for (THREADS, DEDUPLICATE, DDP_THREAD). Since 0.1.
    pub fn shardrec_options_get_i64(options: *const shardrec_options, key: shardrec_option, out: *mut i64) -> shardrec_status;
    /// Reads a real number, set or default. out: one double. Errors: as shardrec_options_get_i64
    /// (NOT_FOUND: INIT_MIN, INIT_MAX). Since 0.1.
    pub fn shardrec_options_get_f64(options: *const shardrec_options, key: shardrec_option, out: *mut f64) -> shardrec_status;
    /// Reads a value as the text that shardrec_options_set_text takes.
    /// out_text: freed by the caller with shardrec_text_free. Errors: as shardrec_options_get_i64,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_options_get_text(options: *const shardrec_options, key: shardrec_option, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes a group of `ranks` ranks inside this process, ranks_per_node of which count as one node
    /// (rank r is on node r / ranks_per_node; the last node may be smaller).
    /// ranks in \[1, 1024\], ranks_per_node in \[1, ranks\]. options: NULL (no kind of options is for groups yet). out:
    /// owned by the caller.
    /// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_local_create(ranks: i32, ranks_per_node: i32, options: *const shardrec_options, out: *mut *mut shardrec_local) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; communicators made from it live on. Since 0.1.
    pub fn shardrec_local_destroy(group: *mut *mut shardrec_local);
    /// Joins the group as `rank`. Does not wait for the others: the first collective call does.
    /// rank in \[0, ranks), each at most once per group. options: NULL (those of kind COMM are for processes;
    /// deadlines are set by shardrec_comm_set_f64). out: owned by the caller.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, INVALID_STATE (the rank is taken), OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn shardrec_comm_create_local(group: *mut shardrec_local, rank: i32, options: *const shardrec_options, out: *mut *mut shardrec_comm) -> shardrec_status;
    /// Joins a group of ranks that are processes, or several in one process each on a thread of its own.
    /// Collective, blocking: returns when every rank has come, at most after the option
    /// COMM_SETUP_SECONDS.
    /// rank in \[0, size), size in \[1, 4096\]. token: UTF-8, of the rendezvous (rendezvous.h). Of
    /// ENGINE_MPI token is NULL, and rank and size are what the launcher said, or -1 both. ENGINE_NCCL: as ENGINE_MPI
    /// where token is NULL, else as ENGINE_GLOO.
    /// options: kind COMM, NULL: defaults. out: owned by the caller.
    /// Errors: INVALID_ARGUMENT (also: another group's token) and UNSUPPORTED (the plug-in is missing, or
    /// cannot be used here: the sentence names the package), both on this rank only; TIMEOUT, naming the ranks
    /// that have not come; on all ranks MISMATCH (other sizes), INVALID_STATE (a rank joined twice), PEER_FAILED (a
    /// rank is gone); IO_ERROR (the system gives no random numbers); OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_comm_create(engine: shardrec_engine, rank: i32, size: i32, token: *const c_char, options: *const shardrec_options, out: *mut *mut shardrec_comm) -> shardrec_status;
    /// The same, as environment variables say:
    /// RANK, WORLD_SIZE                   this rank and the number of ranks
    /// LOCAL_RANK, LOCAL_WORLD_SIZE       its place among the ranks of its node; optional
    /// SHARDREC_TOKEN                     of a rendezvous; without it rank 0 holds one itself
    /// SHARDREC_TOKEN_FILE                and writes its token to this file, on a disk that all share,
    ///                                    until all have come; readable by its user only, and removed
    ///                                    then. Read only where it is a regular file, no symbolic
    ///                                    link, that belongs to the user of the rank (effective) or to
    ///                                    root and that nobody else may write to; else
    ///                                    INVALID_ARGUMENT: who may write it says where ranks connect.
    ///                                    What follows is optional, for rank 0. Or all know:
    /// MASTER_ADDR, SHARDREC_PORT         where the ranks find rank 0 (MASTER_PORT is not read:
    ///                                    launchers hold that one)
    /// SHARDREC_SECRET                    the same on all ranks
    /// SHARDREC_JOB, SHARDREC_BIND, SHARDREC_ALLOW_PLAIN_TCP
    ///                                    name of the group; where rank 0 listens, if not at
    ///                                    MASTER_ADDR; 1: other machines may take part
    /// SHARDREC_INTERFACE                 network interface or address of this rank's machine, where
    ///                                    the option INTERFACE is not set
    /// SHARDREC_ENGINE                    gloo (default), mpi or nccl, where the option ENGINE is not set;
    ///                                    for mpi, and nccl under mpirun, no other variable is read
    /// Each SHARDREC_ variable that is set is checked, also on ranks that do not need it.
    /// Ranks may come in any order, and rank 0 last. That it has died before they came nobody can tell
    /// them where it holds the rendezvous itself. So where its address is known (MASTER_ADDR, or a file
    /// that is there) and its machine answers that nobody listens, they wait for rank 0 as long as the
    /// option RANK_ZERO_SECONDS says (60 by default) and then return PEER_FAILED. While there is no
    /// file, the name is unknown or the machine silent, they wait for COMM_SETUP_SECONDS.
    /// `shardrec launch` sets them for processes of one machine. Collective, blocking.
    /// Errors: as shardrec_comm_create; INVALID_ARGUMENT names the variable. Since 0.1.
    pub fn shardrec_comm_create_from_env(options: *const shardrec_options, out: *mut *mut shardrec_comm) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Not collective; waits for nobody, though giving
    /// back the connections of an engine between processes can take a second. Without a close before
    /// it, peers that wait for this rank get PEER_FAILED at once. What was made on the communicator
    /// keeps its memory until it is destroyed too, in any order. Since 0.1.
    pub fn shardrec_comm_destroy(comm: *mut *mut shardrec_comm);
    /// This rank's number and the number of ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT.
    /// Any thread. Since 0.1.
    pub fn shardrec_comm_rank(comm: *const shardrec_comm, out: *mut i32) -> shardrec_status;
    /// The C API's `shardrec_comm_size`.
    pub fn shardrec_comm_size(comm: *const shardrec_comm, out: *mut i32) -> shardrec_status;
    /// Changes a property of this rank's communicator for later calls, such as a deadline.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT; of COMM_NCCL UNSUPPORTED (NCCL or its plug-in is missing or too
    /// old: the sentence says what to install). Any thread. Since 0.1.
    pub fn shardrec_comm_set_f64(comm: *mut shardrec_comm, key: shardrec_comm_property, value: f64) -> shardrec_status;
    /// The C API's `shardrec_comm_get_f64`.
    pub fn shardrec_comm_get_f64(comm: *const shardrec_comm, key: shardrec_comm_property, out: *mut f64) -> shardrec_status;
    /// OK while the communicator lives; the status that killed it afterwards (its sentence becomes this
    /// thread's error). Any thread. Since 0.1.
    pub fn shardrec_comm_status(comm: *const shardrec_comm) -> shardrec_status;
    /// The last 1,000 operations of this rank on the communicator, the oldest first, as JSON: what it did, or
    /// waits for, when a peer is late or gone. Seconds count from the communicator's creation.
    /// "version"                     integer: 1
    /// "rank", "size"                integer: this rank, and the number of ranks
    /// "now_seconds"                 number: when this was called
    /// "operations\[\].number"         integer: of all operations, from 0
    /// "operations\[\].purpose"        text: "control", "input", "output", "dense" or "statistics"
    /// "operations\[\].sequence"       integer: of the operations of one object and purpose, the same on all ranks
    /// "operations\[\].operation"      text: "forward", for example
    /// "operations\[\].bytes"          integer: sent to other ranks
    /// "operations\[\].start_seconds"  number
    /// "operations\[\].end_seconds"    number or null: null while it is not over
    /// "operations\[\].state"          text: "posted", "waiting", "done" or "failed"
    /// "operations\[\].peer"           integer or null: the rank that is to blame
    /// The first PEER_FAILED, TIMEOUT or MISMATCH also writes the last 16 to the log.
    /// Also of a communicator that is dead or closed. out_text: freed by the caller with
    /// shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Not
    /// blocking; any thread, also while another waits. Since 0.1.
    pub fn shardrec_comm_operations_json(comm: *const shardrec_comm, out_text: *mut *mut c_char) -> shardrec_status;
    /// Returns when every rank has called it. Collective, blocking.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1.
    pub fn shardrec_comm_barrier(comm: *mut shardrec_comm) -> shardrec_status;
    /// Reduces a compact tensor over the ranks, in place; every rank gets the same bits (pairwise tree
    /// over the rank number). dtype FLOAT32, FLOAT64, INT32 or INT64; same dtype and number of elements
    /// on all ranks. Collective, blocking. Errors: as shardrec_comm_barrier; INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_comm_all_reduce(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, reduction: shardrec_reduction) -> shardrec_status;
    /// Copies the elements of tensor on rank root over those of tensor on all others. dtype and number of
    /// elements are the same on all ranks. root: in \[0, ranks), the same on all ranks. Since 0.1.
    pub fn shardrec_comm_broadcast(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, root: i32) -> shardrec_status;
    /// Gathers tensor of every rank: out holds the elements of rank 0, then those of rank 1, and so on, on
    /// all ranks. out: the dtype of tensor and `ranks` times its elements, such as \[ranks, n\] or
    /// \[ranks \* n\] for \[n\]. dtype and number of elements are the same on all ranks. Since 0.1.
    pub fn shardrec_comm_all_gather(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, out: *const shardrec_tensor) -> shardrec_status;
    /// Reduces tensor over the ranks and leaves each with its part: out on rank r is the r-th of `ranks`
    /// equal parts of the reduction, with the bits that shardrec_comm_all_reduce gives. dtype FLOAT32,
    /// FLOAT64, INT32 or INT64. tensor: `ranks` times the elements of out. dtype, number of elements and
    /// reduction are the same on all ranks. Since 0.1.
    pub fn shardrec_comm_reduce_scatter(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, out: *const shardrec_tensor, reduction: shardrec_reduction) -> shardrec_status;
    /// Sends rows of tensor (what its first dimension counts) to all ranks, this one included, and
    /// receives theirs: the first send_counts\[0\] rows go to rank 0, the next send_counts\[1\] to rank 1, and
    /// so on; out holds receive_counts\[0\] rows of rank 0, then those of rank 1, and so on.
    /// send_counts, receive_counts: INT64 \[ranks\], compact, adding up to the rows of tensor and of out;
    /// NULL: equal parts, and the number of rows is a multiple of the number of ranks. out: the dtype and
    /// the row length of tensor, which are the same on all ranks, also where a rank has no rows.
    /// The ranks compare counts, dtypes and row lengths before rows move: where they differ, all of them
    /// get the same DISAGREEMENT, which names a pair of ranks and what differs; out is as before and all
    /// may go on. Since 0.1.
    pub fn shardrec_comm_all_to_all(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, send_counts: *const shardrec_tensor, out: *const shardrec_tensor, receive_counts: *const shardrec_tensor) -> shardrec_status;
    /// Makes a communicator of each color: the ranks that give the same color, numbered by (key, rank in
    /// comm). color \< 0: this rank is in none of them, and \*out becomes NULL.
    /// The part is a communicator as any other, for collectives, collections and splits. It begins with
    /// comm's deadlines and has its own from then on; whatever fails on it, comm and the other parts live
    /// on. It ends with comm: closing, aborting or destroying comm, or a failure of it, ends its parts, and
    /// their parts. Handles may be destroyed in any order. Ranks of one node stay one in the part where
    /// equal blocks of its ranks tell the nodes apart; elsewhere each of its ranks is a node of its own.
    /// out: owned by the caller. Collective over comm, blocking (setup deadline). Between processes a
    /// communicator can be split 1,024 times in its life, a part of it 8 times, a part of that 8 times, and
    /// what comes of that no more: UNSUPPORTED, on all ranks, and comm lives on.
    /// Errors: as shardrec_comm_barrier; INVALID_ARGUMENT (out NULL; only this rank), UNSUPPORTED, OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn shardrec_comm_split(comm: *mut shardrec_comm, color: i32, key: i32, out: *mut *mut shardrec_comm) -> shardrec_status;
    /// The orderly end: returns when every rank has called it; later calls return CLOSED. Destroy the
    /// handle afterwards. Collective, blocking. Errors: as shardrec_comm_barrier. Since 0.1.
    pub fn shardrec_comm_close(comm: *mut shardrec_comm) -> shardrec_status;
    /// Ends the communicator on every rank: collective calls that wait, and all later ones, return
    /// ABORTED with this rank's number and reason (UTF-8, NULL allowed). Never blocks. Any thread.
    /// Errors: INVALID_HANDLE, CLOSED. Since 0.1.
    pub fn shardrec_comm_abort(comm: *mut shardrec_comm, reason: *const c_char) -> shardrec_status;
    /// Starts the server: a thread and a listening socket. Does not wait for ranks.
    /// options: kind RENDEZVOUS or NULL (this machine only, a free port, a random secret). out: owned by
    /// the caller. Errors: INVALID_ARGUMENT (also: ADDRESS is not of this machine; it can be reached from
    /// others and SECRET or ALLOW_PLAIN_TCP is not set), INVALID_STATE (the port is taken), INVALID_HANDLE,
    /// CLOSED, BUSY for options, IO_ERROR, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_rendezvous_create(options: *const shardrec_options, out: *mut *mut shardrec_rendezvous) -> shardrec_status;
    /// What a rank needs to join: at most 512 bytes of printable ASCII without spaces. It holds the secret:
    /// treat it as one. out_text: freed by the caller with shardrec_text_free.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_rendezvous_token(rendezvous: *const shardrec_rendezvous, out_text: *mut *mut c_char) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Communicators of this process that were made with
    /// its token keep the server. Without such, it ends within a second: ranks of other processes that
    /// have not closed their communicators take rank 0 for lost. Since 0.1.
    pub fn shardrec_rendezvous_destroy(rendezvous: *mut *mut shardrec_rendezvous);
    /// Arranges the ranks of comm. sharding_group_size: in \[1, ranks\], a divisor of the number of ranks.
    /// options: kind MESH (PLACEMENT) or NULL. Both are the same on all ranks. out: owned by the caller;
    /// keeps what it needs of comm and ends with it (abort, close, a dead peer).
    /// Collective, blocking. What one rank gets wrong in options or out is every rank's error. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, DISAGREEMENT (sizes or placements differ), MISMATCH,
    /// OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_mesh_create(comm: *mut shardrec_comm, sharding_group_size: i32, options: *const shardrec_options, out: *mut *mut shardrec_mesh) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Not collective, never blocks; collections made on
    /// it live on. Since 0.1.
    pub fn shardrec_mesh_destroy(mesh: *mut *mut shardrec_mesh);
    /// This rank's place. out: its struct_size is set; the members that fit in it are written.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1.
    pub fn shardrec_mesh_place(mesh: *const shardrec_mesh, out: *mut shardrec_place) -> shardrec_status;
    /// Makes a communicator of the ranks of one of this rank's groups, numbered as shardrec_mesh_place says. It
    /// is one as any other: for collectives, collections, metrics and splits. It is the host's own: nothing that
    /// the library does on the mesh goes over it, each call makes another one, and it begins with the deadlines
    /// of the mesh's communicator. Closing it (collective over its ranks), aborting it or a failure of it ends
    /// it alone: the mesh and what was made on it live on. It ends with the mesh: when the communicator that the
    /// mesh was made of is closed, aborted or destroyed, and by any failure of that or of the mesh's groups.
    /// Handles may be destroyed in any order: the mesh's may go before. out: owned by the caller.
    /// Collective over the mesh, blocking (setup deadline): all ranks ask for the same kind of group, else
    /// MISMATCH. Between processes a mesh makes at most 8 of either kind in its life, each of which can be split
    /// 8 times, and what comes of that no more: then UNSUPPORTED, on all ranks, and the mesh lives on.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (out NULL, no group: only this rank; call again),
    /// UNSUPPORTED, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_mesh_comm(mesh: *mut shardrec_mesh, group: shardrec_mesh_group, out: *mut *mut shardrec_comm) -> shardrec_status;
    /// Makes an empty model. options: NULL (no kind of options is for models yet). out: owned by the
    /// caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_model_create(options: *const shardrec_options, out: *mut *mut shardrec_model) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Since 0.1.
    pub fn shardrec_model_destroy(model: *mut *mut shardrec_model);
    /// Adds a table of rows x dim elements.
    /// name: UTF-8, not empty, unique. rows in \[1, 2^40\], dim in \[1, 65536\]. options: kind TABLE or NULL.
    /// out_table: its index, 0 for the first one added; may be NULL.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, UNSUPPORTED (dtype), OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn shardrec_model_add_table(model: *mut shardrec_model, name: *const c_char, rows: i64, dim: i64, options: *const shardrec_options, out_table: *mut i32) -> shardrec_status;
    /// Adds a feature that is looked up in `table`; several features may share one. Its index is the
    /// number of features added before it, and batches list the features in that order.
    /// name: UTF-8, not empty, unique among features. Pooled and sequence features may share a table: a
    /// step updates each row once, by the sum of all its gradients.
    /// Errors: as shardrec_model_add_table. Since 0.1.
    pub fn shardrec_model_add_feature(model: *mut shardrec_model, table: i32, name: *const c_char, pooling: shardrec_pooling) -> shardrec_status;
    /// Sets the optimizer of a table, in place of the model's, or with SHARDREC_ALL_TABLES the model's: that of
    /// all tables that have none of their own. options: kind OPTIMIZER; NULL: of a table the model's again, of
    /// the model SGD with its defaults. With g the gradient of a touched row (summed over the global batch), D the dim,
    /// lr the learning rate, lam the weight decay, k the number of this update (the collection's step + 1),
    /// b1 and b2 the betas; squares, roots and products by element, sums and norms over the row:
    /// SGD              w -= lr \* g; L2: w -= lr \* (g + lam \* w); DECOUPLE: w = w \* (1 - lr \* lam) - lr
    /// \* g
    /// ADAGRAD          h += e^2, e = g (+ lam \* w for L2); w = c \* w - lr \* e / (sqrt(h) + eps);
    ///                  c = 1, 1 - lr \* lam (DECOUPLE). h: "sum" (Duchi et al. 2011)
    /// ROWWISE_ADAGRAD  h += sum(e^2) / D, e = g (+ lam \* w for L2); r = lr / (sqrt(h / s) + eps);
    ///                  w = c \* w - r \* g; c = 1, 1 - r \* lam (L2), 1 - lr \* lam (DECOUPLE). h: "sum", one
    ///                  a row (as in FBGEMM); s: MOMENTUM_SCALE
    /// ADAM             m = b1 \* m + (1 - b1) \* g; v = b2 \* v + (1 - b2) \* g^2; M = m / (1 - b1^k);
    ///                  V = v / (1 - b2^k); w -= lr \* (M / (sqrt(V) + eps) + lam \* w). m: "exp_avg",
    ///                  v: "exp_avg_sq" (Kingma and Ba 2015; decay of Loshchilov and Hutter 2019)
    /// PARTIAL_ROWWISE_ADAM  as ADAM, v one a row: v = b2 \* v + (1 - b2) \* sum(g^2) / D
    /// LAMB             r = M / (sqrt(V) + eps) + lam \* w; w -= lr \* q \* r; q = norm(w) / norm(r), 1 where
    ///                  either is 0. m, v as ADAM (You et al. 2020)
    /// PARTIAL_ROWWISE_LAMB  as LAMB, v one a row as in PARTIAL_ROWWISE_ADAM
    /// LARS_SGD         a = lr \* eta \* norm(w) / (norm(g) + lam \* norm(w)), lr where norm(w) or the
    ///                  denominator is 0; m = momentum \* m + a \* (g + lam \* w); w -= m.
    ///                  m: "momentum_buffer" (You et al. 2017)
    /// WEIGHT_DECAY_MODE: SGD, ADAGRAD and ROWWISE_ADAGRAD take NONE, L2 and DECOUPLE; ADAM, LAMB and their
    /// partial forms NONE and DECOUPLE; LARS_SGD NONE and L2; NONE means lam = 0; any other pair is
    /// UNSUPPORTED, as is MOMENTUM_SGD, which layers and DDP parameters have. MAX_NORM: after the step, and
    /// after rounding to the table's dtype, w is scaled by MAX_NORM / norm(w) where norm(w) is above it. Rows
    /// that no id touched do not change, and a touched row whose gradient is 0 is stepped. Arithmetic and states
    /// are float32. MOMENTUM_SCALE: of R replicas on a mesh, each sees gradients that are divided by the size of its
    /// sharding group, not by W, so that h of a row that few samples touch grows R times as fast as on one group of W
    /// ranks, and steps shrink by sqrt(R); s = R takes that back (2D sparse parallelism, arXiv 2508.03854). A
    /// row that all samples touch needs none: s between 1 and R, by table. Above 1 with another optimizer:
    /// UNSUPPORTED. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT, UNSUPPORTED.
    /// Since 0.2.
    pub fn shardrec_model_set_optimizer(model: *mut shardrec_model, table: i32, options: *const shardrec_options) -> shardrec_status;
    /// How many tables and features the model has. out: its struct_size is set; the members that fit in it are
    /// written. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_model_info(model: *const shardrec_model, out: *mut shardrec_model_size) -> shardrec_status;
    /// A table and its name. table: its index, from 0. out: its struct_size is set; the members that fit in it
    /// are written. out_name: freed by the caller with shardrec_text_free; may be NULL.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2.
    pub fn shardrec_model_table(model: *const shardrec_model, table: i32, out: *mut shardrec_table, out_name: *mut *mut c_char) -> shardrec_status;
    /// A feature and its name. feature: its index, from 0. out, out_name: as shardrec_model_table.
    /// Errors: as shardrec_model_table; NOT_FOUND (feature). Since 0.2.
    pub fn shardrec_model_feature(model: *const shardrec_model, feature: i32, out: *mut shardrec_feature, out_name: *mut *mut c_char) -> shardrec_status;
    /// The model as JSON, all keys spelled out:
    /// {"format": "shardrec-model-1",
    ///  "optimizer": {"type": "rowwise_adagrad", "learning_rate": 0.1, "eps": 1e-08, ...},
    ///  "tables": \[{"name": "user", "rows": 943, "dim": 64, "dtype": "float32", "init": "uniform", ...}\],
    ///  "features": \[{"name": "user_id", "table": "user", "pooling": "sum"}\]}
    /// The keys of an optimizer, their values and their defaults are those of options of kind OPTIMIZER ("type"
    /// is OPTIMIZER), those of a table, but for its name, rows and dim, of options of kind TABLE.
    /// "format"                        text: "shardrec-model-1"
    /// "optimizer.type"                text
    /// "optimizer.learning_rate", "optimizer.eps", "optimizer.weight_decay"    number
    /// "optimizer.weight_decay_mode"   text
    /// "optimizer.max_gradient", "optimizer.beta1", "optimizer.beta2"          number
    /// "optimizer.momentum", "optimizer.eta", "optimizer.max_norm"             number
    /// "optimizer.momentum_scale"      optional number: left out where it is 1
    /// "optimizer.row_statistics"      text
    /// "tables\[\].name"                 text
    /// "tables\[\].rows", "tables\[\].dim"                                         integer
    /// "tables\[\].dtype", "tables\[\].init", "tables\[\].rounding", "tables\[\].out_of_range"    text
    /// "tables\[\].init_min", "tables\[\].init_max"    optional number: left out at their defaults
    /// "tables\[\].allowed_sharding"     optional array of texts: kinds of sharding; left out: all
    /// "tables\[\].allowed_ranks"        optional text: "0-3, 7"; left out: all
    /// "tables\[\].min_columns"          optional integer: left out: 1
    /// "tables\[\].optimizer"            optional, as "optimizer": left out where it is the model's
    /// "features\[\].name", "features\[\].table"       text: its name, and that of its table
    /// "features\[\].pooling"            text: "sum", "mean" or "none"
    /// Enumerators are written as shardrec_options_set_text takes them. Tables and features stand in the
    /// order of their indices.
    /// out_text: freed by the caller. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_model_to_json(model: *const shardrec_model, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes a model from such JSON. Needed are "format", "tables", of a table its name, rows and dim, of a
    /// feature its name and table; what else is left out has its default ("pooling": "sum"). Unknown keys
    /// and keys that stand twice are refused, and so is a format of a later version. out: owned by the caller.
    /// Errors: INVALID_ARGUMENT (the sentence says where), UNSUPPORTED, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_model_from_json(json: *const c_char, out: *mut *mut shardrec_model) -> shardrec_status;
    /// What the machines are: `ranks` ranks, ranks_per_node of which are one node.
    /// ranks in \[1, 1048576\], ranks_per_node in \[1, ranks\]. options: NULL (no kind of options is for topologies
    /// yet). out: owned by the caller.
    /// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_topology_create(ranks: i32, ranks_per_node: i32, options: *const shardrec_options, out: *mut *mut shardrec_topology) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Since 0.1.
    pub fn shardrec_topology_destroy(topology: *mut *mut shardrec_topology);
    /// The topology as JSON: {"format": "shardrec-topology-1", "ranks": 4, "ranks_per_node": 2}.
    /// "format"                    text: "shardrec-topology-1"
    /// "ranks", "ranks_per_node"   integer
    /// out_text: freed by the caller with shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_topology_to_json(topology: *const shardrec_topology, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes a topology from such JSON, within the limits of shardrec_topology_create. All keys are
    /// needed, unknown ones are refused, and so is a format of a later version. out: owned by the caller.
    /// Errors: INVALID_ARGUMENT (the sentence says where), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_topology_from_json(json: *const c_char, out: *mut *mut shardrec_topology) -> shardrec_status;
    /// Plans the model on a topology. Local; deterministic, with BALANCE set to TIME for one machine's
    /// profile. options: kind PLAN or NULL.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_plan_create(model: *const shardrec_model, topology: *const shardrec_topology, options: *const shardrec_options, out: *mut *mut shardrec_plan) -> shardrec_status;
    /// Plans the model on the ranks of a communicator: rank 0 plans, every rank gets its plan, after a
    /// check that models and options are the same.
    /// mesh: NULL, or a mesh of comm: the plan is for the ranks of a sharding group, the same on all ranks. AUTO
    /// and MIXED then replicate only tables that may not be cut, for a replicated table makes all sharding groups
    /// wait for each other in every step (mesh.h). What one rank gets wrong in its arguments,
    /// but for comm, every rank gets as its error; the communicator lives on, and the call may be made again.
    /// Collective, blocking (setup deadline). Errors: as shardrec_plan_create; INVALID_ARGUMENT (also: a mesh of
    /// another communicator), DISAGREEMENT (models or options differ; names a rank and
    /// the first difference), MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_plan_collective(comm: *mut shardrec_comm, mesh: *mut shardrec_mesh, model: *const shardrec_model, options: *const shardrec_options, out: *mut *mut shardrec_plan) -> shardrec_status;
    /// Makes a plan without boxes, to be filled with shardrec_plan_add_box and shardrec_plan_replicate.
    /// options: NULL (no kind of options is for such plans yet). Errors: as shardrec_plan_create. Since 0.1.
    pub fn shardrec_plan_create_empty(model: *const shardrec_model, topology: *const shardrec_topology, options: *const shardrec_options, out: *mut *mut shardrec_plan) -> shardrec_status;
    /// Adds a box of a table. It is read during the call.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT when the box is empty, leaves the table,
    /// overlaps another box, or the table is replicated; UNSUPPORTED (members that this release does not know
    /// are not zero), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_plan_add_box(plan: *mut shardrec_plan, table: i32, r#box: *const shardrec_box) -> shardrec_status;
    /// Replicates a table on all ranks, which learn of each other's gradients in the way that replication
    /// says; of a table that is replicated already, this sets the way. Errors: INVALID_HANDLE, CLOSED, BUSY;
    /// INVALID_ARGUMENT (the table has boxes; not SAMPLES, ROWS or DENSE). Since 0.2.
    pub fn shardrec_plan_replicate(plan: *mut shardrec_plan, table: i32, replication: shardrec_replication) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Since 0.1.
    pub fn shardrec_plan_destroy(plan: *mut *mut shardrec_plan);
    /// Checks that every cell of every table has exactly one owner, or its table is replicated. (Creating a
    /// collection does it too.) Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT naming a table
    /// and a cell that has none. Since 0.1.
    pub fn shardrec_plan_check(plan: *const shardrec_plan) -> shardrec_status;
    /// Number of boxes of a table; 0: replicated (or, before the check, none yet).
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_plan_box_count(plan: *const shardrec_plan, table: i32, out: *mut i32) -> shardrec_status;
    /// Box `box` of a table, ordered by first row, then first column. Of a replicated table box 0 stands for the
    /// copy that each rank has: all rows and columns, rank -1. out: its struct_size is set; the members that fit
    /// in it are written.
    /// Errors: as shardrec_plan_box_count (NOT_FOUND: box too). Since 0.1.
    pub fn shardrec_plan_box(plan: *const shardrec_plan, table: i32, r#box: i32, out: *mut shardrec_box) -> shardrec_status;
    /// The plan as JSON:
    /// {"format": "shardrec-plan-1", "ranks": 4, "ranks_per_node": 2,
    ///  "tables": \[{"name": "user", "rows": 943, "dim": 64, "replicated": false,
    ///              "boxes": \[{"rank": 0, "row": 0, "rows": 472, "col": 0, "cols": 64}\]}\]}
    /// "format"                    text: "shardrec-plan-1"
    /// "ranks", "ranks_per_node"   integer: of its topology
    /// "tables\[\].name"             text
    /// "tables\[\].rows", "tables\[\].dim"                             integer
    /// "tables\[\].replicated"       boolean
    /// "tables\[\].replication"      optional text: of replicated tables, "samples", "rows" or "dense"
    /// "tables\[\].boxes\[\].rank", "tables\[\].boxes\[\].row", "tables\[\].boxes\[\].rows"    integer
    /// "tables\[\].boxes\[\].col", "tables\[\].boxes\[\].cols"             integer
    /// out_text: freed by the caller. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_plan_to_json(plan: *const shardrec_plan, out_text: *mut *mut c_char) -> shardrec_status;
    /// The plan as an aligned table for people: a line per table (rows, dim, bytes of weights and
    /// of optimizer states on all ranks together, kind of sharding, number of boxes, ranks), then the bytes
    /// of each rank. At most 40 tables and 40 ranks are listed.
    /// As shardrec_plan_to_json. Since 0.1.
    pub fn shardrec_plan_to_text(plan: *const shardrec_plan, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes a plan for a model from such JSON; tables are matched by name and must agree in rows and dim.
    /// Unknown keys are refused, and so is a format of a later version; the tiling is checked. Errors:
    /// INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_plan_from_json(model: *const shardrec_model, json: *const c_char, out: *mut *mut shardrec_plan) -> shardrec_status;
    /// Allocates and fills this rank's boxes. The plan's ranks must be the communicator's. Rank checks:
    /// model, plan and options agree on all ranks. options: kind COLLECTION or NULL. out: owned by the
    /// caller; keeps what it needs of comm and mesh, copies model and plan (ranks of one process that bring
    /// the same plan share the copy).
    /// mesh: NULL on all ranks, or a mesh of comm on all, else DISAGREEMENT on all: one replica per sharding
    /// group, whose ranks the plan is for, the same everywhere. Lookups, rows read and written concern the own replica
    /// and are collective over its sharding group; backward with the option NON_FINITE SKIP, and checkpoints, are so over
    /// the whole mesh. Where the plan replicates a table, and with REPLICA_SYNC EXACT or SHARDED, all of these are collective over
    /// the whole mesh, lookups are as many on all of its ranks and made in the same order, LOOKUPS, too, is the same on
    /// all of them, and HIERARCHICAL 1 is UNSUPPORTED (mesh.h). What one sharding group refuses, all ranks of the mesh
    /// refuse. Model, plan and the options that decide which numbers come out (SEED, GRADIENT_DIVISOR and its VALUE,
    /// OUTPUT_DTYPE, the compressions, NON_FINITE, REPLICA_SYNC, SYNC_EVERY) are the same on all ranks of the mesh, else
    /// DISAGREEMENT on all of them, naming rank and option.
    /// Option SYNC_EVERY n, above 0, on a mesh of several replicas: the n-th update (shardrec_lookup_backward, or _backward_begin
    /// and _wait, with SHARDREC_UPDATE_APPLY, that has not been skipped) behind the last sync ends with one, as
    /// shardrec_collection_sync_replicas is, and is collective over the mesh: lookups without an update may be more or fewer on
    /// each replica. A sync that was asked for (shardrec_collection_sync_replicas, _sync_wait), _replica_fill and
    /// a load begin the count anew; between _sync_begin and _sync_wait no step ends with one. What the sync throws is the
    /// error of that backward, or _backward_wait, whose update has been made: after DISAGREEMENT of all ranks (steps, learning
    /// rates, frozen flags) no row was averaged, and the next update ends with a sync; after any other error this rank's
    /// sharding and replica groups and the mesh are dead. The lookups then keep what a sync needs, also where the
    /// collection's handle is destroyed.
    /// Before anything is allocated, what the boxes of all ranks of a machine (of a cgroup) need together, and
    /// what their steps keep of each peer at least, is held against what the machine has left (the cgroup may
    /// still take): more is OUT_OF_MEMORY. So is a thread that the system does not start, and memory of the
    /// device (option DEVICE) that there is not.
    /// What one rank gets wrong in its arguments, but for comm, all ranks get as their error; the communicator
    /// lives on, and the call may be made again.
    /// Collective, blocking (setup deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (also: the
    /// plan does not fit the model; a mesh of another communicator), OUT_OF_MEMORY (on any rank: all get it,
    /// with the rank and the bytes; where there is not even memory to tell, they get PEER_FAILED), UNSUPPORTED
    /// (DEVICE without the plug-in; replicated tables on a mesh with HIERARCHICAL 1), DEVICE_ERROR (as any later call of a
    /// collection on a device), DISAGREEMENT (ranks bring different models, plans or options, or a mesh on some
    /// only), MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_collection_create(comm: *mut shardrec_comm, mesh: *mut shardrec_mesh, model: *const shardrec_model, plan: *const shardrec_plan, options: *const shardrec_options, out: *mut *mut shardrec_collection) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; its lookups stay destroyable. Not collective. Never
    /// blocks, but on a device, as shardrec_lookup_destroy does. Where processes copy from each other's devices
    /// by CUDA IPC it waits up to 2 seconds more, for peers to close what they have opened. Since 0.1.
    pub fn shardrec_collection_destroy(collection: *mut *mut shardrec_collection);
    /// The model and the plan that the collection was made with; on a mesh the plan is for the ranks of a
    /// sharding group. out: a copy, owned by the caller. Any thread. Errors: INVALID_HANDLE, CLOSED,
    /// INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2.
    pub fn shardrec_collection_model(collection: *const shardrec_collection, out: *mut *mut shardrec_model) -> shardrec_status;
    /// The C API's `shardrec_collection_plan`.
    pub fn shardrec_collection_plan(collection: *const shardrec_collection, out: *mut *mut shardrec_plan) -> shardrec_status;
    /// Number of applied updates (accumulated lookups count once, with their update), the same on all
    /// ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1.
    pub fn shardrec_collection_step(collection: *const shardrec_collection, out: *mut i64) -> shardrec_status;
    /// Sets the number of applied updates, which the bias correction of Adam and LAMB and stochastic
    /// rounding go by, as when a training goes on elsewhere; set the same on all ranks before the same
    /// step. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (negative). Since 0.1.
    pub fn shardrec_collection_set_step(collection: *mut shardrec_collection, step: i64) -> shardrec_status;
    /// Returns when all that calls of the collection and its lookups have enqueued on its device (option
    /// DEVICE) is over, and says whether it went well. Other streams and other ranks do not wait for
    /// it. Of a collection on the CPU at once. Not collective, blocking. Errors: INVALID_HANDLE, BUSY,
    /// OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn shardrec_collection_wait_device(collection: *mut shardrec_collection) -> shardrec_status;
    /// Averages weights and every optimizer state over the replicas: the mean in float32 (pairwise tree
    /// over the replica's number, divided once), rounded to the table's dtype; afterwards all replicas
    /// are equal bit for bit. Tables that the plan replicates are so after every step, and are left alone
    /// (mesh.h). With the option REPLICA_SYNC TOUCHED, the default, only rows that a step or a write
    /// has changed on any replica since the last sync are averaged and moved, after the replicas have told each
    /// other which: bytes and time are in proportion to them, and a pass over a bit per row. The
    /// others are equal on all replicas already and stay as they are. FULL averages them too, which where the
    /// number of replicas is a power of two gives the same bits (unless their sum overflows), and else may change
    /// the last bit of a row that nobody has touched. Takes effect in call order, as reading and writing rows do;
    /// call it on all ranks of the mesh after the same number of steps and with the same learning rate and frozen flag
    /// of every table, else DISAGREEMENT on all ranks, naming rank and table: nothing was averaged then, and
    /// the collection is as before (set what differs and call again). Local SGD with averaging, as
    /// TorchRec's DMPCollection.sync, which knows row-wise AdaGrad's state only. Gradients that wait for
    /// their step (SHARDREC_UPDATE_ACCUMULATE) are not averaged. On a collection without
    /// a mesh, or with one replica, nothing happens. With REPLICA_SYNC EXACT or SHARDED steps and settings are
    /// compared, and no row is averaged. Between shardrec_lookup_send_gradients and its
    /// backward it is INVALID_STATE on this rank, and nothing has changed. After any other error but a handle's this
    /// rank's sharding and replica groups and the mesh are dead: nobody trains on tables that are
    /// averaged in part, or waits for a rank that has stopped.
    /// Collective over the mesh, blocking (step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_STATE, DISAGREEMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_collection_sync_replicas(collection: *mut shardrec_collection) -> shardrec_status;
    /// shardrec_collection_sync_replicas in two halves, between which training goes on. begin copies the rows that are to be
    /// averaged; a thread of the library averages the copies with those of the other replicas; wait adds to each row what
    /// its copy has gained by that: row + (mean - copy) in float32, rounded to the table's dtype. States that are sums of
    /// squares ("sum", "exp_avg_sq") become 0 where they would be less. A number that is still as it was when begin was
    /// called becomes the mean, so that with nothing trained in between the two are shardrec_collection_sync_replicas, bit
    /// for bit. Otherwise replicas differ after wait: rows that were updated in between count as changed, and are averaged
    /// by the next sync; they are equal after a blocking sync only. A row may be longer than MAX_NORM until its next step.
    /// Between the two, shardrec_collection_sync_replicas, _sync_begin, _check_replicas, _replica_fill, _write_range,
    /// _write_rows and loads of checkpoints are INVALID_STATE, and nothing has changed; all other calls of the collection
    /// and its lookups are as ever. wait without begin is INVALID_STATE. Steps and settings are compared by both, as
    /// shardrec_collection_sync_replicas does; after DISAGREEMENT from wait the sync is still under way (set what differs and
    /// call again).
    /// Copies and means take twice the bytes of the rows that are averaged, in the host's memory or on the collection's
    /// device, and rows that are fewer than all of a box 8 bytes each in the host's (STAT_BYTES_BUFFERS), which are kept for
    /// the next time; where a rank has no room for them, begin is OUT_OF_MEMORY on all ranks, all is as before, and all
    /// ranks free what they had. The thread exchanges over a channel of its own. What ends it (a dead peer, the step
    /// deadline of an exchange, an abort, memory that runs out) ends this rank's sharding and replica groups and the mesh
    /// at once, and wait says what it was. So does destroying the collection between the two. Rows change in wait only,
    /// when all ranks of the mesh have all means.
    /// On a collection without a mesh, or with one replica, nothing happens in either. With a DEVICE whose rows go by NCCL,
    /// begin is UNSUPPORTED on all ranks, and all is as before: its exchanges and those of steps would be under way at once,
    /// in orders that ranks do not share.
    /// Both are collective over the mesh and take effect in call order; begin blocks until the rows are copied, wait until
    /// the means are there on all ranks of the mesh: the step deadline must cover what the exchanges of one rank take longer
    /// than those of another. Errors: as shardrec_collection_sync_replicas; begin also UNSUPPORTED. Since 0.2.
    pub fn shardrec_collection_sync_begin(collection: *mut shardrec_collection) -> shardrec_status;
    /// The C API's `shardrec_collection_sync_wait`.
    pub fn shardrec_collection_sync_wait(collection: *mut shardrec_collection) -> shardrec_status;
    /// Compares the copies of the tables, weights and all optimizer states, by hashes of 64 bits: of a table that is cut the
    /// copies of the replicas, of one that the plan replicates those of all ranks. A NaN is equal to any other, 0 is not
    /// equal to -0. Copies of cut tables are equal from creation or a load up to the next step, and after
    /// shardrec_collection_sync_replicas and shardrec_collection_replica_fill; those of replicated tables, and with REPLICA_SYNC
    /// EXACT or SHARDED of all, after each step. States that replicas share (SHARDED) have no copies, and are not compared.
    /// Where some differ, all ranks of the mesh get DISAGREEMENT, with the first TABLE that differs, the first of its rows
    /// that does (POSITION), and a RANK of the mesh whose row is another one than that of replica 0, or of rank 0 where the
    /// table is replicated; the tables are as before, and the mesh lives on. Without a mesh, replicated tables are compared.
    /// Each rank reads and hashes all its rows, in one thread (those of a device go through the host). INVALID_STATE: as
    /// shardrec_collection_sync_replicas, and between sync_begin and sync_wait. After errors other than a handle's,
    /// INVALID_STATE and DISAGREEMENT this rank's groups and the mesh are dead.
    /// Collective over the mesh, or without one over the communicator, blocking (setup deadline; until the ranks of its
    /// sharding group have called it the step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE,
    /// DISAGREEMENT, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_collection_check_replicas(collection: *mut shardrec_collection) -> shardrec_status;
    /// Copies one replica to all others, bit for bit: tables with all optimizer states, the number of steps, learning rates
    /// and frozen flags. For a sharding group that has joined: make a mesh of the ranks that there are now and a collection
    /// on it, and call shardrec_collection_continue_from, which fills those that bring no tables. After a rank was lost its
    /// mesh is dead, and rows of the collection before cannot be read: the same call takes them, or load a checkpoint.
    /// replica: its number (replica_rank of shardrec_place), the same on all ranks. No row counts as changed afterwards, and
    /// gradients that wait for their step (SHARDREC_UPDATE_ACCUMULATE) are dropped on all replicas, and so is a batch
    /// between forward and backward, as by shardrec_checkpoint_load. Rows go through the
    /// host, at most 4 MiB at a time. States that replicas share (REPLICA_SYNC SHARDED) are of none of them alone, and stay.
    /// On a collection without a mesh, or with one replica, 0 is accepted and nothing happens. INVALID_STATE: as shardrec_collection_sync_replicas, and between sync_begin and sync_wait. What all ranks
    /// refuse alike (INVALID_ARGUMENT, DISAGREEMENT) leaves all as it was; after errors other than these, INVALID_STATE
    /// and a handle's this rank's groups and the mesh are dead: nobody trains on tables that are filled in part.
    /// Collective over the mesh, blocking (setup deadline; until the ranks of its sharding group have called it the step
    /// deadline): returns when all replicas are filled. Errors: INVALID_HANDLE,
    /// CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT (no such replica on some rank), DISAGREEMENT (ranks name different
    /// ones), MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_collection_replica_fill(collection: *mut shardrec_collection, replica: i32) -> shardrec_status;
    /// Goes on, in a new collection, with the tables that these ranks have trained in an earlier group: those that are left
    /// after ranks were lost, or they and others that join them. The survivors make a communicator (and a mesh), and on it a
    /// collection of the same model and plan, which is then filled from the memory of the ranks; no file is read.
    /// from: this rank's collection on the group before, whose communicator may be dead; NULL: this rank brings none. It is
    /// only read, stays as it is, and may be destroyed afterwards; until then both take memory. Other options of the
    /// collection (REPLICA_SYNC, DEVICE, SEED ...) may be others than before.
    /// A sharding group is whole where all of its ranks bring tables after the same step, sync and write: a rank that ends
    /// between the steps of one group leaves the others whole. Where all groups of the new mesh are whole and at one step,
    /// each keeps its own rows, and the next sync moves all of them, unless the replicas were equal; its mean is that of the
    /// replicas that there are now. Else all groups get, bit for bit, the tables of the whole group with the highest step
    /// (the lowest number among equals), as by shardrec_collection_replica_fill. Optimizer states, number of steps, learning
    /// rates and frozen flags go along; gradients that wait for their step (SHARDREC_UPDATE_ACCUMULATE) do not.
    /// UNSUPPORTED on all ranks: one of the collections has REPLICA_SYNC SHARDED, whose states have no copies.
    /// INVALID_STATE: no group is whole, told on all ranks with a RANK that is not; a backward of `from` is under way on a
    /// thread of the library; as shardrec_collection_replica_fill. After OUT_OF_MEMORY and DEVICE_ERROR that all ranks get
    /// the tables are filled in part, until a load fills them; after errors other than these, a handle's, INVALID_STATE,
    /// UNSUPPORTED and INVALID_ARGUMENT this rank's groups are dead.
    /// Collective over the mesh, or without one over the communicator, blocking (setup deadline). Errors: INVALID_HANDLE,
    /// CLOSED, BUSY (also of from), INVALID_ARGUMENT (from is the collection itself; on all ranks: it has another model,
    /// plan or place in its sharding group), UNSUPPORTED, INVALID_STATE, MISMATCH, OUT_OF_MEMORY, DEVICE_ERROR,
    /// PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_collection_continue_from(collection: *mut shardrec_collection, from: *mut shardrec_collection) -> shardrec_status;
    /// Sets the learning rate of a table, or of SHARDREC_ALL_TABLES, from the next backward on, in place of what
    /// their optimizers say; set the same on all ranks before the same step, else that backward is
    /// INVALID_BATCH. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT (not finite,
    /// negative). Since 0.1.
    pub fn shardrec_collection_set_learning_rate(collection: *mut shardrec_collection, table: i32, learning_rate: f64) -> shardrec_status;
    /// The learning rate that the next backward uses for a table. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND
    /// (table), INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_collection_learning_rate(collection: *const shardrec_collection, table: i32, out: *mut f64) -> shardrec_status;
    /// Freezes a table (1) or trains it again (0): a frozen one is looked up, but backward changes neither
    /// its weights nor its states. Its gradients are dropped, not put off: those of a lookup whose
    /// backward with ACCUMULATE comes while it is frozen are never applied, also where it is trained again
    /// before the next backward; those that were accumulated before are dropped by a backward that comes while
    /// it is frozen, and applied by one that comes after it is trained again. Set the same on all ranks before
    /// the same step, else that backward is INVALID_BATCH. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND
    /// (table), INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_collection_set_frozen(collection: *mut shardrec_collection, table: i32, frozen: i32) -> shardrec_status;
    /// Whether a table is frozen (1) or trained (0). Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table),
    /// INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_collection_frozen(collection: *const shardrec_collection, table: i32, out: *mut i32) -> shardrec_status;
    /// Reads rows \[row, row + rows) of a table into out, float32, \[rows, width\], any row stride, unit column
    /// stride; weights of 16 bits are widened.
    /// Each rank asks for what it wants, which may be no rows (rows = 0, out NULL), and gets whole rows, wherever
    /// they live. Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (only this rank;
    /// nothing was exchanged: call again), INVALID_STATE (a load, or a step on a device, that failed half-way, or between
    /// shardrec_lookup_send_gradients and its backward; nothing was exchanged), NOT_FOUND (table, part),
    /// OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_collection_read_range(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, row: i64, rows: i64, out: *const shardrec_tensor) -> shardrec_status;
    /// Writes rows \[row, row + rows) of a table from values, as shardrec_collection_read_range; weights of 16 bits
    /// are rounded to nearest. Writing states too is a warm start. Ranges of several
    /// ranks may overlap; the highest rank's values stay. Replicas are all written. Collective, blocking.
    /// Errors: as shardrec_collection_read_range; INVALID_STATE also between sync_begin and sync_wait. Since 0.1.
    pub fn shardrec_collection_write_range(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, row: i64, rows: i64, values: *const shardrec_tensor) -> shardrec_status;
    /// Reads the rows of a table that ids name, in their order, into out, float32, \[ids, width\], any row
    /// stride, unit column stride; as shardrec_collection_read_range otherwise.
    /// ids: INT32 or INT64 \[n\], compact, rows of the table in any order, any of them more than once; NULL
    /// or empty: this rank asks for no rows, and out may be NULL. Each rank asks for what it wants, also of
    /// another table or part. Ids are checked on the rank that gives them: one that is no row is
    /// INVALID_ARGUMENT with its POSITION and VALUE on this rank only; nothing was exchanged and the others
    /// wait: call again. Long lists go in blocks, and at most about 64 MiB go through a rank at once.
    /// Collective, blocking (the step deadline holds for each block). Errors: as shardrec_collection_read_range.
    /// Since 0.1.
    pub fn shardrec_collection_read_rows(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, ids: *const shardrec_tensor, out: *const shardrec_tensor) -> shardrec_status;
    /// Writes the rows of a table that ids name from values, float32, \[ids, width\]; ids and values as in
    /// shardrec_collection_read_rows, values rounded as shardrec_collection_write_range does. Where a row is
    /// written more than once, the last entry of the highest rank stays. Replicas are all written.
    /// After an error that ends the communicator, some of the rows may have been written. Collective,
    /// blocking (the step deadline holds for each block). Errors: as shardrec_collection_write_range. Since 0.1.
    pub fn shardrec_collection_write_rows(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, ids: *const shardrec_tensor, values: *const shardrec_tensor) -> shardrec_status;
    /// Makes a mark: rows of this rank's boxes that change from now on are noted for it, until it is released. Changed
    /// are rows that a step updates, a write writes or a sync of replicas averages; after the begin of a load all rows are.
    /// A row that has not changed since the mark is not noted; one that is noted may have its old values. With REPLICA_SYNC
    /// SHARDED a write of a state is noted on the rank that has it. At most 8 marks of
    /// a collection are there at once; each reader has its own. A mark takes a bit per row of this rank's boxes (counted by
    /// SHARDREC_STAT_BYTES_BUFFERS), all of them together one more in the device's memory, or the host's, where steps set
    /// it. Who reads changes again and again makes the next mark, reads the rows since the one before, and releases that.
    /// out_mark: its number; numbers are not used again. Not collective: each rank has its own marks. Waits for the
    /// operations of the device. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE (there are 8; between
    /// backward_begin and backward_wait), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2.
    pub fn shardrec_collection_mark(collection: *mut shardrec_collection, out_mark: *mut i64) -> shardrec_status;
    /// Lists the rows of a table that this rank's boxes have and that have changed since a mark, from row `row` of the table
    /// on: their numbers, ascending, each once however many boxes have it. Of a table that is replicated each rank has all
    /// rows. rows: INT64 \[n\], compact, on the CPU: the first ones are written, as many as there is room for; where it is full
    /// there may be more behind the last one. NULL: they are only counted. out_count: how many were written, or counted.
    /// Not collective. Waits for the operations of the device. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (mark, table),
    /// INVALID_ARGUMENT (row beyond the table, rows), INVALID_STATE (between backward_begin and backward_wait),
    /// OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2.
    pub fn shardrec_collection_changed_rows(collection: *mut shardrec_collection, mark: i64, table: i32, row: i64, rows: *const shardrec_tensor, out_count: *mut i64) -> shardrec_status;
    /// Releases a mark, and its memory; the bits that all marks share stay until the collection is destroyed.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND. Since 0.2.
    pub fn shardrec_collection_release_mark(collection: *mut shardrec_collection, mark: i64) -> shardrec_status;
    /// A count, a time or a ratio. table: of SHARDREC_STAT_TABLE_... a table's index or SHARDREC_ALL_TABLES (their
    /// sum); of all others SHARDREC_ALL_TABLES. out: counts are exact up to 2^53. Errors: INVALID_HANDLE,
    /// CLOSED, NOT_FOUND (table), INVALID_ARGUMENT. Any thread. Since 0.2.
    pub fn shardrec_collection_stat(collection: *const shardrec_collection, stat: shardrec_stat, table: i32, out: *mut f64) -> shardrec_status;
    /// Makes a lookup. All ranks make their lookups in the same order; at most as many as the option
    /// LOOKUPS says (default 2). Not blocking. options: kind LOOKUP or NULL. out: owned by the caller;
    /// keeps the collection's tables alive.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (too many), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_lookup_create(collection: *mut shardrec_collection, options: *const shardrec_options, out: *mut *mut shardrec_lookup) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Not collective. Never blocks, but on a collection on a
    /// device: it returns when what was enqueued there is over, and as CUDA gives pinned memory back only then,
    /// when the devices of the process have nothing to do; and between backward_begin and backward_wait: it
    /// returns when what this rank computes of the step is over. With the last lookup of a destroyed collection it
    /// waits as shardrec_collection_destroy does. Since 0.1.
    pub fn shardrec_lookup_destroy(lookup: *mut *mut shardrec_lookup);
    /// From the next call on, tensors on the device of the collection are read and written in the order of
    /// this stream. stream: the value of a cudaStream_t of that device, which is not being captured; it must
    /// live until the next call of this function, or until the lookup is destroyed. 0 (default): the legacy
    /// default stream. Of a collection on the CPU it is not looked at. Not collective, not blocking. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (no stream of the device, as far as CUDA can tell),
    /// DEVICE_ERROR. Since 0.1.
    pub fn shardrec_lookup_set_stream(lookup: *mut shardrec_lookup, stream: i64) -> shardrec_status;
    /// Starts the exchange of a batch's ids. The ids are read before it returns (unless BORROW); ranks may mix
    /// lengths, offsets, and batch sizes of features. A rank whose batch has no values takes part in steps all
    /// the same.
    /// Collective, not blocking: takes part in the order of calls, waits for nobody. On an idle or
    /// evaluated lookup it returns an error only for INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (batch NULL or
    /// of a size that is none: nothing was begun), UNSUPPORTED (members that this release does not know are not
    /// zero: likewise), OUT_OF_MEMORY and a dead communicator; every defect of the batch is this rank's verdict,
    /// told by forward. INVALID_STATE when the lookup has begun and not forwarded. Since 0.2.
    pub fn shardrec_lookup_begin(lookup: *mut shardrec_lookup, batch: *const shardrec_batch) -> shardrec_status;
    /// Rows and columns of an output of the batch that has begun; either out may be NULL. Output 0, the
    /// pooled features: \[batch_size, width\] (shardrec_model_info). Output 1 + k, the k-th sequence feature
    /// (pooling NONE) in model order: \[ids of the feature in this rank's batch, dim\], in the batch's order. 0 rows when this rank's batch is one that forward will refuse.
    /// Not collective; may wait for a device. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin),
    /// NOT_FOUND (output), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn shardrec_lookup_output_shape(lookup: *const shardrec_lookup, output: i32, out_rows: *mut i64, out_columns: *mut i64) -> shardrec_status;
    /// Finishes the exchange, looks up and writes an output.
    /// output: 0 or that of a sequence feature (shardrec_lookup_output_shape). out: of that shape, FLOAT32
    /// or what the collection's option OUTPUT_DTYPE says, unit column stride, any row stride \>= columns.
    /// The first call after begin, for whichever output, is collective and blocking. Others, and asking
    /// again, copy an output, up to the next call that exchanges anything on the collection (INVALID_STATE
    /// afterwards).
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin), NOT_FOUND (output), INVALID_ARGUMENT for
    /// out (these only on this rank; nothing was exchanged: call again with what is right); INVALID_BATCH (see
    /// above); DISAGREEMENT (lookups of the ranks differ in WEIGHT_GRADIENT), OUT_OF_MEMORY, MISMATCH,
    /// PEER_FAILED, TIMEOUT, ABORTED. After INVALID_ARGUMENT out is as it
    /// was; after any other error it may be written in part, since this rank's own rows are looked up
    /// while the others' are under way. Since 0.1.
    pub fn shardrec_lookup_forward(lookup: *mut shardrec_lookup, output: i32, out: *const shardrec_tensor) -> shardrec_status;
    /// 1 when no rank has more data (all gave values NULL), else 0; valid after forward, and the same on all
    /// ranks (on a mesh without replicated tables, of the own sharding group): the end of an epoch when ranks
    /// have different numbers of batches. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_lookup_all_done(lookup: *const shardrec_lookup, out: *mut i32) -> shardrec_status;
    /// Gives the gradient of this rank's loss with respect to an output, shaped and typed as in forward.
    /// It is read before the call returns (unless BORROW). Not collective. May be called again before
    /// backward; the last one counts. All outputs with elements need one: give zeros where the loss does
    /// not depend on it.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no forward), NOT_FOUND (output),
    /// INVALID_ARGUMENT (the gradient given before, if any, stays), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_lookup_set_gradient(lookup: *mut shardrec_lookup, output: i32, gradient: *const shardrec_tensor) -> shardrec_status;
    /// Sends this rank's gradients now, so that they travel while the host computes what the tables do not
    /// need, such as the backward of its bottom layers. backward then does the rest of the
    /// step: the same bits as without this call. A rank may call it or not, whatever the others do.
    /// update: APPLY or ACCUMULATE, as backward will be given; it is sent along, and a backward with another
    /// one is INVALID_STATE (nothing has changed: call it with this one).
    /// The step has the learning rates and frozen tables of now: what is set before backward counts from
    /// the next step on. The gradient of an output that is missing is told by backward, as without this
    /// call. Gradients that are BORROWed must stay, unchanged, until backward has returned,
    /// or the lookup is destroyed: other ranks may read them in the meantime.
    /// Up to backward, this lookup takes no begin, set_gradient or send_gradients, and on its collection
    /// nothing else that looks up or changes tables is exchanged (forward, backward, send_gradients of
    /// another lookup, reads and writes of rows, shardrec_collection_sync_replicas, _sync_begin, _sync_wait,
    /// _check_replicas and _replica_fill): INVALID_STATE, nothing has changed. begin and set_gradient of other lookups are
    /// fine. Not collective, but takes part in the order of calls as backward would. Not blocking: waits for
    /// nobody. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no forward; see above),
    /// INVALID_ARGUMENT, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1.
    pub fn shardrec_lookup_send_gradients(lookup: *mut shardrec_lookup, update: shardrec_update) -> shardrec_status;
    /// Ends the batch: exchanges the gradients and does with them what update says. The lookup is then idle.
    /// All ranks give the same update, but that one SKIP is enough: with any other mixture the step is
    /// INVALID_BATCH on all ranks and changes nothing, what is kept included.
    ///
    /// APPLY: one optimizer step on every row that some rank's batch touched, by the sum of its gradients and
    /// of those that were kept.
    /// Scaling: gradient / divisor (option GRADIENT_DIVISOR), clamped to MAX_GRADIENT, for MEAN divided by
    /// the bag's length, times the id's weight. A row that several features touch, pooled or sequences, is
    /// updated once, by the sum. A rank without the gradient of an output that has elements (set_gradient
    /// was not called), or, with the option NON_FINITE ERROR, with a NaN or an infinity in one, makes this
    /// INVALID_BATCH on all ranks.
    ///
    /// ACCUMULATE: the gradients are kept. The next step that is applied, of any lookup of the collection,
    /// adds its own and applies the sum (not divided by the number of lookups); gradients were scaled and clamped
    /// lookup by lookup. Summed row by row in the order of the calls: the same bits under every plan. Lookups
    /// between see the weights as they are. Of a table that is frozen now (shardrec_collection_set_frozen)
    /// nothing is kept: its gradients of this lookup are dropped for good.
    ///
    /// SKIP: no rank applies or keeps anything, and this returns OK on all of them: shardrec_collection_step tells.
    /// No gradient is needed. With the option NON_FINITE SKIP a rank whose gradients hold a NaN or an infinity does this
    /// in place of what its update says. On a mesh the sharding groups then wait for each other in this call: a step that
    /// one group skips or refuses (INVALID_BATCH) is not applied by the others either, which return OK. On a mesh with
    /// replicated tables all its ranks take the step together, as those of one group do: what one skips or refuses, all skip
    /// or refuse, and training settings are the same on all of them. A rank without data takes part with an empty batch; for
    /// a sharding group that does not take part, the others wait until their deadline (TIMEOUT, naming a rank of it and the
    /// call). With the option SYNC_EVERY of the collection an update may end with a sync of the replicas
    /// (shardrec_collection_create).
    ///
    /// Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (update), INVALID_STATE (no
    /// forward; another update than send_gradients was given: these only on this rank; tables that were loaded or
    /// filled since, on all ranks alike: the batch is over, and nothing was exchanged), INVALID_BATCH, DISAGREEMENT
    /// (SYNC_EVERY), OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_lookup_backward(lookup: *mut shardrec_lookup, update: shardrec_update) -> shardrec_status;
    /// backward in two halves: the step is taken on a thread of the lookup's own, while the host computes what the
    /// tables do not need, such as the backward of its bottom layers, their DDP and their step. The same bits as
    /// backward; a rank may call this or backward, whatever the others do. The work uses the threads of the
    /// collection (its option THREADS). update: as backward.
    /// From here to backward_wait of this lookup, all other calls on the collection and its lookups that are not
    /// said to be for any thread are INVALID_STATE, and so are commits, loads and syncs of the collection; nothing
    /// has changed. Gradients that are BORROWed must stay, unchanged, until backward_wait has returned.
    /// Not collective, but takes part in the order of calls as backward would. Not blocking: waits for nobody. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (update), INVALID_STATE (as backward), OUT_OF_MEMORY (also where the
    /// system starts no more threads: the gradients are sent then, and backward may be called), PEER_FAILED, TIMEOUT,
    /// MISMATCH, ABORTED. After an error nothing is to be waited for. Since 0.2.
    pub fn shardrec_lookup_backward_begin(lookup: *mut shardrec_lookup, update: shardrec_update) -> shardrec_status;
    /// Waits for the step that backward_begin has started, and returns what backward would: the lookup is then idle.
    /// Collective, blocking; on any thread. Errors: INVALID_HANDLE, CLOSED, BUSY (another thread waits), INVALID_STATE
    /// (no backward_begin), and those of backward. Since 0.2.
    pub fn shardrec_lookup_backward_wait(lookup: *mut shardrec_lookup) -> shardrec_status;
    /// The gradients of the loss of this rank's samples with respect to the weights of its ids: for an id
    /// of a bag, the sum over columns of its row, as it was just before the step of this backward, times
    /// the output gradient of the bag, divided by the bag's length for MEAN; neither divided by
    /// GRADIENT_DIVISOR nor clamped. 0 for ids of sequences and for ids that were dropped. A batch without
    /// weights has them too (as if all were 1). Given to lookups made with the option WEIGHT_GRADIENT;
    /// after backward, up to the next begin.
    /// out: \[ids\], FLOAT32, compact, in the order of values, on the CPU (or a device, see above). Not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_lookup_weight_gradient(lookup: *const shardrec_lookup, out: *const shardrec_tensor) -> shardrec_status;
    /// Makes an empty set of parameters. options: kind DDP or NULL. out: owned by the caller. Not
    /// collective. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_ddp_create(comm: *mut shardrec_comm, options: *const shardrec_options, out: *mut *mut shardrec_ddp) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; the parameters stay the host's, views of gradients
    /// and states end. Inside a step with sync the communicator fails: PEER_FAILED on the others. Of a set on a
    /// device between processes it may wait as shardrec_collection_destroy does. Since 0.1.
    pub fn shardrec_ddp_destroy(ddp: *mut *mut shardrec_ddp);
    /// Adds a parameter: a compact tensor of FLOAT32, FLOAT64, FLOAT16 or BFLOAT16 on the CPU or a CUDA device,
    /// whose memory stays the host's and in place until the handle is destroyed. It is written by commit,
    /// broadcast, join and step only.
    /// gradient: of the same shape and dtype on the same device, likewise in place; read and written between its
    /// mark_ready and wait. NULL: memory of the library, on that device (shardrec_ddp_gradient), or of
    /// shardrec_ddp_set_flat_gradient.
    /// name: UTF-8, not empty, unique. out_index: counts from 0; may be NULL. Not collective.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (after commit), INVALID_ARGUMENT, UNSUPPORTED
    /// (dtype; another device than that of the parameters before), OUT_OF_MEMORY. Since 0.1; CUDA devices
    /// since 0.2.
    pub fn shardrec_ddp_add_parameter(ddp: *mut shardrec_ddp, name: *const c_char, parameter: *const shardrec_tensor, gradient: *const shardrec_tensor, out_index: *mut i32) -> shardrec_status;
    /// Adds all parameters of a stack as "\<name\>.layer.\<l\>.weight" and ".bias". From then on
    /// shardrec_mlp_backward marks them ready, layer by layer, in steps that have begun; backward a second
    /// time in a step with sync is INVALID_STATE there. No layer is added to the stack afterwards; it may
    /// be destroyed before the set. A stack is in one set at a time. out_first: index of its first
    /// parameter; may be NULL. Not collective. Errors: as shardrec_ddp_add_parameter; INVALID_STATE (no
    /// layer; in another set already). Since 0.1.
    pub fn shardrec_ddp_add_mlp(ddp: *mut shardrec_ddp, name: *const c_char, mlp: *mut shardrec_mlp, out_first: *mut i32) -> shardrec_status;
    /// The gradients of all parameters that are added without one lie one behind the other in this tensor,
    /// in the order of adding: compact, of their dtype and device, as many elements as they have together
    /// (checked by commit). Its memory stays the host's and in place until the handle is destroyed. Before commit; not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT, UNSUPPORTED.
    /// Since 0.1.
    pub fn shardrec_ddp_set_flat_gradient(ddp: *mut shardrec_ddp, gradients: *const shardrec_tensor) -> shardrec_status;
    /// Gives the set an optimizer, for shardrec_ddp_step or the option DDP_STEP_IN_BACKWARD. All parameters
    /// must be FLOAT32, and no name begins with "optimizer." (checked by commit). options: kind OPTIMIZER
    /// (SGD, MOMENTUM_SGD, ADAGRAD, ADAM, LAMB with one trust ratio per parameter; formulas:
    /// shardrec_mlp_create; AdamW is ADAM with WEIGHT_DECAY_MODE DECOUPLE), read now; NULL: SGD. Layers of
    /// stacks that were added are stepped by it too: do not call shardrec_mlp_step then. Before commit; not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT, UNSUPPORTED. Since
    /// 0.1.
    pub fn shardrec_ddp_set_optimizer(ddp: *mut shardrec_ddp, options: *const shardrec_options) -> shardrec_status;
    /// Checks that all ranks added the same parameters (count, names, dtypes, shapes) with the same options
    /// and optimizer, makes the buckets (memory for one more copy of the gradients, at DDP_COMPRESSION's
    /// size) and the library's gradients (zero), then copies rank 0's values to all (option DDP_BROADCAST).
    /// Collective, blocking (setup deadline).
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE (twice: only this rank; no parameters: on all ranks
    /// alike), INVALID_ARGUMENT and UNSUPPORTED (of the optimizer and the flat gradient, a hook of a set on a
    /// device; only this rank), UNSUPPORTED (DDP_REDUCTION NCCL where NCCL cannot reduce; on all ranks alike, and
    /// the communicator lives on), UNSUPPORTED and DEVICE_ERROR (the device, plug-ins), which end the communicator;
    /// DISAGREEMENT (names rank and parameter, the same on all ranks); OUT_OF_MEMORY, MISMATCH, PEER_FAILED,
    /// TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_ddp_commit(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// A view of a parameter's gradient, where the parameter is, valid until the handle is destroyed; after commit.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_STATE, NOT_FOUND, INVALID_ARGUMENT. Any thread. Since 0.1.
    pub fn shardrec_ddp_gradient(ddp: *const shardrec_ddp, index: i32, out: *mut shardrec_tensor) -> shardrec_status;
    /// The bucket that a parameter is in, from 0 in the order of sending; with DDP_ORDER RECORDED another
    /// one from the second step on. Errors: as shardrec_ddp_gradient. Any thread, but not during begin.
    /// Since 0.1.
    pub fn shardrec_ddp_bucket_of(ddp: *const shardrec_ddp, index: i32, out: *mut i32) -> shardrec_status;
    /// Begins a step. sync 1: its gradients are reduced; 0: nothing is sent, and what was marked ready counts
    /// as used in the next step with sync. The same on all ranks. Not blocking, but once: with DDP_ORDER
    /// RECORDED the second step with sync begins with an exchange.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no commit; inside a step), INVALID_ARGUMENT,
    /// OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_ddp_begin(ddp: *mut shardrec_ddp, sync: i32) -> shardrec_status;
    /// The gradients of parameters \[first, first + count) are whole, on a device behind what the caller's stream
    /// holds now: from now to wait the host leaves them alone. Does not block: below a microsecond, but for one
    /// that wakes the thread which sends a bucket, and on a device, where an event is recorded, and for
    /// parameters of a stack a call of the stack is waited for. Any thread. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT,
    /// INVALID_STATE (before begin, after end, a second time in a step with sync: names the parameter;
    /// those before it in the range are marked). Since 0.1.
    pub fn shardrec_ddp_mark_ready(ddp: *mut shardrec_ddp, first: i32, count: i32) -> shardrec_status;
    /// This rank's batch does not use parameters \[first, first + count): zeros are sent, unless a step
    /// without sync before has used them. With DDP_UNUSED MARK or ZERO; those not marked when the step ends
    /// are unused likewise. Errors: as shardrec_ddp_mark_ready; INVALID_STATE with DDP_UNUSED ERROR.
    /// Any thread. Since 0.1.
    pub fn shardrec_ddp_mark_unused(ddp: *mut shardrec_ddp, first: i32, count: i32) -> shardrec_status;
    /// Ends the host's part of a step: no parameter is marked any more, and what is left is sent. Waits for nobody
    /// but for a peer that has not taken the gradients of the step before yet; on a device between processes
    /// without NCCL, where it is end that sends (DDP_THREAD), for the device, whose messages leave by the host, or
    /// by CUDA IPC for peers' copies of the step before.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin). Since 0.1.
    pub fn shardrec_ddp_end(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// Waits until all gradients of the step are reduced and written. Collective, blocking; after a step
    /// without sync it returns at once and may be left out.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE: no end, only this rank; or, on all ranks alike, a
    /// rank had not marked a parameter that it had to (DDP_UNUSED ERROR), named in the sentence, RANK and
    /// POSITION: buckets without it are reduced, the others as they were; the communicator lives on.
    /// INVALID_BATCH, on all ranks alike: option NON_FINITE ERROR, and a reduced gradient is NaN or infinite;
    /// the sentence names the parameter, which is POSITION, VALUE its element. With SKIP this returns OK,
    /// shardrec_ddp_step then does nothing, and "non_finite_steps" of the statistics counts. MISMATCH,
    /// OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED; what a hook returned. Since 0.1.
    pub fn shardrec_ddp_wait(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// A whole step with sync: begin, all parameters ready, end, wait. Collective, blocking. Errors: as these.
    /// Since 0.1.
    pub fn shardrec_ddp_all_reduce(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// For a rank without more batches: takes part in the others' steps with zeros, until all ranks have
    /// joined. The mean is over all ranks or those that have not joined (option DDP_JOIN_DIVISOR). Then the
    /// values and optimizer states of the rank with most steps (of several, the lowest) are copied to all.
    /// Collective, blocking; each step of the others counts anew for the deadline. Errors: as
    /// shardrec_ddp_wait, shardrec_ddp_broadcast. Since 0.1.
    pub fn shardrec_ddp_join(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// Sets all gradients to zero; between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE.
    /// Since 0.1.
    pub fn shardrec_ddp_zero_gradients(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// Bounds the gradients of all parameters, of any dtype; the same on every rank without an exchange, for
    /// gradients are reduced. Results are rounded to nearest in the gradient's dtype.
    /// CLIP_L2, CLIP_INFINITY: all are multiplied by min(1, bound / (norm + 1e-6)), as PyTorch's
    /// clip_grad_norm_. The factor is float32 (float64 for FLOAT64 gradients).
    /// CLIP_VALUE: each becomes the nearest number in \[-bound, bound\], as clip_grad_value_; NaN stays.
    /// bound: finite, \>= 0. out_norm: the norm before, with CLIP_VALUE the infinity norm; may be NULL. A norm
    /// that is NaN or infinite is returned with OK and scales nothing, and shardrec_ddp_step takes the
    /// gradients as they are: look at it, or set the option NON_FINITE, by which shardrec_ddp_wait refuses
    /// such gradients. After wait. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_ARGUMENT, INVALID_STATE (inside a step; DDP_STEP_IN_BACKWARD). Since 0.2.
    pub fn shardrec_ddp_clip_gradients(ddp: *mut shardrec_ddp, clip: shardrec_clip, bound: f64, out_norm: *mut f64) -> shardrec_status;
    /// One optimizer step on all parameters with their gradients, which stay as they are. After wait. Not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no optimizer; inside a step;
    /// DDP_STEP_IN_BACKWARD). Since 0.1.
    pub fn shardrec_ddp_step(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// Sets the learning rate from the next step on; the same on all ranks. Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, INVALID_ARGUMENT, INVALID_STATE (no optimizer; inside a step). Since 0.1.
    pub fn shardrec_ddp_set_learning_rate(ddp: *mut shardrec_ddp, learning_rate: f64) -> shardrec_status;
    /// A view of an optimizer state of a parameter, FLOAT32, where and shaped as it, valid until the handle is
    /// destroyed; after commit. state: MOMENTUM_SGD 0 the momentum; ADAGRAD 0 the sum; ADAM and LAMB 0 the
    /// mean, 1 the mean of squares. Checkpoints have them, and the number of steps.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_STATE, NOT_FOUND, INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_ddp_state(ddp: *const shardrec_ddp, index: i32, state: i32, out: *mut shardrec_tensor) -> shardrec_status;
    /// Compares values and optimizer states over the ranks, by a hash of 64 bits each. Collective, blocking;
    /// between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, DISAGREEMENT (names the first
    /// parameter and rank that differ from rank 0, the same on all ranks), OUT_OF_MEMORY, MISMATCH,
    /// PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_ddp_check_equal(ddp: *mut shardrec_ddp) -> shardrec_status;
    /// Copies values, optimizer states and the number of steps of rank root to all. Collective, blocking
    /// (setup deadline); between steps. Errors: as shardrec_ddp_check_equal, but DISAGREEMENT;
    /// INVALID_ARGUMENT (root; only this rank). Since 0.1.
    pub fn shardrec_ddp_broadcast(ddp: *mut shardrec_ddp, root: i32) -> shardrec_status;
    /// What has happened since commit, as JSON; sums over the steps with sync. Buckets are in their order.
    /// "version"                     integer: 1
    /// "ranks", "parameters"         integer: how many there are
    /// "steps", "steps_without_sync", "non_finite_steps"    integer: how many have ended
    /// "exchange_seconds"            number: from the first bucket's sending to the last one's end
    /// "waited_seconds"              number: inside shardrec_ddp_wait
    /// "hidden_seconds"              number: of the exchange, while the host did something else
    /// "buckets\[\].dtype"             text: "float32", for example
    /// "buckets\[\].parameters", "buckets\[\].elements"         integer: how many are in it
    /// "buckets\[\].bytes_sent"        integer: to all peers; with DDP_REDUCTION NCCL the heads of messages, and
    ///                               what was given to NCCL, once
    /// "buckets\[\].seconds"           number: from sending to the end; on a device, until what writes the
    ///                               gradients is enqueued, as in the sums of all buckets above
    /// "buckets\[\].saturated"         integer: numbers beyond float16's range that DDP_COMPRESSION FLOAT16 made
    ///                               +-65504 on this rank
    /// Between steps. out_text: freed by the caller
    /// with shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_ddp_statistics_json(ddp: *mut shardrec_ddp, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes an empty set. mesh: of comm, for HYBRID_SHARD, else NULL. options: kind FSDP or NULL. out: owned by
    /// the caller. Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (a mesh without
    /// HYBRID_SHARD, or the reverse; FSDP_OFFLOAD without DEVICE; no such device), UNSUPPORTED (dtypes; DEVICE without
    /// FSDP_OFFLOAD, or without its plug-in), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2.
    pub fn shardrec_fsdp_create(comm: *mut shardrec_comm, mesh: *mut shardrec_mesh, options: *const shardrec_options, out: *mut *mut shardrec_fsdp) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; views end. Inside a step the communicator fails:
    /// PEER_FAILED on the others. Since 0.2.
    pub fn shardrec_fsdp_destroy(fsdp: *mut *mut shardrec_fsdp);
    /// Adds a unit. name: UTF-8, not empty, unique. out_unit: counts from 0; may be NULL. Not collective.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (after commit), INVALID_ARGUMENT, OUT_OF_MEMORY.
    /// Since 0.2.
    pub fn shardrec_fsdp_add_unit(fsdp: *mut shardrec_fsdp, name: *const c_char, out_unit: *mut i32) -> shardrec_status;
    /// Adds a FLOAT32 parameter to a unit: its shape alone; commit makes the memory of this rank's part, which is
    /// zero. rows: 0 or more; columns: 0: the shape is \[rows\], else it is \[rows, columns\]. A set has at most 2^48
    /// elements, those of each parameter rounded up to a multiple of 32. One of more dimensions is given as a matrix
    /// with the same elements, row-major. name: UTF-8, not empty, unique in the set. out_index: counts from 0 over all
    /// units; may be NULL. Not collective. Errors: as shardrec_fsdp_add_unit; NOT_FOUND (unit). Since 0.2.
    pub fn shardrec_fsdp_add_parameter(fsdp: *mut shardrec_fsdp, unit: i32, name: *const c_char, rows: i64, columns: i64, out_index: *mut i32) -> shardrec_status;
    /// Adds the layers of a stack as units: a unit is the next layers of it until they have unit_elements elements
    /// (1: each layer with parameters), named "\<name\>.layer.0" or "\<name\>.layer.0-2", with parameters
    /// "\<name\>.layer.0.weight" and so on. commit gives them the values that the stack of rank 0 has; from then on they are
    /// the set's, and the stack's own memory is given back: views of it read zeros. shardrec_mlp_forward unshards,
    /// computes and reshards one unit after the other, and shardrec_mlp_backward unshards them in reverse and marks them
    /// ready. Both are calls of a step of the set, between begin and end, under its thread rule, with errors of unshard,
    /// wait_unshard, reshard, gradient and mark_ready too; a second backward in a step with sync is INVALID_STATE.
    /// Gradients have the bits that the stack has in a shardrec_ddp. INVALID_STATE are shardrec_mlp_parameter, _state,
    /// _zero_gradients, _step and LEARNING_RATE of _set_f64: use shard, full, set_full, zero_gradients, step and
    /// set_learning_rate of the set, whose steps shardrec_mlp_info does not count. The set keeps the stack; when the set
    /// is destroyed, forward and backward are CLOSED. In a checkpoint (shardrec_checkpoint_add_mlp) it is a whole stack,
    /// with the set's optimizer. A stack in 16 bits on the CPU rounds the weights of a unit while it is computed; in
    /// FLOAT16 its loss scale follows its own gradients, and steps are refused or skipped by the set, on all ranks alike.
    /// out_first: the index of its first parameter; may be NULL. Not collective.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT; INVALID_STATE (after commit; no parameter in the stack; it
    /// is in a set already); UNSUPPORTED (a stack whose DEVICE is not the set's, in 16 bits on a device, in FLOAT16 with
    /// NON_FINITE ALLOW of the set, or with ACCUMULATE_GRADIENTS; FSDP_PARAMETER_DTYPE that is not FLOAT32);
    /// OUT_OF_MEMORY. Since 0.2.
    pub fn shardrec_fsdp_add_mlp(fsdp: *mut shardrec_fsdp, name: *const c_char, mlp: *mut shardrec_mlp, unit_elements: i64, out_first: *mut i32) -> shardrec_status;
    /// Gives the set an optimizer, as shardrec_ddp_set_optimizer; its states are sharded as the parameters are.
    /// Before commit; not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT,
    /// UNSUPPORTED. Since 0.2.
    pub fn shardrec_fsdp_set_optimizer(fsdp: *mut shardrec_fsdp, options: *const shardrec_options) -> shardrec_status;
    /// Checks that all ranks added the same units and parameters (count, names, shapes) with the same options
    /// and optimizer, then makes all memory; values are zero. Collective, blocking (setup deadline).
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE (twice: only this rank; no parameters: on all ranks
    /// alike), INVALID_ARGUMENT (a name that begins with "optimizer." in a set with an optimizer; only this
    /// rank); DISAGREEMENT (names rank and parameter or option, the same on all ranks; the communicator lives
    /// on); OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_commit(fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// Begins a step; gathers of the units that the last step asked for first leave. sync 1: gradients are
    /// reduced; 0: no gradient is sent: full gradients are kept, in memory of their own for each unit whose
    /// gradient is asked for, and the next step with sync reduces the sum; also for evaluation. The same on
    /// all ranks, else MISMATCH where they exchange something next. Waits for nobody but for a peer that has not
    /// taken what this rank sent in the step before.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no commit; inside a step), INVALID_ARGUMENT,
    /// OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_begin(fsdp: *mut shardrec_fsdp, sync: i32) -> shardrec_status;
    /// Asks for the full parameters of a unit: what other ranks have of them leaves there, unless it was prefetched.
    /// Does not wait, but where the buffer that it takes is still being filled for a unit that this step does not use,
    /// where 12 units are on their way, and for a peer that is so many gathers behind. Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, NOT_FOUND; INVALID_STATE, only this rank, nothing has changed: no step; unsharded already; all buffers
    /// are held by units that were not resharded, which the sentence names; OUT_OF_MEMORY, MISMATCH, PEER_FAILED,
    /// TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_unshard(fsdp: *mut shardrec_fsdp, unit: i32) -> shardrec_status;
    /// Waits until the full parameters of a unit are there. Blocking. Errors: as shardrec_fsdp_unshard;
    /// INVALID_STATE (it is not unsharded); MISMATCH: another rank unsharded another unit here; the sentence names
    /// both. Since 0.2.
    pub fn shardrec_fsdp_wait_unshard(fsdp: *mut shardrec_fsdp, unit: i32) -> shardrec_status;
    /// A view of a full parameter, in the dtype of FSDP_PARAMETER_DTYPE, valid until its unit is resharded or marked
    /// ready; read only, on the DEVICE in the order of STREAM. After wait_unshard. Errors: INVALID_HANDLE, CLOSED,
    /// NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_fsdp_parameter(fsdp: *mut shardrec_fsdp, index: i32, out: *mut shardrec_tensor) -> shardrec_status;
    /// The host no longer reads the full parameters of a unit: their buffer is free for another one. Waits for them
    /// where wait_unshard was not called. Errors: as
    /// shardrec_fsdp_wait_unshard. Since 0.2.
    pub fn shardrec_fsdp_reshard(fsdp: *mut shardrec_fsdp, unit: i32) -> shardrec_status;
    /// A view of the full gradient of a parameter on this rank, in the dtype of its values, valid until its unit is
    /// marked ready, without sync until the step ends; on the DEVICE in the order of STREAM. It holds zeros, or what steps
    /// without sync have added: add to it. Of a unit that was unsharded in this step. May wait for the reduction of
    /// another unit. A unit that is asked for while all buffers have gradients of units that are reduced after it gets
    /// memory of its own. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND, INVALID_ARGUMENT, OUT_OF_MEMORY; INVALID_STATE,
    /// only this rank: no step; the unit was not unsharded in it; it is marked ready; the parameter is a stack's;
    /// MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_gradient(fsdp: *mut shardrec_fsdp, index: i32, out: *mut shardrec_tensor) -> shardrec_status;
    /// The gradients of a unit are whole: it is resharded, and with sync their reduction begins, in the order that the
    /// head of this file says. Gradients that nothing was added to are zeros. May wait as shardrec_fsdp_gradient and
    /// shardrec_fsdp_reshard do. Errors: as there; INVALID_STATE (a second time in a step with sync). Since 0.2.
    pub fn shardrec_fsdp_mark_ready(fsdp: *mut shardrec_fsdp, unit: i32) -> shardrec_status;
    /// Ends the host's part of a step. Waits for units that were prefetched and not asked for. Errors: INVALID_HANDLE,
    /// CLOSED, BUSY; INVALID_STATE: no begin; a unit is unsharded: reshard it and call again; MISMATCH, PEER_FAILED,
    /// TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_end(fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// Waits until all gradients are reduced: the mean over all ranks (options DDP_AVERAGE, DDP_FACTOR) is added
    /// to the gradient of each rank's shard, or takes its place where zero_gradients was called since. A unit that
    /// the step did not unshard is left alone. Collective, blocking; after a step without sync it returns at once.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE: no end, only this rank; or, on all ranks alike, a rank
    /// had not marked a unit ready that this step unsharded: RANK, POSITION (the unit), and the sentence names it;
    /// the gradient of its shards is as it was, what steps without sync have kept of it is forgotten, others are
    /// reduced, and the communicator lives on; INVALID_BATCH, on all ranks alike: option NON_FINITE ERROR, and the
    /// gradient of a shard is NaN or infinite: the sentence names the parameter, which is POSITION, VALUE its first
    /// such element, RANK a rank that has it in its shard. With SKIP this returns OK, shardrec_fsdp_step then does
    /// nothing, and "non_finite_steps" of the statistics counts. With either, ranks exchange what they have found
    /// in each step with sync. MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_wait(fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// Sets the gradients of this rank's shards to zero, and forgets those that steps without sync have kept.
    /// Between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE. Since 0.2.
    pub fn shardrec_fsdp_zero_gradients(fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// As shardrec_ddp_clip_gradients, of the whole gradients: what shards have is added up, or compared, over the
    /// sharding group, so that all ranks scale alike. Collective over the sharding group, blocking. Between steps.
    /// A norm that is NaN or infinite scales nothing: see the option NON_FINITE.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE, MISMATCH, PEER_FAILED, TIMEOUT,
    /// ABORTED. Since 0.2.
    pub fn shardrec_fsdp_clip_gradients(fsdp: *mut shardrec_fsdp, clip: shardrec_clip, bound: f64, out_norm: *mut f64) -> shardrec_status;
    /// One optimizer step on this rank's shards with their gradients, which stay as they are. Waits until peers have
    /// read the shards in the step before; with LAMB collective over the sharding group. Does nothing after a
    /// shardrec_fsdp_wait that the option NON_FINITE SKIP skips. Between steps. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no optimizer; inside a step), PEER_FAILED, TIMEOUT, ABORTED.
    /// Since 0.2.
    pub fn shardrec_fsdp_step(fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// Sets the learning rate from the next step on; the same on all ranks. Errors: as
    /// shardrec_ddp_set_learning_rate. Since 0.2.
    pub fn shardrec_fsdp_set_learning_rate(fsdp: *mut shardrec_fsdp, learning_rate: f64) -> shardrec_status;
    /// A view of what this rank has of a parameter: FLOAT32, one dimension, perhaps empty. array: a
    /// shardrec_fsdp_array, or SHARDREC_FSDP_STATE + s. out_offset: of its first element in the parameter, row-major.
    /// Initial values that no rank has as a whole are written so. Between steps; valid until the handle is destroyed, but
    /// values may be written only until the next step begins: ask again then. Waits until peers have read values in the
    /// step before. When the communicator has ended: see the head of this file. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn shardrec_fsdp_shard(fsdp: *mut shardrec_fsdp, index: i32, array: i32, out_offset: *mut i64, out: *mut shardrec_tensor) -> shardrec_status;
    /// Gathers a whole parameter, its gradient or a state into out: compact, FLOAT32, on the CPU, as many elements as
    /// the parameter. Collective over the sharding group, blocking (setup deadline); between steps. What is refused
    /// for out, index or array is told to this rank only: others wait for its call. Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since
    /// 0.2.
    pub fn shardrec_fsdp_full(fsdp: *mut shardrec_fsdp, index: i32, array: i32, out: *const shardrec_tensor) -> shardrec_status;
    /// Sets a whole parameter, its gradient or a state. root -1: each rank takes its part of its own tensor, which
    /// is the same on all ranks; not collective. root in \[0, ranks): rank root's tensor is sent to all, and the
    /// tensors of the others are not looked at; collective over all ranks, blocking (setup deadline). tensor: compact,
    /// FLOAT32, on the CPU, as many elements as the parameter. Between steps. What is refused for tensor, index, array
    /// or root is told to this rank only, and nothing has changed: others wait for its call. Errors: as
    /// shardrec_fsdp_full. Since 0.2.
    pub fn shardrec_fsdp_set_full(fsdp: *mut shardrec_fsdp, index: i32, array: i32, tensor: *const shardrec_tensor, root: i32) -> shardrec_status;
    /// Compares values and states of the ranks that have the same shard (HYBRID_SHARD, NO_SHARD), by a hash of 64
    /// bits each. Collective, blocking; between steps. Errors: as shardrec_ddp_check_equal. Since 0.2.
    pub fn shardrec_fsdp_check_equal(fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// What the set holds on this rank and what has happened since commit, as JSON.
    /// "version"                       integer: 1
    /// "ranks", "sharding_ranks"       integer: of the communicator, of a sharding group
    /// "units", "parameters"           integer: how many there are
    /// "steps", "steps_without_sync"   integer: how many have ended
    /// "non_finite_steps"              integer: those that the option NON_FINITE refused or skipped
    /// "value_bytes", "gradient_bytes", "state_bytes"  integer: of the shards
    /// "full_parameter_bytes"          integer: buffers of full parameters
    /// "full_gradient_bytes"           integer: buffers of full gradients, and of their messages and sums
    /// "kept_gradient_bytes"           integer: the same of steps without sync
    /// "device_bytes"                  integer: buffers of full parameters and gradients on the DEVICE
    /// "message_bytes"                 integer: shards in 16 bits
    /// "gathers", "prefetched"         integer: units that were gathered, of those: before the host asked
    /// "gather_bytes_sent"             integer: to all peers
    /// "reduction_bytes_sent"          integer: to all peers
    /// "unshard_waited_seconds"        number: for parameters, in wait_unshard, reshard and mark_ready
    /// "gradient_waited_seconds"       number: in shardrec_fsdp_wait, and for buffers of gradients
    /// Between steps. out_text: freed by the caller with shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_STATE, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2.
    pub fn shardrec_fsdp_statistics_json(fsdp: *mut shardrec_fsdp, out_text: *mut *mut c_char) -> shardrec_status;
    /// Makes an empty stack of layers. inputs in \[1, 65536\]: columns of its input.
    /// options: kind MLP or NULL (seed, threads, optimizer: SGD, MOMENTUM_SGD, ADAGRAD, ADAM or LAMB;
    /// ACCUMULATE_GRADIENTS).
    /// SGD           w -= lr \* g
    /// MOMENTUM_SGD  b = momentum \* b + g; w -= lr \* b; b: "momentum", 0 at first
    /// ADAGRAD       h += g^2; w -= lr \* g / (sqrt(h) + eps); h: "sum"             (Duchi et al. 2011)
    /// ADAM          m, v as exponential means of g, g^2: "mean", "square";
    ///               r = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps);
    ///               w -= lr \* r                                                   (Kingma, Ba 2015)
    /// LAMB          m, v, r as ADAM; w -= lr \* q \* r, q = norm(w) / norm(r) over the whole parameter,
    ///               1 where either is 0                                           (You et al. 2020)
    /// with weight decay L2: g + lam \* w for g; DECOUPLE: w \*= 1 - lr \* lam before the step, of LAMB
    /// r + lam \* w for r (ADAM with DECOUPLE is AdamW, Loshchilov and Hutter 2019). g is first clamped
    /// to +-MAX_GRADIENT where that is set. Up to rounding these are PyTorch's SGD (dampening 0, not
    /// Nesterov's), Adagrad, Adam and AdamW. LAMB's norms are sums in float32 over 16 lanes in each
    /// block of 16384 elements, added up in float64 by ascending block.
    /// DEVICE, DEVICE_WAIT and STREAM say where it computes.
    /// PRECISION says how it multiplies. Parameters, their gradients and optimizer states, and the matrices that
    /// callers give, are FLOAT32 in all precisions, and so are checkpoints, DDP sets and views; a scorer computes
    /// in FLOAT32 whatever a stack was trained with.
    /// FLOAT32   as written.
    /// TFLOAT32  on a device; UNSUPPORTED on the CPU, which multiplies FLOAT32 no slower. Tensor cores round
    ///           the factors of a matrix product to 10 bits of mantissa, in NVIDIA's way, and add up in
    ///           FLOAT32. All else is FLOAT32's.
    /// BFLOAT16  These are rounded to bfloat16 (to nearest, ties to even), and kept so on a device: input and
    ///           output_gradient; outputs of all layers but the last, and their gradients; of CROSS x V^T,
    ///           x W^T + b and their gradients; W and V, as they are at a forward, whose backward uses the
    ///           same. A matrix product adds up exact products of them in FLOAT32, and what it writes to
    ///           one of them is rounded, x W^T before b is added. The rest is computed in FLOAT32 and
    ///           rounded when it is written to one of them; CROSS sums dx = ((dz W) + dy) + dx0 with a rounding
    ///           after each step. Not rounded are the output of the last layer (nor its x W^T of LINEAR),
    ///           input_gradient, gradients of parameters, dx0 (the sum of dy \* (x W^T + b) over a run of cross
    ///           layers), and mean and variance of LAYER_NORM. CPU and devices differ by the order of
    ///           sums in a product alone; on the CPU it is a reference, no faster than FLOAT32.
    /// FLOAT16   As BFLOAT16, with float16 for bfloat16; too large a number becomes infinity. Gradients that
    ///           float16 is too small for are kept by a scale S, a power of two (Micikevicius et al. 2018):
    ///           backward multiplies output_gradient by S before it is rounded, and gradients of parameters
    ///           and input_gradient by 1 / S, both in FLOAT32, so that callers, losses and DDP sets see no
    ///           scale. S is the option LOSS_SCALE at first. After a backward that has given a gradient of a
    ///           parameter or an input_gradient that is NaN or infinite, whatever it came from, S is halved,
    ///           not below 1; after LOSS_SCALE_STEPS backwards in a row without one it is doubled, not above
    ///           2^24 (PyTorch's GradScaler with the factors 2 and 0.5). Backwards of empty batches do not
    ///           count. shardrec_mlp_step is skipped where a gradient of a parameter is NaN or infinite as it
    ///           is then, accumulated or reduced over ranks: parameters, optimizer states and the count of steps
    ///           stay as they are, and skipped_steps of shardrec_layers counts. A DDP set that steps has
    ///           the option NON_FINITE SKIP for that, by which one rank's infinity is a step that all ranks
    ///           skip, or ERROR; its commit is UNSUPPORTED otherwise.
    ///           Each rank has its own S. On a device S is there, and so is the decision to skip: no call waits
    ///           for them but shardrec_mlp_info and checkpoints. These have S and its count, but not
    ///           LOSS_SCALE_STEPS, nor skipped_steps: a stack that goes on is made with the same one. Loaded
    ///           from a stack of another precision, a stack keeps the S that it has.
    /// In all of them a ReLU gives NaN for NaN, so that a NaN comes to the loss and to the gradients: its mask is
    /// never that of a matrix product's kernel, which has 0 there.
    /// out: owned by the caller. Errors: INVALID_ARGUMENT, UNSUPPORTED (a plug-in or its library is missing;
    /// the sentence names the package), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn shardrec_mlp_create(inputs: i64, options: *const shardrec_options, out: *mut *mut shardrec_mlp) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Since 0.1.
    pub fn shardrec_mlp_destroy(mlp: *mut *mut shardrec_mlp);
    /// Appends a layer. It is the stack's layer N where N layers were added before it, and its parameters are
    /// "layer.N.weight" and so on, in this order:
    /// LINEAR      weight W \[outputs, inputs\], bias b \[outputs\]
    /// CROSS       weight W \[inputs, inputs\], bias b \[inputs\]
    /// with rank   down V \[rank, inputs\], weight W \[inputs, rank\], bias b \[inputs\]:
    ///             y = x0 \* ((x V^T) W^T + b) + x
    /// LAYER_NORM  weight w \[inputs\], 1 at first, bias b \[inputs\], 0 at first
    /// DROPOUT     none
    /// Matrices are normal with deviation sqrt(2 / (rows + columns)) at first, b of LINEAR and CROSS normal
    /// with sqrt(1 / size of b), all from Philox4x32-10 keyed by (seed, N).
    /// CROSS: x0 is the input of the first cross layer of the consecutive ones that the layer is among. A
    /// stack of cross layers alone is a cross network.
    /// LAYER_NORM: mean and variance (divided by the number of columns) are those of a row. Each of their
    /// sums, and of backward's two, has 16 lanes: column c is added to lane c mod 16, from 0 and by ascending
    /// c, then lane i + 8 to lane i, then + 4, + 2, + 1. Squares and products are fused into the sum.
    /// DROPOUT: the element of row r and column c becomes 0 where a word of Philox4x32-10 is below
    /// floor(rate \* 2^32), else it is multiplied by float(1 / (1 - rate)). With p = r \* columns + c it is word p
    /// mod 4 for the key seed and the counter (p / 4 low, p / 4 high, N, number of forwards in training before
    /// this one, mod 2^32). backward uses the same words again. Checkpoints have that number, not the seed: a
    /// stack that goes on is made with the same one. Ranks with the same seed drop the same elements of their
    /// batches; where that is not wanted, give each a seed of its own, and broadcast the parameters.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE (after the first forward),
    /// OUT_OF_MEMORY. Since 0.2.
    pub fn shardrec_mlp_add(mlp: *mut shardrec_mlp, layer: *const shardrec_layer) -> shardrec_status;
    /// What the stack is. out: its struct_size is set; the members that fit in it are written. Of a stack with
    /// PRECISION FLOAT16 on a device the call returns when the device has done what was enqueued before.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, DEVICE_ERROR, OUT_OF_MEMORY. Since 0.2.
    pub fn shardrec_mlp_info(mlp: *const shardrec_mlp, out: *mut shardrec_layers) -> shardrec_status;
    /// Views of parameter `index` and of its gradient, compact, valid until the stack is destroyed or a
    /// layer is added; each may be NULL. Write through them to set values. Of a stack on a device they are
    /// there (shardrec_tensor_copy reads and writes them from the host), and the call returns when the device
    /// does nothing with them any more. To train data-parallel: shardrec_ddp_add_mlp, or
    /// shardrec_fsdp_add_mlp, where a rank keeps a part.
    /// Errors: as shardrec_mlp_info; NOT_FOUND. Since 0.1.
    pub fn shardrec_mlp_parameter(mlp: *mut shardrec_mlp, index: i32, out_parameter: *mut shardrec_tensor, out_gradient: *mut shardrec_tensor) -> shardrec_status;
    /// A view of an optimizer state of parameter `index`, shaped as it; valid as shardrec_mlp_parameter's.
    /// state: MOMENTUM_SGD 0 the momentum; ADAGRAD 0 the sum; ADAM and LAMB 0 the mean, 1 the mean of squares.
    /// Errors: as shardrec_mlp_parameter (NOT_FOUND: state too). Since 0.2.
    pub fn shardrec_mlp_state(mlp: *const shardrec_mlp, index: i32, state: i32, out: *mut shardrec_tensor) -> shardrec_status;
    /// output = stack(input). input \[batch, inputs\], output \[batch, outputs of the last layer\]; batch \>=
    /// 0. input must stay unchanged until backward, but one on the CPU of a stack on a device. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE (no layer), OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn shardrec_mlp_forward(mlp: *mut shardrec_mlp, input: *const shardrec_tensor, output: *const shardrec_tensor) -> shardrec_status;
    /// Gradients of the parameters and of the input, for the batch of the last forward. output_gradient as
    /// output; input_gradient as input, or NULL when it is not wanted.
    /// Gradients of the parameters are overwritten. With the option ACCUMULATE_GRADIENTS they are added
    /// to, as in PyTorch, until shardrec_mlp_zero_gradients: what this batch alone would give is added in
    /// float32 to what is there, zero at first, so that the sum over micro-batches is in the order of the
    /// calls. For the mean, divide output_gradient by their number; reduce over ranks once, after the last
    /// one. It keeps one more copy of the weights' size. input_gradient is always overwritten: it belongs
    /// to its batch, as do the gradients of shardrec_interaction_backward.
    /// After an error the gradients of the parameters are as before. Errors: as shardrec_mlp_forward;
    /// INVALID_STATE (no forward). Since 0.1.
    pub fn shardrec_mlp_backward(mlp: *mut shardrec_mlp, output_gradient: *const shardrec_tensor, input_gradient: *const shardrec_tensor) -> shardrec_status;
    /// Sets the gradients of all parameters to zero. A step after it without a backward goes by zero
    /// gradients (weight decay and Adam's means apply). Errors: INVALID_HANDLE, CLOSED, BUSY. Since 0.1.
    pub fn shardrec_mlp_zero_gradients(mlp: *mut shardrec_mlp) -> shardrec_status;
    /// One optimizer step on all parameters with their gradients, which stay as they are; with PRECISION
    /// FLOAT16 none where one of them is NaN or infinite (shardrec_mlp_create). Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, INVALID_STATE (no backward yet). Since 0.1.
    pub fn shardrec_mlp_step(mlp: *mut shardrec_mlp) -> shardrec_status;
    /// Changes a setting for later calls. backward is that of the last forward, whatever TRAINING was set to
    /// since. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_mlp_set_f64(mlp: *mut shardrec_mlp, setting: shardrec_mlp_setting, value: f64) -> shardrec_status;
    /// Makes a dot interaction of 1 dense and `features` embedding vectors of dim columns each.
    /// features \>= 0, dim \>= 1. options: kind MLP (threads, DEVICE, DEVICE_WAIT, STREAM; it computes in
    /// FLOAT32 whatever PRECISION is) or NULL. out: owned by the caller. Errors: INVALID_ARGUMENT,
    /// UNSUPPORTED, OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn shardrec_interaction_create(features: i64, dim: i64, options: *const shardrec_options, out: *mut *mut shardrec_interaction) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Since 0.1.
    pub fn shardrec_interaction_destroy(interaction: *mut *mut shardrec_interaction);
    /// Number of columns of its output: dim + (features + 1) \* features / 2. Errors: INVALID_HANDLE, CLOSED,
    /// INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_interaction_outputs(interaction: *const shardrec_interaction, out: *mut i64) -> shardrec_status;
    /// output \[batch, outputs\] = the dense vector, then the dot products of vectors (i, j), j \< i, i
    /// ascending, vector 0 the dense one. dense \[batch, dim\], embeddings \[batch, features \* dim\]; both must
    /// stay unchanged until backward. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_interaction_forward(interaction: *mut shardrec_interaction, dense: *const shardrec_tensor, embeddings: *const shardrec_tensor, output: *const shardrec_tensor) -> shardrec_status;
    /// Gradients of both inputs of the last forward, overwritten. Errors: as shardrec_interaction_forward;
    /// INVALID_STATE (no forward). Since 0.1.
    pub fn shardrec_interaction_backward(interaction: *mut shardrec_interaction, output_gradient: *const shardrec_tensor, dense_gradient: *const shardrec_tensor, embedding_gradient: *const shardrec_tensor) -> shardrec_status;
    /// Sigmoid and binary cross-entropy, averaged over the batch, on the CPU or where a stack is.
    /// stack: NULL, or one on the CPU: on the CPU. A stack on a device: there, in the order of its stream;
    /// matrices may each be on that device or on the CPU. The bits are the same.
    /// logits, labels (0 .. 1), probabilities and gradient: FLOAT32, compact, \[batch\] or \[batch, 1\];
    /// probabilities and gradient may be NULL. gradient = (sigmoid(logit) - label) / batch.
    /// out_loss: the mean in nats (0 for an empty batch), for which the call waits on a device; may be NULL.
    /// The loss of a logit z is max(z, 0) - z \* label + log(1 + exp(-|z|)), in float64, with exp and log of the
    /// library's own, whose errors are below 1 unit in the last place. The sum: the losses of 256 consecutive
    /// samples, absent ones 0, are added up as a tree: i + 128 to i, then + 64, and so on to + 1. The sums of
    /// these blocks have 256 lanes: that of block b is added to lane b mod 256, from 0 and by ascending b; then
    /// the same tree over lanes.
    /// A label outside 0 .. 1 is INVALID_ARGUMENT with its position, and nothing was written. A device notices
    /// it, too, but what was asked for is written, and the next call with out_loss for the stack, which may be
    /// the same one, returns the error: the position is the first one since the last such call, each in its own
    /// batch.
    /// Errors: INVALID_ARGUMENT; of the stack INVALID_HANDLE, CLOSED, BUSY, OUT_OF_MEMORY, DEVICE_ERROR. Any
    /// thread, a stack by one at a time. Since 0.1.
    pub fn shardrec_bce_with_logits(stack: *mut shardrec_mlp, logits: *const shardrec_tensor, labels: *const shardrec_tensor, probabilities: *const shardrec_tensor, gradient: *const shardrec_tensor, out_loss: *mut f64) -> shardrec_status;
    /// Makes a handle for the checkpoints below a directory. Reads and writes nothing yet.
    /// comm: the ranks that commit, open and load together; for collections on a mesh the communicator
    /// that the mesh was made of. directory: UTF-8, the same on all ranks; made by the first commit.
    /// options: kind CHECKPOINT (KEEP_LAST, MOST_DELTAS, DELTA_STATES) or NULL. out: owned by the caller; keeps what it
    /// needs of comm.
    /// Not collective, but all ranks of comm create their handles on it in the same order.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_create(comm: *mut shardrec_comm, directory: *const c_char, options: *const shardrec_options, out: *mut *mut shardrec_checkpoint) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Not collective, never blocks; files stay.
    /// Since 0.1.
    pub fn shardrec_checkpoint_destroy(checkpoint: *mut *mut shardrec_checkpoint);
    /// Adds a collection (weights, optimizer states, step count, learning rates and frozen tables that
    /// were set by calls; its model and plan), a stack of layers (parameters, optimizer states, step
    /// count, a learning rate that was set), or the parameters of a DDP handle (likewise, where it has an
    /// optimizer; then after its commit). What is added is written
    /// by every later commit and filled by load. name: UTF-8, at most 255 bytes, no '/', unique among all
    /// that is added or set; the same on all ranks. The handles stay the caller's and must not be
    /// destroyed before the last commit or load. A collection must be made on the handle's communicator or
    /// on a mesh of it. Layers and DDP parameters are the same on all ranks; commit checks that.
    /// Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (name, another
    /// communicator), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_add_collection(checkpoint: *mut shardrec_checkpoint, name: *const c_char, collection: *mut shardrec_collection) -> shardrec_status;
    /// The C API's `shardrec_checkpoint_add_mlp`.
    pub fn shardrec_checkpoint_add_mlp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, mlp: *mut shardrec_mlp) -> shardrec_status;
    /// The C API's `shardrec_checkpoint_add_ddp`.
    pub fn shardrec_checkpoint_add_ddp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, ddp: *mut shardrec_ddp) -> shardrec_status;
    /// The same of sharded parameters, made on the handle's communicator, after their commit and between their steps.
    /// They are saved whole, as shardrec_checkpoint_add_ddp saves parameters with these names: sets of either kind
    /// load what either has saved, in FLOAT32 with the same names and shapes, over any number of ranks and with any
    /// strategy. A commit or load gathers them, and takes the memory of all values and states on each rank while it
    /// lasts; shardrec_checkpoint_commit_begin takes it twice, and keeps one until shardrec_checkpoint_commit_wait.
    /// Errors: as shardrec_checkpoint_add_ddp.
    /// Since 0.2.
    pub fn shardrec_checkpoint_add_fsdp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, fsdp: *mut shardrec_fsdp) -> shardrec_status;
    /// Sets a tensor of this rank that the next commits write, in place of one of that name that was set
    /// before: optimizer states of the host, the position in its data, settings as bytes (UINT8).
    /// Each rank may set tensors of its own, of any dtype and shape, or none; load does not touch them:
    /// shardrec_checkpoint_get_tensor reads those of any rank. tensor: compact, copied; NULL takes the
    /// name out again. name: as shardrec_checkpoint_add_collection.
    /// Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, UNSUPPORTED (device),
    /// NOT_FOUND (NULL for a name that was not set), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_set_tensor(checkpoint: *mut shardrec_checkpoint, name: *const c_char, tensor: *const shardrec_tensor) -> shardrec_status;
    /// Writes a checkpoint of all that was added and set, and makes it the newest. step: \>= 0, a number
    /// of the host's that names it, the same on all ranks; a checkpoint of the same run and step is
    /// replaced once the new one is there. With KEEP_LAST older checkpoints of this run are then removed.
    /// Gradients that were accumulated and not yet applied are not saved. Tables on a mesh are written by
    /// the first replica, states that replicas share (REPLICA_SYNC SHARDED) by those that have them; those that are cut must
    /// have been averaged since their last step (INVALID_STATE).
    /// control: NULL allowed; counts this rank's bytes, cancels. Temporary memory: about 5 MiB.
    /// Collective, blocking (setup deadline). After an error there is no new checkpoint and the one
    /// before is as it was; only where a disk fails in the last moment and does not let that be undone
    /// (IO_ERROR) the new one may stay, whole. Errors: INVALID_HANDLE, CLOSED (also: what was added is
    /// destroyed), BUSY, INVALID_ARGUMENT (step), INVALID_STATE (nothing was added or set; the directory
    /// holds checkpoints of a run that this handle has not opened; another job commits there now, or has
    /// committed since this handle's last open or commit), IO_ERROR (on any rank: all get it, with rank
    /// and path; also where a rank does not see the same directory), DISAGREEMENT (directory, names, layers
    /// or DDP parameters differ between ranks), CANCELLED, OUT_OF_MEMORY, MISMATCH (also: the steps differ),
    /// PEER_FAILED, TIMEOUT, ABORTED (these three: the checkpoint may be there or not, whole). Since 0.1.
    pub fn shardrec_checkpoint_commit(checkpoint: *mut shardrec_checkpoint, step: i64, control: *mut shardrec_control) -> shardrec_status;
    /// Writes a delta: of tables the rows, with their optimizer states, that have changed since the last commit of this
    /// handle (shardrec_collection_mark says what has); layers, DDP parameters and tensors whole. It is a checkpoint as any
    /// other: it becomes the newest at once, on all ranks, or is not there; open, load, verify and scorers take it, and read
    /// the whole checkpoint that it is a change of, and all deltas in between, with their checksums. KEEP_LAST leaves
    /// those where a checkpoint that stays is a change of them. With DELTA_STATES 0 a delta is for scorers, which read no
    /// states: it leaves them out, and is so much smaller. A training does not go on from it, but from the whole checkpoint
    /// behind it: shardrec_checkpoint_load refuses it where an optimizer has states, unless
    /// shardrec_checkpoint_load_partial is told otherwise. Layers and DDP parameters keep their states in all deltas.
    /// The commit is whole where this handle does not know the changes: in the first call of this function, in the first one
    /// behind open or a load, where other collections have been added since, and behind MOST_DELTAS deltas; commit and
    /// commit_begin write a whole one, which later deltas are changes of. One load is as a commit, so that the next delta is
    /// a change of what was loaded: shardrec_checkpoint_load of the newest checkpoint of a run that has deltas in the
    /// directory, under any plan and number of ranks, where the collections that were added are those of the checkpoint,
    /// with the same tables and ROW_STATISTICS in the same order. From the first call or such a load on, until the handle
    /// is destroyed, a mark of each collection notes the changes (memory: shardrec_collection_mark); another load releases
    /// it, and the next commit of any kind makes one again. Temporary memory: another mark of each collection, and about
    /// 14 MiB.
    /// out_delta: 1 where changes alone were written, else 0; the same on all ranks. All else, and errors: as
    /// shardrec_checkpoint_commit; also NOT_FOUND (the last commit is not in the directory any more: commit writes a whole
    /// one), DISAGREEMENT (DELTA_STATES). Since 0.2.
    pub fn shardrec_checkpoint_commit_delta(checkpoint: *mut shardrec_checkpoint, step: i64, control: *mut shardrec_control, out_delta: *mut i32) -> shardrec_status;
    /// Begins a commit whose files a thread of the library writes while the caller goes on;
    /// shardrec_checkpoint_commit_wait ends it. They are, byte for byte, those that shardrec_checkpoint_commit
    /// would have written in place of this call. Layers, parameters and tensors are copied here; rows of tables
    /// are copied when they are about to change, each once, and only until they are written, so that a step
    /// takes somewhat longer meanwhile. Tables on a device are copied to the host's memory here.
    /// Until the commit is over, all that was added may be used, changed and destroyed (steps, writing of rows,
    /// sync of replicas, learning rates, step numbers), and names may be added and set for later commits; but
    /// INVALID_STATE are other commits, open, load and load_partial of this handle, and, by other handles too, loads and
    /// commits in the background of its collections. Destroying the checkpoint handle gives the commit up: what
    /// was written is removed, without waiting for it; until that is done other commits to the directory are
    /// INVALID_STATE.
    /// step, and what must be so: as shardrec_checkpoint_commit. control: NULL allowed; counts this rank's
    /// bytes and cancels until the commit is over. Temporary memory: layers, parameters, tensors, a bit per row, and
    /// rows that change before they are written, at most the tables (counted by SHARDREC_STAT_BYTES_BUFFERS);
    /// where a row cannot be copied the commit fails (OUT_OF_MEMORY from commit_wait), and not the step.
    /// Collective, blocking (setup deadline) until the copies are made. After an error no commit is under way.
    /// Errors: as shardrec_checkpoint_commit. Since 0.2.
    pub fn shardrec_checkpoint_commit_begin(checkpoint: *mut shardrec_checkpoint, step: i64, control: *mut shardrec_control) -> shardrec_status;
    /// Begins a delta that is written so: shardrec_checkpoint_commit_delta, in the way of shardrec_checkpoint_commit_begin;
    /// shardrec_checkpoint_commit_wait ends it. The files have the bytes that commit_delta would have written in place of
    /// this call, and the commit is whole where that would be. Of tables only the rows that the delta has are copied: on the
    /// host those that change before they are written, on a device all of them, here. What changes behind this call is in
    /// the next delta; where the commit fails or is given up, the next one has the changes of both.
    /// out_delta: as of shardrec_checkpoint_commit_delta, known here already. Temporary memory: as
    /// shardrec_checkpoint_commit_begin, of the rows of the delta, and as shardrec_checkpoint_commit_delta.
    /// Collective, blocking (setup deadline) until the copies are made. After an error no commit is under way.
    /// Errors: as shardrec_checkpoint_commit_delta. Since 0.2.
    pub fn shardrec_checkpoint_commit_delta_begin(checkpoint: *mut shardrec_checkpoint, step: i64, control: *mut shardrec_control, out_delta: *mut i32) -> shardrec_status;
    /// Waits for the end of a commit that was begun, and makes it the newest checkpoint. timeout_ms: how long
    /// this rank waits for its own files; 0: it asks only; negative: until they are written. Ranks may give
    /// different ones. out_done: 1 when the checkpoint is there, 0 when files of some rank are not yet written, the
    /// same on all ranks: then this is called again. May be called by another thread than the one that trains.
    /// Collective; peers wait for each other, at most until the setup deadline. After an error the commit is
    /// over, and as shardrec_checkpoint_commit says of errors; what was added can be used as before.
    /// Errors: as shardrec_checkpoint_commit, whichever rank failed to write its files; INVALID_STATE (no commit is
    /// under way), INVALID_ARGUMENT (out_done; the commit goes on). Since 0.2.
    pub fn shardrec_checkpoint_commit_wait(checkpoint: *mut shardrec_checkpoint, timeout_ms: i32, out_done: *mut i32) -> shardrec_status;
    /// Chooses a checkpoint for load, get_tensor, model, plan, mlp, verify and contents_json, and takes
    /// part in its run: commits go on in it. step: -1 for the newest. Reads and checks the manifest only. A
    /// commit does not change which checkpoint is open, but may remove it (KEEP_LAST). Collective,
    /// blocking (setup deadline). After an error the checkpoint that was open before stays open.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, NOT_FOUND (no checkpoint, no such step; what a delta is a
    /// change of is not there), CORRUPT_DATA (also: what a delta is a change of is another checkpoint), UNSUPPORTED (of a
    /// later release), IO_ERROR (also: a rank sees other files than rank 0), DISAGREEMENT (ranks name different
    /// directories), OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_checkpoint_open(checkpoint: *mut shardrec_checkpoint, step: i64) -> shardrec_status;
    /// What is open. out: its struct_size is set; the members that fit in it are written.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open), INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_checkpoint_info(checkpoint: *const shardrec_checkpoint, out: *mut shardrec_opened) -> shardrec_status;
    /// Fills all that was added from the open checkpoint, whatever plan, number of ranks and replicas
    /// wrote it. Names, shapes, dtypes and optimizers must agree; what the checkpoint holds beside is
    /// left out. Tables are read once, by all ranks together, and sent to those that hold them; every
    /// byte is verified as it is read. Of a delta the whole checkpoint behind it is read so, and then the deltas in their
    /// order, each by all ranks that hold rows and columns of what it has: as many bytes as the chain has, those of deltas
    /// up to once for each rank where tables are replicated or cut otherwise than they were saved. Layers and DDP
    /// parameters change last, after all is read.
    /// A load that fails before it has written to a table changes nothing. One that fails later (a
    /// damaged or unreadable block, a cancel, a peer) leaves the collections that it had begun to fill
    /// refusing what reads or changes their tables, commits among it, with INVALID_STATE, until a load
    /// succeeds; layers and DDP parameters are as before. Accumulated gradients of the tables are dropped, and
    /// so is a batch between forward and backward: backward, accumulate and send_gradients of it are
    /// INVALID_STATE. control: as commit. Collective, blocking (setup deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE
    /// (none is open, nothing was added, some rank is between send_gradients and backward, between
    /// backward_begin and backward_wait, or between sync_begin and sync_wait of a collection's replicas), NOT_FOUND (a
    /// name, table or parameter that the checkpoint has not), INVALID_ARGUMENT (another shape, dtype or
    /// optimizer), CORRUPT_DATA (names the tensor), UNSUPPORTED (SHARD statistics of other column cuts),
    /// IO_ERROR, CANCELLED, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_checkpoint_load(checkpoint: *mut shardrec_checkpoint, control: *mut shardrec_control) -> shardrec_status;
    /// Loads into what may differ from what was saved: a warm start. As shardrec_checkpoint_load, and as strict,
    /// but for what the document says; without "extra", what the checkpoint holds beside is an error, too. Its
    /// fields, of which all but "version" may be left out, with the values that they take, the default first:
    /// "version"               1
    /// "missing"               "error"; "keep": what the checkpoint has not stays as it is
    /// "extra"                 "error"; "ignore": what of the checkpoint is matched with none of what was
    ///                         added (tensors of the host are no such thing)
    /// "load"                  "all"; "listed": what the lists below do not name stays as it is
    /// "rows"                  "same"; "more": a table may have more rows than in the checkpoint, whose rows
    ///                         become its first ones, and the others stay as they are; "fewer": it may have
    ///                         fewer, and is filled by the first rows of the checkpoint; "any": both
    /// "dtype"                 "same"; "convert": weights become the table's dtype, rounded to nearest, ties to
    ///                         even; finite numbers beyond float16's range become its largest ones
    /// "state"                 "load"; "base": where the checkpoint is a delta without states (DELTA_STATES), those
    ///                         of the newest checkpoint that it is a change of and that has them: older than the
    ///                         weights; else as "load"; "reset": the optimizer's states become 0, as in a new table;
    ///                         "keep": they stay. With the latter two the optimizer may be another one, and learning
    ///                         rate and frozen flag stay as they are
    /// "step"                  "load"; "keep": the collection's count of updates stays as it is
    /// "collections"           array of: "name"; "from": its name in the checkpoint, where that is another one;
    ///                         "load": "all", "listed" (of its tables, those of the array "tables") or "none";
    ///                         "rows", "dtype", "state" and "step", in place of those above; and
    ///   "tables"              array of: "name", "from", "load": "all" or "none", "rows", "dtype", "state"
    /// "layers", "parameters"  arrays of: "name", "from", "load": "all" or "none". Layers and sets of DDP
    ///                         parameters are loaded whole, with their states and counts, or stay as they are
    /// The columns of a table must agree; what "from" names must be in the checkpoint; several tables may be
    /// filled from one. The count of updates is one number of a collection, by which the bias corrections of
    /// ADAM and LAMB go: rows whose states are 0 are then updated as rows that are met at that step for the
    /// first time. A new training with old weights resets all states and keeps the step.
    ///
    /// json: UTF-8, the same on all ranks. control: as commit. out_text: a report, JSON, the same on ranks that
    /// add the same in the same order:
    /// "version"                     integer: 1
    /// "directory"                   text: path of the checkpoint
    /// "step"                        integer: of the checkpoint
    /// "collections\[\].name", "collections\[\].from"                  text: as it was added; in the checkpoint
    /// "collections\[\].step"          integer: its updates after the load
    /// "collections\[\].step_loaded"   boolean: are they those of the checkpoint?
    /// "tables\[\].collection", "tables\[\].name", "tables\[\].from"     text: of a table that was loaded
    /// "tables\[\].rows"               integer: that were loaded
    /// "tables\[\].new_rows"           integer: of the table behind them, which have stayed as they were
    /// "tables\[\].dropped_rows"       integer: of the checkpoint behind them, for which the table has no place
    /// "tables\[\].dtype", "tables\[\].from_dtype"                     text
    /// "tables\[\].saturated"          integer: numbers that were beyond float16's range, of a whole checkpoint and of each
    ///                               of its deltas that was read
    /// "tables\[\].state"              text: "loaded", "reset", "kept"; "base": loaded from an older checkpoint than the
    ///                               weights; "none": the optimizer has none
    /// "layers\[\].name", "layers\[\].from"                            text
    /// "parameters\[\]"                as "layers\[\]": sets of DDP
    /// "missing\[\].kind", "missing\[\].name"                          text: "collection", "table", "layers" or
    ///                               "parameters" that the checkpoint has not
    /// "missing\[\].collection"        optional text: of a table
    /// "left_out\[\]"                  as "missing\[\]": what stayed as it was because the document says so
    /// "extra\[\]"                     as "missing\[\]": what of the checkpoint was matched with none
    /// UTF-8, freed by shardrec_text_free. Collective, blocking (setup deadline). After an error: as
    /// shardrec_checkpoint_load; what the document leaves as it is has not changed. Errors: as
    /// shardrec_checkpoint_load; also INVALID_ARGUMENT (the document, with the place in it), NOT_FOUND (something
    /// is extra), DISAGREEMENT (the documents differ), INVALID_STATE (a collection would be loaded in part that
    /// a load has left filled in part, or whose cut tables have not been averaged since their last step).
    /// Since 0.2.
    pub fn shardrec_checkpoint_load_partial(checkpoint: *mut shardrec_checkpoint, json: *const c_char, control: *mut shardrec_control, out_text: *mut *mut c_char) -> shardrec_status;
    /// The model / the plan of a collection in the open checkpoint, and a stack of layers and optimizer as
    /// one was when it was saved, with new values (load fills them). options of the stack: kind MLP or
    /// NULL; its optimizer keys are replaced by those of the checkpoint. out: owned by the caller.
    /// Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open), NOT_FOUND (the
    /// name; a checkpoint of an earlier release holds no model and plan), INVALID_ARGUMENT, CORRUPT_DATA,
    /// UNSUPPORTED (of a later release), OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_model(checkpoint: *mut shardrec_checkpoint, name: *const c_char, out: *mut *mut shardrec_model) -> shardrec_status;
    /// The C API's `shardrec_checkpoint_plan`.
    pub fn shardrec_checkpoint_plan(checkpoint: *mut shardrec_checkpoint, name: *const c_char, out: *mut *mut shardrec_plan) -> shardrec_status;
    /// The C API's `shardrec_checkpoint_mlp`.
    pub fn shardrec_checkpoint_mlp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, options: *const shardrec_options, out: *mut *mut shardrec_mlp) -> shardrec_status;
    /// Describes a tensor that rank `rank` had set in the open checkpoint. out: its struct_size is set; the
    /// members that fit in it are written. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open),
    /// NOT_FOUND (name or rank), INVALID_ARGUMENT. Since 0.2.
    pub fn shardrec_checkpoint_tensor_info(checkpoint: *mut shardrec_checkpoint, name: *const c_char, rank: i32, out: *mut shardrec_saved_tensor) -> shardrec_status;
    /// Reads such a tensor into out, which is compact and has its dtype and shape. Nothing is written
    /// unless the checksum matches. Not collective. Errors: as shardrec_checkpoint_tensor_info; also
    /// CORRUPT_DATA, IO_ERROR, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_get_tensor(checkpoint: *mut shardrec_checkpoint, name: *const c_char, rank: i32, out: *const shardrec_tensor) -> shardrec_status;
    /// Reads the whole open checkpoint and compares every checksum; the ranks share the work.
    /// control: as commit. Collective, blocking (setup deadline). Errors: as shardrec_checkpoint_load.
    /// Since 0.1.
    pub fn shardrec_checkpoint_verify(checkpoint: *mut shardrec_checkpoint, control: *mut shardrec_control) -> shardrec_status;
    /// What the open checkpoint holds, as JSON. Tensors: dtypes as options take them, checksums (XXH3-64, of a
    /// box one per block) in hexadecimal digits, bytes without what surrounds them in the file.
    /// "version"                     integer: 1
    /// "directory"                   text: path of the checkpoint
    /// "format"                      integer: of the checkpoint's files (impl/checkpoint/FORMAT.md)
    /// "step", "ranks"               integer: its step; how many ranks wrote it
    /// "base.directory"              optional text: of a delta, the directory beside it that it is a change of
    /// "base.step", "base.commit"    optional integer: of that one
    /// "base.deltas"                 optional integer: how many deltas, this one included, follow the whole checkpoint
    /// "base.states"                 optional boolean: has this delta the optimizers' states of the rows that it has?
    /// "collections\[\].name"          text
    /// "collections\[\].step"          integer: updates
    /// "collections\[\].tables\[\].name"                           text
    /// "collections\[\].tables\[\].rows", "collections\[\].tables\[\].dim"         integer
    /// "collections\[\].tables\[\].dtype", "collections\[\].tables\[\].optimizer"  text
    /// "boxes\[\].collection", "boxes\[\].table"                   text
    /// "boxes\[\].part"                text: "weights", or "state/" and the name of an optimizer's state
    /// "boxes\[\].row", "boxes\[\].rows", "boxes\[\].col", "boxes\[\].cols"        integer: its cells
    /// "boxes\[\].changed_rows"        optional integer: of a delta, how many of the rows it has
    /// "boxes\[\].row_bytes"           optional integer: of a delta, bytes of a row
    /// "boxes\[\].dtype", "boxes\[\].file"                         text
    /// "boxes\[\].bytes"               integer
    /// "boxes\[\].checksums"           array of texts
    /// "layers\[\].name", "layers\[\].tensors\[\].name"              text: of the stack; of a parameter or a state
    /// "layers\[\].tensors\[\].dtype", "layers\[\].tensors\[\].file", "layers\[\].tensors\[\].checksum"  text
    /// "layers\[\].tensors\[\].shape"    array of integers
    /// "layers\[\].tensors\[\].bytes"    integer
    /// "parameters\[\]"                as "layers\[\]": sets of DDP
    /// "tensors\[\].name"              text: of the host's
    /// "tensors\[\].rank"              integer: that set it
    /// "tensors\[\].dtype", "tensors\[\].file", "tensors\[\].checksum"           text
    /// "tensors\[\].shape"             array of integers
    /// "tensors\[\].bytes"             integer
    /// out_text: UTF-8, freed by shardrec_text_free. Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_STATE (none is open), INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_contents_json(checkpoint: *mut shardrec_checkpoint, out_text: *mut *mut c_char) -> shardrec_status;
    /// The checkpoints below a directory, as JSON, in the order in which they were committed.
    /// "version"                     integer: 1
    /// "latest"                      integer or null: the step that LATEST names
    /// "checkpoints\[\].step"          integer
    /// "checkpoints\[\].directory"     text: its name below the directory; "" for one that is the directory
    /// "checkpoints\[\].bytes"         integer: of its files
    /// "checkpoints\[\].commit"        integer: number of the commit in its run
    /// "checkpoints\[\].base"          optional integer: of a delta, the commit that it is a change of
    /// "checkpoints\[\].states"        boolean: false of a delta that leaves optimizers' states out (DELTA_STATES)
    /// Reads manifests only; what is no checkpoint is left out. out_text: UTF-8, freed by shardrec_text_free.
    /// Any thread. Errors: INVALID_ARGUMENT, NOT_FOUND (no such directory), IO_ERROR, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_checkpoint_list_json(directory: *const c_char, out_text: *mut *mut c_char) -> shardrec_status;
    /// Opens a checkpoint for serving. Every byte that is served is read and compared with its checksum:
    /// a damaged checkpoint is refused.
    /// directory: UTF-8, as shardrec_checkpoint_create was given it, or one that is a checkpoint itself.
    /// step: that of the checkpoint, -1 for the newest. options: kind SCORER or NULL. control: NULL allowed;
    /// counts bytes, cancels. out: owned by the caller.
    /// With MAPPED tables the files must stay as they are while they are served: removing them is fine
    /// (KEEP_LAST), truncating one in place ends the process with SIGBUS. No call of this library does that.
    /// Blocking, any thread. Errors: INVALID_HANDLE (options, control), INVALID_ARGUMENT (an option; layers
    /// that options name and that do not fit, the sentence says which columns), NOT_FOUND (the checkpoint,
    /// the collection, layers that options name; a checkpoint of an earlier release, which holds no model),
    /// CORRUPT_DATA, UNSUPPORTED (of a later release; with INT8 a row of too wide a range, whose table and
    /// position the error has), IO_ERROR, CANCELLED, OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_scorer_open(directory: *const c_char, step: i64, options: *const shardrec_options, control: *mut shardrec_control, out: *mut *mut shardrec_scorer) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy; never blocks. Calls in progress end as if it had not
    /// been; the last one frees the tables. Since 0.1.
    pub fn shardrec_scorer_destroy(scorer: *mut *mut shardrec_scorer);
    /// Serves another checkpoint of the directory from now on: step as shardrec_scorer_open. Where that is
    /// the one that is open, it stays. Both are in memory until calls that began with the one before
    /// have returned, which this call waits for. Where it is a delta behind the one that is open, however many there are in
    /// between, only the rows that have changed since are read, and the dense half: calls read them beside the tables until
    /// none of them reads the checkpoint before, then they are written into the tables; memory and time are in
    /// proportion to them, with half a byte per row of the tables that have changed, and the manifests of these deltas. INT8
    /// rows are quantised anew where they have changed. The whole checkpoint and its deltas are read where tables that are MAPPED
    /// have changed, and where INT8 rows have changed in some columns only. Its tables must have the same names, dims, and
    /// features as those that are served, and layers the same columns at both ends; rows and dtypes may differ.
    /// After an error the one before is served on. control: as shardrec_scorer_open. out_step: the step that
    /// is served now; may be NULL. Blocking. Errors: INVALID_HANDLE, CLOSED, BUSY (another refresh), and
    /// those of shardrec_scorer_open; INVALID_ARGUMENT (another model). Since 0.1.
    pub fn shardrec_scorer_refresh(scorer: *mut shardrec_scorer, step: i64, control: *mut shardrec_control, out_step: *mut i64) -> shardrec_status;
    /// The model of the collection that is served: its features, in the order of batches, and tables.
    /// out: a copy, owned by the caller. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn shardrec_scorer_model(scorer: *const shardrec_scorer, out: *mut *mut shardrec_model) -> shardrec_status;
    /// What is served now. out: its struct_size is set; the members that fit in it are written.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_scorer_info(scorer: *const shardrec_scorer, out: *mut shardrec_served) -> shardrec_status;
    /// Looks up a batch and writes one of its outputs.
    /// output: 0, the pooled features, or 1 + k, the k-th sequence feature (lookup.h). batch: on the CPU,
    /// values are not NULL. out: \[batch_size, width\] or, of a
    /// sequence, \[ids of the feature, dim\]; FLOAT32, FLOAT16 or BFLOAT16 (rounded once, to nearest even),
    /// unit column stride, any row stride \>= columns. out_step: the step of the checkpoint that has answered;
    /// may be NULL. Ids out of range: as their table's OUT_OF_RANGE says.
    /// Errors: INVALID_HANDLE, CLOSED; NOT_FOUND (output), INVALID_ARGUMENT (out; batch NULL or of a size that
    /// is none), UNSUPPORTED (members of batch that this release does not know are not zero); INVALID_BATCH,
    /// with table, feature and position: nothing has been written; OUT_OF_MEMORY. Since 0.1.
    pub fn shardrec_scorer_lookup(scorer: *const shardrec_scorer, output: i32, batch: *const shardrec_batch, out: *const shardrec_tensor, out_step: *mut i64) -> shardrec_status;
    /// Scores a batch: probabilities, or logits with the option LOGITS.
    /// batch: as shardrec_scorer_lookup. dense: \[batch_size, dense columns\] (shardrec_scorer_info), FLOAT32,
    /// unit column stride. out: \[batch_size, scores\], FLOAT32, unit column stride, any row stride; of
    /// one score also \[batch_size\]. out_step: as shardrec_scorer_lookup.
    /// Errors: as shardrec_scorer_lookup; INVALID_ARGUMENT (option NON_FINITE ERROR, and dense is NaN or
    /// infinite in row POSITION, column VALUE); UNSUPPORTED (no dense half that fits, or the GEMM plug-in is
    /// missing: the sentence says why). Since 0.1.
    pub fn shardrec_scorer_predict(scorer: *const shardrec_scorer, batch: *const shardrec_batch, dense: *const shardrec_tensor, out: *const shardrec_tensor, out_step: *mut i64) -> shardrec_status;
    /// Makes an empty metric; its clock starts. comm: NULL for this rank alone. options: kind METRICS or NULL. out:
    /// owned by the caller. Not collective. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY; on a
    /// device UNSUPPORTED (no CUDA plug-in), DEVICE_ERROR. Since 0.1.
    pub fn shardrec_metrics_create(comm: *mut shardrec_comm, options: *const shardrec_options, out: *mut *mut shardrec_metrics) -> shardrec_status;
    /// Destroys the handle and nulls the caller's copy. Since 0.1.
    pub fn shardrec_metrics_destroy(metrics: *mut *mut shardrec_metrics);
    /// Adds samples. probabilities (0 .. 1) and labels (0 or 1): FLOAT32, compact, \[batch\] or \[batch, 1\].
    /// Keeps 4 bytes a sample (12 during compute). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT
    /// (with the position; nothing was added. Metrics on a device look at values there, and compute tells),
    /// OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn shardrec_metrics_update(metrics: *mut shardrec_metrics, probabilities: *const shardrec_tensor, labels: *const shardrec_tensor) -> shardrec_status;
    /// Computes the metrics over all ranks' samples; every rank gets the same bits. Collective, blocking
    /// (step deadline) unless made without a communicator. Of metrics on a device, waits for it; where the device
    /// noticed a wrong value, this is INVALID_ARGUMENT on all ranks until the rank that has it calls reset, with
    /// that rank, and the sample's position since create or reset. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn shardrec_metrics_compute(metrics: *mut shardrec_metrics) -> shardrec_status;
    /// A metric of the last compute. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no compute),
    /// NOT_FOUND, INVALID_ARGUMENT. Since 0.1.
    pub fn shardrec_metrics_get(metrics: *const shardrec_metrics, metric: shardrec_metric, out: *mut f64) -> shardrec_status;
    /// Forgets all samples and starts the clock anew. Errors: INVALID_HANDLE, CLOSED, BUSY; on a device
    /// DEVICE_ERROR. Since 0.1.
    pub fn shardrec_metrics_reset(metrics: *mut shardrec_metrics) -> shardrec_status;
    /// Counters of all open communicators and collections of this process in Prometheus' text exposition
    /// format (text/plain; version=0.0.4): families shardrec_\*, counters with the suffix _total, times in
    /// seconds, sizes in bytes. The names of families and phases, their labels and units: capi/NAMES.md. The
    /// time of phases is the host's, and of collections on a device that of its stream, from phase to phase
    /// without what the caller's stream holds up, counted from the first
    /// shardrec_collection_stat on that reads one; the last phases count when they are over there. Families are
    /// added by later releases and keep their names. out_text: freed by the caller. Errors: INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Not blocking; any thread, also while steps run. Since 0.1.
    pub fn shardrec_counters_text(out_text: *mut *mut c_char) -> shardrec_status;
    /// Starts the trace of this process: the phases of the steps of all its ranks, from now on. A trace that
    /// was taken before is forgotten.
    /// events: how many are kept, in \[1, 2^24\], of 40 bytes each, allocated at once; when there are more,
    /// the oldest are dropped. A training step has about 14 on each rank, and 30 more where that is on a device.
    /// Off (the default), an event costs a few instructions; on, about 0.1 us, and on a device what a CUDA event costs.
    /// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
    pub fn shardrec_trace_start(events: i64) -> shardrec_status;
    /// Ends the trace; what was recorded stays until the next start. Never fails. Any thread. Since 0.1.
    pub fn shardrec_trace_stop();
    /// The trace so far as JSON in Chrome's trace event format, which ui.perfetto.dev opens: a process per
    /// rank, a thread per collection; the calls and inside them the phases, by the names of capi/NAMES.md. Of
    /// collections on a device these are when the host called for them. When the device did what was called for is in
    /// rows of their own, "cat": "device": of each collection by the same phases, of each stack of layers in a DDP
    /// set, of the set's sums. Their times are those of CUDA events by this process' clock, which is compared with the
    /// device's several times a second while a trace is on (some 10 us of the host's time); they are some 10 us
    /// unsure, and two rows of one device less. What the device has not finished when the trace is read is not in it.
    /// In Nsight Systems phases of collections are NVTX ranges, with the kernels beside them. Without a trace, no events.
    /// "displayTimeUnit"                 text: "ms"
    /// "otherData.version"               integer: 1
    /// "otherData.dropped_events"        integer: the oldest ones, for which there was no room
    /// "otherData.start_steady_nanoseconds"        integer: of this process' monotonic clock, where ts is 0
    /// "otherData.start_unix_nanoseconds"          integer: the same moment by the wall clock
    /// "otherData.clocks\[\].reference"    text: names the measurement, the same on all ranks
    /// "otherData.clocks\[\].rank"         integer
    /// "otherData.clocks\[\].offset_nanoseconds"     integer: rank 0's monotonic clock less this process'
    /// "otherData.clocks\[\].uncertainty_nanoseconds"    integer: half of the shortest round trip
    /// "traceEvents\[\].ph"                text: "X", a span of time, or "M", about a process
    /// "traceEvents\[\].pid"               integer: rank
    /// "traceEvents\[\].name"              text: of the call or phase; of an M what it says of the process,
    ///                                   "process_name", "process_sort_index" or "thread_name"
    /// "traceEvents\[\].cat"               optional text: of an X "shardrec", the host's, or "device"
    /// "traceEvents\[\].tid"               optional integer: of an X or a thread_name, collection, or from 2^20 on a
    ///                                   row of a device
    /// "traceEvents\[\].ts", "traceEvents\[\].dur"     optional number: begin and length in us, of an X
    /// "traceEvents\[\].args.name"         optional text: "rank 0", of a process_name; "collection 0, device",
    ///                                   "layers 0, device" or "gradients of layers, device" of a thread_name
    /// "traceEvents\[\].args.sort_index"   optional integer: rank, of a process_sort_index
    /// clocks: of the last 16 communicators between processes, measured when they were made. Clocks of different
    /// machines drift apart, by some ms in an hour. Of ranks in several processes, `shardrec trace merge` makes
    /// one trace. out_text: freed by the caller.
    /// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
    pub fn shardrec_trace_json(out_text: *mut *mut c_char) -> shardrec_status;
    /// Measures what memory does, or reads what was measured.
    /// device: NULL or "cpu": this machine's. Copies, gathers of random rows and updates of rows by row size,
    /// with one thread and with `threads`: which prefetch, distance, page size and kind of stores is fastest,
    /// and how fast. Stores the profile in the cache, unless other work disturbed it ("quiet" is then false);
    /// where it cannot be stored, it is returned all the same, with a warning in the log. Takes about 2.5 s
    /// and, depending on the caches, 0.6 to 2.5 GiB of memory, at most a sixth of the machine's.
    /// "cuda:0", in \[0, 1023\]; "cuda" is "cuda:0": that CUDA device's, whose document stands above.
    /// Machine and device should have no other work.
    /// threads: in \[0, 4096\]; 0: all processors that this process may use. Of a device, and with cached, 0.
    /// cached: 1: this machine's profile as it stands in the cache, without a measurement. Of a device that is
    /// UNSUPPORTED.
    /// control: progress and cancellation, NULL for none.
    /// out_text: freed by the caller; JSON. GB/s are bytes read and written, in 1e9 a second.
    /// "version"                     integer: 4
    /// "machine.cpu"                 text: name of the processor
    /// "machine.processors"          integer
    /// "machine.l1_bytes", "machine.l2_bytes", "machine.l3_bytes"    integer: of the caches that one processor
    ///                               reaches, 0 where unknown
    /// "machine.instruction_set"     text
    /// "table_bytes"                 integer: that the rows were spread over
    /// "seconds"                     number: that it took
    /// "quiet"                       boolean: false: other work disturbed the measurement
    /// "copies\[\].threads"            integer
    /// "copies\[\].gb_per_second"      number
    /// "rows\[\].access"               text: "gather" or "update"
    /// "rows\[\].row_bytes", "rows\[\].bag_length", "rows\[\].threads"     integer; the bag length of an update is 0
    /// "rows\[\].hint"                 text: prefetch of the fastest way, "none", "t0", "t1" or "nta"
    /// "rows\[\].distance_rows"        integer: prefetched ahead
    /// "rows\[\].kernel_hint"          text: "t0" or "t1": how this library's kernels prefetch, measured with them
    ///                               and one thread
    /// "rows\[\].kernel_distance_rows" integer
    /// "rows\[\].pages"                text: "huge" or "small"
    /// "rows\[\].stores"               text: "plain" or "streaming"
    /// "rows\[\].gb_per_second"        number: of the fastest way
    /// "rows\[\].by_hint.none", "rows\[\].by_hint.t0"     optional number: GB/s of each hint at its best distance
    /// "rows\[\].by_hint.t1", "rows\[\].by_hint.nta"      optional number: with huge pages and plain stores
    /// "rows\[\].streaming"            optional number: GB/s with streaming stores
    /// "rows\[\].small_pages"          optional number: GB/s of the fastest way in small pages
    /// A gather counts 8 bytes per id, the rows and the sums; an update counts 8 bytes
    /// per id, and the row and 4 bytes of state twice.
    /// Errors: INVALID_ARGUMENT (also: there is no such device), NOT_FOUND (cached: none, or one that is not
    /// used), UNSUPPORTED (see cached; the CUDA plug-in is not installed), DEVICE_ERROR, BUSY (another probe of
    /// the kind runs in this process), CANCELLED, INVALID_HANDLE, CLOSED, OUT_OF_MEMORY (also of the device).
    /// Blocking; any thread. Since 0.2.
    pub fn shardrec_probe_json(device: *const c_char, threads: i32, cached: i32, control: *mut shardrec_control, out_text: *mut *mut c_char) -> shardrec_status;
}
