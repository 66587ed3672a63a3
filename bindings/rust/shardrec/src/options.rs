//! Settings of a create call, by key: plain values, of which a native object is made for each call.

use shardrec_sys as sys;

use crate::enums::{OptionKey, OptionsKind};
use crate::error::{c_text, check, take_text, Result};

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Integer(i64),
    Real(f64),
    Text(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    kind: OptionsKind,
    list: Vec<(OptionKey, Value)>,
}

struct Made(*mut sys::shardrec_options);

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: the handle is ours.
        unsafe { sys::shardrec_options_destroy(&mut self.0) }
    }
}

// SAFETY of the calls below: handles are tickets of any value; texts and out-parameters outlive the call.

impl Settings {
    pub(crate) fn new(kind: OptionsKind) -> Settings {
        Settings { kind, list: Vec::new() }
    }

    pub(crate) fn set(&mut self, key: OptionKey, value: Value) {
        self.list.push((key, value));
    }

    fn made(&self) -> Result<Made> {
        let mut made = Made(std::ptr::null_mut());
        check(unsafe { sys::shardrec_options_create(self.kind.raw(), &mut made.0) })?;
        for (key, value) in &self.list {
            let key = key.raw();
            check(match value {
                Value::Integer(value) => unsafe { sys::shardrec_options_set_i64(made.0, key, *value) },
                Value::Real(value) => unsafe { sys::shardrec_options_set_f64(made.0, key, *value) },
                Value::Text(value) => {
                    let value = c_text(value)?;
                    unsafe { sys::shardrec_options_set_text(made.0, key, value.as_ptr()) }
                }
            })?;
        }
        Ok(made)
    }

    pub(crate) fn integer(&self, key: OptionKey) -> Result<i64> {
        let (made, mut out) = (self.made()?, 0);
        check(unsafe { sys::shardrec_options_get_i64(made.0, key.raw(), &mut out) })?;
        Ok(out)
    }

    pub(crate) fn real(&self, key: OptionKey) -> Result<f64> {
        let (made, mut out) = (self.made()?, 0.0);
        check(unsafe { sys::shardrec_options_get_f64(made.0, key.raw(), &mut out) })?;
        Ok(out)
    }

    pub(crate) fn text(&self, key: OptionKey) -> Result<String> {
        let made = self.made()?;
        take_text(|out| unsafe { sys::shardrec_options_get_text(made.0, key.raw(), out) })
    }
}

/// Calls with the native object of the settings: NULL, the defaults, for None.
pub(crate) fn with<T>(
    settings: Option<&Settings>,
    call: impl FnOnce(*const sys::shardrec_options) -> Result<T>,
) -> Result<T> {
    let made = settings.map(Settings::made).transpose()?;
    call(made.as_ref().map_or(std::ptr::null(), |made| made.0.cast_const()))
}
