// Made by bindings/tools/option_classes.py from bindings/shardrec.i; do not edit.
//! A type per kind of options.

use crate::enums::{Balance, Compression, DdpOrder, DdpReduction, DeviceWait, Divisor, Dtype, Engine, FsdpStrategy, Init, JoinDivisor, NonFinite, Optimizer, OptionKey, OptionsKind, OutOfRange, Placement, Precision, ReplicaSync, Replication, Rounding, RowStatistics, ServedTables, Sharding, Unused, WeightDecay};
use crate::options::{Settings, Value};

/// Options of the optimizer of tables. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct OptimizerOptions(pub(crate) Settings);

impl Default for OptimizerOptions {
    fn default() -> Self {
        OptimizerOptions(Settings::new(OptionsKind::Optimizer))
    }
}

impl OptimizerOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// OPTIMIZER: shardrec_optimizer; tables: SGD; layers: SGD.
    #[must_use]
    pub fn optimizer(mut self, value: Optimizer) -> Self {
        self.0.set(OptionKey::Optimizer, Value::Integer(value.value()));
        self
    }

    /// LEARNING_RATE: finite, \>= 0; default 0.01.
    #[must_use]
    pub fn learning_rate(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::LearningRate, Value::Real(value.into()));
        self
    }

    /// EPS: finite, \>= 0; default 1e-8.
    #[must_use]
    pub fn eps(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Eps, Value::Real(value.into()));
        self
    }

    /// WEIGHT_DECAY: finite, \>= 0; default 0.
    #[must_use]
    pub fn weight_decay(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::WeightDecay, Value::Real(value.into()));
        self
    }

    /// WEIGHT_DECAY_MODE: shardrec_weight_decay; default NONE.
    #[must_use]
    pub fn weight_decay_mode(mut self, value: WeightDecay) -> Self {
        self.0.set(OptionKey::WeightDecayMode, Value::Integer(value.value()));
        self
    }

    /// MAX_GRADIENT: \> 0 clamps gradients to +-value; 0 (default): off.
    #[must_use]
    pub fn max_gradient(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::MaxGradient, Value::Real(value.into()));
        self
    }

    /// BETA1: in \[0, 1); default 0.9.
    #[must_use]
    pub fn beta1(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Beta1, Value::Real(value.into()));
        self
    }

    /// BETA2: in \[0, 1); default 0.999.
    #[must_use]
    pub fn beta2(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Beta2, Value::Real(value.into()));
        self
    }

    /// ROW_STATISTICS: shardrec_row_statistics; default ROW.
    #[must_use]
    pub fn row_statistics(mut self, value: RowStatistics) -> Self {
        self.0.set(OptionKey::RowStatistics, Value::Integer(value.value()));
        self
    }

    /// MOMENTUM: in \[0, 1); LARS_SGD, MOMENTUM_SGD; default 0.9.
    #[must_use]
    pub fn momentum(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Momentum, Value::Real(value.into()));
        self
    }

    /// ETA: finite, \>= 0; LARS; default 0.001; kind OPTIMIZER.
    #[must_use]
    pub fn eta(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Eta, Value::Real(value.into()));
        self
    }

    /// MAX_NORM: \> 0: a row that was updated is scaled down to this norm where it is above; 0 (default): off; kind
    /// OPTIMIZER.
    #[must_use]
    pub fn max_norm(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::MaxNorm, Value::Real(value.into()));
        self
    }

    /// MOMENTUM_SCALE: in \[1, 65536\]; ROWWISE_ADAGRAD on a mesh (model.h); default 1: off; kind OPTIMIZER.
    #[must_use]
    pub fn momentum_scale(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::MomentumScale, Value::Real(value.into()));
        self
    }
}

/// Options of a table. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct TableOptions(pub(crate) Settings);

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions(Settings::new(OptionsKind::Table))
    }
}

impl TableOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// DTYPE: shardrec_dtype: FLOAT32 (default), FLOAT16, BFLOAT16.
    #[must_use]
    pub fn dtype(mut self, value: Dtype) -> Self {
        self.0.set(OptionKey::Dtype, Value::Integer(value.value()));
        self
    }

    /// INIT: shardrec_init; default UNIFORM.
    #[must_use]
    pub fn init(mut self, value: Init) -> Self {
        self.0.set(OptionKey::Init, Value::Integer(value.value()));
        self
    }

    /// INIT_MIN: finite; default -sqrt(1 / rows).
    #[must_use]
    pub fn init_min(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::InitMin, Value::Real(value.into()));
        self
    }

    /// INIT_MAX: finite, \>= INIT_MIN (checked where it is used); default sqrt(1 / rows).
    #[must_use]
    pub fn init_max(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::InitMax, Value::Real(value.into()));
        self
    }

    /// ROUNDING: shardrec_rounding; default NEAREST; STOCHASTIC is for 16-bit tables.
    #[must_use]
    pub fn rounding(mut self, value: Rounding) -> Self {
        self.0.set(OptionKey::Rounding, Value::Integer(value.value()));
        self
    }

    /// OUT_OF_RANGE: shardrec_out_of_range; default ERROR.
    #[must_use]
    pub fn out_of_range(mut self, value: OutOfRange) -> Self {
        self.0.set(OptionKey::OutOfRange, Value::Integer(value.value()));
        self
    }

    /// ALLOWED_SHARDING: a sum of 1 \<\< kind over the kinds of shardrec_sharding, TABLE_WISE to DATA_PARALLEL, that a
    /// plan may use for the table; as text "row_wise, column_wise"; 0, "all" (default): all.
    #[must_use]
    pub fn allowed_sharding(mut self, value: &str) -> Self {
        self.0.set(OptionKey::AllowedSharding, Value::Text(value.to_string()));
        self
    }

    /// ALLOWED_RANKS: ranks that may own boxes of the table: "0-3, 7"; those that a plan does not have are passed
    /// over; empty (default): all. A table that may not be on all ranks is not replicated.
    #[must_use]
    pub fn allowed_ranks(mut self, value: &str) -> Self {
        self.0.set(OptionKey::AllowedRanks, Value::Text(value.to_string()));
        self
    }

    /// MIN_COLUMNS: in \[1, 65536\], at most the table's dim: least columns of a box; default 1. (These three: see
    /// plan.h).
    #[must_use]
    pub fn min_columns(mut self, value: i64) -> Self {
        self.0.set(OptionKey::MinColumns, Value::Integer(value));
        self
    }
}

