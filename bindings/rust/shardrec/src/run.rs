//! Ranks as threads of this process.

use std::sync::OnceLock;

use crate::{Comm, Local, Result};

/// Runs body on n ranks of one node, each a thread with a communicator of its own. The first failure aborts
/// the other ranks and is returned; a panic of a rank aborts them too and goes on in the caller.
pub fn run<E, F>(n: i32, body: F) -> std::result::Result<(), E>
where
    E: From<crate::Error> + Send + Sync + std::fmt::Display,
    F: Fn(&Comm) -> std::result::Result<(), E> + Sync,
{
    let comms = {
        let group = Local::new(n, n)?;
        (0..n).map(|rank| Comm::join(&group, rank)).collect::<Result<Vec<_>>>()?
    };
    let first = OnceLock::new();
    std::thread::scope(|scope| {
        for comm in &comms {
            scope.spawn(|| {
                let abort = AbortOnPanic(&comms);
                let result = body(comm);
                std::mem::forget(abort);
                if let Err(failure) = result {
                    let reason = format!("another rank failed: {failure}");
                    if first.set(failure).is_ok() {
                        abort_all(&comms, &reason);
                    }
                }
            });
        }
    });
    first.into_inner().map_or(Ok(()), Err)
}

struct AbortOnPanic<'a>(&'a [Comm]);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        abort_all(self.0, "another rank panicked");
    }
}

/// A rank that has ended needs no abort.
fn abort_all(comms: &[Comm], reason: &str) {
    for comm in comms {
        let _ = comm.abort(&reason.replace('\0', " "));
    }
}
