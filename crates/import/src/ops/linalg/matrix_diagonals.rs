//! Bands and diagonals of matrices in the last two dimensions. Preceding dimensions are batches.
//!
//! Diagonal `d` consists of the elements with `column - row = d`. Several diagonals are stored as
//! rows of one length, with the highest number first. The alignment determines whether a shorter
//! one is stored at the start or at the end of its row.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Size, list};
use hlo::custom_call::ASSERT;
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("MatrixBandPart", matrix_band_part).types("T", ALL).types("Tindex", INDICES),
    rule("BatchMatrixBandPart", matrix_band_part).types("T", ALL),
    rule("MatrixDiag", matrix_diag).types("T", ALL),
    rule("BatchMatrixDiag", matrix_diag).types("T", ALL),
    rule("MatrixDiagV2", matrix_diag_v2).types("T", ALL),
    rule("MatrixDiagV3", matrix_diag_v2).types("T", ALL),
    rule("MatrixDiagPart", |cx| matrix_diag_part(cx, false)).types("T", ALL),
    rule("BatchMatrixDiagPart", |cx| matrix_diag_part(cx, false)).types("T", ALL),
    rule("MatrixDiagPartV2", |cx| matrix_diag_part(cx, true)).types("T", ALL),
    rule("MatrixDiagPartV3", |cx| matrix_diag_part(cx, true)).types("T", ALL),
    rule("MatrixSetDiag", |cx| matrix_set_diag(cx, false)).types("T", ALL),
    rule("BatchMatrixSetDiag", |cx| matrix_set_diag(cx, false)).types("T", ALL),
    rule("MatrixSetDiagV2", |cx| matrix_set_diag(cx, true)).types("T", ALL),
    rule("MatrixSetDiagV3", |cx| matrix_set_diag(cx, true)).types("T", ALL),
];

/// The type that positions are computed in. Matrices have fewer rows and columns than its maximum.
const POSITION: PrimitiveType = PrimitiveType::S32;

/// `MatrixBandPart(x, num_lower, num_upper)`: `x` on the given numbers of diagonals below and above
/// the main one, and 0 elsewhere. A negative number means all diagonals.
fn matrix_band_part(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (rows, columns) = matrix_sizes(cx, x)?;
    let grid = [rows, columns];
    let mut keep: Option<InstructionId> = None;
    for k in [1, 2] {
        let bound = cx.input(k)?;
        let rank = cx.rank(bound);
        cx.check(rank == 0, || format!("input {k}: expected a scalar, got rank {rank}"))?;
        let known = cx.fold(bound).and_then(|literal| literal.scalar_at(0).as_i64());
        if known.is_some_and(|known| known < 0 || known >= rows.max(columns)) {
            continue;
        }
        let position = if known.is_some() { POSITION } else { PrimitiveType::S64 };
        let bound = cx.convert(bound, position)?;
        let (row, column) = (cx.iota(position, &grid, 0)?, cx.iota(position, &grid, 1)?);
        let distance = if k == 1 { cx.sub(row, column)? } else { cx.sub(column, row)? };
        let wide = cx.broadcast(bound, &grid, &[])?;
        let mut within = cx.compare(ComparisonDirection::Le, distance, wide)?;
        if known.is_none() {
            let all = cx.compare_scalar(ComparisonDirection::Lt, wide, 0.0)?;
            within = cx.op(Op::Or {}, &[all, within])?;
        }
        keep = Some(match keep {
            Some(keep) => cx.op(Op::And {}, &[keep, within])?,
            None => within,
        });
    }
    let Some(keep) = keep else { return Ok(x) };
    let keep = over_batches(cx, keep, x)?;
    let zero = cx.splat_like(x, 0.0)?;
    cx.select(keep, x, zero)
}

/// Returns the numbers of rows and columns of an array's matrices.
fn matrix_sizes(cx: &NodeContext<'_, '_>, x: InstructionId) -> Result<(i64, i64)> {
    let sizes = cx.sizes(x);
    let [.., rows, columns] = sizes[..] else {
        return Err(cx.invalid(format!("expected a matrix, got shape {}", list(&sizes))));
    };
    check_matrix(cx, rows, columns)?;
    Ok((rows, columns))
}

