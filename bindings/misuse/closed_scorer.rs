//! Refused: E0382 1, E0505 1, E0597 1
//! A scorer lives until the last thread that asks it has ended.
use shardrec::{Result, Scorer};

pub fn closed_scorer(scorer: Scorer) -> Result<i64> {
    drop(scorer);
    Ok(scorer.info()?.step)
}

pub fn closed_while_asked(scorer: Scorer) {
    std::thread::scope(|scope| {
        let asked = &scorer;
        scope.spawn(move || asked.info());
        drop(scorer);
    });
}
