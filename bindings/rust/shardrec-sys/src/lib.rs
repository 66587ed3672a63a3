//! Raw declarations of libshardrec's C API; shardrec.h is the manual. Handles are tickets, not memory:
//! the library looks them up and never follows them.
#![no_std]
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod raw;
pub use raw::*;
