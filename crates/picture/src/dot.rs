//! Renders the graph in Graphviz's language (<https://graphviz.org/doc/info/lang.html>).
//!
//! Each computation is a box of instructions and is drawn once. The callee of a fusion is drawn in
//! place of the fusion. Other callees (loop bodies, branches, reduction functions) are drawn
//! separately, with a dashed arrow from the caller. Small constants appear as values in the labels
//! of their consumers.

use crate::kind::Kind;
use crate::{SHOWN_CONSTANT, text_options, value_text};
use hlo::analysis::Cost;
use hlo::{ComputationId, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use support::Id;

const TAKES_EVERYTHING: &str = "writing to a string never fails";

/// Renders the module as a directed graph, operands above consumers. The output is deterministic.
pub fn dot(module: &Module) -> String {
    let mut writer = Writer {
        module,
        texts: hlo::text::instruction_texts(module, text_options()),
        drawn_in_place: drawn_in_place(module),
        out: String::new(),
    };
    writer.graph();
    writer.out
}

/// Callees that only one fusion calls, which are drawn in place of the fusion.
fn drawn_in_place(module: &Module) -> BTreeSet<ComputationId> {
    let mut callers: BTreeMap<ComputationId, (usize, bool)> = BTreeMap::new();
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            for callee in instruction.op().called_computations() {
                let (count, all_fusions) = callers.entry(callee).or_insert((0, true));
                *count += 1;
                *all_fusions &= matches!(instruction.op(), Op::Fusion { .. });
            }
        }
    }
    callers.into_iter().filter(|(_, (count, fusions))| *count == 1 && *fusions).map(|(id, _)| id).collect()
}

struct Writer<'a> {
    module: &'a Module,
    texts: BTreeMap<(ComputationId, InstructionId), String>,
    drawn_in_place: BTreeSet<ComputationId>,
    out: String,
}

impl Writer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    fn graph(&mut self) {
        self.line(format!("digraph {} {{", quoted(self.module.name())));
        self.line("rankdir=TB; compound=true; newrank=true; fontname=\"Helvetica\"; labeljust=l;");
        self.line("node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, margin=\"0.12,0.06\"];");
        self.line("edge [arrowsize=0.6, color=\"#555555\"];");
        let ids: Vec<ComputationId> = self.module.computations().map(|(id, _)| id).collect();
        for id in ids {
            if !self.drawn_in_place.contains(&id) {
                let name = self.module[id].name();
                let is_entry = self.module.entry_if_set() == Some(id);
                let label = if is_entry { format!("ENTRY {name}") } else { name.to_owned() };
                self.computation(id, &label);
            }
        }
        self.line("}");
    }

    fn computation(&mut self, id: ComputationId, label: &str) {
        self.line(format!("subgraph \"cluster_{}\" {{", id.index()));
        self.line(format!("label={}; style=\"rounded\"; color=\"#888888\";", quoted(label)));
        let order: Vec<InstructionId> = self.module[id].instructions().map(|(i, _)| i).collect();
        for &instruction in &order {
            self.instruction(id, instruction);
        }
        self.line("}");
        for instruction in order {
            self.edges(id, instruction);
        }
    }

    fn instruction(&mut self, computation: ComputationId, id: InstructionId) {
        let module = self.module;
        let instruction = &module[computation][id];
        if is_shown_at_users(module, computation, id) {
            return;
        }
        if let Some(callee) = self.callee_in_place(computation, id) {
            let label = format!("{} {}", instruction.name(), instruction.shape());
            self.computation(callee, &label);
            return;
        }
        let mut label =
            format!("{}\n{}\n{}", instruction.opcode().name(), instruction.name(), instruction.shape());
        for (k, &operand) in instruction.operands().iter().enumerate() {
            if let Op::Constant { literal } = module[computation][operand].op()
                && is_shown_at_users(module, computation, operand)
            {
                write!(label, "\noperand {k} = {}", value_text(literal)).expect(TAKES_EVERYTHING);
            }
        }
        let metadata = instruction.metadata();
        if !metadata.op_name.is_empty() {
            write!(label, "\n{} {}", metadata.op_type, metadata.op_name).expect(TAKES_EVERYTHING);
        }
        let is_root = module[computation].root_if_set() == Some(id);
        let line = format!(
            "{} [label={}, fillcolor=\"{}\", tooltip={}{}];",
            node(computation, id),
            quoted(&label),
            Kind::of(instruction.op()).color(),
            quoted(&format!(
                "{}\n{}",
                self.texts[&(computation, id)],
                cost_text(Cost::of_instruction(module, computation, id))
            )),
            if is_root { ", penwidth=2" } else { "" }
        );
        self.line(line);
    }

    fn edges(&mut self, computation: ComputationId, id: InstructionId) {
        let module = self.module;
        let instruction = &module[computation][id];
        let in_place = self.callee_in_place(computation, id);
        for (k, &operand) in instruction.operands().iter().enumerate() {
            if is_shown_at_users(module, computation, operand) {
                continue;
            }
            let from = self.output_of(computation, operand);
            let to = match in_place.and_then(|callee| Some((callee, *module[callee].parameters().get(k)?))) {
                Some((callee, parameter)) => node(callee, parameter),
                None => node(computation, id),
            };
            self.line(format!("{from} -> {to};"));
        }
        if in_place.is_some() {
            return;
        }
        for callee in instruction.op().called_computations() {
            let Some(root) = module[callee].root_if_set() else { continue };
            let to = self.output_of(callee, root);
            self.line(format!(
                "{} -> {to} [style=dashed, lhead=\"cluster_{}\", constraint=false];",
                node(computation, id),
                callee.index()
            ));
        }
    }

    /// Start of the arrow of a value: the root of the callee, if that is drawn in place.
    fn output_of(&self, mut computation: ComputationId, mut id: InstructionId) -> String {
        while let Some(callee) = self.callee_in_place(computation, id) {
            let Some(root) = self.module[callee].root_if_set() else { break };
            (computation, id) = (callee, root);
        }
        node(computation, id)
    }

    fn callee_in_place(&self, computation: ComputationId, id: InstructionId) -> Option<ComputationId> {
        match self.module[computation][id].op() {
            Op::Fusion { calls, .. } if self.drawn_in_place.contains(calls) => Some(*calls),
            _ => None,
        }
    }
}

