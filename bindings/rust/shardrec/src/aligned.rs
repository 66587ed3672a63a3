//! Memory for tensors that begins at a cache line.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::element::Element;

const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Elements from an address that is a multiple of 64 bytes on, where vectors load and store fastest. A slice
/// of them is had by `&` and `&mut`.
///
/// ```
/// use shardrec::{AlignedVec, View};
///
/// let mut batch = AlignedVec::from_slice(&[1f32, 2.0, 3.0, 4.0]);
/// batch[3] = 5.0;
/// assert_eq!(batch.as_ptr() as usize % 64, 0);
/// let rows = View::matrix(&batch, 2, 2);
/// # let _ = rows;
/// ```
#[derive(Clone)]
pub struct AlignedVec<T: Element> {
    lines: Vec<Line>,
    length: usize,
    of: PhantomData<T>,
}

impl<T: Element> AlignedVec<T> {
    /// So many zeros.
    pub fn zeroed(length: usize) -> AlignedVec<T> {
        let mut made = AlignedVec { lines: Vec::new(), length: 0, of: PhantomData };
        made.resize(length);
        made
    }

    /// A copy.
    pub fn from_slice(values: &[T]) -> AlignedVec<T> {
        let mut made = AlignedVec::zeroed(values.len());
        made.copy_from_slice(values);
        made
    }

    /// Changes the length; what is new is zero. Memory that was allocated is kept, so that batches whose sizes change
    /// allocate nothing once the largest has come.
    pub fn resize(&mut self, length: usize) {
        let kept = self.length.min(length);
        let bytes =
            length.checked_mul(std::mem::size_of::<T>()).expect("more bytes than there are addresses");
        self.lines.resize(bytes.div_ceil(LINE), Line([0; LINE]));
        self.length = length;
        self[kept..].fill(T::default());
    }
}

impl<T: Element> Deref for AlignedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold that many elements, all written; any bytes are an element (Element is sealed:
        // numbers only), and lines are aligned for all of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl<T: Element> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in deref; &mut self.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for AlignedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
