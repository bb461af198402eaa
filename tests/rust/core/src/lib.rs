//! A model in a static.

#![no_std]
#![deny(missing_docs, warnings)]

use core::cell::UnsafeCell;

tfcompile_runtime::include_model!("static_scorer");

struct Arena(UnsafeCell<StaticScorer>);

// SAFETY: the caller of `score` promises that only one thread calls it at a time.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new(StaticScorer::new()));

/// Scores rows.
///
/// # Safety
/// Only one thread calls this at a time.
pub unsafe fn score(x: &[[f32; 3]; 2]) -> [[f32; 2]; 2] {
    // SAFETY: the caller promises exclusive access.
    let model = unsafe { &mut *ARENA.0.get() };
    match model.call(&StaticScorerInputs { arg_x: x }) {
        Ok(outputs) => *outputs.result_score,
        Err(_) => [[f32::NAN; 2]; 2],
    }
}
