//! Finds adjacent dimensions of a loop nest that may become one loop.
//!
//! Two dimensions are merged by letting the inner one's index run through both, while the outer
//! one's stays 0. Row-major addresses come out the same wherever both dimensions arrive side by
//! side and no instruction in between looks at either index.

use crate::fusion::{Fusion, Position};
use hlo::{InstructionId, Op};
use shape::ArrayShape;
use std::collections::BTreeSet;
use support::{Error, Result};

/// Upper bound of the visited pairs of instruction and dimension order. Beyond it, nothing is
/// merged.
const MAX_VISITS: usize = 10_000;

/// Number of elements of inner loops from which on the overhead of one more loop is small.
const LONG_LOOP: i64 = 64;

/// A loop of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The dimension whose index the loop counts.
    pub dimension: usize,
    /// Number of iterations.
    pub extent: i64,
}

/// A loop nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nest {
    /// The loops, outermost first.
    pub(crate) loops: Vec<Loop>,
    /// Loops, except the innermost, along which some array is contiguous while the innermost loop
    /// strides through it.
    pub(crate) across: Vec<Loop>,
}

/// For each dimension of an instruction, the dimension of the nest that it follows.
pub(crate) type Follows = Vec<Option<usize>>;

/// The instructions that a nest evaluates, each with the dimensions that it follows.
pub(crate) type Visits = BTreeSet<(InstructionId, Follows)>;

/// The loops over the dimensions of `sizes`, with `starts` evaluated at the nest's indices.
/// Dimensions of different `kinds` are not merged.
pub(crate) fn nest(
    fusion: &Fusion<'_>,
    starts: &[InstructionId],
    sizes: &[i64],
    kinds: &[bool],
) -> Result<Nest> {
    let all: Follows = (0..sizes.len()).map(Some).collect();
    let starts = starts.iter().map(|&start| (start, all.clone())).collect();
    nest_of(fusion, starts, sizes, |outer, inner| kinds[outer] == kinds[inner])
}

/// Same as [`nest`], but each start has dimensions of its own, given with the dimensions of the
/// nest that they follow. Only neighbors that `may_merge` allows (outer, inner) become one loop.
pub(crate) fn nest_of(
    fusion: &Fusion<'_>,
    starts: Vec<(InstructionId, Follows)>,
    sizes: &[i64],
    may_merge: impl Fn(usize, usize) -> bool,
) -> Result<Nest> {
    visited_nest(fusion, starts, sizes, may_merge).map(|(nest, _)| nest)
}

/// Same as [`nest_of`], and also returns every evaluated instruction that was visited. A reduction
/// inside the body is a value that the nest provides, so its operands are not visited.
pub(crate) fn visited_nest(
    fusion: &Fusion<'_>,
    starts: Vec<(InstructionId, Follows)>,
    sizes: &[i64],
    may_merge: impl Fn(usize, usize) -> bool,
) -> Result<(Nest, Visits)> {
    let wide: Vec<usize> = (0..sizes.len()).filter(|&d| sizes[d] != 1).collect();
    let mut walk = Walk {
        fusion,
        wide: &wide,
        mergeable: wide.windows(2).map(|pair| may_merge(pair[0], pair[1])).collect(),
        contiguous: BTreeSet::new(),
        seen: BTreeSet::new(),
    };
    for (start, follows) in starts {
        walk.visit_all(start, follows)?;
    }
    let mut loops: Vec<Loop> = Vec::new();
    // A loop ends at the size of a run only if its outermost dimension does.
    let has_sizes = !fusion.module.size_parameters().is_empty();
    let stays_apart =
        |k: usize| has_sizes && wide[k..].iter().fold(1i64, |n, &d| n.saturating_mul(sizes[d])) >= LONG_LOOP;
    for (k, &dimension) in wide.iter().enumerate() {
        let extent = sizes[dimension];
        match loops.last_mut() {
            Some(last) if walk.mergeable[k - 1] && !stays_apart(k) => {
                *last = Loop { dimension, extent: last.extent * extent }
            }
            _ => loops.push(Loop { dimension, extent }),
        }
    }
    let outer = &loops[..loops.len().saturating_sub(1)];
    let across = outer.iter().filter(|l| walk.contiguous.contains(&l.dimension)).copied().collect();
    Ok((Nest { loops, across }, walk.seen))
}

