//! Winograd's minimal filtering for windows of 3x3 with stride 1. It takes fewer multiplications,
//! at the cost of additions and rounding errors.
//!
//! The output is divided into patches of `m x m` pixels (m = 2 or 4). Each reads `n x n` input
//! pixels (n = m + 2), which are transformed, channel by channel, into as many *frequencies*. The
//! kernel is transformed in the same way. At each frequency, the patches are the rows of a matrix
//! product, `patches x inputs` by `inputs x outputs`, whose result is transformed back into pixels.
//! An output takes `n * n / (m * m)` multiplications for each input feature: 4 or 2.25 instead of
//! 9.
//!
//! Patches are processed in blocks whose transformed input stays in the second-level cache. The
//! products of one register tile stay in the first-level cache. No array of the size of an image is
//! kept.
//!
//! Bytes become numbers of 16 bits, of which an instruction multiplies and adds pairs, and results
//! are exact (`bytes`).

pub(super) mod bytes;

use super::dense::{self, DensePlan};
use super::dims::ConvolutionDims;
use super::winograd_matrices::Transform;
use crate::contraction::grouping::Sums;
use crate::contraction::panels::PanelLayout;
use crate::contraction::tile::{self, Tile};
use crate::packing::Packing;
use crate::tasks::Work;
use hlo::WindowDimension;
use shape::PrimitiveType;
use target::Target;

/// The transforms that may be used. They change how results are rounded: see the bounds in
/// `docs/design/winograd.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Winograd {
    /// None: each output is a sum of products of inputs and weights.
    Never,
    /// F(2x2,3x3), whose errors are about those of the direct sum.
    #[default]
    Small,
    /// Also F(4x4,3x3), whose errors are 5 to 10 times as large.
    Large,
    /// One transform wherever possible, for tests and measurements, with patches of 2x2 or 4x4
    /// pixels.
    Forced(u32),
}

/// Plan of a convolution by patches.
#[derive(Clone, Debug, PartialEq)]
pub struct WinogradPlan {
    /// The transforms.
    pub transform: Transform,
    /// Register tiles of the products: patches by vectors of output features.
    pub tile: Tile,
    /// Patches per image: lines of patches, and patches per line.
    pub patches: [i64; 2],
    /// Patches of the largest block. Each block has this many or one fewer.
    pub block: i64,
    /// Number of blocks into which the patches of all images are divided.
    pub blocks: i64,
    /// Number of parts into which the blocks are divided.
    pub chunks: i64,
    /// Number of parts into which the register tiles' columns are divided; if more than 1, each
    /// block is a chunk. The tasks of a block are consecutive, so a worker that executes several of
    /// them transforms the input once.
    pub feature_chunks: i64,
    /// Packing of the kernel: transformed at compile time, or at run time by each call of the
    /// kernel function.
    pub kernel_packing: Packing,
    /// Panels of the transformed kernel. Their rows are the input features of each frequency, or
    /// pairs of them; their columns are output features.
    pub panels: PanelLayout,
    /// True if the kernel is transformed at run time by one register tile's columns at a time, for
    /// each block. Otherwise each call transforms all of it.
    pub by_columns: bool,
    /// The direct sum of bytes, from whose packed panels the kernel is transformed; `None` for
    /// floats.
    pub bytes: Option<Box<DensePlan>>,
    /// Layout of a worker's scratch.
    pub scratch: WinogradScratch,
}

/// Layout of a worker's scratch, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WinogradScratch {
    /// Offset of the transformed input of a block, `[frequency][patch][input]`. A pixel of zeros
    /// precedes it; it serves as padding.
    pub input: i64,
    /// Distance of patches in the transformed input.
    pub input_row: i64,
    /// Distance of frequencies in the transformed input.
    pub input_frequency: i64,
    /// Offset of the products of a register tile, `[frequency][patch][output]`.
    pub products: i64,
    /// Distance of patches in the products.
    pub product_row: i64,
    /// Distance of frequencies in the products.
    pub product_frequency: i64,
    /// Offset of the pixels of a patch that extends beyond the border, `[pixel][lane]`.
    pub border: i64,
    /// Offset of the transformed kernel, if it is transformed at run time.
    pub kernel: i64,
    /// Total size.
    pub bytes: i64,
}