/// Options of a plan. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct PlanOptions(pub(crate) Settings);

impl Default for PlanOptions {
    fn default() -> Self {
        PlanOptions(Settings::new(OptionsKind::Plan))
    }
}

impl PlanOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// SHARDING: shardrec_sharding; default AUTO.
    #[must_use]
    pub fn sharding(mut self, value: Sharding) -> Self {
        self.0.set(OptionKey::Sharding, Value::Integer(value.value()));
        self
    }

    /// REPLICATION: shardrec_replication, of all replicated tables; default AUTO.
    #[must_use]
    pub fn replication(mut self, value: Replication) -> Self {
        self.0.set(OptionKey::Replication, Value::Integer(value.value()));
        self
    }

    /// BATCH_SIZE: \>= 0: samples per rank and step that the plan may expect; 0 (default): unknown.
    #[must_use]
    pub fn batch_size(mut self, value: i64) -> Self {
        self.0.set(OptionKey::BatchSize, Value::Integer(value));
        self
    }

    /// BAG_LENGTH: finite, \>= 0: ids per bag that it may expect; default 1.
    #[must_use]
    pub fn bag_length(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::BagLength, Value::Real(value.into()));
        self
    }

    /// BALANCE: shardrec_balance; default BYTES.
    #[must_use]
    pub fn balance(mut self, value: Balance) -> Self {
        self.0.set(OptionKey::Balance, Value::Integer(value.value()));
        self
    }
}

/// Options of a collection of tables. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct CollectionOptions(pub(crate) Settings);

impl Default for CollectionOptions {
    fn default() -> Self {
        CollectionOptions(Settings::new(OptionsKind::Collection))
    }
}

impl CollectionOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// SEED: ; default 0; kinds COLLECTION and MLP.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Seed, Value::Integer(value));
        self
    }

    /// THREADS: in \[1, 1024\]; default: this rank's part of the processors that it shares with the other ranks of its
    /// communicator on this machine, in this process and in others: each processor of its affinity mask divided by
    /// the ranks that may run on it, cgroup quotas of processor time likewise; rounded down, at least 1. Of an MLP,
    /// which has no communicator: the same part, of the communicators that live in this process when it is made;
    /// without one, all processors that the process may use. Of DDP and FSDP: of the optimizer. Kinds COLLECTION,
    /// MLP, DDP and FSDP.
    #[must_use]
    pub fn threads(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Threads, Value::Integer(value));
        self
    }

    /// GRADIENT_DIVISOR: shardrec_divisor; default RANKS.
    #[must_use]
    pub fn gradient_divisor(mut self, value: Divisor) -> Self {
        self.0.set(OptionKey::GradientDivisor, Value::Integer(value.value()));
        self
    }

    /// GRADIENT_DIVISOR_VALUE: finite, \> 0; for CUSTOM; default 1.
    #[must_use]
    pub fn gradient_divisor_value(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::GradientDivisorValue, Value::Real(value.into()));
        self
    }

    /// LOOKUPS: in \[1, 8\]; lookups alive at once; default 2.
    #[must_use]
    pub fn lookups(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Lookups, Value::Integer(value));
        self
    }

    /// OUTPUT_DTYPE: shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16; of outputs and their gradients. Sums are
    /// taken in float32 and rounded once, to nearest even.
    #[must_use]
    pub fn output_dtype(mut self, value: Dtype) -> Self {
        self.0.set(OptionKey::OutputDtype, Value::Integer(value.value()));
        self
    }

    /// DEDUPLICATE: 0 or 1; 1: an id that a batch repeats travels once where that takes fewer bytes, with the same
    /// results; default: 1 where ranks live in several processes, else 0.
    #[must_use]
    pub fn deduplicate(mut self, value: bool) -> Self {
        self.0.set(OptionKey::Deduplicate, Value::Integer(value.into()));
        self
    }

    /// FORWARD_COMPRESSION: shardrec_compression, of the output exchange: sums per bag and box, before they are added
    /// up and divided by MEAN; rows of sequences. Default NONE, which costs no time; any other does where ranks share
    /// a machine; the same on all ranks.
    #[must_use]
    pub fn forward_compression(mut self, value: Compression) -> Self {
        self.0.set(OptionKey::ForwardCompression, Value::Integer(value.value()));
        self
    }

    /// BACKWARD_COMPRESSION: shardrec_compression, of the gradient exchange: gradients per bag and box, or id of a
    /// sequence, after divisor (one that is a power of two may follow later), clamp and MEAN. Sums that ranks
    /// exchange beside them (replicas by rows or bits, row statistics, gradients of weights) stay float32. Default
    /// NONE; the same on all ranks.
    #[must_use]
    pub fn backward_compression(mut self, value: Compression) -> Self {
        self.0.set(OptionKey::BackwardCompression, Value::Integer(value.value()));
        self
    }

    /// HIERARCHICAL: 0 or 1; 1: where several ranks of a node (of the plan's topology) hold rows of a table, what
    /// they have of a bag of another node's rank is added up on their node, and one sum crosses instead of one per
    /// rank; the same bits, one exchange more. 1 is UNSUPPORTED with FORWARD_COMPRESSION, and on a mesh with
    /// replicated tables, where it is 0 by default. Default elsewhere: 1 where ranks live in several processes and no
    /// exchange is compressed, else 0; the same on all ranks.
    #[must_use]
    pub fn hierarchical(mut self, value: bool) -> Self {
        self.0.set(OptionKey::Hierarchical, Value::Integer(value.into()));
        self
    }

    /// DEVICE: in \[-1, 1023\]; -1 (default): tables are in the host's memory, and the CPU works on them; n: the CUDA
    /// device that this process knows by the number n, by the CUDA plug-in (UNSUPPORTED where it is not installed,
    /// INVALID_ARGUMENT where there is no such device, DEVICE_ERROR where it fails). Bits do not depend on it.
    /// Tensors may then be on that device, in the order of a stream of the caller (lookup.h), or on the CPU. The CPU
    /// on all ranks, or on none. Of kind MLP the parameters of a stack, see layers.h; of kind FSDP full parameters
    /// and full gradients, with FSDP_OFFLOAD, see fsdp.h.
    #[must_use]
    pub fn device(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Device, Value::Integer(value));
        self
    }

    /// NON_FINITE: shardrec_non_finite; default ALLOW, which costs no time; the same on all ranks. Kinds COLLECTION,
    /// DDP, FSDP and SCORER. Since 0.2. COLLECTION: of weights of ids (begin) and output gradients (set_gradient):
    /// ERROR is INVALID_BATCH on all ranks, in forward or backward, with RANK, FEATURE, TABLE and POSITION; SKIP is
    /// as SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one sharding group does not
    /// apply is applied by none. backward then waits for all groups, so all must call it equally often. For gradients
    /// on a DEVICE the call that sends them (backward, backward_begin or send_gradients) waits until it has looked
    /// through them. DDP: of reduced gradients, see shardrec_ddp_wait; not with DDP_STEP_IN_BACKWARD. FSDP: the same,
    /// see shardrec_fsdp_wait. SCORER: ALLOW and ERROR, of ids' weights (INVALID_BATCH) and dense inputs
    /// (INVALID_ARGUMENT).
    #[must_use]
    pub fn non_finite(mut self, value: NonFinite) -> Self {
        self.0.set(OptionKey::NonFinite, Value::Integer(value.value()));
        self
    }

    /// DEVICE_WAIT: shardrec_device_wait: how the host waits in a step for what it must know of a DEVICE that is not
    /// the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all that a device has to do
    /// (shardrec_collection_wait_device) are as the program's cudaSetDeviceFlags() says. Since 0.2.
    #[must_use]
    pub fn device_wait(mut self, value: DeviceWait) -> Self {
        self.0.set(OptionKey::DeviceWait, Value::Integer(value.value()));
        self
    }

    /// REPLICA_SYNC: shardrec_replica_sync: which rows shardrec_collection_sync_replicas and
    /// shardrec_collection_sync_begin move. Default TOUCHED, for which a bit per row is kept where a mesh has several
    /// replicas. EXACT and SHARDED move none there; the same on all ranks. Since 0.2.
    #[must_use]
    pub fn replica_sync(mut self, value: ReplicaSync) -> Self {
        self.0.set(OptionKey::ReplicaSync, Value::Integer(value.value()));
        self
    }

    /// SYNC_EVERY: \>= 0: on a mesh, so many updates after each other end with a sync of the replicas, as
    /// shardrec_collection_sync_replicas is; see shardrec_collection_create. Default 0: none comes of itself; with
    /// REPLICA_SYNC EXACT and SHARDED others are INVALID_ARGUMENT; the same on all ranks. Since 0.2.
    #[must_use]
    pub fn sync_every(mut self, value: i64) -> Self {
        self.0.set(OptionKey::SyncEvery, Value::Integer(value));
        self
    }
}

