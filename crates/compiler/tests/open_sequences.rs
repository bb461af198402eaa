//! Sorts, running totals, and scatters of sequences whose lengths are chosen in each run, compared
//! with the evaluator on the program for these lengths. Numbers beyond a length are NaN, so that a
//! result that depends on them differs. Nothing but the last step is written beyond it.

use compiler::{Executable, HloProgram, NoObserver, PassRun, compile_module, host, in_process_options};
use hlo::Module;
use shape::{Literal, Scalar};
use support::Result;

/// The largest number of sequences, and of their elements.
const MOST: [i64; 2] = [4, 300];

/// Elements of a result that may be written beyond the length, at most: the rest of a step.
const STEP: i64 = 64;

/// An operation on `x`, an array of sequences, and on `places`, a vector with a place for each
/// element of a sequence.
#[derive(Clone, Copy)]
struct Case<'a> {
    /// Instructions that define `y`, where `B` and `T` stand for the sizes of `x`, and `K` for
    /// the one of the largest elements.
    body: &'a str,
    /// Type of the elements of `y`.
    ty: &'a str,
    /// Sizes of `y`. `None` is the number of sequences or their length.
    result: [Option<i64>; 2],
}

/// The module for these sizes, or for all of them, which are then parameters.
fn text(case: Case<'_>, sizes: Option<[i64; 2]>) -> String {
    let [b, t] = sizes.unwrap_or(MOST);
    let [open_b, open_t] = [b, t].map(|size| format!("{}{size}", if sizes.is_some() { "" } else { "<=" }));
    let mut body = format!("x0 = f32[{b},{t}] parameter(0)\n p0 = s32[{t}] parameter(1)\n");
    let mut parameters = "";
    let (mut x, mut p) = ("x0", "p0");
    if sizes.is_none() {
        parameters = ", size_parameters={ (2, 1, 4), (3, 1, 300) }";
        body += &format!(
            "b = s32[] parameter(2)\n t = s32[] parameter(3)\n \
             x1 = f32[{open_b},{t}] set-dimension-size(x0, b), dimensions={{0}}\n \
             x2 = f32[{open_b},{open_t}] set-dimension-size(x1, t), dimensions={{1}}\n \
             p1 = s32[{open_t}] set-dimension-size(p0, t), dimensions={{0}}\n"
        );
        (x, p) = ("x2", "p1");
    }
    body += &format!(" x = f32[{open_b},{open_t}] copy({x})\n places = s32[{open_t}] copy({p})\n");
    let one = if sizes.is_none() { "<=1" } else { "1" };
    // Names of kinds of transforms end with T, too.
    let of_length = |before: char| (format!("{before}T"), format!("{before}{open_t}"));
    let ((first, first_size), (later, later_size)) = (of_length('['), of_length(','));
    let sized = case.body.replace(&first, &first_size).replace(&later, &later_size);
    body += &sized.replace('B', &open_b).replace('K', one);
    let rows = case.result[0].map_or(open_b, |size| size.to_string());
    let columns = match case.result[1] {
        Some(1) => one.to_owned(),
        size => size.map_or(open_t, |size| size.to_string()),
    };
    format!(
        "HloModule m{parameters}\n\
         less {{ a = f32[] parameter(0)\n c = f32[] parameter(1)\n ROOT r = pred[] compare(a, c), direction=LT\n}}\n\
         less2 {{ a = f32[] parameter(0)\n c = f32[] parameter(1)\n d = f32[] parameter(2)\n e = f32[] parameter(3)\n \
           ROOT r = pred[] compare(a, c), direction=LT\n}}\n\
         sum {{ a = f32[] parameter(0)\n c = f32[] parameter(1)\n ROOT r = f32[] add(a, c)\n}}\n\
         ENTRY main {{\n{body}\n ROOT z = {}[{rows},{columns}] add(y, y)\n}}\n",
        case.ty
    )
}

fn module(text: &str) -> Result<Module> {
    let program = HloProgram::parse_hlo(text, &mut PassRun { disabled: &[], observer: &mut NoObserver })?;
    Ok(program.program.module)
}

