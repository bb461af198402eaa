//! Dots: chooses loops, tiles, and packed operands.
//!
//! The rules follow measurements: rows of the left operand are best read in place as long as a tile
//! has at most eight of them. Columns of the right operand are best read as panels of a few
//! vectors. Eight independent accumulators hide the latency of a multiply-add. Evenly divided rows
//! are faster than full tiles and a remainder.

mod candidates;
mod cut;
mod dims;
mod display;
mod order;
mod pack;
mod rules;
mod shared;

pub use dims::{DotDims, Extent};
pub use shared::constant_panels;

pub(crate) use candidates::{candidate, candidates};
pub(crate) use rules::reason;

use order::TileOrder;
use rules::RightOperand;

use super::Planner;
use super::bias::Bias;
use super::block_float::BlockFloat;
use super::epilogue::check_epilogue;
use super::extents::DotShape;
use super::grouping::{FactorTypes, Grouping, tiles};
use super::operands::{constant_operand, is_read_once};
use super::panels::PanelLayout;
use super::tile::{self, Tile, accumulator};
use super::weights::{WeightArrays, Weights};
use crate::fusion::{Fusion, Position};
use crate::in_place::overwritable;
use crate::kernel_plan::KernelPlan;
use crate::packing::{PackedConstant, Packing};
use crate::tasks::{self, Work};
use bytes::Bytes;
use hlo::{InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};
use target::Target;

/// Plan of a dot.
#[derive(Clone, Debug, PartialEq)]
pub struct DotPlan {
    /// The dot.
    pub hero: InstructionId,
    /// The instruction whose values the sums become: the dot, or the addition of a bias with which
    /// they begin. The numbers are then the second packed constant.
    pub sums: InstructionId,
    /// Its extents.
    pub shape: DotShape,
    /// Its dimensions in both operands.
    pub dims: DotDims,
    /// The type of products and sums; operands of another type are converted when they are packed.
    pub accumulator: PrimitiveType,
    /// The type of the left operand in memory.
    pub lhs_type: PrimitiveType,
    /// The type of the right operand in memory.
    pub rhs_type: PrimitiveType,
    /// Groups that take the place of single summands in [`Self::shape`] and in the panels.
    pub grouping: Option<Grouping>,
    /// Form of constant weights in few bits, which the kernel widens.
    pub weights: Option<Weights>,
    /// The form in scratch of a single row that is multiplied by weights of four bits.
    pub block_float: Option<BlockFloat>,
    /// Index of the fusion's operand that is the left one.
    pub lhs_operand: usize,
    /// Index of the fusion's operand that is the right one.
    pub rhs_operand: usize,
    /// Packing of the left operand: in place, or as `[m][k]` in scratch, one product at a time.
    pub lhs_packing: Packing,
    /// Its loops.
    pub loops: DotLoops,
    /// Number of parts into which each loop of [`Self::steps`] is divided, for tasks.
    pub cuts: [i64; 3],
}

/// The loops of a contraction. Except in tiles, the right operand is read in place or as `[n][k]`
/// in scratch, one product at a time.
#[derive(Clone, Debug, PartialEq)]
pub enum DotLoops {
    /// Tiles of rows and vectors of columns, accumulated over the summands.
    Tiled(TiledDot),
    /// Vectors run along the summands, a few results at a time.
    Rows {
        /// Rows and columns that are computed together; `vectors` counts columns here.
        tile: Tile,
        /// Packing of the right operand.
        rhs_packing: Packing,
    },
    /// Complex numbers, one result after another.
    Complex {
        /// Packing of the right operand.
        rhs_packing: Packing,
    },
}