/// Checks that matrices of open sizes are square, and that the band is then the main diagonal:
/// whole arrays have it in the right places. Returns the size of the diagonal of such matrices.
fn open_diagonal(cx: &mut NodeContext<'_, '_>, matrices: InstructionId, band: &Band) -> Result<Option<Size>> {
    let sizes = cx.all_sizes(matrices)?;
    let [.., rows, columns] = sizes[..] else { return Ok(None) };
    if rows.size.is_none() && columns.size.is_none() {
        return Ok(None);
    }
    if band.count() > 1 || band.lower != 0 {
        return Err(Error::unsupported("diagonals of matrices of open sizes, other than the main one"));
    }
    if rows.bound != columns.bound || cx.known_difference(rows, columns) != Some(0) {
        return Err(Error::unsupported("diagonals of matrices whose open sizes may differ"));
    }
    Ok(Some(rows))
}

/// Rejects matrices whose positions do not fit in [`POSITION`].
fn check_matrix(cx: &NodeContext<'_, '_>, rows: i64, columns: i64) -> Result<()> {
    let limit = i64::from(i32::MAX) / 2;
    cx.check(rows <= limit && columns <= limit, || {
        format!("matrices of {rows} rows and {columns} columns are too large; the maximum of each is {limit}")
    })
}

/// Broadcasts a matrix to the batches of another array.
fn over_batches(
    cx: &mut NodeContext<'_, '_>,
    matrix: InstructionId,
    like: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(like);
    let rank = sizes.len();
    cx.broadcast(matrix, &sizes, &[rank - 2, rank - 1])
}

/// Diagonals `lower` to `upper`, and the alignment of the shorter ones.
struct Band {
    lower: i64,
    upper: i64,
    left_above: bool,
    left_below: bool,
}

impl Band {
    /// The main diagonal.
    const MAIN: Self = Self { lower: 0, upper: 0, left_above: true, left_below: true };

    /// Reads a band from input `k`, one or two integers, and the attribute `align`.
    fn of_node(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<Self> {
        let numbers = cx.constant_i64s(k)?;
        let (lower, upper) = match numbers[..] {
            [number] => (number, number),
            [lower, upper] => (lower, upper),
            _ => return Err(cx.invalid(format!("k: expected one or two integers, got {}", list(&numbers)))),
        };
        let within = i64::from(i32::MIN)..=i64::from(i32::MAX);
        cx.check(lower <= upper && within.contains(&lower) && within.contains(&upper), || {
            format!(
                "k: expected a diagonal, or the lowest and the highest of several, got {}",
                list(&numbers)
            )
        })?;
        let (left_above, left_below) = match cx.text_or("align", "LEFT_LEFT")? {
            "LEFT_LEFT" => (true, true),
            "LEFT_RIGHT" => (true, false),
            "RIGHT_LEFT" => (false, true),
            "RIGHT_RIGHT" => (false, false),
            other => {
                return Err(cx.invalid(format!(
                    "align: expected LEFT_LEFT, LEFT_RIGHT, RIGHT_LEFT, or RIGHT_RIGHT, got '{other}'"
                )));
            }
        };
        Ok(Self { lower, upper, left_above, left_below })
    }

    fn count(&self) -> i64 {
        self.upper - self.lower + 1
    }

    /// Returns the length of the longest diagonal.
    fn longest(&self, rows: i64, columns: i64) -> i64 {
        (rows + self.upper.min(0)).min(columns - self.lower.max(0))
    }

    fn check_within(&self, cx: &NodeContext<'_, '_>, rows: i64, columns: i64) -> Result<()> {
        let fits = |d: i64| d == 0 || (-rows < d && d < columns);
        cx.check(fits(self.lower) && fits(self.upper), || {
            format!(
                "diagonals {} to {} are not all within a matrix of {rows} rows and {columns} columns",
                self.lower, self.upper
            )
        })
    }

    /// Returns the offset of a diagonal's elements in the row that stores them, and the number of
    /// elements.
    fn placement(
        &self,
        cx: &mut NodeContext<'_, '_>,
        d: InstructionId,
        rows: i64,
        columns: i64,
    ) -> Result<(InstructionId, InstructionId)> {
        let zero = cx.splat_like(d, 0.0)?;
        let (below, above) = (cx.op(Op::Minimum {}, &[d, zero])?, cx.op(Op::Maximum {}, &[d, zero])?);
        let (rows_left, columns_left) =
            (cx.add_scalar(below, rows as f64)?, cx.splat_like(d, columns as f64)?);
        let columns_left = cx.sub(columns_left, above)?;
        let length = cx.op(Op::Minimum {}, &[rows_left, columns_left])?;
        let longest = cx.splat_like(d, self.longest(rows, columns) as f64)?;
        let gap = cx.sub(longest, length)?;
        let right_of = |direction: ComparisonDirection, cx: &mut NodeContext<'_, '_>| {
            let is_shifted = cx.compare(direction, d, zero)?;
            cx.select(is_shifted, gap, zero)
        };
        let offset = match (self.left_above, self.left_below) {
            (true, true) => zero,
            (false, true) => right_of(ComparisonDirection::Gt, cx)?,
            (true, false) => right_of(ComparisonDirection::Lt, cx)?,
            (false, false) => gap,
        };
        Ok((offset, length))
    }
}

/// Gathers the elements at index pairs in the last two dimensions of an array, for all batches.
fn gather_pairs(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    first: InstructionId,
    second: InstructionId,
) -> Result<InstructionId> {
    let (rank, mut slice_sizes) = (cx.rank(x), cx.sizes(x));
    slice_sizes[rank - 2..].fill(1);
    let mut pair = cx.sizes(first);
    let index_vector_dim = pair.len();
    pair.push(1);
    let (first, second) = (cx.reshape(first, &pair)?, cx.reshape(second, &pair)?);
    let indices = cx.concatenate(&[first, second], index_vector_dim)?;
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: (0..rank - 2).collect(),
        collapsed_slice_dims: vec![rank - 2, rank - 1],
        start_index_map: vec![rank - 2, rank - 1],
        index_vector_dim,
        ..Default::default()
    };
    cx.op(Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false }, &[x, indices])
}

