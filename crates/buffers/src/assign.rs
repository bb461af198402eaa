//! Gives every value its memory.

use crate::liveness::{Interval, Liveness};
use crate::pack::{Request, aligned, pack};
use crate::schedule::{in_place_target, reads_value};
use crate::values::Values;
use crate::{Allocation, BufferAssignment, CopyPair, Leaf, Schedule, Slice};
use bytes::Bytes;
use hlo::{ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use std::collections::BTreeMap;
use support::{Error, Result};

/// More temporaries than this are refused: no machine has them, and offsets stay far from overflow.
const MAX_TEMPS: u64 = 1 << 40;

/// Assigns memory to every value of the module.
pub fn assign(module: &Module, plan: &ModulePlan, schedule: &Schedule) -> Result<BufferAssignment> {
    assign_sharing(module, plan, schedule, &mut ConstantsPool::default())
}

/// The block of constants that several assignments share: what a module needs on different machines. Equal bytes have
/// one place.
#[derive(Clone, Debug, Default)]
pub struct ConstantsPool {
    places: BTreeMap<Bytes, u64>,
    parts: Vec<(u64, Bytes)>,
    size: u64,
}

impl ConstantsPool {
    fn place(&mut self, bytes: &Bytes) -> u64 {
        if let Some(&offset) = self.places.get(bytes) {
            return offset;
        }
        let offset = self.size;
        self.size += aligned(bytes.len() as u64);
        self.parts.push((offset, bytes.clone()));
        self.places.insert(bytes.clone(), offset);
        offset
    }

    /// Lets an assignment hold the constants of all that share the block.
    pub fn give_to(&self, assignment: &mut BufferAssignment) {
        assignment.constants.clone_from(&self.parts);
        assignment.constants_size = self.size;
    }
}

/// As [`assign`]; constants that are not in the pool yet are added to it, and the assignment's are all that it has
/// then.
pub fn assign_sharing(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    pool: &mut ConstantsPool,
) -> Result<BufferAssignment> {
    let values = Values::new(module, plan);
    let liveness = Liveness::new(module, &values, schedule);
    let mut assigner = Assigner {
        module,
        plan,
        values,
        liveness,
        homes: BTreeMap::new(),
        staged: Vec::new(),
        out: BufferAssignment::default(),
    };
    assigner.callers_memory();
    assigner.root_places(schedule);
    assigner.constants(pool);
    assigner.temporaries(schedule)?;
    assigner.worker_scratch()?;
    assigner.copies(schedule);
    assigner.forwarded_leaves(schedule);
    Ok(assigner.out)
}

/// A copy at the end of a computation whose source is a parameter that another end copy overwrites.
struct Staged {
    computation: ComputationId,
    source: Leaf,
    slice: Option<Slice>,
}

struct Assigner<'m> {
    module: &'m Module,
    plan: &'m ModulePlan,
    values: Values<'m>,
    liveness: Liveness,
    /// Definitions whose memory is another definition's, and why: a root value made in place.
    homes: BTreeMap<Leaf, Home>,
    staged: Vec<Staged>,
    out: BufferAssignment,
}

/// Memory that a value takes instead of a temporary of its own.
#[derive(Clone, Debug)]
enum Home {
    /// Memory of the caller.
    Slice(Slice),
    /// The memory of a value of control flow: a conditional's result, a while's state.
    Leaf(Leaf),
}

