//! Times steps in Rust beside the same in C: see tests/bench/overhead, which runs it.

mod counted;
mod training;

use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use shardrec::{run, Comm};
use training::{open, Step};

const KINDS: [&str; 3] = ["tables", "whole", "hash"]; // in the order of steps.h

#[link(name = "overhead_c")]
extern "C" {
    fn overhead_open(kind: c_int, tables: c_int, batch: i64) -> *mut c_void;
    fn overhead_close(training: *mut c_void);
    fn overhead_steps(training: *mut c_void, count: i64) -> c_int;
}

/// The training in C.
struct InC(*mut c_void);

impl InC {
    fn open(kind: usize, tables: usize, batch: usize) -> InC {
        // SAFETY: steps.h.
        let training = unsafe { overhead_open(kind as c_int, tables as c_int, batch as i64) };
        assert!(!training.is_null());
        InC(training)
    }

    fn steps(&self, count: usize) {
        // SAFETY: open, and of one thread.
        assert_eq!(unsafe { overhead_steps(self.0, count as i64) }, 0);
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { overhead_close(self.0) }
    }
}

/// As the arguments have them: KIND TABLES BATCH STEPS BLOCKS ROUNDS, and the seconds of warming up.
struct Asked {
    kind: usize,
    tables: usize,
    batch: usize,
    steps: usize,
    blocks: usize,
    rounds: usize,
    warm: Duration,
}

impl Asked {
    fn parse() -> Asked {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let number = |i: usize| arguments[i].parse().expect("a number");
        Asked {
            kind: KINDS.iter().position(|kind| *kind == arguments[0]).expect("a kind"),
            tables: number(1),
            batch: number(2),
            steps: number(3),
            blocks: number(4),
            rounds: number(5),
            warm: Duration::from_secs_f64(arguments[6].parse().expect("seconds")),
        }
    }
}

fn in_rust(training: &mut dyn Step, count: usize) -> shardrec::Result<()> {
    (0..count).try_for_each(|_| training.step())
}

/// Prints the times of a step in C and in Rust, block by block. Each round has memory of its own, for where it lies
/// counts too; the first one to get it is the other one each time.
fn measure(asked: &Asked, comm: &Comm) -> shardrec::Result<()> {
    let mut times = vec![[0f64; 2]; asked.blocks];
    for round in 0..asked.rounds {
        let in_c = || InC::open(asked.kind, asked.tables, asked.batch);
        let opened = (round % 2 == 0).then(in_c);
        let mut ours = open(comm, KINDS[asked.kind], asked.tables, asked.batch)?;
        let in_c = opened.unwrap_or_else(in_c);
        let begin = Instant::now();
        loop {
            in_c.steps(asked.steps);
            in_rust(&mut *ours, asked.steps)?;
            if round > 0 || begin.elapsed() > asked.warm {
                break;
            }
        }
        for (block, pair) in times.iter_mut().enumerate() {
            for turn in 0..2 {
                let whose = (block + turn) % 2; // the first one of a pair is the other one each time
                let begin = Instant::now();
                match whose {
                    0 => in_c.steps(asked.steps),
                    _ => in_rust(&mut *ours, asked.steps)?,
                }
                pair[whose] = begin.elapsed().as_nanos() as f64 / 1000.0 / asked.steps as f64;
            }
        }
        for [c, rust] in &times {
            println!("{round} {c} {rust}");
        }
        if round + 1 == asked.rounds {
            let before = counted::allocations();
            in_rust(&mut *ours, 10 * asked.steps)?;
            println!("allocated {}", (counted::allocations() - before) as f64 / (10 * asked.steps) as f64);
        }
    }
    Ok(())
}

fn main() {
    let asked = Asked::parse();
    if let Err(failure) = run(1, |comm: &Comm| measure(&asked, comm)) {
        eprintln!("{failure}");
        std::process::exit(1);
    }
}
