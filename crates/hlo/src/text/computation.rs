//! Computations: `ENTRY name (x: f32[2]) -> f32[2] { instructions }`.

use super::instruction::{RightHandSide, read_attributes};
use super::lexer::{Lexer, Token};
use super::shape::{node_count, read_shape};
use crate::computation::Computation;
use crate::module::{ComputationId, Module};
use crate::opcode::{Op, Opcode};
use shape::Shape;
use std::collections::BTreeMap;
use support::Result;

/// How many parts the shapes of a module may have together beyond one for each byte of its text: inferred tuples of
/// tuples would grow without bound.
const MAX_SHAPE_PARTS: usize = 1 << 22;

/// An instruction that has been read, but not added: parameters may come in any order, and must be added in theirs.
pub(super) struct Pending {
    pub(super) position: usize,
    pub(super) name: String,
    pub(super) right: RightHandSide,
}

/// Reads one computation. Operands are positions in `pending`.
pub(super) struct ComputationParser<'a, 't> {
    pub(super) text: &'t str,
    pub(super) lexer: &'a mut Lexer<'t>,
    pub(super) module: &'a Module,
    pub(super) computations: &'a BTreeMap<String, ComputationId>,
    pub(super) opcodes: &'a BTreeMap<&'static str, Opcode>,
    pub(super) names: BTreeMap<&'t str, usize>,
    pub(super) pending: Vec<Pending>,
    /// How many parts the module's shapes have so far.
    pub(super) shape_parts: &'a mut usize,
}

impl<'t> ComputationParser<'_, 't> {
    /// Reads a computation; whether it is marked as the entry.
    pub(super) fn computation(mut self) -> Result<(Computation, bool)> {
        let is_entry = self.lexer.eat(Token::Word("ENTRY"));
        let at = self.lexer.start();
        let name = self.lexer.expect_name("the name of a computation")?;
        if self.computations.contains_key(name) {
            return Err(self.lexer.error_at(at, &format!("there is another computation '{name}'")));
        }
        let promised = self.signature()?;
        self.lexer.expect_symbol('{')?;
        let mut root = None;
        while !self.lexer.eat_symbol('}') {
            let is_root = self.lexer.eat(Token::Word("ROOT"));
            let position = self.instruction()?;
            if is_root && root.replace(position).is_some() {
                return Err(self.lexer.error_at(self.pending[position].position, "there is another ROOT"));
            }
        }
        read_attributes(self.lexer, self.text)?;
        let root = root.or(self.pending.len().checked_sub(1));
        let root = root.ok_or_else(|| self.lexer.error_at(at, &format!("'{name}' has no instruction")))?;
        let made = &self.pending[root].right.shape;
        if let Some(promised) = promised.filter(|promised| !promised.compatible(made)) {
            let message = format!("'{name}' promises {promised}, but its root makes {made}");
            return Err(self.lexer.error_at(at, &message));
        }
        let parameters = self.parameters(at)?;
        Ok((build(name, self.pending, &parameters, root), is_entry))
    }

    /// Reads `(x: f32[2]) -> f32[2]`, if it is there; the result's shape. The parameters say the same once more.
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

    /// Reads one instruction; its position.
    fn instruction(&mut self) -> Result<usize> {
        let position = self.lexer.start();
        let name = self.lexer.expect_name("the name of an instruction")?;
        self.lexer.expect_symbol('=')?;
        let right = self.right_hand_side(0)?;
        if self.names.insert(name, self.pending.len()).is_some() {
            return Err(self.lexer.error_at(position, &format!("there is another instruction '{name}'")));
        }
        self.pending.push(Pending { position, name: name.to_owned(), right });
        Ok(self.pending.len() - 1)
    }

    /// Bounds the memory that shapes take.
    pub(super) fn count_shape(&mut self, start: &Lexer<'_>, shape: &Shape) -> Result<()> {
        *self.shape_parts = self.shape_parts.saturating_add(node_count(shape));
        if *self.shape_parts > MAX_SHAPE_PARTS + self.text.len() {
            return Err(start.error("the shapes of the module are too large"));
        }
        Ok(())
    }

    /// The positions of the parameters in the order of their numbers.
    fn parameters(&self, at: usize) -> Result<Vec<usize>> {
        let mut numbers = BTreeMap::new();
        for (position, pending) in self.pending.iter().enumerate() {
            if let Op::Parameter { number } = pending.right.op
                && numbers.insert(number, position).is_some()
            {
                let message = format!("there is another parameter {number}");
                return Err(self.lexer.error_at(pending.position, &message));
            }
        }
        match numbers.keys().enumerate().find(|&(i, &number)| i != number) {
            Some((missing, _)) => Err(self.lexer.error_at(at, &format!("parameter {missing} is missing"))),
            None => Ok(numbers.into_values().collect()),
        }
    }
}

/// Adds the instructions in the order of the text, but for parameters, which wait for those before them or come early.
fn build(name: &str, pending: Vec<Pending>, parameters: &[usize], root: usize) -> Computation {
    let mut computation = Computation::new(name);
    let mut ids = vec![None; pending.len()];
    let add = |computation: &mut Computation, position: usize, ids: &mut [Option<_>]| {
        let Pending { name, right, .. } = &pending[position];
        let operands: Vec<_> = right.operands.iter().filter_map(|&operand| ids[operand]).collect();
        let id =
            computation.add(name, right.op.clone(), right.shape.clone(), &operands, right.metadata.clone());
        ids[position] = Some(id);
    };
    let mut waiting = parameters.iter();
    for (position, pending) in pending.iter().enumerate() {
        if let Op::Parameter { .. } = pending.right.op {
            while ids[position].is_none() {
                let next = waiting.next().expect("this parameter is still waiting");
                add(&mut computation, *next, &mut ids);
            }
        } else {
            add(&mut computation, position, &mut ids);
        }
    }
    computation.set_root(ids[root].expect("every instruction was added"));
    computation
}
