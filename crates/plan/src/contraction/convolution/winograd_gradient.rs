//! Winograd's minimal filtering for kernel gradients of 3x3. The gradient's pixels are divided into
//! patches of 2x2, which meet 4x4 input pixels. The nine taps take 16 products of each pair of
//! features instead of 36.
//!
//! At each of the 16 frequencies, the transformed input and the transformed gradient are matrices
//! `patches x features`, whose product over the patches is a matrix `inputs x outputs`. These sums,
//! all frequencies of a task's features, stay in the worker's scratch until the last block of
//! patches is done. Then each 4x4 frequencies yield 3x3 taps.

use super::area::even;
use super::dims::{ConvolutionDims, SpatialDimension};
use super::winograd::{Winograd, lines, most_rows, odd_lines, registers_of_sums, vectors};
use super::winograd_matrices::GradientTransform;
use crate::contraction::tile::{self, Tile};
use crate::tasks::Work;
use hlo::WindowDimension;
use shape::PrimitiveType;
use target::Target;

/// Plan of a kernel gradient by patches.
#[derive(Clone, Debug, PartialEq)]
pub struct WinogradGradientPlan {
    /// Register tiles of the products: the input features of most tiles, by vectors of output
    /// features.
    pub tile: Tile,
    /// The register tiles of a task's input features in order: (rows per tile, number of such
    /// tiles).
    pub rows: Vec<(i64, i64)>,
    /// Patches per image: lines of patches, and patches per line.
    pub patches: [i64; 2],
    /// Patches of the largest block. Each block has this many or one fewer.
    pub block: i64,
    /// Number of blocks into which the patches of all images are divided.
    pub blocks: i64,
    /// Input features and output features per task.
    pub features: [i64; 2],
    /// Layout of a worker's scratch.
    pub scratch: WinogradGradientScratch,
    /// The loops, with all features, for a worker that executes all tasks. It computes only once
    /// what each task would transform for itself.
    pub together: Option<Box<WinogradGradientPlan>>,
}

/// Layout of a worker's scratch, in bytes. A pixel of zeros is at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WinogradGradientScratch {
    /// Offset of the transformed input of a block, for a row of frequencies,
    /// `[frequency][patch][input feature]`.
    pub input: i64,
    /// Distance of patches in the transformed input.
    pub input_row: i64,
    /// Distance of frequencies in the transformed input.
    pub input_frequency: i64,
    /// Offset of the transformed gradient of a block, for a row of frequencies,
    /// `[frequency][patch][output feature]`.
    pub gradient: i64,
    /// Distance of patches in the transformed gradient.
    pub gradient_row: i64,
    /// Distance of frequencies in the transformed gradient.
    pub gradient_frequency: i64,
    /// Offset of the sums, `[frequency][input feature][output feature]`.
    pub sums: i64,
    /// Distance of input features in the sums.
    pub sums_row: i64,
    /// Distance of frequencies in the sums.
    pub sums_frequency: i64,
    /// Total size.
    pub bytes: i64,
}

/// Pixels of a gradient patch along each dimension.
const PATCH: i64 = GradientTransform::PIXELS;

/// Upper bounds of the features per task. With few features, the other features' transform, which
/// each task repeats, dominates; with many, the sums exceed the cache.
const MOST_FEATURES: [i64; 2] = [32, 128];

/// Minimum input features per task.
const FEWEST_FEATURES: i64 = 8;

/// Up to this many features stay together if no suitable divisor exists.
const FEATURES_IN_ONE: i64 = 64;

/// Lower and upper bound of the patches per block. The lower bound justifies moving the sums
/// through the cache.
const PATCHES: (i64, i64) = (16, 64);

/// Minimum gain, as a fraction of the direct sum's cost.
pub(super) const LEAST_GAIN: f64 = 0.1;

/// Fraction of the peak rate that a tile's multiply-adds reach; the rest of the time they wait for
/// operands and for the end of the loop.
const EFFICIENCY: f64 = 0.92;

impl WinogradGradientPlan {
    /// Patches of all images.
    pub fn all_patches(&self, dims: &ConvolutionDims) -> i64 {
        dims.inputs * self.patches[0] * self.patches[1]
    }

    /// Number of parts of the input features and of the output features.
    pub fn parts(&self, dims: &ConvolutionDims) -> [i64; 2] {
        [dims.batch / self.features[0], dims.outputs / self.features[1]]
    }

