//! Slices as tensors. A view borrows its slice, or its `Memory`, so that the library never outlives the memory.

use std::marker::PhantomData;

use shardrec_sys as sys;

use crate::element::Element;
use crate::enums::ErrorKind;
use crate::error::{refusal, Result};

const MAX_DIMENSIONS: usize = sys::SHARDREC_MAX_DIMENSIONS as usize;

/// What the library only reads.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(crate) raw: sys::shardrec_tensor,
    memory: PhantomData<&'a ()>,
}

/// What the library writes.
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) raw: sys::shardrec_tensor,
    memory: PhantomData<&'a mut ()>,
}

// SAFETY: a view is a borrowed slice of numbers, or memory that calls of the library alone read; any thread may.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}
// SAFETY: the one view of its slice, which any thread may write.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: through a shared reference nobody writes.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> View<'a> {
    /// Of memory that is borrowed for 'a.
    pub(crate) fn of(raw: sys::shardrec_tensor) -> View<'a> {
        View { raw, memory: PhantomData }
    }

    /// All of the slice.
    pub fn vector<T: Element>(values: &'a [T]) -> View<'a> {
        View { raw: compact(values.as_ptr(), &[values.len()]), memory: PhantomData }
    }

    /// Compact rows. Panics when values holds fewer.
    pub fn matrix<T: Element>(values: &'a [T], rows: usize, columns: usize) -> View<'a> {
        check_size(values.len(), rows, columns);
        View { raw: compact(values.as_ptr(), &[rows, columns]), memory: PhantomData }
    }

    /// Of any shape of up to 8 dimensions, compact: the last index runs fastest. INVALID_ARGUMENT when values holds
    /// fewer elements.
    pub fn shaped<T: Element>(values: &'a [T], shape: &[usize]) -> Result<View<'a>> {
        Ok(View { raw: shaped(values.as_ptr(), values.len(), shape)?, memory: PhantomData })
    }

    /// As shaped, where element \[i, j, ...\] lies i * strides\[0\] + j * strides\[1\] + ... elements from the first
    /// one. A stride of 0 repeats what it is a stride of; all strides 0, of more than one element, are refused: the
    /// library has another meaning for them.
    pub fn strided<T: Element>(values: &'a [T], shape: &[usize], strides: &[usize]) -> Result<View<'a>> {
        let raw = strided(values.as_ptr(), values.len(), shape, strides)?;
        let repeats_one = strides.iter().all(|&stride| stride == 0) && shape.iter().any(|&size| size > 1);
        if repeats_one && !shape.contains(&0) {
            return refuse(format!("the strides of shape {shape:?} are all 0; one of them is to be more"));
        }
        Ok(View { raw, memory: PhantomData })
    }
}

impl<'a> ViewMut<'a> {
    /// Of memory that is borrowed for 'a, and for nobody else.
    pub(crate) fn of(raw: sys::shardrec_tensor) -> ViewMut<'a> {
        ViewMut { raw, memory: PhantomData }
    }

    /// All of the slice.
    pub fn vector<T: Element>(values: &'a mut [T]) -> ViewMut<'a> {
        ViewMut { raw: compact(values.as_mut_ptr(), &[values.len()]), memory: PhantomData }
    }

    /// Compact rows. Panics when values holds fewer.
    pub fn matrix<T: Element>(values: &'a mut [T], rows: usize, columns: usize) -> ViewMut<'a> {
        check_size(values.len(), rows, columns);
        ViewMut { raw: compact(values.as_mut_ptr(), &[rows, columns]), memory: PhantomData }
    }

    /// As [`View::shaped`].
    pub fn shaped<T: Element>(values: &'a mut [T], shape: &[usize]) -> Result<ViewMut<'a>> {
        Ok(ViewMut { raw: shaped(values.as_mut_ptr(), values.len(), shape)?, memory: PhantomData })
    }

    /// As [`View::strided`], but no two elements may share a place: taken from the least stride on, each is at least
    /// as long as what those before it reach over.
    pub fn strided<T: Element>(
        values: &'a mut [T],
        shape: &[usize],
        strides: &[usize],
    ) -> Result<ViewMut<'a>> {
        let raw = strided(values.as_mut_ptr(), values.len(), shape, strides)?;
        let mut order: Vec<_> = shape.iter().zip(strides).filter(|(&size, _)| size > 1).collect();
        order.sort_by_key(|(_, &stride)| stride);
        let mut reached = 1;
        for (&size, &stride) in order {
            if stride < reached && !shape.contains(&0) {
                return refuse(format!(
                    "strides {strides:?} of shape {shape:?} let elements that are written share a place; \
                     the stride {stride} is to be {reached} at least"
                ));
            }
            reached = reached.saturating_add((size - 1).saturating_mul(stride));
        }
        Ok(ViewMut { raw, memory: PhantomData })
    }

    /// The same view for one call, after which this one can be used again.
    pub fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { raw: self.raw, memory: PhantomData }
    }

    /// The same, to be read.
    pub fn as_view(&self) -> View<'_> {
        View { raw: self.raw, memory: PhantomData }
    }
}

fn refuse<T>(sentence: String) -> Result<T> {
    Err(refusal(ErrorKind::InvalidArgument, sentence))
}

fn check_size(length: usize, rows: usize, columns: usize) {
    let needed = rows.checked_mul(columns);
    assert!(needed.is_some_and(|n| n <= length), "a matrix of {rows} x {columns} in a slice of {length}");
}

fn shaped<T: Element>(data: *const T, length: usize, shape: &[usize]) -> Result<sys::shardrec_tensor> {
    check_dimensions(shape)?;
    let elements = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
    };
    if elements.map_or(true, |n| n > length) {
        return refuse(format!("the shape {shape:?} has more elements than the slice's {length}"));
    }
    Ok(compact(data, shape))
}

fn strided<T: Element>(
    data: *const T,
    length: usize,
    shape: &[usize],
    strides: &[usize],
) -> Result<sys::shardrec_tensor> {
    check_dimensions(shape)?;
    if strides.len() != shape.len() {
        return refuse(format!("{} strides for the {} dimensions of {shape:?}", strides.len(), shape.len()));
    }
    let last = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().zip(strides).try_fold(0usize, |at, (&size, &stride)| {
            (size - 1).checked_mul(stride).and_then(|step| at.checked_add(step))
        })
    };
    if last.map_or(true, |at| at >= length && !shape.contains(&0)) {
        return refuse(format!(
            "strides {strides:?} of shape {shape:?} lead beyond the slice's {length} elements"
        ));
    }
    let mut raw = compact(data, shape);
    for (to, &from) in raw.stride.iter_mut().zip(strides) {
        *to = i64::try_from(from).unwrap_or(i64::MAX); // so long a stride is one of a single row
    }
    Ok(raw)
}

pub(crate) fn check_dimensions(shape: &[usize]) -> Result<()> {
    if shape.len() > MAX_DIMENSIONS {
        return refuse(format!("{} dimensions; a tensor has at most {MAX_DIMENSIONS}", shape.len()));
    }
    match shape.iter().find(|&&size| i64::try_from(size).is_err()) {
        Some(size) => refuse(format!("a dimension of {size} elements; at most {} are accepted", i64::MAX)),
        None => Ok(()),
    }
}

/// Strides of zero: compact.
fn compact<T: Element>(data: *const T, sizes: &[usize]) -> sys::shardrec_tensor {
    let mut shape = [0; MAX_DIMENSIONS];
    for (to, from) in shape.iter_mut().zip(sizes) {
        *to = *from as i64;
    }
    sys::shardrec_tensor {
        data: data.cast_mut().cast(),
        device_type: sys::SHARDREC_DEVICE_CPU.0 as i32,
        device_id: 0,
        dtype: T::DTYPE.raw().0 as i32,
        ndim: sizes.len() as i32,
        shape,
        stride: [0; MAX_DIMENSIONS],
    }
}
