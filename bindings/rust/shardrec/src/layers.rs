//! Layers: what the library reads again in backward is borrowed until then.

use shardrec_sys as sys;

use crate::enums::{Activation, Dtype, ErrorKind, LayerKind, MlpSetting};
use crate::error::{c_text, check, refusal, Result};
use crate::handles::{Checkpoint, Interaction, Mlp};
use crate::memory::copied;
use crate::tensor::{View, ViewMut};

// SAFETY of every call below: handles are tickets of any value; tensors, texts and out-parameters outlive
// the call. What forward keeps is borrowed by the pass that it returns, and read again by its backward only.

/// A parameter of a stack and its gradient, copied, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The parameter.
    pub value: Vec<f32>,
    /// Of the last backward.
    pub gradient: Vec<f32>,
}

/// A batch on its way through a stack. Dropping it is evaluation.
#[must_use = "dropped, there is no backward"]
#[derive(Debug)]
pub struct MlpPass<'a> {
    mlp: &'a mut Mlp,
    input: View<'a>,
}

impl Mlp {
    /// Appends a linear layer of so many outputs, 1 to 65536.
    pub fn add_linear(&mut self, outputs: i64, activation: Activation) -> Result<()> {
        let mut layer = layer_of(LayerKind::Linear);
        layer.outputs = outputs;
        layer.activation = activation.value() as i32;
        self.add(&layer)
    }

    /// Appends a cross layer of DCN-v2. rank: columns of the factors of its matrix, 1 to 65536, or 0 for a whole matrix.
    pub fn add_cross(&mut self, rank: i64) -> Result<()> {
        let mut layer = layer_of(LayerKind::Cross);
        layer.rank = rank;
        self.add(&layer)
    }

    /// Appends a layer norm. epsilon: added to the variance, 1e-30 to 1e30, or 0 for 1e-5.
    pub fn add_layer_norm(&mut self, epsilon: f64) -> Result<()> {
        let mut layer = layer_of(LayerKind::LayerNorm);
        layer.epsilon = epsilon;
        self.add(&layer)
    }

    /// Appends dropout. rate: probability that an element becomes 0, at least 0 and below 1. See `set_training`.
    pub fn add_dropout(&mut self, rate: f64) -> Result<()> {
        let mut layer = layer_of(LayerKind::Dropout);
        layer.rate = rate;
        self.add(&layer)
    }

    fn add(&mut self, layer: &sys::shardrec_layer) -> Result<()> {
        check(unsafe { sys::shardrec_mlp_add(self.0, layer) })
    }

    /// Sets the learning rate from the next step on: finite, 0 or more.
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        self.set(MlpSetting::LearningRate, learning_rate)
    }

    /// Whether the next forwards are training, as they are at first, or evaluation, where dropout layers give their input.
    pub fn set_training(&mut self, training: bool) -> Result<()> {
        self.set(MlpSetting::Training, if training { 1.0 } else { 0.0 })
    }

    /// The output \[batch, outputs of the last layer\] for input \[batch, inputs\], both of f32.
    pub fn forward<'a>(&'a mut self, input: View<'a>, output: ViewMut<'_>) -> Result<MlpPass<'a>> {
        check(unsafe { sys::shardrec_mlp_forward(self.0, &input.raw, &output.raw) })?;
        Ok(MlpPass { mlp: self, input })
    }

    /// A parameter and its gradient. Between the begin and the wait of a DDP step that has this stack, some elements are
    /// those of before it and some those of after it.
    pub fn parameter(&self, index: i32) -> Result<Parameter> {
        let (value, gradient) = self.views(index)?;
        // SAFETY: compact views of f32 that live as long as the stack has no other layer.
        unsafe { Ok(Parameter { value: floats_of(&value)?, gradient: floats_of(&gradient)? }) }
    }

    /// Writes a parameter: as many values as it has elements.
    pub fn set_parameter(&mut self, index: i32, values: &[f32]) -> Result<()> {
        let (value, _) = self.views(index)?;
        if elements(&value) != values.len() {
            let text = format!("{} values for {} elements", values.len(), elements(&value));
            return Err(refusal(ErrorKind::InvalidArgument, text));
        }
        // SAFETY: as in parameter; nobody else has the stack; what is copied from is only read.
        check(unsafe { sys::shardrec_tensor_copy(&value, &here(&value, values.as_ptr().cast_mut()), 0) })
    }

    /// An optimizer state of a parameter, 0 or 1, copied, row after row.
    pub fn state(&self, index: i32, state: i32) -> Result<Vec<f32>> {
        let mut view = empty();
        check(unsafe { sys::shardrec_mlp_state(self.0, index, state, &mut view) })?;
        // SAFETY: as in parameter.
        unsafe { floats_of(&view) }
    }

    fn views(&self, index: i32) -> Result<(sys::shardrec_tensor, sys::shardrec_tensor)> {
        let (mut value, mut gradient) = (empty(), empty());
        check(unsafe { sys::shardrec_mlp_parameter(self.0, index, &mut value, &mut gradient) })?;
        Ok((value, gradient))
    }
}

