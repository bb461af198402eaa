//! Parser of a short text format for graphs.
//!
//! Each line is one of:
//! - a node `name = Op(input, input:1, ^before) key=value`;
//! - a constant `name = 5`, `5L` (int64), `true`, `f32[7] 0.5` (one value for all elements), or
//!   `i32[3] 1 2 3`;
//! - a feed `name: f32[7]`;
//! - a variable `var name f32[7]`.
//!
//! `fn name(a: f32, b: res) -> x, y ^z {` and `}` around lines form a function that returns `x` and
//! `y` and runs `z`. Values of attributes are types, `[lists of types]`, `@functions`, `"strings"`,
//! integers, and truth values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Graph and config, both as protobuf text.
pub struct Source {
    pub graph: String,
    pub config: String,
}

/// Parses a graph. `fetches` are nodes, or their outputs as `name:1`.
pub fn parse(text: &str, fetches: &[&str]) -> Source {
    let (mut graph, mut library, mut config) = (String::new(), String::new(), String::new());
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix("fn ") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            library += &function(header, &body);
        } else if let Some((name, shape)) = line.split_once(": ").filter(|_| !line.contains('=')) {
            let (data_type, sizes) = array_type(shape);
            let attribute = format!("attr {{ key: \"dtype\" value {{ type: {data_type} }} }}");
            let _ = writeln!(graph, "node {{ name: \"{name}\" op: \"Placeholder\" {attribute} }}");
            let _ =
                writeln!(config, "feed {{ id {{ node_name: \"{name}\" }} shape {{ {} }} }}", dims(&sizes));
        } else if let Some((name, shape)) = line.strip_prefix("var ").and_then(|line| line.split_once(' ')) {
            let (data_type, sizes) = array_type(shape);
            let shape = format!("shape {{ {} }}", dims(&sizes));
            let _ = writeln!(
                graph,
                "node {{ name: \"{name}\" op: \"VarHandleOp\" attr {{ key: \"dtype\" value {{ type: {data_type} }} }} attr {{ \
                 key: \"shape\" value {{ {shape} }} }} attr {{ key: \"shared_name\" value {{ s: \"{name}\" }} }} }}"
            );
            let _ = writeln!(config, "variable {{ node_name: \"{name}\" {shape} type: {data_type} }}");
        } else {
            graph += &node("node", line, &|input| input.to_owned());
        }
    }
    for fetch in fetches {
        let (name, index) = fetch.split_once(':').unwrap_or((fetch, "0"));
        let _ = writeln!(config, "fetch {{ id {{ node_name: \"{name}\" output_index: {index} }} }}");
    }
    Source { graph: format!("{graph}library {{ {library} }}"), config }
}

fn function(header: &str, body: &[&str]) -> String {
    let (name, rest) = header.split_once('(').expect("a function needs arguments in parentheses");
    let (arguments, rest) = rest.split_once(')').expect("the arguments have no closing parenthesis");
    let results = rest.trim().trim_start_matches("->").trim_end_matches('{').trim();
    let mut ops: BTreeMap<&str, &str> = BTreeMap::new();
    for line in body {
        let (name, definition) = line.split_once(" = ").expect("a line of a function is not a node");
        ops.insert(name, definition.split_once('(').map_or("Const", |(op, _)| op));
    }
    let reference = |input: &str| {
        let (name, index) = input.split_once(':').unwrap_or((input, "0"));
        match ops.get(name) {
            None => name.to_owned(),
            Some(op) => match outputs(op) {
                [one] => format!("{name}:{one}:{index}"),
                several => format!(
                    "{name}:{}:0",
                    several[index.parse::<usize>().expect("the output index is not a number")]
                ),
            },
        }
    };
    let mut text = format!("function {{ signature {{ name: \"{name}\" ");
    for argument in arguments.split(", ").filter(|argument| !argument.is_empty()) {
        let (name, data_type) = argument.split_once(": ").expect("an argument has no type");
        let _ = write!(text, "input_arg {{ name: \"{name}\" type: {} }} ", type_name(data_type));
    }
    let (data, control): (Vec<&str>, Vec<&str>) =
        results.split([',', ' ']).filter(|r| !r.is_empty()).partition(|result| !result.starts_with('^'));
    let (mut ret, mut types) = (String::new(), String::new());
    for (k, result) in data.iter().enumerate() {
        let (result, data_type) = result.split_once('/').unwrap_or((result, "f32"));
        let _ = write!(types, "output_arg {{ name: \"r{k}\" type: {} }} ", type_name(data_type));
        let _ = write!(ret, "ret {{ key: \"r{k}\" value: \"{}\" }} ", reference(result));
    }
    for result in control {
        let name = &result[1..];
        let _ = write!(types, "control_output: \"{name}\" ");
        let _ = write!(ret, "control_ret {{ key: \"{name}\" value: \"{name}\" }} ");
    }
    let nodes: String = body.iter().map(|line| node("node_def", line, &reference)).collect();
    format!("{text}{types}}} {nodes} {ret} }}\n")
}

