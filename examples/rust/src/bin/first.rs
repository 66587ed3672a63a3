//! A first program: two ranks, threads of this process, share an embedding table and train it until the numbers of each
//! user's row add up to 1.
#![forbid(unsafe_code)]

use shardrec::*;

const BATCH: usize = 4;
const DIM: usize = 8;
const STEPS: usize = 20;

/// Trains on one rank; returns its last loss.
fn train(comm: &Comm) -> Result<f32> {
    let mut model = Model::new()?;
    let user = model.add_table("user", 1000, DIM as i64, None)?;
    model.add_feature(user, "user_id", Pooling::Sum)?;
    let plan = Plan::collective(comm, None, &model, None)?; // which rows live where
    let mut tables = Collection::new(comm, None, &model, &plan, None)?;
    tables.set_learning_rate(ALL_TABLES, 0.1)?;
    let mut step = Lookup::new(&tables, None)?;

    let ids = [0, 11, 222, 900 + i64::from(comm.rank()?)];
    let lengths = [1i64; BATCH]; // four bags of one id
    let (mut pooled, mut gradient) = ([0f32; BATCH * DIM], [0f32; BATCH * DIM]);
    let mut loss = 0.0;
    for _ in 0..STEPS {
        step.begin(&Batch::new(BATCH as i64, View::vector(&ids), View::vector(&lengths)))?;
        step.forward(0, ViewMut::matrix(&mut pooled, BATCH, DIM))?;
        loss = 0.0;
        for (row, to) in pooled.chunks(DIM).zip(gradient.chunks_mut(DIM)) {
            let error = row.iter().sum::<f32>() - 1.0;
            loss += error * error / BATCH as f32;
            to.fill(2.0 * error / BATCH as f32);
        }
        step.set_gradient(0, View::matrix(&gradient, BATCH, DIM))?;
        step.backward(Update::Apply)?; // exchanges gradients, updates rows
    }
    Ok(loss)
}

fn main() {
    let losses = run(2, train).unwrap();
    println!("last losses: {:.5e}, {:.5e}", losses[0], losses[1]);
    assert!(losses.iter().all(|&loss| loss < 0.01));
}
