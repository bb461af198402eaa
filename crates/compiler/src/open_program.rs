//! StableHLO whose arguments have open dimensions: for any size within ranges, with code for a few
//! sizes if the rows of a batch do not depend on each other.

use crate::Observer;
use crate::sizes::{self, Batch};
use hlo::Program;
use stablehlo::{GivenSize, OpenDimensions, SizeRequest};
use std::collections::BTreeMap;
use support::Result;

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
        let request = SizeRequest { given: given.collect(), default_range: options.batch_range };
        Self { request, code: options.sizes.clone() }
    }
}

/// Combines the imports of a function with open dimensions: `whole` is the one for all sizes, and
/// `import` translates it for other sizes.
pub(crate) fn combined(
    whole: Result<Program>,
    sizes: &OpenSizes,
    open: &OpenDimensions,
    import: &dyn Fn(&SizeRequest) -> Result<Program>,
    observer: &mut dyn Observer,
) -> Result<Program> {
    let mut names = open.names.keys();
    let (Some(name), None) = (names.next(), names.next()) else {
        let several = support::Error::unsupported(sizes::SEVERAL_NAMES);
        for (name, given) in open.names.keys().filter_map(|name| sizes.code.get_key_value(name)) {
            sizes::check_given(name, given, Err(&several))?;
        }
        return whole;
    };
    let at_size = |size: i64| {
        let mut request = sizes.request.clone();
        request.given.insert(name.clone(), GivenSize::Known(size));
        import(&request)
    };
    let given = sizes.code.get(name).map_or(&[][..], Vec::as_slice);
    let pieces = sizes::pieces(batch(open), given, &at_size);
    observer.ended("sizes", &|| sizes::to_text(&pieces));
    sizes::check_given(name, given, pieces.as_ref())?;
    let (program, _) = sizes::combined(whole, pieces)?;
    hlo::verify(&program.module)?;
    Ok(program)
}

fn batch(open: &OpenDimensions) -> Result<Batch> {
    let named = open
        .named()
        .ok_or_else(|| support::Error::unsupported("sizes of dimensions are computed from others"))?;
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