fn node(field: &str, line: &str, reference: &dyn Fn(&str) -> String) -> String {
    let (name, definition) = line.split_once(" = ").unwrap_or_else(|| panic!("not a node: {line}"));
    let Some((op, rest)) = definition.split_once('(') else {
        return format!("{field} {{ name: \"{name}\" op: \"Const\" {} }}\n", constant(definition));
    };
    let (inputs, attributes) = rest.split_once(')').expect("the inputs have no closing parenthesis");
    let mut text = format!("{field} {{ name: \"{name}\" op: \"{op}\" ");
    for input in inputs.split(", ").filter(|input| !input.is_empty()) {
        let input = if input.starts_with('^') { input.to_owned() } else { reference(input) };
        let _ = write!(text, "input: \"{input}\" ");
    }
    for attribute in attributes.split_whitespace() {
        let (key, value) = attribute.split_once('=').expect("an attribute has no value");
        let value = match value {
            _ if value.starts_with('[') => {
                let types = value.trim_matches(['[', ']']).split(',').filter(|t| !t.is_empty());
                let types: String = types.map(|t| format!("type: {} ", type_name(t))).collect();
                format!("list {{ {types} }}")
            }
            _ if value.starts_with('@') => format!("func {{ name: \"{}\" }}", &value[1..]),
            _ if value.starts_with('"') => format!("s: {value}"),
            _ if value == "true" || value == "false" => format!("b: {value}"),
            _ if value.parse::<i64>().is_ok() => format!("i: {value}"),
            _ => format!("type: {}", type_name(value)),
        };
        let _ = write!(text, "attr {{ key: \"{key}\" value {{ {value} }} }} ");
    }
    text + "}\n"
}

fn constant(text: &str) -> String {
    let (data_type, sizes, values) = match text.split_once("] ") {
        Some((shape, values)) => {
            let (data_type, sizes) = array_type(&format!("{shape}]"));
            (data_type, sizes, values)
        }
        None if text.ends_with('L') => ("DT_INT64", Vec::new(), text.trim_end_matches('L')),
        None if text == "true" || text == "false" => ("DT_BOOL", Vec::new(), text),
        None if text.contains('.') => ("DT_FLOAT", Vec::new(), text),
        None => ("DT_INT32", Vec::new(), text),
    };
    let field = match data_type {
        "DT_INT64" => "int64_val",
        "DT_BOOL" => "bool_val",
        "DT_FLOAT" => "float_val",
        _ => "int_val",
    };
    let values: String = values.split(' ').map(|value| format!("{field}: {value} ")).collect();
    format!(
        "attr {{ key: \"dtype\" value {{ type: {data_type} }} }} attr {{ key: \"value\" value {{ tensor {{ dtype: {data_type} \
         tensor_shape {{ {} }} {values} }} }} }}",
        dims(&sizes)
    )
}

fn array_type(text: &str) -> (&'static str, Vec<i64>) {
    let (data_type, sizes) = text.split_once('[').expect("a type has no sizes");
    let sizes = sizes.trim_end_matches(']').split(',').filter(|size| !size.is_empty());
    (type_name(data_type), sizes.map(|size| size.parse().expect("a size is not a number")).collect())
}

fn dims(sizes: &[i64]) -> String {
    sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect()
}

fn type_name(short: &str) -> &'static str {
    match short {
        "i32" => "DT_INT32",
        "i64" => "DT_INT64",
        "bool" => "DT_BOOL",
        "res" => "DT_RESOURCE",
        "f32" => "DT_FLOAT",
        other => panic!("unknown type: {other}"),
    }
}

/// Returns the names of an op's outputs.
fn outputs(op: &str) -> &'static [&'static str] {
    match op {
        "StackV2" => &["handle"],
        "StackPopV2" => &["elem"],
        "ReadVariableOp" | "TensorArrayReadV3" | "TensorArrayGatherV3" => &["value"],
        "TensorArrayWriteV3" => &["flow_out"],
        "TensorArrayV3" => &["handle", "flow"],
        "TensorArrayGradV3" => &["grad_handle", "flow_out"],
        "Neg" | "Sin" | "Cast" | "LogicalNot" => &["y"],
        "Const"
        | "ConcatV2"
        | "Identity"
        | "While"
        | "StatelessWhile"
        | "If"
        | "StackPushV2"
        | "Max"
        | "Sum"
        | "Select"
        | "PartitionedCall"
        | "StatefulPartitionedCall"
        | "Range"
        | "Fill"
        | "Shape"
        | "Reshape" => &["output"],
        _ => &["z"],
    }
}
