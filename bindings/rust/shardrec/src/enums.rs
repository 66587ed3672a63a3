// Made by bindings/tools/rust_enums.py from bindings/shardrec.i; do not edit.
//! The enums of the C API.

use shardrec_sys as sys;

/// Values are pinned; new ones are appended inside their family.
/// The C API's `shardrec_status`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// `SHARDREC_INVALID_ARGUMENT`: a value, shape, dtype or name that is not accepted.
    InvalidArgument,
    /// `SHARDREC_INVALID_HANDLE`: NULL, garbage, or a handle of another kind.
    InvalidHandle,
    /// `SHARDREC_CLOSED`: the handle was destroyed, or its communicator was closed.
    Closed,
    /// `SHARDREC_BUSY`: another thread is inside a call on this handle.
    Busy,
    /// `SHARDREC_INVALID_STATE`: a call out of order, such as backward before forward.
    InvalidState,
    /// `SHARDREC_INVALID_BATCH`: some rank's batch or gradient was refused; no rank applied it.
    InvalidBatch,
    /// `SHARDREC_NOT_FOUND`: a name, index, file or part of an error that does not exist.
    NotFound,
    /// `SHARDREC_UNSUPPORTED`: meaningful, but not available in this build; the sentence says why.
    Unsupported,
    /// `SHARDREC_DISAGREEMENT`: the ranks asked for different things, which is said to all of them: no rank has done
    /// any of it, and all may go on.
    Disagreement,
    /// `SHARDREC_OUT_OF_MEMORY`.
    OutOfMemory,
    /// `SHARDREC_IO_ERROR`: the operating system refused a file operation.
    IoError,
    /// `SHARDREC_CORRUPT_DATA`: a file or message does not hold what its format promises.
    CorruptData,
    /// `SHARDREC_DEVICE_ERROR`: a device failed; the sentence names it and the runtime's error.
    DeviceError,
    /// `SHARDREC_PEER_FAILED`: another rank is gone.
    PeerFailed,
    /// `SHARDREC_TIMEOUT`: a deadline passed; the sentence names the rank and the operation.
    Timeout,
    /// `SHARDREC_MISMATCH`: ranks made different calls, or made them in another order.
    Mismatch,
    /// `SHARDREC_ABORTED`: [`Comm::abort`](crate::Comm::abort) was called on some rank.
    Aborted,
    /// `SHARDREC_CANCELLED`: [`Control::cancel`](crate::Control::cancel) was called.
    Cancelled,
    /// `SHARDREC_INTERNAL`: a defect of the library; please report the sentence.
    Internal,
}

impl ErrorKind {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_status {
        match self {
            ErrorKind::InvalidArgument => sys::SHARDREC_INVALID_ARGUMENT,
            ErrorKind::InvalidHandle => sys::SHARDREC_INVALID_HANDLE,
            ErrorKind::Closed => sys::SHARDREC_CLOSED,
            ErrorKind::Busy => sys::SHARDREC_BUSY,
            ErrorKind::InvalidState => sys::SHARDREC_INVALID_STATE,
            ErrorKind::InvalidBatch => sys::SHARDREC_INVALID_BATCH,
            ErrorKind::NotFound => sys::SHARDREC_NOT_FOUND,
            ErrorKind::Unsupported => sys::SHARDREC_UNSUPPORTED,
            ErrorKind::Disagreement => sys::SHARDREC_DISAGREEMENT,
            ErrorKind::OutOfMemory => sys::SHARDREC_OUT_OF_MEMORY,
            ErrorKind::IoError => sys::SHARDREC_IO_ERROR,
            ErrorKind::CorruptData => sys::SHARDREC_CORRUPT_DATA,
            ErrorKind::DeviceError => sys::SHARDREC_DEVICE_ERROR,
            ErrorKind::PeerFailed => sys::SHARDREC_PEER_FAILED,
            ErrorKind::Timeout => sys::SHARDREC_TIMEOUT,
            ErrorKind::Mismatch => sys::SHARDREC_MISMATCH,
            ErrorKind::Aborted => sys::SHARDREC_ABORTED,
            ErrorKind::Cancelled => sys::SHARDREC_CANCELLED,
            ErrorKind::Internal => sys::SHARDREC_INTERNAL,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_status) -> Option<ErrorKind> {
        match raw {
            sys::SHARDREC_INVALID_ARGUMENT => Some(ErrorKind::InvalidArgument),
            sys::SHARDREC_INVALID_HANDLE => Some(ErrorKind::InvalidHandle),
            sys::SHARDREC_CLOSED => Some(ErrorKind::Closed),
            sys::SHARDREC_BUSY => Some(ErrorKind::Busy),
            sys::SHARDREC_INVALID_STATE => Some(ErrorKind::InvalidState),
            sys::SHARDREC_INVALID_BATCH => Some(ErrorKind::InvalidBatch),
            sys::SHARDREC_NOT_FOUND => Some(ErrorKind::NotFound),
            sys::SHARDREC_UNSUPPORTED => Some(ErrorKind::Unsupported),
            sys::SHARDREC_DISAGREEMENT => Some(ErrorKind::Disagreement),
            sys::SHARDREC_OUT_OF_MEMORY => Some(ErrorKind::OutOfMemory),
            sys::SHARDREC_IO_ERROR => Some(ErrorKind::IoError),
            sys::SHARDREC_CORRUPT_DATA => Some(ErrorKind::CorruptData),
            sys::SHARDREC_DEVICE_ERROR => Some(ErrorKind::DeviceError),
            sys::SHARDREC_PEER_FAILED => Some(ErrorKind::PeerFailed),
            sys::SHARDREC_TIMEOUT => Some(ErrorKind::Timeout),
            sys::SHARDREC_MISMATCH => Some(ErrorKind::Mismatch),
            sys::SHARDREC_ABORTED => Some(ErrorKind::Aborted),
            sys::SHARDREC_CANCELLED => Some(ErrorKind::Cancelled),
            sys::SHARDREC_INTERNAL => Some(ErrorKind::Internal),
            _ => None,
        }
    }
}

/// Parts of an error.
/// The C API's `shardrec_error_part`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorPart {
    /// `SHARDREC_ERROR_RANK`: the rank at fault.
    Rank,
    /// `SHARDREC_ERROR_POSITION`: index into the array at fault (values, lengths, offsets, weights).
    Position,
    /// `SHARDREC_ERROR_VALUE`: the value that was refused.
    Value,
    /// `SHARDREC_ERROR_LIMIT`: what would have been accepted, exclusive.
    Limit,
    /// `SHARDREC_ERROR_SEQUENCE`: the sequence number of the operation.
    Sequence,
    /// `SHARDREC_ERROR_TABLE`: name of the table.
    Table,
    /// `SHARDREC_ERROR_FEATURE`: name of the feature.
    Feature,
    /// `SHARDREC_ERROR_OPERATION`: the operation that failed, such as "forward".
    Operation,
    /// `SHARDREC_ERROR_PATH`: the file or directory.
    Path,
}

impl ErrorPart {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_error_part {
        match self {
            ErrorPart::Rank => sys::SHARDREC_ERROR_RANK,
            ErrorPart::Position => sys::SHARDREC_ERROR_POSITION,
            ErrorPart::Value => sys::SHARDREC_ERROR_VALUE,
            ErrorPart::Limit => sys::SHARDREC_ERROR_LIMIT,
            ErrorPart::Sequence => sys::SHARDREC_ERROR_SEQUENCE,
            ErrorPart::Table => sys::SHARDREC_ERROR_TABLE,
            ErrorPart::Feature => sys::SHARDREC_ERROR_FEATURE,
            ErrorPart::Operation => sys::SHARDREC_ERROR_OPERATION,
            ErrorPart::Path => sys::SHARDREC_ERROR_PATH,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_error_part) -> Option<ErrorPart> {
        match raw {
            sys::SHARDREC_ERROR_RANK => Some(ErrorPart::Rank),
            sys::SHARDREC_ERROR_POSITION => Some(ErrorPart::Position),
            sys::SHARDREC_ERROR_VALUE => Some(ErrorPart::Value),
            sys::SHARDREC_ERROR_LIMIT => Some(ErrorPart::Limit),
            sys::SHARDREC_ERROR_SEQUENCE => Some(ErrorPart::Sequence),
            sys::SHARDREC_ERROR_TABLE => Some(ErrorPart::Table),
            sys::SHARDREC_ERROR_FEATURE => Some(ErrorPart::Feature),
            sys::SHARDREC_ERROR_OPERATION => Some(ErrorPart::Operation),
            sys::SHARDREC_ERROR_PATH => Some(ErrorPart::Path),
            _ => None,
        }
    }
}

/// What [`available`](crate::available) asks for.
/// The C API's `shardrec_capability`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Capability {
    /// `SHARDREC_CAPABILITY_ENGINE`: an engine of communicators: "local", "gloo", "mpi" or "nccl".
    Engine,
    /// `SHARDREC_CAPABILITY_DEVICE`: what tables can live on: "cpu", "cuda" (any device), "cuda:1".
    Device,
    /// `SHARDREC_CAPABILITY_CPU_TARGET`: kernels for an instruction set: "scalar", "avx2" and so on.
    CpuTarget,
    /// `SHARDREC_CAPABILITY_DENSE`: a GEMM plug-in of layers: "openblas", "cublas" (CUDA).
    Dense,
}

impl Capability {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_capability {
        match self {
            Capability::Engine => sys::SHARDREC_CAPABILITY_ENGINE,
            Capability::Device => sys::SHARDREC_CAPABILITY_DEVICE,
            Capability::CpuTarget => sys::SHARDREC_CAPABILITY_CPU_TARGET,
            Capability::Dense => sys::SHARDREC_CAPABILITY_DENSE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_capability) -> Option<Capability> {
        match raw {
            sys::SHARDREC_CAPABILITY_ENGINE => Some(Capability::Engine),
            sys::SHARDREC_CAPABILITY_DEVICE => Some(Capability::Device),
            sys::SHARDREC_CAPABILITY_CPU_TARGET => Some(Capability::CpuTarget),
            sys::SHARDREC_CAPABILITY_DENSE => Some(Capability::Dense),
            _ => None,
        }
    }
}

/// The C API's `shardrec_log_level`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LogLevel {
    /// `SHARDREC_LOG_DEBUG`.
    Debug,
    /// `SHARDREC_LOG_INFO`.
    Info,
    /// `SHARDREC_LOG_WARNING`: such as: rank 3 is late in "forward".
    Warning,
    /// `SHARDREC_LOG_ERROR`.
    Error,
    /// `SHARDREC_LOG_OFF`.
    Off,
}

impl LogLevel {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_log_level {
        match self {
            LogLevel::Debug => sys::SHARDREC_LOG_DEBUG,
            LogLevel::Info => sys::SHARDREC_LOG_INFO,
            LogLevel::Warning => sys::SHARDREC_LOG_WARNING,
            LogLevel::Error => sys::SHARDREC_LOG_ERROR,
            LogLevel::Off => sys::SHARDREC_LOG_OFF,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_log_level) -> Option<LogLevel> {
        match raw {
            sys::SHARDREC_LOG_DEBUG => Some(LogLevel::Debug),
            sys::SHARDREC_LOG_INFO => Some(LogLevel::Info),
            sys::SHARDREC_LOG_WARNING => Some(LogLevel::Warning),
            sys::SHARDREC_LOG_ERROR => Some(LogLevel::Error),
            sys::SHARDREC_LOG_OFF => Some(LogLevel::Off),
            _ => None,
        }
    }
}

/// DLPack's DLDeviceType.
/// The C API's `shardrec_device_type`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceType {
    /// `SHARDREC_DEVICE_CPU`.
    Cpu,
    /// `SHARDREC_DEVICE_CUDA`.
    Cuda,
}

impl DeviceType {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_device_type {
        match self {
            DeviceType::Cpu => sys::SHARDREC_DEVICE_CPU,
            DeviceType::Cuda => sys::SHARDREC_DEVICE_CUDA,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_device_type) -> Option<DeviceType> {
        match raw {
            sys::SHARDREC_DEVICE_CPU => Some(DeviceType::Cpu),
            sys::SHARDREC_DEVICE_CUDA => Some(DeviceType::Cuda),
            _ => None,
        }
    }
}

/// DLPack's DLDataType in one number: type code | bits \<\< 8 | lanes \<\< 16.
/// The C API's `shardrec_dtype`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dtype {
    /// `SHARDREC_UINT8`: bytes; tensors of checkpoints, and where a function says so.
    Uint8,
    /// `SHARDREC_INT32`.
    Int32,
    /// `SHARDREC_INT64`.
    Int64,
    /// `SHARDREC_FLOAT16`.
    Float16,
    /// `SHARDREC_BFLOAT16`.
    Bfloat16,
    /// `SHARDREC_FLOAT32`.
    Float32,
    /// `SHARDREC_FLOAT64`.
    Float64,
}

impl Dtype {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_dtype {
        match self {
            Dtype::Uint8 => sys::SHARDREC_UINT8,
            Dtype::Int32 => sys::SHARDREC_INT32,
            Dtype::Int64 => sys::SHARDREC_INT64,
            Dtype::Float16 => sys::SHARDREC_FLOAT16,
            Dtype::Bfloat16 => sys::SHARDREC_BFLOAT16,
            Dtype::Float32 => sys::SHARDREC_FLOAT32,
            Dtype::Float64 => sys::SHARDREC_FLOAT64,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_dtype) -> Option<Dtype> {
        match raw {
            sys::SHARDREC_UINT8 => Some(Dtype::Uint8),
            sys::SHARDREC_INT32 => Some(Dtype::Int32),
            sys::SHARDREC_INT64 => Some(Dtype::Int64),
            sys::SHARDREC_FLOAT16 => Some(Dtype::Float16),
            sys::SHARDREC_BFLOAT16 => Some(Dtype::Bfloat16),
            sys::SHARDREC_FLOAT32 => Some(Dtype::Float32),
            sys::SHARDREC_FLOAT64 => Some(Dtype::Float64),
            _ => None,
        }
    }
}

/// The C API's `shardrec_options_kind`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OptionsKind {
    /// `SHARDREC_OPTIONS_OPTIMIZER`: keys 100-199; for [`Model::set_optimizer`](crate::Model::set_optimizer), [`Ddp::set_optimizer`](crate::Ddp::set_optimizer) and
    /// [`Fsdp::set_optimizer`](crate::Fsdp::set_optimizer).
    Optimizer,
    /// `SHARDREC_OPTIONS_TABLE`: keys 200-299.
    Table,
    /// `SHARDREC_OPTIONS_PLAN`: keys 300-399.
    Plan,
    /// `SHARDREC_OPTIONS_COLLECTION`: keys 400-499.
    Collection,
    /// `SHARDREC_OPTIONS_LOOKUP`: keys 500-599.
    Lookup,
    /// `SHARDREC_OPTIONS_DDP`: keys 600-699.
    Ddp,
    /// `SHARDREC_OPTIONS_MLP`: keys 700-799, and 100-199 for its optimizer.
    Mlp,
    /// `SHARDREC_OPTIONS_MESH`: keys 800-899.
    Mesh,
    /// `SHARDREC_OPTIONS_COMM`: keys 900-999.
    Comm,
    /// `SHARDREC_OPTIONS_RENDEZVOUS`: keys 1000-1099.
    Rendezvous,
    /// `SHARDREC_OPTIONS_CHECKPOINT`: keys 1100-1199.
    Checkpoint,
    /// `SHARDREC_OPTIONS_SCORER`: keys 1200-1299.
    Scorer,
    /// `SHARDREC_OPTIONS_METRICS`: DEVICE, DEVICE_WAIT and STREAM.
    Metrics,
    /// `SHARDREC_OPTIONS_FSDP`: keys 1300-1399, DDP_AVERAGE, DDP_FACTOR, THREADS, NON_FINITE, DEVICE, DEVICE_WAIT and
    /// STREAM.
    Fsdp,
}