/// Loops over tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct TiledDot {
    /// Packing of the right operand: in place, or as panels. Scratch holds one panel at a time; a
    /// constant holds all panels.
    pub rhs_packing: Packing,
    /// True if all panels are in scratch at the same time: a kernel of several contractions packs
    /// them and determines their place.
    pub keeps_panels: bool,
    /// Panels of the packed right operand of one product. Constant panels are one cache line wide,
    /// the same on every target; panels in scratch are as wide as a tile.
    pub panels: PanelLayout,
    /// Shape of a tile.
    pub tile: Tile,
    /// Summands per iteration of a tile's loop.
    pub unroll: i64,
    /// Number of summands that are added up before their sum is added to the others, because a long
    /// chain of additions loses precision.
    pub sum_block: i64,
    /// True if an iteration reads neighbors in a left row as one vector, of which each summand
    /// takes a lane.
    pub lhs_by_lane: bool,
    /// True if panels are the outer loop and rows the inner one. This is always the case if each
    /// panel is packed before its use.
    pub panels_outside: bool,
    /// Summands of one pass over the tiles. If there are several passes, sums are kept in the
    /// result's memory from pass to pass, and a panel's part of a pass stays in the cache for all
    /// rows.
    pub k_block: i64,
    /// True if tiles prefetch the next panel of the right operand into the second-level cache while
    /// they compute.
    pub prefetches: bool,
    /// True if the only row requests the lines of its stream of panels before it reads them. They
    /// may be on memory pages that the second-level cache or the TLB does not keep from run to run.
    pub reads_ahead: bool,
    /// If whole rows of the result are written one after another, the largest number of parts into
    /// which the columns are divided, so that a part of the right operand stays in the second-level
    /// cache for all rows; otherwise 0.
    pub column_parts: i64,
    /// True if consecutive tasks share rows, false if they share columns.
    pub tasks_by_rows: bool,
    /// Rows that the smaller tiles have less than the others.
    pub row_step: i64,
    /// Columns from the first panel of a tile to the next one. Neighbors have the panels' width as
    /// their distance. If it is larger, a tile takes panels from all parts of the matrix.
    pub panel_distance: i64,
}

impl DotPlan {
    /// True if the right operand is read in a narrower type than that of the sums.
    pub fn widens_right(&self) -> bool {
        self.rhs_packing() == Packing::None && self.rhs_type != self.accumulator
    }

    /// The loops over tiles, if the dot is tiled.
    pub fn tiled(&self) -> Option<&TiledDot> {
        match &self.loops {
            DotLoops::Tiled(tiled) => Some(tiled),
            DotLoops::Rows { .. } | DotLoops::Complex { .. } => None,
        }
    }

    /// Packing of the right operand.
    pub fn rhs_packing(&self) -> Packing {
        match self.loops {
            DotLoops::Tiled(TiledDot { rhs_packing, .. })
            | DotLoops::Rows { rhs_packing, .. }
            | DotLoops::Complex { rhs_packing } => rhs_packing,
        }
    }

    /// Number of rows that are computed together.
    pub fn tile_rows(&self) -> i64 {
        match self.loops {
            DotLoops::Tiled(TiledDot { tile, .. }) | DotLoops::Rows { tile, .. } => i64::from(tile.rows),
            DotLoops::Complex { .. } => 1,
        }
    }

    /// True if consecutive tasks share rows, false if they share columns.
    pub fn tasks_by_rows(&self) -> bool {
        self.tiled().is_some_and(|tiled| tiled.tasks_by_rows)
    }

    /// True if all panels of the right operand are in scratch at the same time.
    pub fn keeps_panels(&self) -> bool {
        self.tiled().is_some_and(|tiled| tiled.keeps_panels)
    }

    /// Bytes of scratch for the left operand.
    pub fn lhs_scratch_bytes(&self) -> u64 {
        match (self.block_float, self.lhs_packing) {
            (Some(row), _) => row.row_bytes(self.shape.k).next_multiple_of(64),
            (None, Packing::Scratch) => self.bytes(self.most_rows(), self.shape.k),
            (None, _) => 0,
        }
    }

