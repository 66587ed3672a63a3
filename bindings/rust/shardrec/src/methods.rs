// Made by bindings/tools/rust_methods.py from bindings/shardrec.i; do not edit.
//! The functions of the C API as methods of their handles.

// SAFETY of every call below: handles are tickets of any value; tensors, texts and out-parameters outlive
// the call, and the library keeps none of them.

use shardrec_sys as sys;

use crate::enums::{Capability, Clip, CommProperty, DeviceType, Dtype, Engine, LogLevel, MeshGroup, Metric, MlpSetting, Optimizer, Pooling, Reduction, Replication, Stat, TablePart, Update};
use crate::error::{c_text, check, take_text, taken, Result};
use crate::ddp::Ddp;
use crate::handles::{Checkpoint, Collection, Comm, Control, Fsdp, Interaction, Local, Lookup, Memory, Mesh, Metrics, Mlp, Model, Plan, Rendezvous, Scorer, Topology};
use crate::option_types::{CheckpointOptions, CollectionOptions, CommOptions, FsdpOptions, LookupOptions, MeshOptions, MetricsOptions, MlpOptions, OptimizerOptions, PlanOptions, RendezvousOptions, ScorerOptions, TableOptions};
use crate::options::with;
use crate::tensor::{View, ViewMut};

/// What [`available`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// See there.
    pub available: bool,
    /// See there.
    pub reason: String,
}

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
/// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
pub fn capabilities_json() -> Result<String> {
    take_text(|out| unsafe { sys::shardrec_capabilities_json(out) })
}

/// Whether this library has something on this machine: 1 or 0. Plug-ins are loaded to see; no device is used.
/// name: as [`capabilities_json`](crate::capabilities_json) lists it; a name that nobody knows is not available either.
/// May be None. Why not, and what to install or what
/// there is; an empty text where it is available.
/// Errors: INVALID_ARGUMENT (the kind; SHARDREC_CPU_TARGET, as [`capabilities_json`](crate::capabilities_json)), OUT_OF_MEMORY.
/// Any thread. Since 0.2.
pub fn available(kind: Capability, name: &str) -> Result<Available> {
    let name = c_text(name)?;
    let mut out_available = 0i32;
    let mut out_reason = std::ptr::null_mut();
    check(unsafe { sys::shardrec_available(kind.raw(), name.as_ptr(), &mut out_available, &mut out_reason) })?;
    Ok(Available { available: out_available != 0, reason: unsafe { taken(out_reason) } })
}

/// Handles of any kind that are open in this process, or closed with a call still inside.
/// A test suite asserts that it ends at 0. Errors: INVALID_ARGUMENT. Any thread. Since 0.1.
pub fn live_objects() -> Result<i64> {
    let mut out = 0i64;
    check(unsafe { sys::shardrec_live_objects(&mut out) })?;
    Ok(out)
}

/// Maps raw ids to rows of a table: out\[i\] = [`hash64`](crate::hash64)(seed, the 8 bytes of ids\[i\] as int64_t,
/// little-endian, 8) modulo rows, taken as unsigned. rows 0: the hash itself, its 64 bits as int64_t.
/// ids: compact, one dimension, INT64 or INT32 (which hash as the same numbers in 64 bits). rows \>= 0.
/// out: as long, INT64, or INT32 where rows is in \[1, 2^31\]; may be the memory of ids where the dtypes
/// agree, must not overlap it otherwise. Errors: INVALID_ARGUMENT, UNSUPPORTED (device). Any thread.
/// Since 0.1.
pub fn hash64_ids(seed: u64, ids: View<'_>, rows: i64, out: ViewMut<'_>) -> Result<()> {
    check(unsafe { sys::shardrec_hash64_ids(seed, &ids.raw, rows, &out.raw) })
}

/// Messages below level are not recorded; default WARNING. Errors: INVALID_ARGUMENT. Any thread.
/// Since 0.1.
pub fn set_log_level(level: LogLevel) -> Result<()> {
    check(unsafe { sys::shardrec_log_set_level(level.raw()) })
}

/// Sigmoid and binary cross-entropy, averaged over the batch, on the CPU or where a stack is.
/// stack: None, or one on the CPU: on the CPU. A stack on a device: there, in the order of its stream;
/// matrices may each be on that device or on the CPU. The bits are the same.
/// logits, labels (0 .. 1), probabilities and gradient: FLOAT32, compact, \[batch\] or \[batch, 1\];
/// probabilities and gradient may be None. gradient = (sigmoid(logit) - label) / batch.
/// out_loss: the mean in nats (0 for an empty batch), for which the call waits on a device.
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
pub fn bce_with_logits(stack: Option<&Mlp>, logits: View<'_>, labels: View<'_>, probabilities: Option<ViewMut<'_>>, gradient: Option<ViewMut<'_>>) -> Result<f64> {
    let mut out_loss = 0f64;
    check(unsafe { sys::shardrec_bce_with_logits(stack.map_or(std::ptr::null_mut(), |handle| handle.0), &logits.raw, &labels.raw, probabilities.as_ref().map_or(std::ptr::null(), |view| &view.raw), gradient.as_ref().map_or(std::ptr::null(), |view| &view.raw), &mut out_loss) })?;
    Ok(out_loss)
}

/// The checkpoints below a directory, as JSON, in the order in which they were committed.
/// "version"                     integer: 1
/// "latest"                      integer or null: the step that LATEST names
/// "checkpoints\[\].step"          integer
/// "checkpoints\[\].directory"     text: its name below the directory; "" for one that is the directory
/// "checkpoints\[\].bytes"         integer: of its files
/// "checkpoints\[\].commit"        integer: number of the commit in its run
/// "checkpoints\[\].base"          optional integer: of a delta, the commit that it is a change of
/// "checkpoints\[\].states"        boolean: false of a delta that leaves optimizers' states out (DELTA_STATES)
/// Reads manifests only; what is no checkpoint is left out.
/// Any thread. Errors: INVALID_ARGUMENT, NOT_FOUND (no such directory), IO_ERROR, OUT_OF_MEMORY. Since 0.1.
pub fn checkpoint_list_json(directory: &str) -> Result<String> {
    let directory = c_text(directory)?;
    take_text(|out| unsafe { sys::shardrec_checkpoint_list_json(directory.as_ptr(), out) })
}

/// Counters of all open communicators and collections of this process in Prometheus' text exposition
/// format (text/plain; version=0.0.4): families shardrec_\*, counters with the suffix _total, times in
/// seconds, sizes in bytes. The names of families and phases, their labels and units: capi/NAMES.md. The
/// time of phases is the host's, and of collections on a device that of its stream, from phase to phase
/// without what the caller's stream holds up, counted from the first
/// shardrec_collection_stat on that reads one; the last phases count when they are over there. Families are
/// added by later releases and keep their names. Errors: INVALID_ARGUMENT,
/// OUT_OF_MEMORY. Not blocking; any thread, also while steps run. Since 0.1.
pub fn counters_text() -> Result<String> {
    take_text(|out| unsafe { sys::shardrec_counters_text(out) })
}

/// Starts the trace of this process: the phases of the steps of all its ranks, from now on. A trace that
/// was taken before is forgotten.
/// events: how many are kept, in \[1, 2^24\], of 40 bytes each, allocated at once; when there are more,
/// the oldest are dropped. A training step has about 14 on each rank, and 30 more where that is on a device.
/// Off (the default), an event costs a few instructions; on, about 0.1 us, and on a device what a CUDA event costs.
/// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
pub fn trace_start(events: i64) -> Result<()> {
    check(unsafe { sys::shardrec_trace_start(events) })
}

/// Ends the trace; what was recorded stays until the next start. Never fails. Any thread. Since 0.1.
pub fn trace_stop() {
    unsafe { sys::shardrec_trace_stop() }
}

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
/// one trace.
/// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. Since 0.1.
pub fn trace_json() -> Result<String> {
    take_text(|out| unsafe { sys::shardrec_trace_json(out) })
}

/// Measures what memory does, or reads what was measured.
/// device: None or "cpu": this machine's. Copies, gathers of random rows and updates of rows by row size,
/// with one thread and with `threads`: which prefetch, distance, page size and kind of stores is fastest,
/// and how fast. Stores the profile in the cache, unless other work disturbed it ("quiet" is then false);
/// where it cannot be stored, it is returned all the same, with a warning in the log. Takes about 2.5 s
/// and, depending on the caches, 0.6 to 2.5 GiB of memory, at most a sixth of the machine's.
/// "cuda:0", in \[0, 1023\]; "cuda" is "cuda:0": that CUDA device's, whose document stands above.
/// Machine and device should have no other work.
/// threads: in \[0, 4096\]; 0: all processors that this process may use. Of a device, and with cached, 0.
/// cached: 1: this machine's profile as it stands in the cache, without a measurement. Of a device that is
/// UNSUPPORTED.
/// control: progress and cancellation, None for none.
/// JSON. GB/s are bytes read and written, in 1e9 a second.
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
pub fn probe_json(device: Option<&str>, threads: i32, cached: bool, control: Option<&Control>) -> Result<String> {
    let device = device.map(c_text).transpose()?;
    take_text(|out| unsafe { sys::shardrec_probe_json(device.as_ref().map_or(std::ptr::null(), |text| text.as_ptr()), threads, cached.into(), control.map_or(std::ptr::null_mut(), |control| control.0), out) })
}

/// What [`Control::progress`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlProgress {
    /// See there.
    pub done: i64,
    /// See there.
    pub total: i64,
}

impl Control {
    /// Makes a control. options: None (no kind of options is for controls yet). It may
    /// serve one call after another (progress starts anew with each). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn new() -> Result<Control> {
        Control::made_by(|out| unsafe { sys::shardrec_control_create(std::ptr::null(), out) })
    }

    /// Asks the work to end with CANCELLED; it does so at its next block of about a MiB. Later work with
    /// this control is cancelled too. Errors: INVALID_HANDLE, CLOSED. Since 0.1.
    pub fn cancel(&self) -> Result<()> {
        check(unsafe { sys::shardrec_control_cancel(self.0) })
    }

    /// Bytes done and bytes in all of the work at hand; 0, 0 before it starts.
    /// Errors: INVALID_HANDLE, CLOSED. Since 0.1.
    pub fn progress(&self) -> Result<ControlProgress> {
        let mut out_done = 0i64;
        let mut out_total = 0i64;
        check(unsafe { sys::shardrec_control_progress(self.0, &mut out_done, &mut out_total) })?;
        Ok(ControlProgress { done: out_done, total: out_total })
    }
}

impl Memory {
    /// Allocates memory, all zeros when the call returns, for work in any stream. type: SHARDREC_DEVICE_CUDA,
    /// or SHARDREC_DEVICE_CPU: memory that devices copy from and to without another copy, where the CUDA plug-in
    /// and its driver are there and have room for it, and plain memory elsewhere. It takes a context of CUDA,
    /// which a process has of each device that it has used, and of device 0 where there is none: make it after
    /// the collection where ranks have devices of their own. device_id: 0 on the CPU. bytes: 0 or more; it begins
    /// at a multiple of 64 bytes, on a device of 256.
    /// Errors: UNSUPPORTED (no CUDA plug-in), INVALID_ARGUMENT (no such device, an unknown type, negative
    /// bytes), OUT_OF_MEMORY, DEVICE_ERROR. May block while the device begins to be used. Since 0.1.
    pub fn new(kind: DeviceType, device_id: i32, bytes: i64) -> Result<Memory> {
        Memory::made_by(|out| unsafe { sys::shardrec_memory_create(kind.raw(), device_id, bytes, std::ptr::null(), out) })
    }
}

impl Local {
    /// Makes a group of `ranks` ranks inside this process, ranks_per_node of which count as one node
    /// (rank r is on node r / ranks_per_node; the last node may be smaller).
    /// ranks in \[1, 1024\], ranks_per_node in \[1, ranks\]. options: None (no kind of options is for groups yet).
    /// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn new(ranks: i32, ranks_per_node: i32) -> Result<Local> {
        Local::made_by(|out| unsafe { sys::shardrec_local_create(ranks, ranks_per_node, std::ptr::null(), out) })
    }
}

impl Comm {
    /// Joins the group as `rank`. Does not wait for the others: the first collective call does.
    /// rank in \[0, ranks), each at most once per group. options: None (those of kind COMM are for processes;
    /// deadlines are set by [`Comm::set`](crate::Comm::set)).
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, INVALID_STATE (the rank is taken), OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn join(group: &Local, rank: i32) -> Result<Comm> {
        Comm::made_by(|out| unsafe { sys::shardrec_comm_create_local(group.0, rank, std::ptr::null(), out) })
    }

    /// Joins a group of ranks that are processes, or several in one process each on a thread of its own.
    /// Collective, blocking: returns when every rank has come, at most after the option
    /// COMM_SETUP_SECONDS.
    /// rank in \[0, size), size in \[1, 4096\]. token: UTF-8, of the rendezvous (rendezvous.h). Of
    /// ENGINE_MPI token is None, and rank and size are what the launcher said, or -1 both. ENGINE_NCCL: as ENGINE_MPI
    /// where token is None, else as ENGINE_GLOO.
    /// options: kind COMM, None: defaults.
    /// Errors: INVALID_ARGUMENT (also: another group's token) and UNSUPPORTED (the plug-in is missing, or
    /// cannot be used here: the sentence names the package), both on this rank only; TIMEOUT, naming the ranks
    /// that have not come; on all ranks MISMATCH (other sizes), INVALID_STATE (a rank joined twice), PEER_FAILED (a
    /// rank is gone); IO_ERROR (the system gives no random numbers); OUT_OF_MEMORY. Since 0.1.
    pub fn new(engine: Engine, rank: i32, size: i32, token: Option<&str>, options: Option<&CommOptions>) -> Result<Comm> {
        let token = token.map(c_text).transpose()?;
        with(options.map(|o| &o.0), |made| Comm::made_by(|out| unsafe { sys::shardrec_comm_create(engine.raw(), rank, size, token.as_ref().map_or(std::ptr::null(), |text| text.as_ptr()), made, out) }))
    }

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
    /// Errors: as [`Comm::new`](crate::Comm::new); INVALID_ARGUMENT names the variable. Since 0.1.
    pub fn from_env(options: Option<&CommOptions>) -> Result<Comm> {
        with(options.map(|o| &o.0), |made| Comm::made_by(|out| unsafe { sys::shardrec_comm_create_from_env(made, out) }))
    }

