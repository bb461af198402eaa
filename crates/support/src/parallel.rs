//! Parallel loops over independent chunks of an array. The number of threads does not affect the
//! results, because one thread computes each chunk from start to end. If the system starts fewer
//! threads, those compute all chunks.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism};

/// Upper bound for the number of threads that one loop starts.
const MAX_THREADS: usize = 64;

/// Calls `compute` with the index and the elements of each chunk of `size` elements. The last chunk
/// may be shorter. Up to `threads` threads share the work. The caller chooses the number so that
/// the work outweighs the cost of starting threads.
pub fn for_each_chunk<T: Send>(
    elements: &mut [T],
    size: usize,
    threads: usize,
    compute: impl Fn(usize, &mut [T]) + Sync,
) {
    if size == 0 {
        return;
    }
    let threads = threads.min(elements.len().div_ceil(size));
    // Counting the processors reads files, so short loops skip it.
    let threads = if threads > 1 {
        threads.min(available_parallelism().map_or(1, NonZero::get)).min(MAX_THREADS)
    } else {
        1
    };
    let chunks_of_thread = elements.len().div_ceil(size).div_ceil(threads).max(1);
    let compute_part = |number: usize, part: &mut [T]| {
        for (index, chunk) in part.chunks_mut(size).enumerate() {
            compute(number * chunks_of_thread + index, chunk);
        }
    };
    if threads == 1 {
        return compute_part(0, elements);
    }
    let parts = Mutex::new(elements.chunks_mut(chunks_of_thread * size).enumerate());
    let take = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((number, part)) = take() {
            compute_part(number, part);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_computed_once_by_one_thread_or_several() {
        for threads in [0, 1, 2, 100] {
            let mut elements = vec![0; 7 * 3 - 1];
            for_each_chunk(&mut elements, 3, threads, |index, chunk| {
                chunk.iter_mut().for_each(|e| *e += 1 + index);
            });
            let expected: Vec<usize> = (0..7).flat_map(|index| [1 + index; 3]).take(20).collect();
            assert_eq!(elements, expected, "{threads} threads");
        }
        for_each_chunk(&mut [0u8; 0], 3, 2, |_, _| panic!("there is no chunk"));
        for_each_chunk(&mut [0u8; 2], 0, 2, |_, _| panic!("there is no chunk"));
    }
}
