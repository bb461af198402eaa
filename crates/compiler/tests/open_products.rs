//! Products of matrices whose rows, columns, and summands end at sizes that are chosen in each run,
//! compared with the evaluator on the program for these sizes.

mod harness;

use compiler::{Executable, NoObserver, compile_module, host, in_process_options};
use harness::{module, number, numbers};
use shape::Literal;
use std::collections::BTreeSet;
use support::Result;

/// Names of sizes: of images, their lines and columns, and those of images of another size.
const NAMES: [&str; 5] = ["b", "h", "w", "n", "v"];

/// The largest sizes.
const MOST: [i64; 5] = [3, 72, 40, 144, 80];

/// Upper bound of the columns that are computed beside the needed ones of a block, at each of its
/// ends: less than a tile.
const COLUMNS_BESIDE: usize = 47;

/// Upper bound of the rows that are computed after the needed ones, less than a tile.
const ROWS_AFTER: usize = 7;

/// A product. Dimensions are names of sizes or numbers.
#[derive(Clone, Copy)]
struct Product {
    left: &'static [&'static str],
    right: &'static [&'static str],
    /// The dimension of each operand that is summed.
    summed: [usize; 2],
    /// True if the sum of two products is computed, so that one overwrites the other.
    is_sum: bool,
}

/// The size of a dimension.
fn size_of(dimension: &str, sizes: [i64; 5]) -> i64 {
    let named = NAMES.iter().position(|&name| name == dimension);
    named.map_or_else(|| dimension.parse().unwrap_or(0), |k| sizes[k])
}

/// True if a dimension depends on the run.
fn is_open(dimension: &str) -> bool {
    dimension.parse::<i64>().is_err()
}

/// The sizes of an array.
fn sizes_of(dimensions: &[&str], sizes: [i64; 5]) -> Vec<i64> {
    dimensions.iter().map(|dimension| size_of(dimension, sizes)).collect()
}

/// A type of which some dimensions are open.
fn type_of(dimensions: &[&str], sizes: [i64; 5], open: &dyn Fn(usize) -> bool) -> String {
    let size = |(d, dimension): (usize, &&str)| {
        format!("{}{}", if open(d) { "<=" } else { "" }, size_of(dimension, sizes))
    };
    let sizes: Vec<String> = dimensions.iter().enumerate().map(size).collect();
    format!("f32[{}]", sizes.join(","))
}

impl Product {
    /// The dimensions of the result.
    fn result(self) -> Vec<&'static str> {
        let free = |dimensions: &'static [&'static str], summed: usize| {
            dimensions.iter().enumerate().filter(move |&(d, _)| d != summed).map(|(_, &dimension)| dimension)
        };
        free(self.left, self.summed[0]).chain(free(self.right, self.summed[1])).collect()
    }

    /// The operands: two or four arrays.
    fn operands(self) -> Vec<&'static [&'static str]> {
        [self.left, self.right].repeat(if self.is_sum { 2 } else { 1 })
    }

    /// The module for these sizes, or for all of them, which are then parameters.
    fn text(self, sizes: Option<[i64; 5]>) -> String {
        let (own, operands) = (sizes.unwrap_or(MOST), self.operands());
        let mut body = String::new();
        if sizes.is_none() {
            for (d, name) in NAMES.iter().enumerate() {
                body += &format!("{name} = s32[] parameter({})\n", operands.len() + d);
            }
        }
        let mut arrays = Vec::new();
        for (number, dimensions) in operands.iter().enumerate() {
            let mut last = format!("p{number}");
            body += &format!("{last} = {} parameter({number})\n", type_of(dimensions, own, &|_| false));
            for (d, dimension) in dimensions.iter().enumerate() {
                if sizes.is_none() && is_open(dimension) {
                    let ty = type_of(dimensions, own, &|k| k <= d && is_open(dimensions[k]));
                    body += &format!(
                        "p{number}_{d} = {ty} set-dimension-size({last}, {dimension}), dimensions={{{d}}}\n"
                    );
                    last = format!("p{number}_{d}");
                }
            }
            arrays.push(last);
        }
        let dimensions = self.result();
        let result = type_of(&dimensions, own, &|d| sizes.is_none() && is_open(dimensions[d]));
        let [left, right] = self.summed;
        let dot = |name: &str, operands: &[String]| {
            format!(
                "{name} = {result} dot({}), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}\n",
                operands.join(", ")
            )
        };
        let other = if self.is_sum {
            dot("other", &arrays[2..])
        } else {
            let plain = type_of(&dimensions, own, &|_| false);
            format!("one = f32[] constant(1)\n other = {plain} broadcast(one), dimensions={{}}\n")
        };
        let first = operands.len();
        let parameters = if sizes.is_none() {
            let range = |d: usize| format!("({}, 1, {})", first + d, MOST[d]);
            let ranges: Vec<String> = (0..MOST.len()).map(range).collect();
            format!(", size_parameters={{ {} }}", ranges.join(", "))
        } else {
            String::new()
        };
        format!(
            "HloModule m{parameters}\n\
             ENTRY main {{\n{body} {} {other} ROOT z = {result} add(y, other)\n}}\n",
            dot("y", &arrays[..2])
        )
    }
}

