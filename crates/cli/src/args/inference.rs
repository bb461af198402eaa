//! Flags from which the config of a model is inferred if it comes without one.

use clap::Args;
use std::collections::BTreeSet;
use support::{Error, Result};
use tf::{BATCH_RANGE, DimSize, InferOptions};

/// Flags that guide the inference of a config.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InferArgs {
    /// Result to compute: a node or one of its outputs. A node without outputs is run for its side
    /// effects. Can be repeated
    #[arg(long, value_name = "NODE[:K]", conflicts_with = "config")]
    pub(crate) fetch: Vec<String>,
    /// Shape of a feed that the graph leaves open, such as x=1,224,224,3, with ? for a size that
    /// the graph or --dim states. Can be repeated
    #[arg(long, value_name = "NODE=SIZES", conflicts_with = "config")]
    pub(crate) shape: Vec<String>,
    /// Size that the graph leaves open, a number or a range: batch=16 or batch=1..64 for the
    /// leading dimension of every feed, x.1=100 for dimension 1 of feed x, or the name of a
    /// symbolic dimension of the model. Dimensions with one name have one size: --dim
    /// tokens=1..512 --dim x.1=tokens --dim y.1=tokens. Of several functions (--signature
    /// prefill,decode), a flag is for those that have the dimension, or for one: --dim
    /// decode:batch=1..8. Can be repeated [default: batch=1..64]
    #[arg(long, value_name = "NAME=N|LOW..HIGH|NAME", conflicts_with = "config")]
    pub(crate) dim: Vec<String>,
    /// Sizes of a dimension with a range that get code of their own, in addition to a few that are
    /// chosen: batch=16,32. For one of several functions: decode:batch=16. Can be repeated
    #[arg(long, value_name = "NAME=N,N,..", conflicts_with = "config")]
    pub(crate) sizes: Vec<String>,
    /// Value of a feed that becomes a constant, so that sizes may follow from it: numbers that
    /// commas separate, such as ratio=0.25. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "config")]
    pub(crate) feed_constant: Vec<String>,
    /// Short for --dim batch=N
    #[arg(long, value_name = "N", conflicts_with = "config")]
    pub(crate) batch: Option<String>,
    /// Names in `dim` and `sizes` that another function may have instead of this one.
    #[arg(skip)]
    pub(crate) shared_names: BTreeSet<String>,
}

impl InferArgs {
    /// Returns the options of the inference.
    pub(crate) fn options(&self) -> Result<InferOptions> {
        let mut options = InferOptions {
            fetches: self.fetch.iter().map(|text| output(text)).collect::<Result<_>>()?,
            batch_range: Some(BATCH_RANGE),
            shared_names: self.shared_names.clone(),
            ..InferOptions::default()
        };
        for text in &self.shape {
            let (id, sizes) = shape(text)?;
            if options.shapes.insert(id.clone(), sizes).is_some() {
                return Err(Error::invalid(format!("--shape is given twice for '{}:{}'", id.0, id.1)));
            }
        }
        for text in &self.feed_constant {
            let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
            let (name, value) = pair.ok_or_else(|| {
                Error::invalid(format!(
                    "expected a constant feed as NAME=VALUE, such as ratio=0.25 or size=224,224, got '{text}'"
                ))
            })?;
            if options.constants.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(Error::invalid(format!("--feed-constant is given twice for '{name}'")));
            }
        }
        for text in &self.sizes {
            let (name, list) = sizes(text)?;
            options.sizes.entry(name).or_default().extend(list);
        }
        let batch = self.batch.iter().map(|size| batch(size)).collect::<Result<Vec<_>>>()?;
        let dims = self.dim.iter().map(|text| dim(text)).collect::<Result<Vec<_>>>()?;
        for (name, size) in dims.into_iter().chain(batch) {
            if options.dims.insert(name.clone(), size.clone()).is_some_and(|other| other != size) {
                return Err(Error::invalid(format!("--dim {name} is given twice, with different sizes")));
            }
        }
        Ok(options)
    }

    /// Returns the flags for one of several functions: those that begin with its name and a colon,
    /// without it, and those that begin with no function's name and have not been replaced.
    pub(crate) fn of_function(&self, function: &str, functions: &[String]) -> Self {
        let mut shared_names: BTreeSet<String> = self.batch.iter().map(|_| "batch".to_owned()).collect();
        let name = |text: &str| text.rsplit_once('=').map_or(text, |(name, _)| name).to_owned();
        let mut select = |flags: &[String]| {
            let of = |flag: &String| {
                let owner = flag.split_once(':').filter(|(owner, _)| functions.iter().any(|f| f == owner));
                owner.map(|(owner, rest)| (owner.to_owned(), rest.to_owned()))
            };
            let is_own = |(owner, rest): (String, String)| (owner == function).then_some(rest);
            let mut selected: Vec<String> = flags.iter().filter_map(|flag| is_own(of(flag)?)).collect();
            let own: BTreeSet<String> = selected.iter().map(|flag| name(flag)).collect();
            for flag in flags.iter().filter(|flag| of(flag).is_none()) {
                if !own.contains(&name(flag)) {
                    shared_names.insert(name(flag));
                    selected.push(flag.clone());
                }
            }
            shared_names.retain(|name| !own.contains(name));
            selected
        };
        let (dim, sizes) = (select(&self.dim), select(&self.sizes));
        let has_own_batch = dim.iter().any(|flag| name(flag) == "batch") && !shared_names.contains("batch");
        let batch = self.batch.clone().filter(|_| !has_own_batch);
        Self { dim, sizes, batch, shared_names, ..self.clone() }
    }

    /// Refuses `--sizes`, for this reason.
    pub(crate) fn refuse_sizes(&self, reason: &str) -> Result<()> {
        match self.sizes.first() {
            Some(text) => Err(Error::invalid(format!("--sizes {text} has no effect, remove it: {reason}"))),
            None => Ok(()),
        }
    }

    /// Returns the options of an inference that leaves no size open. `program` has fixed sizes.
    pub(crate) fn fixed_options(&self, program: &str) -> Result<InferOptions> {
        self.refuse_sizes(&format!("{program} has fixed sizes"))?;
        let options = InferOptions { batch_range: None, ..self.options()? };
        match options.dims.iter().find(|(_, size)| matches!(size, DimSize::Range(..))) {
            Some((name, _)) => Err(Error::invalid(format!(
                "--dim {name}: {program} has fixed sizes: state one with --dim {name}=N"
            ))),
            None => Ok(options),
        }
    }
}

