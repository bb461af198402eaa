//! Instruction fusion: what is computed together.

use crate::{Changed, Pass};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata, Traits};
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Fuses producers into their consumers.
///
/// Each instruction belongs to at most one fusion, so nothing but cheap data movement is computed twice: a producer joins
/// the fusion that holds all of its users, if each of its elements is needed there once. Three kinds come out: loops, loops
/// that end in a reduction (`kInput`), and elementwise work on the tiles of a dot (`kOutput`). Exact for every input.
pub struct InstructionFusion {
    /// The most instructions in one fusion; bounds the size of a kernel.
    pub max_instructions: usize,
    /// The most operands of one fusion.
    pub max_operands: usize,
}

impl Default for InstructionFusion {
    fn default() -> Self {
        Self { max_instructions: 256, max_operands: 48 }
    }
}

impl Pass for InstructionFusion {
    fn name(&self) -> &'static str {
        "fusion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::executed_computations(module) {
            let groups = self.group(&module[id]);
            for (root, group) in groups {
                changed |= self.fuse(module, id, root, &group);
            }
            crate::dce::sweep(module.computation_mut(id));
        }
        Ok(changed.into())
    }
}

/// Instructions that are computed together.
#[derive(Debug)]
struct Group {
    members: BTreeSet<InstructionId>,
    has_dot: bool,
}

impl InstructionFusion {
    /// Groups a computation's instructions, users before operands.
    fn group(&self, computation: &Computation) -> BTreeMap<InstructionId, Group> {
        let order = computation.post_order();
        let live: BTreeSet<InstructionId> = order.iter().copied().collect();
        let mut groups: BTreeMap<InstructionId, Group> = BTreeMap::new();
        let mut root_of: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
        // Whether an instruction's element is needed exactly where the root's element of the same index is made.
        let mut on_tile: BTreeSet<InstructionId> = BTreeSet::new();
        for &id in order.iter().rev() {
            let joined = self.joins(computation, id, &live, &root_of, &groups, &on_tile);
            let root = joined.unwrap_or(id);
            let is_on_tile = match joined {
                None => true,
                Some(_) => computation[id]
                    .users()
                    .iter()
                    .filter(|user| live.contains(user))
                    .all(|user| on_tile.contains(user) && works_on_tiles(computation, id, *user)),
            };
            if is_on_tile {
                on_tile.insert(id);
            }
            let group = groups.entry(root).or_insert_with(|| Group { members: BTreeSet::new(), has_dot: false });
            group.members.insert(id);
            group.has_dot |= matches!(computation[id].op(), Op::Dot { .. });
            root_of.insert(id, root);
        }
        groups
    }

    /// The root of the fusion that an instruction joins, if there is one.
    fn joins(
        &self,
        computation: &Computation,
        id: InstructionId,
        live: &BTreeSet<InstructionId>,
        root_of: &BTreeMap<InstructionId, InstructionId>,
        groups: &BTreeMap<InstructionId, Group>,
        on_tile: &BTreeSet<InstructionId>,
    ) -> Option<InstructionId> {
        let instruction = &computation[id];
        let is_dot = matches!(instruction.op(), Op::Dot { .. });
        if computation.root() == id || !(is_dot || is_inner(computation, id)) {
            return None;
        }
        let users: Vec<InstructionId> = instruction.users().iter().copied().filter(|u| live.contains(u)).collect();
        let root = *root_of.get(users.first()?)?;
        if users.iter().any(|user| root_of[user] != root) || !is_root(computation, root) {
            return None;
        }
        let group = &groups[&root];
        let fits = group.members.len() < self.max_instructions
            && operand_count(computation, &group.members) + instruction.operands().len() <= self.max_operands;
        let needed_once = if is_dot {
            let on_tiles = |user: &InstructionId| on_tile.contains(user) && works_on_tiles(computation, id, *user);
            !group.has_dot && is_tile_root(computation, root) && users.iter().all(on_tiles)
        } else {
            users.iter().all(|&user| is_needed_once(computation, id, user))
        };
        (fits && needed_once).then_some(root)
    }