impl OptionsKind {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_options_kind {
        match self {
            OptionsKind::Optimizer => sys::SHARDREC_OPTIONS_OPTIMIZER,
            OptionsKind::Table => sys::SHARDREC_OPTIONS_TABLE,
            OptionsKind::Plan => sys::SHARDREC_OPTIONS_PLAN,
            OptionsKind::Collection => sys::SHARDREC_OPTIONS_COLLECTION,
            OptionsKind::Lookup => sys::SHARDREC_OPTIONS_LOOKUP,
            OptionsKind::Ddp => sys::SHARDREC_OPTIONS_DDP,
            OptionsKind::Mlp => sys::SHARDREC_OPTIONS_MLP,
            OptionsKind::Mesh => sys::SHARDREC_OPTIONS_MESH,
            OptionsKind::Comm => sys::SHARDREC_OPTIONS_COMM,
            OptionsKind::Rendezvous => sys::SHARDREC_OPTIONS_RENDEZVOUS,
            OptionsKind::Checkpoint => sys::SHARDREC_OPTIONS_CHECKPOINT,
            OptionsKind::Scorer => sys::SHARDREC_OPTIONS_SCORER,
            OptionsKind::Metrics => sys::SHARDREC_OPTIONS_METRICS,
            OptionsKind::Fsdp => sys::SHARDREC_OPTIONS_FSDP,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_options_kind) -> Option<OptionsKind> {
        match raw {
            sys::SHARDREC_OPTIONS_OPTIMIZER => Some(OptionsKind::Optimizer),
            sys::SHARDREC_OPTIONS_TABLE => Some(OptionsKind::Table),
            sys::SHARDREC_OPTIONS_PLAN => Some(OptionsKind::Plan),
            sys::SHARDREC_OPTIONS_COLLECTION => Some(OptionsKind::Collection),
            sys::SHARDREC_OPTIONS_LOOKUP => Some(OptionsKind::Lookup),
            sys::SHARDREC_OPTIONS_DDP => Some(OptionsKind::Ddp),
            sys::SHARDREC_OPTIONS_MLP => Some(OptionsKind::Mlp),
            sys::SHARDREC_OPTIONS_MESH => Some(OptionsKind::Mesh),
            sys::SHARDREC_OPTIONS_COMM => Some(OptionsKind::Comm),
            sys::SHARDREC_OPTIONS_RENDEZVOUS => Some(OptionsKind::Rendezvous),
            sys::SHARDREC_OPTIONS_CHECKPOINT => Some(OptionsKind::Checkpoint),
            sys::SHARDREC_OPTIONS_SCORER => Some(OptionsKind::Scorer),
            sys::SHARDREC_OPTIONS_METRICS => Some(OptionsKind::Metrics),
            sys::SHARDREC_OPTIONS_FSDP => Some(OptionsKind::Fsdp),
            _ => None,
        }
    }
}

/// Formulas: of tables [`Model::set_optimizer`](crate::Model::set_optimizer), of layers and of parameters that a shardrec_ddp
/// steps [`Mlp::new`](crate::Mlp::new). Used elsewhere than said here: UNSUPPORTED.
/// The C API's `shardrec_optimizer`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Optimizer {
    /// `SHARDREC_OPTIMIZER_SGD`: tables, layers and DDP.
    Sgd,
    /// `SHARDREC_OPTIMIZER_ADAGRAD`: tables, layers and DDP.
    Adagrad,
    /// `SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD`: tables.
    RowwiseAdagrad,
    /// `SHARDREC_OPTIMIZER_ADAM`: tables, layers and DDP.
    Adam,
    /// `SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM`: tables.
    PartialRowwiseAdam,
    /// `SHARDREC_OPTIMIZER_LAMB`: tables, layers and DDP.
    Lamb,
    /// `SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB`: tables.
    PartialRowwiseLamb,
    /// `SHARDREC_OPTIMIZER_LARS_SGD`: tables.
    LarsSgd,
    /// `SHARDREC_OPTIMIZER_MOMENTUM_SGD`: layers and DDP.
    MomentumSgd,
}

impl Optimizer {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_optimizer {
        match self {
            Optimizer::Sgd => sys::SHARDREC_OPTIMIZER_SGD,
            Optimizer::Adagrad => sys::SHARDREC_OPTIMIZER_ADAGRAD,
            Optimizer::RowwiseAdagrad => sys::SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
            Optimizer::Adam => sys::SHARDREC_OPTIMIZER_ADAM,
            Optimizer::PartialRowwiseAdam => sys::SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM,
            Optimizer::Lamb => sys::SHARDREC_OPTIMIZER_LAMB,
            Optimizer::PartialRowwiseLamb => sys::SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB,
            Optimizer::LarsSgd => sys::SHARDREC_OPTIMIZER_LARS_SGD,
            Optimizer::MomentumSgd => sys::SHARDREC_OPTIMIZER_MOMENTUM_SGD,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_optimizer) -> Option<Optimizer> {
        match raw {
            sys::SHARDREC_OPTIMIZER_SGD => Some(Optimizer::Sgd),
            sys::SHARDREC_OPTIMIZER_ADAGRAD => Some(Optimizer::Adagrad),
            sys::SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD => Some(Optimizer::RowwiseAdagrad),
            sys::SHARDREC_OPTIMIZER_ADAM => Some(Optimizer::Adam),
            sys::SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM => Some(Optimizer::PartialRowwiseAdam),
            sys::SHARDREC_OPTIMIZER_LAMB => Some(Optimizer::Lamb),
            sys::SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB => Some(Optimizer::PartialRowwiseLamb),
            sys::SHARDREC_OPTIMIZER_LARS_SGD => Some(Optimizer::LarsSgd),
            sys::SHARDREC_OPTIMIZER_MOMENTUM_SGD => Some(Optimizer::MomentumSgd),
            _ => None,
        }
    }
}

/// The C API's `shardrec_weight_decay`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WeightDecay {
    /// `SHARDREC_WEIGHT_DECAY_NONE`.
    None,
    /// `SHARDREC_WEIGHT_DECAY_L2`: as part of the gradient.
    L2,
    /// `SHARDREC_WEIGHT_DECAY_DECOUPLE`: w \*= 1 - learning rate \* decay, touched rows only.
    Decouple,
}

impl WeightDecay {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_weight_decay {
        match self {
            WeightDecay::None => sys::SHARDREC_WEIGHT_DECAY_NONE,
            WeightDecay::L2 => sys::SHARDREC_WEIGHT_DECAY_L2,
            WeightDecay::Decouple => sys::SHARDREC_WEIGHT_DECAY_DECOUPLE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_weight_decay) -> Option<WeightDecay> {
        match raw {
            sys::SHARDREC_WEIGHT_DECAY_NONE => Some(WeightDecay::None),
            sys::SHARDREC_WEIGHT_DECAY_L2 => Some(WeightDecay::L2),
            sys::SHARDREC_WEIGHT_DECAY_DECOUPLE => Some(WeightDecay::Decouple),
            _ => None,
        }
    }
}

/// Over which columns what an optimizer keeps or computes once per row (row-wise states, the norms of
/// LAMB, LARS and MAX_NORM) is taken where a table is cut by columns.
/// The C API's `shardrec_row_statistics`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RowStatistics {
    /// `SHARDREC_ROW_STATISTICS_ROW`: over the whole row, the same under every plan.
    Row,
    /// `SHARDREC_ROW_STATISTICS_SHARD`: over the columns of each box, as TorchRec does.
    Shard,
}

impl RowStatistics {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_row_statistics {
        match self {
            RowStatistics::Row => sys::SHARDREC_ROW_STATISTICS_ROW,
            RowStatistics::Shard => sys::SHARDREC_ROW_STATISTICS_SHARD,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_row_statistics) -> Option<RowStatistics> {
        match raw {
            sys::SHARDREC_ROW_STATISTICS_ROW => Some(RowStatistics::Row),
            sys::SHARDREC_ROW_STATISTICS_SHARD => Some(RowStatistics::Shard),
            _ => None,
        }
    }
}

/// The C API's `shardrec_init`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Init {
    /// `SHARDREC_INIT_UNIFORM`: uniform in \[INIT_MIN, INIT_MAX); default +-sqrt(1 / rows).
    Uniform,
    /// `SHARDREC_INIT_ZEROS`: touches no page of memory.
    Zeros,
}

impl Init {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_init {
        match self {
            Init::Uniform => sys::SHARDREC_INIT_UNIFORM,
            Init::Zeros => sys::SHARDREC_INIT_ZEROS,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_init) -> Option<Init> {
        match raw {
            sys::SHARDREC_INIT_UNIFORM => Some(Init::Uniform),
            sys::SHARDREC_INIT_ZEROS => Some(Init::Zeros),
            _ => None,
        }
    }
}

/// What becomes of an id outside \[0, rows) of its table; the same under every plan.
/// The C API's `shardrec_out_of_range`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OutOfRange {
    /// `SHARDREC_OUT_OF_RANGE_ERROR`: the batch is refused on all ranks: INVALID_BATCH.
    Error,
    /// `SHARDREC_OUT_OF_RANGE_DROP`: as if the id were not in its bag (MEAN divides by the ids that stay); in a
    /// sequence its row is 0 and its gradient goes nowhere.
    Drop,
    /// `SHARDREC_OUT_OF_RANGE_CLAMP`: row 0 is used in its place.
    Clamp,
}

impl OutOfRange {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_out_of_range {
        match self {
            OutOfRange::Error => sys::SHARDREC_OUT_OF_RANGE_ERROR,
            OutOfRange::Drop => sys::SHARDREC_OUT_OF_RANGE_DROP,
            OutOfRange::Clamp => sys::SHARDREC_OUT_OF_RANGE_CLAMP,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_out_of_range) -> Option<OutOfRange> {
        match raw {
            sys::SHARDREC_OUT_OF_RANGE_ERROR => Some(OutOfRange::Error),
            sys::SHARDREC_OUT_OF_RANGE_DROP => Some(OutOfRange::Drop),
            sys::SHARDREC_OUT_OF_RANGE_CLAMP => Some(OutOfRange::Clamp),
            _ => None,
        }
    }
}

/// How the weights of a 16-bit table are rounded after an update.
/// The C API's `shardrec_rounding`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// `SHARDREC_ROUNDING_NEAREST`: to the nearest, ties to even.
    Nearest,
    /// `SHARDREC_ROUNDING_STOCHASTIC`: up or down with a probability that makes the mean right: random bits of
    /// Philox4x32-10, from (seed, step, table, row, column) only, so the same under every plan.
    Stochastic,
}

impl Rounding {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_rounding {
        match self {
            Rounding::Nearest => sys::SHARDREC_ROUNDING_NEAREST,
            Rounding::Stochastic => sys::SHARDREC_ROUNDING_STOCHASTIC,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_rounding) -> Option<Rounding> {
        match raw {
            sys::SHARDREC_ROUNDING_NEAREST => Some(Rounding::Nearest),
            sys::SHARDREC_ROUNDING_STOCHASTIC => Some(Rounding::Stochastic),
            _ => None,
        }
    }
}

/// The named ways of cutting and placing tables; see plan.h for the exact cuts.
/// The C API's `shardrec_sharding`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sharding {
    /// `SHARDREC_SHARDING_AUTO`: balanced by size.
    Auto,
    /// `SHARDREC_SHARDING_TABLE_WISE`.
    TableWise,
    /// `SHARDREC_SHARDING_ROW_WISE`.
    RowWise,
    /// `SHARDREC_SHARDING_COLUMN_WISE`.
    ColumnWise,
    /// `SHARDREC_SHARDING_TABLE_ROW_WISE`.
    TableRowWise,
    /// `SHARDREC_SHARDING_TABLE_COLUMN_WISE`.
    TableColumnWise,
    /// `SHARDREC_SHARDING_GRID`.
    Grid,
    /// `SHARDREC_SHARDING_DATA_PARALLEL`.
    DataParallel,
    /// `SHARDREC_SHARDING_MIXED`: table i takes kind 1 + i mod 7.
    Mixed,
}

