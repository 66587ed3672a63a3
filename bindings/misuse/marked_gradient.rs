//! Refused: E0502 1
//! A gradient that is marked is the library's to read and to write.
use shardrec::{DdpStep, Result};

pub fn marked_gradient(step: &mut DdpStep<'_>) -> Result<()> {
    let gradient = step.gradient_mut::<f32>(0)?;
    step.mark_ready(0, 1)?;
    gradient[0] = 1.0;
    Ok(())
}
