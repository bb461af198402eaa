//! The fusion contract: kinds of fusions, and the predicates on which the passes that build fusions
//! and the plan that compiles them agree.
//!
//! A pass that builds a fusion states its [`FusionKind`]; the verifier checks it against the body;
//! the plan chooses a strategy by it. Nothing else recognizes bodies.

use crate::attributes::{FusionKind, XlaFusionKind};
use crate::computation::Computation;
use crate::ids::{ComputationId, InstructionId};
use crate::opcode::{Op, Traits};

/// Bytes of a cache line, on every machine. Rows of whole lines can be moved without regard to
/// their elements.
pub const CACHE_LINE: i64 = 64;

/// Minimum number of columns of a contraction that is computed in tiles of narrow numbers.
pub const MIN_TILE_COLUMNS: i64 = 4;

impl FusionKind {
    /// Returns the kind of the fusion that has this body.
    pub fn of_body(body: &Computation) -> Self {
        let inside: Vec<InstructionId> = body
            .post_order()
            .into_iter()
            .filter(|&id| !matches!(body[id].op(), Op::Parameter { .. }))
            .collect();
        let find = |is_wanted: fn(&Op) -> bool| {
            inside.iter().copied().filter(|&id| is_wanted(body[id].op())).collect::<Vec<InstructionId>>()
        };
        let dots = find(|op| matches!(op, Op::Dot { .. }));
        let convolutions = find(|op| matches!(op, Op::Convolution { .. }));
        let reductions = find(|op| matches!(op, Op::Reduce { .. }));
        let feeds_others = |&id: &InstructionId| {
            body[id].users().iter().any(|&user| !matches!(body[user].op(), Op::Tuple {}))
        };
        if let [scores, values] = dots[..] {
            return Self::Attention { scores, values };
        }
        if reductions.iter().any(feeds_others) {
            return Self::Rows;
        }
        match (body[body.root()].op(), &dots[..], &convolutions[..]) {
            (Op::Reduce { .. }, ..) => Self::Reduce,
            (Op::ReduceWindow { .. }, ..) => Self::ReduceWindow,
            (Op::Tuple {}, ..) => Self::MultiOutput,
            (_, &[dot, ..], _) => Self::Dot { dot },
            (_, [], &[convolution]) => Self::Convolution { convolution },
            (_, [], &[.., last]) => Self::Chain { last },
            (Op::DynamicUpdateSlice {}, ..) => Self::Update,
            _ => Self::Loop,
        }
    }

    /// Returns the kind of a kernel whose loops come from one instruction with this op.
    pub fn with_hero(op: &Op, id: InstructionId) -> Self {
        match op {
            Op::Fusion { kind, .. } => *kind,
            Op::Reduce { .. } => Self::Reduce,
            Op::ReduceWindow { .. } => Self::ReduceWindow,
            Op::Tuple {} => Self::MultiOutput,
            Op::Dot { .. } => Self::Dot { dot: id },
            Op::Convolution { .. } => Self::Convolution { convolution: id },
            Op::DynamicUpdateSlice {} => Self::Update,
            _ => Self::Loop,
        }
    }

    /// Returns the kind of the fusion in XLA's text.
    pub fn xla_kind(self) -> XlaFusionKind {
        match self {
            Self::Loop | Self::Update | Self::MultiOutput => XlaFusionKind::Loop,
            Self::Reduce | Self::ReduceWindow | Self::Rows => XlaFusionKind::Input,
            Self::Dot { .. } | Self::Convolution { .. } | Self::Chain { .. } | Self::Attention { .. } => {
                XlaFusionKind::Output
            }
        }
    }

    /// Returns the contraction that determines the kernel's loops; if there are several, the last
    /// one. Other kinds have none: their loops come from the root.
    pub fn hero(self) -> Option<InstructionId> {
        match self {
            Self::Dot { dot: hero }
            | Self::Convolution { convolution: hero }
            | Self::Chain { last: hero }
            | Self::Attention { values: hero, .. } => Some(hero),
            Self::Loop
            | Self::Update
            | Self::Reduce
            | Self::ReduceWindow
            | Self::Rows
            | Self::MultiOutput => None,
        }
    }

    /// Returns the kind of a copy of the body, given the copy of each instruction.
    pub fn of_copy(self, copy: impl Fn(InstructionId) -> InstructionId) -> Self {
        match self {
            Self::Dot { dot } => Self::Dot { dot: copy(dot) },
            Self::Convolution { convolution } => Self::Convolution { convolution: copy(convolution) },
            Self::Chain { last } => Self::Chain { last: copy(last) },
            Self::Attention { scores, values } => {
                Self::Attention { scores: copy(scores), values: copy(values) }
            }
            Self::Loop
            | Self::Update
            | Self::Reduce
            | Self::ReduceWindow
            | Self::Rows
            | Self::MultiOutput => self,
        }
    }
}

impl Op {
    /// Creates a fusion of a kind, with the body `calls`.
    pub fn fusion(kind: FusionKind, calls: ComputationId) -> Self {
        Self::Fusion { xla_kind: kind.xla_kind(), kind, calls }
    }

    /// True if each result element depends only on the operands' elements at the same index, or on
    /// operands that are scalars.
    pub fn is_elementwise(&self) -> bool {
        self.opcode().traits().contains(Traits::ELEMENTWISE)
            || matches!(self, Self::Clamp {} | Self::Map { .. })
    }

    /// True if it is computed in tiles, which can have an elementwise epilogue.
    pub fn is_contraction(&self) -> bool {
        matches!(self, Self::Dot { .. } | Self::Convolution { .. })
    }

