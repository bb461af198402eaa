//! Programs for batches of any size: modules for a few sizes, of which the code of a batch is made.

mod exact;
mod number_of_rows;
pub(crate) mod report;
mod row_loop;

pub(crate) use exact::exact_modules;
pub use row_loop::loop_over_rows;

use crate::sizes::number_of_rows::{Obstacle, Programs};
use hlo::analysis::{RowUse, independent_rows};
use hlo::{
    Argument, Identifier, Interface, Module, NamedDimension, Origin, Output, Program, Role, SizeRange,
    SizedModule,
};
use shape::{ArrayShape, PrimitiveType};
use std::collections::BTreeSet;
use support::{Error, Result};

/// Factor between neighboring sizes that are chosen without the user's.
const STEP: i64 = 8;

/// Sizes below the first step. Where a few rows cost little more than one, batches smaller than a
/// step and the rest of larger ones need them.
const SMALL: [i64; 2] = [2, 4];

/// Maximum number of sizes with code of their own.
const MAX_SIZES: usize = 16;

/// Largest size with code of its own. Larger batches are computed in pieces of this size.
const MAX_SIZE: i64 = 1 << 12;

/// Why profiled code is not computed piece by piece.
pub const PROFILE_HAS_ONE_SIZE: &str = "a profile measures the code of the largest size; a fixed size, as --dim NAME=N, measures that of another";

/// Why code for GPUs is not computed piece by piece.
pub const GPU_HAS_ONE_SIZE: &str = "programs for GPUs have one size, which --dim NAME=N or the config states";

/// The modules of a program for a batch of independent rows.
pub(crate) struct Pieces {
    /// The program for a few sizes.
    pub(crate) sized: Vec<SizedModule>,
    /// The program for one row.
    row: Program,
    /// Feeds whose leading dimension is the batch.
    batched: BTreeSet<usize>,
    /// The use of the batch in each result.
    uses: Vec<RowUse>,
    /// The name of the size, and its range.
    name: String,
    range: SizeRange,
}

/// The only named dimension of a program, if it is the leading one of all feeds that have it.
pub(crate) struct Batch {
    name: String,
    range: SizeRange,
    /// Feeds whose leading dimension it is.
    batched: BTreeSet<usize>,
}

impl Batch {
    /// Returns the batch of a program with these names and ranges. `dimensions` are the named
    /// dimensions of each feed. An error says why there is none.
    pub(crate) fn new<'n>(
        names: impl IntoIterator<Item = (&'n str, i64, i64)>,
        dimensions: impl IntoIterator<Item = Vec<usize>>,
    ) -> Result<Self> {
        let mut names = names.into_iter();
        let (Some((name, low, high)), None) = (names.next(), names.next()) else {
            return Err(Error::unsupported("the program has several named dimensions"));
        };
        let mut batched = BTreeSet::new();
        for (number, dimensions) in dimensions.into_iter().enumerate() {
            match dimensions[..] {
                [] => {}
                [0] => {
                    batched.insert(number);
                }
                _ => return Err(Error::unsupported("the batch is not the leading dimension of a feed")),
            }
        }
        Ok(Self { name: name.to_owned(), range: SizeRange { low, high }, batched })
    }

    /// Returns the batch of a graph.
    pub(crate) fn of_graph(program: &tf::Program) -> Result<Self> {
        let names =
            program.dimensions.iter().map(|tf::Dimension { name, low, high }| (name.as_str(), *low, *high));
        Self::new(names, program.feeds.iter().map(|feed| feed.dimensions.keys().copied().collect()))
    }
}

/// Translates a program for a number of rows, in the form that rules choose for another number.
pub(crate) type Import<'a> = &'a dyn Fn(i64, i64) -> Result<Program>;

