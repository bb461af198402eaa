//! Uniformity: which values are the same in all threads of a workgroup, and the check that all
//! threads of a workgroup reach each barrier.
//!
//! A value is divergent if it is computed from the thread's number, from bytes loaded at a
//! divergent address, by a product of matrices, or in a loop or branch that threads leave at
//! different times. Everything else is uniform. A load at a uniform address is uniform because the
//! language forbids races: between two barriers, no thread writes bytes that another one reads.

use crate::language::*;
use support::{Error, Id, Result};

/// Fails if a kernel has a barrier that only some threads of a workgroup may reach, or reach
/// unequally often.
pub(crate) fn check_barriers(function: &Function) -> Result<()> {
    if !function.body.walk().any(joins_threads) {
        return Ok(());
    }
    let mut analysis = Analysis { divergent: vec![false; function.values.len()], has_changed: true };
    while std::mem::take(&mut analysis.has_changed) {
        analysis.block(&function.body);
    }
    analysis.barriers(&function.body, false)
}

/// True for statements that all threads have to reach together.
fn joins_threads(statement: &Statement) -> bool {
    matches!(statement, Statement::Barrier | Statement::Let(_, Expression::MatrixMultiplyAdd { .. }))
}

/// The error of a statement that only some threads reach.
#[inline(never)]
fn separated(statement: &Statement) -> Error {
    let what = if matches!(statement, Statement::Barrier) { "barrier" } else { "product of matrices" };
    Error::internal(format!("a {what} is in a loop or branch that depends on the thread's number"))
}

struct Analysis {
    /// True for each value that may differ between the threads of a workgroup.
    divergent: Vec<bool>,
    /// True if the current pass found another divergent value.
    has_changed: bool,
}

impl Analysis {
    fn is_divergent(&self, id: ValueId) -> bool {
        self.divergent[id.index()]
    }

    fn any(&self, ids: impl IntoIterator<Item = ValueId>) -> bool {
        ids.into_iter().any(|id| self.is_divergent(id))
    }

    fn mark(&mut self, id: ValueId, is_divergent: bool) {
        if is_divergent && !self.divergent[id.index()] {
            self.divergent[id.index()] = true;
            self.has_changed = true;
        }
    }

    /// Marks the divergent values of a region.
    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let(id, expression) => {
                    let is_divergent = matches!(
                        expression,
                        Expression::Thread(ThreadIndex::Local)
                            | Expression::StackSlot { .. }
                            | Expression::MatrixMultiplyAdd { .. }
                    );
                    let from_operands = self.any(expression.operands());
                    self.mark(*id, is_divergent || from_operands);
                }
                Statement::For { index, begin, end, carried, body, .. } => {
                    let leaves_apart = self.any([*begin, *end]);
                    self.mark(*index, leaves_apart);
                    self.repetition(carried, &body.yields, leaves_apart);
                    self.block(body);
                }
                Statement::While { carried, condition, body } => {
                    self.block(condition);
                    let leaves_apart = self.any(condition.yields.iter().copied());
                    self.repetition(carried, &body.yields, leaves_apart);
                    self.block(body);
                }
                Statement::If { condition, results, then, otherwise } => {
                    let is_divergent = self.is_divergent(*condition);
                    self.block(then);
                    self.block(otherwise);
                    for ((result, a), b) in results.iter().zip(&then.yields).zip(&otherwise.yields) {
                        let from_branches = self.any([*a, *b]);
                        self.mark(*result, is_divergent || from_branches);
                    }
                }
                _ => {}
            }
        }
    }

    fn repetition(&mut self, carried: &[Carried], yields: &[ValueId], leaves_apart: bool) {
        for (c, next) in carried.iter().zip(yields) {
            let from_values = self.any([c.initial, *next]);
            self.mark(c.inner, from_values || leaves_apart);
            self.mark(c.result, from_values || leaves_apart);
        }
    }

    fn barriers(&self, block: &Block, apart: bool) -> Result<()> {
        for statement in &block.statements {
            let apart_inside = match statement {
                statement if apart && joins_threads(statement) => return Err(separated(statement)),
                Statement::For { begin, end, .. } => self.any([*begin, *end]),
                Statement::While { condition, .. } => self.any(condition.yields.iter().copied()),
                Statement::If { condition, .. } => self.is_divergent(*condition),
                _ => false,
            };
            for inner in statement.blocks() {
                self.barriers(inner, apart || apart_inside)?;
            }
        }
        Ok(())
    }
}

