// Made by bindings/rust/tools/swigxml2rust.py from bindings/shardrec.i; do not edit.

use core::ffi::{c_char, c_void};

pub const SHARDREC_API_VERSION: i32 = 1;
pub const SHARDREC_MAX_DIMENSIONS: i32 = 8;

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_status(pub u32);
pub const SHARDREC_OK: shardrec_status = shardrec_status(0);
pub const SHARDREC_INVALID_ARGUMENT: shardrec_status = shardrec_status(1);
pub const SHARDREC_INVALID_HANDLE: shardrec_status = shardrec_status(2);
pub const SHARDREC_CLOSED: shardrec_status = shardrec_status(3);
pub const SHARDREC_BUSY: shardrec_status = shardrec_status(4);
pub const SHARDREC_INVALID_STATE: shardrec_status = shardrec_status(5);
pub const SHARDREC_INVALID_BATCH: shardrec_status = shardrec_status(6);
pub const SHARDREC_NOT_FOUND: shardrec_status = shardrec_status(7);
pub const SHARDREC_UNSUPPORTED: shardrec_status = shardrec_status(8);
pub const SHARDREC_OUT_OF_MEMORY: shardrec_status = shardrec_status(100);
pub const SHARDREC_IO_ERROR: shardrec_status = shardrec_status(101);
pub const SHARDREC_CORRUPT_DATA: shardrec_status = shardrec_status(102);
pub const SHARDREC_PEER_FAILED: shardrec_status = shardrec_status(200);
pub const SHARDREC_TIMEOUT: shardrec_status = shardrec_status(201);
pub const SHARDREC_MISMATCH: shardrec_status = shardrec_status(202);
pub const SHARDREC_ABORTED: shardrec_status = shardrec_status(203);
pub const SHARDREC_CANCELLED: shardrec_status = shardrec_status(300);
pub const SHARDREC_INTERNAL: shardrec_status = shardrec_status(400);
const _: () = assert!(core::mem::size_of::<shardrec_status>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_error_part(pub u32);
pub const SHARDREC_ERROR_RANK: shardrec_error_part = shardrec_error_part(1);
pub const SHARDREC_ERROR_POSITION: shardrec_error_part = shardrec_error_part(2);
pub const SHARDREC_ERROR_VALUE: shardrec_error_part = shardrec_error_part(3);
pub const SHARDREC_ERROR_LIMIT: shardrec_error_part = shardrec_error_part(4);
pub const SHARDREC_ERROR_SEQUENCE: shardrec_error_part = shardrec_error_part(5);
pub const SHARDREC_ERROR_TABLE: shardrec_error_part = shardrec_error_part(101);
pub const SHARDREC_ERROR_FEATURE: shardrec_error_part = shardrec_error_part(102);
pub const SHARDREC_ERROR_OPERATION: shardrec_error_part = shardrec_error_part(103);
pub const SHARDREC_ERROR_PATH: shardrec_error_part = shardrec_error_part(104);
const _: () = assert!(core::mem::size_of::<shardrec_error_part>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_log_level(pub u32);
pub const SHARDREC_LOG_DEBUG: shardrec_log_level = shardrec_log_level(0);
pub const SHARDREC_LOG_INFO: shardrec_log_level = shardrec_log_level(1);
pub const SHARDREC_LOG_WARNING: shardrec_log_level = shardrec_log_level(2);
pub const SHARDREC_LOG_ERROR: shardrec_log_level = shardrec_log_level(3);
pub const SHARDREC_LOG_OFF: shardrec_log_level = shardrec_log_level(4);
const _: () = assert!(core::mem::size_of::<shardrec_log_level>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_device_type(pub u32);
pub const SHARDREC_DEVICE_CPU: shardrec_device_type = shardrec_device_type(1);
pub const SHARDREC_DEVICE_CUDA: shardrec_device_type = shardrec_device_type(2);
const _: () = assert!(core::mem::size_of::<shardrec_device_type>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_dtype(pub u32);
pub const SHARDREC_UINT8: shardrec_dtype = shardrec_dtype(67585);
pub const SHARDREC_INT32: shardrec_dtype = shardrec_dtype(73728);
pub const SHARDREC_INT64: shardrec_dtype = shardrec_dtype(81920);
pub const SHARDREC_FLOAT16: shardrec_dtype = shardrec_dtype(69634);
pub const SHARDREC_BFLOAT16: shardrec_dtype = shardrec_dtype(69636);
pub const SHARDREC_FLOAT32: shardrec_dtype = shardrec_dtype(73730);
pub const SHARDREC_FLOAT64: shardrec_dtype = shardrec_dtype(81922);
const _: () = assert!(core::mem::size_of::<shardrec_dtype>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_options_kind(pub u32);
pub const SHARDREC_OPTIONS_OPTIMIZER: shardrec_options_kind = shardrec_options_kind(1);
pub const SHARDREC_OPTIONS_TABLE: shardrec_options_kind = shardrec_options_kind(2);
pub const SHARDREC_OPTIONS_PLAN: shardrec_options_kind = shardrec_options_kind(3);
pub const SHARDREC_OPTIONS_COLLECTION: shardrec_options_kind = shardrec_options_kind(4);
pub const SHARDREC_OPTIONS_LOOKUP: shardrec_options_kind = shardrec_options_kind(5);
pub const SHARDREC_OPTIONS_DDP: shardrec_options_kind = shardrec_options_kind(6);
pub const SHARDREC_OPTIONS_MLP: shardrec_options_kind = shardrec_options_kind(7);
pub const SHARDREC_OPTIONS_MESH: shardrec_options_kind = shardrec_options_kind(8);
pub const SHARDREC_OPTIONS_COMM: shardrec_options_kind = shardrec_options_kind(9);
pub const SHARDREC_OPTIONS_RENDEZVOUS: shardrec_options_kind = shardrec_options_kind(10);
pub const SHARDREC_OPTIONS_CHECKPOINT: shardrec_options_kind = shardrec_options_kind(11);
const _: () = assert!(core::mem::size_of::<shardrec_options_kind>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_optimizer(pub u32);
pub const SHARDREC_OPTIMIZER_SGD: shardrec_optimizer = shardrec_optimizer(1);
pub const SHARDREC_OPTIMIZER_ADAGRAD: shardrec_optimizer = shardrec_optimizer(2);
pub const SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD: shardrec_optimizer = shardrec_optimizer(3);
pub const SHARDREC_OPTIMIZER_ADAM: shardrec_optimizer = shardrec_optimizer(4);
pub const SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM: shardrec_optimizer = shardrec_optimizer(5);
pub const SHARDREC_OPTIMIZER_LAMB: shardrec_optimizer = shardrec_optimizer(6);
pub const SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB: shardrec_optimizer = shardrec_optimizer(7);
pub const SHARDREC_OPTIMIZER_LARS_SGD: shardrec_optimizer = shardrec_optimizer(8);
pub const SHARDREC_OPTIMIZER_MOMENTUM_SGD: shardrec_optimizer = shardrec_optimizer(9);
const _: () = assert!(core::mem::size_of::<shardrec_optimizer>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_weight_decay(pub u32);
pub const SHARDREC_WEIGHT_DECAY_NONE: shardrec_weight_decay = shardrec_weight_decay(0);
pub const SHARDREC_WEIGHT_DECAY_L2: shardrec_weight_decay = shardrec_weight_decay(1);
pub const SHARDREC_WEIGHT_DECAY_DECOUPLE: shardrec_weight_decay = shardrec_weight_decay(2);
const _: () = assert!(core::mem::size_of::<shardrec_weight_decay>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_row_statistics(pub u32);
pub const SHARDREC_ROW_STATISTICS_ROW: shardrec_row_statistics = shardrec_row_statistics(0);
pub const SHARDREC_ROW_STATISTICS_SHARD: shardrec_row_statistics = shardrec_row_statistics(1);
const _: () = assert!(core::mem::size_of::<shardrec_row_statistics>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_init(pub u32);
pub const SHARDREC_INIT_UNIFORM: shardrec_init = shardrec_init(0);
pub const SHARDREC_INIT_ZEROS: shardrec_init = shardrec_init(1);
const _: () = assert!(core::mem::size_of::<shardrec_init>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_out_of_range(pub u32);
pub const SHARDREC_OUT_OF_RANGE_ERROR: shardrec_out_of_range = shardrec_out_of_range(0);
pub const SHARDREC_OUT_OF_RANGE_DROP: shardrec_out_of_range = shardrec_out_of_range(1);
pub const SHARDREC_OUT_OF_RANGE_CLAMP: shardrec_out_of_range = shardrec_out_of_range(2);
const _: () = assert!(core::mem::size_of::<shardrec_out_of_range>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_rounding(pub u32);
pub const SHARDREC_ROUNDING_NEAREST: shardrec_rounding = shardrec_rounding(0);
pub const SHARDREC_ROUNDING_STOCHASTIC: shardrec_rounding = shardrec_rounding(1);
const _: () = assert!(core::mem::size_of::<shardrec_rounding>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_sharding(pub u32);
pub const SHARDREC_SHARDING_AUTO: shardrec_sharding = shardrec_sharding(0);
pub const SHARDREC_SHARDING_TABLE_WISE: shardrec_sharding = shardrec_sharding(1);
pub const SHARDREC_SHARDING_ROW_WISE: shardrec_sharding = shardrec_sharding(2);
pub const SHARDREC_SHARDING_COLUMN_WISE: shardrec_sharding = shardrec_sharding(3);
pub const SHARDREC_SHARDING_TABLE_ROW_WISE: shardrec_sharding = shardrec_sharding(4);
pub const SHARDREC_SHARDING_TABLE_COLUMN_WISE: shardrec_sharding = shardrec_sharding(5);
pub const SHARDREC_SHARDING_GRID: shardrec_sharding = shardrec_sharding(6);
pub const SHARDREC_SHARDING_DATA_PARALLEL: shardrec_sharding = shardrec_sharding(7);
pub const SHARDREC_SHARDING_MIXED: shardrec_sharding = shardrec_sharding(8);
const _: () = assert!(core::mem::size_of::<shardrec_sharding>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_replication(pub u32);
pub const SHARDREC_REPLICATION_AUTO: shardrec_replication = shardrec_replication(0);
pub const SHARDREC_REPLICATION_SAMPLES: shardrec_replication = shardrec_replication(1);
pub const SHARDREC_REPLICATION_ROWS: shardrec_replication = shardrec_replication(2);
pub const SHARDREC_REPLICATION_DENSE: shardrec_replication = shardrec_replication(3);
const _: () = assert!(core::mem::size_of::<shardrec_replication>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_balance(pub u32);
pub const SHARDREC_BALANCE_BYTES: shardrec_balance = shardrec_balance(0);
pub const SHARDREC_BALANCE_TIME: shardrec_balance = shardrec_balance(1);
const _: () = assert!(core::mem::size_of::<shardrec_balance>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_divisor(pub u32);
pub const SHARDREC_DIVISOR_RANKS: shardrec_divisor = shardrec_divisor(0);
pub const SHARDREC_DIVISOR_NONE: shardrec_divisor = shardrec_divisor(1);
pub const SHARDREC_DIVISOR_CUSTOM: shardrec_divisor = shardrec_divisor(2);
pub const SHARDREC_DIVISOR_SAMPLES: shardrec_divisor = shardrec_divisor(3);
const _: () = assert!(core::mem::size_of::<shardrec_divisor>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_compression(pub u32);
pub const SHARDREC_COMPRESSION_NONE: shardrec_compression = shardrec_compression(0);
pub const SHARDREC_COMPRESSION_FLOAT16: shardrec_compression = shardrec_compression(1);
pub const SHARDREC_COMPRESSION_BFLOAT16: shardrec_compression = shardrec_compression(2);
pub const SHARDREC_COMPRESSION_INT8: shardrec_compression = shardrec_compression(3);
const _: () = assert!(core::mem::size_of::<shardrec_compression>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_unused(pub u32);
pub const SHARDREC_UNUSED_ERROR: shardrec_unused = shardrec_unused(0);
pub const SHARDREC_UNUSED_MARK: shardrec_unused = shardrec_unused(1);
pub const SHARDREC_UNUSED_ZERO: shardrec_unused = shardrec_unused(2);
const _: () = assert!(core::mem::size_of::<shardrec_unused>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_ddp_order(pub u32);
pub const SHARDREC_DDP_ORDER_REVERSE: shardrec_ddp_order = shardrec_ddp_order(0);
pub const SHARDREC_DDP_ORDER_RECORDED: shardrec_ddp_order = shardrec_ddp_order(1);
const _: () = assert!(core::mem::size_of::<shardrec_ddp_order>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_join_divisor(pub u32);
pub const SHARDREC_JOIN_DIVISOR_WORLD: shardrec_join_divisor = shardrec_join_divisor(0);
pub const SHARDREC_JOIN_DIVISOR_LIVE: shardrec_join_divisor = shardrec_join_divisor(1);
const _: () = assert!(core::mem::size_of::<shardrec_join_divisor>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_placement(pub u32);
pub const SHARDREC_PLACEMENT_INTRA_NODE_SYNC: shardrec_placement = shardrec_placement(0);
pub const SHARDREC_PLACEMENT_INTRA_NODE_SHARD: shardrec_placement = shardrec_placement(1);
const _: () = assert!(core::mem::size_of::<shardrec_placement>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_option(pub u32);
pub const SHARDREC_OPTION_OPTIMIZER: shardrec_option = shardrec_option(100);
pub const SHARDREC_OPTION_LEARNING_RATE: shardrec_option = shardrec_option(101);
pub const SHARDREC_OPTION_EPS: shardrec_option = shardrec_option(102);
pub const SHARDREC_OPTION_WEIGHT_DECAY: shardrec_option = shardrec_option(103);
pub const SHARDREC_OPTION_WEIGHT_DECAY_MODE: shardrec_option = shardrec_option(104);
pub const SHARDREC_OPTION_MAX_GRADIENT: shardrec_option = shardrec_option(105);
pub const SHARDREC_OPTION_BETA1: shardrec_option = shardrec_option(106);
pub const SHARDREC_OPTION_BETA2: shardrec_option = shardrec_option(107);
pub const SHARDREC_OPTION_ROW_STATISTICS: shardrec_option = shardrec_option(108);
pub const SHARDREC_OPTION_MOMENTUM: shardrec_option = shardrec_option(109);
pub const SHARDREC_OPTION_ETA: shardrec_option = shardrec_option(110);
pub const SHARDREC_OPTION_MAX_NORM: shardrec_option = shardrec_option(111);
pub const SHARDREC_OPTION_DTYPE: shardrec_option = shardrec_option(200);
pub const SHARDREC_OPTION_INIT: shardrec_option = shardrec_option(201);
pub const SHARDREC_OPTION_INIT_MIN: shardrec_option = shardrec_option(202);
pub const SHARDREC_OPTION_INIT_MAX: shardrec_option = shardrec_option(203);
pub const SHARDREC_OPTION_ROUNDING: shardrec_option = shardrec_option(204);
pub const SHARDREC_OPTION_OUT_OF_RANGE: shardrec_option = shardrec_option(205);
pub const SHARDREC_OPTION_ALLOWED_SHARDING: shardrec_option = shardrec_option(206);
pub const SHARDREC_OPTION_ALLOWED_RANKS: shardrec_option = shardrec_option(207);
pub const SHARDREC_OPTION_MIN_COLUMNS: shardrec_option = shardrec_option(208);
pub const SHARDREC_OPTION_SHARDING: shardrec_option = shardrec_option(300);
pub const SHARDREC_OPTION_REPLICATION: shardrec_option = shardrec_option(301);
pub const SHARDREC_OPTION_BATCH_SIZE: shardrec_option = shardrec_option(302);
pub const SHARDREC_OPTION_BAG_LENGTH: shardrec_option = shardrec_option(303);
pub const SHARDREC_OPTION_BALANCE: shardrec_option = shardrec_option(304);
pub const SHARDREC_OPTION_SEED: shardrec_option = shardrec_option(400);
pub const SHARDREC_OPTION_THREADS: shardrec_option = shardrec_option(401);
pub const SHARDREC_OPTION_GRADIENT_DIVISOR: shardrec_option = shardrec_option(402);
pub const SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE: shardrec_option = shardrec_option(403);
pub const SHARDREC_OPTION_LOOKUPS: shardrec_option = shardrec_option(404);
pub const SHARDREC_OPTION_OUTPUT_DTYPE: shardrec_option = shardrec_option(405);
pub const SHARDREC_OPTION_DEDUPLICATE: shardrec_option = shardrec_option(406);
pub const SHARDREC_OPTION_FORWARD_COMPRESSION: shardrec_option = shardrec_option(407);
pub const SHARDREC_OPTION_BACKWARD_COMPRESSION: shardrec_option = shardrec_option(408);
pub const SHARDREC_OPTION_HIERARCHICAL: shardrec_option = shardrec_option(409);
pub const SHARDREC_OPTION_BORROW: shardrec_option = shardrec_option(500);
pub const SHARDREC_OPTION_WEIGHT_GRADIENT: shardrec_option = shardrec_option(501);
pub const SHARDREC_OPTION_DDP_AVERAGE: shardrec_option = shardrec_option(600);
pub const SHARDREC_OPTION_DDP_BROADCAST: shardrec_option = shardrec_option(601);
pub const SHARDREC_OPTION_DDP_FACTOR: shardrec_option = shardrec_option(602);
pub const SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES: shardrec_option = shardrec_option(603);
pub const SHARDREC_OPTION_DDP_BUCKET_BYTES: shardrec_option = shardrec_option(604);
pub const SHARDREC_OPTION_DDP_ORDER: shardrec_option = shardrec_option(605);
pub const SHARDREC_OPTION_DDP_UNUSED: shardrec_option = shardrec_option(606);
pub const SHARDREC_OPTION_DDP_COMPRESSION: shardrec_option = shardrec_option(607);
pub const SHARDREC_OPTION_DDP_JOIN_DIVISOR: shardrec_option = shardrec_option(608);
pub const SHARDREC_OPTION_DDP_STEP_IN_BACKWARD: shardrec_option = shardrec_option(609);
pub const SHARDREC_OPTION_DDP_THREAD: shardrec_option = shardrec_option(610);
pub const SHARDREC_OPTION_ACCUMULATE_GRADIENTS: shardrec_option = shardrec_option(700);
pub const SHARDREC_OPTION_PLACEMENT: shardrec_option = shardrec_option(800);
pub const SHARDREC_OPTION_ENGINE: shardrec_option = shardrec_option(900);
pub const SHARDREC_OPTION_COMM_SETUP_SECONDS: shardrec_option = shardrec_option(901);
pub const SHARDREC_OPTION_INTERFACE: shardrec_option = shardrec_option(902);
pub const SHARDREC_OPTION_RANK_ZERO_SECONDS: shardrec_option = shardrec_option(903);
pub const SHARDREC_OPTION_ADDRESS: shardrec_option = shardrec_option(1000);
pub const SHARDREC_OPTION_PORT: shardrec_option = shardrec_option(1001);
pub const SHARDREC_OPTION_ADVERTISED_ADDRESS: shardrec_option = shardrec_option(1002);
pub const SHARDREC_OPTION_JOB: shardrec_option = shardrec_option(1003);
pub const SHARDREC_OPTION_SECRET: shardrec_option = shardrec_option(1004);
pub const SHARDREC_OPTION_ALLOW_PLAIN_TCP: shardrec_option = shardrec_option(1005);
pub const SHARDREC_OPTION_SILENCE_SECONDS: shardrec_option = shardrec_option(1006);
pub const SHARDREC_OPTION_KEEP_LAST: shardrec_option = shardrec_option(1100);
const _: () = assert!(core::mem::size_of::<shardrec_option>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_engine(pub u32);
pub const SHARDREC_ENGINE_GLOO: shardrec_engine = shardrec_engine(1);
pub const SHARDREC_ENGINE_MPI: shardrec_engine = shardrec_engine(2);
const _: () = assert!(core::mem::size_of::<shardrec_engine>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_comm_property(pub u32);
pub const SHARDREC_COMM_STEP_SECONDS: shardrec_comm_property = shardrec_comm_property(1);
pub const SHARDREC_COMM_SETUP_SECONDS: shardrec_comm_property = shardrec_comm_property(2);
pub const SHARDREC_COMM_WARN_SECONDS: shardrec_comm_property = shardrec_comm_property(3);
const _: () = assert!(core::mem::size_of::<shardrec_comm_property>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_reduction(pub u32);
pub const SHARDREC_REDUCTION_SUM: shardrec_reduction = shardrec_reduction(0);
pub const SHARDREC_REDUCTION_MIN: shardrec_reduction = shardrec_reduction(1);
pub const SHARDREC_REDUCTION_MAX: shardrec_reduction = shardrec_reduction(2);
pub const SHARDREC_REDUCTION_MEAN: shardrec_reduction = shardrec_reduction(3);
const _: () = assert!(core::mem::size_of::<shardrec_reduction>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_pooling(pub u32);
pub const SHARDREC_POOLING_SUM: shardrec_pooling = shardrec_pooling(0);
pub const SHARDREC_POOLING_MEAN: shardrec_pooling = shardrec_pooling(1);
pub const SHARDREC_POOLING_NONE: shardrec_pooling = shardrec_pooling(2);
const _: () = assert!(core::mem::size_of::<shardrec_pooling>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_table_part(pub u32);
pub const SHARDREC_TABLE_WEIGHTS: shardrec_table_part = shardrec_table_part(0);
pub const SHARDREC_TABLE_STATE: shardrec_table_part = shardrec_table_part(1);
pub const SHARDREC_TABLE_STATE_2: shardrec_table_part = shardrec_table_part(2);
const _: () = assert!(core::mem::size_of::<shardrec_table_part>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_collection_stat(pub u32);
pub const SHARDREC_STAT_STEPS: shardrec_collection_stat = shardrec_collection_stat(1);
pub const SHARDREC_STAT_BYTES_TABLES: shardrec_collection_stat = shardrec_collection_stat(2);
pub const SHARDREC_STAT_BYTES_BUFFERS: shardrec_collection_stat = shardrec_collection_stat(3);
pub const SHARDREC_STAT_BYTES_INPUT: shardrec_collection_stat = shardrec_collection_stat(4);
pub const SHARDREC_STAT_BYTES_OUTPUT: shardrec_collection_stat = shardrec_collection_stat(5);
pub const SHARDREC_STAT_BYTES_GRADIENT: shardrec_collection_stat = shardrec_collection_stat(6);
pub const SHARDREC_STAT_IDS_SENT: shardrec_collection_stat = shardrec_collection_stat(7);
pub const SHARDREC_STAT_IDS_RECEIVED: shardrec_collection_stat = shardrec_collection_stat(8);
pub const SHARDREC_STAT_THREADS_SEEN: shardrec_collection_stat = shardrec_collection_stat(9);
pub const SHARDREC_STAT_SECONDS_ROUTE: shardrec_collection_stat = shardrec_collection_stat(101);
pub const SHARDREC_STAT_SECONDS_INPUT_EXCHANGE: shardrec_collection_stat = shardrec_collection_stat(102);
pub const SHARDREC_STAT_SECONDS_INDEX_PLAN: shardrec_collection_stat = shardrec_collection_stat(103);
pub const SHARDREC_STAT_SECONDS_LOOKUP: shardrec_collection_stat = shardrec_collection_stat(104);
pub const SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE: shardrec_collection_stat = shardrec_collection_stat(105);
pub const SHARDREC_STAT_SECONDS_GRADIENT: shardrec_collection_stat = shardrec_collection_stat(106);
pub const SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE: shardrec_collection_stat = shardrec_collection_stat(107);
pub const SHARDREC_STAT_SECONDS_UPDATE: shardrec_collection_stat = shardrec_collection_stat(108);
pub const SHARDREC_STAT_IMBALANCE: shardrec_collection_stat = shardrec_collection_stat(109);
const _: () = assert!(core::mem::size_of::<shardrec_collection_stat>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_table_stat(pub u32);
pub const SHARDREC_TABLE_STAT_OUT_OF_RANGE: shardrec_table_stat = shardrec_table_stat(1);
pub const SHARDREC_TABLE_STAT_IDS: shardrec_table_stat = shardrec_table_stat(2);
pub const SHARDREC_TABLE_STAT_ROWS_UPDATED: shardrec_table_stat = shardrec_table_stat(3);
const _: () = assert!(core::mem::size_of::<shardrec_table_stat>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_activation(pub u32);
pub const SHARDREC_ACTIVATION_NONE: shardrec_activation = shardrec_activation(0);
pub const SHARDREC_ACTIVATION_RELU: shardrec_activation = shardrec_activation(1);
const _: () = assert!(core::mem::size_of::<shardrec_activation>() == 4);

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct shardrec_metric(pub u32);
pub const SHARDREC_METRIC_AUC: shardrec_metric = shardrec_metric(1);
pub const SHARDREC_METRIC_NE: shardrec_metric = shardrec_metric(2);
pub const SHARDREC_METRIC_LOSS: shardrec_metric = shardrec_metric(3);
pub const SHARDREC_METRIC_CTR: shardrec_metric = shardrec_metric(4);
pub const SHARDREC_METRIC_SAMPLES: shardrec_metric = shardrec_metric(5);
pub const SHARDREC_METRIC_SAMPLES_PER_SECOND: shardrec_metric = shardrec_metric(6);
const _: () = assert!(core::mem::size_of::<shardrec_metric>() == 4);

#[repr(C)]
pub struct shardrec_control {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_options {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_local {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_comm {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_rendezvous {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_model {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_topology {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_plan {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_collection {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_lookup {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_mesh {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_ddp {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_mlp {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_interaction {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_checkpoint {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct shardrec_metrics {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shardrec_tensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub dtype: i32,
    pub ndim: i32,
    pub shape: [i64; 8],
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

extern "C" {
    pub fn shardrec_status_name(status: shardrec_status) -> *const c_char;
    pub fn shardrec_last_error() -> *const c_char;
    pub fn shardrec_last_error_status() -> shardrec_status;
    pub fn shardrec_last_error_i64(part: shardrec_error_part, out: *mut i64) -> shardrec_status;
    pub fn shardrec_last_error_text(part: shardrec_error_part, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_text_free(text: *mut c_char);
    pub fn shardrec_api_version() -> i32;
    pub fn shardrec_capabilities(out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_live_objects(out: *mut i64) -> shardrec_status;
    pub fn shardrec_hash64(seed: u64, bytes: *const c_void, size: i64) -> u64;
    pub fn shardrec_log_set_level(level: shardrec_log_level) -> shardrec_status;
    pub fn shardrec_log_next(timeout_ms: i32, out_level: *mut shardrec_log_level, out_rank: *mut i32, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_control_create(out: *mut *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_control_destroy(control: *mut *mut shardrec_control);
    pub fn shardrec_control_cancel(control: *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_control_progress(control: *const shardrec_control, out_done: *mut i64, out_total: *mut i64) -> shardrec_status;
    pub fn shardrec_tensor_vector(data: *mut c_void, dtype: shardrec_dtype, length: i64, out: *mut shardrec_tensor) -> shardrec_status;
    pub fn shardrec_tensor_matrix(data: *mut c_void, dtype: shardrec_dtype, rows: i64, cols: i64, out: *mut shardrec_tensor) -> shardrec_status;
    pub fn shardrec_options_create(kind: shardrec_options_kind, out: *mut *mut shardrec_options) -> shardrec_status;
    pub fn shardrec_options_destroy(options: *mut *mut shardrec_options);
    pub fn shardrec_options_set_i64(options: *mut shardrec_options, key: shardrec_option, value: i64) -> shardrec_status;
    pub fn shardrec_options_set_f64(options: *mut shardrec_options, key: shardrec_option, value: f64) -> shardrec_status;
    pub fn shardrec_options_set_text(options: *mut shardrec_options, key: shardrec_option, value: *const c_char) -> shardrec_status;
    pub fn shardrec_options_get_i64(options: *const shardrec_options, key: shardrec_option, out: *mut i64) -> shardrec_status;
    pub fn shardrec_options_get_f64(options: *const shardrec_options, key: shardrec_option, out: *mut f64) -> shardrec_status;
    pub fn shardrec_options_get_text(options: *const shardrec_options, key: shardrec_option, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_local_create(ranks: i32, ranks_per_node: i32, out: *mut *mut shardrec_local) -> shardrec_status;
    pub fn shardrec_local_destroy(group: *mut *mut shardrec_local);
    pub fn shardrec_comm_create_local(group: *mut shardrec_local, rank: i32, out: *mut *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_create(engine: shardrec_engine, rank: i32, size: i32, token: *const c_char, options: *const shardrec_options, out: *mut *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_create_from_env(options: *const shardrec_options, out: *mut *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_destroy(comm: *mut *mut shardrec_comm);
    pub fn shardrec_comm_rank(comm: *const shardrec_comm, out: *mut i32) -> shardrec_status;
    pub fn shardrec_comm_size(comm: *const shardrec_comm, out: *mut i32) -> shardrec_status;
    pub fn shardrec_comm_set_f64(comm: *mut shardrec_comm, key: shardrec_comm_property, value: f64) -> shardrec_status;
    pub fn shardrec_comm_get_f64(comm: *const shardrec_comm, key: shardrec_comm_property, out: *mut f64) -> shardrec_status;
    pub fn shardrec_comm_status(comm: *const shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_operations_json(comm: *const shardrec_comm, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_comm_barrier(comm: *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_all_reduce(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, reduction: shardrec_reduction) -> shardrec_status;
    pub fn shardrec_comm_broadcast(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, root: i32) -> shardrec_status;
    pub fn shardrec_comm_all_gather(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, out: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_comm_reduce_scatter(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, out: *const shardrec_tensor, reduction: shardrec_reduction) -> shardrec_status;
    pub fn shardrec_comm_all_to_all(comm: *mut shardrec_comm, tensor: *const shardrec_tensor, send_counts: *const shardrec_tensor, out: *const shardrec_tensor, receive_counts: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_comm_split(comm: *mut shardrec_comm, color: i32, key: i32, out: *mut *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_close(comm: *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_comm_abort(comm: *mut shardrec_comm, reason: *const c_char) -> shardrec_status;
    pub fn shardrec_rendezvous_create(options: *const shardrec_options, out: *mut *mut shardrec_rendezvous) -> shardrec_status;
    pub fn shardrec_rendezvous_token(rendezvous: *const shardrec_rendezvous, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_rendezvous_destroy(rendezvous: *mut *mut shardrec_rendezvous);
    pub fn shardrec_model_create(options: *const shardrec_options, out: *mut *mut shardrec_model) -> shardrec_status;
    pub fn shardrec_model_destroy(model: *mut *mut shardrec_model);
    pub fn shardrec_model_add_table(model: *mut shardrec_model, name: *const c_char, rows: i64, dim: i64, options: *const shardrec_options, out_table: *mut i32) -> shardrec_status;
    pub fn shardrec_model_add_feature(model: *mut shardrec_model, table: i32, name: *const c_char, pooling: shardrec_pooling) -> shardrec_status;
    pub fn shardrec_model_set_optimizer(model: *mut shardrec_model, options: *const shardrec_options) -> shardrec_status;
    pub fn shardrec_model_set_table_optimizer(model: *mut shardrec_model, table: i32, options: *const shardrec_options) -> shardrec_status;
    pub fn shardrec_model_table_count(model: *const shardrec_model, out: *mut i32) -> shardrec_status;
    pub fn shardrec_model_feature_count(model: *const shardrec_model, out: *mut i32) -> shardrec_status;
    pub fn shardrec_model_feature_columns(model: *const shardrec_model, feature: i32, out_column: *mut i64, out_columns: *mut i64, out_width: *mut i64) -> shardrec_status;
    pub fn shardrec_model_to_json(model: *const shardrec_model, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_model_from_json(json: *const c_char, out: *mut *mut shardrec_model) -> shardrec_status;
    pub fn shardrec_topology_create(ranks: i32, ranks_per_node: i32, out: *mut *mut shardrec_topology) -> shardrec_status;
    pub fn shardrec_topology_destroy(topology: *mut *mut shardrec_topology);
    pub fn shardrec_topology_to_json(topology: *const shardrec_topology, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_topology_from_json(json: *const c_char, out: *mut *mut shardrec_topology) -> shardrec_status;
    pub fn shardrec_plan_create(model: *const shardrec_model, topology: *const shardrec_topology, options: *const shardrec_options, out: *mut *mut shardrec_plan) -> shardrec_status;
    pub fn shardrec_plan_collective(comm: *mut shardrec_comm, model: *const shardrec_model, options: *const shardrec_options, out: *mut *mut shardrec_plan) -> shardrec_status;
    pub fn shardrec_plan_create_empty(model: *const shardrec_model, topology: *const shardrec_topology, out: *mut *mut shardrec_plan) -> shardrec_status;
    pub fn shardrec_plan_add_box(plan: *mut shardrec_plan, table: i32, rank: i32, row: i64, rows: i64, col: i64, cols: i64) -> shardrec_status;
    pub fn shardrec_plan_add_replicated(plan: *mut shardrec_plan, table: i32) -> shardrec_status;
    pub fn shardrec_plan_set_replication(plan: *mut shardrec_plan, table: i32, replication: shardrec_replication) -> shardrec_status;
    pub fn shardrec_plan_destroy(plan: *mut *mut shardrec_plan);
    pub fn shardrec_plan_check(plan: *const shardrec_plan) -> shardrec_status;
    pub fn shardrec_plan_box_count(plan: *const shardrec_plan, table: i32, out: *mut i32) -> shardrec_status;
    pub fn shardrec_plan_box(plan: *const shardrec_plan, table: i32, r#box: i32, out_rank: *mut i32, out_row: *mut i64, out_rows: *mut i64, out_col: *mut i64, out_cols: *mut i64) -> shardrec_status;
    pub fn shardrec_plan_box_bytes(plan: *const shardrec_plan, table: i32, r#box: i32, out_weights: *mut i64, out_states: *mut i64) -> shardrec_status;
    pub fn shardrec_plan_to_json(plan: *const shardrec_plan, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_plan_to_text(plan: *const shardrec_plan, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_plan_from_json(model: *const shardrec_model, json: *const c_char, out: *mut *mut shardrec_plan) -> shardrec_status;
    pub fn shardrec_collection_create(comm: *mut shardrec_comm, model: *const shardrec_model, plan: *const shardrec_plan, options: *const shardrec_options, out: *mut *mut shardrec_collection) -> shardrec_status;
    pub fn shardrec_collection_destroy(collection: *mut *mut shardrec_collection);
    pub fn shardrec_collection_step(collection: *const shardrec_collection, out: *mut i64) -> shardrec_status;
    pub fn shardrec_collection_set_step(collection: *mut shardrec_collection, step: i64) -> shardrec_status;
    pub fn shardrec_collection_set_learning_rate(collection: *mut shardrec_collection, learning_rate: f64) -> shardrec_status;
    pub fn shardrec_collection_set_table_learning_rate(collection: *mut shardrec_collection, table: i32, learning_rate: f64) -> shardrec_status;
    pub fn shardrec_collection_set_frozen(collection: *mut shardrec_collection, table: i32, frozen: i32) -> shardrec_status;
    pub fn shardrec_collection_read(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, row: i64, rows: i64, out: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_collection_write(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, row: i64, rows: i64, values: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_collection_read_rows(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, ids: *const shardrec_tensor, out: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_collection_write_rows(collection: *mut shardrec_collection, table: i32, part: shardrec_table_part, ids: *const shardrec_tensor, values: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_collection_save(collection: *mut shardrec_collection, directory: *const c_char, control: *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_collection_load(collection: *mut shardrec_collection, directory: *const c_char, control: *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_collection_stat_i64(collection: *const shardrec_collection, stat: shardrec_collection_stat, out: *mut i64) -> shardrec_status;
    pub fn shardrec_collection_table_stat_i64(collection: *const shardrec_collection, table: i32, stat: shardrec_table_stat, out: *mut i64) -> shardrec_status;
    pub fn shardrec_collection_stat_f64(collection: *const shardrec_collection, stat: shardrec_collection_stat, out: *mut f64) -> shardrec_status;
    pub fn shardrec_lookup_create(collection: *mut shardrec_collection, options: *const shardrec_options, out: *mut *mut shardrec_lookup) -> shardrec_status;
    pub fn shardrec_lookup_destroy(lookup: *mut *mut shardrec_lookup);
    pub fn shardrec_lookup_begin(lookup: *mut shardrec_lookup, batch_size: i64, values: *const shardrec_tensor, lengths: *const shardrec_tensor, weights: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_lookup_begin_offsets(lookup: *mut shardrec_lookup, batch_size: i64, values: *const shardrec_tensor, offsets: *const shardrec_tensor, weights: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_lookup_begin_variable(lookup: *mut shardrec_lookup, batch_size: i64, batch_sizes: *const shardrec_tensor, inverse: *const shardrec_tensor, values: *const shardrec_tensor, lengths: *const shardrec_tensor, weights: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_lookup_output_shape(lookup: *const shardrec_lookup, output: i32, out_rows: *mut i64, out_columns: *mut i64) -> shardrec_status;
    pub fn shardrec_lookup_forward(lookup: *mut shardrec_lookup, output: i32, out: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_lookup_all_done(lookup: *const shardrec_lookup, out: *mut i32) -> shardrec_status;
    pub fn shardrec_lookup_set_gradient(lookup: *mut shardrec_lookup, output: i32, gradient: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_lookup_send_gradients(lookup: *mut shardrec_lookup, accumulate: i32) -> shardrec_status;
    pub fn shardrec_lookup_backward(lookup: *mut shardrec_lookup) -> shardrec_status;
    pub fn shardrec_lookup_accumulate(lookup: *mut shardrec_lookup) -> shardrec_status;
    pub fn shardrec_lookup_weight_gradient(lookup: *const shardrec_lookup, out: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_lookup_skip(lookup: *mut shardrec_lookup) -> shardrec_status;
    pub fn shardrec_mesh_create(comm: *mut shardrec_comm, sharding_group_size: i32, options: *const shardrec_options, out: *mut *mut shardrec_mesh) -> shardrec_status;
    pub fn shardrec_mesh_destroy(mesh: *mut *mut shardrec_mesh);
    pub fn shardrec_mesh_place(mesh: *const shardrec_mesh, out_sharding_rank: *mut i32, out_sharding_size: *mut i32, out_replica_rank: *mut i32, out_replica_size: *mut i32) -> shardrec_status;
    pub fn shardrec_mesh_sharding_comm(mesh: *mut shardrec_mesh, out: *mut *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_mesh_replica_comm(mesh: *mut shardrec_mesh, out: *mut *mut shardrec_comm) -> shardrec_status;
    pub fn shardrec_plan_collective_on_mesh(mesh: *mut shardrec_mesh, model: *const shardrec_model, options: *const shardrec_options, out: *mut *mut shardrec_plan) -> shardrec_status;
    pub fn shardrec_collection_create_on_mesh(mesh: *mut shardrec_mesh, model: *const shardrec_model, plan: *const shardrec_plan, options: *const shardrec_options, out: *mut *mut shardrec_collection) -> shardrec_status;
    pub fn shardrec_collection_sync(collection: *mut shardrec_collection) -> shardrec_status;
    pub fn shardrec_ddp_create(comm: *mut shardrec_comm, options: *const shardrec_options, out: *mut *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_destroy(ddp: *mut *mut shardrec_ddp);
    pub fn shardrec_ddp_add_parameter(ddp: *mut shardrec_ddp, name: *const c_char, parameter: *const shardrec_tensor, gradient: *const shardrec_tensor, out_index: *mut i64) -> shardrec_status;
    pub fn shardrec_ddp_add_mlp(ddp: *mut shardrec_ddp, name: *const c_char, mlp: *mut shardrec_mlp, out_first: *mut i64) -> shardrec_status;
    pub fn shardrec_ddp_set_flat_gradient(ddp: *mut shardrec_ddp, gradients: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_ddp_set_optimizer(ddp: *mut shardrec_ddp, options: *const shardrec_options) -> shardrec_status;
    pub fn shardrec_ddp_commit(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_gradient(ddp: *const shardrec_ddp, index: i64, out: *mut shardrec_tensor) -> shardrec_status;
    pub fn shardrec_ddp_bucket_of(ddp: *const shardrec_ddp, index: i64, out: *mut i32) -> shardrec_status;
    pub fn shardrec_ddp_begin(ddp: *mut shardrec_ddp, sync: i32) -> shardrec_status;
    pub fn shardrec_ddp_mark_ready(ddp: *mut shardrec_ddp, first: i64, count: i64) -> shardrec_status;
    pub fn shardrec_ddp_mark_unused(ddp: *mut shardrec_ddp, first: i64, count: i64) -> shardrec_status;
    pub fn shardrec_ddp_end(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_wait(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_all_reduce(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_join(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_zero_gradients(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_clip_grad_norm(ddp: *mut shardrec_ddp, max_norm: f64, out_norm: *mut f64) -> shardrec_status;
    pub fn shardrec_ddp_step(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_set_learning_rate(ddp: *mut shardrec_ddp, learning_rate: f64) -> shardrec_status;
    pub fn shardrec_ddp_state(ddp: *const shardrec_ddp, index: i64, state: i32, out: *mut shardrec_tensor) -> shardrec_status;
    pub fn shardrec_ddp_check_equal(ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_ddp_broadcast(ddp: *mut shardrec_ddp, root: i32) -> shardrec_status;
    pub fn shardrec_ddp_statistics(ddp: *mut shardrec_ddp, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_mlp_create(inputs: i64, options: *const shardrec_options, out: *mut *mut shardrec_mlp) -> shardrec_status;
    pub fn shardrec_mlp_destroy(mlp: *mut *mut shardrec_mlp);
    pub fn shardrec_mlp_add_linear(mlp: *mut shardrec_mlp, outputs: i64, activation: shardrec_activation) -> shardrec_status;
    pub fn shardrec_mlp_parameter_count(mlp: *const shardrec_mlp, out: *mut i32) -> shardrec_status;
    pub fn shardrec_mlp_parameter(mlp: *mut shardrec_mlp, index: i32, out_parameter: *mut shardrec_tensor, out_gradient: *mut shardrec_tensor) -> shardrec_status;
    pub fn shardrec_mlp_forward(mlp: *mut shardrec_mlp, input: *const shardrec_tensor, output: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_mlp_backward(mlp: *mut shardrec_mlp, output_gradient: *const shardrec_tensor, input_gradient: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_mlp_zero_gradient(mlp: *mut shardrec_mlp) -> shardrec_status;
    pub fn shardrec_mlp_step(mlp: *mut shardrec_mlp) -> shardrec_status;
    pub fn shardrec_mlp_set_learning_rate(mlp: *mut shardrec_mlp, learning_rate: f64) -> shardrec_status;
    pub fn shardrec_mlp_save(mlp: *const shardrec_mlp, path: *const c_char) -> shardrec_status;
    pub fn shardrec_mlp_load(mlp: *mut shardrec_mlp, path: *const c_char) -> shardrec_status;
    pub fn shardrec_interaction_create(features: i64, dim: i64, options: *const shardrec_options, out: *mut *mut shardrec_interaction) -> shardrec_status;
    pub fn shardrec_interaction_destroy(interaction: *mut *mut shardrec_interaction);
    pub fn shardrec_interaction_outputs(interaction: *const shardrec_interaction, out: *mut i64) -> shardrec_status;
    pub fn shardrec_interaction_forward(interaction: *mut shardrec_interaction, dense: *const shardrec_tensor, embeddings: *const shardrec_tensor, output: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_interaction_backward(interaction: *mut shardrec_interaction, output_gradient: *const shardrec_tensor, dense_gradient: *const shardrec_tensor, embedding_gradient: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_bce_with_logits(logits: *const shardrec_tensor, labels: *const shardrec_tensor, probabilities: *const shardrec_tensor, gradient: *const shardrec_tensor, out_loss: *mut f64) -> shardrec_status;
    pub fn shardrec_checkpoint_create(comm: *mut shardrec_comm, directory: *const c_char, options: *const shardrec_options, out: *mut *mut shardrec_checkpoint) -> shardrec_status;
    pub fn shardrec_checkpoint_destroy(checkpoint: *mut *mut shardrec_checkpoint);
    pub fn shardrec_checkpoint_add_collection(checkpoint: *mut shardrec_checkpoint, name: *const c_char, collection: *mut shardrec_collection) -> shardrec_status;
    pub fn shardrec_checkpoint_add_mlp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, mlp: *mut shardrec_mlp) -> shardrec_status;
    pub fn shardrec_checkpoint_add_ddp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, ddp: *mut shardrec_ddp) -> shardrec_status;
    pub fn shardrec_checkpoint_set_tensor(checkpoint: *mut shardrec_checkpoint, name: *const c_char, tensor: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_checkpoint_commit(checkpoint: *mut shardrec_checkpoint, step: i64, control: *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_checkpoint_open(checkpoint: *mut shardrec_checkpoint, step: i64) -> shardrec_status;
    pub fn shardrec_checkpoint_step(checkpoint: *const shardrec_checkpoint, out: *mut i64) -> shardrec_status;
    pub fn shardrec_checkpoint_load(checkpoint: *mut shardrec_checkpoint, control: *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_checkpoint_model(checkpoint: *mut shardrec_checkpoint, name: *const c_char, out: *mut *mut shardrec_model) -> shardrec_status;
    pub fn shardrec_checkpoint_plan(checkpoint: *mut shardrec_checkpoint, name: *const c_char, out: *mut *mut shardrec_plan) -> shardrec_status;
    pub fn shardrec_checkpoint_mlp(checkpoint: *mut shardrec_checkpoint, name: *const c_char, options: *const shardrec_options, out: *mut *mut shardrec_mlp) -> shardrec_status;
    pub fn shardrec_checkpoint_tensor_info(checkpoint: *mut shardrec_checkpoint, name: *const c_char, rank: i32, out: *mut shardrec_tensor) -> shardrec_status;
    pub fn shardrec_checkpoint_get_tensor(checkpoint: *mut shardrec_checkpoint, name: *const c_char, rank: i32, out: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_checkpoint_verify(checkpoint: *mut shardrec_checkpoint, control: *mut shardrec_control) -> shardrec_status;
    pub fn shardrec_checkpoint_contents_json(checkpoint: *mut shardrec_checkpoint, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_checkpoint_list_json(directory: *const c_char, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_metrics_create(comm: *mut shardrec_comm, out: *mut *mut shardrec_metrics) -> shardrec_status;
    pub fn shardrec_metrics_destroy(metrics: *mut *mut shardrec_metrics);
    pub fn shardrec_metrics_update(metrics: *mut shardrec_metrics, probabilities: *const shardrec_tensor, labels: *const shardrec_tensor) -> shardrec_status;
    pub fn shardrec_metrics_compute(metrics: *mut shardrec_metrics) -> shardrec_status;
    pub fn shardrec_metrics_get(metrics: *const shardrec_metrics, metric: shardrec_metric, out: *mut f64) -> shardrec_status;
    pub fn shardrec_metrics_reset(metrics: *mut shardrec_metrics) -> shardrec_status;
    pub fn shardrec_metrics_text(out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_trace_start(events: i64) -> shardrec_status;
    pub fn shardrec_trace_stop();
    pub fn shardrec_trace_json(out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_probe(threads: i32, control: *mut shardrec_control, out_text: *mut *mut c_char) -> shardrec_status;
    pub fn shardrec_probe_cached(out_text: *mut *mut c_char) -> shardrec_status;
}
