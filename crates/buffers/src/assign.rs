//! Assigns memory to every value.

use crate::constants::{self, ConstantsPool};
use crate::moves::{Move, Pair, in_order, rename};
use crate::pack::{Request, aligned, lower_bound, pack};
use crate::sharing::Sharing;
use crate::timeline::{Interval, Timeline, join};
use crate::values::{Values, called};
use crate::{Allocation, BufferAssignment, CopyPair, Leaf, Rotation, Schedule, Slice};
use hlo::{ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Error, Result};

/// Upper bound of the temporaries. No machine has more memory than this, and offsets stay far from
/// overflow.
const MAX_TEMPS: u64 = 1 << 40;

/// State of up to this many bytes is copied rather than exchanged: a copy takes a few instructions
/// and no registers.
const MAX_COPIED_STATE: u64 = 256;

/// Assigns memory to every value of the module. Constants that the pool does not hold are added to
/// it.
pub fn assign(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    pool: &mut ConstantsPool,
) -> Result<BufferAssignment> {
    let values = Values::new(module, plan);
    check_single_callers(module, plan)?;
    let timeline = Timeline::new(module, &values, schedule);
    let mut out = BufferAssignment { result_count: module.result_count(), ..BufferAssignment::default() };
    place_parameters(module, &values, &mut out);
    constants::place(module, plan, &values, pool, &mut out);
    let sharing = Sharing::new(module, plan, &values, &timeline, &out.slices);
    let mut assigner = Assigner {
        module,
        plan,
        values,
        timeline,
        sharing,
        transfers: BTreeMap::new(),
        cycles: BTreeMap::new(),
        places: BTreeMap::new(),
        out,
    };
    assigner.persistent(schedule);
    assigner.transfers();
    assigner.temporaries(schedule)?;
    assigner.worker_scratch()?;
    assigner.start_copies();
    assigner.weakly_aligned();
    assigner.all_leaves(schedule);
    Ok(assigner.out)
}

