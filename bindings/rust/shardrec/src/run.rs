//! Ranks as threads of this process.
#![forbid(unsafe_code)]

use std::any::Any;
use std::fmt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Mutex;

use crate::enums::ErrorKind;
use crate::error::{refusal, Error};
use crate::handles::{Comm, Local};

/// How a [`run`] failed.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunError<E> {
    /// The rank that failed first; None: no rank has begun.
    pub rank: Option<i32>,
    /// How it failed.
    pub failure: E,
    /// What else failed of its own, in the order of time, with its rank. What other ranks say of the first one's end
    /// (the kinds Aborted, PeerFailed and Closed) is left out.
    pub others: Vec<(i32, E)>,
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}: ")?;
        }
        write!(f, "{}", self.failure)?;
        self.others.iter().try_for_each(|(rank, failure)| write!(f, "; rank {rank}: {failure}"))
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for RunError<E> {}

/// Runs body on n ranks of one node, each a thread with a communicator of its own, and returns what they return, by
/// rank. A rank that returns closes its communicator, and waits for the others to do so. The first that fails
/// aborts the others, and none of them is left running. A panic of a rank aborts them too and goes on in the caller.
///
/// ```
/// use shardrec::{run, Comm, Reduction, Result, ViewMut};
///
/// let sums = run(3, |comm: &Comm| -> Result<i64> {
///     let mut sum = [i64::from(comm.rank()?)];
///     comm.all_reduce(ViewMut::vector(&mut sum), Reduction::Sum)?;
///     Ok(sum[0])
/// });
/// assert_eq!(sums.unwrap(), [3, 3, 3]);
/// ```
pub fn run<T, E, F>(n: i32, body: F) -> Result<Vec<T>, RunError<E>>
where
    T: Send,
    E: From<Error> + Send + fmt::Display + 'static,
    F: Fn(&Comm) -> Result<T, E> + Sync,
{
    let comms =
        join(n).map_err(|failure| RunError { rank: None, failure: failure.into(), others: Vec::new() })?;
    let ranks = Ranks { comms: &comms, ended: Mutex::new(Ended::default()) };
    let results = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (rank, comm) in (0..n).zip(&comms) {
            let (ranks, body) = (&ranks, &body);
            let thread = std::thread::Builder::new().name(format!("shardrec-rank-{rank}"));
            match thread.spawn_scoped(scope, move || ranks.run(rank, comm, body)) {
                Ok(thread) => threads.push(thread),
                Err(none) => ranks.fail(
                    rank,
                    refusal(ErrorKind::OutOfMemory, format!("no thread for rank {rank}: {none}")).into(),
                ),
            }
        }
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    });
    let ended = ranks.ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(payload) = ended.panic {
        resume_unwind(payload);
    }
    let mut failures = ended.own.into_iter();
    match failures.next().or(ended.echo) {
        Some((rank, failure)) => Err(RunError { rank: Some(rank), failure, others: failures.collect() }),
        None => Ok(results),
    }
}

/// What [`run`] does for each rank, for one that this thread is, such as a process of a group ([`Comm::from_env`]): closes
/// the communicator behind body; a failure or a panic of body aborts it on all ranks, and goes on in the caller.
pub fn run_rank<T, E>(comm: &Comm, body: impl FnOnce(&Comm) -> Result<T, E>) -> Result<T, E>
where
    E: From<Error> + fmt::Display,
{
    let ended = catch_unwind(AssertUnwindSafe(|| closed_behind(comm, body)));
    let reason = match &ended {
        Ok(Ok(_)) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some("it panicked".to_string()),
    };
    if let Some(reason) = reason {
        let _ = comm.abort(Some(&reason.replace('\0', " "))); // one that has ended needs no abort
    }
    ended.unwrap_or_else(|payload| resume_unwind(payload))
}

fn closed_behind<T, E: From<Error>>(comm: &Comm, body: impl FnOnce(&Comm) -> Result<T, E>) -> Result<T, E> {
    let result = body(comm)?;
    // One that body has closed, or whose failure it has dealt with, needs no end.
    if comm.check().is_ok() {
        comm.shutdown()?;
    }
    Ok(result)
}

fn join(n: i32) -> Result<Vec<Comm>, Error> {
    let group = Local::new(n, n)?;
    (0..n).map(|rank| Comm::join(&group, rank)).collect()
}

struct Ranks<'a, E> {
    comms: &'a [Comm],
    ended: Mutex<Ended<E>>,
}

/// What has ended otherwise than by returning.
struct Ended<E> {
    panic: Option<Box<dyn Any + Send>>, // the first one's
    own: Vec<(i32, E)>,
    echo: Option<(i32, E)>, // the first that another rank's end has brought about
}

impl<E> Default for Ended<E> {
    fn default() -> Ended<E> {
        Ended { panic: None, own: Vec::new(), echo: None }
    }
}

impl<E: From<Error> + fmt::Display + 'static> Ranks<'_, E> {
    fn run<T>(&self, rank: i32, comm: &Comm, body: impl Fn(&Comm) -> Result<T, E>) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| closed_behind(comm, body))) {
            Ok(Ok(result)) => return Some(result),
            Ok(Err(failure)) => self.fail(rank, failure),
            Err(payload) => {
                self.lock().panic.get_or_insert(payload);
                self.abort(rank, &format!("rank {rank} panicked"));
            }
        }
        None
    }

    fn fail(&self, rank: i32, failure: E) {
        let reason = format!("another rank failed: {failure}");
        if is_echo(&failure) {
            self.lock().echo.get_or_insert((rank, failure));
        } else {
            self.lock().own.push((rank, failure));
        }
        self.abort(rank, &reason);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ended<E>> {
        self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Of rank first, which the others then name, and of those for which it had closed its communicator before.
    fn abort(&self, rank: i32, reason: &str) {
        let reason = reason.replace('\0', " ");
        for comm in self.comms[rank as usize..].iter().chain(self.comms) {
            let _ = comm.abort(Some(&reason)); // a rank that has ended needs no abort
        }
    }
}

/// Whether a failure is what a rank sees of another one's: where it is an [`Error`] or has one in it.
fn is_echo<E: 'static>(failure: &E) -> bool {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    let failure = failure as &dyn Any;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = match failure.downcast_ref::<Boxed>() {
        Some(boxed) => Some(&**boxed),
        None => failure.downcast_ref::<Error>().map(|error| error as _),
    };
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<Error>() {
            return matches!(error.kind, ErrorKind::Aborted | ErrorKind::PeerFailed | ErrorKind::Closed);
        }
        cause = error.source();
    }
    false
}