    /// Number of tasks of the kernel.
    pub fn tasks(&self, dims: &ConvolutionDims) -> i64 {
        self.parts(dims).iter().product()
    }

    /// Bytes of scratch for each worker.
    pub fn scratch_bytes(&self) -> i64 {
        self.together.as_ref().map_or(0, |plan| plan.scratch.bytes).max(self.scratch.bytes)
    }
}

/// Chooses tiles, blocks, and tasks, if the transform is possible and pays off.
pub(super) fn choose(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    allowed: Winograd,
    target: &Target,
) -> Option<WinogradGradientPlan> {
    if !matches!(accumulator, PrimitiveType::F32 | PrimitiveType::F64) || !is_possible(dims) {
        return None;
    }
    let element = accumulator.byte_size() as i64;
    let plan = in_tasks(dims, element, target)?;
    let pays = match allowed {
        Winograd::Never => false,
        Winograd::Small | Winograd::Large => {
            let (transformed, direct) = costs(dims, &plan, accumulator);
            transformed < direct * (1.0 - LEAST_GAIN)
        }
        Winograd::Forced(_) => true,
    };
    Some(plan).filter(|_| pays)
}

/// Costs of transformed patches and of the direct sums, in multiply-adds of vectors of a cache
/// line.
pub(super) fn costs(
    dims: &ConvolutionDims,
    plan: &WinogradGradientPlan,
    accumulator: PrimitiveType,
) -> (f64, f64) {
    let element = accumulator.byte_size() as i64;
    let one = plan.together.as_deref().unwrap_or(plan);
    (cost(dims, one, element), plain_cost(dims, element))
}

/// True if the window has 3x3 adjacent taps and moves by one pixel.
fn is_possible(dims: &ConvolutionDims) -> bool {
    let [lines, columns] = &dims.spatial[..] else { return false };
    let fits = |d: &SpatialDimension| {
        let w = d.window;
        let plain = WindowDimension {
            padding_low: w.padding_low,
            padding_high: w.padding_high,
            ..WindowDimension::of_size(w.size)
        };
        d.output == 3 && w == plain && w.padding_low.abs() <= 1 << 20
    };
    // Bounds on the extents keep values computed from them far from overflow.
    let is_bounded = |n: i64, most: i64| (1..=most).contains(&n);
    fits(lines)
        && fits(columns)
        && dims.groups == 1
        && is_bounded(dims.batch, 1 << 14)
        && is_bounded(dims.outputs, 1 << 14)
        && is_bounded(dims.inputs, 1 << 24)
        && [lines, columns].iter().all(|d| is_bounded(d.window.size, 1 << 18) && is_bounded(d.input, 1 << 18))
        && dims.inputs.saturating_mul(dims.taps()) < 1 << 32
}

/// Divides the features into tasks. Few features are halved if the work justifies several tasks.
fn in_tasks(dims: &ConvolutionDims, element: i64, target: &Target) -> Option<WinogradGradientPlan> {
    let features = [part(dims.batch, MOST_FEATURES[0])?, part(dims.outputs, MOST_FEATURES[1])?];
    let plan = lay_out(dims, features, element, target);
    let is_shared = Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks_of_processor() > 1;
    if plan.tasks(dims) > 1 || !is_shared || features[0] % 2 != 0 || features[0] < 2 * FEWEST_FEATURES {
        return Some(plan);
    }
    let half = lay_out(dims, [features[0] / 2, features[1]], element, target);
    // Compared with products of scalars, the transforms are cheap, and the transforms of all
    // features would not stay in registers.
    let together = (target.lanes(element as usize) > 1).then(|| Box::new(plan));
    Some(WinogradGradientPlan { together, ..half })
}