    /// This rank's number and the number of ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT.
    /// Any thread. Since 0.1.
    pub fn rank(&self) -> Result<i32> {
        let mut out = 0i32;
        check(unsafe { sys::shardrec_comm_rank(self.0, &mut out) })?;
        Ok(out)
    }

    /// See [`Comm::rank`](crate::Comm::rank).
    pub fn size(&self) -> Result<i32> {
        let mut out = 0i32;
        check(unsafe { sys::shardrec_comm_size(self.0, &mut out) })?;
        Ok(out)
    }

    /// Changes a property of this rank's communicator for later calls, such as a deadline.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT; of COMM_NCCL UNSUPPORTED (NCCL or its plug-in is missing or too
    /// old: the sentence says what to install). Any thread. Since 0.1.
    pub fn set(&self, key: CommProperty, value: f64) -> Result<()> {
        check(unsafe { sys::shardrec_comm_set_f64(self.0, key.raw(), value) })
    }

    /// See [`Comm::set`](crate::Comm::set).
    pub fn get(&self, key: CommProperty) -> Result<f64> {
        let mut out = 0f64;
        check(unsafe { sys::shardrec_comm_get_f64(self.0, key.raw(), &mut out) })?;
        Ok(out)
    }

    /// OK while the communicator lives; the status that killed it afterwards (its sentence becomes this
    /// thread's error). Any thread. Since 0.1.
    pub fn check(&self) -> Result<()> {
        check(unsafe { sys::shardrec_comm_status(self.0) })
    }

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
    /// Also of a communicator that is dead or closed. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Not
    /// blocking; any thread, also while another waits. Since 0.1.
    pub fn operations_json(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_comm_operations_json(self.0, out) })
    }

    /// Returns when every rank has called it. Collective, blocking.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1.
    pub fn barrier(&self) -> Result<()> {
        check(unsafe { sys::shardrec_comm_barrier(self.0) })
    }

    /// Reduces a compact tensor over the ranks, in place; every rank gets the same bits (pairwise tree
    /// over the rank number). dtype FLOAT32, FLOAT64, INT32 or INT64; same dtype and number of elements
    /// on all ranks. Collective, blocking. Errors: as [`Comm::barrier`](crate::Comm::barrier); INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn all_reduce(&self, tensor: ViewMut<'_>, reduction: Reduction) -> Result<()> {
        check(unsafe { sys::shardrec_comm_all_reduce(self.0, &tensor.raw, reduction.raw()) })
    }

    /// Copies the elements of tensor on rank root over those of tensor on all others. dtype and number of
    /// elements are the same on all ranks. root: in \[0, ranks), the same on all ranks. Since 0.1.
    pub fn broadcast(&self, tensor: ViewMut<'_>, root: i32) -> Result<()> {
        check(unsafe { sys::shardrec_comm_broadcast(self.0, &tensor.raw, root) })
    }

    /// Gathers tensor of every rank: out holds the elements of rank 0, then those of rank 1, and so on, on
    /// all ranks. out: the dtype of tensor and `ranks` times its elements, such as \[ranks, n\] or
    /// \[ranks \* n\] for \[n\]. dtype and number of elements are the same on all ranks. Since 0.1.
    pub fn all_gather(&self, tensor: View<'_>, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_comm_all_gather(self.0, &tensor.raw, &out.raw) })
    }

    /// Reduces tensor over the ranks and leaves each with its part: out on rank r is the r-th of `ranks`
    /// equal parts of the reduction, with the bits that [`Comm::all_reduce`](crate::Comm::all_reduce) gives. dtype FLOAT32,
    /// FLOAT64, INT32 or INT64. tensor: `ranks` times the elements of out. dtype, number of elements and
    /// reduction are the same on all ranks. Since 0.1.
    pub fn reduce_scatter(&self, tensor: View<'_>, out: ViewMut<'_>, reduction: Reduction) -> Result<()> {
        check(unsafe { sys::shardrec_comm_reduce_scatter(self.0, &tensor.raw, &out.raw, reduction.raw()) })
    }

    /// Sends rows of tensor (what its first dimension counts) to all ranks, this one included, and
    /// receives theirs: the first send_counts\[0\] rows go to rank 0, the next send_counts\[1\] to rank 1, and
    /// so on; out holds receive_counts\[0\] rows of rank 0, then those of rank 1, and so on.
    /// send_counts, receive_counts: INT64 \[ranks\], compact, adding up to the rows of tensor and of out;
    /// None: equal parts, and the number of rows is a multiple of the number of ranks. out: the dtype and
    /// the row length of tensor, which are the same on all ranks, also where a rank has no rows.
    /// The ranks compare counts, dtypes and row lengths before rows move: where they differ, all of them
    /// get the same DISAGREEMENT, which names a pair of ranks and what differs; out is as before and all
    /// may go on. Since 0.1.
    pub fn all_to_all(&self, tensor: View<'_>, send_counts: Option<View<'_>>, out: ViewMut<'_>, receive_counts: Option<View<'_>>) -> Result<()> {
        check(unsafe { sys::shardrec_comm_all_to_all(self.0, &tensor.raw, send_counts.as_ref().map_or(std::ptr::null(), |view| &view.raw), &out.raw, receive_counts.as_ref().map_or(std::ptr::null(), |view| &view.raw)) })
    }

    /// Makes a communicator of each color: the ranks that give the same color, numbered by (key, rank in
    /// comm). color \< 0: this rank is in none of them, and \*out becomes None.
    /// The part is a communicator as any other, for collectives, collections and splits. It begins with
    /// comm's deadlines and has its own from then on; whatever fails on it, comm and the other parts live
    /// on. It ends with comm: closing, aborting or destroying comm, or a failure of it, ends its parts, and
    /// their parts. Handles may be destroyed in any order. Ranks of one node stay one in the part where
    /// equal blocks of its ranks tell the nodes apart; elsewhere each of its ranks is a node of its own.
    /// Collective over comm, blocking (setup deadline). Between processes a
    /// communicator can be split 1,024 times in its life, a part of it 8 times, a part of that 8 times, and
    /// what comes of that no more: UNSUPPORTED, on all ranks, and comm lives on.
    /// Errors: as [`Comm::barrier`](crate::Comm::barrier); INVALID_ARGUMENT (out None; only this rank), UNSUPPORTED, OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn split(&self, color: i32, key: i32) -> Result<Option<Comm>> {
        let made = Comm::made_by(|out| unsafe { sys::shardrec_comm_split(self.0, color, key, out) })?;
        // NULL: there is nothing to own.
        Ok(if made.0.is_null() { None } else { Some(made) })
    }

    /// The orderly end: returns when every rank has called it; later calls return CLOSED. Destroy the
    /// handle afterwards. Collective, blocking. Errors: as [`Comm::barrier`](crate::Comm::barrier). Since 0.1.
    pub fn shutdown(&self) -> Result<()> {
        check(unsafe { sys::shardrec_comm_close(self.0) })
    }

    /// Ends the communicator on every rank: collective calls that wait, and all later ones, return
    /// ABORTED with this rank's number and reason (UTF-8, None allowed). Never blocks. Any thread.
    /// Errors: INVALID_HANDLE, CLOSED. Since 0.1.
    pub fn abort(&self, reason: Option<&str>) -> Result<()> {
        let reason = reason.map(c_text).transpose()?;
        check(unsafe { sys::shardrec_comm_abort(self.0, reason.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())) })
    }
}

impl Rendezvous {
    /// Starts the server: a thread and a listening socket. Does not wait for ranks.
    /// options: kind RENDEZVOUS or None (this machine only, a free port, a random secret). Errors: INVALID_ARGUMENT (also: ADDRESS is not of this machine; it can be reached from
    /// others and SECRET or ALLOW_PLAIN_TCP is not set), INVALID_STATE (the port is taken), INVALID_HANDLE,
    /// CLOSED, BUSY for options, IO_ERROR, OUT_OF_MEMORY. Since 0.1.
    pub fn new(options: Option<&RendezvousOptions>) -> Result<Rendezvous> {
        with(options.map(|o| &o.0), |made| Rendezvous::made_by(|out| unsafe { sys::shardrec_rendezvous_create(made, out) }))
    }

    /// What a rank needs to join: at most 512 bytes of printable ASCII without spaces. It holds the secret:
    /// treat it as one.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn token(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_rendezvous_token(self.0, out) })
    }
}

/// What [`Mesh::place`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshPlace {
    /// See there.
    pub sharding_rank: i32,
    /// See there.
    pub sharding_size: i32,
    /// See there.
    pub replica_rank: i32,
    /// See there.
    pub replica_size: i32,
}

impl Mesh {
    /// Arranges the ranks of comm. sharding_group_size: in \[1, ranks\], a divisor of the number of ranks.
    /// options: kind MESH (PLACEMENT) or None. Both are the same on all ranks.
    /// It keeps what it needs of comm and ends with it (abort, close, a dead peer).
    /// Collective, blocking. What one rank gets wrong in options or out is every rank's error. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, DISAGREEMENT (sizes or placements differ), MISMATCH,
    /// OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn new(comm: &Comm, sharding_group_size: i32, options: Option<&MeshOptions>) -> Result<Mesh> {
        with(options.map(|o| &o.0), |made| Mesh::made_by(|out| unsafe { sys::shardrec_mesh_create(comm.0, sharding_group_size, made, out) }))
    }

    /// This rank's place. out: its struct_size is set; the members that fit in it are written.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1.
    pub fn place(&self) -> Result<MeshPlace> {
        let mut out = sys::shardrec_place::new();
        check(unsafe { sys::shardrec_mesh_place(self.0, &mut out) })?;
        Ok(MeshPlace { sharding_rank: out.sharding_rank, sharding_size: out.sharding_size, replica_rank: out.replica_rank, replica_size: out.replica_size })
    }

    /// Makes a communicator of the ranks of one of this rank's groups, numbered as [`Mesh::place`](crate::Mesh::place) says. It
    /// is one as any other: for collectives, collections, metrics and splits. It is the host's own: nothing that
    /// the library does on the mesh goes over it, each call makes another one, and it begins with the deadlines
    /// of the mesh's communicator. Closing it (collective over its ranks), aborting it or a failure of it ends
    /// it alone: the mesh and what was made on it live on. It ends with the mesh: when the communicator that the
    /// mesh was made of is closed, aborted or destroyed, and by any failure of that or of the mesh's groups.
    /// Handles may be destroyed in any order: the mesh's may go before.
    /// Collective over the mesh, blocking (setup deadline): all ranks ask for the same kind of group, else
    /// MISMATCH. Between processes a mesh makes at most 8 of either kind in its life, each of which can be split
    /// 8 times, and what comes of that no more: then UNSUPPORTED, on all ranks, and the mesh lives on.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (out None, no group: only this rank; call again),
    /// UNSUPPORTED, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn comm(&self, group: MeshGroup) -> Result<Comm> {
        Comm::made_by(|out| unsafe { sys::shardrec_mesh_comm(self.0, group.raw(), out) })
    }
}

/// What [`Model::info`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// See there.
    pub tables: i32,
    /// See there.
    pub features: i32,
    /// See there.
    pub sequences: i32,
    /// See there.
    pub width: i64,
}

/// What [`Model::table`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTable {
    /// See there.
    pub rows: i64,
    /// See there.
    pub dim: i64,
    /// See there.
    pub dtype: Option<Dtype>,
    /// See there.
    pub optimizer: Option<Optimizer>,
    /// See there.
    pub learning_rate: f64,
    /// See there.
    pub states: i32,
    /// See there.
    pub features: i32,
    /// See there.
    pub name: String,
}

/// What [`Model::feature`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFeature {
    /// See there.
    pub table: i32,
    /// See there.
    pub pooling: Option<Pooling>,
    /// See there.
    pub output: i32,
    /// See there.
    pub column: i64,
    /// See there.
    pub columns: i64,
    /// See there.
    pub width: i64,
    /// See there.
    pub name: String,
}

