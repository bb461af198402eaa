//! Regions as computations.

use crate::types::shape_of;
use crate::walk::{Context, Scope};
use hlo::{ComputationId, InstructionId, Op};
use mlir::{Block, Operation, Region, ValueId};
use shape::Shape;
use std::collections::HashSet;
use support::{Error, Result};

/// Returns the required block of a region.
pub(crate) fn block_of(operation: &Operation, position: usize) -> Result<&Block> {
    let region: Option<&Region> = operation.regions.get(position);
    region
        .and_then(|region| region.blocks.first())
        .ok_or_else(|| Error::invalid(format!("missing region {position}")))
}

/// Returns the values that blocks use but do not define, each once, in the order of first use.
/// Constants are excluded because each region creates its own.
pub(crate) fn captures(context: &Context<'_, '_>, blocks: &[&Block]) -> Vec<ValueId> {
    let mut finder = Captures { defined: HashSet::new(), captures: Vec::new(), seen: HashSet::new() };
    for block in blocks {
        finder.visit(block);
    }
    let is_constant = |value: &ValueId| context.importer.constants.contains_key(value);
    finder.captures.retain(|value| !is_constant(value));
    finder.captures
}

struct Captures {
    defined: HashSet<ValueId>,
    captures: Vec<ValueId>,
    seen: HashSet<ValueId>,
}

impl Captures {
    fn visit(&mut self, block: &Block) {
        self.defined.extend(&block.arguments);
        for operation in &block.operations {
            for &operand in &operation.operands {
                if !self.defined.contains(&operand) && self.seen.insert(operand) {
                    self.captures.push(operand);
                }
            }
            operation.regions.iter().flat_map(|region| &region.blocks).for_each(|inner| self.visit(inner));
            self.defined.extend(&operation.results);
        }
    }
}

impl<'s> Context<'_, 's> {
    /// Returns the computation of a region whose arguments are parameters: a reducer or a
    /// comparator.
    pub(crate) fn reducer(&mut self, position: usize) -> Result<ComputationId> {
        let block = block_of(self.operation, position)?;
        self.region(block, |scope, context_shapes| {
            for (&argument, shape) in block.arguments.iter().zip(context_shapes) {
                let parameter = scope.own().parameter("", shape.clone());
                scope.define(argument, parameter);
            }
            Ok(())
        })
    }

    /// Returns the computation of a region whose values come from one tuple: its arguments, then
    /// its captures.
    pub(crate) fn tuple_region(
        &mut self,
        block: &'s Block,
        captured: &[ValueId],
        passes_captured: bool,
        is_condition: bool,
    ) -> Result<ComputationId> {
        let values: Vec<ValueId> = block.arguments.iter().chain(captured).copied().collect();
        let shapes = self.shapes_of(&values)?;
        let mut scope = Scope::new(&self.region_name(), false);
        let tuple = scope.own().parameter("", Shape::Tuple(shapes));
        let mut elements = Vec::new();
        for (index, &value) in values.iter().enumerate() {
            let element =
                scope.own().op(self.importer.builder.module(), Op::GetTupleElement { index }, &[tuple])?;
            scope.define(value, element);
            elements.push(element);
        }
        let mut results = self.importer.block(&mut scope, block)?;
        let root = match (is_condition, results.as_slice()) {
            (true, [only]) => *only,
            (true, _) => return Err(Error::invalid("expected one result of a condition")),
            (false, _) => {
                if passes_captured {
                    results.extend(&elements[block.arguments.len()..]);
                }
                scope.own().op(self.importer.builder.module(), Op::Tuple {}, &results)?
            }
        };
        Ok(self.importer.builder.add_computation(scope.finish(root)))
    }

    fn region(
        &mut self,
        block: &'s Block,
        define: impl FnOnce(&mut Scope, &[Shape]) -> Result<()>,
    ) -> Result<ComputationId> {
        let shapes = self.shapes_of(&block.arguments)?;
        let mut scope = Scope::new(&self.region_name(), false);
        define(&mut scope, &shapes)?;
        let results = self.importer.block(&mut scope, block)?;
        let root = self.importer.root(&mut scope, &results)?;
        Ok(self.importer.builder.add_computation(scope.finish(root)))
    }

    fn shapes_of(&self, values: &[ValueId]) -> Result<Vec<Shape>> {
        values.iter().map(|&value| shape_of(&self.importer.source[value].value_type)).collect()
    }

    fn region_name(&self) -> String {
        format!("{}_region", self.operation.name.rsplit('.').next().unwrap_or("region"))
    }

    /// Returns the instructions of captured values.
    pub(crate) fn values(&mut self, values: &[ValueId]) -> Result<Vec<InstructionId>> {
        values.iter().map(|&value| self.value(value)).collect()
    }
}
