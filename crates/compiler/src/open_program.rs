//! StableHLO whose arguments have open dimensions: for any size within ranges, with code for a few
//! sizes if the rows of a batch do not depend on each other.

use crate::Observer;
use crate::sizes::{self, Batch};
use hlo::Program;
use stablehlo::{GivenSize, OpenDimensions, SizeRequest};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Sizes of open dimensions.
#[derive(Clone, Debug, Default)]
pub struct OpenSizes {
    /// Sizes and ranges of dimensions.
    pub request: SizeRequest,
    /// Sizes that get code of their own, by the names of their dimensions.
    pub code: BTreeMap<String, Vec<i64>>,
}

impl OpenSizes {
    /// Returns what the options of an inference state about sizes.
    pub fn of_options(options: &tf::InferOptions) -> Self {
        let given = options.dims.iter().map(|(name, size)| {
            let size = match size {
                tf::DimSize::Known(size) => GivenSize::Known(*size),
                tf::DimSize::Range(low, high) => GivenSize::Range(*low, *high),
                tf::DimSize::Named(name) => GivenSize::Named(name.clone()),
            };
            (name.clone(), size)
        });
        let request = SizeRequest {
            given: given.collect(),
            default_range: options.batch_range,
            shared: options.shared_names.clone(),
        };
        Self { request, code: options.sizes.clone() }
    }

    /// Checks that the sizes with code of their own are sizes of open dimensions. Returns the flags
    /// that have no effect, but that another function may need.
    pub(crate) fn unused(&self, open: Option<&OpenDimensions>) -> Result<Vec<String>> {
        let SizeRequest { given, shared, .. } = &self.request;
        let keys: Vec<&String> = match open {
            Some(open) => open.unused.iter().collect(),
            None => given.keys().filter(|key| shared.contains(*key)).collect(),
        };
        let mut unused: Vec<String> = keys.into_iter().map(|key| format!("--dim {key}")).collect();
        let ranges = open.map(|open| &open.names);
        for (name, sizes) in &self.code {
            let reason = match (ranges.and_then(|ranges| ranges.get(name)), ranges) {
                (Some(&(low, high)), _) => {
                    let Some(size) = sizes.iter().find(|size| !(low..=high).contains(*size)) else {
                        continue;
                    };
                    return Err(Error::invalid(format!(
                        "--sizes {name}: {size} is not in the range {low}..{high} of '{name}'"
                    )));
                }
                _ if shared.contains(name) => {
                    unused.push(format!("--sizes {name}"));
                    continue;
                }
                (None, None) => "all sizes are fixed, remove the flag".to_owned(),
                (None, Some(ranges)) if ranges.is_empty() => format!("add --dim {name}=LOW..HIGH"),
                (None, Some(ranges)) => {
                    let names: Vec<&str> = ranges.keys().map(String::as_str).collect();
                    format!("expected one of {}", names.join(", "))
                }
            };
            return Err(Error::invalid(format!("--sizes {name} names no dimension with a range: {reason}")));
        }
        Ok(unused)
    }

    /// Refuses sizes with code of their own, for this reason.
    pub(crate) fn refuse_code(&self, reason: &str) -> Result<()> {
        self.code.iter().try_for_each(|(name, given)| sizes::refuse_given(name, given, reason))
    }
}

/// Why a program has code for the largest sizes alone.
const COMPUTED_SIZES: &str = "sizes of dimensions are computed from others";

/// Combines the imports of a function with open dimensions: `whole` is the one for all sizes, and
/// `import` translates it for other sizes.
pub(crate) fn combined(
    whole: Result<Program>,
    sizes: &OpenSizes,
    open: &OpenDimensions,
    import: &dyn Fn(&SizeRequest) -> Result<Program>,
    observer: &mut dyn Observer,
) -> Result<Program> {
    if open.named().is_none() {
        sizes.refuse_code(COMPUTED_SIZES)?;
    }
    let at = |fixed: &[(String, i64)]| {
        let mut request = sizes.request.clone();
        let known = fixed.iter().map(|(name, size)| (name.clone(), GivenSize::Known(*size)));
        request.given.extend(known);
        import(&request)
    };
    let with_exact = |mut whole: Program| {
        let given =
            open.names.keys().filter_map(|name| Some((name.as_str(), sizes.code.get(name)?.as_slice())));
        whole.exact = sizes::exact_modules(&whole, &given.collect::<Vec<_>>(), &at)?;
        Ok(whole)
    };
    let mut names = open.names.keys();
    let (Some(name), None) = (names.next(), names.next()) else { return with_exact(whole?) };
    let given = sizes.code.get(name).map_or(&[][..], Vec::as_slice);
    let pieces = sizes::pieces(batch(open), given, &|size, _| at(&[(name.clone(), size)]));
    observer.ended("sizes", &|| sizes::to_text(&pieces));
    let is_in_pieces = pieces.is_ok();
    if is_in_pieces {
        sizes::check_given(name, given)?;
    }
    let (program, _) = sizes::combined(whole, pieces)?;
    hlo::verify(&program.module)?;
    if is_in_pieces { Ok(program) } else { with_exact(program) }
}

fn batch(open: &OpenDimensions) -> Result<Batch> {
    let named = open.named().ok_or_else(|| Error::unsupported(COMPUTED_SIZES))?;
    let names = open.names.iter().map(|(name, &(low, high))| (name.as_str(), low, high));
    Batch::new(names, named.into_iter().map(|named| named.into_keys().collect()))
}

/// Returns a line for each range that neither the user nor the program states.
pub(crate) fn notes(open: &OpenDimensions) -> Vec<String> {
    let names = open.names.iter().filter(|(name, _)| open.defaults.contains(*name));
    let note = |(name, (low, high)): (&String, &(i64, i64))| {
        format!(
            "the dimension '{name}' can have any size from {low} to {high}; --dim {name}=LOW..HIGH or --dim {name}=N \
             changes that"
        )
    };
    names.map(note).collect()
}
