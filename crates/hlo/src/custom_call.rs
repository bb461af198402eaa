//! Custom calls that have code: functions that the user links, and assertions.

use crate::RawAttributes;
use crate::opcode::Op;
use support::is_c_identifier;

/// Target of a custom call that only allocates memory.
pub const ALLOCATE_BUFFER: &str = "AllocateBuffer";

/// Target of a custom call that fails the run if its operand, a `pred[]`, is false. Its
/// `backend_config` is the message, and its result an empty tuple.
pub const ASSERT: &str = "tfcompile.Assert";

/// Like [`ASSERT`], but asks the caller to end the process.
pub const ASSERT_OR_ABORT: &str = "tfcompile.AssertOrAbort";

/// The effect of a custom call that has code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomCallKind<'a> {
    /// Calls a C function that the user provides; `attributes` is the text of a JSON object.
    Function {
        /// Name of the function, a C identifier.
        symbol: &'a str,
        /// The attributes of the source node.
        attributes: &'a str,
    },
    /// Fails the run with a message if its operand is false.
    Assert {
        /// The message.
        message: &'a str,
        /// True if the process should end.
        aborts: bool,
    },
}

/// Returns a custom call that only allocates memory: an array whose elements are undefined.
pub fn allocation() -> Op {
    Op::CustomCall {
        custom_call_target: ALLOCATE_BUFFER.to_owned(),
        backend_config: String::new(),
        custom_call_has_side_effect: false,
        attributes: RawAttributes::default(),
    }
}

/// Returns the kind of a custom call; `None` for other instructions and for custom calls without
/// code.
pub fn custom_call(op: &Op) -> Option<CustomCallKind<'_>> {
    let Op::CustomCall { custom_call_target: target, backend_config, .. } = op else { return None };
    match target.as_str() {
        ASSERT => Some(CustomCallKind::Assert { message: backend_config, aborts: false }),
        ASSERT_OR_ABORT => Some(CustomCallKind::Assert { message: backend_config, aborts: true }),
        ALLOCATE_BUFFER => None,
        symbol if is_c_identifier(symbol) && backend_config.starts_with('{') => {
            Some(CustomCallKind::Function { symbol, attributes: backend_config })
        }
        _ => None,
    }
}

/// True if running a custom call several times with the same operands is like running it once.
pub(crate) fn is_repeatable(op: &Op) -> bool {
    match custom_call(op) {
        Some(CustomCallKind::Assert { .. }) => true,
        Some(CustomCallKind::Function { .. }) => false,
        None => !matches!(op, Op::CustomCall { custom_call_has_side_effect: true, .. }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(target: &str, config: &str) -> Op {
        Op::CustomCall {
            custom_call_target: target.to_owned(),
            backend_config: config.to_owned(),
            custom_call_has_side_effect: false,
            attributes: crate::RawAttributes::default(),
        }
    }

    #[test]
    fn functions_need_a_c_identifier_and_attributes() {
        let function = Some(CustomCallKind::Function { symbol: "my_op", attributes: "{}" });
        assert_eq!(custom_call(&op("my_op", "{}")), function);
        for (target, config) in
            [("my op", "{}"), ("1st", "{}"), ("", "{}"), ("my_op", ""), (ALLOCATE_BUFFER, "{}")]
        {
            assert_eq!(custom_call(&op(target, config)), None, "{target} {config}");
        }
    }
}