fn shape<'m>(fusion: &Fusion<'m>, id: InstructionId) -> Result<&'m ArrayShape> {
    let shape = fusion.body[id].shape();
    shape.as_array().ok_or_else(|| Error::internal(format!("{} is not an array", fusion.body[id].name())))
}

struct Walk<'c, 'm> {
    fusion: &'c Fusion<'m>,
    /// The nest's dimensions whose size is not 1.
    wide: &'c [usize],
    /// True where a wide dimension and the next may be merged.
    mergeable: Vec<bool>,
    /// Dimensions of the nest along which an array is contiguous while the innermost one strides
    /// through it.
    contiguous: BTreeSet<usize>,
    seen: BTreeSet<(InstructionId, Follows)>,
}

impl Walk<'_, '_> {
    fn visit_all(&mut self, start: InstructionId, follows: Follows) -> Result<()> {
        let mut pending = vec![(start, follows)];
        while let Some((id, follows)) = pending.pop() {
            if !self.seen.insert((id, follows.clone())) {
                continue;
            }
            if self.seen.len() > MAX_VISITS {
                self.mergeable.fill(false);
                return Ok(());
            }
            self.visit(id, &follows, &mut pending)?;
        }
        Ok(())
    }

    fn visit(
        &mut self,
        id: InstructionId,
        follows: &Follows,
        pending: &mut Vec<(InstructionId, Follows)>,
    ) -> Result<()> {
        if self.fusion.position(id) != Position::Inside {
            self.read(id, follows);
            return Ok(());
        }
        let instruction = &self.fusion.body[id];
        let operands = instruction.operands();
        let op = instruction.op();
        let same = |operand: InstructionId| match shape(self.fusion, operand) {
            Ok(shape) if shape.rank() == follows.len() => follows.clone(),
            _ => Vec::new(),
        };
        let is_elementwise =
            op.is_elementwise() || matches!(op, Op::OptimizationBarrier {} | Op::AddDependency {});
        match op {
            _ if is_elementwise => pending.extend(operands.iter().map(|&o| (o, same(o)))),
            Op::Constant { literal } => {
                if !literal.is_splat() {
                    self.read(id, follows);
                }
            }
            Op::GetTupleElement { .. } => self.read(id, follows),
            Op::Broadcast { dimensions } => {
                pending.push((operands[0], dimensions.iter().map(|&d| follows[d]).collect()));
            }
            Op::Transpose { dimensions } => {
                let mut moved = vec![None; follows.len()];
                dimensions.iter().zip(follows).for_each(|(&d, &f)| moved[d] = f);
                pending.push((operands[0], moved));
            }
            Op::Reshape {} | Op::Bitcast {} => self.visit_reshape(id, follows, pending)?,
            Op::Slice { slice } => {
                let operand = shape(self.fusion, operands[0])?.sizes();
                let whole =
                    |d: usize| slice[d].start == 0 && slice[d].limit == operand[d] && slice[d].stride == 1;
                self.require_order(id, follows, |outer, inner| slice[outer].stride == 1 && whole(inner));
                pending.push((operands[0], follows.clone()));
            }
            Op::DynamicSlice { dynamic_slice_sizes } => {
                let operand = shape(self.fusion, operands[0])?.sizes();
                self.require_order(id, follows, |_, inner| dynamic_slice_sizes[inner] == operand[inner]);
                pending.push((operands[0], follows.clone()));
            }
            // The nest runs over the update.
            Op::DynamicUpdateSlice {} => {
                let (operand, update) =
                    (shape(self.fusion, operands[0])?.sizes(), shape(self.fusion, operands[1])?.sizes());
                self.require_order(id, follows, |_, inner| update[inner] == operand[inner]);
                pending.push((operands[1], follows.clone()));
            }
            Op::Reverse { dimensions } => {
                self.require_order(id, follows, |o, i| !dimensions.contains(&o) && !dimensions.contains(&i));
                pending.push((operands[0], follows.clone()));
            }
            Op::Iota { iota_dimension } => {
                self.require_order(id, follows, |o, i| *iota_dimension != o && *iota_dimension != i);
            }
            Op::Pad { padding } => {
                let is_plain = |d: usize| padding.dimensions[d] == hlo::PaddingDimension::default();
                self.require_order(id, follows, |outer, inner| is_plain(outer) && is_plain(inner));
                pending.push((operands[0], follows.clone()));
            }
            Op::Concatenate { dimension } => {
                self.require_order(id, follows, |outer, inner| *dimension != outer && *dimension != inner);
                pending.extend(operands.iter().map(|&o| (o, follows.clone())));
            }
            // The caller handles reductions.
            Op::Reduce { .. } => {}
            // A contraction, whose tiles the caller lays out, or an opcode that uses each index.
            _ => self.require_order(id, follows, |_, _| false),
        }
        Ok(())
    }

