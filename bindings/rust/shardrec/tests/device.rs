//! Memory of devices: on the CPU everywhere, and a step with tensors on a device where CUDA, or what stands in for it on the
//! CPU, is there (bindings/run sets SHARDREC_TEST_DEVICE).

use shardrec::*;

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|e| e.kind)
}

#[test]
fn memory_of_the_cpu() {
    let mut memory = Memory::new(DeviceType::Cpu, 0, 64).unwrap();
    let mut got = [9f32; 6];
    copy(ViewMut::matrix(&mut got, 2, 3), memory.tensor(16, Dtype::Float32, &[2, 3]).unwrap()).unwrap();
    assert_eq!(got, [0.0; 6]);
    let given = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    copy(memory.tensor_mut(16, Dtype::Float32, &[2, 3]).unwrap(), View::matrix(&given, 2, 3)).unwrap();
    let mut apart = [0f32; 8];
    let to = ViewMut::strided(&mut apart, &[2, 3], &[4, 1]).unwrap();
    copy(to, memory.tensor(16, Dtype::Float32, &[2, 3]).unwrap()).unwrap();
    assert_eq!(apart, [1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0]);
    assert!(memory.tensor(60, Dtype::Float32, &[]).is_ok());
    // SAFETY: on the CPU a stream means nothing.
    unsafe {
        copy_in_stream(
            ViewMut::vector(&mut got[..1]),
            memory.tensor(16, Dtype::Float32, &[1]).unwrap(),
            12345,
        )
        .unwrap();
    }
    assert_eq!(got[0], 1.0);
}

#[test]
fn misuse_is_refused() {
    let mut memory = Memory::new(DeviceType::Cpu, 0, 64).unwrap();
    let invalid = Some(ErrorKind::InvalidArgument);
    assert_eq!(kind(memory.tensor(0, Dtype::Float32, &[17])), invalid);
    assert_eq!(kind(memory.tensor(2, Dtype::Float32, &[1])), invalid);
    assert_eq!(kind(memory.tensor(0, Dtype::Float32, &[1; 9])), invalid);
    assert_eq!(kind(memory.tensor_mut(0, Dtype::Float32, &[usize::MAX])), invalid);
    assert_eq!(kind(Memory::new(DeviceType::Cpu, 0, -1)), invalid);
    let to = memory.tensor_mut(0, Dtype::Float32, &[4]).unwrap();
    assert_eq!(kind(copy(to, View::vector(&[1i32; 4]))), invalid);
    assert_eq!(kind(copy(ViewMut::vector(&mut [0f32; 3]), View::vector(&[0f32; 4]))), invalid);
}

/// Which of the three, the plug-in decides.
#[test]
fn no_device_is_probed() {
    let refused = kind(probe_json(Some("cuda:-1"), 0, false, None));
    let expected = [ErrorKind::InvalidArgument, ErrorKind::Unsupported, ErrorKind::DeviceError];
    assert!(refused.is_some_and(|kind| expected.contains(&kind)), "{refused:?}");
}

const ROWS: usize = 20;
const DIM: usize = 4;
const BAGS: usize = 3;
const IDS: [i64; 5] = [3, 7, 3, 19, 0];
const LENGTHS: [i64; BAGS] = [2, 0, 3];
const WEIGHTS: [f32; 5] = [1.0, 0.5, -2.0, 3.0, 0.25];
const GRADIENT: [f32; BAGS * DIM] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.1, 0.2, 0.3];

/// What a step leaves.
#[derive(Clone, Debug, PartialEq)]
struct Left {
    output: [f32; BAGS * DIM],
    of_weights: [f32; 5],
    rows: Vec<f32>,
}

/// Memory on the device with a copy of the values.
fn there<T: Element>(values: &[T]) -> Result<Memory> {
    let mut memory = Memory::new(DeviceType::Cuda, 0, std::mem::size_of_val(values) as i64)?;
    copy(memory.tensor_mut(0, T::DTYPE, &[values.len()])?, View::vector(values))?;
    Ok(memory)
}

