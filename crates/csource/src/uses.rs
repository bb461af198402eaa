//! Facts about a function's values that the printer needs before it prints the first statement.

use nest::{BinaryOp, Block, Expression, Function, Predicate, ScalarType, Statement, Type, ValueId};
use support::Id;

/// Uses and definitions of a function's values.
pub(crate) struct Uses<'a> {
    function: &'a Function,
    counts: Vec<u32>,
    /// The block in which a value is defined, and the one of its last use.
    homes: Vec<(usize, usize)>,
    definitions: Vec<Option<&'a Expression>>,
    /// True for values that a region yields.
    yielded: Vec<bool>,
    blocks: usize,
}

/// A maximum or minimum that a comparison and a selection compute: `a > b ? a : b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extremum {
    /// `a > b ? a : b`
    Max(ValueId, ValueId),
    /// `a < b ? a : b`
    Min(ValueId, ValueId),
}

impl<'a> Uses<'a> {
    pub(crate) fn new(function: &'a Function) -> Self {
        let count = function.values.len();
        let mut uses = Self {
            function,
            counts: vec![0; count],
            homes: vec![(0, 0); count],
            definitions: vec![None; count],
            yielded: vec![false; count],
            blocks: 0,
        };
        for statement in function.body.walk() {
            if let Statement::Let(id, expression) = statement {
                uses.definitions[id.index()] = Some(expression);
            }
        }
        uses.block(&function.body);
        uses
    }

    /// Number of uses by statements that are printed.
    pub(crate) fn count(&self, id: ValueId) -> u32 {
        self.counts[id.index()]
    }

    /// True if the only use of a value is in the block that defines it.
    pub(crate) fn is_local(&self, id: ValueId) -> bool {
        let (defined, used) = self.homes[id.index()];
        self.count(id) == 1 && defined == used
    }

    /// True if the next iteration of a loop is the only use of a value.
    pub(crate) fn is_yielded(&self, id: ValueId) -> bool {
        self.count(id) == 1 && self.yielded[id.index()]
    }

    pub(crate) fn definition(&self, id: ValueId) -> Option<&'a Expression> {
        self.definitions[id.index()]
    }

    /// Returns the maximum or minimum that a selection of floats or signed integers computes.
    pub(crate) fn extremum(&self, selection: &Expression) -> Option<Extremum> {
        let Expression::Select(condition, a, b) = *selection else { return None };
        let Some(&Expression::Compare(predicate, x, y)) = self.definition(condition) else { return None };
        let ty = self.function.values[a];
        let is_number =
            ty.scalar.is_float() || matches!(ty.scalar, ScalarType::I8 | ScalarType::I16 | ScalarType::I32);
        if !is_number || ty.lanes == 1 {
            return None;
        }
        match (predicate, (x, y) == (a, b), (x, y) == (b, a)) {
            (Predicate::Greater, true, _) | (Predicate::Less, _, true) => Some(Extremum::Max(a, b)),
            (Predicate::Less, true, _) | (Predicate::Greater, _, true) => Some(Extremum::Min(a, b)),
            _ => None,
        }
    }

    fn used(&mut self, id: ValueId, block: usize) {
        self.counts[id.index()] += 1;
        self.homes[id.index()].1 = block;
    }

    /// Counts the uses of a block from its end, so that unused values do not count.
    fn block(&mut self, block: &'a Block) {
        let number = self.blocks;
        self.blocks += 1;
        for &id in &block.yields {
            self.yielded[id.index()] = true;
            self.used(id, number);
        }
        self.statements(block, number);
    }

    fn statements(&mut self, block: &'a Block, number: usize) {
        for statement in block.statements.iter().rev() {
            match statement {
                Statement::Let(id, expression) => {
                    self.homes[id.index()].0 = number;
                    if self.count(*id) > 0 {
                        self.operands(expression, number);
                    }
                }
                Statement::If { condition, results, then, otherwise } => {
                    for region in [otherwise, then] {
                        let inner = self.blocks;
                        self.blocks += 1;
                        for (&result, &id) in results.iter().zip(&region.yields) {
                            if self.count(result) > 0 {
                                self.used(id, inner);
                            }
                        }
                        self.statements(region, inner);
                    }
                    self.used(*condition, number);
                }
                _ => {
                    // The operands include what the regions yield, which the regions count.
                    let yields: Vec<ValueId> =
                        statement.blocks().flat_map(|region| region.yields.iter().copied()).collect();
                    let all = statement.operands();
                    for region in statement.blocks().rev() {
                        self.block(region);
                    }
                    for &id in &all[..all.len() - yields.len()] {
                        self.used(id, number);
                    }
                }
            }
        }
    }

    fn operands(&mut self, expression: &Expression, block: usize) {
        let extremum = self.extremum(expression);
        match (expression, extremum) {
            (Expression::Select(_, a, b), Some(_)) => {
                self.used(*a, block);
                self.used(*b, block);
            }
            _ => expression.operands().into_iter().for_each(|id| self.used(id, block)),
        }
    }
}

/// Bounds on the magnitude of 64-bit integers. Arithmetic that stays within them is signed in C,
/// other arithmetic wraps around.
pub(crate) struct Magnitudes {
    known: Vec<Option<u64>>,
}

