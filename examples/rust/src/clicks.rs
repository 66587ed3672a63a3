//! Clicks that anybody can make again: every number is a hash of what it is for.
use shardrec::{hash64_ids, Comm, Result, View, ViewMut};

pub const FEATURES: usize = 6;
pub const DENSE: usize = 4;
pub const ROWS: i64 = 1000;
const VALUES: i64 = 300; // that a feature takes

#[derive(Default)]
pub struct Batch {
    pub size: usize,
    pub dense: Vec<f32>,   // [size, DENSE]
    pub labels: Vec<f32>,  // [size]
    pub ids: Vec<i64>,     // feature after feature, bag after bag
    pub lengths: Vec<i64>, // [FEATURES, size]
}

impl Batch {
    pub fn dense_view(&self) -> View<'_> {
        View::matrix(&self.dense, self.size, DENSE)
    }
}

fn hashed(seed: u64, keys: &[i64], rows: i64) -> Result<Vec<i64>> {
    let mut out = vec![0; keys.len()];
    hash64_ids(seed, View::vector(keys), rows, ViewMut::vector(&mut out))?;
    Ok(out)
}

/// In [-1, 1), by 2^24 steps.
fn real(hash: i64) -> f32 {
    (hash - (1 << 23)) as f32 / (1 << 23) as f32
}

/// A rank's share of so many samples.
pub fn make_share(comm: &Comm, from: i64, samples: i64) -> Result<Batch> {
    let (rank, ranks) = (i64::from(comm.rank()?), i64::from(comm.size()?));
    let (first, last) = (samples * rank / ranks, samples * (rank + 1) / ranks);
    make_batch(from + first, (last - first) as usize)
}

/// Samples first to first + size.
pub fn make_batch(first: i64, size: usize) -> Result<Batch> {
    let samples = first..first + size as i64;
    let mut batch = Batch { size, ..Batch::default() };
    let keys: Vec<i64> = (samples.start * 8..samples.end * 8).collect();
    let numbers = hashed(1, &keys, 1 << 24)?; // eight for each sample
    let mut keys = Vec::new();
    for f in 0..FEATURES as i64 {
        for n in samples.clone() {
            batch.lengths.push(1 + n % 3);
            keys.extend((0..1 + n % 3).map(|k| (n * FEATURES as i64 + f) * 3 + k));
        }
    }
    let raw = hashed(2, &keys, VALUES)?; // what a log would have: a city, a device, ...
    batch.ids = hashed(3, &raw, ROWS)?; // the row of each
    batch.dense = numbers.chunks(8).flat_map(|own| own[..DENSE].iter().map(|&hash| real(hash))).collect();
    let mut score: Vec<f64> = batch.dense.chunks(DENSE).map(|own| f64::from(own[0] - own[1])).collect();
    let mut at = 0;
    for f in 0..FEATURES {
        let planted = hashed(4 + f as u64, &raw, 1 << 24)?;
        for (score, &length) in score.iter_mut().zip(&batch.lengths[f * size..]) {
            for &hash in &planted[at..at + length as usize] {
                *score += f64::from(real(hash));
            }
            at += length as usize;
        }
    }
    for (own, score) in numbers.chunks(8).zip(score) {
        let z = 3.0 * score / (1.0 + (3.0 * score).abs()); // in (-1, 1)
        batch.labels.push(if f64::from(real(own[DENSE])) < z { 1.0 } else { 0.0 });
    }
    Ok(batch)
}
