//! Renders the graph as a self-contained page that loads no external resources.
//!
//! The page consists of `page/page.html`, the style, the scripts, and the graph as JSON. The
//! scripts lay out and draw the graph in the browser, because the picture depends on the fusions
//! and callees that the reader has expanded.

use crate::dot::is_shown_at_users;
use crate::kind::Kind;
use crate::{text_options, value_text};
use hlo::analysis::Cost;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 4] = [
    include_str!("page/layout.js"),
    include_str!("page/scene.js"),
    include_str!("page/panel.js"),
    include_str!("page/main.js"),
];

/// Renders the module as an HTML page with instructions as boxes, expandable fusions and callees,
/// search, and costs. The output is deterministic.
pub fn html(module: &Module) -> String {
    // Without `<`, neither `</script>` nor a comment can begin.
    let graph = graph(module).to_string().replace('<', "\\u003c");
    // The graph comes last, because its names may look like the other placeholders.
    PAGE.replacen("{{title}}", &escaped(module.name()), 1)
        .replacen("{{style}}", STYLE, 1)
        .replacen("{{scripts}}", &SCRIPTS.concat(), 1)
        .replacen("{{graph}}", &graph, 1)
}

/// Converts the graph to the form that the scripts read: indices instead of ids, and each
/// computation's instructions with operands first.
fn graph(module: &Module) -> Value {
    let texts = hlo::text::instruction_texts(module, text_options());
    let numbers: BTreeMap<ComputationId, usize> =
        module.computations().enumerate().map(|(number, (id, _))| (id, number)).collect();
    let kinds: Vec<Value> =
        Kind::ALL.iter().map(|kind| json!({"name": kind.name(), "color": kind.color()})).collect();
    let computations: Vec<Value> = module
        .computations()
        .map(|(id, computation)| {
            let order = hlo::text::instruction_order(computation);
            let positions: BTreeMap<InstructionId, usize> =
                order.iter().enumerate().map(|(position, &id)| (id, position)).collect();
            let nodes: Vec<Value> = order
                .iter()
                .map(|&i| {
                    let calls: Vec<usize> = computation[i]
                        .op()
                        .called_computations()
                        .iter()
                        .map(|callee| numbers[callee])
                        .collect();
                    node(module, id, i, &positions, calls, &texts[&(id, i)])
                })
                .collect();
            let parameters: Vec<usize> = computation.parameters().iter().map(|p| positions[p]).collect();
            json!({
                "name": computation.name(),
                "parameters": parameters,
                "root": computation.root_if_set().map(|root| positions[&root]),
                "nodes": nodes,
            })
        })
        .collect();
    json!({
        "name": module.name(),
        "entry": module.entry_if_set().map(|entry| numbers[&entry]),
        "kinds": kinds,
        "computations": computations,
    })
}

/// Converts one instruction. Empty and zero fields are omitted to keep the pages of large graphs
/// small.
fn node(
    module: &Module,
    computation_id: ComputationId,
    id: InstructionId,
    positions: &BTreeMap<InstructionId, usize>,
    calls: Vec<usize>,
    text: &str,
) -> Value {
    let computation: &Computation = &module[computation_id];
    let instruction = &computation[id];
    let cost = Cost::of_instruction(module, computation_id, id);
    let operands: Vec<usize> = instruction.operands().iter().map(|operand| positions[operand]).collect();
    let mut fields = Map::new();
    fields.insert("name".into(), instruction.name().into());
    fields.insert("opcode".into(), instruction.opcode().name().into());
    fields.insert("kind".into(), Kind::of(instruction.op()).index().into());
    fields.insert("shape".into(), instruction.shape().to_string().into());
    fields.insert("text".into(), text.into());
    fields.insert("operands".into(), operands.into());
    if !calls.is_empty() {
        fields.insert("calls".into(), calls.into());
    }
    if let Op::Constant { literal } = instruction.op()
        && is_shown_at_users(module, computation_id, id)
    {
        fields.insert("value".into(), value_text(literal).into());
    }
    let moves = !matches!(
        instruction.op(),
        Op::Parameter { .. } | Op::Constant { .. } | Op::Tuple {} | Op::GetTupleElement { .. }
    );
    let numbers = [
        ("flops", cost.flops),
        ("transcendentals", cost.transcendentals),
        ("read", if moves { cost.bytes_read } else { 0 }),
        ("written", if moves { cost.bytes_written } else { 0 }),
        ("bytes", instruction.shape().byte_size()),
    ];
    for (name, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        fields.insert(name.into(), number.into());
    }
    let metadata = instruction.metadata();
    let words =
        [("op_type", &metadata.op_type), ("op_name", &metadata.op_name), ("source", &metadata.source_file)];
    for (name, word) in words.into_iter().filter(|(_, word)| !word.is_empty()) {
        fields.insert(name.into(), word.as_str().into());
    }
    if metadata.source_line > 0 {
        fields.insert("line".into(), metadata.source_line.into());
    }
    Value::Object(fields)
}

/// Escapes the text of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('{', "&#123;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "HloModule m
ENTRY main {
  x = f32[2,3] parameter(0), metadata={op_type=\"Placeholder\" op_name=\"</script><script>alert(1)</script>\"}
  one = f32[] constant(1)
  ones = f32[2,3] broadcast(one), dimensions={}
  ROOT y = f32[2,3] add(x, ones), metadata={op_type=\"Add\" op_name=\"{{style}}\"}
}";

    fn embedded(page: &str) -> Value {
        let begin = page.find("<script type=\"application/json\" id=\"graph\">").unwrap();
        let json = &page[begin..];
        let json = &json[json.find('>').unwrap() + 1..json.find("</script>").unwrap()];
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_graph_in_the_page_is_the_module() {
        let graph = embedded(&html(&hlo::parse(HOSTILE).unwrap()));
        let nodes = graph["computations"][0]["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 4);
        assert_eq!(nodes[3]["operands"], json!([0, 2]));
        assert_eq!(nodes[3]["flops"], 6);
        assert_eq!((&nodes[3]["read"], &nodes[3]["written"]), (&json!(48), &json!(24)));
        assert_eq!(nodes[3]["op_name"], "{{style}}");
        assert_eq!(nodes[1]["value"], "1");
        assert_eq!(nodes[0]["op_name"], "</script><script>alert(1)</script>");
        assert_eq!(graph["computations"][0]["root"], 3);
    }

    #[test]
    fn names_close_no_element_and_nothing_is_fetched() {
        let page = html(&hlo::parse(HOSTILE).unwrap());
        assert!(!page.contains("<script>alert"));
        assert_eq!(page.matches("</script>").count(), 2, "the graph and the scripts");
        for word in ["http://", "https://", "src=", "@import", "fetch("] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(!page.contains("{{graph}}") && !page.contains("{{scripts}}"));
    }
}