/// No array has this many elements.
const MAX_EXTENT: u64 = 1 << 40;
const LIMIT: u64 = 1 << 62;

impl Magnitudes {
    pub(crate) fn new(function: &Function) -> Self {
        let mut known = vec![None; function.values.len()];
        for parameter in &function.parameters {
            if function.values[parameter.value] == Type::I64 {
                known[parameter.value.index()] = Some(MAX_EXTENT);
            }
        }
        Self { known }
    }

    pub(crate) fn of(&self, id: ValueId) -> Option<u64> {
        self.known[id.index()]
    }

    /// True if the bounds of a value are known.
    pub(crate) fn is_known(&self, id: ValueId) -> bool {
        self.of(id).is_some()
    }

    /// Records the index of a loop.
    pub(crate) fn index(&mut self, index: ValueId, begin: ValueId, end: ValueId) {
        self.known[index.index()] = self.of(begin).zip(self.of(end)).map(|(a, b)| a.max(b));
    }

    /// Records a definition.
    pub(crate) fn learn(&mut self, function: &Function, id: ValueId, expression: &Expression) {
        if function.values[id] != Type::I64 {
            return;
        }
        let bound = match expression {
            Expression::Constant(nest::Constant::Integer(value)) => Some(value.unsigned_abs()),
            Expression::Binary(op, a, b) => match (op, self.of(*a), self.of(*b)) {
                (BinaryOp::Add | BinaryOp::Subtract, Some(a), Some(b)) => a.checked_add(b),
                (BinaryOp::Multiply, Some(a), Some(b)) => a.checked_mul(b),
                (BinaryOp::DivideSigned | BinaryOp::ShiftRightArithmetic, Some(a), _) => Some(a),
                (BinaryOp::RemainderSigned, Some(a), Some(b)) => Some(a.min(b)),
                _ => None,
            },
            Expression::Select(_, a, b) => self.of(*a).zip(self.of(*b)).map(|(a, b)| a.max(b)),
            Expression::Convert(nest::ConvertOp::SignExtend | nest::ConvertOp::ZeroExtend, a) => {
                match function.values[*a].scalar {
                    ScalarType::Bool => Some(1),
                    narrow => Some(1 << (8 * narrow.byte_size())),
                }
            }
            Expression::Thread(_) => Some(MAX_EXTENT),
            _ => None,
        };
        self.known[id.index()] = bound.filter(|&bound| bound <= LIMIT);
    }
}

/// Addresses of a function through which memory may be written. The others point to constant
/// memory in C.
pub(crate) fn written_addresses(
    function: &Function,
    is_written: impl Fn(nest::FunctionId, usize) -> bool,
) -> Vec<bool> {
    let mut written = vec![false; function.values.len()];
    loop {
        let before = written.iter().filter(|&&w| w).count();
        for statement in function.body.walk() {
            spread(function, statement, &mut written, &is_written);
        }
        if written.iter().filter(|&&w| w).count() == before {
            return written;
        }
    }
}

fn spread(
    function: &Function,
    statement: &Statement,
    written: &mut [bool],
    is_written: &impl Fn(nest::FunctionId, usize) -> bool,
) {
    let mut same = |ids: &[ValueId]| {
        if ids.iter().any(|id| written[id.index()]) {
            ids.iter().for_each(|id| written[id.index()] = true);
        }
    };
    match statement {
        Statement::Let(id, Expression::Offset { pointer, .. }) => same(&[*pointer, *id]),
        Statement::Let(id, Expression::Select(_, a, b)) => same(&[*id, *a, *b]),
        Statement::Let(_, Expression::Convert(_, a)) => written[a.index()] = true,
        Statement::Let(id, Expression::Load { .. }) => {
            if function.values[*id] == Type::PTR {
                written[id.index()] = true;
            }
        }
        Statement::Let(..)
        | Statement::LeaveIf { .. }
        | Statement::Prefetch { .. }
        | Statement::Barrier
        | Statement::Tiles(_) => {}
        Statement::Store { value, pointer, .. } => {
            written[pointer.index()] = true;
            written[value.index()] = true;
        }
        Statement::For { carried, body, .. } | Statement::While { carried, body, .. } => {
            for (c, &next) in carried.iter().zip(&body.yields) {
                same(&[c.inner, c.initial, c.result, next]);
            }
        }
        Statement::If { results, then, otherwise, .. } => {
            for ((&result, &a), &b) in results.iter().zip(&then.yields).zip(&otherwise.yields) {
                same(&[result, a, b]);
            }
        }
        Statement::Call { function: callee, arguments }
        | Statement::Parallel { function: callee, arguments, .. } => {
            for (k, argument) in arguments.iter().enumerate() {
                if is_written(*callee, k) {
                    written[argument.index()] = true;
                }
            }
        }
        Statement::CallExternal { arguments, .. } => {
            arguments.iter().for_each(|argument| written[argument.index()] = true);
        }
        Statement::CopyBytes { to, .. } | Statement::FillBytes { to, .. } => written[to.index()] = true,
    }
}
