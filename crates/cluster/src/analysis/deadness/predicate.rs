//! Logical formulas about liveness. They are simplify on construction, and equal formulas have
//! equal IDs.

use crate::graph::{NodeId, OutputTensor};
use std::collections::{HashMap, HashSet};
use support::IdVec;

support::id_type!(
    /// Formula.
    PredicateId,
    "p"
);

/// A formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Predicate {
    /// All of these; true if empty.
    And(Vec<PredicateId>),
    /// Any of these; false if empty.
    Or(Vec<PredicateId>),
    Not(PredicateId),
    /// Live in iteration n of a loop if `start` is and `step` was in all previous iterations:
    /// `start`, `start & step`, ...
    AndRecurrence {
        start: PredicateId,
        step: PredicateId,
        frame: Vec<std::rc::Rc<str>>,
    },
    /// The tensor is live and, if `must_be_true`, true.
    Symbol {
        tensor: OutputTensor,
        must_be_true: bool,
    },
    /// The tensor is live and has this value.
    IntSymbol {
        tensor: OutputTensor,
        value: i32,
    },
}

/// Maximum nesting depth to which formulas are simplify.
const MAX_SIMPLIFIED_DEPTH: usize = 8;

/// Maximum number of operands visited during construction.
const MAX_OPERANDS: usize = 4_000_000;

/// All formulas.
#[derive(Debug, Default)]
pub(crate) struct Predicates {
    all: IdVec<PredicateId, Predicate>,
    ids: HashMap<Predicate, PredicateId>,
    negations: HashMap<PredicateId, PredicateId>,
    depth: usize,
    /// Number of operands visited.
    operands: usize,
}

impl Predicates {
    pub(crate) fn get(&self, id: PredicateId) -> &Predicate {
        &self.all[id]
    }

