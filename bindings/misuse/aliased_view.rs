//! Refused: E0499 1, E0502 1
//! What the library writes is had by nobody else, and read by nobody else.
use shardrec::{Result, View, ViewMut};

pub fn two_writers(values: &mut [f32], f: impl Fn(ViewMut<'_>, ViewMut<'_>) -> Result<()>) -> Result<()> {
    f(ViewMut::vector(values), ViewMut::vector(values))
}

pub fn reader_and_writer(values: &mut [f32], f: impl Fn(View<'_>, ViewMut<'_>) -> Result<()>) -> Result<()> {
    f(View::vector(values), ViewMut::vector(values))
}