    /// Numbers of steps: products, steps of columns, steps of rows. A step of columns covers one
    /// tile, or the columns that one pass along a row computes together; the last one may be
    /// narrower. A step of rows covers a tile or a row.
    pub fn steps(&self) -> [i64; 3] {
        let DotShape { batch, m, n, .. } = self.shape;
        let steps = |all: i64, together: i64| (all + together - 1) / together.max(1);
        let columns = match self.loops {
            DotLoops::Tiled(TiledDot { tile, .. }) => steps(n, tile.columns()),
            DotLoops::Rows { tile, .. } => steps(n, i64::from(tile.vectors)),
            DotLoops::Complex { .. } => 1,
        };
        [batch, columns, steps(m, self.tile_rows())]
    }

    /// Upper bound of the rows that a task computes.
    pub fn most_rows(&self) -> i64 {
        let ([.., steps], [.., parts]) = (self.steps(), self.cuts);
        self.shape.m.min((steps + parts - 1) / parts * self.tile_rows())
    }

    /// Bytes of scratch for the right operand.
    pub fn rhs_scratch_bytes(&self) -> u64 {
        let columns = match &self.loops {
            _ if self.rhs_packing() != Packing::Scratch => return 0,
            DotLoops::Tiled(tiled) if tiled.keeps_panels => tiled.panels.padded_columns(),
            DotLoops::Tiled(tiled) => tiled.tile.columns(),
            DotLoops::Rows { .. } | DotLoops::Complex { .. } => self.shape.n,
        };
        self.bytes(columns, self.shape.k)
    }

    /// Bytes rounded up to 64, so that the next array is aligned.
    fn bytes(&self, rows: i64, columns: i64) -> u64 {
        let elements = (rows as u64).saturating_mul(columns as u64);
        elements.saturating_mul(self.accumulator.byte_size() as u64).div_ceil(64).saturating_mul(64)
    }
}

/// A dot whose loops have not been chosen.
struct Dot<'m> {
    hero: InstructionId,
    shape: DotShape,
    dims: DotDims,
    accumulator: PrimitiveType,
    lhs_type: PrimitiveType,
    rhs_type: PrimitiveType,
    grouping: Option<Grouping>,
    weights: Option<(Weights, WeightArrays<'m>)>,
    block_float: Option<BlockFloat>,
    lhs_operand: usize,
    rhs_operand: usize,
    /// True if the right operand's elements are widened each time that they are read.
    widens_rhs: bool,
    /// True if the right operand is a constant that nothing else reads.
    rhs_is_constant: bool,
    /// The values of the right operand, if it is a constant.
    rhs_values: Option<&'m Literal>,
    /// True if unfinished sums may be kept in the result's memory.
    keeps_sums: bool,
}

/// Plans a dot that is part of a larger kernel, which keeps all panels of a packed operand.
pub(crate) fn plan_part(fusion: &Fusion<'_>, hero: InstructionId, target: &Target) -> Result<DotPlan> {
    let dot = Dot { rhs_is_constant: false, keeps_sums: false, ..Dot::of(fusion, hero)? };
    if dot.weights.is_some() {
        return Err(Error::unsupported("weights in few bits in a kernel of several contractions"));
    }
    let mut loops = dot.loops(target);
    if let DotLoops::Tiled(tiled) = &mut loops {
        tiled.prefetches = false;
        tiled.column_parts = 0;
        tiled.panels_outside = true;
        tiled.keeps_panels = tiled.rhs_packing == Packing::Scratch;
    }
    Ok(dot.with_loops(loops))
}

/// Limits the rows of a tile.
pub(crate) fn limit_rows(plan: &mut DotPlan, max_rows: u32, target: &Target) {
    if let DotLoops::Tiled(tiled) = &mut plan.loops {
        tiled.tile = tile::with_rows(tiled.tile, plan.shape.m, max_rows);
        tiled.unroll = tile::unroll(tiled.tile, tiled.lhs_by_lane, target);
    }
}

