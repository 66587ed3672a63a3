//! DDP: parameters and gradients are owned by the set, so that the library may write them during a step, when
//! nobody else can reach them.

use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use shardrec_sys as sys;

use crate::element::Element;
use crate::enums::ErrorKind;
use crate::error::{c_text, check, refusal, Result};
use crate::handles::{Comm, Mlp};
use crate::layers::{elements, empty};
use crate::memory::{copied, Memory};
use crate::option_types::DdpOptions;
use crate::options::with;

// SAFETY of every call below: handles are tickets of any value; texts and out-parameters outlive the call. The
// memory of parameters is this object's, freed after the native object has ended.

/// Parameters that ranks train together, of f32, f64, [`F16`](crate::F16) or [`Bf16`](crate::Bf16), and
/// stacks of layers. Parameters are counted from 0 in the order of adding, those of stacks included.
pub struct Ddp {
    pub(crate) raw: *mut sys::shardrec_ddp,
    parameters: Vec<Option<Memory>>, // None: of a stack
    flat: Option<Memory>,
    open: bool,               // a step has begun and wait was not called
    marked: Mutex<Vec<bool>>, // of the parameters, in the step that is open
}

// SAFETY: the handle is a ticket; the memory is reached by &self and &mut self only, and not during a step.
unsafe impl Send for Ddp {}
// SAFETY: as above.
unsafe impl Sync for Ddp {}

impl Drop for Ddp {
    fn drop(&mut self) {
        // SAFETY: the handle is ours; the memory ends after it.
        unsafe { sys::shardrec_ddp_destroy(&mut self.raw) }
    }
}

impl std::fmt::Debug for Ddp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ddp").field("raw", &self.raw).field("open", &self.open).finish_non_exhaustive()
    }
}

/// A step with or without an exchange of gradients. The gradients of parameters that are not marked yet can be
/// written. Dropped without wait, the set stays in the step.
#[must_use = "a step ends with wait"]
#[derive(Debug)]
pub struct DdpStep<'a> {
    ddp: &'a mut Ddp,
}

/// A step that this rank has ended: its gradients are being reduced. Dropped without wait, the set stays in the step.
#[must_use = "a step ends with wait"]
#[derive(Debug)]
pub struct DdpExchange<'a> {
    ddp: &'a mut Ddp,
}

impl Ddp {
    /// A set without parameters on the ranks of a communicator.
    pub fn new(comm: &Comm, options: Option<&DdpOptions>) -> Result<Ddp> {
        let mut raw = null_mut();
        with(options.map(|o| &o.0), |made| {
            check(unsafe { sys::shardrec_ddp_create(comm.0, made, &mut raw) })
        })?;
        Ok(Ddp { raw, parameters: Vec::new(), flat: None, open: false, marked: Mutex::default() })
    }

    /// Adds a parameter of a shape, row after row, in the same order on every rank, and returns its index. Its gradient
    /// lies in the library's memory, or in that of set_flat_gradient.
    pub fn add_parameter<T: Element>(&mut self, name: &str, shape: &[usize], values: Vec<T>) -> Result<i32> {
        let name = c_text(name)?;
        let memory = Memory::new(values, shape)?;
        let mut out = 0;
        check(unsafe {
            sys::shardrec_ddp_add_parameter(
                self.raw,
                name.as_ptr(),
                memory.tensor(),
                std::ptr::null(),
                &mut out,
            )
        })?;
        self.parameters.resize_with(out as usize, || None);
        self.parameters.push(Some(memory));
        Ok(out)
    }

    /// Adds the parameters of a stack of layers, whose backward marks them, and returns the first one's index.
    pub fn add_mlp(&mut self, name: &str, mlp: &Mlp) -> Result<i32> {
        let name = c_text(name)?;
        let mut out = 0;
        check(unsafe { sys::shardrec_ddp_add_mlp(self.raw, name.as_ptr(), mlp.0, &mut out) })?;
        Ok(out)
    }

    /// The gradients of all parameters lie one behind the other in this memory.
    pub fn set_flat_gradient<T: Element>(&mut self, values: Vec<T>) -> Result<()> {
        let shape = [values.len()];
        let memory = Memory::new(values, &shape)?;
        check(unsafe { sys::shardrec_ddp_set_flat_gradient(self.raw, memory.tensor()) })?;
        self.flat = Some(memory);
        Ok(())
    }

    fn require_idle(&self) -> Result<()> {
        if !self.open {
            return Ok(());
        }
        Err(refusal(ErrorKind::InvalidState, "a step of the set has begun and has not ended".to_string()))
    }

    /// Of a parameter that was added; those of stacks are [`Mlp::parameter`]'s.
    fn memory(&self, index: i32) -> Result<&Memory> {
        let found = usize::try_from(index).ok().and_then(|index| self.parameters.get(index)?.as_ref());
        found.ok_or_else(|| {
            refusal(ErrorKind::NotFound, format!("there is no parameter {index} of the host's"))
        })
    }

    /// The values of a parameter that was added, copied: a checkpoint's load writes them too. Between steps.
    pub fn parameter<T: Element>(&self, index: i32) -> Result<Vec<T>> {
        self.require_idle()?;
        self.memory(index)?.copied()
    }

