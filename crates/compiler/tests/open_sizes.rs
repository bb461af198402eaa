//! Programs whose loops end at sizes that are chosen in each run, compared with the evaluator on
//! the program for these sizes. Memory beyond what is needed is not written.

mod harness;

use compiler::{
    Executable, File, Input, NoObserver, compile_module, compile_program, host, in_process_options,
};
use harness::{module, number, numbers};
use hlo::Op;
use shape::{Literal, PrimitiveType, Scalar};
use support::Result;

/// The largest number of images, and of lines and columns.
const MOST: [i64; 3] = [2, 40, 40];

/// A window of an operation on images.
#[derive(Clone, Copy)]
struct Windowed {
    /// The operation on `x` and `k` with the window.
    operation: &'static str,
    /// An operation on its result `y` and `w` that keeps the sizes, and the sizes of `w`.
    then: Option<(&'static str, [i64; 4])>,
    /// The sizes of `k`.
    kernel: [i64; 4],
    /// Number of features of `x`.
    inputs: i64,
    /// Number of features of the result.
    outputs: i64,
    /// The number of results for a number of lines or columns.
    results: fn(i64) -> i64,
    /// Number of lines that are computed together.
    lines: i64,
}

impl Windowed {
    /// The module for these sizes, or for all of them, which are then parameters.
    fn text(self, sizes: Option<[i64; 3]>) -> String {
        let Self { operation, then, kernel, inputs, outputs, results, .. } = self;
        let array = |sizes: [i64; 3], features: i64, is_open: [bool; 3]| {
            let size = |d: usize| format!("{}{}", if is_open[d] { "<=" } else { "" }, sizes[d]);
            format!("f32[{},{},{},{features}]", size(0), size(1), size(2))
        };
        let own = sizes.unwrap_or(MOST);
        let after = [own[0], results(own[1]), results(own[2])];
        let open = [sizes.is_none(); 3];
        let [a, b, c, d] = kernel;
        let mut body = format!(
            "x0 = {} parameter(0)\n k = f32[{a},{b},{c},{d}] parameter(1)\n low = f32[] constant(-inf)\n",
            array(own, inputs, [false; 3])
        );
        let mut last = "x0".to_owned();
        for d in (0..3).filter(|_| sizes.is_none()) {
            let is_open = [true, d > 0, d > 1];
            body += &format!("n{d} = s32[] parameter({})\n", d + 2);
            body += &format!(
                "x{} = {} set-dimension-size({last}, n{d}), dimensions={{{d}}}\n",
                d + 1,
                array(own, inputs, is_open)
            );
            last = format!("x{}", d + 1);
        }
        let result = array(after, outputs, open);
        let then = match then {
            None => String::new(),
            Some((then, sizes)) => format!(
                "w = f32[{}] constant({})\n y2 = {result} {then}\n",
                sizes.map(|size| size.to_string()).join(","),
                text_of(&sizes, &mut numbers(&sizes, 11).scalars()),
            ),
        };
        let last_result = if then.is_empty() { "y" } else { "y2" };
        let parameters =
            if sizes.is_none() { ", size_parameters={ (2, 1, 2), (3, 3, 40), (4, 3, 40) }" } else { "" };
        format!(
            "HloModule m{parameters}\n\
             max {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b)\n}}\n\
             ENTRY main {{\n{body} y = {result} {}\n {then} one = f32[] constant(1)\n ones = {} broadcast(one), dimensions={{}}\n \
             ROOT z = {result} add({last_result}, ones)\n}}\n",
            operation.replace("x,", &format!("{last},")),
            array(after, outputs, [false; 3]),
        )
    }
}

/// The text of a constant with these elements.
fn text_of(sizes: &[i64], elements: &mut impl Iterator<Item = Scalar>) -> String {
    let Some((&size, inner)) = sizes.split_first() else {
        return elements.next().map_or(String::new(), |element| number(element).to_string());
    };
    let parts: Vec<String> = (0..size).map(|_| text_of(inner, elements)).collect();
    format!("{{{}}}", parts.join(","))
}

/// The elements of an array that are in the corner of these sizes.
fn corner(whole: &Literal, sizes: &[i64]) -> Vec<f32> {
    let own = whole.array_shape().sizes();
    let inside = |k: i64| {
        let (mut rest, mut is_inside) = (k, true);
        for d in (0..own.len()).rev() {
            is_inside &= rest % own[d] < sizes[d];
            rest /= own[d];
        }
        is_inside
    };
    let scalars = whole.scalars().enumerate().filter(|&(k, _)| inside(k as i64));
    scalars.map(|(_, scalar)| number(scalar)).collect()
}

fn check(windowed: Windowed) -> Result<()> {
    let compiled =
        compile_module(module(&windowed.text(None))?, &in_process_options(host("")?), &mut NoObserver)?;
    let executable = Executable::load(&compiled)?;
    let kernel = numbers(&windowed.kernel, 5);
    for sizes in [[1, 3, 3], [2, 17, 9], [1, 8, 40], [2, 40, 23], [2, 40, 40]] {
        let x = numbers(&[sizes[0], sizes[1], sizes[2], windowed.inputs], 1);
        let mut junk = vec![f32::NAN; (MOST.iter().product::<i64>() * windowed.inputs) as usize];
        let mut values = x.scalars();
        for (k, place) in junk.iter_mut().enumerate() {
            let pixel = k as i64 / windowed.inputs;
            let at = [pixel / MOST[2] / MOST[1], pixel / MOST[2] % MOST[1], pixel % MOST[2]];
            if (0..3).all(|d| at[d] < sizes[d]) {
                *place = values.next().map_or(0.0, number);
            }
        }
        let own = [MOST[0], MOST[1], MOST[2], windowed.inputs];
        let of_sizes = |x: &[f32], sizes: [i64; 3]| {
            let mut arguments = vec![Literal::from_elements(&own, x), kernel.clone()];
            arguments.extend(sizes.map(|size| Literal::scalar(size as i32)));
            arguments
        };
        // A run of the largest size leaves numbers in all memory.
        let mut session = executable.session(&of_sizes(&vec![7.0; junk.len()], MOST))?;
        session.run()?;
        for (number, argument) in of_sizes(&junk, sizes).iter().enumerate() {
            session.set_argument(number, argument)?;
        }
        let before = session.whole_results()?.remove(0);
        session.run()?;
        let after = session.whole_results()?.remove(0);

        let fixed = module(&windowed.text(Some(sizes)))?;
        let want = evaluator::evaluate_computation(&fixed, fixed.entry(), &[x.clone(), kernel.clone()]);
        let want = match want? {
            Literal::Tuple(results) => results[0].clone(),
            array => array,
        };
        let results =
            [sizes[0], (windowed.results)(sizes[1]), (windowed.results)(sizes[2]), windowed.outputs];
        let got = corner(&after, &results);
        assert_eq!(got.len(), want.scalars().count());
        for (got, want) in got.iter().zip(want.scalars()) {
            let want = number(want);
            assert!(
                (got - want).abs() <= 1e-4 * want.abs().max(1.0),
                "{}: {sizes:?}: {got}, not {want}",
                windowed.operation
            );
        }
        // Images are exact, and so are lines, except of tiles along the left and right borders.
        // A tile has at most 16 pixels.
        let lines = (results[1] + windowed.lines - 1) / windowed.lines * windowed.lines;
        let reach = [results[0], lines, results[2] + 15, results[3]];
        let borders = (results[0] * 15 * 2 * results[3]) as usize;
        let total = after.array_shape().element_count() as usize;
        let mut changed = 0;
        for (old, new) in before.scalars().zip(after.scalars()) {
            changed += usize::from(old != new);
        }
        assert_eq!(before.array_shape().element_type, PrimitiveType::F32);
        let inside = corner(&after, &reach).len() + borders;
        assert!(
            changed <= inside,
            "{}: {sizes:?}: wrote {changed} of {total}, not {inside}",
            windowed.operation
        );
    }
    Ok(())
}

#[test]
fn convolutions_and_pools_end_at_the_size_of_the_run() -> Result<()> {
    let same = |operation, kernel: [i64; 4], inputs, outputs| Windowed {
        operation,
        then: None,
        kernel,
        inputs,
        outputs,
        results: |n| n,
        lines: 1,
    };
    let halved = |operation, kernel: [i64; 4], inputs, outputs| Windowed {
        operation,
        then: None,
        kernel,
        inputs,
        outputs,
        results: |n| (n + 1) / 2,
        lines: 1,
    };
    let all = [
        same(
            "convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
            [3, 3, 3, 5],
            3,
            5,
        ),
        // By patches of 2x2 pixels.
        Windowed {
            lines: 2,
            ..same(
                "convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
                [3, 3, 32, 64],
                32,
                64,
            )
        },
        same("convolution(x, k), window={size=1x1}, dim_labels=b01f_01io->b01f", [1, 1, 4, 8], 4, 8),
        // Chains: what is between the convolutions exceeds the cache. In the first one, a mask
        // hides what the second convolution reads beyond the size.
        Windowed {
            then: Some((
                "convolution(y, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=96",
                [3, 3, 1, 96],
            )),
            ..same("convolution(x, k), window={size=1x1}, dim_labels=b01f_01io->b01f", [1, 1, 8, 96], 8, 96)
        },
        Windowed {
            then: Some(("convolution(y, w), window={size=1x1}, dim_labels=b01f_01io->b01f", [1, 1, 96, 96])),
            ..same(
                "convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=96",
                [3, 3, 1, 96],
                96,
                96,
            )
        },
        // The first convolution computes no sums of pixels that a mask hides, in lines and in
        // patches.
        Windowed {
            then: Some((
                "convolution(y, w), window={size=5x5 pad=2_2x2_2}, dim_labels=b01f_01io->b01f",
                [5, 5, 16, 16],
            )),
            ..same("convolution(x, k), window={size=1x1}, dim_labels=b01f_01io->b01f", [1, 1, 8, 16], 8, 16)
        },
        Windowed {
            then: Some((
                "convolution(y, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
                [3, 3, 64, 64],
            )),
            lines: 2,
            ..same(
                "convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
                [3, 3, 32, 64],
                32,
                64,
            )
        },
        same(
            "convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=8",
            [3, 3, 1, 8],
            8,
            8,
        ),
        halved(
            "convolution(x, k), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
            [3, 3, 4, 16],
            4,
            16,
        ),
        halved(
            "reduce-window(x, low), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0}, to_apply=max",
            [1, 1, 1, 1],
            8,
            8,
        ),
    ];
    all.into_iter().try_for_each(check)
}

/// A dense layer on the words of texts, as Keras states it: the words of all texts are rows of a
/// matrix, with a bias and an activation.
const DENSE: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "z" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "rows" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value {
  tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: -1 int_val: 4 } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4 } dim { size: 3 } } float_val: 1 float_val: 2
    float_val: -1 float_val: 0.5 float_val: 0.25 float_val: 3 float_val: -2 float_val: 1 float_val: 4
    float_val: 1.5 float_val: -0.5 float_val: 2 } } } }
