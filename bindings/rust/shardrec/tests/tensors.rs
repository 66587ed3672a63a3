//! Views of every dtype, shape and stride, and what is refused of them; numbers of 16 bits; aligned memory.

use shardrec::*;

fn refused<T>(made: Result<T>, part: &str) {
    let error = made.err().unwrap_or_else(|| panic!("accepted, where {part:?} was to be refused"));
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert!(error.sentence.contains(part), "{error}");
}

fn alone(body: impl Fn(&Comm) -> Result<()> + Sync) {
    run(1, body).unwrap();
}

#[test]
fn every_dtype_in_every_number_of_dimensions() {
    fn goes_round<T: Element + PartialEq + std::fmt::Debug>(comm: &Comm, values: &[T; 2]) -> Result<()> {
        let shape = [2, 1, 1, 1, 1, 1, 1, 1];
        for dimensions in 1..=8 {
            let (mut out, mut again) = ([T::default(); 2], [T::default(); 2]);
            let mut to = ViewMut::shaped(&mut out, &shape[..dimensions])?;
            comm.all_gather(View::shaped(values, &shape[..dimensions])?, to.reborrow())?;
            comm.broadcast(to.reborrow(), 0)?;
            comm.all_gather(to.as_view(), ViewMut::vector(&mut again))?;
            assert_eq!((&out, &again), (values, values));
        }
        Ok(())
    }
    alone(|comm| {
        goes_round(comm, &[1u8, 255])?;
        goes_round(comm, &[i32::MIN, 7])?;
        goes_round(comm, &[i64::MIN, 7])?;
        goes_round(comm, &[F16::from_f32(1.5), F16(0xfbff)])?;
        goes_round(comm, &[Bf16::from_f32(1.5), Bf16(0xff7f)])?;
        goes_round(comm, &[1.5f32, f32::MIN])?;
        goes_round(comm, &[1.5f64, f64::MIN])
    });
}

