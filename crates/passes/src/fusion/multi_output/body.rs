//! Properties of a kernel that matter for merging it with others.

use hlo::{Computation, InstructionId, Module, Op, is_associative};
use shape::ArrayShape;
use std::collections::BTreeSet;

/// A kernel that may be merged with others.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The sizes of its elements' dimensions, without those of size 1.
    pub(super) space: Vec<i64>,
    /// True for each dimension of the space that it reduces; `None` if it is not a reduction.
    pub(super) reduced: Option<Vec<bool>>,
    /// Number of instructions.
    pub(super) instructions: usize,
    /// The arrays in memory that it reads, seen through reshapes and tuples.
    pub(super) arrays: BTreeSet<InstructionId>,
    /// Arrays of which it reads only the element that it computes.
    pub(super) on_tile: BTreeSet<InstructionId>,
    /// The array that it only places, if it does nothing else.
    pub(super) placed: Option<InstructionId>,
}

/// The body of a fusion, or a single instruction.
pub(super) struct Body<'m> {
    pub(super) computation: &'m Computation,
    pub(super) root: InstructionId,
    caller: &'m Computation,
    instruction: InstructionId,
    is_fused: bool,
}

impl<'m> Body<'m> {
    pub(super) fn of(module: &'m Module, caller: &'m Computation, instruction: InstructionId) -> Self {
        match caller[instruction].op() {
            Op::Fusion { calls, .. } => {
                let computation = &module[*calls];
                let root = computation.root();
                Self { computation, root, caller, instruction, is_fused: true }
            }
            _ => Self { computation: caller, root: instruction, caller, instruction, is_fused: false },
        }
    }

    /// The caller's array that an instruction of the body represents, if the kernel does not
    /// compute it.
    pub(super) fn outside(&self, id: InstructionId) -> Option<InstructionId> {
        match self.computation[id].op() {
            Op::Parameter { number } if self.is_fused => {
                Some(self.caller[self.instruction].operands()[*number])
            }
            _ => (!self.is_fused && id != self.root).then_some(id),
        }
    }

    /// The instructions of the kernel.
    pub(super) fn instructions(&self) -> Vec<InstructionId> {
        if !self.is_fused {
            return vec![self.root];
        }
        let all = self.computation.post_order().into_iter();
        all.filter(|&id| self.outside(id).is_none()).collect()
    }

    fn array(&self, id: InstructionId) -> Option<&'m ArrayShape> {
        self.computation[id].shape().as_array().filter(|shape| shape.is_static())
    }

    /// The sizes of an array's dimensions, without those of size 1.
    fn wide(&self, id: InstructionId) -> Option<Vec<i64>> {
        Some(self.array(id)?.sizes().into_iter().filter(|&size| size != 1).collect())
    }

    /// The values that are computed per element, upstream of the instructions that only place them.
    fn values(&self) -> Vec<InstructionId> {
        let mut values = Vec::new();
        let mut pending = vec![(self.root, true)];
        while let Some((id, is_root)) = pending.pop() {
            let operands = self.computation[id].operands();
            match self.computation[id].op() {
                _ if self.outside(id).is_some() => values.push(id),
                Op::DynamicUpdateSlice {} if is_root => pending.push((operands[1], false)),
                Op::Reduce { .. } if is_root => values.push(operands[0]),
                Op::Concatenate { .. } => pending.extend(operands.iter().map(|&o| (o, false))),
                Op::Reshape {} | Op::Bitcast {} if self.wide(id) == self.wide(operands[0]) => {
                    pending.push((operands[0], false));
                }
                _ => values.push(id),
            }
        }
        values
    }
}

impl Kernel {
    /// The kernel of an instruction, if its kind may be merged with others.
    pub(super) fn of(module: &Module, caller: &Computation, id: InstructionId) -> Option<Self> {
        let body = Body::of(module, caller, id);
        let values = body.values();
        let space = body.wide(*values.first()?)?;
        let elements: i64 = space.iter().product();
        let instructions = body.instructions();
        let is_good = elements > 1
            && body.array(body.root).is_some()
            && values.iter().all(|&value| body.wide(value).as_ref() == Some(&space))
            && instructions.iter().all(|&i| is_computable(&body, i, values.contains(&i)))
            && (body.is_fused || computes_alone(caller, id));
        if !is_good {
            return None;
        }
        let reduced = match body.computation[body.root].op() {
            Op::Reduce { .. } => Some(reduced(module, &body)?),
            _ => None,
        };
        let mut kernel = Self {
            space,
            reduced,
            instructions: instructions.len(),
            arrays: BTreeSet::new(),
            on_tile: BTreeSet::new(),
            placed: None,
        };
        kernel.read(&body, &values);
        let is_update = matches!(body.computation[body.root].op(), Op::DynamicUpdateSlice {});
        if let (true, &[value]) = (is_update, &values[..]) {
            kernel.placed = body.outside(value).map(|array| memory(caller, array));
        }
        // Updates at constant positions build an array together and are left unchanged.
        if is_update && has_constant_position(&body) {
            return None;
        }
        // An update that reads more of its array than the replaced slice would no longer be in
        // place after the merge.
        let buffer = body.computation[body.root].operands().first().and_then(|&o| body.outside(o));
        let reads_buffer = is_update && buffer.is_some_and(|b| kernel.arrays.contains(&memory(caller, b)));
        (!reads_buffer).then_some(kernel)
    }