/// Plans a body of a dot and elementwise work on its result.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    id: InstructionId,
    planner: Planner<'_>,
) -> Result<KernelPlan<DotPlan>> {
    let target = planner.target;
    let dot = Dot::of(fusion, id)?.in_groups(target).in_block_float(target);
    let (lhs_operand, rhs_operand, constant) = (dot.lhs_operand, dot.rhs_operand, dot.rhs_values);
    let weights = dot.weights.clone();
    let loops = dot.loops(target);
    let other = planner.candidate.and_then(|candidate| candidates::loops(&dot, &loops, candidate, target));
    let mut plan = dot.with_loops(other.unwrap_or(loops));
    let shape = |k: usize| fusion.body[fusion.body[id].operands()[k]].shape().expect_array();
    let (lhs, rhs, result) = (shape(0), shape(1), fusion.body[id].shape().expect_array());
    let mut packed = Vec::new();
    let bias = take_bias(fusion, &mut plan);
    let tiled = plan.tiled().filter(|tiled| tiled.rhs_packing == Packing::Constant);
    if let (Some(tiled), Some(literal)) = (tiled, constant) {
        let bytes = match (&weights, plan.grouping) {
            (Some((form, arrays)), _) => {
                pack::weight_panels(*form, arrays, &plan, tiled.panels, planner.packings)
            }
            (None, Some(grouping)) => {
                pack::group_panels(literal, &plan, tiled.panels, grouping, planner.packings)
            }
            (None, None) => pack::panels(literal, &plan, tiled.panels, planner.packings),
        };
        let numbers = bias.zip(plan.grouping).map(|(bias, form)| bias.packed(form, tiled.panels, &bytes));
        packed.push(PackedConstant { operand: Some(rhs_operand), bytes });
        packed.extend(numbers);
        // The panels contain the scales.
        let scales = weights.and_then(|(_, arrays)| arrays.scale_operand());
        packed.extend(scales.map(|operand| PackedConstant { operand: Some(operand), bytes: Bytes::new() }));
    }
    let mut work = Work::of_elements(fusion, result.element_count());
    let DotShape { batch, m, n, k } = plan.shape;
    let products =
        [batch, m, n, k].iter().fold(1u64, |all, &extent| all.saturating_mul(extent.max(0) as u64));
    work.operations = work.operations.saturating_add(products);
    work.bytes = work.bytes.max(lhs.byte_size().saturating_add(rhs.byte_size()));
    let stays =
        constant.is_some() || matches!(fusion.caller[fusion.operand(rhs_operand)].op(), Op::Parameter { .. });
    let has_open_sizes = !fusion.module.size_parameters().is_empty();
    cut::cut(&mut plan, work.tasks(target), stays, has_open_sizes, target.l2_bytes);
    let tasks = tasks::count(&plan.cuts);
    let bytes = plan.lhs_scratch_bytes().saturating_add(plan.rhs_scratch_bytes());
    // A dot with no summands packs nothing, but its kernel still needs an address to pack to.
    let is_packed = [plan.lhs_packing, plan.rhs_packing()].contains(&Packing::Scratch);
    let bytes = if is_packed || plan.block_float.is_some() { bytes.max(1) } else { bytes };
    let (scratch_bytes, worker_scratch_bytes) = if tasks > 1 { (0, bytes) } else { (bytes, 0) };
    // The epilogue reads its operands only at the element that it computes. The product reads all
    // of its operands until the end.
    let mut may_overwrite = overwritable(fusion);
    let is_one_pass = plan.tiled().is_none_or(|tiled| tiled.k_block >= plan.shape.k);
    may_overwrite.retain(|k| is_one_pass && ![lhs_operand, rhs_operand].contains(k));
    let plan = KernelPlan::new(plan);
    Ok(KernelPlan { packed, scratch_bytes, tasks, worker_scratch_bytes, may_overwrite, ..plan })
}

