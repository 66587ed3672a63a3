//! How ranks end: by themselves, by a failure, a panic, an abort or the end of the process. Step deadlines are 600 s.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{mpsc, Mutex};
use std::time::{Duration, Instant};

use shardrec::*;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

const PATIENCE: Duration = Duration::from_secs(2);

/// Runs it and fails where it takes longer than ranks that are ended may.
fn soon<T>(body: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = body();
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    result
}

fn deadline_is_far(comm: &Comm) {
    assert_eq!(comm.get(CommProperty::StepSeconds).unwrap(), 600.0);
}

#[test]
fn results_come_by_rank() {
    let ranks = run(3, |comm: &Comm| -> Result<i32> {
        std::thread::sleep(Duration::from_millis(20 * (3 - comm.rank()?) as u64));
        comm.rank()
    });
    assert_eq!(ranks.unwrap(), [0, 1, 2]);
}

#[test]
fn no_rank_begins_where_there_is_no_group() {
    let began = AtomicBool::new(false);
    let refused = run(0, |_: &Comm| -> Result<()> {
        began.store(true, Ordering::Relaxed);
        Ok(())
    })
    .unwrap_err();
    assert_eq!((refused.rank, refused.failure.kind), (None, ErrorKind::InvalidArgument));
    assert!(refused.others.is_empty() && !began.into_inner());
    assert_eq!(refused.to_string(), refused.failure.to_string());
}

#[test]
fn the_first_failure_ends_the_others_and_theirs_are_attached() {
    let failing = AtomicBool::new(false);
    let failed = soon(|| {
        run(4, |comm: &Comm| -> std::result::Result<(), AnyError> {
            deadline_is_far(comm);
            match comm.rank()? {
                1 => {
                    std::thread::sleep(Duration::from_millis(100)); // until rank 0 waits
                    failing.store(true, Ordering::Relaxed);
                    Err("of its own \0".into()) // NUL is no part of a text of C
                }
                2 => {
                    assert!(comm.barrier().is_err() && failing.load(Ordering::Relaxed));
                    Model::new()?.add_table("a", -3, 4, None)?;
                    Ok(())
                }
                3 => {
                    assert!(comm.barrier().is_err());
                    Ok(()) // it has dealt with the end of the others
                }
                _ => Ok(comm.barrier()?),
            }
        })
    })
    .unwrap_err();
    assert_eq!((failed.rank, failed.failure.to_string()), (Some(1), "of its own \0".to_string()));
    let [(rank, other)] = &failed.others[..] else { panic!("{failed}") };
    assert_eq!((*rank, other.downcast_ref::<Error>().unwrap().value), (2, Some(-3)));
    assert!(failed.to_string().starts_with("rank 1: of its own \0; rank 2: SHARDREC_INVALID_ARGUMENT: "));
}

#[test]
fn what_another_rank_says_of_a_failure_is_not_the_failure() {
    let failed = soon(|| {
        run(2, |comm: &Comm| -> std::result::Result<(), AnyError> {
            if comm.rank()? == 0 {
                return Ok(comm.barrier()?); // ended by rank 1, which says why only later
            }
            comm.abort(Some("a part has failed"))?;
            std::thread::sleep(Duration::from_millis(100));
            Err("the cause".into())
        })
    })
    .unwrap_err();
    assert_eq!(failed.to_string(), "rank 1: the cause");
}

#[test]
fn a_rank_that_returns_closes_its_communicator() {
    // Rank 0 does not come to the barrier: that is said at once, where it was left to the deadline.
    let failed = soon(|| {
        run(2, |comm: &Comm| -> Result<()> {
            deadline_is_far(comm);
            if comm.rank()? == 1 {
                comm.barrier()?;
            }
            Ok(())
        })
    })
    .unwrap_err();
    assert!(matches!(failed.failure.kind, ErrorKind::Mismatch | ErrorKind::PeerFailed), "{failed}");
}

#[test]
fn ranks_that_disagree_go_on() {
    soon(|| {
        run(2, |comm: &Comm| -> Result<()> {
            let mut model = Model::new()?;
            model.add_table("t", 10 + i64::from(comm.rank()?), 4, None)?;
            let error = Plan::collective(comm, None, &model, None).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Disagreement), "{error}");
            comm.barrier()
        })
    })
    .unwrap();
}

#[test]
fn a_panic_ends_the_others_and_goes_on_in_the_caller() {
    let ended = AtomicI32::new(0);
    let payload = soon(|| {
        std::panic::catch_unwind(|| {
            run(3, |comm: &Comm| -> Result<()> {
                deadline_is_far(comm);
                if comm.rank()? == 2 {
                    std::panic::panic_any("rank 2's own words");
                }
                let refused = comm.barrier().unwrap_err();
                assert_eq!((refused.kind, refused.rank), (ErrorKind::Aborted, Some(2)), "{refused}");
                ended.fetch_add(1, Ordering::Relaxed);
                Err(refused)
            })
        })
    })
    .unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"rank 2's own words"));
    assert_eq!(ended.into_inner(), 2, "a rank outlived the call");
}

#[test]
fn one_rank_aborts_all() {
    let failed = soon(|| {
        run(3, |comm: &Comm| -> Result<()> {
            deadline_is_far(comm);
            if comm.rank()? == 1 {
                std::thread::sleep(Duration::from_millis(100));
                comm.abort(Some("enough"))?;
            }
            comm.barrier()
        })
    })
    .unwrap_err();
    assert_eq!((failed.failure.kind, failed.failure.rank), (ErrorKind::Aborted, Some(1)));
    assert!(failed.failure.sentence.contains("enough") && failed.others.is_empty(), "{failed}");
}

