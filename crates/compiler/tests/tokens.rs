//! A dimension whose positions depend on each other, as the tokens of attention do: programs for
//! any size, compared with programs for that size.

use compiler::{Executable, File, Input, NoObserver, compile_program, host, in_process_options};
use hlo::Program;
use shape::Literal;
use std::fmt::Write as _;

const TOKENS: i64 = 150;
const WIDTH: i64 = 16;

/// Nodes of a graph as text.
#[derive(Default)]
struct Graph(String);

impl Graph {
    fn node(&mut self, name: &str, op: &str, inputs: &[&str], attributes: &str) {
        let inputs: String = inputs.iter().map(|input| format!("input: \"{input}\" ")).collect();
        writeln!(self.0, "node {{ name: \"{name}\" op: \"{op}\" {inputs} {attributes} }}").expect("a string");
    }

    fn numbers(&mut self, name: &str, sizes: &[i64], values: &[f32]) {
        let dims: String = sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
        let values: String = values.iter().map(|value| format!("float_val: {value} ")).collect();
        let tensor = format!("tensor {{ dtype: DT_FLOAT tensor_shape {{ {dims} }} {values} }}");
        self.node(
            name,
            "Const",
            &[],
            &format!("{} attr {{ key: \"value\" value {{ {tensor} }} }}", kind("dtype", "FLOAT")),
        );
    }

    fn integers(&mut self, name: &str, values: &[i64]) {
        let numbers: String = values.iter().map(|value| format!("int_val: {value} ")).collect();
        let dims = format!("dim {{ size: {} }}", values.len());
        let tensor = format!("tensor {{ dtype: DT_INT32 tensor_shape {{ {dims} }} {numbers} }}");
        self.node(
            name,
            "Const",
            &[],
            &format!("{} attr {{ key: \"value\" value {{ {tensor} }} }}", kind("dtype", "INT32")),
        );
    }
}

fn kind(name: &str, element_type: &str) -> String {
    format!("attr {{ key: \"{name}\" value {{ type: DT_{element_type} }} }}")
}

/// Attention of two heads over `x`, `[1, tokens, WIDTH]`, then a layer and sums over all tokens.
fn graph() -> String {
    let mut g = Graph::default();
    let float = kind("T", "FLOAT");
    let weights = |seed: i64, count: i64| -> Vec<f32> {
        (0..count).map(|k| ((k * 31 + seed * 17) % 13 - 6) as f32 / 16.0).collect()
    };
    g.node("x", "Placeholder", &[], &kind("dtype", "FLOAT"));
    for (seed, name) in ["q", "k", "v"].into_iter().enumerate() {
        g.numbers(&format!("w{name}"), &[WIDTH, 2, WIDTH / 2], &weights(seed as i64, WIDTH * WIDTH));
        let einsum = format!(
            "{float} attr {{ key: \"N\" value {{ i: 2 }} }} attr {{ key: \"equation\" value {{ s: \"btd,dhe->bhte\" }} }}"
        );
        g.node(name, "Einsum", &["x", &format!("w{name}")], &einsum);
    }
    g.node(
        "scores",
        "BatchMatMulV2",
        &["q", "k"],
        &format!("{float} attr {{ key: \"adj_y\" value {{ b: true }} }}"),
    );
    g.node("softmax", "Softmax", &["scores"], &float);
    g.node("heads", "BatchMatMulV2", &["softmax", "v"], &float);
    g.integers("order", &[0, 2, 1, 3]);
    g.node("side", "Transpose", &["heads", "order"], &format!("{float} {}", kind("Tperm", "INT32")));
    g.integers("joined", &[1, -1, WIDTH]);
    g.node("y", "Reshape", &["side", "joined"], &format!("{float} {}", kind("Tshape", "INT32")));
    g.numbers("wide", &[WIDTH, 40], &weights(7, WIDTH * 40));
    g.integers("flat", &[-1, WIDTH]);
    g.node("rows", "Reshape", &["y", "flat"], &format!("{float} {}", kind("Tshape", "INT32")));
    g.node("layer", "MatMul", &["rows", "wide"], &float);
    g.node("out", "Tanh", &["layer"], &float);
    g.integers("first", &[0]);
    for (name, op) in [("mean", "Mean"), ("most", "Max")] {
        g.node(name, op, &["out", "first"], &format!("{float} {}", kind("Tidx", "INT32")));
    }
    g.0
}

fn program(size: &str, dimension: &str) -> Program {
    let fetches: String = ["y", "out", "mean", "most"]
        .map(|name| format!("fetch {{ id {{ node_name: \"{name}\" }} }} "))
        .concat();
    let config = format!(
        "feed {{ id {{ node_name: \"x\" }} shape {{ dim {{ size: 1 }} dim {{ {size} }} dim {{ size: {WIDTH} }} }} }}\n\
         {fetches}\n{dimension}"
    );
    let file = |name, content: &str| File { name, content: content.to_owned().into() };
    let input = Input::parse(file("graph.pbtxt", &graph()), file("config.pbtxt", &config)).expect("a graph");
    let program = input.source.import(&mut NoObserver).expect("imports");
    assert!(program.sized.is_empty(), "tokens depend on each other");
    program
}

