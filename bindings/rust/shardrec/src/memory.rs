//! Memory of the host that the library reads and writes between calls.

use shardrec_sys as sys;

use crate::element::Element;
use crate::enums::{Dtype, ErrorKind};
use crate::error::{refusal, Result};
use crate::tensor::View;

/// Elements that the library may write while nobody here looks: no reference to them lives longer than a method of
/// its owner, which knows when that is.
pub(crate) struct Memory {
    tensor: sys::shardrec_tensor, // compact
    dtype: Dtype,
    elements: usize,
    free: unsafe fn(*mut u8, usize),
}

/// # Safety
/// Memory::new::<T> took it, with as many elements.
unsafe fn free<T>(data: *mut u8, elements: usize) {
    // SAFETY: what this function asks for.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast::<T>(), elements)) });
}

/// Copies numbers that another thread may make the library write meanwhile (a checkpoint's load, a step of DDP): the copy has
/// each element of before or after, so that nothing is assumed of what is read.
///
/// # Safety
/// So many elements from data on are written, and stay allocated meanwhile.
pub(crate) unsafe fn copied<T: Copy>(data: *const T, elements: usize) -> Vec<T> {
    // SAFETY: what this function asks for.
    (0..elements).map(|i| unsafe { data.add(i).read_volatile() }).collect()
}

impl Memory {
    /// Refuses a shape of another number of elements.
    pub(crate) fn new<T: Element>(values: Vec<T>, shape: &[usize]) -> Result<Memory> {
        let elements = values.len();
        let mut tensor = View::shaped(&values, shape)?.raw;
        if shape.iter().product::<usize>() != elements {
            let text = format!("{elements} values for the shape {shape:?}");
            return Err(refusal(ErrorKind::InvalidArgument, text));
        }
        tensor.data = Box::into_raw(values.into_boxed_slice()).cast();
        Ok(Memory { tensor, dtype: T::DTYPE, elements, free: free::<T> })
    }

    pub(crate) fn tensor(&self) -> &sys::shardrec_tensor {
        &self.tensor
    }

    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    pub(crate) fn require<T: Element>(&self) -> Result<()> {
        if self.dtype == T::DTYPE {
            return Ok(());
        }
        let text = format!("elements of {:?} are not of {:?}", self.dtype, T::DTYPE);
        Err(refusal(ErrorKind::InvalidArgument, text))
    }

    /// A copy of the elements.
    pub(crate) fn copied<T: Element>(&self) -> Result<Vec<T>> {
        self.require::<T>()?;
        // SAFETY: so many elements, all written, for as long as self lives.
        Ok(unsafe { copied(self.tensor.data.cast(), self.elements) })
    }

    /// Overwrites the elements.
    ///
    /// # Safety
    /// Nobody reads or writes them meanwhile.
    pub(crate) unsafe fn set<T: Element>(&self, values: &[T]) -> Result<()> {
        self.require::<T>()?;
        if self.elements != values.len() {
            let text = format!("{} values for {} elements", values.len(), self.elements);
            return Err(refusal(ErrorKind::InvalidArgument, text));
        }
        // SAFETY: as many elements of the same type, which overlap no slice of the caller's; what this function asks for.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.tensor.data.cast(), self.elements) };
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: of Memory::new.
        unsafe { (self.free)(self.tensor.data.cast(), self.elements) }
    }
}
