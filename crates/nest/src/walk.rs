//! The one walk over statements and the regions inside them, and the analyses that need no more than that.

use crate::language::{Block, Expression, Function, FunctionId, Program, Statement};
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
            | Self::Prefetch { .. } => (None, None),
        };
        [first, second].into_iter().flatten()
    }};
}

impl Statement {
    /// The regions that the statement owns, in the order in which they run.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        regions!(self)
    }

    /// The regions of [`Statement::blocks`], to be changed.
    pub fn blocks_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Block> {
        regions!(self)
    }

    /// The function that the statement calls or takes the address of.
    pub const fn callee(&self) -> Option<FunctionId> {
        match self {
            Self::Call { function, .. }
            | Self::Parallel { function, .. }
            | Self::Let(_, Expression::FunctionAddress(function)) => Some(*function),
            _ => None,
        }
    }

    /// The function of [`Statement::callee`], to be changed.
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
    /// All statements, each before those of its regions.
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
    /// The rest of each region that is entered and of those to enter next, the innermost last.
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

    /// The functions that the function calls or takes the address of, once for each such statement.
    pub fn callees(&self) -> impl Iterator<Item = FunctionId> {
        self.body.walk().filter_map(Statement::callee)
    }
}

impl Program {
    /// The user's functions that the program calls, which linking has to bring: sorted, each once.
    pub fn external_symbols(&self) -> BTreeSet<&str> {
        let statements = self.functions.values().flat_map(|function| function.body.walk());
        let symbols = statements.filter_map(|statement| match statement {
            Statement::CallExternal { symbol, .. } => Some(symbol.as_str()),
            _ => None,
        });
        symbols.collect()
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