/// Upper bound of a worker's scratch. Convolutions that need more are not transformed.
const MAX_SCRATCH: i64 = 16 << 20;

/// Reference caches for choosing between the transforms and the direct sum. The choice is the same
/// on most machines, so that versions of the code for several processors share their packed
/// kernels: it assumes vectors of a cache line and caches of at least these sizes.
const REFERENCE_L2: i64 = 1 << 20;
const REFERENCE_L1: i64 = 1 << 15;

/// Minimum gain, as a fraction of the direct sum's cost.
pub(super) const LEAST_GAIN: f64 = 0.1;

/// Cost of reading a line of a kernel that exceeds the second-level cache, in vector multiply-adds,
/// minus those that execute meanwhile.
const LINE_FROM_MEMORY: f64 = 12.0;

impl WinogradPlan {
    /// True if the patches save products.
    pub(super) fn saves_products(&self) -> bool {
        self.transform.outputs > 1
    }

    /// Summands of 32 bits at each frequency: input features, or pairs of them.
    pub fn summands(&self, dims: &ConvolutionDims) -> i64 {
        if self.bytes.is_some() { dims.inputs / bytes::PAIR } else { dims.inputs }
    }

    /// True if the vectors of the kernel have the first factors of the columns' pairs, and then the
    /// second ones. Otherwise, the factors of a pair are neighbors.
    pub fn has_halves(&self) -> bool {
        let grouping = self.bytes.as_ref().and_then(|direct| direct.grouping);
        grouping.is_some_and(|grouping| grouping.sums == Sums::Halves)
    }

    /// Rows of a panel at each frequency.
    pub fn kernel_rows(&self) -> i64 {
        self.panels.rows / self.transform.frequencies()
    }

    /// Bytes of the transformed kernel, or of the columns that are transformed at a time.
    pub fn kernel_bytes(&self) -> i64 {
        let width = self.panels.width;
        let panels =
            if self.by_columns { (self.tile.columns() + width - 1) / width } else { self.panels.count() };
        panels * self.panels.panel_bytes()
    }

    /// The direct sum that the patches replace.
    pub(super) fn direct(
        &self,
        dims: &ConvolutionDims,
        accumulator: PrimitiveType,
        is_constant: bool,
        target: &Target,
    ) -> Option<DensePlan> {
        let of_rules = || dense::of_rules(dims, accumulator, is_constant, target);
        self.bytes.as_deref().cloned().or_else(of_rules)
    }

    /// Number of full register tiles along the features.
    pub fn whole_panels(&self, dims: &ConvolutionDims) -> i64 {
        dims.outputs / self.tile.columns()
    }

    /// Patches of all images.
    pub fn all_patches(&self, dims: &ConvolutionDims) -> i64 {
        dims.batch * self.patches[0] * self.patches[1]
    }

    /// Number of tasks of the kernel.
    pub fn tasks(&self) -> i64 {
        self.chunks * self.feature_chunks
    }
}

/// Chooses the most profitable transform, if any pays off.
pub(super) fn choose(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    is_constant: bool,
    allowed: Winograd,
    target: &Target,
) -> Option<WinogradPlan> {
    if !matches!(accumulator, PrimitiveType::F32 | PrimitiveType::F64) || !is_possible(dims, 3) {
        return None;
    }
    let element = accumulator.byte_size() as i64;
    let transform = match allowed {
        Winograd::Never => return None,
        Winograd::Forced(outputs) => Transform::of_outputs(i64::from(outputs))?,
        Winograd::Small => cheapest(dims, element, is_constant, &[Transform::SMALL], target)?,
        Winograd::Large => {
            cheapest(dims, element, is_constant, &[Transform::SMALL, Transform::LARGE], target)?
        }
    };
    let machine = Machine::of(target, element, tile::panel(dims.outputs, element as usize));
    let plan = lay_out(dims, transform, element, is_constant, &machine);
    Some(plan).filter(|plan| plan.scratch.bytes <= MAX_SCRATCH)
}