/// Options of a lookup. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct LookupOptions(pub(crate) Settings);

impl Default for LookupOptions {
    fn default() -> Self {
        LookupOptions(Settings::new(OptionsKind::Lookup))
    }
}

impl LookupOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// WEIGHT_GRADIENT: 0 or 1; 1: backward computes the gradients of the ids' weights; the same on all ranks;
    /// default 0.
    #[must_use]
    pub fn weight_gradient(mut self, value: bool) -> Self {
        self.0.set(OptionKey::WeightGradient, Value::Integer(value.into()));
        self
    }
}

/// Options of DDP. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct DdpOptions(pub(crate) Settings);

impl Default for DdpOptions {
    fn default() -> Self {
        DdpOptions(Settings::new(OptionsKind::Ddp))
    }
}

impl DdpOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// THREADS: in \[1, 1024\]; default: this rank's part of the processors that it shares with the other ranks of its
    /// communicator on this machine, in this process and in others: each processor of its affinity mask divided by
    /// the ranks that may run on it, cgroup quotas of processor time likewise; rounded down, at least 1. Of an MLP,
    /// which has no communicator: the same part, of the communicators that live in this process when it is made;
    /// without one, all processors that the process may use. Of DDP and FSDP: of the optimizer. Kinds COLLECTION,
    /// MLP, DDP and FSDP.
    #[must_use]
    pub fn threads(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Threads, Value::Integer(value));
        self
    }

    /// NON_FINITE: shardrec_non_finite; default ALLOW, which costs no time; the same on all ranks. Kinds COLLECTION,
    /// DDP, FSDP and SCORER. Since 0.2. COLLECTION: of weights of ids (begin) and output gradients (set_gradient):
    /// ERROR is INVALID_BATCH on all ranks, in forward or backward, with RANK, FEATURE, TABLE and POSITION; SKIP is
    /// as SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one sharding group does not
    /// apply is applied by none. backward then waits for all groups, so all must call it equally often. For gradients
    /// on a DEVICE the call that sends them (backward, backward_begin or send_gradients) waits until it has looked
    /// through them. DDP: of reduced gradients, see shardrec_ddp_wait; not with DDP_STEP_IN_BACKWARD. FSDP: the same,
    /// see shardrec_fsdp_wait. SCORER: ALLOW and ERROR, of ids' weights (INVALID_BATCH) and dense inputs
    /// (INVALID_ARGUMENT).
    #[must_use]
    pub fn non_finite(mut self, value: NonFinite) -> Self {
        self.0.set(OptionKey::NonFinite, Value::Integer(value.value()));
        self
    }

    /// DEVICE_WAIT: shardrec_device_wait: how the host waits in a step for what it must know of a DEVICE that is not
    /// the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all that a device has to do
    /// (shardrec_collection_wait_device) are as the program's cudaSetDeviceFlags() says. Since 0.2.
    #[must_use]
    pub fn device_wait(mut self, value: DeviceWait) -> Self {
        self.0.set(OptionKey::DeviceWait, Value::Integer(value.value()));
        self
    }

    /// DDP_AVERAGE: 0: gradients are summed, 1 (default): averaged; kinds DDP and FSDP.
    #[must_use]
    pub fn average(mut self, value: bool) -> Self {
        self.0.set(OptionKey::DdpAverage, Value::Integer(value.into()));
        self
    }

    /// DDP_BROADCAST: 1 (default): commit copies rank 0's parameters to all.
    #[must_use]
    pub fn broadcast(mut self, value: bool) -> Self {
        self.0.set(OptionKey::DdpBroadcast, Value::Integer(value.into()));
        self
    }

    /// DDP_FACTOR: finite; the sum or average is multiplied by it; default 1; kinds DDP and FSDP.
    #[must_use]
    pub fn factor(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::DdpFactor, Value::Real(value.into()));
        self
    }

    /// DDP_FIRST_BUCKET_BYTES: \>= 1: the first bucket of each dtype is full from so many bytes of gradients on;
    /// default 2^20.
    #[must_use]
    pub fn first_bucket_bytes(mut self, value: i64) -> Self {
        self.0.set(OptionKey::DdpFirstBucketBytes, Value::Integer(value));
        self
    }

    /// DDP_BUCKET_BYTES: \>= 1: likewise the others; default 2^22.
    #[must_use]
    pub fn bucket_bytes(mut self, value: i64) -> Self {
        self.0.set(OptionKey::DdpBucketBytes, Value::Integer(value));
        self
    }

    /// DDP_ORDER: shardrec_ddp_order; default REVERSE.
    #[must_use]
    pub fn order(mut self, value: DdpOrder) -> Self {
        self.0.set(OptionKey::DdpOrder, Value::Integer(value.value()));
        self
    }

    /// DDP_UNUSED: shardrec_unused; default ERROR.
    #[must_use]
    pub fn unused(mut self, value: Unused) -> Self {
        self.0.set(OptionKey::DdpUnused, Value::Integer(value.value()));
        self
    }

    /// DDP_COMPRESSION: shardrec_compression, of FLOAT32 gradients on their way: NONE (default), FLOAT16 or BFLOAT16.
    /// Each rank's gradients are rounded, then added up in float32; where a bucket is added up in parts (more than
    /// two ranks, more than 256 KiB from a rank to all others together), the result, averaged, is rounded once more.
    /// With FLOAT16, where sums or DDP_FACTOR could exceed its range, that result is divided by a power of two before
    /// it is rounded and multiplied by it behind: sums of finite halves are finite. Gradients of other dtypes travel
    /// as they are.
    #[must_use]
    pub fn compression(mut self, value: Compression) -> Self {
        self.0.set(OptionKey::DdpCompression, Value::Integer(value.value()));
        self
    }

    /// DDP_JOIN_DIVISOR: shardrec_join_divisor; default WORLD.
    #[must_use]
    pub fn join_divisor(mut self, value: JoinDivisor) -> Self {
        self.0.set(OptionKey::DdpJoinDivisor, Value::Integer(value.value()));
        self
    }

    /// DDP_STEP_IN_BACKWARD: 0 or 1; 1: each bucket's parameters are stepped as soon as their gradients are reduced;
    /// needs shardrec_ddp_set_optimizer; a step that fails may have changed some parameters; default 0.
    #[must_use]
    pub fn step_in_backward(mut self, value: bool) -> Self {
        self.0.set(OptionKey::DdpStepInBackward, Value::Integer(value.into()));
        self
    }

    /// DDP_THREAD: 0 or 1; 1: a thread of the library sends, adds up and writes buckets during backward; 0:
    /// shardrec_ddp_end sends all of them, shardrec_ddp_wait does the rest. The same bits; ranks may differ. Default:
    /// 1 where this rank's part of the processors (see THREADS) is more than one, because a thread that takes the
    /// processor from backward hides no time.
    #[must_use]
    pub fn thread(mut self, value: bool) -> Self {
        self.0.set(OptionKey::DdpThread, Value::Integer(value.into()));
        self
    }

    /// DDP_REDUCTION: shardrec_ddp_reduction; default ORDERED. With NCCL, ranks add up in the dtype of the way,
    /// FLOAT32 gradients in that of DDP_COMPRESSION; then each rank averages in FLOAT32 (FLOAT64 where gradients are)
    /// and rounds to the gradient's dtype. Numbers that are added up in FLOAT16 are divided before, when they have
    /// been rounded, by the least power of two that is not below the number of ranks, and multiplied by it behind, so
    /// that sums stay in range; those below 2^-14 times that power lose bits. commit says UNSUPPORTED where
    /// parameters are on the CPU, or where several ranks have no NCCL between their devices (ENGINE_NCCL, COMM_NCCL).
    /// Since 0.2.
    #[must_use]
    pub fn reduction(mut self, value: DdpReduction) -> Self {
        self.0.set(OptionKey::DdpReduction, Value::Integer(value.value()));
        self
    }

    /// STREAM: the value of a cudaStream_t of the DEVICE, which lives as long as the handle and is not being
    /// captured: what a stack, an interaction, a metric, a DDP set or an FSDP set on a device does takes place in its
    /// order; default 0, the legacy default stream. Memory that it works on is given back behind that. Not looked at
    /// on the CPU. Kinds MLP, METRICS, DDP and FSDP. Since 0.2.
    ///
    /// # Safety
    /// It is such a stream, not being captured, that lives as long as what is made with these options, and no memory
    /// that is worked on in its order is dropped before that is over.
    #[must_use]
    pub unsafe fn stream(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Stream, Value::Integer(value));
        self
    }
}

