//! What many threads and many handles leave: the right errors, and nothing. The only test of its process, as it
//! counts the process's objects and memory.

use shardrec::*;

const THREADS: i64 = 16;

#[test]
fn errors_and_handles_in_great_number() {
    every_thread_gets_its_own_errors();
    cycles_leave_nothing();
    handles_end_in_any_order_on_any_thread();
    assert_eq!(live_objects().unwrap(), 0);
}

fn every_thread_gets_its_own_errors() {
    std::thread::scope(|scope| {
        for own in 1..=THREADS {
            scope.spawn(move || {
                let name = format!("table of thread {own}");
                for _ in 0..500 {
                    let mut model = Model::new().unwrap();
                    let refused = model.add_table(&name, -own, 4, None).unwrap_err();
                    assert_eq!((refused.kind, refused.value), (ErrorKind::InvalidArgument, Some(-own)));
                    assert!(refused.sentence.contains(&(-own).to_string()), "{refused}");
                    model.add_table(&name, own, 4, None).unwrap();
                    let twice = model.add_table(&name, own, 4, None).unwrap_err();
                    assert!(twice.sentence.contains(&name), "{twice}");
                    let cut = Topology::from_json(&"[".repeat(own as usize)).err().unwrap();
                    assert!(cut.sentence.ends_with(&format!("at byte {}", own + 1)), "{cut}");
                }
            });
        }
    });
}

/// 10,000 times a model, a group, its communicator and calls that fail.
fn cycles_leave_nothing() {
    let mut after_1000 = 0;
    for cycle in 1..=10_000 {
        let mut model = Model::new().unwrap();
        assert!(model.add_table("a", -1, 4, None).is_err());
        let group = Local::new(1, 1).unwrap();
        let comm = Comm::join(&group, 0).unwrap();
        assert!(Comm::join(&group, 0).is_err() && Comm::join(&group, 1).is_err());
        drop(group);
        comm.barrier().unwrap();
        let (mut mlp, mut ddp) = (Mlp::new(4, None).unwrap(), Ddp::new(&comm, None).unwrap());
        mlp.add_linear(2, Activation::None).unwrap();
        assert!(mlp.parameter(9).is_err());
        ddp.add_parameter("a", &[8, 8], vec![0f32; 64]).unwrap();
        assert!(ddp.add_parameter("a", &[8, 8], vec![0f32; 64]).is_err());
        if cycle == 1000 {
            after_1000 = bytes_in_use();
        }
    }
    let grown = bytes_in_use() - after_1000;
    assert_eq!(live_objects().unwrap(), 0);
    // A byte that each cycle leaves is a block of 32: 288,000. What ended threads had put aside comes and goes.
    assert!(grown <= 128 << 10, "of {after_1000} bytes in use what is in use has grown by {grown}");
}

/// What the process has from malloc: its own count, which no other program moves, unlike that of resident memory.
fn bytes_in_use() -> i64 {
    /// glibc's `struct mallinfo2`.
    #[allow(dead_code)] // others of its fields
    #[repr(C)]
    struct MallocInfo {
        others: [usize; 4],
        mapped: usize,
        more: [usize; 2],
        in_use: usize,
        last: [usize; 2],
    }
    extern "C" {
        fn mallinfo2() -> MallocInfo;
    }
    // SAFETY: it may be called at any time, and takes nothing.
    let info = unsafe { mallinfo2() };
    (info.mapped + info.in_use) as i64
}

fn handles_end_in_any_order_on_any_thread() {
    for turn in 0..24 {
        let group = Local::new(1, 1).unwrap();
        let comm = Comm::join(&group, 0).unwrap();
        let mut model = Model::new().unwrap();
        let table = model.add_table("a", 3, 4, None).unwrap();
        model.add_feature(table, "x", Pooling::Sum).unwrap();
        let plan = Plan::collective(&comm, None, &model, None).unwrap();
        let tables = Collection::new(&comm, None, &model, &plan, None).unwrap();
        let lookup = Lookup::new(&tables, None).unwrap();
        let mut handles: Vec<Box<dyn Send>> = vec![
            Box::new(group),
            Box::new(comm),
            Box::new(model),
            Box::new(plan),
            Box::new(tables),
            Box::new(lookup),
        ];
        let mut ends = Vec::new();
        while !handles.is_empty() {
            let next = handles.swap_remove(turn % handles.len());
            ends.push(std::thread::spawn(move || drop(next)));
        }
        ends.into_iter().for_each(|end| end.join().unwrap());
        assert_eq!(live_objects().unwrap(), 0);
    }
}
