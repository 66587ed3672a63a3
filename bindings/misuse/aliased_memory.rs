//! Refused: E0499 1, E0502 1
//! What a call writes on a device is had by nobody else.
use shardrec::{copy, Dtype, Lookup, Memory, Result};

pub fn reader_and_writer(memory: &mut Memory) -> Result<()> {
    let from = memory.tensor(0, Dtype::Float32, &[4])?;
    copy(memory.tensor_mut(8, Dtype::Float32, &[4])?, from)
}

pub fn two_writers(lookup: &mut Lookup, memory: &mut Memory) -> Result<()> {
    let first = memory.tensor_mut(0, Dtype::Float32, &[2, 2])?;
    let second = memory.tensor_mut(16, Dtype::Float32, &[2, 2])?;
    lookup.forward(0, first)?;
    lookup.forward(1, second)
}
