//! Decides which instructions are computed together.

use super::InstructionFusion;
use crate::fusion::body::is_mask;
use crate::fusion::tiles::Tiles;
use crate::query::{is_static, is_static_array};
use hlo::{CACHE_LINE, Computation, InstructionId, NarrowWeights, Op, Window};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of masks on the way to a sum: one for each dimension.
const MAX_MASKS: usize = 6;

/// Access to an instruction's elements in the loop of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Element `i` is needed where element `i` of the root is computed.
    OnTile,
    /// Each element is needed at most once, where this reindexing instruction or reduction reads
    /// it.
    Through(InstructionId),
    /// A scalar, which is computed outside of the loops.
    Scalar,
    /// Some elements are needed more than once.
    Repeated,
}

/// Instructions that are computed together. Only the root has users outside.
#[derive(Debug, Default)]
struct Group {
    members: BTreeSet<InstructionId>,
    has_contraction: bool,
}

/// The content of a fusion.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The instructions that are computed.
    pub(super) members: BTreeSet<InstructionId>,
    /// Arrays read from memory, in the order in which the members first read them.
    pub(super) operands: Vec<InstructionId>,
}

/// The groups of a computation.
pub(super) struct Groups<'c> {
    options: &'c InstructionFusion,
    computation: &'c Computation,
    order: Vec<InstructionId>,
    groups: BTreeMap<InstructionId, Group>,
    root_of: BTreeMap<InstructionId, InstructionId>,
    access: BTreeMap<InstructionId, Access>,
    tiles: Tiles,
    /// Members of which element `i` of a slice update needs only element `i`, in memory order.
    aligned: BTreeSet<InstructionId>,
}

impl<'c> Groups<'c> {
    /// Groups the live instructions of the computation, users before operands.
    pub(super) fn new(options: &'c InstructionFusion, computation: &'c Computation) -> Self {
        let order = computation.post_order();
        let tiles = Tiles::new(computation, &order, |id| may_follow(computation, id));
        let mut groups = Self {
            options,
            computation,
            tiles,
            aligned: BTreeSet::new(),
            order,
            groups: BTreeMap::new(),
            root_of: BTreeMap::new(),
            access: BTreeMap::new(),
        };
        for id in groups.order.clone().into_iter().rev() {
            let (root, access) = groups.joins(id).unwrap_or((id, Access::OnTile));
            if root != id && is_update(computation, root) && groups.is_aligned(id, root) {
                groups.aligned.insert(id);
            }
            let group = groups.groups.entry(root).or_default();
            group.members.insert(id);
            group.has_contraction |= is_contraction(computation, id);
            groups.root_of.insert(id, root);
            groups.access.insert(id, access);
        }
        groups
    }

    /// The root of the group that an instruction joins, and its access there.
    fn joins(&self, id: InstructionId) -> Option<(InstructionId, Access)> {
        let instruction = &self.computation[id];
        let is_contraction = is_contraction(self.computation, id);
        let may_join = is_inner(self.computation, id) || self.tiles.contains(id);
        if self.computation.root() == id || !may_join || self.tiles.is_apart(id) {
            return None;
        }
        // Users without a group are dead.
        let mut users = instruction.users().iter().filter(|user| self.root_of.contains_key(user));
        let first = users.next()?;
        let root = self.root_of[first];
        if !is_root(self.computation, root) || users.clone().any(|user| self.root_of[user] != root) {
            return None;
        }
        let mut access = self.access_by(id, *first)?;
        for &user in users {
            let other = self.access_by(id, user)?;
            access = if other == access { access } else { Access::Repeated };
        }
        let group = &self.groups[&root];
        let fits = group.members.len() < self.options.max_instructions
            && self.operand_count(group) + instruction.operands().len() <= self.options.max_operands;
        let is_good = match access {
            // An epilogue costs nothing on the tiles of its contraction, so it does not join
            // another group, unless the array between them would be larger.
            _ if self.tiles.contains(id)
                && !self.is_on_tile(access)
                && !self.belongs_to_sum(id, MAX_MASKS) =>
            {
                false
            }
            _ if is_update(self.computation, root) && !self.leaves_buffer(id, root) => false,
            _ if is_contraction => {
                !group.has_contraction
                    && is_static(self.computation, id)
                    && !matches!(self.computation[root].op(), Op::Reduce { .. } | Op::ReduceWindow { .. })
            }
            Access::Repeated => self.is_cheap(id),
            Access::OnTile | Access::Through(_) | Access::Scalar => true,
        };
        (fits && is_good).then_some((root, access))
    }