/// True if the window has `size` taps along each dimension, and moves by one pixel or has one tap
/// and no padding.
fn is_possible(dims: &ConvolutionDims, size: i64) -> bool {
    let [lines, columns] = &dims.spatial[..] else { return false };
    let fits = |w: WindowDimension| {
        let plain = WindowDimension::of_size(size);
        let is_plain = match size {
            1 => w == WindowDimension { stride: w.stride, ..plain } && (1..=1 << 18).contains(&w.stride),
            _ => w == WindowDimension { padding_low: w.padding_low, padding_high: w.padding_high, ..plain },
        };
        is_plain && w.padding_low.abs() <= 1 << 20
    };
    // Bounds on the extents keep values computed from them far from overflow.
    let is_bounded = |n: i64, most: i64| (1..=most).contains(&n);
    fits(lines.window)
        && fits(columns.window)
        && dims.groups == 1
        && is_bounded(dims.inputs, 1 << 14)
        && is_bounded(dims.outputs, 1 << 14)
        && is_bounded(dims.batch, 1 << 24)
        && [lines, columns].iter().all(|d| is_bounded(d.output, 1 << 18) && is_bounded(d.input, 1 << 18))
        && dims.batch.saturating_mul(dims.pixels()) < 1 << 32
}

/// The cheapest of some transforms, if it is cheaper than the direct sum. Costs are in vector
/// multiply-adds, on a machine with vectors of a cache line.
fn cheapest(
    dims: &ConvolutionDims,
    element: i64,
    is_constant: bool,
    transforms: &[Transform],
    target: &Target,
) -> Option<Transform> {
    let plain = plain_cost(dims, element) * (1.0 - LEAST_GAIN);
    let machine = Machine::reference(target, element, tile::panel(dims.outputs, element as usize));
    let costs = transforms.iter().map(|&t| (cost(dims, t, element, is_constant, &machine), t));
    costs.filter(|c| c.0 < plain).min_by(|a, b| a.0.total_cmp(&b.0)).map(|c| c.1)
}

/// Costs of a transform and of the direct sum in vector multiply-adds. The transform must be
/// possible.
pub(super) fn costs(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    is_constant: bool,
    outputs: u32,
    target: &Target,
) -> Option<(f64, f64)> {
    let element = accumulator.byte_size() as i64;
    let transform = Transform::of_outputs(i64::from(outputs))?;
    let machine = Machine::reference(target, element, tile::panel(dims.outputs, element as usize));
    Some((cost(dims, transform, element, is_constant, &machine), plain_cost(dims, element)))
}

/// Fraction of the peak rate that a register tile's multiply-adds reach; the rest of the time they
/// wait for operands and for the end of the loop.
const PRODUCTS_EFFICIENCY: f64 = 0.92;

fn plain_cost(dims: &ConvolutionDims, element: i64) -> f64 {
    let vectors = vectors(dims.outputs, element);
    let taps = dims.taps() as f64;
    let products = dims.batch as f64 * dims.pixels() as f64 * taps * dims.inputs as f64 * vectors;
    // Taps in the padding do not count.
    let inside = |d: &super::SpatialDimension| {
        let window = d.window;
        let taps: i64 = (0..window.size)
            .map(|t| {
                let first = (window.padding_low - t).clamp(0, d.output);
                let last = (d.input + window.padding_low - t).clamp(first, d.output);
                last - first
            })
            .sum();
        taps as f64 / (window.size * d.output) as f64
    };
    let products = products * dims.spatial.iter().map(inside).product::<f64>() / PRODUCTS_EFFICIENCY;
    let lines = taps * dims.inputs as f64 * vectors;
    products + if lines * 64.0 > REFERENCE_L2 as f64 { lines * LINE_FROM_MEMORY } else { 0.0 }
}