impl Model {
    /// Makes an empty model. options: None (no kind of options is for models yet). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn new() -> Result<Model> {
        Model::made_by(|out| unsafe { sys::shardrec_model_create(std::ptr::null(), out) })
    }

    /// Adds a table of rows x dim elements.
    /// name: UTF-8, not empty, unique. rows in \[1, 2^40\], dim in \[1, 65536\]. options: kind TABLE or None.
    /// out_table: its index, 0 for the first one added.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, UNSUPPORTED (dtype), OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn add_table(&mut self, name: &str, rows: i64, dim: i64, options: Option<&TableOptions>) -> Result<i32> {
        let name = c_text(name)?;
        let mut out_table = 0i32;
        with(options.map(|o| &o.0), |made| check(unsafe { sys::shardrec_model_add_table(self.0, name.as_ptr(), rows, dim, made, &mut out_table) }))?;
        Ok(out_table)
    }

    /// Adds a feature that is looked up in `table`; several features may share one. Its index is the
    /// number of features added before it, and batches list the features in that order.
    /// name: UTF-8, not empty, unique among features. Pooled and sequence features may share a table: a
    /// step updates each row once, by the sum of all its gradients.
    /// Errors: as [`Model::add_table`](crate::Model::add_table). Since 0.1.
    pub fn add_feature(&mut self, table: i32, name: &str, pooling: Pooling) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_model_add_feature(self.0, table, name.as_ptr(), pooling.raw()) })
    }

    /// Sets the optimizer of a table, in place of the model's, or with SHARDREC_ALL_TABLES the model's: that of
    /// all tables that have none of their own. options: kind OPTIMIZER; None: of a table the model's again, of
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
    pub fn set_optimizer(&mut self, table: i32, options: Option<&OptimizerOptions>) -> Result<()> {
        with(options.map(|o| &o.0), |made| check(unsafe { sys::shardrec_model_set_optimizer(self.0, table, made) }))
    }

    /// How many tables and features the model has. out: its struct_size is set; the members that fit in it are
    /// written. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.2.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut out = sys::shardrec_model_size::new();
        check(unsafe { sys::shardrec_model_info(self.0, &mut out) })?;
        Ok(ModelInfo { tables: out.tables, features: out.features, sequences: out.sequences, width: out.width })
    }

    /// A table and its name. table: its index, from 0. out: its struct_size is set; the members that fit in it
    /// are written. May be None.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2.
    pub fn table(&self, table: i32) -> Result<ModelTable> {
        let mut out = sys::shardrec_table::new();
        let mut out_name = std::ptr::null_mut();
        check(unsafe { sys::shardrec_model_table(self.0, table, &mut out, &mut out_name) })?;
        Ok(ModelTable { rows: out.rows, dim: out.dim, dtype: Dtype::of(out.dtype), optimizer: Optimizer::of(out.optimizer), learning_rate: out.learning_rate, states: out.states, features: out.features, name: unsafe { taken(out_name) } })
    }

    /// A feature and its name. feature: its index, from 0. out, out_name: as [`Model::table`](crate::Model::table).
    /// Errors: as [`Model::table`](crate::Model::table); NOT_FOUND (feature). Since 0.2.
    pub fn feature(&self, feature: i32) -> Result<ModelFeature> {
        let mut out = sys::shardrec_feature::new();
        let mut out_name = std::ptr::null_mut();
        check(unsafe { sys::shardrec_model_feature(self.0, feature, &mut out, &mut out_name) })?;
        Ok(ModelFeature { table: out.table, pooling: Pooling::of(out.pooling), output: out.output, column: out.column, columns: out.columns, width: out.width, name: unsafe { taken(out_name) } })
    }

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
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn to_json(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_model_to_json(self.0, out) })
    }

    /// Makes a model from such JSON. Needed are "format", "tables", of a table its name, rows and dim, of a
    /// feature its name and table; what else is left out has its default ("pooling": "sum"). Unknown keys
    /// and keys that stand twice are refused, and so is a format of a later version.
    /// Errors: INVALID_ARGUMENT (the sentence says where), UNSUPPORTED, OUT_OF_MEMORY. Since 0.1.
    pub fn from_json(json: &str) -> Result<Model> {
        let json = c_text(json)?;
        Model::made_by(|out| unsafe { sys::shardrec_model_from_json(json.as_ptr(), out) })
    }
}

impl Topology {
    /// What the machines are: `ranks` ranks, ranks_per_node of which are one node.
    /// ranks in \[1, 1048576\], ranks_per_node in \[1, ranks\]. options: None (no kind of options is for topologies
    /// yet).
    /// Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn new(ranks: i32, ranks_per_node: i32) -> Result<Topology> {
        Topology::made_by(|out| unsafe { sys::shardrec_topology_create(ranks, ranks_per_node, std::ptr::null(), out) })
    }

    /// The topology as JSON: {"format": "shardrec-topology-1", "ranks": 4, "ranks_per_node": 2}.
    /// "format"                    text: "shardrec-topology-1"
    /// "ranks", "ranks_per_node"   integer
    /// Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn to_json(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_topology_to_json(self.0, out) })
    }

    /// Makes a topology from such JSON, within the limits of [`Topology::new`](crate::Topology::new). All keys are
    /// needed, unknown ones are refused, and so is a format of a later version.
    /// Errors: INVALID_ARGUMENT (the sentence says where), OUT_OF_MEMORY. Since 0.1.
    pub fn from_json(json: &str) -> Result<Topology> {
        let json = c_text(json)?;
        Topology::made_by(|out| unsafe { sys::shardrec_topology_from_json(json.as_ptr(), out) })
    }
}

/// What [`Plan::placed_box`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanBox {
    /// See there.
    pub rank: i32,
    /// See there.
    pub row: i64,
    /// See there.
    pub rows: i64,
    /// See there.
    pub col: i64,
    /// See there.
    pub cols: i64,
    /// See there.
    pub weight_bytes: i64,
    /// See there.
    pub state_bytes: i64,
}

impl Plan {
    /// Plans the model on a topology. Local; deterministic, with BALANCE set to TIME for one machine's
    /// profile. options: kind PLAN or None.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn new(model: &Model, topology: &Topology, options: Option<&PlanOptions>) -> Result<Plan> {
        with(options.map(|o| &o.0), |made| Plan::made_by(|out| unsafe { sys::shardrec_plan_create(model.0, topology.0, made, out) }))
    }

    /// Plans the model on the ranks of a communicator: rank 0 plans, every rank gets its plan, after a
    /// check that models and options are the same.
    /// mesh: None, or a mesh of comm: the plan is for the ranks of a sharding group, the same on all ranks. AUTO
    /// and MIXED then replicate only tables that may not be cut, for a replicated table makes all sharding groups
    /// wait for each other in every step (mesh.h). What one rank gets wrong in its arguments,
    /// but for comm, every rank gets as its error; the communicator lives on, and the call may be made again.
    /// Collective, blocking (setup deadline). Errors: as [`Plan::new`](crate::Plan::new); INVALID_ARGUMENT (also: a mesh of
    /// another communicator), DISAGREEMENT (models or options differ; names a rank and
    /// the first difference), MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn collective(comm: &Comm, mesh: Option<&Mesh>, model: &Model, options: Option<&PlanOptions>) -> Result<Plan> {
        with(options.map(|o| &o.0), |made| Plan::made_by(|out| unsafe { sys::shardrec_plan_collective(comm.0, mesh.map_or(std::ptr::null_mut(), |handle| handle.0), model.0, made, out) }))
    }

    /// Makes a plan without boxes, to be filled with [`Plan::add_box`](crate::Plan::add_box) and [`Plan::replicate`](crate::Plan::replicate).
    /// options: None (no kind of options is for such plans yet). Errors: as [`Plan::new`](crate::Plan::new). Since 0.1.
    pub fn create_empty(model: &Model, topology: &Topology) -> Result<Plan> {
        Plan::made_by(|out| unsafe { sys::shardrec_plan_create_empty(model.0, topology.0, std::ptr::null(), out) })
    }

    /// Adds a box of a table. It is read during the call.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT when the box is empty, leaves the table,
    /// overlaps another box, or the table is replicated; UNSUPPORTED (members that this release does not know
    /// are not zero), OUT_OF_MEMORY. Since 0.1.
    pub fn add_box(&mut self, table: i32, rank: i32, row: i64, rows: i64, col: i64, cols: i64) -> Result<()> {
        let given = sys::shardrec_box { rank, row, rows, col, cols, ..sys::shardrec_box::new() };
        check(unsafe { sys::shardrec_plan_add_box(self.0, table, &given) })
    }

    /// Replicates a table on all ranks, which learn of each other's gradients in the way that replication
    /// says; of a table that is replicated already, this sets the way. Errors: INVALID_HANDLE, CLOSED, BUSY;
    /// INVALID_ARGUMENT (the table has boxes; not SAMPLES, ROWS or DENSE). Since 0.2.
    pub fn replicate(&mut self, table: i32, replication: Replication) -> Result<()> {
        check(unsafe { sys::shardrec_plan_replicate(self.0, table, replication.raw()) })
    }

    /// Checks that every cell of every table has exactly one owner, or its table is replicated. (Creating a
    /// collection does it too.) Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT naming a table
    /// and a cell that has none. Since 0.1.
    pub fn check(&self) -> Result<()> {
        check(unsafe { sys::shardrec_plan_check(self.0) })
    }

    /// Number of boxes of a table; 0: replicated (or, before the check, none yet).
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT. Since 0.1.
    pub fn box_count(&self, table: i32) -> Result<i32> {
        let mut out = 0i32;
        check(unsafe { sys::shardrec_plan_box_count(self.0, table, &mut out) })?;
        Ok(out)
    }

    /// Box `box` of a table, ordered by first row, then first column. Of a replicated table box 0 stands for the
    /// copy that each rank has: all rows and columns, rank -1. out: its struct_size is set; the members that fit
    /// in it are written.
    /// Errors: as [`Plan::box_count`](crate::Plan::box_count) (NOT_FOUND: box too). Since 0.1.
    pub fn placed_box(&self, table: i32, placed_box: i32) -> Result<PlanBox> {
        let mut out = sys::shardrec_box::new();
        check(unsafe { sys::shardrec_plan_box(self.0, table, placed_box, &mut out) })?;
        Ok(PlanBox { rank: out.rank, row: out.row, rows: out.rows, col: out.col, cols: out.cols, weight_bytes: out.weight_bytes, state_bytes: out.state_bytes })
    }

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
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn to_json(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_plan_to_json(self.0, out) })
    }

    /// The plan as an aligned table for people: a line per table (rows, dim, bytes of weights and
    /// of optimizer states on all ranks together, kind of sharding, number of boxes, ranks), then the bytes
    /// of each rank. At most 40 tables and 40 ranks are listed.
    /// As [`Plan::to_json`](crate::Plan::to_json). Since 0.1.
    pub fn to_text(&self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_plan_to_text(self.0, out) })
    }

    /// Makes a plan for a model from such JSON; tables are matched by name and must agree in rows and dim.
    /// Unknown keys are refused, and so is a format of a later version; the tiling is checked. Errors:
    /// INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn from_json(model: &Model, json: &str) -> Result<Plan> {
        let json = c_text(json)?;
        Plan::made_by(|out| unsafe { sys::shardrec_plan_from_json(model.0, json.as_ptr(), out) })
    }
}

impl Collection {
    /// Allocates and fills this rank's boxes. The plan's ranks must be the communicator's. Rank checks:
    /// model, plan and options agree on all ranks. options: kind COLLECTION or None. It keeps what it needs of comm and mesh, copies model and plan (ranks of one process that bring
    /// the same plan share the copy).
    /// mesh: None on all ranks, or a mesh of comm on all, else DISAGREEMENT on all: one replica per sharding
    /// group, whose ranks the plan is for, the same everywhere. Lookups, rows read and written concern the own replica
    /// and are collective over its sharding group; backward with the option NON_FINITE SKIP, and checkpoints, are so over
    /// the whole mesh. Where the plan replicates a table, and with REPLICA_SYNC EXACT or SHARDED, all of these are collective over
    /// the whole mesh, lookups are as many on all of its ranks and made in the same order, LOOKUPS, too, is the same on
    /// all of them, and HIERARCHICAL 1 is UNSUPPORTED (mesh.h). What one sharding group refuses, all ranks of the mesh
    /// refuse. Model, plan and the options that decide which numbers come out (SEED, GRADIENT_DIVISOR and its VALUE,
    /// OUTPUT_DTYPE, the compressions, NON_FINITE, REPLICA_SYNC, SYNC_EVERY) are the same on all ranks of the mesh, else
    /// DISAGREEMENT on all of them, naming rank and option.
    /// Option SYNC_EVERY n, above 0, on a mesh of several replicas: the n-th update ([`Lookup::backward`](crate::Lookup::backward), or _backward_begin
    /// and _wait, with SHARDREC_UPDATE_APPLY, that has not been skipped) behind the last sync ends with one, as
    /// [`Collection::sync_replicas`](crate::Collection::sync_replicas) is, and is collective over the mesh: lookups without an update may be more or fewer on
    /// each replica. A sync that was asked for ([`Collection::sync_replicas`](crate::Collection::sync_replicas), _sync_wait), _replica_fill and
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
    pub fn new(comm: &Comm, mesh: Option<&Mesh>, model: &Model, plan: &Plan, options: Option<&CollectionOptions>) -> Result<Collection> {
        with(options.map(|o| &o.0), |made| Collection::made_by(|out| unsafe { sys::shardrec_collection_create(comm.0, mesh.map_or(std::ptr::null_mut(), |handle| handle.0), model.0, plan.0, made, out) }))
    }

    /// The model and the plan that the collection was made with; on a mesh the plan is for the ranks of a
    /// sharding group. out: a copy, owned by the caller. Any thread. Errors: INVALID_HANDLE, CLOSED,
    /// INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2.
    pub fn model(&self) -> Result<Model> {
        Model::made_by(|out| unsafe { sys::shardrec_collection_model(self.0, out) })
    }

    /// See [`Collection::model`](crate::Collection::model).
    pub fn plan(&self) -> Result<Plan> {
        Plan::made_by(|out| unsafe { sys::shardrec_collection_plan(self.0, out) })
    }

    /// Number of applied updates (accumulated lookups count once, with their update), the same on all
    /// ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Any thread. Since 0.1.
    pub fn step(&self) -> Result<i64> {
        let mut out = 0i64;
        check(unsafe { sys::shardrec_collection_step(self.0, &mut out) })?;
        Ok(out)
    }

    /// Sets the number of applied updates, which the bias correction of Adam and LAMB and stochastic
    /// rounding go by, as when a training goes on elsewhere; set the same on all ranks before the same
    /// step. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (negative). Since 0.1.
    pub fn set_step(&mut self, step: i64) -> Result<()> {
        check(unsafe { sys::shardrec_collection_set_step(self.0, step) })
    }