    /// Records the read of an array in memory.
    fn read(&mut self, id: InstructionId, follows: &Follows) {
        self.require_order(id, follows, |_, _| true);
        let sizes = shape(self.fusion, id).map(|s| s.sizes()).unwrap_or_default();
        let last = (0..follows.len()).rev().find(|&d| sizes.get(d) != Some(&1));
        let innermost = self.wide.last().copied();
        if let Some(along) = last.and_then(|d| follows[d])
            && Some(along) != innermost
            && follows.contains(&innermost)
        {
            self.contiguous.insert(along);
        }
    }

    /// A reshape of memory preserves the element's linear index. Otherwise the dimensions must
    /// survive unchanged.
    fn visit_reshape(
        &mut self,
        id: InstructionId,
        follows: &Follows,
        pending: &mut Vec<(InstructionId, Follows)>,
    ) -> Result<()> {
        let operand = self.fusion.body[id].operands()[0];
        self.require_order(id, follows, |_, _| true);
        if self.fusion.position(operand) != Position::Inside {
            return Ok(());
        }
        let (from, to) = (shape(self.fusion, operand)?.sizes(), shape(self.fusion, id)?.sizes());
        let mut wide = to.iter().zip(follows).filter(|(size, _)| **size != 1);
        let is_squeeze = from.iter().filter(|s| **s != 1).eq(to.iter().filter(|s| **s != 1));
        if is_squeeze {
            let moved = from.iter().map(|&s| if s == 1 { None } else { wide.next().and_then(|(_, f)| *f) });
            pending.push((operand, moved.collect()));
        } else {
            self.require_order(id, follows, |_, _| false);
        }
        Ok(())
    }

    /// Keeps pairs apart that do not arrive side by side in order, or that `allows` (given the
    /// outer and inner dimension of this instruction) rejects. Pairs of which neither dimension
    /// arrives stay mergeable.
    fn require_order(&mut self, id: InstructionId, follows: &Follows, allows: impl Fn(usize, usize) -> bool) {
        let sizes = shape(self.fusion, id).map(|s| s.sizes()).unwrap_or_default();
        let here: Vec<usize> = (0..follows.len()).filter(|&d| sizes.get(d) != Some(&1)).collect();
        for k in 0..self.mergeable.len() {
            let (outer, inner) = (self.wide[k], self.wide[k + 1]);
            let at = |dimension: usize| here.iter().position(|&d| follows[d] == Some(dimension));
            let is_free = match (at(outer), at(inner)) {
                (None, None) => true,
                (Some(o), Some(i)) => i == o + 1 && allows(here[o], here[i]),
                _ => false,
            };
            self.mergeable[k] &= is_free;
        }
    }
}
