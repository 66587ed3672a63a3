//! Refused: E0597 2
//! Backward reads again what forward was given.
use shardrec::{Interaction, Mlp, Result, View, ViewMut};

pub fn dropped_input(mlp: &mut Mlp, output: &mut [f32]) -> Result<()> {
    let pass = {
        let input = vec![0f32; 4];
        mlp.forward(View::matrix(&input, 1, 4), ViewMut::matrix(output, 1, 2))?
    };
    pass.backward(View::matrix(&[0f32; 2], 1, 2), None)
}

pub fn dropped_embeddings(layer: &mut Interaction, dense: &[f32], output: &mut [f32]) -> Result<()> {
    let pass = {
        let embeddings = vec![0f32; 4];
        let (d, e) = (View::matrix(dense, 1, 2), View::matrix(&embeddings, 1, 4));
        layer.forward(d, e, ViewMut::matrix(output, 1, 5))?
    };
    let (mut of_dense, mut of_embeddings) = ([0f32; 2], [0f32; 4]);
    let (d, e) = (ViewMut::matrix(&mut of_dense, 1, 2), ViewMut::matrix(&mut of_embeddings, 1, 4));
    pass.backward(View::matrix(&[0f32; 5], 1, 5), d, e)
}