/// Lays out register tiles, blocks, and scratch of tasks with these features.
fn lay_out(
    dims: &ConvolutionDims,
    features: [i64; 2],
    element: i64,
    target: &Target,
) -> WinogradGradientPlan {
    let lanes = target.lanes(element as usize).min(tile::panel(features[1], element as usize) as u32);
    let vectors = if features[1] > i64::from(lanes) { 2 } else { 1 };
    let rows = even(features[0], most_rows(vectors, registers_of_sums(lanes, target)));
    let patches = [0, 1].map(|d| (dims.spatial[d].window.size + PATCH - 1) / PATCH);
    let all = dims.inputs * patches[0] * patches[1];
    let frequencies = GradientTransform::FREQUENCIES;
    // Rows are whole vectors, because they are read as such.
    let gradient_row = lines(features[1] * element);
    let input_row = odd_lines(features[0] * element, 16);
    // A row of frequencies is computed and used at once, four times for the same pixels. Both
    // arrays stay in the first-level cache.
    let at_once = GradientTransform::SIZE;
    let cache = i64::try_from(target.l1_bytes).unwrap_or(i64::MAX).min(1 << 30) / 3;
    let most = (cache / (2 * at_once * (input_row + gradient_row))).clamp(PATCHES.0, PATCHES.1);
    let blocks = (all + most - 1) / most;
    let block = (all + blocks - 1) / blocks;
    let mut end = 0;
    let mut take = |bytes: i64| {
        let first = end;
        end += lines(bytes);
        first
    };
    take(features[0].max(features[1]) * element);
    let input_frequency = odd_lines(block * input_row, 1);
    let input = take(at_once * input_frequency);
    let gradient_frequency = odd_lines(block * gradient_row, 1);
    let gradient = take(at_once * gradient_frequency);
    let sums_row = gradient_row;
    let sums_frequency = odd_lines(features[0] * sums_row, 1);
    let sums = take(frequencies * sums_frequency);
    let scratch = WinogradGradientScratch {
        input,
        input_row,
        input_frequency,
        gradient,
        gradient_row,
        gradient_frequency,
        sums,
        sums_row,
        sums_frequency,
        bytes: end,
    };
    let most_rows = rows.iter().map(|r| r.0).max().unwrap_or(1);
    let tile = Tile { rows: most_rows as u32, vectors, lanes, k_split: 1 };
    WinogradGradientPlan { tile, rows, patches, block, blocks, features, scratch, together: None }
}

/// Number of features per task: all, or a divisor of `features` that is at most `most`.
fn part(features: i64, most: i64) -> Option<i64> {
    if features <= most {
        return Some(features);
    }
    let divisor = (most / 2 + 1..=most).rev().find(|n| features % n == 0);
    divisor.or((features <= FEATURES_IN_ONE).then_some(features))
}

/// Cost of the direct sums, in multiply-adds of vectors of a cache line.
fn plain_cost(dims: &ConvolutionDims, element: i64) -> f64 {
    let products = dims.inputs as f64 * dims.batch as f64 * vectors(dims.outputs, element);
    // Pairs of a tap and a pixel, without those in the padding.
    let pairs = |d: &SpatialDimension| {
        let w = d.window;
        let taps = (0..3).map(|t| {
            let first = (w.padding_low - t).clamp(0, w.size);
            (d.input + w.padding_low - t).clamp(first, w.size) - first
        });
        taps.sum::<i64>() as f64
    };
    products * dims.spatial.iter().map(pairs).product::<f64>() / EFFICIENCY
}

/// Cost of the transformed patches.
fn cost(dims: &ConvolutionDims, plan: &WinogradGradientPlan, element: i64) -> f64 {
    let frequencies = GradientTransform::FREQUENCIES as f64;
    let (input_cost, gradient_cost, sums_cost) = GradientTransform::costs();
    let patches = plan.all_patches(dims) as f64;
    let parts = plan.parts(dims).map(|n| n as f64);
    let [inputs, outputs] = plan.features.map(|n| vectors(n, element));
    // Each task repeats the transforms of the features that it shares with other tasks.
    let transforms = parts[0] * parts[1] * (input_cost * inputs + gradient_cost * outputs);
    let sums = frequencies * dims.batch as f64 * parts[1] * outputs;
    let products = patches * sums / EFFICIENCY + plan.blocks as f64 * sums * 3.0;
    patches * transforms + products + dims.batch as f64 * parts[1] * outputs * sums_cost
}