    /// The access of `user` to `id`; `None` if `id` must be in memory.
    fn access_by(&self, id: InstructionId, user: InstructionId) -> Option<Access> {
        let array = |id: InstructionId| self.computation[id].shape().as_array();
        let (read, result) = (array(id)?, array(user));
        let operands = self.computation[user].operands();
        let only_first = operands.first() == Some(&id) && !operands[1..].contains(&id);
        let outer = self.access[&user];
        let through = if outer == Access::Repeated { outer } else { Access::Through(user) };
        let op = self.computation[user].op();
        Some(match op {
            Op::Dot { .. } | Op::Convolution { .. } => return None,
            Op::DynamicUpdateSlice {} => match operands.iter().position(|&o| o == id) {
                Some(0) | None => return None,
                Some(1) if read.rank() > 0 => Access::Through(user),
                Some(_) => Access::Scalar,
            },
            Op::Reduce { .. } => {
                let inputs = operands.len() / 2;
                match operands.iter().position(|&o| o == id) {
                    _ if read.rank() == 0 => Access::Scalar,
                    Some(position) if position < inputs => Access::Through(user),
                    _ => return None,
                }
            }
            Op::ReduceWindow { window, .. } => {
                let inputs = operands.len() / 2;
                match operands.iter().position(|&o| o == id) {
                    _ if read.rank() == 0 => Access::Scalar,
                    Some(position) if position < inputs && self.reads_once(user, window) => {
                        Access::Through(user)
                    }
                    Some(position) if position < inputs => Access::Repeated,
                    _ => return None,
                }
            }
            _ if read.rank() == 0 && result.is_some_and(|result| result.rank() > 0) => Access::Scalar,
            Op::Broadcast { .. } => Access::Repeated,
            Op::Gather { .. } => match result {
                Some(result) if only_first && result.element_count() <= read.element_count() => through,
                _ => Access::Repeated,
            },
            Op::DynamicSlice { .. } | Op::Pad { .. } if !only_first => Access::Repeated,
            // Reshapes preserve the elements' linear indices.
            Op::Reshape {} | Op::Bitcast {} => outer,
            _ if op.is_elementwise() => outer,
            _ => through,
        })
    }

    /// True if each element of a windowed reduction's operand is read once: windows do not overlap,
    /// or a running total serves all of them.
    fn reads_once(&self, id: InstructionId, window: &Window) -> bool {
        let sizes = |id: InstructionId| {
            self.computation[id].shape().leaves().first().map(|(_, leaf)| leaf.sizes()).unwrap_or_default()
        };
        let operand = self.computation[id].operands()[0];
        window.dimensions.iter().all(|d| d.stride > (d.size - 1).saturating_mul(d.window_dilation))
            || window.running_dimension(&sizes(operand), &sizes(id)).is_some()
    }

    /// True if values with this access may be computed tile by tile: each element has one
    /// destination, whose rows are rows of a tile.
    fn is_on_tile(&self, access: Access) -> bool {
        match access {
            Access::OnTile => true,
            Access::Through(user) => {
                let keeps =
                    keeps_rows(self.computation, user) || writes_constant_slice(self.computation, user);
                keeps && self.is_on_tile(self.access[&user])
            }
            Access::Scalar | Access::Repeated => false,
        }
    }

    /// True if an instruction only widens the elements that one reduction sums, or hides those
    /// beyond a size. Where the reduction hides them, nothing has to compute them.
    fn belongs_to_sum(&self, id: InstructionId, masks: usize) -> bool {
        let size = |id: InstructionId| {
            self.computation[id].shape().as_array().map(|shape| shape.element_type.byte_size())
        };
        let instruction = &self.computation[id];
        let belongs = match instruction.op() {
            Op::Convert {} => size(instruction.operands()[0]) < size(id),
            Op::Select {} => self.is_beyond_size(instruction.operands()[0], MAX_MASKS),
            _ => false,
        };
        let leads_to_sum = |&user: &InstructionId| match self.computation[user].op() {
            Op::Reduce { .. } => true,
            // One mask after another hides what is beyond several sizes.
            Op::Select {} => masks > 0 && self.belongs_to_sum(user, masks - 1),
            _ => false,
        };
        belongs && instruction.users().iter().all(leads_to_sum)
    }

    /// True if a predicate compares positions with scalars that are known at run time.
    fn is_beyond_size(&self, predicate: InstructionId, masks: usize) -> bool {
        let operands = self.computation[predicate].operands();
        let Some(rest) = masks.checked_sub(1) else { return false };
        match self.computation[predicate].op() {
            Op::And {} => operands.iter().all(|&operand| self.is_beyond_size(operand, rest)),
            Op::Broadcast { .. } => self.is_beyond_size(operands[0], rest),
            _ => is_mask(self.computation, predicate),
        }
    }