/// Fails if a computation has several callers. A computation's memory serves one call; two callers
/// would need two copies of it.
fn check_single_callers(module: &Module, plan: &ModulePlan) -> Result<()> {
    let mut seen = BTreeSet::from([module.entry()]);
    for (&computation, plans) in &plan.computations {
        for &instruction in plans.instructions.keys() {
            for callee in called(module[computation][instruction].op()) {
                if !seen.insert(callee) {
                    return Err(Error::unsupported(format!(
                        "computation {} has several callers; give each caller its own copy",
                        module[callee].name()
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Adds the slices of the entry's parameters, which are in the caller's memory.
fn place_parameters(module: &Module, values: &Values<'_>, out: &mut BufferAssignment) {
    let entry = module.entry();
    for (number, &parameter) in module[entry].parameters().iter().enumerate() {
        for leaf in values.leaves(entry, parameter) {
            let size = values.shape(&leaf).byte_size();
            out.slices.insert(leaf, Slice { allocation: Allocation::Parameter(number), offset: 0, size });
        }
    }
}

/// Memory before offsets are known: a class of values, or a slice that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Class(usize),
    Fixed(Slice),
}

/// Purpose of a request for temporaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Class(usize),
    Scratch(ComputationId, InstructionId),
    /// A stage for the copies at the end of a computation.
    Stage(ComputationId, usize),
    /// A stage for the exchanged state of a loop, by place.
    LoopStage(ComputationId, InstructionId, Place),
}

struct Assigner<'m> {
    module: &'m Module,
    plan: &'m ModulePlan,
    values: Values<'m>,
    timeline: Timeline,
    sharing: Sharing,
    /// The copies at the ends of computations.
    transfers: BTreeMap<ComputationId, Vec<Move<Place>>>,
    /// Cycles of places whose contents loops exchange.
    cycles: BTreeMap<(ComputationId, InstructionId), Vec<Vec<Place>>>,
    /// Slices of the temporaries.
    places: BTreeMap<Purpose, Slice>,
    out: BufferAssignment,
}

impl Assigner<'_> {
    fn place(&mut self, definition: &Leaf) -> Place {
        match self.sharing.numbers.get(definition) {
            Some(&number) => Place::Class(self.sharing.classes.find(number)),
            None => Place::Fixed(self.out.slices[definition]),
        }
    }

    fn slice(&mut self, place: Place) -> Slice {
        match place {
            Place::Fixed(slice) => slice,
            Place::Class(class) => match self.sharing.classes.fixed(class) {
                Some(slice) => slice,
                None => self.places[&Purpose::Class(class)],
            },
        }
    }

    /// Determines the copies of root values that are not computed in place.
    fn transfers(&mut self) {
        let entry = self.module.entry();
        let mut pairs = Vec::new();
        let roots = self.values.root_leaves(entry);
        for ((_, definition), (_, number)) in roots.into_iter().zip(self.sharing.destinations.clone()) {
            let to = Place::Class(self.sharing.classes.find(number));
            pairs.push(Pair { from: self.place(&definition), to });
        }
        self.transfers.insert(entry, in_order(&pairs));
        for computation in self.values.order().to_vec() {
            let instructions: Vec<InstructionId> =
                self.plan.computations[&computation].instructions.keys().copied().collect();
            for instruction in instructions {
                match self.module[computation][instruction].op() {
                    Op::While { body, .. } => self.body_transfers(computation, instruction, *body),
                    Op::Conditional { branch_computations } => {
                        for &branch in branch_computations {
                            let pairs = self.pairs(computation, instruction, branch);
                            self.transfers.insert(branch, in_order(&pairs));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The root values of a called computation, each with the place in the caller's result.
    fn pairs(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        callee: ComputationId,
    ) -> Vec<Pair<Place>> {
        let mut pairs = Vec::new();
        for (index, definition) in self.values.root_leaves(callee) {
            let result = (computation, instruction, index);
            if !self.values.is_forwarded(&result) {
                pairs.push(Pair { from: self.place(&definition), to: self.place(&result) });
            }
        }
        pairs
    }

    /// Loop state that cannot be computed in place alternates between two places, which needs no
    /// copies.
    fn body_transfers(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        body: ComputationId,
    ) {
        let pairs = self.pairs(computation, instruction, body);
        let state: BTreeSet<Place> = self.state_places(computation, instruction);
        let inside = Interval { begin: self.timeline.begins[&body], end: self.timeline.ends[&body] };
        let mut movable = BTreeSet::new();
        for pair in &pairs {
            let Place::Class(class) = pair.from else { continue };
            let hull = self.sharing.classes.hull(class);
            let is_inside = hull.is_some_and(|h| inside.begin <= h.begin && h.end <= inside.end);
            let is_own = state.contains(&pair.from) || is_inside;
            if is_own && !self.plan.is_for_device && self.size(class) > MAX_COPIED_STATE {
                movable.insert(pair.from);
            }
        }
        let renaming = rename(&pairs, |pair| movable.contains(&pair.from));
        self.transfers.insert(body, in_order(&renaming.copies));
        if !renaming.cycles.is_empty() {
            self.cycles.insert((computation, instruction), renaming.cycles);
        }
    }

    /// The places of a loop's changing state.
    fn state_places(&mut self, computation: ComputationId, instruction: InstructionId) -> BTreeSet<Place> {
        let leaves = self.values.leaves(computation, instruction);
        let changing: Vec<Leaf> = leaves.into_iter().filter(|leaf| !self.values.is_forwarded(leaf)).collect();
        changing.iter().map(|leaf| self.place(leaf)).collect()
    }

    /// Size of the values of a class, which have equal sizes.
    fn size(&self, class: usize) -> u64 {
        self.sharing.size(class)
    }

    /// Packs everything without other memory into one block.
    fn temporaries(&mut self, schedule: &Schedule) -> Result<()> {
        let mut requests: BTreeMap<Purpose, Request> = BTreeMap::new();
        for &number in self.sharing.numbers.clone().values() {
            let class = self.sharing.classes.find(number);
            let mut intervals = self.sharing.classes.intervals(class);
            if self.sharing.classes.fixed(class).is_none() && !intervals.is_empty() {
                join(&mut intervals);
                requests.insert(Purpose::Class(class), Request { size: self.size(class), intervals });
            }
        }
        for (&computation, plans) in &self.plan.computations {
            for (&instruction, plan) in plans.instructions.iter().filter(|(_, plan)| plan.scratch_bytes > 0) {
                if plan.strategy != Strategy::RngGetAndUpdateState {
                    let tick = self.timeline.positions[&(computation, instruction)];
                    let request = at_once(plan.scratch_bytes, tick);
                    requests.insert(Purpose::Scratch(computation, instruction), request);
                }
            }
        }
        self.stage_requests(&mut requests);
        self.keep_apart(schedule, &mut requests);
        let list: Vec<Request> = requests.values().cloned().collect();
        let (offsets, end) = pack(self.out.persistent_size, &list);
        self.out.temps_lower_bound = self.out.persistent_size.saturating_add(lower_bound(&list));
        if end > MAX_TEMPS {
            return Err(Error::invalid(format!(
                "the graph needs {end} bytes of temporaries; make its arrays smaller"
            ))
            .coded(Code::TooLarge));
        }
        self.out.temps_size = end;
        for ((purpose, request), offset) in requests.into_iter().zip(offsets) {
            let slice = Slice { allocation: Allocation::Temps, offset, size: request.size };
            if let Purpose::Scratch(computation, instruction) = purpose {
                self.out.scratch.insert((computation, instruction), slice);
            }
            self.places.insert(purpose, slice);
        }
        self.write_transfers();
        self.write_rotations();
        Ok(())
    }

    /// Requests stages for copies, and extends the requests of places that a loop exchanges to the
    /// whole loop.
    fn stage_requests(&mut self, requests: &mut BTreeMap<Purpose, Request>) {
        for (&computation, moves) in &self.transfers.clone() {
            for step in moves {
                if let Move::Save(place, stage) = *step {
                    let size = self.place_size(place);
                    let request = at_once(size, self.timeline.ends[&computation]);
                    requests.insert(Purpose::Stage(computation, stage), request);
                }
            }
        }
        for (&(computation, instruction), cycles) in &self.cycles.clone() {
            let place = (computation, instruction);
            let (begin, end) = (self.timeline.positions[&place], self.timeline.after[&place]);
            let state = self.state_places(computation, instruction);
            for cycle in cycles {
                for &place in cycle {
                    if let Place::Class(class) = place
                        && let Some(request) = requests.get_mut(&Purpose::Class(class))
                    {
                        request.intervals.push(Interval { begin, end });
                        join(&mut request.intervals);
                    }
                }
                let cycle_state: Vec<Place> = cycle.iter().filter(|p| state.contains(p)).copied().collect();
                for &place in cycle_state.iter().filter(|_| cycle_state.len() > 1) {
                    let request = at_once(self.place_size(place), end);
                    requests.insert(Purpose::LoopStage(computation, instruction, place), request);
                }
            }
        }
    }

    /// Extends requests of loops that may run at the same time to the whole time of all of them.
    fn keep_apart(&self, schedule: &Schedule, requests: &mut BTreeMap<Purpose, Request>) {
        for (&computation, groups) in &schedule.loop_groups {
            for group in groups {
                let (first, last) = (group[0], group[group.len() - 1]);
                let begin = self.timeline.positions[&(computation, first)];
                let whole = Interval { begin, end: self.timeline.after[&(computation, last)] };
                for request in requests.values_mut() {
                    if request.intervals.iter().any(|interval| interval.overlaps(&whole)) {
                        request.intervals.push(whole);
                        join(&mut request.intervals);
                    }
                }
            }
        }
    }

    fn place_size(&self, place: Place) -> u64 {
        match place {
            Place::Class(class) => self.size(class),
            Place::Fixed(slice) => slice.size,
        }
    }

    fn write_transfers(&mut self) {
        for (computation, moves) in std::mem::take(&mut self.transfers) {
            let mut copies = Vec::new();
            for step in moves {
                let stage = |assigner: &Self, k: usize| assigner.places[&Purpose::Stage(computation, k)];
                copies.push(match step {
                    Move::Copy(pair) => CopyPair { from: self.slice(pair.from), to: self.slice(pair.to) },
                    Move::Save(place, k) => CopyPair { from: self.slice(place), to: stage(self, k) },
                    Move::Restore(k, place) => CopyPair { from: stage(self, k), to: self.slice(place) },
                });
            }
            copies.retain(|copy| copy.from != copy.to && copy.from.size > 0);
            if !copies.is_empty() {
                self.out.end_copies.insert(computation, copies);
            }
        }
    }

    fn write_rotations(&mut self) {
        for ((computation, instruction), cycles) in std::mem::take(&mut self.cycles) {
            let state = self.state_places(computation, instruction);
            let mut rotations = Vec::new();
            for cycle in cycles {
                let cycle_state: Vec<Place> = cycle.iter().filter(|p| state.contains(p)).copied().collect();
                let stages = cycle_state.iter().filter(|_| cycle_state.len() > 1);
                let stages = stages.map(|&p| self.places[&Purpose::LoopStage(computation, instruction, p)]);
                let stages = stages.collect();
                let places = cycle.into_iter().map(|place| self.slice(place)).collect();
                let state = cycle_state.into_iter().map(|place| self.slice(place)).collect();
                rotations.push(Rotation { places, state, stages });
            }
            self.out.rotations.insert((computation, instruction), rotations);
        }
    }

    /// Places random state, which persists from run to run, at the start of the block.
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

    /// Kernels run one after another, so each worker needs the maximum of their requests.
    fn worker_scratch(&mut self) -> Result<()> {
        let plans = self.plan.computations.values().flat_map(|computation| computation.instructions.values());
        let bytes = plans.map(|plan| plan.worker_scratch_bytes).max().unwrap_or(0);
        if bytes > MAX_TEMPS {
            return Err(Error::invalid(format!(
                "the graph needs {bytes} bytes of scratch for each worker; make its arrays smaller"
            ))
            .coded(Code::TooLarge));
        }
        self.out.worker_scratch_size = aligned(bytes);
        Ok(())
    }

    /// Determines the copies of loops' initial state that is not computed in place.
    fn start_copies(&mut self) {
        let (module, plan) = (self.module, self.plan);
        for computation in self.values.order().to_vec() {
            for &instruction in plan.computations[&computation].instructions.keys() {
                let current = &module[computation][instruction];
                let Op::While { .. } = current.op() else { continue };
                let mut copies = Vec::new();
                for leaf in self.values.leaves(computation, current.operands()[0]) {
                    let state = (computation, instruction, leaf.2.clone());
                    if self.values.is_forwarded(&state) {
                        continue;
                    }
                    let definition = self.values.definition(leaf);
                    let (from, to) = (self.place(&definition), self.place(&state));
                    let copy = CopyPair { from: self.slice(from), to: self.slice(to) };
                    if copy.from != copy.to && copy.from.size > 0 {
                        copies.push(copy);
                    }
                }
                if !copies.is_empty() {
                    self.out.start_copies.insert((computation, instruction), copies);
                }
            }
        }
    }

    /// Exchanged places take on each other's alignment.
    fn weakly_aligned(&mut self) {
        let rotations: Vec<&Rotation> = self.out.rotations.values().flatten().collect();
        let is_parameter = |slice: &Slice| matches!(slice.allocation, Allocation::Parameter(_));
        let mut weak: BTreeSet<Slice> = BTreeSet::new();
        // A loop inside another one may pass a place on.
        loop {
            let before = weak.len();
            for rotation in &rotations {
                if rotation.places.iter().any(|slice| is_parameter(slice) || weak.contains(slice)) {
                    weak.extend(&rotation.places);
                }
            }
            if weak.len() == before {
                break;
            }
        }
        self.out.weakly_aligned = weak;
    }

    /// Gives every leaf of every instruction the slice of its definition.
    fn all_leaves(&mut self, schedule: &Schedule) {
        for (&computation, sequence) in &schedule.sequences {
            for &instruction in sequence {
                for leaf in self.values.leaves(computation, instruction) {
                    let definition = self.values.definition(leaf.clone());
                    let has_place = self.sharing.numbers.contains_key(&definition)
                        || self.out.slices.contains_key(&definition);
                    if has_place {
                        let place = self.place(&definition);
                        let slice = self.slice(place);
                        self.out.slices.insert(leaf, slice);
                    }
                }
            }
        }
    }
}

fn at_once(size: u64, tick: usize) -> Request {
    Request { size, intervals: vec![Interval { begin: tick, end: tick }] }
}
