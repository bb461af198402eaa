//! Chooses who computes what, by a simple model of a GPU.

use super::{ContractionView, FEW_THREADS, FewRows, GroupTile, MOST_FEW, MatrixTile, Method, Role, div_ceil};
use shape::PrimitiveType;
use target::Gpu;

/// A method, and the parts into which the summands are divided.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::device) struct Choice {
    pub(super) method: Method,
    pub(super) splits: i64,
    pub(super) part: i64,
    /// Estimated cycles.
    pub(in crate::device) cycles: i64,
}

const fn tile(rows: i64, columns: i64, depth: i64, thread_rows: i64, thread_columns: i64) -> GroupTile {
    GroupTile { rows, columns, depth, thread_rows, thread_columns }
}

/// Tiles for elements of at most 4 bytes, and how much of the multiply-adds' rate a full
/// multiprocessor reaches with them, in percent. With more than 64 sums per thread, or 256 threads
/// of 64 sums each, a multiprocessor would hold one workgroup only.
///
/// | tile | threads | workgroup memory for f32 | registers | workgroups per multiprocessor |
/// |---|---|---|---|---|
/// | 128x64x8, 64x128x8 | 128 | 12800 bytes | 141 to 189 | 2 to 3 |
/// | 128x32x8, 32x128x8 | 128 | 10752 bytes | 72 | 7 |
/// | 64x64x16 | 128 | 17408 bytes | 72 to 80 | 6 |
/// | 64x32x16, 32x64x16 | 128 | 13312 bytes | 56 | 8 |
/// | 32x32x16 | 64 | 9216 bytes | 56 | 18 |
const TILES: [(GroupTile, i64); 8] = [
    (tile(32, 32, 16, 4, 4), 50),
    (tile(64, 32, 16, 4, 4), 55),
    (tile(32, 64, 16, 4, 4), 55),
    (tile(64, 64, 16, 8, 4), 75),
    (tile(128, 32, 8, 8, 4), 70),
    (tile(32, 128, 8, 4, 8), 70),
    (tile(128, 64, 8, 8, 8), 90),
    (tile(64, 128, 8, 8, 8), 90),
];

/// Tiles for elements of 8 bytes.
const WIDE_TILES: [(GroupTile, i64); 3] =
    [(tile(32, 32, 8, 4, 4), 70), (tile(64, 32, 8, 4, 4), 80), (tile(64, 64, 8, 4, 4), 90)];

/// Tiles for matrix units, rows and columns, and how much of the units' rate a full multiprocessor
/// reaches with them, in percent.
///
/// | tile | workgroup memory | registers for bf16 | workgroups per multiprocessor |
/// |---|---|---|---|
/// | 128x128 | 32768 bytes | 226 to 255 | 2 |
/// | 128x64, 64x128 | 24576 bytes | 134 to 142 | 3 |
/// | 64x64 | 16384 bytes | 82 to 111 | 4 to 5 |
/// | 64x32, 32x64 | 12288 bytes | 72 to 78 | 6 |
/// | 32x32 | 8192 bytes | 48 to 60 | 8 |
const MATRIX_TILES: [(i64, i64, i64); 7] =
    [(32, 32, 20), (64, 32, 30), (32, 64, 30), (64, 64, 45), (128, 64, 58), (64, 128, 58), (128, 128, 70)];

/// Multiply-adds of matrix units for 2 bytes per cycle and multiprocessor.
pub(in crate::device) const MATRIX_RATE: i64 = 1024;

/// Multiply-adds of f32 per cycle and multiprocessor.
pub(in crate::device) const RATE: i64 = 128;

/// Cycles until the elements of a tile have arrived from memory.
pub(in crate::device) const LATENCY: i64 = 600;

/// Threads of a multiprocessor from which on it computes at the full rate.
pub(in crate::device) const BUSY_THREADS: i64 = 256;

/// Threads that a multiprocessor holds with the registers of a tile.
const RESIDENT_THREADS: i64 = 384;

/// Cycles that another kernel costs.
pub(in crate::device) const KERNEL: i64 = 4000;