    /// True if the budget is exhausted and no more formulas should be created.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.operands > MAX_OPERANDS
    }

    pub(crate) fn constant(&mut self, value: bool) -> PredicateId {
        self.intern(if value { Predicate::And(Vec::new()) } else { Predicate::Or(Vec::new()) })
    }

    pub(crate) fn symbol(&mut self, tensor: OutputTensor, must_be_true: bool) -> PredicateId {
        self.intern(Predicate::Symbol { tensor, must_be_true })
    }

    pub(crate) fn int_symbol(&mut self, tensor: OutputTensor, value: i32) -> PredicateId {
        self.intern(Predicate::IntSymbol { tensor, value })
    }

    pub(crate) fn and_recurrence(
        &mut self,
        start: PredicateId,
        step: PredicateId,
        frame: Vec<std::rc::Rc<str>>,
    ) -> PredicateId {
        self.intern(Predicate::AndRecurrence { start, step, frame })
    }

    pub(crate) fn and(&mut self, operands: &[PredicateId]) -> PredicateId {
        self.and_or(operands, true)
    }

    pub(crate) fn or(&mut self, operands: &[PredicateId]) -> PredicateId {
        self.and_or(operands, false)
    }

    pub(crate) fn not(&mut self, operand: PredicateId) -> PredicateId {
        if let Some(&negation) = self.negations.get(&operand) {
            return negation;
        }
        self.depth += 1;
        let negation = if self.depth < MAX_SIMPLIFIED_DEPTH { self.push_inward(operand) } else { None };
        self.depth -= 1;
        let negation = negation.unwrap_or_else(|| self.intern(Predicate::Not(operand)));
        self.negations.insert(operand, negation);
        negation
    }

    /// `~(a & b) => ~a | ~b`, `~(a | b) => ~a & ~b`, `~~a => a`.
    fn push_inward(&mut self, operand: PredicateId) -> Option<PredicateId> {
        let (operands, is_and) = match self.get(operand) {
            Predicate::And(operands) => (operands.clone(), true),
            Predicate::Or(operands) => (operands.clone(), false),
            Predicate::Not(inner) => return Some(*inner),
            _ => return None,
        };
        let negated: Vec<PredicateId> = operands.into_iter().map(|p| self.not(p)).collect();
        Some(self.and_or(&negated, !is_and))
    }

    fn intern(&mut self, predicate: Predicate) -> PredicateId {
        if let Some(&id) = self.ids.get(&predicate) {
            return id;
        }
        self.operands += 1;
        let id = self.all.push(predicate.clone());
        self.ids.insert(predicate, id);
        id
    }

    /// The operands if the formula is an `And` (or, if `is_and` is false, an `Or`).
    fn operands_if(&self, id: PredicateId, is_and: bool) -> Option<&[PredicateId]> {
        match (self.get(id), is_and) {
            (Predicate::And(operands), true) | (Predicate::Or(operands), false) => Some(operands),
            _ => None,
        }
    }

    fn intern_and_or(&mut self, mut operands: Vec<PredicateId>, is_and: bool) -> PredicateId {
        operands.sort_unstable();
        self.intern(if is_and { Predicate::And(operands) } else { Predicate::Or(operands) })
    }

    fn and_or(&mut self, operands: &[PredicateId], is_and: bool) -> PredicateId {
        let mut operands = operands.to_vec();
        operands.sort_unstable();
        operands.dedup();
        // a & true => a.
        operands.retain(|&p| self.operands_if(p, is_and).is_none_or(|inner| !inner.is_empty()));
        if let [operand] = operands[..] {
            return operand;
        }
        self.depth += 1;
        let result = if self.depth >= MAX_SIMPLIFIED_DEPTH {
            self.intern_and_or(operands, is_and)
        } else {
            self.simplify(&operands, is_and)
        };
        self.depth -= 1;
        result
    }

    fn simplify(&mut self, operands: &[PredicateId], is_and: bool) -> PredicateId {
        let mut present: HashSet<PredicateId> = HashSet::new();
        let mut flat: Vec<PredicateId> = Vec::new();
        for &operand in operands {
            // a & a => a.
            if !present.insert(operand) {
                continue;
            }
            // (a & b) & c => a & b & c.
            match self.operands_if(operand, is_and) {
                Some(inner) => {
                    let inner = inner.to_vec();
                    flat.extend(inner.into_iter().filter(|&p| present.insert(p)));
                }
                None => flat.push(operand),
            }
        }
        self.operands += flat.len();
        if let [operand] = flat[..] {
            return operand;
        }
        let mut negated: HashSet<PredicateId> = HashSet::new();
        for &operand in &flat {
            // a & ~a => false.
            if negated.contains(&operand) {
                return self.constant(!is_and);
            }
            let negation = self.not(operand);
            // (~a | ~b) & a & b => false.
            if self
                .operands_if(negation, is_and)
                .is_some_and(|inner| inner.iter().all(|p| present.contains(p)))
            {
                return self.constant(!is_and);
            }
            negated.insert(negation);
        }
        if is_and {
            self.exit_recurrences(&mut flat, &negated);
        }
        if let [operand] = flat[..] {
            return operand;
        }
        self.factor(flat, is_and)
    }

    /// `{s,&,x} & ~x => s`: after a loop ends, its carried values are live if they were live when
    /// it began.
    fn exit_recurrences(&mut self, flat: &mut Vec<PredicateId>, negated: &HashSet<PredicateId>) {
        let mut removed: HashSet<PredicateId> = HashSet::new();
        let mut added = Vec::new();
        for &operand in flat.iter() {
            if let Predicate::AndRecurrence { start, step, .. } = *self.get(operand)
                && negated.contains(&step)
            {
                removed.insert(operand);
                removed.insert(self.not(step));
                added.push(start);
            }
        }
        flat.retain(|p| !removed.contains(p));
        flat.extend(added);
    }

    /// `(a & b) | (a & c) => a & (b | c)`.
    fn factor(&mut self, flat: Vec<PredicateId>, is_and: bool) -> PredicateId {
        let mut common: Vec<PredicateId> = Vec::new();
        for (i, &operand) in flat.iter().enumerate() {
            let Some(inner) = self.operands_if(operand, !is_and) else {
                common.clear();
                break;
            };
            if i == 0 {
                common = inner.to_vec();
            } else {
                let known: HashSet<PredicateId> = common.iter().copied().collect();
                common = inner.iter().copied().filter(|p| known.contains(p)).collect();
            }
            if common.is_empty() {
                break;
            }
        }
        if common.is_empty() {
            return self.intern_and_or(flat, is_and);
        }
        let shared: HashSet<PredicateId> = common.iter().copied().collect();
        let mut rests = Vec::with_capacity(flat.len());
        for operand in flat {
            let inner = self.operands_if(operand, !is_and).expect("an operand is of another kind").to_vec();
            let rest: Vec<PredicateId> = inner.into_iter().filter(|p| !shared.contains(p)).collect();
            rests.push(self.and_or(&rest, !is_and));
        }
        let inner = self.and_or(&rests, is_and);
        let mut outer = vec![inner];
        outer.extend(common);
        self.and_or(&outer, !is_and)
    }

    /// True if a formula contains another at any depth.
    pub(crate) fn contains(&self, id: PredicateId, target: PredicateId) -> bool {
        let mut seen = HashSet::from([id]);
        let mut stack = vec![id];
        while let Some(at) = stack.pop() {
            if at == target {
                return true;
            }
            let inner: &[PredicateId] = match self.get(at) {
                Predicate::And(operands) | Predicate::Or(operands) => operands,
                Predicate::Not(operand) => std::slice::from_ref(operand),
                Predicate::AndRecurrence { start, step, .. } => &[*start, *step],
                Predicate::Symbol { .. } | Predicate::IntSymbol { .. } => &[],
            };
            // A formula has a larger ID than its operands.
            stack.extend(inner.iter().copied().filter(|&p| p >= target && seen.insert(p)));
        }
        false
    }

    /// Text of a formula in TensorFlow's notation, truncated if it is long.
    pub(crate) fn text(&self, id: PredicateId, name: &dyn Fn(NodeId) -> String) -> String {
        let mut out = String::new();
        self.write(id, name, &mut out);
        if out.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|&end| out.is_char_boundary(end)).unwrap_or(0);
            out.truncate(end);
            out.push_str("...");
        }
        out
    }

    fn write(&self, id: PredicateId, name: &dyn Fn(NodeId) -> String, out: &mut String) {
        if out.len() > MAX_TEXT {
            return;
        }
        let tensor = |&OutputTensor { node, output }: &OutputTensor| match output {
            0 => name(node),
            _ => format!("{}:{output}", name(node)),
        };
        match self.get(id) {
            Predicate::And(operands) if operands.is_empty() => out.push_str("#true"),
            Predicate::Or(operands) if operands.is_empty() => out.push_str("#false"),
            Predicate::And(operands) => self.write_joined(operands, " & ", name, out),
            Predicate::Or(operands) => self.write_joined(operands, " | ", name, out),
            Predicate::Not(operand) => {
                out.push('~');
                self.write(*operand, name, out);
            }
            Predicate::AndRecurrence { start, step, frame } => {
                out.push('{');
                self.write(*start, name, out);
                out.push_str(",&,");
                self.write(*step, name, out);
                out.push_str("}<");
                out.push_str(&frame.join(";"));
                out.push('>');
            }
            Predicate::Symbol { tensor: id, must_be_true } => {
                out.push_str(if *must_be_true { "*" } else { "" });
                out.push_str(&tensor(id));
            }
            Predicate::IntSymbol { tensor: id, value } => out.push_str(&format!("{}={value}", tensor(id))),
        }
    }

    fn write_joined(
        &self,
        operands: &[PredicateId],
        separator: &str,
        name: &dyn Fn(NodeId) -> String,
        out: &mut String,
    ) {
        out.push('(');
        for (i, &operand) in operands.iter().enumerate() {
            if i > 0 {
                out.push_str(separator);
            }
            self.write(operand, name, out);
            if out.len() > MAX_TEXT {
                return;
            }
        }
        out.push(')');
    }
}