    /// Writes a parameter that was added: as many values as it has elements. Between steps.
    pub fn set_parameter<T: Element>(&mut self, index: i32, values: &[T]) -> Result<()> {
        self.require_idle()?;
        // SAFETY: no step is open; &mut self.
        unsafe { self.memory(index)?.set(values) }
    }

    /// The gradient of a parameter that was added; after commit, between steps.
    pub fn gradient<T: Element>(&self, index: i32) -> Result<&[T]> {
        self.require_idle()?;
        let (data, elements) = self.gradient_place::<T>(index)?;
        // SAFETY: of gradient_place; nobody writes between steps.
        Ok(unsafe { std::slice::from_raw_parts(data, elements) })
    }

    /// The same, to write.
    pub fn gradient_mut<T: Element>(&mut self, index: i32) -> Result<&mut [T]> {
        self.require_idle()?;
        self.gradient_slice(index)
    }

    /// Where a gradient lies: compact, of the parameter's dtype and size, until the set is destroyed.
    fn gradient_place<T: Element>(&self, index: i32) -> Result<(*mut T, usize)> {
        let memory = self.memory(index)?;
        memory.require::<T>()?;
        let mut out = empty();
        check(unsafe { sys::shardrec_ddp_gradient(self.raw, index, &mut out) })?;
        let data =
            if memory.elements() == 0 { std::ptr::NonNull::dangling().as_ptr() } else { out.data.cast() };
        Ok((data, memory.elements()))
    }

    fn gradient_slice<T: Element>(&mut self, index: i32) -> Result<&mut [T]> {
        let (data, elements) = self.gradient_place(index)?;
        // SAFETY: as in gradient; &mut self.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, elements) })
    }

    /// An optimizer state of a parameter, 0 or 1, copied as a parameter is; after commit, between steps.
    pub fn state(&self, index: i32, state: i32) -> Result<Vec<f32>> {
        self.require_idle()?;
        let mut out = empty();
        check(unsafe { sys::shardrec_ddp_state(self.raw, index, state, &mut out) })?;
        // SAFETY: compact, of f32 (commit refuses other parameters with an optimizer), until the set is destroyed.
        Ok(unsafe { copied(out.data.cast(), elements(&out)) })
    }

    /// Begins a step; sync: gradients are exchanged in it, else they stay, to be added to. Collective in order.
    pub fn begin(&mut self, sync: bool) -> Result<DdpStep<'_>> {
        check(unsafe { sys::shardrec_ddp_begin(self.raw, sync.into()) })?;
        self.open = true;
        let marked = self.marked.get_mut().unwrap_or_else(PoisonError::into_inner);
        marked.clear();
        marked.resize(self.parameters.len(), false);
        Ok(DdpStep { ddp: self })
    }
}

impl<'a> DdpStep<'a> {
    /// The gradient of a parameter that is not marked yet.
    pub fn gradient_mut<T: Element>(&mut self, index: i32) -> Result<&mut [T]> {
        let marked = self.ddp.marked.get_mut().unwrap_or_else(PoisonError::into_inner);
        if usize::try_from(index).ok().and_then(|index| marked.get(index)).copied().unwrap_or(true) {
            let text = format!("parameter {index} is marked, or is no parameter of the host's");
            return Err(refusal(ErrorKind::InvalidState, text));
        }
        self.ddp.gradient_slice(index)
    }

    fn mark(&self, first: i32, count: i32) {
        let mut marked = self.ddp.marked.lock().unwrap_or_else(PoisonError::into_inner);
        for index in first.max(0)..first.saturating_add(count).min(marked.len() as i32) {
            marked[index as usize] = true;
        }
    }

    /// The gradients of `count` parameters from `first` on are as backward leaves them. Any thread.
    pub fn mark_ready(&self, first: i32, count: i32) -> Result<()> {
        self.mark(first, count);
        check(unsafe { sys::shardrec_ddp_mark_ready(self.ddp.raw, first, count) })
    }

    /// This step does not use them. Any thread.
    pub fn mark_unused(&self, first: i32, count: i32) -> Result<()> {
        self.mark(first, count);
        check(unsafe { sys::shardrec_ddp_mark_unused(self.ddp.raw, first, count) })
    }

    /// Ends this rank's part: what is not sent yet is sent, while the caller does something else before it waits.
    pub fn end(self) -> Result<DdpExchange<'a>> {
        check(unsafe { sys::shardrec_ddp_end(self.ddp.raw) })?;
        Ok(DdpExchange { ddp: self.ddp })
    }

    /// [`DdpStep::end`] and [`DdpExchange::wait`].
    pub fn wait(self) -> Result<()> {
        self.end()?.wait()
    }
}

impl DdpExchange<'_> {
    /// Waits until all gradients of the step are reduced and written. Collective.
    pub fn wait(self) -> Result<()> {
        let waited = check(unsafe { sys::shardrec_ddp_wait(self.ddp.raw) });
        self.ddp.open = false; // also after an error: nothing of the step is under way any more
        waited
    }
}
