//! Descriptions of the counters of a profiled program.

use aot::ProfileCounter;
use hlo::analysis::{Cost, executions};
use hlo::{Instruction, Module, Op, PrintOptions};
use kernel::Counter;

const TOTAL: &str = "[total]";

/// Describes the counters of an optimized module: names, and the cost of each instruction.
pub(crate) fn describe(module: &Module, counters: &[Counter]) -> Vec<ProfileCounter> {
    if counters.is_empty() {
        return Vec::new();
    }
    let texts = hlo::text::instruction_texts(module, PrintOptions::short());
    let runs = executions(module);
    let describe = |&counter: &Counter| match counter {
        Counter::Total => ProfileCounter {
            name: TOTAL.to_owned(),
            short_name: TOTAL.to_owned(),
            ..ProfileCounter::default()
        },
        Counter::Instruction(computation, id) => {
            let instruction = &module[computation][id];
            let cost = Cost::of_instruction(module, computation, id);
            // The cost is unknown if the number of iterations is data-dependent.
            let runs = runs.get(&computation).copied().flatten().unwrap_or(0);
            let text = &texts[&(computation, id)];
            let short_name = text.split_once(" = ").map_or(text.as_str(), |(name, _)| name);
            ProfileCounter {
                name: format!("%{text}{}", node(module, instruction)),
                short_name: format!("%{short_name}"),
                category: instruction.opcode().name().to_owned(),
                flops: cost.flops.saturating_mul(runs),
                transcendentals: cost.transcendentals.saturating_mul(runs),
                bytes: cost.bytes_read.saturating_add(cost.bytes_written).saturating_mul(runs),
            }
        }
    };
    counters.iter().map(describe).collect()
}

/// Node of an instruction in the syntax of HLO text. For a fusion without a node, the node of its
/// root.
fn node(module: &Module, instruction: &Instruction) -> String {
    let own = &instruction.metadata().op_name;
    let name = match instruction.op() {
        Op::Fusion { calls, .. } if own.is_empty() => {
            &module[*calls][module[*calls].root()].metadata().op_name
        }
        _ => own,
    };
    if name.is_empty() { String::new() } else { format!(", metadata={{op_name={name:?}}}") }
}
