//! Names of nodes and the syntax of inputs.

use crate::proto::NodeDef;
use std::collections::BTreeMap;
use support::{Error, Result};

/// The nodes of a graph by name.
pub(super) struct Names<'a> {
    index: BTreeMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    /// Indexes the nodes. Rejects nodes without a valid name or an op, and duplicate names.
    pub(super) fn new(nodes: &'a [NodeDef]) -> Result<Self> {
        let mut index = BTreeMap::new();
        for (i, node) in nodes.iter().enumerate() {
            if node.name.is_empty() || node.name.contains([':', '^']) {
                return Err(Error::invalid(format!(
                    "node number {i} (op {}) has the invalid name '{}'",
                    node.op, node.name
                )));
            }
            if node.op.is_empty() {
                return Err(Error::invalid(format!("node '{}' has no op", node.name)));
            }
            if index.insert(node.name.as_str(), i).is_some() {
                return Err(Error::invalid(format!(
                    "two nodes have the name '{}': names must be unique in a graph",
                    node.name
                )));
            }
        }
        Ok(Self { index })
    }

    /// Returns the position of a node.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// An input of a node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input<'a> {
    /// `name` or `name:index`.
    Data(&'a str, i64),
    /// `^name`.
    Control(&'a str),
}

impl<'a> Input<'a> {
    /// Parses an input of the node named `node`.
    pub(super) fn parse(text: &'a str, node: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "node '{node}' has the invalid input '{text}': expected 'name', 'name:index', or '^name'"
            ))
        };
        if let Some(name) = text.strip_prefix('^') {
            return if name.is_empty() || name.contains([':', '^']) {
                Err(bad())
            } else {
                Ok(Self::Control(name))
            };
        }
        let (name, index) = match text.rsplit_once(':') {
            Some((name, index)) if index.bytes().all(|c| c.is_ascii_digit()) => {
                (name, index.parse::<i32>().map_err(|_| bad())?)
            }
            Some(_) => return Err(bad()),
            None => (text, 0),
        };
        if name.is_empty() || name.contains([':', '^']) {
            return Err(bad());
        }
        Ok(Self::Data(name, index.into()))
    }

    /// Returns the name of the node.
    pub(super) fn node(self) -> &'a str {
        match self {
            Self::Data(name, _) | Self::Control(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_a_name_an_output_or_a_control_input() {
        assert_eq!(Input::parse("a/b", "n").expect("valid"), Input::Data("a/b", 0));
        assert_eq!(Input::parse("a:12", "n").expect("valid"), Input::Data("a", 12));
        assert_eq!(Input::parse("^a", "n").expect("valid"), Input::Control("a"));
        for bad in ["", "^", ":0", "a:", "a:x", "a:-1", "a:b:0", "^a:0", "a:99999999999"] {
            let message = Input::parse(bad, "culprit").expect_err(bad).to_string();
            assert!(message.contains("'culprit'") && message.contains(&format!("'{bad}'")), "{message}");
        }
    }
}
