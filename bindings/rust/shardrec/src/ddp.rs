//! DDP: parameters and gradients are owned by the set, so that the library may write them during a step, when
//! nobody else can reach them.

use std::ptr::null_mut;

use shardrec_sys as sys;

use crate::enums::ErrorKind;
use crate::error::{c_text, check, refusal, Result};
use crate::handles::{Comm, Mlp};
use crate::layers::{elements, empty, floats};
use crate::option_types::DdpOptions;
use crate::options::with;

// SAFETY of every call below: handles are tickets of any value; texts and out-parameters outlive the call. The
// memory of parameters is this object's, freed after the native object has ended.

/// Parameters of f32 that ranks train together.
pub struct Ddp {
    pub(crate) raw: *mut sys::shardrec_ddp,
    parameters: Vec<Memory>,
    flat: Option<Memory>,
    open: bool, // a step has begun and wait was not called
}

// SAFETY: the handle is a ticket; the memory is reached by &self and &mut self only, and not during a step.
unsafe impl Send for Ddp {}
// SAFETY: as above.
unsafe impl Sync for Ddp {}

/// Elements that the library may write while nobody here looks.
struct Memory(*mut f32, usize);

impl Memory {
    fn new(values: Vec<f32>) -> Memory {
        let elements = values.len();
        Memory(Box::into_raw(values.into_boxed_slice()).cast(), elements)
    }

    fn tensor(&self) -> sys::shardrec_tensor {
        let mut tensor = empty();
        tensor.data = self.0.cast();
        tensor.device_type = sys::SHARDREC_DEVICE_CPU.0 as i32;
        tensor.dtype = sys::SHARDREC_FLOAT32.0 as i32;
        tensor.ndim = 1;
        tensor.shape[0] = self.1 as i64;
        tensor
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: of Memory::new.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.0, self.1)) });
    }
}

impl Drop for Ddp {
    fn drop(&mut self) {
        // SAFETY: the handle is ours; the memory ends after it.
        unsafe { sys::shardrec_ddp_destroy(&mut self.raw) }
    }
}

/// A step with or without an exchange of gradients. The gradients of parameters that are not marked yet can be
/// written. Dropped without wait, the set stays in the step.
#[must_use = "a step ends with wait"]
pub struct DdpStep<'a> {
    ddp: &'a mut Ddp,
    marked: std::sync::Mutex<Vec<bool>>,
}

impl Ddp {
    /// A set without parameters on the ranks of a communicator.
    pub fn new(comm: &Comm, options: Option<&DdpOptions>) -> Result<Ddp> {
        let mut raw = null_mut();
        with(options.map(|o| &o.0), |made| {
            check(unsafe { sys::shardrec_ddp_create(comm.0, made, &mut raw) })
        })?;
        Ok(Ddp { raw, parameters: Vec::new(), flat: None, open: false })
    }

    /// Adds a parameter, in the same order on every rank, and returns its index. Its gradient lies in the library's
    /// memory, or in that of set_flat_gradient.
    pub fn add_parameter(&mut self, name: &str, values: Vec<f32>) -> Result<i64> {
        let name = c_text(name)?;
        let memory = Memory::new(values);
        let mut out = 0;
        check(unsafe {
            let tensor = memory.tensor();
            sys::shardrec_ddp_add_parameter(self.raw, name.as_ptr(), &tensor, std::ptr::null(), &mut out)
        })?;
        while self.parameters.len() < out as usize {
            self.parameters.push(Memory::new(Vec::new())); // of a stack
        }
        self.parameters.push(memory);
        Ok(out)
    }

    /// Adds the parameters of a stack of layers, whose backward marks them, and returns the first one's index.
    pub fn add_mlp(&mut self, name: &str, mlp: &Mlp) -> Result<i64> {
        let name = c_text(name)?;
        let mut out = 0;
        check(unsafe { sys::shardrec_ddp_add_mlp(self.raw, name.as_ptr(), mlp.0, &mut out) })?;
        Ok(out)
    }

    /// The gradients of all parameters lie one behind the other in this memory.
    pub fn set_flat_gradient(&mut self, values: Vec<f32>) -> Result<()> {
        let memory = Memory::new(values);
        check(unsafe { sys::shardrec_ddp_set_flat_gradient(self.raw, &memory.tensor()) })?;
        self.flat = Some(memory);
        Ok(())
    }

    fn require_idle(&self) -> Result<()> {
        if !self.open {
            return Ok(());
        }
        Err(refusal(ErrorKind::InvalidState, "a step of the set has begun and has not ended".to_string()))
    }

    fn memory(&self, index: i64) -> Result<&Memory> {
        let found = usize::try_from(index).ok().and_then(|index| self.parameters.get(index));
        found.ok_or_else(|| {
            refusal(ErrorKind::NotFound, format!("there is no parameter {index} of the host's"))
        })
    }

