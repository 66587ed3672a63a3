//! Two ranks train two steps around refused batches; weights, the error's parts, and dropping out of order.

use shardrec::{
    hash64, live_objects, run, Batch, Collection, CollectionOptions, Comm, CommProperty, Dtype, ErrorKind,
    Init, Lookup, Model, NonFinite, OptimizerOptions, OptionKey, Plan, PlanOptions, Pooling, Reduction,
    RendezvousOptions, Result, Sharding, Stat, TableOptions, TablePart, Update, View, ViewMut, ALL_TABLES,
};

const ROWS: usize = 10;
const DIM: usize = 4;
const BATCH: usize = 2;
const RANKS: usize = 2;
const RATE: f64 = 0.5;
const TABLE: &str = "usér 😀";
const VALUES: [[i64; 3]; RANKS] = [[1, 7, 1], [7, 3, 3]];
const LENGTHS: [[i64; BATCH]; RANKS] = [[2, 1], [1, 2]];

#[test]
fn ranks_train_around_a_refused_batch_and_exchange_tensors() {
    handles_go_to_raw_calls_and_back();
    options_are_checked_where_they_are_used();
    run(RANKS as i32, train_rank).unwrap();
    run(3, exchange_tensors).unwrap();
    assert_eq!(live_objects().unwrap(), 0);
    assert_eq!(hash64(7, b"id"), 0x6550b7d1d89c43a); // XXH3-64
}

fn options_are_checked_where_they_are_used() {
    let sets = "row_wise, grid";
    let table = TableOptions::new().dtype(Dtype::Float16).init_max(1).min_columns(2).allowed_sharding(sets);
    for (key, text) in
        [(OptionKey::Dtype, "float16"), (OptionKey::InitMax, "1"), (OptionKey::AllowedSharding, sets)]
    {
        assert_eq!(table.text(key).unwrap(), text);
    }
    assert_eq!(CollectionOptions::new().deduplicate(true).text(OptionKey::Deduplicate).unwrap(), "1");
    let refused = RendezvousOptions::new().port(-1).text(OptionKey::Port).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidArgument);
    let mut model = Model::new().unwrap();
    let refused = model.add_table("a", 3, 4, Some(&TableOptions::new().min_columns(0))).unwrap_err();
    assert!(refused.sentence.contains("MIN_COLUMNS"), "{refused}");
    assert_eq!(model.add_table("a", 3, 4, Some(&table)).unwrap(), 0);
    assert_eq!(model.add_table("b", 3, 4, Some(&table)).unwrap(), 1);
    assert!(model.to_json().unwrap().contains("float16"));
}

fn handles_go_to_raw_calls_and_back() {
    let model = Model::new().unwrap();
    let mut size = shardrec::sys::shardrec_model_size::new();
    // SAFETY: the handle lives, out outlives the call.
    let status = unsafe { shardrec::sys::shardrec_model_info(model.as_raw(), &mut size) };
    assert_eq!((status, size.tables), (shardrec::sys::SHARDREC_OK, 0));
    let raw = model.into_raw();
    assert_eq!(live_objects().unwrap(), 1);
    // SAFETY: it is the one of into_raw.
    let model = unsafe { Model::from_raw(raw) };
    assert!(model.to_json().is_ok());
}

fn train_rank(comm: &Comm) -> Result<()> {
    let rank = comm.rank()? as usize;
    comm.set(CommProperty::StepSeconds, 60.0)?;
    let sgd = OptimizerOptions::new().learning_rate(RATE);
    let zeros = TableOptions::new().init(Init::Zeros);
    let row_wise = PlanOptions::new().sharding(Sharding::RowWise);
    let mut model = Model::new()?;
    model.set_optimizer(ALL_TABLES, Some(&sgd))?;
    let table = model.add_table(TABLE, ROWS as i64, DIM as i64, Some(&zeros))?;
    model.add_feature(table, "id", Pooling::Sum)?;
    let plan = Plan::collective(comm, None, &model, Some(&row_wise))?;
    let refusing = CollectionOptions::new().non_finite(NonFinite::Error);
    let mut tables = Collection::new(comm, None, &model, &plan, Some(&refusing))?;
    let mut lookup = Lookup::new(&tables, None)?;

    step(&mut lookup, rank)?;
    refused(&mut lookup, rank);
    not_finite(&mut lookup, rank)?;
    assert_eq!(tables.stat(Stat::TableNonFinite, table)?, rank as f64);
    step(&mut lookup, rank)?;
    let mut weights = [0f32; ROWS * DIM];
    tables.read_range(
        table,
        TablePart::Weights,
        0,
        ROWS as i64,
        Some(ViewMut::matrix(&mut weights, ROWS, DIM)),
    )?;
    assert_eq!((weights, tables.step()?), (expected(), 2));
    assert_ne!(weights[7 * DIM], 0.0);

    // Both ranks write row 9; the higher one's entry stays. Rank 0 reads rows 9 and 1.
    let mine = [rank as f32 + 1.0; DIM];
    let row = Some(View::matrix(&mine, 1, DIM));
    tables.write_rows(table, TablePart::Weights, Some(View::vector(&[9i32])), row)?;
    let mut got = [0f32; 2 * DIM];
    if rank == 0 {
        let out = Some(ViewMut::matrix(&mut got, 2, DIM));
        tables.read_rows(table, TablePart::Weights, Some(View::vector(&[9i64, 1])), out)?;
        assert_eq!((&got[..DIM], &got[DIM..]), (&[2.0; DIM][..], &weights[DIM..2 * DIM]));
    } else {
        tables.read_rows(table, TablePart::Weights, None, None)?;
    }

    comm.shutdown()?;
    drop((plan, tables, model, zeros, sgd, row_wise));
    assert_eq!(lookup.backward(Update::Apply).unwrap_err().kind, ErrorKind::Closed);
    Ok(())
}

