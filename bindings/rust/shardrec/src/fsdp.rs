//! FSDP: views of the whole parameters of a step, which last until the next call of the set, and copies of shards.

use shardrec_sys as sys;

use crate::element::Element;
use crate::enums::ErrorKind;
use crate::error::{check, refusal, Result};
use crate::handles::Fsdp;
use crate::layers::{elements, empty};

// SAFETY of every call below: handles are tickets of any value; out-parameters outlive the call. Memory that a call
// shows is compact. Between begin and end it stays as it is until another call of the set, for which views must have
// ended: no checkpoint takes a set that is inside a step. Shards are shown between steps, where a checkpoint's load
// writes them too: they are copied.

/// What a rank has of a parameter, copied.
#[derive(Clone, Debug, PartialEq)]
pub struct FsdpShard {
    /// Of the first element in the parameter, row-major.
    pub offset: i64,
    /// Perhaps none.
    pub elements: Vec<f32>,
}

/// A whole parameter and its whole gradient on this rank.
#[derive(Debug)]
pub struct FsdpViews<'a, T> {
    /// Row after row.
    pub values: &'a [T],
    /// As the values: add to it.
    pub gradient: &'a mut [T],
}

/// Where the elements of a view are, which must be of T.
fn place<T: Element>(view: &sys::shardrec_tensor) -> Result<(*mut T, usize)> {
    if view.dtype != T::DTYPE.raw().0 as i32 {
        let text = format!("the elements have dtype {}, not {:?}", view.dtype, T::DTYPE);
        return Err(refusal(ErrorKind::InvalidArgument, text));
    }
    let count = elements(view);
    let data = if count == 0 { std::ptr::NonNull::dangling().as_ptr() } else { view.data.cast() };
    Ok((data, count))
}

impl Fsdp {
    /// A whole parameter, row after row, of the option FSDP_PARAMETER_DTYPE; of a unit that is unsharded, after
    /// wait_unshard.
    pub fn parameter<T: Element>(&self, index: i32) -> Result<&[T]> {
        let mut out = empty();
        check(unsafe { sys::shardrec_fsdp_parameter(self.0, index, &mut out) })?;
        let (data, count) = place(&out)?;
        Ok(unsafe { std::slice::from_raw_parts(data, count) })
    }

    /// The whole gradient of a parameter on this rank, of the dtype of its values: add to it. Of a unit that was
    /// unsharded in this step and is not marked ready.
    pub fn gradient_mut<T: Element>(&mut self, index: i32) -> Result<&mut [T]> {
        let mut out = empty();
        check(unsafe { sys::shardrec_fsdp_gradient(self.0, index, &mut out) })?;
        let (data, count) = place(&out)?;
        Ok(unsafe { std::slice::from_raw_parts_mut(data, count) })
    }

    /// Whole parameters of one unit with their gradients, to compute these in place: as parameter and gradient_mut of
    /// each. No index twice.
    pub fn views<T: Element, const N: usize>(&mut self, indices: [i32; N]) -> Result<[FsdpViews<'_, T>; N]> {
        let mut places = [(std::ptr::NonNull::dangling().as_ptr(), std::ptr::null_mut(), 0); N];
        for (at, &index) in indices.iter().enumerate() {
            if indices[..at].contains(&index) {
                let text = format!("parameter {index} was asked for twice");
                return Err(refusal(ErrorKind::InvalidArgument, text));
            }
            let (mut values, mut gradient) = (empty(), empty());
            check(unsafe { sys::shardrec_fsdp_gradient(self.0, index, &mut gradient) })?;
            check(unsafe { sys::shardrec_fsdp_parameter(self.0, index, &mut values) })?;
            let (data, count) = place::<T>(&values)?;
            places[at] = (data, place::<T>(&gradient)?.0, count);
        }
        // SAFETY: memory of different parameters, and of values and gradients, is different.
        Ok(places.map(|(values, gradient, count)| unsafe {
            FsdpViews {
                values: std::slice::from_raw_parts(values, count),
                gradient: std::slice::from_raw_parts_mut(gradient, count),
            }
        }))
    }

    /// What this rank has of a parameter's values (array 0), gradient (1) or optimizer state (2 and above);
    /// between steps.
    pub fn shard(&self, index: i32, array: i32) -> Result<FsdpShard> {
        let (offset, data, count) = self.shard_place(index, array)?;
        let mut elements = vec![0.0; count];
        // SAFETY: as many elements are there; they are read at once.
        unsafe { std::ptr::copy_nonoverlapping(data, elements.as_mut_ptr(), count) };
        Ok(FsdpShard { offset, elements })
    }

    /// Writes what this rank has of a parameter: as many values as shard has elements; between steps.
    pub fn set_shard(&mut self, index: i32, array: i32, values: &[f32]) -> Result<()> {
        let (_, data, count) = self.shard_place(index, array)?;
        if count != values.len() {
            let text = format!("{} values for {count} elements", values.len());
            return Err(refusal(ErrorKind::InvalidArgument, text));
        }
        // SAFETY: as many elements are there; nobody else has the set.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), data, count) };
        Ok(())
    }

    fn shard_place(&self, index: i32, array: i32) -> Result<(i64, *mut f32, usize)> {
        let mut out = empty();
        let mut offset = 0;
        check(unsafe { sys::shardrec_fsdp_shard(self.0, index, array, &mut offset, &mut out) })?;
        let (data, count) = place(&out)?;
        Ok((offset, data, count))
    }
}
