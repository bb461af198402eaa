//! Flags from which the config of a model is inferred if it comes without one.

use clap::Args;
use support::{Error, Result};
use tf::InferOptions;

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
    /// Size that the graph leaves open: batch=16 for the leading dimension of every feed, x.1=100
    /// for dimension 1 of feed x, or the name of a symbolic dimension of an ONNX model. Can be
    /// repeated
    #[arg(long, value_name = "NAME=N", conflicts_with = "config")]
    pub(crate) dim: Vec<String>,
    /// Value of a feed that becomes a constant, so that sizes may follow from it: numbers that
    /// commas separate, such as ratio=0.25. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "config")]
    pub(crate) feed_constant: Vec<String>,
    /// Short for --dim batch=N
    #[arg(long, value_name = "N", conflicts_with = "config", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) batch: Option<i64>,
}

impl InferArgs {
    /// Returns the options of the inference.
    pub(crate) fn options(&self) -> Result<InferOptions> {
        let mut options = InferOptions {
            fetches: self.fetch.iter().map(|text| output(text)).collect::<Result<_>>()?,
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
        let batch = self.batch.map(|size| ("batch".to_owned(), size));
        let dims = self.dim.iter().map(|text| dim(text)).collect::<Result<Vec<_>>>()?;
        for (name, size) in dims.into_iter().chain(batch) {
            if options.dims.insert(name.clone(), size).is_some_and(|other| other != size) {
                return Err(Error::invalid(format!("--dim {name} is given twice, with different sizes")));
            }
        }
        Ok(options)
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

/// Parses `NAME=N`.
fn dim(text: &str) -> Result<(String, i64)> {
    let parsed = text.rsplit_once('=').and_then(|(name, size)| {
        let size = size.trim().parse::<i64>().ok().filter(|size| *size >= 0)?;
        (!name.is_empty()).then(|| (name.to_owned(), size))
    });
    parsed.ok_or_else(|| {
        Error::invalid(format!(
            "expected a size as batch=N for the leading dimension of every feed, or as NODE.D=N for dimension D of \
             feed NODE, got '{text}'"
        ))
    })
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
        assert_eq!(dim("batch=16").expect("well formed"), ("batch".to_owned(), 16));
        assert_eq!(dim("a/b:1.2=0").expect("well formed"), ("a/b:1.2".to_owned(), 0));
        for bad in ["batch", "=3", "batch=", "batch=-1", "batch=x"] {
            assert!(dim(bad).expect_err(bad).message().contains(&format!("'{bad}'")));
        }
        let same = InferArgs { dim: vec!["batch=4".to_owned()], batch: Some(4), ..InferArgs::default() };
        assert_eq!(same.options().expect("no contradiction").dims["batch"], 4);
        let other = InferArgs { batch: Some(5), ..same };
        assert!(other.options().expect_err("two sizes").message().contains("--dim batch"));
    }
}
