//! Chooses the tiles of attention, and whether one kernel pays off, by the model of contractions.
//!
//! Separate kernels write the scores, read them for the softmax, and write and read the weights;
//! one kernel saves this traffic and two launches. In exchange, its workgroups are as many as there
//! are tiles of rows, each walks over all keys, and its accumulators and workgroup memory limit how
//! many of them a multiprocessor holds. One kernel pays off if the cycles of its walk, for the
//! waves of workgroups that the device runs, are fewer than those of both products, of the softmax,
//! and of the traffic. The tile is the one with the fewest cycles.

use crate::device::contraction::cost::{self, BUSY_THREADS, BYTES, KERNEL, LATENCY, MATRIX_RATE, RATE};
use crate::device::contraction::{ContractionView, GroupTile, MatrixTile, Method, Role, div_ceil};
use shape::PrimitiveType;
use target::Gpu;

/// Multiply-adds that take as long as the work on one score: its exponential, mask, and way through
/// workgroup memory.
const SOFTMAX: i64 = 40;

/// Fewest rows that share keys and values. Fewer rows are bound by the traffic of keys and values,
/// which separate kernels divide among more workgroups.
const LEAST_ROWS: i64 = 8;

/// Registers of a multiprocessor, and those that a thread needs besides its sums.
const REGISTERS: i64 = 65_536;
const OTHER_REGISTERS: i64 = 80;

/// Most sums of a thread in registers, those of both products.
const MOST_SUMS: i64 = 112;

/// Workgroup memory of a multiprocessor.
const SHARED_BYTES: i64 = 160 << 10;

/// Tiles of scores: rows, keys, summands in workgroup memory, rows and keys of a thread, and how
/// much of the multiply-adds' rate a full multiprocessor reaches with them, in percent.
const TILES: [(GroupTile, i64); 5] = [
    (tile(64, 64, 16, 4, 8), 75),
    (tile(64, 64, 8, 8, 4), 70),
    (tile(32, 64, 16, 4, 4), 55),
    (tile(32, 64, 8, 4, 4), 50),
    (tile(32, 32, 8, 4, 4), 45),
];

/// Rows and keys of tiles for matrix units, and their rate in percent.
const MATRIX_TILES: [(i64, i64, i64); 2] = [(64, 64, 45), (32, 64, 30)];

const fn tile(rows: i64, columns: i64, depth: i64, thread_rows: i64, thread_columns: i64) -> GroupTile {
    GroupTile { rows, columns, depth, thread_rows, thread_columns }
}

/// The form of one kernel.
pub(super) struct Choice {
    /// Methods of the two products.
    pub(super) methods: [Method; 2],
    pub(super) kept_steps: i64,
    /// True if separate kernels are slower.
    pub(super) pays: bool,
}

/// Methods of the two products.
struct Candidate {
    methods: [Method; 2],
    kept_steps: i64,
    /// Rows, keys, and columns of the tiles.
    extents: [i64; 3],
    threads: i64,
    /// Sums of a thread, in registers of 4 bytes.
    sums: i64,
    workgroup_bytes: i64,
    /// Multiply-adds per cycle of a full multiprocessor.
    rate: i64,
}

/// Two products and the softmax between them.
pub(super) struct Work<'a> {
    /// The products.
    pub(super) views: [&'a ContractionView; 2],
    /// Types of queries, keys, weights, and values.
    pub(super) types: [PrimitiveType; 4],
    pub(super) accumulator: PrimitiveType,
    /// Bytes that separate kernels move for each score.
    pub(super) traffic: i64,
}

/// Returns the form with the fewest cycles. `None` if the device cannot hold the tiles.
pub(super) fn choose(work: &Work<'_>, gpu: Gpu, allow_tf32: bool) -> Option<Choice> {
    let (accumulator, [queries, keys, weights, values]) = (work.accumulator, work.types);
    let [scores, second] = work.views;
    let [batch, m, n] = [Role::Batch, Role::Row, Role::Column].map(|role| scores.extent(role));
    let size = accumulator.byte_size() as i64;
    let width = second.extent(Role::Column);
    let best = candidates(work.types, accumulator, [scores.extent(Role::Summand), width], gpu, allow_tf32)
        .into_iter()
        .map(|candidate| (cycles(&candidate, scores, gpu), candidate))
        .min_by_key(|(cycles, _)| *cycles)?;
    let (fused, candidate) = best;
    let separate: i64 = [(scores, [queries, keys]), (second, [weights, values])]
        .into_iter()
        .map(|(view, types)| cost::choose(view, types, accumulator, gpu, allow_tf32).cycles)
        .fold(0, i64::saturating_add);
    let elements = batch.saturating_mul(m).saturating_mul(n);
    let walks = elements.saturating_mul(SOFTMAX) / (RATE * 4 / size.max(4) * i64::from(gpu.processors));
    let moved = elements.saturating_mul(work.traffic) / BYTES;
    let separate = separate.saturating_add(walks).saturating_add(moved).saturating_add(2 * KERNEL);
    let Candidate { methods, kept_steps, .. } = candidate;
    Some(Choice { methods, kept_steps, pays: m >= LEAST_ROWS && fused < separate })
}