/// Imports a program whose only named dimension is a batch of independent rows, for a few sizes.
/// `given` are sizes that the user wants code for.
///
/// Errors say why the program is not computed piece by piece: rows depend on each other, numbers
/// depend on the size, the program writes variables, or a size is not supported.
pub(crate) fn pieces(batch: Result<Batch>, given: &[i64], import: Import<'_>) -> Result<Pieces> {
    let Batch { name, range: SizeRange { low, high }, batched } = batch?;
    let row = import(1, 1)?;
    if row.interface.results().iter().any(|result| result.origin == Origin::Variable) {
        return Err(Error::unsupported("the program writes a variable"));
    }
    let sizes = sizes(low, high, given);
    if sizes.len() > MAX_SIZES {
        return Err(Error::unsupported(format!("more than {MAX_SIZES} sizes have code of their own")));
    }
    // The estimates do not know how tiles fit few rows, so a second size is always there.
    let second = sizes.iter().copied().find(|&size| size >= STEP.max(low + 1)).or(sizes.last().copied());
    let (mut sized, mut uses): (Vec<SizedModule>, Option<Vec<RowUse>>) = (Vec::new(), None);
    // The largest batch also shows what begins beyond the sizes: a slice of the first 100 rows.
    let largest = (!sizes.contains(&high)).then_some(high);
    for size in sizes.iter().copied().chain(largest).filter(|&size| size > 1) {
        let Program { module, interface, .. } = import(size, size)?;
        let found = independent_rows(&module, &batched, size).map_err(|dependence| {
            let instruction = &module[dependence.computation][dependence.instruction];
            let reason = dependence.reason;
            Error::unsupported(format!("rows depend on each other at {}: {reason}", instruction.described()))
        })?;
        if uses.as_ref().is_some_and(|uses| *uses != found) {
            return Err(Error::unsupported("a result depends on the batch in one size and not in another"));
        }
        check_shapes(&row.interface, &interface, &batched, &found, size)?;
        uses = Some(found);
        let is_required = given.contains(&size) || sizes.first() == Some(&size) || second == Some(size);
        sized.push(SizedModule { size, is_required, module });
    }
    check_numbers(&sized, &row.module, &batched, import)?;
    sized.retain(|module| Some(module.size) != largest);
    // A single row proves nothing.
    let uses = uses.ok_or_else(|| Error::unsupported("the batch has a single row"))?;
    if low == 0 && uses.contains(&RowUse::None) {
        return Err(Error::unsupported("a result does not depend on the batch, which may be empty"));
    }
    if sizes.first() == Some(&1) {
        sized.insert(0, SizedModule { size: 1, is_required: true, module: row.module.clone() });
    }
    Ok(Pieces { sized, row, batched, uses, name, range: SizeRange { low, high } })
}

/// Checks that the sizes of pieces that the user wants code for get some.
pub(crate) fn check_given(name: &str, given: &[i64]) -> Result<()> {
    match given.iter().find(|&&size| size > MAX_SIZE) {
        None => Ok(()),
        Some(size) => {
            let reason = format!("{size} exceeds {MAX_SIZE}, the largest size with code of its own");
            refuse_given(name, given, &reason)
        }
    }
}

/// Refuses sizes that the user wants code for, for this reason.
pub(crate) fn refuse_given(name: &str, given: &[i64], reason: &str) -> Result<()> {
    let list: Vec<String> = given.iter().map(i64::to_string).collect();
    let list = list.join(",");
    Err(Error::invalid(format!("--sizes {name}={list} has no effect, remove it: {reason}")))
}

/// Describes the pieces, or why there are none.
pub(crate) fn to_text(pieces: &Result<Pieces>) -> String {
    match pieces {
        Ok(pieces) => {
            let sizes: Vec<String> = pieces.sized.iter().map(|sized| sized.size.to_string()).collect();
            format!("sizes of {} that may get code: {}", pieces.name, sizes.join(", "))
        }
        Err(error) => format!("code for the largest size only: {error}"),
    }
}

