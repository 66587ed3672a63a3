//! Refused: E0597 1
//! The library would write into memory that has ended.
use shardrec::{Lookup, ViewMut};

pub fn dropped_batch(lookup: &mut Lookup) {
    let view = {
        let mut out = vec![0f32; 4];
        ViewMut::matrix(&mut out, 1, 4)
    };
    let _ = lookup.forward(0, view);
}