    /// Returns when all that calls of the collection and its lookups have enqueued on its device (option
    /// DEVICE) is over, and says whether it went well. Other streams and other ranks do not wait for
    /// it. Of a collection on the CPU at once. Not collective, blocking. Errors: INVALID_HANDLE, BUSY,
    /// OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn wait_device(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_collection_wait_device(self.0) })
    }

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
    /// compared, and no row is averaged. Between [`Lookup::send_gradients`](crate::Lookup::send_gradients) and its
    /// backward it is INVALID_STATE on this rank, and nothing has changed. After any other error but a handle's this
    /// rank's sharding and replica groups and the mesh are dead: nobody trains on tables that are
    /// averaged in part, or waits for a rank that has stopped.
    /// Collective over the mesh, blocking (step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_STATE, DISAGREEMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn sync_replicas(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_collection_sync_replicas(self.0) })
    }

    /// [`Collection::sync_replicas`](crate::Collection::sync_replicas) in two halves, between which training goes on. begin copies the rows that are to be
    /// averaged; a thread of the library averages the copies with those of the other replicas; wait adds to each row what
    /// its copy has gained by that: row + (mean - copy) in float32, rounded to the table's dtype. States that are sums of
    /// squares ("sum", "exp_avg_sq") become 0 where they would be less. A number that is still as it was when begin was
    /// called becomes the mean, so that with nothing trained in between the two are [`Collection::sync_replicas`](crate::Collection::sync_replicas), bit
    /// for bit. Otherwise replicas differ after wait: rows that were updated in between count as changed, and are averaged
    /// by the next sync; they are equal after a blocking sync only. A row may be longer than MAX_NORM until its next step.
    /// Between the two, [`Collection::sync_replicas`](crate::Collection::sync_replicas), _sync_begin, _check_replicas, _replica_fill, _write_range,
    /// _write_rows and loads of checkpoints are INVALID_STATE, and nothing has changed; all other calls of the collection
    /// and its lookups are as ever. wait without begin is INVALID_STATE. Steps and settings are compared by both, as
    /// [`Collection::sync_replicas`](crate::Collection::sync_replicas) does; after DISAGREEMENT from wait the sync is still under way (set what differs and
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
    /// than those of another. Errors: as [`Collection::sync_replicas`](crate::Collection::sync_replicas); begin also UNSUPPORTED. Since 0.2.
    pub fn sync_begin(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_collection_sync_begin(self.0) })
    }

    /// See [`Collection::sync_begin`](crate::Collection::sync_begin).
    pub fn sync_wait(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_collection_sync_wait(self.0) })
    }

    /// Compares the copies of the tables, weights and all optimizer states, by hashes of 64 bits: of a table that is cut the
    /// copies of the replicas, of one that the plan replicates those of all ranks. A NaN is equal to any other, 0 is not
    /// equal to -0. Copies of cut tables are equal from creation or a load up to the next step, and after
    /// [`Collection::sync_replicas`](crate::Collection::sync_replicas) and [`Collection::replica_fill`](crate::Collection::replica_fill); those of replicated tables, and with REPLICA_SYNC
    /// EXACT or SHARDED of all, after each step. States that replicas share (SHARDED) have no copies, and are not compared.
    /// Where some differ, all ranks of the mesh get DISAGREEMENT, with the first TABLE that differs, the first of its rows
    /// that does (POSITION), and a RANK of the mesh whose row is another one than that of replica 0, or of rank 0 where the
    /// table is replicated; the tables are as before, and the mesh lives on. Without a mesh, replicated tables are compared.
    /// Each rank reads and hashes all its rows, in one thread (those of a device go through the host). INVALID_STATE: as
    /// [`Collection::sync_replicas`](crate::Collection::sync_replicas), and between sync_begin and sync_wait. After errors other than a handle's,
    /// INVALID_STATE and DISAGREEMENT this rank's groups and the mesh are dead.
    /// Collective over the mesh, or without one over the communicator, blocking (setup deadline; until the ranks of its
    /// sharding group have called it the step deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE,
    /// DISAGREEMENT, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn check_replicas(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_collection_check_replicas(self.0) })
    }

    /// Copies one replica to all others, bit for bit: tables with all optimizer states, the number of steps, learning rates
    /// and frozen flags. For a sharding group that has joined: make a mesh of the ranks that there are now and a collection
    /// on it, and call [`Collection::continue_from`](crate::Collection::continue_from), which fills those that bring no tables. After a rank was lost its
    /// mesh is dead, and rows of the collection before cannot be read: the same call takes them, or load a checkpoint.
    /// replica: its number (replica_rank of shardrec_place), the same on all ranks. No row counts as changed afterwards, and
    /// gradients that wait for their step (SHARDREC_UPDATE_ACCUMULATE) are dropped on all replicas, and so is a batch
    /// between forward and backward, as by [`Checkpoint::load`](crate::Checkpoint::load). Rows go through the
    /// host, at most 4 MiB at a time. States that replicas share (REPLICA_SYNC SHARDED) are of none of them alone, and stay.
    /// On a collection without a mesh, or with one replica, 0 is accepted and nothing happens. INVALID_STATE: as [`Collection::sync_replicas`](crate::Collection::sync_replicas), and between sync_begin and sync_wait. What all ranks
    /// refuse alike (INVALID_ARGUMENT, DISAGREEMENT) leaves all as it was; after errors other than these, INVALID_STATE
    /// and a handle's this rank's groups and the mesh are dead: nobody trains on tables that are filled in part.
    /// Collective over the mesh, blocking (setup deadline; until the ranks of its sharding group have called it the step
    /// deadline): returns when all replicas are filled. Errors: INVALID_HANDLE,
    /// CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT (no such replica on some rank), DISAGREEMENT (ranks name different
    /// ones), MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn replica_fill(&mut self, replica: i32) -> Result<()> {
        check(unsafe { sys::shardrec_collection_replica_fill(self.0, replica) })
    }

    /// Goes on, in a new collection, with the tables that these ranks have trained in an earlier group: those that are left
    /// after ranks were lost, or they and others that join them. The survivors make a communicator (and a mesh), and on it a
    /// collection of the same model and plan, which is then filled from the memory of the ranks; no file is read.
    /// from: this rank's collection on the group before, whose communicator may be dead; None: this rank brings none. It is
    /// only read, stays as it is, and may be destroyed afterwards; until then both take memory. Other options of the
    /// collection (REPLICA_SYNC, DEVICE, SEED ...) may be others than before.
    /// A sharding group is whole where all of its ranks bring tables after the same step, sync and write: a rank that ends
    /// between the steps of one group leaves the others whole. Where all groups of the new mesh are whole and at one step,
    /// each keeps its own rows, and the next sync moves all of them, unless the replicas were equal; its mean is that of the
    /// replicas that there are now. Else all groups get, bit for bit, the tables of the whole group with the highest step
    /// (the lowest number among equals), as by [`Collection::replica_fill`](crate::Collection::replica_fill). Optimizer states, number of steps, learning
    /// rates and frozen flags go along; gradients that wait for their step (SHARDREC_UPDATE_ACCUMULATE) do not.
    /// UNSUPPORTED on all ranks: one of the collections has REPLICA_SYNC SHARDED, whose states have no copies.
    /// INVALID_STATE: no group is whole, told on all ranks with a RANK that is not; a backward of `from` is under way on a
    /// thread of the library; as [`Collection::replica_fill`](crate::Collection::replica_fill). After OUT_OF_MEMORY and DEVICE_ERROR that all ranks get
    /// the tables are filled in part, until a load fills them; after errors other than these, a handle's, INVALID_STATE,
    /// UNSUPPORTED and INVALID_ARGUMENT this rank's groups are dead.
    /// Collective over the mesh, or without one over the communicator, blocking (setup deadline). Errors: INVALID_HANDLE,
    /// CLOSED, BUSY (also of from), INVALID_ARGUMENT (from is the collection itself; on all ranks: it has another model,
    /// plan or place in its sharding group), UNSUPPORTED, INVALID_STATE, MISMATCH, OUT_OF_MEMORY, DEVICE_ERROR,
    /// PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn continue_from(&mut self, from: Option<&Collection>) -> Result<()> {
        check(unsafe { sys::shardrec_collection_continue_from(self.0, from.map_or(std::ptr::null_mut(), |handle| handle.0)) })
    }

    /// Sets the learning rate of a table, or of SHARDREC_ALL_TABLES, from the next backward on, in place of what
    /// their optimizers say; set the same on all ranks before the same step, else that backward is
    /// INVALID_BATCH. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT (not finite,
    /// negative). Since 0.1.
    pub fn set_learning_rate(&mut self, table: i32, learning_rate: f64) -> Result<()> {
        check(unsafe { sys::shardrec_collection_set_learning_rate(self.0, table, learning_rate) })
    }

    /// The learning rate that the next backward uses for a table. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND
    /// (table), INVALID_ARGUMENT. Since 0.2.
    pub fn learning_rate(&self, table: i32) -> Result<f64> {
        let mut out = 0f64;
        check(unsafe { sys::shardrec_collection_learning_rate(self.0, table, &mut out) })?;
        Ok(out)
    }

    /// Freezes a table (1) or trains it again (0): a frozen one is looked up, but backward changes neither
    /// its weights nor its states. Its gradients are dropped, not put off: those of a lookup whose
    /// backward with ACCUMULATE comes while it is frozen are never applied, also where it is trained again
    /// before the next backward; those that were accumulated before are dropped by a backward that comes while
    /// it is frozen, and applied by one that comes after it is trained again. Set the same on all ranks before
    /// the same step, else that backward is INVALID_BATCH. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND
    /// (table), INVALID_ARGUMENT. Since 0.1.
    pub fn set_frozen(&mut self, table: i32, frozen: bool) -> Result<()> {
        check(unsafe { sys::shardrec_collection_set_frozen(self.0, table, frozen.into()) })
    }

    /// Whether a table is frozen (1) or trained (0). Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table),
    /// INVALID_ARGUMENT. Since 0.2.
    pub fn frozen(&self, table: i32) -> Result<bool> {
        let mut out = 0i32;
        check(unsafe { sys::shardrec_collection_frozen(self.0, table, &mut out) })?;
        Ok(out != 0)
    }

    /// Reads rows \[row, row + rows) of a table into out, float32, \[rows, width\], any row stride, unit column
    /// stride; weights of 16 bits are widened.
    /// Each rank asks for what it wants, which may be no rows (rows = 0, out None), and gets whole rows, wherever
    /// they live. Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (only this rank;
    /// nothing was exchanged: call again), INVALID_STATE (a load, or a step on a device, that failed half-way, or between
    /// [`Lookup::send_gradients`](crate::Lookup::send_gradients) and its backward; nothing was exchanged), NOT_FOUND (table, part),
    /// OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn read_range(&mut self, table: i32, part: TablePart, row: i64, rows: i64, out: Option<ViewMut<'_>>) -> Result<()> {
        check(unsafe { sys::shardrec_collection_read_range(self.0, table, part.raw(), row, rows, out.as_ref().map_or(std::ptr::null(), |view| &view.raw)) })
    }

    /// Writes rows \[row, row + rows) of a table from values, as [`Collection::read_range`](crate::Collection::read_range); weights of 16 bits
    /// are rounded to nearest. Writing states too is a warm start. Ranges of several
    /// ranks may overlap; the highest rank's values stay. Replicas are all written. Collective, blocking.
    /// Errors: as [`Collection::read_range`](crate::Collection::read_range); INVALID_STATE also between sync_begin and sync_wait. Since 0.1.
    pub fn write_range(&mut self, table: i32, part: TablePart, row: i64, rows: i64, values: Option<View<'_>>) -> Result<()> {
        check(unsafe { sys::shardrec_collection_write_range(self.0, table, part.raw(), row, rows, values.as_ref().map_or(std::ptr::null(), |view| &view.raw)) })
    }

    /// Reads the rows of a table that ids name, in their order, into out, float32, \[ids, width\], any row
    /// stride, unit column stride; as [`Collection::read_range`](crate::Collection::read_range) otherwise.
    /// ids: INT32 or INT64 \[n\], compact, rows of the table in any order, any of them more than once; None
    /// or empty: this rank asks for no rows, and out may be None. Each rank asks for what it wants, also of
    /// another table or part. Ids are checked on the rank that gives them: one that is no row is
    /// INVALID_ARGUMENT with its POSITION and VALUE on this rank only; nothing was exchanged and the others
    /// wait: call again. Long lists go in blocks, and at most about 64 MiB go through a rank at once.
    /// Collective, blocking (the step deadline holds for each block). Errors: as [`Collection::read_range`](crate::Collection::read_range).
    /// Since 0.1.
    pub fn read_rows(&mut self, table: i32, part: TablePart, ids: Option<View<'_>>, out: Option<ViewMut<'_>>) -> Result<()> {
        check(unsafe { sys::shardrec_collection_read_rows(self.0, table, part.raw(), ids.as_ref().map_or(std::ptr::null(), |view| &view.raw), out.as_ref().map_or(std::ptr::null(), |view| &view.raw)) })
    }

    /// Writes the rows of a table that ids name from values, float32, \[ids, width\]; ids and values as in
    /// [`Collection::read_rows`](crate::Collection::read_rows), values rounded as [`Collection::write_range`](crate::Collection::write_range) does. Where a row is
    /// written more than once, the last entry of the highest rank stays. Replicas are all written.
    /// After an error that ends the communicator, some of the rows may have been written. Collective,
    /// blocking (the step deadline holds for each block). Errors: as [`Collection::write_range`](crate::Collection::write_range). Since 0.1.
    pub fn write_rows(&mut self, table: i32, part: TablePart, ids: Option<View<'_>>, values: Option<View<'_>>) -> Result<()> {
        check(unsafe { sys::shardrec_collection_write_rows(self.0, table, part.raw(), ids.as_ref().map_or(std::ptr::null(), |view| &view.raw), values.as_ref().map_or(std::ptr::null(), |view| &view.raw)) })
    }

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
    pub fn mark(&mut self) -> Result<i64> {
        let mut out_mark = 0i64;
        check(unsafe { sys::shardrec_collection_mark(self.0, &mut out_mark) })?;
        Ok(out_mark)
    }

    /// Lists the rows of a table that this rank's boxes have and that have changed since a mark, from row `row` of the table
    /// on: their numbers, ascending, each once however many boxes have it. Of a table that is replicated each rank has all
    /// rows. rows: INT64 \[n\], compact, on the CPU: the first ones are written, as many as there is room for; where it is full
    /// there may be more behind the last one. None: they are only counted. out_count: how many were written, or counted.
    /// Not collective. Waits for the operations of the device. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (mark, table),
    /// INVALID_ARGUMENT (row beyond the table, rows), INVALID_STATE (between backward_begin and backward_wait),
    /// OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2.
    pub fn changed_rows(&mut self, mark: i64, table: i32, row: i64, rows: Option<ViewMut<'_>>) -> Result<i64> {
        let mut out_count = 0i64;
        check(unsafe { sys::shardrec_collection_changed_rows(self.0, mark, table, row, rows.as_ref().map_or(std::ptr::null(), |view| &view.raw), &mut out_count) })?;
        Ok(out_count)
    }

    /// Releases a mark, and its memory; the bits that all marks share stay until the collection is destroyed.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND. Since 0.2.
    pub fn release_mark(&mut self, mark: i64) -> Result<()> {
        check(unsafe { sys::shardrec_collection_release_mark(self.0, mark) })
    }

    /// A count, a time or a ratio. table: of SHARDREC_STAT_TABLE_... a table's index or SHARDREC_ALL_TABLES (their
    /// sum); of all others SHARDREC_ALL_TABLES. out: counts are exact up to 2^53. Errors: INVALID_HANDLE,
    /// CLOSED, NOT_FOUND (table), INVALID_ARGUMENT. Any thread. Since 0.2.
    pub fn stat(&self, stat: Stat, table: i32) -> Result<f64> {
        let mut out = 0f64;
        check(unsafe { sys::shardrec_collection_stat(self.0, stat.raw(), table, &mut out) })?;
        Ok(out)
    }
}

