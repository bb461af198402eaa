//! Computations: `ENTRY name (x: f32[2]) -> f32[2] { instructions }, execution_thread="main"`.

use super::attribute_list::read_attributes;
use super::escape::unescape;
use super::instruction::RightHandSide;
use super::lexer::{Lexer, Token};
use super::parser::ModuleParser;
use super::shape::{fits, node_count, read_shape};
use crate::computation::Computation;
use crate::ids::ComputationId;
use crate::opcode::Op;
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Maximum number of parts of all shapes in a module, in addition to one for each byte of its text:
/// otherwise inferred tuples of tuples could grow without bound.
const MAX_SHAPE_PARTS: usize = 1 << 22;

/// Maximum nesting depth of computations written inside instructions.
const MAX_INLINE_DEPTH: usize = 32;

/// An instruction that has been read, but not yet added.
pub(super) struct Pending {
    pub(super) position: usize,
    pub(super) name: String,
    pub(super) right: RightHandSide,
}

/// Reads one computation. Operands are positions in `pending`.
pub(super) struct ComputationParser<'a, 't> {
    pub(super) context: &'a mut ModuleParser<'t>,
    pub(super) lexer: &'a mut Lexer<'t>,
    pub(super) names: BTreeMap<&'t str, usize>,
    pub(super) pending: Vec<Pending>,
    depth: usize,
}

impl<'a, 't> ComputationParser<'a, 't> {
    /// Creates a parser for a computation at a nesting depth of `depth`.
    pub(super) fn new(context: &'a mut ModuleParser<'t>, lexer: &'a mut Lexer<'t>, depth: usize) -> Self {
        Self { context, lexer, names: BTreeMap::new(), pending: Vec::new(), depth }
    }

    /// Reads a computation and adds it to the module; also returns whether it is marked as the
    /// entry.
    pub(super) fn computation(mut self) -> Result<(ComputationId, bool)> {
        let is_entry = self.lexer.eat(Token::Word("ENTRY"));
        let at = self.lexer.start();
        let name = self.lexer.expect_name("the name of a computation")?;
        if self.context.computations.contains_key(name) {
            return Err(self.lexer.error_at(at, &format!("duplicate computation '{name}'")));
        }
        let declared = self.signature()?;
        let root = self.instructions(name, at)?;
        let thread = self.execution_thread()?;
        let actual = &self.pending[root].right.shape;
        if let Some(declared) = declared.filter(|declared| !fits(declared, actual)) {
            let message = format!("'{name}' declares the result {declared}, but its root has shape {actual}");
            return Err(self.lexer.error_at(at, &message));
        }
        let mut computation = build(name, self.pending, root);
        computation.set_execution_thread(thread);
        let id = self.context.module.add_computation(computation);
        self.context.computations.insert(name.to_owned(), id);
        Ok((id, is_entry))
    }

    /// Reads a computation written in place of a name, `{ instructions }`, and adds it to the
    /// module.
    fn inline(mut self) -> Result<ComputationId> {
        if self.depth > MAX_INLINE_DEPTH {
            return Err(self
                .lexer
                .error(&format!("computations nest deeper than {MAX_INLINE_DEPTH} levels")));
        }
        let at = self.lexer.start();
        let root = self.instructions("_", at)?;
        self.lexer.expect_end()?;
        let computation = build("_", self.pending, root);
        Ok(self.context.module.add_computation(computation))
    }

    /// Reads the computation in an attribute's value.
    pub(super) fn inline_computation(&mut self, value: std::ops::Range<usize>) -> Result<ComputationId> {
        let mut lexer = self.lexer.part(value);
        ComputationParser::new(self.context, &mut lexer, self.depth + 1).inline()
    }

    /// Reads the instructions between braces; returns the position of the root.
    fn instructions(&mut self, name: &str, at: usize) -> Result<usize> {
        self.lexer.expect_symbol('{')?;
        let mut root = None;
        while !self.lexer.eat_symbol('}') {
            let is_root = self.lexer.eat(Token::Word("ROOT"));
            let position = self.instruction()?;
            if is_root && root.replace(position).is_some() {
                return Err(self.lexer.error_at(self.pending[position].position, "duplicate ROOT"));
            }
        }
        self.check_parameters(at)?;
        let root = root.or(self.pending.len().checked_sub(1));
        root.ok_or_else(|| self.lexer.error_at(at, &format!("'{name}' has no instructions")))
    }

