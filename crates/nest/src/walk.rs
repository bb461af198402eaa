//! The single traversal of statements and their regions, and simple analyses based on it.

use crate::language::{Block, Expression, Function, FunctionId, Program, Statement, ValueId};
use std::collections::BTreeSet;

/// The regions of a statement, by reference or by mutable reference.
macro_rules! regions {
    ($statement:expr) => {{
        let (first, second) = match $statement {
            Self::For { body, .. } => (Some(body), None),
            Self::While { condition, body, .. } => (Some(condition), Some(body)),
            Self::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            Self::Let(..)
            | Self::Store { .. }
            | Self::Call { .. }
            | Self::Parallel { .. }
            | Self::CallExternal { .. }
            | Self::LeaveIf { .. }
            | Self::CopyBytes { .. }
            | Self::FillBytes { .. }
            | Self::Prefetch { .. }
            | Self::Barrier
            | Self::Tiles(_) => (None, None),
        };
        [first, second].into_iter().flatten()
    }};
}

impl Statement {
    /// The regions that the statement owns, in the order in which they run.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        regions!(self)
    }

    /// Like [`Statement::blocks`], by mutable reference.
    pub fn blocks_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Block> {
        regions!(self)
    }

    /// The values that the statement reads, including those that its regions yield, without those
    /// that statements in its regions read.
    pub fn operands(&self) -> Vec<ValueId> {
        let own = match self {
            Self::Let(_, expression) => expression.operands(),
            Self::Store { value, pointer, mask, .. } => [*value, *pointer].into_iter().chain(*mask).collect(),
            Self::For { begin, end, carried, .. } => {
                [*begin, *end].into_iter().chain(carried.iter().map(|c| c.initial)).collect()
            }
            Self::While { carried, .. } => carried.iter().map(|c| c.initial).collect(),
            Self::If { condition, .. } => vec![*condition],
            Self::Call { arguments, .. }
            | Self::Parallel { arguments, .. }
            | Self::CallExternal { arguments, .. } => arguments.clone(),
            Self::LeaveIf { condition, status } => vec![*condition, *status],
            Self::CopyBytes { to, from, bytes } => vec![*to, *from, *bytes],
            Self::FillBytes { to, byte, bytes } => vec![*to, *byte, *bytes],
            Self::Prefetch { pointer, .. } => vec![*pointer],
            Self::Barrier => Vec::new(),
            Self::Tiles(operation) => operation.operands(),
        };
        own.into_iter().chain(self.blocks().flat_map(|block| block.yields.iter().copied())).collect()
    }

    /// True for statements with effects of their own: everything but arithmetic, prefetches, and
    /// control flow.
    pub const fn has_effect(&self) -> bool {
        match self {
            Self::Let(..)
            | Self::Prefetch { .. }
            | Self::Barrier
            | Self::For { .. }
            | Self::While { .. }
            | Self::If { .. } => false,
            Self::Store { .. }
            | Self::Call { .. }
            | Self::Parallel { .. }
            | Self::CallExternal { .. }
            | Self::LeaveIf { .. }
            | Self::CopyBytes { .. }
            | Self::FillBytes { .. }
            | Self::Tiles(_) => true,
        }
    }

    /// Returns the function that the statement calls or whose address it takes.
    pub const fn callee(&self) -> Option<FunctionId> {
        match self {
            Self::Call { function, .. }
            | Self::Parallel { function, .. }
            | Self::Let(_, Expression::FunctionAddress(function)) => Some(*function),
            _ => None,
        }
    }

    /// Like [`Statement::callee`], by mutable reference.
    pub const fn callee_mut(&mut self) -> Option<&mut FunctionId> {
        match self {
            Self::Call { function, .. }
            | Self::Parallel { function, .. }
            | Self::Let(_, Expression::FunctionAddress(function)) => Some(function),
            _ => None,
        }
    }
}

impl Block {
    /// Iterates over all statements, each before those of its regions.
    pub fn walk(&self) -> Walk<'_> {
        Walk { open: vec![self.statements.iter()] }
    }

    /// Visits all statements, each before those of its regions.
    pub fn walk_mut(&mut self, visit: &mut impl FnMut(&mut Statement)) {
        for statement in &mut self.statements {
            visit(statement);
            statement.blocks_mut().for_each(|block| block.walk_mut(visit));
        }
    }
}

/// The iterator of [`Block::walk`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    /// Remaining statements of the regions that were entered or come next, the innermost last.
    open: Vec<std::slice::Iter<'a, Statement>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a Statement;

    fn next(&mut self) -> Option<&'a Statement> {
        loop {
            match self.open.last_mut()?.next() {
                Some(statement) => {
                    self.open.extend(statement.blocks().rev().map(|block| block.statements.iter()));
                    return Some(statement);
                }
                None => self.open.pop(),
            };
        }
    }
}

impl Function {
    /// Number of statements, a measure of the time that translating the function takes.
    pub fn statement_count(&self) -> usize {
        self.body.walk().count()
    }

    /// Returns the functions that the function calls or whose addresses it takes, once per
    /// statement.
    pub fn callees(&self) -> impl Iterator<Item = FunctionId> {
        self.body.walk().filter_map(Statement::callee)
    }
}

impl Program {
    /// Returns the user-provided functions that the program calls, sorted and without duplicates.
    /// They must be linked.
    pub fn external_symbols(&self) -> BTreeSet<&str> {
        let statements = self.functions.values().flat_map(|function| function.body.walk());
        let symbols = statements.filter_map(|statement| match statement {
            Statement::CallExternal { symbol, .. } => Some(symbol.as_str()),
            _ => None,
        });
        symbols.collect()
    }

    /// True if a function uses tile registers.
    pub fn uses_tiles(&self) -> bool {
        let mut statements = self.functions.values().flat_map(|function| function.body.walk());
        statements.any(|statement| matches!(statement, Statement::Tiles(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionBuilder, Linkage, PointerFacts, RegionBuilder as _, Type};

    #[test]
    fn statements_come_before_those_of_their_regions() {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let n = b.parameter("n", Type::I64, PointerFacts::default());
        let condition = b.integer(Type::BOOL, 1);
        let loop_of_one = |b: &mut FunctionBuilder| {
            b.for_each(n, n, 1, |b, i| {
                b.add(i, n);
                Ok(())
            })
        };
        b.if_else(
            condition,
            |b| loop_of_one(b).map(|()| Vec::new()),
            |b| {
                b.sub(n, n);
                Ok(Vec::new())
            },
        )
        .expect("no error");
        let last = b.mul(n, n);
        let function = b.finish();

        let kinds: Vec<&str> = function
            .body
            .walk()
            .map(|statement| match statement {
                Statement::If { .. } => "if",
                Statement::For { .. } => "for",
                Statement::Let(id, _) if *id == last => "last",
                Statement::Let(..) => "let",
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(kinds, ["let", "if", "for", "let", "let", "last"]);
        assert_eq!(function.statement_count(), 6);

        let mut visited = 0;
        function.body.clone().walk_mut(&mut |_| visited += 1);
        assert_eq!(visited, 6);
    }
}