/// Estimates the cycles of the kernel.
fn cycles(candidate: &Candidate, scores: &ContractionView, gpu: Gpu) -> i64 {
    let [rows, keys, columns] = candidate.extents;
    let [batch, m, n, d] =
        [Role::Batch, Role::Row, Role::Column, Role::Summand].map(|role| scores.extent(role));
    let groups = batch.saturating_mul(div_ceil(m, rows));
    let each = div_ceil(groups, gpu.processors.into());
    let registers = candidate.threads * (candidate.sums + OTHER_REGISTERS);
    let most = (REGISTERS / registers).min(SHARED_BYTES / candidate.workgroup_bytes).max(1);
    // Cycles of some workgroups on a multiprocessor at the same time, per tile of keys. The loads
    // of each product wait for memory once.
    let step = |at_once: i64| {
        let busy = (at_once * candidate.threads).min(BUSY_THREADS);
        let products = rows * keys * (d + columns) / candidate.rate.max(1);
        let softmax = rows * keys * SOFTMAX / RATE;
        (at_once * (products + softmax) * BUSY_THREADS / busy).max(3 * LATENCY)
    };
    let rest = if each % most == 0 { 0 } else { step(each % most) };
    let steps = (each / most).saturating_mul(step(most)).saturating_add(rest);
    steps.saturating_mul(div_ceil(n, keys))
}

/// All tiles that the device can hold.
fn candidates(
    [queries, keys, weights, values]: [PrimitiveType; 4],
    accumulator: PrimitiveType,
    [summands, width]: [i64; 2],
    gpu: Gpu,
    allow_tf32: bool,
) -> Vec<Candidate> {
    let (mut all, size) = (Vec::new(), accumulator.byte_size() as i64);
    let has_units = match queries {
        PrimitiveType::F16 | PrimitiveType::Bf16 => true,
        PrimitiveType::F32 => allow_tf32,
        _ => false,
    };
    let is_same = [keys, values, weights].iter().all(|&ty| ty == queries);
    if gpu.has_matrix_units && has_units && is_same && accumulator == PrimitiveType::F32 {
        for (rows, keys, efficiency) in MATRIX_TILES {
            let columns = div_ceil(width, 32) * 32;
            let first = MatrixTile { rows, columns: keys, element_type: queries };
            let second = MatrixTile { columns, ..first };
            all.push(Candidate {
                extents: [rows, keys, columns],
                threads: MatrixTile::THREADS.into(),
                sums: rows * (keys + columns) / i64::from(MatrixTile::THREADS),
                kept_steps: 0,
                workgroup_bytes: 0,
                rate: MATRIX_RATE * 2 / queries.byte_size() as i64 * efficiency / 100,
                methods: [Method::Matrix(first), Method::Matrix(second)],
            });
        }
    }
    for (first, efficiency) in TILES {
        let Some(second) = columns_tile(&first, width, values, size) else { continue };
        let sums = first.thread_rows
            * (first.thread_columns + second.thread_columns * second.thread_rows / first.thread_rows);
        all.push(Candidate {
            extents: [first.rows, first.columns, second.columns],
            threads: first.threads().into(),
            sums: sums * size / 4,
            kept_steps: 0,
            workgroup_bytes: 0,
            rate: RATE * 4 / size.max(4) * efficiency / 100,
            methods: [Method::Tiles(first), Method::Tiles(second)],
        });
    }
    all.retain_mut(|candidate| {
        let [first, second] = &candidate.methods;
        let steps = div_ceil(summands, super::depth_of(first));
        // Queries are kept if they fit.
        [steps, 0].into_iter().any(|kept| {
            candidate.kept_steps = kept;
            candidate.workgroup_bytes =
                super::workgroup_bytes([first, second], candidate.threads, size, kept);
            candidate.workgroup_bytes <= gpu.workgroup_bytes as i64
        }) && candidate.sums <= MOST_SUMS
    });
    all
}