/// The operand, with its type, that the kernel reads as the right one and widens; `None` if the
/// right operand is in memory or constant.
fn narrow_operand(fusion: &Fusion<'_>, dot: InstructionId) -> Option<(usize, PrimitiveType)> {
    let Position::Inside = fusion.position(fusion.body[dot].operands()[1]) else { return None };
    let stored = hlo::narrow_operand(fusion.body, dot)?;
    let Position::Operand(number) = fusion.position(stored) else { return None };
    let element_type = fusion.body[stored].shape().as_array()?.element_type;
    constant_operand(fusion, number).is_none().then_some((number, element_type))
}

/// Makes sums begin with the bias that follows, in place of corrections in the headers of panels.
fn take_bias<'m>(fusion: &Fusion<'m>, plan: &mut DotPlan) -> Option<Bias<'m>> {
    let DotLoops::Tiled(tiled) = &mut plan.loops else { return None };
    if tiled.rhs_packing != Packing::Constant || plan.shape.batch != 1 || plan.weights.is_some() {
        return None;
    }
    let bias = Bias::of(fusion, plan.hero, plan.shape.n, plan.grouping)?;
    tiled.panels.header = 0;
    plan.sums = bias.sum;
    Some(bias)
}

impl<'m> Dot<'m> {
    /// Reads the dot of a body.
    fn of(fusion: &Fusion<'m>, id: InstructionId) -> Result<Self> {
        let Op::Dot { dot_dimension_numbers: numbers } = fusion.body[id].op() else {
            return Err(Error::internal("expected a dot"));
        };
        check_epilogue(fusion, id)?;
        let number = |k: usize| match fusion.position(fusion.body[id].operands()[k]) {
            Position::Operand(number) => Ok(number),
            Position::Inside => Err(Error::internal("operand of a dot is not in memory")),
        };
        let array = |k: usize| fusion.body[fusion.body[id].operands()[k]].shape().expect_array();
        let (lhs_operand, lhs, rhs) = (number(0)?, array(0), array(1));
        let dims = DotDims::new(lhs, rhs, numbers);
        let narrow = narrow_operand(fusion, id);
        let weights = if narrow.is_some() { None } else { Weights::of(fusion, id, dims.shape())? };
        let rhs_operand = match (narrow, &weights) {
            (Some((operand, _)), _) => operand,
            (None, Some((_, arrays))) => arrays.operand,
            (None, None) => number(1)?,
        };
        let result = fusion.body[id].shape().expect_array();
        if [lhs, rhs, result].iter().any(|s| s.element_type == PrimitiveType::Pred) {
            return Err(Error::unsupported("opcode dot of pred; convert its operands to an integer type"));
        }
        // The kernel never reads a packed operand in its own layout, so nothing else in the kernel
        // may read it.
        let rhs_values = constant_operand(fusion, rhs_operand);
        let accumulator = accumulator(result.element_type);
        let stored = fusion.shape().as_array().map(|shape| shape.element_type);
        // Unfinished sums are kept at the result's element with the same index.
        let keeps_sums = stored == Some(accumulator) && fusion.keeps_numbers();
        Ok(Self {
            hero: id,
            shape: dims.shape(),
            dims,
            accumulator,
            lhs_type: lhs.element_type,
            rhs_type: match (narrow, &weights) {
                (Some((_, stored)), _) => stored,
                (None, Some((weights, _))) => weights.stored,
                (None, None) => rhs.element_type,
            },
            widens_rhs: narrow.is_some(),
            grouping: None,
            lhs_operand,
            rhs_operand,
            rhs_is_constant: rhs_values.is_some() && is_read_once(fusion, rhs_operand),
            rhs_values,
            keeps_sums: keeps_sums && result.element_type == accumulator && weights.is_none(),
            weights,
            block_float: None,
        })
    }

