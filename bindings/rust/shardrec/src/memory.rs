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
    drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast::<T>(), elements)));
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

    /// The elements.
    ///
    /// # Safety
    /// Nobody writes them meanwhile.
    pub(crate) unsafe fn slice<T: Element>(&self) -> Result<&[T]> {
        self.require::<T>()?;
        Ok(std::slice::from_raw_parts(self.tensor.data.cast(), self.elements))
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
        std::ptr::copy_nonoverlapping(values.as_ptr(), self.tensor.data.cast(), self.elements);
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: of Memory::new.
        unsafe { (self.free)(self.tensor.data.cast(), self.elements) }
    }
}