#[test]
fn an_aborter_ends_a_run_from_elsewhere() {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(Some(sender));
    let canceller = std::thread::spawn(move || -> Aborter {
        let aborter: Aborter = receiver.recv().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        aborter.abort(Some("the user has had enough")).unwrap();
        aborter
    });
    let failed = soon(|| {
        run(2, |comm: &Comm| -> Result<()> {
            if comm.rank()? == 0 {
                sender.lock().unwrap().take().unwrap().send(comm.aborter()).unwrap();
                std::thread::sleep(Duration::from_millis(200));
            }
            comm.barrier()
        })
    })
    .unwrap_err();
    assert!(failed.failure.sentence.contains("the user has had enough"), "{failed}");
    let late = canceller.join().unwrap().abort(None).unwrap_err(); // the communicator is gone
    assert_eq!(late.kind, ErrorKind::Closed);
}

/// Two ranks that are no [`run`]'s: rank 1 as it likes, rank 0 in a barrier, whose result is returned with rank 1's.
fn pair<T: Send>(rank_1: impl FnOnce(&Comm) -> T + Send) -> (Result<()>, std::thread::Result<T>) {
    let group = Local::new(2, 2).unwrap();
    let [waits, ends] = [0, 1].map(|rank| Comm::join(&group, rank).unwrap());
    soon(|| {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| run_rank(&waits, |comm| comm.barrier()));
            let ending = scope.spawn(|| rank_1(&ends));
            let ended = ending.join();
            (waiting.join().unwrap(), ended)
        })
    })
}

#[test]
fn a_rank_of_its_own_is_closed_or_aborts() {
    let (waited, ended) = pair(|comm| run_rank(comm, |comm| comm.barrier().map(|()| 7)));
    assert_eq!((waited, ended.unwrap()), (Ok(()), Ok(7)));

    let (waited, ended) = pair(|comm| run_rank(comm, |_| Err::<(), AnyError>("of its own".into())));
    let waited = waited.unwrap_err();
    assert_eq!(ended.unwrap().unwrap_err().to_string(), "of its own");
    assert_eq!((waited.kind, waited.rank), (ErrorKind::Aborted, Some(1)));
    assert!(waited.sentence.contains("of its own"), "{waited}");

    let (waited, ended) = pair(|comm| run_rank(comm, |_| -> Result<()> { std::panic::panic_any(3) }));
    assert_eq!(ended.unwrap_err().downcast_ref::<i32>(), Some(&3));
    assert!(waited.unwrap_err().sentence.contains("panicked"));
}

/// As between processes; meeting and parting take longer than the end of a rank.
#[test]
fn a_failure_ends_the_others_over_gloo() {
    let rendezvous = Rendezvous::new(None).unwrap();
    let token = rendezvous.token().unwrap();
    let failed_at = Mutex::new(None);
    let meet = &|rank: i32| -> std::result::Result<Duration, AnyError> {
        let comm = Comm::new(Engine::Gloo, rank, 3, Some(&token), None)?;
        let failed = run_rank(&comm, |comm| -> std::result::Result<(), AnyError> {
            deadline_is_far(comm);
            comm.barrier()?;
            if rank == 2 {
                std::thread::sleep(Duration::from_millis(100));
                *failed_at.lock().unwrap() = Some(Instant::now());
                return Err("of its own".into());
            }
            Ok(comm.barrier()?)
        });
        assert!(failed.unwrap_err().to_string().contains("of its own"));
        let since: Option<Instant> = *failed_at.lock().unwrap();
        Ok(since.unwrap().elapsed())
    };
    std::thread::scope(|scope| {
        let ranks = [0, 1, 2].map(|rank| scope.spawn(move || meet(rank).unwrap()));
        for rank in ranks {
            let took = rank.join().unwrap();
            assert!(took < PATIENCE, "{took:?}");
        }
    });
}

#[test]
fn a_long_call_is_cancelled_from_another_thread() {
    let control = Control::new().unwrap();
    let cancelled = std::thread::scope(|scope| {
        let probing = scope.spawn(|| probe_json(None, 1, false, Some(&control)));
        while !probing.is_finished() && control.progress().unwrap().done == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let progress = control.progress().unwrap();
        assert!(progress.done < progress.total, "{progress:?}");
        let start = Instant::now();
        control.cancel().unwrap();
        (probing.join().unwrap().unwrap_err(), start.elapsed())
    });
    assert_eq!(cancelled.0.kind, ErrorKind::Cancelled);
    assert!(cancelled.1 < PATIENCE, "{:?}", cancelled.1);
}

/// What this program is when the test below starts it.
#[test]
fn exits_while_a_rank_waits() {
    if std::env::var_os("SHARDREC_TEST_EXITS").is_none() {
        return;
    }
    let _ = run(2, |comm: &Comm| -> Result<()> {
        if comm.rank()? == 1 {
            std::thread::sleep(Duration::from_millis(200)); // until rank 0 waits
            std::process::exit(7);
        }
        comm.barrier()
    });
    unreachable!("rank 1 ends the process");
}

#[test]
fn a_process_may_exit_while_a_rank_waits() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "exits_while_a_rank_waits", "--nocapture"]).env("SHARDREC_TEST_EXITS", "1");
    let output = soon(|| child.output().unwrap());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.trim()), (Some(7), ""), "{output:?}");
}
