//! Why the planner prefers one candidate: modeled costs where a model computes them, and the rules.

use crate::candidate::Candidate;

/// The candidates of an instruction, and why the first is the planner's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Rationale {
    /// Candidates, the planner's choice first.
    pub candidates: Vec<Considered>,
    /// Model or rules that chose, and why, in one line.
    pub reason: String,
}

/// A candidate with its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Considered {
    /// The candidate.
    pub candidate: Candidate,
    /// Cost that a model computes. `None` if only rules apply.
    pub cost: Option<ModeledCost>,
}

/// Cost by a model. Only costs with the same unit are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeledCost {
    /// Number of units.
    pub amount: f64,
    /// Unit, in words.
    pub unit: &'static str,
}