/// Bytes per cycle of all multiprocessors together from the second-level cache.
pub(in crate::device) const BYTES: i64 = 1000;

/// Elements of a result from which on a thread for each of them keeps a device busy.
const MANY_ELEMENTS: i64 = 1 << 16;

/// Fewest summands of a part.
const LEAST_PART: i64 = 64;

/// Most parts of the summands.
const MOST_SPLITS: i64 = 32;

pub(in crate::device) fn choose(
    view: &ContractionView,
    types: [PrimitiveType; 2],
    accumulator: PrimitiveType,
    gpu: Gpu,
    allow_tf32: bool,
) -> Choice {
    let k = view.extent(Role::Summand);
    let (m, n, batch) = (view.extent(Role::Row), view.extent(Role::Column), view.extent(Role::Batch));
    let direct =
        Choice { method: Method::Direct, splits: 1, part: k, cycles: direct_cycles([batch, m, n, k], gpu) };
    if accumulator.is_complex() {
        return direct;
    }
    if let Some(choice) = few(view, types, gpu) {
        return choice;
    }
    // A product of few columns per group, such as a depthwise convolution, or one that is too small
    // for tiles.
    let elements = batch.saturating_mul(m).saturating_mul(n);
    let is_narrow = m.min(n) < 8 && (k < 256 || elements >= MANY_ELEMENTS);
    if is_narrow || m.saturating_mul(n).saturating_mul(k) < 4096 && batch == 1 {
        return direct;
    }
    if let Some(choice) = matrix([batch, m, n, k], types, accumulator, gpu, allow_tf32) {
        return choice;
    }
    let size = accumulator.byte_size() as i64;
    let tiles: &[(GroupTile, i64)] = if size > 4 { &WIDE_TILES } else { &TILES };
    let mut best: Option<(i64, Choice)> = None;
    for &(tile, efficiency) in tiles {
        if tile.workgroup_bytes(size) > gpu.workgroup_bytes as i64 {
            continue;
        }
        let mut splits = 1;
        while splits <= MOST_SPLITS && (splits == 1 || k / splits >= LEAST_PART) {
            let part = div_ceil(div_ceil(k, splits), tile.depth) * tile.depth;
            if div_ceil(k, part) == splits {
                let shape = Shape {
                    rows: tile.rows,
                    columns: tile.columns,
                    depth: tile.depth,
                    threads: tile.threads().into(),
                    rate: RATE * 4 / size.max(4) * efficiency / 100,
                };
                let cost = cost([batch, m, n], shape, splits, part, size, gpu);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, Choice { method: Method::Tiles(tile), splits, part, cycles: cost }));
                }
            }
            splits *= 2;
        }
    }
    best.map_or(direct, |(_, choice)| choice)
}

/// Chooses tiles for the matrix units, if the device has them for these types.
fn matrix(
    [batch, m, n, k]: [i64; 4],
    types: [PrimitiveType; 2],
    accumulator: PrimitiveType,
    gpu: Gpu,
    allow_tf32: bool,
) -> Option<Choice> {
    let [element_type, other] = types;
    let is_supported = match element_type {
        PrimitiveType::F16 | PrimitiveType::Bf16 => accumulator == PrimitiveType::F32,
        PrimitiveType::S8 => accumulator == PrimitiveType::S32,
        PrimitiveType::F32 => accumulator == PrimitiveType::F32 && allow_tf32,
        _ => false,
    };
    if !gpu.has_matrix_units || !is_supported || element_type != other || k < 16 {
        return None;
    }
    let mut best: Option<(i64, Choice)> = None;
    for (rows, columns, efficiency) in MATRIX_TILES {
        let tile = MatrixTile { rows, columns, element_type };
        let mut splits = 1;
        while splits <= MOST_SPLITS && (splits == 1 || k / splits >= 2 * LEAST_PART) {
            let part = div_ceil(div_ceil(k, splits), tile.depth()) * tile.depth();
            if div_ceil(k, part) == splits {
                let shape = Shape {
                    rows,
                    columns,
                    depth: tile.depth(),
                    threads: MatrixTile::THREADS.into(),
                    rate: MATRIX_RATE * 2 / element_type.byte_size() as i64 * efficiency / 100,
                };
                let cost = cost([batch, m, n], shape, splits, part, 4, gpu);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, Choice { method: Method::Matrix(tile), splits, part, cycles: cost }));
                }
            }
            splits *= 2;
        }
    }
    best.map(|(_, choice)| choice)
}

