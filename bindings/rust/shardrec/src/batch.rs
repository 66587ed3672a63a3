//! Batches of ids, and the calls that take them.

use shardrec_sys as sys;

use crate::error::{check, Result};
use crate::handles::{Lookup, Scorer};
use crate::tensor::{View, ViewMut};

/// In place of a table's index: all tables.
pub const ALL_TABLES: i32 = sys::SHARDREC_ALL_TABLES;

/// A batch of ids: lengths or offsets; batch sizes and inverse both or none. A batch without values, as
/// [`Batch::default`] is, says that this rank has no more data. All tensors are compact and of one dimension, of i32 or i64 but
/// for the weights; bags are feature-major, features in the order of the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// Samples of this rank: rows of output 0.
    pub size: i64,
    /// `[ids]`, bag after bag.
    pub values: Option<View<'a>>,
    /// `[bags]`: features * size, or the sum of the batch sizes.
    pub lengths: Option<View<'a>>,
    /// In place of lengths: `[bags + 1]`, from 0, never falling, the last one the number of ids.
    pub offsets: Option<View<'a>>,
    /// `[ids]`, f32; None: all 1.
    pub weights: Option<View<'a>>,
    /// `[features]`, the number of bags of each, where many samples have the same bag.
    pub batch_sizes: Option<View<'a>>,
    /// `[features * size]`, the bag of each sample.
    pub inverse: Option<View<'a>>,
}

impl<'a> Batch<'a> {
    /// Bags by their lengths.
    pub fn new(size: i64, values: View<'a>, lengths: View<'a>) -> Batch<'a> {
        Batch { size, values: Some(values), lengths: Some(lengths), ..Batch::default() }
    }

    /// The same with a weight for each id.
    pub fn weights(self, weights: View<'a>) -> Batch<'a> {
        Batch { weights: Some(weights), ..self }
    }

    /// Valid while this is borrowed.
    fn raw(&self) -> sys::shardrec_batch {
        let pointer =
            |view: &Option<View<'a>>| view.as_ref().map_or(std::ptr::null(), |view| &view.raw as *const _);
        sys::shardrec_batch {
            batch_size: self.size,
            values: pointer(&self.values),
            lengths: pointer(&self.lengths),
            offsets: pointer(&self.offsets),
            weights: pointer(&self.weights),
            batch_sizes: pointer(&self.batch_sizes),
            inverse: pointer(&self.inverse),
            ..sys::shardrec_batch::new()
        }
    }
}

// SAFETY of every call below: handles are tickets of any value; tensors and structs outlive the call, and the library keeps
// none of them.

impl Lookup {
    /// Starts the exchange of a batch's ids, which are read before it returns. Collective, waits for nobody; every defect of
    /// the batch is told by forward. INVALID_STATE when the lookup has begun and not forwarded.
    pub fn begin(&mut self, batch: &Batch<'_>) -> Result<()> {
        check(unsafe { sys::shardrec_lookup_begin(self.0, &batch.raw()) })
    }
}

impl Scorer {
    /// Looks up a batch without batch sizes of features and writes one of its outputs: 0, the pooled features, into
    /// `[size, width]`, or 1 + k, the k-th sequence feature, into `[ids of the feature, dim]`; of f32, F16 or Bf16. Returns
    /// the step of the checkpoint that has answered.
    pub fn lookup(&self, output: i32, batch: &Batch<'_>, out: ViewMut<'_>) -> Result<i64> {
        let mut step = 0;
        check(unsafe { sys::shardrec_scorer_lookup(self.0, output, &batch.raw(), &out.raw, &mut step) })?;
        Ok(step)
    }

    /// Scores a batch, given `[size, dense columns]` of f32: probabilities, or logits with the option LOGITS, into
    /// `[size, scores]`, of one score also `[size]`. Returns the step of the checkpoint that has answered.
    pub fn predict(&self, batch: &Batch<'_>, dense: View<'_>, out: ViewMut<'_>) -> Result<i64> {
        let mut step = 0;
        check(unsafe {
            sys::shardrec_scorer_predict(self.0, &batch.raw(), &dense.raw, &out.raw, &mut step)
        })?;
        Ok(step)
    }
}
