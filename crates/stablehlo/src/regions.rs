//! Regions as computations.

use crate::types::shape_of;
use crate::walk::{Context, Scope};
use hlo::{ComputationId, InstructionId, Op};
use mlir::{Block, Operation, Region, ValueId};
use shape::Shape;
use std::collections::HashSet;
use support::{Error, Result};

/// The block of a region that has to have one.
pub(crate) fn block_of(operation: &Operation, position: usize) -> Result<&Block> {
    let region: Option<&Region> = operation.regions.get(position);
    region
        .and_then(|region| region.blocks.first())
        .ok_or_else(|| Error::invalid(format!("region {position} lacks")))
}

/// The values that blocks use and do not make, each once, in the order of their first use. Constants do not count:
/// a region makes its own.
pub(crate) fn captured(context: &Context<'_, '_>, blocks: &[&Block]) -> Vec<ValueId> {
    let mut finder = Captures { made: HashSet::new(), found: Vec::new(), seen: HashSet::new() };
    for block in blocks {
        finder.visit(block);
    }
    let is_constant = |value: &ValueId| context.importer.constants.contains_key(value);
    finder.found.retain(|value| !is_constant(value));
    finder.found
}

struct Captures {
    made: HashSet<ValueId>,
    found: Vec<ValueId>,
    seen: HashSet<ValueId>,
}

impl Captures {
    fn visit(&mut self, block: &Block) {
        self.made.extend(&block.arguments);
        for operation in &block.operations {
            for &operand in &operation.operands {
                if !self.made.contains(&operand) && self.seen.insert(operand) {
                    self.found.push(operand);
                }
            }
            operation.regions.iter().flat_map(|region| &region.blocks).for_each(|inner| self.visit(inner));
            self.made.extend(&operation.results);
        }
    }
}

impl<'s> Context<'_, 's> {
    /// The computation of a region whose arguments are parameters: a reducer, a comparator.
    pub(crate) fn reducer(&mut self, position: usize) -> Result<ComputationId> {
        let block = block_of(self.operation, position)?;
        self.region(block, |scope, context_shapes| {
            for (&argument, shape) in block.arguments.iter().zip(context_shapes) {
                let parameter = scope.builder.parameter("", shape.clone());
                scope.define(argument, parameter);
            }
            Ok(())
        })
    }

    /// The computation of a region whose values come out of one tuple: its arguments, then what it captures.
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
        let tuple = scope.builder.parameter("", Shape::Tuple(shapes));
        let mut elements = Vec::new();
        for (index, &value) in values.iter().enumerate() {
            let element = scope.builder.op(&self.importer.module, Op::GetTupleElement { index }, &[tuple])?;
            scope.define(value, element);
            elements.push(element);
        }
        let mut results = self.importer.block(&mut scope, block)?;
        let root = match (is_condition, results.as_slice()) {
            (true, [only]) => *only,
            (true, _) => return Err(Error::invalid("a condition returns one value")),
            (false, _) => {
                if passes_captured {
                    results.extend(&elements[block.arguments.len()..]);
                }
                scope.builder.op(&self.importer.module, Op::Tuple {}, &results)?
            }
        };
        Ok(self.importer.module.add_computation(scope.builder.finish(root)))
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
        Ok(self.importer.module.add_computation(scope.builder.finish(root)))
    }

    fn shapes_of(&self, values: &[ValueId]) -> Result<Vec<Shape>> {
        values.iter().map(|&value| shape_of(&self.importer.source[value].value_type)).collect()
    }

    fn region_name(&self) -> String {
        format!("{}_region", self.operation.name.rsplit('.').next().unwrap_or("region"))
    }

    /// The instructions of captured values.
    pub(crate) fn values(&mut self, values: &[ValueId]) -> Result<Vec<InstructionId>> {
        values.iter().map(|&value| self.value(value)).collect()
    }
}
