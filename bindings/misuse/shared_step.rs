//! Refused: E0499 1
//! A lookup is one thread's at a time.
use shardrec::{Lookup, Update};

pub fn shared_step(lookup: &mut Lookup) {
    std::thread::scope(|scope| {
        scope.spawn(|| lookup.backward(Update::Apply));
        scope.spawn(|| lookup.backward(Update::Apply));
    });
}