/// `MatrixDiagPart(x, k, padding)`: the diagonals of matrices. Padding fills the rows of shorter
/// ones.
fn matrix_diag_part(cx: &mut NodeContext<'_, '_>, has_k: bool) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (rows, columns) = matrix_sizes(cx, x)?;
    let band = if has_k { Band::of_node(cx, 1)? } else { Band::MAIN };
    band.check_within(cx, rows, columns)?;
    if !cx.is_bounded(x) {
        return diagonals_of(cx, x, &band);
    }
    let length = open_diagonal(cx, x, &band)?;
    let mut split = cx.split(x)?;
    let part = diagonals_of(cx, split.data, &band)?;
    split.sizes.truncate(split.sizes.len() - 2);
    split.sizes.resize(cx.rank(part), length.and_then(|length| length.size));
    cx.bounded(part, &split.sizes)
}

/// Returns the diagonals of matrices of known sizes.
fn diagonals_of(cx: &mut NodeContext<'_, '_>, x: InstructionId, band: &Band) -> Result<InstructionId> {
    let (rows, columns) = matrix_sizes(cx, x)?;
    let (count, longest) = (band.count(), band.longest(rows, columns));
    let sizes = cx.sizes(x);
    let batch = &sizes[..sizes.len() - 2];
    let result = if count > 1 { [batch, &[count, longest]].concat() } else { [batch, &[longest]].concat() };
    if sizes.contains(&0) || result.contains(&0) {
        let element_type = cx.element_type(x);
        return cx.splat(element_type, &result, 0.0);
    }
    let grid = [count, longest];
    let number = cx.iota(POSITION, &grid, 0)?;
    let upper = cx.splat_like(number, band.upper as f64)?;
    let d = cx.sub(upper, number)?;
    let (offset, length) = band.placement(cx, d, rows, columns)?;
    let zero = cx.splat_like(d, 0.0)?;
    let position = cx.iota(POSITION, &grid, 1)?;
    let position = cx.sub(position, offset)?;
    let (below, above) = (cx.op(Op::Minimum {}, &[d, zero])?, cx.op(Op::Maximum {}, &[d, zero])?);
    let (row, column) = (cx.sub(position, below)?, cx.add(position, above)?);
    let gathered = gather_pairs(cx, x, row, column)?;
    if count == 1 {
        return cx.reshape(gathered, &result);
    }
    let padding = cx.input(2)?;
    let padding = cx.broadcast_to(padding, &result)?;
    let from_start = cx.compare(ComparisonDirection::Ge, position, zero)?;
    let to_end = cx.compare(ComparisonDirection::Lt, position, length)?;
    let is_there = cx.op(Op::And {}, &[from_start, to_end])?;
    let is_there = over_batches(cx, is_there, gathered)?;
    cx.select(is_there, gathered, padding)
}