/// Parses `NODE` or `NODE:K`.
fn output(text: &str) -> Result<(String, i64)> {
    let (node, index) = match text.rsplit_once(':') {
        Some((node, index)) => (node, index.parse().ok().filter(|index| (0..1 << 31).contains(index))),
        None => (text, Some(0)),
    };
    match index {
        Some(index) if !node.is_empty() && !node.starts_with('^') => Ok((node.to_owned(), index)),
        _ => Err(Error::invalid(format!("expected NODE, or NODE:K for output K of a node, got '{text}'"))),
    }
}

/// An output and the sizes of its dimensions, `None` for a size that is left open.
type GivenShape = ((String, i64), Vec<Option<i64>>);

/// Parses `NODE[:K]=SIZES`, where the sizes are joined by commas, `?` leaves one open, and a scalar
/// has none.
fn shape(text: &str) -> Result<GivenShape> {
    let wrong = || {
        Error::invalid(format!(
            "expected the shape of a feed as NODE=SIZES, such as x=1,224,224,3, got '{text}' (write nothing after \
             = for a scalar, and ? for a size that the graph or --dim states)"
        ))
    };
    let (node, sizes) = text.rsplit_once('=').ok_or_else(wrong)?;
    let size = |size: &str| match size.trim() {
        "?" => Some(None),
        size => size.parse::<i64>().ok().filter(|size| *size >= 0).map(Some),
    };
    let sizes = match sizes {
        "" => Vec::new(),
        sizes => sizes.split(',').map(size).collect::<Option<_>>().ok_or_else(wrong)?,
    };
    Ok((output(node)?, sizes))
}

/// Parses the size of `--batch`.
fn batch(text: &str) -> Result<(String, DimSize)> {
    match size(text) {
        Some(size @ (DimSize::Known(1..) | DimSize::Range(..))) => Ok(("batch".to_owned(), size)),
        _ => {
            Err(Error::invalid(format!("--batch {text}: expected a number from 1, or a range such as 1..64")))
        }
    }
}

/// Parses `NAME=N`, `NAME=LOW..HIGH`, or `NAME=NAME`.
fn dim(text: &str) -> Result<(String, DimSize)> {
    let parsed = text.rsplit_once('=').and_then(|(name, size_text)| {
        let size = size(size_text).or_else(|| {
            let is_name = !size_text.is_empty()
                && !size_text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c));
            is_name.then(|| DimSize::Named(size_text.to_owned()))
        })?;
        (!name.is_empty()).then(|| (name.to_owned(), size))
    });
    parsed.ok_or_else(|| {
        if let Some(problem) = range_problem(text) {
            return Error::invalid(format!("--dim {text}: {problem}"));
        }
        Error::invalid(format!(
            "expected a size as batch=N for the leading dimension of every feed, or as NODE.D=N for dimension D of \
             feed NODE, with a range LOW..HIGH of numbers from 0 to 2147483647, or the name of another size, in place of N, got \
             '{text}'"
        ))
    })
}

