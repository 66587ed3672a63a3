//! FSDP: views of what the library keeps of sharded parameters, which last until the next call of the set.

use shardrec_sys as sys;

use crate::element::Element;
use crate::enums::ErrorKind;
use crate::error::{check, refusal, Result};
use crate::handles::Fsdp;
use crate::layers::{elements, empty};

// SAFETY of every call below: handles are tickets of any value; out-parameters outlive the call. Memory that a call
// shows is compact, and stays as it is until another call of the set, for which views must have ended.

/// What a rank has of a parameter.
#[derive(Debug)]
pub struct FsdpShard<'a> {
    /// Of the first element in the parameter, row-major.
    pub offset: i64,
    /// Perhaps none.
    pub elements: &'a mut [f32],
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

    /// What this rank has of a parameter's values (array 0), gradient (1) or optimizer state (2 and above);
    /// between steps.
    pub fn shard(&mut self, index: i32, array: i32) -> Result<FsdpShard<'_>> {
        let mut out = empty();
        let mut offset = 0;
        check(unsafe { sys::shardrec_fsdp_shard(self.0, index, array, &mut offset, &mut out) })?;
        let (data, count) = place(&out)?;
        Ok(FsdpShard { offset, elements: unsafe { std::slice::from_raw_parts_mut(data, count) } })
    }
}