/// Replaces diagonals of matrices. The diagonals have the shape that [`matrix_diag_part`] returns.
fn set_diagonals(
    cx: &mut NodeContext<'_, '_>,
    matrix: InstructionId,
    diagonals: InstructionId,
    band: &Band,
) -> Result<InstructionId> {
    let sizes = cx.sizes(matrix);
    let rank = sizes.len();
    let (rows, columns) = (sizes[rank - 2], sizes[rank - 1]);
    if sizes.contains(&0) || cx.sizes(diagonals).contains(&0) {
        return Ok(matrix);
    }
    let grid = [rows, columns];
    let (row, column) = (cx.iota(POSITION, &grid, 0)?, cx.iota(POSITION, &grid, 1)?);
    let d = cx.sub(column, row)?;
    if band.count() == 1 {
        let is_there = cx.compare_scalar(ComparisonDirection::Eq, d, band.lower as f64)?;
        let is_there = over_batches(cx, is_there, matrix)?;
        // Each column contains one element of the diagonal, so that one row of values serves all
        // rows.
        let element_type = cx.element_type(matrix);
        let zero = cx.scalar(element_type, 0.0);
        let mut padding = vec![(0, 0, 0); rank - 1];
        let before = band.lower.max(0);
        padding[rank - 2] = (before, columns - before - band.longest(rows, columns), 0);
        let values = cx.pad(diagonals, zero, &padding)?;
        let dimensions: Vec<usize> = (0..rank - 2).chain([rank - 1]).collect();
        let values = cx.broadcast(values, &sizes, &dimensions)?;
        return cx.select(is_there, values, matrix);
    }
    let (offset, _) = band.placement(cx, d, rows, columns)?;
    let zero = cx.splat_like(d, 0.0)?;
    let below = cx.op(Op::Minimum {}, &[d, zero])?;
    let position = cx.add(row, below)?;
    let position = cx.add(position, offset)?;
    let upper = cx.splat_like(d, band.upper as f64)?;
    let number = cx.sub(upper, d)?;
    let gathered = gather_pairs(cx, diagonals, number, position)?;
    let from_lower = cx.compare_scalar(ComparisonDirection::Ge, d, band.lower as f64)?;
    let to_upper = cx.compare(ComparisonDirection::Le, d, upper)?;
    let is_there = cx.op(Op::And {}, &[from_lower, to_upper])?;
    let is_there = over_batches(cx, is_there, matrix)?;
    cx.select(is_there, gathered, matrix)
}

/// `MatrixSetDiag(x, diagonals, k)`.
fn matrix_set_diag(cx: &mut NodeContext<'_, '_>, has_k: bool) -> Result<InstructionId> {
    let (x, diagonals) = (cx.input(0)?, cx.input(1)?);
    let (rows, columns) = matrix_sizes(cx, x)?;
    let band = if has_k { Band::of_node(cx, 2)? } else { Band::MAIN };
    band.check_within(cx, rows, columns)?;
    if cx.is_bounded(x) || cx.is_bounded(diagonals) {
        return set_open_diagonals(cx, x, diagonals, &band);
    }
    let sizes = cx.sizes(x);
    let batch = &sizes[..sizes.len() - 2];
    let (count, longest) = (band.count(), band.longest(rows, columns));
    let expected = if count > 1 { [batch, &[count, longest]].concat() } else { [batch, &[longest]].concat() };
    let actual = cx.sizes(diagonals);
    cx.check(actual == expected, || {
        format!("diagonals: expected shape {}, got {}", list(&expected), list(&actual))
    })?;
    set_diagonals(cx, x, diagonals, &band)
}