fn number(scalar: Scalar) -> f64 {
    scalar.as_f64().or_else(|| scalar.as_i64().map(|value| value as f64)).unwrap_or(f64::NAN)
}

/// The elements of a matrix in its first rows and columns.
fn corner(whole: &Literal, [rows, columns]: [i64; 2]) -> Vec<f64> {
    let width = whole.array_shape().sizes()[1];
    let is_inside = |k: i64| k / width < rows && k % width < columns;
    let scalars = whole.scalars().enumerate().filter(|&(k, _)| is_inside(k as i64));
    scalars.map(|(_, scalar)| number(scalar)).collect()
}

fn check(case: Case<'_>) -> Result<()> {
    let open = module(&text(case, None))?;
    let executable =
        Executable::load(&compile_module(open, &in_process_options(host("")?), &mut NoObserver)?)?;
    for [b, t] in [[1, 1], [1, 5], [3, 17], [2, 64], [4, 130], [1, 300], [4, 300]] {
        let value = |k: i64| ((k * 7919 + 11) % 2003) as f32 / 1001.0 - 1.0;
        let place = |k: i64| ((k * 31) % 13 - 1) as i32;
        let x: Vec<f32> = (0..b * t).map(value).collect();
        let places: Vec<i32> = (0..t).map(place).collect();
        let mut junk = vec![f32::NAN; (MOST[0] * MOST[1]) as usize];
        for (k, &value) in x.iter().enumerate() {
            junk[(k as i64 / t * MOST[1] + k as i64 % t) as usize] = value;
        }
        let mut whole_places = places.clone();
        whole_places.resize(MOST[1] as usize, 3);
        let arguments = [
            Literal::from_elements(&MOST, &junk),
            Literal::from_elements(&MOST[1..], &whole_places),
            Literal::scalar(b as i32),
            Literal::scalar(t as i32),
        ];
        let mut session = executable.session(&arguments)?;
        let before = session.whole_results()?.remove(0);
        session.run()?;
        let after = session.whole_results()?.remove(0);

        let fixed = module(&text(case, Some([b, t])))?;
        let arguments = [Literal::from_elements(&[b, t], &x), Literal::from_elements(&[t], &places)];
        let want = match evaluator::evaluate_computation(&fixed, fixed.entry(), &arguments)? {
            Literal::Tuple(results) => results[0].clone(),
            array => array,
        };
        let results = [case.result[0].unwrap_or(b), case.result[1].unwrap_or(t)];
        let got = corner(&after, results);
        assert_eq!(got.len(), want.scalars().count(), "{}", case.body);
        for (k, (got, want)) in got.iter().zip(want.scalars()).enumerate() {
            let want = number(want);
            let is_close = (got - want).abs() <= 1e-5 * want.abs().max(1.0);
            assert!(is_close, "{}: {b} x {t}: element {k} is {got}, not {want}", case.body);
        }
        let reach = corner(&after, [results[0], results[1] + STEP]).len();
        let changed = before.scalars().zip(after.scalars()).filter(|(old, new)| old != new).count();
        assert!(changed <= reach, "{}: {b} x {t}: wrote {changed} elements, not {reach}", case.body);
    }
    Ok(())
}

#[test]
fn sorts_end_at_the_length() -> Result<()> {
    let rows = "y = f32[B,T] sort(x), dimensions={1}, to_apply=less";
    let columns = "y = f32[B,T] sort(x), dimensions={0}, is_stable=true, to_apply=less";
    let pairs = "n = f32[B,T] negate(x)\n \
        s = (f32[B,T], f32[B,T]) sort(x, n), dimensions={1}, is_stable=true, to_apply=less2\n \
        y = f32[B,T] get-tuple-element(s), index=1";
    for body in [rows, columns, pairs] {
        check(Case { body, ty: "f32", result: [None, None] })?;
    }
    Ok(())
}