    /// True if it can be computed element by element inside a loop nest.
    pub fn is_fusible(&self) -> bool {
        self.is_elementwise()
            || self.opcode().traits().contains(Traits::REINDEXES)
            || matches!(
                self,
                Self::BitcastConvert {}
                    | Self::Constant { .. }
                    | Self::Iota { .. }
                    | Self::Gather { .. }
                    | Self::Pad { .. }
                    | Self::Concatenate { .. }
            )
    }
}

/// True if a computation is a single operation that can be applied to its inputs in any order (up
/// to rounding).
pub fn is_associative(computation: &Computation) -> bool {
    let root = &computation[computation.root()];
    let is_one = matches!(
        root.op(),
        Op::Add {} | Op::Multiply {} | Op::Maximum {} | Op::Minimum {} | Op::And {} | Op::Or {} | Op::Xor {}
    );
    is_one
        && root.operands().len() == 2
        && root.operands()[0] != root.operands()[1]
        && root.operands().iter().all(|&o| matches!(computation[o].op(), Op::Parameter { .. }))
}

/// Returns the start indices of a slice if they are constants, clamped to the array.
pub fn constant_starts<'a>(
    whole: &[i64],
    part: &[i64],
    starts: impl ExactSizeIterator<Item = &'a Op>,
) -> Option<Vec<i64>> {
    let start = |(d, op): (usize, &Op)| {
        let Op::Constant { literal } = op else { return None };
        let start = (literal.array_shape().rank() == 0).then(|| literal.scalar_at(0).as_i64())??;
        Some(start.clamp(0, whole[d] - part[d]))
    };
    (starts.len() == whole.len()).then(|| starts.enumerate().map(start).collect())?
}

/// Returns the only dimension in which a slice is smaller than the array; the first dimension if
/// the slice is the whole array, and `None` if several dimensions differ or the slice is empty.
pub fn cut_dimension(whole: &[i64], part: &[i64]) -> Option<usize> {
    let mut cut = (0..whole.len()).filter(|&d| whole[d] != part[d]);
    let dimension = cut.next().unwrap_or(0);
    (cut.next().is_none() && !part.contains(&0)).then_some(dimension)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Module, parse};

    /// The kind of the fusion at the root of the entry.
    fn kind(module: &Module) -> (FusionKind, &Computation) {
        let entry = module.entry_computation();
        let Op::Fusion { kind, calls, .. } = entry[entry.root()].op() else { panic!("the root is a fusion") };
        (*kind, &module[*calls])
    }

    #[test]
    fn kinds_follow_from_bodies() {
        let body = |instructions: &str, shape: &str| {
            format!(
                "HloModule m\nsum {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}}\n\
                 body {{\n  p = f32[4,4] parameter(0)\n  zero = f32[] constant(0)\n  i = s32[] constant(0)\n{instructions}\n}}\n\
                 ENTRY main {{\n  p = f32[4,4] parameter(0)\n  ROOT f = {shape} fusion(p), kind=kCustom, calls=body\n}}\n"
            )
        };
        let dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        let table = [
            ("  ROOT r = f32[4,4] negate(p)".to_owned(), "f32[4,4]", "Loop", None),
            ("  ROOT r = f32[4,4] dynamic-update-slice(p, p, i, i)".to_owned(), "f32[4,4]", "Update", None),
            (
                "  ROOT r = f32[4] reduce(p, zero), dimensions={1}, to_apply=sum".to_owned(),
                "f32[4]",
                "Reduce",
                None,
            ),
            (
                "  s = f32[4] reduce(p, zero), dimensions={1}, to_apply=sum\n  ROOT r = f32[4] negate(s)"
                    .to_owned(),
                "f32[4]",
                "Rows",
                None,
            ),
            (
                "  s = f32[4] reduce(p, zero), dimensions={1}, to_apply=sum\n  n = f32[4,4] negate(p)\n  \
                 ROOT r = (f32[4], f32[4,4]) tuple(s, n)"
                    .to_owned(),
                "(f32[4], f32[4,4])",
                "MultiOutput",
                None,
            ),
            (
                format!("  d = f32[4,4] dot(p, p), {dot}\n  ROOT r = f32[4,4] negate(d)"),
                "f32[4,4]",
                "Dot",
                Some("d"),
            ),
            (
                format!("  d = f32[4,4] dot(p, p), {dot}\n  ROOT r = f32[4,4] dot(d, p), {dot}"),
                "f32[4,4]",
                "Attention",
                Some("r"),
            ),
        ];
        for (instructions, shape, name, hero) in table {
            let module = parse(&body(&instructions, shape)).expect("a module");
            let (kind, body) = kind(&module);
            assert!(format!("{kind:?}").starts_with(name), "{kind:?}, not {name}");
            assert_eq!(kind.hero().map(|hero| body[hero].name()), hero);
            assert!(module.to_text().contains("kind=kCustom"), "the text's own kind is kept");
        }
    }

    #[test]
    fn the_verifier_finds_a_kind_that_is_not_the_bodys() {
        let text = "HloModule m\nbody {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}\n\
                    ENTRY main {\n  p = f32[4] parameter(0)\n  ROOT f = f32[4] fusion(p), kind=kLoop, calls=body\n}\n";
        let mut module = parse(text).expect("a module");
        crate::verify(&module).expect("the kind is that of the body");
        let (entry, root) = (module.entry(), module.entry_computation().root());
        let Op::Fusion { calls, .. } = *module[entry][root].op() else { panic!("the root is a fusion") };
        module.computation_mut(entry).set_op(root, Op::fusion(FusionKind::Rows, calls));
        let error = crate::verify(&module).expect_err("the body has no rows");
        assert!(error.to_string().contains("is of kind Rows, but its body is of kind Loop"), "{error}");
    }
}