fn step(lookup: &mut Lookup, left: &mut Left) -> Result<()> {
    let lengths = Some(View::vector(&LENGTHS));
    lookup.begin(&Batch {
        size: BAGS as i64,
        values: Some(View::vector(&IDS)),
        lengths,
        weights: Some(View::vector(&WEIGHTS)),
        ..Batch::default()
    })?;
    lookup.forward(0, ViewMut::matrix(&mut left.output, BAGS, DIM))?;
    lookup.set_gradient(0, View::matrix(&GRADIENT, BAGS, DIM))?;
    lookup.backward(Update::Apply)?;
    lookup.weight_gradient(ViewMut::vector(&mut left.of_weights))
}

fn step_on_device(lookup: &mut Lookup, left: &mut Left) -> Result<()> {
    let (ids, lengths, weights) = (there(&IDS)?, there(&LENGTHS)?, there(&WEIGHTS)?);
    let (gradient, mut output, mut of_weights) =
        (there(&GRADIENT)?, there(&left.output)?, there(&left.of_weights)?);
    let values = Some(ids.tensor(0, Dtype::Int64, &[IDS.len()])?);
    let bags = Some(lengths.tensor(0, Dtype::Int64, &[BAGS])?);
    lookup.begin(&Batch {
        size: BAGS as i64,
        values,
        lengths: bags,
        weights: Some(weights.tensor(0, Dtype::Float32, &[5])?),
        ..Batch::default()
    })?;
    drop((ids, lengths, weights)); // what was begun reads them before they go
    lookup.forward(0, output.tensor_mut(0, Dtype::Float32, &[BAGS, DIM])?)?;
    lookup.set_gradient(0, gradient.tensor(0, Dtype::Float32, &[BAGS, DIM])?)?;
    drop(gradient);
    lookup.backward(Update::Apply)?;
    lookup.weight_gradient(of_weights.tensor_mut(0, Dtype::Float32, &[5])?)?;
    copy(ViewMut::matrix(&mut left.output, BAGS, DIM), output.tensor(0, Dtype::Float32, &[BAGS, DIM])?)?;
    copy(ViewMut::vector(&mut left.of_weights), of_weights.tensor(0, Dtype::Float32, &[5])?)
}

fn train(on_device: bool) -> Left {
    let results = run(1, |comm: &Comm| -> Result<Left> {
        let mut model = Model::new()?;
        model.set_optimizer(
            ALL_TABLES,
            Some(&OptimizerOptions::new().optimizer(Optimizer::RowwiseAdagrad).learning_rate(0.5)),
        )?;
        let table = model.add_table("t", ROWS as i64, DIM as i64, None)?;
        model.add_feature(table, "f", Pooling::Sum)?;
        let plan = Plan::collective(comm, None, &model, None)?;
        let options = CollectionOptions::new().device(0);
        let mut tables = Collection::new(comm, None, &model, &plan, on_device.then_some(&options))?;
        let mut lookup = Lookup::new(&tables, Some(&LookupOptions::new().weight_gradient(true)))?;
        let mut left = Left { output: [0.0; BAGS * DIM], of_weights: [0.0; 5], rows: vec![0.0; ROWS * DIM] };
        for _ in 0..2 {
            if on_device {
                step_on_device(&mut lookup, &mut left)?;
            } else {
                step(&mut lookup, &mut left)?;
            }
        }
        let rows = ViewMut::matrix(&mut left.rows, ROWS, DIM);
        tables.read_range(0, TablePart::Weights, 0, ROWS as i64, Some(rows))?;
        Ok(left)
    });
    results.unwrap().remove(0)
}

#[test]
fn a_step_with_tensors_on_a_device() {
    match Memory::new(DeviceType::Cuda, 0, 64) {
        Err(e)
            if std::env::var_os("SHARDREC_TEST_DEVICE").is_none()
                && matches!(e.kind, ErrorKind::Unsupported | ErrorKind::DeviceError) =>
        {
            eprintln!("skipped: {e}");
            return;
        }
        memory => drop(memory.unwrap()),
    }
    assert_eq!(kind(Memory::new(DeviceType::Cuda, 99, 64)), Some(ErrorKind::InvalidArgument));
    let cpu = train(false);
    assert!(cpu.output[0] != 0.0 && cpu.of_weights[4] != 0.0);
    assert_eq!(cpu, train(true));
}

