//! The custom calls that have code: functions that the user links, and checks.

use crate::opcode::Op;
use support::is_c_identifier;

/// The target of a custom call that only asks for memory.
pub const ALLOCATE_BUFFER: &str = "AllocateBuffer";

/// The target of a custom call that fails the run where its one operand, a `pred[]`, is false. Its `backend_config` is the
/// message, its result an empty tuple.
pub const ASSERT: &str = "tfcompile.Assert";

/// The same, and asks the caller to end the process.
pub const ASSERT_OR_ABORT: &str = "tfcompile.AssertOrAbort";

/// What a custom call with code does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomCallKind<'a> {
    /// Calls a C function of the user's, of this name; `attributes` is the text of a JSON object.
    Function {
        /// A C identifier.
        symbol: &'a str,
        /// The attributes of the source node.
        attributes: &'a str,
    },
    /// Fails the run with a message where its operand is false.
    Assert {
        /// What to say.
        message: &'a str,
        /// Whether the process is to end.
        aborts: bool,
    },
}

/// What a custom call does; `None` of other instructions, and of custom calls that no code can be made for.
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
    fn functions_have_names_of_c_and_attributes() {
        let function = Some(CustomCallKind::Function { symbol: "my_op", attributes: "{}" });
        assert_eq!(custom_call(&op("my_op", "{}")), function);
        for (target, config) in
            [("my op", "{}"), ("1st", "{}"), ("", "{}"), ("my_op", ""), (ALLOCATE_BUFFER, "{}")]
        {
            assert_eq!(custom_call(&op(target, config)), None, "{target} {config}");
        }
    }
}