impl Sharding {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_sharding {
        match self {
            Sharding::Auto => sys::SHARDREC_SHARDING_AUTO,
            Sharding::TableWise => sys::SHARDREC_SHARDING_TABLE_WISE,
            Sharding::RowWise => sys::SHARDREC_SHARDING_ROW_WISE,
            Sharding::ColumnWise => sys::SHARDREC_SHARDING_COLUMN_WISE,
            Sharding::TableRowWise => sys::SHARDREC_SHARDING_TABLE_ROW_WISE,
            Sharding::TableColumnWise => sys::SHARDREC_SHARDING_TABLE_COLUMN_WISE,
            Sharding::Grid => sys::SHARDREC_SHARDING_GRID,
            Sharding::DataParallel => sys::SHARDREC_SHARDING_DATA_PARALLEL,
            Sharding::Mixed => sys::SHARDREC_SHARDING_MIXED,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_sharding) -> Option<Sharding> {
        match raw {
            sys::SHARDREC_SHARDING_AUTO => Some(Sharding::Auto),
            sys::SHARDREC_SHARDING_TABLE_WISE => Some(Sharding::TableWise),
            sys::SHARDREC_SHARDING_ROW_WISE => Some(Sharding::RowWise),
            sys::SHARDREC_SHARDING_COLUMN_WISE => Some(Sharding::ColumnWise),
            sys::SHARDREC_SHARDING_TABLE_ROW_WISE => Some(Sharding::TableRowWise),
            sys::SHARDREC_SHARDING_TABLE_COLUMN_WISE => Some(Sharding::TableColumnWise),
            sys::SHARDREC_SHARDING_GRID => Some(Sharding::Grid),
            sys::SHARDREC_SHARDING_DATA_PARALLEL => Some(Sharding::DataParallel),
            sys::SHARDREC_SHARDING_MIXED => Some(Sharding::Mixed),
            _ => None,
        }
    }
}

/// How the ranks of a replicated (data-parallel) table learn of each other's gradients.
/// The C API's `shardrec_replication`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Replication {
    /// `SHARDREC_REPLICATION_AUTO`: what sends least, by BATCH_SIZE and BAG_LENGTH; SAMPLES without.
    Auto,
    /// `SHARDREC_REPLICATION_SAMPLES`: every rank receives all ids and output gradients: the bits of one rank.
    Samples,
    /// `SHARDREC_REPLICATION_ROWS`: sums of touched rows, as a list: replicas equal bit for bit, one rank's result up
    /// to rounding; at most 2^32 rows per rank.
    Rows,
    /// `SHARDREC_REPLICATION_DENSE`: the same with a bit per row in place of the list.
    Dense,
}

impl Replication {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_replication {
        match self {
            Replication::Auto => sys::SHARDREC_REPLICATION_AUTO,
            Replication::Samples => sys::SHARDREC_REPLICATION_SAMPLES,
            Replication::Rows => sys::SHARDREC_REPLICATION_ROWS,
            Replication::Dense => sys::SHARDREC_REPLICATION_DENSE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_replication) -> Option<Replication> {
        match raw {
            sys::SHARDREC_REPLICATION_AUTO => Some(Replication::Auto),
            sys::SHARDREC_REPLICATION_SAMPLES => Some(Replication::Samples),
            sys::SHARDREC_REPLICATION_ROWS => Some(Replication::Rows),
            sys::SHARDREC_REPLICATION_DENSE => Some(Replication::Dense),
            _ => None,
        }
    }
}

/// What a plan spreads evenly over the ranks.
/// The C API's `shardrec_balance`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Balance {
    /// `SHARDREC_BALANCE_BYTES`: the bytes of weights.
    Bytes,
    /// `SHARDREC_BALANCE_TIME`: the time that lookups and updates are expected to keep the memory of a rank busy:
    /// features of the table x BAG_LENGTH x what a row moves, at the rates of the planning machine's profile
    /// (probe.h), or of bytes without one: machines may plan differently, so ranks that must agree use
    /// [`Plan::collective`](crate::Plan::collective), where rank 0 plans. Neither exchanges nor the memory that a rank has count.
    Time,
}

impl Balance {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_balance {
        match self {
            Balance::Bytes => sys::SHARDREC_BALANCE_BYTES,
            Balance::Time => sys::SHARDREC_BALANCE_TIME,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_balance) -> Option<Balance> {
        match raw {
            sys::SHARDREC_BALANCE_BYTES => Some(Balance::Bytes),
            sys::SHARDREC_BALANCE_TIME => Some(Balance::Time),
            _ => None,
        }
    }
}

/// What output gradients are divided by first. On a mesh, ranks and batch are those of the sharding group;
/// of replicated tables, of all groups, and CUSTOM counts once for each.
/// The C API's `shardrec_divisor`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Divisor {
    /// `SHARDREC_DIVISOR_RANKS`: the number of ranks: each rank's loss is a mean over its batch.
    Ranks,
    /// `SHARDREC_DIVISOR_NONE`: 1: the loss is already a mean over the global batch, or a sum.
    None,
    /// `SHARDREC_DIVISOR_CUSTOM`: GRADIENT_DIVISOR_VALUE.
    Custom,
    /// `SHARDREC_DIVISOR_SAMPLES`: global batch / own batch: each sample weighs the same.
    Samples,
}

impl Divisor {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_divisor {
        match self {
            Divisor::Ranks => sys::SHARDREC_DIVISOR_RANKS,
            Divisor::None => sys::SHARDREC_DIVISOR_NONE,
            Divisor::Custom => sys::SHARDREC_DIVISOR_CUSTOM,
            Divisor::Samples => sys::SHARDREC_DIVISOR_SAMPLES,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_divisor) -> Option<Divisor> {
        match raw {
            sys::SHARDREC_DIVISOR_RANKS => Some(Divisor::Ranks),
            sys::SHARDREC_DIVISOR_NONE => Some(Divisor::None),
            sys::SHARDREC_DIVISOR_CUSTOM => Some(Divisor::Custom),
            sys::SHARDREC_DIVISOR_SAMPLES => Some(Divisor::Samples),
            _ => None,
        }
    }
}

/// How numbers travel between ranks. All are rounded so, also what a rank sends to itself and what
/// replicated tables give: the numbers depend on this choice, not on the engine or on who owns a box.
/// With FLOAT16 and BFLOAT16 they keep the promises of collection.h about plans; with INT8 those hold
/// among plans that cut columns alike, for a row of a box has one scale. What a bag's sum in a row box
/// loses is within the bound below; what rounding takes away is not added to a later message.
/// The C API's `shardrec_compression`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compression {
    /// `SHARDREC_COMPRESSION_NONE`: float32, 4 bytes.
    None,
    /// `SHARDREC_COMPRESSION_FLOAT16`: 2 bytes, to nearest even: |error| \<= max(2^-11 |x|, 2^-25); a finite |x| \>=
    /// 65520 becomes 65504 with its sign and is counted (SHARDREC_STAT_SATURATED, "saturated" of
    /// [`Ddp::statistics_json`](crate::Ddp::statistics_json)); NaN and infinities stay.
    Float16,
    /// `SHARDREC_COMPRESSION_BFLOAT16`: 2 bytes, to nearest even: |error| \<= max(2^-8 |x|, 2^-134).
    Bfloat16,
    /// `SHARDREC_COMPRESSION_INT8`: 1 byte, and a scale and an offset in float32 per row of a box (FBGEMM's row-wise
    /// 8 bits, TorchRec's quantized communication, but without the 1e-8 that FBGEMM adds to the range): with range =
    /// most - least of the row, q = round((x - least) 255 / range), to nearest even, comes back as q range / 255 +
    /// least: |error| \<= range / 510 (1 + 2^-12) + 2^-23 max |x|. A range below 2^-100 counts as 0: all of the row is
    /// its least. A row that holds a NaN or an infinity, or whose range is no finite float32, comes back as NaN.
    Int8,
}

impl Compression {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_compression {
        match self {
            Compression::None => sys::SHARDREC_COMPRESSION_NONE,
            Compression::Float16 => sys::SHARDREC_COMPRESSION_FLOAT16,
            Compression::Bfloat16 => sys::SHARDREC_COMPRESSION_BFLOAT16,
            Compression::Int8 => sys::SHARDREC_COMPRESSION_INT8,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_compression) -> Option<Compression> {
        match raw {
            sys::SHARDREC_COMPRESSION_NONE => Some(Compression::None),
            sys::SHARDREC_COMPRESSION_FLOAT16 => Some(Compression::Float16),
            sys::SHARDREC_COMPRESSION_BFLOAT16 => Some(Compression::Bfloat16),
            sys::SHARDREC_COMPRESSION_INT8 => Some(Compression::Int8),
            _ => None,
        }
    }
}

/// What becomes of a NaN or an infinity in the gradients and weights that the host gives
/// (NON_FINITE).
/// The C API's `shardrec_non_finite`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NonFinite {
    /// `SHARDREC_NON_FINITE_ALLOW`: nobody looks; they go into rows, values and outputs.
    Allow,
    /// `SHARDREC_NON_FINITE_ERROR`: the call is refused with the place; no table or parameter changes.
    Error,
    /// `SHARDREC_NON_FINITE_SKIP`: no rank applies the step; calls return OK, and it is counted.
    Skip,
}

impl NonFinite {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_non_finite {
        match self {
            NonFinite::Allow => sys::SHARDREC_NON_FINITE_ALLOW,
            NonFinite::Error => sys::SHARDREC_NON_FINITE_ERROR,
            NonFinite::Skip => sys::SHARDREC_NON_FINITE_SKIP,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_non_finite) -> Option<NonFinite> {
        match raw {
            sys::SHARDREC_NON_FINITE_ALLOW => Some(NonFinite::Allow),
            sys::SHARDREC_NON_FINITE_ERROR => Some(NonFinite::Error),
            sys::SHARDREC_NON_FINITE_SKIP => Some(NonFinite::Skip),
            _ => None,
        }
    }
}

/// How a thread waits for what a CUDA device computes (DEVICE_WAIT).
/// The C API's `shardrec_device_wait`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceWait {
    /// `SHARDREC_DEVICE_WAIT_SLEEP`: until the driver wakes it; the processor does other work.
    Sleep,
    /// `SHARDREC_DEVICE_WAIT_SPIN`: it keeps asking, which takes a processor, and goes on earlier.
    Spin,
}

impl DeviceWait {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_device_wait {
        match self {
            DeviceWait::Sleep => sys::SHARDREC_DEVICE_WAIT_SLEEP,
            DeviceWait::Spin => sys::SHARDREC_DEVICE_WAIT_SPIN,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_device_wait) -> Option<DeviceWait> {
        match raw {
            sys::SHARDREC_DEVICE_WAIT_SLEEP => Some(DeviceWait::Sleep),
            sys::SHARDREC_DEVICE_WAIT_SPIN => Some(DeviceWait::Spin),
            _ => None,
        }
    }
}

/// How the replicas of a collection on a mesh are kept equal: which rows syncs move between them, or by what all of
/// them are trained (REPLICA_SYNC; mesh.h).
/// The C API's `shardrec_replica_sync`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReplicaSync {
    /// `SHARDREC_REPLICA_SYNC_FULL`: all rows of all tables.
    Full,
    /// `SHARDREC_REPLICA_SYNC_TOUCHED`: those that any replica has changed since the last sync.
    Touched,
    /// `SHARDREC_REPLICA_SYNC_EXACT`: none: ids and gradients of all ranks train each replica. Since 0.2.
    Exact,
    /// `SHARDREC_REPLICA_SYNC_SHARDED`: as EXACT, but each of R replicas has the optimizer states of 1 / R of the
    /// rows, and sends their new weights to the others. Since 0.2.
    Sharded,
}

impl ReplicaSync {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_replica_sync {
        match self {
            ReplicaSync::Full => sys::SHARDREC_REPLICA_SYNC_FULL,
            ReplicaSync::Touched => sys::SHARDREC_REPLICA_SYNC_TOUCHED,
            ReplicaSync::Exact => sys::SHARDREC_REPLICA_SYNC_EXACT,
            ReplicaSync::Sharded => sys::SHARDREC_REPLICA_SYNC_SHARDED,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_replica_sync) -> Option<ReplicaSync> {
        match raw {
            sys::SHARDREC_REPLICA_SYNC_FULL => Some(ReplicaSync::Full),
            sys::SHARDREC_REPLICA_SYNC_TOUCHED => Some(ReplicaSync::Touched),
            sys::SHARDREC_REPLICA_SYNC_EXACT => Some(ReplicaSync::Exact),
            sys::SHARDREC_REPLICA_SYNC_SHARDED => Some(ReplicaSync::Sharded),
            _ => None,
        }
    }
}

/// In what number format a stack of layers multiplies matrices (PRECISION); layers.h has the arithmetic.
/// The C API's `shardrec_precision`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Precision {
    /// `SHARDREC_PRECISION_FLOAT32`.
    Float32,
    /// `SHARDREC_PRECISION_TFLOAT32`: factors are rounded to 10 bits of mantissa.
    Tfloat32,
    /// `SHARDREC_PRECISION_BFLOAT16`: what lies between layers, too, is in bfloat16; parameters stay float32.
    Bfloat16,
    /// `SHARDREC_PRECISION_FLOAT16`: the same in float16, with gradients scaled between layers (LOSS_SCALE).
    Float16,
}

impl Precision {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_precision {
        match self {
            Precision::Float32 => sys::SHARDREC_PRECISION_FLOAT32,
            Precision::Tfloat32 => sys::SHARDREC_PRECISION_TFLOAT32,
            Precision::Bfloat16 => sys::SHARDREC_PRECISION_BFLOAT16,
            Precision::Float16 => sys::SHARDREC_PRECISION_FLOAT16,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_precision) -> Option<Precision> {
        match raw {
            sys::SHARDREC_PRECISION_FLOAT32 => Some(Precision::Float32),
            sys::SHARDREC_PRECISION_TFLOAT32 => Some(Precision::Tfloat32),
            sys::SHARDREC_PRECISION_BFLOAT16 => Some(Precision::Bfloat16),
            sys::SHARDREC_PRECISION_FLOAT16 => Some(Precision::Float16),
            _ => None,
        }
    }
}

/// What becomes of DDP parameters that are not marked ready when a step with sync ends.
/// The C API's `shardrec_unused`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unused {
    /// `SHARDREC_UNUSED_ERROR`: [`DdpExchange::wait`](crate::DdpExchange::wait) is INVALID_STATE on all ranks and names one.
    Error,
    /// `SHARDREC_UNUSED_MARK`: they count as unused: this rank gives zeros, and a gradient that no rank used stays as
    /// it is, as PyTorch's find_unused_parameters has it; a bit per parameter travels with each bucket.
    Mark,
    /// `SHARDREC_UNUSED_ZERO`: this rank gives zeros; a gradient that no rank used becomes zero.
    Zero,
}

impl Unused {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_unused {
        match self {
            Unused::Error => sys::SHARDREC_UNUSED_ERROR,
            Unused::Mark => sys::SHARDREC_UNUSED_MARK,
            Unused::Zero => sys::SHARDREC_UNUSED_ZERO,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_unused) -> Option<Unused> {
        match raw {
            sys::SHARDREC_UNUSED_ERROR => Some(Unused::Error),
            sys::SHARDREC_UNUSED_MARK => Some(Unused::Mark),
            sys::SHARDREC_UNUSED_ZERO => Some(Unused::Zero),
            _ => None,
        }
    }
}

/// In which order DDP expects parameters to become ready.
/// The C API's `shardrec_ddp_order`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DdpOrder {
    /// `SHARDREC_DDP_ORDER_REVERSE`: the last one added first, as backward goes.
    Reverse,
    /// `SHARDREC_DDP_ORDER_RECORDED`: reversed in the first step with sync, then as they became ready in it on rank
    /// 0.
    Recorded,
}