#[test]
fn the_largest_elements_are_among_those_of_the_run() -> Result<()> {
    let values =
        "s = (f32[B,K], s32[B,K]) topk(x), k=1, largest=true\n y = f32[B,K] get-tuple-element(s), index=0";
    let numbers =
        "s = (f32[B,K], s32[B,K]) topk(x), k=1, largest=false\n y = s32[B,K] get-tuple-element(s), index=1";
    check(Case { body: values, ty: "f32", result: [None, Some(1)] })?;
    check(Case { body: numbers, ty: "s32", result: [None, Some(1)] })?;
    Ok(())
}

#[test]
fn running_totals_end_at_the_length() -> Result<()> {
    let windows = [
        "window={size=1x300 pad=0_0x299_0}",
        "window={size=1x300 pad=0_0x0_299}",
        "window={size=4x1 pad=3_0x0_0}",
        "window={size=4x1 pad=0_3x0_0}",
    ];
    for window in windows {
        let body =
            format!("zero = f32[] constant(0)\n y = f32[B,T] reduce-window(x, zero), {window}, to_apply=sum");
        check(Case { body: &body, ty: "f32", result: [None, None] })?;
    }
    Ok(())
}

#[test]
fn transforms_end_at_the_length() -> Result<()> {
    let body = "wide = f32[B,T,12] broadcast(x), dimensions={0,1}\n i = f32[12] iota(), iota_dimension=0\n \
        all = f32[B,T,12] broadcast(i), dimensions={2}\n waves = f32[B,T,12] multiply(wide, all)\n \
        f = c64[B,T,7] fft(waves), fft_type=RFFT, fft_length={12}\n part = f32[B,T,7] imag(f)\n \
        zero = f32[] constant(0)\n y = f32[B,T] reduce(part, zero), dimensions={2}, to_apply=sum";
    check(Case { body, ty: "f32", result: [None, None] })?;
    Ok(())
}

/// Rows of a result depend on all rows of the array along a transformed dimension.
#[test]
fn transforms_of_several_dimensions_read_all_rows() -> Result<()> {
    let text = |parameters: &str, rows: &str, last: &str| {
        format!(
            "HloModule m{parameters}\nENTRY main {{\n x = f32[24,8] parameter(0)\n n = s32[] parameter(1)\n \
             f = c64[24,5] fft(x), fft_type=RFFT, fft_length={{24,8}}\n r = f32[24,5] real(f)\n {last}\n \
             ROOT z = f32[{rows},5] add(y, y)\n}}\n"
        )
    };
    let last = "y = f32[<=24,5] set-dimension-size(r, n), dimensions={0}";
    let open = module(&text(", size_parameters={ (1, 1, 24) }", "<=24", last))?;
    let whole = module(&text("", "24", "y = f32[24,5] copy(r)"))?;
    let executable =
        Executable::load(&compile_module(open, &in_process_options(host("")?), &mut NoObserver)?)?;
    let x: Vec<f32> = (0..24 * 8).map(|k| ((k * 7919 + 11) % 2003) as f32 / 1001.0 - 1.0).collect();
    for n in [1, 5, 24] {
        let arguments = [Literal::from_elements(&[24, 8], &x), Literal::scalar(n as i32)];
        let mut session = executable.session(&arguments)?;
        session.run()?;
        let got = corner(&session.whole_results()?.remove(0), [n, 5]);
        let want = match evaluator::evaluate_computation(&whole, whole.entry(), &arguments)? {
            Literal::Tuple(results) => results[0].clone(),
            array => array,
        };
        for (k, (got, want)) in got.iter().zip(corner(&want, [n, 5])).enumerate() {
            assert!((got - want).abs() <= 1e-4, "{n} rows: element {k} is {got}, not {want}");
        }
    }
    Ok(())
}

#[test]
fn scatters_end_at_the_length() -> Result<()> {
    let body = "zero = f32[] constant(0)\n buffer = f32[12,4] broadcast(zero), dimensions={}\n \
        column = f32[B,T] add(x, x)\n one = f32[T] reduce(column, zero), dimensions={0}, to_apply=sum\n \
        rows = f32[T,4] broadcast(one), dimensions={0}\n \
        y = f32[12,4] scatter(buffer, places, rows), update_window_dims={1}, inserted_window_dims={0}, \
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum";
    check(Case { body, ty: "f32", result: [Some(12), Some(4)] })
}
