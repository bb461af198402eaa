//! Loops that compute products for one strip of iterations at a time, compared with the evaluator
//! on the program as it is written. All numbers are small integers, whose sums are exact in any
//! order.

use compiler::{Executable, HloProgram, NoObserver, PassRun, compile_module, host, in_process_options};
use shape::Literal;
use support::Result;

/// Number of rows of the sequence.
const ROWS: i64 = 3000;

/// A loop over rows `at` of a sequence, while `condition` holds. It adds up products and writes
/// each sum.
fn text(parameters: &str, condition: &str, at: &str) -> String {
    let state = format!("(s32[], f32[2,256], f32[{ROWS},2,3], f32[{ROWS},2,256], f32[3,256], s32[], s32[])");
    let elements = "i = s32[] get-tuple-element(s), index=0\n n = s32[] get-tuple-element(s), index=5\n \
        m = s32[] get-tuple-element(s), index=6\n";
    format!(
        "HloModule m{parameters}\n\
         condition {{ s = {state} parameter(0)\n {elements} {condition}\n}}\n\
         body {{ s = {state} parameter(0)\n {elements} \
           h = f32[2,256] get-tuple-element(s), index=1\n \
           x = f32[{ROWS},2,3] get-tuple-element(s), index=2\n \
           all = f32[{ROWS},2,256] get-tuple-element(s), index=3\n \
           w = f32[3,256] get-tuple-element(s), index=4\n \
           one = s32[] constant(1)\n j = s32[] add(i, one)\n zero = s32[] constant(0)\n {at}\n \
           row = f32[1,2,3] dynamic-slice(x, at, zero, zero), dynamic_slice_sizes={{1,2,3}}\n \
           xt = f32[2,3] reshape(row)\n \
           g = f32[2,256] dot(xt, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n \
           h1 = f32[2,256] add(g, h)\n part = f32[1,2,256] reshape(h1)\n \
           all1 = f32[{ROWS},2,256] dynamic-update-slice(all, part, at, zero, zero)\n \
           ROOT r = {state} tuple(j, h1, x, all1, w, n, m)\n}}\n\
         ENTRY main {{ x = f32[{ROWS},2,3] parameter(0)\n w = f32[3,256] parameter(1)\n \
           h = f32[2,256] parameter(2)\n n = s32[] parameter(3)\n m = s32[] constant({ROWS})\n \
           zero = s32[] constant(0)\n none = f32[] constant(0)\n \
           all = f32[{ROWS},2,256] broadcast(none), dimensions={{}}\n \
           start = {state} tuple(zero, h, x, all, w, n, m)\n \
           loop = {state} while(start), condition=condition, body=body\n \
           last = f32[2,256] get-tuple-element(loop), index=1\n \
           all1 = f32[{ROWS},2,256] get-tuple-element(loop), index=3\n \
           i = s32[] get-tuple-element(loop), index=0\n \
           ROOT r = (f32[2,256], f32[{ROWS},2,256], s32[]) tuple(last, all1, i)\n}}\n"
    )
}

fn check(text: &str, counts: &[i32]) -> Result<()> {
    let arguments: Vec<Literal> = counts.iter().map(|&count| Literal::scalar(count)).collect();
    check_with(text, &arguments)
}

/// Compares the results for each number of iterations.
fn check_with(text: &str, counts: &[Literal]) -> Result<()> {
    let parse = |text| {
        HloProgram::parse_hlo(text, &mut PassRun { disabled: &[], observer: &mut NoObserver })
            .map(|program| program.program.module)
    };
    let module = parse(text)?;
    let executable =
        Executable::load(&compile_module(parse(text)?, &in_process_options(host("")?), &mut NoObserver)?)?;
    let numbers = |count: i64, period: i64| -> Vec<f32> {
        (0..count).map(|k| ((k * 7919 + 11) % period - period / 2) as f32).collect()
    };
    for count in counts {
        let arguments = [
            Literal::from_elements(&[ROWS, 2, 3], &numbers(ROWS * 6, 5)),
            Literal::from_elements(&[3, 256], &numbers(3 * 256, 7)),
            Literal::from_elements(&[2, 256], &numbers(512, 11)),
            count.clone(),
        ];
        let mut session = executable.session(&arguments)?;
        session.run()?;
        let got = session.results()?;
        let Literal::Tuple(want) = evaluator::evaluate_computation(&module, module.entry(), &arguments)?
        else {
            unreachable!("the root is a tuple")
        };
        assert_eq!(got, want, "{count:?} iterations of\n{text}");
    }
    Ok(())
}

const COUNTS: [i32; 7] = [1, 15, 16, 17, 33, 2999, 3000];

#[test]
fn a_sequence_ends_at_a_size() -> Result<()> {
    let condition = "ROOT p = pred[] compare(i, n), direction=LT";
    let sizes = ", size_parameters={ (3, 1, 3000) }";
    check(&text(sizes, condition, "at = s32[] add(i, zero)"), &COUNTS)
}

#[test]
fn a_sequence_that_runs_backwards_ends_at_a_size() -> Result<()> {
    let condition = "ROOT p = pred[] compare(n, i), direction=GT";
    let at = "last = s32[] constant(2999)\n at = s32[] subtract(last, i)";
    check(&text(", size_parameters={ (3, 1, 3000) }", condition, at), &COUNTS)
}

/// The results for all rows would take 6 MB.
#[test]
fn long_sequences_of_fixed_sizes() -> Result<()> {
    for (most, direction) in [(3000, "LT"), (2989, "LE"), (2990, "LT")] {
        let condition = format!(
            "most = s32[] constant({most})\n a = pred[] compare(i, most), direction={direction}\n \
             b = pred[] compare(m, i), direction=GT\n ROOT p = pred[] and(a, b)"
        );
        check(&text("", &condition, "at = s32[] add(i, zero)"), &[1])?;
        let at = "last = s32[] constant(2999)\n at = s32[] subtract(last, i)";
        check(&text("", &condition, at), &[1])?;
    }
    Ok(())
}

/// Nothing says that a strip is left: the limit may be less than the length of one, as a number
/// without a sign, or any number.
#[test]
fn limits_may_be_less_than_a_strip() -> Result<()> {
    let (condition, at) = ("ROOT p = pred[] compare(i, n), direction=LT", "at = s32[] add(i, zero)");
    let bounded = "given = s32[] parameter(3)\n n = s32[] minimum(given, m)\n";
    let signed = text("", condition, at).replace(
        "n = s32[] parameter(3)\n m = s32[] constant(3000)",
        &format!("m = s32[] constant(3000)\n {bounded}"),
    );
    check(&signed, &[i32::MIN, -1, 0, 1, 15, 16, 40, 3000, i32::MAX])?;
    let natural: Vec<Literal> = [0u32, 1, 15, 16, 40, 3000, u32::MAX].map(Literal::scalar).to_vec();
    check_with(&signed.replace("s32", "u32"), &natural)
}
