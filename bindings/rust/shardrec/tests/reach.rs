//! Every method of every handle, for what it is there for; bindings/run counts the functions of C that were called.

use std::path::PathBuf;
use std::time::Duration;

use shardrec::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("shardrec-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|e| e.kind)
}

#[test]
fn the_library_itself() {
    assert!(capabilities_json().unwrap().contains("engines") && api_version() >= sys::SHARDREC_API_VERSION);
    set_log_level(LogLevel::Warning).unwrap();
    let control = Control::new().unwrap();
    assert_eq!(control.progress().unwrap().done, 0);
    control.cancel().unwrap();
    assert_eq!(kind(probe_json(Some("cpu"), 1, false, Some(&control))), Some(ErrorKind::Cancelled));
    let probed = match probe_json(None, 0, true, None) {
        Err(e) if e.kind == ErrorKind::NotFound => probe_json(None, 1, false, None).unwrap(),
        cached => cached.unwrap(),
    };
    assert!(probed.contains('{'));
    let local = available(Capability::Engine, "local").unwrap();
    assert_eq!(local, Available { available: true, reason: String::new() });
    let none = available(Capability::Device, "tpu").unwrap();
    assert!(!none.available && none.reason.contains("tpu"));
    trace_start(1000).unwrap();
    assert!(trace_json().unwrap().contains("traceEvents"));
    trace_stop();
    assert_eq!(PlanOptions::new().batch_size(7).integer(OptionKey::BatchSize).unwrap(), 7);
    assert_eq!(PlanOptions::new().bag_length(2).real(OptionKey::BagLength).unwrap(), 2.0);
    let (mut probabilities, mut gradient) = ([0f32; 2], [0f32; 2]);
    let (p, g) = (ViewMut::vector(&mut probabilities), ViewMut::vector(&mut gradient));
    let loss = bce_with_logits(None, View::vector(&[0f32; 2]), View::vector(&[1f32, 0.0]), Some(p), Some(g))
        .unwrap();
    assert!((loss - 2f64.ln()).abs() < 1e-6 && probabilities[0] == 0.5 && gradient[0] == -0.25);
}

fn small_model() -> Result<Model> {
    let mut model = Model::new()?;
    let adagrad = OptimizerOptions::new().optimizer(Optimizer::Adagrad).learning_rate(1);
    model.set_optimizer(ALL_TABLES, Some(&adagrad))?;
    let a = model.add_table("a", 10, 4, Some(&TableOptions::new().init(Init::Zeros)))?;
    let b = model.add_table("b", 6, 2, None)?;
    model.set_optimizer(b, Some(&adagrad.learning_rate(0.5)))?;
    model.add_feature(a, "x", Pooling::Sum)?;
    model.add_feature(b, "y", Pooling::Mean)?;
    Ok(model)
}

#[test]
fn plans_by_hand() {
    let (model, topology) = (small_model().unwrap(), Topology::new(2, 2).unwrap());
    assert_eq!(model.info().unwrap(), ModelInfo { tables: 2, features: 2, sequences: 0, width: 6 });
    let table = model.table(1).unwrap();
    assert_eq!((table.name.as_str(), table.rows, table.dim, table.learning_rate), ("b", 6, 2, 0.5));
    assert_eq!((table.dtype, table.optimizer), (Some(Dtype::Float32), Some(Optimizer::Adagrad)));
    assert_eq!((table.states, table.features), (1, 1));
    let feature = model.feature(1).unwrap();
    assert_eq!((feature.name.as_str(), feature.table, feature.pooling), ("y", 1, Some(Pooling::Mean)));
    assert_eq!((feature.output, feature.column, feature.columns, feature.width), (0, 4, 2, 6));
    let same = Model::from_json(&model.to_json().unwrap()).unwrap();
    let other = Topology::from_json(&topology.to_json().unwrap()).unwrap();
    let row_wise = PlanOptions::new().sharding(Sharding::RowWise);
    let plan = Plan::new(&same, &other, Some(&row_wise)).unwrap();
    plan.check().unwrap();
    assert!(plan.to_text().unwrap().contains('a'));
    let again = Plan::from_json(&model, &plan.to_json().unwrap()).unwrap();
    assert_eq!(again.box_count(0).unwrap(), plan.box_count(0).unwrap());
    let mut empty = Plan::create_empty(&model, &topology).unwrap();
    empty.add_box(0, 1, 0, 10, 0, 4).unwrap();
    empty.replicate(1, Replication::Samples).unwrap();
    empty.replicate(1, Replication::Rows).unwrap();
    empty.check().unwrap();
    let placed = empty.placed_box(0, 0).unwrap();
    assert_eq!((placed.rank, placed.rows, placed.cols), (1, 10, 4));
    assert_eq!((placed.weight_bytes, placed.state_bytes), (160, 160));
}

