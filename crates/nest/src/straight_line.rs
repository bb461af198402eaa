//! Changes of the order of straight-line code.

use crate::builder::FunctionBuilder;
use crate::language::Statement;

impl FunctionBuilder {
    /// Returns the number of statements of the innermost open region.
    pub fn statements_so_far(&mut self) -> usize {
        self.open_statements().len()
    }

    /// True if the statements of the innermost open region from number `begin` on only compute,
    /// load, and store.
    pub fn is_straight_since(&mut self, begin: usize) -> bool {
        let is_straight = |s: &Statement| matches!(s, Statement::Let(..) | Statement::Store { .. });
        self.open_statements()[begin..].iter().all(is_straight)
    }

    /// Moves the stores of the innermost open region from number `begin` on after the other
    /// statements, which must be straight-line code. None of them may read what another one stores.
    pub fn delay_stores_since(&mut self, begin: usize) {
        debug_assert!(self.is_straight_since(begin), "expected straight-line code");
        let late = self.open_statements().split_off(begin);
        let (stores, others): (Vec<_>, Vec<_>) =
            late.into_iter().partition(|statement| matches!(statement, Statement::Store { .. }));
        self.open_statements().extend(others.into_iter().chain(stores));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::RegionBuilder as _;
    use crate::language::{Expression, Linkage, PointerFacts, ScalarType, Type};

    const NUMBERS: Type = Type::vector(ScalarType::F32, 4);

    #[test]
    fn stores_follow_all_loads() {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let at = b.parameter("at", Type::PTR, PointerFacts::default());
        let first = b.load(NUMBERS, at, 4);
        b.store(first, at, 4);
        let begin = b.statements_so_far();
        for place in [16, 32] {
            let at = b.offset_bytes(at, place);
            let number = b.load(NUMBERS, at, 4);
            b.store(number, at, 4);
        }
        assert!(b.is_straight_since(begin));
        b.delay_stores_since(begin);
        let function = b.finish();
        crate::verify(&crate::Program { functions: [function.clone()].into_iter().collect() })
            .expect("valid");
        let kinds: String = function
            .body
            .statements
            .iter()
            .filter_map(|statement| match statement {
                Statement::Let(_, Expression::Load { .. }) => Some('l'),
                Statement::Store { .. } => Some('s'),
                _ => None,
            })
            .collect();
        assert_eq!(kinds, "lsllss");
    }

    #[test]
    fn loops_are_not_straight() {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let at = b.parameter("at", Type::PTR, PointerFacts::default());
        let (low, high) = (b.index(0), b.index(4));
        let begin = b.statements_so_far();
        b.for_carrying(low, high, 1, &[], |b, _, _| {
            let number = b.float(Type::scalar(ScalarType::F32), 1.0);
            b.store(number, at, 4);
            Ok(Vec::new())
        })
        .expect("no error");
        assert!(!b.is_straight_since(begin));
    }
}