    /// Builds the fusion of a group; whether there was anything to fuse.
    fn fuse(&self, module: &mut Module, id: ComputationId, root: InstructionId, group: &Group) -> bool {
        let computation = &module[id];
        if !is_root(computation, root) {
            return false;
        }
        let mut builder = FusedBuilder {
            caller: computation,
            members: &group.members,
            fused: Computation::new("fused_computation"),
            copies: BTreeMap::new(),
            operands: external_operands(computation, root, &group.members),
        };
        builder.parameters();
        let fused_root = builder.copy(root);
        if builder.fused.instructions().count() - builder.operands.len() < 2 {
            return false;
        }
        let kind = match computation[root].op() {
            _ if group.has_dot => FusionKind::Output,
            Op::Reduce { .. } => FusionKind::Input,
            _ => FusionKind::Loop,
        };
        let metadata = fusion_metadata(computation, root, &group.members);
        let (mut fused, operands) = (builder.fused, builder.operands);
        fused.set_root(fused_root);
        let shape = computation[root].shape().clone();
        let calls = module.add_computation(fused);
        let caller = module.computation_mut(id);
        let fusion = caller.add("fusion", Op::Fusion { kind, calls }, shape, &operands, metadata);
        caller.replace_all_uses(root, fusion);
        true
    }
}

/// Whether an instruction may be inside of a fusion.
fn is_inner(computation: &Computation, id: InstructionId) -> bool {
    let instruction = &computation[id];
    if instruction.shape().as_array().is_none_or(|s| !s.is_static()) {
        return false;
    }
    let traits = instruction.opcode().traits();
    match instruction.op() {
        Op::Reshape {} | Op::Bitcast {} => adds_only_ones(computation, id),
        Op::Copy {} => false,
        Op::Clamp {} | Op::Iota { .. } | Op::Pad { .. } | Op::Gather { .. } => true,
        _ => traits.contains(Traits::ELEMENTWISE) || traits.contains(Traits::REINDEXES),
    }
}

/// Whether a reshape only adds or drops dimensions of size 1: indices then need no division.
fn adds_only_ones(computation: &Computation, id: InstructionId) -> bool {
    let sizes = |id: InstructionId| -> Option<Vec<i64>> {
        let array = computation[id].shape().as_array()?;
        Some(array.sizes().into_iter().filter(|&size| size != 1).collect())
    };
    sizes(id) == sizes(computation[id].operands()[0])
}

/// Whether an instruction may be the root of a fusion. A reshape of memory is no work, so it is none.
fn is_root(computation: &Computation, id: InstructionId) -> bool {
    let instruction = &computation[id];
    match instruction.op() {
        Op::Reduce { .. } => true,
        Op::Reshape {} | Op::Bitcast {} => false,
        _ => is_inner(computation, id),
    }
}

/// Whether a dot's tiles may end in this root.
fn is_tile_root(computation: &Computation, root: InstructionId) -> bool {
    !matches!(computation[root].op(), Op::Reduce { .. })
}

/// Whether `user` needs of `id` exactly the element of its own index.
fn works_on_tiles(computation: &Computation, id: InstructionId, user: InstructionId) -> bool {
    let elementwise = computation[user].opcode().traits().contains(Traits::ELEMENTWISE)
        || matches!(computation[user].op(), Op::Clamp {});
    let sizes = |shape: &Shape| shape.as_array().map(|s| s.sizes());
    elementwise && sizes(computation[id].shape()) == sizes(computation[user].shape())
}

/// Whether each element of `id` is computed about once if it is computed inside of `user`'s loop.
fn is_needed_once(computation: &Computation, id: InstructionId, user: InstructionId) -> bool {
    let positions = || computation[user].operands().iter().enumerate().filter(|&(_, &o)| o == id).map(|(k, _)| k);
    match computation[user].op() {
        Op::Dot { .. } => false,
        Op::Broadcast { .. } => is_cheap(computation, id),
        Op::Gather { .. } | Op::DynamicSlice { .. } | Op::Pad { .. } => positions().all(|k| k == 0) || is_cheap(computation, id),
        Op::Reduce { .. } => {
            let inputs = computation[user].operands().len() / 2;
            positions().all(|k| k < inputs)
        }
        _ => true,
    }
}