    /// The values of a parameter that was added, copied: a checkpoint's load writes them too. Between steps.
    pub fn parameter(&self, index: i64) -> Result<Vec<f32>> {
        self.require_idle()?;
        let memory = self.memory(index)?;
        // SAFETY: no step is open, so that nobody writes.
        Ok(unsafe { std::slice::from_raw_parts(memory.0, memory.1) }.to_vec())
    }

    /// Writes a parameter that was added: as many values as it has elements. Between steps.
    pub fn set_parameter(&mut self, index: i64, values: &[f32]) -> Result<()> {
        self.require_idle()?;
        let memory = self.memory(index)?;
        if memory.1 != values.len() {
            let text = format!("{} values for {} elements", values.len(), memory.1);
            return Err(refusal(ErrorKind::InvalidArgument, text));
        }
        // SAFETY: as in parameter; &mut self.
        unsafe { std::slice::from_raw_parts_mut(memory.0, memory.1) }.copy_from_slice(values);
        Ok(())
    }

    /// A parameter's gradient; after commit, between steps.
    pub fn gradient(&self, index: i64) -> Result<&[f32]> {
        self.require_idle()?;
        let view = self.gradient_view(index)?;
        // SAFETY: compact, of f32 (commit refuses others), valid until the set is destroyed.
        Ok(unsafe { floats(&view) })
    }

    /// The same, to write.
    pub fn gradient_mut(&mut self, index: i64) -> Result<&mut [f32]> {
        self.require_idle()?;
        self.gradient_slice(index)
    }

    fn gradient_view(&self, index: i64) -> Result<sys::shardrec_tensor> {
        let mut out = empty();
        check(unsafe { sys::shardrec_ddp_gradient(self.raw, index, &mut out) })?;
        Ok(out)
    }

    fn gradient_slice(&mut self, index: i64) -> Result<&mut [f32]> {
        let view = self.gradient_view(index)?;
        if elements(&view) == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in gradient; &mut self.
        Ok(unsafe { std::slice::from_raw_parts_mut(view.data.cast::<f32>(), elements(&view)) })
    }

    /// An optimizer state of a parameter, 0 or 1, copied as a parameter is; after commit, between steps.
    pub fn state(&self, index: i64, state: i32) -> Result<Vec<f32>> {
        self.require_idle()?;
        let mut out = empty();
        check(unsafe { sys::shardrec_ddp_state(self.raw, index, state, &mut out) })?;
        // SAFETY: as in gradient.
        Ok(unsafe { floats(&out) }.to_vec())
    }

    /// Begins a step; sync: gradients are exchanged in it, else they stay, to be added to. Collective in order.
    pub fn begin(&mut self, sync: bool) -> Result<DdpStep<'_>> {
        check(unsafe { sys::shardrec_ddp_begin(self.raw, sync.into()) })?;
        self.open = true;
        let marked = std::sync::Mutex::new(vec![false; self.parameters.len()]);
        Ok(DdpStep { ddp: self, marked })
    }
}

impl DdpStep<'_> {
    /// The gradient of a parameter that is not marked yet.
    pub fn gradient_mut(&mut self, index: i64) -> Result<&mut [f32]> {
        let marked = self.marked.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if usize::try_from(index).ok().and_then(|index| marked.get(index)).copied().unwrap_or(true) {
            let text = format!("parameter {index} is marked, or is no parameter of the host's");
            return Err(refusal(ErrorKind::InvalidState, text));
        }
        self.ddp.gradient_slice(index)
    }

    fn mark(&self, first: i64, count: i64) {
        let mut marked = self.marked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for index in first.max(0)..first.saturating_add(count).min(marked.len() as i64) {
            marked[index as usize] = true;
        }
    }

    /// The gradients of `count` parameters from `first` on are as backward leaves them. Any thread.
    pub fn mark_ready(&self, first: i64, count: i64) -> Result<()> {
        self.mark(first, count);
        check(unsafe { sys::shardrec_ddp_mark_ready(self.ddp.raw, first, count) })
    }

    /// This step does not use them. Any thread.
    pub fn mark_unused(&self, first: i64, count: i64) -> Result<()> {
        self.mark(first, count);
        check(unsafe { sys::shardrec_ddp_mark_unused(self.ddp.raw, first, count) })
    }

    /// Waits until all gradients of the step are reduced and written. Collective.
    pub fn wait(self) -> Result<()> {
        check(unsafe { sys::shardrec_ddp_end(self.ddp.raw) })?;
        let waited = check(unsafe { sys::shardrec_ddp_wait(self.ddp.raw) });
        self.ddp.open = false; // also after an error: nothing of the step is under way any more
        waited
    }
}