/// Says what is wrong with a range of two numbers.
fn range_problem(text: &str) -> Option<&'static str> {
    let (low, high) = text.rsplit_once('=')?.1.split_once("..")?;
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let number = |text: &str| text.parse::<i32>().ok();
    match (number(low), number(high)) {
        _ if !is_number(low) || !is_number(high) => None,
        (Some(_), Some(_)) => Some("the smallest size of the range exceeds its largest: exchange them"),
        _ => Some("the sizes of a range are at most 2147483647"),
    }
}

/// Parses `NAME=N,N,..`.
fn sizes(text: &str) -> Result<(String, Vec<i64>)> {
    let parsed = text.rsplit_once('=').and_then(|(name, list)| {
        let sizes = list.split(',').map(|size| size.trim().parse::<i64>().ok().filter(|size| *size > 0));
        (!name.is_empty()).then(|| Some((name.to_owned(), sizes.collect::<Option<_>>()?)))?
    });
    parsed.ok_or_else(|| {
        Error::invalid(format!("--sizes {text}: expected a dimension and its sizes, such as batch=16,32"))
    })
}

/// Parses `N` or `LOW..HIGH`.
fn size(text: &str) -> Option<DimSize> {
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|size| *size >= 0);
    let Some((low, high)) = text.split_once("..") else { return number(text).map(DimSize::Known) };
    match (number(low)?, number(high)?) {
        (low, high) if low == high => Some(DimSize::Known(low)),
        (low, high) => (low < high && high <= i64::from(i32::MAX)).then_some(DimSize::Range(low, high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_a_node_and_a_number() {
        assert_eq!(output("a/b").expect("well formed"), ("a/b".to_owned(), 0));
        assert_eq!(output("a/b:3").expect("well formed"), ("a/b".to_owned(), 3));
        for bad in ["", ":1", "a:", "a:x", "a:-1", "^a", "a:4294967296"] {
            assert!(output(bad).expect_err(bad).message().contains(&format!("'{bad}'")));
        }
    }

    #[test]
    fn shapes_are_an_output_and_sizes() {
        assert_eq!(shape("x=1,2").expect("well formed"), (("x".to_owned(), 0), vec![Some(1), Some(2)]));
        assert_eq!(shape("x=?,2").expect("well formed"), (("x".to_owned(), 0), vec![None, Some(2)]));
        assert_eq!(shape("x:1=").expect("well formed"), (("x".to_owned(), 1), vec![]));
        for bad in ["x", "x=-1", "x=1,,2", "x=a", "x=1x2", "=1", "x=??"] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dimensions_are_a_name_and_a_size() {
        let parsed = |text| dim(text).expect("well formed");
        assert_eq!(parsed("batch=16"), ("batch".to_owned(), DimSize::Known(16)));
        assert_eq!(parsed("a/b:1.2=0"), ("a/b:1.2".to_owned(), DimSize::Known(0)));
        assert_eq!(parsed("batch=0..64"), ("batch".to_owned(), DimSize::Range(0, 64)));
        assert_eq!(parsed("batch=3..3"), ("batch".to_owned(), DimSize::Known(3)));
        assert_eq!(parsed("x.1=tokens"), ("x.1".to_owned(), DimSize::Named("tokens".to_owned())));
        let bad_ranges = ["batch=-1..3", "batch=1..", "batch=..", "batch=1..2..3"];
        let message = |text: &str| dim(text).expect_err("an impossible range").message().to_owned();
        assert!(
            message("batch=4..3").starts_with("--dim batch=4..3: the smallest size of the range exceeds")
        );
        for large in ["batch=0..2147483648", "batch=99999999999999999999..99999999999999999999"] {
            assert_eq!(message(large), format!("--dim {large}: the sizes of a range are at most 2147483647"));
        }
        for bad in ["batch", "=3", "batch=", "batch=-1", "batch=1x", "batch=99999999999999999999"]
            .iter()
            .chain(&bad_ranges)
        {
            assert!(dim(bad).expect_err(bad).message().contains(&format!("'{bad}'")));
        }
        let same = InferArgs {
            dim: vec!["batch=4".to_owned()],
            batch: Some("4".to_owned()),
            ..InferArgs::default()
        };
        assert_eq!(same.options().expect("no contradiction").dims["batch"], DimSize::Known(4));
        let range = InferArgs { batch: Some("1..4".to_owned()), ..InferArgs::default() };
        assert_eq!(range.options().expect("a range").dims["batch"], DimSize::Range(1, 4));
        let zero = InferArgs { batch: Some("0".to_owned()), ..InferArgs::default() };
        assert!(zero.options().expect_err("no samples").message().contains("--batch 0"));
        let other = InferArgs { batch: Some("5".to_owned()), ..same };
        assert!(other.options().expect_err("two sizes").message().contains("--dim batch"));
    }
}
