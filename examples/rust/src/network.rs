//! The layers of the DLRM, and what a batch leaves in them on its way.
use crate::clicks::{Batch as Clicks, FEATURES};
use shardrec::*;

pub const DIM: usize = 16; // columns of a table

/// What a batch goes through, and the memory between.
pub struct Network {
    pub lookup: Lookup,
    pub bottom: Mlp,
    pub interaction: Interaction,
    pub top: Mlp,
    pub buffers: [Vec<f32>; 4], // pooled, dense, crossed, logits
}

/// What a forward leaves for the backward: each pass holds on to its layer and to its input.
pub struct Passes<'a> {
    pub lookup: &'a mut Lookup,
    pub bottom: MlpPass<'a>,
    pub interaction: InteractionPass<'a>,
    pub top: MlpPass<'a>,
    pub logits: View<'a>,
}

pub fn make_layers(seed: i64, inputs: i64, outputs: i64) -> Result<Mlp> {
    let adagrad = MlpOptions::new().seed(seed).optimizer(Optimizer::Adagrad).learning_rate(0.02);
    let mut layers = Mlp::new(inputs, Some(&adagrad))?;
    layers.add_linear(16, Activation::Relu)?;
    layers.add_linear(outputs, Activation::None)?;
    Ok(layers)
}

pub fn forward<'a>(network: &'a mut Network, batch: &'a Clicks) -> Result<Passes<'a>> {
    let Network { lookup, bottom, interaction, top, buffers } = network;
    let (size, columns) = (batch.size, interaction.outputs()? as usize);
    for (buffer, width) in buffers.iter_mut().zip([FEATURES * DIM, DIM, columns, 1]) {
        buffer.resize(size * width, 0.0);
    }
    let [pooled, dense, crossed, logits] = buffers;
    let (ids, lengths) = (View::vector(&batch.ids), View::vector(&batch.lengths));
    lookup.begin(&Batch::new(size as i64, ids, lengths))?;
    let bottom = bottom.forward(batch.dense_view(), ViewMut::matrix(dense, size, DIM))?;
    lookup.forward(0, ViewMut::matrix(pooled, size, FEATURES * DIM))?;
    let (dense, pooled) = (View::matrix(dense, size, DIM), View::matrix(pooled, size, FEATURES * DIM));
    let interaction = interaction.forward(dense, pooled, ViewMut::matrix(crossed, size, columns))?;
    let top = top.forward(View::matrix(crossed, size, columns), ViewMut::matrix(logits, size, 1))?;
    Ok(Passes { lookup, bottom, interaction, top, logits: View::vector(logits) })
}
