//! Damaged and hostile files: refused or read, never a panic, in bounded time and memory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tf::proto::Config;
use tf::source;

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }
}

/// The graphs of this crate's tests, and of the oracle set where it is there; with a config of
/// each.
fn graphs() -> Vec<(PathBuf, Config)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = "feed { id { node_name: 'x' } shape { } } feed { id { node_name: 'y' } shape { } }
                fetch { id { node_name: 'result' } } variable { node_name: 'v' }";
    let config = source::parse_config(text.into(), "c.pbtxt").expect("a config");
    let mut graphs: Vec<(PathBuf, Config)> = std::fs::read_dir(root.join("tests/data"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "pbtxt"))
        .map(|path| (path, config.clone()))
        .collect();
    assert!(graphs.len() > 8);
    let text = "feed { id { node_name: 'x' } shape { } } feed { id { node_name: 'y' } shape { } }
                fetch { id { node_name: 'result' } } variable { node_name: 'v' } variable { node_name: 'r' }";
    let with_both = source::parse_config(text.into(), "c.pbtxt").expect("a config");
    let loops = std::fs::read_dir(root.join("tests/data/loops")).expect("a folder");
    graphs.extend(loops.map(|entry| {
        let path = entry.expect("an entry").path();
        let graph = source::read_graph_def(&path).expect("a graph");
        let mut config = with_both.clone();
        config.variable.retain(|variable| graph.node.iter().any(|node| node.name == variable.node_name));
        (path, config)
    }));
    for folder in std::fs::read_dir(crate::shared::oracle().join("tfcompile_tests")).into_iter().flatten() {
        let folder = folder.expect("an entry").path();
        let (graph, config) = (folder.join("graph.pb"), folder.join("config.pbtxt"));
        if graph.exists() && config.exists() {
            graphs.push((graph, source::read_config(&config).expect("a config")));
            graphs.push((folder.join("graph.pbtxt"), source::read_config(&config).expect("a config")));
        }
    }
    graphs.sort_by(|a, b| a.0.cmp(&b.0));
    graphs
}

fn read_and_prepare(bytes: Vec<u8>, name: &str, config: &Config) {
    if let Ok(graph) = source::parse_graph_def(bytes.into(), name) {
        let _ = tf::prepare(graph, config.clone());
    }
}

#[test]
fn damaged_graphs_never_panic() {
    let mut random = Random(1);
    for (path, config) in graphs() {
        let original = std::fs::read(&path).expect("a graph");
        let name = path.display().to_string();
        if original.len() > 100_000 {
            continue;
        }
        for _ in 0..60 {
            let mut bytes = original.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    2 => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
                    _ => {
                        // A piece from elsewhere: names and messages at the wrong place.
                        let from = random.below(original.len());
                        let piece =
                            original[from..(from + 1 + random.below(40)).min(original.len())].to_vec();
                        bytes.splice(at..at, piece);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            read_and_prepare(bytes, &name, &config);
        }
        for _ in 0..20 {
            read_and_prepare(original[..random.below(original.len())].to_vec(), &name, &config);
        }
    }
}

/// Swaps names in graphs, so that inputs, ops and attributes are well formed but wrong.
#[test]
fn rewired_graphs_never_panic() {
    let mut random = Random(2);
    for (path, config) in graphs() {
        let graph = source::read_graph_def(&path).expect("a graph");
        for _ in 0..60 {
            let mut graph = graph.clone();
            for _ in 0..=random.below(3) {
                let (a, b) = (random.below(graph.node.len()), random.below(graph.node.len()));
                let other = graph.node[b].clone();
                let node = &mut graph.node[a];
                match random.below(5) {
                    0 => node.op = other.op,
                    1 => node.attr = other.attr,
                    2 => node.input = other.input,
                    3 if !node.input.is_empty() => {
                        let at = random.below(node.input.len());
                        node.input[at] = format!("{}:{}", other.name, random.below(3));
                    }
                    _ => node.input.push(format!("^{}", other.name)),
                }
            }
            if let Ok(program) = tf::prepare(graph, config.clone()) {
                crate::shared::well_formed::check(&program, &path.display().to_string());
            }
        }
    }
}

fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    result
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("func { attr { value { ", "} } } "), ("list { func { attr { value { ", "} } } } ")]
    {
        let text =
            format!("node {{ attr {{ value {{ {} {} }} }} }}", open.repeat(100_000), close.repeat(100_000));
        let error = quickly(|| source::parse_graph_def(text.into(), "g.pbtxt")).expect_err("deep");
        assert!(error.message().contains("too deep"), "{error}");
    }
    let skipped = format!("library {{ registered_gradients {} }}", "{ a ".repeat(100_000));
    let error = quickly(|| source::parse_graph_def(skipped.into(), "g.pbtxt")).expect_err("deep");
    assert!(error.message().contains("too deep"), "{error}");
    // AttrValue.func.attr.value, again and again; then NodeDef.attr.value and GraphDef.node around
    // it.
    let mut body = Vec::new();
    let tags = [0x12u8, 0x12, 0x52].repeat(3000).into_iter().chain([0x12, 0x2a, 0x0a]);
    for tag in tags {
        let mut outer = vec![tag];
        prost::encoding::encode_varint(body.len() as u64, &mut outer);
        outer.extend_from_slice(&body);
        body = outer;
    }
    let file = body;
    quickly(|| source::parse_graph_def(file.into(), "g.pb")).expect_err("deep");
}