/// Options of a stack of layers. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct MlpOptions(pub(crate) Settings);

impl Default for MlpOptions {
    fn default() -> Self {
        MlpOptions(Settings::new(OptionsKind::Mlp))
    }
}

impl MlpOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// OPTIMIZER: shardrec_optimizer; tables: SGD; layers: SGD.
    #[must_use]
    pub fn optimizer(mut self, value: Optimizer) -> Self {
        self.0.set(OptionKey::Optimizer, Value::Integer(value.value()));
        self
    }

    /// LEARNING_RATE: finite, \>= 0; default 0.01.
    #[must_use]
    pub fn learning_rate(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::LearningRate, Value::Real(value.into()));
        self
    }

    /// EPS: finite, \>= 0; default 1e-8.
    #[must_use]
    pub fn eps(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Eps, Value::Real(value.into()));
        self
    }

    /// WEIGHT_DECAY: finite, \>= 0; default 0.
    #[must_use]
    pub fn weight_decay(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::WeightDecay, Value::Real(value.into()));
        self
    }

    /// WEIGHT_DECAY_MODE: shardrec_weight_decay; default NONE.
    #[must_use]
    pub fn weight_decay_mode(mut self, value: WeightDecay) -> Self {
        self.0.set(OptionKey::WeightDecayMode, Value::Integer(value.value()));
        self
    }

    /// MAX_GRADIENT: \> 0 clamps gradients to +-value; 0 (default): off.
    #[must_use]
    pub fn max_gradient(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::MaxGradient, Value::Real(value.into()));
        self
    }

    /// BETA1: in \[0, 1); default 0.9.
    #[must_use]
    pub fn beta1(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Beta1, Value::Real(value.into()));
        self
    }

    /// BETA2: in \[0, 1); default 0.999.
    #[must_use]
    pub fn beta2(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Beta2, Value::Real(value.into()));
        self
    }

    /// ROW_STATISTICS: shardrec_row_statistics; default ROW.
    #[must_use]
    pub fn row_statistics(mut self, value: RowStatistics) -> Self {
        self.0.set(OptionKey::RowStatistics, Value::Integer(value.value()));
        self
    }

    /// MOMENTUM: in \[0, 1); LARS_SGD, MOMENTUM_SGD; default 0.9.
    #[must_use]
    pub fn momentum(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::Momentum, Value::Real(value.into()));
        self
    }

    /// SEED: ; default 0; kinds COLLECTION and MLP.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Seed, Value::Integer(value));
        self
    }

    /// THREADS: in \[1, 1024\]; default: this rank's part of the processors that it shares with the other ranks of its
    /// communicator on this machine, in this process and in others: each processor of its affinity mask divided by
    /// the ranks that may run on it, cgroup quotas of processor time likewise; rounded down, at least 1. Of an MLP,
    /// which has no communicator: the same part, of the communicators that live in this process when it is made;
    /// without one, all processors that the process may use. Of DDP and FSDP: of the optimizer. Kinds COLLECTION,
    /// MLP, DDP and FSDP.
    #[must_use]
    pub fn threads(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Threads, Value::Integer(value));
        self
    }

    /// DEVICE: in \[-1, 1023\]; -1 (default): tables are in the host's memory, and the CPU works on them; n: the CUDA
    /// device that this process knows by the number n, by the CUDA plug-in (UNSUPPORTED where it is not installed,
    /// INVALID_ARGUMENT where there is no such device, DEVICE_ERROR where it fails). Bits do not depend on it.
    /// Tensors may then be on that device, in the order of a stream of the caller (lookup.h), or on the CPU. The CPU
    /// on all ranks, or on none. Of kind MLP the parameters of a stack, see layers.h; of kind FSDP full parameters
    /// and full gradients, with FSDP_OFFLOAD, see fsdp.h.
    #[must_use]
    pub fn device(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Device, Value::Integer(value));
        self
    }

    /// DEVICE_WAIT: shardrec_device_wait: how the host waits in a step for what it must know of a DEVICE that is not
    /// the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all that a device has to do
    /// (shardrec_collection_wait_device) are as the program's cudaSetDeviceFlags() says. Since 0.2.
    #[must_use]
    pub fn device_wait(mut self, value: DeviceWait) -> Self {
        self.0.set(OptionKey::DeviceWait, Value::Integer(value.value()));
        self
    }

    /// ACCUMULATE_GRADIENTS: 0 or 1; 1: shardrec_mlp_backward adds to the gradients of the parameters; default 0.
    #[must_use]
    pub fn accumulate_gradients(mut self, value: bool) -> Self {
        self.0.set(OptionKey::AccumulateGradients, Value::Integer(value.into()));
        self
    }

    /// STREAM: the value of a cudaStream_t of the DEVICE, which lives as long as the handle and is not being
    /// captured: what a stack, an interaction, a metric, a DDP set or an FSDP set on a device does takes place in its
    /// order; default 0, the legacy default stream. Memory that it works on is given back behind that. Not looked at
    /// on the CPU. Kinds MLP, METRICS, DDP and FSDP. Since 0.2.
    ///
    /// # Safety
    /// It is such a stream, not being captured, that lives as long as what is made with these options, and no memory
    /// that is worked on in its order is dropped before that is over.
    #[must_use]
    pub unsafe fn stream(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Stream, Value::Integer(value));
        self
    }

    /// PRECISION: shardrec_precision; default FLOAT32. Since 0.2.
    #[must_use]
    pub fn precision(mut self, value: Precision) -> Self {
        self.0.set(OptionKey::Precision, Value::Integer(value.value()));
        self
    }

    /// LOSS_SCALE: a power of two in \[1, 2^24\]: what gradients between layers are multiplied by at first; default
    /// 65536. Not looked at but with PRECISION FLOAT16. Since 0.2.
    #[must_use]
    pub fn loss_scale(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::LossScale, Value::Real(value.into()));
        self
    }

    /// LOSS_SCALE_STEPS: \>= 0: the scale is doubled after so many backwards in a row whose gradients are finite; 0:
    /// it is constant; default 2000. Not looked at but with PRECISION FLOAT16. Since 0.2.
    #[must_use]
    pub fn loss_scale_steps(mut self, value: i64) -> Self {
        self.0.set(OptionKey::LossScaleSteps, Value::Integer(value));
        self
    }
}