    /// Reads `(x: f32[2]) -> f32[2]`, if present; returns the result's shape. The parameters are
    /// redundant.
    fn signature(&mut self) -> Result<Option<Shape>> {
        if !self.lexer.eat_symbol('(') {
            return Ok(None);
        }
        let mut depth = 1;
        while depth > 0 {
            match self.lexer.take() {
                Token::Symbol('(') => depth += 1,
                Token::Symbol(')') => depth -= 1,
                Token::End => return Err(self.lexer.expected("')'")),
                _ => {}
            }
        }
        if !self.lexer.eat(Token::Arrow) {
            return Err(self.lexer.expected("'->'"));
        }
        read_shape(self.lexer).map(Some)
    }

    /// Reads `, execution_thread="name"`, if present.
    fn execution_thread(&mut self) -> Result<String> {
        let mut thread = String::new();
        for attribute in read_attributes(self.lexer, self.context.text)? {
            if attribute.name != "execution_thread" {
                let message = format!("unknown attribute '{}' of a computation", attribute.name);
                return Err(self.lexer.error_at(attribute.name_start, &message));
            }
            let value = self.lexer.part(attribute.value);
            thread = match value.peek() {
                Token::Quoted(inside) => unescape(inside),
                _ => None,
            }
            .ok_or_else(|| value.expected("a quoted string"))?;
        }
        Ok(thread)
    }

    /// Reads one instruction; returns its position.
    fn instruction(&mut self) -> Result<usize> {
        let position = self.lexer.start();
        let name = self.lexer.expect_name("the name of an instruction")?;
        self.lexer.expect_symbol('=')?;
        let right = self.right_hand_side(0)?;
        if self.names.insert(name, self.pending.len()).is_some() {
            return Err(self.lexer.error_at(position, &format!("duplicate instruction '{name}'")));
        }
        self.pending.push(Pending { position, name: name.to_owned(), right });
        Ok(self.pending.len() - 1)
    }

    /// Bounds the memory for shapes.
    pub(super) fn count_shape(&mut self, start: &Lexer<'_>, shape: &Shape) -> Result<()> {
        let parts = &mut self.context.shape_parts;
        *parts = parts.saturating_add(node_count(shape));
        if *parts > MAX_SHAPE_PARTS + self.context.text.len() {
            return Err(start.error("the shapes of the module are too large"));
        }
        Ok(())
    }

    /// Checks that the parameters' numbers are 0, 1, and so on, in any order.
    fn check_parameters(&self, at: usize) -> Result<()> {
        let mut numbers = BTreeSet::new();
        for pending in &self.pending {
            if let Op::Parameter { number } = pending.right.op
                && !numbers.insert(number)
            {
                let message = format!("duplicate parameter {number}");
                return Err(self.lexer.error_at(pending.position, &message));
            }
        }
        match numbers.iter().enumerate().find(|&(i, &number)| i != number) {
            Some((missing, _)) => Err(self.lexer.error_at(at, &format!("missing parameter {missing}"))),
            None => Ok(()),
        }
    }
}

/// Adds the instructions in the order of the text, which is a schedule if the module is scheduled.
fn build(name: &str, pending: Vec<Pending>, root: usize) -> Computation {
    let mut computation = Computation::new(name);
    let mut ids = Vec::with_capacity(pending.len());
    for Pending { name, right, .. } in pending {
        let operands: Vec<_> = right.operands.iter().map(|&operand| ids[operand]).collect();
        let id = computation.add_in_any_order(&name, right.op, right.shape, &operands, right.metadata);
        if let Some(mut annotations) = right.annotations {
            annotations.control_predecessors =
                right.predecessors.iter().map(|&predecessor| ids[predecessor]).collect();
            computation.set_annotations(id, Some(annotations));
        }
        ids.push(id);
    }
    computation.list_parameters();
    computation.set_root(ids[root]);
    computation
}
