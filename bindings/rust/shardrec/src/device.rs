//! Memory of devices: tensors that borrow it, and copies.

use shardrec_sys as sys;

use crate::enums::Dtype;
use crate::error::{check, Result};
use crate::handles::Memory;
use crate::tensor::{check_dimensions, View, ViewMut};

impl Memory {
    /// A compact tensor, the last index of which runs fastest, to be read. It begins so many bytes in, at a multiple of
    /// the element's size; what does not end within the memory is INVALID_ARGUMENT.
    pub fn tensor(&self, offset_bytes: i64, dtype: Dtype, shape: &[usize]) -> Result<View<'_>> {
        Ok(View::of(self.raw_tensor(offset_bytes, dtype, shape)?))
    }

    /// The same, to be written. It is the memory's only tensor while it lives: what is written and what is read in one
    /// call are two memories.
    pub fn tensor_mut(&mut self, offset_bytes: i64, dtype: Dtype, shape: &[usize]) -> Result<ViewMut<'_>> {
        Ok(ViewMut::of(self.raw_tensor(offset_bytes, dtype, shape)?))
    }

    fn raw_tensor(&self, offset_bytes: i64, dtype: Dtype, shape: &[usize]) -> Result<sys::shardrec_tensor> {
        check_dimensions(shape)?;
        let mut sizes = [0i64; sys::SHARDREC_MAX_DIMENSIONS as usize];
        for (to, &from) in sizes.iter_mut().zip(shape) {
            *to = from as i64;
        }
        let mut out = std::mem::MaybeUninit::uninit();
        // SAFETY: the handle is a ticket of any value, and there are as many sizes; out is written when the status is OK.
        unsafe {
            check(sys::shardrec_memory_tensor(
                self.0,
                offset_bytes,
                dtype.raw(),
                shape.len() as i32,
                sizes.as_ptr(),
                out.as_mut_ptr(),
            ))?;
            Ok(out.assume_init())
        }
    }
}

/// Copies a tensor to another of the same dtype and shape, bit by bit; each is on the CPU or on a device, both on devices
/// are on the same one. In the order of the device's legacy default stream, which lookups follow too: what is called
/// afterwards finds it made.
pub fn copy(to: ViewMut<'_>, from: View<'_>) -> Result<()> {
    // SAFETY: tensors outlive the call, and memory of a device outlives what its legacy default stream does with it.
    check(unsafe { sys::shardrec_tensor_copy(&to.raw, &from.raw, 0) })
}

/// As [`copy`], in the order of another stream, the value of a `cudaStream_t`.
///
/// # Safety
/// `stream` is a live stream of the device. Between two tensors of the device, their memories are neither dropped nor used
/// by what does not follow that stream until it has made the copy.
pub unsafe fn copy_in_stream(to: ViewMut<'_>, from: View<'_>, stream: i64) -> Result<()> {
    // SAFETY: tensors outlive the call; the rest is what this function asks for.
    check(unsafe { sys::shardrec_tensor_copy(&to.raw, &from.raw, stream) })
}
