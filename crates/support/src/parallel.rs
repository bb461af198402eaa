//! Loops over chunks of an array that are independent of each other, shared by threads where that
//! pays. The number of threads changes no result: each chunk is computed by one thread, from start
//! to end.

use std::num::NonZero;
use std::thread::available_parallelism;

/// Upper bound of the threads that one loop starts.
const MAX_THREADS: usize = 64;

/// Calls `compute` with the index of each chunk of `size` elements, and the chunk. The last chunk
/// may be shorter. Up to `threads` threads share the work: the number of threads that the caller
/// expects to pay for themselves.
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
    // The system reads files to count its processors, so short loops do not ask.
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
    let compute_part = &compute_part;
    std::thread::scope(|scope| {
        for (number, part) in elements.chunks_mut(chunks_of_thread * size).enumerate() {
            scope.spawn(move || compute_part(number, part));
        }
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
