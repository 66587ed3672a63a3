//! Serving: what a scorer answers, from one thread and from many, while it changes checkpoints.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shardrec::*;

const DIM: usize = 4;
const DENSE: usize = 3;
const ROWS: i64 = 50;
const BATCH: usize = 5;
const THREADS: usize = 16;

struct Samples {
    dense: Vec<f32>,
    ids: Vec<i64>,
    lengths: [i32; 2 * BATCH],
    weights: Vec<f32>,
}

fn batch_of(thread: usize) -> Samples {
    let lengths: [i32; 2 * BATCH] = std::array::from_fn(|i| ((i + thread) % 3) as i32);
    let count = lengths.iter().sum::<i32>() as usize;
    let keys: Vec<i64> = (0..count).map(|i| (100 * thread + i) as i64).collect();
    let mut ids = vec![0; count];
    hash64_ids(7, View::vector(&keys), ROWS, ViewMut::vector(&mut ids)).unwrap();
    Samples {
        dense: (0..BATCH * DENSE).map(|i| (i + thread) as f32 / 10.0 - 1.0).collect(),
        ids,
        lengths,
        weights: (0..count).map(|i| 1.0 + i as f32 / 8.0).collect(),
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Answer {
    pooled: Vec<f32>,
    scores: Vec<f32>,
}

struct Trained<'a> {
    tables: Collection,
    lookup: Lookup,
    bottom: Mlp,
    interaction: Interaction,
    top: Mlp,
    checkpoint: Checkpoint,
    directory: &'a str,
}

impl Trained<'_> {
    fn new<'a>(comm: &Comm, directory: &'a str) -> Result<Trained<'a>> {
        let mut model = Model::new()?;
        for name in ["a", "b"] {
            let table = model.add_table(name, ROWS, DIM as i64, None)?;
            model.add_feature(table, name, Pooling::Sum)?;
        }
        let plan = Plan::collective(comm, None, &model, None)?;
        let tables = Collection::new(comm, None, &model, &plan, None)?;
        let lookup = Lookup::new(&tables, None)?;
        let interaction = Interaction::new(2, DIM as i64, None)?;
        let mut bottom = Mlp::new(DENSE as i64, None)?;
        bottom.add_linear(DIM as i64, Activation::Relu)?;
        let mut top = Mlp::new(interaction.outputs()?, None)?;
        top.add_linear(1, Activation::None)?;
        let mut checkpoint = Checkpoint::new(comm, directory, None)?;
        checkpoint.add_collection("tables", &tables)?;
        checkpoint.add_mlp("bottom", &bottom)?;
        checkpoint.add_mlp("top", &top)?;
        Ok(Trained { tables, lookup, bottom, interaction, top, checkpoint, directory })
    }

    /// What the training side computes for each thread's batch.
    fn answers(&mut self) -> Result<Vec<Answer>> {
        (0..THREADS).map(|thread| self.answer(&batch_of(thread))).collect()
    }

    fn answer(&mut self, batch: &Samples) -> Result<Answer> {
        let columns = self.interaction.outputs()? as usize;
        let (mut pooled, mut dense) = (vec![0f32; BATCH * 2 * DIM], [0f32; BATCH * DIM]);
        let (mut crossed, mut logits, mut scores) =
            (vec![0f32; BATCH * columns], [0f32; BATCH], vec![0f32; BATCH]);
        let (ids, lengths) = (View::vector(&batch.ids), View::vector(&batch.lengths));
        self.lookup.begin(&Batch::new(BATCH as i64, ids, lengths).weights(View::vector(&batch.weights)))?;
        self.lookup.forward(0, ViewMut::matrix(&mut pooled, BATCH, 2 * DIM))?;
        let input = View::matrix(&batch.dense, BATCH, DENSE);
        let _ = self.bottom.forward(input, ViewMut::matrix(&mut dense, BATCH, DIM))?;
        let (d, p) = (View::matrix(&dense, BATCH, DIM), View::matrix(&pooled, BATCH, 2 * DIM));
        let _ = self.interaction.forward(d, p, ViewMut::matrix(&mut crossed, BATCH, columns))?;
        let crossed = View::matrix(&crossed, BATCH, columns);
        let _ = self.top.forward(crossed, ViewMut::matrix(&mut logits, BATCH, 1))?;
        let labels = [0f32; BATCH];
        let out = Some(ViewMut::vector(&mut scores));
        bce_with_logits(None, View::vector(&logits), View::vector(&labels), out, None)?;
        Ok(Answer { pooled, scores })
    }

    /// Other weights everywhere.
    fn change(&mut self) -> Result<()> {
        for table in 0..2 {
            let rows: Vec<f32> = (0..ROWS * DIM as i64).map(|i| (i % 17) as f32 / 9.0 - 0.8).collect();
            let rows = View::matrix(&rows, ROWS as usize, DIM);
            self.tables.write_range(table, TablePart::Weights, 0, ROWS, Some(rows))?;
        }
        self.top.set_parameter(1, &[0.25])
    }
}

