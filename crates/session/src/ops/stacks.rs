//! TensorFlow 1 stacks.

use super::{Context, Row};
use crate::lock::lock;
use crate::value::Value;
use crate::value::{Handle, Stack};
use std::sync::{Arc, Mutex};
use support::{Error, Result};

pub(super) const OPS: &[Row] = &[
    ("StackV2", |cx| {
        let stack = Stack {
            name: cx.node.name.clone(),
            max_size: cx.integer(0)?,
            elements: Mutex::new(Some(Vec::new())),
        };
        cx.push(Value::Resource(Handle::Stack(Arc::new(stack))));
        Ok(())
    }),
    ("StackPushV2", |cx| {
        let (stack, value) = (stack(cx)?, cx.input(1)?.clone());
        let mut elements = lock(&stack.elements);
        let elements = elements.as_mut().ok_or_else(|| closed(&stack))?;
        if stack.max_size >= 0 && elements.len() as i64 >= stack.max_size {
            return Err(Error::invalid(format!(
                "Stack[{}] overflowed its max_size ({})",
                stack.name, stack.max_size
            )));
        }
        elements.push(value.clone());
        cx.push(value);
        Ok(())
    }),
    ("StackPopV2", |cx| {
        let stack = stack(cx)?;
        let mut elements = lock(&stack.elements);
        let elements = elements.as_mut().ok_or_else(|| closed(&stack))?;
        let value = elements
            .pop()
            .ok_or_else(|| Error::invalid(format!("Stack[{}] is empty when calling Pop().", stack.name)))?;
        cx.push(value);
        Ok(())
    }),
    ("StackCloseV2", |cx| {
        *lock(&stack(cx)?.elements) = None;
        Ok(())
    }),
];

fn closed(stack: &Stack) -> Error {
    Error::invalid(format!("Stack[{}] has already been closed.", stack.name))
}

fn stack(cx: &Context<'_>) -> Result<Arc<Stack>> {
    match cx.input(0)? {
        Value::Resource(Handle::Stack(stack)) => Ok(stack.clone()),
        other => Err(Error::invalid(format!("expected a stack, got {}", other.kind()))),
    }
}
