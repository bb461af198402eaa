//! Rules rooted at `pad`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode, PaddingConfig, PaddingDimension, SliceDimension};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "pad-with-nothing", root: Is(Opcode::Pad), apply: pad_with_nothing },
    Rule { name: "pad-that-crops", root: Is(Opcode::Pad), apply: pad_that_crops },
    Rule { name: "pad-of-the-same", root: Is(Opcode::Pad), apply: pad_of_the_same },
    Rule { name: "pad-of-transpose", root: Is(Opcode::Pad), apply: pad_of_transpose },
];

/// `pad(x, value) => x` if every padding is 0. Exact for every input.
fn pad_with_nothing(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Pad { padding } = graph[id].op() else { return None };
    let nothing = padding.dimensions.iter().all(|d| *d == PaddingDimension::default());
    nothing.then(|| graph.operand(id))
}

/// `pad(x, value) => slice(x)` if no padding is positive. Exact for every input.
fn pad_that_crops(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Pad { padding } = graph[id].op() else { return None };
    let operand = graph.operand(id);
    let mut slice = Vec::with_capacity(padding.dimensions.len());
    for (d, size) in padding.dimensions.iter().zip(graph.array(operand).sizes()) {
        let (start, limit) = (-d.edge_padding_low, size + d.edge_padding_high);
        if start < 0 || limit > size || limit < start || d.interior_padding != 0 {
            return None;
        }
        slice.push(SliceDimension { start, limit, stride: 1 });
    }
    Some(graph.replacement(id, Op::Slice { slice }, &[operand]))
}

/// `pad(broadcast(value), value) => broadcast(value)`. Exact for every input.
fn pad_of_the_same(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[operand, value] = graph[id].operands() else { return None };
    (graph.broadcast_of_scalar(operand)? == value).then(|| graph.broadcast_scalar(id, value))
}

/// `pad(transpose(x)) => transpose(pad(x))`, for results of convolutions. Exact for every input.
fn pad_of_transpose(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Pad { padding } = graph[id].op() else { return None };
    let &[transpose, value] = graph[id].operands() else { return None };
    let permutation = graph.sinking_permutation(transpose)?;
    let mut dimensions = vec![PaddingDimension::default(); permutation.len()];
    permutation.iter().zip(&padding.dimensions).for_each(|(&p, &d)| dimensions[p] = d);
    let x = graph.operand(transpose);
    let op = Op::Pad { padding: PaddingConfig { dimensions } };
    Some(graph.transposed_after(id, op, &[x, value], &permutation))
}