/// Options of a mesh. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct MeshOptions(pub(crate) Settings);

impl Default for MeshOptions {
    fn default() -> Self {
        MeshOptions(Settings::new(OptionsKind::Mesh))
    }
}

impl MeshOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// PLACEMENT: shardrec_placement; default INTRA_NODE_SYNC.
    #[must_use]
    pub fn placement(mut self, value: Placement) -> Self {
        self.0.set(OptionKey::Placement, Value::Integer(value.value()));
        self
    }
}

/// Options of a communicator. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct CommOptions(pub(crate) Settings);

impl Default for CommOptions {
    fn default() -> Self {
        CommOptions(Settings::new(OptionsKind::Comm))
    }
}

impl CommOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// ENGINE: shardrec_engine; default: as the environment says; for shardrec_comm_create_from_env.
    #[must_use]
    pub fn engine(mut self, value: Engine) -> Self {
        self.0.set(OptionKey::Engine, Value::Integer(value.value()));
        self
    }

    /// COMM_SETUP_SECONDS: \> 0: to meet in; default 1800.
    #[must_use]
    pub fn setup_seconds(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::CommSetupSeconds, Value::Real(value.into()));
        self
    }

    /// INTERFACE: name of a network interface ("eth1") or an address of this machine, for the connections of this
    /// rank over Gloo. Any other than loopback needs ALLOW_PLAIN_TCP, here or of a rendezvous that is reached over
    /// the network. Empty (default): the interface that reaches the rendezvous.
    #[must_use]
    pub fn interface(mut self, value: &str) -> Self {
        self.0.set(OptionKey::Interface, Value::Text(value.to_string()));
        self
    }

    /// RANK_ZERO_SECONDS: \> 0: how much later than this rank rank 0 may come, for shardrec_comm_create_from_env:
    /// where its address is known and its machine answers, but nobody listens there for so long, rank 0 is lost
    /// (PEER_FAILED); default 60.
    #[must_use]
    pub fn rank_zero_seconds(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::RankZeroSeconds, Value::Real(value.into()));
        self
    }

    /// ALLOW_PLAIN_TCP: 0 or 1; 1: other machines may take part, and what ranks send each other is clear text on the
    /// network; default 0; kinds RENDEZVOUS and COMM.
    #[must_use]
    pub fn allow_plain_tcp(mut self, value: bool) -> Self {
        self.0.set(OptionKey::AllowPlainTcp, Value::Integer(value.into()));
        self
    }
}

