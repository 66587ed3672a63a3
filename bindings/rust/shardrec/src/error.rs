//! Statuses as `Result`s. The error is read on the thread of the failing call, right after it.

use std::ffi::{c_char, CStr, CString};
use std::fmt;

use shardrec_sys as sys;

use crate::enums::ErrorKind;

/// A status that is not OK, with its parts as fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorParts>);

/// A part that the error lacks is None.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorParts {
    /// Internal for a status of a later release.
    pub kind: ErrorKind,
    /// Such as "SHARDREC_TIMEOUT"; also of a status of a later release.
    pub name: String,
    /// What was wrong, where, what would be accepted.
    pub sentence: String,
    /// The rank at fault.
    pub rank: Option<i64>,
    /// Index into the array at fault.
    pub position: Option<i64>,
    /// The value that was refused.
    pub value: Option<i64>,
    /// What would have been accepted, exclusive.
    pub limit: Option<i64>,
    /// The sequence number of the operation.
    pub sequence: Option<i64>,
    /// Name of the table.
    pub table: Option<String>,
    /// Name of the feature.
    pub feature: Option<String>,
    /// The operation that failed, such as "forward".
    pub operation: Option<String>,
    /// The file or directory.
    pub path: Option<String>,
}

/// What the calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.sentence)
    }
}

impl std::error::Error for Error {}

impl std::ops::Deref for Error {
    type Target = ErrorParts;

    fn deref(&self) -> &ErrorParts {
        &self.0
    }
}

impl ErrorParts {
    fn new(status: sys::shardrec_status, sentence: String) -> ErrorParts {
        // SAFETY: the name is static.
        let name = unsafe { copy(sys::shardrec_status_name(status)) };
        ErrorParts {
            kind: ErrorKind::of(status).unwrap_or(ErrorKind::Internal),
            name,
            sentence,
            rank: None,
            position: None,
            value: None,
            limit: None,
            sequence: None,
            table: None,
            feature: None,
            operation: None,
            path: None,
        }
    }

    /// The calling thread's last error.
    fn last(status: sys::shardrec_status) -> ErrorParts {
        let number = |part| {
            let mut out = 0;
            // SAFETY: out outlives the call.
            let found = unsafe { sys::shardrec_last_error_i64(part, &mut out) } == sys::SHARDREC_OK;
            found.then_some(out)
        };
        let text = |part| {
            let mut out = std::ptr::null_mut();
            // SAFETY: out outlives the call; on OK it is a text that is ours to free.
            unsafe {
                (sys::shardrec_last_error_text(part, &mut out) == sys::SHARDREC_OK).then(|| {
                    let copied = copy(out);
                    sys::shardrec_text_free(out);
                    copied
                })
            }
        };
        ErrorParts {
            rank: number(sys::SHARDREC_ERROR_RANK),
            position: number(sys::SHARDREC_ERROR_POSITION),
            value: number(sys::SHARDREC_ERROR_VALUE),
            limit: number(sys::SHARDREC_ERROR_LIMIT),
            sequence: number(sys::SHARDREC_ERROR_SEQUENCE),
            table: text(sys::SHARDREC_ERROR_TABLE),
            feature: text(sys::SHARDREC_ERROR_FEATURE),
            operation: text(sys::SHARDREC_ERROR_OPERATION),
            path: text(sys::SHARDREC_ERROR_PATH),
            // SAFETY: never NULL, valid until this thread's next failing call.
            ..ErrorParts::new(status, unsafe { copy(sys::shardrec_last_error()) })
        }
    }
}

pub(crate) fn check(status: sys::shardrec_status) -> Result<()> {
    if status == sys::SHARDREC_OK {
        Ok(())
    } else {
        Err(Error(Box::new(ErrorParts::last(status))))
    }
}

/// Of a call that this crate refuses itself.
pub(crate) fn refusal(kind: ErrorKind, sentence: String) -> Error {
    Error(Box::new(ErrorParts::new(kind.raw(), sentence)))
}

/// Names and paths hold no NUL.
pub(crate) fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|e| {
        let sentence =
            format!("the text {text:?} holds NUL at byte {}; no name or path may hold it", e.nul_position());
        refusal(ErrorKind::InvalidArgument, sentence)
    })
}

/// Calls a function that returns a text through an out-parameter, copies the text and frees it.
pub(crate) fn take_text(call: impl FnOnce(*mut *mut c_char) -> sys::shardrec_status) -> Result<String> {
    let mut text = std::ptr::null_mut();
    check(call(&mut text))?;
    // SAFETY: on OK it is a text that is ours to free.
    Ok(unsafe { taken(text) })
}

/// SAFETY: text is the library's, and the caller's to free.
pub(crate) unsafe fn taken(text: *mut c_char) -> String {
    // SAFETY: what this function asks for.
    unsafe {
        let copied = copy(text);
        sys::shardrec_text_free(text);
        copied
    }
}

/// SAFETY: text ends with NUL.
unsafe fn copy(text: *const c_char) -> String {
    // SAFETY: what this function asks for.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