fn executable(program: Program) -> Executable {
    let options = in_process_options(host("").expect("this machine"));
    let compiled = compile_program(program, &options, &mut NoObserver).expect("compiles");
    Executable::load(&compiled).expect("loads")
}

/// Returns `x` with NaN beyond the tokens, and their number.
fn arguments(tokens: i64) -> [Literal; 2] {
    let element =
        |k: i64| if k / WIDTH < tokens { ((k * 37 + tokens) % 23 - 11) as f32 / 8.0 } else { f32::NAN };
    let x: Vec<f32> = (0..TOKENS * WIDTH).map(element).collect();
    [Literal::from_elements(&[1, TOKENS, WIDTH], &x), Literal::scalar(tokens as i32)]
}

/// Returns the results of a program for this number of tokens.
fn by_fixed_program(tokens: i64) -> Vec<Literal> {
    let [whole, _] = arguments(tokens);
    let few = whole.corner(&[1, tokens, WIDTH]).expect("a part");
    executable(program(&format!("size: {tokens}"), "")).run(&[few]).expect("it runs")
}

#[test]
fn any_number_of_tokens_computes_what_a_program_for_it_computes() {
    let range = format!("dimension {{ name: \"tokens\" min: 1 max: {TOKENS} }}");
    let any = executable(program("size: -1 name: \"tokens\"", &range));
    let mut sessions = [1, 2].map(|threads| {
        let mut session = any.session(&arguments(TOKENS)).expect("a session");
        session.set_threads(threads).expect("threads");
        session
    });
    // The largest one comes first, so that memory has other numbers beyond each size.
    // Tiles of all sizes compute the last rows.
    for tokens in [150i64, 149, 97, 64, 33, 24, 16, 15, 13, 11, 9, 7, 6, 5, 2, 1, 3, 150] {
        let [whole, size] = arguments(tokens);
        let expected = by_fixed_program(tokens);
        let [found, other] = sessions.each_mut().map(|session| {
            session.set_argument(0, &whole).expect("an array");
            session.set_argument(1, &size).expect("a size");
            session.run().expect("it runs");
            session.results().expect("results")
        });
        assert_eq!(found, other, "two threads");
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found.array_shape().sizes(), expected.array_shape().sizes(), "result {number}");
            let (a, b) = (found.to_vec::<f32>().expect("floats"), expected.to_vec::<f32>().expect("floats"));
            let far = a.iter().zip(&b).find(|(a, b)| (*a - *b).abs() > 1e-5 || a.is_nan());
            assert_eq!(far, None, "result {number} of {tokens} tokens");
        }
    }
}

#[test]
fn sizes_with_code_of_their_own_have_the_bits_of_programs_for_them() {
    let range = format!("dimension {{ name: \"tokens\" min: 1 max: {TOKENS} size: 1 size: 6 }}");
    let program = program("size: -1 name: \"tokens\"", &range);
    let sizes: Vec<_> = program.exact.iter().map(|exact| exact.sizes.clone()).collect();
    assert_eq!(sizes, [[(1, 1)], [(1, 6)]]);
    let any = executable(program);
    let mut session = any.session(&arguments(TOKENS)).expect("a session");
    session.run().expect("it runs");
    for tokens in [6, 1, 6] {
        let [whole, size] = arguments(tokens);
        session.set_argument(0, &whole).expect("an array");
        session.set_argument(1, &size).expect("a size");
        let before = session.whole_results().expect("results");
        session.run().expect("it runs");
        let found = session.results().expect("results");
        assert_eq!(found, by_fixed_program(tokens), "{tokens} tokens");
        // Nothing beyond the size is written.
        let after = session.whole_results().expect("results");
        let y = [&before[0], &after[0]].map(|y| y.to_vec::<f32>().expect("floats"));
        let written = (tokens * WIDTH) as usize;
        assert!(y[0][written..] == y[1][written..] && y[0][..written] != y[1][..written]);
    }
    // Other sizes are out of range or have the code for all sizes.
    session.set_argument(1, &Literal::scalar(TOKENS as i32 + 1)).expect("a size");
    let error = session.run().expect_err("too many tokens");
    assert!(error.message().contains("tokens is out of range: 1..150"), "{error}");
}