node { name: "b" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 1 float_val: -2 float_val: 3 } } } }
node { name: "flat" op: "Reshape" input: "x" input: "rows" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "product" op: "MatMul" input: "flat" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sum" op: "BiasAdd" input: "product" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "active" op: "Relu" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "shape" op: "Shape" input: "z" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Reshape" input: "active" input: "shape" attr { key: "T" value { type: DT_FLOAT } } }
"#;

const DENSE_CONFIG: &str = r#"
feed { id { node_name: "x" } shape { dim { size: -1 name: "b" } dim { size: -1 name: "t" } dim { size: 4 } } }
feed { id { node_name: "z" } shape { dim { size: -1 name: "b" } dim { size: -1 name: "t" } dim { size: 3 } } }
fetch { id { node_name: "y" } }
dimension { name: "b" min: 1 max: 5 }
dimension { name: "t" min: 1 max: 7 }
"#;

#[test]
fn a_dense_layer_moves_no_words() -> Result<()> {
    let file = |name, content: &str| File { name, content: content.to_owned().into() };
    let input = Input::parse(file("graph.pbtxt", DENSE), file("config.pbtxt", DENSE_CONFIG))?;
    let program = input.source.import(&mut NoObserver)?;
    let options = in_process_options(host("")?);
    let mut optimized = program.module.clone();
    compiler::optimize(&mut optimized, &options, &mut NoObserver)?;
    let is_gather = |op: &Op| matches!(op, Op::Gather { .. });
    assert!(optimized.computations().all(|(_, c)| c.instructions().all(|(_, i)| !is_gather(i.op()))));
    let executable = Executable::load(&compile_program(program, &options, &mut NoObserver)?)?;
    let (w, b) = ([1.0, 2.0, -1.0, 0.5, 0.25, 3.0, -2.0, 1.0, 4.0, 1.5, -0.5, 2.0], [1.0, -2.0, 3.0]);
    for (texts, words) in [(1, 1), (2, 7), (5, 3), (5, 7)] {
        let value = |n: i64, t: i64, k: i64| ((n * 31 + t * 7 + k * 3) % 9) as f32 - 4.0;
        let mut x = vec![f32::NAN; 5 * 7 * 4];
        let mut want = Vec::new();
        for (n, t) in (0..texts).flat_map(|n| (0..words).map(move |t| (n, t))) {
            for k in 0..4 {
                x[((n * 7 + t) * 4 + k) as usize] = value(n, t, k);
            }
            for j in 0..3usize {
                let product: f32 = (0..4).map(|k| value(n, t, k) * w[k as usize * 3 + j]).sum();
                want.push((product + b[j]).max(0.0));
            }
        }
        let arguments = [
            Literal::from_elements(&[5, 7, 4], &x),
            Literal::from_elements(&[5, 7, 3], &[f32::NAN; 5 * 7 * 3]),
            Literal::scalar(texts as i32),
            Literal::scalar(words as i32),
        ];
        let mut session = executable.session(&arguments)?;
        session.run()?;
        assert_eq!(session.results()?, [Literal::from_elements(&[texts, words, 3], &want)]);
    }
    Ok(())
}