/// A tile and its costs.
#[derive(Clone, Copy)]
struct Shape {
    rows: i64,
    columns: i64,
    depth: i64,
    threads: i64,
    /// Multiply-adds per cycle of a full multiprocessor.
    rate: i64,
}

/// Estimates the cycles of tiles.
fn cost([batch, m, n]: [i64; 3], tile: Shape, splits: i64, part: i64, size: i64, gpu: Gpu) -> i64 {
    let tiles = batch.saturating_mul(div_ceil(m, tile.rows)).saturating_mul(div_ceil(n, tile.columns));
    let groups = tiles.saturating_mul(splits);
    let each = div_ceil(groups, gpu.processors.into());
    let threads = tile.threads;
    let most = (RESIDENT_THREADS / threads).max(1);
    // Cycles of some workgroups on a multiprocessor at the same time, per tile of summands.
    let step = |at_once: i64| {
        let busy = (at_once * threads).min(BUSY_THREADS);
        let products = at_once * tile.rows * tile.columns * tile.depth;
        let rate = (tile.rate * busy / BUSY_THREADS).max(1);
        (products / rate).max(LATENCY)
    };
    let rest = if each % most == 0 { 0 } else { step(each % most) };
    let steps = (each / most).saturating_mul(step(most)).saturating_add(rest);
    let cycles = steps.saturating_mul(part / tile.depth + 1);
    if splits == 1 {
        return cycles;
    }
    let elements = batch.saturating_mul(m).saturating_mul(n);
    let bytes = elements.saturating_mul(size * (2 * splits + 1));
    cycles.saturating_add(KERNEL).saturating_add(bytes / BYTES)
}

/// Estimates the cycles of a thread for each element, whose operands come from caches.
fn direct_cycles([batch, m, n, k]: [i64; 4], gpu: Gpu) -> i64 {
    let products = batch.saturating_mul(m).saturating_mul(n).saturating_mul(k);
    LATENCY.saturating_add(products / (i64::from(gpu.processors) * RATE / 8))
}

/// Estimates the cycles of a product with few rows, which is bound by the traffic of the matrix.
fn few_cycles([batch, n, k]: [i64; 3], matrix: PrimitiveType, splits: i64) -> i64 {
    let bytes = batch.saturating_mul(n).saturating_mul(k).saturating_mul(matrix.byte_size() as i64);
    let sums = if splits > 1 { KERNEL } else { 0 };
    (2 * LATENCY).saturating_add(bytes / BYTES).saturating_add(sums)
}