/// Attention over `x`, `[batch, tokens, WIDTH]`, with sums over the tokens of each row.
fn rows_of_tokens() -> String {
    let mut g = Graph::default();
    let float = kind("T", "FLOAT");
    let weights: Vec<f32> = (0..WIDTH * WIDTH).map(|k| ((k * 31) % 13 - 6) as f32 / 16.0).collect();
    g.node("x", "Placeholder", &[], &kind("dtype", "FLOAT"));
    g.numbers("w", &[WIDTH, WIDTH], &weights);
    let einsum = format!(
        "{float} attr {{ key: \"N\" value {{ i: 2 }} }} attr {{ key: \"equation\" value {{ s: \"btd,de->bte\" }} }}"
    );
    g.node("q", "Einsum", &["x", "w"], &einsum);
    let transposed = format!("{float} attr {{ key: \"adj_y\" value {{ b: true }} }}");
    g.node("scores", "BatchMatMulV2", &["q", "x"], &transposed);
    g.node("softmax", "Softmax", &["scores"], &float);
    g.node("y", "BatchMatMulV2", &["softmax", "x"], &float);
    g.integers("one", &[1]);
    g.node("mean", "Mean", &["y", "one"], &format!("{float} {}", kind("Tidx", "INT32")));
    g.0
}

fn program_of_rows(batch: &str, tokens: &str, dimensions: &str) -> Program {
    let config = format!(
        "feed {{ id {{ node_name: \"x\" }} shape {{ dim {{ {batch} }} dim {{ {tokens} }} dim {{ size: {WIDTH} }} }} }}\n\
         fetch {{ id {{ node_name: \"y\" }} }} fetch {{ id {{ node_name: \"mean\" }} }}\n{dimensions}"
    );
    let file = |name, content: String| File { name, content: content.into() };
    let input = Input::parse(file("graph.pbtxt", rows_of_tokens()), file("config.pbtxt", config));
    input.and_then(|input| input.source.import(&mut NoObserver)).expect("a graph")
}

#[test]
fn rows_of_any_number_of_tokens_compute_what_a_program_for_them_computes() {
    const ROWS: i64 = 5;
    let dimensions = format!(
        "dimension {{ name: \"batch\" min: 1 max: {ROWS} size: 2 }}\n\
         dimension {{ name: \"tokens\" min: 1 max: {TOKENS} size: 3 }}"
    );
    let program = program_of_rows("size: -1 name: \"batch\"", "size: -1 name: \"tokens\"", &dimensions);
    let exact: Vec<_> = program.exact.iter().map(|exact| exact.sizes.clone()).collect();
    assert_eq!(exact, [vec![(1, 2), (2, 3)], vec![(1, 2)], vec![(2, 3)]]);
    let any = executable(program);
    let arguments = |rows: i64, tokens: i64| {
        let element = |k: i64| {
            let (row, token) = (k / (TOKENS * WIDTH), k / WIDTH % TOKENS);
            if row < rows && token < tokens { ((k * 37 + rows) % 23 - 11) as f32 / 8.0 } else { f32::NAN }
        };
        let x: Vec<f32> = (0..ROWS * TOKENS * WIDTH).map(element).collect();
        let x = Literal::from_elements(&[ROWS, TOKENS, WIDTH], &x);
        [x, Literal::scalar(rows as i32), Literal::scalar(tokens as i32)]
    };
    let mut session = any.session(&arguments(ROWS, TOKENS)).expect("a session");
    for (rows, tokens) in [(5, 150), (1, 1), (4, 9), (2, 3), (3, 3), (2, 64), (5, 31), (1, 150)] {
        let all = arguments(rows, tokens);
        for (number, argument) in all.iter().enumerate() {
            session.set_argument(number, argument).expect("an argument");
        }
        let mut found = Vec::new();
        for threads in [1, 2] {
            session.set_threads(threads).expect("threads");
            session.run().expect("it runs");
            found.push(session.results().expect("results"));
        }
        assert_eq!(found[0], found[1], "two threads");
        let fixed = program_of_rows(&format!("size: {rows}"), &format!("size: {tokens}"), "");
        let few = all[0].corner(&[rows, tokens, WIDTH]).expect("a part");
        let expected = executable(fixed).run(&[few]).expect("it runs");
        for (found, expected) in found[0].iter().zip(&expected) {
            assert_eq!(found.array_shape().sizes(), expected.array_shape().sizes());
            let (a, b) = (found.to_vec::<f32>().expect("floats"), expected.to_vec::<f32>().expect("floats"));
            let far = a.iter().zip(&b).find(|(a, b)| (*a - *b).abs() > 1e-5 || a.is_nan());
            assert_eq!(far, None, "{rows} rows of {tokens} tokens");
        }
    }
    for (number, size, name) in [(1, ROWS + 1, "batch"), (2, 0, "tokens")] {
        for (number, argument) in arguments(1, 1).iter().enumerate() {
            session.set_argument(number, argument).expect("an argument");
        }
        session.set_argument(number, &Literal::scalar(size as i32)).expect("a size");
        let error = session.run().expect_err("out of range");
        assert!(error.message().contains(&format!("{name} is out of range")), "{error}");
    }
}