/// The position of an element along each dimension.
fn position(mut element: i64, sizes: &[i64]) -> Vec<i64> {
    let mut at = vec![0; sizes.len()];
    for d in (0..sizes.len()).rev() {
        at[d] = element % sizes[d];
        element /= sizes[d];
    }
    at
}

/// True for each element of an array that is in the corner of these sizes.
fn corner(whole: &[i64], sizes: &[i64]) -> Vec<bool> {
    let is_inside = |k: i64| position(k, whole).iter().zip(sizes).all(|(at, size)| at < size);
    (0..whole.iter().product()).map(is_inside).collect()
}

/// An array of the largest sizes with these numbers in its corner, and no numbers elsewhere.
fn with_corner(inner: &Literal, whole: &[i64]) -> Literal {
    let mut values = inner.scalars();
    let inside = corner(whole, &inner.array_shape().sizes());
    let element = |is_inside: bool| if is_inside { values.next().map(number) } else { None };
    let elements: Vec<f32> = inside.into_iter().map(element).map(|x| x.unwrap_or(f32::NAN)).collect();
    Literal::from_elements(whole, &elements)
}

fn check(product: Product) -> Result<()> {
    let compiled =
        compile_module(module(&product.text(None))?, &in_process_options(host("")?), &mut NoObserver)?;
    let executable = Executable::load(&compiled)?;
    let dimensions = product.result();
    // The first dimension of the columns.
    let columns = dimensions.len() - (product.right.len() - 1);
    for sizes in [
        [1, 3, 3, 6, 6],
        [2, 72, 9, 144, 18],
        [1, 8, 40, 17, 80],
        [3, 41, 17, 82, 33],
        [1, 72, 1, 143, 1],
        MOST,
    ] {
        let operands = product.operands();
        let own = operands.iter().enumerate().map(|(k, d)| numbers(&sizes_of(d, sizes), k as i64));
        let own: Vec<Literal> = own.collect();
        let with_sizes = |mut arguments: Vec<Literal>, sizes: [i64; 5]| {
            arguments.extend(sizes.map(|size| Literal::scalar(size as i32)));
            arguments
        };
        let sevens = |dimensions: &&[&str]| {
            let sizes = sizes_of(dimensions, MOST);
            Literal::from_elements(&sizes, &vec![7.0f32; sizes.iter().product::<i64>() as usize])
        };
        // A run of the largest size leaves numbers in all memory.
        let first = with_sizes(operands.iter().map(sevens).collect(), MOST);
        let mut session = executable.session(&first)?;
        session.run()?;
        let inputs = own.iter().zip(&operands).map(|(own, d)| with_corner(own, &sizes_of(d, MOST)));
        for (number, argument) in with_sizes(inputs.collect(), sizes).iter().enumerate() {
            session.set_argument(number, argument)?;
        }
        let before = session.whole_results()?.remove(0);
        session.run()?;
        let after = session.whole_results()?.remove(0);
        let fixed = module(&product.text(Some(sizes)))?;
        let want = match evaluator::evaluate_computation(&fixed, fixed.entry(), &own)? {
            Literal::Tuple(results) => results[0].clone(),
            array => array,
        };
        let (whole, inner) = (sizes_of(&dimensions, MOST), sizes_of(&dimensions, sizes));
        assert_eq!(after.array_shape().sizes(), whole);
        let inside = corner(&whole, &inner);
        let name = format!("{:?} {:?}: {sizes:?}", product.left, product.right);
        let got = after.scalars().zip(&inside).filter(|&(_, &is_inside)| is_inside);
        let mut count = 0;
        for ((got, _), want) in got.zip(want.scalars()) {
            let (got, want) = (number(got), number(want));
            assert!((got - want).abs() <= 1e-4 * want.abs().max(1.0), "{name}: {got}, not {want}");
            count += 1;
        }
        assert_eq!(count, inner.iter().product::<i64>(), "{name}");
        let width = whole[columns..].iter().product::<i64>() as usize;
        let changed = before.scalars().zip(after.scalars()).enumerate();
        let changed: Vec<usize> = changed.filter(|(_, (old, new))| old != new).map(|(k, _)| k).collect();
        let written = |place: &dyn Fn(usize) -> usize| -> usize {
            changed.iter().map(|&k| place(k)).collect::<BTreeSet<_>>().len()
        };
        let rows = inner[..columns].iter().product::<i64>() as usize;
        let limited = (columns..whole.len()).rev().find(|&d| is_open(dimensions[d])).unwrap_or(columns);
        let blocks = inner[columns..limited].iter().product::<i64>() as usize;
        let within = inner[limited..].iter().product::<i64>() as usize;
        let written_rows = written(&|k| k / width);
        assert!(written_rows <= rows + ROWS_AFTER, "{name}: wrote {written_rows} rows, not {rows}");
        let written_columns = written(&|k| k % width);
        let most = blocks * (within + 2 * COLUMNS_BESIDE);
        assert!(written_columns <= most, "{name}: wrote {written_columns} columns, not {most}");
    }
    Ok(())
}