    /// The same dot in groups of summands, if the target sums their products and the operands'
    /// layout allows it.
    fn in_groups(self, target: &Target) -> Self {
        let types = [self.lhs_type, self.rhs_type, self.accumulator];
        let is_along = self.dims.lhs_is_strided() && self.dims.lhs_k_stride() == 1;
        let grouping = Grouping::of(
            FactorTypes::new(types, self.rhs_values, target),
            self.shape.k,
            [self.shape.m, self.shape.n],
            target,
        );
        let grouping = self.in_tiles(target).or(grouping);
        let Some(grouping) = grouping.filter(|_| self.rhs_is_constant && is_along && self.weights.is_none())
        else {
            return self;
        };
        let shape = DotShape { k: grouping.groups(self.shape.k), ..self.shape };
        Self { grouping: Some(grouping), shape, keeps_sums: false, ..self }
    }

    /// Groups whose sums are in tile registers, if they are faster there. Rows and columns must be
    /// those of the whole product.
    fn in_tiles(&self, target: &Target) -> Option<Grouping> {
        let DotShape { m, n, k, .. } = self.shape;
        let types = [self.lhs_type, self.rhs_type, self.accumulator];
        let types = FactorTypes::new(types, self.rhs_values, target);
        let grouping = Grouping::in_tiles(types, k, n, target)?;
        let lanes = target.lanes(self.accumulator.byte_size());
        tiles::pay_off([m, n, grouping.groups(k)], lanes).then_some(grouping)
    }

    /// The same dot with a single row in block floating point, if that is worthwhile.
    fn in_block_float(self, target: &Target) -> Self {
        let is_row =
            self.shape.batch == 1 && self.shape.m == 1 && self.lhs_fits() && self.dims.lhs_k_stride() == 1;
        let form = self.weights.as_ref().filter(|_| is_row);
        let block_float = form.and_then(|&(weights, _)| BlockFloat::of(weights, self.lhs_type, target));
        Self { block_float, ..self }
    }

    /// The target without what products of groups do not use, if there are groups.
    fn group_target(&self, target: &Target) -> Option<Target> {
        (self.grouping.is_some() || self.block_float.is_some()).then(|| target.for_groups())
    }

    /// Chooses loops, tile, and packing.
    fn loops(&self, target: &Target) -> DotLoops {
        let groups = self.group_target(target);
        let target = groups.as_ref().unwrap_or(target);
        let rhs_is_constant = self.rhs_is_constant;
        let DotShape { m, n, k, .. } = self.shape;
        let (lhs_fits, rhs_fits) = (self.lhs_fits(), self.rhs_fits());
        let rhs_packing = if rhs_fits { Packing::None } else { Packing::Scratch };
        if self.accumulator.is_complex() {
            return DotLoops::Complex { rhs_packing };
        }
        let size = self.accumulator.byte_size();
        let lanes = target.lanes(size);
        let unit_k = |fits: bool, stride: i64| !fits || stride == 1 || k == 1;
        let along_k =
            unit_k(lhs_fits, self.dims.lhs_k_stride()) && unit_k(rhs_fits, self.dims.rhs_k_stride());
        // A panel pays off if several rows read it, or if it is packed at compile time.
        let max_rows = if k >= i64::from(lanes) * MANY_VECTORS { tile::MOST_ROWS_ALONG_K } else { 2 };
        let few_rows = m <= max_rows && self.dims.rhs_n_stride() != 1 && !rhs_is_constant;
        let is_plain = self.grouping.is_none() && self.weights.is_none();
        if is_plain && along_k && k >= i64::from(lanes) && (n == 1 || few_rows) {
            return DotLoops::Rows { tile: tile::row_dot(self.shape, size, target), rhs_packing };
        }
        let along_row = !lhs_fits || self.dims.lhs_k_stride() == 1;
        let has_lanes = self.accumulator.is_floating_point() || self.grouping.is_some();
        let has_lanes = has_lanes && self.weights.is_none();
        let has_lanes = has_lanes && !self.grouping.is_some_and(Grouping::takes_whole_vectors);
        let lhs_by_lane = along_row && m > 1 && has_lanes && tile::takes_lanes(target);
        let access = tile::Access { rhs_streams: self.streams(target), lhs_by_lane };
        let mut tile = tile::choose_with(m, n, size, access, target);
        if self.grouping.is_some_and(Grouping::is_in_tiles) {
            tile = tiles::tile(m, n, tile.lanes);
        } else if let Some(grouping) = self.grouping {
            tile = grouping.limited(tile, m, target);
            tile = tile.in_one_stream(self.is_one_stream(tile, target));
        }
        if let Some((weights, _)) = &self.weights {
            tile = weights.limited(tile, m, target);
        }
        let lhs_by_lane = lhs_by_lane && k >= i64::from(tile.lanes) && tile.lanes == lanes && lanes > 1;
        let right = self.right_operand(tile, target);
        let (panels_outside, _) = self.order(tile, &right, target);
        let (k_block, _) = self.pass(tile, right.packing, target);
        let RightOperand { packing: rhs_packing, column_parts, .. } = right;
        let order = TileOrder { tile, rhs_packing, lhs_by_lane, panels_outside, column_parts, k_block };
        DotLoops::Tiled(order.lay_out(self, target))
    }