fn cost(
    dims: &ConvolutionDims,
    transform: Transform,
    element: i64,
    is_constant: bool,
    machine: &Machine,
) -> f64 {
    let frequencies = transform.frequencies() as f64;
    let blocks = Blocks::new(dims, transform, element, is_constant, machine);
    let (inputs, outputs) = (vectors(dims.inputs, element), vectors(dims.outputs, element));
    let lines = frequencies * dims.inputs as f64 * outputs;
    let products = blocks.rows_in_all() as f64 * lines / PRODUCTS_EFFICIENCY;
    let read = if blocks.is_resident { 0.0 } else { lines * LINE_FROM_MEMORY * blocks.blocks as f64 };
    let (input_cost, output_cost, kernel_cost) = transform.costs();
    let patches = (dims.batch * blocks.patches[0] * blocks.patches[1]) as f64;
    let mut total =
        machine.product * products + read + patches * (input_cost * inputs + output_cost * outputs);
    if !is_constant {
        // Each block or each worker transforms the kernel for itself.
        let times = if blocks.by_columns { blocks.blocks as f64 } else { 2.0 };
        total += times * dims.inputs as f64 * outputs * kernel_cost;
    }
    total
}

/// Number of cache lines that the features fill.
pub(super) fn vectors(features: i64, element: i64) -> f64 {
    let line = 64 / element;
    ((features + line - 1) / line) as f64
}

/// Properties of the machine that determine the blocks.
struct Machine {
    lanes: u32,
    registers: u32,
    /// Upper bound of the patches of a register tile.
    most_rows: i64,
    /// Instructions of a product.
    product: f64,
    l1: i64,
    l2: i64,
}

/// Minimum number of patches of a register tile: enough sums for two multiply-add units, and enough
/// uses to pay for reading the kernel.
const FEWEST_ROWS: i64 = 8;

impl Machine {
    fn of(target: &Target, element: i64, panel: i64) -> Self {
        let lanes = target.lanes(element as usize).min(panel as u32);
        let registers = registers_of_sums(lanes, target);
        let (most_rows, product) = (i64::MAX, 1.0);
        Self { lanes, registers, most_rows, product, l1: l1(target), l2: l2(target) }
    }

    /// A machine whose vectors are cache lines, with a cache at least as large as is usual for
    /// those.
    fn reference(target: &Target, element: i64, panel: i64) -> Self {
        let l2 = l2(target).max(REFERENCE_L2);
        let lanes = (64 / element).min(panel) as u32;
        Self { lanes, registers: 32, most_rows: i64::MAX, product: 1.0, l1: REFERENCE_L1, l2 }
    }
}

fn l1(target: &Target) -> i64 {
    i64::try_from(target.l1_bytes).unwrap_or(i64::MAX).min(1 << 40)
}

fn l2(target: &Target) -> i64 {
    i64::try_from(target.l2_bytes).unwrap_or(i64::MAX).min(1 << 40)
}

/// Division of the patches of all images into blocks.
struct Blocks {
    vectors: u32,
    /// Patches per image.
    patches: [i64; 2],
    /// Patches of the largest block.
    block: i64,
    blocks: i64,
    /// Patches per register tile.
    rows: i64,
    /// True if the transformed kernel stays in the cache from block to block.
    is_resident: bool,
    /// True if each block transforms the kernel, by the columns of one register tile at a time.
    by_columns: bool,
}

/// Upper bound of the blocks that transform the kernel again. More of them read it from the third
/// cache faster.
const FEW_BLOCKS: i64 = 2;