/// Whether an instruction only moves or makes data, so that doing it again costs no more than reading the result.
fn is_cheap(computation: &Computation, id: InstructionId) -> bool {
    match computation[id].op() {
        Op::Constant { .. } => is_scalar(computation, id),
        Op::Broadcast { .. } | Op::Iota { .. } | Op::Slice { .. } => true,
        Op::Reshape {} | Op::Bitcast {} => adds_only_ones(computation, id),
        _ => false,
    }
}

fn is_scalar(computation: &Computation, id: InstructionId) -> bool {
    computation[id].shape().as_array().is_some_and(|s| s.rank() == 0)
}

/// Operands that members read from outside, counting what will be copied in as one each.
fn operand_count(computation: &Computation, members: &BTreeSet<InstructionId>) -> usize {
    let outside = members.iter().flat_map(|&m| computation[m].operands()).filter(|o| !members.contains(o));
    outside.collect::<BTreeSet<_>>().len()
}

/// What a fusion reads, in the order of its members: cheap producers are copied in, so their operands count instead.
fn external_operands(
    computation: &Computation,
    root: InstructionId,
    members: &BTreeSet<InstructionId>,
) -> Vec<InstructionId> {
    let dots = members.iter().filter(|&&m| matches!(computation[m].op(), Op::Dot { .. }));
    // A dot reads its operands many times, so they are in memory even if they are cheap.
    let dot_operands: BTreeSet<InstructionId> = dots.flat_map(|&m| computation[m].operands()).copied().collect();
    let mut operands = Vec::new();
    let mut seen = BTreeSet::new();
    let mut stack = vec![root];
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        if members.contains(&id) || (!dot_operands.contains(&id) && is_cheap(computation, id)) {
            stack.extend(computation[id].operands().iter().rev());
        } else {
            operands.push(id);
        }
    }
    operands
}

/// The dot's origin if there is one, else the root's, else the first member's that has one.
fn fusion_metadata(
    computation: &Computation,
    root: InstructionId,
    members: &BTreeSet<InstructionId>,
) -> OpMetadata {
    let dot = members.iter().copied().find(|&m| matches!(computation[m].op(), Op::Dot { .. }));
    let candidates = dot.into_iter().chain([root]).chain(members.iter().copied());
    let mut metadata = candidates.map(|id| computation[id].metadata());
    metadata.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}

/// Copies a group into a computation of its own.
struct FusedBuilder<'c> {
    caller: &'c Computation,
    members: &'c BTreeSet<InstructionId>,
    fused: Computation,
    copies: BTreeMap<InstructionId, InstructionId>,
    operands: Vec<InstructionId>,
}

impl FusedBuilder<'_> {
    fn parameters(&mut self) {
        for (number, &operand) in self.operands.iter().enumerate() {
            let original = &self.caller[operand];
            let (shape, metadata) = (original.shape().clone(), OpMetadata::default());
            let name = format!("param_{number}");
            let parameter = self.fused.add(&name, Op::Parameter { number }, shape, &[], metadata);
            self.copies.insert(operand, parameter);
        }
    }

    /// Copies an instruction and what it needs, operands first, without recursion.
    fn copy(&mut self, root: InstructionId) -> InstructionId {
        let mut stack = vec![(root, 0)];
        while let Some((id, next)) = stack.pop() {
            if self.copies.contains_key(&id) {
                continue;
            }
            match self.caller[id].operands().get(next) {
                Some(&operand) => {
                    stack.push((id, next + 1));
                    stack.push((operand, 0));
                }
                None => {
                    let original = &self.caller[id];
                    let operands: Vec<InstructionId> = original.operands().iter().map(|o| self.copies[o]).collect();
                    let (op, shape) = (original.op().clone(), original.shape().clone());
                    let copy = self.fused.add(original.name(), op, shape, &operands, original.metadata().clone());
                    self.copies.insert(id, copy);
                }
            }
        }
        debug_assert!(self.members.contains(&root), "the root is a member");
        self.copies[&root]
    }
}