/// Options of a rendezvous. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct RendezvousOptions(pub(crate) Settings);

impl Default for RendezvousOptions {
    fn default() -> Self {
        RendezvousOptions(Settings::new(OptionsKind::Rendezvous))
    }
}

impl RendezvousOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// ADDRESS: a name or an address of this machine to listen at; default 127.0.0.1. Any other than loopback needs
    /// SECRET and ALLOW_PLAIN_TCP (checked where it is used).
    #[must_use]
    pub fn address(mut self, value: &str) -> Self {
        self.0.set(OptionKey::Address, Value::Text(value.to_string()));
        self
    }

    /// PORT: in \[0, 65535\]; 0 (default): a free one.
    #[must_use]
    pub fn port(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Port, Value::Integer(value));
        self
    }

    /// ADVERTISED_ADDRESS: under which ranks find it; empty (default): as ADDRESS.
    #[must_use]
    pub fn advertised_address(mut self, value: &str) -> Self {
        self.0.set(OptionKey::AdvertisedAddress, Value::Text(value.to_string()));
        self
    }

    /// JOB: name of the group: 1 to 64 letters, digits and -._~; empty (default): a random one.
    #[must_use]
    pub fn job(mut self, value: &str) -> Self {
        self.0.set(OptionKey::Job, Value::Text(value.to_string()));
        self
    }

    /// SECRET: 16 to 128 letters, digits and -._~; empty (default): a random one of 128 bits.
    #[must_use]
    pub fn secret(mut self, value: &str) -> Self {
        self.0.set(OptionKey::Secret, Value::Text(value.to_string()));
        self
    }

    /// ALLOW_PLAIN_TCP: 0 or 1; 1: other machines may take part, and what ranks send each other is clear text on the
    /// network; default 0; kinds RENDEZVOUS and COMM.
    #[must_use]
    pub fn allow_plain_tcp(mut self, value: bool) -> Self {
        self.0.set(OptionKey::AllowPlainTcp, Value::Integer(value.into()));
        self
    }

    /// SILENCE_SECONDS: in \[0.1, 3600\]: a rank that is silent for so long, or that a rank's connection does not
    /// reach, is lost to the others; default 4.
    #[must_use]
    pub fn silence_seconds(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::SilenceSeconds, Value::Real(value.into()));
        self
    }
}

/// Options of a checkpoint. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct CheckpointOptions(pub(crate) Settings);

impl Default for CheckpointOptions {
    fn default() -> Self {
        CheckpointOptions(Settings::new(OptionsKind::Checkpoint))
    }
}

impl CheckpointOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// KEEP_LAST: \>= 0: checkpoints of the run that stay after a commit, the new one included; 0 (default): all. What
    /// a delta that stays is a change of stays, too: up to MOST_DELTAS more.
    #[must_use]
    pub fn keep_last(mut self, value: i64) -> Self {
        self.0.set(OptionKey::KeepLast, Value::Integer(value));
        self
    }

    /// MOST_DELTAS: in \[0, 1000\]: deltas that follow a whole checkpoint before shardrec_checkpoint_commit_delta
    /// writes a whole one again, which those that stay (KEEP_LAST) no longer need; default 100. A load and the
    /// opening of a scorer read as many, an open and a commit their manifests. Since 0.2.
    #[must_use]
    pub fn most_deltas(mut self, value: i64) -> Self {
        self.0.set(OptionKey::MostDeltas, Value::Integer(value));
        self
    }

    /// DELTA_STATES: 0 or 1; 0: shardrec_checkpoint_commit_delta and _delta_begin leave the states of tables'
    /// optimizers out of deltas, for scorers; whole checkpoints have them. The same on all ranks; default 1. Since
    /// 0.2.
    #[must_use]
    pub fn delta_states(mut self, value: bool) -> Self {
        self.0.set(OptionKey::DeltaStates, Value::Integer(value.into()));
        self
    }
}

/// Options of a scorer. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct ScorerOptions(pub(crate) Settings);

impl Default for ScorerOptions {
    fn default() -> Self {
        ScorerOptions(Settings::new(OptionsKind::Scorer))
    }
}