impl MlpPass<'_> {
    /// Gradients of the parameters, and of the input where it is wanted.
    pub fn backward(self, output_gradient: View<'_>, input_gradient: Option<ViewMut<'_>>) -> Result<()> {
        let input_gradient = input_gradient.as_ref().map_or(std::ptr::null(), |view| &view.raw);
        let _read_again = &self.input;
        check(unsafe { sys::shardrec_mlp_backward(self.mlp.0, &output_gradient.raw, input_gradient) })
    }

    /// The loss of this batch where the stack is ([`bce_with_logits`](crate::bce_with_logits)).
    pub fn bce_with_logits(
        &self,
        logits: View<'_>,
        labels: View<'_>,
        probabilities: Option<ViewMut<'_>>,
        gradient: Option<ViewMut<'_>>,
    ) -> Result<f64> {
        crate::bce_with_logits(Some(&*self.mlp), logits, labels, probabilities, gradient)
    }

    /// The same without the loss, for which the host would wait where the stack is on a device: a label outside 0 .. 1 is
    /// told by the next call that has it.
    pub fn enqueue_bce_with_logits(
        &self,
        logits: View<'_>,
        labels: View<'_>,
        probabilities: Option<ViewMut<'_>>,
        gradient: Option<ViewMut<'_>>,
    ) -> Result<()> {
        let raw =
            |view: &Option<ViewMut<'_>>| view.as_ref().map_or(std::ptr::null(), |view| &view.raw as *const _);
        let (probabilities, gradient) = (raw(&probabilities), raw(&gradient));
        let loss = std::ptr::null_mut();
        check(unsafe {
            sys::shardrec_bce_with_logits(self.mlp.0, &logits.raw, &labels.raw, probabilities, gradient, loss)
        })
    }
}

/// A batch on its way through an interaction. Dropping it is evaluation.
#[must_use = "dropped, there is no backward"]
#[derive(Debug)]
pub struct InteractionPass<'a> {
    interaction: &'a mut Interaction,
    inputs: (View<'a>, View<'a>),
}

impl Interaction {
    /// Writes the dense vectors \[batch, dim\] and their dot products with the embeddings \[batch, features *
    /// dim\], and of these with each other, all of f32.
    pub fn forward<'a>(
        &'a mut self,
        dense: View<'a>,
        embeddings: View<'a>,
        output: ViewMut<'_>,
    ) -> Result<InteractionPass<'a>> {
        check(unsafe {
            sys::shardrec_interaction_forward(self.0, &dense.raw, &embeddings.raw, &output.raw)
        })?;
        Ok(InteractionPass { interaction: self, inputs: (dense, embeddings) })
    }
}

impl InteractionPass<'_> {
    /// Overwrites the gradients of both inputs.
    pub fn backward(self, output: View<'_>, dense: ViewMut<'_>, embeddings: ViewMut<'_>) -> Result<()> {
        let _read_again = &self.inputs;
        check(unsafe {
            sys::shardrec_interaction_backward(self.interaction.0, &output.raw, &dense.raw, &embeddings.raw)
        })
    }
}

/// What a tensor of a checkpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its elements.
    pub dtype: Dtype,
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Of its elements.
    pub bytes: i64,
}

impl Checkpoint {
    /// What a tensor of the open checkpoint is, that a rank had set.
    pub fn tensor_info(&mut self, name: &str, rank: i32) -> Result<TensorInfo> {
        let name = c_text(name)?;
        let mut out = sys::shardrec_saved_tensor::new();
        check(unsafe { sys::shardrec_checkpoint_tensor_info(self.0, name.as_ptr(), rank, &mut out) })?;
        let tensor = &out.tensor;
        let dtype = Dtype::of(sys::shardrec_dtype(tensor.dtype as u32)).unwrap_or(Dtype::Uint8);
        Ok(TensorInfo { dtype, shape: tensor.shape[..tensor.ndim as usize].to_vec(), bytes: out.bytes })
    }
}

fn layer_of(kind: LayerKind) -> sys::shardrec_layer {
    let mut layer = sys::shardrec_layer::new();
    layer.kind = kind.value() as i32;
    layer
}

pub(crate) fn empty() -> sys::shardrec_tensor {
    // SAFETY: plain numbers and a pointer, for all of which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// The tensor with its elements in this memory of the host's.
fn here(view: &sys::shardrec_tensor, data: *mut f32) -> sys::shardrec_tensor {
    sys::shardrec_tensor {
        data: data.cast(),
        device_type: sys::SHARDREC_DEVICE_CPU.0 as i32,
        device_id: 0,
        ..*view
    }
}

/// A copy of the elements of a compact view, on the host or on a device.
///
/// # Safety
/// It is of f32, and stays allocated meanwhile.
unsafe fn floats_of(view: &sys::shardrec_tensor) -> Result<Vec<f32>> {
    if view.device_type == sys::SHARDREC_DEVICE_CPU.0 as i32 {
        // SAFETY: what this function asks for.
        return Ok(unsafe { copied(view.data.cast(), elements(view)) });
    }
    let mut floats = vec![0f32; elements(view)];
    // SAFETY: as many elements as the view has.
    check(unsafe { sys::shardrec_tensor_copy(&here(view, floats.as_mut_ptr()), view, 0) })?;
    Ok(floats)
}

pub(crate) fn elements(view: &sys::shardrec_tensor) -> usize {
    view.shape[..view.ndim as usize].iter().product::<i64>() as usize
}
