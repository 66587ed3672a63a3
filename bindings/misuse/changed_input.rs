//! Refused: E0506 1
//! The same, where the input lives but is written in between.
use shardrec::{Mlp, Result, View, ViewMut};

pub fn changed_input(mlp: &mut Mlp, output: &mut [f32]) -> Result<()> {
    let mut input = [0f32; 4];
    let pass = mlp.forward(View::matrix(&input, 1, 4), ViewMut::matrix(output, 1, 2))?;
    input[0] = 1.0;
    pass.backward(View::matrix(&[0f32; 2], 1, 2), None)
}