impl ScorerOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// NON_FINITE: shardrec_non_finite; default ALLOW, which costs no time; the same on all ranks. Kinds COLLECTION,
    /// DDP, FSDP and SCORER. Since 0.2. COLLECTION: of weights of ids (begin) and output gradients (set_gradient):
    /// ERROR is INVALID_BATCH on all ranks, in forward or backward, with RANK, FEATURE, TABLE and POSITION; SKIP is
    /// as SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one sharding group does not
    /// apply is applied by none. backward then waits for all groups, so all must call it equally often. For gradients
    /// on a DEVICE the call that sends them (backward, backward_begin or send_gradients) waits until it has looked
    /// through them. DDP: of reduced gradients, see shardrec_ddp_wait; not with DDP_STEP_IN_BACKWARD. FSDP: the same,
    /// see shardrec_fsdp_wait. SCORER: ALLOW and ERROR, of ids' weights (INVALID_BATCH) and dense inputs
    /// (INVALID_ARGUMENT).
    #[must_use]
    pub fn non_finite(mut self, value: NonFinite) -> Self {
        self.0.set(OptionKey::NonFinite, Value::Integer(value.value()));
        self
    }

    /// SERVED_TABLES: shardrec_served_tables; default MEMORY.
    #[must_use]
    pub fn served_tables(mut self, value: ServedTables) -> Self {
        self.0.set(OptionKey::ServedTables, Value::Integer(value.value()));
        self
    }

    /// SERVED_COLLECTION: name of a collection in the checkpoint; empty (default): the only one, else that of the
    /// name "".
    #[must_use]
    pub fn served_collection(mut self, value: &str) -> Self {
        self.0.set(OptionKey::ServedCollection, Value::Text(value.to_string()));
        self
    }

    /// BOTTOM_LAYERS: name of the stack of layers of the dense input; empty (default): "bottom", where the checkpoint
    /// has it and it fits, else there is no dense half.
    #[must_use]
    pub fn bottom_layers(mut self, value: &str) -> Self {
        self.0.set(OptionKey::BottomLayers, Value::Text(value.to_string()));
        self
    }

    /// TOP_LAYERS: likewise of the stack behind the interaction; "top".
    #[must_use]
    pub fn top_layers(mut self, value: &str) -> Self {
        self.0.set(OptionKey::TopLayers, Value::Text(value.to_string()));
        self
    }

    /// LOGITS: 0 or 1; 1: scores are what the top stack gives, without the sigmoid; default 0.
    #[must_use]
    pub fn logits(mut self, value: bool) -> Self {
        self.0.set(OptionKey::Logits, Value::Integer(value.into()));
        self
    }
}

/// Options of metrics. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct MetricsOptions(pub(crate) Settings);

impl Default for MetricsOptions {
    fn default() -> Self {
        MetricsOptions(Settings::new(OptionsKind::Metrics))
    }
}

impl MetricsOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// DEVICE: in \[-1, 1023\]; -1 (default): tables are in the host's memory, and the CPU works on them; n: the CUDA
    /// device that this process knows by the number n, by the CUDA plug-in (UNSUPPORTED where it is not installed,
    /// INVALID_ARGUMENT where there is no such device, DEVICE_ERROR where it fails). Bits do not depend on it.
    /// Tensors may then be on that device, in the order of a stream of the caller (lookup.h), or on the CPU. The CPU
    /// on all ranks, or on none. Of kind MLP the parameters of a stack, see layers.h; of kind FSDP full parameters
    /// and full gradients, with FSDP_OFFLOAD, see fsdp.h.
    #[must_use]
    pub fn device(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Device, Value::Integer(value));
        self
    }

    /// DEVICE_WAIT: shardrec_device_wait: how the host waits in a step for what it must know of a DEVICE that is not
    /// the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all that a device has to do
    /// (shardrec_collection_wait_device) are as the program's cudaSetDeviceFlags() says. Since 0.2.
    #[must_use]
    pub fn device_wait(mut self, value: DeviceWait) -> Self {
        self.0.set(OptionKey::DeviceWait, Value::Integer(value.value()));
        self
    }

    /// STREAM: the value of a cudaStream_t of the DEVICE, which lives as long as the handle and is not being
    /// captured: what a stack, an interaction, a metric, a DDP set or an FSDP set on a device does takes place in its
    /// order; default 0, the legacy default stream. Memory that it works on is given back behind that. Not looked at
    /// on the CPU. Kinds MLP, METRICS, DDP and FSDP. Since 0.2.
    ///
    /// # Safety
    /// It is such a stream, not being captured, that lives as long as what is made with these options, and no memory
    /// that is worked on in its order is dropped before that is over.
    #[must_use]
    pub unsafe fn stream(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Stream, Value::Integer(value));
        self
    }
}

/// Options of FSDP. Unset ones have their defaults.
#[derive(Clone, Debug)]
pub struct FsdpOptions(pub(crate) Settings);

impl Default for FsdpOptions {
    fn default() -> Self {
        FsdpOptions(Settings::new(OptionsKind::Fsdp))
    }
}

