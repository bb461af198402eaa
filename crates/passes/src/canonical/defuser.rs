//! Dissolves fusions that another compiler built.

use crate::canonical::call_inliner::inline_where;
use crate::pass::{Changed, Pass};
use hlo::{Module, Op};
use support::Result;

/// `fusion(a, b), calls=f => f's body`, for every input. The decision which instructions share a
/// loop nest depends on the target machine. A fusion from a compiler for another machine may be
/// more than one kernel here.
pub struct Defuser;

impl Pass for Defuser {
    fn name(&self) -> &'static str {
        "defuser"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let changed = inline_where(module, |op| match *op {
            Op::Fusion { calls, .. } => Some(calls),
            _ => None,
        })?;
        if changed == Changed::Yes {
            module.remove_unreachable_computations();
        }
        Ok(changed)
    }
}