impl DdpOrder {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_ddp_order {
        match self {
            DdpOrder::Reverse => sys::SHARDREC_DDP_ORDER_REVERSE,
            DdpOrder::Recorded => sys::SHARDREC_DDP_ORDER_RECORDED,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_ddp_order) -> Option<DdpOrder> {
        match raw {
            sys::SHARDREC_DDP_ORDER_REVERSE => Some(DdpOrder::Reverse),
            sys::SHARDREC_DDP_ORDER_RECORDED => Some(DdpOrder::Recorded),
            _ => None,
        }
    }
}

/// By what DDP adds up the gradients of the ranks.
/// The C API's `shardrec_ddp_reduction`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DdpReduction {
    /// `SHARDREC_DDP_REDUCTION_ORDERED`: in the order of ranks: the same bits whatever carries messages, on CPUs and
    /// devices.
    Ordered,
    /// `SHARDREC_DDP_REDUCTION_NCCL`: by NCCL's all-reduce of each bucket, between devices: the same bits on all
    /// ranks, but they may change with the number and the places of ranks and with NCCL's version.
    Nccl,
}

impl DdpReduction {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_ddp_reduction {
        match self {
            DdpReduction::Ordered => sys::SHARDREC_DDP_REDUCTION_ORDERED,
            DdpReduction::Nccl => sys::SHARDREC_DDP_REDUCTION_NCCL,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_ddp_reduction) -> Option<DdpReduction> {
        match raw {
            sys::SHARDREC_DDP_REDUCTION_ORDERED => Some(DdpReduction::Ordered),
            sys::SHARDREC_DDP_REDUCTION_NCCL => Some(DdpReduction::Nccl),
            _ => None,
        }
    }
}

/// What DDP averages are divided by when some ranks have joined ([`Ddp::join`](crate::Ddp::join)).
/// The C API's `shardrec_join_divisor`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JoinDivisor {
    /// `SHARDREC_JOIN_DIVISOR_WORLD`: all ranks.
    World,
    /// `SHARDREC_JOIN_DIVISOR_LIVE`: those that have not joined.
    Live,
}

impl JoinDivisor {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_join_divisor {
        match self {
            JoinDivisor::World => sys::SHARDREC_JOIN_DIVISOR_WORLD,
            JoinDivisor::Live => sys::SHARDREC_JOIN_DIVISOR_LIVE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_join_divisor) -> Option<JoinDivisor> {
        match raw {
            sys::SHARDREC_JOIN_DIVISOR_WORLD => Some(JoinDivisor::World),
            sys::SHARDREC_JOIN_DIVISOR_LIVE => Some(JoinDivisor::Live),
            _ => None,
        }
    }
}

/// Which ranks have what of the parameters of an FSDP set (fsdp.h).
/// The C API's `shardrec_fsdp_strategy`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FsdpStrategy {
    /// `SHARDREC_FSDP_FULL_SHARD`: shards over all ranks, gathered for forward and for backward.
    FullShard,
    /// `SHARDREC_FSDP_SHARD_GRAD_OP`: the same, but what was gathered stays until gradients are ready.
    ShardGradOp,
    /// `SHARDREC_FSDP_HYBRID_SHARD`: shards over the sharding groups of a mesh, replicas between them.
    HybridShard,
    /// `SHARDREC_FSDP_NO_SHARD`: each rank has all.
    NoShard,
}

impl FsdpStrategy {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_fsdp_strategy {
        match self {
            FsdpStrategy::FullShard => sys::SHARDREC_FSDP_FULL_SHARD,
            FsdpStrategy::ShardGradOp => sys::SHARDREC_FSDP_SHARD_GRAD_OP,
            FsdpStrategy::HybridShard => sys::SHARDREC_FSDP_HYBRID_SHARD,
            FsdpStrategy::NoShard => sys::SHARDREC_FSDP_NO_SHARD,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_fsdp_strategy) -> Option<FsdpStrategy> {
        match raw {
            sys::SHARDREC_FSDP_FULL_SHARD => Some(FsdpStrategy::FullShard),
            sys::SHARDREC_FSDP_SHARD_GRAD_OP => Some(FsdpStrategy::ShardGradOp),
            sys::SHARDREC_FSDP_HYBRID_SHARD => Some(FsdpStrategy::HybridShard),
            sys::SHARDREC_FSDP_NO_SHARD => Some(FsdpStrategy::NoShard),
            _ => None,
        }
    }
}

/// Which ranks of a mesh are neighbours.
/// The C API's `shardrec_placement`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// `SHARDREC_PLACEMENT_INTRA_NODE_SYNC`: those of a replica group: averaging stays in the node.
    Sync,
    /// `SHARDREC_PLACEMENT_INTRA_NODE_SHARD`: those of a sharding group: lookups stay in the node.
    Shard,
}

impl Placement {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_placement {
        match self {
            Placement::Sync => sys::SHARDREC_PLACEMENT_INTRA_NODE_SYNC,
            Placement::Shard => sys::SHARDREC_PLACEMENT_INTRA_NODE_SHARD,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_placement) -> Option<Placement> {
        match raw {
            sys::SHARDREC_PLACEMENT_INTRA_NODE_SYNC => Some(Placement::Sync),
            sys::SHARDREC_PLACEMENT_INTRA_NODE_SHARD => Some(Placement::Shard),
            _ => None,
        }
    }
}

/// Where a scorer keeps the weights of tables (scorer.h).
/// The C API's `shardrec_served_tables`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ServedTables {
    /// `SHARDREC_SERVED_TABLES_MEMORY`: as the checkpoint has them, read into memory of the process.
    Memory,
    /// `SHARDREC_SERVED_TABLES_MAPPED`: in the checkpoint's files, mapped: shared between processes.
    Mapped,
    /// `SHARDREC_SERVED_TABLES_INT8`: in memory, 8 bits per element, a scale and an offset per row.
    Int8,
}

