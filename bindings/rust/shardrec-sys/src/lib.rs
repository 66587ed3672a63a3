#![doc = include_str!("../README.md")]
#![no_std]
#![deny(missing_docs)]
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod raw;
pub use raw::*;

/// The build script found no library. Said when code is made of this crate and not before, so that `cargo check` and
/// `cargo doc` do without one: constants of generic types are evaluated where they are used.
#[cfg(shardrec_missing)]
mod missing {
    struct Library<T>(core::marker::PhantomData<T>);

    impl<T> Library<T> {
        const FOUND: () = panic!("{}", concat!("libshardrec was not found: ", env!("SHARDREC_MISSING")));
    }

    #[doc(hidden)]
    pub fn link() {
        Library::<()>::FOUND
    }
}
#[cfg(shardrec_missing)]
#[doc(hidden)]
pub use missing::link;
