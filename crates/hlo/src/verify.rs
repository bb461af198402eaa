//! The verifier: invariants of every module, regardless of its producer.
//!
//! It reports all violations, not just the first one. It neither panics nor overflows its stack on
//! any module that the graph's editing methods can produce. A debug build runs it after each pass.

mod alias;
mod calls;
mod fusion;
mod graph;
mod instruction;

use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::module::Module;
use std::fmt;
use support::{Error, Result};

/// Maximum nesting depth of calls: a while in a conditional in a while, and so on.
pub const MAX_CALL_DEPTH: usize = 128;

/// A violation and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The computation's name; empty for an error about the module.
    pub computation: String,
    /// The instruction's name; empty for an error about the computation.
    pub instruction: String,
    /// The violation.
    pub message: String,
}

impl fmt::Display for VerifyError {
    /// `main: add.1: the operands must have the same dimensions`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in [&self.computation, &self.instruction] {
            if !place.is_empty() {
                write!(f, "{place}: ")?;
            }
        }
        f.write_str(&self.message)
    }
}

/// Returns all violations in a module, in the order of the module.
pub fn verify_all(module: &Module) -> Vec<VerifyError> {
    let mut errors = Errors::default();
    let are_calls_valid = calls::verify(module, &mut errors);
    for (_, computation) in module.computations() {
        if graph::verify(computation, &mut errors) && are_calls_valid {
            instruction::verify(module, computation, &mut errors);
        }
    }
    if errors.list.is_empty() {
        fusion::verify(module, &mut errors);
        alias::verify(module, &mut errors);
    }
    errors.list
}

/// Checks a module; returns one error that lists all violations.
pub fn verify(module: &Module) -> Result<()> {
    let errors = verify_all(module);
    if errors.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = errors.iter().map(VerifyError::to_string).collect();
    Err(Error::internal(format!("HLO module {} is not valid:\n{}", module.name(), lines.join("\n"))))
}

/// The violations found so far.
#[derive(Default)]
struct Errors {
    list: Vec<VerifyError>,
}

impl Errors {
    fn module(&mut self, message: impl fmt::Display) {
        self.push("", "", message);
    }

    fn computation(&mut self, computation: &Computation, message: impl fmt::Display) {
        self.push(computation.name(), "", message);
    }

    fn instruction(&mut self, computation: &Computation, id: InstructionId, message: impl fmt::Display) {
        self.push(computation.name(), computation[id].name(), message);
    }

    fn push(&mut self, computation: &str, instruction: &str, message: impl fmt::Display) {
        self.list.push(VerifyError {
            computation: computation.to_owned(),
            instruction: instruction.to_owned(),
            message: message.to_string(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::Op;
    use crate::{OpMetadata, parse};
    use shape::{ArrayShape, Literal, PrimitiveType, Shape};

    fn messages(module: &Module) -> Vec<String> {
        verify_all(module).iter().map(VerifyError::to_string).collect()
    }

    fn add(computation: &mut Computation, op: Op, operands: &[InstructionId]) -> InstructionId {
        let shape = Shape::scalar(PrimitiveType::F32);
        computation.add("", op, shape, operands, OpMetadata::default())
    }

    fn module_of(computation: Computation) -> Module {
        let mut module = Module::new("m");
        let entry = module.add_computation(computation);
        module.set_entry(entry);
        module
    }

    #[test]
    fn missing_entries_and_roots_are_reported() {
        assert_eq!(messages(&Module::new("m")), ["the module has no entry"]);
        assert_eq!(messages(&module_of(Computation::new("main"))), ["main: the computation has no root"]);
    }

    #[test]
    fn a_cycle_is_reported() {
        let mut computation = Computation::new("main");
        let x = add(&mut computation, Op::Parameter { number: 0 }, &[]);
        let a = add(&mut computation, Op::Negate {}, &[x]);
        let b = add(&mut computation, Op::Sin {}, &[a]);
        computation.replace_operand(a, 0, b);
        computation.set_root(b);
        let errors = messages(&module_of(computation));
        assert_eq!(errors, ["main: negate: depends on itself", "main: sine: depends on itself"]);
    }

    #[test]
    fn wrong_shapes_of_instructions_and_literals_are_reported() {
        let mut computation = Computation::new("main");
        let x = add(&mut computation, Op::Parameter { number: 0 }, &[]);
        let wrong = Literal::from_elements(&[2], &[1i32, 2]);
        let y = add(&mut computation, Op::Constant { literal: wrong }, &[]);
        let root = add(&mut computation, Op::Add {}, &[x, y]);
        computation.set_shape(root, Shape::array(PrimitiveType::F32, &[3]));
        computation.set_root(root);
        assert_eq!(
            messages(&module_of(computation)),
            [
                "main: constant: constant(): the result has shape s32[2], but f32[] is declared",
                "main: add: add(f32[], f32[]): the result has shape f32[], but f32[3] is declared"
            ]
        );
    }

    #[test]
    fn invalid_bytes_of_a_type_are_reported() {
        let mut computation = Computation::new("main");
        let literal = Literal::from_bytes(ArrayShape::new(PrimitiveType::Pred, &[]), vec![2].into());
        let shape = Shape::scalar(PrimitiveType::Pred);
        let literal = literal.expect("one byte");
        let root = computation.add("c", Op::Constant { literal }, shape, &[], OpMetadata::default());
        computation.set_root(root);
        assert_eq!(messages(&module_of(computation)), ["main: c: a byte of pred[] is neither 0 nor 1"]);
    }

    #[test]
    fn deep_graphs_do_not_overflow_the_stack() {
        let mut text = String::from("HloModule deep\nENTRY main {\n  v0 = f32[] parameter(0)\n");
        for i in 1..200_000 {
            text.push_str(&format!("  v{i} = f32[] negate(v{})\n", i - 1));
        }
        text.push_str("}\n");
        assert_eq!(messages(&parse(&text).expect("a valid text")), [""; 0]);
    }

    #[test]
    fn short_texts_cannot_produce_large_shapes() {
        let doubling = |step: &str| {
            let mut text = String::from("HloModule m\nENTRY main {\n  v0 = f32[1] parameter(0)\n");
            for i in 1..100 {
                text.push_str(&format!("  v{i} = {step}(v{}, v{})\n", i - 1, i - 1));
            }
            text + "}\n"
        };
        for (step, line, why) in [("dot", 12, "more than 256 dimensions"), ("tuple", 24, "too large")] {
            let error = parse(&doubling(step)).expect_err("bounded");
            assert!(error.message().contains(why), "{error}");
            assert!(error.message().starts_with(&format!("{line}: ")), "{error}");
        }
    }

    #[test]
    fn calls_that_nest_too_deep_are_reported() {
        let mut text = String::from("HloModule deep\nf0 {\n  ROOT x = f32[] parameter(0)\n}\n");
        for i in 1..=MAX_CALL_DEPTH + 1 {
            text.push_str(&format!(
                "f{i} {{\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f{}\n}}\n",
                i - 1
            ));
        }
        let errors = messages(&parse(&text).expect("a valid text"));
        assert_eq!(errors, ["f129: calls nest deeper than 128 levels"]);
    }
}