/// What [`Lookup::output_shape`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupOutputShape {
    /// See there.
    pub rows: i64,
    /// See there.
    pub columns: i64,
}

impl Lookup {
    /// Makes a lookup. All ranks make their lookups in the same order; at most as many as the option
    /// LOOKUPS says (default 2). Not blocking. options: kind LOOKUP or None.
    /// It keeps the collection's tables alive.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (too many), OUT_OF_MEMORY. Since 0.1.
    pub fn new(collection: &Collection, options: Option<&LookupOptions>) -> Result<Lookup> {
        with(options.map(|o| &o.0), |made| Lookup::made_by(|out| unsafe { sys::shardrec_lookup_create(collection.0, made, out) }))
    }

    /// From the next call on, tensors on the device of the collection are read and written in the order of
    /// this stream. stream: the value of a cudaStream_t of that device, which is not being captured; it must
    /// live until the next call of this function, or until the lookup is destroyed. 0 (default): the legacy
    /// default stream. Of a collection on the CPU it is not looked at. Not collective, not blocking. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (no stream of the device, as far as CUDA can tell),
    /// DEVICE_ERROR. Since 0.1.
    ///
    /// # Safety
    /// Of a collection on a device, `stream` is a live stream of it, and stays one as said above. A
    /// `Memory` of which calls are given tensors meanwhile is not dropped before the stream is through with them.
    pub unsafe fn set_stream(&mut self, stream: i64) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_set_stream(self.0, stream) })
    }

    /// Rows and columns of an output of the batch that has begun. Output 0, the
    /// pooled features: \[batch_size, width\] ([`Model::info`](crate::Model::info)). Output 1 + k, the k-th sequence feature
    /// (pooling NONE) in model order: \[ids of the feature in this rank's batch, dim\], in the batch's order. 0 rows when this rank's batch is one that forward will refuse.
    /// Not collective; may wait for a device. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin),
    /// NOT_FOUND (output), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn output_shape(&self, output: i32) -> Result<LookupOutputShape> {
        let mut out_rows = 0i64;
        let mut out_columns = 0i64;
        check(unsafe { sys::shardrec_lookup_output_shape(self.0, output, &mut out_rows, &mut out_columns) })?;
        Ok(LookupOutputShape { rows: out_rows, columns: out_columns })
    }

    /// Finishes the exchange, looks up and writes an output.
    /// output: 0 or that of a sequence feature ([`Lookup::output_shape`](crate::Lookup::output_shape)). out: of that shape, FLOAT32
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
    pub fn forward(&mut self, output: i32, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_forward(self.0, output, &out.raw) })
    }

    /// 1 when no rank has more data (all gave values None), else 0; valid after forward, and the same on all
    /// ranks (on a mesh without replicated tables, of the own sharding group): the end of an epoch when ranks
    /// have different numbers of batches. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT. Since 0.1.
    pub fn all_done(&self) -> Result<bool> {
        let mut out = 0i32;
        check(unsafe { sys::shardrec_lookup_all_done(self.0, &mut out) })?;
        Ok(out != 0)
    }

    /// Gives the gradient of this rank's loss with respect to an output, shaped and typed as in forward.
    /// It is read before the call returns (unless BORROW). Not collective. May be called again before
    /// backward; the last one counts. All outputs with elements need one: give zeros where the loss does
    /// not depend on it.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no forward), NOT_FOUND (output),
    /// INVALID_ARGUMENT (the gradient given before, if any, stays), OUT_OF_MEMORY. Since 0.1.
    pub fn set_gradient(&mut self, output: i32, gradient: View<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_set_gradient(self.0, output, &gradient.raw) })
    }

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
    /// another lookup, reads and writes of rows, [`Collection::sync_replicas`](crate::Collection::sync_replicas), _sync_begin, _sync_wait,
    /// _check_replicas and _replica_fill): INVALID_STATE, nothing has changed. begin and set_gradient of other lookups are
    /// fine. Not collective, but takes part in the order of calls as backward would. Not blocking: waits for
    /// nobody. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no forward; see above),
    /// INVALID_ARGUMENT, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1.
    pub fn send_gradients(&mut self, update: Update) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_send_gradients(self.0, update.raw()) })
    }

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
    /// between see the weights as they are. Of a table that is frozen now ([`Collection::set_frozen`](crate::Collection::set_frozen))
    /// nothing is kept: its gradients of this lookup are dropped for good.
    ///
    /// SKIP: no rank applies or keeps anything, and this returns OK on all of them: [`Collection::step`](crate::Collection::step) tells.
    /// No gradient is needed. With the option NON_FINITE SKIP a rank whose gradients hold a NaN or an infinity does this
    /// in place of what its update says. On a mesh the sharding groups then wait for each other in this call: a step that
    /// one group skips or refuses (INVALID_BATCH) is not applied by the others either, which return OK. On a mesh with
    /// replicated tables all its ranks take the step together, as those of one group do: what one skips or refuses, all skip
    /// or refuse, and training settings are the same on all of them. A rank without data takes part with an empty batch; for
    /// a sharding group that does not take part, the others wait until their deadline (TIMEOUT, naming a rank of it and the
    /// call). With the option SYNC_EVERY of the collection an update may end with a sync of the replicas
    /// ([`Collection::new`](crate::Collection::new)).
    ///
    /// Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (update), INVALID_STATE (no
    /// forward; another update than send_gradients was given: these only on this rank; tables that were loaded or
    /// filled since, on all ranks alike: the batch is over, and nothing was exchanged), INVALID_BATCH, DISAGREEMENT
    /// (SYNC_EVERY), OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn backward(&mut self, update: Update) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_backward(self.0, update.raw()) })
    }

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
    pub fn backward_begin(&mut self, update: Update) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_backward_begin(self.0, update.raw()) })
    }

    /// Waits for the step that backward_begin has started, and returns what backward would: the lookup is then idle.
    /// Collective, blocking; on any thread. Errors: INVALID_HANDLE, CLOSED, BUSY (another thread waits), INVALID_STATE
    /// (no backward_begin), and those of backward. Since 0.2.
    pub fn backward_wait(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_backward_wait(self.0) })
    }

    /// The gradients of the loss of this rank's samples with respect to the weights of its ids: for an id
    /// of a bag, the sum over columns of its row, as it was just before the step of this backward, times
    /// the output gradient of the bag, divided by the bag's length for MEAN; neither divided by
    /// GRADIENT_DIVISOR nor clamped. 0 for ids of sequences and for ids that were dropped. A batch without
    /// weights has them too (as if all were 1). Given to lookups made with the option WEIGHT_GRADIENT;
    /// after backward, up to the next begin.
    /// out: \[ids\], FLOAT32, compact, in the order of values, on the CPU (or a device, see above). Not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT. Since 0.1.
    pub fn weight_gradient(&self, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_weight_gradient(self.0, &out.raw) })
    }
}

impl Ddp {
    /// Gives the set an optimizer, for [`Ddp::step`](crate::Ddp::step) or the option DDP_STEP_IN_BACKWARD. All parameters
    /// must be FLOAT32, and no name begins with "optimizer." (checked by commit). options: kind OPTIMIZER
    /// (SGD, MOMENTUM_SGD, ADAGRAD, ADAM, LAMB with one trust ratio per parameter; formulas:
    /// [`Mlp::new`](crate::Mlp::new); AdamW is ADAM with WEIGHT_DECAY_MODE DECOUPLE), read now; None: SGD. Layers of
    /// stacks that were added are stepped by it too: do not call [`Mlp::step`](crate::Mlp::step) then. Before commit; not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT, UNSUPPORTED. Since
    /// 0.1.
    pub fn set_optimizer(&mut self, options: Option<&OptimizerOptions>) -> Result<()> {
        with(options.map(|o| &o.0), |made| check(unsafe { sys::shardrec_ddp_set_optimizer(self.raw, made) }))
    }

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
    pub fn commit(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_commit(self.raw) })
    }

    /// The bucket that a parameter is in, from 0 in the order of sending; with DDP_ORDER RECORDED another
    /// one from the second step on. Errors: as [`Ddp::gradient`](crate::Ddp::gradient). Any thread, but not during begin.
    /// Since 0.1.
    pub fn bucket_of(&self, index: i32) -> Result<i32> {
        let mut out = 0i32;
        check(unsafe { sys::shardrec_ddp_bucket_of(self.raw, index, &mut out) })?;
        Ok(out)
    }

    /// A whole step with sync: begin, all parameters ready, end, wait. Collective, blocking. Errors: as these.
    /// Since 0.1.
    pub fn all_reduce(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_all_reduce(self.raw) })
    }

    /// For a rank without more batches: takes part in the others' steps with zeros, until all ranks have
    /// joined. The mean is over all ranks or those that have not joined (option DDP_JOIN_DIVISOR). Then the
    /// values and optimizer states of the rank with most steps (of several, the lowest) are copied to all.
    /// Collective, blocking; each step of the others counts anew for the deadline. Errors: as
    /// [`DdpExchange::wait`](crate::DdpExchange::wait), [`Ddp::broadcast`](crate::Ddp::broadcast). Since 0.1.
    pub fn join(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_join(self.raw) })
    }

    /// Sets all gradients to zero; between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE.
    /// Since 0.1.
    pub fn zero_gradients(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_zero_gradients(self.raw) })
    }

    /// Bounds the gradients of all parameters, of any dtype; the same on every rank without an exchange, for
    /// gradients are reduced. Results are rounded to nearest in the gradient's dtype.
    /// CLIP_L2, CLIP_INFINITY: all are multiplied by min(1, bound / (norm + 1e-6)), as PyTorch's
    /// clip_grad_norm_. The factor is float32 (float64 for FLOAT64 gradients).
    /// CLIP_VALUE: each becomes the nearest number in \[-bound, bound\], as clip_grad_value_; NaN stays.
    /// bound: finite, \>= 0. out_norm: the norm before, with CLIP_VALUE the infinity norm. A norm
    /// that is NaN or infinite is returned with OK and scales nothing, and [`Ddp::step`](crate::Ddp::step) takes the
    /// gradients as they are: look at it, or set the option NON_FINITE, by which [`DdpExchange::wait`](crate::DdpExchange::wait) refuses
    /// such gradients. After wait. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_ARGUMENT, INVALID_STATE (inside a step; DDP_STEP_IN_BACKWARD). Since 0.2.
    pub fn clip_gradients(&mut self, clip: Clip, bound: f64) -> Result<f64> {
        let mut out_norm = 0f64;
        check(unsafe { sys::shardrec_ddp_clip_gradients(self.raw, clip.raw(), bound, &mut out_norm) })?;
        Ok(out_norm)
    }

    /// One optimizer step on all parameters with their gradients, which stay as they are. After wait. Not
    /// collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no optimizer; inside a step;
    /// DDP_STEP_IN_BACKWARD). Since 0.1.
    pub fn step(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_step(self.raw) })
    }

    /// Sets the learning rate from the next step on; the same on all ranks. Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, INVALID_ARGUMENT, INVALID_STATE (no optimizer; inside a step). Since 0.1.
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_set_learning_rate(self.raw, learning_rate) })
    }

    /// Compares values and optimizer states over the ranks, by a hash of 64 bits each. Collective, blocking;
    /// between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, DISAGREEMENT (names the first
    /// parameter and rank that differ from rank 0, the same on all ranks), OUT_OF_MEMORY, MISMATCH,
    /// PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn check_equal(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_check_equal(self.raw) })
    }

    /// Copies values, optimizer states and the number of steps of rank root to all. Collective, blocking
    /// (setup deadline); between steps. Errors: as [`Ddp::check_equal`](crate::Ddp::check_equal), but DISAGREEMENT;
    /// INVALID_ARGUMENT (root; only this rank). Since 0.1.
    pub fn broadcast(&mut self, root: i32) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_broadcast(self.raw, root) })
    }

    /// What has happened since commit, as JSON; sums over the steps with sync. Buckets are in their order.
    /// "version"                     integer: 1
    /// "ranks", "parameters"         integer: how many there are
    /// "steps", "steps_without_sync", "non_finite_steps"    integer: how many have ended
    /// "exchange_seconds"            number: from the first bucket's sending to the last one's end
    /// "waited_seconds"              number: inside [`DdpExchange::wait`](crate::DdpExchange::wait)
    /// "hidden_seconds"              number: of the exchange, while the host did something else
    /// "buckets\[\].dtype"             text: "float32", for example
    /// "buckets\[\].parameters", "buckets\[\].elements"         integer: how many are in it
    /// "buckets\[\].bytes_sent"        integer: to all peers; with DDP_REDUCTION NCCL the heads of messages, and
    ///                               what was given to NCCL, once
    /// "buckets\[\].seconds"           number: from sending to the end; on a device, until what writes the
    ///                               gradients is enqueued, as in the sums of all buckets above
    /// "buckets\[\].saturated"         integer: numbers beyond float16's range that DDP_COMPRESSION FLOAT16 made
    ///                               +-65504 on this rank
    /// Between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT,
    /// OUT_OF_MEMORY. Since 0.1.
    pub fn statistics_json(&mut self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_ddp_statistics_json(self.raw, out) })
    }
}