/// The narrowest tile of the second product that has all columns.
fn columns_tile(scores: &GroupTile, width: i64, values: PrimitiveType, size: i64) -> Option<GroupTile> {
    let threads = i64::from(scores.threads());
    let lanes = (16 / size).min(4);
    let at_once = (16 / values.byte_size() as i64).clamp(1, 8);
    let tiles = [4, 8].into_iter().flat_map(|thread_rows| {
        let across = threads * thread_rows / scores.rows;
        (1..=16 / lanes).map(move |pieces| GroupTile {
            columns: across * pieces * lanes,
            thread_rows,
            thread_columns: pieces * lanes,
            ..*scores
        })
    });
    // Each thread loads whole vectors, the same number as the others.
    let is_even = |tile: &GroupTile| {
        let each = tile.columns * tile.depth / threads;
        tile.columns * tile.depth % threads == 0 && (each % at_once == 0 || each.count_ones() == 1)
    };
    tiles
        .filter(|tile| tile.columns >= width && is_even(tile))
        .min_by_key(|tile| (tile.columns, tile.thread_rows.abs_diff(tile.thread_columns), -tile.thread_rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::DotDimensionNumbers;
    use shape::ArrayShape;
    use target::Target;

    /// The chosen tiles for queries, keys, and values of some heads, or why separate kernels are
    /// better.
    fn chosen(ty: PrimitiveType, [heads, m, n, d]: [i64; 4], architecture: &str) -> String {
        let target = match architecture {
            "opencl" => Target::opencl(),
            name => Target::cuda(name),
        };
        let gpu = target.expect("a target").gpu.expect("a GPU");
        let array = |rows: i64, columns: i64| ArrayShape::new(ty, &[heads, rows, columns]);
        let view = |lhs: ArrayShape, rhs: ArrayShape, rhs_k: usize| {
            let numbers = DotDimensionNumbers {
                lhs_batch_dims: vec![0],
                rhs_batch_dims: vec![0],
                lhs_contracting_dims: vec![2],
                rhs_contracting_dims: vec![rhs_k],
            };
            ContractionView::of_dot(&lhs, &rhs, &numbers)
        };
        let views = [view(array(m, d), array(n, d), 2), view(array(m, n), array(n, d), 1)];
        let accumulator = crate::contraction::tile::accumulator(ty);
        let traffic = 4 * ty.byte_size() as i64;
        let work = Work { views: [&views[0], &views[1]], types: [ty; 4], accumulator, traffic };
        let Some(choice) = choose(&work, gpu, false) else { return "no tile".to_owned() };
        let tiles = choice.methods.map(|method| match method {
            Method::Tiles(tile) => format!("{}x{}x{}", tile.rows, tile.columns, tile.depth),
            Method::Matrix(tile) => format!("units {}x{}", tile.rows, tile.columns),
            Method::Few(_) | Method::Direct => "other".to_owned(),
        });
        if choice.pays { tiles.join(", ") } else { "separate".to_owned() }
    }

    #[test]
    fn one_kernel_pays_if_it_saves_more_traffic_than_it_loses_workgroups() {
        use PrimitiveType::{Bf16, F16, F32, F64};
        let table = [
            (F32, [16, 1024, 1024, 64], "sm_80", "64x64x16, 64x64x16"),
            (F32, [16, 1024, 1024, 64], "sm_90a", "64x64x16, 64x64x16"),
            (F16, [16, 1024, 1024, 64], "sm_80", "units 64x64, units 64x64"),
            (F16, [16, 1024, 1024, 64], "sm_70", "64x64x16, 64x64x16"),
            (Bf16, [16, 1024, 1024, 64], "sm_90a", "units 64x64, units 64x64"),
            (Bf16, [64, 2048, 2048, 128], "sm_90a", "units 64x64, units 64x128"),
            (F32, [16, 1024, 1024, 64], "opencl", "64x64x8, 64x64x8"),
            (F32, [12, 128, 128, 64], "sm_80", "32x64x16, 32x64x16"),
            (F32, [96, 197, 197, 64], "sm_80", "32x64x16, 32x64x16"),
            (F32, [1, 4096, 4096, 64], "sm_80", "separate"),
            (F32, [1, 64, 65536, 64], "sm_80", "separate"),
            (F32, [16, 1024, 1024, 128], "sm_80", "32x64x16, 32x128x16"),
            (F32, [16, 1024, 1024, 512], "sm_80", "no tile"),
            (F64, [16, 1024, 1024, 64], "sm_80", "32x64x16, 32x64x16"),
            (F32, [16, 1, 4096, 64], "sm_80", "separate"),
            (F16, [16, 8, 4096, 128], "sm_80", "separate"),
            (F16, [512, 8, 4096, 128], "sm_80", "units 32x64, units 32x128"),
        ];
        for (ty, extents, architecture, expected) in table {
            assert_eq!(chosen(ty, extents, architecture), expected, "{ty} {extents:?} {architecture}");
        }
    }
}
