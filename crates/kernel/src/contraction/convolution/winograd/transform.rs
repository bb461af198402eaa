//! The transforms of Winograd's patches, in registers: products of small constant matrices and
//! vectors of channels.

use crate::contraction::tile::multiply_add;
use nest::{FunctionBuilder, Type, ValueId};
use plan::Transform;
use support::Result;

/// Rows of a matrix that share partial sums.
type Group = Vec<usize>;

/// A value times a factor.
#[derive(Clone, Copy)]
struct Term {
    factor: f64,
    value: ValueId,
}

/// Groups the rows of a matrix: pairs that differ only in the signs of their odd or even columns,
/// and single rows.
fn groups(matrix: &[&[f64]]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (row, numbers) in matrix.iter().enumerate() {
        let pair =
            groups.last_mut().filter(|group| matches!(group[..], [only] if mirrored(matrix[only], numbers)));
        match pair {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// True if both rows have terms in odd and in even columns, and differ only in the signs of either
/// the odd or the even ones.
fn mirrored(a: &[f64], b: &[f64]) -> bool {
    let same = |parity: usize, sign: f64| {
        (parity..a.len()).step_by(2).all(|k| a[k] == sign * b[k])
            && (parity..a.len()).step_by(2).any(|k| a[k] != 0.0)
    };
    same(0, 1.0) && same(1, -1.0) || same(0, -1.0) && same(1, 1.0)
}

/// Multiplies some rows of a matrix by a vector. Elements whose factor is 0 in all of the rows may
/// be missing.
fn multiply(
    b: &mut FunctionBuilder,
    matrix: &[&[f64]],
    group: &[usize],
    vector: &[Option<ValueId>],
) -> Vec<ValueId> {
    let part = |row: &[f64], parity: usize| -> Vec<Term> {
        let terms = (parity..row.len()).step_by(2).filter(|&k| row[k] != 0.0);
        terms.filter_map(|k| Some(Term { factor: row[k], value: vector[k]? })).collect()
    };
    match *group {
        [first, second] => {
            let (even, odd) = (part(matrix[first], 0), part(matrix[first], 1));
            // The part with the same sign in both rows, and the part with opposite signs.
            let (same, other) =
                if mirrored_in_odd(matrix[first], matrix[second]) { (even, odd) } else { (odd, even) };
            let (same_sum, other_sum) = (normal(b, &same), normal(b, &other));
            vec![combine(b, same_sum, other_sum, 1.0), combine(b, same_sum, other_sum, -1.0)]
        }
        _ => {
            let all = |row: &usize| [part(matrix[*row], 0), part(matrix[*row], 1)].concat();
            group.iter().map(|row| sum(b, &all(row))).collect()
        }
    }
}

fn mirrored_in_odd(a: &[f64], b: &[f64]) -> bool {
    (0..a.len()).step_by(2).all(|k| a[k] == b[k])
}

/// Factors a sum of terms such that one of its terms has the factor 1.
fn normal(b: &mut FunctionBuilder, terms: &[Term]) -> Term {
    let plain = terms.iter().rev().find(|t| t.factor.abs() == 1.0).or(terms.last());
    let factor = plain.map_or(1.0, |t| t.factor);
    let scaled: Vec<Term> = terms.iter().map(|t| Term { factor: t.factor / factor, ..*t }).collect();
    Term { factor, value: sum(b, &scaled) }
}

/// `a + sign * c` for two factored sums.
fn combine(b: &mut FunctionBuilder, a: Term, c: Term, sign: f64) -> ValueId {
    sum(b, &[a, Term { factor: sign * c.factor, ..c }])
}

/// Returns a sum of at least one multiple.
fn sum(b: &mut FunctionBuilder, terms: &[Term]) -> ValueId {
    let start = terms.iter().position(|t| t.factor == 1.0).unwrap_or(0);
    let Term { factor, mut value } = terms[start];
    let ty = b.ty(value);
    if factor != 1.0 {
        let factor = constant(b, ty, factor);
        value = b.mul(factor, value);
    }
    for (k, &Term { factor, value: term }) in terms.iter().enumerate() {
        value = match factor {
            _ if k == start => value,
            1.0 => b.add(value, term),
            -1.0 => b.sub(value, term),
            _ => {
                let factor = constant(b, ty, factor);
                multiply_add(b, factor, term, value)
            }
        };
    }
    value
}

/// A factor of a matrix as a constant. Those of integers are integers.
fn constant(b: &mut FunctionBuilder, ty: Type, factor: f64) -> ValueId {
    if ty.scalar.is_float() { b.float(ty, factor) } else { b.integer(ty, factor as i64) }
}

/// Loads the element of a patch at a row and a column.
pub(super) type Read<'r> = &'r mut dyn FnMut(&mut FunctionBuilder, usize, usize) -> Result<ValueId>;

/// Receives the element of the result at a row and a column.
pub(super) type Write<'w> = &'w mut dyn FnMut(&mut FunctionBuilder, usize, usize, ValueId) -> Result<()>;

/// Computes `M X M'` for a matrix `M`: with all of `X` in registers if there are enough, or else a
/// few rows of the result at a time.
fn both_sides(
    b: &mut FunctionBuilder,
    matrix: &[&[f64]],
    registers: u32,
    read: Read<'_>,
    write: Write<'_>,
) -> Result<()> {
    const SPARE: usize = 6;
    let (rows, columns) = (matrix.len(), matrix[0].len());
    let groups = groups(matrix);
    let passes = if rows * columns + SPARE <= registers as usize {
        vec![groups.clone()]
    } else {
        groups.iter().map(|group| vec![group.clone()]).collect()
    };
    passes.iter().try_for_each(|pass| rows_of_both_sides(b, matrix, pass, &groups, read, write))
}

/// Computes some rows of `M X M'`, in groups.
fn rows_of_both_sides(
    b: &mut FunctionBuilder,
    matrix: &[&[f64]],
    pass: &[Group],
    groups: &[Group],
    read: Read<'_>,
    write: Write<'_>,
) -> Result<()> {
    let columns = matrix[0].len();
    let selected: Vec<usize> = pass.iter().flatten().copied().collect();
    // By column, then by selected row.
    let mut halves: Vec<Vec<ValueId>> = Vec::with_capacity(columns);
    for column in 0..columns {
        let mut vector = vec![None; columns];
        for (row, element) in vector.iter_mut().enumerate() {
            if selected.iter().any(|&w| matrix[w][row] != 0.0) {
                *element = Some(read(b, row, column)?);
            }
        }
        halves.push(pass.iter().flat_map(|group| multiply(b, matrix, group, &vector)).collect());
    }
    for (k, &row) in selected.iter().enumerate() {
        let half: Vec<Option<ValueId>> = halves.iter().map(|column| Some(column[k])).collect();
        for group in groups {
            let values = multiply(b, matrix, group, &half);
            for (&column, value) in group.iter().zip(values) {
                write(b, row, column, value)?;
            }
        }
    }
    Ok(())
}

/// Computes a row of `M X M'` for a matrix `M` that transforms the pixels of a patch to
/// frequencies.
pub(super) fn row(
    b: &mut FunctionBuilder,
    matrix: &[&[f64]],
    row: usize,
    read: Read<'_>,
    write: Write<'_>,
) -> Result<()> {
    rows_of_both_sides(b, matrix, &[vec![row]], &groups(matrix), read, write)
}

/// Transforms the pixels of a patch to frequencies.
pub(super) fn input(
    b: &mut FunctionBuilder,
    transform: Transform,
    registers: u32,
    read: Read<'_>,
    write: Write<'_>,
) -> Result<()> {
    both_sides(b, transform.input, registers, read, write)
}

/// Transforms the window to frequencies.
pub(super) fn kernel(
    b: &mut FunctionBuilder,
    transform: Transform,
    read: Read<'_>,
    write: Write<'_>,
) -> Result<()> {
    both_sides(b, transform.kernel, u32::MAX, read, write)
}

/// Computes `A X A'` for the square matrix `X` of frequencies: the pixels of a patch, or taps, row
/// by row.
pub(super) fn output(
    b: &mut FunctionBuilder,
    matrix: &[&[f64]],
    read: Read<'_>,
) -> Result<Vec<Vec<ValueId>>> {
    let n = matrix.first().map_or(0, |row| row.len());
    if n == 1 {
        return Ok(vec![vec![read(b, 0, 0)?]]);
    }
    let mut halves: Vec<Vec<ValueId>> = Vec::new();
    for column in 0..n {
        let vector = (0..n).map(|row| read(b, row, column)).collect::<Result<Vec<_>>>()?;
        halves.push(outputs(b, matrix, &vector));
    }
    Ok((0..matrix.len())
        .map(|row| {
            let vector: Vec<ValueId> = halves.iter().map(|half| half[row]).collect();
            outputs(b, matrix, &vector)
        })
        .collect())
}

/// Multiplies `A` by a vector. The columns of `A` form pairs that are equal or differ in sign in
/// each row, so the sum and the difference of each pair suffice.
fn outputs(b: &mut FunctionBuilder, matrix: &[&[f64]], vector: &[ValueId]) -> Vec<ValueId> {
    let last = vector.len() - 1;
    let mut terms: Vec<Vec<Term>> =
        matrix.iter().map(|row| vec![Term { factor: row[0], value: vector[0] }]).collect();
    for pair in (1..last).step_by(2) {
        let sum = b.add(vector[pair], vector[pair + 1]);
        let difference = b.sub(vector[pair], vector[pair + 1]);
        for (row, terms) in matrix.iter().zip(&mut terms) {
            debug_assert_eq!(row[pair].abs(), row[pair + 1].abs());
            let value = if row[pair] == row[pair + 1] { sum } else { difference };
            terms.push(Term { factor: row[pair], value });
        }
    }
    for (row, terms) in matrix.iter().zip(&mut terms) {
        terms.push(Term { factor: row[last], value: vector[last] });
        terms.retain(|t| t.factor != 0.0);
    }
    terms.iter().map(|terms| sum(b, terms)).collect()
}