    /// True if element `i` of a slice update needs only element `i` of an instruction, in memory
    /// order.
    fn is_aligned(&self, id: InstructionId, root: InstructionId) -> bool {
        let count =
            |id: InstructionId| self.computation[id].shape().as_array().map(ArrayShape::element_count);
        let users = self.computation[id].users().iter().filter(|user| self.root_of.contains_key(user));
        users.copied().all(|user| match self.computation[user].op() {
            _ if user == root => self.computation[root].operands()[2..].iter().all(|&start| start != id),
            Op::Reshape {} | Op::Bitcast {} => self.aligned.contains(&user),
            op => self.aligned.contains(&user) && op.is_elementwise() && count(user) == count(id),
        })
    }

    /// True if a slice update can still be in place with this instruction in its kernel: from the
    /// updated array, the instruction reads only the slice that the update replaces.
    fn leaves_buffer(&self, id: InstructionId, root: InstructionId) -> bool {
        let update = self.computation[root].operands();
        let buffer = origin(self.computation, update[0]);
        let operands = self.computation[id].operands();
        if !operands.iter().any(|&operand| origin(self.computation, operand) == buffer) {
            return true;
        }
        let sizes = |id: InstructionId| self.computation[id].shape().as_array().map(ArrayShape::sizes);
        matches!(self.computation[id].op(), Op::DynamicSlice { .. })
            && operands[0] == update[0]
            && operands[1..] == update[2..]
            && sizes(id) == sizes(update[1])
            && self.is_aligned(id, root)
    }

    /// Number of operands that members read from outside.
    fn operand_count(&self, group: &Group) -> usize {
        let read = group.members.iter().flat_map(|&m| self.computation[m].operands());
        read.filter(|o| !group.members.contains(o)).collect::<BTreeSet<_>>().len()
    }

    /// The body of each group whose result is read from memory, operands before users.
    pub(super) fn bodies(&self) -> Vec<(InstructionId, Body)> {
        let mut needed: BTreeSet<InstructionId> = BTreeSet::from([self.computation.root()]);
        let mut bodies = Vec::new();
        for &root in self.order.iter().rev().filter(|&&id| self.root_of[&id] == id) {
            let has_effect = self.computation[root].has_effect();
            if !has_effect && !needed.contains(&root) {
                continue;
            }
            if is_root(self.computation, root)
                || self.narrow_weights(root).is_some()
                || self.narrow_operand(root).is_some()
            {
                let body = self.body(root);
                needed.extend(&body.operands);
                bodies.push((root, body));
            } else {
                needed.extend(self.computation[root].operands());
            }
        }
        bodies.reverse();
        bodies
    }

    /// A group with copies of the cheap groups that it reads.
    fn body(&self, root: InstructionId) -> Body {
        let body = self.body_with(root, true);
        // Packed weights and scales are no arrays that anything else in the kernel could read.
        let readers = |id: InstructionId| {
            body.members.iter().filter(|&&member| self.computation[member].operands().contains(&id)).count()
        };
        let are_shared = |weights: NarrowWeights| {
            readers(weights.stored) > 1 || weights.scales.is_some_and(|scales| readers(scales.values) > 1)
        };
        let weights = body.members.iter().filter_map(|&member| self.narrow_weights(member));
        if weights.into_iter().any(are_shared) { self.body_with(root, false) } else { body }
    }

