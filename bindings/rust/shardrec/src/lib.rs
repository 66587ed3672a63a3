//! Train recommendation models whose embedding tables are larger than one device: a thin layer over the C
//! API (shardrec.h is the manual). Handles are types that destroy themselves, in any order; statuses are
//! `Result`s; tensors are slices that the library reads and writes in place and does not keep.

mod enums;
mod error;
mod handles;
mod option_types;
mod options;
mod run;
mod tensor;

pub use enums::*;
pub use error::{Error, ErrorParts, Result};
pub use handles::{Collection, Comm, Local, Lookup, Model, Plan};
pub use option_types::*;
pub use run::run;
pub use shardrec_sys as sys;
pub use tensor::{Element, View, ViewMut};

/// Number of open handles of this process.
pub fn live_objects() -> Result<i64> {
    let mut out = 0;
    // SAFETY: out outlives the call.
    error::check(unsafe { sys::shardrec_live_objects(&mut out) })?;
    Ok(out)
}

/// What the library can do on this machine, as JSON.
pub fn capabilities() -> Result<String> {
    // SAFETY: out is writable during the call.
    error::take_text(|out| unsafe { sys::shardrec_capabilities(out) })
}

/// Measures this machine's memory in about three seconds and keeps the result for later processes.
/// threads 0: all processors. JSON (probe.h).
pub fn probe(threads: i32) -> Result<String> {
    // SAFETY: out is writable during the call; there is no control.
    error::take_text(|out| unsafe { sys::shardrec_probe(threads, std::ptr::null_mut(), out) })
}

/// What an earlier probe kept, as JSON.
pub fn probe_cached() -> Result<String> {
    // SAFETY: out is writable during the call.
    error::take_text(|out| unsafe { sys::shardrec_probe_cached(out) })
}

/// XXH3-64, the same value in every language.
pub fn hash64(seed: u64, bytes: &[u8]) -> u64 {
    // SAFETY: the pointer is valid for len bytes; any pointer will do for none.
    unsafe { sys::shardrec_hash64(seed, bytes.as_ptr().cast(), bytes.len() as i64) }
}