#[test]
fn a_stack_on_a_device() {
    if let Err(e) = Memory::new(DeviceType::Cuda, 0, 64) {
        assert!(std::env::var_os("SHARDREC_TEST_DEVICE").is_none(), "{e}");
        eprintln!("skipped: {e}");
        return;
    }
    const BATCH: usize = 5;
    const INPUTS: usize = 3;
    let train = |device: i64| {
        // SAFETY: the legacy default stream.
        let options =
            unsafe { MlpOptions::new().optimizer(Optimizer::Adam).seed(3).device(device).stream(0) };
        let mut mlp = Mlp::new(INPUTS as i64, Some(&options)).unwrap();
        mlp.add_linear(4, Activation::Relu).unwrap();
        mlp.add_cross(2).unwrap();
        mlp.add_linear(1, Activation::None).unwrap();
        mlp.set_parameter(1, &[0.5, -0.25, 0.125, 1.0]).unwrap();
        let x: Vec<f32> = (0..BATCH * INPUTS).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut y = [0f32; BATCH];
        for _ in 0..3 {
            let to = ViewMut::matrix(&mut y, BATCH, 1);
            let pass = mlp.forward(View::matrix(&x, BATCH, INPUTS), to).unwrap();
            pass.backward(View::matrix(&[1f32, -1.0, 0.5, 2.0, -0.25], BATCH, 1), None).unwrap();
            mlp.step().unwrap();
        }
        let mut all = y.to_vec();
        all.extend(mlp.parameter(0).unwrap().value);
        all.extend(mlp.parameter(0).unwrap().gradient);
        all.extend(mlp.state(0, 1).unwrap());
        all
    };
    let (cpu, device) = (train(-1), train(0));
    assert!(cpu.iter().zip(&device).all(|(a, b)| (a - b).abs() < 1e-4), "{cpu:?} {device:?}");
    let nowhere = MlpOptions::new().device(99);
    assert_eq!(kind(Mlp::new(3, Some(&nowhere))), Some(ErrorKind::InvalidArgument));
}

#[test]
fn losses_and_metrics_on_a_device() {
    if let Err(e) = Memory::new(DeviceType::Cuda, 0, 64) {
        assert!(std::env::var_os("SHARDREC_TEST_DEVICE").is_none(), "{e}");
        eprintln!("skipped: {e}");
        return;
    }
    let (x, labels) = ([0.5f32, -2.0, 3.0, 0.0, -1.0], [1f32, 0.0, 1.0, 0.0, 1.0]);
    let wrong = [1f32, 0.0, 2.0, 0.0, 1.0];
    let memory = |values: &[f32]| {
        let mut memory = Memory::new(DeviceType::Cuda, 0, 20).unwrap();
        copy(memory.tensor_mut(0, Dtype::Float32, &[5]).unwrap(), View::vector(values)).unwrap();
        memory
    };
    fn view(memory: &Memory) -> View<'_> {
        memory.tensor(0, Dtype::Float32, &[5]).unwrap()
    }
    fn view_mut(memory: &mut Memory) -> ViewMut<'_> {
        memory.tensor_mut(0, Dtype::Float32, &[5]).unwrap()
    }
    let read = |memory: &Memory| {
        let mut values = [0f32; 5];
        copy(ViewMut::vector(&mut values), view(memory)).unwrap();
        values
    };
    // One weight of 1: the logits are x.
    let options = MlpOptions::new().device(0);
    let mut stack = Mlp::new(1, Some(&options)).unwrap();
    stack.add_linear(1, Activation::None).unwrap();
    stack.set_parameter(0, &[1.0]).unwrap();
    stack.set_parameter(1, &[0.0]).unwrap();
    let (mut p, mut g) = ([0f32; 5], [0f32; 5]);
    let (scores, gradients) = (ViewMut::vector(&mut p), ViewMut::vector(&mut g));
    let loss = bce_with_logits(None, View::vector(&x), View::vector(&labels), Some(scores), Some(gradients))
        .unwrap();
    let mut cpu = Metrics::new(None, None).unwrap();
    cpu.update(View::vector(&p), View::vector(&labels)).unwrap();
    cpu.compute().unwrap();

    let (mut logits, mut predicted, mut gradient) = (memory(&[0.0; 5]), memory(&[0.0; 5]), memory(&[0.0; 5]));
    let to = logits.tensor_mut(0, Dtype::Float32, &[5, 1]).unwrap();
    let pass = stack.forward(View::matrix(&x, 5, 1), to).unwrap();
    let (z, y) = (view(&logits), View::vector(&labels));
    assert_eq!(pass.bce_with_logits(z, y, Some(view_mut(&mut predicted)), None).unwrap(), loss);
    pass.enqueue_bce_with_logits(z, y, None, Some(view_mut(&mut gradient))).unwrap();
    assert_eq!((read(&predicted), read(&gradient)), (p, g));
    pass.enqueue_bce_with_logits(z, View::vector(&wrong), None, None).unwrap();
    let told = pass.bce_with_logits(z, y, None, None).unwrap_err();
    assert_eq!((told.kind, told.position), (ErrorKind::InvalidArgument, Some(2)), "{told}");
    pass.backward(gradient.tensor(0, Dtype::Float32, &[5, 1]).unwrap(), None).unwrap();

    let mut metrics = Metrics::new(None, Some(&MetricsOptions::new().device(0))).unwrap();
    metrics.update(view(&predicted), y).unwrap();
    metrics.compute().unwrap();
    for metric in [Metric::Auc, Metric::Loss, Metric::Samples] {
        assert_eq!(metrics.get(metric).unwrap(), cpu.get(metric).unwrap());
    }
    metrics.update(view(&predicted), View::vector(&wrong)).unwrap();
    assert_eq!(metrics.compute().unwrap_err().position, Some(7));
    assert_eq!(kind(bce_with_logits(None, z, y, None, None)), Some(ErrorKind::Unsupported));
    let nowhere = MetricsOptions::new().device(99);
    assert_eq!(kind(Metrics::new(None, Some(&nowhere))), Some(ErrorKind::InvalidArgument));
}