    /// The same, with the weights of dots widened in the kernel or read from memory.
    fn body_with(&self, root: InstructionId, widens_weights: bool) -> Body {
        let group = &self.groups[&root];
        let mut body = Body { members: group.members.clone(), operands: Vec::new() };
        // A contraction reads its operands many times, so they are in memory even if they are
        // cheap.
        let contractions = group.members.iter().filter(|&&m| is_contraction(self.computation, m));
        let mut in_memory: BTreeSet<InstructionId> =
            contractions.clone().flat_map(|&m| self.computation[m].operands()).copied().collect();
        for &contraction in contractions {
            let narrow = self.narrow_operand(contraction);
            if let Some(stored) = narrow.filter(|stored| !group.members.contains(stored)) {
                let wide = self.computation[contraction].operands()[1];
                in_memory.remove(&wide);
                in_memory.insert(stored);
                body.members.insert(wide);
                continue;
            }
            let Some(weights) = self.narrow_weights(contraction).filter(|_| widens_weights) else { continue };
            in_memory.remove(&self.computation[contraction].operands()[1]);
            in_memory.extend([weights.stored]);
            in_memory.extend(weights.scales.map(|scales| scales.values));
            body.members.extend(weights.members);
        }
        // A slice update is in place only if nothing else of the array is read.
        let buffer = is_update(self.computation, root).then(|| self.computation[root].operands()[0]);
        let reads_buffer = |id: InstructionId| {
            let members = &self.groups[&id].members;
            let mut read = members.iter().flat_map(|&m| self.computation[m].operands());
            buffer.is_some_and(|b| {
                let array = origin(self.computation, b);
                id == b || read.any(|&o| origin(self.computation, o) == array)
            })
        };
        let mut seen = BTreeSet::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            if !body.members.contains(&id) {
                if in_memory.contains(&id) || !self.is_copyable(id, body.members.len()) || reads_buffer(id) {
                    body.operands.push(id);
                    continue;
                }
                body.members.extend(&self.groups[&id].members);
            }
            stack.extend(self.computation[id].operands().iter().rev());
        }
        body
    }

    /// The weights of a dot if they are constants in few bits, which the dot's kernel widens in
    /// registers.
    fn narrow_weights(&self, dot: InstructionId) -> Option<NarrowWeights> {
        const FEW_COLUMNS: i64 = 8;
        let weights = NarrowWeights::of(self.computation, dot)?;
        let is_constant = |id: InstructionId| {
            let (array, path) = origin(self.computation, id);
            matches!(self.computation[array].op(), Op::Constant { .. }) && path.is_empty()
        };
        let columns = self.computation[dot].shape().as_array()?.sizes().last().copied()?;
        let [left, right] = *self.computation[dot].operands() else { return None };
        let fits = self.options.widens_weights && columns >= FEW_COLUMNS && left != right;
        let scales = weights.scales.as_ref().is_none_or(|scales| is_constant(scales.values));
        (fits && scales && is_constant(weights.stored)).then_some(weights)
    }

    /// The narrow array whose elements the kernel of a dot widens when it reads them.
    fn narrow_operand(&self, dot: InstructionId) -> Option<InstructionId> {
        let stored = hlo::narrow_operand(self.computation, dot).filter(|_| self.options.widens_weights)?;
        let mut array = stored;
        while let Op::Reshape {} | Op::Bitcast {} = self.computation[array].op() {
            array = self.computation[array].operands()[0];
        }
        // Constants are packed.
        (!matches!(self.computation[array].op(), Op::Constant { .. })).then_some(stored)
    }

    /// True if the group of a root is cheap as a whole, so that it may be copied into a body with
    /// this many members.
    fn is_copyable(&self, root: InstructionId, members: usize) -> bool {
        let group = &self.groups[&root];
        members + group.members.len() <= 2 * self.options.max_instructions
            && group.members.iter().all(|&member| self.is_cheap(member))
    }

    /// True if an instruction only moves or generates data, so that repeating it costs no more than
    /// reading the result.
    fn is_cheap(&self, id: InstructionId) -> bool {
        match self.computation[id].op() {
            // A late read would prevent an in-place update of the array.
            Op::DynamicSlice { .. } => {
                is_passed_through(self.computation, self.computation[id].operands()[0])
                    && is_inner(self.computation, id)
            }
            _ => is_cheap(self.computation, id),
        }
    }
}

/// True if an array is an element of a loop's state that the body returns unchanged.
fn is_passed_through(computation: &Computation, id: InstructionId) -> bool {
    let (parameter, path) = origin(computation, id);
    let root = &computation[computation.root()];
    match (computation[parameter].op(), root.op(), &path[..]) {
        (Op::Parameter { .. }, Op::Tuple {}, &[element]) => {
            let returned = root.operands().get(element);
            returned.is_some_and(|&returned| origin(computation, returned) == (parameter, path))
        }
        _ => false,
    }
}

/// True if an instruction can be computed on the tiles that it reads: elementwise instructions, and
/// reshapes and transposes that keep rows whole.
fn may_follow(computation: &Computation, id: InstructionId) -> bool {
    let op = computation[id].op();
    let moves = matches!(op, Op::Reshape {} | Op::Bitcast {} | Op::Transpose { .. });
    is_static(computation, id) && (op.is_elementwise() || moves && keeps_rows(computation, id))
}