impl std::fmt::Display for WinogradGradientPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows = self.rows.iter().map(|r| r.0.to_string()).collect::<Vec<_>>();
        let [inputs, outputs] = self.features;
        write!(f, ", F(3x3,{PATCH}x{PATCH}), {} blocks of {} patches, ", self.blocks, self.block)?;
        write!(f, "tiles {}x{} of {} lanes, ", rows.join("/"), self.tile.vectors, self.tile.lanes)?;
        write!(f, "tasks of {inputs} by {outputs} features")?;
        if self.together.is_some() { write!(f, ", all at once by one worker") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::OpenDimensions;

    fn same(images: i64, pixels: i64, inputs: i64, outputs: i64) -> ConvolutionDims {
        let window = WindowDimension { padding_low: 1, padding_high: 1, ..WindowDimension::of_size(pixels) };
        let spatial = vec![SpatialDimension { input: pixels, output: 3, window }; 2];
        ConvolutionDims {
            batch: inputs,
            groups: 1,
            inputs: images,
            outputs,
            spatial,
            open: OpenDimensions::None,
        }
    }

    fn of(dims: &ConvolutionDims, allowed: Winograd, cpu: &str) -> Option<WinogradGradientPlan> {
        let target = Target::new("x86_64-pc-linux", cpu, "").expect("a valid triple");
        choose(dims, PrimitiveType::F32, allowed, &target)
    }

    #[test]
    fn patches_are_used_where_they_pay() {
        // (images, pixels, inputs, outputs), tasks; 0 if the direct sum is cheaper.
        let table = [
            ((32, 32, 16, 16), 2),
            ((32, 16, 32, 32), 2),
            ((32, 8, 64, 64), 2),
            ((8, 28, 128, 128), 4),
            ((8, 14, 256, 256), 16),
            // Few features: the transforms cost what they save.
            ((32, 32, 3, 16), 0),
            ((32, 32, 4, 4), 0),
            // A few patches do not pay for moving the sums.
            ((1, 4, 64, 64), 0),
        ];
        for ((images, pixels, inputs, outputs), expected) in table {
            let dims = same(images, pixels, inputs, outputs);
            let tasks = of(&dims, Winograd::Small, "sapphirerapids").map_or(0, |plan| plan.tasks(&dims));
            assert_eq!(tasks, expected, "{images} {pixels} {inputs} {outputs}");
            assert!(of(&dims, Winograd::Never, "sapphirerapids").is_none());
        }
    }

    #[test]
    fn other_windows_have_no_patches() {
        let plain = same(8, 16, 32, 32);
        let change = |change: fn(&mut SpatialDimension)| {
            let mut dims = plain.clone();
            change(&mut dims.spatial[1]);
            of(&dims, Winograd::Forced(2), "x86-64-v3").is_some()
        };
        assert!(change(|_| {}));
        assert!(change(|d| d.window.padding_low = 2));
        assert!(!change(|d| d.output = 5));
        assert!(!change(|d| d.window.stride = 2));
        assert!(!change(|d| d.window.window_dilation = 2));
        assert!(of(&ConvolutionDims { inputs: 1 << 40, ..plain.clone() }, Winograd::Forced(2), "").is_none());
        // No divisor of 257 is a suitable number of features per task.
        assert!(of(&ConvolutionDims { batch: 257, ..plain }, Winograd::Forced(2), "").is_none());
    }

    #[test]
    fn tiles_fit_the_registers_and_blocks_the_cache() {
        for cpu in ["x86-64", "x86-64-v3", "x86-64-v4", "sapphirerapids"] {
            let target = Target::new("x86_64-pc-linux", cpu, "").expect("a valid triple");
            for (images, pixels, inputs, outputs) in
                [(32, 32, 16, 16), (32, 7, 512, 512), (3, 9, 5, 7), (1, 30, 24, 40), (8, 14, 37, 256)]
            {
                let dims = same(images, pixels, inputs, outputs);
                let plan = of(&dims, Winograd::Forced(2), cpu).expect("possible");
                let tile = plan.tile;
                assert!(tile.rows * tile.vectors + tile.vectors < target.vector_registers, "{cpu} {tile:?}");
                assert_eq!(plan.rows.iter().map(|r| r.0 * r.1).sum::<i64>(), plan.features[0]);
                let [inputs, outputs] = plan.parts(&dims);
                assert_eq!(
                    [inputs * plan.features[0], outputs * plan.features[1]],
                    [dims.batch, dims.outputs]
                );
                assert_eq!(plan.block, (plan.all_patches(&dims) + plan.blocks - 1) / plan.blocks);
                assert!(plan.scratch.bytes <= 1 << 20, "{cpu} {dims:?} {:?}", plan.scratch);
            }
        }
    }
}
