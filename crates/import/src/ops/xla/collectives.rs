//! Ops for several devices, in a program that runs on one.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use bounded::list;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::{Error, Result};
use tf::DataType;

const REDUCIBLE: &[DataType] = &[
    DataType::Bfloat16,
    DataType::Half,
    DataType::Float,
    DataType::Double,
    DataType::Int32,
    DataType::Int64,
];

pub(crate) const RULES: &[Rule] = &[
    rule("DeviceIndex", device_index),
    rule("CollectiveReduceV2", collective_reduce).types("T", REDUCIBLE),
    rule_many("CollectiveAssignGroupV2", assign_group),
    rule("XlaSend", |cx| Err(other_program(cx))),
    rule("XlaRecv", |cx| Err(other_program(cx))),
    rule("XlaRecvFromHost", |cx| Err(other_program(cx))),
    rule("XlaSendToHost", |cx| Err(other_program(cx))),
];

/// `DeviceIndex`: the index of the CPU in a list of device types, or the list's length if it is
/// absent.
fn device_index(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let names = cx.attributes().strings("device_names")?;
    let position = names.iter().position(|name| name.as_ref() == b"CPU").unwrap_or(names.len());
    cx.integers(PrimitiveType::S32, &[position as i64]).and_then(|id| cx.reshape(id, &[]))
}

/// `CollectiveReduceV2(x, group_size, ...)` of a group of one, which is `x`.
fn collective_reduce(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let size = cx.constant_i64(1)?;
    if size != 1 {
        return Err(Error::unsupported(format!(
            "a reduction over a group of {size} devices, but a compiled program runs on one: build the graph for a group \
             of one"
        )));
    }
    let merge = cx.text_or("merge_op", "Add")?;
    cx.check(["Add", "Max", "Min", "Mul"].contains(&merge), || {
        format!("merge_op: expected Add, Max, Min, or Mul, got '{merge}'")
    })?;
    let last = cx.text_or("final_op", "Id")?;
    cx.check(["Id", "Div"].contains(&last), || format!("final_op: expected Id or Div, got '{last}'"))?;
    cx.input(0)
}

/// `CollectiveAssignGroupV2(assignment, device, base_key)`: the size and the key of the device's
/// group, which is a row of the assignment.
fn assign_group(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let assignment = cx.constant(0)?;
    let sizes = assignment.array_shape().sizes();
    let &[groups, devices] = sizes.as_slice() else {
        return Err(cx.invalid(format!("group_assignment: expected a matrix, got shape {}", list(&sizes))));
    };
    let members = assignment.to_i64s().unwrap_or_default();
    let (device, base) = (cx.constant_i64(1)?, cx.constant_i64(2)?);
    let row = members.iter().position(|&member| member == device);
    let Some(row) = row.map(|position| position as i64 / devices.max(1)) else {
        return Err(
            cx.invalid(format!("device {device} is not in any of the {groups} groups of group_assignment"))
        );
    };
    let scalar = |cx: &mut NodeContext<'_, '_>, value: i64| {
        cx.integers(PrimitiveType::S32, &[value]).and_then(|id| cx.reshape(id, &[]))
    };
    let key = base.checked_add(row).ok_or_else(|| cx.invalid("base_key is too large"))?;
    Ok(vec![scalar(cx, devices)?, scalar(cx, key)?])
}

/// Returns the error for ops that send or receive.
fn other_program(cx: &NodeContext<'_, '_>) -> Error {
    Error::unsupported(format!(
        "{} exchanges a tensor with another program, but a compiled function has no peer: feed received tensors and \
         fetch sent ones",
        cx.node().op
    ))
}
