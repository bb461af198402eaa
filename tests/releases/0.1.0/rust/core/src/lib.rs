//! Models in statics.

#![no_std]
#![deny(missing_docs, warnings)]

use core::cell::UnsafeCell;

tfcompile_runtime::include_model!("static_scorer");

tfcompile_runtime::include_model!("static_row");

struct Arena<T>(UnsafeCell<T>);

// SAFETY: the callers of `score` and `row` promise that only one thread calls each at a time.
unsafe impl<T> Sync for Arena<T> {}

static ARENA: Arena<StaticScorer> = Arena(UnsafeCell::new(StaticScorer::new()));
static ROW: Arena<StaticRow> = Arena(UnsafeCell::new(StaticRow::new()));

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

/// Greater numbers of `x` and each row, all of them quantized.
///
/// # Safety
/// Only one thread calls this at a time.
pub unsafe fn row(x: f32, y: &[f32; 4]) -> [[[f32; 4]; 3]; 2] {
    // SAFETY: the caller promises exclusive access.
    let model = unsafe { &mut *ROW.0.get() };
    model.quantize_arg_serving_default_input_1_0(&[[[x; 4]; 3]; 2]);
    model.quantize_arg_serving_default_input_2_0(y);
    let mut greater = [[[f32::NAN; 4]; 3]; 2];
    if model.run().is_ok() {
        model.dequantize_result_model_maximum(&mut greater);
    }
    greater
}