/// Resizing an image along its lines: the columns are images, columns, and channels.
#[test]
fn columns_of_several_open_dimensions_end_at_the_size_of_the_run() -> Result<()> {
    // A block is a number of tiles, of vectors, or of neither.
    for channels in ["8", "6", "3"] {
        for is_sum in [false, true] {
            let right: &[&str] = match channels {
                "8" => &["b", "h", "w", "8"],
                "6" => &["b", "h", "w", "6"],
                _ => &["b", "h", "w", "3"],
            };
            check(Product { left: &["h", "n"], right, summed: [0, 1], is_sum })?;
        }
    }
    // A few rows read the columns in place.
    check(Product { left: &["h", "b"], right: &["h", "w", "b", "8"], summed: [0, 0], is_sum: true })
}

/// Resizing an image along its columns: the rows are lines, images, and channels.
#[test]
fn rows_of_several_open_dimensions_end_at_the_size_of_the_run() -> Result<()> {
    let (lines, odd): (&[&str], &[&str]) = (&["n", "b", "w", "8"], &["n", "b", "w", "5"]);
    for is_sum in [false, true] {
        check(Product { left: lines, right: &["w", "v"], summed: [2, 0], is_sum })?;
        check(Product { left: odd, right: &["w", "v"], summed: [2, 0], is_sum })?;
        check(Product { left: &["b", "h", "w", "8"], right: &["8", "70"], summed: [3, 0], is_sum })?;
    }
    // The right operand is transposed.
    check(Product { left: &["b", "h", "w"], right: &["v", "w"], summed: [2, 1], is_sum: true })?;
    check(Product { left: &["b", "w", "h"], right: &["v", "h"], summed: [2, 1], is_sum: false })
}
