//! Variables: TF 2's resources and TF 1's references, read and written in execution order.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::value::Value;
use bounded::{VariableId, list};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::{Id, Result};
use tf::Resource;

pub(crate) const RULES: &[Rule] = &[
    rule_values("VarHandleOp", |cx| Ok(vec![Value::Resource(declared_variable(cx, "dtype")?)]))
        .types("dtype", ALL),
    rule_values("_XlaAotOnlyVarHandleOp", |cx| Ok(vec![Value::Resource(declared_variable(cx, "dtype")?)]))
        .types("dtype", ALL),
    rule_values("VariableV2", |cx| Ok(vec![Value::Reference(declared_variable(cx, "dtype")?)]))
        .types("dtype", ALL),
    rule_values("Variable", |cx| Ok(vec![Value::Reference(declared_variable(cx, "dtype")?)]))
        .types("dtype", ALL),
    rule("ReadVariableOp", read).types("dtype", ALL),
    rule("VariableShape", variable_shape),
    rule("VarIsInitializedOp", is_initialized),
    rule("IsVariableInitialized", is_initialized),
    rule_values("AssignVariableOp", assign).types("dtype", ALL).effect(),
    rule_values("AssignAddVariableOp", |cx| assign_sum(cx, Op::Add {})).types("dtype", NUMBERS).effect(),
    rule_values("AssignSubVariableOp", |cx| assign_sum(cx, Op::Subtract {})).types("dtype", NUMBERS).effect(),
    rule_values("Assign", assign).types("T", ALL).effect(),
    rule_values("AssignAdd", |cx| assign_sum(cx, Op::Add {})).types("T", NUMBERS).effect(),
    rule_values("AssignSub", |cx| assign_sum(cx, Op::Subtract {})).types("T", NUMBERS).effect(),
];

/// Returns the variable of the config that a node declares.
fn declared_variable(cx: &mut NodeContext<'_, '_>, type_attribute: &str) -> Result<VariableId> {
    let attributes = &cx.attributes();
    let resource = Resource::of_node(cx.node());
    let variables = &cx.program().variables;
    let position = variables.iter().position(|variable| variable.resource == resource);
    let position =
        position.or_else(|| variables.iter().position(|variable| variable.node_name == cx.node().name));
    let Some(position) = position else {
        return Err(cx.invalid(format!(
            "Variable: {} not configured: the fetches need the node '{}' (op '{}'); list it in the config: variable {{ \
             node_name: \"{}\" shape {{ ... }} type: DT_... }}",
            cx.node().name, cx.name(), cx.node().op, cx.node().name
        )));
    };
    let variable = &variables[position];
    let data_type = attributes.ty(type_attribute)?;
    cx.check(data_type.base() == variable.data_type.base(), || {
        format!(
            "variable '{}' has type {data_type} in the graph (node '{}'), but {} in the config",
            variable.node_name,
            cx.name(),
            variable.data_type
        )
    })?;
    let declared = attributes.shape_or("shape", tf::PartialShape::UNKNOWN)?;
    let fits = declared.dimensions.as_ref().is_none_or(|declared| {
        let same = |(d, s): (&Option<i64>, &i64)| d.is_none_or(|d| d == *s);
        declared.len() == variable.shape.len() && declared.iter().zip(&variable.shape).all(same)
    });
    // TF 1 writes [] for an unknown shape.
    let unknown = attributes.bool_or("_unknown_shape", false)?;
    cx.check(fits || unknown, || {
        format!(
            "variable '{}' has shape {declared} in the graph (node '{}'), but {} in the config",
            variable.node_name,
            cx.name(),
            list(&variable.shape)
        )
    })?;
    Ok(VariableId::from_index(position))
}

/// Returns the current value of the variable.
fn read(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let variable = cx.variable(0)?;
    let value = cx.read_variable(variable);
    let (requested, actual) = (cx.output_type(0)?, cx.element_type(value));
    cx.check(requested == actual, || {
        format!("variable '{}' has type {actual}, but is read as {requested}", cx.variable_name(variable))
    })?;
    Ok(value)
}

/// True if the variable has a value. This is known at compile time.
fn is_initialized(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let variable = cx.variable(0)?;
    let known = !cx.is_unset(variable);
    Ok(cx.scalar(PrimitiveType::Pred, if known { 1.0 } else { 0.0 }))
}

/// Returns the sizes of a variable.
fn variable_shape(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let variable = cx.variable(0)?;
    let value = cx.read_variable(variable);
    let (sizes, out_type) = (cx.sizes(value), cx.output_type(0)?);
    cx.integers(out_type, &sizes)
}

impl NodeContext<'_, '_> {
    /// Assigns a value to the variable at input 0. It must have the variable's type and, unless the
    /// program may replace the variable, its shape.
    pub(crate) fn assign_variable(
        &mut self,
        variable: VariableId,
        value: InstructionId,
    ) -> Result<Vec<Value>> {
        if self.keeps_shape(variable) {
            let old = self.read_variable(variable);
            let (old, new) = (self.array(old), self.array(value));
            self.check(old == new, || {
                format!(
                    "variable '{}' has shape {old}, but is assigned a value of shape {new}; compiled code updates \
                     variables in place, so their shapes cannot change",
                    self.variable_name(variable)
                )
            })?;
        } else {
            self.check_replaced(variable, value)?;
        }
        let name = self.name().to_owned();
        self.write_variable(variable, value, &name);
        // TF 1's assignments return the reference.
        let returns_reference = !self.node().output_types.is_empty();
        Ok(if returns_reference { vec![Value::Reference(variable)] } else { Vec::new() })
    }

    /// Checks that a value that replaces a variable's has its type.
    fn check_replaced(&self, variable: VariableId, value: InstructionId) -> Result<()> {
        let data_type = self.program().variables.get(variable.index()).map(|declared| declared.data_type);
        let (expected, actual) = (data_type.and_then(tf::DataType::primitive_type), self.element_type(value));
        self.check(expected == Some(actual), || {
            format!("variable '{}' is assigned a value of type {actual}", self.variable_name(variable))
        })
    }
}

fn assign(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let variable = cx.variable(0)?;
    let value = cx.input(1)?;
    cx.assign_variable(variable, value)
}

/// Adds to a variable or subtracts from it.
fn assign_sum(cx: &mut NodeContext<'_, '_>, op: Op) -> Result<Vec<Value>> {
    let variable = cx.variable(0)?;
    let delta = cx.input(1)?;
    let old = cx.read_variable(variable);
    same_shape(cx, old, delta)?;
    let new = cx.op(op, &[old, delta])?;
    cx.assign_variable(variable, new)
}

fn same_shape(cx: &NodeContext<'_, '_>, variable: InstructionId, delta: InstructionId) -> Result<()> {
    let (old, delta) = (cx.sizes(variable), cx.sizes(delta));
    cx.check(old == delta, || {
        format!("the variable has shape {}, but its update has shape {}", list(&old), list(&delta))
    })
}
