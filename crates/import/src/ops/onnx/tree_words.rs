//! Trees as tables of words, in which all trees of all rows take a step at a time.
//!
//! A word states the test of a node and where its children are: the first one at a distance, the
//! second one after that. So a step looks up a word and the value that it tests. A leaf, whose
//! distance is 0, has its number in place of a threshold.

use crate::node::context::NodeContext;
use crate::ops::onnx::tree_nodes::{Ensemble, Mode, direction};
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType, Shape};
use std::collections::{BTreeSet, VecDeque};
use support::Result;

/// Where the parts of a word are, from the lowest bit: distance, feature, mode, and what NaN means.
struct Fields {
    feature: u32,
    mode: u32,
    tracks: u32,
    modes: Vec<Mode>,
    /// Bits of a word.
    count: u32,
}

/// Trees that are walked together.
pub(super) struct Words {
    fields: Fields,
    tests: Vec<u32>,
    /// Thresholds, and the numbers of leaves.
    numbers: Vec<f64>,
    roots: Vec<i32>,
    depth: usize,
}

/// Fewest rows that fill a vector.
const MANY_ROWS: i64 = 8;

/// Bits that hold a number.
fn bits(largest: usize) -> u32 {
    usize::BITS - largest.leading_zeros()
}

impl Words {
    /// The words of trees with these roots. `number_of` is the number of a leaf.
    ///
    /// Returns `None` if nodes share children, or if a word has too few bits.
    pub(super) fn of(
        ensemble: &Ensemble,
        roots: &[usize],
        number_of: &mut dyn FnMut(usize) -> f64,
    ) -> Option<Self> {
        let mut order: Vec<usize> = Vec::new();
        let mut firsts = Vec::new();
        let mut distances: Vec<u32> = Vec::new();
        let mut seen = BTreeSet::new();
        for &root in roots {
            firsts.push(i32::try_from(order.len()).ok()?);
            let mut queue = VecDeque::from([root]);
            // The place of the next node that is not in the queue yet.
            let mut next = order.len() + 1;
            while let Some(node) = queue.pop_front() {
                if !seen.insert(node) {
                    return None;
                }
                let place = order.len();
                order.push(node);
                if ensemble.nodes[node].is_leaf() {
                    distances.push(0);
                } else {
                    distances.push(u32::try_from(next - place).ok()?);
                    queue.extend(ensemble.nodes[node].children());
                    next += 2;
                }
            }
        }
        let tests = || order.iter().map(|&node| &ensemble.nodes[node]).filter(|node| !node.is_leaf());
        let mut modes: Vec<Mode> = Vec::new();
        for node in tests() {
            if !modes.contains(&node.mode) {
                modes.push(node.mode);
            }
        }
        let feature = bits(distances.iter().copied().max()? as usize);
        let mode = feature + bits(tests().map(|node| node.feature as usize).max().unwrap_or(0));
        let tracks = mode + bits(modes.len().saturating_sub(1));
        let count = tracks + u32::from(tests().any(|node| node.tracks_true));
        if count > u32::BITS {
            return None;
        }
        let mut words = Vec::with_capacity(order.len());
        let mut numbers = Vec::with_capacity(order.len());
        for (&node, distance) in order.iter().zip(distances) {
            let own = &ensemble.nodes[node];
            if own.is_leaf() {
                words.push(0);
                numbers.push(number_of(node));
                continue;
            }
            let position = modes.iter().position(|&mode| mode == own.mode).unwrap_or_default() as u64;
            let parts = (u64::from(distance))
                | (own.feature as u64) << feature
                | position << mode
                | u64::from(own.tracks_true) << tracks;
            words.push(parts as u32);
            numbers.push(own.threshold);
        }
        let fields = Fields { feature, mode, tracks, modes, count };
        Some(Self { fields, tests: words, numbers, roots: firsts, depth: ensemble.depth(roots) })
    }

    /// The trees with their tables: words of thresholds and tests, or for doubles tests and
    /// thresholds.
    pub(super) fn placed(self, cx: &mut NodeContext<'_, '_>, element_type: PrimitiveType) -> Walk {
        let count = self.tests.len() as i64;
        let tables = if element_type == PrimitiveType::F64 {
            let tests = Literal::from_elements(&[count], &self.tests);
            vec![tests, Literal::from_elements(&[count], &self.numbers)]
        } else {
            let word =
                |(&test, &number): (&u32, &f64)| u64::from((number as f32).to_bits()) << 32 | u64::from(test);
            let words: Vec<u64> = self.tests.iter().zip(&self.numbers).map(word).collect();
            vec![Literal::from_elements(&[count], &words)]
        };
        let tables = tables.into_iter().map(|table| cx.literal(table)).collect();
        Walk { fields: self.fields, tables, roots: self.roots, depth: self.depth }
    }
}

/// Trees with their tables.
pub(super) struct Walk {
    fields: Fields,
    tables: Vec<InstructionId>,
    roots: Vec<i32>,
    depth: usize,
}

