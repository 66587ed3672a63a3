//! Slices as tensors. A view borrows its slice, so that the library never outlives the memory.

use std::marker::PhantomData;

use shardrec_sys as sys;

/// An element of a tensor.
pub trait Element: Copy + private::Sealed {
    /// The C API's number of it.
    const DTYPE: sys::shardrec_dtype;
}

mod private {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Element for i32 {
    const DTYPE: sys::shardrec_dtype = sys::SHARDREC_INT32;
}
impl Element for i64 {
    const DTYPE: sys::shardrec_dtype = sys::SHARDREC_INT64;
}
impl Element for f32 {
    const DTYPE: sys::shardrec_dtype = sys::SHARDREC_FLOAT32;
}
impl Element for f64 {
    const DTYPE: sys::shardrec_dtype = sys::SHARDREC_FLOAT64;
}

/// What the library only reads.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) raw: sys::shardrec_tensor,
    memory: PhantomData<&'a ()>,
}

/// What the library writes.
pub struct ViewMut<'a> {
    pub(crate) raw: sys::shardrec_tensor,
    memory: PhantomData<&'a mut ()>,
}

impl<'a> View<'a> {
    /// All of the slice.
    pub fn vector<T: Element>(values: &'a [T]) -> View<'a> {
        View { raw: raw(values.as_ptr(), &[values.len()]), memory: PhantomData }
    }

    /// Compact rows. Panics when values holds fewer.
    pub fn matrix<T: Element>(values: &'a [T], rows: usize, columns: usize) -> View<'a> {
        check_size(values.len(), rows, columns);
        View { raw: raw(values.as_ptr(), &[rows, columns]), memory: PhantomData }
    }
}

impl<'a> ViewMut<'a> {
    /// All of the slice.
    pub fn vector<T: Element>(values: &'a mut [T]) -> ViewMut<'a> {
        ViewMut { raw: raw(values.as_mut_ptr(), &[values.len()]), memory: PhantomData }
    }

    /// Compact rows. Panics when values holds fewer.
    pub fn matrix<T: Element>(values: &'a mut [T], rows: usize, columns: usize) -> ViewMut<'a> {
        check_size(values.len(), rows, columns);
        ViewMut { raw: raw(values.as_mut_ptr(), &[rows, columns]), memory: PhantomData }
    }
}

fn check_size(length: usize, rows: usize, columns: usize) {
    let needed = rows.checked_mul(columns);
    assert!(needed.is_some_and(|n| n <= length), "a matrix of {rows} x {columns} in a slice of {length}");
}

/// Strides of zero: compact.
fn raw<T: Element>(data: *const T, sizes: &[usize]) -> sys::shardrec_tensor {
    let mut shape = [0; sys::SHARDREC_MAX_DIMENSIONS as usize];
    for (to, from) in shape.iter_mut().zip(sizes) {
        *to = *from as i64;
    }
    sys::shardrec_tensor {
        data: data.cast_mut().cast(),
        device_type: sys::SHARDREC_DEVICE_CPU.0 as i32,
        device_id: 0,
        dtype: T::DTYPE.0 as i32,
        ndim: sizes.len() as i32,
        shape,
        stride: [0; sys::SHARDREC_MAX_DIMENSIONS as usize],
    }
}
