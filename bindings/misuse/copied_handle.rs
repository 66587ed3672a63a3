//! Refused: E0277 1, E0382 1
//! A handle has one owner: it is neither copied nor used after it was dropped.
use shardrec::{Model, Result};

pub fn dropped_handle(model: Model) -> Result<String> {
    drop(model);
    model.to_json()
}

pub fn copied_handle(model: &Model) -> Model {
    Model::clone(model)
}