impl Expression {
    /// The values that the expression reads.
    pub fn operands(&self) -> Vec<ValueId> {
        match self {
            Self::Unary(_, a)
            | Self::Convert(_, a)
            | Self::Splat(a)
            | Self::Extract(a, _)
            | Self::ByteLookup { index: a, .. } => vec![*a],
            Self::Binary(_, a, b)
            | Self::Compare(_, a, b)
            | Self::Insert(a, _, b)
            | Self::Shuffle(a, b, _)
            | Self::Offset { pointer: a, index: b, .. } => vec![*a, *b],
            Self::MultiplyAdd(a, b, c)
            | Self::GroupMultiplyAdd { a, b, c, .. }
            | Self::MatrixMultiplyAdd { a, b, c, .. }
            | Self::Select(a, b, c) => vec![*a, *b, *c],
            Self::Load { pointer, mask, .. } => std::iter::once(*pointer).chain(*mask).collect(),
            Self::Constant(_)
            | Self::Iota
            | Self::StackSlot { .. }
            | Self::FunctionAddress(_)
            | Self::Bytes(_)
            | Self::CycleCounter
            | Self::Thread(_)
            | Self::WorkgroupMemory { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{parse, verify};

    fn kernel(body: &str) -> String {
        format!(
            "kernel 64 fn \"k\" (v0 \"guard\": ptr, v1 \"x\": ptr) {{\n  v2: i64 = constant 0\n  v3: i64 = constant 8\n{body}\n}}"
        )
    }

    fn check(body: &str) -> Result<(), String> {
        verify(&parse(&kernel(body)).expect("a program")).map_err(|e| e.to_string())
    }

    #[test]
    fn barriers_are_in_uniform_control_flow() {
        check("for v4 in v2..v3 step 1 { barrier }").expect("a uniform loop");
        check("v4: i64 = workgroup\n for v5 in v2..v4 step 1 { barrier }").expect("a loop of the workgroup");
        check("v4: i64 = load v1 align 8\n for v5 in v2..v4 step 1 { barrier }").expect("a uniform load");
    }

    #[test]
    fn barriers_in_divergent_control_flow_are_refused() {
        for body in [
            "v4: i64 = thread\n for v5 in v4..v3 step 1 { barrier }",
            "v4: i64 = thread\n v5: bool = compare less v4, v3\n if v5 { barrier } else { }",
            "v4: i64 = thread\n v5: ptr = offset v1 + v4 * 8\n v6: i64 = load v5 align 8\n for v7 in v2..v6 step 1 { barrier }",
            "v4: i64 = thread\n v5: i64 = for v6 in v2..v4 step 1 carry (v7 = v2) { yield v3 }\n for v8 in v2..v5 step 1 { barrier }",
        ] {
            let error = check(body).expect_err(body);
            assert!(error.contains("a barrier is in a loop or branch"), "{error}");
        }
    }

    #[test]
    fn all_threads_evaluate_products_of_matrices() {
        let product = |inside: &str, behind: &str| {
            format!(
                "v4: i32x4 = load v1 align 16\n v5: i32x2 = load v1 align 8\n v6: f32x4 = load v1 align 16\n \
                 v7: i64 = thread\n v8: bool = compare less v7, v3\n {inside}\n \
                 v9: f32x4 = matrix_multiply_add bf16 v4, v5, v6\n {behind}"
            )
        };
        check(&product("", "")).expect("outside branches");
        let text = kernel(&product("", ""));
        let program = parse(&text).expect("a program");
        assert_eq!(parse(&program.to_string()).expect("printed"), program);
        let error = check(&product("if v8 {", "} else { }")).expect_err("inside a branch");
        assert!(error.contains("a product of matrices is in a loop or branch"), "{error}");
        let error = check(&product("", "").replace("bf16", "s8")).expect_err("sums of floats");
        assert!(error.contains("i32x4"), "{error}");
    }

    #[test]
    fn device_operations_stay_in_kernels() {
        for body in ["barrier", "v0: i64 = thread", "v0: ptr = workgroup_memory 64 align 4"] {
            let program = parse(&format!("internal fn \"f\" () {{ {body} }}")).expect("a program");
            let error = verify(&program).expect_err(body).to_string();
            assert!(error.contains("outside a kernel of a device"), "{error}");
        }
    }
}
