//! Conditionals and loops whose branches and bodies are functions: these run as graphs of their own, with kernels, state and
//! threads of the run that they stand in.

use super::{Context, Row};
use crate::executor;
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

/// Calls a function.
fn call(cx: &Context<'_>, name: &str, arguments: Vec<Value>) -> Result<Vec<Value>> {
    let run = cx.run;
    let plan = run.program.function(name, cx.device, &run.shared)?;
    executor::run(
        &run.shared,
        &run.program,
        &plan,
        arguments,
        run.recorder.clone(),
        (run.deadline, run.depth + 1),
    )
}

/// Makes the outputs of what a function returned.
fn deliver(cx: &mut Context<'_>, results: Vec<Value>) -> Result<()> {
    if results.len() != cx.node.output_types.len() {
        return Err(Error::invalid(format!(
            "the function returns {} values, the node has {} outputs",
            results.len(),
            cx.node.output_types.len()
        )));
    }
    cx.outputs.extend(results.into_iter().map(Some));
    Ok(())
}

/// Runs a function in place of a node: its results are the node's outputs.
pub(crate) fn call_function(cx: &mut Context<'_>, name: &str, arguments: Vec<Value>) -> Result<()> {
    let results = call(cx, name, arguments)?;
    deliver(cx, results)
}

/// Whether a value counts as true: strings do unless they are empty, arrays that are no scalars unless they have no
/// elements.
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
    let results = call(cx, &name, arguments)?;
    deliver(cx, results)
}

fn case(cx: &mut Context<'_>) -> Result<()> {
    let branches = cx.node.attributes.funcs("branches")?;
    let index = usize::try_from(cx.integer(0)?).ok().filter(|&index| index < branches.len());
    let last = branches.len().checked_sub(1).ok_or_else(|| Error::invalid("there are no branches"))?;
    let name = branches[index.unwrap_or(last)].0.to_owned();
    let arguments = cx.inputs.drain(1..).collect();
    let results = call(cx, &name, arguments)?;
    deliver(cx, results)
}

fn repeat(cx: &mut Context<'_>) -> Result<()> {
    let condition = cx.node.attributes.func("cond")?.0.to_owned();
    let body = cx.node.attributes.func("body")?.0.to_owned();
    let mut state: Vec<Value> = std::mem::take(cx.inputs);
    loop {
        let goes_on = call(cx, &condition, state.clone())?;
        let goes_on = goes_on.first().ok_or_else(|| Error::invalid("the condition returns nothing"))?;
        if !truth(goes_on)? {
            return deliver(cx, state);
        }
        let next = call(cx, &body, std::mem::take(&mut state))?;
        if next.len() != cx.node.output_types.len() {
            return Err(Error::invalid(format!(
                "the body returns {} values, the loop carries {}",
                next.len(),
                cx.node.output_types.len()
            )));
        }
        state = next;
    }
}