impl Fsdp {
    /// Makes an empty set. mesh: of comm, for HYBRID_SHARD, else None. options: kind FSDP or None. Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (a mesh without
    /// HYBRID_SHARD, or the reverse; FSDP_OFFLOAD without DEVICE; no such device), UNSUPPORTED (dtypes; DEVICE without
    /// FSDP_OFFLOAD, or without its plug-in), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2.
    pub fn new(comm: &Comm, mesh: Option<&Mesh>, options: Option<&FsdpOptions>) -> Result<Fsdp> {
        with(options.map(|o| &o.0), |made| Fsdp::made_by(|out| unsafe { sys::shardrec_fsdp_create(comm.0, mesh.map_or(std::ptr::null_mut(), |handle| handle.0), made, out) }))
    }

    /// Adds a unit. name: UTF-8, not empty, unique. out_unit: counts from 0. Not collective.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (after commit), INVALID_ARGUMENT, OUT_OF_MEMORY.
    /// Since 0.2.
    pub fn add_unit(&mut self, name: &str) -> Result<i32> {
        let name = c_text(name)?;
        let mut out_unit = 0i32;
        check(unsafe { sys::shardrec_fsdp_add_unit(self.0, name.as_ptr(), &mut out_unit) })?;
        Ok(out_unit)
    }

    /// Adds a FLOAT32 parameter to a unit: its shape alone; commit makes the memory of this rank's part, which is
    /// zero. rows: 0 or more; columns: 0: the shape is \[rows\], else it is \[rows, columns\]. A set has at most 2^48
    /// elements, those of each parameter rounded up to a multiple of 32. One of more dimensions is given as a matrix
    /// with the same elements, row-major. name: UTF-8, not empty, unique in the set. out_index: counts from 0 over all
    /// units. Not collective. Errors: as [`Fsdp::add_unit`](crate::Fsdp::add_unit); NOT_FOUND (unit). Since 0.2.
    pub fn add_parameter(&mut self, unit: i32, name: &str, rows: i64, columns: i64) -> Result<i32> {
        let name = c_text(name)?;
        let mut out_index = 0i32;
        check(unsafe { sys::shardrec_fsdp_add_parameter(self.0, unit, name.as_ptr(), rows, columns, &mut out_index) })?;
        Ok(out_index)
    }

    /// Adds the layers of a stack as units: a unit is the next layers of it until they have unit_elements elements
    /// (1: each layer with parameters), named "\<name\>.layer.0" or "\<name\>.layer.0-2", with parameters
    /// "\<name\>.layer.0.weight" and so on. commit gives them the values that the stack of rank 0 has; from then on they are
    /// the set's, and the stack's own memory is given back: views of it read zeros. [`Mlp::forward`](crate::Mlp::forward) unshards,
    /// computes and reshards one unit after the other, and [`MlpPass::backward`](crate::MlpPass::backward) unshards them in reverse and marks them
    /// ready. Both are calls of a step of the set, between begin and end, under its thread rule, with errors of unshard,
    /// wait_unshard, reshard, gradient and mark_ready too; a second backward in a step with sync is INVALID_STATE.
    /// Gradients have the bits that the stack has in a shardrec_ddp. INVALID_STATE are [`Mlp::parameter`](crate::Mlp::parameter), _state,
    /// _zero_gradients, _step and LEARNING_RATE of _set_f64: use shard, full, set_full, zero_gradients, step and
    /// set_learning_rate of the set, whose steps [`Mlp::info`](crate::Mlp::info) does not count. The set keeps the stack; when the set
    /// is destroyed, forward and backward are CLOSED. In a checkpoint ([`Checkpoint::add_mlp`](crate::Checkpoint::add_mlp)) it is a whole stack,
    /// with the set's optimizer. A stack in 16 bits on the CPU rounds the weights of a unit while it is computed; in
    /// FLOAT16 its loss scale follows its own gradients, and steps are refused or skipped by the set, on all ranks alike.
    /// out_first: the index of its first parameter. Not collective.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT; INVALID_STATE (after commit; no parameter in the stack; it
    /// is in a set already); UNSUPPORTED (a stack whose DEVICE is not the set's, in 16 bits on a device, in FLOAT16 with
    /// NON_FINITE ALLOW of the set, or with ACCUMULATE_GRADIENTS; FSDP_PARAMETER_DTYPE that is not FLOAT32);
    /// OUT_OF_MEMORY. Since 0.2.
    pub fn add_mlp(&mut self, name: &str, mlp: &Mlp, unit_elements: i64) -> Result<i32> {
        let name = c_text(name)?;
        let mut out_first = 0i32;
        check(unsafe { sys::shardrec_fsdp_add_mlp(self.0, name.as_ptr(), mlp.0, unit_elements, &mut out_first) })?;
        Ok(out_first)
    }

    /// Gives the set an optimizer, as [`Ddp::set_optimizer`](crate::Ddp::set_optimizer); its states are sharded as the parameters are.
    /// Before commit; not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT,
    /// UNSUPPORTED. Since 0.2.
    pub fn set_optimizer(&mut self, options: Option<&OptimizerOptions>) -> Result<()> {
        with(options.map(|o| &o.0), |made| check(unsafe { sys::shardrec_fsdp_set_optimizer(self.0, made) }))
    }

    /// Checks that all ranks added the same units and parameters (count, names, shapes) with the same options
    /// and optimizer, then makes all memory; values are zero. Collective, blocking (setup deadline).
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE (twice: only this rank; no parameters: on all ranks
    /// alike), INVALID_ARGUMENT (a name that begins with "optimizer." in a set with an optimizer; only this
    /// rank); DISAGREEMENT (names rank and parameter or option, the same on all ranks; the communicator lives
    /// on); OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn commit(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_commit(self.0) })
    }

    /// Begins a step; gathers of the units that the last step asked for first leave. sync 1: gradients are
    /// reduced; 0: no gradient is sent: full gradients are kept, in memory of their own for each unit whose
    /// gradient is asked for, and the next step with sync reduces the sum; also for evaluation. The same on
    /// all ranks, else MISMATCH where they exchange something next. Waits for nobody but for a peer that has not
    /// taken what this rank sent in the step before.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no commit; inside a step), INVALID_ARGUMENT,
    /// OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn begin(&mut self, sync: bool) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_begin(self.0, sync.into()) })
    }

    /// Asks for the full parameters of a unit: what other ranks have of them leaves there, unless it was prefetched.
    /// Does not wait, but where the buffer that it takes is still being filled for a unit that this step does not use,
    /// where 12 units are on their way, and for a peer that is so many gathers behind. Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, NOT_FOUND; INVALID_STATE, only this rank, nothing has changed: no step; unsharded already; all buffers
    /// are held by units that were not resharded, which the sentence names; OUT_OF_MEMORY, MISMATCH, PEER_FAILED,
    /// TIMEOUT, ABORTED. Since 0.2.
    pub fn unshard(&mut self, unit: i32) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_unshard(self.0, unit) })
    }

    /// Waits until the full parameters of a unit are there. Blocking. Errors: as [`Fsdp::unshard`](crate::Fsdp::unshard);
    /// INVALID_STATE (it is not unsharded); MISMATCH: another rank unsharded another unit here; the sentence names
    /// both. Since 0.2.
    pub fn wait_unshard(&mut self, unit: i32) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_wait_unshard(self.0, unit) })
    }

    /// The host no longer reads the full parameters of a unit: their buffer is free for another one. Waits for them
    /// where wait_unshard was not called. Errors: as
    /// [`Fsdp::wait_unshard`](crate::Fsdp::wait_unshard). Since 0.2.
    pub fn reshard(&mut self, unit: i32) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_reshard(self.0, unit) })
    }

    /// The gradients of a unit are whole: it is resharded, and with sync their reduction begins, in the order that the
    /// head of this file says. Gradients that nothing was added to are zeros. May wait as [`Fsdp::gradient_mut`](crate::Fsdp::gradient_mut) and
    /// [`Fsdp::reshard`](crate::Fsdp::reshard) do. Errors: as there; INVALID_STATE (a second time in a step with sync). Since 0.2.
    pub fn mark_ready(&mut self, unit: i32) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_mark_ready(self.0, unit) })
    }

    /// Ends the host's part of a step. Waits for units that were prefetched and not asked for. Errors: INVALID_HANDLE,
    /// CLOSED, BUSY; INVALID_STATE: no begin; a unit is unsharded: reshard it and call again; MISMATCH, PEER_FAILED,
    /// TIMEOUT, ABORTED. Since 0.2.
    pub fn end(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_end(self.0) })
    }

    /// Waits until all gradients are reduced: the mean over all ranks (options DDP_AVERAGE, DDP_FACTOR) is added
    /// to the gradient of each rank's shard, or takes its place where zero_gradients was called since. A unit that
    /// the step did not unshard is left alone. Collective, blocking; after a step without sync it returns at once.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE: no end, only this rank; or, on all ranks alike, a rank
    /// had not marked a unit ready that this step unsharded: RANK, POSITION (the unit), and the sentence names it;
    /// the gradient of its shards is as it was, what steps without sync have kept of it is forgotten, others are
    /// reduced, and the communicator lives on; INVALID_BATCH, on all ranks alike: option NON_FINITE ERROR, and the
    /// gradient of a shard is NaN or infinite: the sentence names the parameter, which is POSITION, VALUE its first
    /// such element, RANK a rank that has it in its shard. With SKIP this returns OK, [`Fsdp::step`](crate::Fsdp::step) then does
    /// nothing, and "non_finite_steps" of the statistics counts. With either, ranks exchange what they have found
    /// in each step with sync. MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2.
    pub fn wait(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_wait(self.0) })
    }

    /// Sets the gradients of this rank's shards to zero, and forgets those that steps without sync have kept.
    /// Between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE. Since 0.2.
    pub fn zero_gradients(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_zero_gradients(self.0) })
    }

    /// As [`Ddp::clip_gradients`](crate::Ddp::clip_gradients), of the whole gradients: what shards have is added up, or compared, over the
    /// sharding group, so that all ranks scale alike. Collective over the sharding group, blocking. Between steps.
    /// A norm that is NaN or infinite scales nothing: see the option NON_FINITE.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE, MISMATCH, PEER_FAILED, TIMEOUT,
    /// ABORTED. Since 0.2.
    pub fn clip_gradients(&mut self, clip: Clip, bound: f64) -> Result<f64> {
        let mut out_norm = 0f64;
        check(unsafe { sys::shardrec_fsdp_clip_gradients(self.0, clip.raw(), bound, &mut out_norm) })?;
        Ok(out_norm)
    }

    /// One optimizer step on this rank's shards with their gradients, which stay as they are. Waits until peers have
    /// read the shards in the step before; with LAMB collective over the sharding group. Does nothing after a
    /// [`Fsdp::wait`](crate::Fsdp::wait) that the option NON_FINITE SKIP skips. Between steps. Errors:
    /// INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no optimizer; inside a step), PEER_FAILED, TIMEOUT, ABORTED.
    /// Since 0.2.
    pub fn step(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_step(self.0) })
    }

    /// Sets the learning rate from the next step on; the same on all ranks. Errors: as
    /// [`Ddp::set_learning_rate`](crate::Ddp::set_learning_rate). Since 0.2.
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_set_learning_rate(self.0, learning_rate) })
    }

    /// Gathers a whole parameter, its gradient or a state into out: compact, FLOAT32, on the CPU, as many elements as
    /// the parameter. Collective over the sharding group, blocking (setup deadline); between steps. What is refused
    /// for out, index or array is told to this rank only: others wait for its call. Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since
    /// 0.2.
    pub fn full(&mut self, index: i32, array: i32, out: ViewMut<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_full(self.0, index, array, &out.raw) })
    }

    /// Sets a whole parameter, its gradient or a state. root -1: each rank takes its part of its own tensor, which
    /// is the same on all ranks; not collective. root in \[0, ranks): rank root's tensor is sent to all, and the
    /// tensors of the others are not looked at; collective over all ranks, blocking (setup deadline). tensor: compact,
    /// FLOAT32, on the CPU, as many elements as the parameter. Between steps. What is refused for tensor, index, array
    /// or root is told to this rank only, and nothing has changed: others wait for its call. Errors: as
    /// [`Fsdp::full`](crate::Fsdp::full). Since 0.2.
    pub fn set_full(&mut self, index: i32, array: i32, tensor: View<'_>, root: i32) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_set_full(self.0, index, array, &tensor.raw, root) })
    }

    /// Compares values and states of the ranks that have the same shard (HYBRID_SHARD, NO_SHARD), by a hash of 64
    /// bits each. Collective, blocking; between steps. Errors: as [`Ddp::check_equal`](crate::Ddp::check_equal). Since 0.2.
    pub fn check_equal(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_fsdp_check_equal(self.0) })
    }

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
    /// "gradient_waited_seconds"       number: in [`Fsdp::wait`](crate::Fsdp::wait), and for buffers of gradients
    /// Between steps. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_STATE, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2.
    pub fn statistics_json(&mut self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_fsdp_statistics_json(self.0, out) })
    }
}

/// What [`Mlp::info`] returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MlpInfo {
    /// See there.
    pub inputs: i64,
    /// See there.
    pub outputs: i64,
    /// See there.
    pub layers: i32,
    /// See there.
    pub parameters: i32,
    /// See there.
    pub elements: i64,
    /// See there.
    pub step: i64,
    /// See there.
    pub learning_rate: f64,
    /// See there.
    pub optimizer: Option<Optimizer>,
    /// See there.
    pub states: i32,
    /// See there.
    pub loss_scale: f64,
    /// See there.
    pub skipped_steps: i64,
}

