//! A steady step allocates nothing in Rust, also where batches change their size. The only test of its process, as it
//! counts the process's allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use shardrec::*;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        System.dealloc(data, layout)
    }

    unsafe fn realloc(&self, data: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        System.realloc(data, layout, size)
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const DIM: usize = 4;
const LARGEST: usize = 7;

#[test]
fn a_steady_step_allocates_nothing() {
    let counted = run(1, |comm: &Comm| -> Result<usize> {
        let mut model = Model::new()?;
        let table = model.add_table("a", 10, DIM as i64, None)?;
        model.add_feature(table, "x", Pooling::Sum)?;
        let plan = Plan::collective(comm, None, &model, None)?;
        let tables = Collection::new(comm, None, &model, &plan, None)?;
        let mut lookup = Lookup::new(&tables, None)?;
        let mut layers = Mlp::new(DIM as i64, None)?;
        layers.add_linear(1, Activation::None)?;
        let mut ddp = Ddp::new(comm, Some(&DdpOptions::new().unused(Unused::Zero)))?;
        ddp.add_mlp("layers", &layers)?;
        ddp.add_parameter("own", &[3], vec![0f32; 3])?;
        ddp.commit()?;
        let mut metrics = Metrics::new(Some(comm), None)?;
        let (ids, lengths) = ([0i64, 9, 2, 0, 1, 2, 5], [1i32; LARGEST]);
        let labels = [1f32, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0];
        let mut pooled = AlignedVec::<f32>::zeroed(LARGEST * DIM);
        let mut gradient = AlignedVec::<f32>::zeroed(LARGEST * DIM);
        let (mut logits, mut probabilities, mut of_logits) =
            ([0f32; LARGEST], [0f32; LARGEST], [0f32; LARGEST]);
        let mut before = 0;
        for step in 0..120 {
            if step == 20 {
                before = ALLOCATIONS.load(Ordering::Relaxed);
            }
            let size = 1 + step % LARGEST;
            pooled.resize(size * DIM);
            gradient.resize(size * DIM);
            let (values, bags) = (View::vector(&ids[..size]), View::vector(&lengths[..size]));
            lookup.begin(&Batch::new(size as i64, values, bags))?;
            lookup.forward(0, ViewMut::matrix(&mut pooled, size, DIM))?;
            assert!(!lookup.all_done()?);
            let pass =
                layers.forward(View::matrix(&pooled, size, DIM), ViewMut::matrix(&mut logits, size, 1))?;
            let labels = View::vector(&labels[..size]);
            let scores = Some(ViewMut::vector(&mut probabilities[..size]));
            let out = Some(ViewMut::vector(&mut of_logits[..size]));
            bce_with_logits(None, View::vector(&logits[..size]), labels, scores, out)?;
            let mut averaged = ddp.begin(true)?;
            averaged.gradient_mut::<f32>(2)?.fill(1.0);
            averaged.mark_ready(2, 1)?;
            pass.backward(
                View::matrix(&of_logits, size, 1),
                Some(ViewMut::matrix(&mut gradient, size, DIM)),
            )?;
            let averaged = averaged.end()?;
            lookup.set_gradient(0, View::matrix(&gradient, size, DIM))?;
            lookup.backward(Update::Apply)?;
            averaged.wait()?;
            layers.step()?;
            metrics.update(View::vector(&probabilities[..size]), labels)?;
        }
        Ok(ALLOCATIONS.load(Ordering::Relaxed) - before)
    });
    assert_eq!(counted.unwrap(), [0]);
}
