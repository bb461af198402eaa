//! Transposes square tiles in registers.

use nest::{FunctionBuilder, ValueId};

/// Shuffles within this many bytes are single instructions on all targets.
const BLOCK_BYTES: usize = 16;

/// Transposes `rows.len()` vectors with that many lanes, a power of two: lane `j` of vector `i`
/// becomes lane `i` of vector `j`.
///
/// Small squares are transposed within 16-byte blocks by interleaving. Then the blocks trade
/// places.
pub(crate) fn transpose(b: &mut FunctionBuilder, rows: &[ValueId]) -> Vec<ValueId> {
    let lanes = rows.len();
    let Some(&first) = rows.first() else { return Vec::new() };
    let block_lanes = (BLOCK_BYTES / b.ty(first).scalar.byte_size()).clamp(1, lanes);
    let squares: Vec<Vec<ValueId>> =
        rows.chunks(block_lanes).map(|rows| within_blocks(b, rows.to_vec(), lanes)).collect();
    let mut columns = vec![first; lanes];
    for number in 0..block_lanes {
        let across = squares.iter().map(|square| square[number]).collect();
        for (block, column) in across_blocks(b, across, block_lanes, lanes).into_iter().enumerate() {
            columns[block * block_lanes + number] = column;
        }
    }
    columns
}

/// Transposes, in some rows, each square of `rows.len()` lanes independently. The squares lie side
/// by side.
fn within_blocks(b: &mut FunctionBuilder, mut rows: Vec<ValueId>, lanes: usize) -> Vec<ValueId> {
    let block = rows.len();
    let mut rounds = block.ilog2();
    while rounds > 0 {
        let mut next = Vec::with_capacity(block);
        for k in 0..block / 2 {
            for half in [0, block / 2] {
                let pick = |lane: usize| {
                    let within = half + lane % block / 2;
                    (lane / block * block + within + lane % 2 * lanes) as u32
                };
                next.push(b.shuffle(rows[k], rows[k + block / 2], (0..lanes).map(pick).collect()));
            }
        }
        rows = next;
        rounds -= 1;
    }
    rows
}

/// Transposes blocks: block `j` of vector `i` becomes block `i` of vector `j`.
fn across_blocks(
    b: &mut FunctionBuilder,
    mut vectors: Vec<ValueId>,
    block_lanes: usize,
    lanes: usize,
) -> Vec<ValueId> {
    let mut rounds = vectors.len().ilog2();
    while rounds > 0 {
        let mut next = Vec::with_capacity(vectors.len());
        for parity in 0..2 {
            for pair in vectors.chunks_exact(2) {
                let pick = |lane: usize| {
                    let block = 2 * (lane / block_lanes) + parity;
                    (block * block_lanes + lane % block_lanes) as u32
                };
                next.push(b.shuffle(pair[0], pair[1], (0..lanes).map(pick).collect()));
            }
        }
        vectors = next;
        rounds -= 1;
    }
    vectors
}