impl Mlp {
    /// Makes an empty stack of layers. inputs in \[1, 65536\]: columns of its input.
    /// options: kind MLP or None (seed, threads, optimizer: SGD, MOMENTUM_SGD, ADAGRAD, ADAM or LAMB;
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
    ///           count. [`Mlp::step`](crate::Mlp::step) is skipped where a gradient of a parameter is NaN or infinite as it
    ///           is then, accumulated or reduced over ranks: parameters, optimizer states and the count of steps
    ///           stay as they are, and skipped_steps of shardrec_layers counts. A DDP set that steps has
    ///           the option NON_FINITE SKIP for that, by which one rank's infinity is a step that all ranks
    ///           skip, or ERROR; its commit is UNSUPPORTED otherwise.
    ///           Each rank has its own S. On a device S is there, and so is the decision to skip: no call waits
    ///           for them but [`Mlp::info`](crate::Mlp::info) and checkpoints. These have S and its count, but not
    ///           LOSS_SCALE_STEPS, nor skipped_steps: a stack that goes on is made with the same one. Loaded
    ///           from a stack of another precision, a stack keeps the S that it has.
    /// In all of them a ReLU gives NaN for NaN, so that a NaN comes to the loss and to the gradients: its mask is
    /// never that of a matrix product's kernel, which has 0 there.
    /// Errors: INVALID_ARGUMENT, UNSUPPORTED (a plug-in or its library is missing;
    /// the sentence names the package), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn new(inputs: i64, options: Option<&MlpOptions>) -> Result<Mlp> {
        with(options.map(|o| &o.0), |made| Mlp::made_by(|out| unsafe { sys::shardrec_mlp_create(inputs, made, out) }))
    }

    /// What the stack is. out: its struct_size is set; the members that fit in it are written. Of a stack with
    /// PRECISION FLOAT16 on a device the call returns when the device has done what was enqueued before.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, DEVICE_ERROR, OUT_OF_MEMORY. Since 0.2.
    pub fn info(&self) -> Result<MlpInfo> {
        let mut out = sys::shardrec_layers::new();
        check(unsafe { sys::shardrec_mlp_info(self.0, &mut out) })?;
        Ok(MlpInfo { inputs: out.inputs, outputs: out.outputs, layers: out.layers, parameters: out.parameters, elements: out.elements, step: out.step, learning_rate: out.learning_rate, optimizer: Optimizer::of(out.optimizer), states: out.states, loss_scale: out.loss_scale, skipped_steps: out.skipped_steps })
    }

    /// Sets the gradients of all parameters to zero. A step after it without a backward goes by zero
    /// gradients (weight decay and Adam's means apply). Errors: INVALID_HANDLE, CLOSED, BUSY. Since 0.1.
    pub fn zero_gradients(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_mlp_zero_gradients(self.0) })
    }

    /// One optimizer step on all parameters with their gradients, which stay as they are; with PRECISION
    /// FLOAT16 none where one of them is NaN or infinite ([`Mlp::new`](crate::Mlp::new)). Errors: INVALID_HANDLE, CLOSED,
    /// BUSY, INVALID_STATE (no backward yet). Since 0.1.
    pub fn step(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_mlp_step(self.0) })
    }

    /// Changes a setting for later calls. backward is that of the last forward, whatever TRAINING was set to
    /// since. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.2.
    pub fn set(&mut self, setting: MlpSetting, value: f64) -> Result<()> {
        check(unsafe { sys::shardrec_mlp_set_f64(self.0, setting.raw(), value) })
    }
}

impl Interaction {
    /// Makes a dot interaction of 1 dense and `features` embedding vectors of dim columns each.
    /// features \>= 0, dim \>= 1. options: kind MLP (threads, DEVICE, DEVICE_WAIT, STREAM; it computes in
    /// FLOAT32 whatever PRECISION is) or None. Errors: INVALID_ARGUMENT,
    /// UNSUPPORTED, OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn new(features: i64, dim: i64, options: Option<&MlpOptions>) -> Result<Interaction> {
        with(options.map(|o| &o.0), |made| Interaction::made_by(|out| unsafe { sys::shardrec_interaction_create(features, dim, made, out) }))
    }

    /// Number of columns of its output: dim + (features + 1) \* features / 2. Errors: INVALID_HANDLE, CLOSED,
    /// INVALID_ARGUMENT. Since 0.1.
    pub fn outputs(&self) -> Result<i64> {
        let mut out = 0i64;
        check(unsafe { sys::shardrec_interaction_outputs(self.0, &mut out) })?;
        Ok(out)
    }
}

/// What [`Checkpoint::info`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// See there.
    pub step: i64,
    /// See there.
    pub commit: i64,
    /// See there.
    pub bytes: i64,
    /// See there.
    pub format: i32,
    /// See there.
    pub ranks: i32,
    /// See there.
    pub collections: i32,
    /// See there.
    pub layers: i32,
    /// See there.
    pub parameters: i32,
    /// See there.
    pub tensors: i32,
}

impl Checkpoint {
    /// Makes a handle for the checkpoints below a directory. Reads and writes nothing yet.
    /// comm: the ranks that commit, open and load together; for collections on a mesh the communicator
    /// that the mesh was made of. directory: UTF-8, the same on all ranks; made by the first commit.
    /// options: kind CHECKPOINT (KEEP_LAST, MOST_DELTAS, DELTA_STATES) or None. It keeps what it
    /// needs of comm.
    /// Not collective, but all ranks of comm create their handles on it in the same order.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn new(comm: &Comm, directory: &str, options: Option<&CheckpointOptions>) -> Result<Checkpoint> {
        let directory = c_text(directory)?;
        with(options.map(|o| &o.0), |made| Checkpoint::made_by(|out| unsafe { sys::shardrec_checkpoint_create(comm.0, directory.as_ptr(), made, out) }))
    }

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
    pub fn add_collection(&mut self, name: &str, collection: &Collection) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_checkpoint_add_collection(self.0, name.as_ptr(), collection.0) })
    }

    /// See [`Checkpoint::add_collection`](crate::Checkpoint::add_collection).
    pub fn add_mlp(&mut self, name: &str, mlp: &Mlp) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_checkpoint_add_mlp(self.0, name.as_ptr(), mlp.0) })
    }

    /// See [`Checkpoint::add_collection`](crate::Checkpoint::add_collection).
    pub fn add_ddp(&mut self, name: &str, ddp: &Ddp) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_checkpoint_add_ddp(self.0, name.as_ptr(), ddp.raw) })
    }

    /// The same of sharded parameters, made on the handle's communicator, after their commit and between their steps.
    /// They are saved whole, as [`Checkpoint::add_ddp`](crate::Checkpoint::add_ddp) saves parameters with these names: sets of either kind
    /// load what either has saved, in FLOAT32 with the same names and shapes, over any number of ranks and with any
    /// strategy. A commit or load gathers them, and takes the memory of all values and states on each rank while it
    /// lasts; [`Checkpoint::commit_begin`](crate::Checkpoint::commit_begin) takes it twice, and keeps one until [`Checkpoint::commit_wait`](crate::Checkpoint::commit_wait).
    /// Errors: as [`Checkpoint::add_ddp`](crate::Checkpoint::add_ddp).
    /// Since 0.2.
    pub fn add_fsdp(&mut self, name: &str, fsdp: &Fsdp) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_checkpoint_add_fsdp(self.0, name.as_ptr(), fsdp.0) })
    }

    /// Sets a tensor of this rank that the next commits write, in place of one of that name that was set
    /// before: optimizer states of the host, the position in its data, settings as bytes (UINT8).
    /// Each rank may set tensors of its own, of any dtype and shape, or none; load does not touch them:
    /// [`Checkpoint::get_tensor`](crate::Checkpoint::get_tensor) reads those of any rank. tensor: compact, copied; None takes the
    /// name out again. name: as [`Checkpoint::add_collection`](crate::Checkpoint::add_collection).
    /// Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, UNSUPPORTED (device),
    /// NOT_FOUND (None for a name that was not set), OUT_OF_MEMORY. Since 0.1.
    pub fn set_tensor(&mut self, name: &str, tensor: Option<View<'_>>) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_checkpoint_set_tensor(self.0, name.as_ptr(), tensor.as_ref().map_or(std::ptr::null(), |view| &view.raw)) })
    }

    /// Writes a checkpoint of all that was added and set, and makes it the newest. step: \>= 0, a number
    /// of the host's that names it, the same on all ranks; a checkpoint of the same run and step is
    /// replaced once the new one is there. With KEEP_LAST older checkpoints of this run are then removed.
    /// Gradients that were accumulated and not yet applied are not saved. Tables on a mesh are written by
    /// the first replica, states that replicas share (REPLICA_SYNC SHARDED) by those that have them; those that are cut must
    /// have been averaged since their last step (INVALID_STATE).
    /// control: None allowed; counts this rank's bytes, cancels. Temporary memory: about 5 MiB.
    /// Collective, blocking (setup deadline). After an error there is no new checkpoint and the one
    /// before is as it was; only where a disk fails in the last moment and does not let that be undone
    /// (IO_ERROR) the new one may stay, whole. Errors: INVALID_HANDLE, CLOSED (also: what was added is
    /// destroyed), BUSY, INVALID_ARGUMENT (step), INVALID_STATE (nothing was added or set; the directory
    /// holds checkpoints of a run that this handle has not opened; another job commits there now, or has
    /// committed since this handle's last open or commit), IO_ERROR (on any rank: all get it, with rank
    /// and path; also where a rank does not see the same directory), DISAGREEMENT (directory, names, layers
    /// or DDP parameters differ between ranks), CANCELLED, OUT_OF_MEMORY, MISMATCH (also: the steps differ),
    /// PEER_FAILED, TIMEOUT, ABORTED (these three: the checkpoint may be there or not, whole). Since 0.1.
    pub fn commit(&mut self, step: i64, control: Option<&Control>) -> Result<()> {
        check(unsafe { sys::shardrec_checkpoint_commit(self.0, step, control.map_or(std::ptr::null_mut(), |control| control.0)) })
    }

    /// Writes a delta: of tables the rows, with their optimizer states, that have changed since the last commit of this
    /// handle ([`Collection::mark`](crate::Collection::mark) says what has); layers, DDP parameters and tensors whole. It is a checkpoint as any
    /// other: it becomes the newest at once, on all ranks, or is not there; open, load, verify and scorers take it, and read
    /// the whole checkpoint that it is a change of, and all deltas in between, with their checksums. KEEP_LAST leaves
    /// those where a checkpoint that stays is a change of them. With DELTA_STATES 0 a delta is for scorers, which read no
    /// states: it leaves them out, and is so much smaller. A training does not go on from it, but from the whole checkpoint
    /// behind it: [`Checkpoint::load`](crate::Checkpoint::load) refuses it where an optimizer has states, unless
    /// [`Checkpoint::load_partial`](crate::Checkpoint::load_partial) is told otherwise. Layers and DDP parameters keep their states in all deltas.
    /// The commit is whole where this handle does not know the changes: in the first call of this function, in the first one
    /// behind open or a load, where other collections have been added since, and behind MOST_DELTAS deltas; commit and
    /// commit_begin write a whole one, which later deltas are changes of. One load is as a commit, so that the next delta is
    /// a change of what was loaded: [`Checkpoint::load`](crate::Checkpoint::load) of the newest checkpoint of a run that has deltas in the
    /// directory, under any plan and number of ranks, where the collections that were added are those of the checkpoint,
    /// with the same tables and ROW_STATISTICS in the same order. From the first call or such a load on, until the handle
    /// is destroyed, a mark of each collection notes the changes (memory: [`Collection::mark`](crate::Collection::mark)); another load releases
    /// it, and the next commit of any kind makes one again. Temporary memory: another mark of each collection, and about
    /// 14 MiB.
    /// out_delta: 1 where changes alone were written, else 0; the same on all ranks. All else, and errors: as
    /// [`Checkpoint::commit`](crate::Checkpoint::commit); also NOT_FOUND (the last commit is not in the directory any more: commit writes a whole
    /// one), DISAGREEMENT (DELTA_STATES). Since 0.2.
    pub fn commit_delta(&mut self, step: i64, control: Option<&Control>) -> Result<bool> {
        let mut out_delta = 0i32;
        check(unsafe { sys::shardrec_checkpoint_commit_delta(self.0, step, control.map_or(std::ptr::null_mut(), |control| control.0), &mut out_delta) })?;
        Ok(out_delta != 0)
    }

    /// Begins a commit whose files a thread of the library writes while the caller goes on;
    /// [`Checkpoint::commit_wait`](crate::Checkpoint::commit_wait) ends it. They are, byte for byte, those that [`Checkpoint::commit`](crate::Checkpoint::commit)
    /// would have written in place of this call. Layers, parameters and tensors are copied here; rows of tables
    /// are copied when they are about to change, each once, and only until they are written, so that a step
    /// takes somewhat longer meanwhile. Tables on a device are copied to the host's memory here.
    /// Until the commit is over, all that was added may be used, changed and destroyed (steps, writing of rows,
    /// sync of replicas, learning rates, step numbers), and names may be added and set for later commits; but
    /// INVALID_STATE are other commits, open, load and load_partial of this handle, and, by other handles too, loads and
    /// commits in the background of its collections. Destroying the checkpoint handle gives the commit up: what
    /// was written is removed, without waiting for it; until that is done other commits to the directory are
    /// INVALID_STATE.
    /// step, and what must be so: as [`Checkpoint::commit`](crate::Checkpoint::commit). control: None allowed; counts this rank's
    /// bytes and cancels until the commit is over. Temporary memory: layers, parameters, tensors, a bit per row, and
    /// rows that change before they are written, at most the tables (counted by SHARDREC_STAT_BYTES_BUFFERS);
    /// where a row cannot be copied the commit fails (OUT_OF_MEMORY from commit_wait), and not the step.
    /// Collective, blocking (setup deadline) until the copies are made. After an error no commit is under way.
    /// Errors: as [`Checkpoint::commit`](crate::Checkpoint::commit). Since 0.2.
    pub fn commit_begin(&mut self, step: i64, control: Option<&Control>) -> Result<()> {
        check(unsafe { sys::shardrec_checkpoint_commit_begin(self.0, step, control.map_or(std::ptr::null_mut(), |control| control.0)) })
    }

    /// Begins a delta that is written so: [`Checkpoint::commit_delta`](crate::Checkpoint::commit_delta), in the way of [`Checkpoint::commit_begin`](crate::Checkpoint::commit_begin);
    /// [`Checkpoint::commit_wait`](crate::Checkpoint::commit_wait) ends it. The files have the bytes that commit_delta would have written in place of
    /// this call, and the commit is whole where that would be. Of tables only the rows that the delta has are copied: on the
    /// host those that change before they are written, on a device all of them, here. What changes behind this call is in
    /// the next delta; where the commit fails or is given up, the next one has the changes of both.
    /// out_delta: as of [`Checkpoint::commit_delta`](crate::Checkpoint::commit_delta), known here already. Temporary memory: as
    /// [`Checkpoint::commit_begin`](crate::Checkpoint::commit_begin), of the rows of the delta, and as [`Checkpoint::commit_delta`](crate::Checkpoint::commit_delta).
    /// Collective, blocking (setup deadline) until the copies are made. After an error no commit is under way.
    /// Errors: as [`Checkpoint::commit_delta`](crate::Checkpoint::commit_delta). Since 0.2.
    pub fn commit_delta_begin(&mut self, step: i64, control: Option<&Control>) -> Result<bool> {
        let mut out_delta = 0i32;
        check(unsafe { sys::shardrec_checkpoint_commit_delta_begin(self.0, step, control.map_or(std::ptr::null_mut(), |control| control.0), &mut out_delta) })?;
        Ok(out_delta != 0)
    }

    /// Waits for the end of a commit that was begun, and makes it the newest checkpoint. timeout_ms: how long
    /// this rank waits for its own files; 0: it asks only; negative: until they are written. Ranks may give
    /// different ones. out_done: 1 when the checkpoint is there, 0 when files of some rank are not yet written, the
    /// same on all ranks: then this is called again. May be called by another thread than the one that trains.
    /// Collective; peers wait for each other, at most until the setup deadline. After an error the commit is
    /// over, and as [`Checkpoint::commit`](crate::Checkpoint::commit) says of errors; what was added can be used as before.
    /// Errors: as [`Checkpoint::commit`](crate::Checkpoint::commit), whichever rank failed to write its files; INVALID_STATE (no commit is
    /// under way), INVALID_ARGUMENT (out_done; the commit goes on). Since 0.2.
    pub fn commit_wait(&mut self, timeout_ms: i32) -> Result<bool> {
        let mut out_done = 0i32;
        check(unsafe { sys::shardrec_checkpoint_commit_wait(self.0, timeout_ms, &mut out_done) })?;
        Ok(out_done != 0)
    }

    /// Chooses a checkpoint for load, get_tensor, model, plan, mlp, verify and contents_json, and takes
    /// part in its run: commits go on in it. step: -1 for the newest. Reads and checks the manifest only. A
    /// commit does not change which checkpoint is open, but may remove it (KEEP_LAST). Collective,
    /// blocking (setup deadline). After an error the checkpoint that was open before stays open.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, NOT_FOUND (no checkpoint, no such step; what a delta is a
    /// change of is not there), CORRUPT_DATA (also: what a delta is a change of is another checkpoint), UNSUPPORTED (of a
    /// later release), IO_ERROR (also: a rank sees other files than rank 0), DISAGREEMENT (ranks name different
    /// directories), OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn open(&mut self, step: i64) -> Result<()> {
        check(unsafe { sys::shardrec_checkpoint_open(self.0, step) })
    }

    /// What is open. out: its struct_size is set; the members that fit in it are written.
    /// Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open), INVALID_ARGUMENT. Since 0.2.
    pub fn info(&self) -> Result<CheckpointInfo> {
        let mut out = sys::shardrec_opened::new();
        check(unsafe { sys::shardrec_checkpoint_info(self.0, &mut out) })?;
        Ok(CheckpointInfo { step: out.step, commit: out.commit, bytes: out.bytes, format: out.format, ranks: out.ranks, collections: out.collections, layers: out.layers, parameters: out.parameters, tensors: out.tensors })
    }

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
    pub fn load(&mut self, control: Option<&Control>) -> Result<()> {
        check(unsafe { sys::shardrec_checkpoint_load(self.0, control.map_or(std::ptr::null_mut(), |control| control.0)) })
    }

    /// Loads into what may differ from what was saved: a warm start. As [`Checkpoint::load`](crate::Checkpoint::load), and as strict,
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
    /// [`Checkpoint::load`](crate::Checkpoint::load); what the document leaves as it is has not changed. Errors: as
    /// [`Checkpoint::load`](crate::Checkpoint::load); also INVALID_ARGUMENT (the document, with the place in it), NOT_FOUND (something
    /// is extra), DISAGREEMENT (the documents differ), INVALID_STATE (a collection would be loaded in part that
    /// a load has left filled in part, or whose cut tables have not been averaged since their last step).
    /// Since 0.2.
    pub fn load_partial(&mut self, json: &str, control: Option<&Control>) -> Result<String> {
        let json = c_text(json)?;
        take_text(|out| unsafe { sys::shardrec_checkpoint_load_partial(self.0, json.as_ptr(), control.map_or(std::ptr::null_mut(), |control| control.0), out) })
    }

    /// The model / the plan of a collection in the open checkpoint, and a stack of layers and optimizer as
    /// one was when it was saved, with new values (load fills them). options of the stack: kind MLP or
    /// None; its optimizer keys are replaced by those of the checkpoint.
    /// Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open), NOT_FOUND (the
    /// name; a checkpoint of an earlier release holds no model and plan), INVALID_ARGUMENT, CORRUPT_DATA,
    /// UNSUPPORTED (of a later release), OUT_OF_MEMORY. Since 0.1.
    pub fn model(&mut self, name: &str) -> Result<Model> {
        let name = c_text(name)?;
        Model::made_by(|out| unsafe { sys::shardrec_checkpoint_model(self.0, name.as_ptr(), out) })
    }

    /// See [`Checkpoint::model`](crate::Checkpoint::model).
    pub fn plan(&mut self, name: &str) -> Result<Plan> {
        let name = c_text(name)?;
        Plan::made_by(|out| unsafe { sys::shardrec_checkpoint_plan(self.0, name.as_ptr(), out) })
    }

    /// See [`Checkpoint::model`](crate::Checkpoint::model).
    pub fn mlp(&mut self, name: &str, options: Option<&MlpOptions>) -> Result<Mlp> {
        let name = c_text(name)?;
        with(options.map(|o| &o.0), |made| Mlp::made_by(|out| unsafe { sys::shardrec_checkpoint_mlp(self.0, name.as_ptr(), made, out) }))
    }

    /// Reads such a tensor into out, which is compact and has its dtype and shape. Nothing is written
    /// unless the checksum matches. Not collective. Errors: as [`Checkpoint::tensor_info`](crate::Checkpoint::tensor_info); also
    /// CORRUPT_DATA, IO_ERROR, OUT_OF_MEMORY. Since 0.1.
    pub fn get_tensor(&mut self, name: &str, rank: i32, out: ViewMut<'_>) -> Result<()> {
        let name = c_text(name)?;
        check(unsafe { sys::shardrec_checkpoint_get_tensor(self.0, name.as_ptr(), rank, &out.raw) })
    }

    /// Reads the whole open checkpoint and compares every checksum; the ranks share the work.
    /// control: as commit. Collective, blocking (setup deadline). Errors: as [`Checkpoint::load`](crate::Checkpoint::load).
    /// Since 0.1.
    pub fn verify(&mut self, control: Option<&Control>) -> Result<()> {
        check(unsafe { sys::shardrec_checkpoint_verify(self.0, control.map_or(std::ptr::null_mut(), |control| control.0)) })
    }

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
    /// Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_STATE (none is open), INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1.
    pub fn contents_json(&mut self) -> Result<String> {
        take_text(|out| unsafe { sys::shardrec_checkpoint_contents_json(self.0, out) })
    }
}

