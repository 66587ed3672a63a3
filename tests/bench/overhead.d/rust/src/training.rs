//! What steps.c does, in Rust.

use shardrec::*;

const DIM: usize = 16;
const ROWS: i64 = 1000;
const DENSE: usize = 4;

pub trait Step {
    fn step(&mut self) -> Result<()>;
}

pub fn open(comm: &Comm, kind: &str, tables: usize, batch: usize) -> Result<Box<dyn Step>> {
    Ok(match kind {
        "tables" => Box::new(Tables::open(comm, tables, batch)?),
        "whole" => Box::new(Whole::open(comm, tables, batch)?),
        _ => Box::new(Hash { ids: ids(tables * batch), hashes: AlignedVec::zeroed(tables * batch) }),
    })
}

fn ids(count: usize) -> AlignedVec<i64> {
    let mut ids = AlignedVec::zeroed(count);
    for (i, id) in ids.iter_mut().enumerate() {
        *id = i as i64 * 7 % ROWS;
    }
    ids
}

struct Hash {
    ids: AlignedVec<i64>,
    hashes: AlignedVec<i64>,
}

impl Step for Hash {
    fn step(&mut self) -> Result<()> {
        hash64_ids(1, View::vector(&self.ids), ROWS, ViewMut::vector(&mut self.hashes))
    }
}

struct Tables {
    tables: usize,
    batch: usize,
    lookup: Lookup,
    ids: AlignedVec<i64>,
    lengths: AlignedVec<i64>,
    pooled: AlignedVec<f32>,
}

impl Tables {
    fn open(comm: &Comm, tables: usize, batch: usize) -> Result<Tables> {
        let mut model = Model::new()?;
        for i in 0..tables {
            let name = format!("t{i}");
            let table = model.add_table(&name, ROWS, DIM as i64, None)?;
            model.add_feature(table, &name, Pooling::Sum)?;
        }
        let plan = Plan::collective(comm, None, &model, None)?;
        let collection =
            Collection::new(comm, None, &model, &plan, Some(&CollectionOptions::new().threads(1)))?;
        let mut lengths = AlignedVec::zeroed(tables * batch);
        lengths.fill(1);
        Ok(Tables {
            tables,
            batch,
            lookup: Lookup::new(&collection, None)?,
            ids: ids(tables * batch),
            lengths,
            pooled: AlignedVec::zeroed(batch * tables * DIM),
        })
    }

    fn begin(&mut self, size: usize) -> Result<()> {
        let bags = self.tables * size;
        let (ids, lengths) = (View::vector(&self.ids[..bags]), View::vector(&self.lengths[..bags]));
        self.lookup.begin(&Batch::new(size as i64, ids, lengths))
    }
}

impl Step for Tables {
    fn step(&mut self) -> Result<()> {
        let (batch, columns) = (self.batch, self.tables * DIM);
        self.begin(batch)?;
        self.lookup.forward(0, ViewMut::matrix(&mut self.pooled, batch, columns))?;
        self.lookup.set_gradient(0, View::matrix(&self.pooled, batch, columns))?;
        self.lookup.backward(Update::Apply)
    }
}

struct Whole {
    of: Tables,
    number: usize,
    width: usize,
    bottom: Mlp,
    top: Mlp,
    cross: Interaction,
    ddp: Ddp,
    metrics: Metrics,
    input: AlignedVec<f32>,
    dense: AlignedVec<f32>,
    crossed: AlignedVec<f32>,
    logits: AlignedVec<f32>,
    labels: AlignedVec<f32>,
    predicted: AlignedVec<f32>,
    logits_gradient: AlignedVec<f32>,
    crossed_gradient: AlignedVec<f32>,
    dense_gradient: AlignedVec<f32>,
    pooled_gradient: AlignedVec<f32>,
}

impl Whole {
    fn open(comm: &Comm, tables: usize, batch: usize) -> Result<Whole> {
        let cross = Interaction::new(tables as i64, DIM as i64, None)?;
        let width = cross.outputs()?;
        let (mut bottom, mut top) = (Mlp::new(DENSE as i64, None)?, Mlp::new(width, None)?);
        bottom.add_linear(DIM as i64, Activation::Relu)?;
        top.add_linear(1, Activation::None)?;
        let mut ddp = Ddp::new(comm, None)?;
        ddp.add_mlp("bottom", &bottom)?;
        ddp.add_mlp("top", &top)?;
        ddp.commit()?;
        let (width, zeros) = (width as usize, |columns: usize| AlignedVec::zeroed(batch * columns));
        Ok(Whole {
            of: Tables::open(comm, tables, batch)?,
            number: 0,
            width,
            bottom,
            top,
            cross,
            ddp,
            metrics: Metrics::new(Some(comm), None)?,
            input: zeros(DENSE),
            dense: zeros(DIM),
            crossed: zeros(width),
            logits: zeros(1),
            labels: zeros(1),
            predicted: zeros(1),
            logits_gradient: zeros(1),
            crossed_gradient: zeros(width),
            dense_gradient: zeros(DIM),
            pooled_gradient: zeros(tables * DIM),
        })
    }
}

impl Step for Whole {
    fn step(&mut self) -> Result<()> {
        let (size, pooled_width, width) = (self.of.batch - self.number % 8, self.of.tables * DIM, self.width);
        self.number += 1;
        self.of.begin(size)?;
        let bottom = self
            .bottom
            .forward(View::matrix(&self.input, size, DENSE), ViewMut::matrix(&mut self.dense, size, DIM))?;
        self.of.lookup.forward(0, ViewMut::matrix(&mut self.of.pooled, size, pooled_width))?;
        self.of.lookup.all_done()?;
        let cross = self.cross.forward(
            View::matrix(&self.dense, size, DIM),
            View::matrix(&self.of.pooled, size, pooled_width),
            ViewMut::matrix(&mut self.crossed, size, width),
        )?;
        let top = self
            .top
            .forward(View::matrix(&self.crossed, size, width), ViewMut::matrix(&mut self.logits, size, 1))?;
        bce_with_logits(
            None,
            View::matrix(&self.logits, size, 1),
            View::matrix(&self.labels, size, 1),
            Some(ViewMut::matrix(&mut self.predicted, size, 1)),
            Some(ViewMut::matrix(&mut self.logits_gradient, size, 1)),
        )?;
        let averaged = self.ddp.begin(true)?;
        top.backward(
            View::matrix(&self.logits_gradient, size, 1),
            Some(ViewMut::matrix(&mut self.crossed_gradient, size, width)),
        )?;
        cross.backward(
            View::matrix(&self.crossed_gradient, size, width),
            ViewMut::matrix(&mut self.dense_gradient, size, DIM),
            ViewMut::matrix(&mut self.pooled_gradient, size, pooled_width),
        )?;
        self.of.lookup.set_gradient(0, View::matrix(&self.pooled_gradient, size, pooled_width))?;
        self.of.lookup.send_gradients(Update::Apply)?;
        bottom.backward(View::matrix(&self.dense_gradient, size, DIM), None)?;
        let averaged = averaged.end()?;
        self.of.lookup.backward(Update::Apply)?;
        averaged.wait()?;
        self.bottom.step()?;
        self.top.step()?;
        self.metrics.update(View::matrix(&self.predicted, size, 1), View::matrix(&self.labels, size, 1))
    }
}
