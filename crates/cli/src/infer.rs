//! The config of a model that comes without one, from its graph and the flags; `tfcompile config`.

use crate::model::ModelArgs;
use crate::outputs;
use crate::progress::Progress;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::InferOptions;

/// Prints the config of a model, inferred or as it is, as text proto.
pub(crate) fn run(arguments: &ModelArgs) -> Result<()> {
    let mut progress = Progress::new(arguments, "config");
    let read = arguments.read(&mut progress)?;
    drop(progress);
    outputs::print(&tf::source::config_to_text(&read.input.config))
}

/// What the flags say to help.
pub(crate) fn options(arguments: &ModelArgs) -> Result<InferOptions> {
    let fetches = arguments.fetch.iter().map(|text| output(text)).collect::<Result<_>>()?;
    let shapes = arguments.shape.iter().map(|text| shape(text)).collect::<Result<Vec<_>>>()?;
    let mut options = InferOptions { fetches, shapes: BTreeMap::new(), batch: arguments.batch };
    for (id, sizes) in shapes {
        if options.shapes.insert(id.clone(), sizes).is_some() {
            return Err(Error::invalid(format!("--shape is given twice for '{}:{}'", id.0, id.1)));
        }
    }
    Ok(options)
}

/// `NODE` or `NODE:K`.
fn output(text: &str) -> Result<(String, i64)> {
    let (node, index) = match text.rsplit_once(':') {
        Some((node, index)) => (node, index.parse().ok().filter(|index| (0..1 << 31).contains(index))),
        None => (text, Some(0)),
    };
    match index {
        Some(index) if !node.is_empty() && !node.starts_with('^') => Ok((node.to_owned(), index)),
        _ => Err(Error::invalid(format!(
            "'{text}' names no output of a node: write NODE, or NODE:K for its output K"
        ))),
    }
}

/// `NODE[:K]=SIZES`, the sizes joined by commas; none for a scalar.
fn shape(text: &str) -> Result<((String, i64), Vec<i64>)> {
    let wrong = || {
        Error::invalid(format!(
            "'{text}' is no shape of a feed: write NODE=SIZES, for instance x=1,224,224,3 (nothing behind = for a \
             scalar)"
        ))
    };
    let (node, sizes) = text.rsplit_once('=').ok_or_else(wrong)?;
    let size = |size: &str| size.trim().parse::<i64>().ok().filter(|size| *size >= 0);
    let sizes = match sizes {
        "" => Vec::new(),
        sizes => sizes.split(',').map(size).collect::<Option<_>>().ok_or_else(wrong)?,
    };
    Ok((output(node)?, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_a_node_and_a_number() {
        assert_eq!(output("a/b").expect("valid"), ("a/b".to_owned(), 0));
        assert_eq!(output("a/b:3").expect("valid"), ("a/b".to_owned(), 3));
        for bad in ["", ":1", "a:", "a:x", "a:-1", "^a", "a:4294967296"] {
            assert!(output(bad).expect_err(bad).message().contains(&format!("'{bad}'")));
        }
    }

    #[test]
    fn shapes_are_an_output_and_sizes() {
        assert_eq!(shape("x=1,2").expect("valid"), (("x".to_owned(), 0), vec![1, 2]));
        assert_eq!(shape("x:1=").expect("valid"), (("x".to_owned(), 1), vec![]));
        for bad in ["x", "x=-1", "x=1,,2", "x=a", "x=1x2", "=1"] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }
}
