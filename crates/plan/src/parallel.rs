//! Pieces of an array that are filled apart from each other, by several threads where that pays. How many there are changes no
//! byte: each piece is filled by one of them.

use std::num::NonZero;
use std::thread::available_parallelism;

/// Bytes that are worth a thread of their own.
const BYTES_OF_THREAD: usize = 2 << 20;

/// More threads than this are not started.
const MAX_THREADS: usize = 16;

/// Calls `fill` with the number of each piece of `size` bytes, and the piece.
pub(crate) fn for_each_piece(bytes: &mut [u8], size: usize, fill: impl Fn(usize, &mut [u8]) + Sync) {
    if size == 0 {
        return;
    }
    let pieces = bytes.len() / size;
    let available = available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let threads = available.min(bytes.len() / BYTES_OF_THREAD).min(pieces).max(1);
    let of_thread = pieces.div_ceil(threads).max(1);
    let part = |number: usize, part: &mut [u8]| {
        for (k, piece) in part.chunks_exact_mut(size).enumerate() {
            fill(number * of_thread + k, piece);
        }
    };
    if threads == 1 {
        return part(0, bytes);
    }
    let part = &part;
    std::thread::scope(|scope| {
        for (number, bytes) in bytes.chunks_mut(of_thread * size).enumerate() {
            scope.spawn(move || part(number, bytes));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_filled_once_by_one_thread_or_several() {
        for size in [3, BYTES_OF_THREAD] {
            let mut bytes = vec![0; 5 * size];
            for_each_piece(&mut bytes, size, |number, piece| {
                piece.iter_mut().for_each(|byte| *byte += 1 + number as u8);
            });
            let wanted: Vec<u8> = (1..=5).flat_map(|number| std::iter::repeat_n(number, size)).collect();
            assert!(bytes == wanted, "pieces of {size} bytes");
        }
        for_each_piece(&mut [], 0, |_, _| panic!("there is no piece"));
    }
}