    /// Records which arrays are read, and how.
    fn read(&mut self, body: &Body<'_>, values: &[InstructionId]) {
        let mut off_tile = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let root = &body.computation[body.root];
        let mut pending: Vec<(InstructionId, bool)> = values.iter().map(|&value| (value, true)).collect();
        match root.op() {
            Op::DynamicUpdateSlice {} => pending.extend(root.operands()[2..].iter().map(|&o| (o, false))),
            Op::Reduce { .. } => pending.push((root.operands()[1], false)),
            _ => {}
        }
        while let Some((id, on_tile)) = pending.pop() {
            if !seen.insert((id, on_tile)) {
                continue;
            }
            let on_tile = on_tile && body.wide(id).as_ref() == Some(&self.space);
            if let Some(array) = body.outside(id) {
                let array = memory(body.caller, array);
                self.arrays.insert(array);
                if on_tile {
                    self.on_tile.insert(array)
                } else {
                    off_tile.insert(array)
                };
                continue;
            }
            let instruction = &body.computation[id];
            let keeps = on_tile
                && (instruction.op().is_elementwise()
                    || matches!(instruction.op(), Op::Reshape {} | Op::Bitcast {}));
            pending.extend(instruction.operands().iter().map(|&operand| (operand, keeps)));
        }
        self.on_tile.retain(|array| !off_tile.contains(array));
    }
}

/// The instruction whose memory an array uses, seen through reshapes. Elements of tuples represent
/// themselves.
pub(super) fn memory(computation: &Computation, mut id: InstructionId) -> InstructionId {
    while let Op::Reshape {} | Op::Bitcast {} = computation[id].op() {
        id = computation[id].operands()[0];
    }
    id
}

/// True if an instruction that is not a fusion is a kernel of its own that only computes or joins
/// elements.
fn computes_alone(caller: &Computation, id: InstructionId) -> bool {
    let instruction = &caller[id];
    let has_array =
        instruction.operands().iter().any(|&o| caller[o].shape().as_array().is_some_and(|s| s.rank() > 0));
    let op = instruction.op();
    has_array
        && (op.is_elementwise()
            || matches!(op, Op::Concatenate { .. } | Op::DynamicUpdateSlice {} | Op::Reduce { .. }))
}

/// True if an instruction can be computed element by element in the loops of others.
fn is_computable(body: &Body<'_>, id: InstructionId, is_value: bool) -> bool {
    let instruction = &body.computation[id];
    let Some(array) = body.array(id) else { return false };
    if array.element_type.is_complex() {
        return false;
    }
    match instruction.op() {
        Op::Reshape {} | Op::Bitcast {} => body.wide(id) == body.wide(instruction.operands()[0]),
        Op::Broadcast { dimensions } => dimensions.windows(2).all(|pair| pair[0] < pair[1]),
        Op::Constant { .. } => array.rank() == 0,
        Op::Slice { .. } | Op::DynamicSlice { .. } | Op::Iota { .. } => true,
        Op::DynamicUpdateSlice {} => id == body.root && body.outside(instruction.operands()[0]).is_some(),
        Op::Reduce { .. } => id == body.root,
        // A concatenation is allowed only if it places the results; others are computed by
        // selection.
        Op::Concatenate { .. } => !is_value && body.root == id,
        op => op.is_elementwise(),
    }
}

/// True if a slice update writes at constant indices.
fn has_constant_position(body: &Body<'_>) -> bool {
    let starts = &body.computation[body.root].operands()[2..];
    starts.iter().all(|&start| {
        let outside = body.outside(start);
        let op = outside.map_or_else(|| body.computation[start].op(), |array| body.caller[array].op());
        matches!(op, Op::Constant { .. })
    })
}

/// For each dimension of the space, true if a reduction over columns reduces it; `None` for other
/// reductions.
fn reduced(module: &Module, body: &Body<'_>) -> Option<Vec<bool>> {
    let root = &body.computation[body.root];
    let Op::Reduce { dimensions, to_apply } = root.op() else { return None };
    let &[input, initial] = root.operands() else { return None };
    let sizes = body.array(input)?.sizes();
    let reduced: Vec<bool> =
        (0..sizes.len()).filter(|&d| sizes[d] != 1).map(|d| dimensions.contains(&d)).collect();
    let is_column = reduced.last() == Some(&false) && reduced.contains(&true);
    (is_associative(&module[*to_apply]) && is_column && body.array(initial)?.rank() == 0).then_some(reduced)
}