impl ServedTables {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_served_tables {
        match self {
            ServedTables::Memory => sys::SHARDREC_SERVED_TABLES_MEMORY,
            ServedTables::Mapped => sys::SHARDREC_SERVED_TABLES_MAPPED,
            ServedTables::Int8 => sys::SHARDREC_SERVED_TABLES_INT8,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_served_tables) -> Option<ServedTables> {
        match raw {
            sys::SHARDREC_SERVED_TABLES_MEMORY => Some(ServedTables::Memory),
            sys::SHARDREC_SERVED_TABLES_MAPPED => Some(ServedTables::Mapped),
            sys::SHARDREC_SERVED_TABLES_INT8 => Some(ServedTables::Int8),
            _ => None,
        }
    }
}

/// Keys. The type, the default and the accepted values stand behind each.
/// The C API's `shardrec_option`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OptionKey {
    /// `SHARDREC_OPTION_OPTIMIZER`: i64, shardrec_optimizer; tables: SGD; layers: SGD.
    Optimizer,
    /// `SHARDREC_OPTION_LEARNING_RATE`: f64, finite, \>= 0; default 0.01.
    LearningRate,
    /// `SHARDREC_OPTION_EPS`: f64, finite, \>= 0; default 1e-8.
    Eps,
    /// `SHARDREC_OPTION_WEIGHT_DECAY`: f64, finite, \>= 0; default 0.
    WeightDecay,
    /// `SHARDREC_OPTION_WEIGHT_DECAY_MODE`: i64, shardrec_weight_decay; default NONE.
    WeightDecayMode,
    /// `SHARDREC_OPTION_MAX_GRADIENT`: f64, \> 0 clamps gradients to +-value; 0 (default): off.
    MaxGradient,
    /// `SHARDREC_OPTION_BETA1`: f64 in \[0, 1); default 0.9.
    Beta1,
    /// `SHARDREC_OPTION_BETA2`: f64 in \[0, 1); default 0.999.
    Beta2,
    /// `SHARDREC_OPTION_ROW_STATISTICS`: i64, shardrec_row_statistics; default ROW.
    RowStatistics,
    /// `SHARDREC_OPTION_MOMENTUM`: f64 in \[0, 1); LARS_SGD, MOMENTUM_SGD; default 0.9.
    Momentum,
    /// `SHARDREC_OPTION_ETA`: f64, finite, \>= 0; LARS; default 0.001; kind OPTIMIZER.
    Eta,
    /// `SHARDREC_OPTION_MAX_NORM`: f64, \> 0: a row that was updated is scaled down to this norm where it is above; 0
    /// (default): off; kind OPTIMIZER.
    MaxNorm,
    /// `SHARDREC_OPTION_MOMENTUM_SCALE`: f64 in \[1, 65536\]; ROWWISE_ADAGRAD on a mesh (model.h); default 1: off; kind
    /// OPTIMIZER.
    MomentumScale,
    /// `SHARDREC_OPTION_DTYPE`: i64, shardrec_dtype: FLOAT32 (default), FLOAT16, BFLOAT16.
    Dtype,
    /// `SHARDREC_OPTION_INIT`: i64, shardrec_init; default UNIFORM.
    Init,
    /// `SHARDREC_OPTION_INIT_MIN`: f64, finite; default -sqrt(1 / rows).
    InitMin,
    /// `SHARDREC_OPTION_INIT_MAX`: f64, finite, \>= INIT_MIN (checked where it is used); default sqrt(1 / rows).
    InitMax,
    /// `SHARDREC_OPTION_ROUNDING`: i64, shardrec_rounding; default NEAREST; STOCHASTIC is for 16-bit tables.
    Rounding,
    /// `SHARDREC_OPTION_OUT_OF_RANGE`: i64, shardrec_out_of_range; default ERROR.
    OutOfRange,
    /// `SHARDREC_OPTION_ALLOWED_SHARDING`: i64, a sum of 1 \<\< kind over the kinds of shardrec_sharding, TABLE_WISE to
    /// DATA_PARALLEL, that a plan may use for the table; as text "row_wise, column_wise"; 0, "all" (default): all.
    AllowedSharding,
    /// `SHARDREC_OPTION_ALLOWED_RANKS`: text, ranks that may own boxes of the table: "0-3, 7"; those that a plan does
    /// not have are passed over; empty (default): all. A table that may not be on all ranks is not replicated.
    AllowedRanks,
    /// `SHARDREC_OPTION_MIN_COLUMNS`: i64 in \[1, 65536\], at most the table's dim: least columns of a box; default 1.
    /// (These three: see plan.h).
    MinColumns,
    /// `SHARDREC_OPTION_SHARDING`: i64, shardrec_sharding; default AUTO.
    Sharding,
    /// `SHARDREC_OPTION_REPLICATION`: i64, shardrec_replication, of all replicated tables; default AUTO.
    Replication,
    /// `SHARDREC_OPTION_BATCH_SIZE`: i64, \>= 0: samples per rank and step that the plan may expect; 0 (default):
    /// unknown.
    BatchSize,
    /// `SHARDREC_OPTION_BAG_LENGTH`: f64, finite, \>= 0: ids per bag that it may expect; default 1.
    BagLength,
    /// `SHARDREC_OPTION_BALANCE`: i64, shardrec_balance; default BYTES.
    Balance,
    /// `SHARDREC_OPTION_SEED`: i64; default 0; kinds COLLECTION and MLP.
    Seed,
    /// `SHARDREC_OPTION_THREADS`: i64 in \[1, 1024\]; default: this rank's part of the processors that it shares with
    /// the other ranks of its communicator on this machine, in this process and in others: each processor of its
    /// affinity mask divided by the ranks that may run on it, cgroup quotas of processor time likewise; rounded down,
    /// at least 1. Of an MLP, which has no communicator: the same part, of the communicators that live in this
    /// process when it is made; without one, all processors that the process may use. Of DDP and FSDP: of the
    /// optimizer. Kinds COLLECTION, MLP, DDP and FSDP.
    Threads,
    /// `SHARDREC_OPTION_GRADIENT_DIVISOR`: i64, shardrec_divisor; default RANKS.
    GradientDivisor,
    /// `SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE`: f64, finite, \> 0; for CUSTOM; default 1.
    GradientDivisorValue,
    /// `SHARDREC_OPTION_LOOKUPS`: i64 in \[1, 8\]; lookups alive at once; default 2.
    Lookups,
    /// `SHARDREC_OPTION_OUTPUT_DTYPE`: i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16; of outputs and
    /// their gradients. Sums are taken in float32 and rounded once, to nearest even.
    OutputDtype,
    /// `SHARDREC_OPTION_DEDUPLICATE`: i64, 0 or 1; 1: an id that a batch repeats travels once where that takes fewer
    /// bytes, with the same results; default: 1 where ranks live in several processes, else 0.
    Deduplicate,
    /// `SHARDREC_OPTION_FORWARD_COMPRESSION`: i64, shardrec_compression, of the output exchange: sums per bag and
    /// box, before they are added up and divided by MEAN; rows of sequences. Default NONE, which costs no time; any
    /// other does where ranks share a machine; the same on all ranks.
    ForwardCompression,
    /// `SHARDREC_OPTION_BACKWARD_COMPRESSION`: i64, shardrec_compression, of the gradient exchange: gradients per bag
    /// and box, or id of a sequence, after divisor (one that is a power of two may follow later), clamp and MEAN.
    /// Sums that ranks exchange beside them (replicas by rows or bits, row statistics, gradients of weights) stay
    /// float32. Default NONE; the same on all ranks.
    BackwardCompression,
    /// `SHARDREC_OPTION_HIERARCHICAL`: i64, 0 or 1; 1: where several ranks of a node (of the plan's topology) hold
    /// rows of a table, what they have of a bag of another node's rank is added up on their node, and one sum crosses
    /// instead of one per rank; the same bits, one exchange more. 1 is UNSUPPORTED with FORWARD_COMPRESSION, and on a
    /// mesh with replicated tables, where it is 0 by default. Default elsewhere: 1 where ranks live in several
    /// processes and no exchange is compressed, else 0; the same on all ranks.
    Hierarchical,
    /// `SHARDREC_OPTION_DEVICE`: i64 in \[-1, 1023\]; -1 (default): tables are in the host's memory, and the CPU works
    /// on them; n: the CUDA device that this process knows by the number n, by the CUDA plug-in (UNSUPPORTED where it
    /// is not installed, INVALID_ARGUMENT where there is no such device, DEVICE_ERROR where it fails). Bits do not
    /// depend on it. Tensors may then be on that device, in the order of a stream of the caller (lookup.h), or on the
    /// CPU. The CPU on all ranks, or on none. Of kind MLP the parameters of a stack, see layers.h; of kind FSDP full
    /// parameters and full gradients, with FSDP_OFFLOAD, see fsdp.h.
    Device,
    /// `SHARDREC_OPTION_NON_FINITE`: i64, shardrec_non_finite; default ALLOW, which costs no time; the same on all
    /// ranks. Kinds COLLECTION, DDP, FSDP and SCORER. Since 0.2. COLLECTION: of weights of ids (begin) and output
    /// gradients (set_gradient): ERROR is INVALID_BATCH on all ranks, in forward or backward, with RANK, FEATURE,
    /// TABLE and POSITION; SKIP is as SHARDREC_UPDATE_SKIP, after a forward as with ALLOW. On a mesh, a step that one
    /// sharding group does not apply is applied by none. backward then waits for all groups, so all must call it
    /// equally often. For gradients on a DEVICE the call that sends them (backward, backward_begin or send_gradients)
    /// waits until it has looked through them. DDP: of reduced gradients, see [`DdpExchange::wait`](crate::DdpExchange::wait); not with
    /// DDP_STEP_IN_BACKWARD. FSDP: the same, see [`Fsdp::wait`](crate::Fsdp::wait). SCORER: ALLOW and ERROR, of ids' weights
    /// (INVALID_BATCH) and dense inputs (INVALID_ARGUMENT).
    NonFinite,
    /// `SHARDREC_OPTION_DEVICE_WAIT`: i64, shardrec_device_wait: how the host waits in a step for what it must know
    /// of a DEVICE that is not the CPU, and for memory that the device reads; default SLEEP. Of no bit. Waits for all
    /// that a device has to do ([`Collection::wait_device`](crate::Collection::wait_device)) are as the program's cudaSetDeviceFlags() says.
    /// Since 0.2.
    DeviceWait,
    /// `SHARDREC_OPTION_REPLICA_SYNC`: i64, shardrec_replica_sync: which rows [`Collection::sync_replicas`](crate::Collection::sync_replicas) and
    /// [`Collection::sync_begin`](crate::Collection::sync_begin) move. Default TOUCHED, for which a bit per row is kept where a mesh has several
    /// replicas. EXACT and SHARDED move none there; the same on all ranks. Since 0.2.
    ReplicaSync,
    /// `SHARDREC_OPTION_SYNC_EVERY`: i64, \>= 0: on a mesh, so many updates after each other end with a sync of the
    /// replicas, as [`Collection::sync_replicas`](crate::Collection::sync_replicas) is; see [`Collection::new`](crate::Collection::new). Default 0: none comes of
    /// itself; with REPLICA_SYNC EXACT and SHARDED others are INVALID_ARGUMENT; the same on all ranks. Since 0.2.
    SyncEvery,
    /// `SHARDREC_OPTION_BORROW`: i64, 0 or 1; 1: ids, weights and gradients are read in place and must stay until
    /// backward has returned; default 0.
    Borrow,
    /// `SHARDREC_OPTION_WEIGHT_GRADIENT`: i64, 0 or 1; 1: backward computes the gradients of the ids' weights; the
    /// same on all ranks; default 0.
    WeightGradient,
    /// `SHARDREC_OPTION_DDP_AVERAGE`: i64, 0: gradients are summed, 1 (default): averaged; kinds DDP and FSDP.
    DdpAverage,
    /// `SHARDREC_OPTION_DDP_BROADCAST`: i64, 1 (default): commit copies rank 0's parameters to all.
    DdpBroadcast,
    /// `SHARDREC_OPTION_DDP_FACTOR`: f64, finite; the sum or average is multiplied by it; default 1; kinds DDP and
    /// FSDP.
    DdpFactor,
    /// `SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES`: i64, \>= 1: the first bucket of each dtype is full from so many bytes
    /// of gradients on; default 2^20.
    DdpFirstBucketBytes,
    /// `SHARDREC_OPTION_DDP_BUCKET_BYTES`: i64, \>= 1: likewise the others; default 2^22.
    DdpBucketBytes,
    /// `SHARDREC_OPTION_DDP_ORDER`: i64, shardrec_ddp_order; default REVERSE.
    DdpOrder,
    /// `SHARDREC_OPTION_DDP_UNUSED`: i64, shardrec_unused; default ERROR.
    DdpUnused,
    /// `SHARDREC_OPTION_DDP_COMPRESSION`: i64, shardrec_compression, of FLOAT32 gradients on their way: NONE
    /// (default), FLOAT16 or BFLOAT16. Each rank's gradients are rounded, then added up in float32; where a bucket is
    /// added up in parts (more than two ranks, more than 256 KiB from a rank to all others together), the result,
    /// averaged, is rounded once more. With FLOAT16, where sums or DDP_FACTOR could exceed its range, that result is
    /// divided by a power of two before it is rounded and multiplied by it behind: sums of finite halves are finite.
    /// Gradients of other dtypes travel as they are.
    DdpCompression,
    /// `SHARDREC_OPTION_DDP_JOIN_DIVISOR`: i64, shardrec_join_divisor; default WORLD.
    DdpJoinDivisor,
    /// `SHARDREC_OPTION_DDP_STEP_IN_BACKWARD`: i64, 0 or 1; 1: each bucket's parameters are stepped as soon as their
    /// gradients are reduced; needs [`Ddp::set_optimizer`](crate::Ddp::set_optimizer); a step that fails may have changed some parameters;
    /// default 0.
    DdpStepInBackward,
    /// `SHARDREC_OPTION_DDP_THREAD`: i64, 0 or 1; 1: a thread of the library sends, adds up and writes buckets during
    /// backward; 0: [`DdpStep::end`](crate::DdpStep::end) sends all of them, [`DdpExchange::wait`](crate::DdpExchange::wait) does the rest. The same bits; ranks may
    /// differ. Default: 1 where this rank's part of the processors (see THREADS) is more than one, because a thread
    /// that takes the processor from backward hides no time.
    DdpThread,
    /// `SHARDREC_OPTION_DDP_REDUCTION`: i64, shardrec_ddp_reduction; default ORDERED. With NCCL, ranks add up in the
    /// dtype of the way, FLOAT32 gradients in that of DDP_COMPRESSION; then each rank averages in FLOAT32 (FLOAT64
    /// where gradients are) and rounds to the gradient's dtype. Numbers that are added up in FLOAT16 are divided
    /// before, when they have been rounded, by the least power of two that is not below the number of ranks, and
    /// multiplied by it behind, so that sums stay in range; those below 2^-14 times that power lose bits. commit says
    /// UNSUPPORTED where parameters are on the CPU, or where several ranks have no NCCL between their devices
    /// (ENGINE_NCCL, COMM_NCCL). Since 0.2.
    DdpReduction,
    /// `SHARDREC_OPTION_ACCUMULATE_GRADIENTS`: i64, 0 or 1; 1: [`MlpPass::backward`](crate::MlpPass::backward) adds to the gradients of the
    /// parameters; default 0.
    AccumulateGradients,
    /// `SHARDREC_OPTION_STREAM`: i64, the value of a cudaStream_t of the DEVICE, which lives as long as the handle
    /// and is not being captured: what a stack, an interaction, a metric, a DDP set or an FSDP set on a device does
    /// takes place in its order; default 0, the legacy default stream. Memory that it works on is given back behind
    /// that. Not looked at on the CPU. Kinds MLP, METRICS, DDP and FSDP. Since 0.2.
    Stream,
    /// `SHARDREC_OPTION_PRECISION`: i64, shardrec_precision; default FLOAT32. Since 0.2.
    Precision,
    /// `SHARDREC_OPTION_LOSS_SCALE`: f64, a power of two in \[1, 2^24\]: what gradients between layers are multiplied
    /// by at first; default 65536. Not looked at but with PRECISION FLOAT16. Since 0.2.
    LossScale,
    /// `SHARDREC_OPTION_LOSS_SCALE_STEPS`: i64, \>= 0: the scale is doubled after so many backwards in a row whose
    /// gradients are finite; 0: it is constant; default 2000. Not looked at but with PRECISION FLOAT16. Since 0.2.
    LossScaleSteps,
    /// `SHARDREC_OPTION_PLACEMENT`: i64, shardrec_placement; default INTRA_NODE_SYNC.
    Placement,
    /// `SHARDREC_OPTION_ENGINE`: i64, shardrec_engine; default: as the environment says; for
    /// [`Comm::from_env`](crate::Comm::from_env).
    Engine,
    /// `SHARDREC_OPTION_COMM_SETUP_SECONDS`: f64, \> 0: to meet in; default 1800.
    CommSetupSeconds,
    /// `SHARDREC_OPTION_INTERFACE`: text, name of a network interface ("eth1") or an address of this machine, for the
    /// connections of this rank over Gloo. Any other than loopback needs ALLOW_PLAIN_TCP, here or of a rendezvous
    /// that is reached over the network. Empty (default): the interface that reaches the rendezvous.
    Interface,
    /// `SHARDREC_OPTION_RANK_ZERO_SECONDS`: f64, \> 0: how much later than this rank rank 0 may come, for
    /// [`Comm::from_env`](crate::Comm::from_env): where its address is known and its machine answers, but nobody listens there
    /// for so long, rank 0 is lost (PEER_FAILED); default 60.
    RankZeroSeconds,
    /// `SHARDREC_OPTION_ADDRESS`: text, a name or an address of this machine to listen at; default 127.0.0.1. Any
    /// other than loopback needs SECRET and ALLOW_PLAIN_TCP (checked where it is used).
    Address,
    /// `SHARDREC_OPTION_PORT`: i64 in \[0, 65535\]; 0 (default): a free one.
    Port,
    /// `SHARDREC_OPTION_ADVERTISED_ADDRESS`: text, under which ranks find it; empty (default): as ADDRESS.
    AdvertisedAddress,
    /// `SHARDREC_OPTION_JOB`: text, name of the group: 1 to 64 letters, digits and -._~; empty (default): a random
    /// one.
    Job,
    /// `SHARDREC_OPTION_SECRET`: text, 16 to 128 letters, digits and -._~; empty (default): a random one of 128 bits.
    Secret,
    /// `SHARDREC_OPTION_ALLOW_PLAIN_TCP`: i64, 0 or 1; 1: other machines may take part, and what ranks send each
    /// other is clear text on the network; default 0; kinds RENDEZVOUS and COMM.
    AllowPlainTcp,
    /// `SHARDREC_OPTION_SILENCE_SECONDS`: f64 in \[0.1, 3600\]: a rank that is silent for so long, or that a rank's
    /// connection does not reach, is lost to the others; default 4.
    SilenceSeconds,
    /// `SHARDREC_OPTION_KEEP_LAST`: i64, \>= 0: checkpoints of the run that stay after a commit, the new one included;
    /// 0 (default): all. What a delta that stays is a change of stays, too: up to MOST_DELTAS more.
    KeepLast,
    /// `SHARDREC_OPTION_MOST_DELTAS`: i64 in \[0, 1000\]: deltas that follow a whole checkpoint before
    /// [`Checkpoint::commit_delta`](crate::Checkpoint::commit_delta) writes a whole one again, which those that stay (KEEP_LAST) no longer need;
    /// default 100. A load and the opening of a scorer read as many, an open and a commit their manifests. Since 0.2.
    MostDeltas,
    /// `SHARDREC_OPTION_DELTA_STATES`: i64, 0 or 1; 0: [`Checkpoint::commit_delta`](crate::Checkpoint::commit_delta) and _delta_begin leave the
    /// states of tables' optimizers out of deltas, for scorers; whole checkpoints have them. The same on all ranks;
    /// default 1. Since 0.2.
    DeltaStates,
    /// `SHARDREC_OPTION_SERVED_TABLES`: i64, shardrec_served_tables; default MEMORY.
    ServedTables,
    /// `SHARDREC_OPTION_SERVED_COLLECTION`: text, name of a collection in the checkpoint; empty (default): the only
    /// one, else that of the name "".
    ServedCollection,
    /// `SHARDREC_OPTION_BOTTOM_LAYERS`: text, name of the stack of layers of the dense input; empty (default):
    /// "bottom", where the checkpoint has it and it fits, else there is no dense half.
    BottomLayers,
    /// `SHARDREC_OPTION_TOP_LAYERS`: text, likewise of the stack behind the interaction; "top".
    TopLayers,
    /// `SHARDREC_OPTION_LOGITS`: i64, 0 or 1; 1: scores are what the top stack gives, without the sigmoid; default 0.
    Logits,
    /// `SHARDREC_OPTION_FSDP_STRATEGY`: i64, shardrec_fsdp_strategy; default FULL_SHARD. Since 0.2.
    FsdpStrategy,
    /// `SHARDREC_OPTION_FSDP_PREFETCH`: i64 in \[0, 4\]: units that are gathered before the host asks for them; each
    /// takes one more buffer of full parameters; default 1. 0 also leaves one buffer of full gradients of two. Since
    /// 0.2.
    FsdpPrefetch,
    /// `SHARDREC_OPTION_FSDP_HELD_UNITS`: i64 in \[1, 64\]: units that the host holds unsharded at once; default 1. Not
    /// looked at with SHARD_GRAD_OP. Since 0.2.
    FsdpHeldUnits,
    /// `SHARDREC_OPTION_FSDP_PARAMETER_DTYPE`: i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16, of full
    /// parameters and full gradients, and of parameters on their way. Shards are FLOAT32; rounded to nearest. Since
    /// 0.2.
    FsdpParameterDtype,
    /// `SHARDREC_OPTION_FSDP_REDUCE_DTYPE`: i64, shardrec_dtype: FLOAT32 (default), FLOAT16 or BFLOAT16, of gradients
    /// on their way to the rank that adds them up in FLOAT32; sums of sharding groups go to their replicas as
    /// FLOAT32. Finite gradients beyond float16's range become +-65504. Since 0.2.
    FsdpReduceDtype,
    /// `SHARDREC_OPTION_FSDP_OFFLOAD`: i64, 0 or 1; 1: full parameters and full gradients are on the DEVICE, and
    /// shards, their gradients and the optimizer's states in the host's memory, where the CPU adds up and steps. With
    /// a DEVICE, 0 (default) is UNSUPPORTED; without one, 1 is INVALID_ARGUMENT. Since 0.2.
    FsdpOffload,
}