impl FsdpOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value, set or by default, as text, such as an enumerator's name.
    pub fn text(&self, key: OptionKey) -> crate::Result<String> {
        self.0.text(key)
    }

    /// A value that is an integer, set or by default; an enumerator's number.
    pub fn integer(&self, key: OptionKey) -> crate::Result<i64> {
        self.0.integer(key)
    }

    /// A value that is a real number, set or by default.
    pub fn real(&self, key: OptionKey) -> crate::Result<f64> {
        self.0.real(key)
    }

    /// THREADS: in \[1, 1024\]; default: this rank's part of the processors that it shares with the other ranks of its
    /// communicator on this machine, in this process and in others: each processor of its affinity mask divided by
    /// the ranks that may run on it, cgroup quotas of processor time likewise; rounded down, at least 1. Of an MLP,
    /// which has no communicator: the same part, of the communicators that live in this process when it is made;
    /// without one, all processors that the process may use. Of DDP and FSDP: of the optimizer. Kinds COLLECTION,
    /// MLP, DDP and FSDP.
    #[must_use]
    pub fn threads(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Threads, Value::Integer(value));
        self
    }

    /// DEVICE: in \[-1, 1023\]; -1 (default): tables are in the host's memory, and the CPU works on them; n: the CUDA
    /// device that this process knows by the number n, by the CUDA plug-in (UNSUPPORTED where it is not installed,
    /// INVALID_ARGUMENT where there is no such device, DEVICE_ERROR where it fails). Bits do not depend on it.
    /// Tensors may then be on that device, in the order of a stream of the caller (lookup.h), or on the CPU. The CPU
    /// on all ranks, or on none. Of kind MLP the parameters of a stack, see layers.h; of kind FSDP full parameters
    /// and full gradients, with FSDP_OFFLOAD, see fsdp.h.
    #[must_use]
    pub fn device(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Device, Value::Integer(value));
        self
    }

    /// NON_FINITE: shardrec_non_finite; default ALLOW, which costs no time; the same on all ranks. Kinds COLLECTION,
    /// DDP, FSDP and SCORER. Since 0.2. COLLECTION: of weights of ids (begin) and output gradients (set_gradient):
    /// ERROR is INVALID_BATCH on all ranks, in forward or backward, with RANK, FEATURE, TABLE and POSITION; SKIP is
    /// as SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one sharding group does not
    /// apply is applied by none. backward then waits for all groups, so all must call it equally often. For gradients
    /// on a DEVICE the call that sends them (backward, backward_begin or send_gradients) waits until it has looked
    /// through them. DDP: of reduced gradients, see shardrec_ddp_wait; not with DDP_STEP_IN_BACKWARD. FSDP: the same,
    /// see shardrec_fsdp_wait. SCORER: ALLOW and ERROR, of ids' weights (INVALID_BATCH) and dense inputs
    /// (INVALID_ARGUMENT).
    #[must_use]
    pub fn non_finite(mut self, value: NonFinite) -> Self {
        self.0.set(OptionKey::NonFinite, Value::Integer(value.value()));
        self
    }

    /// DEVICE_WAIT: shardrec_device_wait: how the host waits in a step for what it must know of a DEVICE that is not
    /// the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all that a device has to do
    /// (shardrec_collection_wait_device) are as the program's cudaSetDeviceFlags() says. Since 0.2.
    #[must_use]
    pub fn device_wait(mut self, value: DeviceWait) -> Self {
        self.0.set(OptionKey::DeviceWait, Value::Integer(value.value()));
        self
    }

    /// DDP_AVERAGE: 0: gradients are summed, 1 (default): averaged; kinds DDP and FSDP.
    #[must_use]
    pub fn ddp_average(mut self, value: bool) -> Self {
        self.0.set(OptionKey::DdpAverage, Value::Integer(value.into()));
        self
    }

    /// DDP_FACTOR: finite; the sum or average is multiplied by it; default 1; kinds DDP and FSDP.
    #[must_use]
    pub fn ddp_factor(mut self, value: impl Into<f64>) -> Self {
        self.0.set(OptionKey::DdpFactor, Value::Real(value.into()));
        self
    }

    /// STREAM: the value of a cudaStream_t of the DEVICE, which lives as long as the handle and is not being
    /// captured: what a stack, an interaction, a metric, a DDP set or an FSDP set on a device does takes place in its
    /// order; default 0, the legacy default stream. Memory that it works on is given back behind that. Not looked at
    /// on the CPU. Kinds MLP, METRICS, DDP and FSDP. Since 0.2.
    ///
    /// # Safety
    /// It is such a stream, not being captured, that lives as long as what is made with these options, and no memory
    /// that is worked on in its order is dropped before that is over.
    #[must_use]
    pub unsafe fn stream(mut self, value: i64) -> Self {
        self.0.set(OptionKey::Stream, Value::Integer(value));
        self
    }

    /// FSDP_STRATEGY: shardrec_fsdp_strategy; default FULL_SHARD. Since 0.2.
    #[must_use]
    pub fn strategy(mut self, value: FsdpStrategy) -> Self {
        self.0.set(OptionKey::FsdpStrategy, Value::Integer(value.value()));
        self
    }

    /// FSDP_PREFETCH: in \[0, 4\]: units that are gathered before the host asks for them; each takes one more buffer of
    /// full parameters; default 1. 0 also leaves one buffer of full gradients of two. Since 0.2.
    #[must_use]
    pub fn prefetch(mut self, value: i64) -> Self {
        self.0.set(OptionKey::FsdpPrefetch, Value::Integer(value));
        self
    }

    /// FSDP_HELD_UNITS: in \[1, 64\]: units that the host holds unsharded at once; default 1. Not looked at with
    /// SHARD_GRAD_OP. Since 0.2.
    #[must_use]
    pub fn held_units(mut self, value: i64) -> Self {
        self.0.set(OptionKey::FsdpHeldUnits, Value::Integer(value));
        self
    }

    /// FSDP_PARAMETER_DTYPE: shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16, of full parameters and full
    /// gradients, and of parameters on their way. Shards are FLOAT32; rounded to nearest. Since 0.2.
    #[must_use]
    pub fn parameter_dtype(mut self, value: Dtype) -> Self {
        self.0.set(OptionKey::FsdpParameterDtype, Value::Integer(value.value()));
        self
    }

    /// FSDP_REDUCE_DTYPE: shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16, of gradients on their way to the
    /// rank that adds them up in FLOAT32; sums of sharding groups go to their replicas as FLOAT32. Finite gradients
    /// beyond float16's range become +-65504. Since 0.2.
    #[must_use]
    pub fn reduce_dtype(mut self, value: Dtype) -> Self {
        self.0.set(OptionKey::FsdpReduceDtype, Value::Integer(value.value()));
        self
    }

    /// FSDP_OFFLOAD: 0 or 1; 1: full parameters and full gradients are on the DEVICE, and shards, their gradients and
    /// the optimizer's states in the host's memory, where the CPU adds up and steps. With a DEVICE, 0 (default) is
    /// UNSUPPORTED; without one, 1 is INVALID_ARGUMENT. Since 0.2.
    #[must_use]
    pub fn offload(mut self, value: bool) -> Self {
        self.0.set(OptionKey::FsdpOffload, Value::Integer(value.into()));
        self
    }
}
