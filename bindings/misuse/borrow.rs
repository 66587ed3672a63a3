//! Refused: E0599 1
//! BORROW would have the library read a batch after the call that was given it.
use shardrec::LookupOptions;

pub fn borrow() -> LookupOptions {
    LookupOptions::new().borrow(true)
}