fn answer_of(scorer: &Scorer, batch: &Samples) -> Result<(i64, i64, Answer)> {
    let mut answer = Answer { pooled: vec![0f32; BATCH * 2 * DIM], scores: vec![0f32; BATCH] };
    let (ids, lengths) = (View::vector(&batch.ids), View::vector(&batch.lengths));
    let weights = Some(View::vector(&batch.weights));
    let pooled = ViewMut::matrix(&mut answer.pooled, BATCH, 2 * DIM);
    let of_lookup = scorer.lookup(0, &Batch { weights, ..Batch::new(BATCH as i64, ids, lengths) }, pooled)?;
    let dense = View::matrix(&batch.dense, BATCH, DENSE);
    let scores = ViewMut::vector(&mut answer.scores);
    let of_predict =
        scorer.predict(&Batch { weights, ..Batch::new(BATCH as i64, ids, lengths) }, dense, scores)?;
    Ok((of_lookup, of_predict, answer))
}

/// Sixteen threads ask, each for its own batch, while this one goes from one checkpoint to the other and back.
fn many_threads_ask(scorer: &Scorer, expected: &[Vec<Answer>; 2]) {
    let (ended, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (thread, own) in expected[0].iter().zip(&expected[1]).enumerate() {
            let (ended, asked) = (&ended, &asked);
            scope.spawn(move || {
                let batch = batch_of(thread);
                while !ended.load(Ordering::Relaxed) {
                    let (of_lookup, of_predict, answer) = answer_of(scorer, &batch).unwrap();
                    let [pooled, scores] =
                        [of_lookup, of_predict].map(|step| if step == 1 { own.0 } else { own.1 });
                    assert_eq!((&answer.pooled, &answer.scores), (&pooled.pooled, &scores.scores));
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for turn in 0..20 {
            let (before, start) = (asked.load(Ordering::Relaxed), Instant::now());
            assert_eq!(scorer.refresh(1 + turn % 2, None).unwrap(), 1 + turn % 2);
            while asked.load(Ordering::Relaxed) < before + THREADS {
                assert!(start.elapsed() < Duration::from_secs(60), "no thread asks any more");
                std::thread::yield_now();
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}

fn served(trained: &Trained<'_>, expected: &[Vec<Answer>; 2]) -> Result<()> {
    let scorer = Scorer::open(trained.directory, -1, None, None)?;
    let info = scorer.info()?;
    assert_eq!((info.step, info.dense_columns, info.scores), (2, DENSE as i64, 1));
    assert_eq!(scorer.model()?.info()?.tables, 2);
    many_threads_ask(&scorer, expected);

    let mapped = ScorerOptions::new().served_tables(ServedTables::Mapped).bottom_layers("bottom");
    let mapped = Scorer::open(trained.directory, 1, Some(&mapped), Some(&Control::new()?))?;
    let compact = ScorerOptions::new().served_tables(ServedTables::Int8).logits(true);
    let compact = Scorer::open(trained.directory, 1, Some(&compact), None)?;
    for (thread, expected) in expected[0].iter().enumerate() {
        assert_eq!(answer_of(&mapped, &batch_of(thread))?, (1, 1, expected.clone()));
        let (_, _, rounded) = answer_of(&compact, &batch_of(thread))?;
        for (got, exact) in rounded.pooled.iter().zip(&expected.pooled) {
            assert!((got - exact).abs() < 0.01, "{got} for {exact}");
        }
        for (logit, score) in rounded.scores.iter().zip(&expected.scores) {
            assert!((1.0 / (1.0 + (-logit).exp()) - score).abs() < 0.01, "logit {logit} for {score}");
        }
    }
    refusals(&scorer, trained.directory)
}

fn refusals(scorer: &Scorer, directory: &str) -> Result<()> {
    let kind = |error: Error| error.kind;
    let mut batch = batch_of(3);
    batch.ids[2] = ROWS;
    let refused = answer_of(scorer, &batch).unwrap_err();
    assert_eq!(
        (refused.kind, refused.position, refused.value),
        (ErrorKind::InvalidBatch, Some(2), Some(ROWS))
    );
    assert_eq!(refused.feature.as_deref(), Some("a"));
    assert_eq!(scorer.refresh(9, None).map_err(kind), Err(ErrorKind::NotFound));
    assert_eq!(Scorer::open("/nowhere", -1, None, None).map(drop).map_err(kind), Err(ErrorKind::NotFound));
    let cancelled = Control::new()?;
    cancelled.cancel()?;
    let opened = Scorer::open(directory, 1, None, Some(&cancelled)).map(drop).map_err(kind);
    assert_eq!(opened, Err(ErrorKind::Cancelled));

    let file = format!("{directory}/step_000000000001/rank_00000.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let tables = bytes.len() / 4; // behind the head of names and places
    bytes[tables..].iter_mut().step_by(64).for_each(|byte| *byte ^= 1);
    std::fs::write(&file, bytes).unwrap();
    let damaged = Scorer::open(directory, 1, None, None).map(drop).map_err(kind);
    assert_eq!(damaged, Err(ErrorKind::CorruptData));
    assert_eq!(scorer.refresh(1, None).map_err(kind), Err(ErrorKind::CorruptData));
    assert_eq!(answer_of(scorer, &batch_of(0))?.0, 2); // the one before is served on
    Ok(())
}

#[test]
fn a_scorer_answers_what_training_computes() {
    let folder = std::env::temp_dir().join(format!("shardrec-scorer-{}", std::process::id()));
    let directory = folder.to_str().unwrap();
    run(1, |comm: &Comm| -> Result<()> {
        let mut trained = Trained::new(comm, directory)?;
        trained.checkpoint.commit(1, None)?;
        let first = trained.answers()?;
        trained.change()?;
        trained.checkpoint.commit(2, None)?;
        let second = trained.answers()?;
        assert!(first.iter().zip(&second).all(|(a, b)| a.pooled != b.pooled && a.scores != b.scores));
        served(&trained, &[first, second])
    })
    .unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// A training publishes its changes; a scorer that follows answers with the bits of each of its steps.
#[test]
fn a_scorer_follows_a_training_by_its_deltas() {
    let folder = std::env::temp_dir().join(format!("shardrec-follows-{}", std::process::id()));
    let directory = folder.to_str().unwrap();
    run(1, |comm: &Comm| -> Result<()> {
        let mut trained = Trained::new(comm, directory)?;
        assert!(!trained.checkpoint.commit_delta(0, None)?);
        let scorer = Scorer::open(directory, -1, None, None)?;
        for step in 1..13i64 {
            let row: Vec<f32> = (0..DIM).map(|i| step as f32 / (2.0 + i as f32)).collect();
            let row = View::matrix(&row, 1, DIM);
            trained.tables.write_range(step as i32 % 2, TablePart::Weights, step, 1, Some(row))?;
            trained.top.set_parameter(1, &[0.1 * step as f32])?;
            let expected = trained.answers()?;
            assert!(trained.checkpoint.commit_delta_begin(step, None)?);
            assert!(trained.checkpoint.commit_wait(-1)?);
            assert_eq!(scorer.refresh(-1, None)?, step);
            for (thread, answer) in expected.iter().enumerate() {
                assert_eq!(answer_of(&scorer, &batch_of(thread))?, (step, step, answer.clone()));
            }
        }
        Ok(())
    })
    .unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn ids_are_hashed_as_one_by_one() {
    let ids = [0i64, 1, -1, i64::MAX, i64::MIN];
    let mut hashes = [0i64; 5];
    hash64_ids(3, View::vector(&ids), 0, ViewMut::vector(&mut hashes)).unwrap();
    let mut rows = [0i32; 5];
    hash64_ids(3, View::vector(&ids), 1000, ViewMut::vector(&mut rows)).unwrap();
    for i in 0..5 {
        let hash = hash64(3, &ids[i].to_le_bytes());
        assert_eq!((hashes[i] as u64, rows[i] as u64), (hash, hash % 1000));
    }
    let refused = hash64_ids(3, View::vector(&ids), 1000, ViewMut::vector(&mut rows[..4])).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidArgument);
}
