//! `// test: kernel`, or `kernel=CPU`: prints the loop nests of a module and the entry that calls
//! them. Parsing their text must yield the same program, and the verifier must accept it.

use super::{Outcome, plan::outcome};
use crate::case::Case;
use support::Error;

/// Lowers and prints.
pub(super) fn run(case: &Case) -> Outcome {
    outcome(case, |module, plan, target| {
        let schedule = buffers::schedule(module, plan);
        let assignment = buffers::assign(module, plan, &schedule, &mut buffers::ConstantsPool::default())?;
        let program = kernel::lower(module, plan, &schedule, &assignment, target, "entry")?;
        let text = program.to_string();
        nest::verify(&program)?;
        let read = nest::parse(&text)?;
        if read.to_string() == text {
            Ok(text)
        } else {
            Err(Error::internal(format!("parsing the text yields a different program:\n{read}")))
        }
    })
}
