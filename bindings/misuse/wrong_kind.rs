//! Refused: E0308 2
//! Options of a plan are none of a table, and a key takes its own enumerators.
use shardrec::{Model, PlanOptions, Sharding, TableOptions};

pub fn wrong_kind(model: &mut Model) -> TableOptions {
    let _ = model.add_table("a", 3, 4, Some(&PlanOptions::new()));
    TableOptions::new().init(Sharding::Grid)
}
