//! Conditionals and loops whose branches and bodies are functions. These run as graphs of their
//! own, with the kernels, state, and threads of the enclosing run.

use super::{Context, Row};
use crate::value::Value;
use support::{Error, Result};

pub(super) const OPS: &[Row] = &[
    ("If", conditional),
    ("StatelessIf", conditional),
    ("Case", case),
    ("StatelessCase", case),
    ("While", repeat),
    ("StatelessWhile", repeat),
];

/// Truth value: strings are true unless they are empty, arrays of rank 1 or more unless they have
/// no elements.
fn truth(value: &Value) -> Result<bool> {
    match value {
        Value::Strings(_) => Ok(!value.text()?.is_empty()),
        value => {
            let tensor = value.tensor()?;
            match tensor.shape().rank() {
                0 => tensor.truth(),
                _ => Ok(tensor.shape().element_count() > 0),
            }
        }
    }
}

fn conditional(cx: &mut Context<'_>) -> Result<()> {
    let branch = if truth(cx.input(0)?)? { "then_branch" } else { "else_branch" };
    let name = cx.node.attributes.func(branch)?.0.to_owned();
    let arguments = cx.inputs.drain(1..).collect();
    cx.call_function(&name, arguments)
}

fn case(cx: &mut Context<'_>) -> Result<()> {
    let branches = cx.node.attributes.funcs("branches")?;
    let index = usize::try_from(cx.integer(0)?).ok().filter(|&index| index < branches.len());
    let last =
        branches.len().checked_sub(1).ok_or_else(|| Error::invalid("the list of branches is empty"))?;
    let name = branches[index.unwrap_or(last)].0.to_owned();
    let arguments = cx.inputs.drain(1..).collect();
    cx.call_function(&name, arguments)
}

fn repeat(cx: &mut Context<'_>) -> Result<()> {
    let condition = cx.node.attributes.func("cond")?.0.to_owned();
    let body = cx.node.attributes.func("body")?.0.to_owned();
    let mut state: Vec<Value> = std::mem::take(cx.inputs);
    loop {
        let result = cx.run.call(&condition, cx.device, state.clone())?;
        let result = result.first().ok_or_else(|| Error::invalid("the condition returns no value"))?;
        if !truth(result)? {
            return cx.deliver(state);
        }
        let next = cx.run.call(&body, cx.device, std::mem::take(&mut state))?;
        if next.len() != cx.node.output_types.len() {
            return Err(Error::invalid(format!(
                "the body returns {} values, but the loop carries {}",
                next.len(),
                cx.node.output_types.len()
            )));
        }
        state = next;
    }
}
