//! The library's log, passed on to a sink of the host.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{next_log_message, LogMessage};

/// Passes the messages of the library's log on, on a thread of its own, until it is dropped.
#[must_use = "dropped, it ends"]
#[derive(Debug)]
pub struct LogForwarder {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LogForwarder {
    /// sink: such as one that calls the macros of the crate log.
    pub fn new(mut sink: impl FnMut(LogMessage) + Send + 'static) -> LogForwarder {
        let ended = Arc::new(AtomicBool::new(false));
        let end = ended.clone();
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                if let Ok(Some(message)) = next_log_message(Duration::from_millis(200)) {
                    sink(message);
                }
            }
        });
        LogForwarder { ended, thread: Some(thread) }
    }
}

impl Drop for LogForwarder {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a sink that panics has said so
        }
    }
}