    /// The plan with these loops.
    fn with_loops(self, loops: DotLoops) -> DotPlan {
        let lhs_packing = if self.lhs_fits() { Packing::None } else { Packing::Scratch };
        let Self { hero, shape, dims, accumulator, lhs_type, rhs_type, lhs_operand, rhs_operand, .. } = self;
        let (grouping, block_float) = (self.grouping, self.block_float);
        let weights = self.weights.map(|(weights, _)| weights);
        DotPlan {
            hero,
            sums: hero,
            shape,
            dims,
            accumulator,
            lhs_type,
            rhs_type,
            grouping,
            weights,
            block_float,
            lhs_operand,
            rhs_operand,
            lhs_packing,
            loops,
            cuts: [1; 3],
        }
    }

    /// True if the left operand can be read in place.
    fn lhs_fits(&self) -> bool {
        (self.grouping.is_some() || self.lhs_type == self.accumulator) && self.dims.lhs_is_strided()
    }

    /// True if the right operand can be read in place, by strides.
    fn rhs_fits(&self) -> bool {
        (self.rhs_type == self.accumulator || self.widens_rhs) && self.dims.rhs_is_strided()
    }

    /// True if tiles can read the right operand in place.
    fn is_in_place(&self) -> bool {
        self.rhs_fits() && (self.dims.rhs_n_stride() == 1 || self.shape.n == 1)
    }

    /// True if the right operand comes from beyond the second-level cache. In a program, other
    /// kernels evict a constant from it between calls.
    fn streams(&self, target: &Target) -> bool {
        self.rhs_bytes() > target.l2_bytes / if self.rhs_is_constant { 16 } else { 2 }
    }

    /// Number of summands that are added up in registers before the sum joins that of the preceding
    /// summands. Only a single row is blocked: its few sums leave registers free.
    fn sum_block(&self) -> i64 {
        const BLOCK: i64 = 64;
        let DotShape { m, k, .. } = self.shape;
        let is_long = m == 1 && k >= 4 * BLOCK && self.accumulator.is_floating_point();
        if is_long { BLOCK } else { k }
    }

    /// Bytes of one product's right operand.
    fn rhs_bytes(&self) -> u64 {
        let elements = (self.shape.n as u64).saturating_mul(self.shape.k as u64);
        let size = self.accumulator.byte_size() as u64;
        elements.saturating_mul(self.grouping.map_or(size, |grouping| grouping.bytes().unsigned_abs()))
    }
}

/// Number of vectors of summands beside which the final addition of a sum's lanes is negligible.
const MANY_VECTORS: i64 = 8;