/// Three ranks exchange tensors; two of them in a part of their own.
fn exchange_tensors(comm: &Comm) -> Result<()> {
    let rank = comm.rank()?;
    let (mut name, mut all) = ([rank + 5], [0; 3]);
    comm.all_gather(View::vector(&name), ViewMut::vector(&mut all))?;
    comm.broadcast(ViewMut::vector(&mut name), 2)?;
    assert_eq!((all, name), ([5, 6, 7], [7]));
    let mut part = [0f32];
    let sum = [1.0, 2.0, rank as f32];
    comm.reduce_scatter(View::vector(&sum), ViewMut::vector(&mut part), Reduction::Sum)?;
    assert_eq!(part[0], [3.0, 6.0, 3.0][rank as usize]);
    // Rank r sends r rows to each; all are its number.
    let rows = vec![rank as f32; 3 * rank as usize];
    let mut got = [0f32; 3];
    let sent = [i64::from(rank); 3];
    let (sent, received) = (Some(View::vector(&sent)), Some(View::vector(&[0i64, 1, 2])));
    comm.all_to_all(View::vector(&rows), sent, ViewMut::vector(&mut got), received)?;
    assert_eq!(got, [1.0, 2.0, 2.0]);
    let mut transposed = [0; 3];
    comm.all_to_all(View::vector(&all), None, ViewMut::vector(&mut transposed), None)?;
    assert_eq!(transposed, [rank + 5; 3]);
    let pair = comm.split(if rank == 2 { -1 } else { 0 }, -rank)?;
    assert_eq!(pair.is_none(), rank == 2);
    if let Some(pair) = pair {
        assert_eq!((pair.size()?, pair.rank()?), (2, 1 - rank));
        pair.barrier()?;
        pair.shutdown()?;
    }
    comm.shutdown()
}

fn step(lookup: &mut Lookup, rank: usize) -> Result<()> {
    let mut out = [0f32; BATCH * DIM];
    lookup.begin(&Batch::new(BATCH as i64, View::vector(&VALUES[rank]), View::vector(&LENGTHS[rank])))?;
    lookup.forward(0, ViewMut::matrix(&mut out, BATCH, DIM))?;
    for (i, value) in out.iter_mut().enumerate() {
        *value += (rank + 1 + i % DIM) as f32;
    }
    lookup.set_gradient(0, View::matrix(&out, BATCH, DIM))?;
    lookup.send_gradients(Update::Apply)?;
    lookup.backward_begin(Update::Apply)?;
    assert_eq!(lookup.backward(Update::Apply).unwrap_err().kind, ErrorKind::InvalidState);
    lookup.backward_wait()
}

fn refused(lookup: &mut Lookup, rank: usize) {
    let mut ids = VALUES[rank];
    ids[2] += (rank * ROWS) as i64; // rank 1's third id is out of range
    lookup.begin(&Batch::new(BATCH as i64, View::vector(&ids), View::vector(&LENGTHS[rank]))).unwrap();
    let e = lookup.forward(0, ViewMut::matrix(&mut [0f32; BATCH * DIM], BATCH, DIM)).unwrap_err();
    assert_eq!((e.kind, e.rank, e.position), (ErrorKind::InvalidBatch, Some(1), Some(2)), "{e}");
    assert_eq!((e.table.as_deref(), e.feature.as_deref()), (Some(TABLE), Some("id")), "{e}");
    assert!(e.operation.is_some(), "{e}");
}

/// Option NON_FINITE: both ranks hear where rank 1 has a NaN, and no row has changed.
fn not_finite(lookup: &mut Lookup, rank: usize) -> Result<()> {
    let mut gradient = [0f32; BATCH * DIM];
    lookup.begin(&Batch::new(BATCH as i64, View::vector(&VALUES[rank]), View::vector(&LENGTHS[rank])))?;
    lookup.forward(0, ViewMut::matrix(&mut gradient, BATCH, DIM))?;
    if rank == 1 {
        gradient[DIM + 2] = f32::NAN;
    }
    lookup.set_gradient(0, View::matrix(&gradient, BATCH, DIM))?;
    let e = lookup.backward(Update::Apply).unwrap_err();
    assert_eq!((e.kind, e.rank, e.position), (ErrorKind::InvalidBatch, Some(1), Some(1)), "{e}");
    assert_eq!((e.table.as_deref(), e.feature.as_deref()), (Some(TABLE), Some("id")), "{e}");
    Ok(())
}

/// Two steps of SGD on the whole table, in a plain loop.
fn expected() -> [f32; ROWS * DIM] {
    let mut weights = [0f32; ROWS * DIM];
    for _ in 0..2 {
        let mut gradient = [0f32; ROWS * DIM];
        for rank in 0..RANKS {
            let mut rest = &VALUES[rank][..];
            for length in LENGTHS[rank] {
                let (bag, after) = rest.split_at(length as usize);
                rest = after;
                for d in 0..DIM {
                    let sum: f32 = bag.iter().map(|&id| weights[id as usize * DIM + d]).sum();
                    let share = (sum + (rank + 1 + d) as f32) / RANKS as f32;
                    bag.iter().for_each(|&id| gradient[id as usize * DIM + d] += share);
                }
            }
        }
        weights.iter_mut().zip(gradient).for_each(|(w, g)| *w -= RATE as f32 * g);
    }
    weights
}