impl Assigner<'_> {
    /// Entry parameters live with the caller.
    fn callers_memory(&mut self) {
        let entry = self.module.entry();
        for (number, &parameter) in self.module[entry].parameters().iter().enumerate() {
            for leaf in self.values.leaves(entry, parameter) {
                let slice = self.whole(Allocation::Parameter(number), &leaf);
                self.out.slices.insert(leaf, slice);
            }
        }
    }

    fn whole(&self, allocation: Allocation, leaf: &Leaf) -> Slice {
        Slice { allocation, offset: 0, size: self.values.shape(leaf).byte_size() }
    }

    /// The slice or value where a leaf of a root belongs.
    fn root_destination(&self, computation: ComputationId, index: &[usize]) -> Option<Home> {
        if computation == self.module.entry() {
            return Some(match in_place_target(&self.values, self.module, computation, index) {
                Some(parameter) => Home::Slice(self.out.slices[&parameter]),
                None => {
                    let root = (computation, self.module[computation].root(), index.to_vec());
                    let number = index.first().copied().unwrap_or(0);
                    Home::Slice(self.whole(Allocation::Result(number), &root))
                }
            });
        }
        let caller = self.values.caller(computation)?;
        let op = self.module[caller.computation][caller.instruction].op();
        let is_condition = matches!(op, Op::While { condition, .. } if *condition == computation);
        let leaf = (caller.computation, caller.instruction, index.to_vec());
        (!is_condition).then_some(Home::Leaf(leaf))
    }

    /// Lets root values be made where they belong, where nothing stands against it.
    fn root_places(&mut self, schedule: &Schedule) {
        for &computation in schedule.sequences.keys() {
            for (index, definition) in self.values.root_leaves(computation) {
                let Some(home) = self.root_destination(computation, &index) else { continue };
                let made_here = definition.0 == computation && !self.has_own_memory(&definition);
                if made_here
                    && !self.homes.contains_key(&definition)
                    && self.may_take(computation, &index, &definition)
                {
                    self.homes.insert(definition, home);
                }
            }
        }
    }

    /// Whether a definition is memory that exists anyway: an entry parameter's or a constant's.
    fn has_own_memory(&self, definition: &Leaf) -> bool {
        let op = self.module[definition.0][definition.1].op();
        matches!(op, Op::Parameter { .. } | Op::Constant { .. } | Op::RngGetAndUpdateState { .. })
    }

    /// Whether a root value may be made in the place of the old value that it replaces: nobody reads the old one
    /// afterwards, and its maker, if it reads it, may overwrite it.
    fn may_take(&self, computation: ComputationId, index: &[usize], definition: &Leaf) -> bool {
        let Some(old) = in_place_target(&self.values, self.module, computation, index) else { return true };
        if self.values.root_leaves(computation).iter().any(|(_, d)| *d == old) {
            return false;
        }
        let made_at = self.liveness.positions[&(computation, definition.1)];
        for &reader in self.plan.computations[&computation].instructions.keys() {
            if self.values.is_alias(computation, reader)
                || !reads_value(&self.values, computation, reader, &old)
            {
                continue;
            }
            let in_place = reader == definition.1 && self.may_overwrite(definition, &old);
            if self.liveness.positions[&(computation, reader)] >= made_at && !in_place {
                return false;
            }
        }
        true
    }

    /// Whether the maker of a value may write it over an operand's.
    fn may_overwrite(&self, definition: &Leaf, operand_value: &Leaf) -> bool {
        let (computation, instruction, _) = definition;
        let plan = self.values.plan(*computation, *instruction);
        let operands = self.module[*computation][*instruction].operands();
        let reading: Vec<usize> = (0..operands.len())
            .filter(|&k| {
                let leaves = self.values.leaves(*computation, operands[k]);
                leaves.into_iter().any(|leaf| self.values.definition(leaf) == *operand_value)
            })
            .collect();
        self.module[*computation][*instruction].shape().as_array().is_some()
            && !reading.is_empty()
            && reading.iter().all(|k| plan.may_overwrite.contains(k))
            && self.values.shape(definition).byte_size() == self.values.shape(operand_value).byte_size()
    }

    /// Lays out the constants that kernels, copies or results read, equal ones once.
    fn constants(&mut self, pool: &mut ConstantsPool) {
        let out = &mut self.out;
        let mut place = |bytes: &Bytes| {
            let at = pool.place(bytes);
            Slice { allocation: Allocation::Constants, offset: at, size: bytes.len() as u64 }
        };
        let mut read = BTreeMap::new();
        for (&computation, plans) in &self.plan.computations {
            for (&instruction, plan) in &plans.instructions {
                if plan.strategy != Strategy::Alias {
                    for leaf in self.values.reads(computation, instruction) {
                        read.insert(leaf, ());
                    }
                }
                for (position, packed) in plan.packed.iter().enumerate() {
                    out.packed.insert((computation, instruction, position), place(&packed.bytes));
                }
            }
            for (_, leaf) in self.values.root_leaves(computation) {
                read.insert(leaf, ());
            }
        }
        for leaf in read.into_keys() {
            if let Op::Constant { literal } = self.module[leaf.0][leaf.1].op() {
                let slice = place(constant_leaf(literal, &leaf.2));
                out.slices.insert(leaf, slice);
            }
        }
        pool.give_to(&mut self.out);
    }

    /// Packs everything that has no other memory into one block.
    fn temporaries(&mut self, schedule: &Schedule) -> Result<()> {
        self.persistent(schedule);
        self.stage(schedule);
        let groups = self.groups();
        let mut requests: Vec<Request> = groups
            .iter()
            .map(|group| Request {
                size: self.values.shape(&group.leaves[0]).byte_size(),
                interval: group.interval,
            })
            .collect();
        let scratch: Vec<(ComputationId, InstructionId, u64)> = self.scratch_requests();
        for &(computation, instruction, size) in &scratch {
            let position = self.liveness.positions[&(computation, instruction)];
            requests.push(Request { size, interval: Interval { begin: position, end: position } });
        }
        for staged in &self.staged {
            let end = self.liveness.ends[&staged.computation];
            let size = self.values.shape(&staged.source).byte_size();
            requests.push(Request { size, interval: Interval { begin: end, end } });
        }
        let (offsets, end) = pack(self.out.persistent_size, &requests);
        if end > MAX_TEMPS {
            return Err(Error::invalid(format!(
                "the graph needs {end} bytes of temporaries; make its arrays smaller"
            )));
        }
        self.out.temps_size = end;
        let mut places = offsets.into_iter().zip(&requests).map(|(offset, request)| Slice {
            allocation: Allocation::Temps,
            offset,
            size: request.size,
        });
        for group in groups {
            let slice = places.next().expect("an offset for each request");
            for leaf in group.leaves {
                self.out.slices.insert(leaf, slice);
            }
        }
        for (computation, instruction, _) in scratch {
            self.out
                .scratch
                .insert((computation, instruction), places.next().expect("an offset for each request"));
        }
        for staged in &mut self.staged {
            staged.slice = places.next();
        }
        Ok(())
    }

    /// Random state keeps its bytes from run to run, at the start of the block.
    fn persistent(&mut self, schedule: &Schedule) {
        for (&computation, sequence) in &schedule.sequences {
            for &instruction in sequence {
                let plan = self.values.plan(computation, instruction);
                if plan.strategy == Strategy::RngGetAndUpdateState {
                    let offset = self.out.persistent_size;
                    let slice = Slice { allocation: Allocation::Temps, offset, size: 16 };
                    self.out.scratch.insert((computation, instruction), slice);
                    self.out.persistent_size += aligned(16);
                }
            }
        }
    }

    /// Kernels run one after another, so each worker needs the most that one of them asks for.
    fn worker_scratch(&mut self) -> Result<()> {
        let plans = self.plan.computations.values().flat_map(|computation| computation.instructions.values());
        let bytes = plans.map(|plan| plan.worker_scratch_bytes).max().unwrap_or(0);
        if bytes > MAX_TEMPS {
            return Err(Error::invalid(format!(
                "the graph needs {bytes} bytes of scratch for each worker; make its arrays smaller"
            )));
        }
        self.out.worker_scratch_size = aligned(bytes);
        Ok(())
    }

    fn scratch_requests(&self) -> Vec<(ComputationId, InstructionId, u64)> {
        let plans = self.plan.computations.iter();
        plans
            .flat_map(|(&c, p)| p.instructions.iter().map(move |(&i, plan)| (c, i, plan.scratch_bytes)))
            .filter(|&(_, _, bytes)| bytes > 0)
            .collect()
    }

    /// Values that share memory, with the time during which one of them is alive.
    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of: BTreeMap<Leaf, usize> = BTreeMap::new();
        let mut definitions: Vec<(&Leaf, &Interval)> = self.liveness.intervals.iter().collect();
        definitions.sort_by_key(|(leaf, interval)| (interval.begin, *leaf));
        for (leaf, interval) in definitions {
            if self.out.slices.contains_key(leaf)
                || self.constant_or_parameter(leaf)
                || self.home_slice(leaf).is_some()
            {
                continue;
            }
            let owner = self.home_leaf(leaf);
            let group = match owner {
                Some(owner) => group_of.get(&owner).copied(),
                None => self.overwritten_group(leaf, interval, &group_of, &groups),
            };
            let group = group.unwrap_or_else(|| {
                groups.push(Group { leaves: Vec::new(), interval: *interval });
                groups.len() - 1
            });
            groups[group].leaves.push(leaf.clone());
            groups[group].interval.extend(interval.begin);
            groups[group].interval.extend(interval.end);
            group_of.insert(leaf.clone(), group);
        }
        groups
    }

    fn constant_or_parameter(&self, leaf: &Leaf) -> bool {
        matches!(self.module[leaf.0][leaf.1].op(), Op::Constant { .. } | Op::Parameter { .. })
    }

    /// The group of an operand that dies where this value is made and may be overwritten by it.
    fn overwritten_group(
        &self,
        leaf: &Leaf,
        interval: &Interval,
        group_of: &BTreeMap<Leaf, usize>,
        groups: &[Group],
    ) -> Option<usize> {
        if self.values.plan(leaf.0, leaf.1).may_overwrite.is_empty() {
            return None;
        }
        self.values.reads(leaf.0, leaf.1).into_iter().find_map(|operand| {
            let group = *group_of.get(&operand)?;
            let dies = groups[group].interval.end == interval.begin;
            (dies && self.may_overwrite(leaf, &operand)).then_some(group)
        })
    }

    /// The caller's memory that a value is made in, through any number of branches.
    fn home_slice(&self, leaf: &Leaf) -> Option<Slice> {
        match self.homes.get(leaf)? {
            Home::Slice(slice) => Some(*slice),
            Home::Leaf(outer) => self.home_slice(outer),
        }
    }

    /// The outermost value whose memory a value is made in.
    fn home_leaf(&self, leaf: &Leaf) -> Option<Leaf> {
        match self.homes.get(leaf)? {
            Home::Slice(_) => None,
            Home::Leaf(outer) => Some(self.home_leaf(outer).unwrap_or_else(|| outer.clone())),
        }
    }

    fn slice_of(&self, definition: &Leaf) -> Slice {
        match self.out.slices.get(definition) {
            Some(slice) => *slice,
            None => self.home_slice(definition).expect("every value has memory"),
        }
    }

    /// Root values that are not made in their place, with the slice where they belong.
    fn misplaced(&self, computation: ComputationId) -> Vec<(Leaf, Home)> {
        let leaves = self.values.root_leaves(computation);
        let mut taken: Vec<Home> = Vec::new();
        let mut misplaced = Vec::new();
        for (index, definition) in leaves {
            let Some(home) = self.root_destination(computation, &index) else { continue };
            let is_home = self.homes.get(&definition).is_some_and(|h| h.same(&home))
                && !taken.iter().any(|t| t.same(&home));
            let is_old =
                in_place_target(&self.values, self.module, computation, &index) == Some(definition.clone());
            if is_home || is_old {
                taken.push(home);
            } else {
                misplaced.push((definition, home));
            }
        }
        misplaced
    }

    /// Finds the end copies that read an old value which another end copy overwrites: they go through scratch.
    fn stage(&mut self, schedule: &Schedule) {
        for &computation in schedule.sequences.keys() {
            let misplaced = self.misplaced(computation);
            for (source, home) in &misplaced {
                let overwritten = misplaced.iter().any(|(_, other)| other.is_memory_of(self, source));
                if overwritten && !home.is_memory_of(self, source) {
                    self.staged.push(Staged { computation, source: source.clone(), slice: None });
                }
            }
        }
    }

    /// The copies at starts of whiles and ends of computations.
    fn copies(&mut self, schedule: &Schedule) {
        for (&computation, sequence) in &schedule.sequences {
            for &instruction in sequence {
                if let Op::While { .. } = self.module[computation][instruction].op() {
                    let copies = self.initial_state(computation, instruction);
                    self.out.start_copies.insert((computation, instruction), copies);
                }
            }
            let mut early = Vec::new();
            let mut late = Vec::new();
            for (source, home) in self.misplaced(computation) {
                let to = match &home {
                    Home::Slice(slice) => *slice,
                    Home::Leaf(leaf) => self.slice_of(leaf),
                };
                let from = self.slice_of(&source);
                let staged = self.staged.iter().find(|s| s.computation == computation && s.source == source);
                match staged.and_then(|s| s.slice) {
                    Some(stage) => {
                        early.push(CopyPair { from, to: stage });
                        late.push(CopyPair { from: stage, to });
                    }
                    None => late.push(CopyPair { from, to }),
                }
            }
            early.extend(late);
            early.retain(|copy| copy.from != copy.to && copy.from.size > 0);
            if !early.is_empty() {
                self.out.end_copies.insert(computation, early);
            }
        }
    }

    fn initial_state(&self, computation: ComputationId, instruction: InstructionId) -> Vec<CopyPair> {
        let operand = self.module[computation][instruction].operands()[0];
        let leaves = self.values.leaves(computation, operand);
        leaves
            .into_iter()
            .map(|leaf| {
                let to = self.slice_of(&(computation, instruction, leaf.2.clone()));
                CopyPair { from: self.slice_of(&self.values.definition(leaf)), to }
            })
            .filter(|copy| copy.from != copy.to && copy.from.size > 0)
            .collect()
    }

    /// Gives every leaf of every instruction the slice of its definition.
    fn forwarded_leaves(&mut self, schedule: &Schedule) {
        for (&computation, sequence) in &schedule.sequences {
            for &instruction in sequence {
                for leaf in self.values.leaves(computation, instruction) {
                    let definition = self.values.definition(leaf.clone());
                    let unread_constant =
                        self.constant_or_parameter(&definition) && !self.out.slices.contains_key(&definition);
                    if !unread_constant {
                        let slice = self.slice_of(&definition);
                        self.out.slices.insert(leaf, slice);
                    }
                }
            }
        }
    }
}

impl Home {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Slice(a), Self::Slice(b)) => a == b,
            (Self::Leaf(a), Self::Leaf(b)) => a == b,
            _ => false,
        }
    }

    /// Whether this is the memory of a value that exists before the copies run.
    fn is_memory_of(&self, assigner: &Assigner<'_>, value: &Leaf) -> bool {
        match self {
            Self::Slice(slice) => assigner.out.slices.get(value) == Some(slice),
            Self::Leaf(leaf) => leaf == value,
        }
    }
}

/// Values in one piece of memory.
struct Group {
    leaves: Vec<Leaf>,
    interval: Interval,
}

fn constant_leaf<'l>(literal: &'l shape::Literal, index: &[usize]) -> &'l Bytes {
    match (literal, index) {
        (shape::Literal::Tuple(elements), [first, rest @ ..]) => constant_leaf(&elements[*first], rest),
        (array, _) => array.bytes(),
    }
}