/// True for a small constant that is not the result.
pub(crate) fn is_shown_at_users(module: &Module, computation: ComputationId, id: InstructionId) -> bool {
    let instruction = &module[computation][id];
    matches!(instruction.op(), Op::Constant { .. })
        && instruction.shape().as_array().is_some_and(|array| array.element_count() <= SHOWN_CONSTANT)
        && module[computation].root_if_set() != Some(id)
}

fn node(computation: ComputationId, id: InstructionId) -> String {
    format!("\"c{}i{}\"", computation.index(), id.index())
}

fn cost_text(cost: Cost) -> String {
    format!(
        "{} flops, {} transcendentals, {} bytes read, {} bytes written",
        cost.flops, cost.transcendentals, cost.bytes_read, cost.bytes_written
    )
}

/// Quotes a string for Graphviz, with centered lines.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Graphviz interprets entities in labels.
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUSED: &str = "HloModule m
f {
  p = f32[2] parameter(0)
  half = f32[] constant(0.5)
  halves = f32[2] broadcast(half), dimensions={}
  ROOT y = f32[2] multiply(p, halves)
}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[2] parameter(0)
  zero = f32[] constant(0)
  y = f32[2] fusion(x), kind=kLoop, calls=f
  ROOT s = f32[] reduce(y, zero), dimensions={0}, to_apply=add, metadata={op_type=\"Sum\" op_name=\"a\\\"b<&>\"}
}";

    fn lines(text: &str) -> Vec<String> {
        dot(&hlo::parse(text).unwrap()).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_fusion_is_drawn_in_its_place_and_a_function_apart() {
        let lines = lines(FUSED);
        // An arrow leads from `x` to the fusion's parameter and from the fusion's root to the
        // reduction, and a dashed arrow to the function.
        assert!(lines.contains(&"\"c2i0\" -> \"c0i0\";".to_owned()), "{lines:#?}");
        assert!(lines.contains(&"\"c0i3\" -> \"c2i3\";".to_owned()), "{lines:#?}");
        let dashed = "\"c2i3\" -> \"c1i2\" [style=dashed, lhead=\"cluster_1\", constraint=false];";
        assert!(lines.contains(&dashed.to_owned()), "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("subgraph")).count(), 3);
        let closed = lines.iter().filter(|line| *line == "}").count();
        assert_eq!(closed, 4, "the graph and three boxes are closed");
    }

    #[test]
    fn small_constants_are_values_in_labels_and_names_are_escaped() {
        let text = lines(FUSED).join("\n");
        assert!(text.contains("operand 0 = 0.5"), "{text}");
        assert!(!text.contains("\"c2i1\""), "{text}");
        assert!(text.contains("Sum a\\\"b<&amp;>"), "{text}");
    }
}