impl Blocks {
    fn new(
        dims: &ConvolutionDims,
        transform: Transform,
        element: i64,
        is_constant: bool,
        machine: &Machine,
    ) -> Self {
        let m = transform.outputs;
        let panel = tile::panel(dims.outputs, element as usize);
        let vectors = if dims.outputs > i64::from(machine.lanes) { 2 } else { 1 };
        let patches = [0, 1].map(|d| (dims.spatial[d].output + m - 1) / m);
        let all = dims.batch * patches[0] * patches[1];
        let most_rows = most_rows(vectors, machine.registers).min(machine.most_rows).min(all);
        let columns = i64::from(vectors * machine.lanes);
        let line = transform.frequencies() * dims.inputs * element;
        let kernel = line * ((dims.outputs + panel - 1) / panel * panel);
        let is_resident = kernel <= machine.l2 / 2;
        // With few features, the kernel and the input and products of a register tile fit the
        // first-level cache together.
        let row_bytes = transform.frequencies() * (input_row(dims, element) + columns * element);
        let rows_in_l1 = (machine.l1 / 5 * 4 - kernel) / row_bytes;
        let is_small = rows_in_l1 >= FEWEST_ROWS;
        let most_rows = if is_small { most_rows.min(rows_in_l1) } else { most_rows };
        let kernel_part = if is_resident { kernel } else { line * columns.max(panel) };
        let input = transform.frequencies() * input_row(dims, element);
        let most = ((machine.l2 / 4 * 3 - kernel_part) / input).max(most_rows);
        // A kernel that few blocks transform column by column shares the cache with a large block.
        let most_of_few = (machine.l2 / 8 * 5 / input).max(most);
        let by_columns = !is_constant && !is_resident && all <= FEW_BLOCKS * most_of_few;
        let most = if by_columns { most_of_few } else { most };
        // If the kernel stays in the cache, there may be many blocks: whole register tiles, enough
        // to distribute.
        let tiles = (all / task_limit(dims) + most_rows - 1) / most_rows;
        let tiles = tiles.clamp(1, if is_small { 1 } else { 4 });
        let most = if is_resident { most.min(most_rows * tiles) } else { most };
        let blocks = (all + most - 1) / most;
        let block = (all + blocks - 1) / blocks;
        let tiles = (block + most_rows - 1) / most_rows;
        Self { vectors, patches, block, blocks, rows: (block + tiles - 1) / tiles, is_resident, by_columns }
    }

    /// Rows of all register tiles, including the overlap of a block's last ones.
    fn rows_in_all(&self) -> i64 {
        self.blocks * ((self.block + self.rows - 1) / self.rows) * self.rows
    }
}

/// Distance of patches in the transformed input, in bytes.
fn input_row(dims: &ConvolutionDims, element: i64) -> i64 {
    odd_lines(dims.inputs * element, 16)
}

/// Rows of the transformed kernel at each frequency, of cache lines. If they are written at run
/// time, all frequencies at once, their number is odd, so that they do not share a cache set.
fn kernel_rows(dims: &ConvolutionDims, is_constant: bool) -> i64 {
    if is_constant { dims.inputs } else { dims.inputs | 1 }
}

/// Number of tasks that the work justifies.
fn task_limit(dims: &ConvolutionDims) -> i64 {
    Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks_of_processor().max(1)
}

/// Lays out register tiles, blocks, tasks, and scratch.
fn lay_out(
    dims: &ConvolutionDims,
    transform: Transform,
    element: i64,
    is_constant: bool,
    machine: &Machine,
) -> WinogradPlan {
    let rows = transform.frequencies() * kernel_rows(dims, is_constant);
    let panels = PanelLayout::of_constant(rows, dims.outputs, element as usize);
    let Blocks { vectors, patches, block, blocks, rows, is_resident, by_columns } =
        Blocks::new(dims, transform, element, is_constant, machine);
    let tile = Tile { rows: rows as u32, vectors, lanes: machine.lanes, k_split: 1 };
    let (task_limit, whole_panels) = (task_limit(dims), (dims.outputs / tile.columns()).max(1));
    let feature_chunks = if is_resident { 1 } else { (task_limit / blocks).clamp(1, whole_panels) };
    let chunks = if feature_chunks > 1 { blocks } else { task_limit.min(blocks) };
    let kernel_packing = if is_constant { Packing::Constant } else { Packing::Scratch };
    let mut plan = WinogradPlan {
        transform,
        tile,
        patches,
        block,
        blocks,
        chunks,
        feature_chunks,
        kernel_packing,
        panels,
        by_columns,
        bytes: None,
        scratch: WinogradScratch::default(),
    };
    plan.scratch = scratch(dims, &plan, element);
    plan
}