#[test]
fn checkpoints_keep_dtype_and_shape() {
    let folder = std::env::temp_dir().join(format!("shardrec-tensors-{}", std::process::id()));
    alone(|comm| {
        let mut checkpoint = Checkpoint::new(comm, folder.to_str().unwrap(), None)?;
        let values: Vec<F16> = (0..24).map(|i| F16::from_f32(i as f32 / 8.0)).collect();
        let shape = [2, 1, 3, 1, 2, 1, 2, 1];
        checkpoint.set_tensor("state", Some(View::shaped(&values, &shape)?))?;
        checkpoint.commit(1, None)?;
        checkpoint.open(1)?;
        let found = checkpoint.tensor_info("state", 0)?;
        assert_eq!((found.dtype, found.shape), (Dtype::Float16, shape.map(|size| size as i64).to_vec()));
        let mut back = AlignedVec::<F16>::zeroed(24);
        checkpoint.get_tensor("state", 0, ViewMut::shaped(&mut back, &shape)?)?;
        assert_eq!(values[..], back[..]);
        Ok(())
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// One table of 2 rows and 3 columns of numbers that 16 bits do not hold, and a batch that asks for both.
fn outputs_of<T: Element>(comm: &Comm, dtype: Dtype, out: &mut [T], stride: usize) -> Result<()> {
    let mut model = Model::new()?;
    let table = model.add_table("a", 2, 3, None)?;
    model.add_feature(table, "x", Pooling::Sum)?;
    let plan = Plan::collective(comm, None, &model, None)?;
    let options = CollectionOptions::new().output_dtype(dtype);
    let mut tables = Collection::new(comm, None, &model, &plan, Some(&options))?;
    let rows = [0.1f32, 1000.3, -1e-6, f32::MIN, 3.3, 65519.0];
    tables.write_range(0, TablePart::Weights, 0, 2, Some(View::matrix(&rows, 2, 3)))?;
    let mut lookup = Lookup::new(&tables, None)?;
    lookup.begin(&Batch::new(2, View::vector(&[1i64, 0]), View::vector(&[1i32, 1])))?;
    lookup.forward(0, ViewMut::strided(out, &[2, 3], &[stride, 1])?)
}

#[test]
fn outputs_of_16_bits_and_rows_apart() {
    alone(|comm| {
        let (mut exact, mut half, mut brain) = ([7f32; 8], [F16(7); 8], [Bf16(7); 8]);
        outputs_of(comm, Dtype::Float32, &mut exact, 5)?;
        assert_eq!(exact, [f32::MIN, 3.3, 65519.0, 7.0, 7.0, 0.1, 1000.3, -1e-6]);
        outputs_of(comm, Dtype::Float16, &mut half, 5)?;
        outputs_of(comm, Dtype::Bfloat16, &mut brain, 5)?;
        for i in [0, 1, 2, 5, 6, 7] {
            assert_eq!((half[i], brain[i]), (F16::from_f32(exact[i]), Bf16::from_f32(exact[i])));
        }
        assert_eq!((half[3], half[4], brain[3], brain[4]), (F16(7), F16(7), Bf16(7), Bf16(7)));
        Ok(())
    });
    // Another dtype than the collection's is the library's to refuse. A lookup that is dropped after begin ends comm.
    alone(|comm| {
        refused(outputs_of(comm, Dtype::Float16, &mut [0f32; 8], 5), "dtype");
        Ok(())
    });
    alone(|comm| {
        refused(outputs_of(comm, Dtype::Float32, &mut [0f32; 4], 1), "share a place");
        Ok(())
    });
}

#[test]
fn views_stay_within_their_slice() {
    let values = [0f32; 12];
    for shape in [&[12][..], &[3, 4], &[2, 2, 3], &[0, 100], &[1, 1, 1, 1, 1, 1, 1, 12], &[]] {
        View::shaped(&values, shape).unwrap();
    }
    refused(View::shaped(&values, &[13]), "more elements");
    refused(View::shaped(&values, &[3, 5]), "more elements");
    refused(View::shaped(&[0f32; 0], &[]), "more elements");
    refused(View::shaped(&values, &[usize::MAX, usize::MAX]), "a dimension of");
    refused(View::shaped(&values, &[1 << 40, 1 << 40]), "more elements");
    refused(View::shaped(&values, &[0, usize::MAX]), "a dimension of");
    refused(View::shaped(&values, &[1; 9]), "9 dimensions");

    for (shape, strides) in
        [(&[3, 2][..], &[5, 1][..]), (&[12], &[1]), (&[2, 6], &[0, 2]), (&[0, 9], &[99, 99]), (&[1], &[0])]
    {
        View::strided(&values, shape, strides).unwrap();
    }
    refused(View::strided(&values, &[3, 3], &[5, 1]), "lead beyond");
    refused(View::strided(&values, &[2, 2], &[usize::MAX, 1]), "lead beyond");
    refused(View::strided(&values, &[3, 3], &[usize::MAX / 2, 1]), "lead beyond");
    refused(View::strided(&values, &[3, 3], &[5]), "1 strides for the 2 dimensions");
    refused(View::strided(&values, &[1; 9], &[1; 9]), "9 dimensions");
    // To the library strides of 0 are those of a compact tensor, which would have 24 elements here.
    refused(View::strided(&values, &[4, 6], &[0, 0]), "are all 0");
}

#[test]
fn no_element_is_written_twice() {
    let mut values = [0f32; 24];
    for (shape, strides) in [
        (&[2, 3][..], &[3, 1][..]),
        (&[3, 2], &[1, 3]), // transposed
        (&[2, 3, 2], &[12, 4, 2]),
        (&[1, 1], &[0, 0]),
        (&[0, 5], &[0, 0]),
        (&[5, 1], &[1, 0]),
    ] {
        ViewMut::strided(&mut values, shape, strides).unwrap();
    }
    for (shape, strides) in
        [(&[2, 3][..], &[2, 1][..]), (&[2, 2], &[0, 1]), (&[4], &[0]), (&[2, 2, 2], &[3, 1, 2])]
    {
        refused(ViewMut::strided(&mut values, shape, strides), "share a place");
    }
    refused(ViewMut::strided(&mut values, &[25], &[1]), "lead beyond");
    refused(ViewMut::shaped(&mut values, &[5, 5]), "more elements");
    let beyond = std::panic::catch_unwind(|| {
        ViewMut::matrix(&mut [0f32; 3], 2, 2);
    });
    assert!(beyond.is_err());
}

#[test]
fn halves_are_rounded_to_nearest_even() {
    for bits in 0..=u16::MAX {
        let (half, brain) = (F16(bits), Bf16(bits));
        if half.to_f32().is_nan() {
            assert!(F16::from_f32(half.to_f32()).to_f32().is_nan());
        } else {
            assert_eq!(F16::from_f32(half.to_f32()), half);
        }
        if brain.to_f32().is_nan() {
            assert!(Bf16::from_f32(brain.to_f32()).to_f32().is_nan());
        } else {
            assert_eq!(Bf16::from_f32(brain.to_f32()), brain);
        }
    }
    // Half-way between two neighbours, which f32 holds exactly, and the next numbers on either side of it.
    for bits in 0..0x7bff {
        let (low, high) = (F16(bits).to_f32(), F16(bits + 1).to_f32());
        let middle = low + (high - low) / 2.0;
        let even = F16(bits + (bits & 1));
        for sign in [1.0, -1.0] {
            let rounded = |x: f32| F16(F16::from_f32(sign * x).0 & 0x7fff);
            assert_eq!(rounded(middle), even, "{middle:e}");
            assert_eq!(rounded(f32::from_bits(middle.to_bits() - 1)), F16(bits));
            assert_eq!(rounded(f32::from_bits(middle.to_bits() + 1)), F16(bits + 1));
        }
    }
    for bits in (0..0x7f7f).step_by(7) {
        let middle = f32::from_bits(u32::from(bits) << 16 | 0x8000);
        assert_eq!(Bf16::from_f32(middle), Bf16(bits + (bits & 1)));
        assert_eq!(Bf16::from_f32(-f32::from_bits(middle.to_bits() + 1)), Bf16((bits + 1) | 0x8000));
    }
    assert_eq!((F16::from_f32(65519.9).to_f32(), F16::from_f32(65520.0).0), (65504.0, 0x7c00));
    assert_eq!(
        (F16(0x3555).to_f32(), F16(0x0001).to_f32(), F16(0x8000).0),
        (0.333_251_95, 2f32.powi(-24), 1 << 15)
    );
    assert_eq!((Bf16(0x3eab).to_f32(), Bf16::from_f32(f32::MAX).0), (0.333_984_38, 0x7f80));
    assert_eq!((f32::from(F16(0xc000)), format!("{:?}", Bf16(0x3fc0))), (-2.0, "1.5".to_string()));
}

#[test]
fn aligned_memory_keeps_its_values() {
    let mut values = AlignedVec::from_slice(&[1i64, 2, 3]);
    assert_eq!((values.len(), values.as_ptr() as usize % 64), (3, 0));
    values.resize(1000);
    assert_eq!((&values[..3], values[3..].iter().sum::<i64>()), (&[1, 2, 3][..], 0));
    values.fill(9);
    let place = values.as_ptr();
    values.resize(2);
    values.resize(1000);
    assert_eq!((&values[..3], place), (&[9, 9, 0][..], values.as_ptr())); // what comes back is zero
    let copy = values.clone();
    values[0] = 1;
    assert_eq!((copy[0], copy.as_ptr() as usize % 64), (9, 0));
    assert!(AlignedVec::<u8>::zeroed(0).is_empty() && AlignedVec::<F16>::zeroed(33).len() == 33);
    assert_eq!(format!("{:?}", AlignedVec::from_slice(&[1u8, 2])), "[1, 2]");
}
