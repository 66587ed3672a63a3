#![doc = include_str!("../README.md")]
#![deny(missing_docs, missing_debug_implementations, unsafe_op_in_unsafe_fn)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod abort;
mod aligned;
mod batch;
mod ddp;
mod device;
mod element;
#[forbid(unsafe_code)]
#[rustfmt::skip]
mod enums;
mod error;
mod fsdp;
mod handles;
mod layers;
mod log;
mod memory;
#[rustfmt::skip]
mod methods;
#[rustfmt::skip]
mod option_types;
mod options;
mod run;
mod tensor;

pub use abort::Aborter;
pub use aligned::AlignedVec;
pub use batch::{Batch, ALL_TABLES};
pub use ddp::{Ddp, DdpExchange, DdpStep};
pub use device::{copy, copy_in_stream};
pub use element::{Bf16, Element, F16};
pub use enums::*;
pub use error::{Error, ErrorParts, Result};
pub use fsdp::{FsdpShard, FsdpViews};
pub use handles::{
    Checkpoint, Collection, Comm, Control, Fsdp, Interaction, Local, Lookup, Memory, Mesh, Metrics, Mlp,
    Model, Plan, Rendezvous, Scorer, Topology,
};
pub use layers::{InteractionPass, MlpPass, Parameter, TensorInfo};
pub use log::LogForwarder;
pub use methods::*;
pub use option_types::*;
pub use run::{run, run_rank, RunError};
pub use shardrec_sys as sys;
pub use tensor::{View, ViewMut};

/// A message of the library's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// Its level.
    pub level: LogLevel,
    /// Of which it tells; None: of none.
    pub rank: Option<i32>,
    /// One sentence.
    pub text: String,
}

/// Takes the oldest message of the library's log, and waits so long for one; None when none came.
pub fn next_log_message(timeout: std::time::Duration) -> Result<Option<LogMessage>> {
    let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    let (mut level, mut rank, mut text) = (sys::SHARDREC_LOG_OFF, -1, std::ptr::null_mut());
    // SAFETY: the out-parameters outlive the call; the text is ours to free.
    unsafe {
        error::check(sys::shardrec_log_next(milliseconds, &mut level, &mut rank, &mut text))?;
        if text.is_null() {
            return Ok(None);
        }
        let message = LogMessage {
            level: LogLevel::of(level).unwrap_or(LogLevel::Error),
            rank: (rank >= 0).then_some(rank),
            text: std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned(),
        };
        sys::shardrec_text_free(text);
        Ok(Some(message))
    }
}

/// The version of the C API that the library serves: major * 1000 + minor.
pub fn api_version() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { sys::shardrec_api_version() }
}

/// XXH3-64, the same value in every language.
pub fn hash64(seed: u64, bytes: &[u8]) -> u64 {
    // SAFETY: the pointer is valid for len bytes; any pointer will do for none.
    unsafe { sys::shardrec_hash64(seed, bytes.as_ptr().cast(), bytes.len() as i64) }
}