impl OptionKey {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_option {
        match self {
            OptionKey::Optimizer => sys::SHARDREC_OPTION_OPTIMIZER,
            OptionKey::LearningRate => sys::SHARDREC_OPTION_LEARNING_RATE,
            OptionKey::Eps => sys::SHARDREC_OPTION_EPS,
            OptionKey::WeightDecay => sys::SHARDREC_OPTION_WEIGHT_DECAY,
            OptionKey::WeightDecayMode => sys::SHARDREC_OPTION_WEIGHT_DECAY_MODE,
            OptionKey::MaxGradient => sys::SHARDREC_OPTION_MAX_GRADIENT,
            OptionKey::Beta1 => sys::SHARDREC_OPTION_BETA1,
            OptionKey::Beta2 => sys::SHARDREC_OPTION_BETA2,
            OptionKey::RowStatistics => sys::SHARDREC_OPTION_ROW_STATISTICS,
            OptionKey::Momentum => sys::SHARDREC_OPTION_MOMENTUM,
            OptionKey::Eta => sys::SHARDREC_OPTION_ETA,
            OptionKey::MaxNorm => sys::SHARDREC_OPTION_MAX_NORM,
            OptionKey::MomentumScale => sys::SHARDREC_OPTION_MOMENTUM_SCALE,
            OptionKey::Dtype => sys::SHARDREC_OPTION_DTYPE,
            OptionKey::Init => sys::SHARDREC_OPTION_INIT,
            OptionKey::InitMin => sys::SHARDREC_OPTION_INIT_MIN,
            OptionKey::InitMax => sys::SHARDREC_OPTION_INIT_MAX,
            OptionKey::Rounding => sys::SHARDREC_OPTION_ROUNDING,
            OptionKey::OutOfRange => sys::SHARDREC_OPTION_OUT_OF_RANGE,
            OptionKey::AllowedSharding => sys::SHARDREC_OPTION_ALLOWED_SHARDING,
            OptionKey::AllowedRanks => sys::SHARDREC_OPTION_ALLOWED_RANKS,
            OptionKey::MinColumns => sys::SHARDREC_OPTION_MIN_COLUMNS,
            OptionKey::Sharding => sys::SHARDREC_OPTION_SHARDING,
            OptionKey::Replication => sys::SHARDREC_OPTION_REPLICATION,
            OptionKey::BatchSize => sys::SHARDREC_OPTION_BATCH_SIZE,
            OptionKey::BagLength => sys::SHARDREC_OPTION_BAG_LENGTH,
            OptionKey::Balance => sys::SHARDREC_OPTION_BALANCE,
            OptionKey::Seed => sys::SHARDREC_OPTION_SEED,
            OptionKey::Threads => sys::SHARDREC_OPTION_THREADS,
            OptionKey::GradientDivisor => sys::SHARDREC_OPTION_GRADIENT_DIVISOR,
            OptionKey::GradientDivisorValue => sys::SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE,
            OptionKey::Lookups => sys::SHARDREC_OPTION_LOOKUPS,
            OptionKey::OutputDtype => sys::SHARDREC_OPTION_OUTPUT_DTYPE,
            OptionKey::Deduplicate => sys::SHARDREC_OPTION_DEDUPLICATE,
            OptionKey::ForwardCompression => sys::SHARDREC_OPTION_FORWARD_COMPRESSION,
            OptionKey::BackwardCompression => sys::SHARDREC_OPTION_BACKWARD_COMPRESSION,
            OptionKey::Hierarchical => sys::SHARDREC_OPTION_HIERARCHICAL,
            OptionKey::Device => sys::SHARDREC_OPTION_DEVICE,
            OptionKey::NonFinite => sys::SHARDREC_OPTION_NON_FINITE,
            OptionKey::DeviceWait => sys::SHARDREC_OPTION_DEVICE_WAIT,
            OptionKey::ReplicaSync => sys::SHARDREC_OPTION_REPLICA_SYNC,
            OptionKey::SyncEvery => sys::SHARDREC_OPTION_SYNC_EVERY,
            OptionKey::Borrow => sys::SHARDREC_OPTION_BORROW,
            OptionKey::WeightGradient => sys::SHARDREC_OPTION_WEIGHT_GRADIENT,
            OptionKey::DdpAverage => sys::SHARDREC_OPTION_DDP_AVERAGE,
            OptionKey::DdpBroadcast => sys::SHARDREC_OPTION_DDP_BROADCAST,
            OptionKey::DdpFactor => sys::SHARDREC_OPTION_DDP_FACTOR,
            OptionKey::DdpFirstBucketBytes => sys::SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES,
            OptionKey::DdpBucketBytes => sys::SHARDREC_OPTION_DDP_BUCKET_BYTES,
            OptionKey::DdpOrder => sys::SHARDREC_OPTION_DDP_ORDER,
            OptionKey::DdpUnused => sys::SHARDREC_OPTION_DDP_UNUSED,
            OptionKey::DdpCompression => sys::SHARDREC_OPTION_DDP_COMPRESSION,
            OptionKey::DdpJoinDivisor => sys::SHARDREC_OPTION_DDP_JOIN_DIVISOR,
            OptionKey::DdpStepInBackward => sys::SHARDREC_OPTION_DDP_STEP_IN_BACKWARD,
            OptionKey::DdpThread => sys::SHARDREC_OPTION_DDP_THREAD,
            OptionKey::DdpReduction => sys::SHARDREC_OPTION_DDP_REDUCTION,
            OptionKey::AccumulateGradients => sys::SHARDREC_OPTION_ACCUMULATE_GRADIENTS,
            OptionKey::Stream => sys::SHARDREC_OPTION_STREAM,
            OptionKey::Precision => sys::SHARDREC_OPTION_PRECISION,
            OptionKey::LossScale => sys::SHARDREC_OPTION_LOSS_SCALE,
            OptionKey::LossScaleSteps => sys::SHARDREC_OPTION_LOSS_SCALE_STEPS,
            OptionKey::Placement => sys::SHARDREC_OPTION_PLACEMENT,
            OptionKey::Engine => sys::SHARDREC_OPTION_ENGINE,
            OptionKey::CommSetupSeconds => sys::SHARDREC_OPTION_COMM_SETUP_SECONDS,
            OptionKey::Interface => sys::SHARDREC_OPTION_INTERFACE,
            OptionKey::RankZeroSeconds => sys::SHARDREC_OPTION_RANK_ZERO_SECONDS,
            OptionKey::Address => sys::SHARDREC_OPTION_ADDRESS,
            OptionKey::Port => sys::SHARDREC_OPTION_PORT,
            OptionKey::AdvertisedAddress => sys::SHARDREC_OPTION_ADVERTISED_ADDRESS,
            OptionKey::Job => sys::SHARDREC_OPTION_JOB,
            OptionKey::Secret => sys::SHARDREC_OPTION_SECRET,
            OptionKey::AllowPlainTcp => sys::SHARDREC_OPTION_ALLOW_PLAIN_TCP,
            OptionKey::SilenceSeconds => sys::SHARDREC_OPTION_SILENCE_SECONDS,
            OptionKey::KeepLast => sys::SHARDREC_OPTION_KEEP_LAST,
            OptionKey::MostDeltas => sys::SHARDREC_OPTION_MOST_DELTAS,
            OptionKey::DeltaStates => sys::SHARDREC_OPTION_DELTA_STATES,
            OptionKey::ServedTables => sys::SHARDREC_OPTION_SERVED_TABLES,
            OptionKey::ServedCollection => sys::SHARDREC_OPTION_SERVED_COLLECTION,
            OptionKey::BottomLayers => sys::SHARDREC_OPTION_BOTTOM_LAYERS,
            OptionKey::TopLayers => sys::SHARDREC_OPTION_TOP_LAYERS,
            OptionKey::Logits => sys::SHARDREC_OPTION_LOGITS,
            OptionKey::FsdpStrategy => sys::SHARDREC_OPTION_FSDP_STRATEGY,
            OptionKey::FsdpPrefetch => sys::SHARDREC_OPTION_FSDP_PREFETCH,
            OptionKey::FsdpHeldUnits => sys::SHARDREC_OPTION_FSDP_HELD_UNITS,
            OptionKey::FsdpParameterDtype => sys::SHARDREC_OPTION_FSDP_PARAMETER_DTYPE,
            OptionKey::FsdpReduceDtype => sys::SHARDREC_OPTION_FSDP_REDUCE_DTYPE,
            OptionKey::FsdpOffload => sys::SHARDREC_OPTION_FSDP_OFFLOAD,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_option) -> Option<OptionKey> {
        match raw {
            sys::SHARDREC_OPTION_OPTIMIZER => Some(OptionKey::Optimizer),
            sys::SHARDREC_OPTION_LEARNING_RATE => Some(OptionKey::LearningRate),
            sys::SHARDREC_OPTION_EPS => Some(OptionKey::Eps),
            sys::SHARDREC_OPTION_WEIGHT_DECAY => Some(OptionKey::WeightDecay),
            sys::SHARDREC_OPTION_WEIGHT_DECAY_MODE => Some(OptionKey::WeightDecayMode),
            sys::SHARDREC_OPTION_MAX_GRADIENT => Some(OptionKey::MaxGradient),
            sys::SHARDREC_OPTION_BETA1 => Some(OptionKey::Beta1),
            sys::SHARDREC_OPTION_BETA2 => Some(OptionKey::Beta2),
            sys::SHARDREC_OPTION_ROW_STATISTICS => Some(OptionKey::RowStatistics),
            sys::SHARDREC_OPTION_MOMENTUM => Some(OptionKey::Momentum),
            sys::SHARDREC_OPTION_ETA => Some(OptionKey::Eta),
            sys::SHARDREC_OPTION_MAX_NORM => Some(OptionKey::MaxNorm),
            sys::SHARDREC_OPTION_MOMENTUM_SCALE => Some(OptionKey::MomentumScale),
            sys::SHARDREC_OPTION_DTYPE => Some(OptionKey::Dtype),
            sys::SHARDREC_OPTION_INIT => Some(OptionKey::Init),
            sys::SHARDREC_OPTION_INIT_MIN => Some(OptionKey::InitMin),
            sys::SHARDREC_OPTION_INIT_MAX => Some(OptionKey::InitMax),
            sys::SHARDREC_OPTION_ROUNDING => Some(OptionKey::Rounding),
            sys::SHARDREC_OPTION_OUT_OF_RANGE => Some(OptionKey::OutOfRange),
            sys::SHARDREC_OPTION_ALLOWED_SHARDING => Some(OptionKey::AllowedSharding),
            sys::SHARDREC_OPTION_ALLOWED_RANKS => Some(OptionKey::AllowedRanks),
            sys::SHARDREC_OPTION_MIN_COLUMNS => Some(OptionKey::MinColumns),
            sys::SHARDREC_OPTION_SHARDING => Some(OptionKey::Sharding),
            sys::SHARDREC_OPTION_REPLICATION => Some(OptionKey::Replication),
            sys::SHARDREC_OPTION_BATCH_SIZE => Some(OptionKey::BatchSize),
            sys::SHARDREC_OPTION_BAG_LENGTH => Some(OptionKey::BagLength),
            sys::SHARDREC_OPTION_BALANCE => Some(OptionKey::Balance),
            sys::SHARDREC_OPTION_SEED => Some(OptionKey::Seed),
            sys::SHARDREC_OPTION_THREADS => Some(OptionKey::Threads),
            sys::SHARDREC_OPTION_GRADIENT_DIVISOR => Some(OptionKey::GradientDivisor),
            sys::SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE => Some(OptionKey::GradientDivisorValue),
            sys::SHARDREC_OPTION_LOOKUPS => Some(OptionKey::Lookups),
            sys::SHARDREC_OPTION_OUTPUT_DTYPE => Some(OptionKey::OutputDtype),
            sys::SHARDREC_OPTION_DEDUPLICATE => Some(OptionKey::Deduplicate),
            sys::SHARDREC_OPTION_FORWARD_COMPRESSION => Some(OptionKey::ForwardCompression),
            sys::SHARDREC_OPTION_BACKWARD_COMPRESSION => Some(OptionKey::BackwardCompression),
            sys::SHARDREC_OPTION_HIERARCHICAL => Some(OptionKey::Hierarchical),
            sys::SHARDREC_OPTION_DEVICE => Some(OptionKey::Device),
            sys::SHARDREC_OPTION_NON_FINITE => Some(OptionKey::NonFinite),
            sys::SHARDREC_OPTION_DEVICE_WAIT => Some(OptionKey::DeviceWait),
            sys::SHARDREC_OPTION_REPLICA_SYNC => Some(OptionKey::ReplicaSync),
            sys::SHARDREC_OPTION_SYNC_EVERY => Some(OptionKey::SyncEvery),
            sys::SHARDREC_OPTION_BORROW => Some(OptionKey::Borrow),
            sys::SHARDREC_OPTION_WEIGHT_GRADIENT => Some(OptionKey::WeightGradient),
            sys::SHARDREC_OPTION_DDP_AVERAGE => Some(OptionKey::DdpAverage),
            sys::SHARDREC_OPTION_DDP_BROADCAST => Some(OptionKey::DdpBroadcast),
            sys::SHARDREC_OPTION_DDP_FACTOR => Some(OptionKey::DdpFactor),
            sys::SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES => Some(OptionKey::DdpFirstBucketBytes),
            sys::SHARDREC_OPTION_DDP_BUCKET_BYTES => Some(OptionKey::DdpBucketBytes),
            sys::SHARDREC_OPTION_DDP_ORDER => Some(OptionKey::DdpOrder),
            sys::SHARDREC_OPTION_DDP_UNUSED => Some(OptionKey::DdpUnused),
            sys::SHARDREC_OPTION_DDP_COMPRESSION => Some(OptionKey::DdpCompression),
            sys::SHARDREC_OPTION_DDP_JOIN_DIVISOR => Some(OptionKey::DdpJoinDivisor),
            sys::SHARDREC_OPTION_DDP_STEP_IN_BACKWARD => Some(OptionKey::DdpStepInBackward),
            sys::SHARDREC_OPTION_DDP_THREAD => Some(OptionKey::DdpThread),
            sys::SHARDREC_OPTION_DDP_REDUCTION => Some(OptionKey::DdpReduction),
            sys::SHARDREC_OPTION_ACCUMULATE_GRADIENTS => Some(OptionKey::AccumulateGradients),
            sys::SHARDREC_OPTION_STREAM => Some(OptionKey::Stream),
            sys::SHARDREC_OPTION_PRECISION => Some(OptionKey::Precision),
            sys::SHARDREC_OPTION_LOSS_SCALE => Some(OptionKey::LossScale),
            sys::SHARDREC_OPTION_LOSS_SCALE_STEPS => Some(OptionKey::LossScaleSteps),
            sys::SHARDREC_OPTION_PLACEMENT => Some(OptionKey::Placement),
            sys::SHARDREC_OPTION_ENGINE => Some(OptionKey::Engine),
            sys::SHARDREC_OPTION_COMM_SETUP_SECONDS => Some(OptionKey::CommSetupSeconds),
            sys::SHARDREC_OPTION_INTERFACE => Some(OptionKey::Interface),
            sys::SHARDREC_OPTION_RANK_ZERO_SECONDS => Some(OptionKey::RankZeroSeconds),
            sys::SHARDREC_OPTION_ADDRESS => Some(OptionKey::Address),
            sys::SHARDREC_OPTION_PORT => Some(OptionKey::Port),
            sys::SHARDREC_OPTION_ADVERTISED_ADDRESS => Some(OptionKey::AdvertisedAddress),
            sys::SHARDREC_OPTION_JOB => Some(OptionKey::Job),
            sys::SHARDREC_OPTION_SECRET => Some(OptionKey::Secret),
            sys::SHARDREC_OPTION_ALLOW_PLAIN_TCP => Some(OptionKey::AllowPlainTcp),
            sys::SHARDREC_OPTION_SILENCE_SECONDS => Some(OptionKey::SilenceSeconds),
            sys::SHARDREC_OPTION_KEEP_LAST => Some(OptionKey::KeepLast),
            sys::SHARDREC_OPTION_MOST_DELTAS => Some(OptionKey::MostDeltas),
            sys::SHARDREC_OPTION_DELTA_STATES => Some(OptionKey::DeltaStates),
            sys::SHARDREC_OPTION_SERVED_TABLES => Some(OptionKey::ServedTables),
            sys::SHARDREC_OPTION_SERVED_COLLECTION => Some(OptionKey::ServedCollection),
            sys::SHARDREC_OPTION_BOTTOM_LAYERS => Some(OptionKey::BottomLayers),
            sys::SHARDREC_OPTION_TOP_LAYERS => Some(OptionKey::TopLayers),
            sys::SHARDREC_OPTION_LOGITS => Some(OptionKey::Logits),
            sys::SHARDREC_OPTION_FSDP_STRATEGY => Some(OptionKey::FsdpStrategy),
            sys::SHARDREC_OPTION_FSDP_PREFETCH => Some(OptionKey::FsdpPrefetch),
            sys::SHARDREC_OPTION_FSDP_HELD_UNITS => Some(OptionKey::FsdpHeldUnits),
            sys::SHARDREC_OPTION_FSDP_PARAMETER_DTYPE => Some(OptionKey::FsdpParameterDtype),
            sys::SHARDREC_OPTION_FSDP_REDUCE_DTYPE => Some(OptionKey::FsdpReduceDtype),
            sys::SHARDREC_OPTION_FSDP_OFFLOAD => Some(OptionKey::FsdpOffload),
            _ => None,
        }
    }
}

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
/// The C API's `shardrec_engine`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Engine {
    /// `SHARDREC_ENGINE_GLOO`: TCP, by Gloo; needs no launcher; processes meet at a rendezvous.
    Gloo,
    /// `SHARDREC_ENGINE_MPI`: the MPI whose launcher (mpirun, srun) has started the processes.
    Mpi,
    /// `SHARDREC_ENGINE_NCCL`: between devices NVIDIA's NCCL, 2.19 or newer; what hosts say to each other goes by MPI
    /// where that has started the processes, else by Gloo.
    Nccl,
}

