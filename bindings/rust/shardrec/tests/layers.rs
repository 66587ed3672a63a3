//! Layers of all kinds.

use shardrec::*;

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

/// A layer norm of 1 and 3 gives -1 and 1; cross layers without a matrix and with a bias of 1 add their origin to their
/// input; dropout leaves it alone in evaluation.
#[test]
fn layers_of_all_kinds() -> Result<()> {
    let mut mlp = Mlp::new(2, None)?;
    mlp.add_layer_norm(0.0)?;
    mlp.add_cross(0)?;
    mlp.add_cross(1)?;
    mlp.add_dropout(0.5)?;
    let info = mlp.info()?;
    assert_eq!((info.layers, info.parameters, info.outputs), (4, 2 + 2 + 3, 2));
    mlp.set_parameter(2, &[0.0; 4])?;
    mlp.set_parameter(3, &[1.0; 2])?;
    mlp.set_parameter(5, &[0.0; 2])?;
    mlp.set_parameter(6, &[1.0; 2])?;
    mlp.set_training(false)?;
    let (input, mut output) = ([1f32, 3.0], [0f32; 2]);
    let _ = mlp.forward(View::matrix(&input, 1, 2), ViewMut::matrix(&mut output, 1, 2))?;
    assert!((output[0] + 3.0).abs() < 1e-4 && (output[1] - 3.0).abs() < 1e-4, "{output:?}");

    mlp.set_training(true)?;
    let (rows, mut outputs) = ([1f32, 3.0].repeat(100), [0f32; 200]);
    let _ = mlp.forward(View::matrix(&rows, 100, 2), ViewMut::matrix(&mut outputs, 100, 2))?;
    let zeros = outputs.iter().filter(|value| **value == 0.0).count();
    assert!((60..140).contains(&zeros), "{zeros} of 200 were dropped");
    assert_eq!(kind(mlp.add_dropout(0.5)), Some(ErrorKind::InvalidState));
    let mut other = Mlp::new(2, None)?;
    assert_eq!(kind(other.add_dropout(1.0)), Some(ErrorKind::InvalidArgument));
    assert_eq!(kind(other.add_layer_norm(-1.0)), Some(ErrorKind::InvalidArgument));
    assert_eq!(kind(other.add_cross(-1)), Some(ErrorKind::InvalidArgument));
    assert_eq!(kind(other.set(MlpSetting::Training, 2.0)), Some(ErrorKind::InvalidArgument));
    Ok(())
}
