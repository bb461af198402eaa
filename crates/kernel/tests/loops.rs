//! Loops and branches over in-place state, compared with the evaluator. Random programs read and
//! update slices, compute products, exchange elements, and nest loops and branches.
//!
//! The test runs for a second. Use `FUZZ_SECONDS=300 cargo test -p kernel --test main loops` for
//! longer runs. `FUZZ_SEED` sets the first seed.

use crate::harness::{Loaded, Numbers, Tolerance, Values, check_with, difference, random, targets};
use shape::{ArrayShape, Literal};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Kinds of values: a scalar, a matrix, and a stack of matrices.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Scalar,
    Matrix,
    Stack,
}

use Kind::{Matrix, Scalar, Stack};

/// Generates a module.
struct Writer {
    numbers: Numbers,
    rows: u64,
    columns: u64,
    depth: u64,
    next: usize,
    /// Finished computations.
    done: String,
}

/// A computation under construction.
#[derive(Default)]
struct Body {
    lines: String,
    values: Vec<(Kind, String)>,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let mut size = |limit| 1 + numbers.below(limit);
        let (rows, columns, depth) = (size(5), size(20), size(4));
        Self { numbers, rows, columns, depth, next: 0, done: String::new() }
    }

    fn shape(&self, kind: Kind) -> String {
        match kind {
            Scalar => "s32[]".to_owned(),
            Matrix => format!("s32[{},{}]", self.rows, self.columns),
            Stack => format!("s32[{},{},{}]", self.depth, self.rows, self.columns),
        }
    }

    fn tuple_shape(&self, kinds: &[Kind]) -> String {
        let shapes: Vec<String> = kinds.iter().map(|&kind| self.shape(kind)).collect();
        format!("({})", shapes.join(", "))
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn line(&mut self, body: &mut Body, kind: Kind, right: &str) -> String {
        let (name, shape) = (self.name(), self.shape(kind));
        let _ = writeln!(body.lines, "  {name} = {shape} {right}");
        body.values.push((kind, name.clone()));
        name
    }

    fn helper(&mut self, body: &mut Body, shape: &str, right: &str) -> String {
        let name = self.name();
        let _ = writeln!(body.lines, "  {name} = {shape} {right}");
        name
    }

    fn pick(&mut self, body: &Body, kind: Kind) -> String {
        let fitting: Vec<&String> = body.values.iter().filter(|(k, _)| *k == kind).map(|(_, n)| n).collect();
        // Prefers recent values, which forms chains.
        let far = if self.numbers.below(2) == 0 { fitting.len() as u64 } else { 2.min(fitting.len() as u64) };
        fitting[fitting.len() - 1 - self.numbers.below(far) as usize].clone()
    }

    fn step(&mut self, body: &mut Body, nesting: usize) {
        let row = format!("s32[1,{},{}]", self.rows, self.columns);
        match self.numbers.below(if nesting < 2 { 13 } else { 11 }) {
            0 => {
                let (x, y) = (self.pick(body, Scalar), self.pick(body, Scalar));
                self.line(body, Scalar, &format!("subtract({x}, {y})"));
            }
            1 | 2 => {
                let (x, y) = (self.pick(body, Matrix), self.pick(body, Matrix));
                self.line(body, Matrix, &format!("add({x}, {y})"));
            }
            3 => {
                let x = self.pick(body, Matrix);
                self.line(body, Matrix, &format!("reverse({x}), dimensions={{1}}"));
            }
            4 => {
                let (x, y) = (self.pick(body, Stack), self.pick(body, Stack));
                self.line(body, Stack, &format!("multiply({x}, {y})"));
            }
            5 => {
                let (x, y) = (self.pick(body, Matrix), self.pick(body, Matrix));
                let square = format!("s32[{0},{0}]", self.columns);
                let product = self.helper(
                    body,
                    &square,
                    &format!("dot({x}, {y}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"),
                );
                let z = self.pick(body, Matrix);
                let contracting = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
                let moved = self.line(body, Matrix, &format!("dot({z}, {product}), {contracting}"));
                self.line(body, Matrix, &format!("negate({moved})"));
            }
            6 | 7 => {
                let (stack, at) = (self.pick(body, Stack), self.pick(body, Scalar));
                let zero = self.helper(body, "s32[]", "constant(0)");
                let sizes = format!("dynamic_slice_sizes={{1,{},{}}}", self.rows, self.columns);
                let read = self.helper(
                    body,
                    &row,
                    &format!("dynamic-slice({stack}, {at}, {zero}, {zero}), {sizes}"),
                );
                self.line(body, Matrix, &format!("reshape({read})"));
            }
            8..=10 => {
                let (stack, at, x) =
                    (self.pick(body, Stack), self.pick(body, Scalar), self.pick(body, Matrix));
                let zero = self.helper(body, "s32[]", "constant(0)");
                let element = self.helper(body, &row, &format!("reshape({x})"));
                let right = format!("dynamic-update-slice({stack}, {element}, {at}, {zero}, {zero})");
                self.line(body, Stack, &right);
            }
            11 => self.loop_of(body, nesting + 1),
            _ => self.branches(body, nesting + 1),
        }
    }

    fn kinds(&mut self) -> Vec<Kind> {
        let mut kinds = vec![Scalar, Scalar, Matrix, Stack];
        for _ in 0..self.numbers.below(4) {
            kinds.push([Matrix, Stack, Scalar][self.numbers.below(3) as usize]);
        }
        kinds
    }

    /// Adds the elements of the parameter's tuple.
    fn parameter(&mut self, kinds: &[Kind]) -> Body {
        let (mut body, shape) = (Body::default(), self.tuple_shape(kinds));
        let state = self.helper(&mut body, &shape, "parameter(0)");
        for (k, &kind) in kinds.iter().enumerate() {
            self.line(&mut body, kind, &format!("get-tuple-element({state}), index={k}"));
        }
        body
    }

    fn steps(&mut self, body: &mut Body, nesting: usize) {
        for _ in 0..2 + self.numbers.below(8) {
            self.step(body, nesting);
        }
    }

    fn close(&mut self, body: &mut Body, kinds: &[Kind], results: &[String]) -> String {
        let (name, root, shape) = (self.name(), self.name(), self.tuple_shape(kinds));
        let lines = format!("{}  ROOT {root} = {shape} tuple({})\n", body.lines, results.join(", "));
        let _ = write!(self.done, "{name} {{\n{lines}}}\n\n");
        name
    }

    /// Adds a loop with a few iterations. The first element counts them, some elements are passed
    /// through, and the others are arbitrary.
    fn loop_of(&mut self, outer: &mut Body, nesting: usize) {
        let kinds = self.kinds();
        let rounds = self.numbers.below(6) as i64 - 1;
        let mut condition = self.parameter(&kinds);
        let counter = condition.values[0].1.clone();
        let limit = self.helper(&mut condition, "s32[]", &format!("constant({rounds})"));
        let (condition_name, root) = (self.name(), self.name());
        let lines = condition.lines;
        let _ = write!(
            self.done,
            "{condition_name} {{\n{lines}  ROOT {root} = pred[] compare({counter}, {limit}), direction=LT\n}}\n\n"
        );
        let mut body = self.parameter(&kinds);
        let state: Vec<String> = body.values.iter().map(|(_, name)| name.clone()).collect();
        self.steps(&mut body, nesting);
        let one = self.helper(&mut body, "s32[]", "constant(1)");
        let next = self.line(&mut body, Scalar, &format!("add({}, {one})", state[0]));
        let mut results = vec![next];
        for (k, &kind) in kinds.iter().enumerate().skip(1) {
            let is_kept = self.numbers.below(4) == 0;
            results.push(if is_kept { state[k].clone() } else { self.pick(&body, kind) });
        }
        let body_name = self.close(&mut body, &kinds, &results);
        let zero = self.helper(outer, "s32[]", "constant(0)");
        let mut starts = vec![zero];
        starts.extend(kinds.iter().skip(1).map(|&kind| self.pick(outer, kind)).collect::<Vec<_>>());
        let shape = self.tuple_shape(&kinds);
        let start = self.helper(outer, &shape, &format!("tuple({})", starts.join(", ")));
        let right = format!("while({start}), condition={condition_name}, body={body_name}");
        self.results(outer, &kinds, &shape, &right);
    }

    fn branches(&mut self, outer: &mut Body, nesting: usize) {
        let kinds = self.kinds();
        let mut names = Vec::new();
        for _ in 0..2 {
            let mut branch = self.parameter(&kinds);
            if self.numbers.below(3) > 0 {
                self.steps(&mut branch, nesting);
            }
            let results: Vec<String> = kinds.iter().map(|&kind| self.pick(&branch, kind)).collect();
            names.push(self.close(&mut branch, &kinds, &results));
        }
        let arguments: Vec<String> = kinds.iter().map(|&kind| self.pick(outer, kind)).collect();
        let (x, y) = (self.pick(outer, Scalar), self.pick(outer, Scalar));
        let choice = self.helper(outer, "pred[]", &format!("compare({x}, {y}), direction=LT"));
        let shape = self.tuple_shape(&kinds);
        let both = self.helper(outer, &shape, &format!("tuple({})", arguments.join(", ")));
        let right = format!(
            "conditional({choice}, {both}, {both}), true_computation={}, false_computation={}",
            names[0], names[1]
        );
        self.results(outer, &kinds, &shape, &right);
    }

    fn results(&mut self, outer: &mut Body, kinds: &[Kind], shape: &str, right: &str) {
        let all = self.helper(outer, shape, right);
        for (k, &kind) in kinds.iter().enumerate() {
            self.line(outer, kind, &format!("get-tuple-element({all}), index={k}"));
        }
    }

    /// Returns the whole module: feeds and variables, some of which are written.
    fn module(mut self) -> String {
        let kinds = [Scalar, Scalar, Matrix, Matrix, Stack, Stack];
        let mut entry = Body::default();
        for (k, &kind) in kinds.iter().enumerate() {
            self.line(&mut entry, kind, &format!("parameter({k})"));
        }
        self.steps(&mut entry, 0);
        self.loop_of(&mut entry, 0);
        self.steps(&mut entry, 0);
        let results: Vec<String> = kinds.iter().map(|&kind| self.pick(&entry, kind)).collect();
        let shape = self.tuple_shape(&kinds);
        format!(
            "HloModule random, input_output_alias={{ {{1}}: (1, {{}}, must-alias), {{3}}: (3, {{}}, must-alias), \
             {{5}}: (5, {{}}, must-alias) }}\n\n{}ENTRY main {{\n{}  ROOT out = {shape} tuple({})\n}}\n",
            self.done,
            entry.lines,
            results.join(", ")
        )
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

#[test]
fn random_loops_compute_what_the_evaluator_does() {
    let mut seed = number("FUZZ_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("FUZZ_SECONDS", 1));
    while Instant::now() < end {
        let text = Writer::new(seed).module();
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        hlo::verify(&module).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let mut fused = module.clone();
        for name in ["dce", "fusion", "dce"] {
            let pass = passes::by_name(name).expect("a pass");
            let _ = pass.run(&mut fused).unwrap_or_else(|e| panic!("seed {seed}: {name}: {e}\n{text}"));
        }
        let mut numbers = Numbers::new(seed);
        let entry = module.entry_computation();
        let arguments: Vec<Literal> = (entry.parameters().iter())
            .map(|&id| entry[id].shape().expect_array())
            .map(|shape| ArrayShape::new(shape.element_type, &shape.sizes()))
            .map(|shape| random(&shape, Values::Below(5), &mut numbers))
            .collect();
        let Literal::Tuple(want) = evaluator::evaluate(&module, &arguments).expect("it evaluates") else {
            panic!("a tuple")
        };
        let target = targets().pop().expect("a target");
        for module in [&module, &fused] {
            let loaded =
                Loaded::new(module, &target).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{module}"));
            let have = loaded.run(&arguments, 1, None).expect("it runs");
            for (k, (have, want)) in have.iter().zip(&want).enumerate() {
                if let Some(difference) = difference(have, want, Tolerance::Exact) {
                    panic!("seed {seed}, result {k}: {difference}\n{module}");
                }
            }
        }
        seed += 1;
    }
}

/// A recurrent cell. Its state is an operand of the product that replaces it.
fn cell(rounds: i64, width: i64) -> String {
    format!(
        "HloModule cell
        more {{
          p = (s32[], f32[3,{width}], f32[{width},{width}], f32[4,3,{width}]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant({rounds})
          ROOT c = pred[] compare(i, n), direction=LT
        }}
        step {{
          p = (s32[], f32[3,{width}], f32[{width},{width}], f32[4,3,{width}]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          h = f32[3,{width}] get-tuple-element(p), index=1
          w = f32[{width},{width}] get-tuple-element(p), index=2
          all = f32[4,3,{width}] get-tuple-element(p), index=3
          d = f32[3,{width}] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
          t = f32[3,{width}] tanh(d)
          r = f32[1,3,{width}] reshape(t)
          z = s32[] constant(0)
          u = f32[4,3,{width}] dynamic-update-slice(all, r, i, z, z)
          one = s32[] constant(1)
          j = s32[] add(i, one)
          ROOT q = (s32[], f32[3,{width}], f32[{width},{width}], f32[4,3,{width}]) tuple(j, t, w, u)
        }}
        ENTRY main {{
          h = f32[3,{width}] parameter(0)
          w = f32[{width},{width}] parameter(1)
          zero = f32[] constant(0)
          all = f32[4,3,{width}] broadcast(zero), dimensions={{}}
          i = s32[] constant(0)
          s = (s32[], f32[3,{width}], f32[{width},{width}], f32[4,3,{width}]) tuple(i, h, w, all)
          e = (s32[], f32[3,{width}], f32[{width},{width}], f32[4,3,{width}]) while(s), condition=more, body=step
          last = f32[3,{width}] get-tuple-element(e), index=1
          outputs = f32[4,3,{width}] get-tuple-element(e), index=3
          ROOT out = (f32[3,{width}], f32[4,3,{width}]) tuple(last, outputs)
        }}"
    )
}

#[test]
fn a_state_that_its_own_product_replaces_alternates() {
    for width in [1, 7, 33, 64] {
        for rounds in [0, 1, 2, 3, 6] {
            let text = cell(rounds, width);
            let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let mut numbers = Numbers::new(width as u64);
            let arguments: Vec<Literal> = [[3, width], [width, width]]
                .iter()
                .map(|sizes| {
                    let shape = ArrayShape::new(shape::PrimitiveType::F32, sizes);
                    random(&shape, Values::Tame, &mut numbers)
                })
                .collect();
            check_with(&module, &arguments, Tolerance::Relative(1e-4));
        }
    }
}