/// What [`Scorer::info`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScorerInfo {
    /// See there.
    pub step: i64,
    /// See there.
    pub dense_columns: i64,
    /// See there.
    pub scores: i64,
}

impl Scorer {
    /// Opens a checkpoint for serving. Every byte that is served is read and compared with its checksum:
    /// a damaged checkpoint is refused.
    /// directory: UTF-8, as [`Checkpoint::new`](crate::Checkpoint::new) was given it, or one that is a checkpoint itself.
    /// step: that of the checkpoint, -1 for the newest. options: kind SCORER or None. control: None allowed;
    /// counts bytes, cancels.
    /// With MAPPED tables the files must stay as they are while they are served: removing them is fine
    /// (KEEP_LAST), truncating one in place ends the process with SIGBUS. No call of this library does that.
    /// Blocking, any thread. Errors: INVALID_HANDLE (options, control), INVALID_ARGUMENT (an option; layers
    /// that options name and that do not fit, the sentence says which columns), NOT_FOUND (the checkpoint,
    /// the collection, layers that options name; a checkpoint of an earlier release, which holds no model),
    /// CORRUPT_DATA, UNSUPPORTED (of a later release; with INT8 a row of too wide a range, whose table and
    /// position the error has), IO_ERROR, CANCELLED, OUT_OF_MEMORY. Since 0.1.
    pub fn open(directory: &str, step: i64, options: Option<&ScorerOptions>, control: Option<&Control>) -> Result<Scorer> {
        let directory = c_text(directory)?;
        with(options.map(|o| &o.0), |made| Scorer::made_by(|out| unsafe { sys::shardrec_scorer_open(directory.as_ptr(), step, made, control.map_or(std::ptr::null_mut(), |control| control.0), out) }))
    }

    /// Serves another checkpoint of the directory from now on: step as [`Scorer::open`](crate::Scorer::open). Where that is
    /// the one that is open, it stays. Both are in memory until calls that began with the one before
    /// have returned, which this call waits for. Where it is a delta behind the one that is open, however many there are in
    /// between, only the rows that have changed since are read, and the dense half: calls read them beside the tables until
    /// none of them reads the checkpoint before, then they are written into the tables; memory and time are in
    /// proportion to them, with half a byte per row of the tables that have changed, and the manifests of these deltas. INT8
    /// rows are quantised anew where they have changed. The whole checkpoint and its deltas are read where tables that are MAPPED
    /// have changed, and where INT8 rows have changed in some columns only. Its tables must have the same names, dims, and
    /// features as those that are served, and layers the same columns at both ends; rows and dtypes may differ.
    /// After an error the one before is served on. control: as [`Scorer::open`](crate::Scorer::open). out_step: the step that
    /// is served now. Blocking. Errors: INVALID_HANDLE, CLOSED, BUSY (another refresh), and
    /// those of [`Scorer::open`](crate::Scorer::open); INVALID_ARGUMENT (another model). Since 0.1.
    pub fn refresh(&self, step: i64, control: Option<&Control>) -> Result<i64> {
        let mut out_step = 0i64;
        check(unsafe { sys::shardrec_scorer_refresh(self.0, step, control.map_or(std::ptr::null_mut(), |control| control.0), &mut out_step) })?;
        Ok(out_step)
    }

    /// The model of the collection that is served: its features, in the order of batches, and tables.
    /// out: a copy, owned by the caller. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY.
    /// Since 0.1.
    pub fn model(&self) -> Result<Model> {
        Model::made_by(|out| unsafe { sys::shardrec_scorer_model(self.0, out) })
    }

    /// What is served now. out: its struct_size is set; the members that fit in it are written.
    /// Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Since 0.1.
    pub fn info(&self) -> Result<ScorerInfo> {
        let mut out = sys::shardrec_served::new();
        check(unsafe { sys::shardrec_scorer_info(self.0, &mut out) })?;
        Ok(ScorerInfo { step: out.step, dense_columns: out.dense_columns, scores: out.scores })
    }
}

impl Metrics {
    /// Makes an empty metric; its clock starts. comm: None for this rank alone. options: kind METRICS or None. Not collective. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY; on a
    /// device UNSUPPORTED (no CUDA plug-in), DEVICE_ERROR. Since 0.1.
    pub fn new(comm: Option<&Comm>, options: Option<&MetricsOptions>) -> Result<Metrics> {
        with(options.map(|o| &o.0), |made| Metrics::made_by(|out| unsafe { sys::shardrec_metrics_create(comm.map_or(std::ptr::null_mut(), |handle| handle.0), made, out) }))
    }

    /// Adds samples. probabilities (0 .. 1) and labels (0 or 1): FLOAT32, compact, \[batch\] or \[batch, 1\].
    /// Keeps 4 bytes a sample (12 during compute). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT
    /// (with the position; nothing was added. Metrics on a device look at values there, and compute tells),
    /// OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1.
    pub fn update(&mut self, probabilities: View<'_>, labels: View<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_metrics_update(self.0, &probabilities.raw, &labels.raw) })
    }

    /// Computes the metrics over all ranks' samples; every rank gets the same bits. Collective, blocking
    /// (step deadline) unless made without a communicator. Of metrics on a device, waits for it; where the device
    /// noticed a wrong value, this is INVALID_ARGUMENT on all ranks until the rank that has it calls reset, with
    /// that rank, and the sample's position since create or reset. Errors: INVALID_HANDLE, CLOSED, BUSY,
    /// INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1.
    pub fn compute(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_metrics_compute(self.0) })
    }

    /// A metric of the last compute. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no compute),
    /// NOT_FOUND, INVALID_ARGUMENT. Since 0.1.
    pub fn get(&self, metric: Metric) -> Result<f64> {
        let mut out = 0f64;
        check(unsafe { sys::shardrec_metrics_get(self.0, metric.raw(), &mut out) })?;
        Ok(out)
    }

    /// Forgets all samples and starts the clock anew. Errors: INVALID_HANDLE, CLOSED, BUSY; on a device
    /// DEVICE_ERROR. Since 0.1.
    pub fn reset(&mut self) -> Result<()> {
        check(unsafe { sys::shardrec_metrics_reset(self.0) })
    }
}
