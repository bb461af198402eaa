//! Attention compiled as one kernel, compared with the evaluator on the module before the passes.

use crate::harness::{Loaded, Numbers, Tolerance, Values, difference, random, targets};
use jit::{Part, ThreadPool, Workers};
use passes::{AttentionFusion, InstructionFusion, Pass, RowFusion, SoftmaxReciprocal};
use shape::{ArrayShape, Literal, Scalar};
use std::sync::Arc;

/// Attention with `heads` products in each of `batch` images: `queries` rows over `keys` keys of
/// `depth` numbers, with values of `width` numbers.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub batch: i64,
    pub heads: i64,
    pub queries: i64,
    pub keys: i64,
    pub depth: i64,
    pub width: i64,
}

pub const fn sizes(batch: i64, heads: i64, queries: i64, keys: i64, depth: i64, width: i64) -> Sizes {
    Sizes { batch, heads, queries, keys, depth, width }
}

/// Returns true if an attention instruction should be fused.
pub type Judge = Box<dyn Fn(&hlo::Module, &hlo::Computation, hlo::InstructionId) -> bool>;

/// Operations on the scores, and layout of the arrays.
#[derive(Clone, Copy)]
pub struct Form {
    pub element_type: &'static str,
    /// True if the heads lie between rows and numbers, in operands and result.
    pub heads_within: bool,
    /// If set, scores are scaled, and a bias is added: one for each image and key, or one for each
    /// row and key.
    pub bias: Option<Bias>,
    /// True if scores and weights are reshaped in between.
    pub reshapes: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Bias {
    Keys,
    Pairs,
}

pub const PLAIN: Form = Form { element_type: "f32", heads_within: false, bias: None, reshapes: false };

/// Returns the module of an attention.
pub fn module(sizes: Sizes, form: Form) -> hlo::Module {
    let Sizes { batch, heads, queries, keys, depth, width } = sizes;
    let t = form.element_type;
    let array = |rows: i64, columns: i64| {
        if form.heads_within {
            format!("{t}[{batch},{rows},{heads},{columns}]")
        } else {
            format!("{t}[{batch},{heads},{rows},{columns}]")
        }
    };
    let (at, row) = if form.heads_within { ("{0,2}", 1) } else { ("{0,1}", 2) };
    let scores = format!("{t}[{batch},{heads},{queries},{keys}]");
    let rows = format!("{t}[{batch},{heads},{queries}]");
    let result = format!("{t}[{batch},{heads},{queries},{width}]");
    let bias = match form.bias {
        None => String::from("  b = S copy(scaled)\n"),
        Some(Bias::Keys) => format!(
            "  bias = {t}[{batch},{keys}] parameter(3)\n  wide = S broadcast(bias), dimensions={{0,3}}\n  \
             b = S add(scaled, wide)\n"
        ),
        Some(Bias::Pairs) => format!(
            "  bias = {t}[{queries},{keys}] parameter(3)\n  wide = S broadcast(bias), dimensions={{2,3}}\n  \
             b = S add(wide, scaled)\n"
        ),
    };
    let bias = bias.replace("copy(scaled)", "negate(scaled)");
    let flat = format!("{t}[{},{queries},{keys}]", batch * heads);
    let (into, out_of) = if form.reshapes {
        (
            format!("  f = {flat} reshape(d)\n  x = S reshape(f)\n"),
            format!("  g = {flat} reshape(w)\n  p = S reshape(g)\n"),
        )
    } else {
        (String::from("  x = S reshape(d)\n"), String::from("  p = S reshape(w)\n"))
    };
    let root = if form.heads_within {
        format!("  ROOT r = {} transpose(o), dimensions={{0,2,1,3}}\n", array(queries, width))
    } else {
        String::from("  ROOT r = O negate(o)\n")
    };
    let body = format!(
        "  q = {q} parameter(0)\n  k = {k} parameter(1)\n  v = {v} parameter(2)\n  \
         d = S dot(q, k), lhs_batch_dims={at}, lhs_contracting_dims={{3}}, rhs_batch_dims={at}, rhs_contracting_dims={{3}}\n\
         {into}  scale = {t}[] constant(0.3)\n  scales = S broadcast(scale), dimensions={{}}\n  \
         scaled = S multiply(x, scales)\n{bias}  low = {t}[] constant(-inf)\n  zero = {t}[] constant(0)\n  \
         m = R reduce(b, low), dimensions={{3}}, to_apply=most\n  mb = S broadcast(m), dimensions={{0,1,2}}\n  \
         c = S subtract(b, mb)\n  e = S exponential(c)\n  s = R reduce(e, zero), dimensions={{3}}, to_apply=sum\n  \
         sb = S broadcast(s), dimensions={{0,1,2}}\n  w = S divide(e, sb)\n{out_of}  \
         o = O dot(p, v), lhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, rhs_batch_dims={at}, rhs_contracting_dims={{{row}}}\n\
         {root}",
        q = array(queries, depth),
        k = array(keys, depth),
        v = array(keys, width),
    );
    let body = body.replace("= S ", &format!("= {scores} ")).replace("= R ", &format!("= {rows} "));
    let body = body.replace("= O ", &format!("= {result} "));
    let mut text = String::from("HloModule attention\n\n");
    for (name, op) in [("sum", "add"), ("most", "maximum")] {
        text += &format!(
            "{name} {{\n  x = {t}[] parameter(0)\n  y = {t}[] parameter(1)\n  ROOT r = {t}[] {op}(x, y)\n}}\n\n"
        );
    }
    text += &format!("ENTRY main {{\n{body}}}\n");
    hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the rows of a bias: plain, partly masked, fully masked, and with a NaN.
pub fn bias(shape: &ArrayShape) -> Literal {
    let keys = shape.sizes()[1];
    let scalar = |number: i64| {
        let (row, key) = (number / keys, number % keys);
        Scalar::Float(match row % 4 {
            0 => (key % 7) as f64 * 0.25,
            1 if key % 3 == 0 => -10000.0,
            2 => f64::NEG_INFINITY,
            3 if key == keys / 2 => f64::NAN,
            _ if key % 5 == 4 => f64::NEG_INFINITY,
            _ => 0.5,
        })
    };
    Literal::from_scalars(shape.clone(), (0..shape.element_count()).map(scalar).collect::<Vec<_>>())
}

/// Runs one task at a time, in reverse order, as different workers.
struct Backwards;

// SAFETY: calls run one at a time, and their worker numbers are below the count.
#[expect(unsafe_code, reason = "implements a schedule")]
unsafe impl Workers for Backwards {
    fn count(&self) -> usize {
        3
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        (0..count).rev().map(|task| part(task, task + 1, task % 3)).find(|&s| s != 0).unwrap_or(0)
    }
}

/// Returns a module after the passes that fuse attention, where a judge agrees.
pub fn fused(module: &hlo::Module, judge: Judge) -> hlo::Module {
    let mut fused = module.clone();
    let attention = AttentionFusion { judge };
    let passes: [Box<dyn Pass>; 4] = [
        Box::new(SoftmaxReciprocal),
        Box::new(RowFusion::default()),
        Box::new(InstructionFusion::default()),
        Box::new(attention),
    ];
    for pass in passes {
        pass.run(&mut fused).map(|_| ()).unwrap_or_else(|e| panic!("{e}"));
    }
    fused
}

/// Runs the passes, expects this number of kernels, and compares the results on every target.
/// Threads must compute the same bits.
fn check(sizes: Sizes, form: Form, kernels: usize) {
    let tolerance = Tolerance::Relative(if form.element_type == "f64" { 1e-12 } else { 1e-4 });
    check_module(&module(sizes, form), tolerance, kernels);
}

fn check_module(module: &hlo::Module, tolerance: Tolerance, kernels: usize) {
    let options = plan::Options::default();
    let judge: Judge = Box::new(move |module, computation, id| {
        plan::attention_pays(module, computation, id, &targets(), &options)
    });
    let fused = fused(module, judge);
    hlo::verify(&fused).unwrap_or_else(|e| panic!("{e}\n{}", fused.to_text()));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(module.to_text().len() as u64 + 7);
    let mut argument = |(number, id): (usize, &hlo::InstructionId)| {
        let shape = entry[*id].shape().expect_array();
        let shape = ArrayShape::new(shape.element_type, &shape.sizes());
        if number == 3 { bias(&shape) } else { random(&shape, Values::Tame, &mut numbers) }
    };
    let arguments: Vec<Literal> = entry.parameters().iter().enumerate().map(&mut argument).collect();
    let want = evaluator::evaluate(module, &arguments).unwrap_or_else(|e| panic!("{e}"));
    for target in targets() {
        let text = || format!("cpu '{}'\n{}", target.cpu, fused.to_text());
        let loaded = Loaded::new(&fused, &target).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        assert_eq!(loaded.kernels, kernels, "{}", text());
        let have = loaded.run(&arguments, 2, None).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        if let Some(difference) = difference(&have[0], &want, tolerance) {
            panic!("{difference}\n{}", text());
        }
        let mut schedules: Vec<Arc<dyn Workers>> = vec![Arc::new(Backwards)];
        for threads in [2usize, 5] {
            schedules.push(Arc::new(ThreadPool::new(threads).expect("a few threads")));
        }
        for workers in schedules {
            let again = loaded.run(&arguments, 2, Some(workers)).expect("the code runs");
            assert!(again[0].bytes() == have[0].bytes(), "the bits differ from the serial run\n{}", text());
        }
    }
}

#[test]
fn sizes_around_tiles_and_vectors() {
    let all = [
        sizes(1, 1, 6, 16, 16, 16),
        sizes(2, 1, 1, 33, 8, 16),
        sizes(1, 3, 2, 17, 5, 9),
        sizes(1, 2, 7, 5, 64, 3),
        sizes(2, 2, 50, 50, 12, 40),
        sizes(1, 2, 197, 197, 9, 16),
        sizes(1, 12, 1, 300, 16, 16),
        sizes(1, 8, 4, 129, 32, 80),
        sizes(3, 3, 65, 31, 11, 33),
    ];
    for sizes in all {
        check(sizes, PLAIN, 1);
    }
}

#[test]
fn heads_within_rows_and_masks() {
    for bias in [Bias::Keys, Bias::Pairs] {
        for (heads_within, reshapes) in [(false, false), (true, false), (true, true), (false, true)] {
            let form = Form { element_type: "f32", heads_within, bias: Some(bias), reshapes };
            check(sizes(2, 3, 61, 70, 8, 32), form, 1);
            check(sizes(2, 4, 1, 45, 16, 32), form, 1);
        }
    }
}

/// As TensorFlow normalizes layers: the rows lie before a dimension of size 1. Scratch holds only
/// some of them.
#[test]
fn rows_before_the_last_dimension() {
    let text = "HloModule m

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}

ENTRY main {
  q = f32[61,8] parameter(0)
  k = f32[8,300] parameter(1)
  v = f32[300,16] parameter(2)
  d = f32[61,300] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rows = f32[1,61,300,1] reshape(d)
  zero = f32[] constant(0)
  s = f32[61] reduce(rows, zero), dimensions={0,2,3}, to_apply=sum
  part = f32[] constant(0.0033333333)
  parts = f32[61] broadcast(part), dimensions={}
  mean = f32[61] multiply(s, parts)
  means = f32[1,61,300,1] broadcast(mean), dimensions={1}
  c = f32[1,61,300,1] subtract(rows, means)
  w = f32[61,300] reshape(c)
  ROOT o = f32[61,16] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
";
    let module = hlo::parse(text).expect("a module");
    check_module(&module, Tolerance::Relative(1e-4), 1);
}

#[test]
fn wide_numbers() {
    for bias in [None, Some(Bias::Pairs)] {
        let form = Form { element_type: "f64", heads_within: true, bias, reshapes: false };
        check(sizes(1, 4, 37, 41, 20, 24), form, 1);
    }
}

#[test]
fn a_single_row_is_not_one_kernel() {
    // Cutting a single row by its keys is better.
    let form = Form { element_type: "f32", ..PLAIN };
    check(sizes(1, 1, 1, 40000, 16, 16), form, 3);
}