#[test]
fn a_small_file_cannot_demand_much_memory() {
    // Ten million empty nodes.
    let file = [0x0a, 0x00].repeat(10_000_000);
    let error = quickly(|| source::parse_graph_def(file.into(), "g.pb")).expect_err("large");
    assert!(error.message().contains("MiB"), "{error}");
}

/// A chain of functions, each of which calls the next twice with other attributes: the number of
/// instances is bounded.
#[test]
fn functions_that_multiply_are_refused_or_finish() {
    use std::fmt::Write;
    let mut text = String::from("library {");
    for i in 0..60 {
        let call = |name: &str| match i {
            59 => format!(
                "node_def {{ name: '{name}' op: 'Identity' input: 'a' attr {{ key: 'T' value {{ type: DT_FLOAT }} }} }}"
            ),
            _ => format!("node_def {{ name: '{name}' op: 'f{}' input: 'a' }}", i + 1),
        };
        let output = if i == 59 { "output" } else { "b" };
        write!(
            text,
            "function {{ signature {{ name: 'f{i}' input_arg {{ name: 'a' type: DT_FLOAT }} output_arg {{ name: 'b' type: \
             DT_FLOAT }} }} {} {} ret {{ key: 'b' value: 'p:{output}:0' }} }}",
            call("p"),
            call("q")
        )
        .expect("a string");
    }
    text.push_str("} node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } node { name: 'result' op: 'f0' input: 'x' }");
    let graph = source::parse_graph_def(text.into(), "g.pbtxt").expect("a graph");
    let config = "feed { id { node_name: 'x' } } fetch { id { node_name: 'result' } }";
    let config = source::parse_config(config.into(), "c.pbtxt").expect("a config");
    let program = quickly(|| tf::prepare(graph, config)).expect("60 functions");
    assert_eq!(program.library.functions().count(), 60);
}

#[test]
fn many_outputs_and_long_chains_are_bounded() {
    use std::fmt::Write;
    let mut text = String::from(
        "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
         node { name: 'z' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
                attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } } } } } node { name: 'n0' op: 'Neg' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",
    );
    for i in 1..50_000 {
        write!(
            text,
            "node {{ name: 'n{i}' op: 'Neg' input: 'n{}' attr {{ key: 'T' value {{ type: DT_FLOAT }} }} }}",
            i - 1
        )
        .expect("a string");
    }
    let config = |fetch: &str| {
        let text = format!("feed {{ id {{ node_name: 'x' }} }} fetch {{ id {{ node_name: '{fetch}' }} }}");
        source::parse_config(text.into(), "c.pbtxt").expect("a config")
    };
    let graph = source::parse_graph_def(text.clone().into(), "g.pbtxt").expect("a graph");
    assert_eq!(quickly(|| tf::prepare(graph, config("n49999"))).expect("a chain").graph.nodes.len(), 50_001);
    for i in 0..200 {
        let from = if i == 0 { "x".to_owned() } else { format!("s{}", i - 1) };
        write!(
            text,
            "node {{ name: 's{i}' op: 'Split' input: 'z' input: '{from}' attr {{ key: 'T' value {{ type: DT_FLOAT }} }}
             attr {{ key: 'num_split' value {{ i: 1000000 }} }} }}"
        )
        .expect("a string");
    }
    let graph = source::parse_graph_def(text.into(), "g.pbtxt").expect("a graph");
    let error = quickly(|| tf::prepare(graph, config("s199"))).expect_err("200 million outputs");
    assert!(error.message().contains("inputs and outputs"), "{error}");
}