impl Engine {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_engine {
        match self {
            Engine::Gloo => sys::SHARDREC_ENGINE_GLOO,
            Engine::Mpi => sys::SHARDREC_ENGINE_MPI,
            Engine::Nccl => sys::SHARDREC_ENGINE_NCCL,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_engine) -> Option<Engine> {
        match raw {
            sys::SHARDREC_ENGINE_GLOO => Some(Engine::Gloo),
            sys::SHARDREC_ENGINE_MPI => Some(Engine::Mpi),
            sys::SHARDREC_ENGINE_NCCL => Some(Engine::Nccl),
            _ => None,
        }
    }
}

/// The C API's `shardrec_comm_property`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommProperty {
    /// `SHARDREC_COMM_STEP_SECONDS`: f64, \> 0, at most 1e9 (all three); deadline of barrier, collectives on tensors,
    /// begin, forward, backward, rows, layers' reductions; default 600.
    StepSeconds,
    /// `SHARDREC_COMM_SETUP_SECONDS`: f64, \> 0; deadline of create, split, commit, save, load; default 1800.
    SetupSeconds,
    /// `SHARDREC_COMM_WARN_SECONDS`: f64, \> 0; a wait this long logs the late rank; default 30.
    WarnSeconds,
    /// `SHARDREC_COMM_NCCL`: f64, 0 or 1; 1: NCCL carries what collections made from now on send between devices of
    /// ranks; the same on all ranks. Default 1 for ENGINE_NCCL, else 0: ranks of one process read each other's
    /// memory, processes of one machine copy from each other's devices where they can, others send through hosts.
    /// Meshes and what is split from a communicator have it as it is then.
    Nccl,
}

impl CommProperty {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_comm_property {
        match self {
            CommProperty::StepSeconds => sys::SHARDREC_COMM_STEP_SECONDS,
            CommProperty::SetupSeconds => sys::SHARDREC_COMM_SETUP_SECONDS,
            CommProperty::WarnSeconds => sys::SHARDREC_COMM_WARN_SECONDS,
            CommProperty::Nccl => sys::SHARDREC_COMM_NCCL,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_comm_property) -> Option<CommProperty> {
        match raw {
            sys::SHARDREC_COMM_STEP_SECONDS => Some(CommProperty::StepSeconds),
            sys::SHARDREC_COMM_SETUP_SECONDS => Some(CommProperty::SetupSeconds),
            sys::SHARDREC_COMM_WARN_SECONDS => Some(CommProperty::WarnSeconds),
            sys::SHARDREC_COMM_NCCL => Some(CommProperty::Nccl),
            _ => None,
        }
    }
}

/// The C API's `shardrec_reduction`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// `SHARDREC_REDUCTION_SUM`.
    Sum,
    /// `SHARDREC_REDUCTION_MIN`.
    Min,
    /// `SHARDREC_REDUCTION_MAX`.
    Max,
    /// `SHARDREC_REDUCTION_MEAN`: the sum divided by the number of ranks; floating point only.
    Mean,
}

impl Reduction {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_reduction {
        match self {
            Reduction::Sum => sys::SHARDREC_REDUCTION_SUM,
            Reduction::Min => sys::SHARDREC_REDUCTION_MIN,
            Reduction::Max => sys::SHARDREC_REDUCTION_MAX,
            Reduction::Mean => sys::SHARDREC_REDUCTION_MEAN,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_reduction) -> Option<Reduction> {
        match raw {
            sys::SHARDREC_REDUCTION_SUM => Some(Reduction::Sum),
            sys::SHARDREC_REDUCTION_MIN => Some(Reduction::Min),
            sys::SHARDREC_REDUCTION_MAX => Some(Reduction::Max),
            sys::SHARDREC_REDUCTION_MEAN => Some(Reduction::Mean),
            _ => None,
        }
    }
}

/// A rank's groups.
/// The C API's `shardrec_mesh_group`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MeshGroup {
    /// `SHARDREC_MESH_GROUP_SHARDING`: the ranks that hold one replica of all tables.
    Sharding,
    /// `SHARDREC_MESH_GROUP_REPLICA`: the ranks that hold the same boxes.
    Replica,
}

impl MeshGroup {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_mesh_group {
        match self {
            MeshGroup::Sharding => sys::SHARDREC_MESH_GROUP_SHARDING,
            MeshGroup::Replica => sys::SHARDREC_MESH_GROUP_REPLICA,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_mesh_group) -> Option<MeshGroup> {
        match raw {
            sys::SHARDREC_MESH_GROUP_SHARDING => Some(MeshGroup::Sharding),
            sys::SHARDREC_MESH_GROUP_REPLICA => Some(MeshGroup::Replica),
            _ => None,
        }
    }
}

/// How the rows of a bag become one vector. w is the id's weight, 1 where a batch has no weights.
/// The C API's `shardrec_pooling`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pooling {
    /// `SHARDREC_POOLING_SUM`: sum of w \* row.
    Sum,
    /// `SHARDREC_POOLING_MEAN`: sum of w \* row, divided by the bag's length; an empty bag is 0.
    Mean,
    /// `SHARDREC_POOLING_NONE`: a sequence: one row per id, in an output of its own; weights do not count.
    None,
}

impl Pooling {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_pooling {
        match self {
            Pooling::Sum => sys::SHARDREC_POOLING_SUM,
            Pooling::Mean => sys::SHARDREC_POOLING_MEAN,
            Pooling::None => sys::SHARDREC_POOLING_NONE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_pooling) -> Option<Pooling> {
        match raw {
            sys::SHARDREC_POOLING_SUM => Some(Pooling::Sum),
            sys::SHARDREC_POOLING_MEAN => Some(Pooling::Mean),
            sys::SHARDREC_POOLING_NONE => Some(Pooling::None),
            _ => None,
        }
    }
}

/// What of a table is read or written.
/// The C API's `shardrec_table_part`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TablePart {
    /// `SHARDREC_TABLE_WEIGHTS`: \[rows, dim\].
    Weights,
    /// `SHARDREC_TABLE_STATE`: the first state of the table's optimizer, float32: "sum" (AdaGrad, row-wise AdaGrad),
    /// "exp_avg" (Adam, LAMB and their partial forms), "momentum_buffer" (LARS); SGD has none: NOT_FOUND.
    State,
    /// `SHARDREC_TABLE_STATE_2`: the second one: "exp_avg_sq". A state of one value per element is \[rows, dim\]; one
    /// of one value per row (row-wise AdaGrad's sum, exp_avg_sq of the partial forms) is \[rows, 1\], with SHARD
    /// statistics \[rows, dim\], each column holding its box's value.
    State2,
}

impl TablePart {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_table_part {
        match self {
            TablePart::Weights => sys::SHARDREC_TABLE_WEIGHTS,
            TablePart::State => sys::SHARDREC_TABLE_STATE,
            TablePart::State2 => sys::SHARDREC_TABLE_STATE_2,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_table_part) -> Option<TablePart> {
        match raw {
            sys::SHARDREC_TABLE_WEIGHTS => Some(TablePart::Weights),
            sys::SHARDREC_TABLE_STATE => Some(TablePart::State),
            sys::SHARDREC_TABLE_STATE_2 => Some(TablePart::State2),
            _ => None,
        }
    }
}

/// What [`Collection::stat`](crate::Collection::stat) tells of this rank, since creation. Counts and bytes are whole numbers. The
/// counters of [`counters_text`](crate::counters_text) are the same: capi/NAMES.md.
/// The C API's `shardrec_stat`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stat {
    /// `SHARDREC_STAT_STEPS`: applied updates ([`Collection::step`](crate::Collection::step)).
    Steps,
    /// `SHARDREC_STAT_BYTES_TABLES`: memory of own boxes and their state.
    BytesTables,
    /// `SHARDREC_STAT_BYTES_BUFFERS`: memory of buffers: lookups, updates, operations.
    BytesBuffers,
    /// `SHARDREC_STAT_BYTES_INPUT`: sent to other ranks by input exchanges.
    BytesInput,
    /// `SHARDREC_STAT_BYTES_OUTPUT`: ... by output exchanges.
    BytesOutput,
    /// `SHARDREC_STAT_BYTES_GRADIENT`: ... by gradient exchanges.
    BytesGradient,
    /// `SHARDREC_STAT_IDS_SENT`: ids routed by this rank, own boxes included.
    IdsSent,
    /// `SHARDREC_STAT_IDS_RECEIVED`: ids looked up by this rank.
    IdsReceived,
    /// `SHARDREC_STAT_THREADS_SEEN`: most threads that worked at once in a kernel of this rank.
    ThreadsSeen,
    /// `SHARDREC_STAT_SATURATED`: finite numbers beyond float16's range that this rank sent as +-65504 (options
    /// FORWARD_COMPRESSION, BACKWARD_COMPRESSION: FLOAT16); not counted with a DEVICE other than the CPU. Since 0.2.
    Saturated,
    /// `SHARDREC_STAT_BYTES_SYNC`: sent to other replicas by syncs, and by steps with REPLICA_SYNC SHARDED. Since
    /// 0.2.
    BytesSync,
    /// `SHARDREC_STAT_ROWS_SYNCED`: rows of this rank's boxes that syncs have averaged, or with REPLICA_SYNC SHARDED
    /// steps have written here that other replicas updated; boxes side by side count once. Since 0.2.
    RowsSynced,
    /// `SHARDREC_STAT_SECONDS_ROUTE`: check and route ids (begin).
    SecondsRoute,
    /// `SHARDREC_STAT_SECONDS_INPUT_EXCHANGE`: waiting for and copying ids.
    SecondsInputExchange,
    /// `SHARDREC_STAT_SECONDS_INDEX_PLAN`: grouping ids by row.
    SecondsIndexPlan,
    /// `SHARDREC_STAT_SECONDS_LOOKUP`: reading rows.
    SecondsLookup,
    /// `SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE`: waiting for and adding partial sums.
    SecondsOutputExchange,
    /// `SHARDREC_STAT_SECONDS_GRADIENT`: scaling output gradients (set_gradient, backward).
    SecondsGradient,
    /// `SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE`: waiting for and copying gradients.
    SecondsGradientExchange,
    /// `SHARDREC_STAT_SECONDS_UPDATE`: summing gradients by row and optimizer steps.
    SecondsUpdate,
    /// `SHARDREC_STAT_IMBALANCE`: no time: ids looked up by the busiest rank / the mean of all ranks, 1 when even; up
    /// to the batch before, as the ranks tell each other with their batches.
    Imbalance,
    /// `SHARDREC_STAT_TABLE_OUT_OF_RANGE`: ids of this rank's batches outside \[0, rows) that were dropped or clamped
    /// (option OUT_OF_RANGE).
    TableOutOfRange,
    /// `SHARDREC_STAT_TABLE_IDS`: ids looked up in this rank's boxes; boxes side by side count once.
    TableIds,
    /// `SHARDREC_STAT_TABLE_ROWS_UPDATED`: rows of this rank's boxes that steps have updated: different rows of one
    /// step, summed over the steps.
    TableRowsUpdated,
    /// `SHARDREC_STAT_TABLE_NON_FINITE`: batches of this rank that were refused or skipped for a NaN or an infinity
    /// (option NON_FINITE), the first of which belongs to a feature of the table. Since 0.2.
    TableNonFinite,
}