#[test]
fn lookups_in_every_form() {
    run(2, |comm: &Comm| -> Result<()> {
        comm.check()?;
        let mut sum = [1f32, comm.rank()? as f32];
        comm.all_reduce(ViewMut::vector(&mut sum), Reduction::Sum)?;
        assert_eq!((sum, comm.get(CommProperty::StepSeconds)?), ([2.0, 1.0], 600.0));
        let model = small_model()?;
        let plan = Plan::collective(comm, None, &model, None)?;
        let mut tables = Collection::new(comm, None, &model, &plan, None)?;
        let mut lookup = Lookup::new(&tables, Some(&LookupOptions::new().weight_gradient(true)))?;
        let (ids, weights) = ([1i64, 2, 3], [1f32, 1.0, 2.0]);
        let (mut out, mut gradient) = ([1f32; 12], [0f32; 3]);
        let offsets = [0i64, 1, 2, 2, 3];
        let (values, bags) = (Some(View::vector(&ids)), Some(View::vector(&offsets)));
        lookup.begin(&Batch {
            size: 2,
            values,
            offsets: bags,
            weights: Some(View::vector(&weights)),
            ..Batch::default()
        })?;
        assert_eq!(lookup.output_shape(0)?, LookupOutputShape { rows: 2, columns: 6 });
        lookup.forward(0, ViewMut::matrix(&mut out, 2, 6))?;
        assert!(!lookup.all_done()?);
        lookup.set_gradient(0, View::matrix(&[1f32; 12], 2, 6))?;
        lookup.backward(Update::Accumulate)?;
        lookup.weight_gradient(ViewMut::vector(&mut gradient))?;
        let (sizes, inverse, lengths) = ([1i64, 2], [0i64, 0, 0, 1], [1i64, 1, 1]);
        let (sizes, inverse) = (Some(View::vector(&sizes)), Some(View::vector(&inverse)));
        lookup.begin(&Batch {
            size: 2,
            batch_sizes: sizes,
            inverse,
            values,
            lengths: Some(View::vector(&lengths)),
            ..Batch::default()
        })?;
        lookup.forward(0, ViewMut::matrix(&mut out, 2, 6))?;
        lookup.set_gradient(0, View::matrix(&out, 2, 6))?;
        lookup.backward(Update::Apply)?;
        assert_eq!(tables.step()?, 1);
        lookup.begin(&Batch {
            size: 2,
            values,
            lengths: Some(View::vector(&[1i64, 1, 1, 0])),
            ..Batch::default()
        })?;
        lookup.forward(0, ViewMut::matrix(&mut out, 2, 6))?;
        lookup.backward(Update::Skip)?;
        lookup.begin(&Batch::default())?;
        lookup.forward(0, ViewMut::matrix(&mut out, 0, 6))?;
        assert!(lookup.all_done()?);
        tables.set_step(7)?;
        tables.set_learning_rate(ALL_TABLES, 0.1)?;
        tables.set_learning_rate(1, 0.2)?;
        tables.set_frozen(0, true)?;
        assert_eq!((tables.learning_rate(1)?, tables.frozen(0)?, tables.frozen(1)?), (0.2, true, false));
        tables.wait_device()?;
        unsafe { lookup.set_stream(0)? };
        let mut row = [0f32; 4];
        tables.write_range(0, TablePart::Weights, 9, 1, Some(View::matrix(&[1f32, 2.0, 3.0, 4.0], 1, 4)))?;
        tables.read_range(0, TablePart::Weights, 9, 1, Some(ViewMut::matrix(&mut row, 1, 4)))?;
        tables.read_range(0, TablePart::Weights, 0, 0, None)?; // this rank asks for nothing
        tables.write_range(0, TablePart::Weights, 0, 0, None)?;
        assert_eq!((row[3], tables.step()?), (4.0, 7));
        let (mark, mut changed) = (tables.mark()?, [0i64; 2]);
        tables.write_range(0, TablePart::Weights, 9, 1, Some(View::matrix(&row, 1, 4)))?;
        let count = tables.changed_rows(mark, 0, 0, Some(ViewMut::vector(&mut changed)))?;
        assert_eq!((count, changed[0]), (tables.changed_rows(mark, 0, 9, None)?, 9 * count));
        tables.release_mark(mark)?;
        assert!(tables.stat(Stat::Steps, ALL_TABLES)? >= 1.0 && tables.stat(Stat::TableIds, 0)? >= 0.0);
        assert!(tables.stat(Stat::SecondsLookup, ALL_TABLES)? >= 0.0);
        assert!(comm.operations_json()?.contains('['));
        assert_eq!(tables.model()?.to_json()?, model.to_json()?);
        assert_eq!(tables.plan()?.to_json()?, plan.to_json()?);
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn meshes() {
    run(2, |comm: &Comm| -> Result<()> {
        let mesh = Mesh::new(comm, 1, Some(&MeshOptions::new().placement(Placement::Sync)))?;
        let model = small_model()?;
        let plan = Plan::collective(comm, Some(&mesh), &model, None)?;
        let every = CollectionOptions::new().sync_every(16);
        let mut tables = Collection::new(comm, Some(&mesh), &model, &plan, Some(&every))?;
        let sharded = CollectionOptions::new().replica_sync(ReplicaSync::Sharded);
        let mut shared = Collection::new(comm, Some(&mesh), &model, &plan, Some(&sharded))?;
        shared.check_replicas()?;
        let (sharding, replica) = (mesh.comm(MeshGroup::Sharding)?, mesh.comm(MeshGroup::Replica)?);
        assert_eq!((mesh.place()?.replica_size, sharding.size()?, replica.size()?), (2, 1, 2));
        tables.sync_replicas()?;
        tables.sync_begin()?;
        tables.sync_wait()?;
        tables.check_replicas()?;
        tables.replica_fill(1)?;
        Collection::new(comm, Some(&mesh), &model, &plan, None)?.continue_from(Some(&tables))?;
        drop((sharding, replica));
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn layers_in_groups() {
    run(2, |comm: &Comm| -> Result<()> {
        let adam = MlpOptions::new().optimizer(Optimizer::Adam).learning_rate(0.1).seed(3);
        let (mut mlp, mut interaction) = (Mlp::new(2, Some(&adam))?, Interaction::new(1, 2, None)?);
        mlp.add_linear(2, Activation::None)?;
        mlp.add_linear(2, Activation::None)?;
        let before = mlp.parameter(0)?.value;
        assert_eq!((mlp.info()?.parameters, before.len(), interaction.outputs()?), (4, 4, 3));
        let mut ddp = Ddp::new(comm, None)?;
        ddp.add_mlp("stack", &mlp)?;
        ddp.commit()?;
        let step = ddp.begin(true)?;
        let input = [1f32, comm.rank()? as f32 + 1.0];
        let (mut dense, mut joined, mut gradient, mut unused) = ([0f32; 2], [0f32; 3], [0f32; 2], [0f32; 2]);
        let pass = mlp.forward(View::matrix(&input, 1, 2), ViewMut::matrix(&mut dense, 1, 2))?;
        let embeddings = [3f32, 4.0];
        let (d, e) = (View::matrix(&dense, 1, 2), View::matrix(&embeddings, 1, 2));
        let other = interaction.forward(d, e, ViewMut::matrix(&mut joined, 1, 3))?;
        let (g, u) = (ViewMut::matrix(&mut gradient, 1, 2), ViewMut::matrix(&mut unused, 1, 2));
        other.backward(View::matrix(&[1f32; 3], 1, 3), g, u)?;
        assert_eq!(gradient, [4.0, 5.0]);
        pass.backward(View::matrix(&gradient, 1, 2), None)?;
        step.wait()?;
        mlp.set_learning_rate(0.01)?;
        mlp.step()?;
        assert_ne!(mlp.parameter(0)?.value, before);
        mlp.zero_gradients()?;
        ddp.check_equal()?;
        assert_eq!(kind(mlp.set_parameter(0, &[0.0; 3])), Some(ErrorKind::InvalidArgument));
        mlp.set_parameter(0, &[0.0; 4])?;
        assert_eq!(mlp.parameter(0)?.value, [0.0; 4]);
        let info = mlp.info()?;
        assert_eq!((info.inputs, info.outputs, info.layers, info.elements), (2, 2, 2, 12));
        assert_eq!((info.step, info.learning_rate), (1, 0.01));
        assert_eq!((info.optimizer, info.states), (Some(Optimizer::Adam), 2));
        let (mean, square) = (mlp.state(0, 0)?, mlp.state(0, 1)?);
        assert!(mean.len() == 4 && mean[0] != 0.0 && square[0] > 0.0);
        assert_eq!(kind(mlp.state(0, 2)), Some(ErrorKind::NotFound));
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn own_parameters() {
    run(2, |comm: &Comm| -> Result<()> {
        let options = DdpOptions::new().first_bucket_bytes(1).unused(Unused::Zero);
        let mut ddp = Ddp::new(comm, Some(&options))?;
        assert_eq!(
            (
                ddp.add_parameter("weight", &[2], vec![1f32, 2.0])?,
                ddp.add_parameter("bias", &[], vec![3f32])?
            ),
            (0, 1)
        );
        ddp.set_flat_gradient(vec![0f32; 3])?;
        let adagrad = OptimizerOptions::new().optimizer(Optimizer::Adagrad).learning_rate(1);
        ddp.set_optimizer(Some(&adagrad))?;
        ddp.commit()?;
        assert_eq!((ddp.bucket_of(1)?, ddp.gradient::<f32>(0)?.len()), (0, 2));
        let mut step = ddp.begin(true)?;
        step.gradient_mut::<f32>(0)?.fill(3.0);
        step.mark_ready(0, 1)?;
        assert_eq!(kind(step.gradient_mut::<f32>(0)), Some(ErrorKind::InvalidState)); // the library's now
        step.mark_unused(1, 1)?;
        step.wait()?;
        assert!(ddp.clip_gradients(Clip::L2, 1.0)? > 4.0);
        ddp.step()?;
        assert!(ddp.parameter::<f32>(0)?[0] < 0.1 && ddp.state(0, 0)?[0] > 0.0);
        ddp.zero_gradients()?;
        ddp.set_learning_rate(0.5)?;
        ddp.gradient_mut::<f32>(1)?[0] = 1.0;
        ddp.all_reduce()?;
        ddp.set_parameter(1, &[comm.rank()? as f32])?;
        assert_eq!(kind(ddp.set_parameter::<f32>(1, &[])), Some(ErrorKind::InvalidArgument));
        ddp.broadcast(1)?;
        assert_eq!(ddp.parameter::<f32>(1)?[0], 1.0);
        ddp.check_equal()?;
        ddp.join()?;
        assert!(ddp.statistics_json()?.contains("buckets"));
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn sharded_parameters() {
    let folder = Folder::new("sharded");
    run(2, |comm: &Comm| -> Result<()> {
        let options = FsdpOptions::new().prefetch(1).strategy(FsdpStrategy::FullShard);
        let mut fsdp = Fsdp::new(comm, None, Some(&options))?;
        let unit = fsdp.add_unit("tower")?;
        let (weight, bias) =
            (fsdp.add_parameter(unit, "weight", 40, 2)?, fsdp.add_parameter(unit, "bias", 3, 0)?);
        fsdp.set_optimizer(Some(&OptimizerOptions::new().optimizer(Optimizer::Adagrad).learning_rate(1)))?;
        fsdp.commit()?;
        fsdp.set_full(bias, 0, View::vector(&[1f32, 2.0, 3.0]), 0)?;
        fsdp.begin(true)?;
        fsdp.unshard(unit)?;
        fsdp.wait_unshard(unit)?;
        assert_eq!(fsdp.parameter::<f32>(bias)?, [1.0, 2.0, 3.0]);
        assert_eq!(kind(fsdp.parameter::<F16>(bias)), Some(ErrorKind::InvalidArgument));
        fsdp.reshard(unit)?;
        fsdp.unshard(unit)?;
        assert_eq!(kind(fsdp.views::<f32, 1>([bias])), Some(ErrorKind::InvalidState));
        fsdp.wait_unshard(unit)?;
        fsdp.gradient_mut::<f32>(bias)?[2] += 1.0;
        assert_eq!(kind(fsdp.views::<f32, 2>([bias, bias])), Some(ErrorKind::InvalidArgument));
        let [of_bias, of_weight] = fsdp.views::<f32, 2>([bias, weight])?;
        of_bias.gradient[2] += of_bias.values[2] + of_weight.values[0];
        of_weight.gradient[79] += of_bias.values[1];
        fsdp.mark_ready(unit)?;
        fsdp.end()?;
        fsdp.wait()?;
        assert_eq!(fsdp.clip_gradients(Clip::Infinity, 8.0)?, 4.0);
        fsdp.step()?;
        let mut read = [0f32; 3];
        fsdp.full(bias, 0, ViewMut::vector(&mut read))?;
        assert!(read[0] == 1.0 && read[2] < 2.1);
        let mut shard = fsdp.shard(weight, 2)?;
        assert_eq!((shard.offset, shard.elements.is_empty()), (64 * i64::from(comm.rank()?), false));
        shard.elements[0] = 7.0;
        fsdp.set_shard(weight, 2, &shard.elements)?;
        assert_eq!(fsdp.shard(weight, 2)?, shard);
        assert_eq!(kind(fsdp.set_shard(weight, 2, &[])), Some(ErrorKind::InvalidArgument));
        fsdp.zero_gradients()?;
        fsdp.set_learning_rate(0.5)?;
        fsdp.check_equal()?;
        assert!(fsdp.statistics_json()?.contains("gathers"));
        let mut checkpoint = Checkpoint::new(comm, &folder.path("run"), None)?;
        checkpoint.add_fsdp("tower", &fsdp)?;
        checkpoint.commit(1, None)?;
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn sharded_stack() {
    run(2, |comm: &Comm| -> Result<()> {
        let mut fsdp = Fsdp::new(comm, None, None)?;
        let mut mlp = Mlp::new(2, None)?;
        mlp.add_linear(1, Activation::None)?;
        mlp.set_parameter(0, &[1.0, 2.0])?;
        assert_eq!(fsdp.add_mlp("net", &mlp, 1)?, 0);
        fsdp.set_optimizer(Some(&OptimizerOptions::new().optimizer(Optimizer::Sgd).learning_rate(1)))?;
        fsdp.commit()?;
        let (mut out, mut weight) = ([0f32], [0f32; 2]);
        fsdp.begin(true)?;
        let pass = mlp.forward(View::matrix(&[3f32, 4.0], 1, 2), ViewMut::matrix(&mut out, 1, 1))?;
        pass.backward(View::matrix(&[1f32], 1, 1), None)?;
        fsdp.end()?;
        fsdp.wait()?;
        fsdp.step()?;
        fsdp.full(0, 0, ViewMut::vector(&mut weight))?;
        assert_eq!(weight, [-2.0, -2.0]);
        assert_eq!(kind(mlp.parameter(0)), Some(ErrorKind::InvalidState));
        comm.shutdown()
    })
    .unwrap();
}

/// Without an optimizer they may be of other dtypes, beside a stack of layers, whose parameters are the stack's.
#[test]
fn own_parameters_of_every_dtype() {
    run(2, |comm: &Comm| -> Result<()> {
        let mut mlp = Mlp::new(2, None)?;
        mlp.add_linear(2, Activation::None)?;
        let mut ddp = Ddp::new(comm, Some(&DdpOptions::new().unused(Unused::Zero)))?;
        let mine = comm.rank()? + 1;
        let half = [1.5, -2.0].map(F16::from_f32);
        assert_eq!(ddp.add_parameter("half", &[1, 2], half.to_vec())?, 0);
        assert_eq!(ddp.add_mlp("stack", &mlp)?, 1);
        assert_eq!(ddp.add_parameter("brain", &[2], vec![Bf16::from_f32(mine as f32); 2])?, 3);
        assert_eq!(ddp.add_parameter("double", &[2, 1], vec![0.5f64; 2])?, 4);
        assert_eq!(kind(ddp.add_parameter("short", &[3], vec![0f64; 2])), Some(ErrorKind::InvalidArgument));
        assert_eq!(kind(ddp.add_parameter("long", &[1], vec![0f64; 2])), Some(ErrorKind::InvalidArgument));
        assert_eq!(kind(ddp.add_parameter("integers", &[1], vec![0i64])), Some(ErrorKind::Unsupported));
        ddp.commit()?;
        assert_eq!(ddp.parameter::<Bf16>(3)?[0].to_f32(), 1.0); // rank 0's
        let mut step = ddp.begin(true)?;
        step.gradient_mut::<F16>(0)?.fill(F16::from_f32(mine as f32));
        step.gradient_mut::<f64>(4)?[1] = f64::from(mine);
        assert_eq!(kind(step.gradient_mut::<f32>(4)), Some(ErrorKind::InvalidArgument));
        assert_eq!(kind(step.gradient_mut::<f32>(1)), Some(ErrorKind::NotFound)); // the stack's
        step.mark_ready(0, 1)?;
        step.mark_ready(4, 1)?;
        step.wait()?;
        assert_eq!((ddp.gradient::<F16>(0)?[1].to_f32(), ddp.gradient::<f64>(4)?), (1.5, &[0.0, 1.5][..]));
        assert_eq!(kind(ddp.parameter::<f32>(0)), Some(ErrorKind::InvalidArgument));
        assert_eq!(kind(ddp.parameter::<f32>(1)), Some(ErrorKind::NotFound));
        ddp.set_parameter(4, &[f64::from(mine); 2])?;
        ddp.broadcast(1)?;
        assert_eq!(ddp.parameter::<f64>(4)?, [2.0; 2]);
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn a_step_that_was_dropped_locks_its_memory() {
    run(1, |comm: &Comm| -> Result<()> {
        let mut ddp = Ddp::new(comm, None)?;
        ddp.add_parameter("weight", &[1], vec![1f32])?;
        ddp.commit()?;
        drop(ddp.begin(true)?);
        assert_eq!(kind(ddp.parameter::<f32>(0)), Some(ErrorKind::InvalidState));
        assert_eq!(kind(ddp.gradient_mut::<f32>(0)), Some(ErrorKind::InvalidState));
        assert_eq!(kind(ddp.begin(true)), Some(ErrorKind::InvalidState));
        Ok(())
    })
    .unwrap();
}

#[test]
fn checkpoints() {
    let folder = Folder::new("run");
    run(2, |comm: &Comm| -> Result<()> {
        let model = small_model()?;
        let plan =
            Plan::collective(comm, None, &model, Some(&PlanOptions::new().sharding(Sharding::RowWise)))?;
        let tables = Collection::new(comm, None, &model, &plan, None)?;
        let (mut mlp, mut ddp) = (Mlp::new(2, None)?, Ddp::new(comm, None)?);
        mlp.add_linear(1, Activation::None)?;
        ddp.add_parameter("weight", &[2, 1], vec![1f32, 2.0])?;
        ddp.commit()?;
        let mut checkpoint = Checkpoint::new(
            comm,
            &folder.path("run"),
            Some(&CheckpointOptions::new().keep_last(5).most_deltas(3).delta_states(false)),
        )?;
        checkpoint.add_collection("tables", &tables)?;
        checkpoint.add_mlp("layers", &mlp)?;
        checkpoint.add_ddp("own", &ddp)?;
        let mut position = [i64::from(comm.rank()?)];
        checkpoint.set_tensor("position", Some(View::vector(&position)))?;
        checkpoint.set_tensor("mistake", Some(View::vector(&[1u8])))?;
        checkpoint.set_tensor("mistake", None)?;
        checkpoint.commit(5, None)?;
        checkpoint.commit_begin(6, None)?;
        assert_eq!(kind(checkpoint.commit_begin(7, None)), Some(ErrorKind::InvalidState));
        assert!(checkpoint.commit_wait(-1)?);
        assert_eq!(kind(checkpoint.commit_wait(0)), Some(ErrorKind::InvalidState));
        assert!(!checkpoint.commit_delta(7, None)? && checkpoint.commit_delta(8, None)?);
        assert!(checkpoint.commit_delta_begin(9, None)? && checkpoint.commit_wait(-1)?);
        checkpoint.open(9)?;
        assert!(checkpoint.contents_json()?.contains("\"states\": false"));
        ddp.set_parameter(0, &[9f32, 9.0])?;
        checkpoint.open(5)?;
        checkpoint.load(None)?;
        let rules = r#"{"version": 1, "load": "listed", "parameters": [{"name": "own"}]}"#;
        ddp.set_parameter(0, &[9f32, 9.0])?;
        assert!(checkpoint.load_partial(rules, None)?.contains("left_out"));
        assert_eq!(kind(checkpoint.load_partial("{}", None)), Some(ErrorKind::InvalidArgument));
        assert_eq!((checkpoint.info()?.step, ddp.parameter::<f32>(0)?[0]), (5, 1.0));
        let opened = checkpoint.info()?;
        assert_eq!((opened.ranks, opened.collections, opened.layers), (2, 1, 1));
        assert_eq!((opened.parameters, opened.tensors), (1, 2));
        let info = checkpoint.tensor_info("position", 1)?;
        assert_eq!(info, TensorInfo { dtype: Dtype::Int64, shape: vec![1], bytes: 8 });
        assert_eq!(kind(checkpoint.tensor_info("mistake", 1)), Some(ErrorKind::NotFound));
        checkpoint.get_tensor("position", 1, ViewMut::vector(&mut position))?;
        assert_eq!(position, [1]);
        let (saved, boxes) = (checkpoint.model("tables")?, checkpoint.plan("tables")?);
        let layers = checkpoint.mlp("layers", None)?;
        assert_eq!((saved.info()?.tables, layers.info()?.parameters), (2, 2));
        assert!(boxes.box_count(0)? >= 1);
        checkpoint.verify(None)?;
        assert!(checkpoint.contents_json()?.contains("tables"));
        assert!(checkpoint_list_json(&folder.path("run"))?.contains('5'));
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn metrics_over_ranks() {
    run(2, |comm: &Comm| -> Result<()> {
        let mut metrics = Metrics::new(Some(comm), None)?;
        metrics.update(View::vector(&[0.9f32, 0.1]), View::vector(&[1f32, 0.0]))?;
        metrics.compute()?;
        assert_eq!(metrics.get(Metric::Auc)?, 1.0);
        assert!(counters_text()?.contains("shardrec"));
        metrics.reset()?;
        let mut own = Metrics::new(None, None)?; // of this rank alone
        let label = comm.rank()? as f32;
        own.update(View::vector(&[0.9f32, 0.1]), View::vector(&[label, 1.0 - label]))?;
        own.compute()?;
        assert_eq!(own.get(Metric::Auc)?, f64::from(label));
        comm.shutdown()
    })
    .unwrap();
}

#[test]
fn the_log_goes_to_the_hosts_sink() {
    assert_eq!(next_log_message(Duration::ZERO).unwrap(), None);
    let (sender, messages) = std::sync::mpsc::channel();
    let forwarder = LogForwarder::new(move |message| sender.send(message).unwrap());
    run(2, |comm: &Comm| -> Result<()> {
        comm.set(CommProperty::WarnSeconds, 0.05)?;
        if comm.rank()? == 1 {
            std::thread::sleep(Duration::from_millis(400));
        }
        comm.barrier()
    })
    .unwrap();
    let message = messages.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(message.level == LogLevel::Warning && message.text.contains("rank 1"), "{message:?}");
    drop(forwarder);
}

/// Two ranks that meet as processes do, each on a thread of its own.
#[test]
fn ranks_meet() {
    let alone = Comm::from_env(Some(&CommOptions::new().engine(Engine::Gloo)));
    assert_eq!(kind(alone), Some(ErrorKind::InvalidArgument)); // there is no such environment
    let rendezvous = Rendezvous::new(None).unwrap();
    let token = rendezvous.token().unwrap();
    let meet = |rank| -> Result<()> {
        let options = CommOptions::new().setup_seconds(60);
        let comm = Comm::new(Engine::Gloo, rank, 2, Some(&token), Some(&options))?;
        assert_eq!(comm.rank()?, rank);
        comm.barrier()?;
        comm.shutdown()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| meet(1));
        meet(0).unwrap();
        other.join().unwrap().unwrap();
    });
}