/// Returns the program for all sizes, with code for a few: `whole` is its import for a range. If it
/// failed, or its results have other bounds than a batch, the program is a loop over rows. Also
/// returns whether the program is such a loop.
pub(crate) fn combined(whole: Result<Program>, pieces: Result<Pieces>) -> Result<(Program, bool)> {
    let shapes = |interface: &Interface| -> Vec<ArrayShape> {
        interface.results().iter().map(|result| result.shape.clone()).collect()
    };
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) if shapes(&whole.interface) == shapes(&pieces.interface()) => {
            Ok((Program { sized: pieces.sized, ..whole }, false))
        }
        (_, Ok(pieces)) => Ok((pieces.into_program()?, true)),
        (Ok(whole), Err(_)) => Ok((whole, false)),
        (Err(error), Err(reason)) => Err(error.context(reason.to_string())),
    }
}

impl Pieces {
    /// Returns the program for all sizes, as a loop over the rows.
    pub(crate) fn into_program(self) -> Result<Program> {
        let interface = self.interface();
        let module = loop_over_rows(&self.row.module, &interface)?;
        Ok(Program { sized: self.sized, ..Program::new(module, interface) })
    }

    /// Returns the interface: that of a row, with the largest batch, and with the size after the
    /// feeds.
    pub(crate) fn interface(&self) -> Interface {
        let whole = |shape: &ArrayShape| {
            let mut shape = shape.clone();
            shape.dimensions[0].size = self.range.high;
            shape
        };
        let feeds = self.row.interface.feed_count();
        let mut arguments = self.row.interface.arguments().to_vec();
        for &number in &self.batched {
            arguments[number].shape = whole(&arguments[number].shape);
            arguments[number].named_dimensions = vec![NamedDimension { dimension: 0, size: feeds }];
        }
        let scalar = ArrayShape::new(PrimitiveType::S32, &[]);
        let id = Identifier::first_of(self.name.as_str());
        let size = Argument::new(Some(self.name.clone()), id, scalar, Role::Feed);
        arguments.insert(feeds, Argument { range: Some(self.range), ..size });
        let results = self.row.interface.results().iter().zip(&self.uses).map(|(result, row_use)| {
            let mut result: Output = result.clone();
            if *row_use == RowUse::Rows {
                result.shape = whole(&result.shape);
                result.shape.dimensions[0].is_dynamic = true;
            }
            result
        });
        Interface::new(arguments, results.collect())
    }
}

/// Checks that no value depends on the number of rows: compares the program for the most rows with
/// those for others and with one for one row less, or more if there is none.
fn check_numbers(
    sized: &[SizedModule],
    row: &Module,
    batched: &BTreeSet<usize>,
    import: Import<'_>,
) -> Result<()> {
    let Some((last, others)) = sized.split_last() else { return Ok(()) };
    let compare = |other: &Module, other_rows: i64| {
        let programs = Programs { one: &last.module, rows: last.size, other, other_rows, batched };
        number_of_rows::check(&programs)
    };
    // A rule may have chosen another form for few rows.
    let compare_in_one_form = |other: &Module, other_rows: i64| match compare(other, other_rows) {
        Ok(()) => Ok(Ok(())),
        Err(_) => Ok(compare(&import(other_rows, last.size)?.module, other_rows)),
    };
    for other in others {
        compare_in_one_form(&other.module, other.size)?.map_err(Obstacle::into_error)?;
    }
    let near = if last.size > 3 { last.size - 1 } else { last.size + 1 };
    compare(&import(near, last.size)?.module, near).map_err(Obstacle::into_error)?;
    match compare_in_one_form(row, 1)? {
        // A dimension of size 1 is also one that is repeated.
        Ok(()) | Err(Obstacle::Structure(_)) => Ok(()),
        Err(number) => Err(number.into_error()),
    }
}

/// Checks that the program for a size differs from that for one row in the batch only.
fn check_shapes(
    row: &Interface,
    own: &Interface,
    batched: &BTreeSet<usize>,
    uses: &[RowUse],
    size: i64,
) -> Result<()> {
    let with_size = |shape: &ArrayShape, is_batched: bool| {
        let mut sizes = shape.sizes();
        if let Some(leading) = sizes.first_mut().filter(|_| is_batched) {
            *leading *= size;
        }
        sizes
    };
    let arguments = row.arguments().iter().enumerate();
    let expected = arguments.map(|(k, argument)| with_size(&argument.shape, batched.contains(&k)));
    let found = own.arguments().iter().map(|argument| argument.shape.sizes());
    let results = row.results().iter().zip(uses);
    let results = results.map(|(result, row_use)| with_size(&result.shape, *row_use == RowUse::Rows));
    let own_results = own.results().iter().map(|result| result.shape.sizes());
    if expected.eq(found) && results.eq(own_results) && own.size_count() == 0 && row.size_count() == 0 {
        return Ok(());
    }
    Err(Error::unsupported(format!("arguments or results have other dimensions for {size} rows")))
}