impl Stat {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_stat {
        match self {
            Stat::Steps => sys::SHARDREC_STAT_STEPS,
            Stat::BytesTables => sys::SHARDREC_STAT_BYTES_TABLES,
            Stat::BytesBuffers => sys::SHARDREC_STAT_BYTES_BUFFERS,
            Stat::BytesInput => sys::SHARDREC_STAT_BYTES_INPUT,
            Stat::BytesOutput => sys::SHARDREC_STAT_BYTES_OUTPUT,
            Stat::BytesGradient => sys::SHARDREC_STAT_BYTES_GRADIENT,
            Stat::IdsSent => sys::SHARDREC_STAT_IDS_SENT,
            Stat::IdsReceived => sys::SHARDREC_STAT_IDS_RECEIVED,
            Stat::ThreadsSeen => sys::SHARDREC_STAT_THREADS_SEEN,
            Stat::Saturated => sys::SHARDREC_STAT_SATURATED,
            Stat::BytesSync => sys::SHARDREC_STAT_BYTES_SYNC,
            Stat::RowsSynced => sys::SHARDREC_STAT_ROWS_SYNCED,
            Stat::SecondsRoute => sys::SHARDREC_STAT_SECONDS_ROUTE,
            Stat::SecondsInputExchange => sys::SHARDREC_STAT_SECONDS_INPUT_EXCHANGE,
            Stat::SecondsIndexPlan => sys::SHARDREC_STAT_SECONDS_INDEX_PLAN,
            Stat::SecondsLookup => sys::SHARDREC_STAT_SECONDS_LOOKUP,
            Stat::SecondsOutputExchange => sys::SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE,
            Stat::SecondsGradient => sys::SHARDREC_STAT_SECONDS_GRADIENT,
            Stat::SecondsGradientExchange => sys::SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE,
            Stat::SecondsUpdate => sys::SHARDREC_STAT_SECONDS_UPDATE,
            Stat::Imbalance => sys::SHARDREC_STAT_IMBALANCE,
            Stat::TableOutOfRange => sys::SHARDREC_STAT_TABLE_OUT_OF_RANGE,
            Stat::TableIds => sys::SHARDREC_STAT_TABLE_IDS,
            Stat::TableRowsUpdated => sys::SHARDREC_STAT_TABLE_ROWS_UPDATED,
            Stat::TableNonFinite => sys::SHARDREC_STAT_TABLE_NON_FINITE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_stat) -> Option<Stat> {
        match raw {
            sys::SHARDREC_STAT_STEPS => Some(Stat::Steps),
            sys::SHARDREC_STAT_BYTES_TABLES => Some(Stat::BytesTables),
            sys::SHARDREC_STAT_BYTES_BUFFERS => Some(Stat::BytesBuffers),
            sys::SHARDREC_STAT_BYTES_INPUT => Some(Stat::BytesInput),
            sys::SHARDREC_STAT_BYTES_OUTPUT => Some(Stat::BytesOutput),
            sys::SHARDREC_STAT_BYTES_GRADIENT => Some(Stat::BytesGradient),
            sys::SHARDREC_STAT_IDS_SENT => Some(Stat::IdsSent),
            sys::SHARDREC_STAT_IDS_RECEIVED => Some(Stat::IdsReceived),
            sys::SHARDREC_STAT_THREADS_SEEN => Some(Stat::ThreadsSeen),
            sys::SHARDREC_STAT_SATURATED => Some(Stat::Saturated),
            sys::SHARDREC_STAT_BYTES_SYNC => Some(Stat::BytesSync),
            sys::SHARDREC_STAT_ROWS_SYNCED => Some(Stat::RowsSynced),
            sys::SHARDREC_STAT_SECONDS_ROUTE => Some(Stat::SecondsRoute),
            sys::SHARDREC_STAT_SECONDS_INPUT_EXCHANGE => Some(Stat::SecondsInputExchange),
            sys::SHARDREC_STAT_SECONDS_INDEX_PLAN => Some(Stat::SecondsIndexPlan),
            sys::SHARDREC_STAT_SECONDS_LOOKUP => Some(Stat::SecondsLookup),
            sys::SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE => Some(Stat::SecondsOutputExchange),
            sys::SHARDREC_STAT_SECONDS_GRADIENT => Some(Stat::SecondsGradient),
            sys::SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE => Some(Stat::SecondsGradientExchange),
            sys::SHARDREC_STAT_SECONDS_UPDATE => Some(Stat::SecondsUpdate),
            sys::SHARDREC_STAT_IMBALANCE => Some(Stat::Imbalance),
            sys::SHARDREC_STAT_TABLE_OUT_OF_RANGE => Some(Stat::TableOutOfRange),
            sys::SHARDREC_STAT_TABLE_IDS => Some(Stat::TableIds),
            sys::SHARDREC_STAT_TABLE_ROWS_UPDATED => Some(Stat::TableRowsUpdated),
            sys::SHARDREC_STAT_TABLE_NON_FINITE => Some(Stat::TableNonFinite),
            _ => None,
        }
    }
}

/// What a batch does to the tables when it ends ([`Lookup::backward`](crate::Lookup::backward)).
/// The C API's `shardrec_update`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Update {
    /// `SHARDREC_UPDATE_APPLY`: one optimizer step with its gradients and those that were kept.
    Apply,
    /// `SHARDREC_UPDATE_ACCUMULATE`: its gradients are kept for the next step that is applied.
    Accumulate,
    /// `SHARDREC_UPDATE_SKIP`: no rank applies a step.
    Skip,
}

impl Update {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_update {
        match self {
            Update::Apply => sys::SHARDREC_UPDATE_APPLY,
            Update::Accumulate => sys::SHARDREC_UPDATE_ACCUMULATE,
            Update::Skip => sys::SHARDREC_UPDATE_SKIP,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_update) -> Option<Update> {
        match raw {
            sys::SHARDREC_UPDATE_APPLY => Some(Update::Apply),
            sys::SHARDREC_UPDATE_ACCUMULATE => Some(Update::Accumulate),
            sys::SHARDREC_UPDATE_SKIP => Some(Update::Skip),
            _ => None,
        }
    }
}

/// What [`Ddp::clip_gradients`](crate::Ddp::clip_gradients) bounds.
/// The C API's `shardrec_clip`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clip {
    /// `SHARDREC_CLIP_L2`: the root of the sum of all squares, summed in float64.
    L2,
    /// `SHARDREC_CLIP_INFINITY`: the largest magnitude, by scaling all gradients.
    Infinity,
    /// `SHARDREC_CLIP_VALUE`: each element by itself.
    Value,
}

impl Clip {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_clip {
        match self {
            Clip::L2 => sys::SHARDREC_CLIP_L2,
            Clip::Infinity => sys::SHARDREC_CLIP_INFINITY,
            Clip::Value => sys::SHARDREC_CLIP_VALUE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_clip) -> Option<Clip> {
        match raw {
            sys::SHARDREC_CLIP_L2 => Some(Clip::L2),
            sys::SHARDREC_CLIP_INFINITY => Some(Clip::Infinity),
            sys::SHARDREC_CLIP_VALUE => Some(Clip::Value),
            _ => None,
        }
    }
}

/// What [`Fsdp::shard`](crate::Fsdp::shard), _full and _set_full are of.
/// The C API's `shardrec_fsdp_array`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FsdpArray {
    /// `SHARDREC_FSDP_VALUES`.
    Values,
    /// `SHARDREC_FSDP_GRADIENT`.
    Gradient,
    /// `SHARDREC_FSDP_STATE`: SHARDREC_FSDP_STATE + s: state s of the optimizer, as [`Ddp::state`](crate::Ddp::state) numbers them.
    State,
}

impl FsdpArray {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_fsdp_array {
        match self {
            FsdpArray::Values => sys::SHARDREC_FSDP_VALUES,
            FsdpArray::Gradient => sys::SHARDREC_FSDP_GRADIENT,
            FsdpArray::State => sys::SHARDREC_FSDP_STATE,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_fsdp_array) -> Option<FsdpArray> {
        match raw {
            sys::SHARDREC_FSDP_VALUES => Some(FsdpArray::Values),
            sys::SHARDREC_FSDP_GRADIENT => Some(FsdpArray::Gradient),
            sys::SHARDREC_FSDP_STATE => Some(FsdpArray::State),
            _ => None,
        }
    }
}

/// The C API's `shardrec_activation`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Activation {
    /// `SHARDREC_ACTIVATION_NONE`.
    None,
    /// `SHARDREC_ACTIVATION_RELU`.
    Relu,
}

impl Activation {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_activation {
        match self {
            Activation::None => sys::SHARDREC_ACTIVATION_NONE,
            Activation::Relu => sys::SHARDREC_ACTIVATION_RELU,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_activation) -> Option<Activation> {
        match raw {
            sys::SHARDREC_ACTIVATION_NONE => Some(Activation::None),
            sys::SHARDREC_ACTIVATION_RELU => Some(Activation::Relu),
            _ => None,
        }
    }
}

/// What a layer computes from its input x, row by row of the batch. All but LINEAR have as many outputs
/// as inputs. x W^T is a matrix product; \* multiplies element by element.
/// The C API's `shardrec_layer_kind`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LayerKind {
    /// `SHARDREC_LAYER_LINEAR`: y = activation(x W^T + b).
    Linear,
    /// `SHARDREC_LAYER_CROSS`: y = x0 \* (x W^T + b) + x, of DCN-v2 (Wang et al. 2021).
    Cross,
    /// `SHARDREC_LAYER_LAYER_NORM`: y = (x - mean) / sqrt(variance + epsilon) \* w + b (Ba et al. 2016).
    LayerNorm,
    /// `SHARDREC_LAYER_DROPOUT`: y = 0 with probability rate, else x / (1 - rate) (Srivastava et al. 2014).
    Dropout,
}

impl LayerKind {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_layer_kind {
        match self {
            LayerKind::Linear => sys::SHARDREC_LAYER_LINEAR,
            LayerKind::Cross => sys::SHARDREC_LAYER_CROSS,
            LayerKind::LayerNorm => sys::SHARDREC_LAYER_LAYER_NORM,
            LayerKind::Dropout => sys::SHARDREC_LAYER_DROPOUT,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_layer_kind) -> Option<LayerKind> {
        match raw {
            sys::SHARDREC_LAYER_LINEAR => Some(LayerKind::Linear),
            sys::SHARDREC_LAYER_CROSS => Some(LayerKind::Cross),
            sys::SHARDREC_LAYER_LAYER_NORM => Some(LayerKind::LayerNorm),
            sys::SHARDREC_LAYER_DROPOUT => Some(LayerKind::Dropout),
            _ => None,
        }
    }
}

/// A number of a stack that can be changed.
/// The C API's `shardrec_mlp_setting`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MlpSetting {
    /// `SHARDREC_MLP_LEARNING_RATE`: finite, \>= 0; of the next step.
    LearningRate,
    /// `SHARDREC_MLP_TRAINING`: 1 (at first) or 0; 0 for evaluation: dropout layers give their input.
    Training,
}

impl MlpSetting {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_mlp_setting {
        match self {
            MlpSetting::LearningRate => sys::SHARDREC_MLP_LEARNING_RATE,
            MlpSetting::Training => sys::SHARDREC_MLP_TRAINING,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_mlp_setting) -> Option<MlpSetting> {
        match raw {
            sys::SHARDREC_MLP_LEARNING_RATE => Some(MlpSetting::LearningRate),
            sys::SHARDREC_MLP_TRAINING => Some(MlpSetting::Training),
            _ => None,
        }
    }
}

/// The C API's `shardrec_metric`.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Metric {
    /// `SHARDREC_METRIC_AUC`: area under the ROC curve, exact, ties count one half; NOT_FOUND when all labels are
    /// equal.
    Auc,
    /// `SHARDREC_METRIC_NE`: mean cross-entropy / entropy of the base rate (He et al. 2014); NOT_FOUND when all
    /// labels are equal.
    Ne,
    /// `SHARDREC_METRIC_LOSS`: mean binary cross-entropy, nats.
    Loss,
    /// `SHARDREC_METRIC_CTR`: mean label; NOT_FOUND without samples.
    Ctr,
    /// `SHARDREC_METRIC_SAMPLES`: number of samples, all ranks.
    Samples,
    /// `SHARDREC_METRIC_SAMPLES_PER_SECOND`: samples of all ranks / seconds from create or reset to compute.
    SamplesPerSecond,
}

impl Metric {
    /// The number that the C API and options of integers have for it.
    pub const fn value(self) -> i64 {
        self.raw().0 as i64
    }

    #[allow(dead_code)]
    pub(crate) const fn raw(self) -> sys::shardrec_metric {
        match self {
            Metric::Auc => sys::SHARDREC_METRIC_AUC,
            Metric::Ne => sys::SHARDREC_METRIC_NE,
            Metric::Loss => sys::SHARDREC_METRIC_LOSS,
            Metric::Ctr => sys::SHARDREC_METRIC_CTR,
            Metric::Samples => sys::SHARDREC_METRIC_SAMPLES,
            Metric::SamplesPerSecond => sys::SHARDREC_METRIC_SAMPLES_PER_SECOND,
        }
    }

    /// None: of a later release.
    #[allow(dead_code)]
    pub(crate) fn of(raw: sys::shardrec_metric) -> Option<Metric> {
        match raw {
            sys::SHARDREC_METRIC_AUC => Some(Metric::Auc),
            sys::SHARDREC_METRIC_NE => Some(Metric::Ne),
            sys::SHARDREC_METRIC_LOSS => Some(Metric::Loss),
            sys::SHARDREC_METRIC_CTR => Some(Metric::Ctr),
            sys::SHARDREC_METRIC_SAMPLES => Some(Metric::Samples),
            sys::SHARDREC_METRIC_SAMPLES_PER_SECOND => Some(Metric::SamplesPerSecond),
            _ => None,
        }
    }
}