/// Maximum length of a formula's text in bytes.
const MAX_TEXT: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use support::Id;

    fn symbols<const N: usize>(all: &mut Predicates) -> [PredicateId; N] {
        std::array::from_fn(|i| all.symbol(OutputTensor { node: NodeId::from_index(i), output: 0 }, true))
    }

    #[test]
    fn order_and_grouping_make_no_difference() {
        let mut all = Predicates::default();
        let [a, b, c] = symbols(&mut all);
        let ab = all.and(&[a, b]);
        let bc = all.and(&[b, c]);
        assert_eq!(all.and(&[ab, c]), all.and(&[a, bc]));
        assert_eq!(all.or(&[a, b]), all.or(&[b, a, b]));
        assert_eq!(all.and(&[a]), a);
    }

    #[test]
    fn a_formula_and_its_negation_are_false_or_true() {
        let mut all = Predicates::default();
        let [a, b] = symbols(&mut all);
        let not_a = all.not(a);
        let (always, never) = (all.constant(true), all.constant(false));
        assert_eq!(all.and(&[a, not_a]), never);
        assert_eq!(all.or(&[a, b, not_a]), always);
        assert_eq!(all.not(not_a), a);
        let ab = all.and(&[a, b]);
        let not_ab = all.not(ab);
        assert_eq!(all.and(&[not_ab, a, b]), never);
    }

    #[test]
    fn common_operands_are_factored_out() {
        let mut all = Predicates::default();
        let [a, b, c] = symbols(&mut all);
        let (ab, ac) = (all.and(&[a, b]), all.and(&[a, c]));
        let bc = all.or(&[b, c]);
        assert_eq!(all.or(&[ab, ac]), all.and(&[a, bc]));
        // The two branches of a conditional: together they are live whenever the conditional is.
        let not_b = all.not(b);
        let other = all.and(&[a, not_b]);
        assert_eq!(all.or(&[ab, other]), a);
    }

    #[test]
    fn after_a_loop_its_start_decides() {
        let mut all = Predicates::default();
        let [start, step, other] = symbols(&mut all);
        let carried = all.and_recurrence(start, step, vec!["frame".into()]);
        let ended = all.not(step);
        assert_eq!(all.and(&[carried, ended]), start);
        let unrelated = all.not(other);
        assert_ne!(all.and(&[carried, unrelated]), start);
        assert_eq!(all.text(carried, &|node| node.to_string()), "{*n0,&,*n1}<frame>");
    }
}
