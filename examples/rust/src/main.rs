//! A DLRM from the first step to serving: tables sharded over ranks, dense layers trained data-parallel, checkpoints and
//! a scorer.
//!
//!     dlrm train DIR      50 steps on 2 ranks, threads of this process; saved in DIR
//!     dlrm resume DIR     50 more on 3 ranks
//!     dlrm serve DIR      scores the test samples, from two threads
//!
//! Ranks may be processes: shardrec launch --nproc 2 -- dlrm train DIR. The same program stands in examples/cpp,
//! examples/java and examples/go; their checkpoints are equal, byte for byte.
#![forbid(unsafe_code)]

mod clicks;
mod network;

use clicks::{make_batch, make_share, DENSE, FEATURES, ROWS};
use network::{forward, make_layers, Network, DIM};
use shardrec::*;

const BATCH: i64 = 256; // samples of all ranks together
const STEPS: i64 = 50; // of a run
const TEST_FROM: i64 = 1_000_000;
const TEST: i64 = 2048;

struct Trainer<'a> {
    comm: &'a Comm,
    tables: Collection,
    network: Network,
    ddp: Ddp,
    metrics: Metrics,
}

impl<'a> Trainer<'a> {
    fn new(comm: &'a Comm) -> Result<Trainer<'a>> {
        let mut model = Model::new()?;
        for f in 0..FEATURES {
            let table = model.add_table(&format!("table{f}"), ROWS, DIM as i64, None)?;
            model.add_feature(table, &format!("feature{f}"), Pooling::Sum)?;
        }
        let adagrad = OptimizerOptions::new().optimizer(Optimizer::RowwiseAdagrad).learning_rate(0.1);
        model.set_optimizer(ALL_TABLES, Some(&adagrad))?;
        let plan = Plan::collective(comm, None, &model, None)?;
        let tables = Collection::new(comm, None, &model, &plan, Some(&CollectionOptions::new().seed(7)))?;
        let lookup = Lookup::new(&tables, None)?;
        let interaction = Interaction::new(FEATURES as i64, DIM as i64, None)?;
        let columns = interaction.outputs()?;
        let (bottom, top) = (make_layers(1, DENSE as i64, DIM as i64)?, make_layers(2, columns, 1)?);
        let mut ddp = Ddp::new(comm, None)?;
        ddp.add_mlp("bottom", &bottom)?;
        ddp.add_mlp("top", &top)?;
        ddp.commit()?;
        let network = Network { lookup, bottom, interaction, top, buffers: Default::default() };
        Ok(Trainer { comm, tables, network, ddp, metrics: Metrics::new(Some(comm), None)? })
    }

    fn train(&mut self, step: i64) -> Result<()> {
        let batch = make_share(self.comm, step * BATCH, BATCH)?;
        let (size, columns) = (batch.size, self.network.interaction.outputs()? as usize);
        let passes = forward(&mut self.network, &batch)?;
        let [mut gradient, mut crossed, mut dense, mut pooled] =
            [1, columns, DIM, FEATURES * DIM].map(|width| vec![0f32; size * width]);
        let loss_gradient = Some(ViewMut::vector(&mut gradient));
        bce_with_logits(None, passes.logits, View::vector(&batch.labels), None, loss_gradient)?;
        let step = self.ddp.begin(true)?;
        let to_crossed = ViewMut::matrix(&mut crossed, size, columns);
        passes.top.backward(View::matrix(&gradient, size, 1), Some(to_crossed))?;
        let to_dense = ViewMut::matrix(&mut dense, size, DIM);
        let to_pooled = ViewMut::matrix(&mut pooled, size, FEATURES * DIM);
        passes.interaction.backward(View::matrix(&crossed, size, columns), to_dense, to_pooled)?;
        passes.lookup.set_gradient(0, View::matrix(&pooled, size, FEATURES * DIM))?;
        passes.lookup.send_gradients(Update::Apply)?; // travel while the bottom layers compute
        passes.bottom.backward(View::matrix(&dense, size, DIM), None)?;
        let exchange = step.end()?;
        passes.lookup.backward(Update::Apply)?;
        exchange.wait()?; // the mean over the ranks is there
        self.network.bottom.step()?;
        self.network.top.step()
    }

    /// The area under the ROC curve of all ranks' test samples together.
    fn test(&mut self) -> Result<f64> {
        let batch = make_share(self.comm, TEST_FROM, TEST)?;
        let logits = forward(&mut self.network, &batch)?.logits;
        let mut probabilities = vec![0f32; batch.size];
        bce_with_logits(
            None,
            logits,
            View::vector(&batch.labels),
            Some(ViewMut::vector(&mut probabilities)),
            None,
        )?;
        self.metrics.reset()?;
        self.metrics.update(View::vector(&probabilities), View::vector(&batch.labels))?;
        self.metrics.compute()?;
        self.metrics.get(Metric::Auc)
    }

    fn run(&mut self, directory: &str, resume: bool) -> Result<()> {
        let mut checkpoint = Checkpoint::new(self.comm, directory, None)?;
        checkpoint.add_collection("tables", &self.tables)?;
        checkpoint.add_mlp("bottom", &self.network.bottom)?;
        checkpoint.add_mlp("top", &self.network.top)?;
        let mut position = [0i64]; // what else a run needs to go on: where it is in the data
        if resume {
            checkpoint.open(-1)?;
            checkpoint.load(None)?;
            checkpoint.get_tensor("position", 0, ViewMut::vector(&mut position))?;
        }
        for _ in 0..STEPS {
            self.train(position[0])?;
            position[0] += 1;
        }
        checkpoint.set_tensor("position", Some(View::vector(&position)))?;
        checkpoint.commit(position[0], None)?;
        let auc = self.test()?;
        if self.comm.rank()? == 0 {
            println!("step {}, {} ranks: test AUC {auc:.4}", position[0], self.comm.size()?);
        }
        Ok(())
    }
}

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn train(directory: &str, resume: bool) -> Any<()> {
    let body = |comm: &Comm| Trainer::new(comm)?.run(directory, resume);
    if std::env::var_os("WORLD_SIZE").is_some() {
        return Ok(run_rank(&Comm::from_env(None)?, body)?); // this process is a rank
    }
    run(if resume { 3 } else { 2 }, body)?;
    Ok(())
}

/// Every thread may call the scorer at any time; this is all that a service needs of the checkpoint.
fn serve(directory: &str) -> Any<()> {
    let scorer = Scorer::open(directory, -1, None, None)?;
    let mut scores = vec![0f32; TEST as usize];
    let (size, scorer) = (TEST as usize / 2, &scorer);
    let score = move |first: usize, out: &mut [f32]| -> Result<i64> {
        let batch = make_batch(TEST_FROM + first as i64, size)?;
        let (ids, lengths) = (View::vector(&batch.ids), View::vector(&batch.lengths));
        scorer.predict(&Batch::new(size as i64, ids, lengths), batch.dense_view(), ViewMut::vector(out))
    };
    std::thread::scope(|scope| -> Any<()> {
        let (low, high) = scores.split_at_mut(size);
        let other = std::thread::Builder::new().spawn_scoped(scope, move || score(size, high))?;
        score(0, low)?;
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(())
    })?;
    let mut metrics = Metrics::new(None, None)?;
    metrics.update(View::vector(&scores), View::vector(&make_batch(TEST_FROM, TEST as usize)?.labels))?;
    metrics.compute()?;
    println!("serving step {}: test AUC {:.4}", scorer.info()?.step, metrics.get(Metric::Auc)?);
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", directory] => train(directory, false),
        ["resume", directory] => train(directory, true),
        ["serve", directory] => serve(directory),
        _ => Err("usage: dlrm train|resume|serve DIR".into()),
    };
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