/// Returns the sizes that get code: the smallest one of the range, some larger ones, and the
/// user's.
fn sizes(low: i64, high: i64, given: &[i64]) -> Vec<i64> {
    let low = low.max(1);
    let most = high.min(MAX_SIZE);
    let mut sizes = BTreeSet::from([low.min(most)]);
    let steps = std::iter::successors(Some(1i64), |size| size.checked_mul(STEP));
    sizes.extend(steps.take_while(|&size| size <= most).filter(|&size| size > low));
    let is_far = sizes.last().is_some_and(|&last| most >= 2 * last);
    sizes.extend(SMALL.into_iter().filter(|&size| size > low && size <= most));
    if is_far {
        sizes.insert(most);
    }
    sizes.extend(given.iter().copied().filter(|size| (low..=most).contains(size)));
    sizes.into_iter().collect()
}

/// True if code for some rows at this cost is at least 3 % faster than the code for fewer rows, run
/// several times. Sizes that are not cost code and temporary memory for nothing.
pub(crate) fn is_worth((rows, cost): (i64, u64), (fewer, of_fewer): (i64, u64)) -> bool {
    let (rows, fewer) = (rows.unsigned_abs(), fewer.unsigned_abs());
    let own = u128::from(cost) * u128::from(fewer);
    own * 100 < u128::from(of_fewer) * u128::from(rows) * 97
}

/// Returns the positions and the bytes of a row of a module's arguments and results in the program.
pub(crate) fn arrays(interface: &Interface) -> (Vec<kernel::BatchArray>, Vec<kernel::BatchArray>) {
    let row_bytes = |shape: &ArrayShape| shape.byte_size() as i64 / shape.size(0).max(1);
    let array = |number: usize, shape: &ArrayShape, is_batched: bool| kernel::BatchArray {
        number,
        row_bytes: if is_batched { row_bytes(shape) } else { 0 },
    };
    let arguments = interface.arguments().iter().enumerate().filter(|(_, argument)| argument.range.is_none());
    let arguments =
        arguments.map(|(k, argument)| array(k, &argument.shape, !argument.named_dimensions.is_empty()));
    let results = interface.results().iter().enumerate();
    let results = results.map(|(k, result)| array(k, &result.shape, !result.sizes().is_empty()));
    (arguments.collect(), results.collect())
}

#[cfg(test)]
mod tests {
    use super::{is_worth, sizes};

    #[test]
    fn a_few_sizes_have_code() {
        assert_eq!(sizes(1, 64, &[]), [1, 2, 4, 8, 64]);
        assert_eq!(sizes(1, 64, &[32, 8, 100]), [1, 2, 4, 8, 32, 64]);
        assert_eq!(sizes(0, 16, &[]), [1, 2, 4, 8, 16]);
        assert_eq!(sizes(1, 100, &[]), [1, 2, 4, 8, 64]);
        assert_eq!(sizes(3, 100, &[]), [3, 4, 8, 64]);
        assert_eq!(sizes(5, 7, &[]), [5]);
        assert_eq!(sizes(1, 2, &[]), [1, 2]);
        assert_eq!(sizes(1, 1 << 20, &[]), [1, 2, 4, 8, 64, 512, 4096]);
    }

    #[test]
    fn a_size_must_be_faster_than_a_smaller_one() {
        assert!(is_worth((8, 400), (1, 100)));
        assert!(is_worth((8, 770), (1, 100)) && !is_worth((8, 780), (1, 100)));
        assert!(!is_worth((64, 6400), (8, 800)));
    }
}
