//! Loops whose iterations write apart from each other, shared by threads where they are long. How many threads there are
//! changes no result: each row is computed by one of them, from start to end.

use std::num::NonZero;
use std::thread::available_parallelism;

/// Steps that are worth a thread of their own.
const STEPS_OF_THREAD: usize = 1 << 23;

/// More threads than this are not started.
const MAX_THREADS: usize = 64;

/// Calls `compute` with the number of each row of `width` elements, and the row; the last one may be shorter. One call takes
/// about `steps` steps.
pub(crate) fn for_each_row<T: Send>(
    elements: &mut [T],
    width: usize,
    steps: usize,
    compute: impl Fn(usize, &mut [T]) + Sync,
) {
    if width == 0 {
        return;
    }
    let rows = elements.len().div_ceil(width);
    let worthwhile = rows.saturating_mul(steps) / STEPS_OF_THREAD;
    let available = available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let threads = available.min(worthwhile).min(rows).max(1);
    let rows_of_thread = rows.div_ceil(threads).max(1);
    let part = |number: usize, part: &mut [T]| {
        for (row, elements) in part.chunks_mut(width).enumerate() {
            compute(number * rows_of_thread + row, elements);
        }
    };
    if threads == 1 {
        return part(0, elements);
    }
    let part = &part;
    std::thread::scope(|scope| {
        for (number, elements) in elements.chunks_mut(rows_of_thread * width).enumerate() {
            scope.spawn(move || part(number, elements));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_computed_once_whether_by_one_thread_or_several() {
        for steps in [1, STEPS_OF_THREAD] {
            let mut elements = vec![0; 7 * 3 - 1];
            for_each_row(&mut elements, 3, steps, |row, elements| {
                elements.iter_mut().for_each(|e| *e += 1 + row);
            });
            let wanted: Vec<usize> = (0..7).flat_map(|row| [1 + row; 3]).take(20).collect();
            assert_eq!(elements, wanted);
        }
        for_each_row(&mut [0u8; 0], 0, 1, |_, _| panic!("there is no row"));
    }
}
