//! The end of a communicator, from elsewhere.

use shardrec_sys as sys;

use crate::error::{c_text, check, Result};
use crate::handles::Comm;

/// Aborts a communicator from any thread, such as one that handles signals, and for as long as one likes: a
/// communicator that has been dropped is an error of the kind Closed.
#[derive(Clone, Copy, Debug)]
pub struct Aborter(*mut sys::shardrec_comm);

// SAFETY: the pointer is a ticket that is never followed; those of dropped communicators are not given out again.
unsafe impl Send for Aborter {}
// SAFETY: as above.
unsafe impl Sync for Aborter {}

impl Comm {
    /// What aborts this communicator from elsewhere, also after it was dropped.
    pub fn aborter(&self) -> Aborter {
        Aborter(self.0)
    }
}

impl Aborter {
    /// As [`Comm::abort`].
    pub fn abort(&self, reason: Option<&str>) -> Result<()> {
        let text = reason.map(c_text).transpose()?;
        let reason = text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        // SAFETY: handles are tickets of any value; the text outlives the call.
        check(unsafe { sys::shardrec_comm_abort(self.0, reason) })
    }
}
