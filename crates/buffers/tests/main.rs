//! Tests of schedules, assignments, and the checker, with modules whose sizes and lifetimes are
//! small enough to derive the result by hand.
//!
//! One binary links and compiles the shared code once.

mod assignment;
mod checks;
mod lifetimes;
mod loops;
mod schedules;
mod text;

use buffers::{
    Allocation, BufferAssignment, ConstantsPool, Liveness, Schedule, Slice, assign, check, liveness, schedule,
};
use hlo::{ComputationId, InstructionId, Module};
use plan::ModulePlan;
use support::Result;
use target::Target;

/// A module with its schedule and memory.
struct Assigned {
    module: Module,
    plan: ModulePlan,
    schedule: Schedule,
    assignment: BufferAssignment,
    constants_size: u64,
}

/// Parses and plans a module.
fn planned(text: &str) -> (Module, ModulePlan) {
    let module = hlo::parse(text).expect("HLO text");
    hlo::verify(&module).expect("a valid module");
    let target = Target::new("x86_64-pc-linux", "", "").expect("a valid triple");
    let plan = plan::plan(&module, &target).expect("a plan");
    (module, plan)
}

/// Plans, schedules, assigns, and checks a module.
fn assigned(text: &str) -> Assigned {
    let (module, plan) = planned(text);
    let schedule = schedule(&module, &plan);
    let mut pool = ConstantsPool::default();
    let assignment = assign(&module, &plan, &schedule, &mut pool).expect("an assignment");
    check(&module, &plan, &schedule, &assignment).expect("a correct assignment");
    Assigned { module, plan, schedule, assignment, constants_size: pool.finish().size }
}

impl Assigned {
    fn computation(&self, name: &str) -> ComputationId {
        self.module.computations().find(|(_, c)| c.name() == name).expect("a computation").0
    }

    /// An instruction of a computation.
    fn instruction(&self, computation: &str, name: &str) -> InstructionId {
        self.module[self.computation(computation)].find(name).expect("an instruction")
    }

    fn slice(&self, name: &str) -> Slice {
        let entry = self.module.entry();
        let id = self.module[entry].find(name).expect("an instruction of the entry");
        self.assignment.slice(entry, id, &[])
    }

    fn allocation(&self, name: &str) -> Allocation {
        self.slice(name).allocation
    }

    /// The entry's end copies.
    fn copies(&self) -> Vec<(Allocation, Allocation)> {
        let copies = self.assignment.end_copies.get(&self.module.entry());
        copies.into_iter().flatten().map(|c| (c.from.allocation, c.to.allocation)).collect()
    }

    fn position(&self, name: &str) -> usize {
        let entry = self.module.entry();
        let id = self.module[entry].find(name).expect("an instruction of the entry");
        self.schedule.sequences[&entry].iter().position(|&i| i == id).expect("scheduled")
    }

    /// The names of a computation's instructions in the order in which they run.
    fn sequence(&self, computation: &str) -> Vec<&str> {
        let id = self.computation(computation);
        self.schedule.sequences[&id].iter().map(|&i| self.module[id][i].name()).collect()
    }

    /// Checks the assignment, which a test may have changed.
    fn check(&self) -> Result<()> {
        check(&self.module, &self.plan, &self.schedule, &self.assignment)
    }

    fn liveness(&self) -> Liveness {
        liveness(&self.module, &self.plan, &self.schedule)
    }
}