/// Conditionals that depend on each other take a step each.
#[test]
fn many_conditionals_are_bounded() {
    use std::fmt::Write;
    let mut text = String::from(
        "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
         node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } } node { name: 'm0' op: 'Neg' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",
    );
    let float = "attr { key: 'T' value { type: DT_FLOAT } }";
    for i in 1..3000 {
        write!(
            text,
            "node {{ name: 's{i}' op: 'Switch' input: 'm{}' input: 'p' {float} }}
             node {{ name: 'a{i}' op: 'Neg' input: 's{i}:1' {float} }}
             node {{ name: 'm{i}' op: 'Merge' input: 's{i}' input: 'a{i}' attr {{ key: 'N' value {{ i: 2 }} }} {float} }}",
            i - 1
        )
        .expect("a string");
    }
    let graph = source::parse_graph_def(text.into(), "g.pbtxt").expect("a graph");
    let config =
        "feed { id { node_name: 'x' } } feed { id { node_name: 'p' } } fetch { id { node_name: 'm2999' } }";
    let config = source::parse_config(config.into(), "c.pbtxt").expect("a config");
    if let Ok(program) = quickly(|| tf::prepare(graph, config)) {
        assert_eq!(program.library.functions().count(), 2 * 2999);
    }
}

/// Loops beside one another and in one another take a step for each depth.
#[test]
fn many_loops_are_bounded() {
    use std::fmt::Write;
    let float = "attr { key: 'T' value { type: DT_FLOAT } }";
    let open = |text: &mut String, i: usize, from: &str, frame: &str| {
        write!(
            text,
            "node {{ name: 'e{i}' op: 'Enter' input: '{from}' {float}
                     attr {{ key: 'frame_name' value {{ s: '{frame}' }} }} }}
             node {{ name: 'm{i}' op: 'Merge' input: 'e{i}' input: 'n{i}' attr {{ key: 'N' value {{ i: 2 }} }} {float} }}
             node {{ name: 'l{i}' op: 'Less' input: 'm{i}' input: 'm{i}' {float} }}
             node {{ name: 'c{i}' op: 'LoopCond' input: 'l{i}' }}
             node {{ name: 's{i}' op: 'Switch' input: 'm{i}' input: 'c{i}' {float} }}
             node {{ name: 'x{i}' op: 'Exit' input: 's{i}' {float} }}"
        )
        .expect("a string");
    };
    let next = |text: &mut String, i: usize, of: &str| {
        write!(text, "node {{ name: 'n{i}' op: 'NextIteration' input: '{of}' {float} }}").expect("a string");
    };
    let prepared = |text: &str, fetch: &str| {
        let placeholder =
            "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }";
        let graph =
            source::parse_graph_def(format!("{placeholder} {text}").into(), "g.pbtxt").expect("a graph");
        let config = format!("feed {{ id {{ node_name: 'x' }} }} fetch {{ id {{ node_name: '{fetch}' }} }}");
        let config = source::parse_config(config.into(), "c.pbtxt").expect("a config");
        quickly(|| tf::prepare(graph, config))
    };
    let mut chain = String::new();
    for i in 0..3000 {
        let from = if i == 0 { "x".to_owned() } else { format!("x{}", i - 1) };
        open(&mut chain, i, &from, &format!("frame{i}"));
        next(&mut chain, i, &format!("s{i}:1"));
    }
    let program = prepared(&chain, "x2999").expect("loops one after another");
    assert_eq!(program.library.functions().count(), 2 * 3000);

    let nested = |depth: usize| {
        let mut text = String::new();
        for i in 0..depth {
            let from = if i == 0 { "x".to_owned() } else { format!("s{}:1", i - 1) };
            open(&mut text, i, &from, "frame");
            let of = if i + 1 == depth { format!("s{i}:1") } else { format!("x{}", i + 1) };
            next(&mut text, i, &of);
        }
        prepared(&text, "x0")
    };
    assert_eq!(nested(60).expect("loops in loops").library.functions().count(), 2 * 60);
    let error = nested(70).expect_err("too deep");
    assert!(error.message().contains("node 'e64' (op Enter) opens frame 'frame'"), "{error}");
}