/// True if an instruction moves whole rows of the innermost dimension, or pieces of whole cache
/// lines: a reshape or transpose that does not affect vectors along them.
fn keeps_rows(computation: &Computation, id: InstructionId) -> bool {
    let innermost = |id: InstructionId| {
        let array = computation[id].shape().as_array()?;
        Some((
            array.sizes().into_iter().rev().find(|&size| size != 1)?,
            array.element_type.byte_size() as i64,
        ))
    };
    match computation[id].op() {
        Op::Transpose { dimensions } if dimensions.last().map(|last| last + 1) == Some(dimensions.len()) => {
            innermost(id).is_some_and(|(row, size)| row * size % CACHE_LINE == 0)
        }
        Op::Reshape {} | Op::Bitcast {} => match (innermost(computation[id].operands()[0]), innermost(id)) {
            (Some((from, size)), Some((to, _))) if from.min(to) > 0 => {
                from == to || (from % to == 0 || to % from == 0) && from.min(to) * size % CACHE_LINE == 0
            }
            _ => false,
        },
        _ => false,
    }
}

/// True if an instruction is computed by tiles, to which elementwise work can be applied.
pub(super) fn is_contraction(computation: &Computation, id: InstructionId) -> bool {
    computation[id].op().is_contraction()
}

/// True if an instruction writes a slice into an array.
fn is_update(computation: &Computation, id: InstructionId) -> bool {
    matches!(computation[id].op(), Op::DynamicUpdateSlice {})
}

/// True if an instruction writes a slice at a constant position, a part along one dimension.
fn writes_constant_slice(computation: &Computation, id: InstructionId) -> bool {
    if !is_update(computation, id) || !is_static(computation, id) {
        return false;
    }
    let operands = computation[id].operands();
    let sizes = |id: InstructionId| computation[id].shape().expect_array().sizes();
    let (whole, part) = (sizes(id), sizes(operands[1]));
    let starts = operands[2..].iter().map(|&start| computation[start].op());
    hlo::constant_starts(&whole, &part, starts).is_some() && hlo::cut_dimension(&whole, &part).is_some()
}

/// The array in memory that an instruction represents: the instruction below reshapes and tuples,
/// and the path to the tuple element.
fn origin(computation: &Computation, mut id: InstructionId) -> (InstructionId, Vec<usize>) {
    let mut path = Vec::new();
    loop {
        let instruction = &computation[id];
        match (instruction.op(), path.last()) {
            (Op::Reshape {} | Op::Bitcast {}, _) => id = instruction.operands()[0],
            (Op::GetTupleElement { index }, _) => {
                path.push(*index);
                id = instruction.operands()[0];
            }
            (Op::Tuple {}, Some(&index)) => {
                path.pop();
                id = instruction.operands()[index];
            }
            _ => return (id, path),
        }
    }
}

/// True if an instruction may be inside a fusion: it is fusible, and computing it there pays off.
fn is_inner(computation: &Computation, id: InstructionId) -> bool {
    let op = computation[id].op();
    let pays = match op {
        Op::Reshape {} | Op::Bitcast {} => adds_only_ones(computation, id),
        Op::BitcastConvert {} | Op::Concatenate { .. } | Op::Constant { .. } | Op::Copy {} => false,
        _ => true,
    };
    pays && op.is_fusible() && is_static(computation, id)
}

/// True if a reshape only adds or drops dimensions of size 1, so that indices need no division.
fn adds_only_ones(computation: &Computation, id: InstructionId) -> bool {
    let wide = |id: InstructionId| {
        let array = computation[id].shape().as_array()?;
        let sizes: Vec<i64> = array.sizes().into_iter().filter(|&size| size != 1).collect();
        Some((array.element_type, sizes))
    };
    wide(id) == wide(computation[id].operands()[0])
}

/// True if an instruction may be the root of a fusion. A reshape of memory takes no work, so it may
/// not.
fn is_root(computation: &Computation, id: InstructionId) -> bool {
    match computation[id].op() {
        Op::Reduce { .. } | Op::ReduceWindow { .. } => {
            computation[id].operands().iter().all(|&operand| is_static_array(computation, operand))
        }
        Op::DynamicUpdateSlice {} => is_static(computation, id),
        Op::Reshape {} | Op::Bitcast {} => false,
        _ => is_inner(computation, id),
    }
}

/// True if an instruction generates data, or moves data at constant positions.
fn is_cheap(computation: &Computation, id: InstructionId) -> bool {
    let is_scalar = || computation[id].shape().as_array().is_some_and(|s| s.rank() == 0);
    match computation[id].op() {
        Op::Constant { .. } => is_scalar(),
        Op::Broadcast { .. } | Op::Iota { .. } | Op::Slice { .. } => is_inner(computation, id),
        Op::Reshape {} | Op::Bitcast {} => is_inner(computation, id),
        Op::Compare { .. } => is_inner(computation, id) && is_mask(computation, id),
        _ => false,
    }
}