/// Number of registers for the sums of products and for their operands. Without multiply-add, the
/// products of each vector take a register of their own. Scalars are loaded early.
pub(super) fn registers_of_sums(lanes: u32, target: &Target) -> u32 {
    let is_tight = !target.has_fma && !target.has_relaxed_simd() || lanes == 1;
    target.vector_registers.saturating_sub(if is_tight { 4 } else { 0 })
}

/// Upper bound of the patches of a register tile of one or two vectors. It leaves registers for the
/// vectors of the kernel and one more. More patches mean fewer reads of the kernel.
pub(super) fn most_rows(vectors: u32, registers: u32) -> i64 {
    match (vectors, registers) {
        (2, 32..) => 14,
        (2, 16..) => 6,
        (_, 32..) => 16,
        (_, 16..) => 12,
        (2, 12..) => 4,
        (_, 12..) => 8,
        (2, _) => 2,
        _ => 4,
    }
}

fn scratch(dims: &ConvolutionDims, plan: &WinogradPlan, element: i64) -> WinogradScratch {
    let frequencies = plan.transform.frequencies();
    let mut end = 0;
    let mut take = |bytes: i64| {
        let first = end;
        end += lines(bytes);
        first
    };
    take(dims.inputs * element);
    let input_row = input_row(dims, element);
    let input_frequency = odd_lines(plan.block * input_row, 1);
    let input = take(frequencies * input_frequency);
    let product_row = plan.tile.columns() * element;
    let product_frequency = odd_lines(i64::from(plan.tile.rows) * product_row, 1);
    let products = take(frequencies * product_frequency);
    let border = take(plan.transform.outputs * plan.transform.outputs * i64::from(plan.tile.lanes) * element);
    let is_constant = plan.kernel_packing == Packing::Constant;
    let kernel = take(if is_constant { 0 } else { plan.kernel_bytes() });
    WinogradScratch {
        input,
        input_row,
        input_frequency,
        products,
        product_row,
        product_frequency,
        border,
        kernel,
        bytes: end,
    }
}

/// Rounds a number of bytes up to whole cache lines.
pub(super) fn lines(bytes: i64) -> i64 {
    (bytes + 63) / 64 * 64
}

/// Same as [`lines`], plus one line if there are at least `many` lines and their number is even:
/// arrays at odd distances spread over all sets of a cache.
pub(super) fn odd_lines(bytes: i64, many: i64) -> i64 {
    let lines = (bytes + 63) / 64;
    64 * if lines >= many && lines % 2 == 0 { lines + 1 } else { lines }
}

impl std::fmt::Display for WinogradPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (m, tile) = (self.transform.outputs, self.tile);
        let (form, patches, transformed) = if self.saves_products() {
            (format!("F({m}x{m},3x3)"), "patches", "transformed")
        } else {
            ("pairs of 16 bits".to_owned(), "pixels", "widened")
        };
        write!(f, ", {form}, {} blocks of {} {patches}, ", self.blocks, self.block)?;
        write!(f, "tiles {}x{} of {} lanes, kernel {transformed} ", tile.rows, tile.vectors, tile.lanes)?;
        f.write_str(match self.kernel_packing {
            Packing::Constant => "at compile time",
            _ if self.by_columns => "by each block",
            _ => "at run time",
        })
    }
}

#[cfg(test)]
mod tests;
