//! Refused: E0505 1, E0597 1
//! A tensor on a device borrows its memory.
use shardrec::{copy, Dtype, Memory, Result, View, ViewMut};

pub fn dropped_memory(memory: Memory, out: &mut [f32]) -> Result<()> {
    let tensor = memory.tensor(0, Dtype::Float32, &[4])?;
    drop(memory);
    copy(ViewMut::vector(out), tensor)
}

pub fn memory_of_a_scope(values: &[f32], bytes: i64) -> Result<()> {
    let tensor = {
        let mut memory = Memory::new(shardrec::DeviceType::Cuda, 0, bytes)?;
        memory.tensor_mut(0, Dtype::Float32, &[4])?
    };
    copy(tensor, View::vector(values))
}