impl Walk {
    /// The numbers of the leaves of each row and tree: (rows, trees).
    pub(super) fn numbers(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
        let (rows, features) = (cx.sizes(x)[0], cx.sizes(x)[1]);
        let trees = self.roots.len() as i64;
        // All rows take a step in one tree after the other, so that its words stay in the cache.
        let by_rows = cx.form_rows(rows) >= MANY_ROWS;
        let sizes = if by_rows { [trees, rows] } else { [rows, trees] };
        let x = if by_rows { cx.transpose(x, &[1, 0])? } else { x };
        let x = if cx.is_piece() { x } else { cx.reshape(x, &[rows * features])? };
        // Where the values of a row begin, and the distance between them if they are not neighbors.
        let row = cx.iota(PrimitiveType::S32, &sizes, usize::from(by_rows))?;
        let row = if by_rows { row } else { cx.mul_scalar(row, features as f64)? };
        let stride = by_rows.then_some(rows);
        let roots = cx.literal(Literal::from_elements(&[trees], &self.roots));
        let place = cx.broadcast(roots, &sizes, &[usize::from(!by_rows)])?;
        let carried = [&[place, x, row][..], &self.tables].concat();
        let results = cx.counted_loop(self.depth as i32, &carried, |cx, _, carried| {
            let next = self.step(cx, carried[0], carried[1], carried[2], stride, &carried[3..])?;
            Ok([&[next][..], &carried[1..]].concat())
        })?;
        let (_, number) = self.look_up(cx, &self.tables, results[0])?;
        if by_rows { cx.transpose(number, &[1, 0]) } else { Ok(number) }
    }

    /// The tests and numbers of nodes.
    fn look_up(
        &self,
        cx: &mut NodeContext<'_, '_>,
        tables: &[InstructionId],
        place: InstructionId,
    ) -> Result<(InstructionId, InstructionId)> {
        let first = cx.gather_along(tables[0], place, 0, 0)?;
        if let Some(&numbers) = tables.get(1) {
            return Ok((first, cx.gather_along(numbers, place, 0, 0)?));
        }
        let test = cx.convert(first, PrimitiveType::U32)?;
        let distance = cx.splat_like(first, 32.0)?;
        let upper = cx.op(Op::ShiftRightLogical {}, &[first, distance])?;
        let upper = cx.convert(upper, PrimitiveType::U32)?;
        let shape = Shape::array(PrimitiveType::F32, &cx.sizes(upper));
        Ok((test, cx.op_shaped(&shape, Op::BitcastConvert {}, &[upper])?))
    }

    /// A part of the words.
    fn part(
        &self,
        cx: &mut NodeContext<'_, '_>,
        words: InstructionId,
        from: u32,
        to: u32,
    ) -> Result<InstructionId> {
        let mut part = words;
        if from > 0 {
            let distance = cx.splat_like(part, f64::from(from))?;
            part = cx.op(Op::ShiftRightLogical {}, &[part, distance])?;
        }
        if to < self.fields.count {
            let mask = cx.splat_like(part, ((1u64 << (to - from)) - 1) as f64)?;
            part = cx.op(Op::And {}, &[part, mask])?;
        }
        cx.convert(part, PrimitiveType::S32)
    }

    /// A step from nodes to children.
    fn step(
        &self,
        cx: &mut NodeContext<'_, '_>,
        place: InstructionId,
        x: InstructionId,
        row: InstructionId,
        stride: Option<i64>,
        tables: &[InstructionId],
    ) -> Result<InstructionId> {
        let fields = &self.fields;
        let (words, threshold) = self.look_up(cx, tables, place)?;
        let distance = self.part(cx, words, 0, fields.feature)?;
        let feature = self.part(cx, words, fields.feature, fields.mode)?;
        let value = if cx.is_piece() {
            of_own_row(cx, x, feature, usize::from(stride.is_some()))?
        } else {
            let feature = match stride {
                None => feature,
                Some(stride) => cx.mul_scalar(feature, stride as f64)?,
            };
            let position = cx.add(feature, row)?;
            cx.gather_along(x, position, 0, 0)?
        };
        let mut holds: Option<InstructionId> = None;
        for (k, &mode) in fields.modes.iter().enumerate() {
            let test = cx.compare(direction(mode), value, threshold)?;
            holds = Some(match holds {
                None => test,
                Some(others) => {
                    let own = self.part(cx, words, fields.mode, fields.tracks)?;
                    let is_own = cx.compare_scalar(ComparisonDirection::Eq, own, k as f64)?;
                    cx.select(is_own, test, others)?
                }
            });
        }
        let Some(mut holds) = holds else { return Ok(place) };
        if fields.count > fields.tracks {
            let tracks = self.part(cx, words, fields.tracks, fields.count)?;
            let tracks = cx.compare_scalar(ComparisonDirection::Ne, tracks, 0.0)?;
            let is_nan = cx.compare(ComparisonDirection::Ne, value, value)?;
            let by_nan = cx.op(Op::And {}, &[is_nan, tracks])?;
            holds = cx.op(Op::Or {}, &[holds, by_nan])?;
        }
        // Leaves stay.
        let is_leaf = cx.compare_scalar(ComparisonDirection::Eq, distance, 0.0)?;
        let is_first = cx.op(Op::Or {}, &[holds, is_leaf])?;
        let second = cx.add_scalar(distance, 1.0)?;
        let moved = cx.select(is_first, distance, second)?;
        cx.add(place, moved)
    }
}

/// Looks up elements of a matrix, each in the row of its index. `rows` is the dimension of rows. A
/// batch of the gather shows that rows do not depend on each other.
pub(super) fn of_own_row(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    index: InstructionId,
    rows: usize,
) -> Result<InstructionId> {
    let gather_dimension_numbers = GatherDimensionNumbers {
        collapsed_slice_dims: vec![1 - rows],
        start_index_map: vec![1 - rows],
        operand_batching_dims: vec![rows],
        start_indices_batching_dims: vec![rows],
        index_vector_dim: 2,
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![1, 1], indices_are_sorted: false };
    cx.op(op, &[x, index])
}
