//! Programs for batches of any size: modules for a few sizes, of which the code of a batch is made.

use hlo::analysis::{RowUse, independent_rows};
use hlo::{Interface, Module, NamedDimension, Origin, Program, SizedModule};
use std::collections::BTreeSet;
use support::{Error, Result};

/// Factor between neighboring sizes that are chosen without the user's.
const STEP: i64 = 8;

/// Maximum number of sizes with code of their own.
const MAX_SIZES: usize = 16;

/// Largest size with code of its own. Larger batches are computed in pieces of this size.
const MAX_SIZE: i64 = 1 << 12;

/// Returns the modules of a program whose only named dimension is a batch of independent rows.
/// `given` are sizes that the user wants code for, and `import` translates the program for one size.
///
/// Errors say why the program is not computed piece by piece: rows depend on each other, the program
/// writes variables, or a size is not supported.
pub(crate) fn modules(
    program: &Program,
    given: &[i64],
    import: impl Fn(i64) -> Result<Module>,
) -> Result<Vec<SizedModule>> {
    let interface = &program.interface;
    let batched = batched(interface)?;
    let Some((_, _, range)) = interface.sizes().next() else { return Ok(Vec::new()) };
    let uses = uses(interface)?;
    if range.low == 0 && uses.contains(&RowUse::None) {
        return Err(Error::unsupported("a result does not depend on the batch, which may be empty"));
    }
    let sizes = sizes(range.low, range.high, given);
    if sizes.len() > MAX_SIZES {
        return Err(Error::unsupported(format!("more than {MAX_SIZES} sizes have code of their own")));
    }
    let mut modules = Vec::with_capacity(sizes.len());
    for size in sizes {
        let module = import(size)?;
        if size > 1 {
            let found = independent_rows(&module, &batched, size).map_err(|dependence| {
                let instruction = &module[dependence.computation][dependence.instruction];
                Error::unsupported(format!(
                    "rows of the batch depend on each other at {}: {}",
                    instruction.described(),
                    dependence.reason
                ))
            })?;
            if found != uses {
                return Err(Error::unsupported("a result has other dimensions for a single size"));
            }
        }
        check_shapes(interface, &Interface::of_module(&module)?, size)?;
        modules.push(SizedModule { size, module });
    }
    // A batch of one row alone proves nothing.
    if modules.iter().all(|sized| sized.size == 1) {
        return Err(Error::unsupported("the range has a single size"));
    }
    Ok(modules)
}

/// Returns a line for each size.
pub(crate) fn to_text(modules: &[SizedModule]) -> String {
    let sizes: Vec<String> = modules.iter().map(|sized| sized.size.to_string()).collect();
    format!("pieces of {} rows", sizes.join(", "))
}

/// Returns the parameters with rows, by their number in the module for one size.
fn batched(interface: &Interface) -> Result<BTreeSet<usize>> {
    let mut batched = BTreeSet::new();
    for (number, argument) in interface.arguments().iter().filter(|a| a.range.is_none()).enumerate() {
        match &argument.named_dimensions[..] {
            [] => {}
            [NamedDimension { dimension: 0, .. }] => {
                batched.insert(number);
            }
            _ => {
                return Err(Error::unsupported(
                    "a feed has the batch in another dimension than the leading one",
                ));
            }
        }
    }
    Ok(batched)
}

/// Returns how each result depends on the batch.
fn uses(interface: &Interface) -> Result<Vec<RowUse>> {
    let of_result = |result: &hlo::Output| {
        if result.origin == Origin::Variable {
            return Err(Error::unsupported("the program writes a variable"));
        }
        match result.sizes() {
            [] => Ok(RowUse::None),
            [size] if size.dimension == 0 => Ok(RowUse::Rows),
            _ => Err(Error::unsupported("a result has an open dimension that is not its leading one")),
        }
    };
    interface.results().iter().map(of_result).collect()
}

/// Checks that the module for a size has the program's arguments and results.
fn check_shapes(whole: &Interface, own: &Interface, size: i64) -> Result<()> {
    let arguments = whole.arguments().iter().filter(|argument| argument.range.is_none());
    let expected: Vec<Vec<i64>> = arguments.map(|argument| argument.true_sizes(|_| size)).collect();
    let found: Vec<Vec<i64>> = own.arguments().iter().map(|argument| argument.shape.sizes()).collect();
    let results = whole.results().iter().map(|result| result.true_sizes(&vec![size; whole.size_count()]));
    let own_results: Vec<Vec<i64>> = own.results().iter().map(|result| result.shape.sizes()).collect();
    if expected == found && results.collect::<Vec<_>>() == own_results && own.size_count() == 0 {
        return Ok(());
    }
    Err(Error::unsupported(format!("arguments or results have other dimensions for {size} rows")))
}

/// Returns the sizes that get code: the smallest one of the range, some larger ones, and the user's.
fn sizes(low: i64, high: i64, given: &[i64]) -> Vec<i64> {
    let low = low.max(1);
    let most = high.min(MAX_SIZE);
    let mut sizes = BTreeSet::from([low.min(most)]);
    let steps = std::iter::successors(Some(1i64), |size| size.checked_mul(STEP));
    sizes.extend(steps.take_while(|&size| size <= most).filter(|&size| size > low));
    if sizes.last().is_some_and(|&last| most >= 2 * last) {
        sizes.insert(most);
    }
    sizes.extend(given.iter().copied().filter(|size| (low..=most).contains(size)));
    sizes.into_iter().collect()
}

/// Returns the positions and the bytes of a row of a module's arguments and results in the program.
pub(crate) fn arrays(interface: &Interface) -> (Vec<kernel::BatchArray>, Vec<kernel::BatchArray>) {
    let row_bytes = |shape: &shape::ArrayShape| shape.byte_size() as i64 / shape.size(0).max(1);
    let of_argument = |(number, argument): (usize, &hlo::Argument)| {
        let is_batched = !argument.named_dimensions.is_empty();
        kernel::BatchArray { number, row_bytes: if is_batched { row_bytes(&argument.shape) } else { 0 } }
    };
    let of_result = |(number, result): (usize, &hlo::Output)| {
        let is_batched = !result.sizes().is_empty();
        kernel::BatchArray { number, row_bytes: if is_batched { row_bytes(&result.shape) } else { 0 } }
    };
    let arguments = interface.arguments().iter().enumerate().filter(|(_, argument)| argument.range.is_none());
    (arguments.map(of_argument).collect(), interface.results().iter().enumerate().map(of_result).collect())
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn a_few_sizes_have_code() {
        assert_eq!(sizes(1, 64, &[]), [1, 8, 64]);
        assert_eq!(sizes(1, 64, &[32, 8, 100]), [1, 8, 32, 64]);
        assert_eq!(sizes(0, 16, &[]), [1, 8, 16]);
        assert_eq!(sizes(1, 100, &[]), [1, 8, 64]);
        assert_eq!(sizes(5, 7, &[]), [5]);
        assert_eq!(sizes(1, 2, &[]), [1, 2]);
        assert_eq!(sizes(1, 1 << 20, &[]), [1, 8, 64, 512, 4096]);
    }
}