/// Replaces diagonals where sizes are open. A run whose diagonals have other sizes fails.
fn set_open_diagonals(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    diagonals: InstructionId,
    band: &Band,
) -> Result<InstructionId> {
    let (rows, columns) = matrix_sizes(cx, x)?;
    let lines = (band.count() > 1).then(|| Size::known(band.count()));
    let length = open_diagonal(cx, x, band)?.unwrap_or(Size::known(band.longest(rows, columns)));
    let (mut expected, actual) = (cx.all_sizes(x)?, cx.all_sizes(diagonals)?);
    expected.truncate(expected.len() - 2);
    expected.extend(lines.into_iter().chain([length]));
    cx.check(actual.len() == expected.len(), || {
        format!("diagonals: expected rank {}, got {}", expected.len(), actual.len())
    })?;
    for (d, (&size, &wanted)) in actual.iter().zip(&expected).enumerate() {
        if cx.known_difference(size, wanted) == Some(0) {
            continue;
        }
        let (size, wanted) = (cx.size_value(size)?, cx.size_value(wanted)?);
        let is_valid = cx.compare(ComparisonDirection::Eq, size, wanted)?;
        let message = format!("size {d} of the diagonals is not that of the matrices");
        cx.fail_unless(ASSERT, is_valid, &message)?;
    }
    let (matrices, mut values) = (cx.split(x)?, cx.split(diagonals)?.data);
    for (d, (size, wanted)) in actual.iter().zip(&expected).enumerate() {
        if size.bound > wanted.bound {
            values = cx.slice_in(values, d, 0, wanted.bound)?;
        }
    }
    let element_type = cx.element_type(values);
    let zero = cx.scalar(element_type, 0.0);
    let padding =
        actual.iter().zip(&expected).map(|(size, wanted)| (0, (wanted.bound - size.bound).max(0), 0));
    let padding: Vec<(i64, i64, i64)> = padding.collect();
    let values = cx.pad(values, zero, &padding)?;
    let replaced = set_diagonals(cx, matrices.data, values, band)?;
    cx.bounded(replaced, &matrices.sizes)
}

/// `MatrixDiag(diagonal)`: square matrices that are 0 outside the main diagonal.
fn matrix_diag(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let diagonals = cx.input(0)?;
    let element_type = cx.element_type(diagonals);
    let zero = cx.scalar(element_type, 0.0);
    diagonal_matrices(cx, diagonals, &Band::MAIN, -1, -1, zero)
}

/// `MatrixDiagV2(diagonals, k, num_rows, num_cols, padding)`. A number of rows or columns of -1
/// means the smallest that fits.
fn matrix_diag_v2(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let diagonals = cx.input(0)?;
    let band = Band::of_node(cx, 1)?;
    let expected = (cx.constant_i64(2)?, cx.constant_i64(3)?);
    let padding = cx.input(4)?;
    let rank = cx.rank(padding);
    cx.check(rank == 0, || format!("padding_value: expected a scalar, got rank {rank}"))?;
    diagonal_matrices(cx, diagonals, &band, expected.0, expected.1, padding)
}

fn diagonal_matrices(
    cx: &mut NodeContext<'_, '_>,
    diagonals: InstructionId,
    band: &Band,
    rows: i64,
    columns: i64,
    padding: InstructionId,
) -> Result<InstructionId> {
    if cx.is_bounded(diagonals) {
        let mut split = cx.split(diagonals)?;
        let length = split.sizes.pop().flatten();
        if length.is_some() && (band.count() > 1 || band.lower != 0 || (rows, columns) != (-1, -1)) {
            return Err(Error::unsupported(
                "diagonals of open sizes, other than the main one of square matrices",
            ));
        }
        split.sizes.truncate(split.sizes.len() - usize::from(band.count() > 1));
        split.sizes.extend([length, length]);
        let matrices = diagonal_matrices(cx, split.data, band, rows, columns, padding)?;
        return cx.bounded(matrices, &split.sizes);
    }
    let sizes = cx.sizes(diagonals);
    let count = band.count();
    let (batch, longest) = match (count, &sizes[..]) {
        (1, [batch @ .., longest]) => (batch, *longest),
        (_, [batch @ .., rows, longest]) if *rows == count => (batch, *longest),
        _ => {
            return Err(
                cx.invalid(format!("expected {count} diagonals (k), got values of shape {}", list(&sizes)))
            );
        }
    };
    let (least_rows, least_columns) = (longest - band.upper.min(0), longest + band.lower.max(0));
    let square = least_rows.max(least_columns);
    let (rows, columns) = match (rows, columns) {
        (-1, -1) => (square, square),
        (-1, columns) => (least_rows, columns),
        (rows, -1) => (rows, least_columns),
        both => both,
    };
    let fits =
        rows >= least_rows && columns >= least_columns && (rows == least_rows || columns == least_columns);
    cx.check(fits, || {
        format!(
            "{rows} rows and {columns} columns do not match diagonals {} to {} of up to {longest} elements",
            band.lower, band.upper
        )
    })?;
    check_matrix(cx, rows, columns)?;
    let background = cx.broadcast(padding, &[batch, &[rows, columns]].concat(), &[])?;
    set_diagonals(cx, background, diagonals, band)
}