/// Layers of two ranks there, in a set: gradients are exchanged on the device, and close to those of the CPU.
#[test]
fn a_set_with_a_stack_on_a_device() {
    if let Err(e) = Memory::new(DeviceType::Cuda, 0, 64) {
        assert!(std::env::var_os("SHARDREC_TEST_DEVICE").is_none(), "{e}");
        eprintln!("skipped: {e}");
        return;
    }
    const BATCH: usize = 3;
    let train = |device: i64| {
        let results = run(2, |comm: &Comm| -> Result<Vec<f32>> {
            let rank = comm.rank()? as f32;
            // Ranks begin apart: commit copies the values of rank 0.
            let options = MlpOptions::new().optimizer(Optimizer::Adam).seed(3 + rank as i64).device(device);
            let mut mlp = Mlp::new(2, Some(&options))?;
            mlp.add_linear(4, Activation::Relu)?;
            mlp.add_linear(1, Activation::None)?;
            let mut ddp = Ddp::new(comm, None)?;
            ddp.add_mlp("stack", &mlp)?;
            ddp.commit()?;
            let x = [1.0, rank, -0.5, 2.0, rank + 1.0, 0.25];
            let mut y = [0f32; BATCH];
            for _ in 0..2 {
                let step = ddp.begin(true)?;
                let pass = mlp.forward(View::matrix(&x, BATCH, 2), ViewMut::matrix(&mut y, BATCH, 1))?;
                pass.backward(View::matrix(&[rank + 0.5, -1.0, 0.25], BATCH, 1), None)?;
                step.wait()?;
                ddp.clip_gradients(Clip::L2, 1.0)?;
                mlp.step()?;
            }
            ddp.check_equal()?;
            let mut all = mlp.parameter(0)?.value;
            all.extend(mlp.parameter(2)?.gradient);
            Ok(all)
        });
        results.unwrap()
    };
    let (cpu, device) = (train(-1), train(0));
    assert_eq!(device[0], device[1]);
    assert!(cpu[0].iter().any(|value| *value != 0.0));
    assert!(cpu[0].iter().zip(&device[0]).all(|(a, b)| (a - b).abs() < 1e-4), "{cpu:?} {device:?}");
}