/// Chooses the threads of a product with few rows or few columns.
fn few(view: &ContractionView, types: [PrimitiveType; 2], gpu: Gpu) -> Option<Choice> {
    let (m, n, k) = (view.extent(Role::Row), view.extent(Role::Column), view.extent(Role::Summand));
    let is_swapped = n < m;
    if m.min(n) > MOST_FEW || k < 32 {
        return None;
    }
    let (view, matrix_type) = if is_swapped { (view.swapped(), types[0]) } else { (view.clone(), types[1]) };
    let (batch, n) = (view.extent(Role::Batch), view.extent(Role::Column));
    let most = (16 / matrix_type.byte_size() as i64).clamp(1, 4);
    let run = view.rhs.run(&view, Role::Summand, most);
    let column_run = view.rhs.run(&view, Role::Column, most);
    // Neighboring threads read neighboring elements.
    if view.rhs.fastest(Role::Column) != 1 && view.rhs.fastest(Role::Summand) != 1 {
        return None;
    }
    let along_columns = view.rhs.fastest(Role::Column) == 1 && view.rhs.fastest(Role::Summand) != 1;
    let wanted = 2 * i64::from(gpu.processors);
    if along_columns && n >= 16 {
        let run = 1;
        let columns = prev_power_of_two(32.min(n / column_run));
        let slices = (FEW_THREADS / columns).min(prev_power_of_two(k / 4));
        let groups = batch * div_ceil(n, columns * column_run);
        let mut splits = 1;
        while groups * splits < wanted && k / (splits * 2) >= 16 * slices {
            splits *= 2;
        }
        let part = div_ceil(k, splits);
        let splits = div_ceil(k, part);
        let few = FewRows { is_swapped, along_columns, columns, slices, column_run, run };
        let cycles = few_cycles([batch, n, k], matrix_type, splits);
        return Some(Choice { method: Method::Few(few), splits, part, cycles });
    }
    let most_slices = prev_power_of_two((k / run / 2).clamp(1, FEW_THREADS));
    let mut slices = most_slices.min(32);
    while slices < most_slices && batch * n * slices / FEW_THREADS < wanted {
        slices *= 2;
    }
    let columns = FEW_THREADS / slices;
    let columns = columns.min(prev_power_of_two(n.max(1)).max(1));
    let few = FewRows { is_swapped, along_columns, columns, slices, column_run: 1, run };
    let cycles = few_cycles([batch, n, k], matrix_type, 1);
    Some(Choice { method: Method::Few(few), splits: 1, part: k, cycles })
}

fn prev_power_of_two(x: i64) -> i64 {
    1 << (x.max(1) as u64).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::DotDimensionNumbers;
    use shape::ArrayShape;
    use target::Target;

    fn chosen(ty: PrimitiveType, [m, n, k]: [i64; 3], architecture: &str) -> String {
        let gpu = Target::cuda(architecture).expect("a target").gpu.expect("a GPU");
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![1],
            rhs_contracting_dims: vec![0],
            ..Default::default()
        };
        let view =
            ContractionView::of_dot(&ArrayShape::new(ty, &[m, k]), &ArrayShape::new(ty, &[k, n]), &numbers);
        let accumulator = crate::contraction::tile::accumulator(ty);
        let choice = choose(&view, [ty; 2], accumulator, gpu, false);
        let method = match choice.method {
            Method::Tiles(tile) => format!("{}x{}", tile.rows, tile.columns),
            Method::Matrix(tile) => format!("units {}x{}", tile.rows, tile.columns),
            Method::Few(few) if few.is_swapped => "few columns".to_owned(),
            Method::Few(_) => "few rows".to_owned(),
            Method::Direct => "direct".to_owned(),
        };
        format!("{method} / {}", choice.splits)
    }

    #[test]
    fn large_products_have_large_tiles_and_small_ones_many_workgroups() {
        use PrimitiveType::{Bf16, C64, F32, F64};
        let table = [
            (F32, [4096, 4096, 4096], "128x64 / 1"),
            (F32, [100_352, 64, 576], "128x64 / 1"),
            (F32, [65_536, 32, 512], "128x32 / 1"),
            (F32, [32, 65_536, 512], "32x128 / 1"),
            (F32, [32, 32, 4096], "64x32 / 32"),
            (F32, [1, 4096, 4096], "few rows / 8"),
            (F32, [4096, 1, 4096], "few columns / 1"),
            (F32, [4, 4, 4], "direct / 1"),
            (F64, [4096, 4096, 4096], "64x64 / 1"),
            (C64, [512, 512, 512], "direct / 1"),
            (Bf16, [4096, 4096, 4096], "units 128x128 / 1"),
            (Bf16, [8, 4096, 4096], "few rows / 8"),
        ];
        for (ty, extents, expected) in table {
            assert_eq!(chosen(ty, extents, "sm_80"), expected, "{ty} {extents:?}");
        }
        assert_eq!(chosen(Bf16, [4096; 3], "sm_70"), "128x64 / 1");
    }
}
